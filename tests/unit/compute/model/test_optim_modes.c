/* THREADS_TEST */
/* Properties of every optimizer: threads, parts, checkpoints, loss scales, weights in bf16. */
#include "tests/unit/compute/optim_rig.h"

#include <math.h>

#include "base/alloc.h"
#include "compute/cpu/half.h"
#include "compute/cpu/stochastic_rounding.h"

static const dp_weights_kind ways[] = {DP_WEIGHTS_FP32, DP_WEIGHTS_BF16, DP_WEIGHTS_BF16_SR};
enum { WAYS = 3 };

static dp_optim open_optim(const rig *r, dp_optim_kind kind, dp_weights_kind weights)
{
    dp_optim optim;
    const dp_optim_setup setup = {.model = &r->model, .kind = kind, .weights = weights, .seed = 5};
    CHECK_OK(dp_optim_init(&optim, &setup));
    return optim;
}

static void step(dp_optim *optim, rig *r, uint64_t draw, dp_pool *pool)
{
    rig_draw(r, r->grads, draw, 1.0F);
    CHECK_OK(dp_optim_step(optim, r->params, r->grads, &rig_options, pool, NULL));
}

static void check_same_state(const dp_optim *a, const dp_optim *b)
{
    dp_optim_vector of_a[DP_OPTIM_VECTORS_MAX];
    dp_optim_vector of_b[DP_OPTIM_VECTORS_MAX];
    const size_t count = dp_optim_vectors(a, of_a);
    assert_int_equal(count, dp_optim_vectors(b, of_b));
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(of_a[i].name, of_b[i].name);
        assert_memory_equal(of_a[i].values, of_b[i].values, (a->last - a->first) * sizeof(float));
    }
}

/* Muon has scratch for each thread if it was told of them, and else they go through each matrix
 * together. */
static void threads_change_no_bits_of_any_kind(void **state)
{
    (void)state;
    for (size_t k = 0; k < (size_t)2 * RIG_KINDS * WAYS; k++) {
        rig one;
        rig many;
        dp_pool *pool = NULL;
        const dp_optim_kind kind = rig_kinds[k / 2 / WAYS];
        const dp_weights_kind weights = ways[k / 2 % WAYS];
        rig_open(&one);
        rig_open(&many);
        CHECK_OK(dp_pool_open(&pool, 3));
        dp_optim a = open_optim(&one, kind, weights);
        dp_optim b;
        CHECK_OK(dp_optim_init(&b, &(dp_optim_setup){.model = &many.model,
                                                     .kind = kind,
                                                     .weights = weights,
                                                     .seed = 5,
                                                     .threads = k % 2 == 0 ? 0 : 3}));
        for (uint64_t draw = 1; draw <= 2; draw++) {
            step(&a, &one, draw, NULL);
            step(&b, &many, draw, pool);
        }
        assert_memory_equal(one.params, many.params, one.model.n_elements * sizeof(float));
        check_same_state(&a, &b);
        dp_optim_close(&a);
        dp_optim_close(&b);
        dp_pool_close(pool);
        rig_close(&one);
        rig_close(&many);
    }
}

