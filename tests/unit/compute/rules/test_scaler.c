#include "tests/unit/compute/optim_rig.h"

#include <math.h>

#include "compute/cpu/precision.h"
#include "compute/rules/scaler.h"

static void overflow_halves_and_a_thousand_good_steps_double(void **state)
{
    (void)state;
    dp_scaler scaler = dp_scaler_start();
    CHECK(scaler.scale == 65536.0F);
    dp_scaler_told(&scaler, false);
    CHECK(scaler.scale == 32768.0F && scaler.skipped == 1);
    for (int i = 0; i < DP_SCALER_GOOD_STEPS - 1; i++) {
        dp_scaler_told(&scaler, true);
        CHECK(scaler.scale == 32768.0F);
    }
    dp_scaler_told(&scaler, true);
    CHECK(scaler.scale == 65536.0F && scaler.good == 0);
}

static void an_overflow_starts_the_count_anew(void **state)
{
    (void)state;
    dp_scaler scaler = dp_scaler_start();
    for (int i = 0; i < DP_SCALER_GOOD_STEPS - 1; i++) {
        dp_scaler_told(&scaler, true);
    }
    dp_scaler_told(&scaler, false);
    dp_scaler_told(&scaler, true);
    CHECK(scaler.scale == 32768.0F && scaler.good == 1);
}

static void the_scale_stays_within_its_bounds(void **state)
{
    (void)state;
    dp_scaler scaler = dp_scaler_start();
    for (int i = 0; i < 100; i++) {
        dp_scaler_told(&scaler, false);
        CHECK(dp_scaler_is_possible(&scaler));
    }
    CHECK(scaler.scale == DP_SCALER_MIN && scaler.skipped == 100);
    for (int i = 0; i < 40 * DP_SCALER_GOOD_STEPS; i++) {
        dp_scaler_told(&scaler, true);
    }
    CHECK(scaler.scale == DP_SCALER_MAX && dp_scaler_is_possible(&scaler));
}

static void impossible_scalers_are_told(void **state)
{
    (void)state;
    static const dp_scaler bad[] = {
        {.scale = 3.0F},        {.scale = 0.5F},
        {.scale = 0.0F},        {.scale = -4.0F},
        {.scale = 33554432.0F}, {.scale = INFINITY},
        {.scale = NAN},         {.scale = 4.0F, .good = DP_SCALER_GOOD_STEPS}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(!dp_scaler_is_possible(&bad[i]));
    }
}

/* Mean of (x - t)^2 / 2 over the elements, whose gradients pass through fp16 times the scale.
 * Returns the last loss. */
static double descend(bool scales, float target, int steps, dp_scaler *scaler)
{
    rig r;
    dp_optim optim;
    rig_open(&r);
    CHECK_OK(dp_optim_init(&optim, &(dp_optim_setup){.model = &r.model}));
    memset(r.params, 0, r.model.n_elements * sizeof(float));
    const size_t n = r.model.n_elements;
    double loss = 0.0;
    *scaler = dp_scaler_start();
    for (int step = 0; step < steps; step++) {
        const float scale = scales ? scaler->scale : 1.0F;
        loss = 0.0;
        for (size_t i = 0; i < n; i++) {
            const double off = (double)r.params[i] - (double)target;
            loss += off * off / (2.0 * (double)n);
            r.grads[i] = dp_round_fp16((float)(off / (double)n) * scale);
        }
        const dp_optim_options options = {
            .lr = 0.1F * target, .beta1 = 0.9F, .beta2 = 0.95F, .eps = 1e-30F, .loss_scale = scale};
        const dp_status status = dp_optim_step(&optim, r.params, r.grads, &options, NULL, NULL);
        CHECK(status == DP_OK || status == DP_DIVERGED);
        dp_scaler_told(scaler, status == DP_OK);
    }
    dp_optim_close(&optim);
    rig_close(&r);
    return loss;
}

static void small_gradients_live_only_when_scaled(void **state)
{
    (void)state;
    /* Gradients of 1e-3 / 75,000: below fp16's least value, 6e-8. */
    dp_scaler scaler;
    const double still = descend(false, 1e-3F, 30, &scaler);
    CHECK(fabs(still - 0.5e-6) < 1e-9);
    CHECK(descend(true, 1e-3F, 60, &scaler) < 0.02 * still);
    CHECK(scaler.skipped == 0);
}

static void large_gradients_are_skipped_until_the_scale_fits(void **state)
{
    (void)state;
    /* 3e7 / 75,000 * 65,536 is far above 65,504; 2^9 times less is not. */
    dp_scaler scaler;
    CHECK(descend(true, 3e7F, 60, &scaler) < 0.02 * 4.5e14);
    CHECK(scaler.skipped == 9 && scaler.scale == 128.0F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overflow_halves_and_a_thousand_good_steps_double),
        cmocka_unit_test(an_overflow_starts_the_count_anew),
        cmocka_unit_test(the_scale_stays_within_its_bounds),
        cmocka_unit_test(impossible_scalers_are_told),
        cmocka_unit_test(small_gradients_live_only_when_scaled),
        cmocka_unit_test(large_gradients_are_skipped_until_the_scale_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
