/* Rounds on the host, with copies of the vectors: for codecs without a kernel, and for blobs
 * without room on the card. */
#include "compute/cuda/engine_rounds.h"

#include "compute/codec/feedback.h"

dp_status dp_cuda_encode_by_host(dp_engine *e, dp_vector from, const dp_codec *codec, dp_buf *out)
{
    DP_TRY(dp_cuda_mirror(e, &e->mirror));
    DP_TRY(dp_cuda_fetch(e, e->mirror, dp_cuda_vector(e, from)));
    return dp_codec_encode(codec, e->mirror, e->n, out);
}

/* Run by run, as the CPU does it, on copies of e and a. */
static dp_status settle_host(float *feedback, const float *a, size_t n, dp_view blob, uint32_t clip,
                             float beta)
{
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open(&cursor, blob, n));
    size_t at = 0;
    dp_codec_run run;
    while (cursor.left > 0) {
        float d[DP_CODEC_RUN];
        DP_TRY(dp_codec_next(&cursor, &run));
        dp_codec_expand(&run, d);
        dp_feedback_included(feedback + at, a + at, d, clip, beta, run.length);
        at += run.length;
    }
    return DP_OK;
}

dp_status dp_cuda_settle_by_host(dp_engine *e, dp_view blob, uint32_t clip, float beta)
{
    DP_TRY(dp_cuda_mirror(e, &e->mirror));
    DP_TRY(dp_cuda_mirror(e, &e->mirror_other));
    DP_TRY(dp_cuda_fetch(e, e->mirror, dp_cuda_vector(e, DP_VECTOR_E)));
    DP_TRY(dp_cuda_fetch(e, e->mirror_other, dp_cuda_vector(e, DP_VECTOR_A)));
    DP_TRY(settle_host(e->mirror, e->mirror_other, e->n, blob, clip, beta));
    return dp_cuda_put(e, dp_cuda_writing(e, DP_VECTOR_E), e->mirror);
}

dp_status dp_cuda_apply_by_host(dp_engine *e, const dp_consensus_items *items,
                                const dp_outer *outer, dp_outer_seen *seen)
{
    float *const theta = dp_cuda_vector(e, DP_VECTOR_THETA);
    float *const m = dp_cuda_vector(e, DP_VECTOR_M);
    DP_TRY(dp_cuda_mirror(e, &e->mirror));
    DP_TRY(dp_cuda_mirror(e, &e->mirror_other));
    DP_TRY(dp_cuda_fetch(e, e->mirror, theta));
    if (m != NULL) {
        DP_TRY(dp_cuda_fetch(e, e->mirror_other, m));
    }
    DP_TRY(dp_consensus_apply(e->mirror, m != NULL ? e->mirror_other : NULL, e->n, items, outer,
                              seen));
    DP_TRY(dp_cuda_put(e, dp_cuda_writing(e, DP_VECTOR_THETA), e->mirror));
    return m != NULL ? dp_cuda_put(e, dp_cuda_writing(e, DP_VECTOR_M), e->mirror_other) : DP_OK;
}

/* One run of the exchange on copies of F and x; returns the sum of the changes of F. */
static double mix_run(float *frozen, float *x, const dp_codec_run runs[2], double share)
{
    float own[DP_CODEC_RUN];
    float other[DP_CODEC_RUN];
    double moved = 0;
    dp_codec_expand(&runs[0], own);
    dp_codec_expand(&runs[1], other);
    for (size_t i = 0; i < runs[0].length; i++) {
        const float change = (float)(share * ((double)other[i] - (double)own[i]));
        frozen[i] += change;
        x[i] -= change;
        moved += (double)change;
    }
    return moved;
}

static dp_status mix_host(dp_engine *e, const dp_view blobs[2], double share, double *sum)
{
    dp_codec_cursor cursors[2];
    dp_codec_run runs[2];
    double total = 0;
    size_t at = 0;
    DP_TRY(dp_codec_open(&cursors[0], blobs[0], e->n));
    DP_TRY(dp_codec_open(&cursors[1], blobs[1], e->n));
    while (cursors[0].left > 0) {
        DP_TRY(dp_codec_next(&cursors[0], &runs[0]));
        DP_TRY(dp_codec_next(&cursors[1], &runs[1]));
        total += mix_run(e->mirror + at, e->mirror_other + at, runs, share);
        at += runs[0].length;
    }
    *sum = total;
    return DP_OK;
}

dp_status dp_cuda_mix_by_host(dp_engine *e, const dp_view blobs[2], double share, double *sum)
{
    DP_TRY(dp_cuda_mirror(e, &e->mirror));
    DP_TRY(dp_cuda_mirror(e, &e->mirror_other));
    DP_TRY(dp_cuda_fetch(e, e->mirror, dp_cuda_vector(e, DP_VECTOR_F)));
    DP_TRY(dp_cuda_fetch(e, e->mirror_other, dp_cuda_vector(e, DP_VECTOR_X)));
    DP_TRY(mix_host(e, blobs, share, sum));
    DP_TRY(dp_cuda_put(e, dp_cuda_writing(e, DP_VECTOR_F), e->mirror));
    return dp_cuda_put(e, dp_cuda_writing(e, DP_VECTOR_X), e->mirror_other);
}
