#include "compute/model/gpt_adapters.h"
#include "compute/model/gpt_norm.h"

#include <string.h>

#include "base/assert.h"

enum { EMBED_COLUMNS = 64 }; /* of one task of the embeddings' gradient */

/* d_in [rows][ld] = d_out * weight' on a slice. */
static void linear_back(const dp_gpt *gpt, dp_slot slot, const float *d_out, float *d_in, size_t ld,
                        dp_gpt_range range)
{
    const dp_tensor *tensor = dp_model_tensor(gpt->model, gpt->layer, slot);
    const size_t from = tensor->shape[0];
    const size_t to = tensor->shape[1];
    gpt->ops->gemm(&(dp_gemm){.m = range.count,
                              .n = from,
                              .k = to,
                              .a = d_out + range.first * to,
                              .a_row = to,
                              .a_depth = 1,
                              .packed = gpt->layers[gpt->layer].packed_t[slot],
                              .c = d_in + range.first * ld,
                              .ldc = ld,
                              .begin = dp_gpt_begin(range.first, gpt->tokens, from)});
    if (dp_gpt_adapts(gpt)) {
        dp_gpt_adapters_back(gpt, slot, d_out, d_in, ld, range);
    }
}

/* True if norms are dropped one by one; recomputing a whole layer includes them. */
static bool norms_again(const dp_gpt *gpt)
{
    return gpt->recompute == DP_RECOMPUTE_NORMS || gpt->recompute == DP_RECOMPUTE_ATTENTION;
}

/* The gradients of the products of attention and of the feed-forward part: before the norm behind
 * them, where there is one. */
static const float *d_of_out(const dp_gpt *gpt)
{
    if (dp_model_has(gpt->model, DP_HAS_PARALLEL_PARTS)) {
        return gpt->dx; /* The feed-forward part does not read what attention adds. */
    }
    return gpt->d_out != NULL ? gpt->d_out : gpt->d_middle;
}

static const float *d_of_down(const dp_gpt *gpt)
{
    return gpt->d_down != NULL ? gpt->d_down : gpt->dx;
}

/* dx = residual + the gradient before the norm of a part, or without one its gradient dy. */
static void input_backward(const dp_gpt *gpt, dp_gpt_place place, dp_gpt_range range, float *dy,
                           const float *residual, float *dx)
{
    const size_t c = gpt->sizes.width;
    const size_t at = range.first * c;
    if (dp_model_has(gpt->model, DP_HAS_NORMS_BEFORE)) {
        dp_gpt_norm_backward(gpt, place, range, dy, residual, dx);
        return;
    }
    memcpy(dx + at, residual + at, range.count * c * sizeof *dx);
    gpt->ops->add(dy + at, dx + at, range.count * c);
}

/* The values of a norm before a part once more. */
static void input_again(const dp_gpt *gpt, dp_gpt_place place, dp_gpt_range range, float *y)
{
    if (dp_model_has(gpt->model, DP_HAS_NORMS_BEFORE)) {
        dp_gpt_norm_again(gpt, place, range, y);
    }
}

/* From behind the layer to the output of attention. Also fills the dropped values of norm2, act and
 * qk. */
static void to_attention_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const dp_gpt_range range = dp_gpt_slice(gpt, index);
    const dp_gpt_layer *layer = &gpt->layers[gpt->layer];
    const dp_gpt_sizes *sizes = &gpt->sizes;
    if (gpt->d_down != NULL) {
        dp_gpt_norm_backward(gpt, DP_GPT_NORM_DOWN, range, gpt->dx, NULL, gpt->d_down);
    }
    linear_back(gpt, DP_LAYER_DOWN_W, d_of_down(gpt), gpt->d_hidden, sizes->up, range);
    gpt->activation->backward(layer->hidden + range.first * sizes->up, range.count, sizes->hidden,
                              layer->act + range.first * sizes->hidden,
                              gpt->d_hidden + range.first * sizes->up);
    linear_back(gpt, DP_LAYER_UP_W, gpt->d_hidden, gpt->d_norm2, sizes->width, range);
    if (norms_again(gpt)) {
        input_again(gpt, DP_GPT_NORM2, range, layer->norm2);
        dp_gpt_qk_again(gpt, range);
    }
    input_backward(gpt, DP_GPT_NORM2, range, gpt->d_norm2, gpt->dx, gpt->d_middle);
    if (gpt->d_out != NULL) {
        dp_gpt_norm_backward(gpt, DP_GPT_NORM_OUT, range, gpt->d_middle, NULL, gpt->d_out);
    }
    linear_back(gpt, DP_LAYER_OUT_W, d_of_out(gpt), gpt->d_att, sizes->query, range);
}

