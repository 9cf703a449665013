/* Counts of months, under clocks of all kinds. */
#include "daemon/host/bandwidth_quota.h"

#include <string.h>

#include "tests/lib/check.h"

#define SECOND UINT64_C(1000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)
#define GB UINT64_C(1000000000)
#define NOV_1 UINT64_C(1793491200000) /* 2026-11-01 00:00 UTC */
#define DEC_1 (NOV_1 + 30 * DAY)
#define YEAR_2099 UINT64_C(4102358400000) /* 2099-12-31 */

static const uint64_t hundred[DP_BANDWIDTH_QUOTA_WAYS] = {100 * GB, 0};

static uint64_t rate(const dp_bandwidth_quota *month)
{
    return dp_bandwidth_quota_rate(month, DP_BANDWIDTH_QUOTA_UP, hundred[DP_BANDWIDTH_QUOTA_UP]);
}

/* Both clocks go on; the whole of what may pass does, if it is to. Bytes. */
static uint64_t live(dp_bandwidth_quota *month, uint64_t ms, bool takes_all)
{
    const uint64_t step = 60 * SECOND;
    uint64_t sum = 0;
    for (uint64_t at = 0; at < ms; at += step) {
        const uint64_t bytes = takes_all ? rate(month) * (step / SECOND) : 0;
        dp_bandwidth_quota_use(month, DP_BANDWIDTH_QUOTA_UP, bytes);
        sum += bytes;
        dp_bandwidth_quota_pass(month, hundred, month->day, month->wall_ms + step,
                                month->now_ms + step);
    }
    return sum;
}

static void step_clock(dp_bandwidth_quota *month, uint64_t wall_ms)
{
    dp_bandwidth_quota_pass(month, hundred, month->day, wall_ms, month->now_ms + SECOND);
}

static void a_month_begins_on_its_day(void **state)
{
    static const struct {
        uint64_t wall, begin, end;
        uint32_t day, year, month;
    } cases[] = {
        {NOV_1, NOV_1, DEC_1, 1, 2026, 11},
        {NOV_1 - 1, NOV_1 - 31 * DAY, NOV_1, 1, 2026, 10},
        {DEC_1 - 1, NOV_1, DEC_1, 1, 2026, 11},
        {NOV_1 + 14 * DAY - 1, NOV_1 - 17 * DAY, NOV_1 + 14 * DAY, 15, 2026, 10},
        {NOV_1 + 14 * DAY, NOV_1 + 14 * DAY, NOV_1 + 44 * DAY, 15, 2026, 11},
        {UINT64_C(1835481599000), UINT64_C(1835308800000), UINT64_C(1837814400000), 28, 2028, 2},
        {0, 0, 31 * DAY, 1, 1970, 1},
        {0, 0, 27 * DAY, 28, 1969, 12},
        {YEAR_2099, YEAR_2099 - 30 * DAY, YEAR_2099 + DAY, 1, 2099, 12},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t begin = 0;
        uint64_t end = 0;
        assert_int_equal(dp_bandwidth_quota_number(cases[i].wall, cases[i].day, &begin, &end),
                         cases[i].year * 12 + cases[i].month - 1);
        assert_int_equal(begin, cases[i].begin);
        assert_int_equal(end, cases[i].end);
    }
    assert_int_equal(dp_bandwidth_quota_number(UINT64_MAX, 1, NULL, NULL), 9999 * 12 + 11);
}

static void months_follow_one_another_for_400_years(void **state)
{
    uint64_t at = 0;
    (void)state;
    for (uint32_t number = 1970 * 12; number < 2370 * 12; number++) {
        uint64_t begin = 0;
        uint64_t end = 0;
        assert_int_equal(dp_bandwidth_quota_number(at, 1, &begin, &end), number);
        assert_int_equal(begin, at);
        const uint64_t days = (end - begin) / DAY;
        CHECK(days >= 28 && days <= 31 && (end - begin) % DAY == 0);
        assert_int_equal(dp_bandwidth_quota_number(end - 1, 1, NULL, NULL), number);
        at = end;
    }
    assert_int_equal(at / DAY, 146097);
}

