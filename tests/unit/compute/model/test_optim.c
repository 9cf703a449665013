/* THREADS_TEST */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "compute/cpu/ops.h"
#include "compute/model/optim.h"

struct fixture {
    dp_model model;
    dp_optim adamw;
    float *params;
    float *grads;
    size_t n;
};

static void open_fixture(struct fixture *f)
{
    const dp_model_config config = {
        .layers = 2, .width = 63, .heads = 3, .context = 9, .vocab = 300};
    assert_int_equal(dp_model_open(&f->model, &config, NULL), DP_OK);
    assert_int_equal(dp_optim_init(&f->adamw, &(dp_optim_setup){.model = &f->model}), DP_OK);
    f->n = f->model.n_elements;
    f->params = calloc(f->n, sizeof(float));
    f->grads = calloc(f->n, sizeof(float));
    dp_model_init(&f->model, 1, f->params);
}

static void close_fixture(struct fixture *f)
{
    free(f->params);
    free(f->grads);
    dp_optim_close(&f->adamw);
    dp_model_close(&f->model);
}

/* Gradients in the elements of the tensors only, as the engine leaves them. */
static void draw_grads(struct fixture *f, uint64_t seed)
{
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t t = 0; t < f->model.n_tensors; t++) {
        for (size_t i = 0; i < f->model.tensors[t].elements; i++) {
            f->grads[f->model.tensors[t].offset + i] =
                (float)dp_rng_below(&rng, 2001) / 1000.0F - 1.0F;
        }
    }
}

static const dp_optim_options options = {
    .lr = 1e-2F, .beta1 = 0.9F, .beta2 = 0.95F, .eps = 1e-8F, .decay = 0.1F};

static bool decays(const dp_model *model, size_t element)
{
    bool decay = false;
    for (size_t t = 0; t < model->n_tensors && model->tensors[t].offset <= element; t++) {
        decay = model->tensors[t].decay;
    }
    return decay;
}

static void check_three_steps(double clip)
{
    struct fixture f;
    open_fixture(&f);
    double *p = calloc(3 * f.n, sizeof *p);
    double *m = p + f.n;
    double *v = m + f.n;
    dp_optim_options with_clip = options;
    with_clip.clip = (float)clip;
    for (size_t i = 0; i < f.n; i++) {
        p[i] = (double)f.params[i];
    }
    for (int t = 1; t <= 3; t++) {
        double norm = 0.0;
        double squares = 0.0;
        draw_grads(&f, (uint64_t)t);
        assert_int_equal(dp_optim_step(&f.adamw, f.params, f.grads, &with_clip, NULL, &norm),
                         DP_OK);
        for (size_t i = 0; i < f.n; i++) {
            squares += (double)f.grads[i] * (double)f.grads[i];
        }
        assert_true(fabs(norm - sqrt(squares)) <= 1e-6 * norm);
        for (size_t i = 0; i < f.n; i++) {
            const double factor = clip > 0.0 && norm > clip ? clip / norm : 1.0;
            const double g = factor * (double)f.grads[i];
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.95 * v[i] + 0.05 * g * g;
            const double step =
                m[i] / (1.0 - pow(0.9, t)) / (sqrt(v[i] / (1.0 - pow(0.95, t))) + 1e-8);
            p[i] -= 1e-2 * (step + (decays(&f.model, i) ? 0.1 * p[i] : 0.0));
            if (!(fabs((double)f.params[i] - p[i]) <= 2e-6)) {
                fail_msg("step %d element %zu: %.9g, right %.9g", t, i, (double)f.params[i], p[i]);
            }
        }
    }
    free(p);
    close_fixture(&f);
}

static void three_steps_equal_the_paper_in_float64(void **state)
{
    (void)state;
    check_three_steps(0.0);
}

static void clipping_scales_the_whole_gradient(void **state)
{
    (void)state;
    check_three_steps(0.5);
    check_three_steps(1e9);
}

static void every_table_gives_nearly_the_same_step(void **state)
{
    (void)state;
    const dp_adamw_terms terms = {1e-2F, 0.9F, 0.95F, 1e-8F, 1e-3F, 20.0F, 0.5F};
    enum { N = 37 };
    float right[3 * N];
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        float x[3 * N];
        float g[N];
        for (size_t i = 0; i < N; i++) {
            x[i] = (float)i * 0.1F;
            x[N + i] = (float)i * 0.01F - 0.2F;
            x[2 * N + i] = (float)i * 0.001F;
            g[i] = 1.0F - (float)i * 0.05F;
        }
        dp_ops_at(o)->adamw(&terms, x, x + N, x + 2 * N, g, N);
        if (o == 0) {
            memcpy(right, x, sizeof x);
        }
        for (size_t i = 0; i < (size_t)3 * N; i++) {
            assert_true(fabsf(x[i] - right[i]) <= 1e-6F);
        }
    }
}

