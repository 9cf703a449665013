/* The arguments that attention.cu gives to its paths. */
#ifndef DP_COMPUTE_CUDA_ATTENTION_INSIDE_CUH
#define DP_COMPUTE_CUDA_ATTENTION_INSIDE_CUH

#include "compute/cuda/attention.h"
#include "compute/cuda/element.cuh"

/* Where a (row of the batch, head) stands in tensors of T. */
template <typename T>
static __device__ inline const T *dp_head_in(const void *x, size_t ld, size_t first_token,
                                             size_t head, size_t width)
{
    return (const T *)x + first_token * ld + head * width;
}

template <typename T>
static __device__ inline T *dp_head_of(void *x, size_t ld, size_t first_token, size_t head,
                                       size_t width)
{
    return (T *)x + first_token * ld + head * width;
}

/* True if the driver can make the maps of the copy engine. */
bool dp_attention_wgmma_known(void);

/* Those of tensor cores want halves, rows at 16 bytes, and heads of 64 or 128 (wgmma) or of a
 * multiple of 8 up to 256 (mma; on sm_75 128). */
DP_MUST dp_status dp_attention_wgmma_forward(const dp_cuda_attention *a, cudaStream_t stream);
DP_MUST dp_status dp_attention_wgmma_backward(const dp_cuda_attention *a,
                                              const dp_cuda_attention_grads *g,
                                              cudaStream_t stream);
DP_MUST dp_status dp_attention_mma_forward(const dp_cuda_attention *a, cudaStream_t stream);
/* All backward ones want scratch to hold, for every (row, head, query), the product of out and
 * d_out. */
DP_MUST dp_status dp_attention_mma_backward(const dp_cuda_attention *a,
                                            const dp_cuda_attention_grads *g, cudaStream_t stream);
DP_MUST dp_status dp_attention_plain_forward(const dp_cuda_attention *a, cudaStream_t stream);
DP_MUST dp_status dp_attention_plain_backward(const dp_cuda_attention *a,
                                              const dp_cuda_attention_grads *g,
                                              cudaStream_t stream);

#endif
