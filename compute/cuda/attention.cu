/* The path that a problem takes, and the steps that both paths need before backward. */
#include <stdlib.h>
#include <string.h>

#include "compute/cuda/attention_inside.cuh"
#include "compute/cuda/reduce.cuh"
#include "compute/model/model.h"

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

/* True when everything lies as tensor cores read it: rows of halves at 16 bytes. */
static bool lies_evenly(const dp_cuda_attention *a, const dp_cuda_attention_grads *g)
{
    return dp_even(a->q, a->ld_qk * 2) && dp_even(a->k, 0) && dp_even(a->v, a->ld_v * 2) &&
           dp_even(a->out, a->ld_out * 2) &&
           (g == nullptr || (dp_even(g->d_out, 0) && dp_even(g->dq, g->ld_d * 2) &&
                             dp_even(g->dk, 0) && dp_even(g->dv, 0)));
}

/* The widest head of a path on tensor cores. */
static size_t widest_of(dp_cuda_attention_path path)
{
    return path == DP_ATTENTION_MMA8 ? 128 : 256;
}

static dp_cuda_attention_path path_of(const dp_cuda_attention *a, const dp_cuda_attention_grads *g)
{
    const bool type = a->path == DP_ATTENTION_MMA8 ? a->type == DP_FP16 : a->type != DP_FP32;
    if (!type || a->head % 8 != 0 || a->head > widest_of(a->path) || !lies_evenly(a, g)) {
        return DP_ATTENTION_PLAIN;
    }
    const bool groups = a->head == 64 || a->head == 128;
    return a->path == DP_ATTENTION_WGMMA && !groups ? DP_ATTENTION_MMA : a->path;
}

extern "C" dp_cuda_attention_path dp_cuda_attention_path_for(int major, int minor)
{
    const char *const asked = getenv("DPNODE_CUDA_ATTENTION"); /* Nobody sets it meanwhile. */
    if (asked != nullptr && strcmp(asked, "plain") == 0) {
        return DP_ATTENTION_PLAIN;
    }
    if (major < 8) {
        return DP_ATTENTION_MMA8;
    }
#if defined(DP_CUDA_HAS_90A)
    const bool groups = 10 * major + minor == 90 && dp_attention_wgmma_known();
#else
    const bool groups = false; /* This build has no code for sm_90a. */
    (void)minor;
#endif
    return groups && (asked == nullptr || strcmp(asked, "mma") != 0) ? DP_ATTENTION_WGMMA
                                                                     : DP_ATTENTION_MMA;
}

extern "C" dp_status dp_cuda_attention_forward(const dp_cuda_attention *a, cudaStream_t stream)
{
    DP_TRY(check(a));
    if (a->rows == 0 || a->length == 0) {
        return DP_OK;
    }
    switch (path_of(a, nullptr)) {
    case DP_ATTENTION_WGMMA:
        return dp_attention_wgmma_forward(a, stream);
    case DP_ATTENTION_MMA:
    case DP_ATTENTION_MMA8:
        return dp_attention_mma_forward(a, stream);
    case DP_ATTENTION_PLAIN:
        break;
    }
    return dp_attention_plain_forward(a, stream);
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
    switch (path_of(a, g)) {
    case DP_ATTENTION_WGMMA:
        return dp_attention_wgmma_backward(a, g, stream);
    case DP_ATTENTION_MMA:
    case DP_ATTENTION_MMA8:
        return dp_attention_mma_backward(a, g, stream);
    case DP_ATTENTION_PLAIN:
        break;
    }
    return dp_attention_plain_backward(a, g, stream);
}
