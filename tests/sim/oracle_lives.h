/* The judge of S7: each node's knowledge of the lives of the others never goes back to an earlier
 * one. */
#ifndef DP_SIM_ORACLE_LIVES_H
#define DP_SIM_ORACLE_LIVES_H

#include "tests/sim/sim.h"

typedef struct dp_lives dp_lives;

DP_MUST dp_status dp_lives_open(dp_lives **lives, uint32_t n);
void dp_lives_close(dp_lives *lives); /* Accepts NULL. */
/* Called after an event of this host that may have brought messages of an earlier life, and four
 * times a second. */
void dp_lives_check(dp_lives *lives, dp_host *host);

#endif
