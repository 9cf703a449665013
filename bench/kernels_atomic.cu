/* The embedding's gradients by atomic additions: bench_kernels compares them with the sorted sums.
 * Bits differ from run to run. */
#include "bench/kernels_atomic.h"

#include "compute/cuda/element.cuh"

enum { THREADS = 256, BLOCKS_MAX = 1 << 16 };

static __device__ inline void add4(float *to, const float *x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    atomicAdd(reinterpret_cast<float4 *>(to), make_float4(x[0], x[1], x[2], x[3]));
#else
    for (int i = 0; i < 4; i++) {
        atomicAdd(to + i, x[i]);
    }
#endif
}

/* One vector of a row per thread. */
static __global__ void __launch_bounds__(THREADS)
    add_kernel(const uint32_t *tokens, size_t n, size_t width, const dp_bf16 *dx, float *d_table)
{
    const size_t vectors = width / DP_VECTOR;
    const size_t stride = (size_t)gridDim.x * THREADS;
    for (size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x; at < n * vectors; at += stride) {
        const size_t column = at % vectors * DP_VECTOR;
        float value[DP_VECTOR];
        dp_load8(value, dx + at / vectors * width + column);
        float *const to = d_table + (size_t)tokens[at / vectors] * width + column;
        add4(to, value);
        add4(to + 4, value + 4);
    }
}

extern "C" dp_status kernels_embed_atomic(const uint32_t *tokens, size_t n, size_t width,
                                          const void *dx, float *d_table, cudaStream_t stream)
{
    const size_t vectors = n * (width / DP_VECTOR);
    return DP_LAUNCH(add_kernel, dim3((unsigned)dp_least(dp_blocks(vectors, THREADS), BLOCKS_MAX)),
                     dim3(THREADS), 0, stream, tokens, n, width, (const dp_bf16 *)dx, d_table);
}
