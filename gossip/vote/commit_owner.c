/* The owner's half of commit.h: bidding with own ballots, choosing the value, proposing. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/core/msg.h"
#include "gossip/vote/commit.h"

static bool may_own(const dp_commit *commit)
{
    return commit->self != DP_NOBODY && !commit->key_lost && !commit->decided && commit->op == 0 &&
           commit->row_size == 0;
}

static bool has_majority(const dp_commit *commit, uint32_t bits)
{
    dp_assert(bits >> commit->n == 0);
    return (uint32_t)__builtin_popcount(bits) > commit->n / 2;
}

static void send_prepare(dp_commit *commit, uint32_t to)
{
    dp_vote_msg msg = {.vote = {.ballot = commit->ballot}};

    dp_commit_sign(commit, &msg.vote, DP_MSG_PREPARE);
    dp_commit_send(commit, to, &msg);
}

static void send_propose(dp_commit *commit, uint32_t to)
{
    dp_vote_msg msg = {.vote = {.ballot = commit->ballot, .hash = commit->value.hash},
                       .record = dp_view_of(commit->value.data, commit->value.size)};

    dp_assert(commit->has_value);
    for (uint32_t i = 0; commit->ballot > 0 && i < commit->n; i++) {
        if ((commit->promised_by & (1U << i)) != 0) {
            msg.just[msg.n_just++] = commit->promises[i];
        }
    }
    dp_commit_sign(commit, &msg.vote, DP_MSG_PROPOSE);
    dp_commit_send(commit, to, &msg);
}

static void propose_value(dp_commit *commit, dp_time now)
{
    commit->phase = DP_COMMIT_PROPOSING;
    commit->sent_at = now;
    send_propose(commit, DP_NOBODY);
}

/* The owner is its first acceptor: its accept is durable before PROPOSE leaves. */
static void accept_own(dp_commit *commit, dp_time now)
{
    dp_assert(commit->state.promised <= (int64_t)commit->ballot);
    commit->state.promised = commit->ballot;
    commit->state.accepted = commit->ballot;
    commit->state.hash = commit->value.hash;
    dp_commit_copy(&commit->accepted, dp_view_of(commit->value.data, commit->value.size),
                   &commit->value.hash);
    commit->phase = DP_COMMIT_ACCEPTING;
    dp_commit_write_row(commit);
    if (dp_broken(6)) {
        propose_value(commit, now);
        commit->phase = DP_COMMIT_ACCEPTING;
    }
}

/* The value of this ballot, once the promises leave no doubt: forced, or the host's. */
static void choose(dp_commit *commit, dp_time now)
{
    if (!commit->has_value) {
        const size_t size = commit->host.value(commit->host.context, commit->value.data);
        if (size == 0) {
            return;
        }
        commit->value.size = size;
        commit->value.hash = dp_record_hash(dp_view_of(commit->value.data, size));
        commit->has_value = true;
    }
    if (dp_broken(11)) {
        commit->value.data[commit->value.size - 1] = (uint8_t)commit->ballot;
        commit->value.hash = dp_record_hash(dp_view_of(commit->value.data, commit->value.size));
    }
    switch (commit->host.judge(commit->host.context,
                               dp_view_of(commit->value.data, commit->value.size))) {
    case DP_VERDICT_NO:
        commit->phase = DP_COMMIT_IDLE;
        commit->has_value = false;
        break;
    case DP_VERDICT_LATER:
        break;
    case DP_VERDICT_YES:
        accept_own(commit, now);
        break;
    }
}

static void take_promise(dp_commit *commit, dp_time now, const dp_vote *vote, dp_view record)
{
    const int64_t accepted = (int64_t)vote->accepted - 1;
    bool better = accepted > commit->best && !dp_broken(7);

    if (dp_broken(8)) {
        better = accepted >= 0 && (commit->best < 0 || accepted < commit->best);
    }
    commit->promises[vote->voter] = *vote;
    commit->promised_by |= 1U << vote->voter;
    if (better) {
        commit->best = accepted;
        dp_commit_copy(&commit->value, record, &vote->hash);
        commit->has_value = true;
    }
    if (has_majority(commit, commit->promised_by)) {
        commit->phase = DP_COMMIT_CHOOSING;
        choose(commit, now);
    }
}

void dp_commit_owner_promise(dp_commit *commit, dp_time now, const dp_vote_msg *msg)
{
    if (commit->phase != DP_COMMIT_PREPARING || commit->op != 0 ||
        msg->vote.ballot != commit->ballot || msg->vote.accepted > msg->vote.ballot) {
        return;
    }
    take_promise(commit, now, &msg->vote, msg->record);
}

