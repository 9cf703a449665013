/* Messages in the names of voters that the liar signs with its own key: states, votes and whole
 * decisions. None of them may count. */
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/round/round_msg.h"
#include "gossip/vote/commit_msg.h"
#include "tests/sim/evil.h"
#include "tests/sim/oracle_internal.h"

static uint8_t out[DP_RECORD_BYTES_MAX + DP_CERT_OF_RECORD_BYTES_MAX + 64];
static uint8_t bytes[DP_RECORD_BYTES_MAX];
static dp_record record;
static dp_vote_msg msg;

static void say_to_all(dp_host *host, size_t size)
{
    for (uint32_t to = 0; to < host->sim->plan.nodes; to++) {
        dp_evil_say(host, to, dp_view_of(out, size));
    }
}

/* Claims that all voters hold one state, which does not exist. */
static void forge_states(dp_host *host, const dp_slot_book *slot)
{
    dp_sim *sim = host->sim;
    const dp_crypto crypto = dp_sim_crypto(host);
    const dp_hash fork = {{0}};
    dp_state_msg state = {.round = dp_oracle_rounds(sim) + dp_evil_below(sim, 2)};

    state.root.bytes[0] = (uint8_t)(1 + dp_evil_below(sim, 255));
    dp_assert(dp_state_sign(&crypto, &sim->run, &fork, state.round, &state.root, state.signature));
    for (uint32_t i = 0; i < slot->n_voters; i++) {
        dp_writer w = dp_writer_of(out, sizeof out);
        state.voter = slot->voters[i];
        if (!dp_peer_equal(&state.voter, &host->peer)) {
            dp_state_msg_write(&w, &state);
            say_to_all(host, w.size);
        }
    }
}

/* Makes a copy of the record that was proposed for the slot, with another time, which is valid.
 * False: none was proposed. */
static bool make_record(const dp_slot_book *slot, dp_view *made)
{
    const dp_ballot_book *book = slot->n_ballots > 0 ? &slot->ballots[0] : NULL;

    if (book == NULL || book->record == NULL ||
        dp_record_decode(&record, dp_view_of(book->record, book->record_size)) != DP_OK) {
        return false;
    }
    record.time_ms++;
    return dp_record_encode(&record, bytes, sizeof bytes, made) == DP_OK;
}

static dp_vote vote_of(dp_host *host, uint8_t type, uint32_t voter, uint32_t ballot,
                       const dp_hash *hash)
{
    const dp_crypto crypto = dp_sim_crypto(host);
    dp_vote vote = {.type = type,
                    .voter = (uint8_t)voter,
                    .slot = record.slot,
                    .prev = record.prev,
                    .ballot = ballot,
                    .hash = *hash};

    dp_assert(dp_vote_sign(&vote, &crypto, &host->sim->run));
    vote.signature[0] ^= 1; /* Otherwise it would convict itself if it is a voter. */
    return vote;
}

/* A proposal in the name of the owner of ballot 0, or in a later ballot with promises of all; and
 * the ACCEPTED of all. */
static void forge_votes(dp_host *host, const dp_slot_book *slot, dp_view made)
{
    const dp_hash hash = dp_record_hash(made);
    const uint32_t ballot = (uint32_t)dp_evil_below(host->sim, 4);

    for (uint32_t i = 0; i < slot->n_voters; i++) {
        if (dp_peer_equal(&slot->voters[i], &host->peer)) {
            continue; /* Here it does not lie in its own name. */
        }
        dp_writer w = dp_writer_of(out, sizeof out);
        memset(&msg, 0, sizeof msg);
        msg.vote = vote_of(host, DP_MSG_PROPOSE, i, ballot, &hash);
        msg.record = made;
        for (uint32_t k = 0; ballot > 0 && k < slot->n_voters; k++) {
            msg.just[msg.n_just++] = vote_of(host, DP_MSG_PROMISE, k, ballot, &(dp_hash){{0}});
        }
        dp_vote_msg_write(&w, &msg);
        say_to_all(host, w.size);
        w = dp_writer_of(out, sizeof out);
        memset(&msg, 0, sizeof msg);
        msg.vote = vote_of(host, DP_MSG_ACCEPTED, i, ballot, &hash);
        dp_vote_msg_write(&w, &msg);
        say_to_all(host, w.size);
    }
}

/* A decision, with the seals of all voters. */
static void forge_decide(dp_host *host, const dp_slot_book *slot, dp_view made)
{
    const dp_hash hash = dp_record_hash(made);
    dp_cert_of_record cert = {.ballot = 0};
    uint8_t seals[DP_CERT_OF_RECORD_BYTES_MAX];
    dp_view encoded;
    dp_writer w = dp_writer_of(out, sizeof out);

    for (uint32_t i = 0; i < slot->n_voters; i++) {
        const dp_vote vote = vote_of(host, DP_MSG_ACCEPTED, i, 0, &hash);
        cert.seals[cert.n].voter = (uint8_t)i;
        memcpy(cert.seals[cert.n++].signature, vote.signature, DP_SIGNATURE_BYTES);
    }
    if (dp_cert_of_record_encode(&cert, seals, sizeof seals, &encoded) == DP_OK) {
        dp_decide_msg_write(&w, record.slot, encoded, made);
        say_to_all(host, w.size);
    }
}

void dp_evil_forge(dp_host *host)
{
    dp_sim *sim = host->sim;
    const dp_slot_book *slot = dp_oracle_slot(sim, dp_oracle_slots(sim) + 1);
    dp_view made = {0};

    /* A single voter needs only its own vote. */
    if (slot->n_voters < 3 || dp_evil_below(sim, 3) == 0) {
        if (slot->n_voters >= 3) {
            forge_states(host, slot);
        }
    } else if (make_record(slot, &made)) {
        if (dp_evil_below(sim, 2) == 0) {
            forge_votes(host, slot, made);
        } else {
            forge_decide(host, slot, made);
        }
    }
}
