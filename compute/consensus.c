#include "compute/consensus.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mutation.h"
#include "compute/codec.h"

typedef struct workspace {
    dp_codec_cursor cursors[DP_CONSENSUS_ITEMS_MAX];
    dp_codec_run run;
    float acc[DP_CODEC_RUN];
} workspace;

static void add_run(float *acc, const dp_codec_run *run, float f)
{
    if (run->dense) {
        for (size_t i = 0; i < run->length; i++) {
#if DP_MUTATION == 39
            acc[i] = fmaf(f, run->value[i], acc[i]); /* One rounding where the others have two. */
#else
            acc[i] += f * run->value[i];
#endif
        }
        return;
    }
    for (size_t i = 0; i < run->count; i++) {
        acc[run->index[i]] += f * run->value[i];
    }
}

/* One run of all blobs; *finite is cleared when a result is not. */
static dp_status apply_run(workspace *work, float *theta, const uint32_t *q, size_t n_items,
                           float step, bool *finite)
{
    const size_t left = work->cursors[0].left;
    const size_t length = left < DP_CODEC_RUN ? left : DP_CODEC_RUN;
    memset(work->acc, 0, length * sizeof *work->acc);
    for (size_t i = 0; i < n_items; i++) {
        DP_TRY(dp_codec_next(&work->cursors[i], &work->run));
        add_run(work->acc, &work->run, (float)q[i] * 0x1p-31F);
    }
    bool good = true;
    for (size_t i = 0; i < length; i++) {
        theta[i] -= step * work->acc[i];
        good = good && isfinite(theta[i]);
    }
    *finite = *finite && good;
    return DP_OK;
}

static dp_status apply(workspace *work, float *theta, const uint32_t *q, size_t n_items,
                       uint32_t alpha)
{
    const float step = (float)alpha * 0x1p-16F;
    bool finite = true;
    while (work->cursors[0].left > 0) {
        const size_t before = work->cursors[0].left;
        DP_TRY(apply_run(work, theta, q, n_items, step, &finite));
        theta += before - work->cursors[0].left;
    }
    return finite ? DP_OK : DP_DIVERGED;
}

dp_status dp_consensus_apply(float *theta, size_t n, const dp_view *blobs, const uint32_t *q,
                             size_t n_items, uint32_t alpha)
{
    if (n_items > DP_CONSENSUS_ITEMS_MAX) {
        return DP_BADARG;
    }
    for (size_t i = 0; i < n_items; i++) {
        DP_TRY(dp_codec_check(blobs[i], n));
    }
    if (n_items == 0) {
        return DP_OK;
    }
    workspace *const work = dp_alloc(1, sizeof *work);
    if (work == NULL) {
        return DP_NOMEM;
    }
    dp_status status = DP_OK;
    for (size_t i = 0; i < n_items && status == DP_OK; i++) {
        status = dp_codec_open(&work->cursors[i], blobs[i], n);
    }
    if (status == DP_OK) {
        status = apply(work, theta, q, n_items, alpha);
    }
    dp_free(work);
    return status;
}
