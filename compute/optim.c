#include "compute/optim.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/ops.h"

enum { BLOCK = 65536 }; /* elements of one task; a multiple of DP_ARENA_ALIGN */
#define NORM_MAX 1e18   /* Above it the squares of fp32 values come near their end. */

struct norm_job {
    const dp_ops *ops;
    const float *x;
    size_t n;
    double *partial;
};

static size_t block_size(size_t block, size_t n)
{
    return n - block * BLOCK < BLOCK ? n - block * BLOCK : BLOCK;
}

static void norm_task(void *ctx, size_t index, size_t worker)
{
    const struct norm_job *job = ctx;
    (void)worker;
    job->partial[index] =
        job->ops->sum_of_squares(job->x + index * BLOCK, block_size(index, job->n));
}

size_t dp_norm_blocks(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the tasks write partial. */
double dp_norm(const float *x, size_t n, double *partial, dp_pool *pool)
{
    struct norm_job job = {.ops = dp_ops_best(), .x = x, .n = n, .partial = partial};
    dp_pool_run(pool, dp_norm_blocks(n), norm_task, &job);
    double sum = 0.0;
    for (size_t i = 0; i < dp_norm_blocks(n); i++) {
        sum += partial[i];
    }
    return sqrt(sum);
}

dp_status dp_adamw_init(dp_adamw *adamw, const dp_model *model)
{
    dp_adamw made = {.model = model};
    made.m = dp_alloc(model->n_elements, sizeof *made.m);
    made.v = dp_alloc(model->n_elements, sizeof *made.v);
    made.partial = dp_alloc(dp_norm_blocks(model->n_elements), sizeof *made.partial);
    if (made.m == NULL || made.v == NULL || made.partial == NULL) {
        dp_adamw_close(&made);
        return DP_NOMEM;
    }
    *adamw = made;
    return DP_OK;
}

void dp_adamw_close(dp_adamw *adamw)
{
    dp_free(adamw->m);
    dp_free(adamw->v);
    dp_free(adamw->partial);
    *adamw = (dp_adamw){0};
}

void dp_adamw_reset(dp_adamw *adamw)
{
    memset(adamw->m, 0, adamw->model->n_elements * sizeof *adamw->m);
    memset(adamw->v, 0, adamw->model->n_elements * sizeof *adamw->v);
    adamw->steps = 0;
}

struct step_job {
    const dp_ops *ops;
    const dp_adamw *adamw;
    dp_adamw_terms terms;
    float *params;
    const float *grads;
};

/* One block of the arena, cut where tensors with and without decay meet. */
static void step_task(void *ctx, size_t index, size_t worker)
{
    const struct step_job *job = ctx;
    (void)worker;
    const dp_model *model = job->adamw->model;
    const size_t start = index * BLOCK;
    const size_t end = start + block_size(index, model->n_elements);
    for (size_t t = 0; t < model->n_tensors; t++) {
        const size_t first = model->tensors[t].offset;
        const size_t last =
            t + 1 < model->n_tensors ? model->tensors[t + 1].offset : model->n_elements;
        const size_t from = first > start ? first : start;
        const size_t to = last < end ? last : end;
        if (from >= to) {
            continue;
        }
        dp_adamw_terms terms = job->terms;
        terms.lr_decay = model->tensors[t].decay ? terms.lr_decay : 0.0F;
        job->ops->adamw(&terms, job->params + from, job->adamw->m + from, job->adamw->v + from,
                        job->grads + from, to - from);
    }
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the tasks write params. */
dp_status dp_adamw_step(dp_adamw *adamw, float *params, const float *grads,
                        const dp_adamw_options *options, dp_pool *pool, double *norm)
{
    const double length = dp_norm(grads, adamw->model->n_elements, adamw->partial, pool);
    if (norm != NULL) {
        *norm = length;
    }
    if (!(length <= NORM_MAX)) {
        return DP_DIVERGED;
    }
    adamw->steps++;
    const double correct1 = 1.0 - pow((double)options->beta1, (double)adamw->steps);
    const double correct2 = 1.0 - pow((double)options->beta2, (double)adamw->steps);
    const double clip = (double)options->clip;
    struct step_job job = {
        .ops = dp_ops_best(),
        .adamw = adamw,
        .terms =
            {
                .lr = (float)((double)options->lr / correct1),
                .beta1 = options->beta1,
                .beta2 = options->beta2,
                .eps = options->eps,
                .lr_decay = options->lr * options->decay,
                .v_scale = (float)(1.0 / correct2),
                .grad_scale = clip > 0.0 && length > clip ? (float)(clip / length) : 1.0F,
            },
        .params = params,
        .grads = grads,
    };
    dp_pool_run(pool, dp_norm_blocks(adamw->model->n_elements), step_task, &job);
    return DP_OK;
}
