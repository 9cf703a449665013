/* The combinations by which two of the rules replace the weighted sum. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bench/clock.h"
#include "bench/defence_judge.h"

/* Mean of the clipped values without the lowest and the highest quarter. */
static float trimmed(const float *const *d, const double *f, uint32_t n, size_t i)
{
    double values[QUALITY_WORKERS];
    const uint32_t trim = n / 4;
    for (uint32_t k = 0; k < n; k++) {
        values[k] = f[k] * n * (double)d[k][i];
    }
    qsort(values, n, sizeof *values, bench_order);
    double sum = 0;
    for (uint32_t k = trim; k < n - trim; k++) {
        sum += values[k];
    }
    return (float)(sum / (n - 2 * trim));
}

/* The weighted sum if at least three quarters of the updates that store the element agree in its
 * sign, so that the two sides differ by half of their number; else 0. */
static float agreed(const float *const *d, const double *f, uint32_t n, size_t i)
{
    double sum = 0;
    int signs = 0;
    int stored = 0;
    for (uint32_t k = 0; k < n; k++) {
        sum += f[k] * (double)d[k][i];
        stored += d[k][i] != 0;
        signs += (d[k][i] > 0) - (d[k][i] < 0);
    }
    return 2 * abs(signs) >= stored ? (float)sum : 0;
}

dp_status defence_combine(defence_rule rule, size_t n, const dp_view *blobs, const uint32_t *q,
                          uint32_t n_blobs, float *g)
{
    const float *d[QUALITY_WORKERS];
    double f[QUALITY_WORKERS];
    float *const all = dp_alloc(n * n_blobs, sizeof *all);
    if (all == NULL) {
        return DP_NOMEM;
    }
    dp_status status = DP_OK;
    for (uint32_t k = 0; k < n_blobs && status == DP_OK; k++) {
        dp_codec codec;
        uint64_t elements;
        d[k] = all + n * k;
        status = dp_codec_decode(blobs[k], all + n * k, n);
        if (status == DP_OK) {
            status = dp_codec_peek(blobs[k], &codec, &elements);
        }
        if (status == DP_OK) {
            f[k] = (double)q[k] * 0x1p-31 * dp_codec_gain(codec.kind, codec.keep) / 65536.0;
        }
    }
    for (size_t i = 0; i < n && status == DP_OK; i++) {
        g[i] = rule == DEFENCE_TRIM ? trimmed(d, f, n_blobs, i) : agreed(d, f, n_blobs, i);
    }
    dp_free(all);
    return status;
}