static void full_use_gets_a_share_each_day_and_never_exceeds_the_cap(void **state)
{
    dp_bandwidth_quota month;
    uint64_t sum = 0;
    (void)state;
    dp_bandwidth_quota_init(&month, 1, NOV_1, 0);
    dp_bandwidth_quota_pass(&month, hundred, 1, NOV_1, 0);
    for (int day = 0; day < 30; day++) {
        const uint64_t today = live(&month, DAY, true);
        const uint64_t mean = 100 * GB / 30;
        CHECK(today >= mean * 8 / 10 && (day == 0 || today <= mean * 12 / 10));
        CHECK(day > 0 || today <= 2 * mean + mean / 5); /* A day is there at the start. */
        sum += today;
    }
    CHECK(sum <= 100 * GB && sum > 95 * GB);
    live(&month, DAY, true); /* The next month begins. */
    assert_int_equal(month.n, 2);
    CHECK(month.counts[0].used[DP_BANDWIDTH_QUOTA_UP] > GB &&
          month.counts[1].used[DP_BANDWIDTH_QUOTA_UP] == sum);
}

static void a_quiet_day_may_be_made_up_for_and_not_a_quiet_week(void **state)
{
    dp_bandwidth_quota month;
    (void)state;
    dp_bandwidth_quota_init(&month, 1, NOV_1, 0);
    dp_bandwidth_quota_pass(&month, hundred, 1, NOV_1, 0);
    live(&month, 2 * DAY, true);
    const uint64_t busy = rate(&month);
    live(&month, DAY, false);
    const uint64_t after_day = rate(&month);
    live(&month, 6 * DAY, false);
    const uint64_t after_week = rate(&month);
    CHECK(after_day > 20 * busy && after_week < 2 * after_day);
    live(&month, 6 * HOUR, true);
    CHECK(rate(&month) < after_week / 10 && rate(&month) > busy);
}

static void a_node_off_until_the_twentieth_has_the_whole_month_left(void **state)
{
    dp_bandwidth_quota month;
    (void)state;
    dp_bandwidth_quota_init(&month, 1, NOV_1 + 20 * DAY, 0);
    dp_bandwidth_quota_pass(&month, hundred, 1, NOV_1 + 20 * DAY, 0);
    const uint64_t sum = live(&month, 10 * DAY, true);
    CHECK(sum <= 100 * GB && sum > 95 * GB);
}

static void a_cap_that_is_used_up_lets_nothing_pass_until_the_month_is_over(void **state)
{
    dp_bandwidth_quota month;
    (void)state;
    dp_bandwidth_quota_init(&month, 1, NOV_1, 0);
    dp_bandwidth_quota_pass(&month, hundred, 1, NOV_1, 0);
    dp_bandwidth_quota_use(&month, DP_BANDWIDTH_QUOTA_UP, 101 * GB);
    live(&month, 29 * DAY, false);
    assert_int_equal(rate(&month), 0);
    assert_true(dp_bandwidth_quota_rate(&month, DP_BANDWIDTH_QUOTA_DOWN, 0) == UINT64_MAX);
    CHECK(dp_bandwidth_quota_rate(&month, DP_BANDWIDTH_QUOTA_UP, 102 * GB) >
          0); /* It may be raised. */
    live(&month, 2 * DAY, false);
    CHECK(rate(&month) > 100 * GB / (31 * DAY / SECOND));
    dp_bandwidth_quota_use(&month, DP_BANDWIDTH_QUOTA_UP, UINT64_MAX);
    dp_bandwidth_quota_use(&month, DP_BANDWIDTH_QUOTA_UP, UINT64_MAX);
    assert_int_equal(rate(&month), 0);
}

