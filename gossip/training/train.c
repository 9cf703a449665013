/* The trainer's side of a round: replay, apply, settle, train, publish. */
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

/* A checkpoint that was not made is asked for again after 5 s, 10 s, up to 5 minutes. */
#define SAVE_AGAIN_US (5 * DP_SECOND)
enum { SAVE_DOUBLINGS_MAX = 6 };

/* ---- training ---- */

void dp_train_certified(dp_node *node, uint64_t round)
{
    dp_train *train = node->train;
    dp_hash certified;

    if (!node->standing.has_theta || node->standing.applied != round || node->standing.applying ||
        !dp_chain_certified(node, round, &certified)) {
        return;
    }
    if (!dp_hash_equal(&certified, &node->standing.state_root)) {
        dp_train_diverged(node);
    } else if (train->strikes > 0 && ++train->matches >= DP_MATCHES_MIN) {
        train->strikes = 0;
        train->matches = 0;
    }
}

/* The state at hand has to be a checkpoint, whatever the driver's cadence: a voter's disk must lead
 * to the newest state, and blobs are kept for DP_HISTORY_ROUNDS at most (SAFETY G5). */
static bool must_save(const dp_node *node)
{
    return dp_ledger_voter(&node->ledger, &node->self) != DP_NOBODY &&
           node->standing.applied >= dp_saved_own(node) + DP_HISTORY_ROUNDS / 2;
}

/* The driver writes a checkpoint at its own cadence, and the write may fail: it is asked again. */
static void save(dp_node *node)
{
    dp_train *train = node->train;
    dp_hash certified;
    const uint64_t round = node->standing.applied;
    const dp_history_row *row = dp_chain_row(node, round);

    if (row == NULL || dp_saved_is_own(node, round) ||
        !dp_time_reached(node->now, train->save_at) || (dp_broken(234) && train->saves > 0) ||
        !dp_chain_certified(node, round, &certified)) {
        return;
    }
    train->save_at = dp_time_after(node->now, SAVE_AGAIN_US << train->saves);
    train->saves += train->saves < SAVE_DOUBLINGS_MAX ? 1 : 0;
    dp_action *action = dp_out_add(&node->out, DP_DO_SAVE);
    action->u.save.round = round;
    action->u.save.slot = row->slot;
    action->u.save.state_root = certified;
    action->u.save.tensor_root = node->standing.tensor_root;
    action->u.save.must = must_save(node);
}

/* When a checkpoint is asked for again; DP_NEVER: the state is one, or none may be made of it. */
static dp_time save_wake(const dp_node *node)
{
    const dp_train *train = node->train;
    const bool waits = node->standing.state == DP_TRAINER_SET && train->saves > 0 &&
                       !dp_saved_is_own(node, node->standing.applied);

    return waits && train->save_at.us > node->now.us ? train->save_at : DP_NEVER;
}

static bool is_alive(const void *context, const dp_peer *peer)
{
    const dp_node *node = context;
    const uint32_t index = dp_node_member_index(node, peer);

    return index == 0 || (index != DP_MEMBER_NONE &&
                          dp_members_at(node->members, index)->state == DP_MEMBER_ALIVE);
}

/* In a run of more members than a record lists not everybody publishes for every round. */
static bool is_turn(dp_node *node, uint64_t elapsed_us)
{
    dp_train *train = node->train;

    dp_assert(node->ledger.n_members > 0);
    if (node->ledger.n_members <= dp_turn_members(&node->ledger)) {
        return true;
    }
    if (train->turn_round != node->ledger.round + 1) {
        train->turn_round = node->ledger.round + 1;
        train->turn_before = dp_turn_before(&node->ledger, &node->self, is_alive, node);
    }
    return train->turn_before <
           dp_turn_allowed(&node->ledger, elapsed_us, (uint64_t)node->manifest.round_ms * 1000);
}

