/* Adapters beside the products of a layer (adapter.h, whose formula this is): their packs, their
 * part of forward and backward, and their gradients, which are the only ones.
 *
 * With s = alpha / rank and x the input of the weight, of each part:
 *     us = s x A           y += us B
 *     ds = s dy B'         dx += ds A'
 *     dA += x' ds          dB += us' dy
 * us is cheap and is computed again in backward, so layers share its buffer. */
#include "compute/model/gpt_adapters.h"
#include "base/assert.h"

enum { COLUMNS = DP_GPT_RUN_MAX * DP_OPS_TILE /* of a task of a gradient */ };

static size_t rank_of(const dp_gpt *gpt)
{
    return gpt->trained->config.adapt_rank;
}

static const float *values_of(const dp_gpt *gpt, const dp_tensor *tensor)
{
    return gpt->weights + tensor->offset;
}

void dp_gpt_adapters_pack(const dp_gpt *gpt, dp_gpt_way way)
{
    const size_t rank = rank_of(gpt);
    for (int slot = 0; slot < DP_LAYER_SLOTS; slot++) {
        dp_adapter adapter;
        if (!dp_model_adapter(gpt->trained, gpt->layer, (dp_slot)slot, &adapter)) {
            continue;
        }
        const dp_gpt_adapter *const room = &gpt->adapters[slot];
        const float *const a = values_of(gpt, adapter.a);
        const size_t inputs = adapter.a->shape[0];
        const size_t all = adapter.a->shape[1];
        const size_t columns = adapter.b->shape[1];
        gpt->ops->pack(a, all, false, inputs, all, room->a);
        if (way == DP_GPT_BACK) {
            gpt->ops->pack(a, all, true, all, inputs, room->a_t);
        }
        for (size_t i = 0; i < adapter.n_parts; i++) {
            const dp_adapter_part *const part = &adapter.parts[i];
            const float *const b = values_of(gpt, adapter.b) + part->at;
            if (way == DP_GPT_BACK) {
                gpt->ops->pack(b, columns, true, part->columns, rank, room->b_t[i]);
            } else {
                gpt->ops->pack(b, columns, false, rank, part->columns, room->b[i]);
            }
        }
    }
}

static void scale_rows(const dp_gpt *gpt, float *x, size_t n)
{
    const float scale = dp_adapter_scale(gpt->trained);
    for (size_t i = 0; i < n; i++) {
        x[i] *= scale;
    }
}

/* us of a range: in [N][inputs] of the weight. */
static void inner(const dp_gpt *gpt, const dp_gpt_adapter *room, const dp_adapter *adapter,
                  const float *in, dp_gpt_range range)
{
    const size_t inputs = adapter->a->shape[0];
    const size_t all = adapter->a->shape[1];
    float *const us = room->us + range.first * all;
    gpt->ops->gemm(&(dp_gemm){.m = range.count,
                              .n = all,
                              .k = inputs,
                              .a = in + range.first * inputs,
                              .a_row = inputs,
                              .a_depth = 1,
                              .packed = room->a,
                              .c = us,
                              .ldc = all});
    scale_rows(gpt, us, range.count * all);
}

void dp_gpt_adapters_forward(const dp_gpt *gpt, dp_slot slot, const float *in, float *out,
                             dp_gpt_range range)
{
    dp_adapter adapter;
    if (!dp_model_adapter(gpt->trained, gpt->layer, slot, &adapter)) {
        return;
    }
    const dp_gpt_adapter *const room = &gpt->adapters[slot];
    const size_t rank = rank_of(gpt);
    const size_t all = adapter.a->shape[1];
    const size_t to = dp_model_tensor(gpt->model, gpt->layer, slot)->shape[1];
    inner(gpt, room, &adapter, in, range);
    for (size_t i = 0; i < adapter.n_parts; i++) {
        const dp_adapter_part *const part = &adapter.parts[i];
        float *const y = out + range.first * to + part->first;
        gpt->ops->gemm(&(dp_gemm){.m = range.count,
                                  .n = part->columns,
                                  .k = rank,
                                  .a = room->us + range.first * all + i * rank,
                                  .a_row = all,
                                  .a_depth = 1,
                                  .packed = room->b[i],
                                  .c = y,
                                  .ldc = to,
                                  .add = y,
                                  .ld_add = to});
    }
}

void dp_gpt_adapters_back(const dp_gpt *gpt, dp_slot slot, const float *d_out, float *d_in,
                          size_t ld, dp_gpt_range range)
{
    dp_adapter adapter;
    if (!dp_model_adapter(gpt->trained, gpt->layer, slot, &adapter)) {
        return;
    }
    const dp_gpt_adapter *const room = &gpt->adapters[slot];
    const size_t rank = rank_of(gpt);
    const size_t all = adapter.a->shape[1];
    const size_t to = dp_model_tensor(gpt->model, gpt->layer, slot)->shape[1];
    float *const ds = room->ds + range.first * all;
    for (size_t i = 0; i < adapter.n_parts; i++) {
        const dp_adapter_part *const part = &adapter.parts[i];
        gpt->ops->gemm(&(dp_gemm){.m = range.count,
                                  .n = rank,
                                  .k = part->columns,
                                  .a = d_out + range.first * to + part->first,
                                  .a_row = to,
                                  .a_depth = 1,
                                  .packed = room->b_t[i],
                                  .c = ds + i * rank,
                                  .ldc = all});
    }
    scale_rows(gpt, ds, range.count * all);
    float *const dx = d_in + range.first * ld;
    gpt->ops->gemm(&(dp_gemm){.m = range.count,
                              .n = adapter.a->shape[0],
                              .k = all,
                              .a = ds,
                              .a_row = all,
                              .a_depth = 1,
                              .packed = room->a_t,
                              .c = dx,
                              .ldc = ld,
                              .add = dx,
                              .ld_add = ld});
}

