#include "gossip/node/node.h"

#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/admin/admin_command.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/proof.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "gossip/node/node_steps.h"
#include "gossip/parts/part_round.h"
#include "gossip/requests/leave.h"
#include "gossip/requests/requests.h"
#include "gossip/requests/revoke_request.h"
#include "gossip/round/claim.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"
#include "gossip/training/state_load.h"
#include "gossip/training/training.h"

void dp_node_fence(dp_node *node, const dp_peer *peer, uint64_t incarnation)
{
    dp_assert(node->started);
    if (!dp_peer_equal(peer, &node->self)) {
        dp_mix_fence(node->mix, node->now, peer, incarnation, &node->out);
        return;
    }
    /* The other nodes have given up their exchanges with this node: this node's half is dropped too
     * (SAFETY C5). */
    if (dp_mix_fence_self(node->mix, node->now, incarnation, &node->out)) {
        dp_node_note(node, DP_NOTE_DISCARDED, node->ledger.round, NULL, 65536, 0, "fenced");
        if (node->standing.state == DP_TRAINER_SET) {
            dp_train_reload(node, "fenced");
        }
    }
}

/* ---- mode ---- */

static void set_mode(dp_node *node, dp_mode mode, const char *cause)
{
    dp_assert(cause != NULL);
    if (node->mode != mode) {
        dp_node_note(node, DP_NOTE_MODE, node->ledger.round, NULL, (uint64_t)node->mode,
                     (uint64_t)mode, cause);
        node->mode = mode;
        dp_node_changed(node);
    }
}

static void update_mode(dp_node *node)
{
    const bool synced = node->config.observer ? !dp_catchup_behind(node)
                                              : node->standing.has_theta &&
                                                    (node->standing.applied == node->ledger.round ||
                                                     node->mode != DP_MODE_JOINING);

    if (node->mode == DP_MODE_LEFT) {
        dp_leave_tick(node);
        return;
    }
    if (node->ledger.slot > 0 && dp_ledger_barred(&node->ledger, &node->self)) {
        set_mode(node, DP_MODE_LEFT, "removed");
        dp_leave_taken_out(node);
    } else if (dp_node_revoked(node, &node->self)) {
        set_mode(node, DP_MODE_LEFT, "revoked");
    } else if (node->halted) {
        set_mode(node, DP_MODE_HALTED, dp_proof_of_votes(node) ? "voted twice" : "two forks");
    } else if (node->paused) {
        set_mode(node, DP_MODE_PAUSED, "owner");
    } else if (!synced) {
        if (node->mode != DP_MODE_GOSSIP && node->mode != DP_MODE_SYNC) {
            set_mode(node, DP_MODE_JOINING, "no state");
        }
    } else if (dp_heartbeat_quorum(&node->beat) &&
               !(DP_BUGGIFY(node, DP_BUG_FALLBACK) && node->now.us / DP_SECOND % 8 == 0)) {
        set_mode(node, DP_MODE_SYNC, "quorum");
    } else if (node->mode != DP_MODE_JOINING ||
               dp_time_between(node->started_at, node->now) > node->beat.fallback_us) {
        set_mode(node, DP_MODE_GOSSIP, "no quorum");
    }
}

/* Work is exchanged in pairs while no majority is heard; and, where the run says so, between its
 * rounds, until the own part of the next one is due. */
static bool exchanges(const dp_node *node)
{
    if (node->manifest.exchange == DP_EXCHANGE_GRADIENTS) {
        return false; /* Nobody has work of its own. */
    }
    if (node->mode == DP_MODE_SYNC && node->manifest.pairs == DP_ON) {
        return !dp_train_undecided(node) && !dp_train_is_due(node);
    }
    return node->mode == DP_MODE_GOSSIP;
}

static void tell_parts(dp_node *node)
{
    const dp_train *train = node->train;
    dp_summary summary = {
        .slot = node->ledger.slot,
        .fork = dp_fork_tag(&node->ledger.fork),
        .head = node->ledger.head,
        .base = node->ledger.base,
        .round = node->standing.applied,
        .mode = node->mode,
        .has_trainer = node->standing.state == DP_TRAINER_SET && !node->config.observer &&
                       !node->leaving && dp_node_can_train(node),
        .step_us =
            node->standing.step_us < UINT32_MAX ? (uint32_t)node->standing.step_us : UINT32_MAX};
    const dp_roster_entry *own = dp_ledger_member(&node->ledger, &node->self);
    const dp_mix_now mix = {.gossip = exchanges(node) && train->training && !train->publishing &&
                                      !node->standing.applying &&
                                      node->standing.applied == node->ledger.round && own != NULL &&
                                      own->fenced < node->config.incarnation,
                            .base = node->ledger.base,
                            .round = node->standing.applied,
                            .clip_median = node->ledger.clip_median};

    dp_assert(node->standing.applied <= node->ledger.round || !node->standing.has_theta);
    const dp_saved *const ckpt = dp_saved_told(node);
    if (ckpt != NULL) {
        summary.saved_round = ckpt->round;
        summary.saved_root = ckpt->root;
        summary.saved_bytes = ckpt->bytes;
    }
    dp_members_tell(node->members, &summary);
    dp_mix_set(node->mix, node->now, &mix, &node->out);
    if (node->mode == DP_MODE_SYNC && !mix.gossip && dp_mix_busy(node->mix)) {
        (void)dp_mix_finish(node->mix, node->now, &node->out);
    }
}

