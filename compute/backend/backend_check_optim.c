/* The self-test's optimizers: the way that weights and moments go beside the CPU's, and a state
 * that is lent and taken. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/backend/backend_check_inside.h"
#include "compute/backend/backend_cpu.h"

enum { UPDATES = 3 };

/* Loss scale, decay and eps large enough that an optimizer without one of them gives other
 * weights. */
static const dp_optim_options options = {.lr = 1e-2F,
                                         .beta1 = 0.9F,
                                         .beta2 = 0.95F,
                                         .eps = 1e-3F,
                                         .decay = 5.0F,
                                         .momentum = 0.9F,
                                         .loss_scale = 2.0F};

/* How far the twins' vectors may be apart, as a share of the way that the CPU's went. Gradients
 * that differ by their last bits go through a division by small moments; and where weights are
 * bf16, one may be rounded to its other neighbour. */
typedef struct way {
    const char *name;
    dp_optim_kind optimizer;
    dp_weights_kind weights;
    uint32_t capability;
    double bound;
} way;

typedef struct trial {
    dp_twins twins;
    const way *way;
    float *start; /* x before, owned */
} trial;

/* Gradients of two micro-batches added up, and their update. Every other one is clipped: the
 * clipped do not show the loss scale. */
static dp_status update(dp_twins *t)
{
    dp_optim_options how = options;
    how.clip = t->of[1]->updates(t->engines[1]) % 2 == 0 ? 0.5F : 0;
    const float scale = 2.0F / (3 * DP_TWINS_LENGTH);
    for (int twin = 0; twin < 2; twin++) {
        const dp_backend *const b = t->of[twin];
        dp_engine *const e = t->engines[twin];
        double loss;
        double norm;
        for (size_t rows = DP_TWINS_ROWS; rows > 0; rows--) {
            const dp_gpt_batch batch = {
                .x = t->tokens, .y = t->tokens + 1, .rows = rows, .length = DP_TWINS_LENGTH};
            DP_TRY(dp_twins_told(t, twin, "step", b->step(e, &batch, scale, &loss)));
        }
        DP_TRY(dp_twins_told(t, twin, "norm", b->norm(e, &norm)));
        DP_TRY(dp_twins_told(t, twin, "update", b->update(e, &how, norm)));
        DP_TRY(dp_twins_told(t, twin, "drop", b->drop(e)));
    }
    if (t->of[0]->updates(t->engines[0]) != t->of[1]->updates(t->engines[1])) {
        return dp_twins_differ(t, "number of updates", (double)t->of[0]->updates(t->engines[0]),
                               (double)t->of[1]->updates(t->engines[1]));
    }
    return DP_OK;
}

/* |got - wanted| / |wanted - start|; start NULL: from 0. */
static double apart(const float *got, const float *wanted, const float *start, size_t n)
{
    double difference = 0;
    double whole = 0;
    for (size_t i = 0; i < n; i++) {
        const double off = (double)got[i] - (double)wanted[i];
        const double went = (double)wanted[i] - (start == NULL ? 0 : (double)start[i]);
        difference += off * off;
        whole += went * went;
    }
    return whole > 0 ? sqrt(difference / whole) : sqrt(difference);
}

static dp_status lend(const dp_twins *t, dp_optim_vector lent[2][DP_BACKEND_STATE_MAX],
                      size_t *count)
{
    size_t counts[2];
    for (int twin = 0; twin < 2; twin++) {
        counts[twin] = t->of[twin]->lend_state(t->engines[twin], lent[twin]);
        if (counts[twin] == 0) {
            return dp_twins_told(t, twin, "lend_state", DP_IO);
        }
    }
    if (counts[0] != counts[1]) {
        return dp_twins_differ(t, "number of optimizer's vectors", (double)counts[0],
                               (double)counts[1]);
    }
    *count = counts[1];
    return DP_OK;
}

/* x went the CPU's way from start, and so did moments and masters. start is x as it is now then. */
static dp_status same_way(trial *r)
{
    const dp_twins *const t = &r->twins;
    const size_t n = t->model.n_elements;
    dp_optim_vector lent[2][DP_BACKEND_STATE_MAX];
    size_t count = 0;
    DP_TRY(lend(t, lent, &count));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(lent[0][i].name, lent[1][i].name) != 0) {
            return dp_why_set(t->why, DP_UNSUPPORTED,
                              "its optimizer has a vector %.16s where the CPU's has %s",
                              lent[0][i].name, lent[1][i].name);
        }
        const double share =
            apart(lent[0][i].values, lent[1][i].values, i == 0 ? r->start : NULL, n);
        if (!(share <= r->way->bound)) {
            return dp_why_set(t->why, DP_UNSUPPORTED,
                              "after updates by %s its %s is %.3g of the way from the CPU's, "
                              "where it may be %.3g",
                              r->way->name, lent[1][i].name, share, r->way->bound);
        }
    }
    memcpy(r->start, lent[1][0].values, n * sizeof *r->start);
    return DP_OK;
}

