/* The round under way as seen by a node: contributions, their holders, state votes, and for voters
 * the time to close and to bid. */
#include <string.h>

#include "base/assert.h"
#include "gossip/catchup/list_exchange.h"
#include "gossip/context/context.h"
#include "gossip/requests/requests.h"
#include "gossip/round/claim.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"

/* ---- a new slot ---- */

/* Those that the record left out and the next may list keep their places. */
static void forget_claims(dp_node *node)
{
    dp_round *round = node->round;
    uint32_t kept = 0;

    dp_assert(node->round->n_claims <= node->round->claims_max);
    for (uint32_t i = 0; i < round->n_claims; i++) {
        if (dp_node_is_open(node, &round->claims[i].ready)) {
            round->claims[kept] = round->claims[i];
            if (round->claims[kept].found == DP_FOUND_NONE) { /* The state is another one. */
                round->claims[kept].suspect = round->claims[kept].whole = false;
            }
            kept++;
        }
    }
    round->n_claims = kept;
    dp_round_index_claims(node);
}

void dp_round_open_slot(dp_node *node, bool new_round)
{
    dp_round *round = node->round;

    dp_assert(node->ledger.n_voters <= DP_VOTERS_MAX);
    round->slot_opened = node->now;
    round->close_at = (dp_time){0};
    round->state_told = (dp_time){0}; /* Others may vote now. */
    round->bid_at = (dp_time){0};
    round->bids = 0;
    round->ahead_since = (dp_time){0};
    round->judged = (dp_hash){{0}};
    round->n_offers = 0; /* An offer names the head. */
    dp_judging_open_slot(node, new_round);
    dp_list_open_slot(node);
    dp_requests_forget_done(node);
    if (dp_broken(17)) {
        round->n_claims = 0;
        dp_round_index_claims(node);
    }
    if (new_round) {
        forget_claims(node);
        dp_claim_open_round(node);
        round->began_before = round->began;
        round->began = node->now;
        round->enough_at = (dp_time){0};
        round->opened = (dp_time){0};
    }
    node->kind->open_slot(node, new_round);
    for (uint32_t i = 0; i < round->n_claims; i++) {
        round->claims[i].have = 0; /* Bits are by voter of the slot. */
    }
    if (round->n_voters != node->ledger.n_voters ||
        memcmp(round->voters, node->ledger.voters, sizeof round->voters) != 0) {
        round->n_voters = node->ledger.n_voters;
        memcpy(round->voters, node->ledger.voters, sizeof round->voters);
        memset(round->states, 0, sizeof round->states); /* Indexes mean others now. */
        for (uint32_t i = 0; i < DP_VOTERS_MAX; i++) {
            round->voter_seen[i] = node->now;
        }
    }
    for (uint32_t i = 0; i < DP_VOTERS_MAX; i++) {
        round->states[i].known =
            round->states[i].known && round->states[i].round == node->ledger.round;
    }
    dp_node_repeat_now(node); /* The new slot's voters need the announcements at once. */
    dp_node_changed(node);
}

void dp_round_open(dp_node *node)
{
    if (node->round->opened.us == 0) {
        node->round->opened = node->now;
        dp_node_note(node, DP_NOTE_ROUND_OPENED, node->ledger.round + 1, NULL, 0, 0, "");
    }
}

/* ---- contributions ---- */

/* needed: of a record, or of this node. Not for so many READYs that the contributions of a record
 * find no room. */
static bool make_room(dp_node *node, const dp_peer *peer, bool needed)
{
    return needed ? node->round->n_claims < node->round->claims_max
                  : dp_claim_make_room(node, peer);
}

/* The READY is open, and its signature has been checked. */
void dp_round_ready(dp_node *node, const dp_ready *ready, bool evidence, bool own)
{
    dp_round *round = node->round;
    dp_claim *claim = dp_round_find_claim(node, &ready->peer, &ready->root);

    dp_assert(dp_node_is_open(node, ready) || evidence || own);
    if (claim != NULL && claim->evidence && !evidence &&
        dp_round_claim_of(node, &ready->peer) == NULL) {
        claim->evidence = false;
        claim->ready = *ready; /* With its parts. */
        dp_round_index_claim(round, (uint32_t)(claim - round->claims));
        dp_node_changed(node);
    }
    if (claim != NULL || (!evidence && dp_round_claim_of(node, &ready->peer) != NULL) ||
        !dp_valid_numbers(ready) || !dp_valid_lease(&node->ledger, ready) ||
        !make_room(node, &ready->peer, evidence || own)) {
        /* An own one may have numbers that no record may list: of a row that an older version
         * wrote. */
        return;
    }
    claim = &round->claims[round->n_claims++];
    *claim = (dp_claim){
        .ready = *ready, .evidence = evidence, .energy = ready->energy, .told_at = node->now};
    dp_round_index_claim(round, round->n_claims - 1);
    if (!own) {
        dp_node_note(node, DP_NOTE_READY, ready->round, &ready->peer, 0, 0, "");
    }
    node->kind->fetch(node, claim);
    dp_node_changed(node);
}

/* The voter that sends the READYs of this author on: the same to all that hear the same voters. */
static bool is_carrier(const dp_node *node, const dp_peer *author)
{
    const uint32_t n = node->ledger.n_voters;
    uint32_t at = author->bytes[0] % n;

    dp_assert(n > 0 && n <= DP_VOTERS_MAX && node->beat.n_voters == n);
    for (uint32_t k = 0; k < n && !dp_heartbeat_fresh(&node->beat, node->now, at); k++) {
        at = (at + 1) % n;
    }
    return at == node->commit->self;
}

