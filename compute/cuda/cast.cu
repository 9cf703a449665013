#include "compute/cuda/cast.h"

#include "compute/cuda/element.cuh"
#include "compute/cuda/launch.h"

enum { CAST_THREADS = 256 };
static const unsigned cast_blocks_max = 8192;

/* Eight at a time; n is a multiple of that (DP_ARENA_ALIGN). */
template <typename T> static __global__ void cast_kernel(T *to, const float *x, size_t n)
{
    const size_t stride = (size_t)gridDim.x * blockDim.x * DP_VECTOR;
    for (size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * DP_VECTOR; i < n;
         i += stride) {
        float values[DP_VECTOR];
        dp_load8(values, x + i);
        dp_store8(to + i, values);
    }
}

template <typename T> static dp_status cast(void *to, const float *x, size_t n, cudaStream_t stream)
{
    const unsigned blocks = dp_cuda_blocks(n, (size_t)CAST_THREADS * DP_VECTOR);
    return DP_LAUNCH((cast_kernel<T>), dim3(blocks < cast_blocks_max ? blocks : cast_blocks_max),
                     dim3(CAST_THREADS), 0, stream, static_cast<T *>(to), x, n);
}

DP_C_LINKAGE dp_status dp_cuda_cast(void *to, dp_precision type, const float *x, size_t n,
                                    cudaStream_t stream)
{
    if (n % DP_VECTOR != 0) {
        return DP_BADARG;
    }
    switch (type) {
    case DP_BF16:
        return cast<dp_bf16>(to, x, n, stream);
    case DP_FP16:
        return cast<dp_fp16>(to, x, n, stream);
    case DP_FP32:
        return cast<float>(to, x, n, stream);
    case DP_PRECISIONS:
        break;
    }
    return DP_BADARG;
}
