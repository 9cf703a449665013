#include "compute/cuda/engine_optim.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/model/newton_schulz.h"

enum { NS_STEPS = 5, SHARES_MAX = 3 };
#define NORM_MAX 1e18 /* as in optim.c */

/* ---- The pieces of each part. */

/* Columns of a tensor that are one matrix to Muon. */
typedef struct share {
    size_t first;
    size_t columns;
} share;

static bool muon_takes(const dp_cuda_optimizer *o, size_t tensor)
{
    const dp_tensor *const t = &o->model->tensors[tensor];
    return o->kind == DP_OPTIM_MUON && t->n_dims == 2 && t->slot < DP_LAYER_SLOTS;
}

/* The matrices that lie side by side in one tensor, because one product makes them: q, k and v,
 * gates and ups. */
static size_t shares_of(const dp_model *model, const dp_tensor *tensor, share shares[SHARES_MAX])
{
    const size_t columns = tensor->shape[1];
    if (tensor->slot == DP_LAYER_QKV_W) {
        const size_t q = (size_t)model->config.heads * model->config.head_width;
        const size_t k = (columns - q) / 2;
        shares[0] = (share){0, q};
        shares[1] = (share){q, k};
        shares[2] = (share){q + k, k};
        return 3;
    }
    if (tensor->slot == DP_LAYER_UP_W && model->config.activation == DP_ACTIVATION_SWIGLU) {
        shares[0] = (share){0, columns / 2};
        shares[1] = (share){columns / 2, columns / 2};
        return 2;
    }
    shares[0] = (share){0, columns};
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

/* Elements of the largest matrix, and of the square of the largest lesser side. */
static void largest_of(const dp_cuda_optimizer *o, size_t *matrix, size_t *square)
{
    *matrix = 0;
    *square = 0;
    for (size_t t = 0; t < o->model->n_tensors; t++) {
        const dp_tensor *const tensor = &o->model->tensors[t];
        share shares[SHARES_MAX];
        const size_t count = muon_takes(o, t) ? shares_of(o->model, tensor, shares) : 0;
        for (size_t k = 0; k < count; k++) {
            const size_t side = least(tensor->shape[0], shares[k].columns);
            *matrix = most(*matrix, tensor->shape[0] * shares[k].columns);
            *square = most(*square, side * side);
        }
    }
}

/* ---- Life. */

/* Pieces lie within a part or beside it: parts are cut at blocks or at tensors, as pieces are. */
static bool is_here(const dp_cuda_optimizer *o, const dp_cuda_piece *piece)
{
    return piece->from >= o->first && piece->from < o->first + o->n;
}

dp_status dp_cuda_optimizer_sizes(dp_cuda_optimizer *o, const dp_optim_setup *setup)
{
    const dp_optim_kind kind = setup->kind == 0 ? DP_OPTIM_ADAMW : setup->kind;
    const size_t parts = setup->parts == 0 ? 1 : setup->parts;
    dp_cuda_optimizer made = {.model = setup->model,
                              .kind = kind,
                              .weights = setup->weights == 0 ? DP_WEIGHTS_FP32 : setup->weights,
                              .seed = setup->seed};
    if (kind < DP_OPTIM_ADAMW || kind > DP_OPTIM_LAST || made.weights < DP_WEIGHTS_FP32 ||
        made.weights > DP_WEIGHTS_BF16_SR || setup->part >= parts) {
        return DP_BADARG;
    }
    made.first = dp_optim_cut(kind, setup->model, parts, setup->part);
    made.n = dp_optim_cut(kind, setup->model, parts, setup->part + 1) - made.first;
    made.n_pieces = dp_cuda_optim_table(setup->model, NULL, NULL); /* Of the whole: the most. */
    *o = made;
    return DP_OK;
}

dp_status dp_cuda_optimizer_open(dp_cuda_optimizer *o, const dp_optim_setup *setup)
{
    dp_cuda_optimizer made;
    DP_TRY(dp_cuda_optimizer_sizes(&made, setup));
    made.host_partial = dp_alloc(dp_norm_blocks(setup->model->n_elements), sizeof(double));
    if (made.host_partial == NULL) {
        return DP_NOMEM;
    }
    *o = made;
    return DP_OK;
}

void dp_cuda_optimizer_close(dp_cuda_optimizer *o)
{
    dp_free(o->host_partial);
    *o = (dp_cuda_optimizer){0};
}

void dp_cuda_optimizer_carve(dp_cuda_optimizer *o, dp_cuda_arena *arena)
{
    const size_t vector = o->n * sizeof(float);
    const size_t begin = arena->used;
    size_t matrix;
    size_t square;
    o->m = dp_cuda_carve(arena, vector);
    o->v = o->kind == DP_OPTIM_LARS ? NULL : dp_cuda_carve(arena, vector);
    o->master = o->weights == DP_WEIGHTS_BF16 ? dp_cuda_carve(arena, vector) : NULL;
    o->state_bytes = arena->used - begin;
    o->pieces = dp_cuda_carve(arena, o->n_pieces * sizeof *o->pieces);
    o->tensors = dp_cuda_carve(arena, o->model->n_tensors * sizeof *o->tensors);
    o->partial = dp_cuda_carve(arena, dp_norm_blocks(o->model->n_elements) * sizeof *o->partial);
    o->norm = dp_cuda_carve(arena, sizeof *o->norm);
    o->sums = dp_cuda_carve(arena, 2 * o->n_pieces * sizeof *o->sums);
    o->rates = dp_cuda_carve(arena, o->model->n_tensors * sizeof *o->rates);
    o->terms = dp_cuda_carve(arena, sizeof *o->terms);
    largest_of(o, &matrix, &square);
    o->turned = dp_cuda_carve(arena, matrix * sizeof(float));
    o->next = dp_cuda_carve(arena, matrix * sizeof(float));
    o->gram = dp_cuda_carve(arena, square * sizeof(float));
    o->poly = dp_cuda_carve(arena, square * sizeof(float));
}

static dp_status put(dp_cuda_optimizer *o, void *to, const void *from, size_t bytes)
{
    DP_TRY(DP_CUDA(o->device, copy, to, from, bytes, DP_CUDA_TO_DEVICE, o->device->compute));
    return dp_cuda_wait(o->device, o->device->compute); /* from is not page-locked, and freed. */
}

/* Those of the part, counted from its begin; each tensor's stay side by side. */
static void keep_part(dp_cuda_optimizer *o, dp_cuda_piece *all, dp_cuda_pieces_of *tensors)
{
    const size_t count = o->n_pieces;
    for (size_t t = 0; t < o->model->n_tensors; t++) {
        tensors[t].first = 0;
        tensors[t].count = 0;
    }
    o->n_pieces = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_here(o, &all[i])) {
            continue;
        }
        dp_cuda_pieces_of *const of = &tensors[all[i].tensor];
        of->first = of->count == 0 ? (uint32_t)o->n_pieces : of->first;
        of->count++;
        all[o->n_pieces] = all[i];
        all[o->n_pieces].from -= o->first;
        all[o->n_pieces].to -= o->first;
        o->n_pieces++;
    }
}

