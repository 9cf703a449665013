#include "gossip/channel.h"

#include <sodium.h>
#include <string.h>

#include "base/assert.h"

enum {
    SUITE_CHACHAPOLY = 1,
    HANDSHAKE_HEADER_BYTES = 2,
    FIRST_PAYLOAD_BYTES = 1 + 8 + 8,
    PAYLOAD_HEADER_BYTES = 8 + 8 + 2,
    MESSAGE_SIZE_BYTES = 4,
};

enum record_type { RECORD_BEGIN = 0, RECORD_CONTINUE = 1, RECORD_CLOSE = 2 };

static const char noise_name[] = "Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b";
static const uint8_t magic[4] = {'D', 'P', 'N', '1'};

/* The largest handshake message: e, sealed s, sealed payload. */
_Static_assert(32 + 32 + 16 + PAYLOAD_HEADER_BYTES + DP_CREDENTIAL_BYTES_MAX +
                       DP_CHANNEL_HELLO_MAX + 16 <=
                   DP_CHANNEL_HANDSHAKE_MAX,
               "every credential and hello fits a handshake message");

uint32_t dp_lane_message_max(dp_lane lane)
{
    return lane == DP_LANE_BULK ? DP_MESSAGE_BULK_MAX : DP_MESSAGE_CONTROL_MAX;
}

size_t dp_channel_wire_bytes(size_t size)
{
    const size_t plain = size + MESSAGE_SIZE_BYTES;
    const size_t n_records = (plain + DP_RECORD_PLAIN_MAX - 1) / DP_RECORD_PLAIN_MAX;

    return plain + n_records * (DP_RECORD_HEADER_BYTES + DP_NOISE_TAG_BYTES);
}

/* The one way to BROKEN. The phrase is for a log. */
static dp_status fail(dp_channel *channel, dp_status status, const char *fault)
{
    channel->state = DP_CHANNEL_BROKEN;
    channel->status = status;
    if (channel->fault == NULL) {
        channel->fault = fault;
    }
    dp_noise_close(&channel->noise);
    sodium_memzero(&channel->send, sizeof channel->send);
    sodium_memzero(&channel->receive, sizeof channel->receive);
    sodium_memzero(channel->config.psks, sizeof channel->config.psks);
    return status;
}

/* ---- handshake ---- */

static dp_status begin_noise(dp_channel *channel, const uint8_t preamble[DP_CHANNEL_PREAMBLE_BYTES],
                             const dp_channel_psk *psk)
{
    uint8_t prologue[DP_CHANNEL_PREAMBLE_BYTES + DP_HASH_BYTES];
    const dp_identity *identity = channel->config.identity;

    memcpy(prologue, preamble, DP_CHANNEL_PREAMBLE_BYTES);
    memcpy(prologue + DP_CHANNEL_PREAMBLE_BYTES, channel->config.run.bytes, DP_HASH_BYTES);
    const dp_noise_setup setup = {
        .name = noise_name,
        .initiator = channel->initiator,
        .prologue = dp_view_of(prologue, sizeof prologue),
        .psks = psk->key,
        .n_psks = 1,
        .static_secret = identity->x_secret,
        .static_public = identity->x_public,
        .ephemeral_secret = channel->config.ephemeral,
    };
    const dp_status status = dp_noise_init(&channel->noise, &setup);
    sodium_memzero(channel->config.psks, sizeof channel->config.psks);
    sodium_memzero(channel->config.ephemeral, sizeof channel->config.ephemeral);
    channel->state = DP_CHANNEL_HANDSHAKE;
    return status;
}

/* Append u16 size and the next Noise message. */
static dp_status send_handshake(dp_channel *channel, dp_view payload, dp_buf *out)
{
    static const uint8_t no_size[HANDSHAKE_HEADER_BYTES] = {0};
    const size_t start = out->size;

    DP_TRY(dp_buf_append(out, dp_view_of(no_size, sizeof no_size)));
    DP_TRY(dp_noise_write(&channel->noise, payload, out));
    const size_t size = out->size - start - HANDSHAKE_HEADER_BYTES;
    dp_assert(size <= DP_CHANNEL_HANDSHAKE_MAX);
    dp_writer writer = dp_writer_of(out->data + start, HANDSHAKE_HEADER_BYTES);
    dp_write_u16(&writer, (uint16_t)size);
    return DP_OK;
}

