#include "gossip/channel.h"

#include <sodium.h>

#include "base/alloc.h"
#include "tests/lib/allocfail.h"
#include "tests/lib/mutate.h"
#include "tests/unit/gossip/cast.h"

enum { OUT_BYTES_MAX = 6 * 1024 * 1024, HISTORY_MAX = 4 };

/* One side of a connection: its channel, what it wants to send, and what it was told. */
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

static bool yes(void *context, const dp_peer *peer)
{
    (void)peer;
    (*(unsigned *)context)++;
    return true;
}

static void side_config(const struct cast *cast, struct side *side, size_t credential_bytes,
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

/* Two configured sides; a test changes a config, then calls pair_open. The keys are made once: tests open thousands. */
static void pair_init(struct pair *pair)
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

static void pair_open(struct pair *pair)
{
    CHECK_OK(dp_channel_init(&pair->b.channel, &pair->b.config, NULL));
    CHECK_OK(dp_channel_init(&pair->a.channel, &pair->a.config, &pair->a.out));
}

static void pair_close(struct pair *pair)
{
    dp_channel_close(&pair->a.channel);
    dp_channel_close(&pair->b.channel);
    dp_buf_close(&pair->a.out);
    dp_buf_close(&pair->b.out);
}

static void take_event(struct side *side, const dp_channel_event *event)
{
    switch (event->type) {
    case DP_CHANNEL_NOTHING:
        break;
    case DP_CHANNEL_HANDSHAKE_DONE:
        side->handshakes++;
        side->hello_bytes = event->hello.size;
        memcpy(side->hello, event->hello.data, event->hello.size);
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

/* Give a side bytes in one piece of memory of exactly their size, so that reading over their end shows. */
static dp_status feed(struct side *side, dp_view bytes)
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

/* Move what a side has to say to the other in pieces of at most cut bytes, until both are silent. */
static void talk(struct pair *pair, dp_rng *rng, size_t cut)
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

static void shake_hands(struct pair *pair)
{
    pair_open(pair);
    talk(pair, NULL, SIZE_MAX);
    CHECK(pair->a.handshakes == 1 && pair->b.handshakes == 1);
}

/* Patterned bytes of any size. */
static uint8_t pattern_bytes[DP_MESSAGE_BULK_MAX + 1];

static dp_view pattern(size_t size)
{
    for (size_t i = 0; pattern_bytes[1] == 0 && i < sizeof pattern_bytes; i++) {
        pattern_bytes[i] = (uint8_t)(i * 2654435761U >> 13 | 1U);
    }
    return dp_view_of(pattern_bytes, size);
}

static void check_passes(struct pair *pair, struct side *from, struct side *to, size_t size)
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

/* ---- handshake ---- */

static void both_sides_meet_and_know_each_other(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    pair.a.config.lane = DP_LANE_BULK;
    shake_hands(&pair);
    const dp_peer a = dp_identity_peer(&pair.a.identity);
    const dp_peer b = dp_identity_peer(&pair.b.identity);
    CHECK(dp_peer_equal(&pair.b.channel.peer.node, &a));
    CHECK(dp_peer_equal(&pair.a.channel.peer.node, &b));
    CHECK(pair.b.channel.lane == DP_LANE_BULK);
    assert_memory_equal(pair.a.hello, "hello from b", pair.a.hello_bytes);
    assert_memory_equal(pair.b.hello, "hello from a", pair.b.hello_bytes);
    assert_int_equal(pair.a.channel.peer_boot_id, 22);
    assert_int_equal(pair.b.channel.peer_boot_id, 11);
    assert_int_equal(pair.b.channel.peer_unix_ms, CAST_NOW_MS + 2000);
    assert_int_equal(pair.b.peer_credential_bytes, 3 * DP_CERT_BYTES);
    assert_memory_equal(pair.a.channel.binding, pair.b.channel.binding, DP_NOISE_HASH_BYTES);
    pair_close(&pair);
}

static void handshake_and_messages_survive_any_cutting(void **state)
{
    static const size_t cuts[] = {1, 2, 3, 7, 100, 5000, 70000};
    dp_rng rng;

    (void)state;
    dp_rng_init(&rng, 42);
    for (unsigned i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        for (unsigned random = 0; random < 2; random++) {
            struct pair pair;
            pair_init(&pair);
            pair_open(&pair);
            talk(&pair, random != 0 ? &rng : NULL, cuts[i]);
            CHECK_OK(dp_channel_write(&pair.a.channel, pattern(66000), &pair.a.out));
            CHECK_OK(dp_channel_write(&pair.a.channel, pattern(0), &pair.a.out));
            CHECK_OK(dp_channel_write(&pair.b.channel, pattern(5), &pair.b.out));
            CHECK_OK(dp_channel_finish(&pair.a.channel, &pair.a.out));
            talk(&pair, random != 0 ? &rng : NULL, cuts[i]);
            CHECK(pair.b.messages == 2 && pair.a.messages == 1 && pair.b.closes == 1);
            CHECK_OK(dp_channel_eof(&pair.b.channel));
            pair_close(&pair);
        }
    }
}

static void the_longest_hello_and_credential_fit(void **state)
{
    struct pair pair;
    dp_identity child;
    uint8_t credential[DP_CREDENTIAL_BYTES_MAX];

    (void)state;
    pair_init(&pair);
    dp_invite_request request = cast_request(&pair.cast);
    const size_t size = cast_join(&request, 2, &child, credential);
    request.issuer = &child.ed;
    request.issuer_credential = dp_view_of(credential, size);
    const size_t longest = cast_join(&request, 5, &pair.a.identity, pair.a.credential);
    assert_int_equal(longest, DP_CREDENTIAL_BYTES_MAX);
    pair.a.config.credential = dp_view_of(pair.a.credential, longest);
    pair.a.config.hello = pattern(DP_CHANNEL_HELLO_MAX);
    shake_hands(&pair);
    assert_int_equal(pair.b.hello_bytes, DP_CHANNEL_HELLO_MAX);
    pair_close(&pair);
    pair_init(&pair);
    pair.a.config.hello = pattern(DP_CHANNEL_HELLO_MAX + 1);
    CHECK_STATUS(dp_channel_init(&pair.a.channel, &pair.a.config, &pair.a.out), DP_BADARG);
    pair_close(&pair);
}

/* Run the handshake until message number `which` (0, 1, 2) lies in the sender's out, and lend both ends. */
static void up_to_message(struct pair *pair, unsigned which, struct side **from, struct side **to)
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

static void every_flipped_bit_of_a_handshake_fails(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 3; which++) {
        size_t bits = 8;
        for (size_t bit = 0; bit < bits; bit++) {
            struct pair pair;
            struct side *from = NULL;
            struct side *to = NULL;
            up_to_message(&pair, which, &from, &to);
            bits = from->out.size * 8;
            from->out.data[bit / 8] ^= (uint8_t)(1U << bit % 8);
            const dp_status status = feed(to, dp_buf_view(&from->out));
            CHECK(to->handshakes == 0);
            /* A longer size waits for bytes that do not come; anything else is noticed at once. */
            CHECK(status != DP_OK || to->channel.in.size > 0);
            CHECK(status == DP_OK || to->channel.fault != NULL);
            CHECK(to->out.size == 0);
            pair_close(&pair);
        }
    }
}

static void every_cut_handshake_waits_and_then_is_no_connection(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 3; which++) {
        struct pair pair;
        struct side *from = NULL;
        struct side *to = NULL;
        up_to_message(&pair, which, &from, &to);
        const size_t size = from->out.size;
        CHECK_OK(feed(to, dp_view_of(from->out.data, size - 1)));
        CHECK(to->handshakes == 0 && to->out.size == 0);
        CHECK_STATUS(dp_channel_eof(&to->channel), DP_CLOSED);
        CHECK_OK(feed(to, dp_view_of(from->out.data + size - 1, 1)));
        pair_close(&pair);
    }
}

/* The responder's next step would be two Diffie-Hellmans; its noise state must not have got that far. */
static void a_wrong_pre_shared_key_is_refused_at_the_first_message(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    pair.a.config.psks[0].key[0] ^= 1;
    pair_open(&pair);
    CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_BADSIG);
    assert_int_equal(pair.b.out.size, 0);
    assert_string_equal(pair.b.channel.fault,
                        "the first message is not under this run's pre-shared key");
    CHECK_STATUS(feed(&pair.b, dp_view_text("more")), DP_BADSIG);
    pair_close(&pair);
}

