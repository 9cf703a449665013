/* The kernels of outer.cu for blobs that keep all elements: a run in registers, read and written
 * once. */
#include "compute/cuda/codecs_dense.cuh"

#include "compute/cuda/launch.h"

#define ANY DP_CODEC_KINDS, 0 /* with any blobs */
enum {
    /* of a processor: without the word ptxas aims at four and spills where any codec may come */
    BLOCKS_MIN = 2
};

/* g of a run: item after item, a rounded product and a rounded sum. */
template <dp_codec_kind KIND, unsigned BLOCK>
static __device__ __forceinline__ void sum_items(const dp_cuda_items &items, unsigned length,
                                                 dp_dense_run g)
{
#pragma unroll
    for (unsigned k = 0; k < DP_DENSE_FOURS; k++) {
#pragma unroll
        for (unsigned c = 0; c < 4; c++) {
            g[k][c] = 0;
        }
    }
    for (uint32_t i = 0; i < items.count; i++) {
        if (!dp_codec_has(items.blobs[i], blockIdx.x)) {
            continue;
        }
        const float f = items.f[i];
        dp_dense_each<KIND, BLOCK>(items.blobs[i], blockIdx.x, length,
                                   [&](unsigned k, const float v[4]) {
#pragma unroll
                                       for (unsigned c = 0; c < 4; c++) {
                                           g[k][c] = __fadd_rn(g[k][c], __fmul_rn(f, v[c]));
                                       }
                                   });
    }
}

/* True if all blobs have this codec. */
static bool all_are(const dp_cuda_items &items, dp_codec_kind kind, uint32_t block)
{
    for (uint32_t i = 0; i < items.count; i++) {
        if (items.blobs[i].kind != kind || items.blobs[i].block != block) {
            return false;
        }
    }
    return items.count > 0;
}

/* return launch(kernel of the codec that all items have), or of any. */
#define DP_IF_ALL(kernel, items, launch, kind, block)                                              \
    if (all_are(items, kind, block)) {                                                             \
        return launch(kernel<kind, block>);                                                        \
    }
#define DP_OF_CODEC(kernel, items, launch)                                                         \
    DP_IF_ALL(kernel, items, launch, DP_CODEC_INT8, 256)                                           \
    DP_IF_ALL(kernel, items, launch, DP_CODEC_INT8, 1024)                                          \
    DP_IF_ALL(kernel, items, launch, DP_CODEC_INT4, 64)                                            \
    return launch(kernel<ANY>)

/* The larger magnitude; not finite when one is not. */
static __device__ __forceinline__ void look(float &largest, const dp_dense_run v)
{
#pragma unroll
    for (unsigned k = 0; k < DP_DENSE_FOURS; k++) {
#pragma unroll
        for (unsigned c = 0; c < 4; c++) {
            largest = dp_larger(largest, v[k][c]);
        }
    }
}

template <dp_codec_kind KIND, unsigned BLOCK>
static __global__ void __launch_bounds__(DP_CODEC_THREADS, BLOCKS_MIN)
    plain_dense(float *theta, size_t n, const __grid_constant__ dp_cuda_items items, float step,
                uint32_t *bad)
{
    const unsigned length = dp_codec_length(n, blockIdx.x);
    float *const own = theta + static_cast<size_t>(blockIdx.x) * DP_CUDA_RUN;
    dp_dense_run x;
    dp_dense_run g;
    dp_dense_load(x, own, length);
    sum_items<KIND, BLOCK>(items, length, g);
#pragma unroll
    for (unsigned k = 0; k < DP_DENSE_FOURS; k++) {
#pragma unroll
        for (unsigned c = 0; c < 4; c++) {
            x[k][c] = __fsub_rn(x[k][c], __fmul_rn(step, g[k][c]));
        }
    }
    dp_dense_store(own, x, length);
    float largest = 0;
    look(largest, x);
    if (dp_bits_of(largest) >= DP_BLOCKS_INFINITY) {
        *bad = 1;
    }
}

dp_status dp_dense_plain(float *theta, size_t n, const dp_cuda_items &items, float step,
                         uint32_t *bad, cudaStream_t stream)
{
    const auto launch = [&](auto kernel) {
        return DP_LAUNCH(kernel, dp_cuda_blocks(n, DP_CUDA_RUN), DP_CODEC_THREADS, 0, stream, theta,
                         n, items, step, bad);
    };
    DP_OF_CODEC(plain_dense, items, launch);
}

