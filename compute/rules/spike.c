#include "compute/rules/spike.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static const double normal_of_mad = 1.4826;
static const double least_of_median = 0.01;

static int compare(const void *a, const void *b)
{
    float x;
    float y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Sorts values. */
static double median_of(float *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    const double upper = (double)values[count / 2];
    return count % 2 == 1 ? upper : 0.5 * (upper + (double)values[count / 2 - 1]);
}

static double bound_of(const dp_spike *spike, double z)
{
    float values[DP_SPIKE_WINDOW];
    memcpy(values, spike->recent, spike->count * sizeof *values);
    const double median = median_of(values, spike->count);
    for (size_t i = 0; i < spike->count; i++) {
        values[i] = (float)fabs((double)values[i] - median);
    }
    const double spread = normal_of_mad * median_of(values, spike->count);
    return median + z * fmax(spread, least_of_median * fabs(median));
}

void dp_spike_moved(dp_spike *spike)
{
    spike->row = DP_SPIKE_ROW_MAX;
}

bool dp_spike_is_good(dp_spike *spike, double value, double z)
{
    dp_assert(isfinite(value) && spike->count <= DP_SPIKE_WINDOW && spike->next < DP_SPIKE_WINDOW);
    if (z > 0 && spike->count >= DP_SPIKE_MIN && value > bound_of(spike, z)) {
        if (spike->row < DP_SPIKE_ROW_MAX) {
            spike->row++;
            return false;
        }
        *spike = (dp_spike){0}; /* The level has changed for good. */
    }
    spike->recent[spike->next] = (float)value;
    spike->next = (spike->next + 1) % DP_SPIKE_WINDOW;
    spike->count += spike->count < DP_SPIKE_WINDOW;
    spike->row = 0;
    return true;
}
