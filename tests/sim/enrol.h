/* A run that is not new (--enrolled): its members are already in the chain, by CONFIG records that
 * the founder decided alone, and every member has these records on its disk when it starts. So a
 * run of a thousand needs no 125 records, with a round each, that would admit eight members at a
 * time. */
#ifndef DP_SIM_ENROL_H
#define DP_SIM_ENROL_H

#include "base/status.h"

struct dp_sim;

/* Call before the world starts; the oracle judges these records like others. DP_NOMEM. */
DP_MUST dp_status dp_enrol(struct dp_sim *sim);

#endif