/* ---- other events ---- */

static void on_link_up(dp_node *node, const dp_event *event)
{
    if (dp_invite_bars(node, &event->u.link.peer, event->u.link.credential)) {
        dp_out_add(&node->out, DP_DO_HANGUP)->u.peer = event->u.link.peer;
        return;
    }
    const uint32_t index = dp_members_link_up(
        node->members, node->now, node->wall_ms, &event->u.link.peer, &event->u.link.addr,
        event->u.link.credential, event->u.link.outgoing, &node->out);
    dp_vote vote;

    if (index == DP_MEMBER_NONE) {
        return;
    }
    const dp_roster_entry *entry = dp_ledger_member(&node->ledger, &event->u.link.peer);
    const uint32_t voter = dp_ledger_voter(&node->ledger, &event->u.link.peer);
    dp_members_mark(node->members, index, entry != NULL, voter != DP_NOBODY);
    dp_picker_link_up(node->picker, node->now, index, &node->out);
    if (voter != DP_NOBODY && dp_commit_echo(node->commit, voter, &vote)) {
        const dp_vote_msg msg = {.vote = vote};
        dp_writer writer = dp_writer_of(node->room, sizeof node->room);
        dp_vote_msg_write(&writer, &msg);
        dp_node_send(node, &event->u.link.peer, dp_view_of(writer.data, writer.size));
    }
    dp_proof_tell(node, &event->u.link.peer);
    dp_fork_tell(node, &event->u.link.peer);
    dp_node_repeat_now(node); /* Tells the new link the announcements that it missed. */
}

static void on_link_down(dp_node *node, const dp_event *event)
{
    const uint32_t index = dp_node_member_index(node, &event->u.link.peer);

    dp_members_link_down(node->members, node->now, node->wall_ms, &event->u.link.peer,
                         event->u.link.cause, &node->out);
    if (index != DP_MEMBER_NONE) {
        dp_picker_link_down(node->picker, node->now, index, &node->out);
    }
    dp_node_changed(node);
}

/* Somebody waits for this object, or has it already. */
static bool is_of_use(const dp_node *node, const dp_hash *root)
{
    return dp_broken(57) || dp_node_holds(node, root) || dp_picker_wants(node->picker, root) ||
           (node->catchup->wants_state && dp_hash_equal(root, &node->catchup->state_root)) ||
           node->kind->knows(node, root);
}

static void on_object(dp_node *node, const dp_event *event)
{
    const dp_hash *root = &event->u.object.root;

    dp_assert(node->started);
    dp_train_came(node, root); /* The row of the publication keeps it after the round too. */
    if (!is_of_use(node, root)) {
        /* Its last piece was being written when it was given up. Nothing else would ever let go of
         * it. */
        dp_action *const action = dp_out_add(&node->out, DP_DO_OBJECT_DROP);
        action->u.keep.root = *root;
        action->u.keep.use = DP_USE_BLOB;
        return;
    }
    dp_node_hold(node, root, event->u.object.size);
    dp_picker_object(node->picker, node->now, root, &node->out);
    node->kind->object(node, root, event->u.object.size);
    dp_catchup_object(node, root);
    dp_train_unstick(node);
    (void)dp_mix_object(node->mix, node->now, root, &node->out);
    dp_node_changed(node);
}

/* This node no longer announces the object, and the rooms of this node that need it request it
 * again. */
static void on_lost(dp_node *node, const dp_hash *root)
{
    dp_node_unhold(node, root);
    dp_train_lost(node, root);
    if (dp_mix_lost(node->mix, node->now, root, &node->out)) {
        dp_node_note(node, DP_NOTE_DISCARDED, node->ledger.round, NULL, 65536, 0,
                     "the disk lost the work of a pair exchange");
    }
    node->kind->lost(node, root);
    dp_node_changed(node);
}

