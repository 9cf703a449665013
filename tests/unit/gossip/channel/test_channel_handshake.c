#include "tests/unit/gossip/kit/pair.h"

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

/* Of each byte one bit, another in the next. */
static void a_flipped_bit_in_any_byte_of_a_handshake_fails(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 3; which++) {
        size_t size = 1;
        for (size_t at = 0; at < size; at++) {
            struct pair pair;
            struct side *from = NULL;
            struct side *to = NULL;
            up_to_message(&pair, which, &from, &to);
            size = from->out.size;
            from->out.data[at] ^= (uint8_t)(1U << at % 8);
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

/* The responder's next step would be two Diffie-Hellmans; its noise state must not have got that
 * far. */
static void a_wrong_pre_shared_key_is_refused_at_the_first_message(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    pair.a.config.psks[0].key[0] ^= 1;
    pair_open(&pair);
    CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_BADSIG);
    assert_int_equal(pair.b.out.size, 0);
    assert_string_equal(pair.b.channel.fault, "the peer does not have this run's join secret");
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
        {"DPN1\1\1\1\1", DP_VERSION},
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

static void a_bulk_connection_has_a_number(void **state)
{
    (void)state;
    for (uint8_t stripe = 0; stripe < DP_CHANNEL_STRIPES_MAX; stripe++) {
        struct pair pair;
        pair_init(&pair);
        pair.a.config.lane = DP_LANE_BULK;
        pair.a.config.stripe = stripe;
        shake_hands(&pair);
        CHECK(pair.b.channel.lane == DP_LANE_BULK && pair.b.channel.stripe == stripe);
        pair_close(&pair);
    }
}

static void a_first_message_for_a_lane_that_does_not_exist_is_refused(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    pair.a.config.lane = DP_LANE_BULK;
    pair.a.config.stripe = DP_CHANNEL_STRIPES_MAX;
    pair_open(&pair);
    CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_BADMSG);
    assert_string_equal(pair.b.channel.fault, "malformed first message");
    assert_int_equal(pair.b.out.size, 0);
    pair_close(&pair);
}

/* Both sides with the suites of these bits; 0 stands for a config that says nothing. */
static bool pair_suites(struct pair *pair, unsigned a, unsigned b)
{
    const dp_suite *aes = dp_suite_of(DP_SUITE_AES256GCM);

    pair_init(pair);
    for (uint8_t id = 1; id <= DP_SUITES; id++) {
        pair->a.config.suites[id - 1] = (a >> (id - 1) & 1U) != 0 ? dp_suite_of(id) : NULL;
        pair->b.config.suites[id - 1] = (b >> (id - 1) & 1U) != 0 ? dp_suite_of(id) : NULL;
    }
    return aes != NULL;
}

static void the_records_use_the_best_suite_that_both_have(void **state)
{
    static const unsigned cases[][3] = {{0, 0, 1}, {1, 3, 1}, {3, 1, 1}, {3, 0, 1}, {3, 3, 2}};

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pair pair;
        if (!pair_suites(&pair, cases[i][0], cases[i][1])) {
            continue; /* This processor has one suite. */
        }
        shake_hands(&pair);
        assert_int_equal(pair.a.channel.suite, cases[i][2]);
        assert_int_equal(pair.b.channel.suite, cases[i][2]);
        check_passes(&pair, &pair.a, &pair.b, 66000);
        check_passes(&pair, &pair.b, &pair.a, 3);
        pair_close(&pair);
    }
}

static void an_offer_of_suites_to_come_is_understood(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    pair_open(&pair);
    pair.a.out.data[4] =
        0xff; /* The transcript says otherwise, but not before the first message. */
    CHECK_OK(feed(&pair.b, dp_view_of(pair.a.out.data, DP_CHANNEL_PREAMBLE_BYTES)));
    assert_int_equal(pair.b.channel.suite, DP_SUITE_CHACHAPOLY);
    pair_close(&pair);
}

static void a_suite_that_somebody_took_out_of_the_offer_breaks_the_handshake(void **state)
{
    struct pair pair;

    (void)state;
    if (!pair_suites(&pair, 3, 3)) {
        skip();
    }
    pair_open(&pair);
    assert_int_equal(pair.a.out.data[4], 3);
    pair.a.out.data[4] = 1;
    CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_BADSIG);
    assert_int_equal(pair.b.out.size, 0);
    pair_close(&pair);
}

