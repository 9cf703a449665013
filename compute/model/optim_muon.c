/* Muon: the momentum of each matrix inside the blocks is replaced by the nearest orthogonal one,
 * found with matrix products only. Matrices go one after another, each on all threads; products are
 * cut by rows and by panels, which no sum crosses. */
#include <math.h>

#include "base/alloc.h"
#include "compute/model/optim_inside.h"

enum {
    NS_STEPS = 5,
    ROWS = 96,  /* of a product per task: whole groups for every table of operations */
    ALIGN = 16, /* floats: 64 bytes */
    BUFFERS = 5
};

/* The quintic of Jordan et al. 2024: steep at 0, near 1 it wanders between 0.7 and 1.2. */
static const float ns_a = 3.4445F;
static const float ns_b = -4.7750F;
static const float ns_c = 2.0315F;
static const double ns_eps = 1e-7;
static const double match_adamw = 0.2; /* Liu et al. 2025: the root mean square of AdamW's steps */

struct dp_muon {
    void *memory;
    float *x;      /* [rows][columns] */
    float *next;   /* the same */
    float *gram;   /* [side][side], side = min(rows, columns) */
    float *poly;   /* the same */
    float *packed; /* the right side of a product */
};

/* Columns of a tensor that are one matrix. */
struct share {
    size_t first;
    size_t columns;
};

/* One matrix being turned. */
struct turn {
    const dp_optim_job *job;
    const dp_tensor *tensor;
    struct dp_muon *muon;
    size_t rows;
    size_t columns;
    size_t side;
    size_t at;       /* of its first element, in the tensor */
    size_t stride;   /* columns of the tensor */
    float *momentum; /* of the tensor */
    float scale;     /* of a pass over x */
    dp_gemm product; /* of a pass of products: all its rows */
    const float *b;  /* of a pass of packing */
    size_t ld;
    bool transposed;
};

bool dp_muon_takes(const dp_tensor *tensor)
{
    return tensor->n_dims == 2 && tensor->slot < DP_LAYER_SLOTS;
}

/* The matrices that lie side by side in one tensor, because one product makes them: q, k and v,
 * gates and ups. */
static size_t shares_of(const dp_model *model, const dp_tensor *tensor, struct share shares[3])
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

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Floats of a matrix, of a square of its lesser side, and of a packed right side: the largest of
 * the part. */
static void largest_of(const dp_optim *optim, size_t *matrix, size_t *square, size_t *packed)
{
    const dp_ops *const ops = dp_ops_best();
    for (size_t i = 0; i < optim->n_pieces; i++) {
        const dp_tensor *const tensor = dp_optim_tensor(optim, &optim->pieces[i]);
        struct share shares[3];
        const size_t count =
            dp_muon_takes(tensor) ? shares_of(optim->setup.model, tensor, shares) : 0;
        for (size_t k = 0; k < count; k++) {
            const size_t rows = tensor->shape[0];
            const size_t columns = shares[k].columns;
            const size_t side = least(rows, columns);
            *matrix = most(*matrix, rows * columns);
            *square = most(*square, side * side);
            *packed = most(*packed, dp_packed_floats(ops, rows, columns));
            *packed = most(*packed, dp_packed_floats(ops, columns, rows));
            *packed = most(*packed, dp_packed_floats(ops, side, side));
        }
    }
}

