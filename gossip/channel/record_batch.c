#include "gossip/channel/record_batch.h"

#include <sodium.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/channel/channel_internal.h"

/* ---- numbers ---- */

static void take(dp_noise_cipher *cipher, uint64_t *records, uint32_t n_records,
                 dp_record_batch *lot)
{
    dp_assert(n_records > 0 && n_records <= DP_RECORD_BATCH_RECORDS_MAX);
    *lot = (dp_record_batch){
        .suite = cipher->suite, .counter = cipher->counter, .n_records = n_records};
    dp_assert(lot->suite != NULL);
    memcpy(lot->keys[0], cipher->key, sizeof lot->keys[0]);
    *records += n_records;
    cipher->counter += n_records;
    if (cipher->counter >= DP_RECORDS_PER_KEY) {
        const uint64_t left = cipher->counter - DP_RECORDS_PER_KEY;
        dp_noise_rekey(cipher);
        cipher->counter = left;
    }
    memcpy(lot->keys[1], cipher->key, sizeof lot->keys[1]);
}

dp_status dp_channel_take_sends(dp_channel *channel, uint32_t n_records, dp_record_batch *lot)
{
    if (channel->state != DP_CHANNEL_OPEN || channel->close_sent) {
        return DP_CLOSED;
    }
    take(&channel->send, &channel->records_sent, n_records, lot);
    return DP_OK;
}

dp_status dp_channel_take_receives(dp_channel *channel, uint32_t n_records, dp_record_batch *lot)
{
    if (channel->state != DP_CHANNEL_OPEN) {
        return DP_CLOSED;
    }
    take(&channel->receive, &channel->records_received, n_records, lot);
    return DP_OK;
}

void dp_record_batch_close(dp_record_batch *lot)
{
    sodium_memzero(lot, sizeof *lot);
}

static const uint8_t *key_of(const dp_record_batch *lot, uint32_t index, uint64_t *counter)
{
    const uint64_t number = lot->counter + index;
    const bool moved_on = number >= DP_RECORDS_PER_KEY;

    *counter = moved_on ? number - DP_RECORDS_PER_KEY : number;
    return lot->keys[moved_on ? 1 : 0];
}

/* ---- sending ---- */

uint32_t dp_record_batch_message_records(size_t size)
{
    return (uint32_t)((size + DP_MESSAGE_SIZE_BYTES + DP_RECORD_PLAIN_MAX - 1) /
                      DP_RECORD_PLAIN_MAX);
}

/* Plaintext of the records before number n, the message's size included. */
static size_t plain_before(size_t size, uint32_t n)
{
    const size_t whole = size + DP_MESSAGE_SIZE_BYTES;
    const size_t full = (size_t)n * DP_RECORD_PLAIN_MAX;

    return full < whole ? full : whole;
}

size_t dp_record_batch_wire_bytes(size_t size, uint32_t first, uint32_t n)
{
    return plain_before(size, first + n) - plain_before(size, first) +
           (size_t)n * (DP_RECORD_HEADER_BYTES + DP_NOISE_TAG_BYTES);
}

/* Seal number i of the lot; plain may lie at body already. Returns where the next record goes. */
static uint8_t *seal_record(const dp_record_batch *lot, uint32_t i, bool begins, dp_view plain,
                            uint8_t *out)
{
    uint8_t *body = out + DP_RECORD_HEADER_BYTES;
    uint64_t counter = 0;
    const uint8_t *key = key_of(lot, i, &counter);
    dp_writer header = dp_writer_of(out, DP_RECORD_HEADER_BYTES);

    dp_write_u32(&header, (uint32_t)(plain.size + DP_NOISE_TAG_BYTES) |
                              (begins ? 0U : (uint32_t)DP_RECORD_CONTINUE << 24));
    lot->suite->seal(key, counter, dp_view_of(out, DP_RECORD_HEADER_BYTES), plain, body);
    return body + plain.size + DP_NOISE_TAG_BYTES;
}

/* The message's size stands before its bytes, so the first record is put together in place. */
static dp_view first_record(size_t message_bytes, size_t size, uint8_t *out)
{
    uint8_t *body = out + DP_RECORD_HEADER_BYTES;
    dp_writer writer = dp_writer_of(body, DP_MESSAGE_SIZE_BYTES);

    dp_write_u32(&writer, (uint32_t)message_bytes);
    return dp_view_of(body, size);
}