/* Those that AdamW moves come first; LAMB and LARS take all, in the order of the tensors' table. */
static void sort_pieces(dp_cuda_optimizer *o, const dp_cuda_piece *all, dp_cuda_piece *sorted)
{
    size_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < o->n_pieces; i++) {
            if (muon_takes(o, all[i].tensor) == (pass == 1)) {
                sorted[count++] = all[i];
            }
        }
        o->n_adamw = pass == 0 ? count : o->n_adamw;
    }
}

dp_status dp_cuda_optimizer_start(dp_cuda_optimizer *o)
{
    const size_t n_tensors = o->model->n_tensors;
    dp_cuda_piece *const all = dp_alloc(o->n_pieces, sizeof *all);
    dp_cuda_piece *const sorted = dp_alloc(o->n_pieces, sizeof *sorted);
    dp_cuda_pieces_of *const tensors = dp_alloc(n_tensors, sizeof *tensors);
    dp_status status = DP_NOMEM;
    if (all != NULL && sorted != NULL && tensors != NULL) {
        dp_cuda_optim_table(o->model, all, tensors);
        keep_part(o, all, tensors);
        sort_pieces(o, all, sorted);
        status = put(o, o->pieces, sorted, o->n_pieces * sizeof *sorted);
    }
    if (status == DP_OK) {
        status = put(o, o->tensors, tensors, n_tensors * sizeof *tensors);
    }
    dp_free(tensors);
    dp_free(sorted);
    dp_free(all);
    return status == DP_OK ? dp_cuda_optimizer_reset(o) : status;
}

