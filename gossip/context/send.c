/* Messages to one peer, to the voters, to all; through other voters where there is no link. */
#include "base/assert.h"
#include "gossip/context/context.h"

/* kept: bytes in the arena of this step. */
static void send_kept(dp_node *node, const dp_peer *to, dp_view kept)
{
    const uint32_t index = dp_node_member_index(node, to);
    const uint32_t voter = dp_ledger_voter(&node->ledger, to);
    const bool linked = index != DP_MEMBER_NONE && dp_members_at(node->members, index)->linked;
    dp_peer relays[2];

    if (linked) {
        dp_out_send(&node->out, to, kept);
    }
    if (voter == DP_NOBODY || (linked && node->commit->self == DP_NOBODY)) {
        return;
    }
    /* No link, or a voter that does not hear us: through those that hear it. */
    const uint32_t n = dp_heartbeat_route(&node->beat, node->now, voter, relays,
                                          DP_BUGGIFY(node, DP_BUG_ONE_RELAY) ? 1 : 2);
    for (uint32_t i = 0; i < n; i++) {
        dp_writer writer = dp_out_writer(&node->out, DP_MSG_RELAY, DP_RELAY_HEAD_BYTES + kept.size);
        dp_view message;
        dp_write_u8(&writer, DP_RELAY_HOPS);
        dp_write_bytes(&writer, to->bytes, sizeof to->bytes);
        dp_write_view(&writer, kept);
        if (dp_out_message(&node->out, &writer, &message)) {
            dp_out_send(&node->out, &relays[i], message);
        }
    }
}

void dp_node_send(dp_node *node, const dp_peer *to, dp_view message)
{
    dp_assert(message.size > 0);
    send_kept(node, to, dp_out_keep(&node->out, message));
}

void dp_node_send_voters(dp_node *node, dp_view message)
{
    const dp_view kept = dp_out_keep(&node->out, message);

    dp_assert(message.size > 0);
    dp_assert(node->ledger.n_voters <= DP_VOTERS_MAX);
    for (uint32_t i = 0; i < node->ledger.n_voters; i++) {
        if (!dp_peer_equal(&node->ledger.voters[i].peer, &node->self)) {
            send_kept(node, &node->ledger.voters[i].peer, kept);
        }
    }
}

bool dp_node_send_linked_voters(dp_node *node, dp_view message)
{
    const dp_view kept = dp_out_keep(&node->out, message);
    bool sent = false;

    dp_assert(message.size > 0);
    for (uint32_t i = 0; i < node->ledger.n_voters; i++) {
        const dp_peer *voter = &node->ledger.voters[i].peer;
        const uint32_t index = dp_node_member_index(node, voter);
        if (index != 0 && index != DP_MEMBER_NONE && dp_members_at(node->members, index)->linked) {
            dp_out_send(&node->out, voter, kept);
            sent = true;
        }
    }
    return sent;
}

void dp_node_send_all(dp_node *node, dp_view message)
{
    const dp_view kept = dp_out_keep(&node->out, message);

    dp_assert(message.size > 0);
    dp_out_send_all(&node->out, kept);
    for (uint32_t i = 0; i < node->ledger.n_voters; i++) {
        const dp_peer *voter = &node->ledger.voters[i].peer;
        const uint32_t index = dp_node_member_index(node, voter);
        if (index != 0 &&
            (index == DP_MEMBER_NONE || !dp_members_at(node->members, index)->linked)) {
            send_kept(node, voter, kept);
        }
    }
}
