/* Opening, checking and the calls; the buffers are cut in gpt_memory.c, the arithmetic is in the other gpt_*.c. */
#include "compute/gpt.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/gpt_inside.h"

enum {
    SLICE_LEAST = 24,     /* tokens; multiples of 24 are whole groups for every table */
    ZERO_FLOATS = 1 << 18 /* of one task */
};

static dp_status check_options(const dp_gpt_options *options)
{
    if (options->rows_max == 0 || (unsigned)options->recompute >= DP_RECOMPUTE_STEPS ||
        (unsigned)options->precision >= DP_PRECISIONS || (unsigned)options->packs >= DP_GPT_PACKS) {
        return DP_BADARG;
    }
    return options->rows_max > DP_GPT_ROWS_MAX ? DP_TOOBIG : DP_OK;
}

size_t dp_gpt_bytes(const dp_model *model, const dp_gpt_options *options)
{
    if (check_options(options) != DP_OK) {
        return 0;
    }
    dp_gpt gpt = dp_gpt_setup(model, options);
    const size_t floats = dp_gpt_carve(&gpt, NULL) + DP_GPT_ALIGN_FLOATS;
    return sizeof gpt + model->config.layers * sizeof *gpt.layers + floats * sizeof(float);
}

dp_status dp_gpt_open_with(dp_gpt **out, const dp_model *model, size_t rows_max, dp_pool *pool,
                           const dp_ops *ops)
{
    return dp_gpt_open(
        out, model,
        &(dp_gpt_options){
            .rows_max = rows_max, .pool = pool, .recompute = DP_RECOMPUTE_NORMS, .ops = ops});
}

dp_status dp_gpt_open(dp_gpt **out, const dp_model *model, const dp_gpt_options *options)
{
    DP_TRY(check_options(options));
    dp_gpt *gpt = dp_alloc(1, sizeof *gpt);
    if (gpt == NULL) {
        return DP_NOMEM;
    }
    *gpt = dp_gpt_setup(model, options);
    const size_t floats = dp_gpt_carve(gpt, NULL);
    gpt->layers = dp_alloc(model->config.layers, sizeof *gpt->layers);
    gpt->memory = dp_alloc(floats + DP_GPT_ALIGN_FLOATS, sizeof(float));
    if (gpt->layers == NULL || gpt->memory == NULL) {
        dp_gpt_close(gpt);
        return DP_NOMEM;
    }
    const size_t align = DP_GPT_ALIGN_FLOATS * sizeof(float);
    const size_t past = (uintptr_t)gpt->memory % align;
    const size_t carved =
        dp_gpt_carve(gpt, (float *)gpt->memory + (align - past) % align / sizeof(float));
    dp_assert(carved == floats);
    if (gpt->angles != NULL) {
        dp_rope_angles((float)model->config.rope_theta, gpt->head, model->config.context,
                       gpt->angles);
    }
    *out = gpt;
    return DP_OK;
}

void dp_gpt_close(dp_gpt *gpt)
{
    if (gpt == NULL) {
        return;
    }
    dp_free(gpt->memory);
    dp_free(gpt->layers);
    dp_free(gpt);
}

const dp_model *dp_gpt_model(const dp_gpt *gpt)
{
    return gpt->model;
}

const float *dp_gpt_params(const dp_gpt *gpt)
{
    return gpt->params;
}

float *dp_gpt_params_to_write(dp_gpt *gpt)
{
    gpt->weights = gpt->params;
    dp_gpt_packs_stale(gpt);
    return gpt->params;
}

void dp_gpt_look_at(dp_gpt *gpt, const float *params)
{
    const float *const wanted = params != NULL ? params : gpt->params;
    if (gpt->weights != wanted) {
        gpt->weights = wanted;
        dp_gpt_packs_stale(gpt);
    }
}

float *dp_gpt_grads(dp_gpt *gpt)
{
    return gpt->grads;
}