/* The range of the vector that this node sums in the next round. */
static uint32_t own_share(const dp_node *node)
{
    const dp_part_layout *layout = &node->ledger.layout;
    uint32_t share = 0;

    dp_assert(node->ledger.parted);
    dp_assert(node->ledger.layout.cuts.n <= DP_PARTS_MAX);
    for (uint32_t p = 0; p < layout->cuts.n; p++) {
        if (dp_peer_equal(&layout->owners[p], &node->self)) {
            share += dp_part_end(&layout->cuts, p) - layout->cuts.first[p];
        }
    }
    return share;
}

/* How long this node trains for a round before its own part of it is due: less behind a thin line,
 * over which others' updates came late too. */
static uint64_t part_us(const dp_node *node)
{
    const dp_train *train = node->train;
    const dp_round *round = node->round;
    const uint64_t round_us = (uint64_t)node->manifest.round_ms * 1000;
    const uint32_t alive = dp_members_alive(node->members);

    if (node->standing.uplink == 0 || !train->pending.made_here || alive < 2) {
        return round_us;
    }
    const uint64_t late_us = dp_time_between(round->slot_opened, round->opened);
    const uint64_t bytes = train->pending.ready.bytes;
    const uint64_t send_us =
        node->ledger.parted ? dp_deadline_scatter(bytes, own_share(node), node->standing.uplink)
                            : dp_deadline_send(bytes, alive - 1, node->standing.uplink);
    return dp_deadline_part(round_us, late_us, send_us);
}

/* When this node's part of the round begins. A script may come long after the round was opened: an
 * update of its first steps would set the length that those of the next rounds are clipped to. */
static dp_time part_begins(const dp_node *node)
{
    const dp_time opened = node->round->opened;
    const dp_time scripted = node->train->scripted_at;

    return scripted.us > opened.us ? scripted : opened;
}

static bool has_had_its_part(const dp_node *node)
{
    return dp_time_between(part_begins(node), node->now) >= part_us(node) ||
           node->train->steps >= node->manifest.inner_steps_max;
}

static bool others_wait(const dp_node *node)
{
    const uint32_t others = dp_round_others_ready(node);

    return others > 0 && others >= dp_deadline_enough(dp_round_active(node));
}

bool dp_train_is_due(const dp_node *node)
{
    return has_had_its_part(node) || others_wait(node);
}

static bool may_publish(dp_node *node)
{
    const dp_train *train = node->train;
    const uint64_t elapsed = dp_time_between(node->round->opened, node->now);

    if (node->mode != DP_MODE_SYNC || train->steps == 0 || dp_train_undecided(node) ||
        (train->pending.has && !train->pending.durable) || train->op != 0 ||
        dp_mix_busy(node->mix) || dp_mix_locked(node->mix) || !is_turn(node, elapsed)) {
        return false;
    }
    return has_had_its_part(node) || DP_BUGGIFY_HALF(node, DP_BUG_EARLY_PUBLISH) ||
           others_wait(node);
}

static void open_trainer(dp_node *node)
{
    const bool whole = dp_train_fetch_data(node);

    if (whole && !node->train->opening && !node->config.observer) {
        node->train->opening = true;
        dp_out_add(&node->out, DP_DO_TRAINER_OPEN);
    }
}

void dp_train_start(dp_node *node)
{
    open_trainer(node);
}

void dp_train_stop(dp_node *node)
{
    dp_train *train = node->train;

    if (train->training) {
        dp_out_add(&node->out, DP_DO_TRAIN_STOP);
        train->training = false;
        train->train_round = 0;
    }
}

