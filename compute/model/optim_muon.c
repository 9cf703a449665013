/* Muon: the momentum of each matrix inside the blocks is replaced by its orthogonal factor
 * (newton_schulz.h). Threads take a matrix each where there is scratch for all of them, and
 * otherwise go through one matrix after another together; no sum crosses what they divide. */
#include <math.h>

#include "base/alloc.h"
#include "compute/model/newton_schulz.h"
#include "compute/model/optim_inside.h"

enum {
    ROWS = 96, /* of a pass over a matrix per task */
    SHARES_MAX = 3,
    ALIGN = 16,                    /* floats: 64 bytes */
    SCRATCH_FLOATS_LEAST = 1 << 24 /* that threads with a matrix each may take together */
};

static const double norm_eps = 1e-7;
static const double match_adamw = 0.2; /* Liu et al. 2025: the root mean square of AdamW's steps */

/* Columns of a tensor that are one matrix. */
struct share {
    size_t first;
    size_t columns;
};

struct matrix {
    const dp_tensor *tensor;
    struct share share;
};

/* Of one matrix at a time. */
struct scratch {
    dp_newton_schulz ns;
    double *partial; /* sums of squares of x, one a task */
};

struct dp_muon {
    float *memory;
    struct scratch *scratches; /* [threads] */
    size_t threads;            /* that take a matrix each; 1: all go through one together */
    struct matrix *matrices;
    size_t n_matrices;
};

/* Floats and counts of a part. */
struct sizes {
    dp_ns_room room;
    size_t partial; /* floats of it */
    size_t each;    /* of one scratch */
    size_t threads;
    size_t n_matrices;
};

bool dp_muon_takes(const dp_tensor *tensor)
{
    return tensor->n_dims == 2 && tensor->slot < DP_LAYER_SLOTS;
}

/* The matrices that lie side by side in one tensor, because one product makes them: q, k and v,
 * gates and ups. */