/* ---- gradients ---- */

struct job {
    const dp_gpt *gpt;
    const dp_gpt_product *products;
    size_t n_products;
};

static void again_task(void *ctx, size_t index, size_t worker)
{
    const struct job *const job = ctx;
    const dp_gpt *const gpt = job->gpt;
    (void)worker;
    for (size_t i = 0; i < job->n_products; i++) {
        const dp_gpt_product *const p = &job->products[i];
        dp_adapter adapter;
        if (dp_model_adapter(gpt->trained, gpt->layer, p->slot, &adapter)) {
            inner(gpt, &gpt->adapters[p->slot], &adapter, p->in, dp_gpt_slice(gpt, index));
        }
    }
}

static size_t pieces(size_t n, size_t piece)
{
    return (n + piece - 1) / piece;
}

static size_t rest_of(size_t n, size_t first, size_t most)
{
    return n - first < most ? n - first : most;
}

/* Some rows of dA. */
static void grad_a(const dp_gpt *gpt, const dp_gpt_product *p, const dp_adapter *adapter,
                   size_t task, float *scratch)
{
    const size_t all = adapter->a->shape[1];
    const size_t row = task * DP_OPS_TILE;
    gpt->ops->gemm_tn(&(dp_gemm_tn){.m = rest_of(p->from, row, DP_OPS_TILE),
                                    .n = all,
                                    .k = gpt->tokens,
                                    .a = p->in + row,
                                    .lda = p->from,
                                    .b = gpt->adapters[p->slot].ds,
                                    .ldb = all,
                                    .c = gpt->grads + adapter->a->offset + row * all,
                                    .ldc = all,
                                    .scratch = scratch});
}

/* Some rows and columns of dB. */
static void grad_b(const dp_gpt *gpt, const dp_gpt_product *p, const dp_adapter *adapter,
                   size_t task, float *scratch)
{
    const size_t rank = rank_of(gpt);
    const size_t all = adapter->a->shape[1];
    const size_t columns = adapter->b->shape[1];
    size_t i = 0;
    const size_t tiles = pieces(rank, DP_OPS_TILE);
    while (task >= tiles * pieces(adapter->parts[i].columns, COLUMNS)) {
        task -= tiles * pieces(adapter->parts[i].columns, COLUMNS);
        i++;
    }
    const dp_adapter_part *const part = &adapter->parts[i];
    const size_t row = task % tiles * DP_OPS_TILE;
    const size_t column = task / tiles * COLUMNS;
    gpt->ops->gemm_tn(
        &(dp_gemm_tn){.m = rest_of(rank, row, DP_OPS_TILE),
                      .n = rest_of(part->columns, column, COLUMNS),
                      .k = gpt->tokens,
                      .a = gpt->adapters[p->slot].us + i * rank + row,
                      .lda = all,
                      .b = p->d_out + part->first + column,
                      .ldb = p->to,
                      .c = gpt->grads + adapter->b->offset + row * columns + part->at + column,
                      .ldc = columns,
                      .scratch = scratch});
}

static size_t tasks_of_b(const dp_gpt *gpt, const dp_adapter *adapter)
{
    size_t tasks = 0;
    for (size_t i = 0; i < adapter->n_parts; i++) {
        tasks += pieces(adapter->parts[i].columns, COLUMNS);
    }
    return tasks * pieces(rank_of(gpt), DP_OPS_TILE);
}

static void grads_task(void *ctx, size_t index, size_t worker)
{
    const struct job *const job = ctx;
    const dp_gpt *const gpt = job->gpt;
    float *const scratch = dp_gpt_scratch(gpt, worker);
    for (size_t i = 0; i < job->n_products; i++) {
        const dp_gpt_product *const p = &job->products[i];
        dp_adapter adapter;
        if (!dp_model_adapter(gpt->trained, gpt->layer, p->slot, &adapter)) {
            continue;
        }
        const size_t of_a = dp_gpt_tiles(p->from);
        const size_t of_b = tasks_of_b(gpt, &adapter);
        if (index < of_a) {
            grad_a(gpt, p, &adapter, index, scratch);
            return;
        }
        index -= of_a;
        if (index < of_b) {
            grad_b(gpt, p, &adapter, index, scratch);
            return;
        }
        index -= of_b;
    }
    dp_assert(false);
}

void dp_gpt_adapters_grads(dp_gpt *gpt, const dp_gpt_product *products, size_t n_products)
{
    struct job job = {.gpt = gpt, .products = products, .n_products = n_products};
    size_t tasks = 0;
    for (size_t i = 0; i < n_products; i++) {
        dp_adapter adapter;
        if (dp_model_adapter(gpt->trained, gpt->layer, products[i].slot, &adapter)) {
            tasks += dp_gpt_tiles(products[i].from) + tasks_of_b(gpt, &adapter);
        }
    }
    dp_pool_run(gpt->pool, dp_gpt_slices(gpt->tokens, gpt->slice), again_task, &job);
    dp_pool_run(gpt->pool, tasks, grads_task, &job);
}
