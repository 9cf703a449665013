/* When a voter closes the round and when it bids: the close condition, the grace, the hard
 * deadline, the bid timer. */
#include "base/assert.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fork.h"
#include "gossip/context/context.h"
#include "gossip/round/config_part.h"
#include "gossip/round/deadline.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"
#include "gossip/round/turn.h"

#define LOOK_AGAIN_US (20 * DP_MS)

uint64_t dp_round_hard_us(const dp_node *node)
{
    return dp_deadline_hard(&node->round->deadline) /
           (DP_BUGGIFY(node, DP_BUG_EARLY_DEADLINE) ? 4 : 1);
}

/* The kind of member for which a round waits although it could be closed. */
typedef enum await { AWAIT_NOBODY = 0, AWAIT_TURN, AWAIT_OWED, AWAIT_BACK } await;

/* n: contributions that are held. */
static await kind_of(const dp_node *node, uint32_t index, uint32_t n)
{
    if (dp_round_expects(node, index)) {
        return AWAIT_BACK;
    }
    if (dp_deadline_is_owed(node->round->missed[index], node->ledger.round + 1)) {
        return dp_round_works(node, index) ? AWAIT_OWED : AWAIT_NOBODY;
    }
    return n >= node->ledger.listed_max && dp_round_is_active(node, index) ? AWAIT_TURN
                                                                           : AWAIT_NOBODY;
}

/* The first contributions that come fill a record; members whose turn it is may be others, farther
 * away. The round also waits, in some rounds, for a member that is later than the others every
 * time; and, after a time without a majority, for all that are expected back. */
static await awaited(const dp_node *node, const uint32_t *held, uint32_t n)
{
    const dp_peer *authors[DP_CLAIMS_MAX];
    await most = AWAIT_NOBODY;

    dp_assert(n <= node->round->n_claims);
    for (uint32_t i = 0; i < n; i++) {
        authors[i] = &node->round->claims[held[i]].ready.peer;
    }
    for (uint32_t i = 0; i < dp_round_watched_count(node) && most != AWAIT_BACK; i++) {
        const uint32_t index = dp_round_watched_at(node, i);
        const dp_peer *const peer = &dp_members_at(node->members, index)->peer;
        if (dp_judging_rejects(node, peer)) {
            continue; /* There is no other of it in this round. */
        }
        const await kind = kind_of(node, index, n);
        if (kind > most && dp_turn_has_place(&node->ledger, peer, authors, n)) {
            most = kind;
        }
    }
    return most;
}

/* The time of one chunk, or half of the time from an update's READY until the update is here, if
 * that is longer: an update of many chunks, or one that comes through another node. */
static uint64_t transfer_of(const dp_node *node)
{
    const uint64_t chunk = dp_picker_chunk_p95(node->picker);
    const uint64_t update = dp_span_percentile(&node->relay.waits, 95);

    return chunk > update / 2 ? chunk : update / 2;
}

static uint64_t grace_of(const dp_node *node, await waits_for)
{
    const uint64_t grace = dp_deadline_grace(&node->round->deadline, dp_round_slowest_step(node),
                                             transfer_of(node), dp_members_rtt_p95(node->members));
    const uint64_t longer = dp_deadline_long_grace(&node->round->deadline);

    if (DP_BUGGIFY(node, DP_BUG_NO_GRACE)) {
        return 0;
    }
    if (waits_for == AWAIT_BACK) {
        return dp_deadline_hard(&node->round->deadline);
    }
    return waits_for == AWAIT_OWED && longer > grace ? longer : grace;
}

/* The record of a round is decided, and the ledger does not know of it yet. Voters alone keep
 * count, since they close rounds; in a run of parts all, since they add up. */
void dp_round_count_missed(dp_node *node, const dp_record *record)
{
    const dp_peer *listed[DP_LISTED_MAX];
    uint8_t *missed = node->round->missed;

    dp_assert(record->kind == DP_RECORD_ROUND);
    dp_assert(record->round == node->ledger.round + 1);
    if (node->commit->self == DP_NOBODY && !node->ledger.parted) {
        return;
    }
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const uint32_t index = dp_node_member_index(node, &record->listed[i].peer);
        listed[i] = &record->listed[i].peer;
        if (index != DP_MEMBER_NONE) {
            missed[index] = 0;
        }
    }
    for (uint32_t i = 0; i < dp_round_watched_count(node); i++) {
        const uint32_t index = dp_round_watched_at(node, i);
        if (!dp_round_works(node, index) ||
            dp_judging_rejects(node, &dp_members_at(node->members, index)->peer)) {
            missed[index] = 0;
        } else if (missed[index] < UINT8_MAX &&
                   dp_turn_has_place(&node->ledger, &dp_members_at(node->members, index)->peer,
                                     listed, record->n_listed)) {
            missed[index]++; /* Neither listed nor to leave its place to others. */
        }
    }
}

