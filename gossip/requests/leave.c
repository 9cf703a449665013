/* This node leaves for good: until when it has to stay, so that its going does not stop the run.
 * The record that takes a voter out may be known to nobody else yet: the voters after it cannot
 * decide before they have it, and the voters that decided it may be gone. So a former voter stays
 * and serves, and votes no more, until the heartbeats of a majority of the present voters show that
 * they have the record. */
#include "gossip/requests/leave.h"
#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/context/context.h"
#include "gossip/requests/requests.h"

void dp_leave_ask(dp_node *node)
{
    node->leaving = true;
    node->leave->asked_at = node->now;
    node->requests->own_remove = (dp_remove){
        .peer = node->self, .reason = DP_REMOVE_LEFT, .incarnation = node->config.incarnation};
    if (!dp_remove_sign(&node->requests->own_remove, &node->config.crypto, DP_KEY_IDENTITY,
                        &node->run)) {
        node->requests->own_remove = (dp_remove){0};
    } else {
        DP_IGNORE(
            dp_request_removal(node, &node->requests->own_remove)); /* Full: it is told again. */
    }
    dp_node_repeat_now(node);
}

void dp_leave_decided(dp_node *node, bool voted)
{
    const bool is_member = dp_ledger_member(&node->ledger, &node->self) != NULL;

    node->leave->voted = voted || (node->leave->voted && !is_member);
}

void dp_leave_taken_out(dp_node *node)
{
    dp_assert(node->mode == DP_MODE_LEFT);
    node->leave->left_at = node->now;
    dp_leave_tick(node);
}

/* A majority of the present voters has the record that takes this node out: one of them may be lost
 * then as at any other time. */
static bool is_handed_over(const dp_node *node, const dp_roster_entry *own)
{
    uint32_t holding = 0;

    dp_assert(own->gone == DP_REMOVE_LEFT);
    for (uint32_t i = 0; i < node->ledger.n_voters; i++) {
        const uint64_t slot = i == node->beat.own ? node->ledger.slot : node->beat.voters[i].slot;
        holding += slot >= own->gone_slot;
    }
    return 2 * holding > node->ledger.n_voters || dp_broken(63);
}

static bool may_part(const dp_node *node)
{
    const uint32_t index = dp_ledger_find(&node->ledger, &node->self);
    const dp_roster_entry *own = index != DP_NOBODY ? &node->ledger.roster[index] : NULL;

    dp_assert(node->mode == DP_MODE_LEFT || node->leave->left_at.us != 0);
    return own == NULL || own->gone != DP_REMOVE_LEFT || !node->leave->voted ||
           is_handed_over(node, own) ||
           dp_time_between(node->leave->left_at, node->now) >= DP_LINGER_US;
}

void dp_leave_tick(dp_node *node)
{
    if (node->leave->left_at.us != 0 && may_part(node)) {
        dp_members_leave(node->members, node->now, node->wall_ms, true, &node->out);
    }
}

/* A record removes a voter. It takes a round, or is a record of its own when no round is near.
 * Without a majority no record is decided, and a sole voter has to wait for another node that may
 * vote. */
dp_leaving dp_leave_state(const dp_node *node)
{
    if (node->mode == DP_MODE_LEFT) {
        return may_part(node) ? DP_LEAVING_FREE : DP_LEAVING_WAITS;
    }
    if (!node->leaving) {
        return DP_LEAVING_NOT;
    }
    const bool votes =
        node->commit->self != DP_NOBODY && !node->commit->key_lost && node->ledger.n_members > 1;
    const bool alone = votes && node->ledger.n_voters == 1;
    const uint64_t limit_us = DP_LEAVE_US + (alone || (votes && dp_heartbeat_quorum(&node->beat))
                                                 ? 3ULL * node->manifest.round_ms * DP_MS
                                                 : 0);
    if (dp_time_between(node->leave->asked_at, node->now) < limit_us) {
        return DP_LEAVING_WAITS;
    }
    return alone ? DP_LEAVING_NEEDED : DP_LEAVING_FREE;
}
