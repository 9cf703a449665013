/* A table of rounds, one line each, for the verbs rounds and swarm. */
#ifndef DP_CLI_VERBS_CMD_ROUNDS_H
#define DP_CLI_VERBS_CMD_ROUNDS_H

#include <jansson.h>
#include <stdbool.h>

/* The names of the columns. UPDATES: bytes of the updates that were counted, once each. wide: also
 * the phases of this node. */
void dp_rounds_print_head(bool wide);
/* round: as the daemon describes it, see daemon/control/control_msg.h. On stdout. */
void dp_rounds_print(const json_t *round, bool wide);

#endif