static void two_epochs_of_the_pre_shared_key_hold(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    pair.b.config.psks[1] = pair.b.config.psks[0];
    pair.b.config.psks[0] = (dp_channel_psk){.epoch = 4, .key = {9}};
    pair.b.config.n_psks = 2;
    shake_hands(&pair);
    pair_close(&pair);
    pair_init(&pair);
    pair.a.config.psks[0].epoch = 9;
    pair_open(&pair);
    CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_DENIED);
    pair_close(&pair);
}

static void another_run_is_refused_at_the_first_message(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    pair.a.config.run.bytes[0] ^= 1;
    pair_open(&pair);
    CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_BADSIG);
    pair_close(&pair);
}

static void strangers_bytes_are_refused_without_an_answer(void **state)
{
    static const struct {
        const char *bytes;
        dp_status wanted;
    } cases[] = {
        {"GET / HTTP/1.1\r\n", DP_BADMSG},
        {"DPN2\1\1\1\1", DP_VERSION},
        {"SSH-2.0-x", DP_BADMSG},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pair pair;
        pair_init(&pair);
        pair_open(&pair);
        CHECK_STATUS(feed(&pair.b, dp_view_text(cases[i].bytes)), cases[i].wanted);
        assert_int_equal(pair.b.out.size, 0);
        pair_close(&pair);
    }
}

