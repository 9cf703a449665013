/* Fetches the records that this node missed, in order, from a peer that has more. */
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

#define RECORDS_WAIT_US (1000 * DP_MS)

/* ---- records ---- */

static bool doubted(const dp_node *node, const dp_peer *peer)
{
    return dp_backed_off(&node->catchup->doubt, peer, node->now);
}

/* Ranks of the peers to ask, lowest first: members by the chain as known here, other peers, doubted
 * members, other doubted peers. */
enum { RANKS = 4 };

static uint32_t rank_of(const dp_node *node, const dp_member *member)
{
    const uint32_t doubtful = doubted(node, &member->peer) ? 2 : 0;

    dp_assert(member != NULL);
    return doubtful + (member->in_roster || dp_broken(196) ? 0U : 1U);
}

/* A linked peer of this rank that has more records, by its summary, else the peer of the hint. */
static bool find_source_of(dp_node *node, uint32_t rank, dp_peer *source)
{
    const dp_rowset *linked = dp_members_linked(node->members);
    const uint32_t hint = dp_node_member_index(node, &node->catchup->hint_peer);
    const bool hinted = node->catchup->hint_slot > node->ledger.slot && hint != DP_MEMBER_NONE &&
                        hint != 0 && dp_members_at(node->members, hint)->linked &&
                        rank_of(node, dp_members_at(node->members, hint)) == rank;

    dp_assert(rank < RANKS);
    if (hinted && !dp_peer_equal(&node->catchup->hint_peer, &node->catchup->asked)) {
        *source = node->catchup->hint_peer;
        return true;
    }
    const bool any = linked->count > 0 && dp_members_slot_most(node->members) > node->ledger.slot;
    const uint32_t start = any ? (uint32_t)dp_rng_below(&node->rng, linked->count) : 0;
    for (uint32_t i = 0; any && i < linked->count; i++) {
        const dp_member *member =
            dp_members_at(node->members, linked->at[(start + i) % linked->count]);
        if (member->has_summary && member->summary.slot > node->ledger.slot &&
            rank_of(node, member) == rank && !dp_fork_elsewhere(node, member->summary.fork)) {
            *source = member->peer;
            return true;
        }
    }
    if (hinted) {
        *source = node->catchup->hint_peer;
        return true;
    }
    return false;
}

static bool find_source(dp_node *node, dp_peer *source)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        if (find_source_of(node, rank, source)) {
            return true;
        }
    }
    return false;
}

bool dp_catchup_behind(const dp_node *node)
{
    const uint32_t hint = dp_node_member_index(node, &node->catchup->hint_peer);

    if (node->catchup->hint_slot > node->ledger.slot && hint != DP_MEMBER_NONE &&
        dp_members_at(node->members, hint)->linked && !dp_members_is_guest(node->members, hint) &&
        !doubted(node, &node->catchup->hint_peer)) {
        return true;
    }
    const dp_rowset *linked = dp_members_linked(node->members);
    const bool any = dp_members_slot_most(node->members) > node->ledger.slot + 1;
    for (uint32_t i = 0; any && i < linked->count; i++) {
        const dp_member *member = dp_members_at(node->members, linked->at[i]);
        if (member->has_summary && member->summary.slot > node->ledger.slot + 1 &&
            !dp_members_is_guest(node->members, linked->at[i]) &&
            !dp_fork_elsewhere(node, member->summary.fork) && !doubted(node, &member->peer)) {
            return true;
        }
    }
    return false;
}

