/* Two ends of a connection without a network between them, for the tests of the channel. */
#ifndef DP_TESTS_UNIT_GOSSIP_KIT_PAIR_H
#define DP_TESTS_UNIT_GOSSIP_KIT_PAIR_H

#include "base/rng.h"
#include "gossip/channel/channel.h"
#include "tests/unit/gossip/kit/cast.h"

enum { OUT_BYTES_MAX = 6 * 1024 * 1024 };

/* One side of a connection: its channel, its bytes to send, and its received events. */
struct side {
    dp_channel channel;
    dp_identity identity;
    uint8_t credential[DP_CREDENTIAL_BYTES_MAX];
    dp_channel_config config;
    dp_buf out;
    dp_status status;
    unsigned handshakes;
    unsigned messages;
    unsigned closes;
    uint8_t hello[DP_CHANNEL_HELLO_MAX];
    size_t hello_bytes;
    size_t peer_credential_bytes;
    size_t message_bytes;
    dp_hash message_hash;
};

struct pair {
    struct cast cast;
    struct side a; /* the initiator, a node that the founder invited */
    struct side b; /* the responder, the founder */
};

static inline bool yes(void *context, const dp_peer *peer, uint8_t x_public[32])
{
    (void)peer;
    (void)x_public;
    (*(unsigned *)context)++;
    return true;
}

static inline void side_config(const struct cast *cast, struct side *side, size_t credential_bytes,
                               bool initiator)
{
    const dp_entropy entropy = cast_entropy(initiator ? 61 : 62);

    side->config = (dp_channel_config){
        .initiator = initiator,
        .run = cast->run,
        .psks = {{.epoch = 3}},
        .n_psks = 1,
        .identity = &side->identity,
        .credential = dp_view_of(side->credential, credential_bytes),
        .hello = initiator ? dp_view_text("hello from a") : dp_view_text("hello from b"),
        .now_ms = CAST_NOW_MS + 2000,
        .boot_id = initiator ? 11 : 22,
    };
    memcpy(side->config.root, cast->root.public_key, sizeof side->config.root);
    memcpy(side->config.ephemeral, entropy.bytes, sizeof side->config.ephemeral);
    dp_psk_derive(cast->join_secret, &cast->run, 3, side->config.psks[0].key);
    dp_buf_init(&side->out, OUT_BYTES_MAX);
}

/* Two configured sides; a test changes a config, then calls pair_open. The keys are made once:
 * tests open thousands. */
static inline void pair_init(struct pair *pair)
{
    static struct pair first;
    static size_t credential_bytes;

    if (credential_bytes == 0) {
        cast_init(&first.cast);
        const dp_invite_request request = cast_request(&first.cast);
        credential_bytes = cast_join(&request, 2, &first.a.identity, first.a.credential);
        first.b.identity = first.cast.founder;
        memcpy(first.b.credential, first.cast.founder_credential, DP_CERT_BYTES);
    }
    *pair = first;
    side_config(&pair->cast, &pair->a, credential_bytes, true);
    side_config(&pair->cast, &pair->b, DP_CERT_BYTES, false);
}

static inline void pair_open(struct pair *pair)
{
    CHECK_OK(dp_channel_init(&pair->b.channel, &pair->b.config, NULL));
    CHECK_OK(dp_channel_init(&pair->a.channel, &pair->a.config, &pair->a.out));
}

static inline void pair_close(struct pair *pair)
{
    dp_channel_close(&pair->a.channel);
    dp_channel_close(&pair->b.channel);
    dp_buf_close(&pair->a.out);
    dp_buf_close(&pair->b.out);
}

static inline void take_event(struct side *side, const dp_channel_event *event)
{
    switch (event->type) {
    case DP_CHANNEL_NOTHING:
        break;
    case DP_CHANNEL_HANDSHAKE_DONE:
        side->handshakes++;
        side->hello_bytes = event->hello.size;
        if (event->hello.size > 0) {
            memcpy(side->hello, event->hello.data, event->hello.size);
        }
        side->peer_credential_bytes = event->credential.size;
        break;
    case DP_CHANNEL_MESSAGE:
        side->messages++;
        side->message_bytes = event->message.size;
        side->message_hash = dp_hash_of("test", event->message);
        break;
    case DP_CHANNEL_CLOSED:
        side->closes++;
        break;
    }
}

/* Give a side bytes in one piece of memory of exactly their size, so that reading over their end
 * shows. */
