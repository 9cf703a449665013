/* Which path a problem takes, and what both need before backward. */
#include "compute/cuda/attention_inside.cuh"
#include "compute/cuda/reduce.cuh"
#include "compute/model.h"

enum { WARPS = 8, ROWS_MAX = 65535 /* blocks of a grid's y and z */ };

/* delta[row][head][query] = out . d_out; a warp each. */
template <typename T>
static __global__ void __launch_bounds__(WARPS *DP_LANES)
    delta_kernel(const dp_cuda_attention a, const void *d_out, float *delta)
{
    const size_t lane = threadIdx.x % DP_LANES;
    const size_t query = (size_t)blockIdx.x * WARPS + threadIdx.x / DP_LANES;
    const size_t token = blockIdx.z * a.length;
    if (query >= a.length) {
        return; /* The whole warp. */
    }
    const T *const out = dp_head_in<T>(a.out, a.ld_out, token + query, blockIdx.y, a.head);
    const T *const d = dp_head_in<T>(d_out, a.ld_out, token + query, blockIdx.y, a.head);
    float sum = 0.0F;
    for (size_t i = lane; i < a.head; i += DP_LANES) {
        sum += dp_to_float(out[i]) * dp_to_float(d[i]);
    }
    sum = dp_lanes_sum(sum, DP_LANES);
    if (lane == 0) {
        delta[(blockIdx.z * a.heads + blockIdx.y) * a.length + query] = sum;
    }
}

static dp_status deltas(const dp_cuda_attention *a, const dp_cuda_attention_grads *g,
                        cudaStream_t stream)
{
    const dim3 grid((unsigned)dp_blocks(a->length, WARPS), (unsigned)a->heads, (unsigned)a->rows);
    const dim3 block(WARPS * DP_LANES);
    switch (a->type) {
    case DP_FP32:
        return DP_LAUNCH(delta_kernel<float>, grid, block, 0, stream, *a, g->d_out, g->scratch);
    case DP_BF16:
        return DP_LAUNCH(delta_kernel<dp_bf16>, grid, block, 0, stream, *a, g->d_out, g->scratch);
    case DP_FP16:
        return DP_LAUNCH(delta_kernel<dp_fp16>, grid, block, 0, stream, *a, g->d_out, g->scratch);
    case DP_PRECISIONS:
        break;
    }
    return DP_BADARG;
}

static dp_status check(const dp_cuda_attention *a)
{
    if (a->type >= DP_PRECISIONS || a->head == 0 || a->head > DP_MODEL_HEAD_WIDTH_MAX ||
        a->kv_heads == 0 || a->heads == 0 || a->heads % a->kv_heads != 0) {
        return DP_BADARG;
    }
    return a->heads > DP_MODEL_HEADS_MAX || a->rows > ROWS_MAX || a->length > DP_MODEL_CONTEXT_MAX
               ? DP_TOOBIG
               : DP_OK;
}

extern "C" dp_status dp_cuda_attention_forward(const dp_cuda_attention *a, cudaStream_t stream)
{
    DP_TRY(check(a));
    if (a->rows == 0 || a->length == 0) {
        return DP_OK;
    }
    return dp_attention_fits_mma(a, nullptr) ? dp_attention_mma_forward(a, stream)
                                             : dp_attention_plain_forward(a, stream);
}

extern "C" dp_status dp_cuda_attention_backward(const dp_cuda_attention *a,
                                                const dp_cuda_attention_grads *g,
                                                cudaStream_t stream)
{
    DP_TRY(check(a));
    if (a->rows == 0 || a->length == 0) {
        return DP_OK;
    }
    DP_TRY(deltas(a, g, stream));
    return dp_attention_fits_mma(a, g) ? dp_attention_mma_backward(a, g, stream)
                                       : dp_attention_plain_backward(a, g, stream);
}