/* A member that answers with this choice, and is a good member otherwise. */
static dp_status answer_choosing(struct pair *pair, unsigned chosen)
{
    struct side *from = NULL;
    struct side *to = NULL;
    uint8_t payload[PAYLOAD_HEADER + DP_CERT_BYTES] = {0};
    uint8_t read[64];
    size_t size = 0;
    dp_buf out;

    up_to_message(pair, 0, &from, &to);
    CHECK_OK(feed(to, dp_view_of(from->out.data, DP_CHANNEL_PREAMBLE_BYTES)));
    const dp_view first = dp_view_of(from->out.data + DP_CHANNEL_PREAMBLE_BYTES + 2,
                                     from->out.size - DP_CHANNEL_PREAMBLE_BYTES - 2);
    CHECK_OK(dp_noise_read(&to->channel.noise, first, read, sizeof read, &size));
    payload[16] = (uint8_t)DP_CERT_BYTES;
    payload[17] = (uint8_t)(chosen << 4);
    memcpy(payload + PAYLOAD_HEADER, to->credential, DP_CERT_BYTES);
    sign_payload(&to->identity.ed, 1, to->channel.noise.hash, to->identity.x_public, payload,
                 sizeof payload);
    dp_buf_init(&out, OUT_BYTES_MAX);
    CHECK_OK(dp_buf_append(&out, dp_view_of("\0\0", 2)));
    CHECK_OK(dp_noise_write(&to->channel.noise, dp_view_of(payload, sizeof payload), &out));
    out.data[0] = (uint8_t)(out.size - 2);
    out.data[1] = (uint8_t)((out.size - 2) >> 8);
    dp_buf_clear(&from->out);
    const dp_status status = feed(from, dp_buf_view(&out));
    dp_buf_close(&out);
    return status;
}

static void a_choice_that_was_not_offered_is_refused(void **state)
{
    struct pair pair;

    (void)state;
    CHECK_OK(answer_choosing(&pair, 0));
    assert_int_equal(pair.a.channel.suite, DP_SUITE_CHACHAPOLY);
    pair_close(&pair);
    for (unsigned chosen = DP_SUITE_AES256GCM; chosen < 16; chosen++) {
        CHECK_STATUS(answer_choosing(&pair, chosen), DP_BADMSG);
        assert_string_equal(pair.a.channel.fault, "the peer chose a suite that it was not offered");
        assert_int_equal(pair.a.out.size, 0); /* Its credential has not been shown. */
        pair_close(&pair);
    }
}

/* A peer with the run's pre-shared key follows the handshake, and sends this in the third
 * message. */
static dp_status third_message(struct pair *pair, dp_view payload)
{
    struct side *from = NULL;
    struct side *to = NULL;
    static uint8_t read[DP_CHANNEL_HANDSHAKE_MAX];
    size_t size = 0;
    dp_buf out;

    up_to_message(pair, 1, &from, &to);
    const dp_view second = dp_view_of(from->out.data + 2, from->out.size - 2);
    CHECK_OK(dp_noise_read(&to->channel.noise, second, read, sizeof read, &size));
    dp_buf_init(&out, OUT_BYTES_MAX);
    CHECK_OK(dp_buf_append(&out, dp_view_of("\0\0", 2)));
    CHECK_OK(dp_noise_write(&to->channel.noise, payload, &out));
    out.data[0] = (uint8_t)(out.size - 2);
    out.data[1] = (uint8_t)((out.size - 2) >> 8);
    const dp_status status = feed(from, dp_buf_view(&out));
    dp_buf_close(&out);
    return status;
}

static void a_credential_longer_than_its_message_is_refused(void **state)
{
    struct pair pair;
    uint8_t payload[PAYLOAD_HEADER + 10] = {
        [16] = 11}; /* times, size, and one byte less than it says */

    (void)state;
    CHECK_STATUS(third_message(&pair, dp_view_of(payload, sizeof payload)), DP_BADMSG);
    assert_string_equal(pair.b.channel.fault, "malformed handshake payload");
    pair_close(&pair);
}

static void an_initiator_does_not_choose(void **state)
{
    struct pair pair;
    uint8_t payload[PAYLOAD_HEADER] = {[17] = DP_SUITE_AES256GCM << 4};

    (void)state;
    CHECK_STATUS(third_message(&pair, dp_view_of(payload, sizeof payload)), DP_BADMSG);
    assert_string_equal(pair.b.channel.fault, "malformed handshake payload");
    pair_close(&pair);
}

static void a_hello_over_its_limit_is_refused(void **state)
{
    struct pair pair;
    static const uint8_t payload[PAYLOAD_HEADER + DP_CHANNEL_HELLO_MAX + 1];

    (void)state;
    CHECK_STATUS(third_message(&pair, dp_view_of(payload, sizeof payload)), DP_TOOBIG);
    assert_string_equal(pair.b.channel.fault, "the hello or the credential is too long");
    pair_close(&pair);
}

