/* The algorithms that were found for products, as a table and as a file that has each one before it
 * computes: which is fastest is measured, so a search that is repeated may end with another, whose
 * sums have other bits. Does not know cuBLASLt.
 *
 * The file is text: a line "dpnode gemm 1 <what it is for>", then one line for each product,
 *   m n k lda ldb ldc flags | 8 words of the algorithm | bytes of workspace
 * all in hexadecimal, separated by single spaces. The text <what it is for> names card, library and
 * version; a file for another one is not used. Lines that do not parse end the reading; nothing in
 * the file is believed before the library has checked it. */
#ifndef DP_COMPUTE_CUDA_GEMM_CACHE_H
#define DP_COMPUTE_CUDA_GEMM_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "compute/cuda/gemm_plain.h"

enum {
    DP_GEMM_CACHE_MAX = 1024, /* products; beyond that the table begins anew */
    DP_GEMM_CACHE_BYTES_MAX = 1024 * 20 * 17 + 256, /* of the file */
    DP_GEMM_ALGORITHM_WORDS = 8,
    DP_GEMM_ALIGN = 16 /* bytes: the alignment of a kernel's widest loads */
};

/* The properties that determine the best algorithm. Compared as bytes: no padding. */
typedef struct dp_gemm_key {
    uint64_t m;
    uint64_t n;
    uint64_t k;
    uint64_t lda;
    uint64_t ldb;
    uint64_t ldc;
    uint64_t flags; /* types, transposed, bias, add, alignment */
} dp_gemm_key;

typedef struct dp_gemm_found {
    dp_gemm_key key;
    uint64_t algorithm[DP_GEMM_ALGORITHM_WORDS]; /* cublasLtMatmulAlgo_t */
    uint64_t workspace;
} dp_gemm_found;

typedef struct dp_gemm_cache {
    dp_gemm_found *found; /* owned, DP_GEMM_CACHE_MAX */
    size_t count;
    char folder[1024];
    char file[96];
    char purpose[128];
} dp_gemm_cache;

/* True if all of its matrices begin at DP_GEMM_ALIGN. */
bool dp_gemm_is_aligned(const dp_cuda_product *product);
dp_gemm_key dp_gemm_key_of(const dp_cuda_product *product);

/* Takes over the file's lines. Without a folder ("") nothing is read or written. DP_NOMEM. */
DP_MUST dp_status dp_gemm_cache_open(dp_gemm_cache *cache, const char *folder, const char *file,
                                     const char *purpose);
void dp_gemm_cache_close(dp_gemm_cache *cache);
/* NULL when it is not there; lent until the next put. */
const dp_gemm_found *dp_gemm_cache_get(const dp_gemm_cache *cache, const dp_gemm_key *key);
/* Replaces the line of this key. */
void dp_gemm_cache_put(dp_gemm_cache *cache, const dp_gemm_found *found);
/* Puts it and writes the file. Another process that uses this card may have found one for the same
 * key meanwhile: then *found becomes that one. spoilt: the file's algorithm for the key is of no
 * use. DP_IO, DP_NOSPACE, DP_NOMEM: the table has it, the file does not. */
DP_MUST dp_status dp_gemm_cache_keep(dp_gemm_cache *cache, dp_gemm_found *found, bool spoilt);
/* Takes over the lines of a file for the same purpose. Total; another purpose: nothing is taken. */
void dp_gemm_cache_read(dp_gemm_cache *cache, dp_view bytes, const char *purpose);
/* DP_NOMEM, DP_TOOBIG. */
DP_MUST dp_status dp_gemm_cache_write(const dp_gemm_cache *cache, const char *purpose, dp_buf *out);

#endif
