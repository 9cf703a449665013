/* Kernels over whole vectors of the arena: add, subtract, scale, snapshot and load of backend.h, to
 * the bit. Copies and zeros are the runtime's (api.h). n floats each, at 256 bytes, not
 * overlapping. bad: a number in device memory, set to 1 if some result is not finite, else
 * unchanged. */
#ifndef DP_COMPUTE_CUDA_VECTORS_H
#define DP_COMPUTE_CUDA_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* to = to + from; to = to - from. */
DP_MUST dp_status dp_cuda_add(float *to, const float *from, size_t n, cudaStream_t stream);
DP_MUST dp_status dp_cuda_subtract(float *to, const float *from, size_t n, cudaStream_t stream);
/* to = to * (lambda 2^-16); untouched for 65536, +0 for 0. */
DP_MUST dp_status dp_cuda_scale(float *to, uint32_t lambda, size_t n, cudaStream_t stream);
/* to = e + (from - x), or from - x where e is NULL. to may be e. */
DP_MUST dp_status dp_cuda_snapshot(float *to, const float *e, const float *from, const float *x,
                                   size_t n, uint32_t *bad, cudaStream_t stream);
/* Only looks. */
DP_MUST dp_status dp_cuda_finite(const float *x, size_t n, uint32_t *bad, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