static void another_version_is_told_which_side_to_update(void **state)
{
    static const char *const faults[] = {
        ['1'] = "the peer speaks an older version of this protocol: update the peer",
        ['3'] = "the peer speaks a newer version of this protocol: update this node"};

    (void)state;
    for (uint8_t version = '1'; version <= '3'; version += 2) {
        struct pair pair;
        pair_init(&pair);
        pair_open(&pair);
        pair.a.out.data[3] = version;
        CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_VERSION);
        assert_string_equal(pair.b.channel.fault, faults[version]);
        assert_int_equal(pair.b.out.size, 0);
        pair_close(&pair);
    }
}

static void a_closed_invite_admits_members_only(void **state)
{
    struct pair pair;
    unsigned asked = 0;

    (void)state;
    pair_init(&pair);
    pair.b.config.now_ms = CAST_NOW_MS + CAST_DAY_MS;
    pair.a.config.said_ms = pair.b.config.now_ms;
    pair_open(&pair);
    talk(&pair, NULL, SIZE_MAX);
    CHECK_STATUS(pair.b.status, DP_EXPIRED);
    pair_close(&pair);
    pair_init(&pair);
    pair.b.config.now_ms = CAST_NOW_MS + CAST_DAY_MS;
    pair.a.config.said_ms = pair.b.config.now_ms;
    pair.b.config.member = yes;
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
    pair.a.config.said_ms = pair.b.config.now_ms;
    pair.b.config.member = yes;
    pair.b.config.context = &asked;
    pair_open(&pair);
    talk(&pair, NULL, SIZE_MAX);
    CHECK_STATUS(pair.b.status, DP_EXPIRED);
    pair_close(&pair);
}

/* As the hello of the other says. */
static bool shows_renewal(void *context, const dp_peer *peer, dp_view hello, uint64_t now_ms)
{
    (void)peer;
    *(unsigned *)context += 100;
    return now_ms > CAST_NOW_MS && dp_view_equal(hello, dp_view_text("hello from a"));
}

static void a_past_membership_that_was_renewed_is_a_member_s_alone(void **state)
{
    struct pair pair;
    unsigned asked = 0;

    (void)state;
    for (unsigned member = 0; member < 2; member++) {
        pair_init(&pair);
        pair.b.config.now_ms = CAST_NOW_MS + 31 * CAST_DAY_MS;
        pair.a.config.said_ms = pair.b.config.now_ms;
        pair.b.config.member = member != 0 ? yes : NULL;
        pair.b.config.renewed = shows_renewal;
        pair.b.config.context = &asked;
        pair_open(&pair);
        talk(&pair, NULL, SIZE_MAX);
        CHECK_STATUS(pair.b.status, member != 0 ? DP_OK : DP_EXPIRED);
        pair_close(&pair);
    }
    assert_int_equal(asked, 101); /* Of a stranger nobody asks. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_meet_and_know_each_other),
        cmocka_unit_test(handshake_and_messages_survive_any_cutting),
        cmocka_unit_test(the_longest_hello_and_credential_fit),
        cmocka_unit_test(a_flipped_bit_in_any_byte_of_a_handshake_fails),
        cmocka_unit_test(every_cut_handshake_waits_and_then_is_no_connection),
        cmocka_unit_test(a_wrong_pre_shared_key_is_refused_at_the_first_message),
        cmocka_unit_test(two_epochs_of_the_pre_shared_key_hold),
        cmocka_unit_test(another_run_is_refused_at_the_first_message),
        cmocka_unit_test(strangers_bytes_are_refused_without_an_answer),
        cmocka_unit_test(an_overlong_handshake_message_is_refused_by_its_size),
        cmocka_unit_test(a_first_message_for_a_lane_that_does_not_exist_is_refused),
        cmocka_unit_test(a_credential_longer_than_its_message_is_refused),
        cmocka_unit_test(a_bulk_connection_has_a_number),
        cmocka_unit_test(the_records_use_the_best_suite_that_both_have),
        cmocka_unit_test(an_offer_of_suites_to_come_is_understood),
        cmocka_unit_test(a_suite_that_somebody_took_out_of_the_offer_breaks_the_handshake),
        cmocka_unit_test(a_choice_that_was_not_offered_is_refused),
        cmocka_unit_test(an_initiator_does_not_choose),
        cmocka_unit_test(a_hello_over_its_limit_is_refused),
        cmocka_unit_test(another_version_is_told_which_side_to_update),
        cmocka_unit_test(a_closed_invite_admits_members_only),
        cmocka_unit_test(a_past_membership_admits_nobody),
        cmocka_unit_test(a_past_membership_that_was_renewed_is_a_member_s_alone),
        cmocka_unit_test(without_a_clock_only_the_chain_counts),
        cmocka_unit_test(replayed_handshake_messages_open_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