dp_status dp_muon_open(dp_muon **out, const dp_optim *optim)
{
    size_t matrix = 0;
    size_t square = 0;
    size_t packed = 0;
    largest_of(optim, &matrix, &square, &packed);
    dp_muon *const muon = dp_alloc(1, sizeof *muon);
    if (muon == NULL) {
        return DP_NOMEM;
    }
    const size_t sizes[BUFFERS] = {matrix, matrix, square, square, packed};
    size_t floats = ALIGN;
    for (size_t i = 0; i < BUFFERS; i++) {
        floats += round_up(sizes[i], ALIGN);
    }
    muon->memory = dp_alloc(floats, sizeof(float));
    if (muon->memory == NULL) {
        dp_free(muon);
        return DP_NOMEM;
    }
    float **const buffers[BUFFERS] = {&muon->x, &muon->next, &muon->gram, &muon->poly,
                                      &muon->packed};
    const size_t past = (uintptr_t)muon->memory % (ALIGN * sizeof(float));
    float *at =
        (float *)muon->memory + (past == 0 ? 0 : (ALIGN * sizeof(float) - past) / sizeof(float));
    for (size_t i = 0; i < BUFFERS; i++) {
        *buffers[i] = at;
        at += round_up(sizes[i], ALIGN);
    }
    *out = muon;
    return DP_OK;
}

void dp_muon_close(dp_muon *muon)
{
    if (muon != NULL) {
        dp_free(muon->memory);
        dp_free(muon);
    }
}

/* ---- Passes over rows of the matrix, and over panels. */

static size_t row_tasks(size_t rows)
{
    return (rows + ROWS - 1) / ROWS;
}

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
        float *const x = t->muon->x + row * t->columns;
        for (size_t i = 0; i < t->columns; i++) {
            const float g = grads[i] * t->job->grad_scale;
            momentum[i] = keep * momentum[i] + g;
            x[i] = g + keep * momentum[i];
        }
    }
}

static void scale_task(void *ctx, size_t index, size_t worker)
{
    const struct turn *t = ctx;
    (void)worker;
    const size_t first = index * ROWS * t->columns;
    const size_t last = least(first + ROWS * t->columns, t->rows * t->columns);
    for (size_t i = first; i < last; i++) {
        t->muon->x[i] *= t->scale;
    }
}

/* poly = aI + b gram + c poly, where poly holds gram squared. */
static void poly_task(void *ctx, size_t index, size_t worker)
{
    const struct turn *t = ctx;
    (void)worker;
    const size_t last = least((index + 1) * ROWS, t->side);
    for (size_t row = index * ROWS; row < last; row++) {
        float *const poly = t->muon->poly + row * t->side;
        const float *const gram = t->muon->gram + row * t->side;
        for (size_t i = 0; i < t->side; i++) {
            poly[i] = ns_b * gram[i] + ns_c * poly[i];
        }
        poly[row] += ns_a;
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
        const float *const o = t->muon->x + row * t->columns;
        for (size_t i = 0; i < t->columns; i++) {
            x[i] -= lr_decay * x[i] + t->scale * o[i];
        }
    }
}

static size_t panels_width(const dp_ops *ops)
{
    return ops->panel * ((DP_OPS_PANEL_MAX + ops->panel - 1) / ops->panel);
}

/* Some panels of the right side of the coming product. */
static void pack_task(void *ctx, size_t index, size_t worker)
{
    const struct turn *t = ctx;
    (void)worker;
    const dp_ops *const ops = t->job->ops;
    const size_t first = index * panels_width(ops);
    const size_t columns = least(panels_width(ops), t->product.n - first);
    const float *const from = t->transposed ? t->b + first * t->ld : t->b + first;
    ops->pack(from, t->ld, t->transposed, t->product.k, columns,
              t->muon->packed + first * t->product.k);
}

static void product_task(void *ctx, size_t index, size_t worker)
{
    const struct turn *t = ctx;
    (void)worker;
    dp_gemm gemm = t->product;
    const size_t first = index * ROWS;
    gemm.m = least(ROWS, t->product.m - first);
    gemm.a += first * gemm.a_row;
    gemm.c += first * gemm.ldc;
    t->job->ops->gemm(&gemm);
}

/* c [m][n] = a b, b at ld, transposed if said. */
static void multiply(struct turn *t, const dp_gemm *shape, const float *b, size_t ld,
                     bool transposed, dp_pool *pool)
{
    t->product = *shape;
    t->product.packed = t->muon->packed;
    t->b = b;
    t->ld = ld;
    t->transposed = transposed;
    const size_t width = panels_width(t->job->ops);
    dp_pool_run(pool, (shape->n + width - 1) / width, pack_task, t);
    dp_pool_run(pool, row_tasks(shape->m), product_task, t);
}

