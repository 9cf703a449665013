/* Updates of a round that a node knows of, made by a test. */
#ifndef DP_TESTS_UNIT_GOSSIP_KIT_CLAIM_KIT_H
#define DP_TESTS_UNIT_GOSSIP_KIT_CLAIM_KIT_H

#include "gossip/round/round.h"
#include "tests/unit/gossip/kit/node_kit.h"

/* An update of this member that is here and checked. */
static inline dp_claim *kit_claim(dp_node *node, uint32_t peer, uint8_t root)
{
    dp_claim *made = &node->round->claims[node->round->n_claims++];

    *made = (dp_claim){.ready = {.peer = kit_peer(peer),
                                 .root = {{root, 88}},
                                 .round = node->ledger.round + 1,
                                 .base = node->ledger.base,
                                 .tokens = 100,
                                 .steps = 10},
                       .held = true,
                       .checked = true,
                       .energy = 1000,
                       .told_at = node->now};
    dp_round_index_claims(node);
    return made;
}

#endif
