/* AdamW as the step that all replicas take alike. */
#include "tests/lib/check.h"

#include <math.h>
#include <stdio.h>

#include "base/digest.h"
#include "base/rng.h"
#include "compute/model/optim.h"
#include "compute/outer/outer_adamw.h"

static const dp_outer_adamw usual = {.lr = 1e-3F,
                                     .beta1 = 0.9F,
                                     .beta2 = 0.95F,
                                     .eps = 1e-8F,
                                     .decay = 0.1F,
                                     .clip = 1.0F,
                                     .step = 1};

typedef struct rig {
    dp_model model;
    size_t n;
    float *theta;
    float *m;
    float *v;
    float *g;
} rig;

static void fill(float *a, size_t n, uint64_t seed, float scale)
{
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        a[i] = scale * ((float)dp_rng_below(&rng, 2000001) - 1e6F) * 1e-6F;
    }
}

static rig open_rig(void)
{
    static const dp_model_config small = {
        .layers = 2, .width = 32, .heads = 2, .context = 32, .vocab = 300};
    rig r = {0};
    CHECK_OK(dp_model_open(&r.model, &small, NULL));
    r.n = r.model.n_elements;
    r.theta = test_calloc(r.n, sizeof *r.theta);
    r.m = test_calloc(r.n, sizeof *r.m);
    r.v = test_calloc(r.n, sizeof *r.v);
    r.g = test_calloc(r.n, sizeof *r.g);
    fill(r.theta, r.n, 1, 0.1F);
    return r;
}

static void close_rig(rig *r)
{
    test_free(r->g);
    test_free(r->v);
    test_free(r->m);
    test_free(r->theta);
    dp_model_close(&r->model);
}

/* Theta is the new one afterwards. */
static double step(rig *r, const dp_outer_adamw *options, uint64_t seed, float scale)
{
    fill(r->g, r->n, seed, scale);
    const double norm = dp_outer_adamw_norm(r->g, r->n);
    CHECK_OK(dp_outer_adamw_step(&r->model, options, r->theta, r->m, r->v, r->g));
    memcpy(r->theta, r->g, r->n * sizeof *r->g);
    return norm;
}

static void steps_are_those_of_the_local_optimizer_to_rounding(void **state)
{
    (void)state;
    rig r = open_rig();
    dp_optim local;
    CHECK_OK(dp_optim_init(&local, &(dp_optim_setup){.model = &r.model}));
    float *const x = test_malloc(r.n * sizeof *x);
    float *const grads = test_malloc(r.n * sizeof *grads);
    memcpy(x, r.theta, r.n * sizeof *x);
    dp_outer_adamw options = usual;
    for (uint32_t t = 1; t <= 5; t++) {
        const float scale = t == 3 ? 10.0F : 1e-3F; /* The third is clipped. */
        options.step = t;
        const double norm = step(&r, &options, t, scale);
        double local_norm;
        fill(grads, r.n, t, scale);
        CHECK_OK(dp_optim_step(&local, x, grads,
                               &(dp_optim_options){.lr = options.lr,
                                                   .beta1 = options.beta1,
                                                   .beta2 = options.beta2,
                                                   .eps = options.eps,
                                                   .decay = options.decay,
                                                   .clip = options.clip},
                               NULL, &local_norm));
        CHECK(fabs(norm - local_norm) <= 1e-6 * norm && (norm > 1) == (t == 3));
        for (size_t i = 0; i < r.n; i++) {
            CHECK(fabsf(x[i] - r.theta[i]) <= 4e-8F); /* of steps of 1e-3, at values of 0.1 */
        }
    }
    test_free(grads);
    test_free(x);
    dp_optim_close(&local);
    close_rig(&r);
}

static void only_matrices_decay(void **state)
{
    (void)state;
    rig r = open_rig();
    float *const before = test_malloc(r.n * sizeof *before);
    memcpy(before, r.theta, r.n * sizeof *before);
    CHECK_OK(dp_outer_adamw_step(&r.model, &usual, r.theta, r.m, r.v, r.g)); /* g is 0. */
    uint32_t kinds[2] = {0, 0};
    for (size_t t = 0; t < r.model.n_tensors; t++) {
        const dp_tensor *const tensor = &r.model.tensors[t];
        const float old = before[tensor->offset];
        const float wanted = tensor->decay ? old - usual.lr * usual.decay * old : old;
        CHECK(r.g[tensor->offset] == wanted);
        kinds[tensor->decay]++;
    }
    CHECK(kinds[0] > 0 && kinds[1] > 0);
    test_free(before);
    close_rig(&r);
}

static void a_step_has_the_same_bits_on_every_machine(void **state)
{
    (void)state;
    rig r = open_rig();
    dp_outer_adamw options = usual;
    for (uint32_t t = 1; t <= 4; t++) {
        options.step = t == 4 ? 1000003 : t; /* Powers of any size. */
        (void)step(&r, &options, 100 + t, t == 2 ? 3.0F : 1e-4F);
    }
    const dp_hash hash =
        dp_hash_of("test/outer", dp_view_of((const uint8_t *)r.theta, r.n * sizeof *r.theta));
    char hex[2 * DP_HASH_BYTES + 1];
    for (size_t i = 0; i < DP_HASH_BYTES; i++) {
        snprintf(hex + 2 * i, 3, "%02x", hash.bytes[i]);
    }
    assert_string_equal(hex, "072cc181085ee5041c998202ceda5c30bdb3483ccd5046b52b4b38518726cf72");
    close_rig(&r);
}

static void values_that_are_not_finite_are_reported(void **state)
{
    (void)state;
    rig r = open_rig();
    r.g[r.n / 2] = INFINITY;
    CHECK_STATUS(dp_outer_adamw_step(&r.model, &usual, r.theta, r.m, r.v, r.g), DP_DIVERGED);
    close_rig(&r);
    r = open_rig();
    r.theta[1] = NAN;
    CHECK_STATUS(dp_outer_adamw_step(&r.model, &usual, r.theta, r.m, r.v, r.g), DP_DIVERGED);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_those_of_the_local_optimizer_to_rounding),
        cmocka_unit_test(only_matrices_decay),
        cmocka_unit_test(a_step_has_the_same_bits_on_every_machine),
        cmocka_unit_test(values_that_are_not_finite_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
