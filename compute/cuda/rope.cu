#include "compute/cuda/rope.h"

#include "compute/cuda/reduce.cuh"
#include "compute/model/model.h"

enum {
    THREADS = 128,
    PAIRS = 8, /* of a thread */
    ROOM = THREADS * 2 * PAIRS,
    /* of a processor: without the word stores of 16 bytes cost registers, and two blocks of it */
    BLOCKS_MIN = 7
};

static_assert(DP_LANES * PAIRS * 2 >= DP_MODEL_HEAD_WIDTH_MAX, "a head fits a warp");

typedef struct rope_shape {
    dp_cuda_rope rope;
    size_t ld_y; /* or of d */
    size_t half;
    int lanes; /* that share a head: a power of two */
    bool even; /* each lane has PAIRS pairs side by side, and moves them in chunks */
} rope_shape;

/* q or k: where its heads are. */
typedef struct rope_side {
    size_t heads;
    size_t first; /* head of the row */
    const float *gain;
    float *rstd;
} rope_side;

static __device__ inline rope_side side_of(const dp_cuda_rope &rope, unsigned k)
{
    return k == 0 ? rope_side{rope.heads, 0, rope.q_gain, rope.q_rstd}
                  : rope_side{rope.kv_heads, rope.heads, rope.k_gain, rope.k_rstd};
}

/* The pair i of a lane is elements pair_of and pair_of + half of the head. */
static __device__ inline size_t pair_of(const rope_shape &s, int lane, int i)
{
    return s.even ? (size_t)lane * PAIRS + (size_t)i : (size_t)lane + (size_t)i * DP_LANES;
}

/* A lane's share of a vector of head elements; elements behind half are 0. */
template <typename T>
static __device__ inline void load_pairs(const rope_shape &s, const T *from, int lane,
                                         float low[PAIRS], float high[PAIRS])
{
    if (s.even) {
        dp_load8(low, from + (size_t)lane * PAIRS);
        dp_load8(high, from + s.half + (size_t)lane * PAIRS);
        return;
    }
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        const size_t at = pair_of(s, lane, i);
        low[i] = at < s.half ? dp_to_float(from[at]) : 0.0F;
        high[i] = at < s.half ? dp_to_float(from[s.half + at]) : 0.0F;
    }
}

template <typename T>
static __device__ inline void store_pairs(const rope_shape &s, T *to, int lane,
                                          const float low[PAIRS], const float high[PAIRS])
{
    if (s.even) {
        dp_store8(to + (size_t)lane * PAIRS, low);
        dp_store8(to + s.half + (size_t)lane * PAIRS, high);
        return;
    }
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        const size_t at = pair_of(s, lane, i);
        if (at < s.half) {
            dp_store_one(to + at, low[i]);
            dp_store_one(to + s.half + at, high[i]);
        }
    }
}

/* turn 1: onward; -1: back. */
static __device__ inline void turn_pairs(const rope_shape &s, size_t row, int lane, float turn,
                                         float low[PAIRS], float high[PAIRS])
{
    const float *const angles = s.rope.angles + row % s.rope.length * s.rope.head;
    float cosine[PAIRS];
    float sine[PAIRS];
    load_pairs(s, angles, lane, cosine, sine);
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        const float a = low[i];
        const float b = high[i];
        low[i] = a * cosine[i] - b * (turn * sine[i]);
        high[i] = b * cosine[i] + a * (turn * sine[i]);
    }
}

/* Groups of lanes take the heads of one side (blockIdx.y) one after the other. */
template <typename T>
static __global__ void __launch_bounds__(THREADS, BLOCKS_MIN)
    forward_kernel(const rope_shape s, const T *x, T *y)
{
    const rope_side side = side_of(s.rope, blockIdx.y);
    const int lane = (int)threadIdx.x % s.lanes;
    const size_t groups = (size_t)(THREADS / s.lanes);
    const size_t items = s.rope.rows * side.heads;
    const size_t stride = gridDim.x * groups;
    float gain_low[PAIRS] = {0};
    float gain_high[PAIRS] = {0};
    if (side.gain != nullptr) {
        load_pairs(s, side.gain, lane, gain_low, gain_high);
    }
    /* All lanes of a warp go round together, for the sums. */
    for (size_t base = (size_t)blockIdx.x * groups; base < items; base += stride) {
        const size_t item = base + threadIdx.x / (unsigned)s.lanes;
        const bool here = item < items;
        const size_t row = here ? item / side.heads : 0;
        const size_t head = (side.first + (here ? item % side.heads : 0)) * s.rope.head;
        float low[PAIRS] = {0};
        float high[PAIRS] = {0};
        if (here) {
            load_pairs(s, x + row * s.rope.ld + head, lane, low, high);
        }
        if (side.gain != nullptr) {
            float squares = 0.0F;
#pragma unroll
            for (int i = 0; i < PAIRS; i++) {
                squares += low[i] * low[i] + high[i] * high[i];
            }
            squares = dp_lanes_sum(squares, s.lanes);
            const float rstd = 1.0F / sqrtf(squares / (float)s.rope.head + s.rope.eps);
            if (here && lane == 0) {
                side.rstd[item] = rstd;
            }
#pragma unroll
            for (int i = 0; i < PAIRS; i++) {
                low[i] *= rstd * gain_low[i];
                high[i] *= rstd * gain_high[i];
            }
        }
        if (here) {
            turn_pairs(s, row, lane, 1.0F, low, high);
            store_pairs(s, y + row * s.ld_y + head, lane, low, high);
        }
    }
}

