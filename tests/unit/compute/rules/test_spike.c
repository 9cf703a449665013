#include "tests/lib/check.h"

#include <math.h>

#include "base/rng.h"
#include "compute/rules/spike.h"

enum { Z = 8 };

/* About normal: twelve uniform numbers. */
static double noise(dp_rng *rng)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++) {
        sum += (double)dp_rng_below(rng, 1000001) * 1e-6;
    }
    return sum;
}

static void feed(dp_spike *spike, dp_rng *rng, size_t count, double level, double spread)
{
    for (size_t i = 0; i < count; i++) {
        CHECK(dp_spike_is_good(spike, level + spread * noise(rng), Z));
    }
}

static void a_jump_is_caught_and_the_series_goes_on(void **state)
{
    (void)state;
    dp_spike spike = {0};
    dp_rng rng;
    dp_rng_init(&rng, 1);
    feed(&spike, &rng, 100, 3.0, 0.05);
    const dp_spike before = spike;
    CHECK(!dp_spike_is_good(&spike, 4.0, Z));
    assert_memory_equal(before.recent, spike.recent, sizeof spike.recent); /* not remembered */
    feed(&spike, &rng, 1, 3.0, 0.05);
    CHECK(spike.row == 0);
    CHECK(dp_spike_is_good(&spike, 1.0, Z)); /* downwards is welcome */
}

static void normal_noise_is_never_a_spike(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        dp_spike spike = {0};
        dp_rng rng;
        dp_rng_init(&rng, seed);
        feed(&spike, &rng, 5000, 2.0, 0.2);
    }
}

static void a_falling_loss_is_never_a_spike(void **state)
{
    (void)state;
    dp_spike spike = {0};
    dp_rng rng;
    dp_rng_init(&rng, 3);
    for (int i = 0; i < 3000; i++) {
        CHECK(dp_spike_is_good(&spike, 2.0 + 9.0 * exp(-i / 50.0) + 0.05 * noise(&rng), Z));
    }
}

static void a_flat_series_forgives_a_little(void **state)
{
    (void)state;
    dp_spike spike = {0};
    for (int i = 0; i < 64; i++) {
        CHECK(dp_spike_is_good(&spike, 2.0, Z));
    }
    CHECK(dp_spike_is_good(&spike, 2.0 + 0.9 * Z * 0.02, Z));
    CHECK(!dp_spike_is_good(&spike, 2.0 + 1.1 * Z * 0.02, Z));
}

static void few_values_judge_nobody_and_z_zero_nothing(void **state)
{
    (void)state;
    dp_spike spike = {0};
    for (int i = 0; i < DP_SPIKE_MIN - 1; i++) {
        CHECK(dp_spike_is_good(&spike, 1.0, Z));
    }
    CHECK(dp_spike_is_good(&spike, 1e9, Z));
    CHECK(!dp_spike_is_good(&spike, 1e9, Z)); /* the sixteenth was there */
    CHECK(dp_spike_is_good(&spike, 1e30, 0));
}

static void a_level_that_stays_becomes_the_new_one(void **state)
{
    (void)state;
    dp_spike spike = {0};
    dp_rng rng;
    dp_rng_init(&rng, 4);
    feed(&spike, &rng, 64, 3.0, 0.05);
    for (int i = 0; i < DP_SPIKE_ROW_MAX; i++) {
        CHECK(!dp_spike_is_good(&spike, 6.0, Z));
    }
    CHECK(dp_spike_is_good(&spike, 6.0, Z));
    feed(&spike, &rng, 200, 6.0, 0.05);
    CHECK(!dp_spike_is_good(&spike, 12.0, Z));
}

static void after_a_move_the_first_value_that_stands_out_is_the_new_level(void **state)
{
    (void)state;
    dp_spike spike = {0};
    dp_rng rng;
    dp_rng_init(&rng, 4);
    feed(&spike, &rng, 64, 3.0, 0.05);
    dp_spike_moved(&spike);
    feed(&spike, &rng, 200, 6.0, 0.05);
    dp_spike_moved(&spike);
    feed(&spike, &rng, 1, 6.0, 0.05); /* The level is as before: the series goes on. */
    CHECK(!dp_spike_is_good(&spike, 12.0, Z));
}

/* Half of the remembered values may be arbitrarily wrong. */
static void the_bound_stands_on_the_median(void **state)
{
    (void)state;
    dp_spike spike = {0};
    for (int i = 0; i < 33; i++) {
        CHECK(dp_spike_is_good(&spike, 1.0 + i * 0.001, Z));
    }
    for (int i = 0; i < 31; i++) {
        CHECK(dp_spike_is_good(&spike, -1e6, Z));
    }
    CHECK(spike.count == DP_SPIKE_WINDOW && dp_spike_is_good(&spike, 1.01, Z));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_jump_is_caught_and_the_series_goes_on),
        cmocka_unit_test(normal_noise_is_never_a_spike),
        cmocka_unit_test(a_falling_loss_is_never_a_spike),
        cmocka_unit_test(a_flat_series_forgives_a_little),
        cmocka_unit_test(few_values_judge_nobody_and_z_zero_nothing),
        cmocka_unit_test(a_level_that_stays_becomes_the_new_one),
        cmocka_unit_test(after_a_move_the_first_value_that_stands_out_is_the_new_level),
        cmocka_unit_test(the_bound_stands_on_the_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
