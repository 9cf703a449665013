/* Shared by the two files of faults: chances of the class that strikes, and what the network's half
 * offers. */
#ifndef DP_SIM_FAULTS_H
#define DP_SIM_FAULTS_H

#include "tests/sim/sim.h"

static inline bool dp_fault_on(const dp_sim *sim, dp_fault fault)
{
    return (sim->plan.on & (1U << fault)) != 0;
}

/* Each class has a stream of its own, so that a class that is off does not move the others. */
static inline uint64_t dp_fault_below(dp_sim *sim, uint64_t limit)
{
    return dp_rng_below(&sim->fault_rngs[sim->striking], limit);
}

/* It happened, once more. */
static inline void dp_fault_count(dp_sim *sim)
{
    sim->totals.faults[sim->striking]++;
}

/* A host that runs, drawn; NULL when none does. */
dp_host *dp_fault_any_up(dp_sim *sim);
/* The process starts again so much later. */
void dp_fault_restart(dp_sim *sim, dp_host *host, uint64_t wait_us);

/* faults_net.c */
void dp_fault_partition(dp_sim *sim);
void dp_fault_bridge(dp_sim *sim);
void dp_fault_one_way(dp_sim *sim);
/* A new spell of flapping, or, with an occasion of one, its next beat. */
void dp_fault_flap(dp_sim *sim, const dp_occasion *occasion);
void dp_fault_rebind(dp_sim *sim);
/* Messages that a long partition or a delay holds back would keep a line mute beyond the healing:
 * breaks such a link, so that it is dialled anew. */
void dp_fault_release(dp_sim *sim);
/* If the line of this host is busy for more than a second, drops the messages that wait for it, and
 * the host's links with them. */
void dp_fault_drain(dp_sim *sim, uint32_t index);

#endif
