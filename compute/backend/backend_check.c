/* The self-test: training and evaluation on each model and precision. The calls of a round are in
 * backend_check_rounds.c. */
#include "compute/backend/backend_check.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "compute/backend/backend_check_inside.h"
#include "compute/backend/backend_cpu.h"
#include "compute/cpu/precision.h"
#include "compute/model/state.h"

enum { ROWS = DP_TWINS_ROWS, LENGTH = DP_TWINS_LENGTH, VOCAB = DP_TWINS_VOCAB, STEPS = 3 };

typedef dp_twins twins;

static const char *const vector_names[DP_VECTORS] = {"x", "theta", "e", "F", "a", "anchor", "m"};

dp_status dp_twins_differ(const twins *t, const char *what, double got, double wanted)
{
    return dp_why_set(t->why, DP_UNSUPPORTED, "its %s in %s is %.9g where the CPU has %.9g", what,
                      dp_precision_name(dp_precision_of_kind(t->precision)), got, wanted);
}

dp_status dp_twins_told(const twins *t, int twin, const char *call, dp_status status)
{
    if (status == DP_OK) {
        return DP_OK;
    }
    const char *const problem = t->of[twin]->problem(t->engines[twin]);
    return dp_why_set(t->why, status, "its call %s failed: %s", call,
                      problem[0] != '\0' ? problem : dp_status_text(status));
}

dp_status dp_twins_near(const twins *t, const char *what, const double values[2])
{
    const double allowed = t->tolerance * fmax(fabs(values[1]), 1e-3);
    return fabs(values[0] - values[1]) <= allowed ? DP_OK
                                                  : dp_twins_differ(t, what, values[0], values[1]);
}

dp_status dp_twins_same(const twins *t, dp_vector vector, const char *after)
{
    const float *const got = t->of[0]->values(t->engines[0], vector);
    const float *const wanted = t->of[1]->values(t->engines[1], vector);
    if (got == NULL) {
        return dp_twins_told(t, 0, "values", DP_IO);
    }
    for (size_t i = 0; i < t->model.n_elements; i++) {
        if (dp_float_bits(got[i]) != dp_float_bits(wanted[i])) {
            return dp_why_set(t->why, DP_UNSUPPORTED,
                              "after %s element %zu of %s is %.9g where the CPU has %.9g", after, i,
                              vector_names[vector], (double)got[i], (double)wanted[i]);
        }
    }
    return DP_OK;
}

dp_status dp_twins_same_all(const twins *t, const char *after)
{
    for (int v = 0; v < DP_VECTORS; v++) {
        DP_TRY(dp_twins_same(t, (dp_vector)v, after));
    }
    return DP_OK;
}

/* ---- Near: training and looking. */

static dp_gpt_batch batch_of(const twins *t)
{
    return (dp_gpt_batch){.x = t->tokens, .y = t->tokens + 1, .rows = ROWS, .length = LENGTH};
}

/* Compares the gradients, as one vector. */
static dp_status same_gradients(const twins *t)
{
    const float *const got = t->of[0]->gradients(t->engines[0]);
    const float *const wanted = t->of[1]->gradients(t->engines[1]);
    if (got == NULL) {
        return dp_twins_told(t, 0, "gradients", DP_IO);
    }
    double apart = 0;
    double whole = 0;
    for (size_t i = 0; i < t->model.n_elements; i++) {
        const double difference = (double)got[i] - (double)wanted[i];
        apart += difference * difference;
        whole += (double)wanted[i] * (double)wanted[i];
    }
    const double lengths[2] = {sqrt(whole) + sqrt(apart), sqrt(whole)};
    return dp_twins_near(t, "gradient, with what it is off,", lengths);
}

static dp_status train_once(twins *t)
{
    const dp_gpt_batch batch = batch_of(t);
    const dp_optim_options options = {.lr = 1e-3F,
                                      .beta1 = 0.9F,
                                      .beta2 = 0.95F,
                                      .eps = 1e-8F,
                                      .decay = 0.1F,
                                      .clip = 1.0F,
                                      .momentum = 0.9F,
                                      .loss_scale = 1.0F};
    double losses[2];
    double norms[2];
    for (int twin = 0; twin < 2; twin++) {
        const dp_backend *const b = t->of[twin];
        dp_engine *const e = t->engines[twin];
        DP_TRY(dp_twins_told(t, twin, "step",
                             b->step(e, &batch, 1.0F / (ROWS * LENGTH), &losses[twin])));
        DP_TRY(dp_twins_told(t, twin, "norm", b->norm(e, &norms[twin])));
    }
    DP_TRY(dp_twins_near(t, "loss", losses));
    DP_TRY(dp_twins_near(t, "gradient norm", norms));
    DP_TRY(same_gradients(t));
    for (int twin = 0; twin < 2; twin++) {
        DP_TRY(dp_twins_told(t, twin, "update",
                             t->of[twin]->update(t->engines[twin], &options, norms[twin])));
        DP_TRY(dp_twins_told(t, twin, "drop", t->of[twin]->drop(t->engines[twin])));
    }
    return DP_OK;
}

