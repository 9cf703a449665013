/* The table of the CPU: opening and closing, vectors, training and evaluation. Rounds are in
 * backend_cpu_rounds.c. */
#include "compute/backend/backend_cpu.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/backend/backend_cpu_inside.h"
#include "compute/codec/feedback.h"
#include "compute/machine/memory.h"
#include "compute/machine/sensors.h"
#include "compute/model/state.h"

/* ---- Devices. */

static uint32_t devices(dp_why *why)
{
    (void)why;
    return 1;
}

static dp_status device(uint32_t index, dp_device *out, dp_why *why)
{
    if (index != 0) {
        return dp_why_set(why, DP_BADARG, "there is no processor %u, only 0", index);
    }
    char sensors[DP_SENSORS_PATH_MAX];
    dp_sensors_folder(sensors);
    *out = (dp_device){.memory_usable = dp_memory_usable(),
                       .celsius = dp_sensors_celsius(sensors),
                       .bf16 = dp_ops_has_fast_bf16()};
    snprintf(out->name, sizeof out->name, "%s, %zu threads", dp_ops_best()->name,
             dp_pool_threads_default());
    return DP_OK;
}

static dp_status plan_of(uint32_t index, const dp_plan_request *request, dp_plan *plan, dp_why *why)
{
    (void)index;
    dp_plan_request whole = *request;
    if (whole.threads == 0) {
        whole.threads = dp_pool_threads_default();
    }
    if (whole.budget == 0) {
        /* A standalone trainer maps its base from a file. */
        const uint64_t base = request->alone ? 0 : request->manifest->base_bytes;
        const uint64_t usable = dp_memory_usable_with(request->loaded ? request->data + base : 0);
        whole.budget = usable != 0 ? usable : UINT64_MAX;
    }
    return dp_plan_make(plan, &whole, why);
}

/* ---- Where vectors are. */

bool dp_backend_cpu_is_of_gpt(const dp_engine *e, dp_vector v)
{
    return e->gpt != NULL && (v == DP_VECTOR_X || (e->alone && v == DP_VECTOR_THETA));
}

const float *dp_backend_cpu_read(const dp_engine *e, dp_vector v)
{
    return dp_backend_cpu_is_of_gpt(e, v) ? dp_gpt_params(e->gpt) : e->owned[v];
}

float *dp_backend_cpu_write(dp_engine *e, dp_vector v)
{
    if (dp_backend_cpu_is_of_gpt(e, v)) {
        if (e->team != NULL) {
            dp_process_group_moved(e->team);
        }
        return dp_gpt_params_to_write(e->gpt);
    }
    if (e->gpt != NULL) {
        dp_gpt_look_at(e->gpt, NULL); /* It may have looked at this one. */
    }
    return e->owned[v];
}

/* ---- Life. */

static void engine_close(dp_engine *e)
{
    if (e == NULL) {
        return;
    }
    dp_buf_close(&e->blobs[1]);
    dp_buf_close(&e->blobs[0]);
    for (int v = 0; v < DP_VECTORS; v++) {
        dp_free(e->owned[v]);
    }
    dp_process_group_engine_close(e->team);
    dp_optim_close(&e->optim);
    dp_gpt_close(e->gpt);
    dp_pool_close(e->pool);
    dp_free(e);
}

/* Opens the optimizer: the whole one here, or its parts in a process group. */
static dp_status open_training(dp_engine *e, const dp_engine_setup *setup, dp_why *why)
{
    const dp_optim_setup optim = {.model = setup->model,
                                  .kind = setup->optimizer,
                                  .weights = setup->weights,
                                  .seed = setup->seed,
                                  .threads = dp_pool_threads(e->pool)};
    return setup->team == NULL
               ? dp_optim_init(&e->optim, &optim)
               : dp_process_group_open(&e->team, setup->team, setup, e->gpt, e->pool, why);
}

