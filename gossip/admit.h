/* Newcomers, and what a peer may say before the chain has admitted it. */
#ifndef DP_GOSSIP_ADMIT_H
#define DP_GOSSIP_ADMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "gossip/node.h"
#include "gossip/record.h"

/* Into a draft whose time, list and removals stand; admitted as in dp_valid. A member that is away may give its place. */
void dp_admit_draft(const dp_node *node, dp_record *draft, dp_admitted *admitted);
/* Somebody waits for admission, and a record of its own would not disturb the round. */
bool dp_admit_may_stand_alone(const dp_node *node);
/* Is this type of message nothing that a guest may send? It asks, and answers what it was asked for. */
bool dp_admit_members_only(uint8_t type);

#endif
