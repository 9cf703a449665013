#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gossip/round/deadline.h"

static dp_deadline of_three_seconds(void)
{
    return (dp_deadline){.round_us = 3 * DP_SECOND};
}

static void the_length_is_never_below_the_manifest(void **state)
{
    dp_deadline deadline = of_three_seconds();

    (void)state;
    assert_int_equal(dp_deadline_length(&deadline), 3 * DP_SECOND);
    for (int i = 0; i < 20; i++) {
        dp_deadline_measure(&deadline, 1);
    }
    assert_int_equal(dp_deadline_length(&deadline), 3 * DP_SECOND);
}

static void one_endless_round_counts_three_times_the_manifest_at_most(void **state)
{
    dp_deadline deadline = of_three_seconds();

    (void)state;
    for (int i = 0; i < 40; i++) {
        dp_deadline_measure(&deadline, 3600 * DP_SECOND);
    }
    assert_true(dp_deadline_length(&deadline) <= 9 * DP_SECOND);
    assert_true(dp_deadline_length(&deadline) > 8 * DP_SECOND);
}

static void the_hard_deadline_is_half_longer_than_a_round(void **state)
{
    const dp_deadline deadline = of_three_seconds();

    (void)state;
    assert_int_equal(dp_deadline_hard(&deadline), 6500 * DP_MS);
}

static void grace_is_at_most_a_quarter_of_the_round(void **state)
{
    const dp_deadline deadline = of_three_seconds();

    (void)state;
    assert_int_equal(dp_deadline_grace(&deadline, 60 * DP_SECOND, 0, 0), 750 * DP_MS);
    assert_int_equal(dp_deadline_grace(&deadline, 0, 0, 10 * DP_MS), 90 * DP_MS);
    assert_int_equal(dp_deadline_grace(&deadline, 0, 0, 300 * DP_MS),
                     1250 * DP_MS); /* But never below the delay. */
    assert_int_equal(dp_deadline_grace(&deadline, 100 * DP_MS, 50 * DP_MS, 0), 200 * DP_MS);
}

static void one_very_slow_link_stretches_a_round_by_half_at_most(void **state)
{
    dp_deadline deadline = of_three_seconds();

    (void)state;
    assert_int_equal(dp_deadline_grace(&deadline, 0, 0, 60 * DP_SECOND), 2000 * DP_MS);
    for (int i = 0; i < 40; i++) { /* Nor do rounds that last longer for it make it grow. */
        dp_deadline_measure(&deadline,
                            3 * DP_SECOND + dp_deadline_grace(&deadline, 0, 0, 60 * DP_SECOND));
    }
    assert_int_equal(dp_deadline_grace(&deadline, 0, 0, 60 * DP_SECOND), 2000 * DP_MS);
    deadline = (dp_deadline){.round_us = 500 * DP_MS};
    assert_int_equal(dp_deadline_grace(&deadline, 0, 0, 160 * DP_MS),
                     690 * DP_MS); /* Across an ocean, in a short round. */
}

static void the_longer_grace_is_given_ever_more_rarely(void **state)
{
    const dp_deadline deadline = of_three_seconds();
    uint32_t times = 0;

    (void)state;
    assert_int_equal(dp_deadline_long_grace(&deadline), 3500 * DP_MS);
    assert_false(dp_deadline_is_owed(0, 6));
    assert_false(dp_deadline_is_owed(1, 6));
    assert_true(dp_deadline_is_owed(2, 7));
    assert_false(dp_deadline_is_owed(4, 6));
    assert_true(dp_deadline_is_owed(5, 6));
    assert_false(dp_deadline_is_owed(5, 9));
    for (uint32_t missed = 0; missed < 192; missed++) {
        times += dp_deadline_is_owed(missed, 1000 + missed) ? 1 : 0;
        /* A voter that counted more missed rounds waits only in rounds in which one that counted
         * fewer waits too. */
        for (uint64_t round = 0; round < 400; round++) {
            assert_true(missed < 6 || !dp_deadline_is_owed(missed, round) ||
                        dp_deadline_is_owed(missed - 1, round));
        }
    }
    assert_int_equal(times, 6);
}

static void bids_are_spread_by_distance_and_back_off(void **state)
{
    (void)state;
    assert_int_equal(dp_deadline_bid(0, 0, 0, 0), 200 * DP_MS);
    assert_int_equal(dp_deadline_bid(0, 0, 2, 0), 600 * DP_MS);
    assert_int_equal(dp_deadline_bid(0, 0, 0, 3), 1600 * DP_MS);
    assert_int_equal(dp_deadline_bid(60 * DP_SECOND, 0, 0, 0), 5 * DP_SECOND);
    assert_int_equal(dp_deadline_bid(0, 0, 6, 60), 30 * DP_SECOND);
}

