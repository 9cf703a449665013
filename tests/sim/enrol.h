/* A run that is not new (--enrolled): its members stand in the chain already, by CONFIG records
 * that the founder decided alone, and every member has them on its disk when it starts. A run of a
 * thousand is looked at so without the 125 records, with a round each, in which it would have been
 * joined eight at a time. */
#ifndef DP_SIM_ENROL_H
#define DP_SIM_ENROL_H

#include "base/status.h"

struct dp_sim;

/* Before anything has happened; the oracle judges the records as it does others. DP_NOMEM. */
DP_MUST dp_status dp_enrol(struct dp_sim *sim);

#endif