static void train_on(dp_node *node)
{
    dp_train *train = node->train;
    const bool may = dp_node_can_train(node) && !node->paused && !node->halted && !node->leaving &&
                     node->mode != DP_MODE_LEFT &&
                     dp_ledger_member(&node->ledger, &node->self) != NULL;

    dp_assert(node->standing.state == DP_TRAINER_SET);
    dp_assert(!node->train->publishing);
    if (!may) {
        dp_train_stop(node);
        return;
    }
    const dp_lease *lease = dp_ledger_lease(&node->ledger, &node->self);
    dp_assert(lease != NULL); /* A member has one. */
    if (!train->training || train->train_round != node->standing.applied + 1 ||
        train->train_granted != lease->granted) {
        dp_action *action = dp_out_add(&node->out, DP_DO_TRAIN);
        action->u.train.round = node->standing.applied + 1;
        action->u.train.tokens = node->ledger.tokens;
        action->u.train.reach = dp_train_reach(node);
        action->u.train.n_ranges =
            dp_lease_after(lease, action->u.train.reach.leased, action->u.train.ranges);
        train->training = true;
        train->train_round = node->standing.applied + 1;
        train->train_granted = lease->granted;
    }
    if (may_publish(node)) {
        dp_action *action = dp_out_add(&node->out, DP_DO_PUBLISH);
        action->u.publish.round = node->standing.applied + 1;
        action->u.publish.dense = train->exchanges >= 2;
        action->u.publish.keep =
            dp_node_keep(node, node->standing.applied + (dp_broken(68) ? 0 : 1));
        if (node->ledger.parted) {
            action->u.publish.cuts = node->ledger.layout.cuts;
        }
        train->publish_cuts = action->u.publish.cuts;
        train->publishing = true;
        train->publish_base = node->ledger.base;
        train->publish_order = dp_mix_order(node->mix);
    }
}

void dp_train_advance(dp_node *node)
{
    dp_train *train = node->train;

    if (node->standing.state == DP_TRAINER_OFF) {
        open_trainer(node);
        return;
    }
    if (node->standing.state == DP_TRAINER_EMPTY) {
        dp_train_load(node);
        return;
    }
    if (node->standing.state == DP_TRAINER_MOVING) {
        return;
    }
    if (node->standing.applied == node->ledger.round) {
        dp_round_state_own(node);
        if (dp_round_take_certified(node)) {
            dp_train_certified(node, node->ledger.round);
        }
    }
    if (node->standing.state != DP_TRAINER_SET || node->standing.applying || train->publishing) {
        /* One thing at a time: the update that is being published belongs to the present base. */
        return;
    }
    if (node->standing.applied < node->ledger.round &&
        (!dp_broken(27) || train->fresh || !may_publish(node))) {
        if (train->fresh && node->standing.applied == train->moving_round && !dp_broken(235)) {
            save(node); /* It was fetched: the next life shall find it too (SAFETY G5). */
        }
        dp_train_replay(node);
        return;
    }
    dp_round_open(node);
    if (train->fresh) {
        dp_train_bring_back(node);
    }
    save(node);
    train_on(node);
}

void dp_train_tick(dp_node *node)
{
    if (node->train->barred.us != 0 && dp_time_reached(node->now, node->train->barred)) {
        node->train->barred = (dp_time){0};
        dp_node_changed(node);
    }
    if (node->train->row_failed) {
        dp_train_write_row(node);
    }
}

static dp_time publish_wake(const dp_node *node)
{
    const dp_train *train = node->train;

    if (node->standing.state == DP_TRAINER_EMPTY && !dp_time_reached(node->now, train->barred)) {
        return train->barred;
    }
    if (node->standing.state != DP_TRAINER_SET || !train->training || dp_train_undecided(node) ||
        node->round->opened.us == 0) {
        return DP_NEVER;
    }
    const dp_time due = dp_time_after(part_begins(node), part_us(node));
    return due.us > node->now.us ? due : DP_NEVER; /* After it every TRAINED event asks again. */
}

dp_time dp_train_wake(const dp_node *node)
{
    const dp_time publish = publish_wake(node);
    const dp_time save_again = save_wake(node);

    return publish.us < save_again.us ? publish : save_again;
}

/* ---- events ---- */

/* In a run of any model work may be there without a script: its last steps, or an update of it that
 * a record left out. Others wait for it until it is published. */
static void count_leftover(dp_node *node)
{
    const bool leftover =
        dp_manifest_external(&node->manifest) && !node->scripted && node->train->steps > 0;

    if (leftover != node->leftover) {
        node->leftover = leftover;
        dp_node_repeat_now(node);
        dp_node_changed(node);
    }
}