static inline dp_status feed(struct side *side, dp_view bytes)
{
    uint8_t *copy = test_malloc(bytes.size + 1);
    size_t done = 0;
    dp_channel_event event = {.type = DP_CHANNEL_CLOSED};

    if (bytes.size > 0) {
        memcpy(copy + 1, bytes.data, bytes.size);
    }
    while (side->status == DP_OK && (done < bytes.size || event.type != DP_CHANNEL_NOTHING)) {
        size_t consumed = 0;
        side->status =
            dp_channel_read(&side->channel, dp_view_of(copy + 1 + done, bytes.size - done),
                            &consumed, &side->out, &event);
        done += consumed;
        take_event(side, &event);
        if (side->closes > 0) {
            break;
        }
    }
    test_free(copy);
    return side->status;
}

/* Moves the bytes of each side to the other in pieces of at most cut bytes, until both are
 * silent. */
static inline void talk(struct pair *pair, dp_rng *rng, size_t cut)
{
    struct side *sides[2] = {&pair->a, &pair->b};

    while (pair->a.out.size > 0 || pair->b.out.size > 0) {
        for (unsigned i = 0; i < 2; i++) {
            struct side *from = sides[i];
            if (from->out.size == 0) {
                continue;
            }
            size_t size = rng == NULL ? cut : 1 + (size_t)dp_rng_below(rng, cut);
            size = size < from->out.size ? size : from->out.size;
            DP_IGNORE(
                feed(sides[1 - i], dp_view_of(from->out.data, size))); /* kept in side.status */
            dp_buf_consume(&from->out, size);
        }
    }
}

static inline void shake_hands(struct pair *pair)
{
    pair_open(pair);
    talk(pair, NULL, SIZE_MAX);
    CHECK(pair->a.handshakes == 1 && pair->b.handshakes == 1);
}

/* Patterned bytes of any size. */
static uint8_t pattern_bytes[DP_MESSAGE_BULK_MAX + 1];

static inline dp_view pattern(size_t size)
{
    for (size_t i = 0; pattern_bytes[1] == 0 && i < sizeof pattern_bytes; i++) {
        pattern_bytes[i] = (uint8_t)(i * 2654435761U >> 13 | 1U);
    }
    return dp_view_of(pattern_bytes, size);
}

static inline void check_passes(struct pair *pair, struct side *from, struct side *to, size_t size)
{
    const unsigned before = to->messages;

    CHECK_OK(dp_channel_write(&from->channel, pattern(size), &from->out));
    assert_int_equal(from->out.size, dp_channel_wire_bytes(size));
    talk(pair, NULL, SIZE_MAX);
    CHECK_OK(to->status);
    assert_int_equal(to->messages, before + 1);
    assert_int_equal(to->message_bytes, size);
    const dp_hash wanted = dp_hash_of("test", pattern(size));
    CHECK(dp_hash_equal(&to->message_hash, &wanted));
}

/* Run the handshake until message number `which` (0, 1, 2) lies in the sender's out, and lend both
 * ends. */
static inline void up_to_message(struct pair *pair, unsigned which, struct side **from,
                                 struct side **to)
{
    pair_init(pair);
    pair_open(pair);
    *from = which % 2 == 0 ? &pair->a : &pair->b;
    *to = which % 2 == 0 ? &pair->b : &pair->a;
    if (which >= 1) {
        CHECK_OK(feed(&pair->b, dp_buf_view(&pair->a.out)));
        dp_buf_clear(&pair->a.out);
    }
    if (which == 2) {
        CHECK_OK(feed(&pair->a, dp_buf_view(&pair->b.out)));
        dp_buf_clear(&pair->b.out);
    }
    CHECK((*from)->out.size > 0);
}

enum { PAYLOAD_HEADER = 18 + DP_SIGNATURE_BYTES }; /* as gossip/channel/channel.h says */

/* The signature of a payload, put together from what gossip/channel/channel.h says of it. number:
 * of the message, from 0. */
static inline void sign_payload(const dp_sign_key *key, uint8_t number,
                                const uint8_t transcript[DP_NOISE_HASH_BYTES],
                                const uint8_t x_public[32], uint8_t *payload, size_t size)
{
    static uint8_t bytes[1 + DP_NOISE_HASH_BYTES + 32 + DP_CHANNEL_HANDSHAKE_MAX];
    size_t at = 0;

    bytes[at++] = number;
    memcpy(bytes + at, transcript, DP_NOISE_HASH_BYTES);
    at += DP_NOISE_HASH_BYTES;
    memcpy(bytes + at, x_public, 32);
    at += 32;
    memcpy(bytes + at, payload, 18);
    at += 18;
    memcpy(bytes + at, payload + PAYLOAD_HEADER, size - PAYLOAD_HEADER);
    at += size - PAYLOAD_HEADER;
    dp_sign(key, "dpnode/channel/2", dp_view_of(bytes, at), payload + 18);
}

#endif
