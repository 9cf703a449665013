/* Instants as a type of their own, so that the compiler refuses to add one to a duration. Reads no
 * clock. */
#ifndef DP_BASE_CLOCK_H
#define DP_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Monotonic microseconds since a start that only its owner knows. Zero means "not set". */
typedef struct dp_time {
    uint64_t us;
} dp_time;

#define DP_NEVER ((dp_time){.us = UINT64_MAX})
#define DP_MS 1000ULL
#define DP_SECOND 1000000ULL

static inline dp_time dp_time_after(dp_time start, uint64_t wait_us)
{
    return (dp_time){.us = start.us > UINT64_MAX - wait_us ? UINT64_MAX : start.us + wait_us};
}

/* Microseconds from from to to; 0 if to is earlier. */
static inline uint64_t dp_time_between(dp_time from, dp_time to)
{
    return to.us > from.us ? to.us - from.us : 0;
}

static inline bool dp_time_reached(dp_time now, dp_time instant)
{
    return now.us >= instant.us;
}

static inline dp_time dp_time_min(dp_time a, dp_time b)
{
    return a.us < b.us ? a : b;
}

#endif