static dp_status send_first(dp_channel *channel, dp_buf *out)
{
    uint8_t bytes[DP_CHANNEL_PREAMBLE_BYTES];
    uint8_t payload[FIRST_PAYLOAD_BYTES];
    const dp_channel_config *config = &channel->config;
    dp_writer preamble = dp_writer_of(bytes, sizeof bytes);
    dp_writer writer = dp_writer_of(payload, sizeof payload);

    dp_write_bytes(&preamble, magic, sizeof magic);
    dp_write_u8(&preamble, SUITE_CHACHAPOLY);
    dp_write_u8(&preamble, 0);
    dp_write_u16(&preamble, config->psks[0].epoch);
    dp_write_u8(&writer, (uint8_t)channel->lane);
    dp_write_u64(&writer, config->now_ms);
    dp_write_u64(&writer, config->boot_id);
    dp_assert(!preamble.full && !writer.full && writer.size == sizeof payload);
    const dp_channel_psk psk = config->psks[0];
    DP_TRY(begin_noise(channel, bytes, &psk));
    DP_TRY(dp_buf_append(out, dp_view_of(bytes, sizeof bytes)));
    return send_handshake(channel, dp_view_of(payload, sizeof payload), out);
}

static dp_status send_credential(dp_channel *channel, dp_buf *out)
{
    uint8_t payload[PAYLOAD_HEADER_BYTES + DP_CREDENTIAL_BYTES_MAX + DP_CHANNEL_HELLO_MAX];
    dp_writer writer = dp_writer_of(payload, sizeof payload);

    dp_write_u64(&writer, channel->config.now_ms);
    dp_write_u64(&writer, channel->config.boot_id);
    dp_write_u16(&writer, (uint16_t)channel->config.credential.size);
    dp_write_view(&writer, channel->config.credential);
    dp_write_view(&writer, channel->config.hello);
    dp_assert(!writer.full);
    return send_handshake(channel, dp_view_of(payload, writer.size), out);
}

static dp_status read_preamble(dp_channel *channel, dp_view unit)
{
    const dp_channel_config *config = &channel->config;
    uint8_t name[sizeof magic];
    dp_reader reader = dp_reader_of(unit);

    dp_read_bytes(&reader, name, sizeof name);
    const uint8_t suite_max = dp_read_u8(&reader);
    const uint8_t zero = dp_read_u8(&reader);
    const uint16_t epoch = dp_read_u16(&reader);
    dp_assert(!reader.failed);
    if (memcmp(name, magic, sizeof magic - 1) != 0) {
        return fail(channel, DP_BADMSG, "does not speak this protocol");
    }
    if (name[3] != magic[3]) {
        return fail(channel, DP_VERSION, "speaks another version of this protocol");
    }
    if (suite_max < SUITE_CHACHAPOLY || zero != 0) {
        return fail(channel, DP_BADMSG, "malformed preamble");
    }
    for (unsigned i = 0; i < config->n_psks; i++) {
        if (config->psks[i].epoch == epoch) {
            dp_channel_psk psk = config->psks[i];
            const dp_status status = begin_noise(channel, unit.data, &psk);
            sodium_memzero(&psk, sizeof psk);
            return status == DP_OK ? DP_OK : fail(channel, status, "cannot begin the handshake");
        }
    }
    return fail(channel, DP_DENIED, "unknown epoch of the pre-shared key");
}

