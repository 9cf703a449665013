/* Admin commands: instructions by the owner of the root key or by an admin (admin_command.c). */
#ifndef DP_GOSSIP_ADMIN_ADMIN_COMMAND_H
#define DP_GOSSIP_ADMIN_ADMIN_COMMAND_H

#include "gossip/core/limits.h"
#include "gossip/event/event.h"

/* The answer is in the order. */
DP_MUST dp_status dp_admin_command_obey(dp_node *node, const dp_admin_command *order);
#endif
