/* Steps, updates and looks. */
#include "compute/cuda/engine.h"

#include <math.h>
#include <string.h>

#include "compute/cuda/cast.h"

/* Of the update's graph; those of passes are odd. */
static const uint64_t UPDATE_KEY = 2;

/* ---- A micro-batch. */

static dp_status check_tokens(const dp_engine *e, const uint32_t *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] >= e->shape.model->config.vocab) {
            return DP_BADARG;
        }
    }
    return DP_OK;
}

static dp_status check_batch(const dp_engine *e, const dp_gpt_batch *batch)
{
    if (batch->rows == 0 || batch->rows > DP_GPT_ROWS_MAX || batch->length == 0 ||
        batch->length > e->shape.model->config.context) {
        return DP_BADARG;
    }
    DP_TRY(check_tokens(e, batch->x, batch->rows * batch->length));
    return batch->y == NULL ? DP_OK : check_tokens(e, batch->y, batch->rows * batch->length);
}

/* The net computes with this vector: its typed copy is made where it is old. */
static dp_status look_at(dp_engine *e, dp_vector v)
{
    const float *const wanted = dp_cuda_vector(e, v);
    e->net.params = wanted;
    e->net.grads = e->grads;
    e->net.weights = e->typed == NULL ? (const void *)wanted : e->typed;
    if (e->typed == NULL || e->typed_of == wanted) {
        return DP_OK;
    }
    DP_TRY(DP_CUDA_RUN(&e->device,
                       dp_cuda_cast(e->typed, e->shape.type, wanted, e->n, e->device.compute)));
    e->typed_of = wanted;
    return DP_OK;
}

/* One pass over the rows of net.rows, as a graph captures it. */
struct pass {
    dp_engine *e;
    bool backward;
};

static dp_status pass_on_stream(void *context)
{
    const struct pass *const pass = context;
    dp_engine *const e = pass->e;
    const dp_cuda_net *const net = &e->net;
    const size_t bytes = net->n * sizeof(uint32_t);
    const cudaStream_t stream = e->device.compute;
    DP_TRY(DP_CUDA(&e->device, copy, net->tokens, e->host_batch, bytes, DP_CUDA_TO_DEVICE, stream));
    DP_TRY(DP_CUDA(&e->device, copy, net->targets, e->host_batch + net->n, bytes, DP_CUDA_TO_DEVICE,
                   stream));
    DP_TRY(DP_CUDA(&e->device, copy, net->scale, e->host_scale, sizeof *net->scale,
                   DP_CUDA_TO_DEVICE, stream));
    DP_TRY(dp_cuda_net_run(&e->net, pass->backward));
    return DP_CUDA(&e->device, copy, e->host_losses, net->losses, net->n * sizeof(float),
                   DP_CUDA_TO_HOST, stream);
}

/* Shapes and the vector looked at: the inputs on which a graph depends. */
static uint64_t key_of(const dp_engine *e, const struct pass *pass)
{
    const bool other = e->net.params != e->vectors[DP_VECTOR_X];
    return 1U | (pass->backward ? 2U : 0U) | (other ? 4U : 0U) | (uint64_t)e->net.rows << 3 |
           (uint64_t)e->net.length << 20;
}

/* Rows [first, first + rows) of a batch. */
struct rows {
    size_t first;
    size_t rows;
};

/* Adds their losses to *sum. */
static dp_status run_rows(dp_engine *e, const dp_gpt_batch *batch, const struct rows *of,
                          bool backward, double *sum)
{
    dp_cuda_net *const net = &e->net;
    struct pass pass = {.e = e, .backward = backward};
    const size_t first = of->first;
    net->rows = of->rows;
    net->length = batch->length;
    net->n = of->rows * batch->length;
    memcpy(e->host_batch, batch->x + first * batch->length, net->n * sizeof *batch->x);
    memcpy(e->host_batch + net->n, batch->y + first * batch->length, net->n * sizeof *batch->y);
    DP_TRY(dp_cuda_graphs_run(&e->graphs, key_of(e, &pass), pass_on_stream, &pass));
    DP_TRY(dp_cuda_wait(&e->device, e->device.compute));
    for (size_t i = 0; i < net->n; i++) {
        *sum += (double)e->host_losses[i];
    }
    return DP_OK;
}

