/* Clocks of the benches, and medians. */
#ifndef DP_BENCH_CLOCK_H
#define DP_BENCH_CLOCK_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Seconds of CLOCK_MONOTONIC, or of CLOCK_PROCESS_CPUTIME_ID: all threads of this process. */
static inline double bench_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline int bench_order(const void *a, const void *b)
{
    double x;
    double y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Sorts values; n > 0. */
static inline double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, bench_order);
    return values[n / 2];
}

#endif
