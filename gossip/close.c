/* When a voter closes the round and when it bids: the close condition, the grace, the hard deadline, the bid timer. */
#include "gossip/node_internal.h"

/* As dp_round_may_contribute, for a count: of a member by the chain its credential is believed. */
static bool may_train(const dp_node *node, const dp_member *member)
{
    return member->in_roster && member->credential_bytes > 0
               ? (member->caps & DP_CAP_TRAIN) != 0
               : dp_round_may_contribute(node, &member->peer);
}

static bool is_active(const dp_node *node, uint32_t index)
{
    const dp_member *member = dp_members_at(node->members, index);
    const bool works = member->has_summary && member->summary.has_trainer &&
                       member->summary.mode != DP_MODE_PAUSED &&
                       member->summary.mode != DP_MODE_LEFT &&
                       !dp_fork_elsewhere(node, member->summary.fork) &&
                       member->summary.round + 2 >= node->ledger.round && may_train(node, member);

    return member->state == DP_MEMBER_ALIVE &&
           (works || dp_round_claim_of(node, &member->peer) != NULL);
}

/* Members that are expected to contribute: alive, with a trainer, near the newest state. In a run too large for links to
 * everybody only linked ones are known so well, and they are enough: more than a record lists. */
uint32_t dp_round_active(const dp_node *node)
{
    const dp_rowset *linked = dp_members_linked(node->members);
    const uint32_t count = dp_members_count(node->members);
    uint32_t active = node->train.state == DP_TRAINER_SET && !node->paused && !node->leaving &&
                              !node->config.observer
                          ? 1
                          : 0;

    for (uint32_t i = 1; count <= DP_FULL_MESH_MAX && i < count; i++) {
        active += is_active(node, i) ? 1 : 0;
    }
    for (uint32_t k = 0; count > DP_FULL_MESH_MAX && k < linked->count; k++) {
        active += is_active(node, linked->at[k]) ? 1 : 0;
    }
    return active;
}

uint32_t dp_round_others_ready(const dp_node *node)
{
    uint32_t ready = 0;

    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const dp_claim *claim = &node->round->claims[i];
        ready += !claim->evidence && !claim->bad && !dp_peer_equal(&claim->ready.peer, &node->self)
                     ? 1
                     : 0;
    }
    return ready;
}

static uint64_t slowest_step(const dp_node *node)
{
    const dp_rowset *linked = dp_members_linked(node->members);
    uint64_t slowest = node->train.step_us;

    for (uint32_t k = 0; k < linked->count; k++) {
        const dp_member *member = dp_members_at(node->members, linked->at[k]);
        if (member->state == DP_MEMBER_ALIVE && member->has_summary &&
            member->summary.step_us > slowest) {
            slowest = member->summary.step_us;
        }
    }
    return slowest;
}

static uint64_t grace_of(const dp_node *node)
{
    return DP_BUGGIFY(node, DP_BUG_NO_GRACE)
               ? 0
               : dp_deadline_grace(&node->round->deadline, slowest_step(node),
                                   dp_spread_chunk_p95(node->spread),
                                   dp_members_rtt_p95(node->members));
}

static uint64_t hard_of(const dp_node *node)
{
    return dp_deadline_hard(&node->round->deadline) /
           (DP_BUGGIFY(node, DP_BUG_EARLY_DEADLINE) ? 4 : 1);
}

/* A record is full with the first that come; those whose turn it is may be others, who are farther away. */
static bool is_turn_missed(const dp_node *node, const uint32_t *held, uint32_t n)
{
    const dp_rowset *linked = dp_members_linked(node->members);
    const uint32_t count = dp_members_count(node->members);
    const bool few = count <= DP_FULL_MESH_MAX;
    const dp_peer *authors[DP_CLAIMS_MAX];
    bool missed = false;

    for (uint32_t i = 0; i < n; i++) {
        authors[i] = &node->round->claims[held[i]].ready.peer;
    }
    for (uint32_t i = few ? 1 : 0; i < (few ? count : linked->count) && !missed; i++) {
        const uint32_t index = few ? i : linked->at[i];
        missed = is_active(node, index) &&
                 dp_turn_has_place(&node->ledger, &dp_members_at(node->members, index)->peer,
                                   authors, n);
    }
    return missed;
}