static void an_overlong_handshake_message_is_refused_by_its_size(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    pair_open(&pair);
    pair.a.out.data[DP_CHANNEL_PREAMBLE_BYTES] = 0x01;
    pair.a.out.data[DP_CHANNEL_PREAMBLE_BYTES + 1] = 0x10;
    const dp_view start = dp_view_of(pair.a.out.data, DP_CHANNEL_PREAMBLE_BYTES + 2);
    CHECK_STATUS(feed(&pair.b, start), DP_TOOBIG);
    pair_close(&pair);
}

/* A credential of the same people in another run, with the right pre-shared key. */
static void a_foreign_credential_is_refused_by_either_side(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct pair pair;
        struct cast other;
        pair_init(&pair);
        cast_init(&other);
        other.run.bytes[0] ^= 1;
        struct side *liar = i == 0 ? &pair.a : &pair.b;
        struct side *judge = i == 0 ? &pair.b : &pair.a;
        dp_founder_credential(&other.root, &other.run, &liar->identity, other.join_secret,
                              CAST_NOW_MS, liar->credential);
        liar->config.credential = dp_view_of(liar->credential, DP_CERT_BYTES);
        pair_open(&pair);
        talk(&pair, NULL, SIZE_MAX);
        CHECK_STATUS(judge->status, DP_DENIED);
        CHECK(judge->handshakes == 0);
        pair_close(&pair);
    }
}

/* Somebody replays the certificate of a member without its static key. */
static void a_credential_of_another_node_is_refused(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    cast_identity(9, &pair.a.identity);
    pair_open(&pair);
    talk(&pair, NULL, SIZE_MAX);
    CHECK_STATUS(pair.b.status, DP_DENIED);
    assert_string_equal(pair.b.channel.fault,
                        "the peer's static key is not that of its certificate");
    pair_close(&pair);
}

static void the_initiator_reveals_nothing_to_an_impostor(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    cast_identity(9, &pair.b.identity);
    pair_open(&pair);
    CHECK_OK(feed(&pair.b, dp_buf_view(&pair.a.out)));
    dp_buf_clear(&pair.a.out);
    CHECK_STATUS(feed(&pair.a, dp_buf_view(&pair.b.out)), DP_DENIED);
    assert_int_equal(pair.a.out.size, 0);
    pair_close(&pair);
}

static void a_closed_invite_admits_members_only(void **state)
{
    struct pair pair;
    unsigned asked = 0;

    (void)state;
    pair_init(&pair);
    pair.b.config.now_ms = CAST_NOW_MS + CAST_DAY_MS;
    pair_open(&pair);
    talk(&pair, NULL, SIZE_MAX);
    CHECK_STATUS(pair.b.status, DP_EXPIRED);
    pair_close(&pair);
    pair_init(&pair);
    pair.b.config.now_ms = CAST_NOW_MS + CAST_DAY_MS;
    pair.b.config.admit_late = yes;
    pair.b.config.context = &asked;
    shake_hands(&pair);
    assert_int_equal(asked, 1);
    pair_close(&pair);
}

