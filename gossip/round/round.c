/* The round under way as seen by a node: contributions, who holds them, state votes, and for voters
 * when to close and bid. */
#include <string.h>

#include "base/assert.h"
#include "gossip/node/node_internal.h"
#include "gossip/round/judge_round.h"

#define CHECK_BYTES_MAX (256ULL << 20)

static dp_claim *find_claim(const dp_node *node, const dp_peer *peer, const dp_hash *root)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        if (dp_hash_equal(&node->round->claims[i].ready.root, root) &&
            dp_peer_equal(&node->round->claims[i].ready.peer, peer)) {
            return &node->round->claims[i];
        }
    }
    return NULL;
}

static dp_hash key_of(const dp_peer *peer)
{
    dp_hash key;

    memcpy(key.bytes, peer->bytes, sizeof key.bytes);
    return key;
}

static bool is_own_claim(const dp_round *round, uint32_t index, const dp_peer *peer)
{
    return index < round->n_claims && !round->claims[index].evidence &&
           dp_peer_equal(&round->claims[index].ready.peer, peer);
}

dp_claim *dp_round_claim_of(const dp_node *node, const dp_peer *peer)
{
    dp_round *round = node->round;
    const dp_hash key = key_of(peer);
    uint32_t index = 0;

    if (!dp_map_get(&round->claim_of, &key, &index)) {
        return NULL;
    }
    if (is_own_claim(round, index, peer)) {
        return &round->claims[index];
    }
    return NULL;
}

static void index_claim(dp_round *round, uint32_t index)
{
    const dp_hash key = key_of(&round->claims[index].ready.peer);

    if (!round->claims[index].evidence) {
        const dp_status status = dp_map_put(&round->claim_of, &key, index);
        dp_assert(status == DP_OK); /* As many keys as claims. */
    }
}

void dp_round_index_claims(dp_node *node)
{
    dp_round *round = node->round;

    dp_map_clear(&round->claim_of);
    for (uint32_t i = 0; i < round->n_claims; i++) {
        index_claim(round, i);
    }
}

uint32_t dp_round_claim_age(const dp_node *node, const dp_claim *claim)
{
    return claim->ready.round == node->ledger.round ? 1 : 0;
}

/* ---- a new slot ---- */

/* Those that the record left out and the next may list keep their places. */
static void forget_claims(dp_node *node)
{
    dp_round *round = node->round;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < round->n_claims; i++) {
        if (dp_node_is_open(node, &round->claims[i].ready)) {
            round->claims[kept++] = round->claims[i];
        }
    }
    round->n_claims = kept;
    dp_round_index_claims(node);
}

void dp_round_open_slot(dp_node *node, bool new_round)
{
    dp_round *round = node->round;

    round->slot_opened = node->now;
    round->close_at = (dp_time){0};
    round->bid_at = (dp_time){0};
    round->bids = 0;
    round->ahead_since = (dp_time){0};
    round->judged = (dp_hash){{0}};
    round->n_offers = 0; /* An offer names the head. */
    dp_judging_open_slot(node, new_round);
    round->lists_for = (dp_hash){{0}};
    dp_wish_forget_done(node);
    if (dp_broken(17)) {
        round->n_claims = 0;
        dp_round_index_claims(node);
    }
    if (new_round) {
        forget_claims(node);
        dp_claim_open_round(node);
        round->enough_at = (dp_time){0};
        round->opened = (dp_time){0};
        if (node->parts != NULL) {
            dp_part_round_open_round(node);
        }
    }
    for (uint32_t i = 0; node->parts != NULL && i < node->parts->n_results; i++) {
        node->parts->results[i].have = 0;
    }
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
    round->repeat_at = node->now; /* Tell at once what the new slot's voters need to know. */
    node->dirty = true;
}

/* ---- states ---- */

static void look_at_certificate(dp_node *node)
{
    dp_seal seals[DP_VOTERS_MAX];
    dp_hash root;
    uint32_t n = 0;
    const uint64_t round = node->ledger.round;

    if (!dp_round_state_cert(node, &root, seals, &n)) {
        return;
    }
    dp_ring_row *row = dp_chain_row(node, round);
    if (round == 0 && !node->chain->genesis_certified) {
        node->chain->genesis_certified = true;
        node->chain->genesis_root = root;
    } else if (row != NULL && !row->certified) {
        row->certified = true;
        row->root = root;
    } else {
        return;
    }
    dp_node_note(node, DP_NOTE_CERTIFIED, round, NULL, 0, 0, "");
    dp_train_certified(node, round);
    node->dirty = true;
}

