#include "compute/model/optim.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/cpu/half.h"
#include "compute/cpu/stochastic_rounding.h"
#include "compute/model/optim_inside.h"

#define NORM_MAX 1e18 /* Above it the squares of fp32 values come near their end. */

/* ---- The norm. */

struct norm_job {
    const dp_ops *ops;
    const float *x;
    size_t n;
    size_t first;
    double *partial;
};

static void norm_task(void *ctx, size_t index, size_t worker)
{
    const struct norm_job *job = ctx;
    (void)worker;
    const size_t block = job->first + index;
    const size_t left = job->n - block * DP_NORM_BLOCK;
    job->partial[block] = job->ops->sum_of_squares(job->x + block * DP_NORM_BLOCK,
                                                   left < DP_NORM_BLOCK ? left : DP_NORM_BLOCK);
}

size_t dp_norm_blocks(size_t n)
{
    return (n + DP_NORM_BLOCK - 1) / DP_NORM_BLOCK;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the tasks write partial. */
void dp_norm_part(const float *x, size_t n, double *partial, size_t first, size_t last,
                  dp_pool *pool)
{
    struct norm_job job = {
        .ops = dp_ops_best(), .x = x, .n = n, .first = first, .partial = partial};
    dp_assert(first <= last && last <= dp_norm_blocks(n));
    dp_pool_run(pool, last - first, norm_task, &job);
}

double dp_norm_of(const double *partial, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < dp_norm_blocks(n); i++) {
        sum += partial[i];
    }
    return sqrt(sum);
}

double dp_norm(const float *x, size_t n, double *partial, dp_pool *pool)
{
    dp_norm_part(x, n, partial, 0, dp_norm_blocks(n), pool);
    return dp_norm_of(partial, n);
}

/* ---- Kinds, parts and memory. */

static void adamw_step(dp_optim_job *job, dp_pool *pool);

static const struct rule {
    void (*step)(dp_optim_job *job, dp_pool *pool);
    bool second_moment;
    bool whole_tensors; /* looks at more than one element at a time */
} rules[] = {
    [DP_OPTIM_ADAMW] = {adamw_step, true, false},
    [DP_OPTIM_LAMB] = {dp_optim_lamb, true, true},
    [DP_OPTIM_LARS] = {dp_optim_lars, false, true},
    [DP_OPTIM_MUON] = {dp_optim_muon, true, true},
};

static size_t end_of_tensor(const dp_model *model, size_t tensor)
{
    return tensor + 1 < model->n_tensors ? model->tensors[tensor + 1].offset : model->n_elements;
}

size_t dp_optim_cut(dp_optim_kind kind, const dp_model *model, size_t parts, size_t index)
{
    dp_assert(parts > 0 && index <= parts);
    const size_t n = model->n_elements;
    const size_t blocks = dp_norm_blocks(n);
    if (index == parts) {
        return n;
    }
    if (!rules[kind].whole_tensors) {
        return blocks * index / parts * DP_NORM_BLOCK;
    }
    /* The first tensor that begins at or behind the share. */
    const size_t share = (size_t)((unsigned __int128)n * index / parts);
    size_t tensor = 0;
    while (tensor < model->n_tensors && model->tensors[tensor].offset < share) {
        tensor++;
    }
    return tensor < model->n_tensors ? model->tensors[tensor].offset : n;
}

/* Cuts of the part where blocks or tensors begin; with pieces NULL it only counts. */
static size_t cut_pieces(const dp_optim *optim, dp_optim_piece *pieces)
{
    const dp_model *const model = optim->setup.model;
    size_t count = 0;
    for (size_t t = 0; t < model->n_tensors; t++) {
        const size_t end = end_of_tensor(model, t);
        size_t from = model->tensors[t].offset;
        from = from > optim->first ? from : optim->first;
        while (from < end && from < optim->last) {
            size_t to = (from / DP_NORM_BLOCK + 1) * DP_NORM_BLOCK;
            to = to < end ? to : end;
            to = to < optim->last ? to : optim->last;
            if (pieces != NULL) {
                pieces[count] = (dp_optim_piece){.tensor = t, .from = from, .to = to};
            }
            count++;
            from = to;
        }
    }
    return count;
}

