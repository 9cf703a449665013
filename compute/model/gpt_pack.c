#include <string.h>

#include "base/assert.h"
#include "compute/model/gpt_adapters.h"

static const dp_slot slots[] = {DP_LAYER_QKV_W, DP_LAYER_OUT_W, DP_LAYER_UP_W, DP_LAYER_DOWN_W};
enum {
    N_MATRICES = sizeof slots / sizeof slots[0],
    PIECE_FLOATS = 1 << 17 /* of one task: some tasks per thread also for a small layer */
};

/* A weight as b [k][n] of a product. */
struct matrix {
    const float *b;        /* NULL: */
    const dp_tensor *base; /* of the base, whose rows are the columns of b if transposed */
    size_t ld;
    bool transposed; /* it lies as [n][k] */
    size_t k;
    size_t n;
    float *packed;
};

struct job {
    const dp_gpt *gpt;
    const dp_ops *ops;
    struct matrix matrices[N_MATRICES];
    size_t count;
};

/* Columns of a task: whole panels, which pack one by one as they do together. */
static size_t piece_of(const dp_ops *ops, const struct matrix *m)
{
    const size_t panels = PIECE_FLOATS / (m->k * ops->panel);
    return ops->panel * (panels == 0 ? 1 : panels);
}

static size_t pieces_of(const dp_ops *ops, const struct matrix *m)
{
    const size_t piece = piece_of(ops, m);
    return (m->n + piece - 1) / piece;
}

/* Packs columns of a weight of the base, a panel and some depths at a time, so that its numbers in
 * fp32 never leave a cache. */
static void pack_base(const dp_gpt *gpt, const struct matrix *m, size_t first, size_t columns,
                      float *room)
{
    const dp_ops *const ops = gpt->ops;
    const size_t panel = ops->panel;
    for (size_t at = first; at < first + columns; at += panel) {
        const size_t some = first + columns - at < panel ? first + columns - at : panel;
        float *const packed = m->packed + dp_packed_floats(ops, m->k, at);
        for (size_t depth = 0; depth < m->k; depth += DP_OPS_DEPTH) {
            const size_t terms = m->k - depth < DP_OPS_DEPTH ? m->k - depth : DP_OPS_DEPTH;
            const size_t outer = m->transposed ? some : terms;
            const size_t inside = m->transposed ? terms : some;
            for (size_t i = 0; i < outer; i++) {
                dp_base_weights_row(gpt->base, m->base, (m->transposed ? at : depth) + i,
                                    m->transposed ? depth : at, inside, room + i * inside);
            }
            ops->pack(room, inside, m->transposed, terms, some,
                      packed + depth / ops->terms * panel);
        }
    }
}

static void pack_task(void *ctx, size_t index, size_t worker)
{
    const struct job *const job = ctx;
    const struct matrix *m = job->matrices;
    while (index >= pieces_of(job->ops, m)) {
        index -= pieces_of(job->ops, m);
        m++;
    }
    const size_t piece = piece_of(job->ops, m);
    const size_t first = index * piece;
    const size_t columns = m->n - first < piece ? m->n - first : piece;
    if (m->b == NULL) {
        pack_base(job->gpt, m, first, columns, dp_gpt_scratch(job->gpt, worker));
        return;
    }
    job->ops->pack(m->transposed ? m->b + first * m->ld : m->b + first, m->ld, m->transposed, m->k,
                   columns, m->packed + dp_packed_floats(job->ops, m->k, first));
}

static void run(const dp_gpt *gpt, struct job *job)
{
    size_t tasks = 0;
    job->gpt = gpt;
    job->ops = gpt->ops;
    for (size_t i = 0; i < job->count; i++) {
        tasks += pieces_of(gpt->ops, &job->matrices[i]);
    }
    dp_pool_run(gpt->pool, tasks, pack_task, job);
}

static bool is_good(const dp_gpt *gpt, dp_gpt_way way)
{
    return gpt->packs == DP_GPT_PACKS_KEPT && !gpt->stale[way];
}

void dp_gpt_packs_stale(dp_gpt *gpt)
{
    if (dp_gpt_adapts(gpt)) {
        return; /* They are of the base. */
    }
    gpt->stale[DP_GPT_ONWARD] = true;
    gpt->stale[DP_GPT_BACK] = true;
}

void dp_gpt_packs_good(dp_gpt *gpt, dp_gpt_way way)
{
    gpt->stale[way] = false;
}

void dp_gpt_packs_check(dp_gpt *gpt)
{
#ifdef DP_PARANOID
    uint64_t sum = 0;
    if (dp_gpt_adapts(gpt)) {
        return;
    }
    for (size_t i = 0; i < gpt->model->n_elements; i++) {
        uint32_t bits;
        memcpy(&bits, gpt->weights + i, sizeof bits);
        sum += bits * (uint64_t)(2 * i + 1);
    }
    dp_assert(gpt->stale[DP_GPT_ONWARD] || sum == gpt->packed_sum);
    gpt->packed_sum = sum;
#else
    (void)gpt;
#endif
}

/* The weight of a layer as b: as it lies in the arena, or turned, as a base has it. */
static struct matrix matrix_of(const dp_gpt *gpt, dp_slot slot, dp_gpt_way way)
{
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    const dp_tensor *const tensor = dp_model_tensor(gpt->model, gpt->layer, slot);
    const bool back = way == DP_GPT_BACK;
    const bool adapts = dp_gpt_adapts(gpt);
    return (struct matrix){.b = adapts ? NULL : dp_gpt_weight(gpt, gpt->layer, slot),
                           .base = tensor,
                           .ld = tensor->shape[1],
                           .transposed = back != adapts,
                           .k = tensor->shape[back ? 1 : 0],
                           .n = tensor->shape[back ? 0 : 1],
                           .packed = (back ? layer->packed_t : layer->packed)[slot]};
}

void dp_gpt_pack_layer(dp_gpt *gpt, dp_gpt_way way)
{
    if (dp_gpt_adapts(gpt)) {
        dp_gpt_adapters_pack(gpt, way);
    }
    if (is_good(gpt, way)) {
        return;
    }
    struct job job = {.count = N_MATRICES};
    for (size_t i = 0; i < N_MATRICES; i++) {
        job.matrices[i] = matrix_of(gpt, slots[i], way);
    }
    run(gpt, &job);
}

/* It comes behind all layers, so with it the onward packs are complete. */
void dp_gpt_pack_head(dp_gpt *gpt)
{
    const size_t c = gpt->sizes.width;
    const size_t v = gpt->model->config.vocab;
    const dp_tensor *const head = dp_model_head(gpt->model);
    const float *const weight = dp_gpt_adapts(gpt) ? NULL : gpt->weights + head->offset;
    struct job job = {.count = 0};
    if (!is_good(gpt, DP_GPT_ONWARD)) {
        job.matrices[job.count++] = (struct matrix){weight, head, c, true, c, v, gpt->packed_head};
    }
    if (gpt->backward && !is_good(gpt, DP_GPT_BACK)) {
        job.matrices[job.count++] =
            (struct matrix){weight, head, c, false, v, c, gpt->packed_head_t};
    }
    run(gpt, &job);
    dp_gpt_packs_good(gpt, DP_GPT_ONWARD);
}
