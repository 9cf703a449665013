/* The trainer's steps as the manifest's settings make them. */
#include "tests/unit/compute/tiny_node.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "compute/backend/backend_cpu.h"
#include "compute/cpu/half.h"
#include "compute/trainer/trainer.h"
#include "compute/trainer/trainer_keep.h"

static dp_manifest settings(void)
{
    return node_settings(DP_CODEC_SPARSE, 950);
}

static node open_with(const dp_manifest *m)
{
    return node_open_with(m, (dp_trainer_setup){0});
}

/* Until so many steps are done or dropped. */
static dp_trainer_progress train(const node *x, uint32_t tries)
{
    dp_trainer_progress done = dp_trainer_progress_of(x->trainer);
    while (done.steps + done.skipped < tries) {
        CHECK_OK(dp_trainer_work(x->trainer));
        done = dp_trainer_progress_of(x->trainer);
    }
    return done;
}

static void every_optimizer_and_way_of_weights_learns(void **state)
{
    (void)state;
    static const struct {
        dp_optim_kind kind;
        uint32_t lr_nano;
        double bound; /* on the mean loss of forty steps over that of the first */
    } cases[] = {{DP_OPTIM_ADAMW, 5000000, 0.9},
                 {DP_OPTIM_LAMB, 20000000, 0.9},
                 {DP_OPTIM_LARS, 1000000000, 0.97}, /* the highest rate that a manifest takes */
                 {DP_OPTIM_MUON, 5000000, 0.9}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int weights = DP_WEIGHTS_FP32; weights <= DP_WEIGHTS_BF16_SR; weights++) {
            dp_manifest m = settings();
            m.optimizer = cases[i].kind;
            m.lr_nano = cases[i].lr_nano;
            m.weights = (dp_weights_kind)weights;
            node x = open_with(&m);
            const double first = train(&x, 1).loss;
            const dp_trainer_progress done = train(&x, 40);
            CHECK(done.skipped == 0);
            if (!(done.loss < cases[i].bound * first)) {
                fail_msg("optimizer %d weights %d: %g after %g", (int)cases[i].kind, weights,
                         done.loss, first);
            }
            const float *const params = dp_trainer_params(x.trainer);
            for (size_t k = 0; weights != DP_WEIGHTS_FP32 && k < x.n; k++) {
                CHECK((dp_float_bits(params[k]) & 0xffffU) == 0);
            }
            node_close(&x);
        }
    }
}

static void every_precision_learns_the_same(void **state)
{
    (void)state;
    double right = 0.0;
    for (int precision = DP_PRECISION_FP32; precision <= DP_PRECISION_FP16; precision++) {
        dp_manifest m = settings();
        m.precision = (dp_precision_kind)precision;
        node x = open_with(&m);
        dp_trainer_progress done = train(&x, 30);
        /* fp16 may begin with a scale that does not fit. */
        CHECK(done.skipped == 0 || (precision == DP_PRECISION_FP16 && done.skipped < 5));
        done = train(&x, 30 + done.skipped);
        assert_int_equal(done.steps, 30);
        right = precision == DP_PRECISION_FP32 ? done.loss : right;
        CHECK(fabs(done.loss - right) < 0.05);
        node_close(&x);
    }
}

static dp_trainer_last first_of(const dp_manifest *m)
{
    node x = open_with(m);
    train(&x, 1);
    const dp_trainer_last last = dp_trainer_last_of(x.trainer);
    node_close(&x);
    return last;
}

/* The scale is removed before the norm is reported and the step is clipped. */
static void a_scaled_loss_makes_the_same_step(void **state)
{
    (void)state;
    dp_manifest m = settings();
    m.clip_milli = 1000000; /* above the norm, and below that of the scaled gradient */
    const dp_trainer_last plain = first_of(&m);
    m.precision = DP_PRECISION_FP16;
    const dp_trainer_last scaled = first_of(&m);
    CHECK(plain.outcome == DP_STEP_DONE && scaled.outcome == DP_STEP_DONE);
    CHECK(fabs(scaled.norm / plain.norm - 1) < 0.02 && fabs(scaled.loss - plain.loss) < 0.02);
}

/* Alone, since only then its place can be set. */
static node open_alone_in_fp16(float scale)
{
    dp_manifest m = settings();
    m.precision = DP_PRECISION_FP16;
    node x = node_open_with(&m, (dp_trainer_setup){.alone = true, .rows = 2});
    dp_trainer_place place = dp_trainer_place_of(x.trainer);
    place.scaler.scale = scale;
    CHECK_OK(dp_trainer_place_at(x.trainer, &place));
    return x;
}