static void a_past_membership_admits_nobody(void **state)
{
    struct pair pair;
    unsigned asked = 0;

    (void)state;
    pair_init(&pair);
    pair.b.config.now_ms = CAST_NOW_MS + 31 * CAST_DAY_MS;
    pair.b.config.admit_late = yes;
    pair.b.config.context = &asked;
    pair_open(&pair);
    talk(&pair, NULL, SIZE_MAX);
    CHECK_STATUS(pair.b.status, DP_EXPIRED);
    assert_int_equal(asked, 0);
    pair_close(&pair);
}

static void without_a_clock_only_the_chain_counts(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    pair.b.config.now_ms = 0;
    shake_hands(&pair);
    pair_close(&pair);
}

static void replayed_handshake_messages_open_nothing(void **state)
{
    struct pair first;
    struct pair second;
    struct side *from = NULL;
    struct side *to = NULL;

    (void)state;
    up_to_message(&first, 2, &from, &to);
    pair_init(&second);
    second.b.config.ephemeral[1] ^= 1; /* another life of the responder */
    pair_open(&second);
    CHECK_OK(
        feed(&second.b,
             dp_buf_view(&second.a.out))); /* the same first message: the initiator's keys repeat */
    CHECK_STATUS(feed(&second.b, dp_buf_view(&first.a.out)), DP_BADSIG);
    assert_int_equal(second.b.handshakes, 0);
    pair_close(&first);
    pair_close(&second);
}

/* ---- records ---- */

static void messages_of_every_interesting_size_pass(void **state)
{
    static const size_t sizes[] = {0,     1,      65531,  65532,  65533,
                                   65536, 131067, 131068, 131069, DP_MESSAGE_CONTROL_MAX};
    struct pair pair;

    (void)state;
    pair_init(&pair);
    shake_hands(&pair);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_passes(&pair, &pair.a, &pair.b, sizes[i]);
        check_passes(&pair, &pair.b, &pair.a, sizes[i]);
    }
    CHECK_STATUS(
        dp_channel_write(&pair.a.channel, pattern(DP_MESSAGE_CONTROL_MAX + 1), &pair.a.out),
        DP_TOOBIG);
    assert_int_equal(pair.a.out.size, 0);
    pair_close(&pair);
}

static void the_bulk_lane_takes_larger_messages(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    pair.a.config.lane = DP_LANE_BULK;
    shake_hands(&pair);
    check_passes(&pair, &pair.b, &pair.a, DP_MESSAGE_BULK_MAX);
    CHECK_STATUS(dp_channel_write(&pair.b.channel, pattern(DP_MESSAGE_BULK_MAX + 1), &pair.b.out),
                 DP_TOOBIG);
    pair_close(&pair);
}

static void every_flipped_bit_of_a_record_fails(void **state)
{
    const size_t bits = (DP_RECORD_HEADER_BYTES + 4 + 3 + DP_NOISE_TAG_BYTES) * 8;

    (void)state;
    for (size_t bit = 0; bit < bits; bit++) {
        struct pair pair;
        pair_init(&pair);
        shake_hands(&pair);
        CHECK_OK(dp_channel_write(&pair.a.channel, dp_view_text("abc"), &pair.a.out));
        pair.a.out.data[bit / 8] ^= (uint8_t)(1U << bit % 8);
        const dp_status status = feed(&pair.b, dp_buf_view(&pair.a.out));
        CHECK(pair.b.messages == 0);
        CHECK(status != DP_OK || pair.b.channel.in.size > 0);
        pair_close(&pair);
    }
}

