#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/channel/channel_internal.h"

enum {
    SUITE_SHIFT = 12, /* in the field of the credential's size */
    FIRST_PAYLOAD_BYTES = 1 + 8 + 8,
    TERMS_BYTES = 8 + 8 + 2, /* time, life, sizes */
    PAYLOAD_HEADER_BYTES = TERMS_BYTES + DP_SIGNATURE_BYTES,
    PAYLOAD_MAX = PAYLOAD_HEADER_BYTES + DP_CREDENTIAL_BYTES_MAX + DP_CHANNEL_HELLO_MAX,
    SIGNED_MAX = 1 + DP_NOISE_HASH_BYTES + 32 + PAYLOAD_MAX,
};

static const char noise_name[] = "Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b";
static const uint8_t magic[4] = {'D', 'P', 'N', '2'};
static const char signing_domain[] = "dpnode/channel/2";

_Static_assert(DP_CREDENTIAL_BYTES_MAX < 1 << SUITE_SHIFT && DP_SUITES < 16, "both fit 16 bits");
/* The largest handshake message: e, sealed s, sealed payload. */
_Static_assert(32 + 32 + 16 + PAYLOAD_MAX + 16 <= DP_CHANNEL_HANDSHAKE_MAX,
               "every credential and hello fits a handshake message");
/* The smallest second message is larger than the time that may come in its place. */
_Static_assert(32 + 32 + 16 + PAYLOAD_HEADER_BYTES + 16 > DP_CHANNEL_TIME_BYTES, "told apart");

static const dp_suite *suite_of(const dp_channel *channel, uint8_t id)
{
    if (id == 0 || id > DP_SUITES) {
        return NULL;
    }
    const dp_suite *suite = channel->config.suites[id - 1];
    return suite == NULL && id == DP_SUITE_CHACHAPOLY ? dp_suite_of(id) : suite;
}

/* One bit per suite that this side has. */
static uint8_t offered_suites(const dp_channel *channel)
{
    uint8_t bits = 0;

    for (uint32_t id = 1; id <= DP_SUITES; id++) {
        bits = (uint8_t)(bits | (suite_of(channel, (uint8_t)id) != NULL ? 1U << (id - 1) : 0U));
    }
    return bits;
}

/* Uses up the pre-shared keys of the config, psk among them, and the ephemeral key. */
static void begin_noise(dp_channel *channel, const uint8_t preamble[DP_CHANNEL_PREAMBLE_BYTES],
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
    dp_assert(status == DP_OK); /* All keys that this pattern wants are there. */
    dp_channel_forget_config(channel);
    channel->state = DP_CHANNEL_HANDSHAKE;
}

/* Append u16 size and the next Noise message. */
static dp_status send_handshake(dp_channel *channel, dp_view payload, dp_buf *out)
{
    static const uint8_t no_size[DP_HANDSHAKE_HEADER_BYTES] = {0};
    const size_t start = out->size;

    DP_TRY(dp_buf_append(out, dp_view_of(no_size, sizeof no_size)));
    DP_TRY(dp_noise_write(&channel->noise, payload, out));
    const size_t size = out->size - start - DP_HANDSHAKE_HEADER_BYTES;
    dp_assert(size <= DP_CHANNEL_HANDSHAKE_MAX);
    dp_writer writer = dp_writer_of(out->data + start, DP_HANDSHAKE_HEADER_BYTES);
    dp_write_u16(&writer, (uint16_t)size);
    return DP_OK;
}

dp_status dp_channel_send_first(dp_channel *channel, dp_buf *out)
{
    uint8_t bytes[DP_CHANNEL_PREAMBLE_BYTES];
    uint8_t payload[FIRST_PAYLOAD_BYTES];
    const dp_channel_config *config = &channel->config;
    dp_writer preamble = dp_writer_of(bytes, sizeof bytes);
    dp_writer writer = dp_writer_of(payload, sizeof payload);

    dp_write_bytes(&preamble, magic, sizeof magic);
    dp_write_u8(&preamble, offered_suites(channel));
    dp_write_u8(&preamble, 0);
    dp_write_u16(&preamble, config->psks[0].epoch);
    dp_write_u8(&writer, channel->lane == DP_LANE_BULK ? (uint8_t)(channel->stripe + 1) : 0);
    dp_write_u64(&writer, config->said_ms != 0 ? config->said_ms : config->now_ms);
    dp_write_u64(&writer, config->boot_id);
    dp_assert(!preamble.full && !writer.full && writer.size == sizeof payload);
    begin_noise(channel, bytes, &config->psks[0]);
    DP_TRY(dp_buf_append(out, dp_view_of(bytes, sizeof bytes)));
    return send_handshake(channel, dp_view_of(payload, sizeof payload), out);
}

