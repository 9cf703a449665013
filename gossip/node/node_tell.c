/* Repeats to peers the messages of each part of a node, since messages may be lost. */
#include <string.h>

#include "gossip/catchup/fork.h"
#include "gossip/catchup/proof.h"
#include "gossip/context/context.h"
#include "gossip/node/node_steps.h"
#include "gossip/requests/renew.h"
#include "gossip/requests/request_msg.h"
#include "gossip/requests/requests.h"
#include "gossip/round/round.h"
#include "gossip/training/training.h"

/* In doubt with a node that has been dead for long, or is no longer a member: the voters may void
 * the exchanges of that incarnation (SAFETY C5). */
static void ask_for_fence(dp_node *node)
{
    const dp_mix_look mix = dp_mix_view(node->mix);
    dp_fence_ask ask = {.fence = {.peer = mix.peer, .incarnation = mix.peer_incarnation},
                        .asker = node->self};
    const uint32_t index = dp_node_member_index(node, &mix.peer);
    const uint32_t entry = dp_ledger_find(&node->ledger, &mix.peer);

    if (!mix.in_doubt || entry == DP_NOBODY ||
        (node->ledger.roster[entry].gone == 0 &&
         dp_time_between(mix.since, node->now) < DP_VOTER_DEAD_US) ||
        (index != DP_MEMBER_NONE &&
         dp_members_at(node->members, index)->state == DP_MEMBER_ALIVE) ||
        node->ledger.roster[entry].fenced >= ask.fence.incarnation) {
        return;
    }
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);
    memcpy(ask.exchange, mix.exchange, sizeof ask.exchange);
    memcpy(ask.signature, mix.life, sizeof ask.signature);
    dp_fence_msg_write(&writer, &ask);
    dp_node_send_voters(node, dp_view_of(writer.data, writer.size));
    if (dp_node_is_voter(node)) {
        dp_request_fence(node, &ask.fence, &node->self);
    }
}

void dp_node_repeat(dp_node *node)
{
    if (!dp_round_repeat(node)) {
        return;
    }
    dp_train_announce(node);
    dp_round_tell(node);
    ask_for_fence(node);
    dp_proof_repeat(node);
    dp_fork_repeat(node);
    dp_requests_repeat(node);
    dp_renew_tick(node);
}
