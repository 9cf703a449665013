/* The last rounds of the chain in memory: their digests, certified states, and updates. */
#include "base/assert.h"
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"

dp_history_row *dp_chain_row(const dp_node *node, uint64_t round)
{
    dp_history_row *row = &node->chain->history[round % DP_HISTORY_ROUNDS];

    return round > 0 && row->round == round ? row : NULL;
}

bool dp_chain_digest(const dp_node *node, uint64_t round, dp_hash *digest)
{
    const dp_history_row *row = dp_chain_row(node, round);

    dp_assert(digest != NULL);
    if (round == 0) {
        *digest = node->chain->genesis_digest;
        return true;
    }
    if (row == NULL) {
        return false;
    }
    *digest = row->digest;
    return true;
}

bool dp_chain_certified(const dp_node *node, uint64_t round, dp_hash *root)
{
    const dp_history_row *row = dp_chain_row(node, round);

    dp_assert(root != NULL);
    if (round == 0 && node->chain->genesis_certified) {
        *root = node->chain->genesis_root;
        return true;
    }
    if (row == NULL || !row->certified) {
        return false;
    }
    *root = row->root;
    return true;
}

bool dp_chain_certify(dp_node *node, const dp_hash *root)
{
    dp_chain *chain = node->chain;
    dp_history_row *row = dp_chain_row(node, node->ledger.round);

    if (node->ledger.round == 0 && !chain->genesis_certified) {
        chain->genesis_certified = true;
        chain->genesis_root = *root;
        return true;
    }
    if (row != NULL && !row->certified) {
        row->certified = true;
        row->root = *root;
        return true;
    }
    return false;
}