/* In as many parts as the card's memory asks for. */
static dp_status run_batch(dp_engine *e, const dp_gpt_batch *batch, bool backward, double *loss_sum)
{
    double sum = 0.0;
    for (size_t first = 0; first < batch->rows; first += e->shape.rows) {
        const size_t left = batch->rows - first;
        const struct rows rows = {.first = first,
                                  .rows = left < e->shape.rows ? left : e->shape.rows};
        DP_TRY(run_rows(e, batch, &rows, backward, &sum));
    }
    if (!isfinite(sum)) {
        return DP_DIVERGED;
    }
    *loss_sum = sum;
    return DP_OK;
}

dp_status dp_cuda_e_step(dp_engine *e, const dp_gpt_batch *batch, float scale, double *loss_sum)
{
    DP_TRY(check_batch(e, batch));
    if (!(scale > 0.0F) || !isfinite(scale)) {
        return DP_BADARG;
    }
    DP_TRY(look_at(e, DP_VECTOR_X));
    *e->host_scale = scale;
    return run_batch(e, batch, true, loss_sum);
}

dp_status dp_cuda_e_loss(dp_engine *e, dp_vector weights, const dp_gpt_batch *batch,
                         double *loss_sum)
{
    DP_TRY(check_batch(e, batch));
    DP_TRY(look_at(e, weights));
    return run_batch(e, batch, false, loss_sum);
}

dp_status dp_cuda_e_logits(dp_engine *e, dp_vector weights, const uint32_t *tokens, size_t length,
                           float *logits)
{
    const dp_gpt_batch batch = {.x = tokens, .rows = 1, .length = length};
    const size_t vocab = e->shape.model->config.vocab;
    float *found;
    DP_TRY(check_batch(e, &batch));
    DP_TRY(look_at(e, weights));
    e->net.rows = 1;
    e->net.length = length;
    e->net.n = length;
    memcpy(e->host_batch, tokens, length * sizeof *tokens);
    DP_TRY(DP_CUDA(&e->device, copy, e->net.tokens, e->host_batch, length * sizeof *tokens,
                   DP_CUDA_TO_DEVICE, e->device.compute));
    DP_TRY(dp_cuda_net_logits(&e->net, &found));
    DP_TRY(DP_CUDA(&e->device, copy, logits, found, vocab * sizeof *logits, DP_CUDA_TO_HOST,
                   e->device.compute));
    DP_TRY(dp_cuda_wait(&e->device, e->device.compute));
    for (size_t i = 0; i < vocab; i++) {
        if (!isfinite(logits[i])) {
            return DP_DIVERGED;
        }
    }
    return DP_OK;
}

/* ---- Gradients and the optimizer. */

dp_status dp_cuda_e_reset(dp_engine *e)
{
    return dp_cuda_optimizer_reset(&e->optim);
}

dp_status dp_cuda_e_drop(dp_engine *e)
{
    return DP_CUDA(&e->device, fill, e->grads, 0, e->n * sizeof(float), e->device.compute);
}

const float *dp_cuda_e_gradients(dp_engine *e)
{
    if (!dp_cuda_has_mirror(e, &e->mirror_other) ||
        dp_cuda_fetch(e, e->mirror_other, e->grads) != DP_OK) {
        return NULL;
    }
    return e->mirror_other;
}

dp_status dp_cuda_e_norm(dp_engine *e, double *norm)
{
    return dp_cuda_optimizer_norm(&e->optim, e->grads, norm);
}

/* Of a part only the weights that are spread afterwards are whole. */
static bool is_typed_by_update(const dp_engine *e)
{
    return e->typed != NULL && e->shape.parts == 1;
}

