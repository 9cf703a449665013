/* Microseconds of the clock that never jumps, and what a trainer's time goes to. */
#ifndef DP_COMPUTE_MACHINE_STOPWATCH_H
#define DP_COMPUTE_MACHINE_STOPWATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t dp_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000U + (uint64_t)now.tv_nsec / 1000U;
}

typedef enum dp_lap {
    DP_LAP_REST,    /* looking for commands, and what stands below no other name */
    DP_LAP_WORK,    /* micro-batches, and waiting for their samples */
    DP_LAP_PUBLISH, /* what leaves: the snapshot, its encoding, what is measured of it */
    DP_LAP_APPLY,   /* a record: theta, and what is settled */
    DP_LAP_STATE,   /* the bytes of the state and their root */
    DP_LAP_TELL,    /* files and messages to the daemon */
    DP_LAPS
} dp_lap;

/* Splits the time in which it runs among laps, of which one goes on at any time. A zeroed one
 * stands still at 0. */
typedef struct dp_laps {
    bool runs;
    dp_lap lap;
    uint64_t since_us;
    uint64_t total_us[DP_LAPS]; /* up to since_us */
} dp_laps;

/* Another lap from now on. Returns the one that ends, for who comes back to it. */
static inline dp_lap dp_laps_enter(dp_laps *laps, dp_lap lap)
{
    const uint64_t now = dp_now_us();
    const dp_lap before = laps->lap;
    laps->total_us[before] += laps->runs ? now - laps->since_us : 0;
    laps->since_us = now;
    laps->lap = lap;
    return before;
}

/* Runs from now on, or stands. */
static inline void dp_laps_set(dp_laps *laps, bool runs)
{
    dp_laps_enter(laps, laps->lap);
    laps->runs = runs;
}

/* Of all laps, up to the last call of the two above. */
static inline uint64_t dp_laps_total(const dp_laps *laps)
{
    uint64_t total = 0;
    for (int i = 0; i < DP_LAPS; i++) {
        total += laps->total_us[i];
    }
    return total;
}

#endif
