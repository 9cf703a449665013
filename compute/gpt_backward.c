#include "compute/gpt_inside.h"

#include <string.h>

enum { EMBED_COLUMNS = 64 }; /* of one task of the embeddings' gradient */

/* d_in = d_out * weight' on a slice. */
static void linear_back(const dp_gpt *gpt, dp_layer_slot slot, const float *d_out, float *d_in,
                        dp_gpt_range range)
{
    const dp_tensor *tensor = &gpt->model->tensors[DP_SLOT_LAYERS + slot];
    const size_t from = tensor->shape[0];
    const size_t to = tensor->shape[1];
    gpt->ops->gemm(&(dp_gemm){.m = range.count,
                              .n = from,
                              .k = to,
                              .a = d_out + range.first * to,
                              .a_row = to,
                              .a_depth = 1,
                              .packed = gpt->layers[gpt->layer].packed_t[slot],
                              .c = d_in + range.first * from,
                              .ldc = from});
}

static dp_norm_rows norm_of(const dp_gpt *gpt, dp_layer_slot slot, dp_gpt_range range)
{
    const dp_gpt_layer *layer = &gpt->layers[gpt->layer];
    const float *gain = dp_gpt_weight(gpt, gpt->layer, slot);
    return slot == DP_LAYER_LN1_W
               ? dp_gpt_norm_rows(gpt, layer->x, gain, layer->mean1, layer->rstd1, range)
               : dp_gpt_norm_rows(gpt, layer->middle, gain, layer->mean2, layer->rstd2, range);
}

/* From behind the layer to the output of attention. Also fills norm2 and gelu again for the weights' gradients. */
static void to_attention_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const dp_gpt_range range = dp_gpt_slice(gpt, index);
    const size_t first = range.first;
    const size_t count = range.count;
    const size_t c = gpt->model->config.width;
    const size_t l = gpt->layer;
    linear_back(gpt, DP_LAYER_PROJ_W, gpt->dx, gpt->d_hidden, range);
    gpt->ops->activations[DP_GELU].backward(gpt->layers[l].hidden + first * 4 * c, count, 4 * c,
                                            gpt->gelu + first * 4 * c,
                                            gpt->d_hidden + first * 4 * c);
    linear_back(gpt, DP_LAYER_FC_W, gpt->d_hidden, gpt->d_norm2, range);
    const dp_norm_rows norm = norm_of(gpt, DP_LAYER_LN2_W, range);
    gpt->ops->norm_again(&norm, dp_gpt_weight(gpt, l, DP_LAYER_LN2_B), gpt->norm2 + first * c);
    gpt->ops->norm_backward(&norm, gpt->d_norm2 + first * c, gpt->dx + first * c,
                            gpt->d_middle + first * c);
    linear_back(gpt, DP_LAYER_OUT_W, gpt->d_middle, gpt->d_att, range);
}

static void attention_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    const dp_attention attention = dp_gpt_attention(gpt, index, worker);
    gpt->ops->attention_backward(&attention);
}

/* From the attention's input to before the layer. Fills norm1 again. */
static void to_input_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const dp_gpt_range range = dp_gpt_slice(gpt, index);
    const size_t first = range.first;
    const size_t c = gpt->model->config.width;
    linear_back(gpt, DP_LAYER_QKV_W, gpt->d_qkv, gpt->d_norm1, range);
    const dp_norm_rows norm = norm_of(gpt, DP_LAYER_LN1_W, range);
    gpt->ops->norm_again(&norm, dp_gpt_weight(gpt, gpt->layer, DP_LAYER_LN1_B),
                         gpt->norm1 + first * c);
    gpt->ops->norm_backward(&norm, gpt->d_norm1 + first * c, gpt->d_middle + first * c,
                            gpt->dx_next + first * c);
}

/* A linear layer seen from its weight: in [N][from], d_out [N][to]. */
struct product {
    dp_layer_slot slot;
    const float *in;
    const float *d_out;
    size_t from;
    size_t to;
};

enum { N_PRODUCTS = 4 };

static void products_of(const dp_gpt *gpt, struct product products[N_PRODUCTS])
{
    const size_t c = gpt->model->config.width;
    const float *att = gpt->layers[gpt->layer].att;
    products[0] = (struct product){DP_LAYER_PROJ_W, gpt->gelu, gpt->dx, 4 * c, c};
    products[1] = (struct product){DP_LAYER_FC_W, gpt->norm2, gpt->d_hidden, c, 4 * c};
    products[2] = (struct product){DP_LAYER_QKV_W, gpt->norm1, gpt->d_qkv, c, 3 * c};
    products[3] = (struct product){DP_LAYER_OUT_W, att, gpt->d_middle, c, c};
}

static size_t tiles_of(size_t n)
{
    return (n + DP_OPS_TILE - 1) / DP_OPS_TILE;
}

static size_t tile_end(size_t first, size_t n)
{
    return n - first < DP_OPS_TILE ? n : first + DP_OPS_TILE;
}

