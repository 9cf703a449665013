/* Routing of messages: the part of the node that takes each type, the peers that may send it, and
 * the messages that are relayed for others. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/equivocation.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/list_exchange.h"
#include "gossip/catchup/proof.h"
#include "gossip/context/context.h"
#include "gossip/node/node_steps.h"
#include "gossip/parts/part_round.h"
#include "gossip/requests/renew.h"
#include "gossip/requests/requests.h"
#include "gossip/requests/revoke_request.h"
#include "gossip/requests/rotate.h"
#include "gossip/round/admit.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"
#include "gossip/training/training.h"

/* ---- messages ---- */

/* One answer may be 64 records: as many a second as chunks. */
static bool may_serve(dp_node *node, const dp_peer *from)
{
    const uint32_t member = dp_node_member_index(node, from);

    return member != DP_MEMBER_NONE && dp_out_room(&node->out, 1) &&
           dp_picker_serve_allows(node->picker, node->now, member);
}

static dp_status on_vote(dp_node *node, dp_view bytes, const dp_peer *from)
{
    dp_commit *commit = node->commit;
    dp_vote_msg msg;

    DP_TRY(dp_vote_msg_read(bytes, &msg));
    if (!dp_hash_equal(&msg.vote.fork, &node->ledger.fork)) {
        return DP_OK; /* Of another fork; its nodes learn of ours later. */
    }
    if (msg.vote.slot <=
        node->ledger.slot) { /* A voter that asks about a decided slot gets the decision. */
        dp_equivocation_vote(node, &msg.vote, from);
        if (msg.vote.type != DP_MSG_ACCEPTED && may_serve(node, from)) {
            dp_action *action = dp_out_add(&node->out, DP_DO_SERVE_RECORDS);
            action->u.serve.peer = *from;
            action->u.serve.from = msg.vote.slot;
            const uint64_t count = node->ledger.slot - msg.vote.slot + 1;
            action->u.serve.count =
                count < DP_RECORDS_PER_MESSAGE ? (uint32_t)count : (uint32_t)DP_RECORDS_PER_MESSAGE;
        }
        return DP_OK;
    }
    if (node->halted) { /* Nothing more is decided here, and this is why. */
        dp_proof_tell(node, from);
        return DP_OK;
    }
    if (msg.vote.slot > commit->slot) {
        dp_catchup_hint(node, from, msg.vote.slot - 1);
        return DP_OK;
    }
    if (commit->slot != node->ledger.slot + 1 || !dp_hash_equal(&msg.vote.prev, &commit->prev)) {
        dp_equivocation_vote(node, &msg.vote, from);
        return DP_DENIED;
    }
    /* A NACK is not signed: it counts only from the voter itself, lest a stranger drives the
     * ballots up. */
    if (msg.vote.type == DP_MSG_NACK && dp_ledger_voter(&node->ledger, from) != msg.vote.voter) {
        return DP_DENIED;
    }
    dp_node_changed(node);
    const bool lost = commit->key_lost;
    const dp_status status = dp_commit_message(commit, node->now, &msg);
    if (!lost && commit->key_lost) {
        dp_node_note(node, DP_NOTE_VOTE_KEY_LOST, commit->slot, &node->self, 0, 0,
                     "the members hold a newer vote of this node than its disk");
    }
    return status;
}

static dp_status on_decide(dp_node *node, dp_view bytes, const dp_peer *from)
{
    dp_decide_msg msg;

    DP_TRY(dp_decide_msg_read(bytes, &msg));
    if (msg.slot > node->ledger.slot + 1 ||
        (msg.slot == node->ledger.slot + 1 && node->chain->op != 0)) {
        dp_catchup_hint(node, from, msg.slot);
        return DP_OK;
    }
    if (msg.slot <= node->ledger.slot) {
        dp_equivocation_record(node, msg.slot, msg.record, msg.cert);
        return DP_OK;
    }
    const dp_status status = dp_chain_offer(node, msg.record, msg.cert);
    if (status == DP_AGAIN && dp_ledger_lists(&node->ledger)) {
        dp_catchup_hint(node, from, msg.slot); /* A peer that tells a record has it whole. */
    }
    return status == DP_AGAIN ? DP_OK : status;
}