static void on_stored(dp_node *node, const dp_event *event)
{
    const uint32_t op = event->u.stored.op;
    const dp_status status = event->u.stored.status;
    bool written = false;

    dp_node_changed(node);
    if (dp_chain_stored(node, op, status, &written)) {
        if (written) {
            dp_node_record_written(node);
        }
        return;
    }
    if (dp_commit_stored(node->commit, node->now, op, status) ||
        dp_train_stored(node, op, status) || dp_proof_stored(node, op, status) ||
        dp_fork_stored(node, op, status)) {
        return;
    }
    (void)dp_mix_stored(node->mix, node->now, op, status, &node->out);
}

static void on_chunk(dp_node *node, const dp_event *event)
{
    if (event->u.chunk.status == DP_OK) {
        dp_catchup_chunk(node, &event->u.chunk.root);
    }
    if (dp_broken(53) && event->u.chunk.status == DP_BADHASH) {
        dp_event taken = *event; /* A damaged chunk is taken for a good one. */
        taken.u.chunk.status = DP_OK;
        dp_picker_chunk(node->picker, node->now, &taken, &node->out);
        return;
    }
    dp_picker_chunk(node->picker, node->now, event, &node->out);
}

static void on_command(dp_node *node, dp_command command)
{
    dp_node_changed(node);
    switch (command) {
    case DP_COMMAND_PAUSE:
        node->paused = true;
        break;
    case DP_COMMAND_RESUME:
        node->paused = false;
        if (node->mode == DP_MODE_PAUSED) {
            node->mode = DP_MODE_JOINING;
        }
        break;
    case DP_COMMAND_LEAVE:
        dp_leave_ask(node);
        if (dp_ledger_member(&node->ledger, &node->self) == NULL) {
            set_mode(node, DP_MODE_LEFT, "it left before it became a member");
        }
        break;
    case DP_COMMAND_STOP:
        dp_members_leave(node->members, node->now, node->wall_ms, false, &node->out);
        node->changed = false; /* Nothing is begun any more. */
        break;
    }
}

static void on_start(dp_node *node)
{
    dp_assert(node->members != NULL && node->chain->op == 0);
    node->started = true;
    node->started_at = node->now;
    dp_node_tell_members(node);
    if (node->forks->stop.has) {
        dp_commit_end_fork(node->commit, &node->forks->stop.loser);
    }
    dp_commit_begin(node->commit, &node->ledger, &node->self);
    dp_round_open_slot(node, true);
    dp_members_start(node->members, node->now, node->wall_ms, &node->out);
    if (node->train->pending.has) {
        dp_mix_published(node->mix, node->train->pending.f_order);
    }
    dp_mix_start(node->mix, node->now, &node->out);
    for (uint32_t i = 0; i < node->ledger.n_roster; i++) {
        if (node->ledger.roster[i].fenced > 0) {
            dp_node_fence(node, &node->ledger.roster[i].peer, node->ledger.roster[i].fenced);
        }
    }
    dp_train_start(node);
    dp_proof_start(node);
    if (dp_broken(67)) {
        node->ledger.density.n_slow = 0; /* A node that starts begins to count anew. */
        node->ledger.density.n_free = 0;
    }
}

static void dispatch(dp_node *node, const dp_event *event)
{
    switch (event->type) {
    case DP_EV_START:
        on_start(node);
        break;
    case DP_EV_TICK:
        dp_node_changed(node);
        break;
    case DP_EV_LINK_UP:
        on_link_up(node, event);
        break;
    case DP_EV_LINK_DOWN:
        on_link_down(node, event);
        break;
    case DP_EV_MESSAGE:
        dp_node_message(node, event);
        break;
    case DP_EV_STORED:
        on_stored(node, event);
        break;
    case DP_EV_OBJECT:
        on_object(node, event);
        break;
    case DP_EV_OBJECT_LOST:
        on_lost(node, &event->u.object.root);
        break;
    case DP_EV_OBJECT_INFO:
        dp_catchup_chunk(node, &event->u.object.root);
        dp_claim_sized(node, &event->u.object.root, event->u.object.size);
        dp_picker_info(node->picker, node->now, event, &node->out);
        break;
    case DP_EV_CHUNK:
        on_chunk(node, event);
        break;
    case DP_EV_TRAINER_UP:
    case DP_EV_TRAINER_DOWN:
    case DP_EV_TRAINER_AT:
    case DP_EV_SCRIPT:
    case DP_EV_TRAINED:
    case DP_EV_PUBLISHED:
    case DP_EV_APPLIED:
    case DP_EV_SAVED:
        dp_train_event(node, event);
        break;
    case DP_EV_REDUCED:
        if (node->parts != NULL) {
            dp_part_round_reduced(node, event);
            dp_node_changed(node);
        }
        break;
    case DP_EV_CHECKED:
        (void)dp_mix_checked(node->mix, node->now, &event->u.checked.root, event->u.checked.ok,
                             event->u.checked.energy, &node->out);
        (void)dp_round_checked(node, event);
        break;
    case DP_EV_JUDGED:
        dp_judging_judged(node, event);
        break;
    case DP_EV_FROZEN:
        dp_train_frozen(node);
        (void)dp_mix_frozen(node->mix, node->now, event, &node->out);
        break;
    case DP_EV_MIXED:
        dp_train_mixed(node);
        (void)dp_mix_mixed(node->mix, node->now, event, &node->out);
        break;
    case DP_EV_COMMAND:
        on_command(node, event->u.command);
        break;
    case DP_EV_ADMIN_COMMAND:
        *event->u.order.status = dp_admin_command_obey(node, &event->u.order);
        dp_node_changed(node);
        break;
    }
}

