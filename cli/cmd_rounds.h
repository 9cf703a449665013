/* One round as one line, for the verbs rounds and swarm. */
#ifndef DP_CLI_CMD_ROUNDS_H
#define DP_CLI_CMD_ROUNDS_H

#include <jansson.h>

/* round: as the daemon describes it, see daemon/control_msg.h. On stdout. */
void dp_rounds_print(const json_t *round);

#endif