/* The own update of this round, which thin uplinks give to one voter first (relay.h)? */
static bool is_refused(dp_node *node, const dp_hash *root, uint32_t from)
{
    const dp_pending *const pending = &node->train->pending;
    const dp_rowset *const linked = dp_members_linked(node->members);

    dp_assert(from < dp_members_count(node->members));
    if (node->mode != DP_MODE_SYNC || node->ledger.parted || !pending->has ||
        pending->ready.round != node->ledger.round + 1 ||
        !dp_hash_equal(&pending->ready.root, root)) {
        return false;
    }
    dp_relay_ask ask = {.now = node->now,
                        .root = *root,
                        .bytes = pending->ready.bytes,
                        .uplink = node->standing.uplink,
                        .askers = linked->count,
                        .peer = dp_members_at(node->members, from)->peer,
                        .round_us = (uint64_t)node->manifest.round_ms * 1000,
                        .always = DP_BUGGIFY(node, DP_BUG_THIN_UPLINK)};
    for (uint32_t k = 0; k < linked->count; k++) {
        const dp_peer *peer = &dp_members_at(node->members, linked->at[k])->peer;
        const bool votes = dp_ledger_voter(&node->ledger, peer) != DP_NOBODY;
        ask.voters += votes ? 1 : 0;
        ask.is_voter = ask.is_voter || (votes && linked->at[k] == from);
        ask.first_linked = ask.first_linked || dp_peer_equal(peer, &node->relay.first);
    }
    return dp_relay_refuses(&node->relay, &ask);
}

static void say_absent(dp_node *node, const dp_hash *root, uint32_t to)
{
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    dp_assert(to < dp_members_count(node->members));
    dp_wire_write_chunk_head(&writer, root, 0, false);
    dp_node_send(node, &dp_members_at(node->members, to)->peer,
                 dp_view_of(writer.data, writer.size));
}

static dp_status on_round_message(dp_node *node, uint8_t type, dp_view bytes, const dp_peer *from)
{
    const dp_status status = dp_round_message(node, type, bytes, from);

    if (dp_round_take_certified(node)) {
        dp_train_certified(node, node->ledger.round);
    }
    return status;
}

static dp_status on_object_message(dp_node *node, uint8_t type, dp_view bytes, uint32_t from)
{
    dp_hash root;
    uint32_t index = 0;

    dp_assert(from < dp_members_count(node->members));
    if (type == DP_MSG_INFO_GET) {
        DP_TRY(dp_wire_read_info_get(bytes, &root));
        node->kind->asked(node, &root);
        if (!is_refused(node, &root, from)) {
            (void)dp_picker_serve_info(node->picker, node->now, from, &root, &node->out);
        } else if (dp_picker_serve_allows(node->picker, node->now, from)) {
            say_absent(node, &root, from);
        }
        return DP_OK;
    }
    DP_TRY(dp_wire_read_chunk_get(bytes, &root, &index));
    (void)dp_picker_serve_chunk(node->picker, node->now, from, &root, index, &node->out);
    return DP_OK;
}

static dp_status on_records_get(dp_node *node, dp_view bytes, const dp_peer *from)
{
    uint64_t first = 0;
    uint32_t count = 0;

    DP_TRY(dp_wire_read_records_get(bytes, &first, &count));
    if (first <= node->ledger.slot && may_serve(node, from)) {
        const uint64_t left = node->ledger.slot - first + 1;
        dp_action *action = dp_out_add(&node->out, DP_DO_SERVE_RECORDS);
        action->u.serve.peer = *from;
        action->u.serve.from = first;
        action->u.serve.count = left < count ? (uint32_t)left : count;
    }
    return DP_OK;
}

static dp_status route(dp_node *node, dp_view bytes, uint32_t from, bool relayed);

/* Forwards it to its target; if the target is a voter without a link to here, to a node that may
 * have one. */
