/* Where the trainer starts: own checkpoints, the first weights, the seed, a peer's state; and the
 * work that is brought back afterwards. */
#include <string.h>

#include "base/assert.h"
#include "base/trainer/trainer_msg.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fetch.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "gossip/round/round.h"
#include "gossip/training/state_load.h"
#include "gossip/training/training.h"

enum { CKPT_NONE = DP_SAVED_MAX };

static bool can_replay_from(const dp_node *node, uint64_t round)
{
    dp_hash digest;

    return round == node->ledger.round ||
           (round < node->ledger.round && dp_chain_digest(node, round, &digest) &&
            dp_chain_row(node, round + 1) != NULL &&
            node->ledger.round - round < DP_HISTORY_ROUNDS);
}

static uint32_t best_ckpt(const dp_node *node)
{
    uint32_t best = CKPT_NONE;

    dp_assert(node->standing.state == DP_TRAINER_EMPTY);
    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        const dp_saved *ckpt = &node->saved->at[i];
        bool known = false;
        if (!ckpt->has || ckpt->bad || !can_replay_from(node, ckpt->round)) {
            continue;
        }
        if (!dp_saved_is_certified(node, ckpt->round, &ckpt->root, &known) && known) {
            continue;
        }
        if (best == CKPT_NONE || ckpt->round > node->saved->at[best].round) {
            best = i;
        }
    }
    return best;
}

void dp_train_lost(dp_node *node, const dp_hash *root)
{
    dp_pending *pending = &node->train->pending;

    /* A trainer that has it in memory goes on with it. The blob may come back from others; nobody
     * else has the vector. */
    pending->lost |= pending->has && dp_hash_equal(&pending->a_root, root);
    pending->blob_lost |= pending->has && dp_hash_equal(&pending->blob_root, root);
    dp_saved_lost(node, root);
}

void dp_train_came(dp_node *node, const dp_hash *root)
{
    if (!dp_broken(146) && dp_hash_equal(&node->train->pending.blob_root, root)) {
        node->train->pending.blob_lost = false;
    }
}

/* The chain is as long here as anybody linked says; a voter may go by its own. */
static bool knows_the_chain(const dp_node *node)
{
    if (dp_catchup_behind(node) || node->chain->op != 0) {
        return false;
    }
    if (dp_ledger_voter(&node->ledger, &node->self) != DP_NOBODY) {
        return true;
    }
    for (uint32_t i = 1; i < dp_members_count(node->members); i++) {
        const dp_member *member = dp_members_at(node->members, i);
        if (member->linked && member->has_summary) {
            return true;
        }
    }
    return false;
}

static bool peers_have_a_state(const dp_node *node)
{
    for (uint32_t i = 1; i < dp_members_count(node->members); i++) {
        const dp_member *member = dp_members_at(node->members, i);
        if (member->linked && member->has_summary && member->summary.saved_round > 0) {
            return true;
        }
    }
    return false;
}

/* Theta of round 0: the manifest's object, which is fetched only by nodes that need it, or drawn
 * from the seed. */
static void begin(dp_node *node)
{
    const dp_manifest *manifest = &node->manifest;
    dp_train *train = node->train;

    dp_assert(node->standing.state == DP_TRAINER_EMPTY);
    if (!dp_train_fetch(node, &manifest->init, manifest->init_bytes)) {
        return;
    }
    if (dp_hash_is_zero(&manifest->init)) {
        dp_out_add(&node->out, DP_DO_TRAINER_INIT);
    } else {
        dp_action *action = dp_out_add(&node->out, DP_DO_TRAINER_LOAD);
        action->u.load.root = manifest->init;
    }
    train->moving_round = 0;
    train->moving_root = manifest->init;
    node->standing.state = DP_TRAINER_MOVING;
}

