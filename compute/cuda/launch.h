/* How a kernel is written once and runs twice: on a GPU (nvcc), and on the processor of a machine
 * without one (tests/cuda/host_gpu.h, given to the compiler with -include). For .cu files alone.
 *
 * A kernel says __shared__ for static shared memory and DP_SHARED for the dynamic one, and is
 * internal (static). It gets everything by value or as pointers to device memory. It never spins on
 * a value that another block writes, and adds no float atomically (stream.h). */
#ifndef DP_COMPUTE_CUDA_LAUNCH_H
#define DP_COMPUTE_CUDA_LAUNCH_H

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "compute/cuda/stream.h"

#define DP_C_LINKAGE extern "C"

#if defined(__CUDACC__)

#include <cuda_runtime.h>

enum { DP_SHARED_WITHOUT_ASKING = 48 * 1024 };

/* True if the launch before was accepted. Error texts stay for cudaGetLastError. */
static inline dp_status dp_cuda_launched(void)
{
    return cudaPeekAtLastError() == cudaSuccess ? DP_OK : DP_IO;
}

template <typename... Parameters, typename... Arguments>
static inline dp_status dp_cuda_launch(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                       size_t shared, cudaStream_t stream, Arguments... arguments)
{
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
        return DP_OK;
    }
    if (shared > DP_SHARED_WITHOUT_ASKING &&
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared)) != cudaSuccess) {
        return DP_IO;
    }
    kernel<<<grid, block, shared, stream>>>(static_cast<Parameters>(arguments)...);
    return dp_cuda_launched();
}

/* A dp_status. A grid of no blocks is DP_OK and nothing. kernel: templates in parentheses,
 * (copy<4>). */
#define DP_LAUNCH(kernel, grid, block, shared, stream, ...)                                        \
    dp_cuda_launch(kernel, grid, block, shared, stream, __VA_ARGS__)

/* type *name: the launch's dynamic shared memory, at 16 bytes. */
#define DP_SHARED(type, name)                                                                      \
    extern __shared__ __align__(16) unsigned char dp_shared_bytes[];                               \
    type *const name = reinterpret_cast<type *>(dp_shared_bytes)

#else

#if !defined(DP_TESTS_CUDA_HOST_GPU_H)
#error "compile with nvcc, or with -include tests/cuda/host_gpu.h"
#endif

#define DP_LAUNCH(kernel, grid, block, shared, stream, ...)                                        \
    host_gpu_launch(#kernel, grid, block, shared, stream, host_gpu_bind(kernel, __VA_ARGS__))

#define DP_SHARED(type, name) type *const name = static_cast<type *>(host_gpu_shared_bytes())

#endif

/* Blocks for n things, per_block to each: one more for a rest, none for nothing. */
static inline unsigned dp_cuda_blocks(size_t n, size_t per_block)
{
    const size_t blocks = (n + per_block - 1) / per_block;
    return blocks < 0x7fffffffU ? static_cast<unsigned>(blocks) : 0x7fffffffU;
}

#endif
