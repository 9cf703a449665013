/* A node that leaves the run for good: when it is free to end. */
#ifndef DP_GOSSIP_REQUESTS_LEAVE_H
#define DP_GOSSIP_REQUESTS_LEAVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "gossip/core/limits.h"

/* Of this node, when it leaves for good. */
typedef struct dp_leave {
    dp_time asked_at; /* by its owner, the last time */
    dp_time left_at;  /* the chain has taken it out: known since */
    bool voted;       /* it was a voter of the record that says so */
} dp_leave;

/* A node that the chain has removed stays so long at most for the voters after it; they keep its
 * link as long. */
#define DP_LINGER_US (60 * DP_SECOND)
#define DP_LEAVE_US                                                                                \
    (6 * DP_SECOND) /* so long it waits for its removal; a voter votes three rounds more */

void dp_leave_ask(dp_node *node);
/* A record stands in the ledger; voted: this node was a voter of it. */
void dp_leave_decided(dp_node *node, bool voted);
/* The chain has taken this node out. */
void dp_leave_taken_out(dp_node *node);
/* Says goodbye once it is free. */
void dp_leave_tick(dp_node *node);
dp_leaving dp_leave_state(const dp_node *node);

#endif
