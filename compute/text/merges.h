/* Byte-pair merges: pairs of tokens and their results, by rank, and their application to a piece.
 * Knows ids only, no bytes. */
#ifndef DP_COMPUTE_TEXT_MERGES_H
#define DP_COMPUTE_TEXT_MERGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
    DP_MERGES_MAX = 1 << 20, /* Llama-3 has 280,147: every split of each token */
    DP_MERGES_PROBES_MAX = 1024
};
#define DP_NO_MERGE UINT32_MAX

typedef struct dp_merge {
    uint32_t left;
    uint32_t right;
    uint32_t result;
} dp_merge;

/* A zeroed one is empty and open. */
typedef struct dp_merges {
    dp_merge *items; /* by rank */
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /* open addressing: rank + 1, or 0 */
    uint32_t n_slots;
} dp_merges;

void dp_merges_close(dp_merges *merges);
/* Adds a merge of the next rank. DP_EXISTS (the pair), DP_TOOBIG (DP_MERGES_MAX; or pairs chosen so
 * that a search takes more than DP_MERGES_PROBES_MAX probes), DP_NOMEM. */
DP_MUST dp_status dp_merges_add(dp_merges *merges, dp_merge merge);
/* Rank of the merge of left and right, or DP_NO_MERGE. */
uint32_t dp_merges_find(const dp_merges *merges, uint32_t left, uint32_t right);

/* Working memory of dp_merges_apply, which grows with the longest piece. A zeroed one is empty and
 * open. */
typedef struct dp_merge_room {
    void *memory;
    size_t size;
} dp_merge_room;

void dp_merge_room_close(dp_merge_room *room);

/* Applies merges repeatedly: of all pairs of neighbours that merge, the lowest rank first, the
 * leftmost first (Sennrich et al. 2016, algorithm 1, with ties as in Hugging Face's tokenizers).
 * Rewrites ids and lowers *count. Time n log n, or n^2 for pieces of at most DP_MERGES_SHORT ids,
 * where that is faster. DP_NOMEM: ids is unchanged. */
enum { DP_MERGES_SHORT = 96 };
DP_MUST dp_status dp_merges_apply(const dp_merges *merges, dp_merge_room *room, uint32_t *ids,
                                  size_t *count);

#endif
