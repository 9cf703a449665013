/* Fetches a state from a peer where replay would take longer: chooses the state and the peer, and
 * limits the wait. */
#include <string.h>

#include "base/assert.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/equivocation.h"
#include "gossip/catchup/fetch.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "gossip/transfer/peer_backoff.h"

#define STATE_HASTE_US                                                                             \
    (250 * DP_MS) /* least time before a state that is told of no more gives way to another */
/* A summary is that old at most, of a member that lives: it is asked for each second, or less often
 * by the pace of heartbeats. */
#define TELLS_US (2 * DP_SECOND)
#define GAVE_UP_US (60 * DP_SECOND) /* a state that did not come is not chosen again before */

/* So few missed rounds are replayed, of any size: the trainer keeps its work of the round under
 * way. */
enum { HASTY_MAX = 4, REPLAY_ROUNDS = 4, AHEAD_MAX = DP_WANTED_MAX / 2 };

/* Bytes still to be fetched of the updates after this round; UINT64_MAX when some of them are
 * gone. */
static uint64_t replay_bytes(const dp_node *node, uint64_t round)
{
    uint64_t bytes = 0;

    for (uint64_t r = round + 1; r <= node->ledger.round; r++) {
        const dp_history_row *row = dp_chain_row(node, r);
        if (row == NULL) {
            return UINT64_MAX;
        }
        for (uint32_t i = 0; i < row->n; i++) {
            if (dp_node_holds(node, &row->items[i].root)) {
                continue;
            }
            if (row->dropped) {
                return UINT64_MAX;
            }
            bytes += row->items[i].bytes;
        }
    }
    return bytes;
}

/* Chunks of it are here, and the records after it are available. */
static bool is_part(const dp_node *node, const dp_summary *summary)
{
    return !dp_hash_is_zero(&node->catchup->part) &&
           dp_hash_equal(&summary->saved_root, &node->catchup->part) &&
           replay_bytes(node, summary->saved_round) != UINT64_MAX;
}

/* Members save at times of their own: the state of which chunks are here goes before a newer
 * one. */
static bool is_better(const dp_node *node, const dp_summary *one, const dp_summary *other)
{
    const bool one_here = is_part(node, one);

    return one_here != is_part(node, other) ? one_here : one->saved_round > other->saved_round;
}

/* The linked member that serves the best state, of this round or later, that the chain certifies;
 * DP_MEMBER_NONE if there is none. */
static uint32_t best_state(const dp_node *node, uint64_t least)
{
    const dp_rowset *linked = dp_members_linked(node->members);
    uint32_t best = DP_MEMBER_NONE;

    for (uint32_t k = 0; k < linked->count; k++) {
        const uint32_t i = linked->at[k];
        const dp_member *member = dp_members_at(node->members, i);
        const dp_summary *summary = &member->summary;
        dp_hash digest;
        dp_hash certified;
        if (!member->has_summary || summary->saved_round < least ||
            dp_hash_is_zero(&summary->saved_root) || summary->saved_round > node->ledger.round ||
            (best != DP_MEMBER_NONE &&
             !is_better(node, summary, &dp_members_at(node->members, best)->summary)) ||
            !dp_chain_digest(node, summary->saved_round, &digest) ||
            !dp_chain_certified(node, summary->saved_round, &certified)) {
            continue;
        }
        const dp_hash root = dp_state_root(summary->saved_round, &summary->saved_root, &digest);
        if (dp_hash_equal(&root, &certified)) {
            best = i;
        }
    }
    return best;
}

bool dp_catchup_needs_no_state(const dp_node *node)
{
    return best_state(node, 1) == DP_MEMBER_NONE && replay_bytes(node, 0) == 0;
}

bool dp_catchup_can_restart(const dp_node *node)
{
    const dp_hash *init = &node->manifest.init;
    bool can = replay_bytes(node, 0) == 0 && (dp_hash_is_zero(init) || dp_node_holds(node, init));

    for (uint32_t i = 0; i < DP_SAVED_MAX && !can; i++) {
        const uint64_t round = node->saved->at[i].round;
        can = dp_saved_is_own(node, round) && replay_bytes(node, round) == 0;
    }
    return can;
}

bool dp_catchup_prefers_state(const dp_node *node, uint64_t round)
{
    const dp_catchup *catchup = node->catchup;

    dp_assert(round <= node->ledger.round || node->standing.applied > node->ledger.round);
    if (node->ledger.round <= round + REPLAY_ROUNDS ||
        (catchup->gave_up_at.us != 0 &&
         dp_time_between(catchup->gave_up_at, node->now) < GAVE_UP_US)) {
        return false;
    }
    const uint32_t member = best_state(node, round + 1);
    if (member == DP_MEMBER_NONE) {
        return false;
    }
    const dp_summary *summary = &dp_members_at(node->members, member)->summary;
    const uint64_t bytes = dp_node_holds(node, &summary->saved_root) ? 0 : summary->saved_bytes;
    const uint64_t after = replay_bytes(node, summary->saved_round);
    return after != UINT64_MAX && bytes < UINT64_MAX - after &&
           bytes + after < replay_bytes(node, round);
}

