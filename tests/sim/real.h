/* The real store/ behind the disk of a simulated node, on a platter whose power is cut in every
 * crash, in the middle of a write or of the next start. After each crash it must hold what the
 * model says is durable, byte by byte; the model takes over the store's outcome of the write that
 * was under way. Any difference is failure S8. */
#ifndef DP_SIM_REAL_H
#define DP_SIM_REAL_H

#include "tests/sim/sim.h"

enum { DP_REAL_NODES_MAX = 48 }; /* above this the model stands alone */

/* Does this world have it? One seed in sixteen, or as the options say. */
bool dp_real_wanted(const dp_sim *sim);
/* Behind the disks of all hosts, with what is on them. The manifest is made. */
void dp_real_open(dp_sim *sim);
/* Accepts a host without. */
void dp_real_close(dp_host *host);
/* A write is about to end: now and then the power goes in the middle of it, and the host is
 * down. */
bool dp_real_strikes(dp_host *host);

#endif
