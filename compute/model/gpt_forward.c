#include "compute/model/gpt_adapters.h"
#include "compute/model/gpt_decode_inside.h"

#include <string.h>

size_t dp_gpt_attention_tasks(const dp_gpt *gpt)
{
    return gpt->batch.rows * gpt->sizes.kv_heads;
}

dp_attention dp_gpt_attention(const dp_gpt *gpt, size_t task, size_t worker)
{
    const dp_gpt_layer *layer = &gpt->layers[gpt->layer];
    const size_t length = gpt->batch.length;
    const size_t groups = gpt->sizes.heads / gpt->sizes.kv_heads;
    const size_t row = task / gpt->sizes.kv_heads * length;
    const size_t q = task % gpt->sizes.kv_heads * groups * gpt->head;
    const size_t k = gpt->sizes.query + task % gpt->sizes.kv_heads * gpt->head;
    const size_t v = k + gpt->sizes.kv_heads * gpt->head;
    const size_t qkv_at = row * gpt->sizes.qkv;
    const size_t out_at = row * gpt->sizes.query + q;
    const float *const qk = layer->qk != NULL ? layer->qk : layer->qkv;
    if (gpt->cache != NULL) {
        const float *const kept = dp_gpt_kept(gpt, 0) + task * gpt->head;
        return (dp_attention){.length = gpt->past + length,
                              .past = gpt->past,
                              .head = gpt->head,
                              .groups = groups,
                              .window = dp_gpt_traits(gpt).window,
                              .scale = gpt->scores_scale,
                              .cap = gpt->scores_cap,
                              .q = qk + q,
                              .ld_q = gpt->sizes.qkv,
                              .k = kept,
                              .v = kept + gpt->sizes.kv_heads * gpt->head,
                              .ld_qkv = 2 * gpt->sizes.kv_heads * gpt->head,
                              .out = layer->att + q,
                              .ld_out = gpt->sizes.query,
                              .lse = layer->lse + task * groups * length,
                              .scratch = dp_gpt_scratch(gpt, worker)};
    }
    return (dp_attention){
        .length = length,
        .positions = gpt->positions == NULL ? NULL : gpt->positions + row,
        .head = gpt->head,
        .groups = groups,
        .window = dp_gpt_traits(gpt).window,
        .scale = gpt->scores_scale,
        .cap = gpt->scores_cap,
        .q = qk + qkv_at + q,
        .k = qk + qkv_at + k,
        .v = layer->qkv + qkv_at + v,
        .ld_qkv = gpt->sizes.qkv,
        .out = layer->att + out_at,
        .ld_out = gpt->sizes.query,
        .lse = layer->lse + task * groups * length,
        .d_out = gpt->d_att + out_at,
        .dq = gpt->d_qkv + qkv_at + q,
        .dk = gpt->d_qkv + qkv_at + k,
        .dv = gpt->d_qkv + qkv_at + v,
        .scratch = dp_gpt_scratch(gpt, worker),
    };
}

/* The same of a base; room for a row. */
static void embed_base(const dp_gpt *gpt, dp_gpt_range range, float *room)
{
    const size_t c = gpt->sizes.width;
    const dp_tensor *const table = dp_model_tensor(gpt->model, 0, DP_SLOT_EMBED);
    const dp_tensor *const positions = dp_model_tensor(gpt->model, 0, DP_SLOT_POSITIONS);
    for (size_t i = range.first; i < range.first + range.count; i++) {
        float *const x = gpt->layers[0].x + i * c;
        dp_base_weights_row(gpt->base, table, dp_token_of(gpt->batch.x[i]), 0, c, x);
        if (positions != NULL) {
            dp_base_weights_row(gpt->base, positions, dp_gpt_position(gpt, i), 0, c, room);
            gpt->ops->add(room, x, c);
        }
    }
}