static dp_status answer_first(dp_channel *channel, dp_view message, dp_buf *out)
{
    uint8_t payload[FIRST_PAYLOAD_BYTES];
    size_t size = 0;

    const dp_status status =
        dp_noise_read(&channel->noise, message, payload, sizeof payload, &size);
    if (status != DP_OK) {
        return fail(channel, status, "the first message is not under this run's pre-shared key");
    }
    dp_reader reader = dp_reader_of(dp_view_of(payload, size));
    const uint8_t lane = dp_read_u8(&reader);
    channel->peer_unix_ms = dp_read_u64(&reader);
    channel->peer_boot_id = dp_read_u64(&reader);
    if (dp_reader_finish(&reader) != DP_OK || lane > DP_LANE_BULK) {
        return fail(channel, DP_BADMSG, "malformed first message");
    }
    channel->lane = (dp_lane)lane;
    const dp_status sent = send_credential(channel, out);
    return sent == DP_OK ? DP_OK : fail(channel, sent, "cannot answer the first message");
}

/* The peer's times, once the chain above it holds. */
static dp_status check_times(dp_channel *channel)
{
    const dp_channel_config *config = &channel->config;

    if (config->now_ms == 0) {
        return DP_OK;
    }
    const dp_status member = dp_credential_member_at(&channel->peer, config->now_ms);
    if (member != DP_OK) {
        return fail(channel, member, "the peer's certificate is not valid now");
    }
    const dp_status join = dp_credential_join_at(&channel->peer, config->now_ms);
    if (join == DP_OK) {
        return DP_OK;
    }
    if (config->admit_late != NULL && config->admit_late(config->context, &channel->peer.node)) {
        return DP_OK;
    }
    return fail(channel, join, "the peer's invite is not valid now and it is not a member");
}

/* Read a second or third message: who is there, and may it be? */
static dp_status meet_peer(dp_channel *channel, dp_view message, dp_channel_event *event)
{
    uint8_t *room = NULL;
    size_t size = 0;

    dp_buf_clear(&channel->message);
    if (dp_buf_reserve(&channel->message, DP_CHANNEL_HANDSHAKE_MAX, &room) != DP_OK) {
        return fail(channel, DP_NOMEM, "no memory for the handshake");
    }
    const dp_status status =
        dp_noise_read(&channel->noise, message, room, DP_CHANNEL_HANDSHAKE_MAX, &size);
    if (status != DP_OK) {
        return fail(channel, status, "a handshake message does not authenticate");
    }
    dp_reader reader = dp_reader_of(dp_view_of(room, size));
    channel->peer_unix_ms = dp_read_u64(&reader);
    channel->peer_boot_id = dp_read_u64(&reader);
    event->credential = dp_read_view(&reader, dp_read_u16(&reader));
    event->hello = dp_read_view(&reader, dp_reader_left(&reader));
    if (reader.failed) {
        return fail(channel, DP_BADMSG, "malformed handshake payload");
    }
    if (event->hello.size > DP_CHANNEL_HELLO_MAX) {
        return fail(channel, DP_TOOBIG, "the hello is too long");
    }
    const dp_channel_config *config = &channel->config;
    const dp_status checked = dp_credential_check(event->credential, &config->run, config->root,
                                                  NULL, 0, &channel->peer, NULL);
    if (checked != DP_OK) {
        return fail(channel, checked, "the peer's credential does not hold for this run");
    }
    if (sodium_memcmp(channel->peer.x_public, channel->noise.remote_static,
                      sizeof channel->peer.x_public) != 0) {
        return fail(channel, DP_DENIED, "the peer's static key is not that of its certificate");
    }
    return check_times(channel);
}

static void open_channel(dp_channel *channel, dp_channel_event *event)
{
    dp_noise_split(&channel->noise, &channel->send, &channel->receive);
    memcpy(channel->binding, channel->noise.hash, sizeof channel->binding);
    dp_noise_close(&channel->noise);
    dp_buf_close(&channel->own);
    channel->config.credential = dp_view_of(NULL, 0);
    channel->config.hello = dp_view_of(NULL, 0);
    channel->message.max = MESSAGE_SIZE_BYTES + (size_t)dp_lane_message_max(channel->lane);
    channel->state = DP_CHANNEL_OPEN;
    event->type = DP_CHANNEL_HANDSHAKE_DONE;
}