dp_status dp_cuda_optimizer_reset(dp_cuda_optimizer *o)
{
    o->steps = 0;
    return DP_CUDA(o->device, fill, o->m, 0, o->state_bytes, o->device->compute);
}

/* ---- The norm. */

dp_status dp_cuda_optimizer_squares(dp_cuda_optimizer *o, const float *x, size_t n)
{
    const cudaStream_t stream = o->device->compute;
    const size_t bytes = dp_norm_blocks(n) * sizeof *o->partial;
    if (n == 0) {
        return DP_OK;
    }
    DP_TRY(DP_CUDA_RUN(o->device, dp_cuda_squares(x, n, o->partial, stream)));
    DP_TRY(DP_CUDA(o->device, copy, o->host_partial, o->partial, bytes, DP_CUDA_TO_HOST, stream));
    return dp_cuda_wait(o->device, stream);
}

dp_status dp_cuda_optimizer_norm(dp_cuda_optimizer *o, const float *x, double *norm)
{
    const size_t n = o->model->n_elements;
    DP_TRY(dp_cuda_optimizer_squares(o, x, n));
    *norm = dp_norm_of(o->host_partial, n);
    return DP_OK;
}

/* ---- The step. */

/* Vectors begin where the part does. */
typedef struct job {
    dp_cuda_optimizer *o;
    float *x; /* the values that the step moves: parameters or masters */
    const float *grads;
} job;

static dp_status adamw(const job *j)
{
    dp_cuda_optimizer *const o = j->o;
    return DP_CUDA_RUN(o->device, dp_cuda_adamw(j->x, o->m, o->v, j->grads, o->pieces, o->n_adamw,
                                                &o->terms->adamw, o->device->compute));
}

static dp_status lamb(const job *j)
{
    dp_cuda_optimizer *const o = j->o;
    const dp_cuda_layer_terms *const terms = &o->terms->layer;
    const cudaStream_t stream = o->device->compute;
    DP_TRY(DP_CUDA_RUN(o->device, dp_cuda_lamb_look(j->x, o->m, o->v, j->grads, o->pieces,
                                                    o->n_pieces, terms, o->sums, stream)));
    DP_TRY(DP_CUDA_RUN(
        o->device, dp_cuda_lamb_rates(o->sums, o->tensors, o->model->n_tensors, o->rates, stream)));
    return DP_CUDA_RUN(o->device, dp_cuda_lamb_move(j->x, o->m, o->v, o->pieces, o->n_pieces, terms,
                                                    o->rates, stream));
}

static dp_status lars(const job *j)
{
    dp_cuda_optimizer *const o = j->o;
    const dp_cuda_layer_terms *const terms = &o->terms->layer;
    const cudaStream_t stream = o->device->compute;
    DP_TRY(DP_CUDA_RUN(o->device,
                       dp_cuda_lars_look(j->x, j->grads, o->pieces, o->n_pieces, o->sums, stream)));
    DP_TRY(DP_CUDA_RUN(o->device, dp_cuda_lars_rates(o->sums, o->tensors, o->model->n_tensors,
                                                     terms, o->rates, stream)));
    return DP_CUDA_RUN(o->device, dp_cuda_lars_move(j->x, o->m, j->grads, o->pieces, o->n_pieces,
                                                    terms, o->rates, stream));
}

