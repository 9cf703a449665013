#include "compute/codec/feedback.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/mutation.h"

enum { ONE = 65536 };

dp_status dp_feedback_publish(float *a, const float *e, const float *from, const float *to,
                              size_t n)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        const float sum = e[i] + (from[i] - to[i]);
        finite = finite && isfinite(sum);
        a[i] = sum;
    }
    return finite ? DP_OK : DP_DIVERGED;
}

dp_status dp_feedback_difference(float *a, const float *from, const float *to, size_t n)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        a[i] = from[i] - to[i];
        finite = finite && isfinite(a[i]);
    }
    return finite ? DP_OK : DP_DIVERGED;
}

void dp_feedback_included(float *e, const float *a, const float *d, uint32_t clip, float beta,
                          size_t n)
{
    /* M23: the part that was clipped away goes too. */
    const float c = dp_broken(23) && clip > 0 ? 1 : (float)clip * 0x1p-16F;
    for (size_t i = 0; i < n; i++) {
        e[i] = beta * (a[i] - c * d[i]);
    }
}

void dp_feedback_scale(float *x, uint32_t lambda, size_t n)
{
    if (lambda == ONE) {
        return;
    }
    if (lambda == 0) {
        memset(x, 0, n * sizeof *x);
        return;
    }
    const float factor = (float)lambda * 0x1p-16F;
    for (size_t i = 0; i < n; i++) {
        x[i] *= factor;
    }
}