static void a_scale_that_overflows_is_halved_until_steps_are_taken(void **state)
{
    (void)state;
    node x = open_alone_in_fp16(DP_SCALER_MAX);
    float *const kept = node_copy(dp_trainer_params(x.trainer), x.n);
    tiny_run_work(x.trainer, 1);
    CHECK(dp_trainer_last_of(x.trainer).outcome == DP_STEP_NOT_FINITE);
    CHECK(isfinite(dp_trainer_last_of(x.trainer).loss));
    assert_memory_equal(kept, dp_trainer_params(x.trainer), x.n * sizeof *kept);
    tiny_run_work(x.trainer, 20);
    const dp_trainer_place place = dp_trainer_place_of(x.trainer);
    CHECK(place.skipped >= 1 && place.skipped < 10 && place.scaler.skipped == place.skipped);
    CHECK(place.scaler.scale == ldexpf(DP_SCALER_MAX, -(int)place.skipped));
    CHECK(place.done == 20 - place.skipped && place.scaler.good == place.done);
    CHECK(dp_trainer_last_of(x.trainer).outcome == DP_STEP_DONE);
    test_free(kept);
    node_close(&x);
}

static void a_loss_that_is_not_finite_halves_the_scale_too(void **state)
{
    (void)state;
    node x = open_alone_in_fp16(DP_SCALER_START);
    dp_optim_vector vectors[DP_TRAINER_VECTORS_MAX];
    dp_trainer_vectors(x.trainer, vectors);
    const dp_trainer_place place = dp_trainer_place_of(x.trainer);
    for (size_t i = 0; i < x.n; i++) {
        vectors[0].values[i] = 1e30F; /* Which fp16 has not. */
    }
    CHECK_OK(dp_trainer_place_at(x.trainer, &place));
    tiny_run_work(x.trainer, 1);
    const dp_trainer_place after = dp_trainer_place_of(x.trainer);
    CHECK(!isfinite(dp_trainer_last_of(x.trainer).loss) && after.skipped == 1);
    CHECK(after.scaler.scale == DP_SCALER_START / 2);
    node_close(&x);
}

/* The weights after three steps. */
static float *three_steps(const dp_manifest *m, size_t *n)
{
    node x = open_with(m);
    train(&x, 3);
    float *const params = node_copy(dp_trainer_params(x.trainer), x.n);
    *n = x.n;
    node_close(&x);
    return params;
}