static size_t shares_of(const dp_model *model, const dp_tensor *tensor,
                        struct share shares[SHARES_MAX])
{
    const size_t columns = tensor->shape[1];
    if (tensor->slot == DP_LAYER_QKV_W) {
        const size_t q = (size_t)model->config.heads * model->config.head_width;
        const size_t k = (columns - q) / 2;
        shares[0] = (struct share){0, q};
        shares[1] = (struct share){q, k};
        shares[2] = (struct share){q + k, k};
        return 3;
    }
    if (tensor->slot == DP_LAYER_UP_W && model->config.activation == DP_ACTIVATION_SWIGLU) {
        shares[0] = (struct share){0, columns / 2};
        shares[1] = (struct share){columns / 2, columns / 2};
        return 2;
    }
    shares[0] = (struct share){0, columns};
    return 1;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t tasks_of(size_t rows)
{
    return (rows + ROWS - 1) / ROWS;
}

/* ---- Memory. */

/* Of the matrices in [first, last) of the arena, which are listed too unless matrices is NULL, with
 * scratch for so many threads, or for one that they go through together. */
static struct sizes sizes_for(const dp_model *model, size_t first, size_t last, size_t threads,
                              struct matrix *matrices)
{
    struct sizes s = {.room.together = threads <= 1, .threads = most(threads, 1)};
    size_t rows = 0;
    for (size_t t = 0; t < model->n_tensors; t++) {
        const dp_tensor *const tensor = &model->tensors[t];
        struct share shares[SHARES_MAX];
        /* Parts are cut between tensors. */
        const bool takes =
            dp_muon_takes(tensor) && tensor->offset >= first && tensor->offset < last;
        const size_t count = takes ? shares_of(model, tensor, shares) : 0;
        for (size_t k = 0; k < count; k++) {
            dp_ns_widen(&s.room, tensor->shape[0], shares[k].columns);
            rows = most(rows, tensor->shape[0]);
            if (matrices != NULL) {
                matrices[s.n_matrices] = (struct matrix){tensor, shares[k]};
            }
            s.n_matrices++;
        }
    }
    const size_t doubles = sizeof(double) / sizeof(float);
    s.partial = (tasks_of(rows) * doubles + ALIGN - 1) / ALIGN * ALIGN;
    s.each = dp_ns_floats(&s.room) + s.partial;
    return s;
}

static struct sizes sizes_of(const dp_model *model, size_t first, size_t last, size_t threads,
                             struct matrix *matrices)
{
    const struct sizes s = sizes_for(model, first, last, threads, matrices);
    const bool fits = s.threads * s.each <= most(model->n_elements, SCRATCH_FLOATS_LEAST);
    return fits ? s : sizes_for(model, first, last, 1, matrices);
}

static size_t floats_of(const struct sizes *s)
{
    return s->threads * s->each + ALIGN;
}

size_t dp_muon_scratch_bytes(const dp_model *model, size_t threads)
{
    const struct sizes s = sizes_of(model, 0, model->n_elements, threads, NULL);
    return floats_of(&s) * sizeof(float);
}

dp_status dp_muon_open(dp_muon **out, const dp_optim *optim)
{
    const dp_optim_setup *const setup = &optim->setup;
    const struct sizes s = sizes_of(setup->model, optim->first, optim->last, setup->threads, NULL);
    dp_muon *const muon = dp_alloc(1, sizeof *muon);
    if (muon == NULL) {
        return DP_NOMEM;
    }
    muon->threads = s.threads;
    muon->n_matrices = s.n_matrices;
    muon->memory = dp_alloc(floats_of(&s), sizeof *muon->memory);
    muon->scratches = dp_alloc(s.threads, sizeof *muon->scratches);
    muon->matrices = dp_alloc(most(s.n_matrices, 1), sizeof *muon->matrices);
    if (muon->memory == NULL || muon->scratches == NULL || muon->matrices == NULL) {
        dp_muon_close(muon);
        return DP_NOMEM;
    }
    sizes_of(setup->model, optim->first, optim->last, setup->threads, muon->matrices);
    const size_t past = (uintptr_t)muon->memory % (ALIGN * sizeof(float)) / sizeof(float);
    float *at = muon->memory + (past == 0 ? 0 : ALIGN - past);
    for (size_t i = 0; i < s.threads; i++) {
        dp_ns_carve(&muon->scratches[i].ns, &s.room, at);
        muon->scratches[i].partial = (double *)(void *)(at + s.each - s.partial);
        at += s.each;
    }
    *out = muon;
    return DP_OK;
}

void dp_muon_close(dp_muon *muon)
{
    if (muon != NULL) {
        dp_free(muon->matrices);
        dp_free(muon->scratches);
        dp_free(muon->memory);
        dp_free(muon);
    }
}

/* ---- One matrix. */

struct turn {
    const dp_optim_job *job;
    const dp_tensor *tensor;
    float *x; /* [rows][columns] dense */
    size_t rows;
    size_t columns;
    size_t at;       /* of its first element, in the tensor */
    size_t stride;   /* columns of the tensor */
    float *momentum; /* of the tensor */
    double *partial;
    float scale; /* of a pass over x */
};

/* Momentum, and x = g + momentum * m. */
static void momentum_task(void *ctx, size_t index, size_t worker)
{
    const struct turn *t = ctx;
    (void)worker;
    const size_t last = least((index + 1) * ROWS, t->rows);
    const float keep = t->job->options->momentum;
    for (size_t row = index * ROWS; row < last; row++) {
        const size_t at = t->at + row * t->stride;
        const float *const grads = t->job->grads + t->tensor->offset + at;
        float *const momentum = t->momentum + at;
        float *const x = t->x + row * t->columns;
        for (size_t i = 0; i < t->columns; i++) {
            const float g = grads[i] * t->job->grad_scale;
            momentum[i] = keep * momentum[i] + g;
            x[i] = g + keep * momentum[i];
        }
    }
    const size_t first = index * ROWS;
    t->partial[index] =
        t->job->ops->sum_of_squares(t->x + first * t->columns, (last - first) * t->columns);
}

static void scale_task(void *ctx, size_t index, size_t worker)
{
    const struct turn *t = ctx;
    (void)worker;
    const size_t first = index * ROWS * t->columns;
    const size_t last = least(first + ROWS * t->columns, t->rows * t->columns);
    for (size_t i = first; i < last; i++) {
        t->x[i] *= t->scale;
    }
}

static void move_task(void *ctx, size_t index, size_t worker)
{
    const struct turn *t = ctx;
    (void)worker;
    const dp_optim_options *const options = t->job->options;
    const size_t last = least((index + 1) * ROWS, t->rows);
    const float lr_decay = t->tensor->decay ? options->lr * options->decay : 0.0F;
    for (size_t row = index * ROWS; row < last; row++) {
        const size_t at = t->at + row * t->stride;
        float *const x = t->job->x + (t->tensor->offset - t->job->x_first) + at;
        const float *const o = t->x + row * t->columns;
        for (size_t i = 0; i < t->columns; i++) {
            x[i] -= lr_decay * x[i] + t->scale * o[i];
        }
    }
}

static void turn_matrix(const dp_optim_job *job, const struct matrix *matrix,
                        struct scratch *scratch, dp_pool *pool)
{
    const dp_tensor *const tensor = matrix->tensor;
    struct turn t = {.job = job,
                     .tensor = tensor,
                     .x = scratch->ns.x,
                     .partial = scratch->partial,
                     .rows = tensor->shape[0],
                     .columns = matrix->share.columns,
                     .at = matrix->share.first,
                     .stride = tensor->shape[1],
                     .momentum = job->optim->m + (tensor->offset - job->optim->first)};
    const size_t tasks = tasks_of(t.rows);
    dp_pool_run(pool, tasks, momentum_task, &t);
    double squares = 0.0;
    for (size_t i = 0; i < tasks; i++) {
        squares += t.partial[i];
    }
    t.scale = (float)(1.0 / (sqrt(squares) + norm_eps));
    dp_pool_run(pool, tasks, scale_task, &t);
    dp_newton_schulz_run(&scratch->ns, t.rows, t.columns, pool);
    const double longer = (double)most(t.rows, t.columns);
    t.scale = (float)((double)job->options->lr * match_adamw * sqrt(longer));
    dp_pool_run(pool, tasks, move_task, &t);
}

/* ---- All. */

static void rest_task(void *ctx, size_t index, size_t worker)
{
    const dp_optim_job *job = ctx;
    (void)worker;
    const dp_optim_piece *const piece = &job->optim->pieces[index];
    if (!dp_muon_takes(dp_optim_tensor(job->optim, piece))) {
        dp_optim_adamw(job, piece);
    }
}

/* Matrices, and then the rest, whose short tasks end the step evenly. */
static void any_task(void *ctx, size_t index, size_t worker)
{
    const dp_optim_job *job = ctx;
    const dp_muon *const muon = job->optim->muon;
    if (index < muon->n_matrices) {
        turn_matrix(job, &muon->matrices[index], &muon->scratches[worker], NULL);
    } else {
        rest_task(ctx, index - muon->n_matrices, worker);
    }
}

void dp_optim_muon(dp_optim_job *job, dp_pool *pool)
{
    const dp_optim *const optim = job->optim;
    const dp_muon *const muon = optim->muon;
    const size_t threads = pool == NULL ? 1 : dp_pool_threads(pool);
    if (threads <= muon->threads) {
        dp_pool_run(pool, muon->n_matrices + optim->n_pieces, any_task, job);
        return;
    }
    for (size_t i = 0; i < muon->n_matrices; i++) {
        turn_matrix(job, &muon->matrices[i], &muon->scratches[0], pool);
    }
    dp_pool_run(pool, optim->n_pieces, rest_task, job);
}
