/* One matrix product, and a slow kernel for any product: for those that cuBLASLt refuses, and for
 * all in the emulated build. */
#ifndef DP_COMPUTE_CUDA_GEMM_PLAIN_H
#define DP_COMPUTE_CUDA_GEMM_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "compute/cpu/precision.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* c = a b (+ add) (+ bias in each row), summed in fp32, rounded once to the type of c. Everything
 * at 16 bytes in size and address goes fastest; nothing need be. c overlaps neither a nor b. */
typedef struct dp_cuda_product {
    size_t m;
    size_t n;
    size_t k;
    const void *a; /* [m][k], or [k][m] if a_transposed; of type in */
    size_t lda;    /* elements from row to row */
    const void *b; /* [k][n], or [n][k] if b_transposed; of type in */
    size_t ldb;
    void *c; /* [m][n], of type out */
    size_t ldc;
    const void *add;  /* as c, at ldc; may be c; NULL: nothing */
    const void *bias; /* [n] of type out; NULL: none */
    dp_precision in;
    dp_precision out; /* in, or fp32 */
    bool a_transposed;
    bool b_transposed;
    bool
        tf32; /* of fp32: a card may round factors to 10 bits, if its tensor cores then take them */
} dp_cuda_product;

/* One thread for each element, terms in order. DP_BADARG: types; DP_IO. */
DP_MUST dp_status dp_cuda_gemm_plain(const dp_cuda_product *product, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