/* The vectors that the network does not hold: x too where there is none. */
static dp_status open_vectors(dp_engine *e, const dp_engine_setup *setup)
{
    for (int v = e->gpt != NULL ? DP_VECTOR_X + 1 : DP_VECTOR_X; v < DP_VECTORS; v++) {
        if (v == DP_VECTOR_M && !setup->momentum) {
            continue;
        }
        e->owned[v] = dp_alloc(e->n, sizeof(float));
        if (e->owned[v] == NULL) {
            return DP_NOMEM;
        }
    }
    const uint64_t blob_bytes = dp_codec_bytes_max_any(e->n);
    dp_buf_init(&e->blobs[0], blob_bytes);
    dp_buf_init(&e->blobs[1], blob_bytes);
    return DP_OK;
}

static dp_status engine_open(dp_engine *e, const dp_engine_setup *setup, const dp_ops *ops,
                             dp_why *why)
{
    const struct dp_process_group *const team = setup->team;
    e->model = setup->model;
    e->n = setup->model->n_elements;
    e->alone = setup->alone;
    e->encoding = DP_VECTOR_NONE;
    if (setup->model->config.arch == DP_ARCH_EXTERNAL) {
        dp_assert(team == NULL && !e->alone);
        return open_vectors(e, setup);
    }
    if (setup->model->base != NULL && team != NULL) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "adapters are trained by one process on the CPU: leave out --processes, "
                          "and its threads do the work");
    }
    e->rows = team == NULL ? setup->rows_max
                           : dp_process_group_rows(setup->rows_max, dp_process_group_lanes(team));
    if (team != NULL) {
        dp_process_group_bind(team);
    }
    DP_TRY(dp_pool_open(&e->pool, setup->threads));
    const dp_gpt_options options = {.rows_max = e->rows,
                                    .pool = e->pool,
                                    .precision = dp_precision_of_kind(setup->precision),
                                    .recompute = setup->recompute,
                                    .packs = setup->packs,
                                    .ops = ops,
                                    .base = setup->base,
                                    .grads_elsewhere = team != NULL};
    DP_TRY(dp_gpt_open(&e->gpt, setup->model, &options));
    DP_TRY(open_training(e, setup, why));
    return e->alone ? DP_OK : open_vectors(e, setup);
}

dp_status dp_backend_cpu_create(dp_engine **out, const dp_engine_setup *setup, const dp_ops *ops,
                                dp_why *why)
{
    if (setup->device != 0) {
        return dp_why_set(why, DP_BADARG, "there is no processor %u, only 0", setup->device);
    }
    if (setup->model->n_elements > DP_CODEC_ELEMENTS_MAX) {
        return dp_why_set(why, DP_TOOBIG, "a model of %zu numbers is too large: %zu at most",
                          setup->model->n_elements, DP_CODEC_ELEMENTS_MAX);
    }
    dp_engine *const e = dp_alloc(1, sizeof *e);
    if (e == NULL) {
        return DP_NOMEM;
    }
    dp_assert(setup->team == NULL || ops == NULL); /* The other processes use the fastest table. */
    const dp_status status = engine_open(e, setup, ops, why);
    if (status != DP_OK) {
        engine_close(e);
        return status;
    }
    *out = e;
    return DP_OK;
}

static dp_status create(dp_engine **out, const dp_engine_setup *setup, dp_why *why)
{
    if (setup->parts > 1) { /* Its teams are inside it (process_group.h). */
        return dp_why_set(why, DP_UNSUPPORTED, "an engine of the CPU holds the whole, no part");
    }
    return dp_backend_cpu_create(out, setup, NULL, why);
}

static const char *problem(const dp_engine *e)
{
    return e->team != NULL ? dp_process_group_problem(e->team) : "";
}

/* ---- Vectors. */

static dp_status init(dp_engine *e, uint64_t seed)
{
    if (e->gpt == NULL) {
        return DP_UNSUPPORTED;
    }
    dp_model_init(e->model, seed, dp_backend_cpu_write(e, DP_VECTOR_THETA));
    return DP_OK;
}

static dp_status load(dp_engine *e, dp_vector to, dp_view bytes)
{
    return dp_floats_read(bytes, dp_backend_cpu_write(e, to), e->n);
}

