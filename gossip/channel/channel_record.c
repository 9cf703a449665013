#include <string.h>

#include "base/assert.h"
#include "gossip/channel/channel_internal.h"

uint32_t dp_lane_message_max(dp_lane lane)
{
    return lane == DP_LANE_BULK ? DP_MESSAGE_BULK_MAX : DP_MESSAGE_CONTROL_MAX;
}

size_t dp_channel_wire_bytes(size_t size)
{
    const size_t plain = size + DP_MESSAGE_SIZE_BYTES;
    const size_t n_records = (plain + DP_RECORD_PLAIN_MAX - 1) / DP_RECORD_PLAIN_MAX;

    return plain + n_records * (DP_RECORD_HEADER_BYTES + DP_NOISE_TAG_BYTES);
}

static void count_record(dp_noise_cipher *cipher, uint64_t *records)
{
    (*records)++;
    if (cipher->counter == DP_RECORDS_PER_KEY) {
        dp_noise_rekey(cipher);
    }
}

static void write_header(uint8_t header[DP_RECORD_HEADER_BYTES], size_t sealed_bytes, uint8_t type)
{
    dp_writer writer = dp_writer_of(header, DP_RECORD_HEADER_BYTES);

    dp_assert(sealed_bytes <= DP_RECORD_PLAIN_MAX + DP_NOISE_TAG_BYTES);
    dp_write_u32(&writer, (uint32_t)sealed_bytes | (uint32_t)type << 24);
}

/* Seal one record into room; plaintext may already lie behind the header. Returns its bytes. */
static size_t seal_record(dp_channel *channel, uint8_t type, dp_view plaintext, uint8_t *room)
{
    const size_t sealed_bytes = plaintext.size + DP_NOISE_TAG_BYTES;

    write_header(room, sealed_bytes, type);
    dp_noise_seal(&channel->send, dp_view_of(room, DP_RECORD_HEADER_BYTES), plaintext,
                  room + DP_RECORD_HEADER_BYTES);
    count_record(&channel->send, &channel->records_sent);
    return DP_RECORD_HEADER_BYTES + sealed_bytes;
}

dp_status dp_channel_write(dp_channel *channel, dp_view plaintext, dp_buf *out)
{
    uint8_t *room = NULL;

    if (channel->state != DP_CHANNEL_OPEN || channel->close_sent) {
        return DP_CLOSED;
    }
    if (plaintext.size > dp_lane_message_max(channel->lane)) {
        return DP_TOOBIG;
    }
    const size_t wire_bytes = dp_channel_wire_bytes(plaintext.size);
    DP_TRY(dp_buf_reserve(out, wire_bytes, &room));
    /* The first record carries the message's size, so its plaintext is put together in place. */
    const size_t first_max = DP_RECORD_PLAIN_MAX - DP_MESSAGE_SIZE_BYTES;
    size_t done = plaintext.size < first_max ? plaintext.size : first_max;
    uint8_t *first = room + DP_RECORD_HEADER_BYTES;
    dp_writer writer = dp_writer_of(first, DP_MESSAGE_SIZE_BYTES + done);
    dp_write_u32(&writer, (uint32_t)plaintext.size);
    dp_write_bytes(&writer, plaintext.data, done);
    size_t written = seal_record(channel, DP_RECORD_BEGIN,
                                 dp_view_of(first, DP_MESSAGE_SIZE_BYTES + done), room);
    while (done < plaintext.size) {
        const size_t left = plaintext.size - done;
        const size_t size = left < DP_RECORD_PLAIN_MAX ? left : DP_RECORD_PLAIN_MAX;
        written += seal_record(channel, DP_RECORD_CONTINUE, dp_view_of(plaintext.data + done, size),
                               room + written);
        done += size;
    }
    dp_assert(written == wire_bytes);
    dp_buf_commit(out, written);
    return DP_OK;
}

dp_status dp_channel_finish(dp_channel *channel, dp_buf *out)
{
    uint8_t *room = NULL;

    if (channel->state != DP_CHANNEL_OPEN || channel->close_sent) {
        return DP_CLOSED;
    }
    DP_TRY(dp_buf_reserve(out, DP_RECORD_HEADER_BYTES + DP_NOISE_TAG_BYTES, &room));
    dp_buf_commit(out, seal_record(channel, DP_RECORD_CLOSE, dp_view_of(NULL, 0), room));
    channel->close_sent = true;
    return DP_OK;
}

/* The bytes of a record were authentic: do they continue the story? size: of its plaintext, already
 * in channel->message. */
static dp_status accept_record(dp_channel *channel, uint8_t type, size_t size,
                               dp_channel_event *event)
{
    if (type == DP_RECORD_CLOSE) {
        if (size != 0 || channel->in_message) {
            return dp_channel_fail(channel, DP_BADMSG, "a close within a message");
        }
        channel->state = DP_CHANNEL_ENDED;
        event->type = DP_CHANNEL_CLOSED;
        return DP_OK;
    }
    if (type == DP_RECORD_BEGIN) {
        dp_reader reader = dp_reader_of(dp_buf_view(&channel->message));
        channel->message_bytes = dp_read_u32(&reader);
        if (reader.failed) {
            return dp_channel_fail(channel, DP_BADMSG, "a first record without a size");
        }
        if (channel->message_bytes > dp_lane_message_max(channel->lane)) {
            return dp_channel_fail(channel, DP_TOOBIG, "a message over its lane's limit");
        }
        channel->in_message = true;
    }
    const size_t have = channel->message.size - DP_MESSAGE_SIZE_BYTES;
    if (have > channel->message_bytes) {
        return dp_channel_fail(channel, DP_BADMSG, "more bytes than the message has");
    }
    if (have == channel->message_bytes) {
        channel->in_message = false;
        event->type = DP_CHANNEL_MESSAGE;
        event->message = dp_view_of(channel->message.data + DP_MESSAGE_SIZE_BYTES, have);
        return DP_OK;
    }
    /* Only the last record of a message may be short: a message has one cut, and cannot trickle. */
    return size == DP_RECORD_PLAIN_MAX
               ? DP_OK
               : dp_channel_fail(channel, DP_BADMSG, "a short record within a message");
}

dp_status dp_channel_read_record(dp_channel *channel, dp_view unit, dp_channel_event *event)
{
    const dp_view header = dp_view_of(unit.data, DP_RECORD_HEADER_BYTES);
    const dp_view sealed = dp_view_of(unit.data + header.size, unit.size - header.size);
    const uint8_t type = unit.data[3];
    const size_t size = sealed.size - DP_NOISE_TAG_BYTES;
    uint8_t *room = NULL;

    if (!channel->in_message) {
        dp_buf_clear(&channel->message);
    }
    const dp_status reserved = dp_buf_reserve(&channel->message, size, &room);
    if (reserved != DP_OK) {
        return dp_channel_fail(channel, reserved, "no room for a record");
    }
    if (dp_noise_open(&channel->receive, header, sealed, room) != DP_OK) {
        return dp_channel_fail(channel, DP_BADSIG, "a record does not authenticate");
    }
    count_record(&channel->receive, &channel->records_received);
    if (type > DP_RECORD_CLOSE || (type == DP_RECORD_BEGIN && channel->in_message) ||
        (type == DP_RECORD_CONTINUE && !channel->in_message)) {
        return dp_channel_fail(channel, DP_BADMSG, "a record out of place");
    }
    dp_buf_commit(&channel->message, size);
    return accept_record(channel, type, size, event);
}
