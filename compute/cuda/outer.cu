/* Where a blob keeps only some elements, a run is summed in shared memory; outer_dense.cu has the
 * others. */
#include "compute/cuda/outer.h"

#include "compute/cuda/codecs.cuh"
#include "compute/cuda/codecs_dense.cuh"
#include "compute/cuda/launch.h"

/* g of a run in acc: item after item, a rounded product and a rounded sum. An item leaves the
 * elements that it does not store as they are. */
static __device__ void sum_items(const dp_cuda_items &items, uint64_t at, unsigned length,
                                 dp_codec_room &room, float *acc)
{
    for (unsigned e = threadIdx.x; e < length; e += DP_CODEC_THREADS) {
        acc[e] = 0;
    }
    for (uint32_t i = 0; i < items.count; i++) {
        if (!dp_codec_has(items.blobs[i], at)) {
            continue; /* All threads of the block alike. */
        }
        const float f = items.f[i];
        __syncthreads(); /* Elements of kept values belong to no thread. */
        dp_codec_each(items.blobs[i], at, length, room,
                      [=](unsigned e, float v) { acc[e] = __fadd_rn(acc[e], __fmul_rn(f, v)); });
    }
    __syncthreads();
}

static __device__ __forceinline__ bool is_finite(float x)
{
    return dp_element_key(x) < 0x7f800000U;
}

static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    plain(float *theta, size_t n, const __grid_constant__ dp_cuda_items items, float step,
          uint32_t *bad)
{
    __shared__ float acc[DP_CUDA_RUN];
    __shared__ dp_codec_room room;
    const unsigned length = dp_codec_length(n, blockIdx.x);
    sum_items(items, blockIdx.x, length, room, acc);
    float *const own = theta + static_cast<size_t>(blockIdx.x) * DP_CUDA_RUN;
    bool finite = true;
    for (unsigned e = threadIdx.x; e < length; e += DP_CODEC_THREADS) {
        const float next = __fsub_rn(own[e], __fmul_rn(step, acc[e]));
        own[e] = next;
        finite = finite && is_finite(next);
    }
    if (!finite) {
        *bad = 1;
    }
}

extern "C" dp_status dp_cuda_outer_plain(float *theta, size_t n, const dp_cuda_items *items,
                                         float step, uint32_t *bad, cudaStream_t stream)
{
    if (items->count > DP_CUDA_ITEMS_MAX) {
        return DP_BADARG;
    }
    if (dp_dense_all(items)) {
        return dp_dense_plain(theta, n, *items, step, bad, stream);
    }
    return DP_LAUNCH(plain, dp_cuda_blocks(n, DP_CUDA_RUN), DP_CODEC_THREADS, 0, stream, theta, n,
                     *items, step, bad);
}

/* The sums have an order, so one thread makes each; the products were made by all. */
static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    measure(const float *__restrict__ m, size_t n, const __grid_constant__ dp_cuda_items items,
            float mu, double *__restrict__ sums)
{
    __shared__ float acc[DP_CUDA_RUN];
    __shared__ float next[DP_CUDA_RUN];
    __shared__ dp_codec_room room;
    const unsigned length = dp_codec_length(n, blockIdx.x);
    sum_items(items, blockIdx.x, length, room, acc);
    const float *const own = m + static_cast<size_t>(blockIdx.x) * DP_CUDA_RUN;
    for (unsigned e = threadIdx.x; e < length; e += DP_CODEC_THREADS) {
        next[e] = __fadd_rn(__fmul_rn(mu, own[e]), acc[e]);
    }
    __syncthreads();
    const unsigned which = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0 && which < DP_CUDA_OUTER_SUMS) {
        const float *const one = which == 0 ? next : which == 1 ? acc : own;
        const float *const other = which == 2 ? own : acc;
        double sum = 0;
        for (unsigned e = 0; e < length; e++) {
            sum = __dadd_rn(sum,
                            __dmul_rn(static_cast<double>(one[e]), static_cast<double>(other[e])));
        }
        sums[DP_CUDA_OUTER_SUMS * static_cast<size_t>(blockIdx.x) + which] = sum;
    }
}

extern "C" dp_status dp_cuda_outer_measure(const float *m, size_t n, const dp_cuda_items *items,
                                           float mu, double *sums, cudaStream_t stream)
{
    if (items->count > DP_CUDA_ITEMS_MAX) {
        return DP_BADARG;
    }
    return DP_LAUNCH(measure, dp_cuda_blocks(n, DP_CUDA_RUN), DP_CODEC_THREADS, 0, stream, m, n,
                     *items, mu, sums);
}

static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    nesterov(float *theta, float *m, size_t n, const __grid_constant__ dp_cuda_items items,
             const dp_cuda_nesterov step, uint32_t *bad)
{
    __shared__ float acc[DP_CUDA_RUN];
    __shared__ dp_codec_room room;
    const unsigned length = dp_codec_length(n, blockIdx.x);
    sum_items(items, blockIdx.x, length, room, acc);
    const size_t first = static_cast<size_t>(blockIdx.x) * DP_CUDA_RUN;
    bool finite = true;
    for (unsigned e = threadIdx.x; e < length; e += DP_CODEC_THREADS) {
        const float g = acc[e];
        const float u = __fmul_rn(step.in_m, g);
        const float kept = __fadd_rn(__fmul_rn(step.mu, m[first + e]), u);
        const float next = __fsub_rn(theta[first + e], dp_outer_moved(step, g, u, kept));
        m[first + e] = kept;
        theta[first + e] = next;
        finite = finite && is_finite(next) && is_finite(kept);
    }
    if (!finite) {
        *bad = 1;
    }
}