static const float *values(dp_engine *e, dp_vector from)
{
    return dp_backend_cpu_read(e, from);
}

static dp_status zero(dp_engine *e, dp_vector to)
{
    memset(dp_backend_cpu_write(e, to), 0, e->n * sizeof(float));
    return DP_OK;
}

static dp_status copy(dp_engine *e, dp_vector to, dp_vector from)
{
    dp_assert(to != from);
    memcpy(dp_backend_cpu_write(e, to), dp_backend_cpu_read(e, from), e->n * sizeof(float));
    return DP_OK;
}

static dp_status add(dp_engine *e, dp_vector to, dp_vector from)
{
    float *const x = dp_backend_cpu_write(e, to);
    const float *const y = dp_backend_cpu_read(e, from);
    for (size_t i = 0; i < e->n; i++) {
        x[i] += y[i];
    }
    return DP_OK;
}

static dp_status subtract(dp_engine *e, dp_vector to, dp_vector from)
{
    float *const x = dp_backend_cpu_write(e, to);
    const float *const y = dp_backend_cpu_read(e, from);
    for (size_t i = 0; i < e->n; i++) {
        x[i] -= y[i];
    }
    return DP_OK;
}

static dp_status scale(dp_engine *e, dp_vector to, uint32_t lambda)
{
    dp_feedback_scale(dp_backend_cpu_write(e, to), lambda, e->n);
    return DP_OK;
}

static dp_status snapshot(dp_engine *e, dp_vector to, dp_vector feedback, dp_vector from)
{
    const float *const x = dp_backend_cpu_read(e, DP_VECTOR_X);
    if (feedback == DP_VECTOR_NONE) {
        return dp_feedback_difference(dp_backend_cpu_write(e, to), dp_backend_cpu_read(e, from), x,
                                      e->n);
    }
    return dp_feedback_publish(dp_backend_cpu_write(e, to), dp_backend_cpu_read(e, feedback),
                               dp_backend_cpu_read(e, from), x, e->n);
}

/* ---- Training. */

static dp_status reset(dp_engine *e)
{
    if (e->team != NULL) {
        return dp_process_group_reset(e->team);
    }
    if (e->gpt != NULL) {
        dp_optim_reset(&e->optim);
    }
    return DP_OK;
}

static dp_status drop(dp_engine *e)
{
    if (e->team != NULL) {
        dp_process_group_drop(e->team);
    } else if (e->gpt != NULL) {
        dp_gpt_zero_grads(e->gpt);
    }
    return DP_OK;
}

static dp_status step(dp_engine *e, const dp_gpt_batch *batch, float factor, double *loss_sum)
{
    if (e->gpt == NULL) {
        return DP_UNSUPPORTED;
    }
    return e->team != NULL ? dp_process_group_step(e->team, batch, factor, loss_sum)
                           : dp_gpt_step(e->gpt, batch, factor, loss_sum);
}

static const float *gradients_of(dp_engine *e)
{
    if (e->gpt == NULL) {
        return NULL;
    }
    return e->team != NULL ? dp_process_group_gradients(e->team) : dp_gpt_grads(e->gpt);
}

static dp_status norm_of(dp_engine *e, double *norm)
{
    if (e->team != NULL) {
        return dp_process_group_norm(e->team, norm);
    }
    if (e->gpt == NULL) {
        return DP_UNSUPPORTED;
    }
    *norm = dp_norm(dp_gpt_grads(e->gpt), e->n, e->optim.partial, e->pool);
    return DP_OK;
}

static dp_status update(dp_engine *e, const dp_optim_options *options, double norm)
{
    if (e->team != NULL) {
        return dp_process_group_update(e->team, options, norm);
    }
    if (e->gpt == NULL) {
        return DP_UNSUPPORTED;
    }
    return dp_optim_step_with(&e->optim, dp_backend_cpu_write(e, DP_VECTOR_X), dp_gpt_grads(e->gpt),
                              options, e->pool, norm);
}