static void enough_is_never_more_than_there_are(void **state)
{
    (void)state;
    assert_int_equal(dp_deadline_enough(0), 0);
    assert_int_equal(dp_deadline_enough(1), 1);
    assert_int_equal(dp_deadline_enough(2), 2);
    assert_int_equal(dp_deadline_enough(3), 2);
    assert_int_equal(dp_deadline_enough(5), 3);
    assert_int_equal(dp_deadline_enough(10), 6);
    assert_int_equal(dp_deadline_enough(32), 20);
}

static void a_thin_line_needs_two_copies_time_where_two_fetch(void **state)
{
    (void)state;
    assert_int_equal(dp_deadline_send(1000 * 1000, 1, 250), 4 * DP_SECOND);
    assert_int_equal(dp_deadline_send(1000 * 1000, 2, 250), 8 * DP_SECOND);
    assert_int_equal(dp_deadline_send(1000 * 1000, 31, 250), 8 * DP_SECOND);
    assert_true(dp_deadline_send(UINT64_MAX, 2, 1) == UINT64_MAX);
}

static void each_part_leaves_once_and_the_own_ones_do_not(void **state)
{
    (void)state;
    assert_int_equal(dp_deadline_scatter(1000 * 1000, 0, 250), 4 * DP_SECOND);
    assert_int_equal(dp_deadline_scatter(1000 * 1000, 65536 / 4, 250), 3 * DP_SECOND);
    assert_int_equal(dp_deadline_scatter(1000 * 1000, 65536, 250), 0);
    assert_int_equal(dp_deadline_scatter(1000, 65536 / 2, 1), DP_SECOND / 2);
    assert_int_equal(dp_deadline_scatter(0, 0, 1), 0);
    assert_true(dp_deadline_scatter(UINT64_MAX, 0, 1) == UINT64_MAX);
    assert_int_equal(dp_deadline_scatter(UINT64_MAX, 65536, 1), 0);
}

static void a_node_that_sends_long_or_opens_late_trains_less_but_not_zero(void **state)
{
    const uint64_t round = 30 * DP_SECOND;

    (void)state;
    assert_int_equal(dp_deadline_part(round, 0, 0), round);
    assert_int_equal(dp_deadline_part(round, 2 * DP_SECOND, 10 * DP_SECOND), 18 * DP_SECOND);
    assert_int_equal(dp_deadline_part(round, 0, 60 * DP_SECOND), round / 4);
    assert_int_equal(dp_deadline_part(round, 60 * DP_SECOND, 1), round / 4);
    assert_int_equal(dp_deadline_part(round, UINT64_MAX, UINT64_MAX), round / 4);
}

static void the_longer_grace_is_given_in_rounds_of_a_period_that_doubles(void **state)
{
    static const struct {
        uint32_t missed; /* from so many on */
        uint32_t period;
    } steps[] = {{5, 6}, {11, 12}, {23, 24}, {47, 48}, {95, 96}, {191, 192}, {383, 192}};

    (void)state;
    for (uint32_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const uint32_t before = i > 0 ? steps[i - 1].period : 0;
        for (uint64_t round = 1; round < 800; round++) {
            assert_int_equal(dp_deadline_is_owed(steps[i].missed, round),
                             round % steps[i].period == 0);
            assert_int_equal(dp_deadline_is_owed(steps[i].missed - 1, round),
                             before > 0 && round % before == 0);
        }
    }
}

static void the_first_round_that_is_measured_is_the_average(void **state)
{
    dp_deadline deadline = of_three_seconds();

    (void)state;
    dp_deadline_measure(&deadline, 5 * DP_SECOND);
    assert_int_equal(dp_deadline_length(&deadline), 5 * DP_SECOND);
    dp_deadline_measure(&deadline, 9 * DP_SECOND);
    assert_int_equal(dp_deadline_length(&deadline), 6 * DP_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_length_is_never_below_the_manifest),
        cmocka_unit_test(one_endless_round_counts_three_times_the_manifest_at_most),
        cmocka_unit_test(the_hard_deadline_is_half_longer_than_a_round),
        cmocka_unit_test(grace_is_at_most_a_quarter_of_the_round),
        cmocka_unit_test(one_very_slow_link_stretches_a_round_by_half_at_most),
        cmocka_unit_test(the_longer_grace_is_given_ever_more_rarely),
        cmocka_unit_test(bids_are_spread_by_distance_and_back_off),
        cmocka_unit_test(enough_is_never_more_than_there_are),
        cmocka_unit_test(a_thin_line_needs_two_copies_time_where_two_fetch),
        cmocka_unit_test(each_part_leaves_once_and_the_own_ones_do_not),
        cmocka_unit_test(a_node_that_sends_long_or_opens_late_trains_less_but_not_zero),
        cmocka_unit_test(the_longer_grace_is_given_in_rounds_of_a_period_that_doubles),
        cmocka_unit_test(the_first_round_that_is_measured_is_the_average),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