/* After APPLIED of the newest round: sign it. */
void dp_round_state_own(dp_node *node)
{
    const uint32_t self = node->commit->self;

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

/* ---- contributions ---- */

bool dp_round_may_contribute(const dp_node *node, const dp_peer *peer)
{
    const dp_roster_entry *entry = dp_ledger_member(&node->ledger, peer);

    return entry != NULL && (entry->caps & DP_CAP_TRAIN) != 0 && !dp_node_revoked(node, peer);
}

/* Each is in memory as a whole until it is decoded. */
bool dp_round_may_check(dp_node *node)
{
    const uint32_t most = DP_BUGGIFY(node, DP_BUG_ONE_CHECK) ? 1 : DP_CHECKS_MAX;

    return dp_out_room(&node->out, 1) &&
           (node->round->checks == 0 ||
            (node->round->checks < most &&
             (node->round->check_bytes < CHECK_BYTES_MAX || dp_broken(198))));
}

void dp_round_begin_check(dp_node *node, const dp_hash *root)
{
    node->round->check_bytes = node->round->checks > 0 ? node->round->check_bytes : 0;
    node->round->checks++;
    node->round->check_bytes += dp_node_size(node, root);
}

static void end_check(dp_node *node, const dp_hash *root)
{
    const uint64_t bytes = dp_node_size(node, root); /* 0, if it was let go of meanwhile. */

    node->round->checks -= node->round->checks > 0 ? 1 : 0;
    node->round->check_bytes -= bytes < node->round->check_bytes ? bytes : node->round->check_bytes;
}

void dp_round_check_blob(dp_node *node, dp_claim *claim)
{
    if (!claim->checking && !claim->checked && dp_round_may_check(node)) {
        claim->checking = true;
        dp_round_begin_check(node, &claim->ready.root);
        dp_action *action = dp_out_add(&node->out, DP_DO_CHECK);
        action->u.check.root = claim->ready.root;
        action->u.check.end = DP_PART_WHOLE;
        action->u.check.keep = dp_node_keep(node, claim->ready.round);
    }
}

static void hold(dp_node *node, dp_claim *claim, uint64_t size)
{
    claim->held = true;
    claim->size = size;
    if (claim->held_at.us == 0) {
        claim->held_at = node->now;
        if (!dp_peer_equal(&claim->ready.peer, &node->self)) {
            dp_relay_came(&node->relay, dp_time_between(claim->told_at, node->now));
        }
    }
}

void dp_round_fetch_blob(dp_node *node, dp_claim *claim)
{
    const dp_hash *root = &claim->ready.root;

    if (node->parts != NULL) {
        dp_part_round_look(node);
        return;
    }
    if (claim->bad && !claim->held) {
        return; /* It is not what its READY says. */
    }
    if (dp_node_holds(node, root)) {
        hold(node, claim, dp_node_size(node, root));
        if (node->standing.state != DP_TRAINER_OFF) {
            dp_round_check_blob(node, claim);
        }
        return;
    }
    if (dp_spread_want(node->spread, node->now, root, 0, DP_USE_BLOB, DP_PRIORITY_ROUND,
                       &node->out) != DP_OK) {
        node->round->unwanted = true; /* Asked again when one has come, or with the next repeat. */
        return;
    }
    const uint32_t author = dp_node_member_index(node, &claim->ready.peer);
    if (author != DP_MEMBER_NONE && author != 0) {
        dp_spread_holder(node->spread, node->now, root, author, &node->out);
    }
}

/* needed: of a record, or of this node. Not for so many READYs that what a record lists cannot be
 * looked at. */
static bool make_room(dp_node *node, const dp_peer *peer, bool needed)
{
    return needed ? node->round->n_claims < node->round->claims_max
                  : dp_claim_make_room(node, peer);
}

static void told_of_parts(dp_node *node, const dp_ready *ready)
{
    if (node->parts != NULL) {
        dp_part_early_claimed(node, ready);
    }
}

/* The READY is open, and its signature has been checked. */
void dp_round_ready(dp_node *node, const dp_ready *ready, bool evidence, bool own)
{
    dp_round *round = node->round;
    dp_claim *claim = find_claim(node, &ready->peer, &ready->root);

    if (claim != NULL && claim->evidence && !evidence &&
        dp_round_claim_of(node, &ready->peer) == NULL) {
        claim->evidence = false;
        claim->ready = *ready; /* With its parts. */
        index_claim(round, (uint32_t)(claim - round->claims));
        told_of_parts(node, ready);
        node->dirty = true;
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
    index_claim(round, round->n_claims - 1);
    if (!evidence) {
        told_of_parts(node, ready);
    }
    if (!own) {
        dp_node_note(node, DP_NOTE_READY, ready->round, &ready->peer, 0, 0, "");
    }
    dp_round_fetch_blob(node, claim);
    node->dirty = true;
}

static dp_status on_ready(dp_node *node, dp_view bytes)
{
    dp_ready ready;

    DP_TRY(dp_ready_msg_read(bytes, &ready));
    if (!dp_node_is_open(node, &ready) || dp_peer_equal(&ready.peer, &node->self)) {
        return DP_OK; /* Old, early or our own: it is told again. */
    }
    const dp_claim *known = find_claim(node, &ready.peer, &ready.root);
    if (known != NULL ? !known->evidence : !dp_claim_has_room(node, &ready.peer)) {
        return DP_OK;
    }
    if (ready.parted != (node->parts != NULL) ||
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
    /* Only what was taken: two voters without room for it would send it to and fro. */
    if (is_new && node->commit->self != DP_NOBODY && dp_round_claim_of(node, &ready.peer) != NULL &&
        !DP_BUGGIFY_HALF(node, DP_BUG_LOST_FORWARD)) {
        dp_node_send_voters(node, bytes); /* Once: for voters that the author does not reach, */
        for (uint32_t p = 0; ready.parted && p < node->ledger.layout.cuts.n; p++) {
            const dp_peer *owner = &node->ledger.layout.owners[p];
            if (dp_ledger_voter(&node->ledger, owner) == DP_NOBODY) {
                dp_node_send(node, owner, bytes); /* and who adds up. */
            }
        }
    }
    return DP_OK;
}

/* from: whose link it came by; NULL: others carried it. */
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
    if (voter == DP_NOBODY) { /* Somebody near that fetches results for this one too? */
        if (node->parts != NULL && dp_ledger_member(&node->ledger, &have.voter) != NULL) {
            dp_part_round_have(node, voter, member, have.roots, have.n);
        }
        return DP_OK;
    }
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        bool has = false;
        for (uint32_t k = 0; k < have.n && !has; k++) {
            has = dp_hash_equal(&have.roots[k], &claim->ready.root);
        }
        if (has && (claim->have & (1U << voter)) == 0) {
            claim->have |= 1U << voter;
            node->dirty = true;
        }
        if (has && !claim->held && member != DP_MEMBER_NONE && member != 0) {
            dp_spread_holder(node->spread, node->now, &claim->ready.root, member, &node->out);
        }
    }
    if (node->parts != NULL) {
        dp_part_round_have(node, voter, member, have.roots, have.n);
    }
    return DP_OK;
}

static dp_status on_state(dp_node *node, dp_view bytes)
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
    node->dirty = true;
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
        return on_state(node, bytes);
    case DP_MSG_VOTER_OK:
        return on_offer(node, bytes);
    default: /* The caller sends nothing else. */
        return DP_BADMSG;
    }
}