static dp_status read_handshake(dp_channel *channel, dp_view unit, dp_buf *out,
                                dp_channel_event *event)
{
    const dp_view message =
        dp_view_of(unit.data + HANDSHAKE_HEADER_BYTES, unit.size - HANDSHAKE_HEADER_BYTES);

    if (!channel->initiator && channel->noise.next_message == 0) {
        return answer_first(channel, message, out);
    }
    DP_TRY(meet_peer(channel, message, event));
    if (channel->initiator) {
        const dp_status sent = send_credential(channel, out);
        if (sent != DP_OK) {
            return fail(channel, sent, "cannot send the last handshake message");
        }
    }
    open_channel(channel, event);
    return DP_OK;
}

/* ---- records ---- */

static void count_record(dp_noise_cipher *cipher, uint64_t *records)
{
    (*records)++;
    if (cipher->counter == DP_RECORDS_PER_KEY) {
        dp_noise_rekey(cipher);
    }
}

static void write_header(uint8_t header[DP_RECORD_HEADER_BYTES], size_t sealed_bytes,
                         enum record_type type)
{
    dp_writer writer = dp_writer_of(header, DP_RECORD_HEADER_BYTES);

    dp_assert(sealed_bytes <= DP_RECORD_PLAIN_MAX + DP_NOISE_TAG_BYTES);
    dp_write_u32(&writer, (uint32_t)sealed_bytes | (uint32_t)type << 24);
}

/* Seal one record into room; plaintext may already lie behind the header. Returns its bytes. */
static size_t seal_record(dp_channel *channel, enum record_type type, dp_view plaintext,
                          uint8_t *room)
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
    const size_t first_max = DP_RECORD_PLAIN_MAX - MESSAGE_SIZE_BYTES;
    size_t done = plaintext.size < first_max ? plaintext.size : first_max;
    uint8_t *first = room + DP_RECORD_HEADER_BYTES;
    dp_writer writer = dp_writer_of(first, MESSAGE_SIZE_BYTES + done);
    dp_write_u32(&writer, (uint32_t)plaintext.size);
    dp_write_bytes(&writer, plaintext.data, done);
    size_t written =
        seal_record(channel, RECORD_BEGIN, dp_view_of(first, MESSAGE_SIZE_BYTES + done), room);
    while (done < plaintext.size) {
        const size_t left = plaintext.size - done;
        const size_t size = left < DP_RECORD_PLAIN_MAX ? left : DP_RECORD_PLAIN_MAX;
        written += seal_record(channel, RECORD_CONTINUE, dp_view_of(plaintext.data + done, size),
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
    dp_buf_commit(out, seal_record(channel, RECORD_CLOSE, dp_view_of(NULL, 0), room));
    channel->close_sent = true;
    return DP_OK;
}

/* The bytes of a record were authentic: do they continue the story? size: of its plaintext, already in channel->message. */
static dp_status accept_record(dp_channel *channel, uint8_t type, size_t size,
                               dp_channel_event *event)
{
    if (type == RECORD_CLOSE) {
        if (size != 0 || channel->in_message) {
            return fail(channel, DP_BADMSG, "a close within a message");
        }
        channel->state = DP_CHANNEL_ENDED;
        event->type = DP_CHANNEL_CLOSED;
        return DP_OK;
    }
    if (type == RECORD_BEGIN) {
        dp_reader reader = dp_reader_of(dp_buf_view(&channel->message));
        channel->message_bytes = dp_read_u32(&reader);
        if (reader.failed) {
            return fail(channel, DP_BADMSG, "a first record without a size");
        }
        if (channel->message_bytes > dp_lane_message_max(channel->lane)) {
            return fail(channel, DP_TOOBIG, "a message over its lane's limit");
        }
        channel->in_message = true;
    }
    const size_t have = channel->message.size - MESSAGE_SIZE_BYTES;
    if (have > channel->message_bytes) {
        return fail(channel, DP_BADMSG, "more bytes than the message has");
    }
    if (have == channel->message_bytes) {
        channel->in_message = false;
        event->type = DP_CHANNEL_MESSAGE;
        event->message = dp_view_of(channel->message.data + MESSAGE_SIZE_BYTES, have);
        return DP_OK;
    }
    /* Only the last record of a message may be short: a message has one cut, and cannot trickle. */
    return size == DP_RECORD_PLAIN_MAX
               ? DP_OK
               : fail(channel, DP_BADMSG, "a short record within a message");
}

static dp_status read_record(dp_channel *channel, dp_view unit, dp_channel_event *event)
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
        return fail(channel, reserved, "no room for a record");
    }
    if (dp_noise_open(&channel->receive, header, sealed, room) != DP_OK) {
        return fail(channel, DP_BADSIG, "a record does not authenticate");
    }
    count_record(&channel->receive, &channel->records_received);
    if (type > RECORD_CLOSE || (type == RECORD_BEGIN && channel->in_message) ||
        (type == RECORD_CONTINUE && !channel->in_message)) {
        return fail(channel, DP_BADMSG, "a record out of place");
    }
    dp_buf_commit(&channel->message, size);
    return accept_record(channel, type, size, event);
}