void dp_train_load(dp_node *node)
{
    dp_train *train = node->train;

    dp_assert(node->standing.state == DP_TRAINER_EMPTY);
    if (!knows_the_chain(node) || !dp_time_reached(node->now, train->barred)) {
        return;
    }
    const uint32_t best = best_ckpt(node);
    if (best != CKPT_NONE && dp_catchup_prefers_state(node, node->saved->at[best].round)) {
        dp_catchup_state(node);
        return;
    }
    if (best != CKPT_NONE) {
        dp_action *action = dp_out_add(&node->out, DP_DO_TRAINER_LOAD);
        action->u.load.round = node->saved->at[best].round;
        action->u.load.root = node->saved->at[best].root;
        train->moving_round = node->saved->at[best].round;
        train->moving_root = node->saved->at[best].root;
        node->standing.state = DP_TRAINER_MOVING;
        return;
    }
    /* A replay that has led to a diverged state once would do so again. */
    const bool from_peers = train->strikes > 0 && peers_have_a_state(node);
    /* A state may never be certified without this node (dpsim, swarm 6044). */
    const bool from_start =
        node->ledger.round <= DP_WINDOW_ROUNDS || dp_catchup_needs_no_state(node);
    if (from_start && node->catchup->stuck_at.us == 0 && !from_peers) {
        begin(node);
        return;
    }
    dp_catchup_state(node);
}

void dp_train_unload(dp_node *node)
{
    dp_train *train = node->train;

    node->standing.state = DP_TRAINER_EMPTY;
    node->standing.has_theta = false;
    node->standing.applying = false;
    train->steps =
        0; /* A loaded state has none, and no record may list a publication of 0 steps. */
    train->tokens = 0;
    node->leftover = false;
    if (train->training) {
        dp_out_add(&node->out, DP_DO_TRAIN_STOP);
        train->training = false;
    }
    /* A state that is loaded empties the work buffers: F is there again only with its RESTORE. */
    dp_mix_trainer_down(node->mix, node->now, &node->out);
    dp_node_changed(node);
}

void dp_train_unstick(dp_node *node)
{
    if (dp_catchup_frees_trainer(node)) {
        node->train->publishing = false;
        dp_train_unload(node);
    }
}

void dp_train_reload(dp_node *node, const char *cause)
{
    dp_assert(cause != NULL);
    dp_node_note(node, DP_NOTE_CATCHUP, node->ledger.round, NULL, node->standing.applied,
                 node->ledger.round, cause);
    dp_train_unload(node);
}

void dp_train_diverged(dp_node *node)
{
    dp_train *train = node->train;

    train->strikes++;
    train->diverged++;
    train->matches = 0;
    const bool rests = train->strikes >= DP_STRIKES_MAX;
    if (rests) {
        const uint32_t more = train->strikes - DP_STRIKES_MAX;
        train->barred = dp_time_after(
            node->now, DP_BAR_US << (more < DP_BAR_DOUBLINGS_MAX ? more : DP_BAR_DOUBLINGS_MAX));
    }
    dp_node_note(node, DP_NOTE_DIVERGED, node->standing.applied, NULL, train->diverged, 0,
                 rests ? "it differs again; the trainer pauses, then loads the certified state"
                       : "the trainer loads the certified state");
    dp_saved_mark_bad(node, &train->moving_root);
    dp_round_state_withdraw(node);
    dp_train_reload(node, "state");
}

/* theta of round stands with this tensor root. */
void dp_train_arrive(dp_node *node, uint64_t round, const dp_hash *tensor_root)
{
    dp_train *train = node->train;
    dp_hash digest;
    dp_hash certified;

    if (!dp_chain_digest(node, round, &digest)) {
        dp_train_reload(node, "state"); /* The chain has run away meanwhile. */
        return;
    }
    node->standing.applied = round;
    node->standing.has_theta = true;
    node->standing.tensor_root = *tensor_root;
    node->standing.state_root = dp_state_root(round, tensor_root, &digest);
    train->save_at = (dp_time){0};
    train->saves = 0;
    dp_catchup_free(node);
    if (dp_chain_certified(node, round, &certified) &&
        !dp_hash_equal(&certified, &node->standing.state_root)) {
        dp_train_diverged(node);
    }
}