/* There is room again for blobs that were too many to be wanted. What a decided round lacks goes
 * first: it finds room in the same way, at the end of the step. */
static void fetch_unwanted(dp_node *node)
{
    dp_round *round = node->round;

    if (!round->unwanted ||
        (node->standing.state == DP_TRAINER_SET && node->standing.applied < node->ledger.round)) {
        return;
    }
    round->unwanted = false;
    for (uint32_t i = 0; i < round->n_claims && !round->unwanted; i++) {
        dp_claim *claim = &round->claims[i];
        if (!claim->held && !dp_spread_wants(node->spread, &claim->ready.root)) {
            dp_round_fetch_blob(node, claim);
        }
    }
}

void dp_round_object(dp_node *node, const dp_hash *root, uint64_t size)
{
    if (node->parts != NULL) {
        dp_part_round_object(node, root, size);
        return;
    }
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (!claim->held && dp_hash_equal(&claim->ready.root, root)) {
            hold(node, claim, size);
            if (node->standing.state != DP_TRAINER_OFF) {
                dp_round_check_blob(node, claim);
            }
            node->dirty = true;
        }
    }
    fetch_unwanted(node);
}

void dp_round_lost(dp_node *node, const dp_hash *root)
{
    if (node->parts != NULL) {
        dp_part_round_lost(node, root);
        return;
    }
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (claim->held && !dp_broken(145) && dp_hash_equal(&claim->ready.root, root)) {
            claim->held = false;
            claim->checking = false; /* What it says of bytes that are gone is not waited for. */
            dp_round_fetch_blob(node, claim);
        }
    }
}

bool dp_round_checked(dp_node *node, const dp_event *event)
{
    const dp_hash *const root = &event->u.checked.root;
    const unsigned __int128 energy = event->u.checked.energy;
    bool ours = false;

    end_check(node, root);
    if (node->parts != NULL) {
        return dp_part_round_checked(node, event);
    }
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (claim->held && !claim->checked && !claim->checking &&
            !dp_hash_equal(&claim->ready.root, root)) {
            dp_round_check_blob(node, claim); /* Its turn has come. */
        }
        if (!claim->held || !dp_hash_equal(&claim->ready.root, root)) {
            continue;
        }
        ours = true;
        claim->checking = false;
        claim->checked = true;
        claim->bad = !event->u.checked.ok || energy > DP_ENERGY_MAX;
        claim->energy = energy;
        if (claim->bad) {
            node->rejected++;
            dp_node_note(node, DP_NOTE_REJECTED, claim->ready.round, &claim->ready.peer, 0, 0,
                         event->u.checked.foreign ? "blob of a codec that the run does not have"
                                                  : "blob does not decode");
        }
    }
    if (ours) {
        if (dp_ledger_lists(&node->ledger)) {
            dp_round_tell_have_one(node, &event->u.checked.root);
        } else {
            dp_round_tell_have(node);
        }
        node->dirty = true;
    }
    return ours;
}
