#include "compute/cuda/norm.h"

#include "compute/cuda/reduce.cuh"
#include "compute/model/model.h"

enum {
    THREADS_MAX = 512,
    NARROW_MAX = THREADS_MAX * DP_VECTOR, /* columns of a block with a vector for each thread */
    WIDE_MAX = 2 * NARROW_MAX,
    BLOCKS_MAX = 1 << 20
};

static_assert(4 * NARROW_MAX >= DP_MODEL_WIDTH_MAX, "a row fits a block");

/* Arguments of both kernels; pointers without a type are in dp_cuda_norm. */
typedef struct norm_shape {
    size_t rows;
    size_t width;
    size_t per_strip; /* backward */
    bool rms;
    bool even;
    float eps;
    const float *gain;
    const float *bias;
    float *mean;
    float *rstd;
} norm_shape;

/* A block norms a row: thread t has the vectors t, t + blockDim.x, ... */
template <typename S, typename T, int VECTORS>
static __global__ void __launch_bounds__(THREADS_MAX)
    forward_kernel(const norm_shape n, const S *x, const T *add, S *sum, T *y)
{
    __shared__ dp_block_room room;
    const float share = 1.0F / (float)n.width;
    for (size_t row = blockIdx.x; row < n.rows; row += gridDim.x) {
        float value[VECTORS][DP_VECTOR];
        float mean = 0.0F;
        float squares = 0.0F;
        float unused = 0.0F;
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            const size_t column = (threadIdx.x + (size_t)v * blockDim.x) * DP_VECTOR;
            dp_load_row(value[v], x + row * n.width, column, n.width, n.even);
            if (add != nullptr) {
                float more[DP_VECTOR];
                dp_load_row(more, add + row * n.width, column, n.width, n.even);
#pragma unroll
                for (int i = 0; i < DP_VECTOR; i++) {
                    value[v][i] = dp_rounded((S *)nullptr, value[v][i] + more[i]);
                }
                dp_store_row(sum + row * n.width, value[v], column, n.width, n.even);
            }
#pragma unroll
            for (int i = 0; i < DP_VECTOR; i++) {
                mean += value[v][i];
            }
        }
        if (n.rms) {
            mean = 0.0F;
        } else {
            dp_block_sums(&room, 0, &mean, &unused);
            mean *= share;
        }
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            const size_t column = (threadIdx.x + (size_t)v * blockDim.x) * DP_VECTOR;
#pragma unroll
            for (int i = 0; i < DP_VECTOR; i++) {
                const float off = column + (size_t)i < n.width ? value[v][i] - mean : 0.0F;
                squares += off * off;
            }
        }
        dp_block_sums(&room, 1, &squares, &unused);
        const float rstd = 1.0F / sqrtf(squares * share + n.eps);
        if (threadIdx.x == 0) {
            n.rstd[row] = rstd;
            if (!n.rms) {
                n.mean[row] = mean;
            }
        }
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            const size_t column = (threadIdx.x + (size_t)v * blockDim.x) * DP_VECTOR;
            float gain[DP_VECTOR];
            float bias[DP_VECTOR] = {0};
            dp_load_row(gain, n.gain, column, n.width, n.even);
            if (n.bias != nullptr) {
                dp_load_row(bias, n.bias, column, n.width, n.even);
            }
#pragma unroll
            for (int i = 0; i < DP_VECTOR; i++) {
                value[v][i] = (value[v][i] - mean) * rstd * gain[i] + bias[i];
            }
            dp_store_row(y + row * n.width, value[v], column, n.width, n.even);
        }
        if (n.rms) {
            __syncthreads(); /* Turn 1 is taken again at once. */
        }
    }
}

/* The eight sums of dx that a thread keeps lie in shared memory, so that they take no registers:
 * with eight registers more, fewer blocks share an SM, and the strips of 1024 or more rows take two
 * turns instead of one. The halves of all threads lie side by side, so that banks do not
 * collide. */
static __device__ inline void keep_sums(dp_chunk *room, const float add[DP_VECTOR], bool begin)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        dp_chunk *const at = room + half * blockDim.x + threadIdx.x;
        const dp_chunk old = *at;
        dp_chunk now;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float before = begin ? 0.0F : dp_of_bits(old.word[i]);
            now.word[i] = dp_bits_of(before + add[4 * half + i]);
        }
        *at = now;
    }
}