static void check_parts(dp_optim_kind kind, dp_weights_kind weights, size_t parts)
{
    rig whole;
    rig cut;
    rig_open(&whole);
    rig_open(&cut);
    const size_t n = whole.model.n_elements;
    dp_optim all = open_optim(&whole, kind, weights);
    dp_optim optims[8];
    assert_int_equal(dp_optim_cut(kind, &cut.model, parts, 0), 0);
    assert_int_equal(dp_optim_cut(kind, &cut.model, parts, parts), n);
    for (size_t i = 0; i < parts; i++) {
        const dp_optim_setup setup = {.model = &cut.model,
                                      .kind = kind,
                                      .weights = weights,
                                      .seed = 5,
                                      .part = i,
                                      .parts = parts};
        CHECK_OK(dp_optim_init(&optims[i], &setup));
        CHECK(optims[i].first == (i == 0 ? 0 : optims[i - 1].last));
    }
    CHECK(optims[parts - 1].last == n);
    for (uint64_t draw = 1; draw <= 2; draw++) {
        step(&all, &whole, draw, NULL);
        rig_draw(&cut, cut.grads, draw, 1.0F);
        const double norm = dp_norm(cut.grads, n, all.partial, NULL);
        for (size_t i = parts; i-- > 0;) {
            CHECK_OK(
                dp_optim_step_with(&optims[i], cut.params, cut.grads, &rig_options, NULL, norm));
        }
    }
    assert_memory_equal(whole.params, cut.params, n * sizeof(float));
    for (size_t i = 0; i < parts; i++) {
        const size_t size = (optims[i].last - optims[i].first) * sizeof(float);
        assert_memory_equal(optims[i].m, all.m + optims[i].first, size);
        dp_optim_close(&optims[i]);
    }
    dp_optim_close(&all);
    rig_close(&whole);
    rig_close(&cut);
}

static void parts_change_no_bits_of_any_kind(void **state)
{
    (void)state;
    for (size_t k = 0; k < (size_t)RIG_KINDS * WAYS; k++) {
        check_parts(rig_kinds[k / WAYS], ways[k % WAYS], 1);
        check_parts(rig_kinds[k / WAYS], ways[k % WAYS], 2);
        check_parts(rig_kinds[k / WAYS], ways[k % WAYS], 3);
        check_parts(rig_kinds[k / WAYS], ways[k % WAYS], 8); /* more than there are tensors */
    }
}

static void an_unknown_combination_is_refused(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    dp_optim optim = {0};
    const dp_optim_setup setups[] = {
        {.model = &r.model, .kind = (dp_optim_kind)9},
        {.model = &r.model, .weights = (dp_weights_kind)9},
        {.model = &r.model, .part = 1},
        {.model = &r.model, .part = 3, .parts = 3},
    };
    for (size_t i = 0; i < sizeof setups / sizeof setups[0]; i++) {
        CHECK_STATUS(dp_optim_init(&optim, &setups[i]), DP_BADARG);
        assert_null(optim.m);
    }
    rig_close(&r);
}

static void a_kept_state_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    for (size_t k = 0; k < (size_t)RIG_KINDS * WAYS; k++) {
        rig r;
        rig again;
        rig_open(&r);
        rig_open(&again);
        const size_t size = r.model.n_elements * sizeof(float);
        dp_optim a = open_optim(&r, rig_kinds[k / WAYS], ways[k % WAYS]);
        dp_optim b = open_optim(&again, rig_kinds[k / WAYS], ways[k % WAYS]);
        dp_optim_vector from[DP_OPTIM_VECTORS_MAX];
        dp_optim_vector to[DP_OPTIM_VECTORS_MAX];
        step(&a, &r, 1, NULL);
        step(&a, &r, 2, NULL);
        memcpy(again.params, r.params, size);
        const size_t count = dp_optim_vectors(&a, from);
        assert_int_equal(count, dp_optim_vectors(&b, to));
        for (size_t i = 0; i < count; i++) {
            memcpy(to[i].values, from[i].values, size);
        }
        b.steps = a.steps;
        step(&a, &r, 3, NULL);
        step(&b, &again, 3, NULL);
        assert_memory_equal(r.params, again.params, size);
        check_same_state(&a, &b);
        dp_optim_close(&a);
        dp_optim_close(&b);
        rig_close(&r);
        rig_close(&again);
    }
}

