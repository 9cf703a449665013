/* Matrix products on a card. In the plugin cuBLASLt makes them (gemm_cudart.c), in the emulated
 * build the plain kernel alone; both fill the calls below. Knows no model.
 *
 * cuBLASLt is opened with dlopen and not linked: libdpnode_cuda.so then loads wherever a driver is,
 * of either CUDA release that is about, and where the library is missing a sentence says which
 * package has it. The best algorithm of a shape is found by trying those that the library proposes,
 * once, and written down (gemm_cache.h), so that a run that starts again takes the same one and
 * gets the same bits. Algorithms with sums that depend on the order of arrival are not asked
 * for. */
#ifndef DP_COMPUTE_CUDA_GEMM_H
#define DP_COMPUTE_CUDA_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "compute/cuda/device.h"
#include "compute/cuda/gemm_plain.h"

typedef struct dp_cuda_gemm dp_cuda_gemm;

/* cache: folder of the file with found algorithms; NULL: they are found anew. DP_UNSUPPORTED: no
 * cuBLASLt; DP_NOMEM, DP_IO; each with a sentence. device is borrowed until close. */
DP_MUST dp_status dp_cuda_gemm_open(dp_cuda_gemm **out, dp_cuda_device *device, const char *cache,
                                    dp_why *why);
void dp_cuda_gemm_close(dp_cuda_gemm *gemm); /* Accepts NULL. Writes the cache. */
/* Puts the product on the stream. The first time for a shape it may wait and try. While a graph is
 * captured it cannot: DP_BUSY for a shape that was not there before, or has been forgotten for
 * others since. DP_IO: device->problem. */
DP_MUST dp_status dp_cuda_gemm_run(dp_cuda_gemm *gemm, const dp_cuda_product *product,
                                   cudaStream_t stream);
/* Bytes of the card that it takes. */
size_t dp_cuda_gemm_bytes(void);
/* Bytes to leave free for it: those, and what the driver takes to load its kernels. */
size_t dp_cuda_gemm_room(void);

#endif