/* With the typed copy that the next step reads. */
static dp_status update_on_stream(void *context)
{
    dp_engine *const e = context;
    float *const x = dp_cuda_vector(e, DP_VECTOR_X);
    DP_TRY(dp_cuda_optimizer_move(&e->optim, x, e->grads));
    return !is_typed_by_update(e) ? DP_OK
                                  : DP_CUDA_RUN(&e->device, dp_cuda_cast(e->typed, e->shape.type, x,
                                                                         e->n, e->device.compute));
}

/* A graph of its own: between the gradients and the step somebody decides whether it is taken. */
dp_status dp_cuda_e_update(dp_engine *e, const dp_optim_options *options, double norm)
{
    DP_TRY(dp_cuda_optimizer_begin(&e->optim, options, norm));
    const float *const x = dp_cuda_writing(e, DP_VECTOR_X);
    DP_TRY(dp_cuda_graphs_run(&e->graphs, UPDATE_KEY, update_on_stream, e));
    e->typed_of = is_typed_by_update(e) ? x : NULL;
    return DP_OK;
}

/* The optimizer's vectors on the card, those that there are, in the order of dp_optim_vectors. */
static size_t state_of(const dp_engine *e, dp_optim_vector out[DP_OPTIM_VECTORS_MAX])
{
    const dp_optim_vector all[DP_OPTIM_VECTORS_MAX] = {
        {"m", e->optim.m}, {"v", e->optim.v}, {"master", e->optim.master}};
    size_t count = 0;
    for (size_t i = 0; i < DP_OPTIM_VECTORS_MAX; i++) {
        if (all[i].values != NULL) {
            out[count++] = all[i];
        }
    }
    return count;
}

/* The own part of one of them, at its place in a mirror. */
static dp_status move_state(dp_engine *e, float *mirror, float *state, dp_cuda_way way)
{
    float *const host = mirror + e->optim.first;
    const size_t bytes = e->optim.n * sizeof *host;
    float *const to = way == DP_CUDA_TO_HOST ? host : state;
    DP_TRY(dp_cuda_wait(&e->device, e->device.compute)); /* As dp_cuda_fetch. */
    DP_TRY(DP_CUDA(&e->device, copy, to, way == DP_CUDA_TO_HOST ? state : host, bytes, way,
                   e->device.compute));
    return dp_cuda_wait(&e->device, e->device.compute);
}

size_t dp_cuda_e_lend_state(dp_engine *e, dp_optim_vector out[DP_BACKEND_STATE_MAX])
{
    dp_optim_vector state[DP_OPTIM_VECTORS_MAX];
    const size_t count = state_of(e, state);
    if (dp_cuda_e_values(e, DP_VECTOR_X) == NULL) {
        return 0;
    }
    out[0] = (dp_optim_vector){.name = "x", .values = e->mirror};
    for (size_t i = 0; i < count; i++) {
        if (!dp_cuda_has_mirror(e, &e->mirror_state[i]) ||
            move_state(e, e->mirror_state[i], state[i].values, DP_CUDA_TO_HOST) != DP_OK) {
            return 0;
        }
        out[1 + i] = (dp_optim_vector){.name = state[i].name, .values = e->mirror_state[i]};
    }
    return 1 + count;
}

dp_status dp_cuda_e_take_state(dp_engine *e, uint64_t updates)
{
    dp_optim_vector state[DP_OPTIM_VECTORS_MAX];
    const size_t count = state_of(e, state);
    if (e->mirror == NULL) {
        return DP_BADARG; /* Nothing was lent. */
    }
    for (size_t i = 0; i < count; i++) {
        if (e->mirror_state[i] == NULL) {
            return DP_BADARG;
        }
        DP_TRY(move_state(e, e->mirror_state[i], state[i].values, DP_CUDA_TO_DEVICE));
    }
    e->optim.steps = updates;
    return dp_cuda_put(e, dp_cuda_writing(e, DP_VECTOR_X), e->mirror);
}

uint64_t dp_cuda_e_updates(const dp_engine *e)
{
    return e->optim.steps;
}
