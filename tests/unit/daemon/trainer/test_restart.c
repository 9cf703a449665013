/* When a trainer that died is started again. */
#include "daemon/trainer/restart.h"

#include "tests/lib/check.h"

static void the_wait_doubles_with_each_death_up_to_a_minute(void **state)
{
    dp_restart restart = {0};
    uint64_t whole = DP_RESTART_MIN_MS;
    (void)state;
    for (uint32_t i = 0; i < 40; i++) {
        const uint64_t wait = dp_restart_wait(&restart, DP_DEATH_OWN, 0, 7919 * i);
        CHECK(wait >= whole / 2 && wait <= whole);
        whole = 2 * whole < DP_RESTART_MAX_MS ? 2 * whole : DP_RESTART_MAX_MS;
    }
    assert_int_equal(dp_restart_deaths(&restart, 0), 40);
}

static void a_model_that_does_not_fit_is_tried_every_few_minutes(void **state)
{
    dp_restart restart = {0};
    (void)state;
    for (uint32_t i = 0; i < 40; i++) {
        const uint64_t wait = dp_restart_wait(&restart, DP_DEATH_SIZE, 0, 7919 * i);
        CHECK(wait >= DP_RESTART_SIZE_MS / 2 && wait <= DP_RESTART_SIZE_MS);
    }
    CHECK(dp_restart_wait(&restart, DP_DEATH_OWN, 0, 0) == DP_RESTART_MIN_MS / 2);
}

static void a_cause_does_not_slow_the_return_after_another(void **state)
{
    dp_restart restart = {0};
    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        dp_restart_wait(&restart, DP_DEATH_MEMORY, 0, 0);
    }
    CHECK(dp_restart_wait(&restart, DP_DEATH_MEMORY, 0, 0) == DP_RESTART_MAX_MS / 2);
    CHECK(dp_restart_wait(&restart, DP_DEATH_OUTSIDE, 0, 0) == DP_RESTART_MIN_MS / 2);
}

static void each_minute_of_life_takes_a_death_back(void **state)
{
    dp_restart restart = {0};
    (void)state;
    for (uint32_t i = 0; i < DP_RESTART_FAILS; i++) {
        dp_restart_wait(&restart, DP_DEATH_OWN, 0, 0);
    }
    assert_int_equal(dp_restart_deaths(&restart, 0), DP_RESTART_FAILS);
    assert_int_equal(dp_restart_deaths(&restart, DP_RESTART_FORGIVE_MS), DP_RESTART_FAILS - 1);
    assert_int_equal(dp_restart_deaths(&restart, UINT64_MAX), 0);
    /* A trainer that dies every ten minutes always comes back at once. */
    for (uint32_t i = 0; i < 100; i++) {
        const uint64_t wait = dp_restart_wait(&restart, DP_DEATH_OWN, 10 * 60 * 1000, UINT32_MAX);
        CHECK(wait <= DP_RESTART_MIN_MS);
    }
}

static void trainers_that_die_together_do_not_come_back_together(void **state)
{
    uint64_t waits[4];
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        dp_restart restart = {0};
        waits[i] = dp_restart_wait(&restart, DP_DEATH_MEMORY, 0, i * 150);
        CHECK(i == 0 || waits[i] == waits[i - 1] + 150);
    }
}

static void a_wait_is_cut_short_once_in_ten_minutes(void **state)
{
    dp_restart restart = {0};
    (void)state;
    CHECK(dp_restart_early(&restart, 5));
    CHECK(!dp_restart_early(&restart, 6));
    CHECK(!dp_restart_early(&restart, 4 + DP_RESTART_EARLY_MS));
    CHECK(dp_restart_early(&restart, 5 + DP_RESTART_EARLY_MS));
    CHECK(!dp_restart_early(&restart, 6 + DP_RESTART_EARLY_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wait_doubles_with_each_death_up_to_a_minute),
        cmocka_unit_test(a_model_that_does_not_fit_is_tried_every_few_minutes),
        cmocka_unit_test(a_cause_does_not_slow_the_return_after_another),
        cmocka_unit_test(each_minute_of_life_takes_a_death_back),
        cmocka_unit_test(trainers_that_die_together_do_not_come_back_together),
        cmocka_unit_test(a_wait_is_cut_short_once_in_ten_minutes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
