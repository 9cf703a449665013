/* Updates of the round that was decided which no record counts: their blobs are let go, in a run
 * with lists a few with each tick. */
#include "base/assert.h"
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"
#include "gossip/round/round.h"

static bool is_claimed(const dp_node *node, const dp_hash *root)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        if (dp_hash_equal(&node->round->claims[i].ready.root, root)) {
            return true;
        }
    }
    return false;
}

void dp_round_drop_more(dp_node *node, uint32_t most)
{
    dp_round *round = node->round;

    dp_assert(round->n_unlisted <= round->unlisted_max);
    for (uint32_t i = 0; i < most && round->n_unlisted > 0; i++) {
        const dp_unlisted *last = &round->unlisted[round->n_unlisted - 1];
        if (!is_claimed(node, &last->root) && !dp_chain_let_go(node, &last->root, last->round)) {
            return;
        }
        round->n_unlisted--; /* A blob that is claimed again goes with that claim. */
    }
}

void dp_round_drop_unlisted(dp_node *node)
{
    dp_round *round = node->round;

    for (uint32_t i = 0; i < round->n_claims; i++) {
        const dp_claim *claim = &round->claims[i];
        if (dp_node_is_open(node, &claim->ready) ||
            dp_chain_let_go(node, &claim->ready.root, claim->ready.round)) {
            continue;
        }
        if (round->n_unlisted < round->unlisted_max) {
            round->unlisted[round->n_unlisted++] =
                (dp_unlisted){.root = claim->ready.root, .round = claim->ready.round};
        }
    }
}