/* A piece of the gradients: one thread alone would hold up the others for as long as memory takes. */
static void zero_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const size_t first = index * ZERO_FLOATS;
    const size_t left = gpt->model->n_elements - first;
    memset(gpt->grads + first, 0, (left < ZERO_FLOATS ? left : ZERO_FLOATS) * sizeof *gpt->grads);
}

void dp_gpt_zero_grads(dp_gpt *gpt)
{
    const size_t pieces = (gpt->model->n_elements + ZERO_FLOATS - 1) / ZERO_FLOATS;
    dp_pool_run(gpt->pool, pieces, zero_task, gpt);
}

static dp_status check_tokens(const dp_gpt *gpt, const uint32_t *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] >= gpt->model->config.vocab) {
            return DP_BADARG;
        }
    }
    return DP_OK;
}

static dp_status take_batch(dp_gpt *gpt, const dp_gpt_batch *batch)
{
    if (batch->rows == 0 || batch->rows > gpt->rows_max || batch->length == 0 ||
        batch->length > gpt->model->config.context) {
        return DP_BADARG;
    }
    gpt->batch = *batch;
    gpt->tokens = batch->rows * batch->length;
    /* Slices only share out work: no sum runs over them, so their size may follow the number of threads. */
    const size_t shares = 2 * dp_pool_threads(gpt->pool) * SLICE_LEAST;
    const size_t share = (gpt->tokens + shares - 1) / shares * SLICE_LEAST;
    gpt->slice = share < SLICE_LEAST         ? SLICE_LEAST
                 : share > DP_GPT_SLICE_MOST ? DP_GPT_SLICE_MOST
                                             : share;
    return check_tokens(gpt, batch->x, gpt->tokens);
}

static dp_status sum_losses(const dp_gpt *gpt, double *loss_sum)
{
    double sum = 0.0;
    for (size_t i = 0; i < gpt->tokens; i++) {
        sum += (double)gpt->losses[i];
    }
    if (!isfinite(sum)) {
        return DP_DIVERGED;
    }
    *loss_sum = sum;
    return DP_OK;
}

void dp_gpt_on_final(dp_gpt *gpt, dp_gpt_final final, void *context)
{
    gpt->final = final;
    gpt->final_context = context;
}

static dp_status step(dp_gpt *gpt, const dp_gpt_batch *batch, float scale, double *loss_sum)
{
    DP_TRY(take_batch(gpt, batch));
    DP_TRY(check_tokens(gpt, batch->y, gpt->tokens));
    if (!(scale > 0.0F) || !isfinite(scale)) {
        return DP_BADARG;
    }
    dp_gpt_look_at(gpt, NULL);
    gpt->scale = scale;
    gpt->backward = true;
    dp_gpt_forward(gpt);
    dp_gpt_head(gpt);
    dp_gpt_backward(gpt);
    return sum_losses(gpt, loss_sum);
}

dp_status dp_gpt_step(dp_gpt *gpt, const dp_gpt_batch *batch, float scale, double *loss_sum)
{
    const dp_status status = step(gpt, batch, scale, loss_sum);
    gpt->final = NULL;
    return status;
}

dp_status dp_gpt_loss(dp_gpt *gpt, const dp_gpt_batch *batch, double *loss_sum)
{
    DP_TRY(take_batch(gpt, batch));
    DP_TRY(check_tokens(gpt, batch->y, gpt->tokens));
    gpt->scale = 0.0F;
    gpt->backward = false;
    dp_gpt_forward(gpt);
    dp_gpt_head(gpt);
    return sum_losses(gpt, loss_sum);
}

dp_status dp_gpt_logits(dp_gpt *gpt, const uint32_t *tokens, size_t length, float *logits)
{
    const dp_gpt_batch batch = {.x = tokens, .rows = 1, .length = length};
    DP_TRY(take_batch(gpt, &batch));
    gpt->backward = false;
    dp_gpt_forward(gpt);
    dp_gpt_head_last(gpt, logits);
    for (size_t i = 0; i < gpt->model->config.vocab; i++) {
        if (!isfinite(logits[i])) {
            return DP_DIVERGED;
        }
    }
    return DP_OK;
}
