#include "tests/unit/gossip/kit/pair.h"

enum { WORD_BYTES = 2 + DP_CHANNEL_TIME_BYTES };

/* A responder whose clock is ahead of the initiator's, with the initiator's first message lying
 * there. */
static void open_ahead(struct pair *pair, int64_t ahead_ms, dp_replay_cache *replays)
{
    pair_init(pair);
    pair->b.config.now_ms += (uint64_t)ahead_ms;
    pair->b.config.replays = replays;
    pair_open(pair);
}

static void the_time_of_a_first_message_may_be_two_minutes_off(void **state)
{
    static const int64_t near[] = {0, 1, -1, DP_CHANNEL_CLOCK_MS, -DP_CHANNEL_CLOCK_MS};
    (void)state;
    for (unsigned i = 0; i < sizeof near / sizeof near[0]; i++) {
        struct pair pair;
        open_ahead(&pair, near[i], NULL);
        talk(&pair, NULL, SIZE_MAX);
        CHECK(pair.a.handshakes == 1 && pair.b.handshakes == 1);
        CHECK(pair.b.channel.proves_secret && !pair.a.channel.proves_secret);
        pair_close(&pair);
    }
}

static void one_that_is_farther_off_is_answered_with_the_time_alone(void **state)
{
    static const int64_t far[] = {DP_CHANNEL_CLOCK_MS + 1, -DP_CHANNEL_CLOCK_MS - 1, CAST_DAY_MS,
                                  -(int64_t)CAST_NOW_MS};
    (void)state;
    for (unsigned i = 0; i < sizeof far / sizeof far[0]; i++) {
        struct pair pair;
        open_ahead(&pair, far[i], NULL);
        const uint64_t a_ms = pair.a.config.now_ms;
        const uint64_t b_ms = pair.b.config.now_ms;
        CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_TIMEOUT);
        assert_int_equal(pair.b.out.size, WORD_BYTES);
        assert_int_equal(pair.b.channel.peer_unix_ms, a_ms);
        CHECK(!pair.b.channel.proves_secret);
        CHECK_STATUS(feed(&pair.a, dp_buf_view(&pair.b.out)), DP_TIMEOUT);
        assert_int_equal(pair.a.channel.peer_unix_ms, b_ms);
        pair_close(&pair);
    }
}

static void with_the_time_that_was_told_both_meet_and_learn_what_their_clocks_say(void **state)
{
    struct pair pair;
    (void)state;
    open_ahead(&pair, 600 * 1000, NULL);
    const uint64_t a_ms = pair.a.config.now_ms;
    const uint64_t b_ms = pair.b.config.now_ms;
    talk(&pair, NULL, SIZE_MAX);
    const uint64_t told_ms = pair.a.channel.peer_unix_ms;
    pair_close(&pair);
    pair_init(&pair);
    pair.a.config.said_ms = told_ms;
    pair.b.config.now_ms = b_ms;
    shake_hands(&pair);
    assert_int_equal(pair.b.channel.peer_unix_ms, a_ms);
    assert_int_equal(pair.a.channel.peer_unix_ms, b_ms);
    pair_close(&pair);
}

/* The same first message at another connection of the same responder, whose ephemeral key is a
 * fresh one. */
static dp_status send_again(const struct pair *pair, struct side *again, uint8_t number)
{
    *again = pair->b;
    again->status = DP_OK;
    again->config.ephemeral[0] ^= number;
    dp_buf_init(&again->out, OUT_BYTES_MAX);
    CHECK_OK(dp_channel_init(&again->channel, &again->config, NULL));
    return feed(again, dp_buf_view(&pair->a.out));
}

static void side_close(struct side *side)
{
    dp_channel_close(&side->channel);
    dp_buf_close(&side->out);
}

static void a_first_message_is_answered_once(void **state)
{
    static dp_replay_cache replays;
    struct pair pair;
    struct side again;
    (void)state;
    open_ahead(&pair, 0, &replays);
    CHECK_OK(feed(&pair.b, dp_buf_view(&pair.a.out)));
    CHECK(pair.b.out.size > WORD_BYTES);
    for (uint8_t i = 1; i <= 3; i++) {
        CHECK_STATUS(send_again(&pair, &again, i), DP_EXISTS);
        assert_int_equal(again.out.size, 0);
        assert_int_equal(again.channel.peer_unix_ms, 0);
        CHECK(!again.channel.proves_secret);
        side_close(&again);
    }
    pair_close(&pair);
}

static bool never(void *context)
{
    (void)context;
    return false;
}

