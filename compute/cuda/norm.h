/* The norms of the residual stream on a GPU: LayerNorm (Ba, Kiros, Hinton 2016) and RMSNorm (Zhang,
 * Sennrich 2019), with the addition to the stream before them and the gradient's behind them in the
 * same pass. The CPU's: norm_*, rms_* of compute/cpu/ops.h.
 *
 * Forward again gives the same bits, which is all that recomputing needs. Errors of all: DP_BADARG
 * for a pair of types that is not built, DP_IO when a launch fails; then outputs hold anything. All
 * pointers are of the stream's device. */
#ifndef DP_COMPUTE_CUDA_NORM_H
#define DP_COMPUTE_CUDA_NORM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "compute/cpu/precision.h"
#include "compute/cuda/columns.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Built pairs of stream and type: both the same, or a stream of fp32. */
typedef struct dp_cuda_norm {
    size_t rows;
    size_t width; /* 1 .. DP_MODEL_WIDTH_MAX */
    bool rms;     /* RMSNorm; else LayerNorm */
    float eps;
    dp_precision stream; /* of x, sum, residual, dx */
    dp_precision type;   /* of add, y, dy */
    const void *x;       /* [rows][width] */
    const float *gain;   /* [width] */
    const float *bias;   /* [width]; NULL for RMSNorm */
    float *mean;         /* [rows], written forward, read backward; not used by RMSNorm */
    float *rstd;         /* [rows], the same */
} dp_cuda_norm;

/* y = norm(x), or with add: sum = x + add rounded to the stream's type, y = norm(sum). add:
 * [rows][width] of type, or NULL; sum: [rows][width] of the stream's type, may be x, is not touched
 * without add. y: [rows][width] of type. */
DP_MUST dp_status dp_cuda_norm_forward(const dp_cuda_norm *norm, const void *add, void *sum,
                                       void *y, cudaStream_t stream);

/* Floats of scratch that backward takes. */
static inline size_t dp_cuda_norm_scratch(size_t rows, size_t width)
{
    return 3 * dp_cuda_strips(rows) * width;
}

/* dx = residual + d(loss)/dx for dy; over all rows d_gain +=, d_bias +=, and d_sum += dx: the
 * gradient of a bias that was added to the norm's input. residual: of the stream's type or NULL,
 * may be dx; d_bias NULL for RMSNorm, d_sum where it is not needed. x is the norm's input (sum,
 * where there was an add). */
DP_MUST dp_status dp_cuda_norm_backward(const dp_cuda_norm *norm, const void *dy,
                                        const void *residual, void *dx, float *d_gain,
                                        float *d_bias, float *d_sum, float *scratch,
                                        cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