static __device__ inline void take_sums(const dp_chunk *room, float sums[DP_VECTOR])
{
#pragma unroll
    for (int i = 0; i < DP_VECTOR; i++) {
        sums[i] = dp_of_bits(room[i / 4 * blockDim.x + threadIdx.x].word[i % 4]);
    }
}

/* Eight columns of a thread. */
typedef float eight[DP_VECTOR];

/* Adds the terms of a row to the columns' sums and to the row's own two sums. unit: x, then x as it
 * is normed; d: dy, then dy times the gain. Behind the width, d and gain are 0, so that nothing
 * counts there. */
static __device__ __forceinline__ void add_terms(eight &unit, eight &d, const eight &gain,
                                                 float mean, float rstd, eight &d_gain,
                                                 eight &d_bias, float *sum, float *dot)
{
#pragma unroll
    for (int i = 0; i < DP_VECTOR; i++) {
        unit[i] = (unit[i] - mean) * rstd;
        d_gain[i] += d[i] * unit[i];
        d_bias[i] += d[i];
        d[i] *= gain[i];
        *sum += d[i];
        *dot += d[i] * unit[i];
    }
}

/* The columns' sums of a strip, one behind the other. sums: those of dx; NULL: there are none. */
static __device__ __forceinline__ void store_strip(const norm_shape &n, float *partial,
                                                   size_t column, const eight &d_gain,
                                                   const eight &d_bias, const dp_chunk *sums)
{
    float *const strip = partial + (size_t)blockIdx.x * (sums != nullptr ? 3 : 2) * n.width;
    dp_store_row(strip, d_gain, column, n.width, n.even);
    dp_store_row(strip + n.width, d_bias, column, n.width, n.even);
    if (sums != nullptr) {
        eight sum;
        take_sums(sums, sum);
        dp_store_row(strip + 2 * n.width, sum, column, n.width, n.even);
    }
}

/* A block takes a strip of rows one by one and keeps the columns' sums; partial:
 * [strips][2][width], with those of dx (SUMS) 3. */
template <typename S, typename T, int VECTORS, bool SUMS>
static __global__ void __launch_bounds__(THREADS_MAX)
    backward_kernel(const norm_shape n, const S *x, const T *dy, const S *residual, S *dx,
                    float *partial)
{
    __shared__ dp_block_room room;
    /* Registers are left for these: the residual, asked for before the sums; the gains of all
     * rows. */
    const bool early = VECTORS == 1;
    const bool keeps = VECTORS < 4;
    const float share = 1.0F / (float)n.width;
    const size_t first = (size_t)blockIdx.x * n.per_strip;
    const size_t last = first + n.per_strip < n.rows ? first + n.per_strip : n.rows;
    DP_SHARED(dp_chunk, sums);
    float gain[VECTORS][DP_VECTOR];
    float d_gain[VECTORS][DP_VECTOR] = {{0}};
    float d_bias[VECTORS][DP_VECTOR] = {{0}};
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        const size_t column = (threadIdx.x + (size_t)v * blockDim.x) * DP_VECTOR;
        if (keeps) {
            dp_load_row(gain[v], n.gain, column, n.width, n.even);
        }
    }
    for (size_t row = first; row < last; row++) {
        const float mean = n.rms ? 0.0F : n.mean[row];
        const float rstd = n.rstd[row];
        float unit[VECTORS][DP_VECTOR];
        float d[VECTORS][DP_VECTOR];
        float before[VECTORS][DP_VECTOR] = {{0}};
        float sum = 0.0F;
        float dot = 0.0F;
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            const size_t column = (threadIdx.x + (size_t)v * blockDim.x) * DP_VECTOR;
            dp_load_row(unit[v], x + row * n.width, column, n.width, n.even);
            dp_load_row(d[v], dy + row * n.width, column, n.width, n.even);
            if (!keeps) {
                dp_load_row(gain[v], n.gain, column, n.width, n.even);
            }
            if (early && residual != nullptr) {
                dp_load_row(before[v], residual + row * n.width, column, n.width, n.even);
            }
            add_terms(unit[v], d[v], gain[v], mean, rstd, d_gain[v], d_bias[v], &sum, &dot);
        }
        dp_block_sums(&room, (int)(row & 1U), &sum, &dot);
        sum = n.rms ? 0.0F : sum * share;
        dot *= share;
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            const size_t column = (threadIdx.x + (size_t)v * blockDim.x) * DP_VECTOR;
            if (!early && residual != nullptr) {
                dp_load_row(before[v], residual + row * n.width, column, n.width, n.even);
            }
