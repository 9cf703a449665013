/* Gradient buckets: the arena in pieces of one size, handed out one by one, from its end to its start, as soon as backward has
 * made them final (Li et al. 2020, PyTorch DDP, section 3.2.3), so that sending them can overlap with the rest of backward.
 * Bucket 0 is the last piece, which may be shorter. Computes nothing and has no threads. */
#ifndef DP_COMPUTE_BUCKET_H
#define DP_COMPUTE_BUCKET_H

#include <stddef.h>

/* Elements first .. last - 1 are final. Called in order of index, each once, on the thread of dp_gpt_step, which waits:
 * give the work to another thread. */
typedef void (*dp_bucket_take)(void *context, size_t index, size_t first, size_t last);

typedef struct dp_buckets {
    size_t elements; /* of the arena */
    size_t size;     /* elements of a bucket */
    dp_bucket_take take;
    void *context;
    size_t next; /* index of the coming bucket */
} dp_buckets;

/* size > 0. Per optimizer step: start, and dp_gpt_on_final(gpt, dp_buckets_final, &buckets) before the last micro-batch. */
dp_buckets dp_buckets_start(size_t elements, size_t size, dp_bucket_take take, void *context);
size_t dp_buckets_count(size_t elements, size_t size);
/* A dp_gpt_final: buckets is a dp_buckets. */
void dp_buckets_final(void *buckets, size_t first);

#endif