static void a_step_of_the_clock_unlocks_nothing(void **state)
{
    static const uint64_t wrong[] = {0, NOV_1 - DAY, DEC_1 + DAY, YEAR_2099, UINT64_MAX};
    dp_bandwidth_quota month;
    (void)state;
    dp_bandwidth_quota_init(&month, 1, NOV_1 + DAY, 0);
    step_clock(&month, NOV_1 + DAY);
    dp_bandwidth_quota_use(&month, DP_BANDWIDTH_QUOTA_UP, 100 * GB);
    for (size_t i = 0; i < 5 * sizeof wrong / sizeof wrong[0]; i++) {
        const uint64_t used = month.counts[0].used[DP_BANDWIDTH_QUOTA_UP];
        step_clock(&month, wrong[i % 5]);
        dp_bandwidth_quota_use(&month, DP_BANDWIDTH_QUOTA_UP,
                               30 * GB); /* While it is wrong it has a cap too. */
        CHECK(i < 20 || rate(&month) == 0);
        step_clock(&month, NOV_1 + DAY + i * HOUR);
        assert_int_equal(month.counts[0].used[DP_BANDWIDTH_QUOTA_UP], used);
        assert_int_equal(rate(&month), 0);
    }
}

static void a_step_of_the_clock_locks_nothing_that_it_does_not_find_so(void **state)
{
    dp_bandwidth_quota month;
    (void)state;
    dp_bandwidth_quota_init(&month, 1, YEAR_2099, 0);
    step_clock(&month, YEAR_2099);
    dp_bandwidth_quota_use(&month, DP_BANDWIDTH_QUOTA_UP, 200 * GB);
    assert_int_equal(rate(&month), 0);
    step_clock(&month, NOV_1 + DAY); /* It is put right. */
    CHECK(rate(&month) > 0 && month.counts[0].used[DP_BANDWIDTH_QUOTA_UP] == 0);
    step_clock(&month, DEC_1);
    CHECK(rate(&month) > 0);
}

static void a_clock_that_never_leaves_a_month_locks_it_for_32_days_of_life(void **state)
{
    dp_bandwidth_quota month;
    uint64_t days = 0;
    (void)state;
    dp_bandwidth_quota_init(&month, 1, 0, 0);
    step_clock(&month, 0);
    dp_bandwidth_quota_use(&month, DP_BANDWIDTH_QUOTA_UP, 100 * GB);
    while (rate(&month) == 0 && days < 100) { /* Each boot begins in 1970. */
        step_clock(&month, 0);
        live(&month, DAY, false);
        days++;
    }
    assert_int_equal(days, 32);
    live(&month, 20 * DAY, false);
    step_clock(&month, 0); /* The lived time reduces the time that is left. */
    CHECK(dp_bandwidth_quota_left_ms(&month) <= 12 * DAY &&
          dp_bandwidth_quota_left_ms(&month) > 11 * DAY);
    CHECK(month.counts[0].used[DP_BANDWIDTH_QUOTA_UP] == 0);
}

static void a_clock_that_runs_wild_keeps_the_table_small(void **state)
{
    dp_bandwidth_quota month;
    (void)state;
    dp_bandwidth_quota_init(&month, 1, NOV_1, 0);
    for (uint64_t i = 0; i < 1000; i++) {
        step_clock(&month, i * 77 * DAY % YEAR_2099);
        CHECK(month.n <= DP_BANDWIDTH_QUOTA_MONTHS_MAX && rate(&month) > 0);
    }
}

static void of_many_months_the_one_left_longest_ago_is_forgotten(void **state)
{
    dp_bandwidth_quota month;
    (void)state;
    dp_bandwidth_quota_init(&month, 1, NOV_1, 0);
    dp_bandwidth_quota_use(&month, DP_BANDWIDTH_QUOTA_UP, 100 * GB);
    for (uint64_t turns = 0; turns < 3; turns++) {
        for (uint64_t i = 1; i < DP_BANDWIDTH_QUOTA_MONTHS_MAX; i++) {
            step_clock(&month, i * 40 * DAY);
            assert_int_equal(month.counts[0].used[DP_BANDWIDTH_QUOTA_UP], turns * GB);
            dp_bandwidth_quota_use(&month, DP_BANDWIDTH_QUOTA_UP, GB);
        }
        step_clock(&month, NOV_1);
        assert_int_equal(rate(&month), 0);
    }
    step_clock(&month, YEAR_2099); /* One more than there is room for. */
    step_clock(&month, NOV_1);
    assert_int_equal(rate(&month), 0);
    step_clock(&month, 40 * DAY);
    assert_int_equal(month.counts[0].used[DP_BANDWIDTH_QUOTA_UP], 0);
}

