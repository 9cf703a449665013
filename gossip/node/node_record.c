/* A record of the chain is durable: applies it, and tells each part of the node of the changes. */
#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"
#include "gossip/node/node_steps.h"
#include "gossip/parts/part_round.h"
#include "gossip/requests/leave.h"
#include "gossip/requests/revoke_request.h"
#include "gossip/requests/rotate.h"
#include "gossip/round/deadline.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"
#include "gossip/training/training.h"

/* Notes the outcome of this node's publication. */
static void note_outcome(dp_node *node, const dp_record *record, bool own)
{
    const dp_pending *pending = &node->train->pending;
    const bool ignored = dp_judging_ignores(node, record, own);

    dp_assert(record->kind == DP_RECORD_ROUND);
    dp_assert(record->round == node->ledger.round);
    if (own) {
        dp_node_note(node, DP_NOTE_COUNTED, record->round, NULL, node->chain->own_clip, 0, "");
    } else if (pending->has && pending->ready.round == record->round) {
        dp_node_note(node, DP_NOTE_LEFT_OUT, record->round, NULL, 0, 0,
                     dp_node_is_open(node, &pending->ready) ? "the next round may count it"
                     : ignored
                         ? "the proposing voter judged it harmful or took this node for dead; "
                           "its work is carried over"
                         : "its work is carried over");
    } else if (pending->has && pending->ready.round + 1 == record->round && !pending->settled &&
               node->ledger.stale) {
        dp_node_note(node, DP_NOTE_LEFT_OUT, record->round, NULL, 0, 0, "its work is carried over");
    }
}

static const char *cause_of(dp_remove_reason reason)
{
    return reason == DP_REMOVE_LEFT      ? "left"
           : reason == DP_REMOVE_REVOKED ? "revoked"
           : reason == DP_REMOVE_HARMFUL ? "harmful"
                                         : "absent";
}

static void member_removed(dp_node *node, const dp_remove *remove)
{
    const uint32_t index = dp_node_member_index(node, &remove->peer);

    dp_assert(remove->reason >= DP_REMOVE_LEFT && remove->reason <= DP_REMOVE_HARMFUL);
    if (remove->reason == DP_REMOVE_ABSENT) { /* It may come back, as a newcomer. */
        if (index != DP_MEMBER_NONE) {
            dp_members_mark(node->members, index, false, false);
        }
    } else if (dp_peer_equal(&remove->peer, &node->self)) {
        node->leaving = true;
    } else if (index != DP_MEMBER_NONE) {
        /* A member that leaves by its own wish may be the only one that can give others this
         * record. */
        const bool guest = remove->reason == DP_REMOVE_LEFT;
        dp_members_remove(node->members, index, node->now, guest ? DP_LINGER_US : 0, &node->out);
    }
}

static void config_applied(dp_node *node, const dp_record *record, uint32_t voters_before)
{
    dp_assert(record->slot == node->ledger.slot);
    if (!record->has_config) {
        return;
    }
    for (uint32_t i = 0; i < record->config.n_admits; i++) {
        dp_node_note(node, DP_NOTE_ADMITTED, record->round, &record->config.admits[i].peer, 0, 0,
                     "");
    }
    for (uint32_t i = 0; i < record->config.n_removes; i++) {
        const dp_remove *remove = &record->config.removes[i];
        dp_node_note(node, DP_NOTE_REMOVED, record->round, &remove->peer, 0, 0,
                     cause_of(remove->reason));
        member_removed(node, remove);
    }
    for (uint32_t i = 0; i < record->config.n_fences; i++) {
        dp_node_fence(node, &record->config.fences[i].peer, record->config.fences[i].incarnation);
    }
    if (record->config.n_voters > 0) {
        dp_node_note(node, DP_NOTE_VOTERS, record->round, NULL, voters_before,
                     node->ledger.n_voters, "");
    }
}

void dp_node_tell_members(dp_node *node)
{
    dp_peer voters[DP_VOTERS_MAX];

    dp_assert(node->ledger.n_voters <= DP_VOTERS_MAX);
    for (uint32_t i = 0; i < node->ledger.n_roster; i++) {
        const dp_roster_entry *entry = &node->ledger.roster[i];
        if (entry->gone == 0) {
            const uint32_t index = dp_members_enter(node->members, &entry->peer, entry->caps);
            if (index != DP_MEMBER_NONE) {
                dp_members_mark(node->members, index, true,
                                dp_ledger_voter(&node->ledger, &entry->peer) != DP_NOBODY);
            }
        }
    }
    for (uint32_t i = 0; i < node->ledger.n_voters; i++) {
        voters[i] = node->ledger.voters[i].peer;
    }
    dp_heartbeat_set_voters(&node->beat, voters, node->ledger.n_voters, node->now);
}

/* M42: the parts that took this node's update are those that their owners told, not those that the
 * record names. */
static void take_as_told(dp_node *node, uint64_t round)
{
    dp_history_row *row = dp_chain_row(node, round);

    for (uint32_t i = 0; row->own && node->parts != NULL && i < node->parts->n_results; i++) {
        const dp_part_word *word = &node->parts->results[i].word;
        for (uint32_t k = 0; k < word->n; k++) {
            row->own_taken |=
                dp_peer_equal(&word->sources[k].peer, &node->self) ? 1U << word->part : 0;
        }
        node->chain->own_taken = row->own_taken;
    }
}

static void round_applied(dp_node *node, const dp_record *record, bool own)
{
    dp_round *round = node->round;

    dp_assert(record->round == node->ledger.round);
    if (dp_broken(42)) {
        take_as_told(node, record->round);
    }
    dp_round_measure_held(node, record);
    if (round->opened.us != 0) {
        dp_round_measure(node);
        dp_heartbeat_hold(&node->beat, dp_deadline_length(&round->deadline) / 4);
    }
    dp_node_note(node, DP_NOTE_DECIDED, record->round, NULL, record->n_listed, record->slot, "");
    note_outcome(node, record, own);
    node->kind->drop(node);
    dp_chain_drop_old(node);
}

static void apply(dp_node *node)
{
    const dp_record *record = &node->chain->decoded;
    const uint32_t voters_before = node->ledger.n_voters;
    const bool is_round = record->kind == DP_RECORD_ROUND;

    dp_assert(record->slot == node->ledger.slot + 1);
    if (is_round) {
        dp_round_count_missed(node, record);
    }
    const bool own = dp_chain_apply(node);
    if (record->kind == DP_RECORD_FORK) {
        dp_node_note(node, DP_NOTE_ADOPTED, node->ledger.round, NULL, 0, 0, "fork");
        dp_node_reopen(node);
        return;
    }
    config_applied(node, record, voters_before);
    dp_revoke_request_applied(node, record);
    dp_rotate_applied(node);
    if (is_round) {
        round_applied(node, record, own);
    }
    if (record->has_config || node->ledger.slot == 1) {
        dp_node_tell_members(node);
    }
    dp_commit_begin(node->commit, &node->ledger, &node->self);
    dp_round_open_slot(node, is_round);
}

void dp_node_record_written(dp_node *node)
{
    dp_assert(node->started && !node->reopening);
    apply(node);
    if (node->reopening) {
        return;
    }
    dp_round_tell_written(node);
    dp_catchup_next(node);
    dp_node_changed(node);
}
