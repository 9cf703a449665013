/* What a node tells its peers of the round, and tells again, since messages may be lost:
 * contribution, holdings, state, the offer to vote, its leaving, the wish for a fence. */
#include <string.h>

#include "base/assert.h"
#include "gossip/node/node_internal.h"
#include "gossip/requests/renew.h"
#include "gossip/round/admit.h"
#include "gossip/round/judge_round.h"

/* Then whoever holds the root key may want to know who could vote. */
static bool needs_fork(const dp_node *node)
{
    return node->halted || !dp_beat_quorum(&node->beat);
}

static bool may_offer(const dp_node *node)
{
    const uint32_t index = dp_ledger_voter(&node->ledger, &node->self);
    const dp_roster_entry *entry = dp_ledger_member(&node->ledger, &node->self);
    const uint64_t uptime = dp_time_between(node->started_at, node->now);

    return node->config.has_vote_key && !node->commit->key_lost && entry != NULL &&
           (entry->caps & DP_CAP_VOTE) != 0 && node->standing.has_theta &&
           node->standing.applied ==
               node->ledger.round && /* A voter can give back every state from its own on. */
           uptime >= (uint64_t)node->manifest.voter_uptime_s * DP_SECOND &&
           (index == DP_NOBODY || needs_fork(node) ||
            memcmp(node->ledger.voters[index].key, node->config.vote_public_key,
                   DP_PUBLIC_KEY_BYTES) != 0);
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
        if (needs_fork(node)) {
            dp_node_send_all(node, dp_view_of(writer.data, writer.size));
        } else {
            dp_node_send_voters(node, dp_view_of(writer.data, writer.size));
        }
    }
}

static void send_have(dp_node *node, dp_have_msg *have)
{
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    if (have->n > 0 && dp_have_sign(have, &node->config.crypto, &node->run)) {
        dp_have_msg_write(&writer, have);
        dp_node_send_voters(node, dp_view_of(writer.data, writer.size));
    }
    have->n = 0;
}

void dp_round_tell_have_one(dp_node *node, const dp_hash *root)
{
    dp_have_msg have = {.voter = node->self, .round = node->ledger.round + 1};
    const uint32_t self = node->commit->self;

    if (self == DP_NOBODY || DP_BUGGIFY_HALF(node, DP_BUG_LOST_HAVE)) {
        return;
    }
    for (uint32_t i = 0; i < node->round->n_claims && have.n == 0; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (dp_hash_equal(&claim->ready.root, root) && claim->held && claim->checked &&
            !claim->bad && dp_judging_tells(node, claim)) {
            claim->have |= 1U << self;
            have.roots[have.n++] = *root;
        }
    }
    send_have(node, &have);
}

void dp_round_tell_have(dp_node *node)
{
    dp_have_msg have = {.voter = node->self, .round = node->ledger.round + 1};
    const uint32_t self = node->commit->self;

    if (self == DP_NOBODY || DP_BUGGIFY_HALF(node, DP_BUG_LOST_HAVE)) {
        return;
    }
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (claim->held && claim->checked && !claim->bad && dp_judging_tells(node, claim)) {
            claim->have |= 1U << self;
            have.roots[have.n++] = claim->ready.root;
        }
        if (have.n == DP_HAVE_MAX) { /* Of a run with lists. */
            send_have(node, &have);
        }
    }
    for (uint32_t i = 0; node->parts != NULL && i < node->parts->n_results; i++) {
        dp_result *result = &node->parts->results[i];
        if (result->held && result->checked && !result->bad && have.n < DP_HAVE_MAX) {
            result->have |= 1U << self;
            have.roots[have.n++] = result->word.root;
        }
    }
    send_have(node, &have);
}

void dp_round_tell_state(dp_node *node)
{
    const uint32_t self = node->commit->self;
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    if (self == DP_NOBODY || !node->round->states[self].known ||
        node->round->states[self].round != node->ledger.round ||
        DP_BUGGIFY_HALF(node, DP_BUG_LOST_STATE)) {
        return;
    }
    const dp_state_vote *vote = &node->round->states[self];
    dp_state_msg state = {.voter = node->self, .round = vote->round, .root = vote->root};
    memcpy(state.signature, vote->signature, sizeof state.signature);
    dp_state_msg_write(&writer, &state);
    dp_node_send_all(node, dp_view_of(writer.data, writer.size));
}

