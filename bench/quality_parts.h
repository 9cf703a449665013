/* A round of parts (compute/outer/part.h) in bench_quality: each publication is cut, each part
 * added up and encoded again, and all workers apply the results. The owner of a part does not
 * matter to the numbers. */
#ifndef DP_BENCH_QUALITY_PARTS_H
#define DP_BENCH_QUALITY_PARTS_H

#include "bench/quality_run.h"
#include "compute/codec/codec.h"
#include "compute/outer/part.h"

typedef struct quality_parts {
    /* Every second worker is at another site than the owner of a part; the pieces of that site are
     * added up and encoded before they are sent to the owner (gossip/record/part_sum.h). */
    bool sums;
    dp_part_cuts cuts; /* as many parts as workers, of equal size */
    dp_buf results[QUALITY_WORKERS];
    dp_view views[QUALITY_WORKERS];
    dp_part_range ranges[QUALITY_WORKERS];
    uint32_t q[QUALITY_WORKERS]; /* 1: the sums contain the shares */
} quality_parts;

/* From blobs of n elements with their shares (Q31), by this codec; parts->sums is an input. The
 * caller must call quality_parts_close in every case. */
DP_MUST dp_status quality_parts_make(quality_parts *parts, const dp_codec *codec, size_t n,
                                     const dp_view *blobs, const uint32_t *q, uint32_t n_blobs);
void quality_parts_close(quality_parts *parts);

#endif