/* Rule C. NULL: not yet. */
static const char *close_cause(dp_node *node)
{
    dp_round *round = node->round;
    uint32_t held_claims[DP_CLAIMS_MAX];
    dp_seal seals[DP_VOTERS_MAX];
    dp_hash root;
    uint32_t n = 0;
    const uint32_t held = dp_round_held(node, held_claims);
    const uint32_t least =
        node->manifest.contributors_min > 0 ? node->manifest.contributors_min : 1;

    if (held == 0) {
        return dp_config_due(node) ? "config" : NULL;
    }
    if (!dp_round_state_cert(node, &root, seals, &n)) {
        return NULL;
    }
    const uint32_t active = dp_round_active(node);
    if (held >= active || (held >= DP_LISTED_MAX && !is_turn_missed(node, held_claims, held))) {
        return "all";
    }
    if ((held >= dp_deadline_enough(active) || held >= DP_LISTED_MAX) && round->enough_at.us == 0) {
        round->enough_at = node->now;
    }
    const uint64_t grace = grace_of(node);
    if (round->enough_at.us != 0 &&
        dp_time_reached(node->now, dp_time_after(round->enough_at, grace))) {
        return "grace";
    }
    if (DP_MUTATION != 50 && round->opened.us != 0 && held >= least &&
        dp_time_reached(node->now, dp_time_after(round->opened, hard_of(node)))) {
        return "deadline";
    }
    return NULL;
}

/* Name those that the round does not wait for. */
static void note_stragglers(dp_node *node)
{
    uint32_t held[DP_CLAIMS_MAX];
    const uint32_t n = dp_round_held(node, held);

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
        const char *cause = claim == NULL ? "not ready"
                            : claim->bad  ? "blob does not decode"
                                          : "not held";
        if (index != 0 && (index == DP_MEMBER_NONE ||
                           dp_members_at(node->members, index)->state != DP_MEMBER_ALIVE)) {
            cause = "not alive";
        }
        dp_node_note(node, DP_NOTE_STRAGGLER, node->ledger.round + 1, &entry->peer, 0, 0, cause);
    }
}

static void arm_bid(dp_node *node)
{
    dp_round *round = node->round;
    /* A majority decides, this voter being one of it: who is slow beyond that is not waited for. */
    const uint64_t rtt =
        dp_members_rtt_voters(node->members, dp_ledger_majority(&node->ledger) - 1);
    uint64_t wait = dp_deadline_bid(rtt, dp_span_percentile(&round->fsync, 95),
                                    dp_commit_distance(node->commit), round->bids);

    wait = DP_BUGGIFY(node, DP_BUG_EARLY_BID) ? wait / 4 : wait;
    wait = DP_BUGGIFY(node, DP_BUG_LATE_BID) ? wait * 4 : wait;

    round->bid_at = dp_time_after(node->now, wait + dp_rng_below(&node->rng, wait / 4 + 1));
#if DP_MUTATION == 19
    round->bid_at =
        dp_time_after(round->slot_opened, wait + dp_deadline_length(&round->deadline) * 3 / 2);
#endif
}

static void close_round(dp_node *node)
{
    dp_round *round = node->round;
    dp_commit *commit = node->commit;

    if (commit->self == DP_NOBODY || commit->decided || commit->key_lost || node->halted ||
        node->chain->op != 0 || node->chain->failed) {
        return;
    }
    const char *cause = close_cause(node);
    if (cause != NULL && round->close_at.us == 0) {
        round->close_at = node->now;
        dp_node_note(node, DP_NOTE_CLOSED, node->ledger.round + 1, NULL, dp_round_held(node, NULL),
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

void dp_round_tick(dp_node *node)
{
    watch_voters(node);
    if (dp_time_reached(node->now, node->round->repeat_at)) {
        dp_round_repeat(node);
    }
    dp_commit_poke(node->commit, node->now);
    close_round(node);
    dp_chain_decided(node);
}

dp_time dp_round_wake(const dp_node *node)
{
    const dp_round *round = node->round;
    dp_time wake = round->repeat_at;

    if (node->commit->self == DP_NOBODY) {
        return wake;
    }
    if (node->commit->phase != DP_COMMIT_IDLE) {
        wake = dp_time_min(wake, dp_time_after(node->now, DP_COMMIT_RESEND_US));
    }
    if (round->bid_at.us != 0) {
        wake = dp_time_min(wake, round->bid_at);
    }
    if (round->close_at.us == 0 && round->enough_at.us != 0) {
        const uint64_t grace =
            dp_deadline_grace(&round->deadline, slowest_step(node),
                              dp_spread_chunk_p95(node->spread), dp_members_rtt_p95(node->members));
        wake = dp_time_min(wake, dp_time_after(round->enough_at, grace));
    }
    if (round->close_at.us == 0 && round->opened.us != 0) {
        wake = dp_time_min(wake, dp_time_after(round->opened, hard_of(node)));
    }
    /* An instant already met that changed nothing comes again with the next repeat. */
    return wake.us > node->now.us ? wake : dp_time_after(node->now, 20 * DP_MS);
}
