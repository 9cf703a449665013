/* The weights as products on a card take them: rounded to the type of the run. */
#ifndef DP_COMPUTE_CUDA_CAST_H
#define DP_COMPUTE_CUDA_CAST_H

#include <stddef.h>

#include "base/status.h"
#include "compute/cpu/precision.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* to[i] = x[i], nearest, ties to even. x: n floats, n a multiple of DP_ARENA_ALIGN; to: n of type.
 * DP_BADARG for a type that is none, DP_IO. */
DP_MUST dp_status dp_cuda_cast(void *to, dp_precision type, const float *x, size_t n,
                               cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