/* The backend goes on from the CPU's state. */
static dp_status take(trial *r)
{
    const dp_twins *const t = &r->twins;
    dp_optim_vector lent[2][DP_BACKEND_STATE_MAX];
    size_t count = 0;
    DP_TRY(lend(t, lent, &count));
    for (size_t i = 0; i < count; i++) {
        memcpy(lent[0][i].values, lent[1][i].values, t->model.n_elements * sizeof(float));
    }
    const uint64_t updates = t->of[1]->updates(t->engines[1]);
    DP_TRY(dp_twins_told(t, 0, "take_state", t->of[0]->take_state(t->engines[0], updates)));
    return dp_twins_same(t, DP_VECTOR_X, "take_state");
}

static dp_status check_updates(trial *r)
{
    dp_twins *const t = &r->twins;
    DP_TWINS_DO(t, init, 7);
    DP_TWINS_DO(t, copy, DP_VECTOR_X, DP_VECTOR_THETA);
    memcpy(r->start, t->of[1]->values(t->engines[1], DP_VECTOR_X),
           t->model.n_elements * sizeof *r->start);
    for (int i = 0; i < UPDATES; i++) {
        DP_TRY(update(t));
    }
    DP_TRY(same_way(r));
    DP_TRY(take(r));
    DP_TRY(update(t));
    DP_TRY(same_way(r));
    for (int twin = 0; twin < 2; twin++) {
        DP_TRY(dp_twins_told(t, twin, "reset", t->of[twin]->reset(t->engines[twin])));
    }
    DP_TRY(update(t));
    return same_way(r);
}

static dp_status check_way(const dp_backend *backend, const way *w, uint32_t device, dp_why *why)
{
    /* Matrices that are several side by side, wide and tall ones, vectors, a table. */
    static const dp_model_config config = {.layers = 1,
                                           .width = 32,
                                           .heads = 2,
                                           .context = DP_TWINS_LENGTH,
                                           .vocab = DP_TWINS_VOCAB,
                                           .arch = DP_ARCH_LLAMA,
                                           .kv_heads = 1,
                                           .hidden = 48};
    trial r = {.twins = {.of = {backend, dp_backend_cpu()},
                         .precision = DP_PRECISION_FP32,
                         .optimizer = w->optimizer,
                         .weights = w->weights,
                         .recompute = DP_RECOMPUTE_NORMS,
                         .why = why},
               .way = w};
    dp_status status = dp_twins_open(&r.twins, &config, device);
    if (status == DP_OK) {
        r.start = dp_alloc(r.twins.model.n_elements, sizeof *r.start);
        status = r.start == NULL ? DP_NOMEM : check_updates(&r);
    }
    dp_free(r.start);
    dp_twins_close(&r.twins);
    return status;
}

dp_status dp_backend_check_optimizers(const dp_backend *backend, uint32_t device,
                                      const dp_backend_told *told, dp_why *why)
{
    static const way ways[] = {{"adamw", DP_OPTIM_ADAMW, DP_WEIGHTS_FP32, DP_CAN_ADAMW, 0.01},
                               {"adamw with weights in bf16", DP_OPTIM_ADAMW, DP_WEIGHTS_BF16,
                                DP_CAN_ADAMW | DP_CAN_BF16_WEIGHTS, 0.1},
                               {"adamw with weights in bf16 by chance", DP_OPTIM_ADAMW,
                                DP_WEIGHTS_BF16_SR, DP_CAN_ADAMW | DP_CAN_BF16_WEIGHTS, 0.1},
                               {"lamb", DP_OPTIM_LAMB, DP_WEIGHTS_FP32, DP_CAN_LAMB, 0.01},
                               {"lars", DP_OPTIM_LARS, DP_WEIGHTS_FP32, DP_CAN_LARS, 0.01},
                               {"muon", DP_OPTIM_MUON, DP_WEIGHTS_FP32, DP_CAN_MUON, 0.02}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const uint32_t needed = ways[i].capability | DP_CAN_FP32;
        if ((backend->capabilities & needed) != needed) {
            continue;
        }
        DP_TRY(check_way(backend, &ways[i], device, why));
        if (told != NULL) {
            told->passed(told->context);
        }
    }
    return DP_OK;
}
