#include "compute/gpt_inside.h"

#include <string.h>

static const dp_layer_slot matrices[] = {DP_LAYER_QKV_W, DP_LAYER_OUT_W, DP_LAYER_FC_W,
                                         DP_LAYER_PROJ_W};
enum { N_MATRICES = sizeof matrices / sizeof matrices[0] };

/* Tasks: for each layer and matrix as it is and transposed, then the head twice. Only the backward pass needs the second. */
static void pack_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const size_t which = index / 2;
    const bool transposed = index % 2 == 1;
    if (transposed && !gpt->backward) {
        return;
    }
    const size_t layer = which / N_MATRICES;
    if (layer == gpt->model->config.layers) {
        const size_t c = gpt->model->config.width;
        const size_t v = gpt->model->config.vocab;
        if (transposed) {
            gpt->ops->pack(gpt->params, c, false, v, c, gpt->packed_head_t);
        } else {
            gpt->ops->pack(gpt->params, c, true, c, v, gpt->packed_head);
        }
        return;
    }
    const dp_layer_slot slot = matrices[which % N_MATRICES];
    const dp_tensor *tensor = &gpt->model->tensors[DP_SLOT_LAYERS + slot];
    const float *weight = dp_gpt_weight(gpt, layer, slot);
    if (transposed) {
        gpt->ops->pack(weight, tensor->shape[1], true, tensor->shape[1], tensor->shape[0],
                       gpt->layers[layer].packed_t[slot]);
    } else {
        gpt->ops->pack(weight, tensor->shape[1], false, tensor->shape[0], tensor->shape[1],
                       gpt->layers[layer].packed[slot]);
    }
}

dp_norm_rows dp_gpt_norm_rows(const dp_gpt *gpt, const float *x, const float *gain, float *mean,
                              float *rstd, dp_gpt_range range)
{
    const size_t c = gpt->model->config.width;
    return (dp_norm_rows){.rows = range.count,
                          .width = c,
                          .x = x + range.first * c,
                          .gain = gain,
                          .mean = mean + range.first,
                          .rstd = rstd + range.first};
}

dp_attention dp_gpt_attention(const dp_gpt *gpt, size_t task, size_t worker)
{
    const dp_gpt_layer *layer = &gpt->layers[gpt->layer];
    const size_t c = gpt->model->config.width;
    const size_t heads = gpt->model->config.heads;
    const size_t length = gpt->batch.length;
    const size_t row = task / heads;
    const size_t column = task % heads * gpt->head;
    const size_t qkv_at = row * length * 3 * c + column;
    const size_t out_at = row * length * c + column;
    return (dp_attention){
        .length = length,
        .head = gpt->head,
        .q = layer->qkv + qkv_at,
        .k = layer->qkv + qkv_at + c,
        .v = layer->qkv + qkv_at + 2 * c,
        .ld_qkv = 3 * c,
        .out = layer->att + out_at,
        .ld_out = c,
        .lse = layer->lse + task * length,
        .d_out = gpt->d_att + out_at,
        .dq = gpt->d_qkv + qkv_at,
        .dk = gpt->d_qkv + qkv_at + c,
        .dv = gpt->d_qkv + qkv_at + 2 * c,
        .scratch = dp_gpt_scratch(gpt, worker),
    };
}

/* x = wte[token] + wpe[position] for a slice. */
static void embed(const dp_gpt *gpt, dp_gpt_range range)
{
    const size_t c = gpt->model->config.width;
    const float *positions = gpt->params + gpt->model->tensors[DP_SLOT_WPE].offset;
    for (size_t i = range.first; i < range.first + range.count; i++) {
        float *x = gpt->layers[0].x + i * c;
        memcpy(x, gpt->params + gpt->batch.x[i] * c, c * sizeof *x);
        gpt->ops->add(positions + i % gpt->batch.length * c, x, c);
    }
}

