/* How blobs come to the card, and the calls of a round by the host where they cannot. Private to
 * engine_rounds*.c. */
#ifndef DP_COMPUTE_CUDA_ENGINE_ROUNDS_H
#define DP_COMPUTE_CUDA_ENGINE_ROUNDS_H

#include "compute/cuda/codecs.h"
#include "compute/cuda/engine.h"
#include "compute/cuda/outer.h"

/* Blobs on the card, and room for sums of runs: taken for a call, since between rounds the memory
 * is better free. */
typedef struct dp_cuda_blobs {
    dp_engine *engine;
    void *memory; /* of the card */
    size_t memory_bytes;
    uint64_t *offsets; /* of the host: of the runs of one blob */
    double *sums;      /* [runs(n)][2], of the card */
    double *host_sums; /* the same, of the host */
    dp_cuda_items items;
} dp_cuda_blobs;

/* DP_NOMEM: no room there or here; DP_IO; DP_BADMSG, DP_VERSION: a blob that was not checked.
 * dp_cuda_blobs_close must follow in every case. q NULL: weights are of no interest. */
DP_MUST dp_status dp_cuda_blobs_open(dp_cuda_blobs *blobs, dp_engine *e,
                                     const dp_consensus_items *items);
void dp_cuda_blobs_close(dp_cuda_blobs *blobs);
/* host_sums = sums, done when it returns. */
DP_MUST dp_status dp_cuda_blobs_sums(dp_cuda_blobs *blobs);

/* The same calls as in the table, on the host. Slower; the same bits. */
DP_MUST dp_status dp_cuda_encode_by_host(dp_engine *e, dp_vector from, const dp_codec *codec,
                                         dp_buf *out);
DP_MUST dp_status dp_cuda_settle_by_host(dp_engine *e, dp_view blob, uint32_t clip, float beta);
DP_MUST dp_status dp_cuda_apply_by_host(dp_engine *e, const dp_consensus_items *items,
                                        const dp_outer *outer, dp_outer_seen *seen);
DP_MUST dp_status dp_cuda_mix_by_host(dp_engine *e, const dp_view blobs[2], double share,
                                      double *sum);

#endif