void dp_train_at(dp_node *node, const dp_event *event)
{
    dp_train *train = node->train;

    if (node->standing.state != DP_TRAINER_MOVING || event->u.at.round != train->moving_round) {
        return;
    }
    if (event->u.at.status != DP_OK) {
        dp_saved_mark_bad(node, &train->moving_root);
        dp_train_reload(node, "the trainer cannot load the checkpoint");
        return;
    }
    node->standing.state = DP_TRAINER_SET;
    train->fresh = true;
    train->training = false;
    train->train_round = 0;
    dp_chain_cancel(node, event->u.at.round);
    dp_train_arrive(node, event->u.at.round, &event->u.at.root);
    dp_node_changed(node);
}

/* lambda = 0.5^(gap / 4) in Q16, 0 beyond DP_GAP_MAX rounds (SAFETY B8). */
uint32_t dp_train_lambda(uint64_t gap)
{
    static const uint32_t quarter[4] = {65536, 55109, 46341, 38968};

    return gap > DP_GAP_MAX ? 0 : quarter[gap % 4] >> (gap / 4);
}

/* The factor for the last round of the gap. Work begins to age anew after the buffers were emptied:
 * otherwise the node would lose each round's work in the next one, and a slow node would never have
 * any to publish. */
uint32_t dp_train_fade(dp_train *train, const dp_history_row *row)
{
    const uint64_t since = row->round - train->emptied;
    const uint64_t age = row->gap < since ? row->gap : since;

    if (age > DP_GAP_MAX) {
        train->emptied = row->round;
        train->empty = true;
        return 0;
    }
    return dp_train_lambda(1);
}

/* The outcome of the pending publication by the chain. own_round of the chain is not after the
 * round of the publication. */
static uint32_t outcome_of(const dp_node *node, uint32_t *clip)
{
    const dp_pending *pending = &node->train->pending;
    const dp_chain *chain = node->chain;
    const bool included = chain->own_round == pending->ready.round &&
                          (dp_hash_equal(&chain->own_root, &pending->ready.root) || dp_broken(21));

    *clip = included ? chain->own_clip : 0;
    return included ? DP_SETTLE_INCLUDED : DP_SETTLE_LEFT_OUT;
}

/* The chain counts a later publication of this node than its disk knows of, or another one of the
 * same round: the disk is an old copy, or was one when it published again, and the work in it was
 * part of that publication (SAFETY B5). */
static bool is_stale(const dp_node *node)
{
    const dp_pending *pending = &node->train->pending;
    const dp_chain *chain = node->chain;
    const bool other = chain->own_round == pending->ready.round &&
                       !dp_hash_equal(&chain->own_root, &pending->ready.root) && !dp_broken(21) &&
                       !dp_broken(217);
    const bool stale = pending->has && (chain->own_round > pending->ready.round || other);
    return stale && !dp_broken(25);
}

static void bring_back_pending(dp_node *node, uint32_t lambda)
{
    dp_pending *pending = &node->train->pending;
    dp_action *action = dp_out_add(&node->out, DP_DO_TRAINER_RESTORE);

    dp_assert(lambda <= 65536);
    dp_assert(node->train->pending.has);
    action->u.restore.round = pending->ready.round;
    action->u.restore.a_root = pending->a_root;
    action->u.restore.blob_root = pending->blob_root;
    action->u.restore.ready_root = pending->ready.root;
    action->u.restore.cuts = pending->cuts;
    action->u.restore.taken = node->chain->own_taken;
    action->u.restore.steps = pending->ready.steps;
    action->u.restore.tokens = pending->ready.tokens + pending->ready.carried;
    action->u.restore.carried = pending->ready.carried;
    action->u.restore.lambda = 65536;
    action->u.restore.settle = DP_SETTLE_NONE;
    pending->settled = !dp_train_undecided(node);
    if (pending->settled) {
        action->u.restore.settle = outcome_of(node, &action->u.restore.clip);
        action->u.restore.lambda = lambda;
    }
}