#pragma unroll
            for (int i = 0; i < DP_VECTOR; i++) {
                before[v][i] += (d[v][i] - sum - unit[v][i] * dot) * rstd;
                before[v][i] = dp_rounded((S *)nullptr, before[v][i]);
            }
            if (SUMS) {
                keep_sums(sums, before[v], row == first);
            }
            dp_store_row(dx + row * n.width, before[v], column, n.width, n.even);
        }
    }
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        const size_t column = (threadIdx.x + (size_t)v * blockDim.x) * DP_VECTOR;
        store_strip(n, partial, column, d_gain[v], d_bias[v], SUMS ? sums : nullptr);
    }
}

static unsigned threads_for(size_t width, size_t vectors)
{
    return (unsigned)(dp_blocks(width, DP_VECTOR * vectors * DP_LANES) * DP_LANES);
}

static norm_shape shape_of(const dp_cuda_norm *norm, bool even)
{
    return (norm_shape){norm->rows, norm->width, dp_cuda_strip_rows(norm->rows),
                        norm->rms,  even,        norm->eps,
                        norm->gain, norm->bias,  norm->mean,
                        norm->rstd};
}

template <typename S, typename T>
static dp_status forward(const dp_cuda_norm *norm, const void *add, void *sum, void *y,
                         cudaStream_t stream)
{
    const bool even = norm->width % DP_VECTOR == 0 && dp_even(norm->x, 0) && dp_even(add, 0) &&
                      dp_even(sum, 0) && dp_even(y, 0) && dp_even(norm->gain, 0) &&
                      dp_even(norm->bias, 0);
    const norm_shape shape = shape_of(norm, even);
    const dim3 grid((unsigned)dp_least(norm->rows, BLOCKS_MAX));
    if (norm->width <= NARROW_MAX) {
        return DP_LAUNCH((forward_kernel<S, T, 1>), grid, dim3(threads_for(norm->width, 1)), 0,
                         stream, shape, (const S *)norm->x, (const T *)add, (S *)sum, (T *)y);
    }
    if (norm->width <= WIDE_MAX) {
        return DP_LAUNCH((forward_kernel<S, T, 2>), grid, dim3(threads_for(norm->width, 2)), 0,
                         stream, shape, (const S *)norm->x, (const T *)add, (S *)sum, (T *)y);
    }
    return DP_LAUNCH((forward_kernel<S, T, 4>), grid, dim3(threads_for(norm->width, 4)), 0, stream,
                     shape, (const S *)norm->x, (const T *)add, (S *)sum, (T *)y);
}

/* Further arguments of backward. */
typedef struct back {
    const void *dy;
    const void *residual;
    void *dx;
    float *d_sum;
    float *scratch;
} back;

/* Rows up to NARROW_MAX sum dx on the way; of wider ones it is read again. */
template <typename S, typename T>
static dp_status backward(const dp_cuda_norm *norm, const back *b, cudaStream_t stream)
{
    const bool even = norm->width % DP_VECTOR == 0 && dp_even(norm->x, 0) && dp_even(b->dy, 0) &&
                      dp_even(b->residual, 0) && dp_even(b->dx, 0) && dp_even(norm->gain, 0) &&
                      dp_even(b->scratch, 0);
    const norm_shape shape = shape_of(norm, even);
    const dim3 grid((unsigned)dp_cuda_strips(norm->rows));
    const S *const x = (const S *)norm->x;
    const T *const dy = (const T *)b->dy;
    const S *const residual = (const S *)b->residual;
    S *const dx = (S *)b->dx;
    if (norm->width <= NARROW_MAX) {
        const dim3 block(threads_for(norm->width, 1));
        return b->d_sum != nullptr ? DP_LAUNCH((backward_kernel<S, T, 1, true>), grid, block,
                                               2 * block.x * sizeof(dp_chunk), stream, shape, x, dy,
                                               residual, dx, b->scratch)
                                   : DP_LAUNCH((backward_kernel<S, T, 1, false>), grid, block, 0,
                                               stream, shape, x, dy, residual, dx, b->scratch);
    }
    if (norm->width <= WIDE_MAX) {
        return DP_LAUNCH((backward_kernel<S, T, 2, false>), grid, dim3(threads_for(norm->width, 2)),
                         0, stream, shape, x, dy, residual, dx, b->scratch);
    }
    /* Spills registers, 430 bytes a thread on sm_80: no published model is so wide. */
    return DP_LAUNCH((backward_kernel<S, T, 4, false>), grid, dim3(threads_for(norm->width, 4)), 0,
                     stream, shape, x, dy, residual, dx, b->scratch);
}

