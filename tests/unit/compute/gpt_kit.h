/* An engine with weights and tokens, and its comparison with the float64 model. For tests of
 * compute/gpt*.c. */
#ifndef DP_TESTS_GPT_KIT_H
#define DP_TESTS_GPT_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "compute/model/gpt_inside.h"
#include "tests/unit/compute/model64.h"

enum { TOKENS_MAX = 512 };

struct fixture {
    dp_model model;
    dp_pool *pool;
    dp_gpt *gpt;
    uint32_t x[TOKENS_MAX];
    uint32_t y[TOKENS_MAX];
};

/* Weights far larger than a fresh model's, so that no term of a gradient hides under rounding. */
static inline void fill_params(const dp_model *model, float *params)
{
    dp_model_init(model, 7, params);
    dp_rng rng;
    dp_rng_init(&rng, 8);
    for (size_t t = 0; t < model->n_tensors; t++) {
        const dp_tensor *tensor = &model->tensors[t];
        for (size_t i = 0; i < tensor->elements; i++) {
            const float noise = (float)dp_rng_below(&rng, 2001) / 1000.0F - 1.0F;
            params[tensor->offset + i] += 0.15F * noise;
        }
    }
}

static inline void open_fixture_at(struct fixture *f, const dp_model_config *config, size_t rows,
                                   size_t threads, const dp_ops *ops, dp_recompute recompute)
{
    assert_int_equal(dp_model_open(&f->model, config, NULL), DP_OK);
    assert_int_equal(dp_pool_open(&f->pool, threads), DP_OK);
    const dp_gpt_options options = {
        .rows_max = rows, .pool = f->pool, .recompute = recompute, .ops = ops};
    assert_int_equal(dp_gpt_open(&f->gpt, &f->model, &options), DP_OK);
    fill_params(&f->model, dp_gpt_params_to_write(f->gpt));
    dp_rng rng;
    dp_rng_init(&rng, 9);
    for (size_t i = 0; i < TOKENS_MAX; i++) {
        f->x[i] = (uint32_t)dp_rng_below(&rng, config->vocab);
        f->y[i] = (uint32_t)dp_rng_below(&rng, config->vocab);
    }
}

static inline void open_fixture(struct fixture *f, const dp_model_config *config, size_t rows,
                                size_t threads, const dp_ops *ops)
{
    open_fixture_at(f, config, rows, threads, ops, DP_RECOMPUTE_NORMS);
}

static inline void close_fixture(struct fixture *f)
{
    dp_gpt_close(f->gpt);
    dp_pool_close(f->pool);
    dp_model_close(&f->model);
}

static inline double *params_of(struct fixture *f)
{
    double *params = calloc(f->model.n_elements, sizeof *params);
    assert_non_null(params);
    for (size_t i = 0; i < f->model.n_elements; i++) {
        params[i] = (double)dp_gpt_params(f->gpt)[i];
    }
    return params;
}

static inline double largest_of(const float *x, size_t n)
{
    double largest = 0.0;
    for (size_t i = 0; i < n; i++) {
        assert_true(isfinite(x[i]));
        largest = fmax(largest, fabs((double)x[i]));
    }
    return largest;
}

/* Some elements of every tensor against central differences of the float64 model: no further off
 * than 1e-5 of the tensor's largest gradient. */
static inline void check_gradients(struct fixture *f, const dp_gpt_batch *batch, double scale)
{
    double *params = params_of(f);
    const float *grads = dp_gpt_grads(f->gpt);
    for (size_t t = 0; t < f->model.n_tensors; t++) {
        const dp_tensor *tensor = &f->model.tensors[t];
        const double size = largest_of(grads + tensor->offset, tensor->elements);
        for (size_t k = 0; k < 5; k++) {
            size_t at = tensor->offset + k * (tensor->elements - 1) / 4;
            if (tensor->slot == DP_SLOT_EMBED && k == 1) {
                at = tensor->offset + (size_t)batch->x[0] * tensor->shape[1];
            }
            const double step = 1e-5;
            const double kept = params[at];
            params[at] = kept + step;
            const double up = loss64(&f->model, params, batch);
            params[at] = kept - step;
            const double down = loss64(&f->model, params, batch);
            params[at] = kept;
            const double off = fabs(scale * (up - down) / (2.0 * step) - (double)grads[at]);
            if (!(off <= 1e-5 * size + 1e-6 * scale)) {
                fail_msg("%s: error %g of %g", tensor->name, off, size);
            }
        }
    }
    free(params);
}

static inline void check_shape(const dp_model_config *config, size_t rows, size_t length,
                               const dp_ops *ops)
{
    struct fixture f;
    open_fixture(&f, config, rows, 1, ops);
    const dp_gpt_batch batch = {f.x, f.y, rows, length};
    const double scale = 0.25;
    double loss = 0.0;
    assert_int_equal(dp_gpt_step(f.gpt, &batch, (float)scale, &loss), DP_OK);
    double *params = params_of(&f);
    const double right = loss64(&f.model, params, &batch);
    free(params);
    if (!(fabs(loss - right) <= 1e-5 * right)) {
        fail_msg("%s: loss %.9g, right %.9g", ops->name, loss, right);
    }
    check_gradients(&f, &batch, scale);
    close_fixture(&f);
}

/* Of the last position, for three lengths. */
static inline void check_logits(const dp_model_config *config, size_t first, size_t stride)
{
    struct fixture f;
    float logits[64];
    double right[64];
    assert_true(config->vocab <= 64);
    open_fixture(&f, config, 1, 1, dp_ops_best());
    double *params = params_of(&f);
    for (size_t i = 0; i < 3; i++) {
        const size_t length = first + i * stride;
        assert_int_equal(dp_gpt_logits(f.gpt, f.x, length, logits), DP_OK);
        row_loss64(&f.model, params, f.x, NULL, length, right);
        for (size_t v = 0; v < config->vocab; v++) {
            assert_true(fabs((double)logits[v] - right[v]) <= 2e-5);
        }
    }
    free(params);
    close_fixture(&f);
}

#endif