/* The responder's choice, where it goes. Zero for the first, so that a program that knows no other
 * understands it. */
static unsigned suite_bits(const dp_channel *channel)
{
    return channel->suite == DP_SUITE_CHACHAPOLY ? 0U : (unsigned)channel->suite << SUITE_SHIFT;
}

/* The bytes that the writer of a message signs. transcript: the handshake hash before that message,
 * which both sides have; it holds the fresh keys of this handshake, so that the signature proves
 * nothing in another one. x_public: the writer's. */
static dp_view signed_bytes(uint8_t room[SIGNED_MAX], uint8_t message,
                            const uint8_t transcript[DP_NOISE_HASH_BYTES],
                            const uint8_t x_public[32], dp_view terms, dp_view rest)
{
    dp_writer writer = dp_writer_of(room, SIGNED_MAX);

    dp_write_u8(&writer, message);
    if (!dp_broken(181)) {
        dp_write_bytes(&writer, transcript, DP_NOISE_HASH_BYTES);
    }
    dp_write_bytes(&writer, x_public, 32);
    dp_write_view(&writer, terms);
    dp_write_view(&writer, rest);
    dp_assert(!writer.full);
    return dp_view_of(room, writer.size);
}

static dp_status send_credential(dp_channel *channel, dp_buf *out)
{
    uint8_t payload[PAYLOAD_MAX];
    uint8_t room[SIGNED_MAX];
    const dp_identity *identity = channel->config.identity;
    dp_writer writer = dp_writer_of(payload, sizeof payload);

    dp_write_u64(&writer, channel->config.now_ms);
    dp_write_u64(&writer, channel->config.boot_id);
    dp_write_u16(&writer, (uint16_t)(channel->config.credential.size |
                                     (channel->initiator ? 0U : suite_bits(channel))));
    const dp_view rest = dp_buf_view(&channel->own); /* credential, then hello */
    dp_sign(&identity->ed, signing_domain,
            signed_bytes(room, channel->noise.next_message, channel->noise.hash, identity->x_public,
                         dp_view_of(payload, TERMS_BYTES), rest),
            payload + TERMS_BYTES);
    writer.size = PAYLOAD_HEADER_BYTES;
    dp_write_view(&writer, rest);
    dp_assert(!writer.full);
    return send_handshake(channel, dp_view_of(payload, writer.size), out);
}

dp_status dp_channel_read_preamble(dp_channel *channel, dp_view unit)
{
    const dp_channel_config *config = &channel->config;
    uint8_t name[sizeof magic];
    dp_reader reader = dp_reader_of(unit);

    dp_read_bytes(&reader, name, sizeof name);
    const uint8_t suites = dp_read_u8(&reader);
    const uint8_t zero = dp_read_u8(&reader);
    const uint16_t epoch = dp_read_u16(&reader);
    dp_assert(!reader.failed);
    if (memcmp(name, magic, sizeof magic - 1) != 0) {
        return dp_channel_fail(channel, DP_BADMSG, "the peer does not speak this protocol");
    }
    if (name[3] != magic[3]) {
        return dp_channel_fail(
            channel, DP_VERSION,
            name[3] < magic[3]
                ? "the peer speaks an older version of this protocol: update the peer"
                : "the peer speaks a newer version of this protocol: update this node");
    }
    if ((suites & 1U) == 0 || zero != 0) {
        return dp_channel_fail(channel, DP_BADMSG, "malformed preamble");
    }
    for (uint32_t id = 1; id <= DP_SUITES; id++) { /* Bits of suites to come are not for us. */
        if ((suites >> (id - 1) & 1U) != 0 && suite_of(channel, (uint8_t)id) != NULL) {
            channel->suite = (uint8_t)id;
        }
    }
    for (unsigned i = 0; i < config->n_psks; i++) {
        if (config->psks[i].epoch == epoch) {
            begin_noise(channel, unit.data, &config->psks[i]);
            return DP_OK;
        }
    }
    return dp_channel_fail(channel, DP_DENIED, "the peer uses a join secret of an unknown epoch");
}

