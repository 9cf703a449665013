/* Random schedules of one slot: nothing but the voting machines of gossip/vote/commit.h, messages
 * in any order and number, writes that end when they like, crashes right after sending, lost disks.
 * Thousands of schedules per second, so that rare interleavings are met; the judge of votes is that
 * of the whole simulator. */
#ifndef DP_SIM_DUEL_H
#define DP_SIM_DUEL_H

#include "tests/sim/sim.h"

/* Instead of dp_sim_run. True if nothing was wrong. */
bool dp_duel_run(dp_sim *sim);

#endif
