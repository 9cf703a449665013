/* What the owner of the root key, or an admin, tells the node to do (order.c). */
#ifndef DP_GOSSIP_ADMIN_ADMIN_COMMAND_H
#define DP_GOSSIP_ADMIN_ADMIN_COMMAND_H

#include "gossip/core/limits.h"
#include "gossip/event/event.h"

/* The answer is in the order. */
DP_MUST dp_status dp_admin_command_obey(dp_node *node, const dp_admin_command *order);
#endif
