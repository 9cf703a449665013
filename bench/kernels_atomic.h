/* A version by atomics of the embedding's gradients, for comparison in bench_kernels; dpnode does
 * not call it. Built if nvcc is installed. */
#ifndef DP_BENCH_KERNELS_ATOMIC_H
#define DP_BENCH_KERNELS_ATOMIC_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* d_table[token] += dx, in the order of arrival. tokens: [n], all in the table; dx: [n][width] of
 * bf16, width a multiple of 8; d_table: rows of width floats. DP_IO when the launch fails. */
DP_MUST dp_status kernels_embed_atomic(const uint32_t *tokens, size_t n, size_t width,
                                       const void *dx, float *d_table, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
