/* All of a node: for the files that route between its parts, and for tests. */
#ifndef DP_GOSSIP_NODE_NODE_INTERNAL_H
#define DP_GOSSIP_NODE_NODE_INTERNAL_H

#include "base/trainer/trainer_msg.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fetch.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/list_talk.h"
#include "gossip/catchup/proof.h"
#include "gossip/catchup/rival.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "gossip/node/node.h"
#include "gossip/parts/part_round.h"
#include "gossip/requests/leave.h"
#include "gossip/requests/request_msg.h"
#include "gossip/requests/wish.h"
#include "gossip/round/claim.h"
#include "gossip/round/config_part.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"
#include "gossip/round/turn.h"
#include "gossip/training/load.h"
#include "gossip/training/training.h"
#include "gossip/transfer/doubt.h"
#include "gossip/vote/witness.h"

enum { DP_DATA_AT_ONCE = 4 /* shards of data that are fetched at a time */ };

/* Exchanges of this peer up to this incarnation are void, by a decided record. */
void dp_node_fence(dp_node *node, const dp_peer *peer, uint64_t incarnation);

/* node_record.c */
/* The record that the chain has written is applied, and all parts hear of it. */
void dp_node_record_written(dp_node *node);
/* Membership and heartbeats hear who is in the roster, and who votes. */
void dp_node_tell_members(dp_node *node);

/* node_tell.c */
/* When it is time, peers are told again what they may have missed. */
void dp_node_repeat(dp_node *node);

/* node_route.c */
void dp_node_message(dp_node *node, const dp_event *event);

/* lines.c */
/* What this node would have a record say of the lines. */
dp_lines dp_round_lines(dp_node *node);
/* mix_judge.c; of dp_mix_config. */
const char *dp_node_judge_terms(void *context, const dp_peer *peer,
                                const struct dp_mix_terms *terms);

#endif