/* ---- Muon. */

/* c [m][n] = a b, all dense fp32. */
static dp_status multiply(dp_cuda_optimizer *o, const dp_cuda_product *shape, const float *a,
                          const float *b, float *c)
{
    dp_cuda_product product = *shape;
    product.a = a;
    product.lda = product.a_transposed ? product.m : product.k;
    product.b = b;
    product.ldb = product.b_transposed ? product.k : product.n;
    product.c = c;
    product.ldc = product.n;
    return dp_cuda_gemm_run(o->gemm, &product, o->device->compute);
}

/* turned becomes p(xx') x; for a tall x the same as x p(x'x). */
static dp_status newton_schulz(dp_cuda_optimizer *o, size_t rows, size_t columns)
{
    const bool tall = rows > columns;
    const size_t side = least(rows, columns);
    const bool tf32 = side >= DP_NS_BF16_SIDE; /* as the CPU takes bf16, which is less exact */
    const dp_cuda_product gram = {.m = side,
                                  .n = side,
                                  .k = most(rows, columns),
                                  .a_transposed = tall,
                                  .b_transposed = !tall,
                                  .tf32 = tf32};
    const dp_cuda_product square = {.m = side, .n = side, .k = side, .tf32 = tf32};
    const dp_cuda_product turn = {.m = rows, .n = columns, .k = side, .tf32 = tf32};
    DP_TRY(multiply(o, &gram, o->turned, o->turned, o->gram));
    DP_TRY(multiply(o, &square, o->gram, o->gram, o->poly));
    DP_TRY(DP_CUDA_RUN(o->device, dp_cuda_muon_poly(o->poly, o->gram, side, o->device->compute)));
    DP_TRY(multiply(o, &turn, tall ? o->turned : o->poly, tall ? o->poly : o->turned, o->next));
    float *const old = o->turned;
    o->turned = o->next;
    o->next = old;
    return DP_OK;
}

static dp_status turn_matrix(const job *j, const dp_tensor *tensor, const share *s)
{
    dp_cuda_optimizer *const o = j->o;
    const cudaStream_t stream = o->device->compute;
    const dp_cuda_muon_terms *const terms = &o->terms->muon;
    const size_t rows = tensor->shape[0];
    const size_t stride = tensor->shape[1];
    const size_t n = rows * s->columns;
    const size_t at = tensor->offset - o->first + s->first;
    DP_TRY(DP_CUDA_RUN(o->device, dp_cuda_muon_momentum(o->m + at, j->grads + at, stride, rows,
                                                        s->columns, terms, o->turned, stream)));
    DP_TRY(DP_CUDA_RUN(o->device, dp_cuda_squares(o->turned, n, o->partial, stream)));
    DP_TRY(DP_CUDA_RUN(o->device, dp_cuda_norm_of(o->partial, dp_norm_blocks(n), o->norm, stream)));
    DP_TRY(DP_CUDA_RUN(o->device, dp_cuda_muon_scale(o->turned, n, o->norm, stream)));
    for (int i = 0; i < NS_STEPS; i++) {
        DP_TRY(newton_schulz(o, rows, s->columns));
    }
    const double root = sqrt((double)most(rows, s->columns));
    return DP_CUDA_RUN(o->device, dp_cuda_muon_move(j->x + at, stride, o->turned, rows, s->columns,
                                                    tensor->decay ? 1 : 0, root, terms, stream));
}

static dp_status muon(const job *j)
{
    DP_TRY(adamw(j));
    for (size_t t = 0; t < j->o->model->n_tensors; t++) {
        const dp_tensor *const tensor = &j->o->model->tensors[t];
        share shares[SHARES_MAX];
        const bool here = tensor->offset >= j->o->first && tensor->offset < j->o->first + j->o->n;
        const size_t count =
            here && muon_takes(j->o, t) ? shares_of(j->o->model, tensor, shares) : 0;
        for (size_t k = 0; k < count; k++) {
            DP_TRY(turn_matrix(j, tensor, &shares[k]));
        }
    }
    return DP_OK;
}

