/* Announcements of the round to peers, repeated since messages may be lost: holdings, state,
 * missing contributions, the offer to vote. */
#include <string.h>

#include "base/assert.h"
#include "gossip/catchup/catchup.h"
#include "gossip/context/context.h"
#include "gossip/round/admit.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"

/* Then the holder of the root key may need to know which nodes could vote. */
static bool needs_fork(const dp_node *node)
{
    return node->halted || !dp_heartbeat_quorum(&node->beat);
}

static bool may_offer(const dp_node *node)
{
    const uint32_t index = dp_ledger_voter(&node->ledger, &node->self);
    const dp_roster_entry *entry = dp_ledger_member(&node->ledger, &node->self);
    const uint64_t uptime = dp_time_between(node->started_at, node->now);

    return node->config.has_vote_key && !node->commit->key_lost && entry != NULL &&
           (entry->caps & DP_CAP_VOTE) != 0 && node->standing.has_theta &&
           node->standing.applied ==
               node->ledger.round && /* A voter can give back every state from its own on, */
           uptime >= (uint64_t)node->manifest.voter_uptime_s * DP_SECOND &&
           (index == DP_NOBODY || needs_fork(node) ||
            memcmp(node->ledger.voters[index].key, node->config.vote_public_key,
                   DP_PUBLIC_KEY_BYTES) != 0) &&
           (dp_catchup_can_restart(node) || dp_broken(236)); /* ... after a crash too. */
}

/* In a large run each voter has links to many candidates, so nobody has to carry their offers to
 * the rest. */
static void send_offer(dp_node *node, dp_view message)
{
    const bool large = dp_members_count(node->members) > DP_FULL_MESH_MAX;

    if (needs_fork(node)) {
        dp_node_send_all(node, message);
    } else if (!large || !dp_node_send_linked_voters(node, message)) {
        dp_node_send_voters(node, message);
    }
}

static void tell_offer(dp_node *node)
{
    dp_voter_ok_msg offer = {.peer = node->self, .head = node->ledger.head};
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    if (!may_offer(node)) {
        return;
    }
    memcpy(offer.key, node->config.vote_public_key, sizeof offer.key);
    if (dp_voter_ok_sign(&node->config.crypto, &node->run, &offer.head, offer.key,
                         offer.signature)) {
        dp_voter_ok_msg_write(&writer, &offer);
        send_offer(node, dp_view_of(writer.data, writer.size));
    }
}

bool dp_round_repeat(dp_node *node)
{
    dp_round *round = node->round;

    if (!dp_time_reached(node->now, node->repeat_at)) {
        return false;
    }
    /* Something asked for it before its time: there is news, or a new link. */
    const bool urgent = node->repeat_at.us < round->repeat_planned.us || round->told_at.us == 0;
    if (urgent && dp_members_count(node->members) > DP_FULL_MESH_MAX &&
        dp_time_between(round->told_at, node->now) < DP_REPEAT_US / 2) {
        /* Links come and go all the time: a new one waits a little, so that the others are not
         * told for each. */
        node->repeat_at = dp_time_after(round->told_at, DP_REPEAT_US / 2);
        round->repeat_planned = DP_NEVER;
        return false;
    }
    node->repeat_at = dp_time_after(
        node->now, DP_BUGGIFY(node, DP_BUG_EAGER_REPEAT) ? DP_REPEAT_US / 8 : DP_REPEAT_US);
    round->repeat_planned = node->repeat_at;
    node->kind->look(node);
    /* The first repeats make up for usual losses, the later ones for faults. */
    const uint64_t most_us =
        dp_idle_is_quiet(&node->beat.idle, node->now) ? DP_IDLE_REPEAT_US : DP_REPEAT_US_MAX;
    const uint64_t wait_us = round->tell_us < most_us ? round->tell_us : most_us;
    if (!urgent && dp_time_between(round->told_at, node->now) < wait_us) {
        return false;
    }
    round->tell_us = urgent ? DP_REPEAT_US : 2 * wait_us;
    round->told_at = node->now;
    return true;
}

void dp_round_tell(dp_node *node)
{
    dp_round_tell_have(node);
    dp_round_tell_state(node);
    node->kind->repeat(node);
    tell_offer(node);
    dp_admit_tell(node);
}