static void every_setting_of_the_optimizer_reaches_the_step(void **state)
{
    (void)state;
    static const struct {
        dp_optim_kind kind;
        size_t offset; /* of a u32 in dp_manifest */
        uint32_t value;
    } cases[] = {{DP_OPTIM_ADAMW, offsetof(dp_manifest, beta1_micro), 500000},
                 {DP_OPTIM_ADAMW, offsetof(dp_manifest, beta2_micro), 500000},
                 {DP_OPTIM_ADAMW, offsetof(dp_manifest, decay_micro), 900000},
                 {DP_OPTIM_ADAMW, offsetof(dp_manifest, lr_nano), 1000000},
                 {DP_OPTIM_LARS, offsetof(dp_manifest, clip_milli), 1},
                 {DP_OPTIM_LARS, offsetof(dp_manifest, momentum_micro), 100000},
                 {DP_OPTIM_MUON, offsetof(dp_manifest, momentum_micro), 100000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_manifest m = settings();
        size_t n = 0;
        m.optimizer = cases[i].kind;
        float *const before = three_steps(&m, &n);
        memcpy((char *)&m + cases[i].offset, &cases[i].value, sizeof cases[i].value);
        float *const after = three_steps(&m, &n);
        if (memcmp(before, after, n * sizeof *before) == 0) {
            fail_msg("setting %zu changes nothing", i);
        }
        test_free(after);
        test_free(before);
    }
}

static float *far_away(const node *x)
{
    float *const values = test_malloc(x->n * sizeof *values);
    dp_rng rng;
    dp_rng_init(&rng, 1);
    for (size_t i = 0; i < x->n; i++) {
        values[i] = (float)dp_rng_below(&rng, 2001) / 500.0F - 2.0F;
    }
    return values;
}

/* x is thrown far away, as nothing that trains does. */
static void throw_away(const node *x)
{
    float *const values = far_away(x);
    const dp_trainer_earlier earlier = {
        .kind = DP_RESTORE_FROZEN, .lambda = 65536, .a = dp_view_of(values, 4 * x->n)};
    CHECK_OK(dp_trainer_restore(x->trainer, &earlier));
    test_free(values);
}

static void a_loss_that_leaps_is_dropped_until_it_stays(void **state)
{
    (void)state;
    const dp_manifest m = settings();
    node x = open_with(&m);
    const uint32_t before = 20;
    CHECK(train(&x, before).skipped == 0);
    throw_away(&x);
    float *const kept = malloc(x.n * sizeof *kept);
    memcpy(kept, dp_trainer_params(x.trainer), x.n * sizeof *kept);
    dp_trainer_progress done = train(&x, before + 5);
    CHECK(done.steps == before && done.skipped == 5 && done.spikes == 5);
    assert_memory_equal(kept, dp_trainer_params(x.trainer), x.n * sizeof *kept);
    done = train(&x, before + 15);
    CHECK(done.steps == before + 10 && done.spikes == 5);
    free(kept);
    node_close(&x);
}

static void after_a_record_that_raises_the_loss_no_step_is_dropped(void **state)
{
    (void)state;
    const dp_manifest m = settings();
    const dp_codec codec = dp_codec_default(DP_CODEC_INT8);
    const uint32_t all_of_it = UINT32_C(1) << 31;
    node x = open_with(&m);
    float *const values = far_away(&x);
    CHECK_OK(dp_codec_encode(&codec, values, x.n, &x.blob));
    const dp_view blob = dp_buf_view(&x.blob);
    CHECK(train(&x, 20).skipped == 0);
    const dp_trainer_record record = {.round = 1,
                                      .alpha = 65536,
                                      .clip = 65536,
                                      .lambda = 65536,
                                      .q = &all_of_it,
                                      .blobs = &blob,
                                      .n_items = 1};
    CHECK_OK(dp_trainer_apply(x.trainer, &record));
    const double before = dp_trainer_last_of(x.trainer).loss;
    CHECK(train(&x, 25).skipped == 0 && dp_trainer_last_of(x.trainer).loss > 2 * before);
    test_free(values);
    node_close(&x);
}

static void without_the_setting_no_loss_is_a_spike(void **state)
{
    (void)state;
    dp_manifest m = settings();
    m.spike_milli = 0;
    node x = open_with(&m);
    train(&x, 20);
    throw_away(&x);
    CHECK(train(&x, 25).spikes == 0);
    node_close(&x);
}

/* Length of the first step of the first tensor; AdamW's is proportional to the rate. */
static double first_step(const dp_manifest *m)
{
    node x = open_with(m);
    train(&x, 1);
    double squares = 0.0;
    for (size_t i = 0; i < 1000; i++) {
        const double change =
            (double)dp_trainer_params(x.trainer)[i] - (double)dp_trainer_theta(x.trainer)[i];
        squares += change * change;
    }
    node_close(&x);
    return sqrt(squares);
}

static void the_batch_rule_reaches_the_step(void **state)
{
    (void)state;
    dp_manifest m = settings();
    const double plain = first_step(&m);
    m.batch_reference = (uint64_t)4 * TINY_ROWS * TINY_CONTEXT;
    m.batch_rule = DP_BATCH_SQRT;
    CHECK(fabs(first_step(&m) / plain - 0.5) < 1e-3);
    m.batch_rule = DP_BATCH_LINEAR;
    CHECK(fabs(first_step(&m) / plain - 0.25) < 1e-3);
}

/* The CPU, and its last options for a gradient. */
static dp_optim_options told;

static dp_status update_and_tell(dp_engine *engine, const dp_optim_options *options, double norm)
{
    told = *options;
    return dp_backend_cpu()->update(engine, options, norm);
}

/* No setting says it: 1e-8, as AdamW's and Muon's papers have it, and LAMB's 1e-6. LARS has
 * none. */
static void eps_is_that_of_the_optimizer(void **state)
{
    static const struct {
        dp_optim_kind kind;
        float eps;
    } cases[] = {{DP_OPTIM_ADAMW, 1e-8F}, {DP_OPTIM_LAMB, 1e-6F}, {DP_OPTIM_MUON, 1e-8F}};
    dp_backend backend = *dp_backend_cpu();
    (void)state;
    backend.update = update_and_tell;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_manifest m = settings();
        m.optimizer = cases[i].kind;
        told = (dp_optim_options){.eps = -1.0F};
        node x = node_open_with(&m, (dp_trainer_setup){.backend = &backend});
        train(&x, 1);
        CHECK(told.eps == cases[i].eps);
        CHECK(told.beta1 == (float)m.beta1_micro * 1e-6F &&
              told.beta2 == (float)m.beta2_micro * 1e-6F);
        node_close(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_optimizer_and_way_of_weights_learns),
        cmocka_unit_test(every_precision_learns_the_same),
        cmocka_unit_test(a_scaled_loss_makes_the_same_step),
        cmocka_unit_test(a_scale_that_overflows_is_halved_until_steps_are_taken),
        cmocka_unit_test(a_loss_that_is_not_finite_halves_the_scale_too),
        cmocka_unit_test(every_setting_of_the_optimizer_reaches_the_step),
        cmocka_unit_test(eps_is_that_of_the_optimizer),
        cmocka_unit_test(a_loss_that_leaps_is_dropped_until_it_stays),
        cmocka_unit_test(after_a_record_that_raises_the_loss_no_step_is_dropped),
        cmocka_unit_test(without_the_setting_no_loss_is_a_spike),
        cmocka_unit_test(the_batch_rule_reaches_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
