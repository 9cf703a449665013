/* The state after the newest round: the own one is signed and told, those of other voters are kept,
 * and a majority that signs one certifies it. */
#include <string.h>

#include "base/assert.h"
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"

/* A majority of the voters signed one root for the newest round: the signatures, for a record. */
bool dp_round_state_cert(const dp_node *node, dp_hash *root, dp_seal seals[DP_VOTERS_MAX],
                         uint32_t *n)
{
    const dp_state_vote *states = node->round->states;
    const uint32_t n_voters = node->ledger.n_voters;

    dp_assert(n_voters <= DP_VOTERS_MAX);
    for (uint32_t i = 0; i < n_voters; i++) {
        uint32_t count = 0;
        if (!states[i].known || states[i].round != node->ledger.round) {
            continue;
        }
        for (uint32_t k = 0; k < n_voters; k++) {
            if (states[k].known && states[k].round == node->ledger.round &&
                dp_hash_equal(&states[k].root, &states[i].root)) {
                seals[count].voter = (uint8_t)k;
                memcpy(seals[count].signature, states[k].signature, DP_SIGNATURE_BYTES);
                count++;
            }
        }
        if (count >= dp_ledger_majority(&node->ledger) || (dp_broken(44) && count >= 2)) {
            *root = states[i].root;
            *n = count;
            return true;
        }
    }
    return false;
}

static void look_at_certificate(dp_node *node)
{
    dp_seal seals[DP_VOTERS_MAX];
    dp_hash root;
    uint32_t n = 0;

    if (!dp_round_state_cert(node, &root, seals, &n)) {
        return;
    }
    if (!dp_chain_certify(node, &root)) {
        return;
    }
    dp_node_note(node, DP_NOTE_CERTIFIED, node->ledger.round, NULL, 0, 0, "");
    node->round->certified = true;
    dp_node_changed(node);
}

bool dp_round_take_certified(dp_node *node)
{
    const bool certified = node->round->certified;

    node->round->certified = false;
    return certified;
}

void dp_round_tell_state(dp_node *node)
{
    const uint32_t self = node->commit->self;
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    if (self == DP_NOBODY || !node->round->states[self].known ||
        node->round->states[self].round != node->ledger.round ||
        node->round->state_told.us == node->now.us || DP_BUGGIFY_HALF(node, DP_BUG_LOST_STATE)) {
        return;
    }
    const dp_state_vote *vote = &node->round->states[self];
    dp_state_msg state = {.voter = node->self, .round = vote->round, .root = vote->root};
    memcpy(state.signature, vote->signature, sizeof state.signature);
    node->round->state_told = node->now;
    dp_state_msg_write(&writer, &state);
    dp_node_send_all(node, dp_view_of(writer.data, writer.size));
}

void dp_round_state_own(dp_node *node)
{
    const uint32_t self = node->commit->self;

    dp_assert(self < DP_VOTERS_MAX || self == DP_NOBODY);
    if (self == DP_NOBODY || node->commit->key_lost || !node->standing.has_theta ||
        node->standing.applied != node->ledger.round) {
        return;
    }
    dp_state_vote *vote = &node->round->states[self];
    if (vote->known && vote->round == node->ledger.round &&
        dp_hash_equal(&vote->root, &node->standing.state_root)) {
        return;
    }
    *vote = (dp_state_vote){.round = node->ledger.round, .root = node->standing.state_root};
    vote->known = dp_state_sign(&node->config.crypto, &node->run, &node->ledger.fork, vote->round,
                                &vote->root, vote->signature);
    dp_round_tell_state(node);
    look_at_certificate(node);
}

void dp_round_state_withdraw(dp_node *node)
{
    if (node->commit->self != DP_NOBODY) { /* Else it has told none. */
        node->round->states[node->commit->self].known = false;
    }
}

dp_status dp_round_state_message(dp_node *node, dp_view bytes)
{
    dp_state_msg state;

    DP_TRY(dp_state_msg_read(bytes, &state));
    const uint32_t voter = dp_ledger_voter(&node->ledger, &state.voter);
    if (voter == DP_NOBODY || voter == node->commit->self ||
        (state.round != node->ledger.round && state.round != node->ledger.round + 1)) {
        return DP_OK;
    }
    dp_state_vote *vote = &node->round->states[voter];
    if (vote->known && vote->round >= state.round && dp_hash_equal(&vote->root, &state.root)) {
        return DP_OK;
    }
    if (!dp_broken(105) &&
        !dp_state_verify(&node->config.crypto, node->ledger.voters[voter].key, &node->run,
                         &node->ledger.fork, state.round, &state.root, state.signature)) {
        return DP_BADSIG;
    }
    *vote = (dp_state_vote){.known = true, .round = state.round, .root = state.root};
    memcpy(vote->signature, state.signature, sizeof vote->signature);
    look_at_certificate(node);
    dp_node_changed(node);
    return DP_OK;
}
