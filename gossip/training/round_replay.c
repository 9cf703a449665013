/* The trainer applies the rounds of the chain one after the other, and settles its publication. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/trainer/trainer_msg.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fetch.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "gossip/round/deadline.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/round.h"
#include "gossip/round/turn.h"
#include "gossip/training/state_load.h"
#include "gossip/training/training.h"

static uint32_t settle_of(const dp_node *node, const dp_history_row *row, uint32_t *clip)
{
    const dp_pending *pending = &node->train->pending;

    dp_assert(row->round > 0);
    *clip = 0;
    if (!pending->has || pending->settled || node->train->fresh ||
        pending->ready.round > row->round) {
        return DP_SETTLE_NONE;
    }
    if (row->own && pending->ready.round + row->own_age == row->round) {
        if (dp_hash_equal(&row->own_root, &pending->ready.root) || dp_broken(21)) {
            *clip = row->own_clip;
            return DP_SETTLE_INCLUDED;
        }
    }
    if (pending->ready.round == row->round && row->waits && !dp_broken(65)) {
        return DP_SETTLE_NONE; /* The next record settles it. */
    }
    return DP_SETTLE_LEFT_OUT;
}

/* The round counts a publication of this node that is not the one it knows of: the disk was an old
 * copy, and the work brought back from it was part of that other one too (SAFETY B5). */
static bool is_overtaken(const dp_node *node, const dp_history_row *row)
{
    return node->train->revived && row->own &&
           !dp_hash_equal(&row->own_root, &node->train->pending.ready.root);
}

/* The share of this node's work, Q16, that the record has already, by partners of pair exchanges:
 * work that was averaged in pairs stands in the updates of all who exchanged it, and would count
 * once for each record that lists one of them. */
static uint32_t brought(dp_node *node, const dp_history_row *row)
{
    const dp_pending *pending = &node->train->pending;
    const uint64_t own = pending->has ? pending->ready.tokens + pending->ready.carried : 0;
    uint64_t sum = 0;

    dp_assert(row->round > 0);
    if (row->own || row->cuts.n > 0 || node->train->fresh) {
        return 0; /* Items of parts are sums of all. */
    }
    for (uint32_t i = 0; i < row->n; i++) {
        const dp_history_item *const item = &row->items[i];
        if (!dp_peer_equal(&item->peer, &node->self)) {
            sum += (uint64_t)(item->q >> 15) *
                   dp_mix_take_share(node->mix, &item->peer, item->tokens, own) / 65536;
        }
    }
    return sum < 65536 ? (uint32_t)sum : 65535;
}

/* One missed gap of the chain costs this round's share of lambda; a fresh trainer pays all of it
 * with its RESTORE. */
static uint32_t discount(dp_node *node, const dp_history_row *row)
{
    dp_assert(row->round == node->standing.applied + 1);
    if (!node->train->fresh && is_overtaken(node, row)) {
        dp_node_note(node, DP_NOTE_DISCARDED, row->round, NULL, 65536, 0, "old copy");
        return 0;
    }
    const uint32_t there = brought(node, row);
    if (there > 0) {
        dp_node_note(node, DP_NOTE_DISCARDED, row->round, NULL, there, 0,
                     "partners of pair exchanges brought it");
    }
    if (node->train->fresh || row->touched || node->train->empty) {
        return 65536 - there;
    }
    const uint32_t lambda = dp_train_fade(node->train, row);
    dp_node_note(node, DP_NOTE_DISCARDED, row->round, NULL, 65536 - lambda, 0, "lambda");
    return (uint32_t)((uint64_t)lambda * (65536 - there) / 65536);
}

void dp_train_replay(dp_node *node)
{
    dp_train *train = node->train;
    dp_history_row *row = dp_chain_row(node, node->standing.applied + 1);
    dp_history_row *after = dp_chain_row(node, node->standing.applied + 2);

    dp_assert(!node->standing.applying);
    dp_assert(node->standing.applied < node->ledger.round);
    if (row == NULL) {
        dp_train_reload(node, "state");
        return;
    }
    if (!node->catchup->wants_state && dp_catchup_prefers_state(node, node->standing.applied)) {
        dp_catchup_free(node);
        dp_catchup_stuck(node);
        dp_catchup_state(node);
        dp_train_unstick(node);
    }
    const bool whole = dp_train_fetch_row(node, row);
    if (after != NULL) {
        (void)dp_train_fetch_row(node, after);
    }
    if (!whole) {
        dp_catchup_stuck(node);
        if (row->dropped ||
            dp_time_between(node->catchup->stuck_at, node->now) > DP_STATE_PATIENCE_US) {
            dp_catchup_state(node);
            dp_train_unstick(node);
        }
        return;
    }
    dp_catchup_free(node);
    if (!train->fresh && is_overtaken(node, row)) {
        /* The chain is ahead of the samples that this trainer has drawn: it goes on once it is told
         * from where (dp_train_reach). */
        dp_train_stop(node);
    }
    dp_action *action = dp_out_add(&node->out, DP_DO_APPLY);
    action->u.apply.round = row->round;
    action->u.apply.tokens = row->tokens;
    action->u.apply.alpha = row->alpha;
    action->u.apply.lambda = discount(node, row);
    dp_mix_faded(node->mix, action->u.apply.lambda);
    if (action->u.apply.lambda == 0 &&
        (node->manifest.exchange == DP_EXCHANGE_GRADIENTS || node->leftover)) {
        train->steps =
            0; /* It told of its gradient, or of a script's work, once and now drops it. */
    }
    action->u.apply.settle = settle_of(node, row, &action->u.apply.clip);
    action->u.apply.n_items = row->n;
    action->u.apply.items = node->train->apply_items;
    for (uint32_t i = 0; i < row->n; i++) {
        node->train->apply_items[i] = (dp_apply_item){.root = row->items[i].root,
                                                      .bytes = row->items[i].bytes,
                                                      .q = row->items[i].q,
                                                      .first = row->items[i].first,
                                                      .end = row->items[i].end};
    }
    action->u.apply.cuts = row->cuts;
    action->u.apply.taken = row->own_taken;
    action->u.apply.contributors = row->contributors;
    if (action->u.apply.settle != DP_SETTLE_NONE) {
        train->pending.settled = true;
    }
    if (action->u.apply.settle == DP_SETTLE_INCLUDED && train->pending.made_here) {
        train->revived = false; /* Nobody else speaks for this node. */
    }
    if (action->u.apply.settle == DP_SETTLE_INCLUDED) {
        dp_mix_counted(node->mix);
    }
    node->standing.applying = true;
}

void dp_train_applied(dp_node *node, const dp_event *event)
{
    if (!node->standing.applying || event->u.applied.round != node->standing.applied + 1) {
        return;
    }
    node->standing.applying = false;
    if (event->u.applied.status != DP_OK) {
        dp_node_note(node, DP_NOTE_DIVERGED, event->u.applied.round, NULL, 0, 0, "apply failed");
        dp_train_reload(node, "state");
        return;
    }
    node->standing.tensor_bytes = event->u.applied.tensor_bytes;
    dp_node_note(node, DP_NOTE_APPLIED, event->u.applied.round, NULL, 0, 0, "");
    dp_train_arrive(node, event->u.applied.round, &event->u.applied.tensor_root);
    if (node->standing.applied == node->ledger.round) {
        dp_node_repeat_now(node); /* An offer to vote waits for the state. */
    }
    dp_node_changed(node);
}