/* The sums of a block's groups, in order: partial[side][strip][head]. */
static __device__ void keep_gains(const rope_shape &s, int lane, const float low[PAIRS],
                                  const float high[PAIRS], float *sums, float *partial)
{
    const size_t group = threadIdx.x / (unsigned)s.lanes;
    const size_t groups = (size_t)(THREADS / s.lanes);
    float *const mine = sums + group * s.rope.head;
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        const size_t at = pair_of(s, lane, i);
        if (at < s.half) {
            mine[at] = low[i];
            mine[s.half + at] = high[i];
        }
    }
    __syncthreads();
    for (size_t at = threadIdx.x; at < s.rope.head; at += THREADS) {
        float total = 0.0F;
        for (size_t g = 0; g < groups; g++) {
            total += sums[g * s.rope.head + at];
        }
        partial[((size_t)blockIdx.y * gridDim.x + blockIdx.x) * s.rope.head + at] = total;
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    backward_kernel(const rope_shape s, size_t per_strip, const T *x, T *d, float *partial)
{
    __shared__ float sums[ROOM];
    const rope_side side = side_of(s.rope, blockIdx.y);
    const int lane = (int)threadIdx.x % s.lanes;
    const size_t groups = (size_t)(THREADS / s.lanes);
    const size_t first = (size_t)blockIdx.x * per_strip * side.heads;
    const size_t rows_end = ((size_t)blockIdx.x + 1) * per_strip;
    const size_t last = (rows_end < s.rope.rows ? rows_end : s.rope.rows) * side.heads;
    float gain_low[PAIRS] = {0};
    float gain_high[PAIRS] = {0};
    float sum_low[PAIRS] = {0};
    float sum_high[PAIRS] = {0};
    if (side.gain != nullptr) {
        load_pairs(s, side.gain, lane, gain_low, gain_high);
    }
    for (size_t base = first; base < last; base += groups) {
        const size_t item = base + threadIdx.x / (unsigned)s.lanes;
        const bool here = item < last;
        const size_t row = here ? item / side.heads : 0;
        const size_t head = (side.first + (here ? item % side.heads : 0)) * s.rope.head;
        float low[PAIRS] = {0};
        float high[PAIRS] = {0};
        if (here) {
            load_pairs(s, d + row * s.ld_y + head, lane, low, high);
            turn_pairs(s, row, lane, -1.0F, low, high);
        }
        if (side.gain != nullptr) {
            const float rstd = here ? side.rstd[item] : 0.0F;
            float unit_low[PAIRS] = {0};
            float unit_high[PAIRS] = {0};
            float dot = 0.0F;
            if (here) {
                load_pairs(s, x + row * s.rope.ld + head, lane, unit_low, unit_high);
            }
#pragma unroll
            for (int i = 0; i < PAIRS; i++) {
                unit_low[i] *= rstd;
                unit_high[i] *= rstd;
                sum_low[i] += low[i] * unit_low[i];
                sum_high[i] += high[i] * unit_high[i];
                low[i] *= gain_low[i];
                high[i] *= gain_high[i];
                dot += low[i] * unit_low[i] + high[i] * unit_high[i];
            }
            dot = dp_lanes_sum(dot, s.lanes) / (float)s.rope.head;
#pragma unroll
            for (int i = 0; i < PAIRS; i++) {
                low[i] = (low[i] - unit_low[i] * dot) * rstd;
                high[i] = (high[i] - unit_high[i] * dot) * rstd;
            }
        }
        if (here) {
            store_pairs(s, d + row * s.ld_y + head, lane, low, high);
        }
    }
    if (partial != nullptr) {
        keep_gains(s, lane, sum_low, sum_high, sums, partial);
    }
}

/* Lanes of a head when each has PAIRS pairs; a warp where that is no power of two. */
static rope_shape shape_of(const dp_cuda_rope *rope, const void *y, size_t ld_y, size_t bytes)
{
    rope_shape shape = {*rope, ld_y, rope->head / 2, DP_LANES, false};
    const size_t lanes = shape.half / PAIRS;
    shape.even = shape.half % PAIRS == 0 && (lanes & (lanes - 1)) == 0 && lanes <= DP_LANES &&
                 dp_even(rope->x, rope->ld * bytes) && dp_even(y, ld_y * bytes) &&
                 dp_even(rope->angles, 0) && dp_even(rope->q_gain, 0) && dp_even(rope->k_gain, 0);
    if (shape.even) {
        shape.lanes = (int)lanes;
    }
    return shape;
}

template <typename T>
static dp_status forward(const dp_cuda_rope *rope, void *y, size_t ld_y, cudaStream_t stream)
{
    const rope_shape shape = shape_of(rope, y, ld_y, sizeof(T));
    const size_t heads = rope->heads > rope->kv_heads ? rope->heads : rope->kv_heads;
    const size_t blocks = dp_blocks(rope->rows * heads, (size_t)(THREADS / shape.lanes));
    return DP_LAUNCH(forward_kernel<T>, dim3((unsigned)dp_least(blocks, 1 << 16), 2), dim3(THREADS),
                     0, stream, shape, (const T *)rope->x, (T *)y);
}

template <typename T>
static dp_status backward(const dp_cuda_rope *rope, void *d, size_t ld_d, float *partial,
                          cudaStream_t stream)
{
    const rope_shape shape = shape_of(rope, d, ld_d, sizeof(T));
    /* Without norms nothing is summed, and strips may be as short as they like. */
    const size_t per_strip =
        partial != nullptr ? dp_cuda_strip_rows(rope->rows) : dp_blocks(rope->rows, 1 << 16);
    return DP_LAUNCH(backward_kernel<T>, dim3((unsigned)dp_blocks(rope->rows, per_strip), 2),
                     dim3(THREADS), 0, stream, shape, per_strip, (const T *)rope->x, (T *)d,
                     partial);
}

static bool fits(const dp_cuda_rope *rope)
{
    return rope->head > 0 && rope->head % 2 == 0 && rope->head <= DP_MODEL_HEAD_WIDTH_MAX &&
           rope->length > 0 && (rope->q_gain == nullptr) == (rope->k_gain == nullptr);
}

extern "C" dp_status dp_cuda_rope_forward(const dp_cuda_rope *rope, void *y, size_t ld_y,
                                          cudaStream_t stream)
{
    if (!fits(rope)) {
        return DP_BADARG;
    }
    if (rope->rows == 0) {
        return DP_OK;
    }
    switch (rope->type) {
    case DP_FP32:
        return forward<float>(rope, y, ld_y, stream);
    case DP_BF16:
        return forward<dp_bf16>(rope, y, ld_y, stream);
    case DP_FP16:
        return forward<dp_fp16>(rope, y, ld_y, stream);
    case DP_PRECISIONS:
        break;
    }
    return DP_BADARG;
}

extern "C" dp_status dp_cuda_rope_backward(const dp_cuda_rope *rope, void *d, size_t ld_d,
                                           float *d_q_gain, float *d_k_gain, float *scratch,
                                           cudaStream_t stream)
{
    dp_status status = DP_BADARG;
    if (!fits(rope)) {
        return DP_BADARG;
    }
    if (rope->rows == 0) {
        return DP_OK;
    }
    float *const partial = rope->q_gain == nullptr ? nullptr : scratch;
    switch (rope->type) {
    case DP_FP32:
        status = backward<float>(rope, d, ld_d, partial, stream);
        break;
    case DP_BF16:
        status = backward<dp_bf16>(rope, d, ld_d, partial, stream);
        break;
    case DP_FP16:
        status = backward<dp_fp16>(rope, d, ld_d, partial, stream);
        break;
    case DP_PRECISIONS:
        break;
    }
    if (status != DP_OK || partial == nullptr) {
        return status;
    }
    const size_t strips = dp_cuda_strips(rope->rows);
    DP_TRY(dp_cuda_add_strips(partial, strips, rope->head, rope->head, d_q_gain, stream));
    return dp_cuda_add_strips(partial + strips * rope->head, strips, rope->head, rope->head,
                              d_k_gain, stream);
}
