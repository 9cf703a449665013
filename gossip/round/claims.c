/* The contributions to the round under way that this node follows, found by their author; and how
 * many of them may be at the trainer to be decoded. */
#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/requests/requests.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/round.h"

#define CHECK_BYTES_MAX (256ULL << 20)

dp_claim *dp_round_find_claim(const dp_node *node, const dp_peer *peer, const dp_hash *root)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        if (dp_hash_equal(&node->round->claims[i].ready.root, root) &&
            dp_peer_equal(&node->round->claims[i].ready.peer, peer)) {
            return &node->round->claims[i];
        }
    }
    return NULL;
}

static dp_hash key_of(const dp_peer *peer)
{
    dp_hash key;

    memcpy(key.bytes, peer->bytes, sizeof key.bytes);
    return key;
}

static bool is_own_claim(const dp_round *round, uint32_t index, const dp_peer *peer)
{
    return index < round->n_claims && !round->claims[index].evidence &&
           dp_peer_equal(&round->claims[index].ready.peer, peer);
}

dp_claim *dp_round_claim_of(const dp_node *node, const dp_peer *peer)
{
    dp_round *round = node->round;
    const dp_hash key = key_of(peer);
    uint32_t index = 0;

    if (!dp_map_get(&round->claim_of, &key, &index)) {
        return NULL;
    }
    if (is_own_claim(round, index, peer)) {
        return &round->claims[index];
    }
    return NULL;
}

void dp_round_index_claim(dp_round *round, uint32_t index)
{
    const dp_hash key = key_of(&round->claims[index].ready.peer);

    dp_assert(index < round->n_claims);
    if (!round->claims[index].evidence) {
        const dp_status status = dp_map_put(&round->claim_of, &key, index);
        dp_assert(status == DP_OK); /* As many keys as claims. */
    }
}

void dp_round_index_claims(dp_node *node)
{
    dp_round *round = node->round;

    dp_assert(node->round->n_claims <= node->round->claims_max);
    dp_map_clear(&round->claim_of);
    for (uint32_t i = 0; i < round->n_claims; i++) {
        dp_round_index_claim(round, i);
    }
}

uint32_t dp_round_claim_age(const dp_node *node, const dp_claim *claim)
{
    dp_assert(claim->ready.round == node->ledger.round ||
              claim->ready.round == node->ledger.round + 1);
    return claim->ready.round == node->ledger.round ? 1 : 0;
}

bool dp_round_may_contribute(const dp_node *node, const dp_peer *peer)
{
    const dp_roster_entry *entry = dp_ledger_member(&node->ledger, peer);

    return entry != NULL && (entry->caps & DP_CAP_TRAIN) != 0 && !dp_node_revoked(node, peer);
}

/* Each is in memory as a whole until it is decoded. */
bool dp_round_may_check(dp_node *node)
{
    const uint32_t most = DP_BUGGIFY(node, DP_BUG_ONE_CHECK) ? 1 : DP_CHECKS_MAX;

    dp_assert(node->round->checks <= DP_CHECKS_MAX);
    return dp_out_room(&node->out, 1) &&
           (node->round->checks == 0 ||
            (node->round->checks < most &&
             (node->round->check_bytes < CHECK_BYTES_MAX || dp_broken(198))));
}

void dp_round_begin_check(dp_node *node, const dp_hash *root)
{
    dp_assert(node->round->checks < DP_CHECKS_MAX);
    node->round->check_bytes = node->round->checks > 0 ? node->round->check_bytes : 0;
    node->round->checks++;
    node->round->check_bytes += dp_node_size(node, root);
}

void dp_round_end_check(dp_node *node, const dp_hash *root)
{
    const uint64_t bytes = dp_node_size(node, root); /* 0, if it was let go of meanwhile. */

    node->round->checks -= node->round->checks > 0 ? 1 : 0;
    node->round->check_bytes -= bytes < node->round->check_bytes ? bytes : node->round->check_bytes;
}

/* ---- results of judging (judge_round.h) ---- */

bool dp_claim_is_good(const dp_node *node, const dp_claim *claim)
{
    return node->judging == NULL || claim->found == DP_FOUND_GOOD ||
           (dp_broken(220) && claim->found == DP_FOUND_NONE);
}

bool dp_claim_is_told(const dp_node *node, const dp_claim *claim)
{
    return dp_claim_is_good(node, claim) || claim->evidence || node->commit->state.accepted >= 0;
}