static dp_status look(twins *t, dp_vector weights)
{
    const dp_gpt_batch batch = batch_of(t);
    double losses[2];
    float logits[2][VOCAB];
    for (int twin = 0; twin < 2; twin++) {
        const dp_backend *const b = t->of[twin];
        DP_TRY(dp_twins_told(t, twin, "loss",
                             b->loss(t->engines[twin], weights, &batch, &losses[twin])));
        DP_TRY(dp_twins_told(
            t, twin, "logits",
            b->logits(t->engines[twin], weights, t->tokens, LENGTH / 2, logits[twin])));
    }
    DP_TRY(dp_twins_near(t, "loss without training", losses));
    double largest = 0;
    for (size_t i = 0; i < VOCAB; i++) {
        const double size = fabs((double)logits[1][i]);
        largest = size > largest ? size : largest; /* Not fmax(): gcc 12 for arm64 breaks down. */
    }
    for (size_t i = 0; i < VOCAB; i++) {
        if (!(fabs((double)logits[0][i] - (double)logits[1][i]) <= t->tolerance * largest)) {
            return dp_twins_differ(t, "logit", (double)logits[0][i], (double)logits[1][i]);
        }
    }
    return DP_OK;
}

/* Documents that are kept apart in a batch, by the weights behind training. */
static dp_status check_documents(twins *t)
{
    enum { TOKENS = ROWS * LENGTH };
    uint32_t x[TOKENS];
    uint32_t y[TOKENS];
    double losses[2];
    const dp_gpt_batch batch = {.x = x, .y = y, .rows = ROWS, .length = LENGTH};
    for (size_t i = 0; i < TOKENS; i++) {
        x[i] = t->tokens[i] | (i % LENGTH == LENGTH / 3 ? DP_TOKEN_BEGINS : 0);
        y[i] = i % 4 == 0 ? DP_TOKEN_NO_LOSS : t->tokens[i + 1];
    }
    for (int twin = 0; twin < 2; twin++) {
        DP_TRY(dp_twins_told(
            t, twin, "step",
            t->of[twin]->step(t->engines[twin], &batch, 1.0F / TOKENS, &losses[twin])));
    }
    DP_TRY(dp_twins_near(t, "loss of documents", losses));
    DP_TRY(same_gradients(t));
    for (int twin = 0; twin < 2; twin++) {
        DP_TRY(dp_twins_told(t, twin, "drop", t->of[twin]->drop(t->engines[twin])));
    }
    return DP_OK;
}

static dp_status check_training(twins *t)
{
    DP_TWINS_DO(t, init, 7);
    DP_TRY(dp_twins_same(t, DP_VECTOR_THETA, "init"));
    DP_TWINS_DO(t, copy, DP_VECTOR_X, DP_VECTOR_THETA);
    for (int i = 0; i < STEPS; i++) {
        DP_TRY(train_once(t));
    }
    DP_TRY(look(t, DP_VECTOR_X));
    DP_TRY(look(t, DP_VECTOR_THETA));
    if ((t->of[0]->capabilities & DP_CAN_DOCUMENTS) != 0) {
        DP_TRY(check_documents(t));
    }
    return dp_twins_same(t, DP_VECTOR_THETA, "training");
}

/* A token beyond the vocabulary, bytes too short, a number that is none: refused, and nothing
 * changes. */
static dp_status check_refusals(twins *t)
{
    const dp_backend *const b = t->of[0];
    uint32_t beyond[LENGTH] = {VOCAB};
    const dp_gpt_batch batch = {.x = beyond, .y = t->tokens, .rows = 1, .length = LENGTH};
    double loss;
    if (b->step(t->engines[0], &batch, 1.0F, &loss) != DP_BADARG) {
        return dp_why_set(t->why, DP_UNSUPPORTED, "it takes a token beyond the vocabulary");
    }
    const float *const theta = t->of[1]->values(t->engines[1], DP_VECTOR_THETA);
    dp_buf_clear(&t->bytes);
    DP_TRY(dp_floats_write(theta, t->model.n_elements, &t->bytes));
    dp_view bytes = dp_buf_view(&t->bytes);
    memset(t->bytes.data + bytes.size - 4, 0xff, 4);
    if (b->load(t->engines[0], DP_VECTOR_THETA, bytes) != DP_DIVERGED) {
        return dp_why_set(t->why, DP_UNSUPPORTED, "it loads numbers that are not finite");
    }
    bytes.size -= 4;
    if (b->load(t->engines[0], DP_VECTOR_THETA, bytes) != DP_BADMSG) {
        return dp_why_set(t->why, DP_UNSUPPORTED, "it loads a vector that is too short");
    }
    return dp_twins_same(t, DP_VECTOR_THETA, "what must be refused");
}

/* ---- The whole. */

