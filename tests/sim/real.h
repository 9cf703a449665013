/* The real store/ behind the disk of a simulated node, on a simulated medium that loses power in
 * every crash, in the middle of a write or of the next start. After each crash it must hold the
 * durable data of the model, byte by byte; for the interrupted write the model takes the store's
 * outcome. Any difference is failure S8. */
#ifndef DP_SIM_REAL_H
#define DP_SIM_REAL_H

#include "tests/sim/sim.h"

enum { DP_REAL_NODES_MAX = 48 }; /* with more nodes, only the model */

/* Does this world have a real store? One seed in sixteen, or by the options. */
bool dp_real_wanted(const dp_sim *sim);
/* Opens it behind the disks of all hosts, with their contents. The manifest must exist. */
void dp_real_open(dp_sim *sim);
/* Accepts a host without a store. */
void dp_real_close(dp_host *host);
/* A write is about to end: sometimes the power fails in the middle of it, and the host is down. */
bool dp_real_strikes(dp_host *host);

#endif
