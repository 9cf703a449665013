#include "compute/backend/plan.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "compute/backend/process_group.h"
#include "compute/codec/codec.h"
#include "compute/cpu/ops.h"
#include "compute/data/loader.h"
#include "compute/model/base_weights.h"
#include "compute/model/optim.h"

enum {
    TOKENS_ENOUGH = 2048, /* of a micro-batch: packing the weights for it is then a small part */
    ANCHORS = 5
};
/* Activations beyond the last cache gain nothing on a CPU. */
static const uint64_t activations_most = (uint64_t)2 << 30;

const char *dp_recompute_name(dp_recompute recompute)
{
    static const char *const names[DP_RECOMPUTE_STEPS] = {"nothing", "norms", "attention", "layer"};
    return (unsigned)recompute < DP_RECOMPUTE_STEPS ? names[recompute] : "?";
}

static uint64_t processes_of(const dp_plan_request *request)
{
    return request->processes > 0 ? request->processes : 1;
}

/* State and scratch of the optimizer (optim.h). */
static uint64_t moments_of(const dp_plan_request *request, const dp_model *model)
{
    const dp_manifest *const m = request->manifest;
    uint64_t vectors = m->optimizer == DP_OPTIM_LARS ? 1 : 2;
    vectors += m->weights == DP_WEIGHTS_BF16 ? 1 : 0;
    return sizeof(float) * vectors * model->n_elements +
           processes_of(request) * dp_optim_scratch_bytes(m->optimizer, model, request->threads);
}

/* A voter compares others' updates with its own newest one, which it keeps in 16 bits
 * (trainer_judge.c). Any member may become one. */
static uint64_t judged_of(const dp_manifest *manifest, const dp_model *model)
{
    return manifest->trust == DP_TRUST_OPEN ? sizeof(uint16_t) * (uint64_t)model->n_elements : 0;
}

/* Counts the memory that does not depend on rows and recomputation. */
static void count_fixed(dp_plan *plan, const dp_plan_request *request, const dp_model *model)
{
    const dp_manifest *const m = request->manifest;
    const dp_gpt_options options = {.rows_max = 1,
                                    .precision = dp_precision_of_kind(request->manifest->precision),
                                    .packs = plan->packs};
    const dp_gpt_memory memory = dp_gpt_memory_of(model, &options, request->threads);
    const uint64_t vector = sizeof(float) * (uint64_t)model->n_elements;
    plan->parameters = model->n_parameters;
    plan->data = request->data;
    plan->base =
        model->base != NULL ? dp_base_weights_bytes(model->base, request->manifest->base_kind) : 0;
    const uint64_t processes = processes_of(request);
    plan->weights = processes * memory.params;
    plan->gradients = memory.grads;
    plan->packed = processes * memory.packed;
    if (request->processes > 0) { /* zero.h: a copy of the weights for all, a sum for each lane */
        plan->weights += vector;
        plan->gradients = request->lanes * vector;
    }
    plan->moments = moments_of(request, model);
    const uint64_t momentum = dp_manifest_moments(m) * vector;
    const uint64_t gradients = m->exchange == DP_EXCHANGE_GRADIENTS ? 2 * vector : 0;
    plan->anchors = request->alone ? 0 : ANCHORS * vector + momentum;
    plan->buffers = processes * memory.scratch + vector;
    if (!request->alone) {
        plan->buffers += momentum + gradients; /* of the state on its way; of trainer_gradients.c */
        const dp_codec codec = dp_codec_of_run(m);
        plan->buffers += 2 * dp_codec_bytes_max(&codec, model->n_elements);
        plan->buffers += judged_of(m, model);
        plan->daemon = 2 * (vector + momentum);
    }
}

static uint64_t fixed_of(const dp_plan *plan)
{
    return plan->weights + plan->gradients + plan->moments + plan->anchors + plan->packed +
           plan->buffers + plan->daemon + plan->data + plan->base;
}

