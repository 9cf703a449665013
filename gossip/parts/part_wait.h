/* How long a round of parts waits: from the time of a chunk and of a round trip, and from the bytes
 * of a part and the rate at which bytes come. Integers in, integers out; part_work.c and
 * part_list.c ask.
 *
 * base: the time of an answer. transfer: the time of the bytes of one part, of all contributions,
 * on the line as measured. Small parts have almost no transfer time, and all waits are multiples of
 * base. The owner of a large part goes on as long as bytes come at about the measured rate, and the
 * next member in line gives it that time. */
#ifndef DP_GOSSIP_PARTS_PART_WAIT_H
#define DP_GOSSIP_PARTS_PART_WAIT_H

#include <stdint.h>

#include "base/clock.h"

enum {
    DP_PART_WAITS = 16,    /* after which a part is given up for the round, */
    DP_PART_HARDS = 2,     /* ... and so many hard deadlines in any case */
    DP_PART_SLOWER_MAX = 2 /* so many times slower than measured the bytes of a part may come */
};
#define DP_PART_BASE_US_MIN (100 * DP_MS)
#define DP_PART_RATE_GUESS 1000000ULL /* bytes per second, before any were measured */

typedef struct dp_part_wait {
    uint64_t base_us;
    uint64_t transfer_us;
    uint64_t hard_us; /* the hard deadline of the round (deadline.h) */
} dp_part_wait;

/* bytes: of one part, n sizes that others told: no more than n times their lower median counts, so
 * that a few huge claims do not hold up the round. They are put in order. rate: bytes per second,
 * 0: unknown. Base: 4 chunk_us + 4 rtt_us, at least DP_PART_BASE_US_MIN, at most a quarter of the
 * hard deadline. */
dp_part_wait dp_part_wait_of(uint64_t chunk_us, uint64_t rtt_us, uint64_t *bytes, uint32_t n,
                             uint64_t rate, uint64_t hard_us);
/* When the summing node goes on without missing contributions. since: it began; moved: bytes of the
 * part came last, or since. It waits waits times base since then, but in all no longer than waits
 * times base, or DP_PART_SLOWER_MAX times the transfer (half the hard deadline at most), the larger
 * of the two; never longer than the hard deadline. */
dp_time dp_part_wait_owner(const dp_part_wait *wait, dp_time since, dp_time moved, uint32_t waits);
/* The time that one member in line has before the next begins: base and transfer, a quarter of the
 * hard deadline at most. */
uint64_t dp_part_wait_line(const dp_part_wait *wait);
/* The wait after which voters list the parts that there are: DP_PART_WAITS of these, DP_PART_HARDS
 * hard deadlines at most. */
uint64_t dp_part_wait_close(const dp_part_wait *wait);

#endif
