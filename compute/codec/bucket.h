/* Gradient buckets: the arena in pieces that are handed out one by one, from its end to its start,
 * as soon as backward has made them final (Li et al. 2020, PyTorch DDP, section 3.2.3), so that
 * sending them can overlap with the rest of backward. The pieces are the caller's: in a round of
 * parts they are its parts. Computes nothing and has no threads. */
#ifndef DP_COMPUTE_CODEC_BUCKET_H
#define DP_COMPUTE_CODEC_BUCKET_H

#include <stddef.h>

/* Elements first .. last - 1, piece index, are final. Called from the last piece to the first, each
 * once, on the thread of dp_gpt_step, which waits: give the work to another thread. */
typedef void (*dp_bucket_take)(void *context, size_t index, size_t first, size_t last);

typedef struct dp_buckets {
    /* piece i is starts[i] .. starts[i + 1] - 1; borrowed. The first is 0, they do not fall, and
     * one more than there are pieces is the end of the arena */
    const size_t *starts;
    size_t left; /* pieces that are still to come: at first all of them */
    dp_bucket_take take;
    void *context;
} dp_buckets;

/* Gradients of elements first .. elements - 1 have all their terms; first falls from call to call.
 * A dp_gpt_final: buckets is a dp_buckets. */
void dp_buckets_final(void *buckets, size_t first);

#endif