static bool fits(const dp_cuda_norm *norm)
{
    return norm->width > 0 && norm->width <= DP_MODEL_WIDTH_MAX &&
           (norm->rms || (norm->mean != nullptr && norm->bias != nullptr));
}

extern "C" dp_status dp_cuda_norm_forward(const dp_cuda_norm *norm, const void *add, void *sum,
                                          void *y, cudaStream_t stream)
{
    if (!fits(norm)) {
        return DP_BADARG;
    }
    if (norm->rows == 0) {
        return DP_OK;
    }
    if (norm->stream == DP_FP32 && norm->type == DP_FP32) {
        return forward<float, float>(norm, add, sum, y, stream);
    }
    if (norm->stream == DP_FP32 && norm->type == DP_BF16) {
        return forward<float, dp_bf16>(norm, add, sum, y, stream);
    }
    if (norm->stream == DP_FP32 && norm->type == DP_FP16) {
        return forward<float, dp_fp16>(norm, add, sum, y, stream);
    }
    if (norm->stream == DP_BF16 && norm->type == DP_BF16) {
        return forward<dp_bf16, dp_bf16>(norm, add, sum, y, stream);
    }
    if (norm->stream == DP_FP16 && norm->type == DP_FP16) {
        return forward<dp_fp16, dp_fp16>(norm, add, sum, y, stream);
    }
    return DP_BADARG;
}

static dp_status backward_of_types(const dp_cuda_norm *norm, const back *b, cudaStream_t stream)
{
    if (norm->stream == DP_FP32 && norm->type == DP_FP32) {
        return backward<float, float>(norm, b, stream);
    }
    if (norm->stream == DP_FP32 && norm->type == DP_BF16) {
        return backward<float, dp_bf16>(norm, b, stream);
    }
    if (norm->stream == DP_FP32 && norm->type == DP_FP16) {
        return backward<float, dp_fp16>(norm, b, stream);
    }
    if (norm->stream == DP_BF16 && norm->type == DP_BF16) {
        return backward<dp_bf16, dp_bf16>(norm, b, stream);
    }
    if (norm->stream == DP_FP16 && norm->type == DP_FP16) {
        return backward<dp_fp16, dp_fp16>(norm, b, stream);
    }
    return DP_BADARG;
}

extern "C" dp_status dp_cuda_norm_backward(const dp_cuda_norm *norm, const void *dy,
                                           const void *residual, void *dx, float *d_gain,
                                           float *d_bias, float *d_sum, float *scratch,
                                           cudaStream_t stream)
{
    const back b = {dy, residual, dx, d_sum, scratch};
    const size_t width = norm->width;
    const size_t strips = dp_cuda_strips(norm->rows);
    const bool summed = d_sum != nullptr && width <= NARROW_MAX;
    const size_t ld = (summed ? 3 : 2) * width;
    if (!fits(norm) || norm->rms != (d_bias == nullptr)) {
        return DP_BADARG;
    }
    if (norm->rows == 0) {
        return DP_OK;
    }
    DP_TRY(backward_of_types(norm, &b, stream));
    DP_TRY(dp_cuda_add_strips(scratch, strips, width, ld, d_gain, stream));
    if (d_bias != nullptr) {
        DP_TRY(dp_cuda_add_strips(scratch + width, strips, width, ld, d_bias, stream));
    }
    if (d_sum == nullptr) {
        return DP_OK;
    }
    return summed ? dp_cuda_add_strips(scratch + 2 * width, strips, width, ld, d_sum, stream)
                  : dp_cuda_add_columns(dx, norm->stream, norm->rows, width, width, d_sum, scratch,
                                        stream);
}