/* Tokens in memory: those of the loader, and a micro-batch of an evaluation, x and y. */
static uint64_t batches_of(const dp_model *model, uint32_t rows)
{
    return dp_loader_bytes(model->config.context, rows) +
           2 * sizeof(uint32_t) * (uint64_t)rows * model->config.context;
}

static dp_plan_step step_of(const dp_plan *plan, const dp_plan_request *request,
                            const dp_model *model, dp_recompute recompute, uint32_t rows)
{
    const bool team = request->processes > 0;
    const dp_gpt_options options = {.rows_max =
                                        team ? dp_process_group_rows(rows, request->lanes) : rows,
                                    .precision = dp_precision_of_kind(request->manifest->precision),
                                    .recompute = recompute,
                                    .packs = plan->packs};
    const dp_gpt_memory memory = dp_gpt_memory_of(model, &options, request->threads);
    const uint64_t board = team ? 2 * sizeof(uint32_t) * (uint64_t)rows * model->config.context : 0;
    const uint64_t activations =
        processes_of(request) * memory.activations + batches_of(model, rows) + board;
    return (dp_plan_step){
        .rows = rows, .activations = activations, .total = fixed_of(plan) + activations};
}

static bool fits(const dp_plan *plan, const dp_plan_step *step)
{
    return step->total <= plan->budget &&
           (step->rows == 1 || step->activations <= activations_most);
}

/* The largest micro-batch, by bisection: more rows never take less. */
static dp_plan_step largest_step(const dp_plan *plan, const dp_plan_request *request,
                                 const dp_model *model, dp_recompute recompute)
{
    dp_plan_step best =
        step_of(plan, request, model, recompute, request->rows > 0 ? request->rows : 1);
    if (request->rows > 0 ? best.total > plan->budget : !fits(plan, &best)) {
        best.rows = 0;
        return best;
    }
    if (request->rows > 0) {
        return best;
    }
    const uint32_t batch = request->manifest->batch_rows;
    uint32_t beyond = (batch < DP_GPT_ROWS_MAX ? batch : DP_GPT_ROWS_MAX) + 1;
    while (beyond - best.rows > 1) {
        const uint32_t middle = best.rows + (beyond - best.rows) / 2;
        const dp_plan_step step = step_of(plan, request, model, recompute, middle);
        if (fits(plan, &step)) {
            best = step;
        } else {
            beyond = middle;
        }
    }
    return best;
}

static void choose(dp_plan *plan, const dp_plan_request *request)
{
    const dp_manifest *const m = request->manifest;
    const uint64_t batch = (uint64_t)m->batch_rows * m->context;
    const uint64_t enough = batch < TOKENS_ENOUGH ? batch : TOKENS_ENOUGH;
    dp_recompute chosen = DP_RECOMPUTE_NORMS;
    for (int at = DP_RECOMPUTE_NORMS; at < DP_RECOMPUTE_STEPS; at++) {
        if (plan->steps[at].rows > plan->steps[chosen].rows) {
            chosen = (dp_recompute)at;
        }
        if ((uint64_t)plan->steps[chosen].rows * m->context >= enough) {
            break;
        }
    }
    if (plan->steps[chosen].rows == 0) {
        chosen = DP_RECOMPUTE_LAYER; /* Report the smallest missing amount. */
    }
    plan->recompute = chosen;
    plan->rows = plan->steps[chosen].rows;
    plan->activations = plan->steps[chosen].activations;
    plan->total = plan->steps[chosen].total;
}

static void count_with(dp_plan *plan, const dp_plan_request *request, const dp_model *model,
                       dp_gpt_packs packs)
{
    *plan = (dp_plan){.budget = request->budget, .packs = packs};
    count_fixed(plan, request, model);
    for (int at = 0; at < DP_RECOMPUTE_STEPS; at++) {
        plan->steps[at] = largest_step(plan, request, model, (dp_recompute)at);
    }
    choose(plan, request);
}

/* A model that only a script trains: the vectors of rounds, and a state and two blobs in transit.
 * The script's own memory is not known. */
