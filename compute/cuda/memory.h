/* One block of a card's memory, handed out in pieces that live as long as the block. Counting and
 * allocating run the same code: without a block an arena only counts. */
#ifndef DP_COMPUTE_CUDA_MEMORY_H
#define DP_COMPUTE_CUDA_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum { DP_CUDA_ALIGN = 256 /* bytes: of every piece */ };

typedef struct dp_cuda_arena {
    uint8_t *base; /* device memory at DP_CUDA_ALIGN, borrowed; NULL: count */
    size_t used;   /* bytes */
} dp_cuda_arena;

/* The next piece; NULL while counting. */
static inline void *dp_cuda_carve(dp_cuda_arena *arena, size_t bytes)
{
    uint8_t *const piece = arena->base == NULL ? NULL : arena->base + arena->used;
    arena->used += (bytes + DP_CUDA_ALIGN - 1) / DP_CUDA_ALIGN * DP_CUDA_ALIGN;
    return piece;
}

#endif