static void product_tile(const dp_gpt *gpt, const struct product *p, size_t tile, float *scratch)
{
    const size_t row = tile / tiles_of(p->to) * DP_OPS_TILE;
    const size_t column = tile % tiles_of(p->to) * DP_OPS_TILE;
    gpt->ops->gemm_tn(&(dp_gemm_tn){
        .m = tile_end(row, p->from) - row,
        .n = tile_end(column, p->to) - column,
        .k = gpt->tokens,
        .a = p->in + row,
        .lda = p->from,
        .b = p->d_out + column,
        .ldb = p->to,
        .c = dp_gpt_grad(gpt, gpt->layer, p->slot) + row * p->to + column,
        .ldc = p->to,
        .scratch = scratch,
    });
}

/* Gradients of the layer's vectors for a tile of columns: biases of each product, gain and bias of each norm. */
static void vector_tile(const dp_gpt *gpt, const struct product products[N_PRODUCTS], size_t tile)
{
    const size_t l = gpt->layer;
    const size_t first = tile * DP_OPS_TILE;
    for (size_t i = 0; i < N_PRODUCTS; i++) {
        const struct product *p = &products[i];
        if (first < p->to) {
            gpt->ops->add_columns(p->d_out, p->to, gpt->tokens, first, tile_end(first, p->to),
                                  dp_gpt_grad(gpt, l, (dp_layer_slot)(p->slot + 1)));
        }
    }
    const size_t c = gpt->model->config.width;
    if (first < c) {
        const dp_norm_rows norm1 = norm_of(gpt, DP_LAYER_LN1_W, (dp_gpt_range){0, gpt->tokens});
        const dp_norm_rows norm2 = norm_of(gpt, DP_LAYER_LN2_W, (dp_gpt_range){0, gpt->tokens});
        gpt->ops->norm_grads(&norm1, gpt->d_norm1, first, tile_end(first, c),
                             dp_gpt_grad(gpt, l, DP_LAYER_LN1_W),
                             dp_gpt_grad(gpt, l, DP_LAYER_LN1_B));
        gpt->ops->norm_grads(&norm2, gpt->d_norm2, first, tile_end(first, c),
                             dp_gpt_grad(gpt, l, DP_LAYER_LN2_W),
                             dp_gpt_grad(gpt, l, DP_LAYER_LN2_B));
    }
}

static void weights_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    struct product products[N_PRODUCTS];
    products_of(gpt, products);
    for (size_t i = 0; i < N_PRODUCTS; i++) {
        const size_t tiles = tiles_of(products[i].from) * tiles_of(products[i].to);
        if (index < tiles) {
            product_tile(gpt, &products[i], index, dp_gpt_scratch(gpt, worker));
            return;
        }
        index -= tiles;
    }
    vector_tile(gpt, products, index);
}

static size_t weights_tasks(const dp_gpt *gpt)
{
    struct product products[N_PRODUCTS];
    products_of(gpt, products);
    size_t tasks = tiles_of(4 * (size_t)gpt->model->config.width); /* the widest vector */
    for (size_t i = 0; i < N_PRODUCTS; i++) {
        tasks += tiles_of(products[i].from) * tiles_of(products[i].to);
    }
    return tasks;
}

/* Some columns of both embeddings, tokens in order. */
static void embed_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const size_t c = gpt->model->config.width;
    const size_t first = index * EMBED_COLUMNS;
    const size_t columns = c - first < EMBED_COLUMNS ? c - first : EMBED_COLUMNS;
    float *positions = gpt->grads + gpt->model->tensors[DP_SLOT_WPE].offset;
    for (size_t i = 0; i < gpt->tokens; i++) {
        const float *dx = gpt->dx + i * c + first;
        gpt->ops->add(dx, gpt->grads + gpt->batch.x[i] * c + first, columns);
        gpt->ops->add(dx, positions + i % gpt->batch.length * c + first, columns);
    }
}

void dp_gpt_backward(dp_gpt *gpt)
{
    const size_t slices = dp_gpt_slices(gpt->tokens, gpt->slice);
    const size_t heads = gpt->batch.rows * gpt->model->config.heads;
    for (size_t layer = gpt->model->config.layers; layer-- > 0;) {
        gpt->layer = layer;
        dp_pool_run(gpt->pool, slices, to_attention_task, gpt);
        dp_pool_run(gpt->pool, heads, attention_task, gpt);
        dp_pool_run(gpt->pool, slices, to_input_task, gpt);
        dp_pool_run(gpt->pool, weights_tasks(gpt), weights_task, gpt);
        float *done = gpt->dx;
        gpt->dx = gpt->dx_next;
        gpt->dx_next = done;
    }
    dp_pool_run(gpt->pool, (gpt->model->config.width + EMBED_COLUMNS - 1) / EMBED_COLUMNS,
                embed_task, gpt);
}
