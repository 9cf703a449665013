/* Pending requests of members for the next record, beside the round: that a member leaves or is put
 * out, that exchanges with a dead member are void. Kept in memory until the chain has them; the
 * member that wants one repeats it. A revocation binds this node at once for links and
 * contributions; it binds every node, for the validity of records, once it stands in the chain
 * (SAFETY I1). */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/requests/leave.h"
#include "gossip/requests/request_msg.h"
#include "gossip/requests/requests.h"
#include "gossip/requests/revoke_request.h"
#include "gossip/requests/rotate.h"

dp_status dp_requests_open(dp_node *node)
{
    node->leave = dp_reserve(1, sizeof *node->leave);
    node->requests = dp_reserve(1, sizeof *node->requests);
    if (node->leave == NULL || node->requests == NULL) {
        return DP_NOMEM;
    }
    node->requests->invites = dp_reserve(1, sizeof *node->requests->invites);
    node->requests->rotate = dp_reserve(1, sizeof *node->requests->rotate);
    if (node->requests->invites == NULL || node->requests->rotate == NULL) {
        return DP_NOMEM;
    }
    node->requests->rotate->held = node->config.secrets;
    return DP_OK;
}

void dp_requests_close(dp_node *node)
{
    if (node->requests != NULL) {
        dp_free(node->requests->invites);
        dp_free(node->requests->rotate);
    }
    dp_free(node->requests);
    dp_free(node->leave);
}

bool dp_node_revoked(const dp_node *node, const dp_peer *peer)
{
    for (uint32_t i = 0; i < node->requests->n_removes; i++) {
        if (node->requests->removes[i].reason == DP_REMOVE_REVOKED &&
            dp_peer_equal(&node->requests->removes[i].peer, peer)) {
            return true;
        }
    }
    return false;
}

/* Wishes that the chain has fulfilled. */
void dp_requests_forget_done(dp_node *node)
{
    uint32_t kept = 0;

    dp_assert(node->requests->n_removes <= DP_REMOVES_MAX);
    dp_assert(node->requests->n_fences <= DP_FENCES_MAX);
    for (uint32_t i = 0; i < node->requests->n_removes; i++) {
        if (dp_ledger_member(&node->ledger, &node->requests->removes[i].peer) != NULL) {
            node->requests->removes[kept++] = node->requests->removes[i];
        }
    }
    node->requests->n_removes = kept;
    kept = 0;
    for (uint32_t i = 0; i < node->requests->n_fences; i++) {
        const dp_fence *fence = &node->requests->fences[i].fence;
        const uint32_t index = dp_ledger_find(&node->ledger, &fence->peer);
        if (index != DP_NOBODY && node->ledger.roster[index].fenced < fence->incarnation &&
            dp_request_lasts(node, &node->requests->fences[i])) {
            node->requests->fences[kept++] = node->requests->fences[i];
        }
    }
    node->requests->n_fences = kept;
    dp_revoke_request_forget_done(node);
}

/* ---- removals ---- */

static void send_remove(dp_node *node, const dp_remove *remove)
{
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    dp_assert(remove->reason == DP_REMOVE_LEFT || remove->reason == DP_REMOVE_REVOKED);
    dp_remove_msg_write(&writer, remove);
    if (remove->reason == DP_REMOVE_REVOKED) {
        dp_node_send_all(node, dp_view_of(writer.data, writer.size));
    } else {
        dp_node_send_voters(node, dp_view_of(writer.data, writer.size));
    }
}

/* From here on no link, and nothing of it is listed by this node. */
static void bind_here(dp_node *node, const dp_remove *remove)
{
    const uint32_t index = dp_node_member_index(node, &remove->peer);

    dp_assert(remove->reason == DP_REMOVE_REVOKED);
    dp_node_note(node, DP_NOTE_REMOVED, node->ledger.round + 1, &remove->peer, 0, 0, "revoked");
    if (index == 0) {
        node->leaving = true;
    } else if (index != DP_MEMBER_NONE) {
        dp_members_remove(node->members, index, node->now, 0, &node->out);
    }
}

