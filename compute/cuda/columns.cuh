/* Sums of columns inside a kernel that goes through rows for another reason: a block takes a strip
 * of rows in DP_LANES vectors of columns, and leaves one partial sum for each column, which
 * dp_cuda_add_strips adds up (columns.h). */
#ifndef DP_COMPUTE_CUDA_COLUMNS_CUH
#define DP_COMPUTE_CUDA_COLUMNS_CUH

#include "compute/cuda/columns.h"
#include "compute/cuda/element.cuh"

enum {
    DP_STRIP_ROWS = 8 /* threads of a block over rows */,
    DP_STRIP_THREADS = DP_LANES * DP_STRIP_ROWS
};

/* The first column of this thread; its rows are first, first + DP_STRIP_ROWS, .. below last. Grid:
 * dp_strip_grid. */
typedef struct dp_strip {
    size_t column;
    size_t first;
    size_t last;
} dp_strip;

static __device__ inline dp_strip dp_strip_of(size_t rows, size_t per_strip)
{
    const size_t begin = (size_t)blockIdx.y * per_strip;
    return {((size_t)blockIdx.x * DP_LANES + threadIdx.x % DP_LANES) * DP_VECTOR,
            begin + threadIdx.x / DP_LANES, begin + per_strip < rows ? begin + per_strip : rows};
}

/* partial[strip][column], from the sums of each thread. All threads of the block, once. */
static __device__ inline void dp_strip_keep(const float sum[DP_VECTOR], size_t width,
                                            float *partial)
{
    __shared__ float sums[DP_STRIP_ROWS][DP_LANES][DP_VECTOR + 1];
#pragma unroll
    for (int i = 0; i < DP_VECTOR; i++) {
        sums[threadIdx.x / DP_LANES][threadIdx.x % DP_LANES][i] = sum[i];
    }
    __syncthreads();
    /* 256 threads, 256 columns. */
    const size_t mine = (size_t)blockIdx.x * DP_LANES * DP_VECTOR + threadIdx.x;
    if (mine < width) {
        float total = 0.0F;
#pragma unroll
        for (int i = 0; i < DP_STRIP_ROWS; i++) {
            total += sums[i][threadIdx.x / DP_VECTOR][threadIdx.x % DP_VECTOR];
        }
        partial[(size_t)blockIdx.y * width + mine] = total;
    }
}

static inline dim3 dp_strip_grid(size_t rows, size_t width)
{
    return dim3((unsigned)dp_blocks(width, DP_LANES * DP_VECTOR), (unsigned)dp_cuda_strips(rows));
}

#endif