/* Nobody trains, nothing is being decided, and every living member is here (idle.h). */
static bool is_idle(const dp_node *node)
{
    return (node->mode == DP_MODE_SYNC || node->mode == DP_MODE_PAUSED) &&
           dp_members_calm(node->members) && !dp_round_anybody_works(node) &&
           !dp_commit_active(node->commit) && node->chain->op == 0 &&
           dp_heartbeat_quorum(&node->beat) && !dp_catchup_behind(node);
}

static void look_whether_idle(dp_node *node)
{
    dp_heartbeat_idle(&node->beat, is_idle(node), node->now);
    dp_members_idle(node->members, node->now);
}

/* Timers of all parts; each looks at its own clock first. */
static void tick(dp_node *node)
{
    dp_assert(node->started);
    dp_heartbeat_clock(&node->beat, node->wall_ms);
    dp_heartbeat_enough(&node->beat, dp_members_large(node->members) ? 2 : 0);
    dp_heartbeat_tick(&node->beat, node->now, node->ledger.slot, node->ledger.round, &node->out);
    dp_members_tick(node->members, node->now, node->wall_ms, &node->out);
    dp_picker_tick(node->picker, node->now, &node->out);
    dp_mix_tick(node->mix, node->now, &node->out);
    if (dp_ledger_lists(&node->ledger)) {
        dp_round_drop_more(node, dp_chain_drop_rest(node));
    }
    dp_chain_tick(node);
    dp_proof_tick(node);
    dp_fork_tick(node);
    dp_catchup_tick(node);
    dp_train_unstick(node);
    dp_train_tick(node);
}

void dp_node_step(dp_node *node, const dp_event *event, dp_actions *actions)
{
    dp_assert(actions != NULL);
    dp_assert(event->now.us >= node->now.us);
    dp_out_begin(&node->out, actions);
    node->now = event->now;
    node->wall_ms = event->wall_ms;
    if ((!node->started && event->type != DP_EV_START) || node->reopening) {
        return;
    }
    dispatch(node, event);
    if (event->type == DP_EV_TICK || event->type == DP_EV_START) {
        tick(node);
        dp_node_changed(node);
    }
    /* One change may make others possible; a few turns reach the end. */
    for (uint32_t turn = 0; turn < 4 && node->changed && !node->reopening; turn++) {
        node->changed = false;
        update_mode(node);
        dp_catchup_next(node);
        dp_train_advance(node);
        dp_round_watch(node);
        dp_node_repeat(node);
        dp_round_tick(node);
        tell_parts(node);
    }
    look_whether_idle(node);
    if (dp_broken(13) && node->chain->op != 0) { /* Applied before it is durable. */
        node->chain->op = 0;
        dp_node_record_written(node);
    }
}

dp_time dp_node_wake(const dp_node *node)
{
    dp_time wake = dp_round_wake(node);

    if (!node->started || node->reopening) {
        return DP_NEVER;
    }
    if (node->changed) {
        return node->now; /* The turns of the last step did not reach the end. */
    }
    wake = dp_time_min(wake, dp_heartbeat_wake(&node->beat));
    wake = dp_time_min(wake, dp_members_wake(node->members));
    wake = dp_time_min(wake, dp_picker_wake(node->picker));
    wake = dp_time_min(wake, dp_mix_wake(node->mix));
    wake = dp_time_min(wake, dp_catchup_wake(node));
    wake = dp_time_min(wake, dp_train_wake(node));
    if (node->chain->failed || node->train->row_failed || node->proof->failed ||
        node->forks->failed) {
        wake = dp_time_min(wake, dp_time_after(node->now, DP_REPEAT_US));
    }
    return wake;
}