static void ask(dp_node *node)
{
    dp_catchup *catchup = node->catchup;
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);
    dp_peer source;

    /* While a decision of the own slot is about to come by itself, nobody is asked. */
    if (node->chain->op != 0 || node->chain->failed || catchup->size > 0 ||
        (catchup->asked_at.us != 0 &&
         dp_time_between(catchup->asked_at, node->now) < RECORDS_WAIT_US)) {
        return;
    }
    if (catchup->asked_at.us != 0 && !dp_peer_equal(&catchup->asked, &(dp_peer){{0}})) {
        dp_backoff_failed(&catchup->doubt, &catchup->asked, node->now);
    }
    if (catchup->asked_at.us != 0 && dp_peer_equal(&catchup->asked, &catchup->hint_peer)) {
        catchup->hint_slot = 0; /* It spoke of records that it does not give. */
    }
    if (!find_source(node, &source)) {
        catchup->asked_at = (dp_time){0}; /* The records asked for have come another way. */
        return;
    }
    catchup->asked = source;
    catchup->asked_at = node->now;
    dp_wire_write_records_get(&writer, node->ledger.slot + 1,
                              DP_BUGGIFY(node, DP_BUG_FEW_RECORDS) ? 1 : DP_RECORDS_PER_MESSAGE);
    dp_node_send(node, &source, dp_view_of(writer.data, writer.size));
}

/* The message held no record that follows, perhaps one of another chain: the peer that was asked
 * and sent it is not asked again at once, or the two would exchange it without end. */
static void end_message(dp_node *node, bool good)
{
    dp_catchup *catchup = node->catchup;

    dp_assert(node->catchup->size > 0);
    catchup->size = 0;
    if (good) {
        dp_backoff_gave(&catchup->doubt, &catchup->sender);
        catchup->asked_at = (dp_time){0};
        catchup->asked = (dp_peer){{0}};
    } else if (dp_peer_equal(&catchup->sender, &catchup->asked)) {
        catchup->asked_at = node->now;
    }
}

/* The next record of the message at hand, if the one before has been written. */
void dp_catchup_next(dp_node *node)
{
    dp_catchup *catchup = node->catchup;

    while (catchup->size > 0 && node->chain->op == 0 && !node->chain->failed) {
        if (catchup->next >= catchup->parsed.n) {
            end_message(node, catchup->gained);
            break;
        }
        const dp_wire_record *item = &catchup->parsed.items[catchup->next];
        const uint64_t slot = catchup->parsed.from + catchup->next;
        catchup->next++;
        if (slot <= node->ledger.slot) {
            dp_equivocation_record(node, slot, item->record, item->cert);
            continue;
        }
        const dp_status status = dp_chain_offer(node, item->record, item->cert);
        if (status != DP_OK && status != DP_AGAIN) {
            node->rejected++;
            if (slot == node->ledger.slot + 1) {
                dp_equivocation_fetch(node, &catchup->sender, node->ledger.slot);
            }
            end_message(node, false);
        }
        catchup->gained = catchup->gained || status == DP_OK;
    }
    if (catchup->size == 0) {
        ask(node);
    }
}

dp_status dp_catchup_records(dp_node *node, dp_view message, const dp_peer *from)
{
    dp_catchup *catchup = node->catchup;

    const size_t most =
        dp_ledger_lists(&node->ledger) ? (size_t)DP_RECORDS_BYTES_MAX : (size_t)DP_MESSAGE_MAX;

    if (catchup->size > 0 || message.size > most) {
        return DP_OK; /* One at a time; it is asked for again. */
    }
    memcpy(catchup->records, message.data, message.size);
    const dp_status status =
        dp_wire_read_records(dp_view_of(catchup->records, message.size), &catchup->parsed);
    if (status != DP_OK) {
        return status;
    }
    if (catchup->parsed.n == 0 || catchup->parsed.from > node->ledger.slot + 1) {
        return DP_OK;
    }
    catchup->size = message.size;
    catchup->next = 0;
    catchup->sender = *from;
    catchup->gained = false;
    dp_catchup_next(node);
    return DP_OK;
}

/* ---- time ---- */

void dp_catchup_tick(dp_node *node)
{
    dp_assert(node->started);
    dp_catchup_next(node);
    dp_catchup_state_tick(node);
}

dp_time dp_catchup_wake(const dp_node *node)
{
    /* While a record is being written its STORED event goes on with it. */
    if (node->catchup->asked_at.us == 0 || node->chain->op != 0 || node->chain->failed ||
        node->catchup->size > 0) {
        return DP_NEVER;
    }
    const dp_time due = dp_time_after(node->catchup->asked_at, RECORDS_WAIT_US);
    return due.us > node->now.us ? due : dp_time_after(node->now, RECORDS_WAIT_US / 10);
}