static void attention_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    const dp_attention attention = dp_gpt_attention(gpt, index, worker);
    gpt->ops->attention_backward(&attention);
}

/* From the attention's input to before the layer. */
static void to_input_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const dp_gpt_range range = dp_gpt_slice(gpt, index);
    dp_gpt_qk_backward(gpt, range);
    linear_back(gpt, DP_LAYER_QKV_W, gpt->d_qkv, gpt->d_norm1, gpt->sizes.width, range);
    if (norms_again(gpt)) {
        input_again(gpt, DP_GPT_NORM1, range, gpt->layers[gpt->layer].norm1);
    }
    input_backward(gpt, DP_GPT_NORM1, range, gpt->d_norm1, gpt->d_middle, gpt->dx_next);
}

enum { N_PRODUCTS = 4 };

static void products_of(const dp_gpt *gpt, dp_gpt_product products[N_PRODUCTS])
{
    const dp_gpt_layer *layer = &gpt->layers[gpt->layer];
    const dp_gpt_sizes *s = &gpt->sizes;
    products[0] =
        (dp_gpt_product){DP_LAYER_DOWN_W, layer->act, d_of_down(gpt), s->hidden, s->width, 0};
    products[1] =
        (dp_gpt_product){DP_LAYER_UP_W, dp_gpt_input2(gpt), gpt->d_hidden, s->width, s->up, 0};
    products[2] =
        (dp_gpt_product){DP_LAYER_QKV_W, dp_gpt_input1(gpt), gpt->d_qkv, s->width, s->qkv, 0};
    products[3] =
        (dp_gpt_product){DP_LAYER_OUT_W, layer->att, d_of_out(gpt), s->query, s->width, 0};
    size_t tiles = 0;
    for (size_t i = 0; i < N_PRODUCTS; i++) {
        tiles += dp_gpt_row_tiles(gpt, products[i].from) * dp_gpt_tiles(products[i].to);
    }
    for (size_t i = 0; i < N_PRODUCTS; i++) {
        products[i].run = dp_gpt_run(gpt, tiles);
    }
}

static size_t runs_of(const dp_gpt_product *p)
{
    return (p->to + p->run - 1) / p->run;
}

static size_t end_of(size_t first, size_t step, size_t n)
{
    return n - first < step ? n : first + step;
}

static void product_run(const dp_gpt *gpt, const dp_gpt_product *p, size_t task, float *scratch)
{
    const size_t row = task / runs_of(p) * gpt->ops->tile_rows;
    const size_t column = task % runs_of(p) * p->run;
    gpt->ops->gemm_tn(&(dp_gemm_tn){
        .m = end_of(row, gpt->ops->tile_rows, p->from) - row,
        .n = end_of(column, p->run, p->to) - column,
        .k = gpt->tokens,
        .a = p->in + row,
        .lda = p->from,
        .b = p->d_out + column,
        .ldb = p->to,
        .c = dp_gpt_grad(gpt, gpt->layer, p->slot) + row * p->to + column,
        .ldc = p->to,
        .fresh = gpt->first_terms,
        .cold = dp_gpt_cold(gpt),
        .scratch = scratch,
    });
}

/* Gradients of the layer's vectors for a tile of columns: biases of each product, gains and biases
 * of the norms. */
static void vector_tile(const dp_gpt *gpt, const dp_gpt_product products[N_PRODUCTS], size_t tile)
{
    const size_t first = tile * DP_OPS_TILE;
    for (size_t i = 0; i < N_PRODUCTS; i++) {
        const dp_gpt_product *p = &products[i];
        float *const bias = dp_gpt_grad(gpt, gpt->layer, (dp_slot)(p->slot + 1));
        if (bias != NULL && first < p->to) {
            gpt->ops->add_columns(p->d_out, p->to, gpt->tokens, first,
                                  end_of(first, DP_OPS_TILE, p->to), bias);
        }
    }
    if (dp_model_has(gpt->model, DP_HAS_NORMS_BEFORE)) {
        dp_gpt_norm_grads(gpt, DP_GPT_NORM1, tile, gpt->d_norm1);
        dp_gpt_norm_grads(gpt, DP_GPT_NORM2, tile, gpt->d_norm2);
    }
    if (gpt->d_out != NULL) {
        dp_gpt_norm_grads(gpt, DP_GPT_NORM_OUT, tile, gpt->d_middle);
        dp_gpt_norm_grads(gpt, DP_GPT_NORM_DOWN, tile, gpt->dx);
    }
    dp_gpt_qk_grads(gpt, tile);
}

