/* Gradient buckets: pieces of the arena that are handed out one by one, from its end to its start,
 * as soon as backward has made them final (Li et al. 2020, PyTorch DDP, section 3.2.3), so that
 * sending overlaps with the rest of backward. The caller chooses the pieces: in a round of parts
 * they are its parts. Computes nothing and has no threads. */
#ifndef DP_COMPUTE_CODEC_BUCKET_H
#define DP_COMPUTE_CODEC_BUCKET_H

#include <stddef.h>

/* Elements first .. last - 1, piece index, are final. Called once per piece, from the last to the
 * first, on the thread of dp_gpt_step, which waits: hand the work to another thread. */
typedef void (*dp_bucket_take)(void *context, size_t index, size_t first, size_t last);

typedef struct dp_buckets {
    /* Piece i is starts[i] .. starts[i + 1] - 1; borrowed. starts[0] is 0, starts never falls, and
     * its last entry is the end of the arena. */
    const size_t *starts;
    size_t left; /* pieces not yet handed out: at first all */
    dp_bucket_take take;
    void *context;
} dp_buckets;

/* A dp_gpt_final (buckets is a dp_buckets): gradients of elements first .. elements - 1 are final.
 * first falls from call to call. */
void dp_buckets_final(void *buckets, size_t first);

#endif
