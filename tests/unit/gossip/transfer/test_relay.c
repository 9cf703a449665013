/* The node to which a thin uplink gives its update first, and those that wait. */
#include "tests/lib/check.h"

#include "gossip/transfer/relay.h"

static dp_peer peer_of(uint8_t id)
{
    return (dp_peer){.bytes = {id}};
}

/* Four voters: this one, whose line carries 1 MB/s, and three that may ask. A copy takes it a
 * second. */
static dp_relay_ask ask_of(uint8_t peer, uint8_t update, uint64_t at_ms)
{
    return (dp_relay_ask){.now = {.us = at_ms * DP_MS},
                          .root = {.bytes = {update}},
                          .bytes = 1000 * 1000,
                          .uplink = 1000,
                          .askers = 3,
                          .voters = 3,
                          .first_linked = true,
                          .is_voter = true,
                          .peer = peer_of(peer),
                          .round_us = 60 * DP_SECOND};
}

/* Others' updates take so long from READY to here. */
static dp_relay behind(uint64_t wait_ms)
{
    dp_relay relay = {.kept = false};

    for (uint32_t i = 0; i < 5; i++) {
        dp_relay_came(&relay, wait_ms * DP_MS);
    }
    return relay;
}

static bool refuses(dp_relay *relay, dp_relay_ask ask)
{
    return dp_relay_refuses(relay, &ask);
}

static void a_thin_uplink_gives_its_update_to_the_first_voter_alone(void **state)
{
    dp_relay relay = behind(1000);

    (void)state;
    assert_false(refuses(&relay, ask_of(1, 7, 0)));
    assert_true(refuses(&relay, ask_of(2, 7, 1)));
    assert_true(refuses(&relay, ask_of(3, 7, 1)));
    assert_true(refuses(&relay, ask_of(2, 7, 3400)));
    assert_false(refuses(&relay, ask_of(1, 7, 3400)));
}

static void nobody_is_refused_longer_than_three_copies_take(void **state)
{
    dp_relay relay = behind(1000);

    (void)state;
    assert_false(refuses(&relay, ask_of(1, 7, 0)));
    assert_true(refuses(&relay, ask_of(2, 7, 3499)));
    assert_false(refuses(&relay, ask_of(2, 7, 3500)));
    assert_false(refuses(&relay, ask_of(3, 7, 60000)));
}

static void nobody_is_refused_longer_than_half_of_a_round(void **state)
{
    dp_relay relay = behind(1000);
    dp_relay_ask ask = ask_of(2, 7, 999);

    (void)state;
    ask.round_us = 2 * DP_SECOND;
    dp_relay_ask first = ask;
    first.peer = peer_of(1);
    first.now.us = 0;
    assert_false(refuses(&relay, first));
    assert_true(refuses(&relay, ask));
    ask.now.us = DP_SECOND;
    assert_false(refuses(&relay, ask));
}

static void among_equal_lines_all_are_served(void **state)
{
    dp_relay equal = behind(3000); /* Others send three copies too, and are as fast. */
    dp_relay twice = behind(1500);
    dp_relay thinner = behind(1400);

    (void)state;
    for (uint8_t i = 1; i <= 3; i++) {
        assert_false(refuses(&equal, ask_of(i, 7, i)));
        assert_false(refuses(&twice, ask_of(i, 7, i)));
        assert_int_equal(refuses(&thinner, ask_of(i, 7, i)), i > 1);
    }
}

static void without_a_measure_all_are_served(void **state)
{
    dp_relay nothing = {.kept = false};
    dp_relay relay = behind(1000);
    dp_relay_ask unknown = ask_of(2, 7, 1);

    (void)state;
    unknown.uplink = 0;
    for (uint8_t i = 1; i <= 3; i++) {
        unknown.peer = peer_of(i);
        assert_false(refuses(&relay, unknown));
        assert_false(refuses(&nothing, ask_of(i, 7, i)));
    }
    dp_relay_came(&nothing, 0);
    assert_int_equal(dp_span_percentile(&nothing.waits, 50), 0);
}