static dp_status complete(dp_optim *optim)
{
    dp_optim_setup *const setup = &optim->setup;
    setup->kind = setup->kind == 0 ? DP_OPTIM_ADAMW : setup->kind;
    setup->weights = setup->weights == 0 ? DP_WEIGHTS_FP32 : setup->weights;
    setup->parts = setup->parts == 0 ? 1 : setup->parts;
    if (setup->kind < DP_OPTIM_ADAMW || setup->kind > DP_OPTIM_LAST ||
        setup->weights < DP_WEIGHTS_FP32 || setup->weights > DP_WEIGHTS_BF16_SR ||
        setup->part >= setup->parts) {
        return DP_BADARG;
    }
    optim->first = dp_optim_cut(setup->kind, setup->model, setup->parts, setup->part);
    optim->last = dp_optim_cut(setup->kind, setup->model, setup->parts, setup->part + 1);
    return DP_OK;
}

/* At least one element, so that an empty part is not a failure. */
static void *some(size_t count, size_t size)
{
    return dp_alloc(count == 0 ? 1 : count, size);
}

static dp_status take_memory(dp_optim *o)
{
    const dp_optim_setup *const setup = &o->setup;
    const size_t n = o->last - o->first;
    o->n_pieces = cut_pieces(o, NULL);
    o->pieces = some(o->n_pieces, sizeof *o->pieces);
    o->partial = some(dp_norm_blocks(setup->model->n_elements), sizeof *o->partial);
    o->m = some(n, sizeof *o->m);
    o->sums = some(2 * o->n_pieces, sizeof *o->sums);
    o->rates = some(setup->model->n_tensors, sizeof *o->rates);
    if (o->pieces == NULL || o->partial == NULL || o->m == NULL || o->sums == NULL ||
        o->rates == NULL) {
        return DP_NOMEM;
    }
    cut_pieces(o, o->pieces);
    if (rules[setup->kind].second_moment) {
        o->v = some(n, sizeof *o->v);
        if (o->v == NULL) {
            return DP_NOMEM;
        }
    }
    if (setup->weights == DP_WEIGHTS_BF16) {
        o->master = some(n, sizeof *o->master);
        if (o->master == NULL) {
            return DP_NOMEM;
        }
    }
    return setup->kind == DP_OPTIM_MUON ? dp_muon_open(&o->muon, o) : DP_OK;
}

dp_status dp_optim_init(dp_optim *optim, const dp_optim_setup *setup)
{
    dp_optim made = {.setup = *setup};
    DP_TRY(complete(&made));
    const dp_status status = take_memory(&made);
    if (status != DP_OK) {
        dp_optim_close(&made);
        return status;
    }
    *optim = made;
    return DP_OK;
}

size_t dp_optim_scratch_bytes(dp_optim_kind kind, const dp_model *model, size_t threads)
{
    return kind == DP_OPTIM_MUON ? dp_muon_scratch_bytes(model, threads) : 0;
}

void dp_optim_close(dp_optim *optim)
{
    dp_muon_close(optim->muon);
    dp_free(optim->rates);
    dp_free(optim->sums);
    dp_free(optim->master);
    dp_free(optim->v);
    dp_free(optim->m);
    dp_free(optim->partial);
    dp_free(optim->pieces);
    *optim = (dp_optim){0};
}

size_t dp_optim_vectors(const dp_optim *optim, dp_optim_vector out[DP_OPTIM_VECTORS_MAX])
{
    const dp_optim_vector all[DP_OPTIM_VECTORS_MAX] = {
        {"m", optim->m}, {"v", optim->v}, {"master", optim->master}};
    size_t count = 0;
    for (size_t i = 0; i < DP_OPTIM_VECTORS_MAX; i++) {
        if (all[i].values != NULL) {
            out[count++] = all[i];
        }
    }
    return count;
}

void dp_optim_reset(dp_optim *optim)
{
    dp_optim_vector vectors[DP_OPTIM_VECTORS_MAX];
    const size_t count = dp_optim_vectors(optim, vectors);
    for (size_t i = 0; i < count; i++) {
        memset(vectors[i].values, 0, (optim->last - optim->first) * sizeof(float));
    }
    optim->steps = 0;
}

/* ---- The step. */