static dp_status answer_first(dp_channel *channel, dp_view message, dp_buf *out)
{
    uint8_t payload[FIRST_PAYLOAD_BYTES];
    size_t size = 0;

    const dp_status status =
        dp_noise_read(&channel->noise, message, payload, sizeof payload, &size);
    if (status != DP_OK) {
        return dp_channel_fail(channel, status, "the peer does not have this run's join secret");
    }
    dp_reader reader = dp_reader_of(dp_view_of(payload, size));
    const uint8_t number = dp_read_u8(&reader);
    const uint64_t told_ms = dp_read_u64(&reader);
    channel->peer_boot_id = dp_read_u64(&reader);
    if (dp_reader_finish(&reader) != DP_OK || number > DP_CHANNEL_STRIPES_MAX) {
        return dp_channel_fail(channel, DP_BADMSG, "malformed first message");
    }
    DP_TRY(dp_channel_judge_first(channel, told_ms, out));
    if (channel->config.may_answer != NULL && !dp_broken(215) &&
        !channel->config.may_answer(channel->config.context)) {
        return dp_channel_fail(channel, DP_BUSY,
                               "too many handshakes from that address in this second");
    }
    channel->proves_secret = true;
    channel->lane = number > 0 ? DP_LANE_BULK : DP_LANE_CONTROL;
    channel->stripe = number > 0 ? (uint8_t)(number - 1) : 0;
    const dp_status sent = send_credential(channel, out);
    return sent == DP_OK ? DP_OK
                         : dp_channel_fail(channel, sent, "cannot answer the first message");
}

/* The peer's times, once the chain above it holds. */
static dp_status check_times(dp_channel *channel, bool is_member, dp_view hello)
{
    const dp_channel_config *config = &channel->config;

    if (config->now_ms == 0) {
        return DP_OK;
    }
    const dp_status member = dp_credential_member_at(&channel->peer, config->now_ms);
    const bool renewed =
        member == DP_EXPIRED && is_member && config->renewed != NULL &&
        config->renewed(config->context, &channel->peer.node, hello, config->now_ms);
    if (member != DP_OK && !renewed) {
        return dp_channel_fail(channel, member, "the peer's certificate is not valid now");
    }
    const dp_status join = dp_credential_join_at(&channel->peer, config->now_ms);
    if (join == DP_OK) {
        return DP_OK;
    }
    return is_member ? DP_OK
                     : dp_channel_fail(channel, join,
                                       "the peer's invite is not valid now and it is not a member");
}

/* The peer has proved that it is this node. Is it a member, with the key that it was admitted with,
 * and valid now? */
static dp_status check_standing(dp_channel *channel, dp_view hello)
{
    static const uint8_t unknown[32] = {0};
    const dp_channel_config *config = &channel->config;
    uint8_t admitted[32] = {0};
    const bool is_member =
        config->member != NULL && config->member(config->context, &channel->peer.node, admitted);

    if (is_member && !dp_broken(182) && memcmp(admitted, unknown, sizeof admitted) != 0 &&
        memcmp(admitted, channel->peer.x_public, sizeof admitted) != 0) {
        return dp_channel_fail(channel, DP_DENIED,
                               "the peer's static key is not the key with which it was admitted");
    }
    return check_times(channel, is_member, hello);
}

/* Takes the bits above the size of the credential: the responder's choice of the cipher suite; zero
 * from the initiator. */
static dp_status take_suite(dp_channel *channel, unsigned chosen)
{
    if (!channel->initiator) {
        return chosen == 0 ? DP_OK
                           : dp_channel_fail(channel, DP_BADMSG, "malformed handshake payload");
    }
    channel->suite = chosen == 0 ? DP_SUITE_CHACHAPOLY : (uint8_t)chosen;
    return suite_of(channel, channel->suite) != NULL
               ? DP_OK
               : dp_channel_fail(channel, DP_BADMSG,
                                 "the peer chose a suite that it was not offered");
}

/* The payload of a second or third message: the peer's credential, hello and signature. */
static dp_status read_payload(dp_channel *channel, dp_view payload, dp_channel_event *event,
                              dp_view *signature)
{
    dp_reader reader = dp_reader_of(payload);

    channel->peer_unix_ms = dp_read_u64(&reader);
    channel->peer_boot_id = dp_read_u64(&reader);
    const uint16_t field = dp_read_u16(&reader);
    *signature = dp_read_view(&reader, DP_SIGNATURE_BYTES);
    event->credential = dp_read_view(&reader, field & ((1U << SUITE_SHIFT) - 1));
    event->hello = dp_read_view(&reader, dp_reader_left(&reader));
    if (reader.failed) {
        return dp_channel_fail(channel, DP_BADMSG, "malformed handshake payload");
    }
    if (event->hello.size > DP_CHANNEL_HELLO_MAX ||
        event->credential.size > DP_CREDENTIAL_BYTES_MAX) {
        return dp_channel_fail(channel, DP_TOOBIG, "the hello or the credential is too long");
    }
    return take_suite(channel, field >> SUITE_SHIFT);
}