static void count_vectors(dp_plan *plan, const dp_plan_request *request)
{
    const dp_manifest *const m = request->manifest;
    dp_model model;
    dp_model_open_vector(&model, m->elements);
    const uint64_t vector = sizeof(float) * (uint64_t)model.n_elements;
    const uint64_t moments = dp_manifest_moments(m) * vector;
    const dp_codec codec = dp_codec_of_run(m);
    *plan = (dp_plan){.budget = request->budget,
                      .parameters = m->elements,
                      .weights = vector,
                      .anchors = ANCHORS * vector + moments,
                      .daemon = 2 * (vector + moments),
                      .data = request->data};
    plan->buffers = vector + moments + 2 * dp_codec_bytes_max(&codec, model.n_elements);
    plan->total = fixed_of(plan);
    plan->rows = plan->total <= plan->budget ? 1 : 0;
    for (int at = 0; at < DP_RECOMPUTE_STEPS; at++) {
        plan->steps[at] = (dp_plan_step){.rows = plan->rows, .total = plan->total};
    }
}

static dp_status count(dp_plan *plan, const dp_plan_request *request, dp_why *why)
{
    const dp_model_config config = dp_manifest_model(request->manifest);
    dp_model model = {0};
    if (dp_manifest_external(request->manifest)) {
        count_vectors(plan, request);
        return DP_OK;
    }
    DP_TRY(dp_model_open(&model, &config, why));
    dp_plan shared;
    count_with(plan, request, &model, DP_GPT_PACKS_KEPT);
    count_with(&shared, request, &model, DP_GPT_PACKS_SHARED);
    if (model.base != NULL || plan->rows == 0 || shared.rows > plan->rows ||
        model.config.context >= TOKENS_ENOUGH) {
        *plan = shared;
    }
    dp_model_close(&model);
    return DP_OK;
}

/* A setting that may be lowered until something fits. */
static const struct lever {
    const char *key;
    size_t offset; /* of a u32 in dp_manifest */
    uint32_t least;
} levers[] = {{"model.context", offsetof(dp_manifest, context), 8},
              {"model.layers", offsetof(dp_manifest, layers), 1},
              {"model.vocab", offsetof(dp_manifest, vocab), 256}};

static bool fits_with(const dp_plan_request *request, const struct lever *lever, uint32_t value)
{
    dp_manifest manifest = *request->manifest;
    memcpy((char *)&manifest + lever->offset, &value, sizeof value);
    dp_plan_request changed = *request;
    changed.manifest = &manifest;
    changed.rows = 0;
    dp_plan plan;
    return count(&plan, &changed, NULL) == DP_OK && plan.rows > 0;
}

/* The largest value of one setting, the others as they are, with which something fits; 0 if there
 * is none. */
static uint32_t value_that_fits(const dp_plan_request *request, const struct lever *lever)
{
    uint32_t beyond;
    memcpy(&beyond, (const char *)request->manifest + lever->offset, sizeof beyond);
    uint32_t value = lever->least;
    if (value >= beyond || !fits_with(request, lever, value)) {
        return 0;
    }
    while (beyond - value > 1) {
        const uint32_t middle = value + (beyond - value) / 2;
        if (fits_with(request, lever, middle)) {
            value = middle;
        } else {
            beyond = middle;
        }
    }
    return value;
}