void dp_gpt_embed(const dp_gpt *gpt, dp_gpt_range range, size_t worker)
{
    const size_t c = gpt->sizes.width;
    if (dp_gpt_adapts(gpt)) {
        embed_base(gpt, range, dp_gpt_scratch(gpt, worker));
        return;
    }
    const float *const table = dp_gpt_weight(gpt, 0, DP_SLOT_EMBED);
    const float *const positions = dp_gpt_weight(gpt, 0, DP_SLOT_POSITIONS);
    for (size_t i = range.first; i < range.first + range.count; i++) {
        float *x = gpt->layers[0].x + i * c;
        memcpy(x, table + dp_token_of(gpt->batch.x[i]) * c, c * sizeof *x);
        for (size_t j = 0; j < c && gpt->embed_scale != 1.0F; j++) {
            x[j] *= gpt->embed_scale;
        }
        if (positions != NULL) {
            gpt->ops->add(positions + dp_gpt_position(gpt, i) * c, x, c);
        }
    }
}

void dp_gpt_linear(const dp_gpt *gpt, dp_slot slot, const float *in, float *out,
                   const float *residual, dp_gpt_range range, dp_gpt_range columns)
{
    const dp_tensor *tensor = dp_model_tensor(gpt->model, gpt->layer, slot);
    const float *const bias = dp_gpt_weight(gpt, gpt->layer, (dp_slot)(slot + 1));
    const size_t from = tensor->shape[0];
    const size_t to = tensor->shape[1];
    const size_t n = columns.count == 0 ? to : columns.count;
    gpt->ops->gemm(&(dp_gemm){
        .m = range.count,
        .n = n,
        .k = from,
        .a = in + range.first * from,
        .a_row = from,
        .a_depth = 1,
        .packed =
            gpt->layers[gpt->layer].packed[slot] + dp_packed_floats(gpt->ops, from, columns.first),
        .c = out + range.first * to + columns.first,
        .ldc = to,
        .add = residual == NULL ? NULL : residual + range.first * to + columns.first,
        .ld_add = to,
        .bias = bias == NULL ? NULL : bias + columns.first,
        .begin = dp_gpt_begin(range.first, gpt->tokens, n),
    });
    if (dp_gpt_adapts(gpt) && columns.count == 0) {
        dp_gpt_adapters_forward(gpt, slot, in, out, range);
    }
}

/* On a slice. */
static void linear(const dp_gpt *gpt, dp_slot slot, const float *in, float *out,
                   const float *residual, dp_gpt_range range)
{
    dp_gpt_linear(gpt, slot, in, out, residual, range, (dp_gpt_range){0, 0});
}

/* y = residual + the output of a part on a slice, normed first where the model does so. out: room
 * for it before that norm; NULL: there is none. */
static void add_part(const dp_gpt *gpt, dp_slot slot, const float *in, float *out,
                     dp_gpt_place place, const float *residual, float *y, dp_gpt_range range)
{
    const size_t c = gpt->sizes.width;
    if (out == NULL) {
        linear(gpt, slot, in, y, residual, range);
        return;
    }
    linear(gpt, slot, in, out, NULL, range);
    dp_gpt_norm_forward(gpt, place, range, y);
    gpt->ops->add(residual + range.first * c, y + range.first * c, range.count * c);
}

void dp_gpt_norm_before(const dp_gpt *gpt, dp_gpt_place place, dp_gpt_range range, float *y)
{
    if (dp_model_has(gpt->model, DP_HAS_NORMS_BEFORE)) {
        dp_gpt_norm_forward(gpt, place, range, y);
    }
}

static void before_attention_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    const dp_gpt_range range = dp_gpt_slice(gpt, index);
    const dp_gpt_layer *layer = &gpt->layers[gpt->layer];
    if (gpt->layer == 0) {
        dp_gpt_embed(gpt, range, worker);
    }
    dp_gpt_norm_before(gpt, DP_GPT_NORM1, range, layer->norm1);
    linear(gpt, DP_LAYER_QKV_W, dp_gpt_input1(gpt), layer->qkv, NULL, range);
    dp_gpt_qk_forward(gpt, range);
    dp_gpt_keep(gpt, range);
}

