/* Engines of several cards that train as one: sums of gradients, and weights, by part. */
#include "compute/cuda/engine.h"

#include <string.h>

#include "compute/cuda/vectors.h"

/* The part of a vector that is summed at a time: the elements that each other card sends of it wait
 * in memory of this one. */
enum { STAGE_FLOATS = 4 * 1024 * 1024 };

static const char nccl_file[] = "libnccl.so.2";

/* ---- Sizes. */

static size_t begin_of(const dp_cuda_shape *shape, size_t part)
{
    const dp_optim_kind kind = shape->optimizer == 0 ? DP_OPTIM_ADAMW : shape->optimizer;
    return dp_optim_cut(kind, shape->model, shape->parts, part);
}

static size_t size_of(const dp_cuda_shape *shape, size_t part)
{
    return begin_of(shape, part + 1) - begin_of(shape, part);
}

static size_t largest_of(const dp_cuda_shape *shape)
{
    size_t largest = 0;
    for (size_t part = 0; part < shape->parts; part++) {
        largest = size_of(shape, part) > largest ? size_of(shape, part) : largest;
    }
    return largest;
}

static size_t stage_of(const dp_cuda_shape *shape)
{
    const size_t largest = largest_of(shape);
    return largest < STAGE_FLOATS ? largest : STAGE_FLOATS;
}

size_t dp_cuda_stage_bytes(const dp_cuda_shape *shape)
{
    return shape->parts < 2 ? 0 : (shape->parts - 1) * stage_of(shape) * sizeof(float);
}

/* ---- The link. */

static dp_status library(char name[DP_DEVICE_NAME_MAX], dp_why *why)
{
    return dp_cuda_link_library(nccl_file, name, why);
}

static dp_status link_id(dp_card_link_id *out, dp_why *why)
{
    return dp_cuda_link_id(nccl_file, out, why);
}

static dp_status link_up(dp_engine *e, const dp_card_link *link, dp_why *why)
{
    if (e->shape.parts < 2 || e->link != NULL) {
        return dp_why_set(why, DP_BADARG, "this engine is no part, or has its link");
    }
    return dp_cuda_link_open(&e->link, nccl_file, &e->device, link, (uint32_t)e->shape.part,
                             (uint32_t)e->shape.parts, DP_CUDA_LINK_MS, why);
}

/* ---- Sums. */

static size_t left_of(size_t size, size_t at, size_t most)
{
    const size_t left = size > at ? size - at : 0;
    return left < most ? left : most;
}

/* Where the others' shares of the own part come to; the own one stays where it is. */
static void lanes_of(const dp_engine *e, float *own, float *lanes[])
{
    const size_t stage = stage_of(&e->shape);
    size_t slot = 0;
    for (size_t part = 0; part < e->shape.parts; part++) {
        lanes[part] = part == e->shape.part ? own : e->staging + slot++ * stage;
    }
}

/* Elements [at, at + n) of every part go to the engine of that part. n: of the own. */
static dp_status exchange(dp_engine *e, size_t at, size_t n, float *const lanes[])
{
    dp_cuda_move moves[2 * DP_PROCESS_BARRIER_PROCESSES_MAX];
    const size_t stage = stage_of(&e->shape);
    size_t count = 0;
    for (size_t part = 0; part < e->shape.parts; part++) {
        if (part == e->shape.part) {
            continue;
        }
        moves[count++] = (dp_cuda_move){.peer = (uint32_t)part,
                                        .sends = true,
                                        .at = e->grads + begin_of(&e->shape, part) + at,
                                        .n = left_of(size_of(&e->shape, part), at, stage)};
        moves[count++] = (dp_cuda_move){.peer = (uint32_t)part, .at = lanes[part], .n = n};
    }
    return dp_cuda_link_run(e->link, moves, count, e->device.compute);
}

