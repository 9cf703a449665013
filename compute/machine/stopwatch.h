/* Microseconds of the monotonic clock, and the time of a trainer by activity. */
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
    DP_LAP_REST,    /* waiting for commands, and all else */
    DP_LAP_WORK,    /* micro-batches, and waits for their samples */
    DP_LAP_PUBLISH, /* publications: snapshot, encoding, measurements */
    DP_LAP_APPLY,   /* records: theta and settling */
    DP_LAP_STATE,   /* bytes of states and their roots */
    DP_LAP_TELL,    /* files and messages to the daemon */
    DP_LAPS
} dp_lap;

/* Divides running time among laps, of which one is current. A zeroed one is stopped at 0. */
typedef struct dp_laps {
    bool runs;
    dp_lap lap;
    uint64_t since_us;
    uint64_t total_us[DP_LAPS]; /* up to since_us */
} dp_laps;

/* Makes lap the current one. Returns the one before, so that the caller can return to it. */
static inline dp_lap dp_laps_enter(dp_laps *laps, dp_lap lap)
{
    const uint64_t now = dp_now_us();
    const dp_lap before = laps->lap;
    laps->total_us[before] += laps->runs ? now - laps->since_us : 0;
    laps->since_us = now;
    laps->lap = lap;
    return before;
}

/* Starts or stops the time. */
static inline void dp_laps_set(dp_laps *laps, bool runs)
{
    dp_laps_enter(laps, laps->lap);
    laps->runs = runs;
}

/* Sum over all laps, up to the last call of the two above. */
static inline uint64_t dp_laps_total(const dp_laps *laps)
{
    uint64_t total = 0;
    for (int i = 0; i < DP_LAPS; i++) {
        total += laps->total_us[i];
    }
    return total;
}

#endif
