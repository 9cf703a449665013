/* Where things are on the card, and how they come to the host and back. */
#include "compute/cuda/engine.h"

#include <string.h>

#include "base/alloc.h"

static size_t vector_bytes(const dp_engine *e)
{
    return e->n * sizeof(float);
}

static bool has(const dp_cuda_shape *shape, dp_vector v)
{
    return v == DP_VECTOR_X || (!shape->alone && (v != DP_VECTOR_M || shape->momentum));
}

static void carve_weights(dp_engine *e, dp_cuda_arena *arena)
{
    e->vectors[DP_VECTOR_X] = dp_cuda_carve(arena, vector_bytes(e));
    e->typed = NULL;
    if (e->shape.type != DP_FP32) {
        e->typed = dp_cuda_carve(arena, e->n * sizeof(uint16_t));
    }
}

static void carve_anchors(dp_engine *e, dp_cuda_arena *arena)
{
    for (int v = DP_VECTOR_X + 1; v < DP_VECTORS; v++) {
        e->vectors[v] = has(&e->shape, (dp_vector)v) ? dp_cuda_carve(arena, vector_bytes(e)) : NULL;
    }
    if (e->shape.alone) {
        e->vectors[DP_VECTOR_THETA] = e->vectors[DP_VECTOR_X];
    }
}

void dp_cuda_engine_carve(dp_engine *e, dp_cuda_arena *arena)
{
    carve_weights(e, arena);
    e->grads = dp_cuda_carve(arena, vector_bytes(e));
    e->staging = NULL;
    if (e->shape.parts > 1) {
        e->staging = dp_cuda_carve(arena, dp_cuda_stage_bytes(&e->shape));
    }
    carve_anchors(e, arena);
    e->news = dp_cuda_carve(arena, 2 * sizeof *e->news);
    e->zeroed = arena->used;
    dp_cuda_optimizer_carve(&e->optim, arena);
    dp_cuda_net_carve(&e->net, arena);
}

dp_cuda_bytes dp_cuda_bytes_of(const dp_cuda_shape *shape)
{
    dp_cuda_arena arena = {0};
    dp_cuda_arena activations = {0};
    dp_cuda_arena moments = {0};
    dp_engine e = {.shape = *shape, .n = shape->model->n_elements};
    e.net = dp_cuda_net_setup(shape->model, shape->type, shape->recompute, shape->rows);
    const dp_optim_setup optim = dp_cuda_optim_setup(shape);
    if (dp_cuda_optimizer_sizes(&e.optim, &optim) != DP_OK) {
        return (dp_cuda_bytes){.total = UINT64_MAX}; /* No manifest has such an optimizer. */
    }
    dp_cuda_bytes bytes = {.gradients = vector_bytes(&e), .buffers = dp_cuda_gemm_bytes()};
    dp_cuda_carve(&arena, 2 * sizeof *e.news);
    bytes.buffers += arena.used + dp_cuda_stage_bytes(shape);
    arena.used = 0;
    carve_weights(&e, &arena);
    bytes.weights = arena.used;
    carve_anchors(&e, &arena);
    bytes.anchors = arena.used - bytes.weights;
    dp_cuda_optimizer_carve(&e.optim, &moments);
    bytes.moments = moments.used;
    dp_cuda_net_carve(&e.net, &activations);
    bytes.activations = activations.used;
    arena.used = 0;
    dp_cuda_engine_carve(&e, &arena);
    bytes.total = arena.used + dp_cuda_gemm_bytes();
    return bytes;
}

/* ---- Between card and host. */

static dp_status copy(dp_engine *e, void *to, const void *from, size_t bytes, dp_cuda_way way)
{
    DP_TRY(DP_CUDA(&e->device, copy, to, from, bytes, way, e->device.compute));
    return dp_cuda_wait(&e->device, e->device.compute);
}

dp_status dp_cuda_lend(dp_engine *e, void **memory, size_t bytes)
{
    if (e->memory_max != 0 && e->held + bytes > e->memory_max) {
        return DP_NOMEM;
    }
    DP_TRY(DP_CUDA(&e->device, device_alloc, memory, bytes));
    e->held += bytes;
    return DP_OK;
}

void dp_cuda_give_back(dp_engine *e, void *memory, size_t bytes)
{
    if (memory != NULL) {
        dp_cuda_device_free(&e->device, memory);
        e->held -= bytes;
    }
}

dp_status dp_cuda_mirror_locked(dp_engine *e, float **mirror)
{
    void *memory;
    if (*mirror != NULL) {
        return DP_OK;
    }
    DP_TRY(DP_CUDA(&e->device, host_alloc, &memory, vector_bytes(e)));
    *mirror = memory;
    return DP_OK;
}

/* Where plain has this pointer; of NULL: a free place. */
static void **place_of(dp_engine *e, const void *host)
{
    for (size_t i = 0; i < DP_CUDA_MIRRORS; i++) {
        if (e->plain[i] == host) {
            return &e->plain[i];
        }
    }
    return NULL;
}

dp_status dp_cuda_mirror(dp_engine *e, float **mirror)
{
    const dp_status status = dp_cuda_mirror_locked(e, mirror);
    if (status != DP_NOMEM) {
        return status;
    }
    void **const place = place_of(e, NULL);
    dp_assert(place != NULL);
    *mirror = dp_alloc(e->n, sizeof **mirror);
    *place = *mirror;
    return *mirror != NULL ? DP_OK : DP_NOMEM;
}

bool dp_cuda_has_mirror(dp_engine *e, float **mirror)
{
    const dp_status status = dp_cuda_mirror(e, mirror);
    if (status == DP_NOMEM) {
        e->device.lost = true;
        DP_IGNORE(dp_why_set(&e->device.problem, DP_IO,
                             "this machine has no %zu MiB of memory for a copy of what %s holds",
                             vector_bytes(e) >> 20, e->device.properties.name));
    }
    return status == DP_OK;
}

void dp_cuda_mirror_free(dp_engine *e, void *host)
{
    void **const place = host != NULL ? place_of(e, host) : NULL;
    if (place != NULL) {
        dp_free(host);
        *place = NULL;
    } else if (host != NULL && !e->device.hangs) { /* The card may still write there. */
        DP_IGNORE(e->device.api->host_free(host) != 0);
    }
}

/* A copy to memory that is not page-locked waits inside the driver, for which there is no end: so
 * the stream is empty before. */
dp_status dp_cuda_fetch(dp_engine *e, float *to, const float *from)
{
    if (place_of(e, to) != NULL) {
        DP_TRY(dp_cuda_wait(&e->device, e->device.compute));
    }
    return copy(e, to, from, vector_bytes(e), DP_CUDA_TO_HOST);
}

dp_status dp_cuda_put(dp_engine *e, float *to, const float *from)
{
    return copy(e, to, from, vector_bytes(e), DP_CUDA_TO_DEVICE);
}

dp_status dp_cuda_news_clear(dp_engine *e)
{
    return DP_CUDA(&e->device, fill, e->news, 0, sizeof *e->news, e->device.compute);
}

dp_status dp_cuda_news_read(dp_engine *e)
{
    return copy(e, e->host_news, e->news, sizeof *e->news, DP_CUDA_TO_HOST);
}