void dp_optim_adamw(const dp_optim_job *job, const dp_optim_piece *piece)
{
    const dp_optim_options *const options = job->options;
    const size_t at = piece->from - job->optim->first;
    const bool decays = dp_optim_tensor(job->optim, piece)->decay;
    const dp_adamw_terms terms = {
        .lr = (float)((double)options->lr / job->correct1),
        .beta1 = options->beta1,
        .beta2 = options->beta2,
        .eps = options->eps,
        .lr_decay = decays ? options->lr * options->decay : 0.0F,
        .v_scale = (float)(1.0 / job->correct2),
        .grad_scale = job->grad_scale,
    };
    job->ops->adamw(&terms, job->x + (piece->from - job->x_first), job->optim->m + at,
                    job->optim->v + at, job->grads + piece->from, piece->to - piece->from);
}

static void adamw_task(void *ctx, size_t index, size_t worker)
{
    const dp_optim_job *job = ctx;
    (void)worker;
    dp_optim_adamw(job, &job->optim->pieces[index]);
}

static void adamw_step(dp_optim_job *job, dp_pool *pool)
{
    dp_pool_run(pool, job->optim->n_pieces, adamw_task, job);
}

/* Nearest bf16 as fp32. */
static float nearest(float value)
{
    return dp_bfloat_value(dp_bfloat_of(value));
}

static void masters_task(void *ctx, size_t index, size_t worker)
{
    const dp_optim_job *job = ctx;
    (void)worker;
    const dp_optim_piece *piece = &job->optim->pieces[index];
    float *const master = job->optim->master + (piece->from - job->optim->first);
    const float *const params = job->params + piece->from;
    for (size_t i = 0; i < piece->to - piece->from; i++) {
        master[i] = nearest(master[i]) == params[i] ? master[i] : params[i];
    }
}

static void round_task(void *ctx, size_t index, size_t worker)
{
    const dp_optim_job *job = ctx;
    (void)worker;
    const dp_optim_piece *piece = &job->optim->pieces[index];
    if (job->optim->setup.weights == DP_WEIGHTS_BF16_SR) {
        const dp_stochastic_key key = {.seed = job->optim->setup.seed, .step = job->optim->steps};
        dp_stochastic_bf16(job->params + piece->from, piece->to - piece->from, piece->from, &key);
        return;
    }
    const float *const master = job->optim->master + (piece->from - job->optim->first);
    float *const params = job->params + piece->from;
    for (size_t i = 0; i < piece->to - piece->from; i++) {
        params[i] = nearest(master[i]);
    }
}

static double loss_scale(const dp_optim_options *options)
{
    return options->loss_scale > 0.0F ? (double)options->loss_scale : 1.0;
}

dp_status dp_optim_step_with(dp_optim *optim, float *params, const float *grads,
                             const dp_optim_options *options, dp_pool *pool, double norm)
{
    if (!(norm <= NORM_MAX)) {
        return DP_DIVERGED;
    }
    const double scale = loss_scale(options);
    const double length = norm / scale;
    const double clip = (double)options->clip;
    const bool clips = clip > 0.0 && length > clip;
    optim->steps++;
    dp_optim_job job = {
        .ops = dp_ops_best(),
        .optim = optim,
        .options = options,
        .x = optim->master != NULL ? optim->master : params,
        .x_first = optim->master != NULL ? optim->first : 0,
        .grads = grads,
        .grad_scale = (float)((clips ? clip / length : 1.0) / scale),
        .correct1 = 1.0 - pow((double)options->beta1, (double)optim->steps),
        .correct2 = 1.0 - pow((double)options->beta2, (double)optim->steps),
        .params = params,
    };
    if (optim->master != NULL) {
        dp_pool_run(pool, optim->n_pieces, masters_task, &job);
    }
    rules[optim->setup.kind].step(&job, pool);
    if (optim->setup.weights != DP_WEIGHTS_FP32) {
        dp_pool_run(pool, optim->n_pieces, round_task, &job);
    }
    return DP_OK;
}

dp_status dp_optim_step(dp_optim *optim, float *params, const float *grads,
                        const dp_optim_options *options, dp_pool *pool, double *norm)
{
    const double length = dp_norm(grads, optim->setup.model->n_elements, optim->partial, pool);
    if (norm != NULL) {
        *norm = length / loss_scale(options);
    }
    return dp_optim_step_with(optim, params, grads, options, pool, length);
}