static dp_status pass_relay(dp_node *node, const dp_wire_relay *relay, uint32_t from)
{
    const uint32_t index = dp_node_member_index(node, &relay->target);
    const uint32_t voter = dp_ledger_voter(&node->ledger, &relay->target);
    dp_peer next = relay->target;

    if (relay->hops == 0) {
        return DP_OK;
    }
    if ((index == DP_MEMBER_NONE || !dp_members_at(node->members, index)->linked) &&
        (voter == DP_NOBODY || dp_heartbeat_route(&node->beat, node->now, voter, &next, 1) == 0 ||
         dp_node_member_index(node, &next) == from)) {
        return DP_OK; /* Its sender repeats it, and better routes may be known by then. */
    }
    dp_writer writer =
        dp_out_writer(&node->out, DP_MSG_RELAY, DP_RELAY_HEAD_BYTES + relay->message.size);
    dp_view message;
    dp_write_u8(&writer, (uint8_t)(relay->hops - 1));
    dp_write_bytes(&writer, relay->target.bytes, sizeof relay->target.bytes);
    dp_write_view(&writer, relay->message);
    if (dp_out_message(&node->out, &writer, &message)) {
        dp_out_send(&node->out, &next, message);
    }
    return DP_OK;
}

/* For this node: handled as if it had come on its author's link; only signed or harmless messages
 * may come so. Else it is forwarded to its target. */
static dp_status on_relay(dp_node *node, dp_view bytes, uint32_t from)
{
    dp_wire_relay relay;

    DP_TRY(dp_wire_read_relay(bytes, &relay));
    if (dp_peer_equal(&relay.target, &node->self)) {
        const uint8_t type = dp_msg_type_of(relay.message);
        const bool allowed =
            (type >= DP_MSG_READY && type <= DP_MSG_VOTER_OK) || type == DP_MSG_MIX_SIGNED ||
            type == DP_MSG_FENCE_ASK || type == DP_MSG_REMOVE || type == DP_MSG_PROOF ||
            type == DP_MSG_FORK || type == DP_MSG_STOP || type == DP_MSG_PART ||
            type == DP_MSG_SUBTOTAL || type == DP_MSG_LIST_GET || type == DP_MSG_LIST ||
            type == DP_MSG_SUMMARY || type == DP_MSG_GUEST || type == DP_MSG_HARM ||
            type == DP_MSG_INVITE_REVOKE;
        return allowed ? route(node, relay.message, from, true) : DP_DENIED;
    }
    return pass_relay(node, &relay, from);
}

