/* Shared by the two files of faults: the random streams of the classes, and the functions of the
 * network's half. */
#ifndef DP_SIM_FAULTS_H
#define DP_SIM_FAULTS_H

#include "tests/sim/sim.h"

static inline bool dp_fault_on(const dp_sim *sim, dp_fault fault)
{
    return (sim->plan.on & (1U << fault)) != 0;
}

/* Each class has its own stream, so that turning one off does not change the others. */
static inline uint64_t dp_fault_below(dp_sim *sim, uint64_t limit)
{
    return dp_rng_below(&sim->fault_rngs[sim->striking], limit);
}

/* Counts a fault of the current class. */
static inline void dp_fault_count(dp_sim *sim)
{
    sim->totals.faults[sim->striking]++;
}

/* A random running host; NULL if there is none. */
dp_host *dp_fault_any_up(dp_sim *sim);
/* Restarts the process after this delay. */
void dp_fault_restart(dp_sim *sim, dp_host *host, uint64_t wait_us);

/* faults_net.c */
void dp_fault_partition(dp_sim *sim);
void dp_fault_bridge(dp_sim *sim);
void dp_fault_one_way(dp_sim *sim);
/* Begins to break a link every second, or, with an occasion of such a link, breaks it once more. */
void dp_fault_flap(dp_sim *sim, const dp_occasion *occasion);
void dp_fault_rebind(dp_sim *sim);
/* Messages held back by a long partition or a delay would block a line beyond the healing: breaks
 * such a link, so that it is dialled again. */
void dp_fault_release(dp_sim *sim);
/* If the line of this host has more than a second of traffic waiting, drops these messages and the
 * host's links. */
void dp_fault_drain(dp_sim *sim, uint32_t index);

#endif