/* Sends a READY on to those that its author may not reach: of a voter's to the voters that say that
 * they do not hear it; of another's to all voters, by one of them; and to the owners of parts. */
static void pass_on(dp_node *node, const dp_ready *ready, dp_view bytes)
{
    const uint32_t by = dp_ledger_voter(&node->ledger, &ready->peer);
    const bool carrier = is_carrier(node, &ready->peer);

    for (uint32_t i = 0; i < node->ledger.n_voters; i++) {
        const bool deaf = by == DP_NOBODY
                              ? carrier
                              : i != by && ((uint32_t)node->beat.voters[i].heard >> by & 1U) == 0;
        if (i != node->commit->self && deaf) {
            dp_node_send(node, &node->ledger.voters[i].peer, bytes);
        }
    }
    for (uint32_t p = 0; carrier && ready->parted && p < node->ledger.layout.cuts.n; p++) {
        const dp_peer *owner = &node->ledger.layout.owners[p];
        if (dp_ledger_voter(&node->ledger, owner) == DP_NOBODY) {
            dp_node_send(node, owner, bytes);
        }
    }
}

static dp_status on_ready(dp_node *node, dp_view bytes)
{
    dp_ready ready;

    DP_TRY(dp_ready_msg_read(bytes, &ready));
    if (!dp_node_is_open(node, &ready) || dp_peer_equal(&ready.peer, &node->self)) {
        return DP_OK; /* Old, early or our own: it is told again. */
    }
    const dp_claim *known = dp_round_find_claim(node, &ready.peer, &ready.root);
    if (known != NULL ? !known->evidence : !dp_claim_has_room(node, &ready.peer)) {
        return DP_OK;
    }
    if (ready.parted != node->ledger.parted ||
        (ready.parted && ready.parts.n != node->ledger.layout.cuts.n) ||
        !dp_round_may_contribute(node, &ready.peer) || !dp_valid_numbers(&ready) ||
        !dp_claim_fits(node, &ready) || !dp_valid_lease(&node->ledger, &ready)) {
        return DP_DENIED;
    }
    if (!dp_ready_verify(&ready, &node->config.crypto, &node->run, &node->ledger.fork)) {
        return DP_BADSIG;
    }
    const bool is_new = dp_round_claim_of(node, &ready.peer) == NULL;
    dp_round_ready(node, &ready, false, false);
    /* Only a READY that was taken: two voters without room for it would send it to and fro. */
    if (is_new && node->commit->self != DP_NOBODY && dp_round_claim_of(node, &ready.peer) != NULL &&
        !DP_BUGGIFY_HALF(node, DP_BUG_LOST_FORWARD)) {
        pass_on(node, &ready, bytes);
    }
    return DP_OK;
}

/* from: the peer whose link it came by; NULL: it was relayed. */
static dp_status on_have(dp_node *node, dp_view bytes, const dp_peer *from)
{
    dp_have_msg have;

    DP_TRY(dp_have_msg_read(bytes, &have));
    if ((from == NULL || !dp_peer_equal(from, &have.voter)) && !dp_broken(199) &&
        !dp_have_verify(&have, &node->config.crypto, &node->run)) {
        return DP_BADSIG;
    }
    const uint32_t voter = dp_ledger_voter(&node->ledger, &have.voter);
    const uint32_t member = dp_node_member_index(node, &have.voter);
    if (have.round != node->ledger.round + 1 || dp_node_revoked(node, &have.voter)) {
        return DP_OK;
    }
    if (voter != DP_NOBODY || dp_ledger_member(&node->ledger, &have.voter) != NULL) {
        node->kind->have(node, voter, member, have.roots, have.n);
    }
    return DP_OK;
}

static dp_status on_offer(dp_node *node, dp_view bytes)
{
    dp_round *round = node->round;
    dp_voter_ok_msg offer;

    DP_TRY(dp_voter_ok_msg_read(bytes, &offer));
    const dp_roster_entry *entry = dp_ledger_member(&node->ledger, &offer.peer);
    if (!dp_hash_equal(&offer.head, &node->ledger.head) || entry == NULL ||
        (entry->caps & DP_CAP_VOTE) == 0) {
        return DP_OK; /* The list is for those that may be taken from it. */
    }
    for (uint32_t i = 0; i < round->n_offers; i++) {
        if (dp_peer_equal(&round->offers[i].peer, &offer.peer)) {
            return DP_OK;
        }
    }
    if (!dp_voter_ok_verify(&node->config.crypto, &offer.peer, &node->run, &offer.head, offer.key,
                            offer.signature)) {
        return DP_BADSIG;
    }
    if (round->n_offers < DP_OFFERS_MAX) {
        round->offers[round->n_offers++] = offer;
    }
    return DP_OK;
}

dp_status dp_round_message(dp_node *node, uint8_t type, dp_view bytes, const dp_peer *from)
{
    switch (type) {
    case DP_MSG_READY:
        return on_ready(node, bytes);
    case DP_MSG_HAVE:
        return on_have(node, bytes, from);
    case DP_MSG_STATE:
        return dp_round_state_message(node, bytes);
    case DP_MSG_VOTER_OK:
        return on_offer(node, bytes);
    default: /* The caller sends nothing else. */
        return DP_BADMSG;
    }
}

void dp_round_trainer_down(dp_node *node)
{
    dp_assert(node->standing.state == DP_TRAINER_OFF);
    node->round->checks = 0;
    dp_judging_trainer_down(node);
    node->kind->trainer_down(node);
}

bool dp_round_checked(dp_node *node, const dp_event *event)
{
    dp_round_end_check(node, &event->u.checked.root);
    return node->kind->checked(node, event);
}