/* ---- One matrix. */

/* x becomes p(xx') x; for a tall x the same as x p(x'x). */
static void newton_schulz(struct turn *t, dp_pool *pool)
{
    struct dp_muon *const muon = t->muon;
    const bool tall = t->rows > t->columns;
    const size_t side = t->side;
    multiply(t,
             &(dp_gemm){.m = side,
                        .n = side,
                        .k = tall ? t->rows : t->columns,
                        .a = muon->x,
                        .a_row = tall ? 1 : t->columns,
                        .a_depth = tall ? t->columns : 1,
                        .c = muon->gram,
                        .ldc = side},
             muon->x, t->columns, !tall, pool);
    multiply(t,
             &(dp_gemm){.m = side,
                        .n = side,
                        .k = side,
                        .a = muon->gram,
                        .a_row = side,
                        .a_depth = 1,
                        .c = muon->poly,
                        .ldc = side},
             muon->gram, side, false, pool);
    dp_pool_run(pool, row_tasks(side), poly_task, t);
    multiply(t,
             &(dp_gemm){.m = t->rows,
                        .n = t->columns,
                        .k = side,
                        .a = tall ? muon->x : muon->poly,
                        .a_row = side,
                        .a_depth = 1,
                        .c = muon->next,
                        .ldc = t->columns},
             tall ? muon->poly : muon->x, t->columns, false, pool);
    float *const old = muon->x;
    muon->x = muon->next;
    muon->next = old;
}

static void turn_matrix(const dp_optim_job *job, const dp_tensor *tensor, const struct share *share,
                        dp_pool *pool)
{
    struct turn t = {.job = job,
                     .tensor = tensor,
                     .muon = job->optim->muon,
                     .rows = tensor->shape[0],
                     .columns = share->columns,
                     .at = share->first,
                     .stride = tensor->shape[1],
                     .momentum = job->optim->m + (tensor->offset - job->optim->first)};
    t.side = least(t.rows, t.columns);
    const size_t tasks = row_tasks(t.rows);
    dp_pool_run(pool, tasks, momentum_task, &t);
    const double norm = dp_norm(t.muon->x, t.rows * t.columns, job->optim->partial, pool);
    t.scale = (float)(1.0 / (norm + ns_eps));
    dp_pool_run(pool, tasks, scale_task, &t);
    for (int i = 0; i < NS_STEPS; i++) {
        newton_schulz(&t, pool);
    }
    const double longer = (double)most(t.rows, t.columns);
    t.scale = (float)((double)job->options->lr * match_adamw * sqrt(longer));
    dp_pool_run(pool, tasks, move_task, &t);
}

static void rest_task(void *ctx, size_t index, size_t worker)
{
    const dp_optim_job *job = ctx;
    (void)worker;
    const dp_optim_piece *const piece = &job->optim->pieces[index];
    if (!dp_muon_takes(dp_optim_tensor(job->optim, piece))) {
        dp_optim_adamw(job, piece);
    }
}

void dp_optim_muon(dp_optim_job *job, dp_pool *pool)
{
    const dp_optim *const optim = job->optim;
    dp_pool_run(pool, optim->n_pieces, rest_task, job);
    for (size_t i = 0; i < optim->n_pieces; i++) {
        const dp_tensor *const tensor = dp_optim_tensor(optim, &optim->pieces[i]);
        /* A matrix begins where its first piece does: parts are cut between tensors. */
        if (!dp_muon_takes(tensor) || optim->pieces[i].from != tensor->offset) {
            continue;
        }
        struct share shares[3];
        const size_t count = shares_of(optim->setup.model, tensor, shares);
        for (size_t k = 0; k < count; k++) {
            turn_matrix(job, tensor, &shares[k], pool);
        }
    }
}