static void a_gradient_that_is_not_finite_changes_nothing(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    draw_grads(&f, 5);
    float *before = calloc(f.n, sizeof *before);
    memcpy(before, f.params, f.n * sizeof *before);
    const float bad[] = {NAN, INFINITY, -INFINITY, 3e38F};
    for (size_t b = 0; b < 4; b++) {
        for (size_t at = 0; at < f.n; at += f.n / 3 - 1) {
            const float kept = f.grads[at];
            double norm = 0.0;
            f.grads[at] = bad[b];
            assert_int_equal(dp_optim_step(&f.adamw, f.params, f.grads, &options, NULL, &norm),
                             DP_DIVERGED);
            assert_false(norm <= 1e18);
            f.grads[at] = kept;
        }
    }
    assert_memory_equal(before, f.params, f.n * sizeof *before);
    assert_int_equal(f.adamw.steps, 0);
    for (size_t i = 0; i < f.n; i++) {
        assert_true(f.adamw.m[i] == 0.0F && f.adamw.v[i] == 0.0F);
    }
    free(before);
    close_fixture(&f);
}

static void threads_do_not_change_the_bits(void **state)
{
    (void)state;
    struct fixture one;
    open_fixture(&one);
    draw_grads(&one, 6);
    double norm = 0.0;
    assert_int_equal(dp_optim_step(&one.adamw, one.params, one.grads, &options, NULL, &norm),
                     DP_OK);
    for (size_t threads = 2; threads <= 3; threads++) {
        struct fixture many;
        dp_pool *pool = NULL;
        double other = 0.0;
        assert_int_equal(dp_pool_open(&pool, threads), DP_OK);
        open_fixture(&many);
        draw_grads(&many, 6);
        assert_int_equal(
            dp_optim_step(&many.adamw, many.params, many.grads, &options, pool, &other), DP_OK);
        assert_true(norm == other);
        assert_memory_equal(one.params, many.params, one.n * sizeof(float));
        close_fixture(&many);
        dp_pool_close(pool);
    }
    close_fixture(&one);
}

static void padding_stays_zero(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    draw_grads(&f, 7);
    assert_int_equal(dp_optim_step(&f.adamw, f.params, f.grads, &options, NULL, NULL), DP_OK);
    for (size_t t = 0; t + 1 < f.model.n_tensors; t++) {
        for (size_t i = f.model.tensors[t].offset + f.model.tensors[t].elements;
             i < f.model.tensors[t + 1].offset; i++) {
            assert_true(f.params[i] == 0.0F && f.adamw.m[i] == 0.0F && f.adamw.v[i] == 0.0F);
        }
    }
    close_fixture(&f);
}

static void reset_starts_over(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    draw_grads(&f, 8);
    float *before = calloc(f.n, sizeof *before);
    float *once = calloc(f.n, sizeof *once);
    memcpy(before, f.params, f.n * sizeof *before);
    assert_int_equal(dp_optim_step(&f.adamw, f.params, f.grads, &options, NULL, NULL), DP_OK);
    memcpy(once, f.params, f.n * sizeof *once);
    dp_optim_reset(&f.adamw);
    memcpy(f.params, before, f.n * sizeof *before);
    assert_int_equal(dp_optim_step(&f.adamw, f.params, f.grads, &options, NULL, NULL), DP_OK);
    assert_memory_equal(once, f.params, f.n * sizeof *once);
    free(before);
    free(once);
    close_fixture(&f);
}

static void init_without_memory_leaks_nothing(void **state)
{
    (void)state;
    const dp_model_config config = {.layers = 1, .width = 8, .heads = 1, .context = 2, .vocab = 2};
    dp_model model;
    dp_optim adamw = {0};
    assert_int_equal(dp_model_open(&model, &config, NULL), DP_OK);
    const size_t before = dp_alloc_live_bytes();
    for (size_t n = 1; n <= 6; n++) {
        dp_alloc_fail_after(n);
        const dp_status status = dp_optim_init(&adamw, &(dp_optim_setup){.model = &model});
        dp_alloc_fail_after(0);
        assert_int_equal(status, DP_NOMEM);
        assert_null(adamw.m);
    }
    assert_int_equal(dp_alloc_live_bytes(), before);
    dp_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_steps_equal_the_paper_in_float64),
        cmocka_unit_test(clipping_scales_the_whole_gradient),
        cmocka_unit_test(every_table_gives_nearly_the_same_step),
        cmocka_unit_test(a_gradient_that_is_not_finite_changes_nothing),
        cmocka_unit_test(threads_do_not_change_the_bits),
        cmocka_unit_test(padding_stays_zero),
        cmocka_unit_test(reset_starts_over),
        cmocka_unit_test(init_without_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
