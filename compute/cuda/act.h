/* Activations on a GPU; formulas and names are those of compute/cpu/ops.h. Element by element, so
 * any width and alignment will do; rows that lie at 16 bytes are moved in chunks of as many.
 *
 * Errors: DP_BADARG for a kind or type that is none, DP_IO when the launch fails; then outputs hold
 * anything. */
#ifndef DP_COMPUTE_CUDA_ACT_H
#define DP_COMPUTE_CUDA_ACT_H

#include <stddef.h>

#include "base/status.h"
#include "compute/cpu/ops.h"
#include "compute/cpu/precision.h"
#include "compute/cuda/columns.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x: [rows][width] of type, SwiGLU: [rows][2 width], gates then ups. y: [rows][width]. */
typedef struct dp_cuda_activation {
    dp_activation_kind kind;
    dp_precision type;
    size_t rows;
    size_t width; /* of y */
    const void *x;
} dp_cuda_activation;

DP_MUST dp_status dp_cuda_activation_forward(const dp_cuda_activation *act, void *y,
                                             cudaStream_t stream);

/* dx for dy, y once more unless y is NULL, and unless d_bias is NULL d_bias[j] += sum over rows of
 * dx[row][j]. dy: [rows][width] at ld_dy elements; dx: as x. dx may be dy: at ld_dy = width where x
 * is as wide as y, at 2 * width for SwiGLU. d_bias: [width of x] floats; scratch:
 * dp_cuda_columns_scratch of that width, not touched without d_bias. */
DP_MUST dp_status dp_cuda_activation_backward(const dp_cuda_activation *act, const void *dy,
                                              size_t ld_dy, void *dx, void *y, float *d_bias,
                                              float *scratch, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