static dp_status route(dp_node *node, dp_view bytes, uint32_t from, bool relayed)
{
    const dp_peer peer = dp_members_at(node->members, from)->peer;
    const uint8_t type = dp_msg_type_of(bytes);

    switch (type) {
    case DP_MSG_HEARTBEAT: {
        const dp_status status =
            dp_heartbeat_message(&node->beat, node->now, &peer, bytes, &node->out);
        if (node->mode == DP_MODE_LEFT) { /* The peer may wait for it. */
            dp_node_changed(node);
        }
        return status == DP_EXISTS || status == DP_NOTFOUND ? DP_OK : status;
    }
    case DP_MSG_PING:
    case DP_MSG_ACK:
    case DP_MSG_PING_REQ:
    case DP_MSG_STATEMENT:
    case DP_MSG_SYNC:
    case DP_MSG_SUMMARY:
        return dp_members_message(node->members, node->now, node->wall_ms, from, bytes, &node->out);
    case DP_MSG_READY:
    case DP_MSG_HAVE:
    case DP_MSG_STATE:
    case DP_MSG_VOTER_OK:
        return on_round_message(node, type, bytes, relayed ? NULL : &peer);
    case DP_MSG_LIST_GET:
    case DP_MSG_LIST:
        return dp_list_message(node, type, bytes, &peer);
    case DP_MSG_PART:
        return dp_part_round_message(node, bytes);
    case DP_MSG_SUBTOTAL:
        return dp_part_round_subtotal(node, bytes);
    case DP_MSG_COLLECT:
        return dp_part_round_collect(node, from, bytes);
    case DP_MSG_REMOVE:
    case DP_MSG_FENCE_ASK:
        return dp_requests_message(node, type, bytes);
    case DP_MSG_RENEW_GET:
    case DP_MSG_RENEWAL:
        return dp_renew_message(node, &peer, bytes);
    case DP_MSG_ROTATE:
    case DP_MSG_SECRET_GET:
    case DP_MSG_SECRET:
        dp_assert(!relayed); /* on_relay lets none through: a secret is for one end of a link. */
        return dp_rotate_message(node, &peer, bytes);
    case DP_MSG_INVITE_REVOKE:
        return dp_revoke_request_message(node, bytes);
    case DP_MSG_PREPARE:
    case DP_MSG_PROMISE:
    case DP_MSG_PROPOSE:
    case DP_MSG_ACCEPTED:
    case DP_MSG_NACK:
        return on_vote(node, bytes, &peer);
    case DP_MSG_DECIDE:
        return on_decide(node, bytes, &peer);
    case DP_MSG_PROOF:
        return dp_proof_message(node, relayed ? 0 : from, bytes);
    case DP_MSG_FORK:
        return dp_fork_message(node, bytes, &peer);
    case DP_MSG_STOP:
        return dp_fork_stop_message(node, bytes);
    case DP_MSG_GUEST:
        return dp_admit_message(node, bytes);
    case DP_MSG_HARM:
        return dp_judging_message(node, bytes);
    case DP_MSG_RECORDS_GET:
        return on_records_get(node, bytes, &peer);
    case DP_MSG_RECORDS:
        return dp_catchup_records(node, bytes, &peer);
    case DP_MSG_INFO_GET:
    case DP_MSG_CHUNK_GET:
        return on_object_message(node, type, bytes, from);
    case DP_MSG_MIX_OFFER:
    case DP_MSG_MIX_ACK:
    case DP_MSG_MIX_COMMIT:
    case DP_MSG_MIX_DONE:
    case DP_MSG_MIX_STATUS:
        return dp_mix_message(node->mix, node->now, from, bytes, &node->out);
    case DP_MSG_MIX_SIGNED:
        return relayed ? dp_mix_carried(node->mix, node->now, from, bytes, &node->out) : DP_DENIED;
    case DP_MSG_RELAY:
        return on_relay(node, bytes, from);
    case DP_MSG_MANIFEST_GET:
        if (dp_out_room(&node->out, 1)) {
            dp_out_add(&node->out, DP_DO_SERVE_MANIFEST)->u.peer = peer;
        }
        return DP_OK;
    default:
        return DP_BADMSG;
    }
}

void dp_node_message(dp_node *node, const dp_event *event)
{
    const uint32_t from = dp_node_member_index(node, &event->u.message.peer);

    const bool records = dp_msg_type_of(event->u.message.bytes) == DP_MSG_RECORDS;
    const size_t most = records ? (size_t)DP_RECORDS_BYTES_MAX : (size_t)DP_MESSAGE_MAX;

    if (from == DP_MEMBER_NONE || from == 0 || event->u.message.bytes.size > most) {
        node->rejected++;
        return;
    }
    if (dp_broken(58) && event->u.message.bytes.size > 1 &&
        event->u.message.bytes.data[1] != DP_MSG_VERSION) {
        dp_out_add(&node->out, DP_DO_HANGUP)->u.peer = event->u.message.peer;
    }
    dp_members_heard(node->members, from, node->now, &node->out);
    if (dp_members_is_guest(node->members, from) &&
        dp_admit_members_only(dp_msg_type_of(event->u.message.bytes))) {
        return;
    }
    if (route(node, event->u.message.bytes, from, false) != DP_OK) {
        node->rejected++;
    }
    const dp_member *member = dp_members_at(node->members, from);
    if (member->has_summary) {
        if (member->summary.slot == node->ledger.slot &&
            !dp_hash_equal(&member->summary.head, &node->ledger.head)) {
            dp_equivocation_fetch(node, &member->peer, node->ledger.slot);
        }
        /* One slot ahead is normal while its decision is on the way. */
        if (member->summary.slot > node->ledger.slot) {
            dp_node_changed(node);
        }
    }
}
