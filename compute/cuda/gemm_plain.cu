#include "compute/cuda/gemm_plain.h"

#include "compute/cuda/element.cuh"
#include "compute/cuda/launch.h"

enum { SIDE = 16 /* of a block's tile of c */ };
static const unsigned grid_rows_max = 65535; /* CUDA's, of blocks */

/* Where element (row, column) of a matrix is. */
static __device__ inline size_t place(bool transposed, size_t ld, size_t row, size_t column)
{
    return transposed ? column * ld + row : row * ld + column;
}

template <typename In, typename Out>
static __device__ inline void product_element(const dp_cuda_product &p, size_t row, size_t column)
{
    const In *const a = static_cast<const In *>(p.a);
    const In *const b = static_cast<const In *>(p.b);
    const size_t at = row * p.ldc + column;
    float sum = 0.0F;
    for (size_t i = 0; i < p.k; i++) {
        sum = fmaf(dp_to_float(a[place(p.a_transposed, p.lda, row, i)]),
                   dp_to_float(b[place(p.b_transposed, p.ldb, i, column)]), sum);
    }
    if (p.add != nullptr) {
        sum += dp_to_float(static_cast<const Out *>(p.add)[at]);
    }
    if (p.bias != nullptr) {
        sum += dp_to_float(static_cast<const Out *>(p.bias)[column]);
    }
    dp_store_one(static_cast<Out *>(p.c) + at, sum);
}

template <typename In, typename Out> static __global__ void product_kernel(dp_cuda_product p)
{
    const size_t column = (size_t)blockIdx.x * SIDE + threadIdx.x;
    const size_t rows = (size_t)gridDim.y * SIDE;
    for (size_t row = (size_t)blockIdx.y * SIDE + threadIdx.y; row < p.m && column < p.n;
         row += rows) {
        product_element<In, Out>(p, row, column);
    }
}

template <typename In, typename Out>
static dp_status product(const dp_cuda_product *p, cudaStream_t stream)
{
    const unsigned down = dp_cuda_blocks(p->m, SIDE);
    const dim3 grid(dp_cuda_blocks(p->n, SIDE), down < grid_rows_max ? down : grid_rows_max);
    return DP_LAUNCH((product_kernel<In, Out>), grid, dim3(SIDE, SIDE), 0, stream, *p);
}

template <typename In> static dp_status product_of(const dp_cuda_product *p, cudaStream_t stream)
{
    return p->out == DP_FP32 ? product<In, float>(p, stream) : product<In, In>(p, stream);
}

DP_C_LINKAGE dp_status dp_cuda_gemm_plain(const dp_cuda_product *p, cudaStream_t stream)
{
    if (p->out != DP_FP32 && p->out != p->in) {
        return DP_BADARG;
    }
    switch (p->in) {
    case DP_FP32:
        return product_of<float>(p, stream);
    case DP_BF16:
        return product_of<dp_bf16>(p, stream);
    case DP_FP16:
        return product_of<dp_fp16>(p, stream);
    case DP_PRECISIONS:
        break;
    }
    return DP_BADARG;
}