/* A state was chosen because it is less to fetch, and nobody gives it: replay, while that is
 * possible. */
static bool give_up_state(dp_node *node)
{
    dp_catchup *catchup = node->catchup;

    const uint64_t from =
        node->standing.state == DP_TRAINER_SET ? node->standing.applied : dp_saved_newest(node);

    if ((dp_time_between(catchup->state_moved, node->now) < DP_STATE_PATIENCE_US &&
         !DP_BUGGIFY(node, DP_BUG_NO_STATE_WAIT)) ||
        from == 0 || from >= node->ledger.round || replay_bytes(node, from) == UINT64_MAX) {
        return false;
    }
    dp_node_note(node, DP_NOTE_CATCHUP, node->ledger.round, NULL, from, node->ledger.round,
                 "no peer delivered the state; this node replays the rounds");
    dp_picker_cancel(node->picker, node->now, &catchup->state_root, &node->out);
    catchup->wants_state = false;
    catchup->hasty = 0;
    catchup->gave_up_at = node->now;
    catchup->stuck_at = (dp_time){0};
    return true;
}

static void begin_state(dp_node *node, const dp_hash *root, uint64_t round, uint64_t bytes)
{
    dp_catchup *catchup = node->catchup;

    dp_assert(!node->catchup->wants_state);
    dp_assert(round > 0);
    catchup->state_root = *root;
    catchup->part = (dp_hash){{0}}; /* It is this one, or of no use any more. */
    catchup->wants_state = true;
    catchup->state_round = round;
    catchup->state_bytes = bytes;
    catchup->chosen_at = node->now;
    if (catchup->hasty == 0) { /* Else one is waited for since then, whichever. */
        catchup->state_moved = node->now;
    }
    dp_node_note(node, DP_NOTE_CATCHUP, node->ledger.round, NULL, node->standing.applied, round,
                 "state");
    if (dp_node_holds(node, &catchup->state_root)) {
        dp_catchup_object(node, &catchup->state_root);
        return;
    }
    dp_chain_cancel(node,
                    node->ledger.round); /* Blobs to replay make room; they are wanted again. */
    /* A majority has certified the root; how long it is only the member says that was heard of
     * first, and others that have it are not to be blamed for that. Full: asked again with the next
     * tick. */
    DP_IGNORE(dp_picker_want(node->picker, node->now, &catchup->state_root,
                             dp_broken(186) ? bytes : 0, DP_USE_STATE, DP_PRIORITY_STATE,
                             &node->out));
    dp_picker_expect(node->picker, &catchup->state_root, bytes);
}

/* Members tell of one state, and soon of the next, or of one that more members can prove; a member
 * that has served a state keeps it for longer. So the node asks for the state of which it has
 * chunks even if no member tells of it; if no member gives it, the node takes another after
 * DP_STATE_PATIENCE_US. */
static bool resume_part(dp_node *node, uint64_t least)
{
    const dp_hash part = node->catchup->part;

    if (dp_hash_is_zero(&part) || node->catchup->wants_state) {
        return false;
    }
    for (uint32_t i = 0; i < DP_HISTORY_ROUNDS; i++) {
        const uint64_t round = node->chain->history[i].round;
        bool known = false;
        if (round >= least && dp_saved_is_certified(node, round, &part, &known) &&
            replay_bytes(node, round) != UINT64_MAX) {
            begin_state(node, &part, round, 0);
            dp_picker_holders_all(node->picker, node->now, &part, &node->out);
            return true;
        }
    }
    return false;
}

/* Is the wanted state outdated? None of it has come, and no member that has told anything lately
 * still tells of it: it was chosen by messages that had waited here while this process stood still,
 * or by the word of a member that stands still. On a slow line the answer may take longer than
 * members stay with a state, so the wait doubles each time. */
static bool is_outdated(const dp_node *node)
{
    const dp_catchup *catchup = node->catchup;
    const dp_rowset *linked = dp_members_linked(node->members);

    if (!dp_picker_waits(node->picker, &catchup->state_root) ||
        dp_time_between(catchup->chosen_at, node->now) < STATE_HASTE_US << catchup->hasty) {
        return false;
    }
    for (uint32_t k = 0; k < linked->count; k++) {
        const dp_member *member = dp_members_at(node->members, linked->at[k]);
        if (member->has_summary &&
            dp_time_between(member->summary_at, node->now) < node->beat.pace * TELLS_US &&
            dp_hash_equal(&member->summary.saved_root, &catchup->state_root)) {
            return false;
        }
    }
    return true;
}

