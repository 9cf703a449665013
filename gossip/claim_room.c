/* Room for contributions to the round under way, which are limited: one that nobody is known to have the blob of gives way, of a
 * newcomer before a member's. A peer whose claim gave way does not displace another's in the same round, so that with any
 * number of identities each costs one wait. */
#include <string.h>

#include "base/assert.h"
#include "gossip/node_internal.h"

static bool is_member(const dp_node *node, const dp_peer *peer)
{
    return dp_ledger_member(&node->ledger, peer) != NULL;
}

static uint32_t count_newcomers(const dp_node *node)
{
    uint32_t newcomers = 0;

    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        newcomers += is_member(node, &node->round->claims[i].ready.peer) ? 0 : 1;
    }
    return newcomers;
}

/* Newcomers do not take all room of members. */
static bool is_free(const dp_node *node, bool member)
{
    return node->round->n_claims < node->round->ready_max &&
           (member || count_newcomers(node) < DP_NEWCOMERS_MAX);
}

/* What is here and decodes stays, since a vote may be bound to it. */
static bool gives_way(const dp_node *node, const dp_claim *claim, bool to_member)
{
    const bool member = is_member(node, &claim->ready.peer);

    if (claim->evidence || dp_peer_equal(&claim->ready.peer, &node->self)) {
        return false;
    }
    if (claim->bad) {
        return to_member && dp_out_room(&node->out, 1); /* Its blob is dropped. */
    }
    if (claim->held || claim->parts.held != 0 || claim->have != 0 ||
        dp_spread_bytes_of(node->spread, &claim->ready.root) > 0) {
        return false;
    }
    if (member && (!to_member || node->parts != NULL)) {
        return false; /* Of parts, whoever adds up has what others lack. */
    }
    return (to_member && !member) ||
           dp_time_between(claim->told_at, node->now) >= DP_CLAIM_PATIENCE_US;
}

/* The one to give way: a newcomer's if there is one, then the oldest. Its index, or n_claims. */
static uint32_t find_least(const dp_node *node, bool to_member)
{
    const dp_round *round = node->round;
    const bool full = round->n_claims >= round->ready_max;
    uint32_t least = round->n_claims;
    bool least_member = true;

    for (uint32_t i = 0; i < round->n_claims && DP_MUTATION != 128; i++) {
        const dp_claim *claim = &round->claims[i];
        const bool member = is_member(node, &claim->ready.peer);
        if ((!full && member) || !gives_way(node, claim, to_member)) {
            continue;
        }
        if (least == round->n_claims || (least_member && !member) ||
            (least_member == member && claim->told_at.us < round->claims[least].told_at.us)) {
            least = i;
            least_member = member;
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
    const bool member = is_member(node, peer);

    return is_free(node, member) ||
           (!gave_way(node, peer) && find_least(node, member) < node->round->n_claims);
}

bool dp_claim_make_room(dp_node *node, const dp_peer *peer)
{
    const bool member = is_member(node, peer);

    if (is_free(node, member)) {
        return true;
    }
    const uint32_t least = find_least(node, member);
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
