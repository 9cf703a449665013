#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "compute/rules/schedule.h"

static const dp_schedule base = {.kind = DP_SCHEDULE_COSINE,
                                 .peak = 1e-3,
                                 .floor = 1e-4,
                                 .warmup_tokens = 100,
                                 .total_tokens = 1100,
                                 .decay_tokens = 200};

static dp_schedule of_kind(dp_schedule_kind kind)
{
    dp_schedule schedule = base;
    schedule.kind = kind;
    return schedule;
}

static void check(const dp_schedule *schedule, uint64_t tokens, double right)
{
    assert_true(fabs(dp_schedule_lr(schedule, tokens, 1) - right) < 1e-12);
}

static const dp_schedule_kind kinds[] = {DP_SCHEDULE_CONSTANT, DP_SCHEDULE_LINEAR,
                                         DP_SCHEDULE_COSINE, DP_SCHEDULE_WSD};

static void warm_up_rises_from_above_zero_to_the_peak(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const dp_schedule schedule = of_kind(kinds[i]);
        check(&schedule, 0, 1e-5);
        check(&schedule, 49, 5e-4);
        check(&schedule, 99, 1e-3);
        check(&schedule, 100, 1e-3);
    }
}

static void each_kind_has_its_shape(void **state)
{
    (void)state;
    const dp_schedule constant = of_kind(DP_SCHEDULE_CONSTANT);
    const dp_schedule linear = of_kind(DP_SCHEDULE_LINEAR);
    const dp_schedule cosine = of_kind(DP_SCHEDULE_COSINE);
    const dp_schedule wsd = of_kind(DP_SCHEDULE_WSD);
    check(&constant, 600, 1e-3);
    check(&linear, 600, 5.5e-4);
    check(&cosine, 600, 5.5e-4);
    check(&cosine, 350, 1e-4 + 9e-4 * 0.5 * (1.0 + sqrt(0.5)));
    check(&wsd, 900, 1e-3);
    check(&wsd, 1000, 5.5e-4);
}

static void after_the_end_the_rate_stays_at_the_floor(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const dp_schedule schedule = of_kind(kinds[i]);
        const double end = kinds[i] == DP_SCHEDULE_CONSTANT ? 1e-3 : 1e-4;
        check(&schedule, 1100, end);
        check(&schedule, UINT64_MAX, end);
    }
}

static void the_rate_never_rises_after_the_warm_up_nor_leaves_its_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const dp_schedule schedule = of_kind(kinds[i]);
        double last = 1e-3;
        for (uint64_t tokens = 100; tokens < 1300; tokens += 7) {
            const double rate = dp_schedule_lr(&schedule, tokens, 1);
            assert_true(rate <= last && rate >= 1e-4 - 1e-15);
            last = rate;
        }
    }
}

static void no_warm_up_and_no_tokens_divide_by_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        dp_schedule schedule = of_kind(kinds[i]);
        schedule.warmup_tokens = 0;
        check(&schedule, 0, 1e-3);
        schedule.total_tokens = 0;
        schedule.decay_tokens = 0;
        assert_true(isfinite(dp_schedule_lr(&schedule, 0, 0)));
        assert_true(isfinite(dp_schedule_lr(&schedule, 1, 3)));
    }
}

/* Each contributor takes as many steps in it, whatever their number. */
static void a_warm_up_that_nobody_has_given_is_of_steps(void **state)
{
    (void)state;
    dp_schedule schedule = of_kind(DP_SCHEDULE_CONSTANT);
    schedule.warmup_tokens = 0;
    schedule.step_tokens = 10;
    schedule.total_tokens = UINT64_C(1) << 62;
    for (uint32_t n = 0; n <= 64; n += 4) {
        const uint64_t warm = UINT64_C(10) * DP_SCHEDULE_WARM_STEPS * (n > 1 ? n : 1);
        assert_true(fabs(dp_schedule_lr(&schedule, 0, n) - 1e-3 / (double)warm) < 1e-12);
        assert_true(fabs(dp_schedule_lr(&schedule, warm / 2 - 1, n) - 5e-4) < 1e-12);
        assert_true(dp_schedule_lr(&schedule, warm, n) == 1e-3);
    }
    schedule.step_tokens = UINT64_C(1) << 50; /* No product wraps. */
    assert_true(dp_schedule_lr(&schedule, UINT64_C(1) << 59, 64) < 1e-3);
    schedule.step_tokens = 10;
    schedule.total_tokens = 1000; /* A short run is not all warm-up. */
    assert_true(fabs(dp_schedule_lr(&schedule, 124, 8) - 5e-4) < 1e-12);
    assert_true(dp_schedule_lr(&schedule, 250, 8) == 1e-3);
}

