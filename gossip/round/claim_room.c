/* Room for contributions to the round under way, which are limited: a claim without a known holder
 * of its blob gives way. A peer whose claim gave way does not displace another's in the same round,
 * so that each costs one wait. */
#include <string.h>

#include "base/assert.h"
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"
#include "gossip/round/claim.h"
#include "gossip/round/round.h"

static bool is_free(const dp_node *node)
{
    dp_assert(node->round->n_claims <= node->round->claims_max);
    return node->round->n_claims < node->round->ready_max;
}

/* May this claim give way to another? A blob that is here and decodes stays, since a vote may be
 * bound to it. In a run of parts only a bad claim gives way: the node that adds up a part holds
 * objects that others lack. */
static bool gives_way(const dp_node *node, const dp_claim *claim)
{
    if (claim->evidence || dp_peer_equal(&claim->ready.peer, &node->self)) {
        return false;
    }
    if (claim->bad) {
        return dp_out_room(&node->out, 1); /* Its blob is dropped. */
    }
    return !node->ledger.parted && !claim->held && claim->have == 0 &&
           dp_picker_bytes_of(node->picker, &claim->ready.root) == 0 &&
           dp_time_between(claim->told_at, node->now) >= DP_CLAIM_PATIENCE_US;
}

/* The oldest of those that give way: its index, or n_claims. */
static uint32_t find_least(const dp_node *node)
{
    const dp_round *round = node->round;
    uint32_t least = round->n_claims;

    for (uint32_t i = 0; i < round->n_claims && !dp_broken(128); i++) {
        const dp_claim *claim = &round->claims[i];
        if (gives_way(node, claim) &&
            (least == round->n_claims || claim->told_at.us < round->claims[least].told_at.us)) {
            least = i;
        }
    }
    return least;
}

static bool gave_way(const dp_node *node, const dp_peer *peer)
{
    const uint32_t index = dp_node_member_index(node, peer);

    return index == DP_MEMBER_NONE || node->round->gave_way[index];
}

static void let_go(dp_node *node, uint32_t at)
{
    dp_round *round = node->round;
    const dp_claim gone = round->claims[at];
    const uint32_t index = dp_node_member_index(node, &gone.ready.peer);
    bool others = false;

    dp_assert(at < node->round->n_claims);
    if (index != DP_MEMBER_NONE) {
        round->gave_way[index] = true;
    }
    round->claims[at] = round->claims[--round->n_claims];
    dp_round_index_claims(node);
    for (uint32_t i = 0; i < round->n_claims; i++) {
        others = others || dp_hash_equal(&round->claims[i].ready.root, &gone.ready.root);
    }
    if (!others) {
        dp_chain_drop(node, &gone.ready.root, gone.ready.round);
    }
}

bool dp_claim_has_room(const dp_node *node, const dp_peer *peer)
{
    return is_free(node) || (!gave_way(node, peer) && find_least(node) < node->round->n_claims);
}

bool dp_claim_make_room(dp_node *node, const dp_peer *peer)
{
    if (is_free(node)) {
        return true;
    }
    const uint32_t least = find_least(node);
    if (gave_way(node, peer) || least == node->round->n_claims) {
        return false;
    }
    let_go(node, least);
    return true;
}

void dp_claim_open_round(dp_node *node)
{
    memset(node->round->gave_way, 0, sizeof node->round->gave_way);
}