static void replayed_reordered_and_dropped_records_are_refused(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) {
        struct pair pair;
        dp_buf second;
        pair_init(&pair);
        shake_hands(&pair);
        dp_buf_init(&second, 1024);
        CHECK_OK(dp_channel_write(&pair.a.channel, dp_view_text("first"), &pair.a.out));
        CHECK_OK(dp_channel_write(&pair.a.channel, dp_view_text("second"), &second));
        if (kind == 0) {
            CHECK_OK(feed(&pair.b, dp_buf_view(&pair.a.out)));
            CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_BADSIG);
        } else if (kind == 1) {
            CHECK_STATUS(feed(&pair.b, dp_buf_view(&second)), DP_BADSIG);
        } else {
            /* Its own bytes, sent back to their writer. */
            CHECK_STATUS(feed(&pair.a, dp_buf_view(&pair.a.out)), DP_BADSIG);
        }
        dp_buf_close(&second);
        pair_close(&pair);
    }
}

static void a_cut_stream_is_not_a_close(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    shake_hands(&pair);
    CHECK_STATUS(dp_channel_eof(&pair.b.channel), DP_BADSIG);
    CHECK_OK(dp_channel_finish(&pair.a.channel, &pair.a.out));
    CHECK_STATUS(dp_channel_write(&pair.a.channel, pattern(1), &pair.a.out), DP_CLOSED);
    CHECK_STATUS(dp_channel_finish(&pair.a.channel, &pair.a.out), DP_CLOSED);
    talk(&pair, NULL, SIZE_MAX);
    assert_int_equal(pair.b.closes, 1);
    CHECK_OK(dp_channel_eof(&pair.b.channel));
    CHECK_STATUS(dp_channel_write(&pair.b.channel, pattern(1), &pair.b.out), DP_CLOSED);
    pair_close(&pair);
}

/* Seal a record as a member that breaks the rules could, with the keys of the pair. */
static void seal_by_hand(struct pair *pair, uint8_t type, dp_view plaintext)
{
    uint8_t header[DP_RECORD_HEADER_BYTES];
    uint8_t *room = NULL;
    const size_t sealed_bytes = plaintext.size + DP_NOISE_TAG_BYTES;
    dp_writer writer = dp_writer_of(header, sizeof header);

    dp_write_u32(&writer, (uint32_t)sealed_bytes | (uint32_t)type << 24);
    CHECK_OK(dp_buf_append(&pair->a.out, dp_view_of(header, sizeof header)));
    CHECK_OK(dp_buf_reserve(&pair->a.out, sealed_bytes, &room));
    dp_noise_seal(&pair->a.channel.send, dp_view_of(header, sizeof header), plaintext, room);
    dp_buf_commit(&pair->a.out, sealed_bytes);
}

static void members_that_break_the_rules_of_records_are_refused(void **state)
{
    static const struct {
        uint8_t types[2];
        const char *bytes;
        size_t size;
        dp_status wanted;
    } cases[] = {
        {{0, 9}, "\1\0\0", 3, DP_BADMSG},     /* a size cut short */
        {{0, 9}, "\1\0\0\0ab", 6, DP_BADMSG}, /* more bytes than announced */
        {{0, 9}, "\3\0\0\0ab", 6, DP_BADMSG}, /* a short record that does not end its message */
        {{0, 9}, "\1\0\2\0", 4, DP_TOOBIG},   /* 128 KiB + 1 announced on the control lane */
        {{0, 9}, "\377\377\377\377", 4, DP_TOOBIG},
        {{1, 9}, "ab", 2, DP_BADMSG}, /* continues nothing */
        {{2, 9}, "x", 1, DP_BADMSG},  /* a close with contents */
        {{3, 9}, "", 0, DP_BADMSG},   /* an unknown type */
        {{255, 9}, "\0\0\0\0", 4, DP_BADMSG},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pair pair;
        pair_init(&pair);
        shake_hands(&pair);
        seal_by_hand(&pair, cases[i].types[0], dp_view_of(cases[i].bytes, cases[i].size));
        CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), cases[i].wanted);
        CHECK(pair.b.messages == 0 && pair.b.closes == 0);
        pair_close(&pair);
    }
}

static void a_message_within_a_message_is_refused(void **state)
{
    static uint8_t plain[DP_RECORD_PLAIN_MAX] = {0, 0, 2, 0}; /* 128 KiB announced */

    (void)state;
    for (uint8_t type = 0; type <= 2; type += 2) {
        struct pair pair;
        pair_init(&pair);
        shake_hands(&pair);
        seal_by_hand(&pair, 0, dp_view_of(plain, sizeof plain));
        CHECK_OK(feed(&pair.b, dp_buf_view(&pair.a.out)));
        dp_buf_clear(&pair.a.out);
        seal_by_hand(&pair, type, dp_view_of(plain, type == 0 ? 8 : 0));
        CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_BADMSG);
        pair_close(&pair);
    }
}

