/* Embeddings on a GPU: rows of the table and of the positions, and their gradients in an order that
 * the batch alone fixes.
 *
 * Gradients: tokens are sorted, equal ones in the order of the batch (radix sort, least digit
 * first), the sorted rows are cut into tiles of DP_CUDA_EMBED_TILE, and each tile sums its runs of
 * one token. A run inside a tile goes to the table at once; of runs over several tiles the pieces
 * are added in order afterwards. So each row of the table has one writer, and no float is added
 * atomically. Errors: DP_BADARG for a type that is none or a length of 0, DP_TOOBIG beyond
 * DP_CUDA_EMBED_TOKENS_MAX, DP_IO when a launch fails. */
#ifndef DP_COMPUTE_CUDA_EMBED_H
#define DP_COMPUTE_CUDA_EMBED_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "compute/cpu/precision.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DP_CUDA_EMBED_TILE = 32,
    DP_CUDA_SORT_TILE = 1024, /* tokens that a block of the sort has */
    DP_CUDA_SORT_DIGITS = 64  /* 6 bits at a time */
};
#define DP_CUDA_EMBED_TOKENS_MAX ((size_t)1 << 28)

typedef struct dp_cuda_embed {
    /* [rows * length]; one that is not below vocab: its row is NaN, its gradient is dropped */
    const uint32_t *tokens;
    size_t rows;
    size_t length;
    size_t vocab;
    size_t width;
    dp_precision stream; /* of x and dx */
} dp_cuda_embed;

/* x = table[token] (+ positions[place in its row]). table: [vocab][width], positions: [at least
 * length][width] or NULL, both fp32; x: [rows][length][width]. */
DP_MUST dp_status dp_cuda_embed_forward(const dp_cuda_embed *embed, const float *table,
                                        const float *positions, void *x, cudaStream_t stream);

/* Bytes of scratch that backward takes. */
size_t dp_cuda_embed_scratch(size_t tokens, size_t width);

/* d_table[token] += dx, d_positions[place] += dx over the batch; d_positions NULL where there are
 * none. */
DP_MUST dp_status dp_cuda_embed_backward(const dp_cuda_embed *embed, const void *dx, float *d_table,
                                         float *d_positions, void *scratch, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