/* Of the members that are expected to contribute: how many there are, and of how many an update is
 * held. An update of a member that died after it had published does not count in place of one that
 * is still at work. fresh: a member whose held update is of the round before has none of this
 * round; it counts as neither, and the round waits for others in its place. */
typedef struct turnout {
    uint32_t held;
    uint32_t active;
} turnout;

static turnout turnout_of(const dp_node *node, const uint32_t *held, uint32_t n, uint32_t active,
                          bool fresh)
{
    turnout there = {.active = active};

    dp_assert(n <= node->round->n_claims);
    for (uint32_t i = 0; i < n; i++) {
        const dp_claim *claim = &node->round->claims[held[i]];
        const uint32_t index = dp_node_member_index(node, &claim->ready.peer);
        const bool counts =
            (index != DP_MEMBER_NONE && dp_round_is_active(node, index)) || dp_broken(189);
        const bool aged = fresh && dp_round_claim_age(node, claim) != 0;
        there.held += counts && !aged ? 1 : 0;
        there.active -= counts && aged ? 1 : 0;
    }
    return there;
}

/* SAFETY rule C, by the held contributions, or in a run of parts by the ready ones. NULL: not
 * yet. */
const char *dp_round_ripe(dp_node *node)
{
    dp_round *round = node->round;
    uint32_t held_claims[DP_CLAIMS_MAX];
    dp_seal seals[DP_VOTERS_MAX];
    dp_hash root;
    uint32_t n = 0;
    const uint32_t held = node->kind->ready(node, held_claims);

    if (held == 0) {
        return dp_config_due(node) ? "config" : NULL;
    }
    if (!dp_round_state_cert(node, &root, seals, &n)) {
        return NULL;
    }
    const uint32_t works = dp_round_active(node);
    const uint32_t rejected = dp_judging_rejected(node);
    const uint32_t active = works - (rejected < works ? rejected : works);
    const await waits_for = awaited(node, held_claims, held);
    const turnout all = turnout_of(node, held_claims, held, active, false);
    if ((all.held >= active || held >= node->ledger.listed_max) && waits_for == AWAIT_NOBODY) {
        return "all";
    }
    const turnout fresh = turnout_of(node, held_claims, held, active, true);
    if ((fresh.held >= dp_deadline_enough(fresh.active) || held >= node->ledger.listed_max) &&
        round->enough_at.us == 0) {
        round->enough_at = node->now;
    }
    round->grace_us = grace_of(node, waits_for);
    if (round->enough_at.us != 0 &&
        dp_time_reached(node->now, dp_time_after(round->enough_at, round->grace_us))) {
        return "grace";
    }
    if (!dp_broken(50) && round->opened.us != 0 &&
        dp_time_reached(node->now, dp_time_after(round->opened, dp_round_hard_us(node)))) {
        return "deadline";
    }
    return NULL;
}

void dp_round_measure(dp_node *node)
{
    dp_round *round = node->round;

    if (round->opened.us != 0) {
        dp_deadline_measure(&round->deadline, dp_time_between(round->opened, node->now));
    }
}

void dp_round_measure_held(dp_node *node, const dp_record *record)
{
    dp_round *round = node->round;
    dp_time last = round->opened;

    round->held_known = false;
    for (uint32_t i = 0; round->opened.us != 0 && i < record->n_listed; i++) {
        const dp_claim *claim = dp_round_claim_of(node, &record->listed[i].peer);
        if (claim == NULL || claim->held_at.us == 0 ||
            !dp_hash_equal(&claim->ready.root, &record->listed[i].root)) {
            return; /* It is fetched now, or in a run of parts never. */
        }
        last = claim->held_at.us > last.us ? claim->held_at : last;
    }
    round->held_known = round->opened.us != 0 && record->n_listed > 0;
    round->held_us = round->held_known ? dp_time_between(round->opened, last) : 0;
}

/* Name those that the round does not wait for. */
static void note_stragglers(dp_node *node)
{
    uint32_t held[DP_CLAIMS_MAX];
    const uint32_t n = node->kind->ready(node, held);

    for (uint32_t i = 0; i < node->ledger.n_roster; i++) {
        const dp_roster_entry *entry = &node->ledger.roster[i];
        const dp_claim *claim = dp_round_claim_of(node, &entry->peer);
        const uint32_t index = dp_node_member_index(node, &entry->peer);
        bool listed = entry->gone != 0 ||
                      !dp_ledger_may_be_late(&node->ledger, entry, node->ledger.round + 1);
        for (uint32_t k = 0; k < n && !listed; k++) {
            listed = dp_peer_equal(&node->round->claims[held[k]].ready.peer, &entry->peer);
        }
        if (listed) {
            continue;
        }
        const char *cause = claim == NULL ? "it has not announced an update"
                            : claim->bad  ? "its update is not valid"
                                          : "no majority of the voters has stored its update";
        cause = dp_judging_rejects(node, &entry->peer) ? "its update was judged harmful" : cause;
        if (index != 0 && (index == DP_MEMBER_NONE ||
                           dp_members_at(node->members, index)->state != DP_MEMBER_ALIVE)) {
            cause = "it does not answer";
        }
        dp_node_note(node, DP_NOTE_STRAGGLER, node->ledger.round + 1, &entry->peer, 0, 0, cause);
    }
}

