/* Random schedules of one slot: only the voting machines of gossip/vote/commit.h, messages in any
 * order and number, writes that end at random times, crashes right after sending, lost disks.
 * Thousands of schedules per second, which reach rare interleavings; votes are judged by the oracle
 * of the simulator. */
#ifndef DP_SIM_DUEL_H
#define DP_SIM_DUEL_H

#include "tests/sim/sim.h"

/* Replaces dp_sim_run. True if no rule was broken. */
bool dp_duel_run(dp_sim *sim);

#endif
