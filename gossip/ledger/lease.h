/* Leases: which samples of the run's line a member may train on, as pure arithmetic over the
 * records. Knows neither records nor members (ledger.h keeps one lease for each), and no data:
 * samples are numbers (base/run/reach.h).
 *
 * The line is given out in ranges, in its order, from a cursor that only records move. A record
 * that counts a member whose lease is less than half full grants it more: for DP_LEASE_ROUNDS
 * rounds at its use in this one, or its share of a pass. Ranges that came back from members that
 * are gone are granted first. A member goes through its ranges in order; reach.leased counts the
 * samples behind it, trained on or passed over, and each contribution tells the reach of its
 * author. It may only rise, and not above the samples granted before. Ranges of two leases never
 * overlap, so no sample of the line is committed twice.
 *
 * A member without a lease (a newcomer before its first record, or a member that has used its lease
 * up during a long time of pairwise averaging) trains on samples of its own line, which nobody else
 * is ever granted, and tells its reach there. */
#ifndef DP_GOSSIP_LEDGER_LEASE_H
#define DP_GOSSIP_LEDGER_LEASE_H

#include <stdbool.h>

#include "base/run/reach.h"

enum {
    DP_LEASE_ROUNDS =
        16, /* that a lease lasts: work older than that is worth nothing (train.c, lambda) */
    DP_LEASE_POOL_MAX =
        1024 /* ranges that came back and are not granted again yet; more are given up */
};
#define DP_LEASE_SAMPLES_MAX ((uint64_t)1 << 62) /* of a line */

typedef struct dp_lease {
    dp_reach reach;
    uint64_t granted;                            /* ever; reach.leased .. granted is left */
    uint32_t n;                                  /* of the ranges, in order, that are left */
    dp_sample_range ranges[DP_LEASE_RANGES_MAX]; /* their counts add up to granted - reach.leased */
} dp_lease;

typedef struct dp_lease_pool {
    uint64_t cursor; /* granted up to here */
    /* samples that came back and found no room: nobody will see them in their pass */
    uint64_t lost;
    uint32_t n;
    dp_sample_range ranges[DP_LEASE_POOL_MAX]; /* oldest first */
} dp_lease_pool;

/* May a contribution with so many tokens come from a member that stands at now? lease NULL: of a
 * newcomer. context: tokens of a sample. It rises, stays within the lease, and claims no more
 * tokens than the samples it went over have. */
bool dp_lease_covers(const dp_lease *lease, const dp_reach *now, uint64_t tokens, uint32_t context);
/* now is one that dp_lease_covers. */
void dp_lease_move(dp_lease *lease, const dp_reach *now);
/* Up to count more; less when no range has room for it. */
void dp_lease_grant(dp_lease *lease, dp_lease_pool *pool, uint64_t count);
/* Returns the rest of the lease; the reach moves over it, so that nothing done on it counts any
 * more. */
void dp_lease_return(dp_lease *lease, dp_lease_pool *pool);
/* The number of samples to grant to a member that uses this many in a round; 0 while it has enough.
 * share: samples of a pass for each member, 0 if not known: a lease for more than two rounds is not
 * larger, so that all work near one place. */
uint64_t dp_lease_need(const dp_lease *lease, uint64_t used, uint64_t share);
/* The ranges from reach leased on. Returns how many. */
uint32_t dp_lease_after(const dp_lease *lease, uint64_t leased,
                        dp_sample_range out[DP_LEASE_RANGES_MAX]);

#endif