static void arm_bid(dp_node *node)
{
    dp_round *round = node->round;
    /* A majority with this voter decides: it does not wait for slower voters. */
    const uint64_t rtt =
        dp_members_rtt_voters(node->members, dp_ledger_majority(&node->ledger) - 1);
    uint64_t wait = dp_deadline_bid(rtt, dp_span_percentile(&node->chain->fsync, 95),
                                    dp_commit_distance(node->commit), round->bids);

    dp_assert(node->commit->self != DP_NOBODY);
    wait = DP_BUGGIFY(node, DP_BUG_EARLY_BID) ? wait / 4 : wait;
    wait = DP_BUGGIFY(node, DP_BUG_LATE_BID) ? wait * 4 : wait;

    round->bid_at = dp_time_after(node->now, wait + dp_rng_below(&node->rng, wait / 4 + 1));
    if (dp_broken(19)) {
        round->bid_at =
            dp_time_after(round->slot_opened, wait + dp_deadline_length(&round->deadline) * 3 / 2);
    }
}

static void close_round(dp_node *node)
{
    dp_round *round = node->round;
    dp_commit *commit = node->commit;

    if (commit->self == DP_NOBODY || commit->decided || commit->key_lost || node->halted ||
        node->chain->op != 0 || node->chain->failed) {
        return;
    }
    const char *cause = node->kind->close(node, dp_round_ripe(node));
    if (cause != NULL && round->close_at.us == 0) {
        round->close_at = node->now;
        dp_node_note(node, DP_NOTE_CLOSED, node->ledger.round + 1, NULL, node->kind->held(node),
                     dp_round_active(node), cause);
        note_stragglers(node);
    }
    if (cause != NULL && commit->phase == DP_COMMIT_IDLE && commit->state.promised < 0 &&
        dp_commit_propose(commit, node->now)) {
        arm_bid(node);
        return;
    }
    if (round->close_at.us == 0 && !dp_commit_active(commit)) {
        return;
    }
    if (round->bid_at.us == 0) {
        arm_bid(node);
    } else if (dp_time_reached(node->now, round->bid_at) && dp_commit_bid(commit, node->now)) {
        round->bids++;
        dp_node_note(node, DP_NOTE_BID, commit->slot, NULL, commit->ballot, 0, "");
        arm_bid(node);
    }
}

static void watch_voters(dp_node *node)
{
    for (uint32_t i = 0; i < node->ledger.n_voters; i++) {
        const uint32_t index = dp_node_member_index(node, &node->ledger.voters[i].peer);
        if (index == 0 || (index != DP_MEMBER_NONE &&
                           dp_members_at(node->members, index)->state == DP_MEMBER_ALIVE)) {
            node->round->voter_seen[i] = node->now;
        }
    }
}

void dp_round_watch(dp_node *node)
{
    watch_voters(node);
    dp_judging_look(node);
}

void dp_round_tick(dp_node *node)
{
    node->kind->tick(node);
    dp_round_have_tick(node);
    dp_commit_poke(node->commit, node->now);
    close_round(node);
    dp_round_decided(node);
}

/* An instant that was met and changed nothing is looked at again: the obstacle to the round may be
 * gone. */
static dp_time sooner(const dp_node *node, dp_time wake, dp_time instant)
{
    return dp_time_min(wake, instant.us > node->now.us ? instant
                                                       : dp_time_after(node->now, LOOK_AGAIN_US));
}

dp_time dp_round_wake(const dp_node *node)
{
    const dp_round *round = node->round;
    dp_time wake = sooner(node, node->repeat_at, node->kind->wake(node));

    if (node->commit->self == DP_NOBODY) {
        return wake;
    }
    if (node->commit->phase != DP_COMMIT_IDLE) {
        wake = dp_time_min(wake, dp_time_after(node->now, DP_COMMIT_RESEND_US));
    }
    if (round->have_at.us != 0) {
        wake = dp_time_min(wake, round->have_at);
    }
    if (round->bid_at.us != 0) {
        wake = sooner(node, wake, round->bid_at);
    }
    if (round->close_at.us == 0 && round->enough_at.us != 0) {
        wake = sooner(node, wake, dp_time_after(round->enough_at, round->grace_us));
    }
    if (round->close_at.us == 0 && round->opened.us != 0) {
        wake = sooner(node, wake, dp_time_after(round->opened, dp_round_hard_us(node)));
    }
    return wake;
}