/* Also where the gradient is shorter than the bound and its scaled one longer. */
static void a_loss_scale_that_is_a_power_of_two_changes_no_bits(void **state)
{
    (void)state;
    for (size_t k = 0; k < (size_t)2 * RIG_KINDS; k++) {
        rig plain;
        rig scaled;
        rig_open(&plain);
        rig_open(&scaled);
        dp_optim a = open_optim(&plain, rig_kinds[k / 2], DP_WEIGHTS_FP32);
        dp_optim b = open_optim(&scaled, rig_kinds[k / 2], DP_WEIGHTS_FP32);
        dp_optim_options unscaled = rig_options;
        unscaled.clip = k % 2 == 0 ? 1.0F : 1e4F;
        dp_optim_options options = unscaled;
        options.loss_scale = 65536.0F;
        double norm = 0.0;
        double norm_scaled = 0.0;
        for (size_t i = 0; i < scaled.model.n_elements; i++) {
            scaled.grads[i] *= 65536.0F;
        }
        CHECK_OK(dp_optim_step(&a, plain.params, plain.grads, &unscaled, NULL, &norm));
        CHECK_OK(dp_optim_step(&b, scaled.params, scaled.grads, &options, NULL, &norm_scaled));
        CHECK(norm == norm_scaled && norm > 1.0 && norm < 1e4);
        assert_memory_equal(plain.params, scaled.params, plain.model.n_elements * sizeof(float));
        dp_optim_close(&a);
        dp_optim_close(&b);
        rig_close(&plain);
        rig_close(&scaled);
    }
}

static void a_bad_gradient_changes_nothing_and_padding_stays_zero(void **state)
{
    (void)state;
    for (size_t k = 0; k < (size_t)RIG_KINDS * WAYS; k++) {
        rig r;
        rig_open(&r);
        const size_t n = r.model.n_elements;
        dp_optim optim = open_optim(&r, rig_kinds[k / WAYS], ways[k % WAYS]);
        float *const before = malloc(n * sizeof *before);
        step(&optim, &r, 1, NULL);
        for (size_t t = 0; t < RIG_TENSORS; t++) {
            const size_t end = t + 1 < RIG_TENSORS ? r.tensors[t + 1].offset : n;
            for (size_t i = r.tensors[t].offset + r.tensors[t].elements; i < end; i++) {
                CHECK(r.params[i] == 0.0F && optim.m[i] == 0.0F);
            }
        }
        memcpy(before, r.params, n * sizeof *before);
        r.grads[n / 2] = NAN;
        CHECK_STATUS(dp_optim_step(&optim, r.params, r.grads, &rig_options, NULL, NULL),
                     DP_DIVERGED);
        assert_memory_equal(before, r.params, n * sizeof *before);
        assert_int_equal(optim.steps, 1);
        free(before);
        dp_optim_close(&optim);
        rig_close(&r);
    }
}

static bool is_bfloat(float x)
{
    return (dp_float_bits(x) & 0xffffU) == 0;
}

static void weights_in_bf16_are_bf16_after_every_step(void **state)
{
    (void)state;
    for (size_t k = 0; k < RIG_KINDS; k++) {
        for (size_t w = 1; w < WAYS; w++) {
            rig r;
            rig_open(&r);
            dp_optim optim = open_optim(&r, rig_kinds[k], ways[w]);
            for (uint64_t draw = 1; draw <= 3; draw++) {
                step(&optim, &r, draw, NULL);
                for (size_t i = 0; i < r.model.n_elements; i++) {
                    assert_true(is_bfloat(r.params[i]));
                }
            }
            dp_optim_close(&optim);
            rig_close(&r);
        }
    }
}

/* A hundred steps of 1e-5 from 1, where bf16 values lie 4e-3 apart: rounding to nearest would stand
 * still. */
static void small_steps_add_up_in_masters_and_by_chance(void **state)
{
    (void)state;
    for (size_t w = 1; w < WAYS; w++) {
        rig r;
        rig_open(&r);
        const size_t n = r.model.n_elements;
        dp_optim optim = open_optim(&r, DP_OPTIM_ADAMW, ways[w]);
        const dp_optim_options options = {.lr = 1e-5F, .beta1 = 0.0F, .beta2 = 0.0F, .eps = 1e-12F};
        for (size_t i = 0; i < n; i++) {
            r.params[i] = 1.0F;
            r.grads[i] = 1.0F;
        }
        for (int i = 0; i < 100; i++) {
            CHECK_OK(dp_optim_step(&optim, r.params, r.grads, &options, NULL, NULL));
        }
        const float *const values = ways[w] == DP_WEIGHTS_BF16 ? optim.master : r.params;
        double mean = 0.0;
        for (size_t i = 0; i < n; i++) {
            mean += (double)values[i] / (double)n;
        }
        CHECK(fabs(mean - (1.0 - 1e-3)) < 5e-5); /* by chance: deviation 2e-3 / sqrt(75,000) */
        dp_optim_close(&optim);
        rig_close(&r);
    }
}

