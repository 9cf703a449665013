/* The end of the model on a GPU: softmax cross-entropy of a chunk of logits, forward and backward
 * in place, and the sum of losses. The products before and behind are gemm's; logits of all tokens
 * never live at once. The CPU's: classifier and softcap of compute/cpu/ops.h.
 *
 * Errors: DP_BADARG for a type that is none, DP_IO when a launch fails; then outputs hold
 * anything. */
#ifndef DP_COMPUTE_CUDA_HEAD_H
#define DP_COMPUTE_CUDA_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "compute/cpu/precision.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dp_cuda_classifier {
    dp_precision type;       /* of the logits */
    void *logits;            /* [rows][vocab] at ld elements */
    const uint32_t *targets; /* [rows]; the loss of one that is not below vocab is NaN */
    size_t rows;
    size_t vocab;
    size_t ld;     /* >= vocab: columns behind the vocabulary are padding and not read */
    float softcap; /* c > 0: of c * tanh(logit / c) instead of the logit; 0: none */
    /* 0: losses alone, logits stay. Else logits become scale * d(loss)/d(logit), padding 0 */
    float scale;
    /* one float on the device that scale is multiplied by; NULL: 1. A loss scale, say */
    const float *scale_by;
    float *losses; /* [rows], nats, not scaled */
} dp_cuda_classifier;

DP_MUST dp_status dp_cuda_classify(const dp_cuda_classifier *classifier, cudaStream_t stream);

/* *sum += losses[0] + ... in double, as a fixed tree; *sum, on the device, becomes NaN or infinite
 * when a loss is. */
DP_MUST dp_status dp_cuda_loss_sum(const float *losses, size_t n, double *sum, cudaStream_t stream);

/* out[i] = x[i], or cap * tanh(x[i] / cap) with cap > 0, as floats: logits on their way to the
 * host. */
DP_MUST dp_status dp_cuda_logits_out(const void *x, dp_precision type, size_t n, float cap,
                                     float *out, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
