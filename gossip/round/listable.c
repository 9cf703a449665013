/* Which contributions a record may list, and which of them it lists when they are too many. */
#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/requests/requests.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/round.h"
#include "gossip/round/turn.h"

/* A claim outlives a record that removes its author and closes no round. */
static bool was_removed(const dp_node *node, const dp_peer *peer)
{
    return dp_node_revoked(node, peer) || dp_ledger_barred(&node->ledger, peer);
}

bool dp_round_may_list(const dp_node *node, const dp_ready *ready, const dp_hash *root)
{
    const bool fits = ready->round == node->ledger.round
                          ? dp_ledger_may_be_stale(&node->ledger, &ready->peer) &&
                                dp_hash_equal(&ready->state_root, &node->ledger.state_before)
                          : dp_hash_equal(&ready->state_root, root);

    return fits && !was_removed(node, &ready->peer);
}

static bool may_list(const dp_node *node, const dp_claim *claim, const dp_hash *root)
{
    return dp_round_may_list(node, &claim->ready, root) && !claim->evidence && claim->held &&
           claim->checked && !claim->bad && claim->size == claim->ready.bytes &&
           dp_claim_is_good(node, claim);
}

/* Of all majorities that contain this node, the one that holds most; the first in order of bits
 * wins a tie. */
uint32_t dp_round_held(const dp_node *node, uint32_t *chosen)
{
    const dp_round *round = node->round;
    const uint32_t self = node->commit->self;
    const uint32_t majority = dp_ledger_majority(&node->ledger);
    dp_seal seals[DP_VOTERS_MAX];
    dp_hash root;
    uint32_t n_seals = 0;
    uint32_t best = 0;
    uint32_t best_mask = 0;
    uint32_t have[DP_CLAIMS_MAX]; /* by claim: its holders, 0 if it may not be listed */

    dp_assert(node->ledger.n_voters <= DP_VOTERS_MAX);
    if (self == DP_NOBODY || !dp_round_state_cert(node, &root, seals, &n_seals)) {
        return 0;
    }
    for (uint32_t i = 0; i < round->n_claims; i++) {
        have[i] = may_list(node, &round->claims[i], &root) ? round->claims[i].have | 1U << self : 0;
    }
    for (uint32_t mask = 0; mask < (1U << node->ledger.n_voters); mask++) {
        uint32_t count = 0;
        if ((mask & (1U << self)) == 0 || (uint32_t)__builtin_popcount(mask) != majority) {
            continue;
        }
        for (uint32_t i = 0; i < round->n_claims; i++) {
            count += (have[i] & mask) == mask ? 1 : 0;
        }
        if (count > best) {
            best = count;
            best_mask = mask;
        }
    }
    for (uint32_t i = 0, at = 0; chosen != NULL && i < round->n_claims; i++) {
        if (best > 0 && (have[i] & best_mask) == best_mask) {
            chosen[at++] = i;
        }
    }
    return best;
}

/* Of several claims to one blob, keeps the one that came first here: the author of a copy must have
 * heard of the blob before. */
static uint32_t drop_copies(const dp_claim *claims, uint32_t *held, uint32_t n)
{
    uint32_t kept = 0;

    dp_assert(n <= DP_CLAIMS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        bool copied = false;
        for (uint32_t k = 0; k < kept; k++) {
            copied =
                copied || (claims[held[i]].energy != 0 &&
                           dp_hash_equal(&claims[held[i]].ready.root, &claims[held[k]].ready.root));
        }
        if (!copied) {
            held[kept++] = held[i];
        }
    }
    return kept;
}

/* Longest not included first, then by key: which claims of more than fit are listed. */
uint32_t dp_round_choose(const dp_node *node, uint32_t *held, uint32_t n_held, uint32_t *chosen)
{
    const dp_claim *claims = node->round->claims;
    const uint32_t n = drop_copies(claims, held, n_held);
    uint32_t count = 0;

    dp_assert(n_held <= node->round->n_claims);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t claim = held[i];
        uint32_t at = i;
        while (at > 0 && dp_turn_goes_before(&node->ledger, &claims[claim].ready.peer,
                                             &claims[held[at - 1]].ready.peer)) {
            held[at] = held[at - 1];
            at--;
        }
        held[at] = claim;
    }
    const uint32_t most =
        DP_BUGGIFY(node, DP_BUG_SHORT_LIST) ? (n + 1) / 2 : node->ledger.listed_max;
    for (uint32_t i = 0; i < n && count < most; i++) { /* In order of key. */
        const uint32_t claim = held[i];
        uint32_t at = count++;
        while (at > 0 &&
               dp_peer_compare(&claims[claim].ready.peer, &claims[chosen[at - 1]].ready.peer) < 0) {
            chosen[at] = chosen[at - 1];
            at--;
        }
        chosen[at] = claim;
    }
    return count;
}

bool dp_round_list(dp_node *node, dp_record *draft, const dp_claim *claim)
{
    const dp_ready *ready = &claim->ready;

    dp_assert(draft->n_listed < DP_LISTED_MAX);
    dp_assert(claim->ready.round <= draft->round);
    if (dp_ledger_member(&node->ledger, &ready->peer) == NULL) {
        return false; /* Another voter's record named it; this one admits nobody for its work. */
    }
    if (dp_round_claim_age(node, claim) != 0) {
        dp_assert(draft->n_listed < DP_LISTED_DEFAULT); /* No lists in a run of late updates. */
        draft->aged |= 1U << draft->n_listed;
    }
    dp_listed *listed = &draft->listed[draft->n_listed++];
    *listed = (dp_listed){.peer = ready->peer,
                          .root = ready->root,
                          .bytes = ready->bytes,
                          .tokens = ready->tokens,
                          .carried = ready->carried,
                          .reach = ready->reach,
                          .steps = ready->steps,
                          .loss_micro = ready->loss_micro,
                          .energy = claim->energy,
                          .rate = ready->rate};
    memcpy(listed->signature, ready->signature, sizeof listed->signature);
    return true;
}
