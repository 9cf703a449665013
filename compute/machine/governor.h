/* What part of its time a trainer may compute, so that the machine stays below the heat and power
 * that its owner allows: a regulator over readings, one every two seconds or so. Integers in,
 * integers out; reads no sensor and no clock.
 *
 * Heat: above the limit the share falls by a sixteenth of itself per degree and reading; from 8
 * degrees above it is 0, until 3 below the limit. Power: the mean of the last readings, an eighth
 * of it the newest; above the limit the share falls in proportion, by an eighth at most. It rises
 * by a fortieth of the whole per reading where heat is 3 degrees and power a twentieth below; in
 * between it stays. So a round asks for fewer micro-batches of a node that is hot, since local
 * steps follow from its speed. */
#ifndef DP_COMPUTE_MACHINE_GOVERNOR_H
#define DP_COMPUTE_MACHINE_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DP_GOVERNOR_WHOLE = 1000,
    DP_GOVERNOR_MIN = 50,         /* but for 0, so that work goes on */
    DP_GOVERNOR_CELSIUS_STOP = 8, /* above the limit */
    DP_GOVERNOR_CELSIUS_EASE = 3, /* below it */
    /* A rest, but for one until it is cooler: where a micro-batch takes many seconds 19 times that
     * would be rounds without a word. Then power and heat are held by the readings alone, which
     * stop it 8 degrees above the limit. */
    DP_GOVERNOR_REST_US_MAX = 30 * 1000 * 1000
};

typedef struct dp_governor {
    uint32_t celsius_max; /* 0: any heat will do */
    uint32_t watts_max;   /* 0: any power */
    uint32_t share;       /* of DP_GOVERNOR_WHOLE; 0: it must cool first */
    uint64_t watts_256;   /* the mean, in 256ths; 0: nothing was read yet */
} dp_governor;

dp_governor dp_governor_of(uint32_t celsius_max, uint32_t watts_max);
bool dp_governor_is_set(const dp_governor *governor);
/* What sensors tell now; celsius INT32_MIN, watts 0: they do not, and nothing is done about it. */
void dp_governor_told(dp_governor *governor, int32_t celsius, uint32_t watts);
/* How long to rest after so long a stretch of work, DP_GOVERNOR_REST_US_MAX at most; with a share
 * of 0 as long as nothing new is read: UINT64_MAX. */
uint64_t dp_governor_rest_us(const dp_governor *governor, uint64_t worked_us);
/* When a rest since from_us ends that was to end at end_us (UINT64_MAX: when it is cooler), now
 * that a reading asks for one of rest_us: sooner if it has cooled, and never later. */
uint64_t dp_governor_rest_end(uint64_t end_us, uint64_t from_us, uint64_t rest_us, uint64_t now_us);

#endif