void dp_gpt_attention_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    const dp_attention attention = dp_gpt_attention(gpt, index, worker);
    gpt->ops->attention_forward(&attention);
}

/* Up to the activation, whose output is the last that backward asks for. */
static void to_activation(const dp_gpt *gpt, dp_gpt_range range)
{
    const dp_gpt_layer *layer = &gpt->layers[gpt->layer];
    const dp_gpt_sizes *sizes = &gpt->sizes;
    add_part(gpt, DP_LAYER_OUT_W, layer->att, layer->out, DP_GPT_NORM_OUT, layer->x, layer->middle,
             range);
    dp_gpt_norm_before(gpt, DP_GPT_NORM2, range, layer->norm2);
    linear(gpt, DP_LAYER_UP_W, dp_gpt_input2(gpt), layer->hidden, NULL, range);
    gpt->activation->forward(layer->hidden + range.first * sizes->up, range.count, sizes->hidden,
                             layer->act + range.first * sizes->hidden);
}

float *dp_gpt_next(const dp_gpt *gpt)
{
    return gpt->layer + 1 < gpt->model->config.layers ? gpt->layers[gpt->layer + 1].x : gpt->last;
}

static void after_attention_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const dp_gpt_range range = dp_gpt_slice(gpt, index);
    const dp_gpt_layer *layer = &gpt->layers[gpt->layer];
    to_activation(gpt, range);
    add_part(gpt, DP_LAYER_DOWN_W, layer->act, layer->down, DP_GPT_NORM_DOWN, layer->middle,
             dp_gpt_next(gpt), range);
}

void dp_gpt_forward(dp_gpt *gpt)
{
    const size_t slices = dp_gpt_slices(gpt->tokens, gpt->slice);
    dp_gpt_packs_check(gpt);
    for (size_t layer = 0; layer < gpt->model->config.layers; layer++) {
        gpt->layer = layer;
        dp_gpt_pack_layer(gpt, DP_GPT_ONWARD);
        if (dp_gpt_is_thin(gpt)) {
            dp_gpt_thin_layer(gpt);
            continue;
        }
        dp_pool_run(gpt->pool, slices, before_attention_task, gpt);
        dp_pool_run(gpt->pool, dp_gpt_attention_tasks(gpt), dp_gpt_attention_task, gpt);
        dp_pool_run(gpt->pool, slices, after_attention_task, gpt);
    }
}

static void qk_again_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    dp_gpt_qk_again(gpt, dp_gpt_slice(gpt, index));
}

static void to_activation_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const dp_gpt_range range = dp_gpt_slice(gpt, index);
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    to_activation(gpt, range);
    if (layer->down != NULL) { /* Its norm reads it backward, and rstd is of this layer then. */
        linear(gpt, DP_LAYER_DOWN_W, layer->act, layer->down, NULL, range);
        dp_gpt_norm_forward(gpt, DP_GPT_NORM_DOWN, range, gpt->d_down);
    }
}

void dp_gpt_layer_again(dp_gpt *gpt)
{
    const size_t slices = dp_gpt_slices(gpt->tokens, gpt->slice);
    switch (gpt->recompute) {
    case DP_RECOMPUTE_ATTENTION:
        if (gpt->layers[gpt->layer].qk != NULL) {
            dp_pool_run(gpt->pool, slices, qk_again_task, gpt);
        }
        dp_pool_run(gpt->pool, dp_gpt_attention_tasks(gpt), dp_gpt_attention_task, gpt);
        break;
    case DP_RECOMPUTE_LAYER:
        dp_gpt_pack_layer(gpt, DP_GPT_ONWARD);
        dp_pool_run(gpt->pool, slices, before_attention_task, gpt);
        dp_pool_run(gpt->pool, dp_gpt_attention_tasks(gpt), dp_gpt_attention_task, gpt);
        dp_pool_run(gpt->pool, slices, to_activation_task, gpt);
        break;
    case DP_RECOMPUTE_NOTHING:
    case DP_RECOMPUTE_NORMS:
    case DP_RECOMPUTE_STEPS:
        break;
    }
}