/* ---- The whole. */

static dp_status move(const job *j)
{
    switch (j->o->kind) {
    case DP_OPTIM_ADAMW:
        return adamw(j);
    case DP_OPTIM_LAMB:
        return lamb(j);
    case DP_OPTIM_LARS:
        return lars(j);
    case DP_OPTIM_MUON:
        return muon(j);
    }
    return DP_BADARG;
}

static dp_status round_weights(dp_cuda_optimizer *o, float *x)
{
    const cudaStream_t stream = o->device->compute;
    if (o->weights == DP_WEIGHTS_BF16_SR) {
        return DP_CUDA_RUN(o->device,
                           dp_cuda_chance(x, o->n, o->first, o->seed, &o->terms->step, stream));
    }
    return o->master == NULL ? DP_OK
                             : DP_CUDA_RUN(o->device, dp_cuda_nearest(x, o->master, o->n, stream));
}

static dp_cuda_optim_terms terms_of(const dp_cuda_optimizer *o, const dp_optim_options *options,
                                    float grad_scale)
{
    const double correct1 = 1.0 - pow((double)options->beta1, (double)o->steps);
    const double correct2 = 1.0 - pow((double)options->beta2, (double)o->steps);
    return (dp_cuda_optim_terms){
        .adamw = {.lr = (float)((double)options->lr / correct1),
                  .beta1 = options->beta1,
                  .beta2 = options->beta2,
                  .eps = options->eps,
                  .lr_decay = options->lr * options->decay,
                  .v_scale = (float)(1.0 / correct2),
                  .grad_scale = grad_scale},
        .layer = {.lr = options->lr,
                  .beta1 = o->kind == DP_OPTIM_LARS ? options->momentum : options->beta1,
                  .beta2 = options->beta2,
                  .eps = options->eps,
                  .decay = options->decay,
                  .m_scale = (float)(1.0 / correct1),
                  .v_scale = (float)(1.0 / correct2),
                  .grad_scale = grad_scale},
        .muon = {.lr = options->lr,
                 .decay = options->decay,
                 .momentum = options->momentum,
                 .grad_scale = grad_scale},
        .step = o->steps};
}

dp_status dp_cuda_optimizer_begin(dp_cuda_optimizer *o, const dp_optim_options *options,
                                  double norm)
{
    if (!(norm <= NORM_MAX)) {
        return DP_DIVERGED;
    }
    const double scale = options->loss_scale > 0.0F ? (double)options->loss_scale : 1.0;
    const double length = norm / scale;
    const double clip = (double)options->clip;
    const bool clips = clip > 0.0 && length > clip;
    /* The terms of the step before have been read: nothing to wait for after a norm. */
    DP_TRY(dp_cuda_wait(o->device, o->device->compute));
    o->steps++;
    *o->host_terms = terms_of(o, options, (float)((clips ? clip / length : 1.0) / scale));
    return DP_OK;
}

dp_status dp_cuda_optimizer_move(dp_cuda_optimizer *o, float *x, const float *grads)
{
    const cudaStream_t stream = o->device->compute;
    float *const part = x + o->first;
    const job j = {.o = o, .x = o->master != NULL ? o->master : part, .grads = grads + o->first};
    if (o->n == 0) {
        return DP_OK;
    }
    DP_TRY(DP_CUDA(o->device, copy, o->terms, o->host_terms, sizeof *o->terms, DP_CUDA_TO_DEVICE,
                   stream));
    if (o->master != NULL) {
        DP_TRY(DP_CUDA_RUN(o->device, dp_cuda_masters(o->master, part, o->n, stream)));
    }
    DP_TRY(move(&j));
    return round_weights(o, part);
}
