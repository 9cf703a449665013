/* Causal softmax attention on a GPU, forward and backward, without the matrix of scores in memory
 * (Dao 2023). The CPU's: attention_* of compute/cpu/ops.h; query heads may share heads of k and v
 * (Ainslie et al. 2023).
 *
 * Halves with heads of a multiple of 8 up to 256 are multiplied by tensor cores, by warps
 * (attention_mma.cu; on sm_75 fp16 with heads up to 128 alone) or, on sm_90a with heads of 64 or
 * 128, by warpgroups with tiles that the copy engine brings (attention_wgmma.cu). All else takes a
 * plain path in fp32 (attention_plain.cu), right on every card. Backward adds nothing atomically:
 * dk and dv are summed over queries by one block for each range of keys, dq over keys by another
 * pass. On tensor cores factors are rounded to the type (probabilities and their gradients too);
 * sums are fp32 on all paths. Each has its own bits, the same every time. Errors: DP_BADARG for a
 * type that is none, a head wider than DP_MODEL_HEAD_WIDTH_MAX, or kv_heads that do not divide
 * heads; DP_TOOBIG beyond 65535 rows, DP_MODEL_HEADS_MAX or DP_MODEL_CONTEXT_MAX; DP_IO when a
 * launch fails; then outputs hold anything. */
#ifndef DP_COMPUTE_CUDA_ATTENTION_H
#define DP_COMPUTE_CUDA_ATTENTION_H

#include <stddef.h>

#include "base/status.h"
#include "compute/cpu/precision.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dp_cuda_attention_path {
    DP_ATTENTION_MMA,
    DP_ATTENTION_PLAIN,
    DP_ATTENTION_WGMMA,
    DP_ATTENTION_MMA8 /* sm_75: fp16 alone */
} dp_cuda_attention_path;

/* The best that this build has for a card of this compute capability; a lesser one where
 * DPNODE_CUDA_ATTENTION says "mma" or "plain", to compare them. */
dp_cuda_attention_path dp_cuda_attention_path_for(int major, int minor);

/* Token t of row r is row r * length + t of every tensor; scores are scaled by 1/sqrt(head). */
typedef struct dp_cuda_attention {
    dp_precision type;
    size_t rows; /* sequences */
    size_t length;
    size_t heads; /* of q */
    size_t kv_heads;
    size_t head;   /* width of one */
    const void *q; /* [tokens][heads][head] at ld_qk elements */
    const void *k; /* [tokens][kv_heads][head] at ld_qk */
    size_t ld_qk;
    const void *v; /* [tokens][kv_heads][head] at ld_v */
    size_t ld_v;
    void *out; /* [tokens][heads][head] at ld_out; written forward, read backward */
    size_t ld_out;
    /* [rows][heads][length]: log of the sum of exp of a row's scores; written forward, read
     * backward */
    float *lse;
    dp_cuda_attention_path path; /* shapes that do not fit it take PLAIN */
} dp_cuda_attention;

DP_MUST dp_status dp_cuda_attention_forward(const dp_cuda_attention *attention,
                                            cudaStream_t stream);

/* Floats of scratch that backward takes. */
static inline size_t dp_cuda_attention_scratch(size_t rows, size_t heads, size_t length)
{
    return rows * heads * length;
}

/* d_out: as out, at ld_out. dq, dk, dv: as q, k, v, all at ld_d; written, not added to. */
typedef struct dp_cuda_attention_grads {
    const void *d_out;
    void *dq;
    void *dk;
    void *dv;
    size_t ld_d;
    float *scratch;
} dp_cuda_attention_grads;

DP_MUST dp_status dp_cuda_attention_backward(const dp_cuda_attention *attention,
                                             const dp_cuda_attention_grads *grads,
                                             cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