static void copies_that_take_less_than_a_second_are_sent(void **state)
{
    dp_relay relay = behind(10);
    dp_relay_ask ask = ask_of(1, 7, 0);

    (void)state;
    ask.bytes = 300 * 1000;
    for (uint8_t i = 1; i <= 3; i++) {
        ask.peer = peer_of(i);
        assert_false(refuses(&relay, ask));
    }
}

static void a_peer_that_does_not_vote_waits_for_a_voter(void **state)
{
    dp_relay relay = behind(1000);
    dp_relay_ask ask = ask_of(9, 7, 0);

    (void)state;
    ask.is_voter = false;
    assert_true(refuses(&relay, ask));
    assert_false(refuses(&relay, ask_of(1, 7, 10)));
    assert_true(refuses(&relay, ask));
}

static void where_nobody_else_votes_all_are_served(void **state)
{
    dp_relay relay = behind(1000);
    dp_relay_ask ask = ask_of(9, 7, 0);

    (void)state;
    ask.is_voter = false;
    ask.voters = 0;
    assert_false(refuses(&relay, ask));
    ask.peer = peer_of(8);
    assert_false(refuses(&relay, ask));
}

static void a_single_asker_is_served(void **state)
{
    dp_relay relay = behind(10);
    dp_relay_ask ask = ask_of(9, 7, 0);

    (void)state;
    ask.askers = 1;
    ask.voters = 1;
    ask.is_voter = false;
    assert_false(refuses(&relay, ask));
}

static void when_the_first_is_gone_the_next_voter_is_served(void **state)
{
    dp_relay relay = behind(1000);
    dp_relay_ask ask = ask_of(2, 7, 100);

    (void)state;
    assert_false(refuses(&relay, ask_of(1, 7, 0)));
    assert_true(refuses(&relay, ask));
    ask.first_linked = false;
    assert_false(refuses(&relay, ask));
    assert_true(refuses(&relay, ask_of(3, 7, 101)));
}

static void nobody_is_first_twice_in_a_row(void **state)
{
    dp_relay relay = behind(1000);

    (void)state;
    assert_false(refuses(&relay, ask_of(1, 7, 0)));
    assert_true(refuses(&relay, ask_of(1, 8, 10000)));
    assert_false(refuses(&relay, ask_of(2, 8, 10001)));
    assert_true(refuses(&relay, ask_of(1, 8, 10002)));
    assert_false(refuses(&relay, ask_of(1, 9, 20000)));
}

static void the_only_other_voter_is_first_each_time(void **state)
{
    dp_relay relay = behind(1000);

    (void)state;
    for (uint8_t update = 1; update < 5; update++) {
        dp_relay_ask ask = ask_of(1, update, update * 10000);
        ask.voters = 1;
        assert_false(refuses(&relay, ask));
        ask.is_voter = false;
        ask.peer = peer_of(2);
        assert_true(refuses(&relay, ask));
    }
}

static void numbers_without_measure_overflow_nothing(void **state)
{
    dp_relay relay = behind(1);
    dp_relay_ask ask = ask_of(1, 7, 0);

    (void)state;
    ask.bytes = 1ULL << 50;
    ask.uplink = 1;
    ask.round_us = UINT64_MAX;
    assert_false(refuses(&relay, ask));
    ask.peer = peer_of(2);
    assert_true(refuses(&relay, ask));
    assert_true(relay.until.us > DP_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thin_uplink_gives_its_update_to_the_first_voter_alone),
        cmocka_unit_test(nobody_is_refused_longer_than_three_copies_take),
        cmocka_unit_test(nobody_is_refused_longer_than_half_of_a_round),
        cmocka_unit_test(among_equal_lines_all_are_served),
        cmocka_unit_test(without_a_measure_all_are_served),
        cmocka_unit_test(copies_that_take_less_than_a_second_are_sent),
        cmocka_unit_test(a_peer_that_does_not_vote_waits_for_a_voter),
        cmocka_unit_test(where_nobody_else_votes_all_are_served),
        cmocka_unit_test(a_single_asker_is_served),
        cmocka_unit_test(when_the_first_is_gone_the_next_voter_is_served),
        cmocka_unit_test(nobody_is_first_twice_in_a_row),
        cmocka_unit_test(the_only_other_voter_is_first_each_time),
        cmocka_unit_test(numbers_without_measure_overflow_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