static void weights_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    dp_gpt_product products[N_PRODUCTS];
    products_of(gpt, products);
    for (size_t i = 0; i < N_PRODUCTS; i++) {
        const size_t tasks = dp_gpt_row_tiles(gpt, products[i].from) * runs_of(&products[i]);
        if (index < tasks) {
            product_run(gpt, &products[i], index, dp_gpt_scratch(gpt, worker));
            return;
        }
        index -= tasks;
    }
    vector_tile(gpt, products, index);
}

static size_t weights_tasks(const dp_gpt *gpt)
{
    dp_gpt_product products[N_PRODUCTS];
    products_of(gpt, products);
    size_t tasks = 0;
    size_t widest = gpt->sizes.query; /* of a vector */
    for (size_t i = 0; i < N_PRODUCTS; i++) {
        tasks += dp_gpt_row_tiles(gpt, products[i].from) * runs_of(&products[i]);
        widest = products[i].to > widest ? products[i].to : widest;
    }
    return tasks + dp_gpt_tiles(widest);
}

/* The gradients of the running layer. */
static void weights(dp_gpt *gpt)
{
    if (dp_gpt_adapts(gpt)) {
        dp_gpt_product products[N_PRODUCTS];
        products_of(gpt, products);
        dp_gpt_adapters_grads(gpt, products, N_PRODUCTS);
        return;
    }
    dp_pool_run(gpt->pool, weights_tasks(gpt), weights_task, gpt);
}

/* Some columns of the embeddings, tokens in order. */
static void embed_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const size_t c = gpt->sizes.width;
    const size_t first = index * EMBED_COLUMNS;
    const size_t columns = c - first < EMBED_COLUMNS ? c - first : EMBED_COLUMNS;
    float *const table = dp_gpt_grad(gpt, 0, DP_SLOT_EMBED);
    float *const positions = dp_gpt_grad(gpt, 0, DP_SLOT_POSITIONS);
    dp_assert(table != NULL); /* Every model has embeddings, and adapters do not come here. */
    for (size_t i = 0; i < gpt->tokens; i++) {
        const float *dx = gpt->dx + i * c + first;
        float *const row = table + dp_token_of(gpt->batch.x[i]) * c + first;
        if (gpt->embed_scale == 1.0F) {
            gpt->ops->add(dx, row, columns);
        }
        for (size_t j = 0; j < columns && gpt->embed_scale != 1.0F; j++) {
            row[j] += gpt->embed_scale * dx[j];
        }
        if (positions != NULL) {
            gpt->ops->add(dx, positions + dp_gpt_position(gpt, i) * c + first, columns);
        }
    }
}

void dp_gpt_backward(dp_gpt *gpt)
{
    const size_t slices = dp_gpt_slices(gpt->tokens, gpt->slice);
    for (size_t layer = gpt->model->config.layers; layer-- > 0;) {
        gpt->layer = layer;
        dp_gpt_layer_again(gpt);
        dp_gpt_pack_layer(gpt, DP_GPT_BACK);
        dp_pool_run(gpt->pool, slices, to_attention_task, gpt);
        dp_pool_run(gpt->pool, dp_gpt_attention_tasks(gpt), attention_task, gpt);
        dp_pool_run(gpt->pool, slices, to_input_task, gpt);
        weights(gpt);
        float *done = gpt->dx;
        gpt->dx = gpt->dx_next;
        gpt->dx_next = done;
    }
    dp_gpt_packs_good(gpt, DP_GPT_BACK);
    if (dp_gpt_adapts(gpt)) {
        return;
    }
    dp_pool_run(gpt->pool, (gpt->sizes.width + EMBED_COLUMNS - 1) / EMBED_COLUMNS, embed_task, gpt);
}