dp_status dp_twins_open(twins *t, const dp_model_config *config, uint32_t device)
{
    DP_TRY(dp_model_open(&t->model, config, t->why));

    const dp_engine_setup setup = {.model = &t->model,
                                   .precision = t->precision,
                                   .optimizer = t->optimizer,
                                   .weights = t->weights,
                                   .seed = 3,
                                   .rows_max = ROWS,
                                   .recompute = t->recompute,
                                   .threads = 1,
                                   .momentum = true};
    dp_engine_setup own = setup;
    own.device = device;
    own.shared = true; /* A node may be training there. */
    const dp_status status = t->of[0]->create(&t->engines[0], &own, t->why);
    t->refused = status == DP_UNSUPPORTED;
    DP_TRY(status);
    DP_TRY(t->of[1]->create(&t->engines[1], &setup, t->why));
    dp_buf_init(&t->bytes, 4 * t->model.n_elements);
    dp_rng rng;
    dp_rng_init(&rng, 11);
    for (size_t i = 0; i < sizeof t->tokens / sizeof t->tokens[0]; i++) {
        t->tokens[i] = (uint32_t)dp_rng_below(&rng, VOCAB);
    }
    return DP_OK;
}

void dp_twins_close(twins *t)
{
    for (int twin = 0; twin < 2; twin++) {
        t->of[twin]->close(t->engines[twin]);
        t->engines[twin] = NULL;
    }
    dp_buf_close(&t->bytes);
    dp_model_close(&t->model);
}

/* A model, how much of it is computed again, and whether rounds are tried with it: they know
 * vectors alone, so they are with the first ones. */
typedef struct subject {
    dp_model_config config;
    dp_recompute recompute;
    bool rounds;
} subject;

static dp_status check_model(twins *t, const subject *what, uint32_t device)
{
    t->recompute = what->recompute;
    dp_status status = dp_twins_open(t, &what->config, device);
    if (status == DP_OK) {
        status = check_training(t);
    }
    if (status == DP_OK) {
        status = check_refusals(t);
    }
    if (status == DP_OK && what->rounds) {
        status = dp_twins_check_rounds(t);
    }
    dp_twins_close(t);
    return status;
}

/* One model in one precision after the other; *tried: how many there were. */
static dp_status check_models(twins *t, uint32_t device, const dp_backend_told *told, size_t *tried)
{
    /* The last three have heads as published models have, for which a card may take other
     * kernels. */
    static const subject models[] = {
        {{.layers = 2, .width = 64, .heads = 4, .context = LENGTH, .vocab = VOCAB},
         DP_RECOMPUTE_NORMS,
         true},
        {{.layers = 2,
          .width = 64,
          .heads = 4,
          .context = LENGTH,
          .vocab = VOCAB,
          .arch = DP_ARCH_LLAMA,
          .kv_heads = 2,
          .qk_norm = DP_ON},
         DP_RECOMPUTE_LAYER,
         true},
        {{.layers = 1,
          .width = 32,
          .heads = 2,
          .context = LENGTH,
          .vocab = VOCAB,
          .arch = DP_ARCH_LLAMA,
          .kv_heads = 1,
          .head_width = 64,
          .hidden = 64},
         DP_RECOMPUTE_ATTENTION,
         false},
        {{.layers = 1,
          .width = 32,
          .heads = 1,
          .context = LENGTH,
          .vocab = VOCAB,
          .arch = DP_ARCH_LLAMA,
          .head_width = 128,
          .hidden = 64},
         DP_RECOMPUTE_NOTHING,
         false},
        {{.layers = 1,
          .width = 32,
          .heads = 1,
          .context = LENGTH,
          .vocab = VOCAB,
          .arch = DP_ARCH_LLAMA,
          .head_width = 256,
          .hidden = 64},
         DP_RECOMPUTE_NOTHING,
         false}};
    dp_status status = DP_OK;
    for (size_t m = 0; !t->refused && m < sizeof models / sizeof models[0]; m++) {
        status = check_model(t, &models[m], device);
        if (status != DP_OK && !t->refused) {
            return status;
        }
        *tried += status == DP_OK;
        if (told != NULL) {
            told->passed(told->context);
        }
    }
    return status;
}

dp_status dp_backend_check(const dp_backend *backend, uint32_t device, const dp_backend_told *told,
                           dp_why *why)
{
    /* The largest relative difference that another order of sums makes of three steps, with a wide
     * margin. */
    static const struct {
        uint32_t capability;
        dp_precision_kind precision;
        double tolerance;
    } precisions[] = {{DP_CAN_FP32, DP_PRECISION_FP32, 1e-3},
                      {DP_CAN_BF16, DP_PRECISION_BF16, 5e-2},
                      {DP_CAN_FP16, DP_PRECISION_FP16, 2e-2}};
    size_t tried = 0;
    dp_status status = DP_OK;
    for (size_t p = 0; p < sizeof precisions / sizeof precisions[0]; p++) {
        twins t = {.of = {backend, dp_backend_cpu()},
                   .precision = precisions[p].precision,
                   .optimizer = DP_OPTIM_ADAMW,
                   .weights = DP_WEIGHTS_FP32,
                   .tolerance = precisions[p].tolerance,
                   .why = why};
        if ((backend->capabilities & precisions[p].capability) == 0) {
            continue;
        }
        status = check_models(&t, device, told, &tried);
        if (status != DP_OK && !t.refused) {
            return status;
        }
    }
    if (tried == 0) {
        return status;
    }
    return dp_backend_check_optimizers(backend, device, told, why);
}