static void refuse(dp_schedule schedule, const char *word)
{
    dp_why why = {{0}};
    assert_int_equal(dp_schedule_check(&schedule, &why), DP_BADARG);
    assert_non_null(strstr(why.text, word));
}

static void impossible_schedules_are_refused_with_a_sentence(void **state)
{
    (void)state;
    dp_schedule s = base;
    assert_int_equal(dp_schedule_check(&s, NULL), DP_OK);
    s.peak = NAN;
    refuse(s, "peak");
    s = base;
    s.peak = INFINITY;
    refuse(s, "peak");
    s = base;
    s.floor = 2e-3;
    refuse(s, "final");
    s.floor = NAN;
    refuse(s, "final");
    s = base;
    s.warmup_tokens = 1101;
    refuse(s, "warm-up");
    s = of_kind(DP_SCHEDULE_WSD);
    s.decay_tokens = 1001;
    refuse(s, "decay");
}

static void a_manifest_gives_its_schedule(void **state)
{
    (void)state;
    dp_manifest manifest;
    memset(&manifest, 0, sizeof manifest);
    manifest.lr_nano = 3000000;
    manifest.lr_floor_per_mille = 100;
    manifest.schedule = DP_SCHEDULE_WSD;
    manifest.warmup_tokens = 10;
    manifest.total_tokens = 1000;
    const dp_schedule schedule = dp_schedule_of(&manifest);
    assert_int_equal(dp_schedule_check(&schedule, NULL), DP_OK);
    check(&schedule, 10, 3e-3);
    check(&schedule, 800, 3e-3);
    check(&schedule, 900, 1.65e-3);
    check(&schedule, 1000, 3e-4);
}

static void the_batch_rules_scale_the_rate(void **state)
{
    (void)state;
    dp_manifest manifest;
    dp_manifest_default(&manifest);
    manifest.batch_rows = 8;
    manifest.context = 128;
    manifest.batch_reference = 4096;
    manifest.inner_steps_max = 500;
    assert_true(dp_schedule_batch_factor(&manifest, 3) == 1.0); /* none */
    manifest.batch_rule = DP_BATCH_LINEAR;
    assert_true(dp_schedule_batch_factor(&manifest, 3) == 0.25);
    manifest.batch_rule = DP_BATCH_SQRT;
    assert_true(dp_schedule_batch_factor(&manifest, 3) == 0.5);
    manifest.batch_reference = 0;
    assert_true(dp_schedule_batch_factor(&manifest, 3) == 1.0);
}

static void contributors_count_only_where_a_round_is_one_step(void **state)
{
    (void)state;
    dp_manifest manifest;
    dp_manifest_default(&manifest);
    manifest.batch_rows = 8;
    manifest.context = 128;
    manifest.batch_reference = 1024;
    manifest.batch_rule = DP_BATCH_LINEAR;
    for (uint32_t contributors = 0; contributors < 33; contributors++) {
        manifest.inner_steps_max = 2;
        assert_true(dp_schedule_batch_factor(&manifest, contributors) == 1.0);
        manifest.inner_steps_max = 1;
        assert_true(dp_schedule_batch_factor(&manifest, contributors) ==
                    (contributors == 0 ? 1.0 : contributors));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warm_up_rises_from_above_zero_to_the_peak),
        cmocka_unit_test(each_kind_has_its_shape),
        cmocka_unit_test(after_the_end_the_rate_stays_at_the_floor),
        cmocka_unit_test(the_rate_never_rises_after_the_warm_up_nor_leaves_its_bounds),
        cmocka_unit_test(no_warm_up_and_no_tokens_divide_by_nothing),
        cmocka_unit_test(a_warm_up_that_nobody_has_given_is_of_steps),
        cmocka_unit_test(impossible_schedules_are_refused_with_a_sentence),
        cmocka_unit_test(a_manifest_gives_its_schedule),
        cmocka_unit_test(the_batch_rules_scale_the_rate),
        cmocka_unit_test(contributors_count_only_where_a_round_is_one_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
