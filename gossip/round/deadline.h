/* How long a round waits, from measurements: expected length, grace, hard deadline, bid timer.
 * Integers in, integers out (SAFETY D1, A9 and rule C). */
#ifndef DP_GOSSIP_ROUND_DEADLINE_H
#define DP_GOSSIP_ROUND_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define DP_BID_US_MIN (200 * DP_MS)
#define DP_BID_US_MAX (5 * DP_SECOND)
#define DP_BID_BACKOFF_US_MAX (30 * DP_SECOND)

typedef struct dp_deadline {
    uint64_t round_us;   /* the manifest's */
    uint64_t average_us; /* moving average of round durations; 0 before the first */
} dp_deadline;

/* One measured round, from own opening to decision. */
void dp_deadline_measure(dp_deadline *deadline, uint64_t round_us);
/* L: at least the manifest's round; the average counts between half and three times of it. */
uint64_t dp_deadline_length(const dp_deadline *deadline);
/* 1.5 L + 2 s. */
uint64_t dp_deadline_hard(const dp_deadline *deadline);
/* The grace for a straggler after K are ready: one step of the slowest and two transfers, within
 * [least, L/4], where least = min(4 rtt_p95 + 50 ms, half the manifest's round + 500 ms) wins, so
 * that a member far away is not left out of every short round. rtt_p95 is that of the worst link,
 * which stretches every round of everybody: by half a round at most, so that rounds come at two
 * thirds of their pace or faster, and by the 500 ms of the longer grace where rounds are shorter
 * than the way around the earth. It is a share of the manifest's round and not of L, which grows
 * with the rounds that are stretched. A member that is farther away has the longer grace
 * (dp_deadline_long_grace). */
uint64_t dp_deadline_grace(const dp_deadline *deadline, uint64_t step_us, uint64_t transfer_us,
                           uint64_t rtt_p95_us);
/* The longer grace that is given instead in some rounds, so that a member that is always a little
 * later than the grace is counted too: L + 500 ms. The hard deadline holds all the
 * same. */
uint64_t dp_deadline_long_grace(const dp_deadline *deadline);
/* Is it given in this round to a member that works and was in none of the last missed rounds? In
 * the third in a row, and then in the rounds that can be divided by 6, after 12 missed ones by 12,
 * .. by 192: a member that comes in time then is counted in every third round at least, and one
 * that never comes costs ever less. The turn goes by the round, since each voter counts for itself
 * and they begin anew at different times: if it went by the count, one voter would wait while the
 * others bid. */
bool dp_deadline_is_owed(uint32_t missed, uint64_t round);
/* Wait of a voter that sees the close condition: clamp(4 rtt_p95 + 2 fsync_p95, 200 ms, 5 s) * (1 +
 * distance from the last owner), doubled per failed bid up to 30 s. rtt_p95 is that of the voters
 * that make a majority soonest. */
uint64_t dp_deadline_bid(uint64_t rtt_p95_us, uint64_t fsync_p95_us, uint32_t distance,
                         uint32_t failed);
/* The time that a thin line needs for an update of so many bytes: the uplink (kB/s, not 0) carries
 * it twice where two or more peers fetch it, since two of them sometimes take the same chunk from
 * its author; the other chunks they take from each other. */
uint64_t dp_deadline_send(uint64_t bytes, uint32_t others, uint32_t uplink);
/* The same in a round of parts: each part of the update leaves once, for the member that adds it
 * up; own_share of the vector, in DP_PART_WHOLE, is added up here and does not leave. After that
 * the line carries the sums made here, which no peer could fetch earlier. */
uint64_t dp_deadline_scatter(uint64_t bytes, uint32_t own_share, uint32_t uplink);
/* How long a node behind such a line trains from its own opening until it publishes: the manifest's
 * round, less the delay of its opening after the decision before and less the time to send, so that
 * its update is there when the others' are. A quarter of the round at least: a member that would
 * need more is late, and counts with the longer grace. Steps after that count in the round that
 * follows. */
uint64_t dp_deadline_part(uint64_t round_us, uint64_t late_us, uint64_t send_us);
/* K: contributions that permit to close early: min(active, max(2, ceil(0.6 active))). */
uint32_t dp_deadline_enough(uint32_t active);

#endif
