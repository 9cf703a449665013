#include "gossip/catchup/saved.h"

#include "base/assert.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"

/* A checkpoint found lately is told of even if the chain does not prove it. */
bool dp_saved_is_certified(const dp_node *node, uint64_t round, const dp_hash *tensor_root,
                           bool *known)
{
    dp_hash digest;
    dp_hash certified;

    *known = dp_chain_digest(node, round, &digest) && dp_chain_certified(node, round, &certified);
    if (!*known) {
        return false;
    }
    const dp_hash root = dp_state_root(round, tensor_root, &digest);
    return dp_hash_equal(&root, &certified);
}

static void let_go(dp_node *node, dp_saved *ckpt)
{
    if (!ckpt->has || !ckpt->fetched) {
        return;
    }
    dp_action *action = dp_out_add(&node->out, DP_DO_OBJECT_DROP);
    action->u.keep.root = ckpt->root;
    action->u.keep.use = DP_USE_STATE;
    action->u.keep.round = ckpt->round;
    dp_node_unhold(node, &ckpt->root);
}

void dp_saved_drop_before(dp_node *node, uint64_t round, const dp_hash *loading)
{
    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        dp_saved *ckpt = &node->saved->at[i];
        const bool is_loading = loading != NULL && dp_hash_equal(&ckpt->root, loading);
        if (ckpt->has && ckpt->fetched && ckpt->round < round && !is_loading) {
            let_go(node, ckpt);
            *ckpt = (dp_saved){0};
        }
    }
}

void dp_saved_lost(dp_node *node, const dp_hash *root)
{
    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        dp_saved *ckpt = &node->saved->at[i];
        if (!ckpt->has || !dp_hash_equal(&ckpt->root, root)) {
            continue;
        }
        if (ckpt->fetched) { /* The rest of it is of no use to any node. */
            let_go(node, ckpt);
            *ckpt = (dp_saved){0};
        } else {
            ckpt->bad = true;
        }
    }
}

void dp_saved_mark_bad(dp_node *node, const dp_hash *root)
{
    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        if (node->saved->at[i].has && dp_hash_equal(&node->saved->at[i].root, root)) {
            node->saved->at[i].bad = true;
        }
    }
}

void dp_saved_add(dp_node *node, uint64_t round, const dp_hash *root, uint64_t bytes, bool fetched)
{
    dp_saved *oldest = &node->saved->at[0];

    dp_assert(root != NULL);
    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        dp_saved *ckpt = &node->saved->at[i];
        if (ckpt->has && ckpt->round == round) {
            oldest = ckpt;
            break;
        }
        if (!ckpt->has || (oldest->has && ckpt->round < oldest->round)) {
            oldest = ckpt;
        }
    }
    if (!dp_hash_equal(&oldest->root, root) || !fetched) {
        let_go(node, oldest);
    }
    *oldest = (dp_saved){.has = true,
                         .fetched = fetched,
                         .round = round,
                         .root = *root,
                         .bytes = bytes,
                         .since = node->now};
    dp_node_changed(node);
}

static bool is_own(const dp_saved *ckpt)
{
    return ckpt->has && !ckpt->bad && !ckpt->fetched;
}

bool dp_saved_is_own(const dp_node *node, uint64_t round)
{
    bool found = false;

    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        found = found || (is_own(&node->saved->at[i]) && node->saved->at[i].round == round);
    }
    return found;
}

uint64_t dp_saved_own(const dp_node *node)
{
    uint64_t newest = 0;

    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        const dp_saved *ckpt = &node->saved->at[i];
        newest = is_own(ckpt) && ckpt->round > newest ? ckpt->round : newest;
    }
    return newest;
}

uint64_t dp_saved_newest(const dp_node *node)
{
    uint64_t newest = 0;

    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        const dp_saved *ckpt = &node->saved->at[i];
        newest = ckpt->has && !ckpt->bad && ckpt->round > newest ? ckpt->round : newest;
    }
    return newest;
}

static bool is_proven(const dp_node *node, uint64_t round)
{
    const dp_history_row *row = dp_chain_row(node, round);

    return row != NULL ? row->proven : round < node->ledger.round;
}

const dp_saved *dp_saved_proven(const dp_node *node)
{
    const dp_saved *best = NULL;

    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        const dp_saved *ckpt = &node->saved->at[i];
        if (!ckpt->has || ckpt->bad) {
            continue;
        }
        const bool proven = is_proven(node, ckpt->round);
        const bool best_proven = best != NULL && is_proven(node, best->round);
        if (best == NULL || (proven && !best_proven) ||
            (proven == best_proven && ckpt->round > best->round)) {
            best = ckpt;
        }
    }
    return best;
}

const dp_saved *dp_saved_told(const dp_node *node)
{
    const dp_saved *newest = NULL;

    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        const dp_saved *ckpt = &node->saved->at[i];
        if (ckpt->has && !ckpt->bad && (newest == NULL || ckpt->round > newest->round)) {
            newest = ckpt;
        }
    }
    const bool lately = newest != NULL && newest->since.us != 0 &&
                        dp_time_between(newest->since, node->now) < DP_STATE_PATIENCE_US;
    return lately ? newest : dp_saved_proven(node);
}