static void another_day_keeps_what_was_used(void **state)
{
    dp_bandwidth_quota month;
    (void)state;
    dp_bandwidth_quota_init(&month, 1, NOV_1 + 5 * DAY, 0);
    dp_bandwidth_quota_use(&month, DP_BANDWIDTH_QUOTA_UP, 100 * GB);
    dp_bandwidth_quota_pass(&month, hundred, 20, NOV_1 + 5 * DAY, SECOND);
    assert_int_equal(rate(&month), 0);
    assert_int_equal(dp_bandwidth_quota_left_ms(&month), 14 * DAY);
    dp_bandwidth_quota_pass(&month, hundred, 20, NOV_1 + 19 * DAY, 2 * SECOND);
    CHECK(rate(&month) > 0);
}

static void only_written_counts_are_read_back(void **state)
{
    uint8_t bytes[DP_BANDWIDTH_QUOTA_BYTES_MAX];
    uint8_t again[DP_BANDWIDTH_QUOTA_BYTES_MAX];
    dp_bandwidth_quota month;
    dp_bandwidth_quota other;
    (void)state;
    dp_bandwidth_quota_init(&month, 7, NOV_1, 0);
    for (uint64_t i = 0; i < DP_BANDWIDTH_QUOTA_MONTHS_MAX; i++) {
        step_clock(&month, i * 40 * DAY);
        dp_bandwidth_quota_use(&month, DP_BANDWIDTH_QUOTA_UP, i * GB);
        dp_bandwidth_quota_use(&month, DP_BANDWIDTH_QUOTA_DOWN, i);
    }
    assert_int_equal(month.n, DP_BANDWIDTH_QUOTA_MONTHS_MAX);
    const dp_view view = dp_bandwidth_quota_write(&month, bytes);
    assert_int_equal(view.size, DP_BANDWIDTH_QUOTA_BYTES_MAX);
    dp_bandwidth_quota_init(&other, 1, DEC_1, 5);
    for (size_t size = 0; size < view.size; size++) {
        CHECK_STATUS(dp_bandwidth_quota_read(&other, dp_view_of(bytes, size)), DP_CORRUPT);
        assert_int_equal(other.day, 1);
    }
    CHECK_OK(dp_bandwidth_quota_read(&other, view));
    assert_int_equal(other.wall_ms, DEC_1);
    assert_memory_equal(dp_bandwidth_quota_write(&other, again).data, bytes, view.size);
    bytes[0] = 2;
    CHECK_STATUS(dp_bandwidth_quota_read(&other, view), DP_VERSION);
    bytes[0] = 1;
    bytes[1] = 29;
    CHECK_STATUS(dp_bandwidth_quota_read(&other, view), DP_CORRUPT);
    bytes[1] = 7;
    bytes[2] = 9;
    CHECK_STATUS(dp_bandwidth_quota_read(&other, view), DP_CORRUPT);
    bytes[2] = 0;
    CHECK_STATUS(dp_bandwidth_quota_read(&other, view), DP_CORRUPT);
    bytes[2] = 8;
    memcpy(bytes + 4, bytes + 32, 4); /* One month twice. */
    CHECK_STATUS(dp_bandwidth_quota_read(&other, view), DP_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_month_begins_on_its_day),
        cmocka_unit_test(months_follow_one_another_for_400_years),
        cmocka_unit_test(full_use_gets_a_share_each_day_and_never_exceeds_the_cap),
        cmocka_unit_test(a_quiet_day_may_be_made_up_for_and_not_a_quiet_week),
        cmocka_unit_test(a_node_off_until_the_twentieth_has_the_whole_month_left),
        cmocka_unit_test(a_cap_that_is_used_up_lets_nothing_pass_until_the_month_is_over),
        cmocka_unit_test(a_step_of_the_clock_unlocks_nothing),
        cmocka_unit_test(a_step_of_the_clock_locks_nothing_that_it_does_not_find_so),
        cmocka_unit_test(a_clock_that_never_leaves_a_month_locks_it_for_32_days_of_life),
        cmocka_unit_test(a_clock_that_runs_wild_keeps_the_table_small),
        cmocka_unit_test(of_many_months_the_one_left_longest_ago_is_forgotten),
        cmocka_unit_test(another_day_keeps_what_was_used),
        cmocka_unit_test(only_written_counts_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