void dp_catchup_state(dp_node *node)
{
    const dp_rowset *linked = dp_members_linked(node->members);
    dp_catchup *catchup = node->catchup;
    const uint64_t least = node->standing.has_theta ? node->standing.applied + 1 : 1;
    const uint32_t best = best_state(node, least);

    if (resume_part(node, least) || best == DP_MEMBER_NONE) {
        return;
    }
    const dp_summary *summary = &dp_members_at(node->members, best)->summary;
    if (!catchup->wants_state && !dp_hash_is_zero(&catchup->part) && !is_part(node, summary) &&
        dp_time_between(node->started_at, node->now) < DP_STATE_PATIENCE_US) {
        return; /* Links come up one after the other: a peer with that state may be linked soon. */
    }
    if (catchup->wants_state && !dp_hash_equal(&catchup->state_root, &summary->saved_root)) {
        const bool outdated = is_outdated(node);
        if (!outdated && (dp_time_between(catchup->state_moved, node->now) < DP_STATE_PATIENCE_US ||
                          give_up_state(node))) {
            return; /* The one under way is still coming, or replay is the better way after all. */
        }
        catchup->hasty = outdated ? catchup->hasty + (catchup->hasty < HASTY_MAX) : 0;
        dp_picker_cancel(node->picker, node->now, &catchup->state_root, &node->out);
        catchup->wants_state = false;
    }
    if (!catchup->wants_state) {
        begin_state(node, &summary->saved_root, summary->saved_round, summary->saved_bytes);
    }
    for (uint32_t k = 0; k < linked->count; k++) {
        const dp_member *member = dp_members_at(node->members, linked->at[k]);
        if (member->has_summary &&
            dp_hash_equal(&member->summary.saved_root, &catchup->state_root)) {
            dp_picker_holder(node->picker, node->now, &catchup->state_root, linked->at[k],
                             &node->out);
        }
    }
}

void dp_catchup_chunk(dp_node *node, const dp_hash *root)
{
    if (node->catchup->wants_state && dp_hash_equal(root, &node->catchup->state_root)) {
        node->catchup->state_moved = node->now;
        node->catchup->hasty = 0;
    }
}

void dp_catchup_object(dp_node *node, const dp_hash *root)
{
    dp_catchup *catchup = node->catchup;

    dp_assert(node->catchup->state_round > 0 || !node->catchup->wants_state);
    if (!catchup->wants_state || !dp_hash_equal(root, &catchup->state_root)) {
        return;
    }
    catchup->wants_state = false;
    catchup->hasty = 0;
    catchup->state_bytes = dp_node_size(node, root);
    dp_action *action = dp_out_add(&node->out, DP_DO_OBJECT_KEEP);
    action->u.keep.root = *root;
    action->u.keep.use = DP_USE_STATE;
    action->u.keep.round = catchup->state_round;
    dp_saved_add(node, catchup->state_round, root, catchup->state_bytes, true);
    dp_node_changed(node);
    catchup->frees_trainer = node->standing.state == DP_TRAINER_SET && !node->standing.applying &&
                             catchup->stuck_at.us != 0 &&
                             node->standing.applied < catchup->state_round;
}

void dp_catchup_stuck(dp_node *node)
{
    if (node->catchup->stuck_at.us == 0) {
        node->catchup->stuck_at = node->now;
    }
}

void dp_catchup_free(dp_node *node)
{
    node->catchup->stuck_at = (dp_time){0};
}

void dp_catchup_has_part(dp_node *node, const dp_hash *root)
{
    node->catchup->part = *root;
}

bool dp_catchup_frees_trainer(dp_node *node)
{
    const bool frees = node->catchup->frees_trainer;

    node->catchup->frees_trainer = false;
    return frees;
}

/* Fetches the updates of the rounds after the wanted state before the state itself: over a slow
 * line the state may take longer than other nodes keep those updates (SAFETY G3). */
static void fetch_ahead(dp_node *node)
{
    dp_assert(node->catchup->wants_state);
    for (uint64_t round = node->catchup->state_round + 1;
         round <= node->ledger.round && dp_picker_count(node->picker) < AHEAD_MAX; round++) {
        dp_history_row *row = dp_chain_row(node, round);
        if (row != NULL) {
            (void)dp_train_fetch_row(node, row);
        }
    }
}

void dp_catchup_state_tick(dp_node *node)
{
    dp_catchup *catchup = node->catchup;

    if (catchup->wants_state && !dp_picker_wants(node->picker, &catchup->state_root)) {
        catchup->wants_state = false;
    }
    if (catchup->wants_state && is_outdated(node)) {
        dp_catchup_state(node);
    }
    if (catchup->wants_state && !give_up_state(node)) {
        fetch_ahead(node);
    }
}