/* out[first..][columns] = in * weight + bias (+ residual): one linear layer on a slice. */
static void linear(const dp_gpt *gpt, dp_layer_slot slot, const float *in, float *out,
                   const float *residual, dp_gpt_range range)
{
    const dp_tensor *tensor = &gpt->model->tensors[DP_SLOT_LAYERS + slot];
    const size_t from = tensor->shape[0];
    const size_t to = tensor->shape[1];
    gpt->ops->gemm(&(dp_gemm){
        .m = range.count,
        .n = to,
        .k = from,
        .a = in + range.first * from,
        .a_row = from,
        .a_depth = 1,
        .packed = gpt->layers[gpt->layer].packed[slot],
        .c = out + range.first * to,
        .ldc = to,
        .add = residual == NULL ? NULL : residual + range.first * to,
        .ld_add = to,
        .bias = dp_gpt_weight(gpt, gpt->layer, (dp_layer_slot)(slot + 1)),
    });
}

static void before_attention_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const dp_gpt_range range = dp_gpt_slice(gpt, index);
    const size_t l = gpt->layer;
    const dp_gpt_layer *layer = &gpt->layers[l];
    if (l == 0) {
        embed(gpt, range);
    }
    const dp_norm_rows norm = dp_gpt_norm_rows(gpt, layer->x, dp_gpt_weight(gpt, l, DP_LAYER_LN1_W),
                                               layer->mean1, layer->rstd1, range);
    gpt->ops->norm_forward(&norm, dp_gpt_weight(gpt, l, DP_LAYER_LN1_B),
                           gpt->norm1 + range.first * gpt->model->config.width);
    linear(gpt, DP_LAYER_QKV_W, gpt->norm1, layer->qkv, NULL, range);
}

static void attention_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    const dp_attention attention = dp_gpt_attention(gpt, index, worker);
    gpt->ops->attention_forward(&attention);
}

static void after_attention_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const dp_gpt_range range = dp_gpt_slice(gpt, index);
    const size_t first = range.first;
    const size_t count = range.count;
    const size_t c = gpt->model->config.width;
    const size_t l = gpt->layer;
    const dp_gpt_layer *layer = &gpt->layers[l];
    float *next = l + 1 < gpt->model->config.layers ? layer[1].x : gpt->last;
    linear(gpt, DP_LAYER_OUT_W, layer->att, layer->middle, layer->x, range);
    const dp_norm_rows norm =
        dp_gpt_norm_rows(gpt, layer->middle, dp_gpt_weight(gpt, l, DP_LAYER_LN2_W), layer->mean2,
                         layer->rstd2, range);
    gpt->ops->norm_forward(&norm, dp_gpt_weight(gpt, l, DP_LAYER_LN2_B), gpt->norm2 + first * c);
    linear(gpt, DP_LAYER_FC_W, gpt->norm2, layer->hidden, NULL, range);
    gpt->ops->activations[DP_GELU].forward(layer->hidden + first * 4 * c, count, 4 * c,
                                           gpt->gelu + first * 4 * c);
    linear(gpt, DP_LAYER_PROJ_W, gpt->gelu, next, layer->middle, range);
}

void dp_gpt_forward(dp_gpt *gpt)
{
    const size_t slices = dp_gpt_slices(gpt->tokens, gpt->slice);
    const size_t heads = gpt->batch.rows * gpt->model->config.heads;
    const size_t packs = 2 * (N_MATRICES * (size_t)gpt->model->config.layers + 1);
    dp_pool_run(gpt->pool, packs, pack_task, gpt);
    for (size_t layer = 0; layer < gpt->model->config.layers; layer++) {
        gpt->layer = layer;
        dp_pool_run(gpt->pool, slices, before_attention_task, gpt);
        dp_pool_run(gpt->pool, heads, attention_task, gpt);
        dp_pool_run(gpt->pool, slices, after_attention_task, gpt);
    }
}
