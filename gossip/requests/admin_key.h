/* The key with which this node signs an admin's requests to the run: removals, revocations,
 * renewals, rotations. */
#ifndef DP_GOSSIP_REQUESTS_ADMIN_KEY_H
#define DP_GOSSIP_REQUESTS_ADMIN_KEY_H

#include "base/status.h"
#include "gossip/core/id.h"
#include "gossip/core/limits.h"

/* The run's root key is on this node. */
bool dp_admin_has_root(const dp_node *node);
/* The key that this node has its say with: the root key where it is here, else its own; by gets its
 * public half. */
int dp_admin_key(const dp_node *node, dp_peer *by);
/* Has this member put out, signed with the root key where it is here, else as an admin. DP_DENIED:
 * this node may not, or has no key; else as dp_request_removal. */
DP_MUST dp_status dp_admin_remove(dp_node *node, const dp_peer *peer);

#endif