/* Nobody linked is known to hold this blob: neither its author nor a voter that says so. */
static bool is_out_of_reach(const dp_node *node, const dp_claim *claim)
{
    const uint32_t author = dp_node_member_index(node, &claim->ready.peer);
    bool near = author != DP_MEMBER_NONE && dp_members_at(node->members, author)->linked;

    for (uint32_t i = 0; i < node->ledger.n_voters && !near; i++) {
        const uint32_t index = dp_node_member_index(node, &node->ledger.voters[i].peer);
        near = (claim->have & (1U << i)) != 0 && index != DP_MEMBER_NONE &&
               dp_members_at(node->members, index)->linked;
    }
    return !near;
}

/* A record may bind voters to a blob that only one of them holds, to whom this one has no link.
 * Members between them do not know of it, since its author is gone; shown the READY they fetch it,
 * and it is fetched from them. */
static void show_missing(dp_node *node)
{
    dp_writer writer;

    for (uint32_t i = 0;
         node->parts == NULL && node->commit->self != DP_NOBODY && i < node->round->n_claims; i++) {
        const dp_claim *claim = &node->round->claims[i];
        if (!claim->held && !claim->bad && is_out_of_reach(node, claim)) {
            writer = dp_writer_of(node->room, sizeof node->room);
            dp_ready_msg_write(&writer, &claim->ready);
            dp_node_send_all(node, dp_view_of(writer.data, writer.size));
        }
    }
}

/* In doubt with somebody who has been dead for long, or is a member no more: the voters may void
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
        dp_wish_fence(node, &ask.fence, &node->self);
    }
}

void dp_round_repeat(dp_node *node)
{
    dp_round *round = node->round;

    /* Somebody has asked for it before its time: there is news, or a new link. */
    const bool urgent = round->repeat_at.us < round->repeat_planned.us || round->told_at.us == 0;
    if (urgent && dp_members_count(node->members) > DP_FULL_MESH_MAX &&
        dp_time_between(round->told_at, node->now) < DP_REPEAT_US / 2) {
        /* Links come and go all the time: who is new waits a little, so that the others are not
         * told for each. */
        round->repeat_at = dp_time_after(round->told_at, DP_REPEAT_US / 2);
        round->repeat_planned = DP_NEVER;
        return;
    }
    round->repeat_at = dp_time_after(
        node->now, DP_BUGGIFY(node, DP_BUG_EAGER_REPEAT) ? DP_REPEAT_US / 8 : DP_REPEAT_US);
    round->repeat_planned = round->repeat_at;
    if (node->parts != NULL) {
        dp_part_round_look(node);
    }
    for (uint32_t i = 0; node->parts == NULL && i < round->n_claims; i++) {
        dp_claim *claim = &round->claims[i];
        if (!claim->held) {
            if (!dp_spread_wants(node->spread, &claim->ready.root)) {
                dp_round_fetch_blob(node, claim);
            }
        } else if (!claim->checked && node->standing.state != DP_TRAINER_OFF) {
            dp_round_check_blob(node, claim);
        }
    }
    /* The first repeats are for what is lost now and then, the later ones for what should not
     * happen. */
    if (!urgent && !dp_time_reached(node->now, dp_time_after(round->told_at, round->tell_us))) {
        return;
    }
    round->tell_us = urgent                              ? DP_REPEAT_US
                     : round->tell_us < DP_REPEAT_US_MAX ? 2 * round->tell_us
                                                         : DP_REPEAT_US_MAX;
    round->told_at = node->now;
    dp_train_announce(node);
    dp_round_tell_have(node);
    dp_round_tell_state(node);
    show_missing(node);
    if (node->parts != NULL) {
        dp_part_round_repeat(node);
    }
    tell_offer(node);
    dp_admit_tell(node);
    ask_for_fence(node);
    dp_proof_repeat(node);
    dp_fork_repeat(node);
    dp_wish_repeat(node);
    dp_renew_tick(node);
}