static void impossible_record_sizes_are_refused_before_their_bytes(void **state)
{
    static const struct {
        uint32_t header;
        dp_status wanted;
    } cases[] = {
        {0, DP_BADMSG},
        {DP_NOISE_TAG_BYTES - 1, DP_BADMSG},
        {DP_RECORD_PLAIN_MAX + DP_NOISE_TAG_BYTES + 1, DP_TOOBIG},
        {0xffffff, DP_TOOBIG},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pair pair;
        uint8_t header[DP_RECORD_HEADER_BYTES];
        dp_writer writer = dp_writer_of(header, sizeof header);
        pair_init(&pair);
        shake_hands(&pair);
        dp_write_u32(&writer, cases[i].header);
        CHECK_STATUS(feed(&pair.b, dp_view_of(header, sizeof header)), cases[i].wanted);
        pair_close(&pair);
    }
}

static void keys_move_on_after_so_many_records(void **state)
{
    struct pair pair;
    uint8_t key[DP_NOISE_KEY_BYTES];

    (void)state;
    pair_init(&pair);
    shake_hands(&pair);
    memcpy(key, pair.a.channel.send.key, sizeof key);
    for (unsigned i = 0; i < DP_RECORDS_PER_KEY + 10; i++) {
        size_t consumed = 0;
        dp_channel_event event;
        CHECK_OK(dp_channel_write(&pair.a.channel, dp_view_text("x"), &pair.a.out));
        CHECK_OK(dp_channel_read(&pair.b.channel, dp_buf_view(&pair.a.out), &consumed, &pair.b.out,
                                 &event));
        CHECK(event.type == DP_CHANNEL_MESSAGE && event.message.size == 1);
        dp_buf_clear(&pair.a.out);
    }
    assert_int_equal(pair.a.channel.records_sent, DP_RECORDS_PER_KEY + 10);
    assert_int_equal(pair.a.channel.send.counter, 10);
    assert_memory_equal(pair.a.channel.send.key, pair.b.channel.receive.key, sizeof key);
    assert_memory_not_equal(pair.a.channel.send.key, key, sizeof key);
    pair_close(&pair);
}

static void a_full_buffer_leaves_the_channel_as_it_was(void **state)
{
    struct pair pair;
    dp_buf small;

    (void)state;
    pair_init(&pair);
    shake_hands(&pair);
    dp_buf_init(&small, 20);
    CHECK_STATUS(dp_channel_write(&pair.a.channel, dp_view_text("x"), &small), DP_TOOBIG);
    assert_int_equal(small.size, 0);
    check_passes(&pair, &pair.a, &pair.b, 1);
    dp_buf_close(&small);
    pair_close(&pair);
}

static void nothing_is_written_before_the_handshake(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    pair_open(&pair);
    const size_t size = pair.a.out.size;
    CHECK_STATUS(dp_channel_write(&pair.a.channel, pattern(1), &pair.a.out), DP_CLOSED);
    CHECK_STATUS(dp_channel_finish(&pair.a.channel, &pair.a.out), DP_CLOSED);
    assert_int_equal(pair.a.out.size, size);
    pair_close(&pair);
}

static void mutated_conversations_never_pass_as_messages(void **state)
{
    dp_rng rng;
    uint8_t bytes[1024];

    (void)state;
    dp_rng_init(&rng, 3);
    for (unsigned i = 0; i < 600; i++) {
        struct pair pair;
        struct side *from = NULL;
        struct side *to = NULL;
        up_to_message(&pair, i % 3, &from, &to);
        if (i % 3 == 2) {
            CHECK_OK(dp_channel_write(&pair.a.channel, dp_view_text("message"), &pair.a.out));
        }
        const size_t before = from->out.size;
        CHECK(before <= sizeof bytes - 64);
        memcpy(bytes, from->out.data, before);
        const size_t size = mutate(&rng, bytes, before, sizeof bytes);
        DP_IGNORE(
            feed(to, dp_view_of(bytes, size))); /* any status will do, if no message comes of it */
        const bool same = size >= before && memcmp(bytes, from->out.data, before) == 0;
        CHECK(same || to->messages == 0);
        pair_close(&pair);
    }
}

