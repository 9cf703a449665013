#include "compute/codec/alignment.h"

#include <math.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/codec/codec.h"
#include "compute/cpu/half.h"

enum { LANES = 8 };

dp_status dp_alignment_set(dp_alignment *alignment, const float *a, size_t n)
{
    dp_assert(alignment->reference == NULL || alignment->n == n);
    alignment->has = false;
    if (alignment->reference == NULL) {
        alignment->reference = dp_alloc(n, sizeof *alignment->reference);
        if (alignment->reference == NULL) {
            return DP_NOMEM;
        }
        alignment->n = n;
    }
    double square = 0;
    for (size_t i = 0; i < n; i++) {
        alignment->reference[i] = dp_bfloat_of(a[i]);
        const double value = (double)dp_bfloat_value(alignment->reference[i]);
        square += value * value;
    }
    if (!isfinite(square)) { /* Squares of finite floats stay below 2^256 n. */
        return DP_DIVERGED;
    }
    alignment->square = square;
    alignment->has = true;
    return DP_OK;
}

void dp_alignment_forget(dp_alignment *alignment)
{
    alignment->has = false;
}

void dp_alignment_close(dp_alignment *alignment)
{
    dp_free(alignment->reference);
    *alignment = (dp_alignment){0};
}

/* Adds <d, reference> to sums[0] and |d|^2 to sums[1]. */
static void add_run(const dp_codec_run *run, const uint16_t *reference, double sums[2])
{
    double along[LANES] = {0};
    double square[LANES] = {0};
    for (size_t i = 0; i < run->count; i++) {
        const double value = (double)run->value[i];
        const size_t at = run->dense ? i : run->index[i];
        along[i % LANES] += value * (double)dp_bfloat_value(reference[at]);
        square[i % LANES] += value * value;
    }
    for (size_t lane = 0; lane < LANES; lane++) {
        sums[0] += along[lane];
        sums[1] += square[lane];
    }
}

dp_status dp_alignment_cosine(const dp_alignment *alignment, dp_view blob, double *cosine)
{
    dp_assert(alignment->has);
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open(&cursor, blob, alignment->n));
    const uint16_t *reference = alignment->reference;
    double sums[2] = {0};
    dp_codec_run run;
    while (cursor.left > 0) {
        DP_TRY(dp_codec_next(&cursor, &run));
        add_run(&run, reference, sums);
        reference += run.length;
    }
    /* Of two roots: a product of both squares could be 0 where none of them is. */
    const double norms = sqrt(sums[1]) * sqrt(alignment->square);
    const double found = norms > 0 ? sums[0] / norms : 0;
    *cosine = found > 1 ? 1 : found < -1 ? -1 : found;
    return DP_OK;
}