static dp_reach farther(dp_reach a, dp_reach b)
{
    return (dp_reach){.leased = a.leased > b.leased ? a.leased : b.leased,
                      .own = a.own > b.own ? a.own : b.own};
}

dp_reach dp_train_reach(const dp_node *node)
{
    static const dp_lease none;
    const dp_lease *lease = dp_ledger_lease(&node->ledger, &node->self);
    dp_reach reach = lease != NULL ? lease->reach : none.reach;

    const uint64_t granted = lease != NULL ? lease->granted : 0;
    dp_mix_frozen_view frozen;

    if (node->train->pending.has && !dp_broken(62)) {
        reach = farther(reach, node->train->pending.ready.reach);
    }
    if (dp_mix_frozen_row(node->mix, &frozen) && !dp_broken(62)) {
        reach = farther(reach, frozen.reach);
    }
    if (!dp_broken(109)) {
        reach.leased = reach.leased < granted ? reach.leased : granted; /* A FORK took some back. */
    }
    return reach;
}

/* A FORK goes on without the records that had granted the samples: they will be others'. */
static bool is_beyond(const dp_node *node, const dp_reach *reach)
{
    const dp_lease *lease = dp_ledger_lease(&node->ledger, &node->self);

    return reach->leased > (lease != NULL ? lease->granted : 0);
}

/* The trainer is new: bring back the work that an earlier one had published or frozen. Replay is
 * over. */
void dp_train_bring_back(dp_node *node)
{
    dp_train *train = node->train;
    dp_pending *pending = &train->pending;
    dp_mix_frozen_view frozen;
    const bool has_frozen = dp_mix_frozen_row(node->mix, &frozen);
    const bool stale = is_stale(node);
    const bool beyond = train->spoiled ||
                        (pending->has && is_beyond(node, &pending->ready.reach)) ||
                        (has_frozen && is_beyond(node, &frozen.reach));
    const uint32_t lambda = stale || beyond ? 0 : dp_train_lambda(node->chain->gap);

    dp_assert(node->standing.has_theta);
    train->fresh = false;
    train->spoiled = false;
    train->empty = !pending->has && !has_frozen;
    if (lambda < 65536 && (pending->has || has_frozen)) {
        dp_node_note(node, DP_NOTE_DISCARDED, node->ledger.round, NULL, 65536 - lambda, 0,
                     stale    ? "old copy"
                     : beyond ? "its samples are outside of this node's lease"
                              : "lambda");
    }
    if (stale) {
        pending->settled = true;
    } else if (pending->has && (pending->lost || pending->blob_lost) && !dp_broken(142)) {
        /* Other nodes may hold its blob, so a record may still count it; the residual that it left,
         * or all of it if no record counts it, is gone. */
        if (!dp_broken(144)) {
            dp_node_note(node, DP_NOTE_DISCARDED, pending->ready.round, NULL, 65536, 0,
                         "the disk lost this node's published update");
        }
        pending->settled = true;
    } else if (pending->has && !(dp_broken(37) && node->ledger.n_forks > 0)) {
        bring_back_pending(
            node, lambda); /* Its objects are durable, even if the row is still being written. */
    }
    const bool inside =
        has_frozen && !dp_mix_locked(node->mix) &&
        (lambda == 0 || (pending->has && dp_hash_equal(&pending->f_root, &frozen.f_root)));
    if (inside) {
        if (lambda == 0 || pending->durable) {
            dp_mix_folded(node->mix, node->now,
                          &node->out); /* Worth nothing, or inside a already. */
        }
        dp_mix_trainer_up(node->mix);
    } else {
        dp_mix_trainer_restore(node->mix, node->now, lambda, &node->out);
    }
}
