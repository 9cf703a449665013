/* Helpers of the optimizers' kernels. Private to optim*.cu. */
#ifndef DP_COMPUTE_CUDA_OPTIM_CUH
#define DP_COMPUTE_CUDA_OPTIM_CUH

#include "compute/cuda/launch.h"

enum {
    DP_OPTIM_THREADS = 256,
    DP_OPTIM_BLOCK = 65536, /* DP_NORM_BLOCK: most elements of a piece */
    DP_OPTIM_CUTS = 8       /* blocks that share a piece where they need no sum of it */
};

static constexpr size_t dp_optim_rows_max = 65535; /* of a grid */

/* Sum over the block, by lanes, then by warps: one order. Thread 0 has it. Once in a kernel between
 * barriers. */
static __device__ __forceinline__ double dp_optim_sum_of_block(double sum)
{
    __shared__ double warps[DP_OPTIM_THREADS / 32];
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_down_sync(0xffffffffU, sum, static_cast<unsigned>(step));
    }
    __syncthreads(); /* The sum before this one has been read. */
    if (threadIdx.x % 32 == 0) {
        warps[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    double total = 0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < DP_OPTIM_THREADS / 32; i++) {
            total += warps[i];
        }
    }
    return total;
}

/* launch(grid, first piece) so often that all pieces had their row of blocks. */
template <typename Launch>
static inline dp_status dp_optim_by_chunks(size_t n_pieces, Launch launch)
{
    for (size_t first = 0; first < n_pieces; first += dp_optim_rows_max) {
        const size_t left = n_pieces - first;
        const auto rows =
            static_cast<unsigned>(left < dp_optim_rows_max ? left : dp_optim_rows_max);
        DP_TRY(launch(dim3(DP_OPTIM_CUTS, rows), first));
    }
    return DP_OK;
}

#endif