/* ---- bytes in ---- */

/* Bytes of the next unit (preamble, handshake message, record), judged from what is there; its header when that is not. */
static dp_status unit_bytes(dp_channel *channel, dp_view have, size_t *size)
{
    dp_reader reader = dp_reader_of(have);

    if (channel->state == DP_CHANNEL_PREAMBLE) {
        *size = DP_CHANNEL_PREAMBLE_BYTES;
        return DP_OK;
    }
    if (channel->state == DP_CHANNEL_HANDSHAKE) {
        *size = HANDSHAKE_HEADER_BYTES;
        if (have.size >= HANDSHAKE_HEADER_BYTES) {
            *size += dp_read_u16(&reader);
        }
        return *size <= HANDSHAKE_HEADER_BYTES + DP_CHANNEL_HANDSHAKE_MAX
                   ? DP_OK
                   : fail(channel, DP_TOOBIG, "an overlong handshake message");
    }
    *size = DP_RECORD_HEADER_BYTES;
    if (have.size < DP_RECORD_HEADER_BYTES) {
        return DP_OK;
    }
    *size += dp_read_u32(&reader) & 0xffffffU;
    if (*size > DP_SEALED_RECORD_MAX) {
        return fail(channel, DP_TOOBIG, "an overlong record");
    }
    return *size >= DP_RECORD_HEADER_BYTES + DP_NOISE_TAG_BYTES
               ? DP_OK
               : fail(channel, DP_BADMSG, "a record without a tag");
}

static size_t header_bytes(const dp_channel *channel)
{
    if (channel->state == DP_CHANNEL_PREAMBLE) {
        return DP_CHANNEL_PREAMBLE_BYTES;
    }
    return channel->state == DP_CHANNEL_HANDSHAKE ? HANDSHAKE_HEADER_BYTES : DP_RECORD_HEADER_BYTES;
}

/* Lend the next whole unit, from bytes where it lies there in one piece, else from channel->in. An empty unit asks for more
 * bytes. Every turn of the loop returns or consumes at least one byte. */
static dp_status next_unit(dp_channel *channel, dp_view bytes, size_t *consumed, dp_view *unit)
{
    for (;;) {
        const bool from_in = channel->in.size > 0;
        const dp_view rest = dp_view_of(bytes.data + *consumed, bytes.size - *consumed);
        const dp_view have = from_in ? dp_buf_view(&channel->in) : rest;
        size_t size = 0;

        *unit = dp_view_of(NULL, 0);
        DP_TRY(unit_bytes(channel, have, &size));
        if (have.size >= header_bytes(channel) && have.size >= size) {
            *unit = dp_view_of(have.data, size);
            *consumed += from_in ? 0 : size;
            return DP_OK;
        }
        if (rest.size == 0) {
            return DP_OK;
        }
        const size_t missing = size - channel->in.size;
        const size_t taken = missing < rest.size ? missing : rest.size;
        if (dp_buf_append(&channel->in, dp_view_of(rest.data, taken)) != DP_OK) {
            return fail(channel, DP_NOMEM, "no memory for incoming bytes");
        }
        *consumed += taken;
    }
}

