/* What the owner of the root key, or an admin, tells the node to do (order.c). */
#ifndef DP_GOSSIP_ORDERS_ORDER_H
#define DP_GOSSIP_ORDERS_ORDER_H

#include "gossip/core/limits.h"
#include "gossip/event/event.h"

/* The answer is in the order. */
DP_MUST dp_status dp_order_obey(dp_node *node, const dp_order *order);
/* The key that this node has its say with: the root key where it is here, else its own; by gets its public half. */
int dp_order_key(const dp_node *node, dp_peer *by);
/* Has this member put out, signed with the root key where it is here, else as an admin. DP_DENIED: this node may not, or has no key; else as
 * dp_wish_remove. */
DP_MUST dp_status dp_order_remove(dp_node *node, const dp_peer *peer);

#endif
