/* Drops blobs: those of rounds from which no node starts any more, and those that no record
 * counts. */
#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"

/* Data of the run, or a state: a READY may name it as its blob, and is no reason to let it go. */
static bool is_no_blob(const dp_node *node, const dp_hash *root)
{
    const dp_manifest *manifest = &node->manifest;

    for (uint32_t i = 0; i < manifest->n_shards; i++) {
        if (dp_hash_equal(&manifest->shards[i].root, root)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        if (node->saved->at[i].has && dp_hash_equal(&node->saved->at[i].root, root)) {
            return true;
        }
    }
    return dp_hash_equal(&manifest->tokenizer, root) || dp_hash_equal(&manifest->base, root) ||
           (node->catchup->wants_state && dp_hash_equal(&node->catchup->state_root, root));
}

static bool is_needed(const dp_node *node, const dp_hash *root)
{
    if (is_no_blob(node, root)) {
        return true;
    }
    /* From the newest on, which is where most that is asked for stands. */
    for (uint64_t i = 0; i < DP_HISTORY_ROUNDS; i++) {
        const uint64_t at = (node->ledger.round + DP_HISTORY_ROUNDS - i) % DP_HISTORY_ROUNDS;
        const dp_history_row *row = &node->chain->history[at];
        for (uint32_t k = 0; row->round > 0 && !row->dropped && k < row->n; k++) {
            if (dp_hash_equal(&row->items[k].root, root)) {
                return true;
            }
        }
    }
    return false;
}

bool dp_chain_let_go(dp_node *node, const dp_hash *root, uint64_t round)
{
    if (dp_broken(57) || is_needed(node, root)) {
        return true;
    }
    dp_picker_cancel(node->picker, node->now, root, &node->out);
    if (dp_node_holds(node, root)) {
        if (!dp_out_room(&node->out, 1)) {
            return false;
        }
        dp_action *action = dp_out_add(&node->out, DP_DO_OBJECT_DROP);
        action->u.keep.root = *root;
        action->u.keep.use = DP_USE_BLOB;
        action->u.keep.round = round;
        dp_node_unhold(node, root);
    }
    return true;
}

void dp_chain_drop(dp_node *node, const dp_hash *root, uint64_t round)
{
    (void)dp_chain_let_go(node, root, round);
}

/* The first round whose blobs are kept: all that a node needs to start from the newest checkpoint
 * here that the chain proves, or from one that was the newest lately (SAFETY G3), and more while
 * they come to a quarter of a state, since a replay is then the cheaper way to catch up. A fetched
 * state is no checkpoint: the next life does not find it (SAFETY G5). */
static uint64_t first_kept(const dp_node *node)
{
    const dp_saved *const ckpt = dp_saved_proven(node);
    const uint64_t newest = ckpt != NULL && !ckpt->fetched ? ckpt->round : 0;
    uint64_t round = node->ledger.round;
    uint64_t bytes = 0;

    for (; round > 0 && round + DP_HISTORY_ROUNDS > node->ledger.round + 4; round--) {
        const dp_history_row *row = dp_chain_row(node, round);
        for (uint32_t i = 0; row != NULL && i < row->n; i++) {
            bytes += row->items[i].bytes;
        }
        if (round + DP_WINDOW_ROUNDS <= newest && bytes > node->standing.tensor_bytes / 4) {
            break;
        }
    }
    return round + 1;
}

static bool holds_any(const dp_node *node, const dp_history_row *row)
{
    for (uint32_t i = 0; i < row->n; i++) {
        if (dp_node_holds(node, &row->items[i].root)) {
            return true;
        }
    }
    return false;
}

void dp_chain_drop_row(dp_node *node, dp_history_row *row)
{
    dp_assert(row->n <= DP_LISTED_MAX);
    if (row->round == 0 || row->dropped) {
        return;
    }
    row->dropped = true;
    row->rest = row->n > DP_LISTED_DEFAULT;
    for (uint32_t k = 0; k < row->n && !row->rest; k++) {
        dp_chain_drop(node, &row->items[k].root, row->round);
    }
}

uint32_t dp_chain_drop_rest(dp_node *node)
{
    uint32_t left = DP_DROPS_PER_TICK;

    for (uint32_t i = 0; i < DP_HISTORY_ROUNDS && left > 0; i++) {
        dp_history_row *row = &node->chain->history[i];
        for (uint32_t k = 0; row->rest && k < row->n && left > 0; k++) {
            if (dp_node_holds(node, &row->items[k].root)) {
                left = dp_out_room(&node->out, 1) ? left - 1 : 0;
                dp_chain_drop(node, &row->items[k].root, row->round);
            }
        }
        row->rest = row->rest && left == 0;
    }
    return left;
}

void dp_chain_drop_old(dp_node *node)
{
    const uint64_t first = first_kept(node);
    uint32_t rows = 0;

    for (uint32_t i = 0; i < DP_HISTORY_ROUNDS && rows < 2; i++) {
        dp_history_row *row = &node->chain->history[i];
        if (row->round == 0 || row->dropped || row->round >= first) {
            continue;
        }
        rows +=
            holds_any(node, row) ? 1 : 0; /* After a start most were dropped in an earlier life. */
        dp_chain_drop_row(node, row);
    }
}

void dp_chain_cancel(dp_node *node, uint64_t round)
{
    dp_assert(round <= node->ledger.round || node->reopening);
    for (uint32_t i = 0; i < DP_HISTORY_ROUNDS; i++) {
        const dp_history_row *row = &node->chain->history[i];
        for (uint32_t k = 0; row->round > 0 && row->round <= round && k < row->n; k++) {
            if (!dp_node_holds(node, &row->items[k].root)) {
                dp_picker_cancel(node->picker, node->now, &row->items[k].root, &node->out);
            }
        }
    }
}