dp_status dp_channel_read(dp_channel *channel, dp_view bytes, size_t *consumed, dp_buf *out,
                          dp_channel_event *event)
{
    *consumed = 0;
    *event = (dp_channel_event){.type = DP_CHANNEL_NOTHING};
    while (event->type == DP_CHANNEL_NOTHING) {
        dp_view unit;
        if (channel->state == DP_CHANNEL_BROKEN) {
            return channel->status;
        }
        if (channel->state == DP_CHANNEL_ENDED) {
            *consumed = bytes.size;
            return DP_OK;
        }
        DP_TRY(next_unit(channel, bytes, consumed, &unit));
        if (unit.size == 0) {
            return DP_OK;
        }
        dp_status status = DP_OK;
        if (channel->state == DP_CHANNEL_PREAMBLE) {
            status = read_preamble(channel, unit);
        } else if (channel->state == DP_CHANNEL_HANDSHAKE) {
            status = read_handshake(channel, unit, out, event);
        } else {
            status = read_record(channel, unit, event);
        }
        dp_buf_clear(&channel->in);
        if (status != DP_OK) {
            *event = (dp_channel_event){.type = DP_CHANNEL_NOTHING};
            return status;
        }
    }
    return DP_OK;
}

dp_status dp_channel_eof(const dp_channel *channel)
{
    if (channel->state == DP_CHANNEL_ENDED) {
        return DP_OK;
    }
    if (channel->state == DP_CHANNEL_BROKEN) {
        return channel->status;
    }
    return channel->state == DP_CHANNEL_OPEN ? DP_BADSIG : DP_CLOSED;
}

/* ---- life ---- */

static dp_status take_own(dp_channel *channel, const dp_channel_config *config)
{
    dp_buf_init(&channel->own, DP_CREDENTIAL_BYTES_MAX + DP_CHANNEL_HELLO_MAX);
    dp_buf_init(&channel->in, DP_SEALED_RECORD_MAX);
    dp_buf_init(&channel->message, DP_CHANNEL_HANDSHAKE_MAX);
    DP_TRY(dp_buf_append(&channel->own, config->credential));
    DP_TRY(dp_buf_append(&channel->own, config->hello));
    channel->config.credential = dp_view_of(channel->own.data, config->credential.size);
    channel->config.hello =
        dp_view_of(channel->own.data + config->credential.size, config->hello.size);
    return DP_OK;
}

dp_status dp_channel_init(dp_channel *channel, const dp_channel_config *config, dp_buf *out)
{
    memset(channel, 0, sizeof *channel);
    if (config->credential.size == 0 || config->credential.size > DP_CREDENTIAL_BYTES_MAX ||
        config->hello.size > DP_CHANNEL_HELLO_MAX || config->n_psks == 0 ||
        config->n_psks > DP_CHANNEL_PSKS_MAX || config->identity == NULL ||
        (config->initiator && out == NULL)) {
        return DP_BADARG;
    }
    channel->config = *config;
    channel->initiator = config->initiator;
    channel->lane = config->initiator ? config->lane : DP_LANE_CONTROL;
    channel->state = DP_CHANNEL_PREAMBLE;
    dp_status status = take_own(channel, config);
    if (status == DP_OK && config->initiator) {
        status = send_first(channel, out);
    }
    if (status != DP_OK) {
        dp_channel_close(channel);
    }
    return status;
}

void dp_channel_close(dp_channel *channel)
{
    dp_buf_close(&channel->own);
    dp_buf_close(&channel->in);
    dp_buf_close(&channel->message);
    sodium_memzero(channel, sizeof *channel);
    channel->state = DP_CHANNEL_BROKEN;
    channel->status = DP_CLOSED;
}