void dp_record_batch_seal(const dp_record_batch *lot, dp_view message, uint32_t first, uint8_t *out)
{
    for (uint32_t i = 0; i < lot->n_records; i++) {
        const size_t start = plain_before(message.size, first + i);
        const size_t size = plain_before(message.size, first + i + 1) - start;
        const bool begins = first + i == 0;
        dp_view plain;

        if (begins) {
            plain = first_record(message.size, size, out);
            if (size > DP_MESSAGE_SIZE_BYTES) {
                memcpy(out + DP_RECORD_HEADER_BYTES + DP_MESSAGE_SIZE_BYTES, message.data,
                       size - DP_MESSAGE_SIZE_BYTES);
            }
        } else {
            plain = dp_view_of(message.data + start - DP_MESSAGE_SIZE_BYTES, size);
        }
        out = seal_record(lot, i, begins, plain, out);
    }
}

/* ---- receiving ---- */

dp_status dp_record_batch_frame(dp_record_batch_framer *framer, dp_view bytes,
                                dp_record_batch_record *record)
{
    dp_reader reader = dp_reader_of(bytes);
    const uint32_t header = dp_read_u32(&reader);
    const uint32_t sealed = header & 0xffffffU;
    const uint8_t type = (uint8_t)(header >> 24);

    *record = (dp_record_batch_record){0};
    if (reader.failed) {
        return DP_OK;
    }
    if (sealed > DP_RECORD_PLAIN_MAX + DP_NOISE_TAG_BYTES) {
        return DP_TOOBIG;
    }
    if (sealed < DP_NOISE_TAG_BYTES || type > DP_RECORD_CLOSE) {
        return DP_BADMSG;
    }
    const uint32_t plain = sealed - DP_NOISE_TAG_BYTES;
    const bool continues = type == DP_RECORD_CONTINUE;
    if ((continues && (!framer->in_message || framer->short_record || plain == 0)) ||
        (type == DP_RECORD_CLOSE && plain != 0)) {
        return DP_BADMSG;
    }
    const uint32_t offset = continues ? framer->plain : 0;
    if (plain > DP_RECORD_BATCH_MESSAGE_MAX - offset) {
        return DP_TOOBIG;
    }
    if (dp_reader_left(&reader) < sealed) {
        return DP_OK;
    }
    *record = (dp_record_batch_record){.bytes = DP_RECORD_HEADER_BYTES + sealed,
                                       .plain = plain,
                                       .offset = offset,
                                       .begins = type == DP_RECORD_BEGIN,
                                       .closes = type == DP_RECORD_CLOSE};
    framer->in_message = type != DP_RECORD_CLOSE;
    framer->short_record = plain < DP_RECORD_PLAIN_MAX;
    framer->plain = offset + plain;
    return DP_OK;
}

bool dp_record_batch_open(const dp_record_batch *lot, const uint8_t *sealed, uint8_t *out)
{
    for (uint32_t i = 0; i < lot->n_records; i++) {
        uint64_t counter = 0;
        const uint8_t *key = key_of(lot, i, &counter);
        const dp_view header = dp_view_of(sealed, DP_RECORD_HEADER_BYTES);
        dp_reader reader = dp_reader_of(header);
        const size_t size = dp_read_u32(&reader) & 0xffffffU;

        dp_assert(size >= DP_NOISE_TAG_BYTES && size <= DP_RECORD_PLAIN_MAX + DP_NOISE_TAG_BYTES);
        sealed += DP_RECORD_HEADER_BYTES;
        if (!lot->suite->open(key, counter, header, dp_view_of(sealed, size), out)) {
            return false;
        }
        sealed += size;
        out += size - DP_NOISE_TAG_BYTES;
    }
    return true;
}

dp_status dp_record_batch_accept(dp_record_batch_story *story, bool begins, const uint8_t *at,
                                 uint32_t plain, bool *complete)
{
    *complete = false;
    if (begins == story->in_message) {
        return DP_BADMSG; /* A message within a message, or one that had its end. */
    }
    if (begins) {
        dp_reader reader = dp_reader_of(dp_view_of(at, plain));
        story->size = dp_read_u32(&reader);
        story->have = 0;
        if (reader.failed) {
            return DP_BADMSG;
        }
        if (story->size > DP_MESSAGE_BULK_MAX) {
            return DP_TOOBIG;
        }
        plain -= DP_MESSAGE_SIZE_BYTES;
    }
    if (plain > story->size - story->have) {
        return DP_BADMSG;
    }
    story->have += plain;
    *complete = story->have == story->size;
    story->in_message = !*complete;
    return DP_OK;
}
