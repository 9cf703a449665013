#include <string.h>

#include "base/assert.h"
#include "compute/model/gpt_inside.h"

static const dp_slot slots[] = {DP_LAYER_QKV_W, DP_LAYER_OUT_W, DP_LAYER_UP_W, DP_LAYER_DOWN_W};
enum {
    N_MATRICES = sizeof slots / sizeof slots[0],
    PIECE_FLOATS = 1 << 17 /* of one task: some tasks per thread also for a small layer */
};

/* A weight as b [k][n] of a product. */
struct matrix {
    const float *b;
    size_t ld;
    bool transposed; /* it lies as [n][k] */
    size_t k;
    size_t n;
    float *packed;
};

struct job {
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

static void pack_task(void *ctx, size_t index, size_t worker)
{
    const struct job *const job = ctx;
    (void)worker;
    const struct matrix *m = job->matrices;
    while (index >= pieces_of(job->ops, m)) {
        index -= pieces_of(job->ops, m);
        m++;
    }
    const size_t piece = piece_of(job->ops, m);
    const size_t first = index * piece;
    const size_t columns = m->n - first < piece ? m->n - first : piece;
    job->ops->pack(m->transposed ? m->b + first * m->ld : m->b + first, m->ld, m->transposed, m->k,
                   columns, m->packed + dp_packed_floats(job->ops, m->k, first));
}

static void run(const dp_gpt *gpt, struct job *job)
{
    size_t tasks = 0;
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

void dp_gpt_pack_layer(dp_gpt *gpt, dp_gpt_way way)
{
    if (is_good(gpt, way)) {
        return;
    }
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    struct job job = {.count = N_MATRICES};
    for (size_t i = 0; i < N_MATRICES; i++) {
        const dp_tensor *const tensor = dp_model_tensor(gpt->model, gpt->layer, slots[i]);
        const bool back = way == DP_GPT_BACK;
        job.matrices[i] =
            (struct matrix){.b = dp_gpt_weight(gpt, gpt->layer, slots[i]),
                            .ld = tensor->shape[1],
                            .transposed = back,
                            .k = tensor->shape[back ? 1 : 0],
                            .n = tensor->shape[back ? 0 : 1],
                            .packed = (back ? layer->packed_t : layer->packed)[slots[i]]};
    }
    run(gpt, &job);
}

/* It comes behind all layers, so with it the onward packs are complete. */
void dp_gpt_pack_head(dp_gpt *gpt)
{
    const size_t c = gpt->sizes.width;
    const size_t v = gpt->model->config.vocab;
    const float *const weight = gpt->weights + dp_model_head(gpt->model)->offset;
    struct job job = {.count = 0};
    if (!is_good(gpt, DP_GPT_ONWARD)) {
        job.matrices[job.count++] = (struct matrix){weight, c, true, c, v, gpt->packed_head};
    }
    if (gpt->backward && !is_good(gpt, DP_GPT_BACK)) {
        job.matrices[job.count++] = (struct matrix){weight, c, false, v, c, gpt->packed_head_t};
    }
    run(gpt, &job);
    dp_gpt_packs_good(gpt, DP_GPT_ONWARD);
}