/* Does the credential hold, and does the peer have both keys of the node that it names? */
static dp_status check_peer(dp_channel *channel, dp_view signed_by_it,
                            const dp_channel_event *event, dp_view signature)
{
    const dp_channel_config *config = &channel->config;
    const dp_status checked = dp_credential_check(event->credential, &config->run, config->root,
                                                  NULL, 0, &channel->peer, NULL);

    if (checked != DP_OK) {
        return dp_channel_fail(channel, checked, "the peer's credential is not valid for this run");
    }
    if (memcmp(channel->peer.x_public, channel->noise.remote_static,
               sizeof channel->peer.x_public) != 0) {
        return dp_channel_fail(channel, DP_DENIED,
                               "the peer's static key is not the key in its certificate");
    }
    if (!dp_broken(180) &&
        !dp_verify(channel->peer.node.bytes, signing_domain, signed_by_it, signature.data)) {
        return dp_channel_fail(channel, DP_BADSIG,
                               "the peer does not have the key of the node that it claims to be");
    }
    return check_standing(channel, event->hello);
}

/* Reads a second or third message: checks the identity of the peer and its right to connect. */
static dp_status meet_peer(dp_channel *channel, dp_view message, dp_channel_event *event)
{
    uint8_t transcript[DP_NOISE_HASH_BYTES];
    uint8_t signed_room[SIGNED_MAX];
    uint8_t *room = NULL;
    size_t size = 0;
    dp_view signature;
    const uint8_t number = channel->noise.next_message;

    memcpy(transcript, channel->noise.hash, sizeof transcript);
    dp_buf_clear(&channel->message);
    if (dp_buf_reserve(&channel->message, DP_CHANNEL_HANDSHAKE_MAX, &room) != DP_OK) {
        return dp_channel_fail(channel, DP_NOMEM, "no memory for the handshake");
    }
    const dp_status status =
        dp_noise_read(&channel->noise, message, room, DP_CHANNEL_HANDSHAKE_MAX, &size);
    if (status != DP_OK) {
        return dp_channel_fail(channel, status, "a handshake message does not authenticate");
    }
    DP_TRY(read_payload(channel, dp_view_of(room, size), event, &signature));
    const dp_view rest = dp_view_of(room + PAYLOAD_HEADER_BYTES, size - PAYLOAD_HEADER_BYTES);
    const dp_view signed_by_it =
        signed_bytes(signed_room, number, transcript, channel->noise.remote_static,
                     dp_view_of(room, TERMS_BYTES), rest);
    return check_peer(channel, signed_by_it, event, signature);
}

static void open_channel(dp_channel *channel, dp_channel_event *event)
{
    dp_noise_split(&channel->noise, &channel->send, &channel->receive);
    channel->send.suite = suite_of(channel, channel->suite);
    channel->receive.suite = channel->send.suite;
    dp_suite_derive(channel->send.suite, channel->send.key);
    dp_suite_derive(channel->receive.suite, channel->receive.key);
    memcpy(channel->binding, channel->noise.hash, sizeof channel->binding);
    dp_noise_close(&channel->noise);
    dp_buf_close(&channel->own);
    channel->config.credential = dp_view_of(NULL, 0);
    channel->config.hello = dp_view_of(NULL, 0);
    channel->message.max = DP_MESSAGE_SIZE_BYTES + (size_t)dp_lane_message_max(channel->lane);
    channel->state = DP_CHANNEL_OPEN;
    event->type = DP_CHANNEL_HANDSHAKE_DONE;
}

dp_status dp_channel_read_handshake(dp_channel *channel, dp_view unit, dp_buf *out,
                                    dp_channel_event *event)
{
    const dp_view message =
        dp_view_of(unit.data + DP_HANDSHAKE_HEADER_BYTES, unit.size - DP_HANDSHAKE_HEADER_BYTES);

    if (!channel->initiator && channel->noise.next_message == 0) {
        return answer_first(channel, message, out);
    }
    if (channel->initiator && message.size == DP_CHANNEL_TIME_BYTES) {
        return dp_channel_read_time(channel, message);
    }
    DP_TRY(meet_peer(channel, message, event));
    if (channel->initiator) {
        const dp_status sent = send_credential(channel, out);
        if (sent != DP_OK) {
            return dp_channel_fail(channel, sent, "cannot send the last handshake message");
        }
    }
    open_channel(channel, event);
    return DP_OK;
}