bool dp_commit_propose(dp_commit *commit, dp_time now)
{
    if (!may_own(commit) || commit->state.promised >= 0 ||
        !dp_commit_owns(commit, 0, commit->self)) {
        return false;
    }
    commit->ballot = 0;
    commit->promised_by = 0;
    commit->best = -1;
    commit->has_value = false;
    if (commit->seen < 0) {
        commit->seen = 0;
    }
    commit->phase = DP_COMMIT_CHOOSING;
    choose(commit, now);
    if (commit->phase == DP_COMMIT_CHOOSING && !commit->has_value) {
        commit->phase = DP_COMMIT_IDLE;
    }
    return commit->phase != DP_COMMIT_IDLE;
}

bool dp_commit_bid(dp_commit *commit, dp_time now)
{
    if (!may_own(commit)) {
        return false;
    }
    const int64_t above =
        commit->seen > commit->state.promised ? commit->seen : commit->state.promised;
    if (above > INT32_MAX - 2 * DP_VOTERS_MAX) {
        return false; /* Nobody would hear of a higher one. */
    }
    uint32_t ballot = (uint32_t)(above + 1);
    if (dp_broken(1) && commit->state.promised < 0) {
        return dp_commit_propose(commit, now);
    }
    while (!dp_commit_owns(commit, ballot, commit->self)) {
        ballot++; /* At most n - 1 times. */
    }
    if (ballot == 0) {
        ballot = commit->n; /* Ballot 0 is for dp_commit_propose. */
    }
    commit->ballot = ballot;
    commit->seen = ballot;
    commit->state.promised = ballot;
    commit->promised_by = 0;
    commit->best = -1;
    commit->has_value = false;
    commit->phase = DP_COMMIT_PROMISING;
    commit->sent_at = now;
    dp_commit_write_row(commit);
    return true;
}

static void own_promise_is_durable(dp_commit *commit, dp_time now)
{
    dp_vote vote = {.ballot = commit->ballot};

    if (commit->state.accepted >= 0) {
        vote.accepted = (uint32_t)commit->state.accepted + 1;
        vote.hash = commit->state.hash;
    }
    dp_commit_sign(commit, &vote, DP_MSG_PROMISE);
    commit->phase = DP_COMMIT_PREPARING;
    commit->sent_at = now;
    send_prepare(commit, DP_NOBODY);
    take_promise(commit, now, &vote, dp_view_of(commit->accepted.data, commit->accepted.size));
}

void dp_commit_owner_stored(dp_commit *commit, dp_time now, bool ok)
{
    if (commit->phase != DP_COMMIT_PROMISING && commit->phase != DP_COMMIT_ACCEPTING) {
        return;
    }
    if (!ok) {
        commit->phase = DP_COMMIT_IDLE; /* The bid timer comes again, with another ballot. */
        return;
    }
    if (commit->phase == DP_COMMIT_PROMISING) {
        own_promise_is_durable(commit, now);
        return;
    }
    dp_vote vote = {.ballot = commit->ballot, .hash = commit->value.hash};
    dp_vote_msg msg;
    if (dp_broken(6)) {
        commit->phase = DP_COMMIT_PROPOSING;
    } else {
        propose_value(commit, now);
    }
    dp_commit_sign(commit, &vote, DP_MSG_ACCEPTED);
    memset(&msg, 0, sizeof msg);
    msg.vote = vote;
    dp_commit_send(commit, DP_NOBODY, &msg);
    dp_commit_tally(commit, &vote);
}

void dp_commit_owner_poke(dp_commit *commit, dp_time now)
{
    if (commit->op != 0 || commit->decided || commit->key_lost) {
        return;
    }
    if (commit->phase == DP_COMMIT_CHOOSING) {
        choose(commit, now);
        return;
    }
    if ((commit->phase != DP_COMMIT_PREPARING && commit->phase != DP_COMMIT_PROPOSING) ||
        dp_time_between(commit->sent_at, now) < DP_COMMIT_RESEND_US) {
        return;
    }
    commit->sent_at = now;
    for (uint32_t i = 0; i < commit->n; i++) {
        const uint32_t bit = 1U << i;
        if (i == commit->self) {
            continue;
        }
        if (commit->phase == DP_COMMIT_PREPARING && (commit->promised_by & bit) == 0) {
            send_prepare(commit, i);
        } else if (commit->phase == DP_COMMIT_PROPOSING &&
                   ((commit->voted & bit) == 0 || commit->votes[i].ballot != commit->ballot)) {
            send_propose(commit, i);
        }
    }
}