template <dp_codec_kind KIND, unsigned BLOCK>
static __global__ void __launch_bounds__(DP_CODEC_THREADS, BLOCKS_MIN)
    nesterov_dense(float *theta, float *m, size_t n, const __grid_constant__ dp_cuda_items items,
                   const dp_cuda_nesterov step, uint32_t *bad)
{
    const unsigned length = dp_codec_length(n, blockIdx.x);
    const size_t first = static_cast<size_t>(blockIdx.x) * DP_CUDA_RUN;
    dp_dense_run x;
    dp_dense_run kept;
    dp_dense_run g;
    dp_dense_load(x, theta + first, length);
    dp_dense_load(kept, m + first, length);
    sum_items<KIND, BLOCK>(items, length, g);
#pragma unroll
    for (unsigned k = 0; k < DP_DENSE_FOURS; k++) {
#pragma unroll
        for (unsigned c = 0; c < 4; c++) {
            const float u = __fmul_rn(step.in_m, g[k][c]);
            kept[k][c] = __fadd_rn(__fmul_rn(step.mu, kept[k][c]), u);
            x[k][c] = __fsub_rn(x[k][c], dp_outer_moved(step, g[k][c], u, kept[k][c]));
        }
    }
    dp_dense_store(m + first, kept, length);
    dp_dense_store(theta + first, x, length);
    float largest = 0;
    look(largest, kept);
    look(largest, x);
    if (dp_bits_of(largest) >= DP_BLOCKS_INFINITY) {
        *bad = 1;
    }
}

dp_status dp_dense_nesterov(float *theta, float *m, size_t n, const dp_cuda_items &items,
                            const dp_cuda_nesterov &step, uint32_t *bad, cudaStream_t stream)
{
    const auto launch = [&](auto kernel) {
        return DP_LAUNCH(kernel, dp_cuda_blocks(n, DP_CUDA_RUN), DP_CODEC_THREADS, 0, stream, theta,
                         m, n, items, step, bad);
    };
    DP_OF_CODEC(nesterov_dense, items, launch);
}

/* feedback may be a. */
static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    settle_dense(float *feedback, const float *a, size_t n,
                 const __grid_constant__ dp_cuda_blob blob, float clip, float beta)
{
    const unsigned length = dp_codec_length(n, blockIdx.x);
    const size_t first = static_cast<size_t>(blockIdx.x) * DP_CUDA_RUN;
    dp_dense_run x;
    dp_dense_load(x, a + first, length);
    dp_dense_each<ANY>(blob, blockIdx.x, length, [&](unsigned k, const float d[4]) {
#pragma unroll
        for (unsigned c = 0; c < 4; c++) {
            x[k][c] = __fmul_rn(beta, __fsub_rn(x[k][c], __fmul_rn(clip, d[c])));
        }
    });
    dp_dense_store(feedback + first, x, length);
}

dp_status dp_dense_settle(float *e, const float *a, size_t n, const dp_cuda_blob &blob, float clip,
                          float beta, cudaStream_t stream)
{
    return DP_LAUNCH(settle_dense, dp_cuda_blocks(n, DP_CUDA_RUN), DP_CODEC_THREADS, 0, stream, e,
                     a, n, blob, clip, beta);
}

static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    decode_dense(float *out, size_t n, const __grid_constant__ dp_cuda_blob blob)
{
    const unsigned length = dp_codec_length(n, blockIdx.x);
    dp_dense_run d;
    dp_dense_each<ANY>(blob, blockIdx.x, length, [&](unsigned k, const float v[4]) {
#pragma unroll
        for (unsigned c = 0; c < 4; c++) {
            d[k][c] = v[c];
        }
    });
    dp_dense_store(out + static_cast<size_t>(blockIdx.x) * DP_CUDA_RUN, d, length);
}

dp_status dp_dense_decode(float *d, size_t n, const dp_cuda_blob &blob, cudaStream_t stream)
{
    return DP_LAUNCH(decode_dense, dp_cuda_blocks(n, DP_CUDA_RUN), DP_CODEC_THREADS, 0, stream, d,
                     n, blob);
}