/* Steps of zero, so that only the rounding acts: the index is the place in the whole arena, for
 * every owner. */
static void chance_is_drawn_by_the_place_in_the_arena(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    const size_t n = r.model.n_elements;
    float *const expected = malloc(n * sizeof *expected);
    const dp_optim_options still = {.beta1 = 0.9F, .beta2 = 0.95F, .eps = 1e-6F};
    for (size_t i = 0; i < n; i++) {
        r.params[i] = 1.001F; /* a quarter of the way from one bf16 to the next */
        expected[i] = 1.001F;
    }
    dp_optim optim = open_optim(&r, DP_OPTIM_ADAMW, DP_WEIGHTS_BF16_SR);
    CHECK_OK(dp_optim_step(&optim, r.params, r.grads, &still, NULL, NULL));
    dp_stochastic_bf16(expected, n, 0, &(dp_stochastic_key){.seed = 5, .step = 1});
    assert_memory_equal(r.params, expected, n * sizeof *expected);
    free(expected);
    dp_optim_close(&optim);
    rig_close(&r);
}

static void masters_follow_what_moved_the_weights_from_outside(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    dp_optim optim = open_optim(&r, DP_OPTIM_ADAMW, DP_WEIGHTS_BF16);
    step(&optim, &r, 1, NULL);
    const float kept = optim.master[1];
    r.params[0] = 0.7654321F;
    dp_optim_options still = rig_options;
    still.lr = 0.0F;
    CHECK_OK(dp_optim_step(&optim, r.params, r.grads, &still, NULL, NULL));
    CHECK(optim.master[0] == 0.7654321F && optim.master[1] == kept);
    CHECK(is_bfloat(r.params[0]));
    dp_optim_close(&optim);
    rig_close(&r);
}

static void init_without_memory_leaks_nothing_of_any_kind(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    const size_t before = dp_alloc_live_bytes();
    for (size_t k = 0; k < RIG_KINDS; k++) {
        const dp_optim_setup setup = {
            .model = &r.model, .kind = rig_kinds[k], .weights = DP_WEIGHTS_BF16};
        dp_status status = DP_NOMEM;
        for (size_t n = 1; status != DP_OK; n++) {
            dp_optim optim = {0};
            assert_in_range(n, 1, 20);
            dp_alloc_fail_after(n);
            status = dp_optim_init(&optim, &setup);
            dp_alloc_fail_after(0);
            CHECK(status == DP_OK || (status == DP_NOMEM && optim.m == NULL));
            dp_optim_close(&optim);
            assert_int_equal(dp_alloc_live_bytes(), before);
        }
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_change_no_bits_of_any_kind),
        cmocka_unit_test(parts_change_no_bits_of_any_kind),
        cmocka_unit_test(an_unknown_combination_is_refused),
        cmocka_unit_test(a_kept_state_goes_on_with_the_same_bits),
        cmocka_unit_test(a_loss_scale_that_is_a_power_of_two_changes_no_bits),
        cmocka_unit_test(a_bad_gradient_changes_nothing_and_padding_stays_zero),
        cmocka_unit_test(weights_in_bf16_are_bf16_after_every_step),
        cmocka_unit_test(small_steps_add_up_in_masters_and_by_chance),
        cmocka_unit_test(chance_is_drawn_by_the_place_in_the_arena),
        cmocka_unit_test(masters_follow_what_moved_the_weights_from_outside),
        cmocka_unit_test(init_without_memory_leaks_nothing_of_any_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