/* ---- life ---- */

static dp_status open_and_talk(void *context)
{
    struct pair *pair = context;
    dp_status status = dp_channel_init(&pair->b.channel, &pair->b.config, NULL);

    pair->a.status = DP_OK;
    pair->b.status = DP_OK;
    if (status == DP_OK) {
        status = dp_channel_init(&pair->a.channel, &pair->a.config, &pair->a.out);
    }
    if (status == DP_OK) {
        talk(pair, NULL, 50);
        status = pair->a.status != DP_OK ? pair->a.status : pair->b.status;
    }
    if (status == DP_OK) {
        status = dp_channel_write(&pair->a.channel, pattern(70000), &pair->a.out);
    }
    if (status == DP_OK) {
        talk(pair, NULL, 5000);
        status = pair->b.status;
    }
    pair_close(pair);
    return status;
}

static void every_failing_allocation_is_survived(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    CHECK(fail_each_allocation(open_and_talk, &pair) > 5);
}

static void closing_leaves_no_key_behind(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    shake_hands(&pair);
    CHECK(sodium_is_zero((const uint8_t *)&pair.a.channel.noise, sizeof pair.a.channel.noise) == 1);
    CHECK(sodium_is_zero((const uint8_t *)pair.a.channel.config.psks,
                         sizeof pair.a.channel.config.psks) == 1);
    dp_channel_close(&pair.a.channel);
    CHECK(sodium_is_zero((const uint8_t *)&pair.a.channel.send, sizeof pair.a.channel.send) == 1);
    CHECK_STATUS(dp_channel_write(&pair.a.channel, pattern(1), &pair.a.out), DP_CLOSED);
    CHECK_STATUS(feed(&pair.a, dp_view_text("x")), DP_CLOSED);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_meet_and_know_each_other),
        cmocka_unit_test(handshake_and_messages_survive_any_cutting),
        cmocka_unit_test(the_longest_hello_and_credential_fit),
        cmocka_unit_test(every_flipped_bit_of_a_handshake_fails),
        cmocka_unit_test(every_cut_handshake_waits_and_then_is_no_connection),
        cmocka_unit_test(a_wrong_pre_shared_key_is_refused_at_the_first_message),
        cmocka_unit_test(two_epochs_of_the_pre_shared_key_hold),
        cmocka_unit_test(another_run_is_refused_at_the_first_message),
        cmocka_unit_test(strangers_bytes_are_refused_without_an_answer),
        cmocka_unit_test(an_overlong_handshake_message_is_refused_by_its_size),
        cmocka_unit_test(a_foreign_credential_is_refused_by_either_side),
        cmocka_unit_test(a_credential_of_another_node_is_refused),
        cmocka_unit_test(the_initiator_reveals_nothing_to_an_impostor),
        cmocka_unit_test(a_closed_invite_admits_members_only),
        cmocka_unit_test(a_past_membership_admits_nobody),
        cmocka_unit_test(without_a_clock_only_the_chain_counts),
        cmocka_unit_test(replayed_handshake_messages_open_nothing),
        cmocka_unit_test(messages_of_every_interesting_size_pass),
        cmocka_unit_test(the_bulk_lane_takes_larger_messages),
        cmocka_unit_test(every_flipped_bit_of_a_record_fails),
        cmocka_unit_test(replayed_reordered_and_dropped_records_are_refused),
        cmocka_unit_test(a_cut_stream_is_not_a_close),
        cmocka_unit_test(members_that_break_the_rules_of_records_are_refused),
        cmocka_unit_test(a_message_within_a_message_is_refused),
        cmocka_unit_test(impossible_record_sizes_are_refused_before_their_bytes),
        cmocka_unit_test(keys_move_on_after_so_many_records),
        cmocka_unit_test(a_full_buffer_leaves_the_channel_as_it_was),
        cmocka_unit_test(nothing_is_written_before_the_handshake),
        cmocka_unit_test(mutated_conversations_never_pass_as_messages),
        cmocka_unit_test(every_failing_allocation_is_survived),
        cmocka_unit_test(closing_leaves_no_key_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
