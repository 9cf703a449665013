/* The operations on the heads of q and k between their product and attention, on a GPU, in one
 * pass: RMSNorm of each head where the model has it (Dehghani et al. 2023), then rotary positions
 * in halves (Su et al. 2021). On the CPU these are rms_* with groups, and rope.
 *
 * A row holds the heads of q side by side, then those of k; columns behind them are not touched.
 * Forward again gives the same bits. Errors: DP_BADARG for a type that is none or an odd or too
 * wide head, DP_IO when a launch fails; then outputs hold anything. */
#ifndef DP_COMPUTE_CUDA_ROPE_H
#define DP_COMPUTE_CUDA_ROPE_H

#include <stddef.h>

#include "base/status.h"
#include "compute/cpu/precision.h"
#include "compute/cuda/columns.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dp_cuda_rope {
    size_t rows;     /* tokens; row r has position r % length */
    size_t length;   /* of a sequence */
    size_t heads;    /* of q */
    size_t kv_heads; /* of k */
    size_t head;     /* width of one: even, at most DP_MODEL_HEAD_WIDTH_MAX */
    dp_precision type;
    const float *angles; /* [length][head] of dp_rope_angles */
    const float *q_gain; /* [head]; NULL, as k_gain: no norms */
    const float *k_gain;
    float eps;
    float *q_rstd; /* [rows][heads], written forward, read backward; with norms */
    float *k_rstd; /* [rows][kv_heads] */
    const void *x; /* [rows][heads + kv_heads][head] of type at ld elements: before */
    size_t ld;
} dp_cuda_rope;

/* y: as x, at ld_y; may be x. */
DP_MUST dp_status dp_cuda_rope_forward(const dp_cuda_rope *rope, void *y, size_t ld_y,
                                       cudaStream_t stream);

/* Floats of scratch that backward takes where there are norms. */
static inline size_t dp_cuda_rope_scratch(size_t head)
{
    return (size_t)2 * DP_CUDA_STRIPS_MAX * head;
}

/* d: [rows][heads + kv_heads][head] of type at ld_d: the gradient behind on entry, before
 * afterwards. With norms reads x (which is as it was before forward) and adds the gradients of the
 * gains to d_q_gain and d_k_gain [head]; else they and scratch may be NULL. */
DP_MUST dp_status dp_cuda_rope_backward(const dp_cuda_rope *rope, void *d, size_t ld_d,
                                        float *d_q_gain, float *d_k_gain, float *scratch,
                                        cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
