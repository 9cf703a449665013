/* The steps of a node that its files do for one another. */
#ifndef DP_GOSSIP_NODE_NODE_STEPS_H
#define DP_GOSSIP_NODE_NODE_STEPS_H

#include <stdint.h>

#include "gossip/core/limits.h"
#include "gossip/event/event.h"

struct dp_mix_terms;

/* node.c */
/* Exchanges of this peer up to this incarnation are void, by a decided record. */
void dp_node_fence(dp_node *node, const dp_peer *peer, uint64_t incarnation);

/* node_record.c */
/* The record that the chain has written is applied, and all parts hear of it. */
void dp_node_record_written(dp_node *node);
/* Gives membership and heartbeats the roster and the voters. */
void dp_node_tell_members(dp_node *node);

/* node_tell.c */
/* When it is time, repeats the announcements to peers. */
void dp_node_repeat(dp_node *node);

/* node_route.c */
void dp_node_message(dp_node *node, const dp_event *event);

/* mix_judge.c; of dp_mix_config. */
const char *dp_node_judge_terms(void *context, const dp_peer *peer,
                                const struct dp_mix_terms *terms);

#endif