extern "C" dp_status dp_cuda_outer_nesterov(float *theta, float *m, size_t n,
                                            const dp_cuda_items *items,
                                            const dp_cuda_nesterov *step, uint32_t *bad,
                                            cudaStream_t stream)
{
    if (items->count > DP_CUDA_ITEMS_MAX) {
        return DP_BADARG;
    }
    if (dp_dense_all(items)) {
        return dp_dense_nesterov(theta, m, n, *items, *step, bad, stream);
    }
    return DP_LAUNCH(nesterov, dp_cuda_blocks(n, DP_CUDA_RUN), DP_CODEC_THREADS, 0, stream, theta,
                     m, n, *items, *step, bad);
}

/* A decoded run in d, +0 where nothing is stored. */
static __device__ void expand(const dp_cuda_blob &blob, uint64_t at, unsigned length,
                              dp_codec_room &room, float *d)
{
    for (unsigned e = threadIdx.x; e < length; e += DP_CODEC_THREADS) {
        d[e] = 0;
    }
    __syncthreads();
    dp_codec_each(blob, at, length, room, [=](unsigned e, float v) { d[e] = v; });
    __syncthreads();
}

/* e may be a. */
static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    settle(float *feedback, const float *a, size_t n, dp_cuda_blob blob, float clip, float beta)
{
    __shared__ float d[DP_CUDA_RUN];
    __shared__ dp_codec_room room;
    const unsigned length = dp_codec_length(n, blockIdx.x);
    expand(blob, blockIdx.x, length, room, d);
    const size_t first = static_cast<size_t>(blockIdx.x) * DP_CUDA_RUN;
    for (unsigned e = threadIdx.x; e < length; e += DP_CODEC_THREADS) {
        feedback[first + e] = __fmul_rn(beta, __fsub_rn(a[first + e], __fmul_rn(clip, d[e])));
    }
}

extern "C" dp_status dp_cuda_settle(float *e, const float *a, size_t n, const dp_cuda_blob *blob,
                                    uint32_t clip, float beta, cudaStream_t stream)
{
    const float share = static_cast<float>(clip) * 0x1p-16F;
    if (blob->keep == 0) {
        return dp_dense_settle(e, a, n, *blob, share, beta, stream);
    }
    return DP_LAUNCH(settle, dp_cuda_blocks(n, DP_CUDA_RUN), DP_CODEC_THREADS, 0, stream, e, a, n,
                     *blob, share, beta);
}

static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    decode(float *out, size_t n, dp_cuda_blob blob)
{
    __shared__ float d[DP_CUDA_RUN];
    __shared__ dp_codec_room room;
    const unsigned length = dp_codec_length(n, blockIdx.x);
    expand(blob, blockIdx.x, length, room, d);
    const size_t first = static_cast<size_t>(blockIdx.x) * DP_CUDA_RUN;
    for (unsigned e = threadIdx.x; e < length; e += DP_CODEC_THREADS) {
        out[first + e] = d[e];
    }
}

extern "C" dp_status dp_cuda_decode(float *d, size_t n, const dp_cuda_blob *blob,
                                    cudaStream_t stream)
{
    if (blob->keep == 0) {
        return dp_dense_decode(d, n, *blob, stream);
    }
    return DP_LAUNCH(decode, dp_cuda_blocks(n, DP_CUDA_RUN), DP_CODEC_THREADS, 0, stream, d, n,
                     *blob);
}

static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    mix(float *__restrict__ frozen, float *__restrict__ x, size_t n, dp_cuda_blob own,
        dp_cuda_blob other, double share, double *__restrict__ sums)
{
    __shared__ float d[2][DP_CUDA_RUN];
    __shared__ dp_codec_room room;
    __shared__ double warps[DP_CODEC_THREADS / 32];
    const unsigned length = dp_codec_length(n, blockIdx.x);
    expand(own, blockIdx.x, length, room, d[0]);
    expand(other, blockIdx.x, length, room, d[1]);
    const size_t first = static_cast<size_t>(blockIdx.x) * DP_CUDA_RUN;
    double moved = 0;
    for (unsigned e = threadIdx.x; e < length; e += DP_CODEC_THREADS) {
        const auto change = static_cast<float>(__dmul_rn(
            share, __dsub_rn(static_cast<double>(d[1][e]), static_cast<double>(d[0][e]))));
        frozen[first + e] = __fadd_rn(frozen[first + e], change);
        x[first + e] = __fsub_rn(x[first + e], change);
        moved += static_cast<double>(change);
    }
    for (int step = 16; step > 0; step /= 2) {
        moved += __shfl_down_sync(0xffffffffU, moved, static_cast<unsigned>(step));
    }
    if (threadIdx.x % 32 == 0) {
        warps[threadIdx.x / 32] = moved;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        double sum = 0;
        for (int i = 0; i < DP_CODEC_THREADS / 32; i++) {
            sum += warps[i];
        }
        sums[blockIdx.x] = sum;
    }
}

extern "C" dp_status dp_cuda_mix(float *frozen, float *x, size_t n, const dp_cuda_blob *own,
                                 const dp_cuda_blob *other, double share, double *sums,
                                 cudaStream_t stream)
{
    return DP_LAUNCH(mix, dp_cuda_blocks(n, DP_CUDA_RUN), DP_CODEC_THREADS, 0, stream, frozen, x, n,
                     *own, *other, share, sums);
}