/* Each answer costs the other end nothing and this end half a millisecond. */
static void where_no_answer_is_allowed_none_is_made(void **state)
{
    struct pair pair;
    (void)state;
    pair_init(&pair);
    pair.b.config.may_answer = never;
    pair_open(&pair);
    CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_BUSY);
    assert_int_equal(pair.b.out.size, 0);
    CHECK(!pair.b.channel.proves_secret);
    pair_close(&pair);
}

static void an_old_one_is_told_the_time_once(void **state)
{
    static dp_replay_cache replays;
    struct pair pair;
    struct side again;
    (void)state;
    open_ahead(&pair, CAST_DAY_MS, &replays);
    CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_TIMEOUT);
    assert_int_equal(pair.b.out.size, WORD_BYTES);
    CHECK_STATUS(send_again(&pair, &again, 1), DP_EXISTS);
    assert_int_equal(again.out.size, 0);
    side_close(&again);
    pair.b.config.now_ms = pair.a.config.now_ms; /* as if its time came, after a clock was wrong */
    CHECK_STATUS(send_again(&pair, &again, 2), DP_EXISTS);
    side_close(&again);
    pair_close(&pair);
}

static void without_room_for_the_time_the_first_message_fails_and_nothing_is_sent(void **state)
{
    struct pair pair;
    (void)state;
    open_ahead(&pair, CAST_DAY_MS, NULL);
    dp_buf_close(&pair.b.out);
    dp_buf_init(&pair.b.out, WORD_BYTES - 1);
    CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_TOOBIG);
    assert_int_equal(pair.b.out.size, 0);
    CHECK(!pair.b.channel.proves_secret);
    pair_close(&pair);
}

static void a_stranger_has_nothing_remembered(void **state)
{
    static dp_replay_cache replays;
    struct pair pair;
    (void)state;
    pair_init(&pair);
    pair.b.config.replays = &replays;
    pair.a.config.psks[0].key[0] ^= 1;
    pair_open(&pair);
    CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_BADSIG);
    assert_int_equal(pair.b.out.size, 0);
    CHECK(replays.n == 0 && replays.n_stale == 0);
    pair_close(&pair);
}

static void the_time_cannot_be_altered_or_told_to_another(void **state)
{
    struct pair pair;
    (void)state;
    for (unsigned bit = 0; bit < DP_CHANNEL_TIME_BYTES * 8; bit++) {
        open_ahead(&pair, CAST_DAY_MS, NULL);
        CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_TIMEOUT);
        pair.b.out.data[2 + bit / 8] ^= (uint8_t)(1U << bit % 8);
        CHECK_STATUS(feed(&pair.a, dp_buf_view(&pair.b.out)), DP_BADSIG);
        assert_int_equal(pair.a.channel.peer_unix_ms, 0);
        pair_close(&pair);
    }
    struct pair other;
    open_ahead(&pair, CAST_DAY_MS, NULL);
    CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_TIMEOUT);
    pair_init(&other);
    other.a.config.ephemeral[1] ^= 1;
    pair_open(&other);
    CHECK_STATUS(feed(&other.a, dp_buf_view(&pair.b.out)), DP_BADSIG);
    pair_close(&other);
    pair_close(&pair);
}

/* Two nodes may get one message, and a restart forgets the cache. */
static void two_times_for_one_message_share_no_key(void **state)
{
    struct pair pair;
    struct side again;
    (void)state;
    open_ahead(&pair, CAST_DAY_MS, NULL);
    CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_TIMEOUT);
    CHECK_STATUS(send_again(&pair, &again, 1), DP_TIMEOUT);
    assert_int_equal(again.out.size, WORD_BYTES);
    CHECK(memcmp(again.out.data + 2, pair.b.out.data + 2, 32) != 0);
    CHECK(memcmp(again.out.data + 34, pair.b.out.data + 34, 8) != 0); /* of the same plaintext */
    side_close(&again);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_of_a_first_message_may_be_two_minutes_off),
        cmocka_unit_test(one_that_is_farther_off_is_answered_with_the_time_alone),
        cmocka_unit_test(with_the_time_that_was_told_both_meet_and_learn_what_their_clocks_say),
        cmocka_unit_test(a_first_message_is_answered_once),
        cmocka_unit_test(where_no_answer_is_allowed_none_is_made),
        cmocka_unit_test(an_old_one_is_told_the_time_once),
        cmocka_unit_test(without_room_for_the_time_the_first_message_fails_and_nothing_is_sent),
        cmocka_unit_test(a_stranger_has_nothing_remembered),
        cmocka_unit_test(the_time_cannot_be_altered_or_told_to_another),
        cmocka_unit_test(two_times_for_one_message_share_no_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
