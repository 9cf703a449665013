/* Rounds on the CPU: encodes, settles and applies updates and averages them in pairs. The entries
 * belong to the table of backend_cpu.c. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutation.h"
#include "compute/backend/backend_cpu_inside.h"
#include "compute/codec/feedback.h"

dp_status dp_backend_cpu_encode(dp_engine *e, dp_vector from, const dp_codec *codec, dp_view *blob)
{
    dp_assert(from == DP_VECTOR_A || from == DP_VECTOR_F);
    dp_buf *const buf = &e->blobs[from == DP_VECTOR_F];
    dp_buf_clear(buf);
    DP_TRY(dp_codec_encode(codec, dp_backend_cpu_read(e, from), e->n, buf));
    *blob = dp_buf_view(buf);
    return DP_OK;
}

/* Encodes at once: the threads that could encode beside the steps belong to the steps. */
dp_status dp_backend_cpu_encode_start(dp_engine *e, dp_vector from, const dp_codec *codec)
{
    dp_view blob;
    dp_assert(e->encoding == DP_VECTOR_NONE);
    DP_TRY(dp_backend_cpu_encode(e, from, codec, &blob));
    e->encoding = from;
    return DP_OK;
}

dp_status dp_backend_cpu_encode_ready(dp_engine *e, bool *ready)
{
    dp_assert(e->encoding != DP_VECTOR_NONE);
    *ready = true;
    return DP_OK;
}

dp_status dp_backend_cpu_encode_take(dp_engine *e, dp_view *blob, const float **out)
{
    dp_assert(e->encoding != DP_VECTOR_NONE);
    *blob = dp_buf_view(&e->blobs[e->encoding == DP_VECTOR_F]);
    *out = dp_backend_cpu_read(e, e->encoding);
    e->encoding = DP_VECTOR_NONE;
    return DP_OK;
}

/* One codec run at a time, so that no decoded vector is held. */
dp_status dp_backend_cpu_settle(dp_engine *e, dp_view blob, uint32_t clip, float beta)
{
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open(&cursor, blob, e->n));
    size_t at = 0;
    dp_codec_run run;
    while (cursor.left > 0) {
        DP_TRY(dp_codec_next(&cursor, &run));
        float d[DP_CODEC_RUN];
        dp_codec_expand(&run, d);
        dp_feedback_included(dp_backend_cpu_write(e, DP_VECTOR_E) + at,
                             dp_backend_cpu_read(e, DP_VECTOR_A) + at, d, clip, beta, run.length);
        at += run.length;
    }
    return DP_OK;
}

dp_status dp_backend_cpu_apply(dp_engine *e, const dp_consensus_items *items, const dp_outer *outer,
                               dp_outer_seen *seen)
{
    return dp_consensus_apply(dp_backend_cpu_write(e, DP_VECTOR_THETA), e->owned[DP_VECTOR_M], e->n,
                              items, outer, seen);
}

/* One run of the exchange; returns the sum of the changes of F. */
static double mix_run(dp_engine *e, size_t at, const dp_codec_run runs[2], double share)
{
    float *const frozen = dp_backend_cpu_write(e, DP_VECTOR_F) + at;
    float *const x = dp_backend_cpu_write(e, DP_VECTOR_X) + at;
    float own[DP_CODEC_RUN];
    float other[DP_CODEC_RUN];
    dp_codec_expand(&runs[0], own);
    dp_codec_expand(&runs[1], other);
    double moved = 0;
    for (size_t i = 0; i < runs[0].length; i++) {
        /* D' - D_own without forming D'. */
        const float change = (float)(share * ((double)other[i] - (double)own[i]));
        frozen[i] = (dp_broken(32) ? own[i] : frozen[i]) + change;
        x[i] -= change;
        moved += (double)change;
    }
    return moved;
}

dp_status dp_backend_cpu_mix(dp_engine *e, const dp_view blobs[2], double share, double *sum)
{
    dp_codec_cursor cursors[2];
    dp_codec_run *const runs = dp_alloc(2, sizeof *runs);
    if (runs == NULL) {
        return DP_NOMEM;
    }
    dp_status status = DP_OK;
    for (size_t i = 0; i < 2 && status == DP_OK; i++) {
        status = dp_codec_open(&cursors[i], blobs[i], e->n);
    }
    double total = 0;
    size_t at = 0;
    while (status == DP_OK && cursors[0].left > 0) {
        status = dp_codec_next(&cursors[0], &runs[0]);
        if (status == DP_OK) {
            status = dp_codec_next(&cursors[1], &runs[1]);
        }
        if (status == DP_OK) {
            total += mix_run(e, at, runs, share);
            at += runs[0].length;
        }
    }
    dp_free(runs);
    *sum = total;
    return status;
}