/* The fixed tree of zero.h over the lanes, to where the own one is. */
static dp_status add_lanes(dp_engine *e, float *const lanes[], size_t n)
{
    const cudaStream_t stream = e->device.compute;
    for (size_t step = 1; step < e->shape.parts && n > 0; step *= 2) {
        for (size_t lane = 0; lane + step < e->shape.parts; lane += 2 * step) {
            DP_TRY(
                DP_CUDA_RUN(&e->device, dp_cuda_add(lanes[lane], lanes[lane + step], n, stream)));
        }
    }
    return e->shape.part == 0 || n == 0 ? DP_OK
                                        : DP_CUDA(&e->device, copy, lanes[e->shape.part], lanes[0],
                                                  n * sizeof(float), DP_CUDA_ON_DEVICE, stream);
}

static dp_status squares_of(dp_engine *e, double *squares)
{
    DP_TRY(dp_cuda_optimizer_squares(&e->optim, e->grads + e->optim.first, e->optim.n));
    memcpy(squares, e->optim.host_partial, dp_norm_blocks(e->optim.n) * sizeof *squares);
    return DP_OK;
}

static dp_status sum(dp_engine *e, double *squares)
{
    const size_t largest = largest_of(&e->shape);
    const size_t stage = stage_of(&e->shape);
    float *lanes[DP_PROCESS_BARRIER_PROCESSES_MAX];
    dp_assert(e->link != NULL);
    for (size_t at = 0; at < largest; at += stage) {
        const size_t n = left_of(e->optim.n, at, stage);
        lanes_of(e, e->grads + e->optim.first + (n > 0 ? at : 0), lanes);
        DP_TRY(exchange(e, at, n, lanes));
        DP_TRY(add_lanes(e, lanes, n));
    }
    DP_TRY(squares_of(e, squares));
    return dp_cuda_wait(&e->device, e->device.compute);
}

static dp_status put_sum(dp_engine *e, const float *from, double *squares)
{
    DP_TRY(DP_CUDA(&e->device, copy, e->grads + e->optim.first, from, e->optim.n * sizeof *from,
                   DP_CUDA_TO_DEVICE, e->device.compute));
    DP_TRY(squares_of(e, squares));
    return dp_cuda_wait(&e->device, e->device.compute); /* from may not be page-locked. */
}

static dp_status keep_part(dp_engine *e)
{
    const size_t behind = e->optim.first + e->optim.n;
    DP_TRY(DP_CUDA(&e->device, fill, e->grads, 0, e->optim.first * sizeof *e->grads,
                   e->device.compute));
    return DP_CUDA(&e->device, fill, e->grads + behind, 0, (e->n - behind) * sizeof *e->grads,
                   e->device.compute);
}

/* ---- Weights. */

static dp_status spread(dp_engine *e)
{
    dp_cuda_move moves[2 * DP_PROCESS_BARRIER_PROCESSES_MAX];
    float *const x = dp_cuda_writing(e, DP_VECTOR_X);
    size_t count = 0;
    dp_assert(e->link != NULL);
    for (size_t part = 0; part < e->shape.parts; part++) {
        if (part == e->shape.part) {
            continue;
        }
        moves[count++] = (dp_cuda_move){
            .peer = (uint32_t)part, .sends = true, .at = x + e->optim.first, .n = e->optim.n};
        moves[count++] = (dp_cuda_move){.peer = (uint32_t)part,
                                        .at = x + begin_of(&e->shape, part),
                                        .n = size_of(&e->shape, part)};
    }
    DP_TRY(dp_cuda_link_run(e->link, moves, count, e->device.compute));
    return dp_cuda_wait(&e->device, e->device.compute);
}

static dp_status put_x(dp_engine *e, const float *x)
{
    return dp_cuda_put(e, dp_cuda_writing(e, DP_VECTOR_X), x);
}

const dp_backend_parts dp_cuda_parts = {.library = library,
                                        .link_id = link_id,
                                        .link = link_up,
                                        .sum = sum,
                                        .spread = spread,
                                        .put_sum = put_sum,
                                        .put_x = put_x,
                                        .keep_part = keep_part};
