#include "tests/lib/check.h"

#include "compute/machine/governor.h"

static dp_governor told(dp_governor g, int32_t celsius, uint32_t watts, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        dp_governor_told(&g, celsius, watts);
        CHECK(g.share == 0 || (g.share >= DP_GOVERNOR_MIN && g.share <= DP_GOVERNOR_WHOLE));
    }
    return g;
}

static void without_limits_or_sensors_all_time_is_for_work(void **state)
{
    (void)state;
    CHECK(!dp_governor_is_set(&(dp_governor){0}));
    dp_governor g = told(dp_governor_of(0, 0), 120, 900, 20);
    assert_int_equal(g.share, DP_GOVERNOR_WHOLE);
    g = told(dp_governor_of(80, 300), INT32_MIN, 0, 20);
    CHECK(dp_governor_is_set(&g));
    assert_int_equal(g.share, DP_GOVERNOR_WHOLE);
    assert_int_equal(dp_governor_rest_us(&g, 80000), 0);
}

static void above_the_heat_it_rests_ever_more_and_below_ever_less(void **state)
{
    (void)state;
    dp_governor g = told(dp_governor_of(80, 0), 84, 0, 1);
    assert_int_equal(g.share, 750); /* four sixteenths */
    assert_int_equal(dp_governor_rest_us(&g, 75000), 25000);
    g = told(g, 84, 0, 100);
    assert_int_equal(g.share, DP_GOVERNOR_MIN);
    const dp_governor stays = told(g, 78, 0, 50); /* Near the limit it is well as it is. */
    assert_int_equal(stays.share, g.share);
    g = told(g, 77, 0, 4);
    assert_int_equal(g.share, DP_GOVERNOR_MIN + 100);
    g = told(g, 77, 0, 100);
    assert_int_equal(g.share, DP_GOVERNOR_WHOLE);
}

static void a_rest_has_a_bound_however_long_the_work(void **state)
{
    (void)state;
    const dp_governor g = told(dp_governor_of(80, 0), 84, 0, 100);
    assert_int_equal(g.share, DP_GOVERNOR_MIN);
    assert_int_equal(dp_governor_rest_us(&g, 100000), 1900000);
    assert_int_equal(dp_governor_rest_us(&g, 60 * 1000000), DP_GOVERNOR_REST_US_MAX);
    assert_int_equal(dp_governor_rest_us(&g, UINT64_MAX), DP_GOVERNOR_REST_US_MAX);
}

static void a_rest_ends_sooner_when_it_has_cooled(void **state)
{
    (void)state;
    assert_int_equal(dp_governor_rest_end(2000, 100, 1500, 300), 1600);
    assert_int_equal(dp_governor_rest_end(2000, 100, 3000, 300),
                     2000); /* Hotter: the next one is longer. */
    assert_int_equal(dp_governor_rest_end(UINT64_MAX, 100, 1500, 9000), 9000);
    assert_true(dp_governor_rest_end(UINT64_MAX, 100, UINT64_MAX, 9000) == UINT64_MAX);
    assert_int_equal(dp_governor_rest_end(0, 0, 0, 9000), 0); /* None was under way. */
}

static void far_above_it_stops_until_it_has_cooled(void **state)
{
    (void)state;
    dp_governor g = told(dp_governor_of(80, 300), 88, 400, 1);
    assert_int_equal(g.share, 0);
    assert_true(dp_governor_rest_us(&g, 1) == UINT64_MAX);
    g = told(g, 78, 20, 50);
    assert_int_equal(g.share, 0);
    g = told(g, 77, 20, 1);
    assert_int_equal(g.share, DP_GOVERNOR_MIN);
    g = told(dp_governor_of(80, 0), 100, 0, 1);
    g = told(g, INT32_MIN, 0, 1); /* A missing sensor does not stop the work. */
    assert_int_equal(g.share, DP_GOVERNOR_MIN);
}

/* A card that takes 100 W at rest and 400 W at work, and heats up in proportion. */
static void a_card_ends_near_its_limit_of_power(void **state)
{
    (void)state;
    dp_governor g = dp_governor_of(0, 250);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 400; i++) {
        const uint32_t watts = 100 + 300 * g.share / DP_GOVERNOR_WHOLE;
        dp_governor_told(&g, INT32_MIN, watts);
        sum += i < 300 ? 0 : watts;
    }
    assert_in_range(sum / 100, 225, 255);
    g = told(dp_governor_of(0, 250), 90, 2500, 1);
    assert_int_equal(g.share, 875); /* By an eighth at most for any single reading. */
}

static void a_card_ends_near_its_limit_of_heat(void **state)
{
    (void)state;
    dp_governor g = dp_governor_of(75, 0);
    int64_t milli = 40000;
    int64_t hottest_late = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        const int64_t ends_at = 40000 + 60000 * (int64_t)g.share / DP_GOVERNOR_WHOLE;
        milli += (ends_at - milli) / 20;
        dp_governor_told(&g, (int32_t)(milli / 1000), 0);
        hottest_late = i > 500 && milli > hottest_late ? milli : hottest_late;
    }
    assert_in_range(hottest_late, 70000, 79000);
    assert_true(g.share > 300 && g.share < 900);
}

static void the_stricter_limit_decides(void **state)
{
    (void)state;
    dp_governor g = told(dp_governor_of(80, 300), 84, 100, 1);
    assert_int_equal(g.share, 750);
    g = told(dp_governor_of(80, 300), 60, 600, 1);
    assert_int_equal(g.share, 875);
}

static void other_limits_hold_from_the_next_reading_and_none_ends_the_rest(void **state)
{
    (void)state;
    dp_governor g = told(dp_governor_of(80, 0), 90, 0, 1);
    assert_int_equal(g.share, 0);
    dp_governor_limit(&g, 95, 0);
    g = told(g, 90, 0, 1);
    assert_int_equal(g.share, DP_GOVERNOR_MIN);
    dp_governor_limit(&g, 60, 0);
    g = told(g, 90, 0, 1);
    assert_int_equal(g.share, 0);
    dp_governor_limit(&g, 0, 0);
    assert_true(g.share == DP_GOVERNOR_WHOLE && !dp_governor_is_set(&g));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_limits_or_sensors_all_time_is_for_work),
        cmocka_unit_test(above_the_heat_it_rests_ever_more_and_below_ever_less),
        cmocka_unit_test(a_rest_has_a_bound_however_long_the_work),
        cmocka_unit_test(a_rest_ends_sooner_when_it_has_cooled),
        cmocka_unit_test(far_above_it_stops_until_it_has_cooled),
        cmocka_unit_test(a_card_ends_near_its_limit_of_power),
        cmocka_unit_test(a_card_ends_near_its_limit_of_heat),
        cmocka_unit_test(the_stricter_limit_decides),
        cmocka_unit_test(other_limits_hold_from_the_next_reading_and_none_ends_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