dp_status dp_request_removal(dp_node *node, const dp_remove *remove)
{
    dp_assert(node->requests->n_removes <= DP_REMOVES_MAX);
    if (dp_ledger_member(&node->ledger, &remove->peer) == NULL) {
        return DP_OK;
    }
    for (uint32_t i = 0; i < node->requests->n_removes; i++) {
        if (dp_peer_equal(&node->requests->removes[i].peer, &remove->peer) &&
            node->requests->removes[i].reason == remove->reason) {
            return DP_OK;
        }
    }
    if (remove->reason == DP_REMOVE_REVOKED &&
        !dp_ledger_may_revoke(&node->ledger, &remove->by, &remove->peer)) {
        return DP_DENIED;
    }
    if (remove->reason == DP_REMOVE_ABSENT || remove->reason == DP_REMOVE_HARMFUL) {
        return DP_DENIED; /* Records alone have them. */
    }
    if (!dp_remove_verify(remove, &node->config.crypto, &node->run)) {
        return DP_BADSIG;
    }
    if (node->requests->n_removes >= DP_REMOVES_MAX) {
        return DP_AGAIN; /* It is told again. */
    }
    node->requests->removes[node->requests->n_removes++] = *remove;
    dp_node_changed(node);
    send_remove(node, remove); /* Before the link goes: the one concerned is told too. */
    if (remove->reason == DP_REMOVE_REVOKED) {
        bind_here(node, remove);
    }
    return DP_OK;
}

/* ---- fences ---- */

bool dp_request_lasts(const dp_node *node, const dp_fence_request *wish)
{
    return dp_time_between(wish->asked_at, node->now) < DP_FENCE_US;
}

void dp_request_fence(dp_node *node, const dp_fence *fence, const dp_peer *asker)
{
    uint32_t at = 0;

    dp_assert(node->requests->n_fences <= DP_FENCES_MAX);
    /* A node is in doubt with one at a time: its last request replaces its earlier ones, and
     * requests that no node repeats any more. */
    dp_requests_forget_done(node);
    while (at < node->requests->n_fences &&
           !dp_peer_equal(&node->requests->fences[at].asker, asker)) {
        at++;
    }
    if (at == DP_FENCES_MAX) {
        return; /* It asks again. */
    }
    node->requests->n_fences += at == node->requests->n_fences ? 1 : 0;
    node->requests->fences[at] =
        (dp_fence_request){.fence = *fence, .asker = *asker, .asked_at = node->now};
}

/* The message may have been carried by others. The asker shows the word that the peer signed for
 * its life in an exchange with this asker, so only a partner of an exchange can ask, and only about
 * that peer and that incarnation. */
static dp_status on_fence(dp_node *node, dp_view bytes)
{
    dp_fence_ask ask;

    DP_TRY(dp_fence_msg_read(bytes, &ask));
    const uint32_t index = dp_ledger_find(&node->ledger, &ask.fence.peer);
    if (index == DP_NOBODY || dp_ledger_member(&node->ledger, &ask.asker) == NULL ||
        node->ledger.roster[index].fenced >= ask.fence.incarnation) {
        return DP_OK;
    }
    if (!dp_life_verify(&ask, &node->config.crypto, &node->run)) {
        return DP_BADSIG;
    }
    dp_request_fence(node, &ask.fence, &ask.asker);
    return DP_OK;
}

/* ---- all ---- */

dp_status dp_requests_message(dp_node *node, uint8_t type, dp_view bytes)
{
    dp_remove remove;

    if (type == DP_MSG_FENCE_ASK) {
        return on_fence(node, bytes);
    }
    DP_TRY(dp_remove_msg_read(bytes, &remove));
    return dp_request_removal(node, &remove);
}

/* The own leaving, and every revocation known here, until the chain has them. */
void dp_requests_repeat(dp_node *node)
{
    dp_assert(node->requests->n_removes <= DP_REMOVES_MAX);
    if (node->leaving && node->mode != DP_MODE_LEFT &&
        dp_peer_equal(&node->requests->own_remove.peer, &node->self)) {
        send_remove(node, &node->requests->own_remove);
    }
    for (uint32_t i = 0; i < node->requests->n_removes; i++) {
        if (node->requests->removes[i].reason == DP_REMOVE_REVOKED) {
            send_remove(node, &node->requests->removes[i]);
        }
    }
    dp_revoke_request_repeat(node);
    dp_rotate_repeat(node);
}
