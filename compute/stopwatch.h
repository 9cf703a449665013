/* Microseconds of the clock that never jumps, and a sum of intervals of them. */
#ifndef DP_COMPUTE_STOPWATCH_H
#define DP_COMPUTE_STOPWATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t dp_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000U + (uint64_t)now.tv_nsec / 1000U;
}

/* A zeroed one stands still at 0. */
typedef struct dp_stopwatch {
    bool runs;
    uint64_t since_us;
    uint64_t total_us; /* up to since_us */
} dp_stopwatch;

/* Runs from now on, or stands. Returns the total. */
static inline uint64_t dp_stopwatch_set(dp_stopwatch *watch, bool runs)
{
    const uint64_t now = dp_now_us();
    watch->total_us += watch->runs ? now - watch->since_us : 0;
    watch->since_us = now;
    watch->runs = runs;
    return watch->total_us;
}

#endif