static void trainer_down(dp_node *node)
{
    dp_train *train = node->train;

    node->standing.state = DP_TRAINER_OFF;
    node->standing.has_theta = false;
    node->standing.applying = false;
    node->scripted = false;
    node->leftover = false;
    train->publishing = false;
    train->training = false;
    train->train_round = 0;
    train->steps = 0;
    if (train->pending.has && !train->pending.settled && !dp_train_undecided(node)) {
        train->pending.settled = true; /* The RESTORE settles it. */
    }
    dp_round_trainer_down(node);
    dp_mix_trainer_down(node->mix, node->now, &node->out);
    dp_node_changed(node);
}

void dp_train_event(dp_node *node, const dp_event *event)
{
    dp_train *train = node->train;

    switch ((int)event->type) {
    case DP_EV_TRAINER_UP:
        node->standing.state = DP_TRAINER_EMPTY;
        train->opening = true;
        dp_node_repeat_now(node);
        dp_node_changed(node);
        break;
    case DP_EV_TRAINER_DOWN:
        trainer_down(node);
        break;
    case DP_EV_TRAINER_AT:
        dp_train_at(node, event);
        break;
    case DP_EV_SCRIPT:
        node->scripted = event->u.script.present;
        train->scripted_at = node->scripted ? node->now : train->scripted_at;
        count_leftover(node);
        dp_node_repeat_now(node); /* Others wait for its updates, or do not any more. */
        dp_node_changed(node);
        break;
    case DP_EV_TRAINED:
        if (node->standing.state != DP_TRAINER_SET) {
            break; /* Of work buffers that a load has emptied since. */
        }
        train->steps = event->u.trained.steps;
        if (train->empty && train->steps > 0) {
            train->empty = false;
            train->emptied = node->standing.applied;
        }
        train->tokens = event->u.trained.tokens;
        if (event->u.trained.step_us != 0) { /* The first step of a publication is not measured. */
            node->standing.step_us = event->u.trained.step_us;
        }
        count_leftover(node);
        if (may_publish(node)) { /* Else progress changes nothing, */
            dp_node_changed(node);
        }
        if (node->manifest.pairs == DP_ON && dp_mix_busy(node->mix) && dp_train_is_due(node)) {
            dp_node_changed(node); /* ... unless an exchange has to end for it. */
        }
        break;
    case DP_EV_PUBLISHED:
        dp_train_published(node, event);
        count_leftover(node);
        break;
    case DP_EV_APPLIED:
        dp_train_applied(node, event);
        count_leftover(node);
        break;
    case DP_EV_SAVED:
        if (dp_saved_own(node) == 0) {
            dp_node_repeat_now(node); /* An offer to vote waits for it. */
        }
        dp_saved_add(node, event->u.saved.round, &event->u.saved.tensor_root,
                     event->u.saved.tensor_bytes, false);
        dp_saved_drop_before(node, event->u.saved.round,
                             node->standing.state == DP_TRAINER_MOVING ? &node->train->moving_root
                                                                       : NULL);
        break;
    default: /* The caller sends nothing else. */
        break;
    }
}

dp_status dp_train_open(dp_node *node, uint32_t listed_max)
{
    node->train = dp_reserve(1, sizeof *node->train);
    if (node->train == NULL) {
        return DP_NOMEM;
    }
    node->train->apply_items = dp_reserve(listed_max, sizeof *node->train->apply_items);
    return node->train->apply_items != NULL ? DP_OK : DP_NOMEM;
}

void dp_train_close(dp_node *node)
{
    if (node->train != NULL) {
        dp_free(node->train->apply_items);
    }
    dp_free(node->train);
}

void dp_train_frozen(dp_node *node)
{
    if (!node->leftover) { /* No step will tell of it again. */
        node->train->steps = 0;
    }
}

void dp_train_mixed(dp_node *node)
{
    node->train->exchanges++;
    node->train->mixed++;
}
