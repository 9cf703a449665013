/* How many elements of an update travel in the round under way, and the proposer's finding on the
 * lines (density.h). */
#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/round/round.h"

/* From READY to blob; forever, if it has not come when the round goes on without it. False: there
 * was hardly time yet. */
static bool waited(const dp_node *node, const dp_claim *claim, uint64_t round_us, uint64_t *wait)
{
    dp_assert(round_us > 0);
    if (dp_peer_equal(&claim->ready.peer, &node->self)) {
        const uint64_t rate =
            node->standing.uplink; /* Others wait, for as long as the line takes. */
        *wait = rate == 0 ? 0 : claim->ready.bytes * 1000 / rate;
        return true;
    }
    if (claim->held_at.us != 0) {
        *wait = dp_time_between(claim->told_at, claim->held_at);
        return true;
    }
    *wait = UINT64_MAX;
    return dp_time_between(claim->told_at, node->now) >= round_us / DP_DENSITY_FREE_SHARE;
}

dp_lines dp_round_lines(dp_node *node)
{
    const dp_round *const round = node->round;
    const uint64_t round_us = (uint64_t)node->manifest.round_ms * 1000;
    uint64_t waits[DP_CLAIMS_MAX];
    uint32_t n = 0;

    if (!dp_density_moves(&node->ledger.density)) {
        return DP_LINES_FIT;
    }
    if (DP_BUGGIFY(node, DP_BUG_ANY_LINES)) {
        return dp_rng_below(&node->rng, 4) != 0 ? DP_LINES_SLOW : DP_LINES_FREE;
    }
    for (uint32_t i = 0; i < round->n_claims; i++) {
        const dp_claim *const claim = &round->claims[i];
        if (!claim->evidence && !claim->bad && dp_round_claim_age(node, claim) == 0) {
            n += waited(node, claim, round_us, &waits[n]) ? 1 : 0;
        }
    }
    return dp_density_lines(waits, n, round_us);
}