static dp_status nothing_fits(const dp_plan *plan, const dp_plan_request *request, dp_why *why)
{
    const double mib = 1024.0 * 1024.0;
    char advice[160] = "";
    char data[64] = "";
    dp_plan fewer;
    dp_plan_request any = *request;
    if (dp_manifest_external(request->manifest)) {
        return dp_why_set(why, DP_TOOBIG,
                          "the vectors of this model take %.0f MiB, and %.0f MiB are there; the "
                          "script that trains it needs more on top",
                          (double)plan->total / mib, (double)plan->budget / mib);
    }
    any.rows = 0;
    if (request->rows > 1 && count(&fewer, &any, NULL) == DP_OK && fewer.rows > 0) {
        return dp_why_set(
            why, DP_TOOBIG,
            "training this model with %" PRIu32 " sequences at a time takes %.0f MiB, "
            "and %.0f MiB are there; --rows %" PRIu32 " would fit",
            request->rows, (double)plan->total / mib, (double)plan->budget / mib, fewer.rows);
    }
    for (size_t i = 0; i < sizeof levers / sizeof levers[0]; i++) {
        const uint32_t value = value_that_fits(request, &levers[i]);
        if (value > 0) {
            const size_t used = strlen(advice);
            /* A setting that does not fit into the sentence is left out. */
            DP_IGNORE(snprintf(advice + used, sizeof advice - used, "%s%s %" PRIu32,
                               used == 0 ? "" : " or ", levers[i].key, value) < 0);
        }
    }
    if (plan->data > plan->budget / 4) { /* Else the data is not worth a change. */
        snprintf(data, sizeof data, ", %.0f of them the data,", (double)plan->data / mib);
    }
    const char *const otherwise = plan->data >= plan->budget
                                      ? "take less data"
                                      : "take a smaller model.width or model.preset";
    return dp_why_set(
        why, DP_TOOBIG,
        "training this model takes %.0f MiB%s with one sequence and all recomputed, and "
        "%.0f MiB are there; %s%s",
        (double)plan->total / mib, data, (double)plan->budget / mib,
        advice[0] == '\0' ? otherwise : advice, advice[0] == '\0' ? "" : " would fit");
}

dp_status dp_plan_make(dp_plan *plan, const dp_plan_request *request, dp_why *why)
{
    DP_TRY(count(plan, request, why));
    return plan->rows > 0 ? DP_OK : nothing_fits(plan, request, why);
}

dp_status dp_plan_json(const dp_plan *plan, const dp_why *why, dp_buf *out)
{
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {{"budget", plan->budget},
                  {"total", plan->total},
                  {"parameters", plan->parameters},
                  {"weights", plan->weights},
                  {"gradients", plan->gradients},
                  {"moments", plan->moments},
                  {"anchors", plan->anchors},
                  {"packed", plan->packed},
                  {"buffers", plan->buffers},
                  {"daemon", plan->daemon},
                  {"data", plan->data},
                  {"base", plan->base},
                  {"activations", plan->activations},
                  {"rows", plan->rows}};
    char text[1024];
    DP_TRY(dp_buf_append(out, dp_view_text("{")));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        snprintf(text, sizeof text, "\"%s\":%" PRIu64 ",", fields[i].name, fields[i].value);
        DP_TRY(dp_buf_append(out, dp_view_text(text)));
    }
    snprintf(text, sizeof text, "\"recompute\":\"%s\",\"packs\":\"%s\",\"steps\":[",
             dp_recompute_name(plan->recompute),
             plan->packs == DP_GPT_PACKS_KEPT ? "kept" : "shared");
    DP_TRY(dp_buf_append(out, dp_view_text(text)));
    for (int at = 0; at < DP_RECOMPUTE_STEPS; at++) {
        const dp_plan_step *const step = &plan->steps[at];
        snprintf(text, sizeof text,
                 "%s{\"recompute\":\"%s\",\"rows\":%" PRIu32 ",\"activations\":%" PRIu64
                 ",\"total\":%" PRIu64 "}",
                 at == 0 ? "" : ",", dp_recompute_name((dp_recompute)at), step->rows,
                 step->activations, step->total);
        DP_TRY(dp_buf_append(out, dp_view_text(text)));
    }
    /* Sentences of this file hold neither quotes nor backslashes. */
    snprintf(text, sizeof text, "],\"fits\":%s%s%s%s}\n", plan->rows > 0 ? "true" : "false",
             plan->rows > 0 ? "" : ",\"why\":\"", plan->rows > 0 ? "" : why->text,
             plan->rows > 0 ? "" : "\"");
    return dp_buf_append(out, dp_view_text(text));
}