static size_t lend_state(dp_engine *e, dp_optim_vector out[DP_BACKEND_STATE_MAX])
{
    size_t count;
    if (e->gpt == NULL) {
        return 0;
    }
    out[0] = (dp_optim_vector){.name = "x", .values = dp_backend_cpu_write(e, DP_VECTOR_X)};
    if (e->team != NULL) {
        return dp_process_group_lend(e->team, out + 1, &count) == DP_OK ? 1 + count : 0;
    }
    return 1 + dp_optim_vectors(&e->optim, out + 1);
}

static dp_status take_state(dp_engine *e, uint64_t updates)
{
    if (e->team != NULL) {
        return dp_process_group_take(e->team, updates);
    }
    e->optim.steps = updates;
    return DP_OK;
}

static uint64_t updates_of(const dp_engine *e)
{
    return e->team != NULL ? dp_process_group_updates(e->team) : e->optim.steps;
}

/* ---- Looking at a model. */

static void look_at(dp_engine *e, dp_vector weights)
{
    dp_gpt_look_at(e->gpt, dp_backend_cpu_is_of_gpt(e, weights) ? NULL : e->owned[weights]);
}

static dp_status loss(dp_engine *e, dp_vector weights, const dp_gpt_batch *batch, double *loss_sum)
{
    double sum = 0;
    if (e->gpt == NULL) {
        return DP_UNSUPPORTED;
    }
    look_at(e, weights);
    if (e->team == NULL || batch->rows == 0) {
        return dp_gpt_loss(e->gpt, batch, loss_sum);
    }
    /* As many rows at a time as there is room for in one process of a team. */
    for (size_t from = 0; from < batch->rows; from += e->rows) {
        dp_gpt_batch part = *batch;
        double some;
        part.x += from * batch->length;
        part.y += from * batch->length;
        part.rows = batch->rows - from < e->rows ? batch->rows - from : e->rows;
        DP_TRY(dp_gpt_loss(e->gpt, &part, &some));
        sum += some;
    }
    *loss_sum = sum;
    return DP_OK;
}

static dp_status logits_of(dp_engine *e, dp_vector weights, const uint32_t *tokens, size_t length,
                           float *logits)
{
    if (e->gpt == NULL) {
        return DP_UNSUPPORTED;
    }
    look_at(e, weights);
    return dp_gpt_logits(e->gpt, tokens, length, logits);
}

const dp_backend *dp_backend_cpu(void)
{
    static const dp_backend cpu = {
        .magic = DP_BACKEND_MAGIC,
        .version = DP_BACKEND_VERSION,
        .layout = DP_BACKEND_LAYOUT,
        .capabilities = DP_CAN_FP32 | DP_CAN_BF16 | DP_CAN_FP16 | DP_CAN_ADAMW | DP_CAN_LAMB |
                        DP_CAN_LARS | DP_CAN_MUON | DP_CAN_BF16_WEIGHTS | DP_CAN_CODECS |
                        DP_CAN_ADAPTERS | DP_CAN_DOCUMENTS,
        .name = "cpu",
        .devices = devices,
        .device = device,
        .plan = plan_of,
        .create = create,
        .close = engine_close,
        .problem = problem,
        .init = init,
        .load = load,
        .values = values,
        .zero = zero,
        .copy = copy,
        .add = add,
        .subtract = subtract,
        .scale = scale,
        .snapshot = snapshot,
        .reset = reset,
        .drop = drop,
        .step = step,
        .gradients = gradients_of,
        .norm = norm_of,
        .update = update,
        .lend_state = lend_state,
        .take_state = take_state,
        .updates = updates_of,
        .loss = loss,
        .logits = logits_of,
        .encode = dp_backend_cpu_encode,
        .encode_start = dp_backend_cpu_encode_start,
        .encode_ready = dp_backend_cpu_encode_ready,
        .encode_take = dp_backend_cpu_encode_take,
        .settle = dp_backend_cpu_settle,
        .apply = dp_backend_cpu_apply,
        .mix = dp_backend_cpu_mix,
    };
    return &cpu;
}
