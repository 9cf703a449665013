/* Opening, checking and the calls; the arithmetic is in gpt_forward.c, gpt_head.c and gpt_backward.c. */
#include "compute/gpt.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/gpt_inside.h"

enum {
    ALIGN_FLOATS = 16,             /* 64 bytes: a cache line and the widest vector */
    SLICE_LEAST = 24,              /* tokens; multiples of 24 are whole groups for every table */
    SLICE_MOST = 120,              /* its rows of the widest activation stay in a 2 MiB cache */
    HEAD_FLOATS = 4 * 1024 * 1024, /* logits that live at once, unless one slice needs more */
    HEAD_TOKENS_LEAST = 2 * SLICE_MOST /* whatever the vocabulary: products need rows */
};

/* Hands out pieces of one block; with base NULL it only counts. */
struct carver {
    float *base;
    size_t used;
};

static float *carve(struct carver *carver, size_t floats)
{
    float *piece = carver->base == NULL ? NULL : carver->base + carver->used;
    carver->used += (floats + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
    return piece;
}

static void carve_layer(const dp_gpt *gpt, struct carver *carver, dp_gpt_layer *layer)
{
    const size_t n = gpt->rows_max * gpt->model->config.context;
    const size_t c = gpt->model->config.width;
    *layer = (dp_gpt_layer){
        .x = carve(carver, n * c),
        .middle = carve(carver, n * c),
        .qkv = carve(carver, n * 3 * c),
        .att = carve(carver, n * c),
        .hidden = carve(carver, n * 4 * c),
        .lse = carve(carver, n * gpt->model->config.heads),
        .mean1 = carve(carver, n),
        .rstd1 = carve(carver, n),
        .mean2 = carve(carver, n),
        .rstd2 = carve(carver, n),
    };
    for (size_t slot = 0; slot < DP_LAYER_TENSORS; slot++) {
        const dp_tensor *tensor = &gpt->model->tensors[DP_SLOT_LAYERS + slot];
        if (tensor->n_dims == 2) {
            layer->packed[slot] =
                carve(carver, dp_packed_floats(gpt->ops, tensor->shape[0], tensor->shape[1]));
            layer->packed_t[slot] =
                carve(carver, dp_packed_floats(gpt->ops, tensor->shape[1], tensor->shape[0]));
        }
    }
}

/* Sets every buffer of gpt, and those of its layers unless layers is NULL. Needs model, ops, pool and rows_max. */
static void carve_all(dp_gpt *gpt, struct carver *carver)
{
    const dp_model_config *config = &gpt->model->config;
    const size_t n = gpt->rows_max * config->context;
    const size_t c = config->width;
    gpt->head = c / config->heads;
    gpt->head_tokens = HEAD_FLOATS / config->vocab;
    gpt->head_tokens = gpt->head_tokens < HEAD_TOKENS_LEAST ? HEAD_TOKENS_LEAST : gpt->head_tokens;
    gpt->head_tokens = gpt->head_tokens > n ? n : gpt->head_tokens;
    const size_t attention = dp_attention_scratch(config->context, gpt->head);
    gpt->scratch_size = attention > DP_OPS_TILE_SCRATCH ? attention : DP_OPS_TILE_SCRATCH;
    gpt->scratch_size = (gpt->scratch_size + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;

    gpt->params = carve(carver, gpt->model->n_elements);
    gpt->grads = carve(carver, gpt->model->n_elements);
    for (size_t layer = 0; layer < config->layers; layer++) {
        dp_gpt_layer unused;
        carve_layer(gpt, carver, gpt->layers == NULL ? &unused : &gpt->layers[layer]);
    }
    gpt->last = carve(carver, n * c);
    gpt->meanf = carve(carver, n);
    gpt->rstdf = carve(carver, n);
    gpt->packed_head = carve(carver, dp_packed_floats(gpt->ops, c, config->vocab));
    gpt->packed_head_t = carve(carver, dp_packed_floats(gpt->ops, config->vocab, c));
    gpt->norm1 = carve(carver, n * c);
    gpt->norm2 = carve(carver, n * c);
    gpt->gelu = carve(carver, n * 4 * c);
    gpt->logits = carve(carver, gpt->head_tokens * config->vocab);
    gpt->losses = carve(carver, n);
    gpt->dx = carve(carver, n * c);
    gpt->dx_next = carve(carver, n * c);
    gpt->d_middle = carve(carver, n * c);
    gpt->d_att = carve(carver, n * c);
    gpt->d_norm1 = carve(carver, n * c);
    gpt->d_norm2 = carve(carver, n * c);
    gpt->d_qkv = carve(carver, n * 3 * c);
    gpt->d_hidden = carve(carver, n * 4 * c);
    gpt->scratch = carve(carver, dp_pool_threads(gpt->pool) * gpt->scratch_size);
}

static dp_gpt gpt_of(const dp_model *model, size_t rows_max, dp_pool *pool)
{
    return (dp_gpt){.model = model, .ops = dp_ops_best(), .pool = pool, .rows_max = rows_max};
}

size_t dp_gpt_bytes(const dp_model *model, size_t rows_max, const dp_pool *pool)
{
    if (rows_max == 0 || rows_max > DP_GPT_ROWS_MAX) {
        return 0;
    }
    dp_gpt gpt = gpt_of(model, rows_max, NULL);
    struct carver carver = {0};
    carve_all(&gpt, &carver);
    const size_t more_scratch = (dp_pool_threads(pool) - 1) * gpt.scratch_size;
    return sizeof gpt + model->config.layers * sizeof *gpt.layers +
           (carver.used + more_scratch + ALIGN_FLOATS) * sizeof(float);
}

dp_status dp_gpt_open(dp_gpt **out, const dp_model *model, size_t rows_max, dp_pool *pool)
{
    return dp_gpt_open_with(out, model, rows_max, pool, dp_ops_best());
}

dp_status dp_gpt_open_with(dp_gpt **out, const dp_model *model, size_t rows_max, dp_pool *pool,
                           const dp_ops *ops)
{
    if (rows_max == 0) {
        return DP_BADARG;
    }
    if (rows_max > DP_GPT_ROWS_MAX) {
        return DP_TOOBIG;
    }
    dp_gpt *gpt = dp_alloc(1, sizeof *gpt);
    if (gpt == NULL) {
        return DP_NOMEM;
    }
    *gpt = gpt_of(model, rows_max, pool);
    gpt->ops = ops;
    struct carver carver = {0};
    carve_all(gpt, &carver);
    gpt->layers = dp_alloc(model->config.layers, sizeof *gpt->layers);
    gpt->memory = dp_alloc(carver.used + ALIGN_FLOATS, sizeof(float));
    if (gpt->layers == NULL || gpt->memory == NULL) {
        dp_gpt_close(gpt);
        return DP_NOMEM;
    }
    const size_t align = ALIGN_FLOATS * sizeof(float);
    const size_t past = (uintptr_t)gpt->memory % align;
    carver = (struct carver){.base = (float *)gpt->memory + (align - past) % align / sizeof(float)};
    carve_all(gpt, &carver);
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

float *dp_gpt_params(dp_gpt *gpt)
{
    return gpt->params;
}

float *dp_gpt_grads(dp_gpt *gpt)
{
    return gpt->grads;
}

void dp_gpt_zero_grads(dp_gpt *gpt)
{
    memset(gpt->grads, 0, gpt->model->n_elements * sizeof *gpt->grads);
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
    const size_t share = gpt->tokens / (2 * dp_pool_threads(gpt->pool)) / SLICE_LEAST * SLICE_LEAST;
    gpt->slice = share < SLICE_LEAST ? SLICE_LEAST : share > SLICE_MOST ? SLICE_MOST : share;
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

dp_status dp_gpt_step(dp_gpt *gpt, const dp_gpt_batch *batch, float scale, double *loss_sum)
{
    DP_TRY(take_batch(gpt, batch));
    DP_TRY(check_tokens(gpt, batch->y, gpt->tokens));
    if (!(scale > 0.0F) || !isfinite(scale)) {
        return DP_BADARG;
    }
    gpt->scale = scale;
    gpt->backward = true;
    dp_gpt_forward(gpt);
    dp_gpt_head(gpt);
    dp_gpt_backward(gpt);
    return sum_losses(gpt, loss_sum);
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
