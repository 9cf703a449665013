/* The governor: the share of its time that a trainer may compute, so that the machine stays below
 * the limits of heat and power of its owner. A regulator over readings, one every two seconds or
 * so. Reads no sensor and no clock.
 *
 * Heat: above the limit the share falls by a sixteenth of itself per degree and reading; from 8
 * degrees above it is 0, until 3 below the limit. Power: a running mean, an eighth of it the newest
 * reading; above the limit the share falls in proportion, by an eighth at most. The share rises by
 * a fortieth of the whole per reading if heat is 3 degrees and power a twentieth below their
 * limits; in between it stays. A hot node thus computes fewer micro-batches in a round, because
 * local steps follow from its speed. */
#ifndef DP_COMPUTE_MACHINE_GOVERNOR_H
#define DP_COMPUTE_MACHINE_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DP_GOVERNOR_WHOLE = 1000,
    DP_GOVERNOR_MIN = 50,         /* lowest share above 0 */
    DP_GOVERNOR_CELSIUS_STOP = 8, /* above the limit */
    DP_GOVERNOR_CELSIUS_EASE = 3, /* below it */
    /* Longest rest, except one until it is cooler: after a micro-batch of many seconds a rest of 19
     * times that would be rounds without a message. Readings alone then limit heat and power, and
     * stop work 8 degrees above the limit. */
    DP_GOVERNOR_REST_US_MAX = 30 * 1000 * 1000
};

typedef struct dp_governor {
    uint32_t celsius_max; /* 0: no limit */
    uint32_t watts_max;   /* 0: no limit */
    uint32_t share;       /* of DP_GOVERNOR_WHOLE; 0: it must cool first */
    uint64_t watts_256;   /* the mean, in 256ths; 0: no reading yet */
} dp_governor;

dp_governor dp_governor_of(uint32_t celsius_max, uint32_t watts_max);
/* Other limits from now on; without any, the share is whole again. */
void dp_governor_limit(dp_governor *governor, uint32_t celsius_max, uint32_t watts_max);
bool dp_governor_is_set(const dp_governor *governor);
/* A reading of the sensors. celsius INT32_MIN, watts 0: unknown, and its limit has no effect. */
void dp_governor_told(dp_governor *governor, int32_t celsius, uint32_t watts);
/* The rest after so long a stretch of work, at most DP_GOVERNOR_REST_US_MAX; UINT64_MAX, until the
 * next reading, with a share of 0. */
uint64_t dp_governor_rest_us(const dp_governor *governor, uint64_t worked_us);
/* The new end of a rest since from_us that was to end at end_us (UINT64_MAX: when it is cooler),
 * after a reading that asks for rest_us: earlier if it has cooled, never later. */
uint64_t dp_governor_rest_end(uint64_t end_us, uint64_t from_us, uint64_t rest_us, uint64_t now_us);

#endif
