/* The acceptor's half of commit.h: promising, accepting, counting votes. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/core/msg.h"
#include "gossip/vote/commit.h"

bool dp_commit_may_vote(const dp_commit *commit)
{
    /* A row of a later slot on disk must not be overwritten by a vote in this one. */
    return commit->self != DP_NOBODY && !commit->key_lost && !commit->decided &&
           commit->row_size == 0;
}

/* ---- answers ---- */

void dp_commit_send_promise(dp_commit *commit, uint32_t to)
{
    dp_vote_msg msg = {.vote = {.ballot = (uint32_t)commit->state.promised}};

    dp_assert(to < commit->n);
    if (commit->state.accepted >= 0) {
        msg.vote.accepted = (uint32_t)commit->state.accepted + 1;
        msg.vote.hash = commit->state.hash;
        msg.record = dp_view_of(commit->accepted.data, commit->accepted.size);
    }
    dp_commit_sign(commit, &msg.vote, DP_MSG_PROMISE);
    dp_commit_send(commit, to, &msg);
}

/* To one voter, or to all with DP_NOBODY; then the own vote counts here too. */
void dp_commit_send_accepted(dp_commit *commit, uint32_t to)
{
    dp_vote_msg msg = {
        .vote = {.ballot = (uint32_t)commit->state.accepted, .hash = commit->state.hash}};

    dp_commit_sign(commit, &msg.vote, DP_MSG_ACCEPTED);
    dp_commit_send(commit, to, &msg);
    if (to == DP_NOBODY) {
        dp_commit_tally(commit, &msg.vote);
    }
}

static void send_nack(dp_commit *commit, uint32_t to)
{
    const dp_vote_msg msg = {.vote = {.type = DP_MSG_NACK,
                                      .voter = (uint8_t)commit->self,
                                      .fork = commit->fork,
                                      .slot = commit->slot,
                                      .prev = commit->prev,
                                      .ballot = (uint32_t)commit->state.promised}};

    dp_assert(to < commit->n);
    dp_commit_send(commit, to, &msg);
}

/* ---- acceptor ---- */

/* SAFETY V1. */
void dp_commit_on_prepare(dp_commit *commit, const dp_vote *vote)
{
    const int64_t ballot = vote->ballot;

    if (!dp_commit_may_vote(commit)) {
        return;
    }
    if (ballot < commit->state.promised) {
        send_nack(commit, vote->voter);
        return;
    }
    if (commit->op != 0) {
        if (!commit->has_prepare || vote->ballot > commit->prepare.ballot) {
            commit->prepare = *vote;
            commit->has_prepare = true;
        }
        return;
    }
    if (ballot == commit->state.accepted && commit->durable.accepted == ballot) {
        dp_commit_send_accepted(commit,
                                vote->voter); /* Its owner is past PREPARE; this is a late copy. */
        return;
    }
    /* A PROMISE names the accepted record, so that must be on disk too: its write may have
     * failed. */
    if (ballot == commit->durable.promised && commit->durable.accepted == commit->state.accepted) {
        dp_commit_send_promise(commit, vote->voter);
        return;
    }
    if (ballot == commit->state.promised && commit->phase != DP_COMMIT_IDLE) {
        return;
    }
    commit->state.promised = ballot;
    commit->phase = DP_COMMIT_IDLE; /* A higher ballot than the own one. */
    if (dp_broken(3)) {
        dp_commit_send_promise(commit, vote->voter);
        return;
    }
    commit->promise_to = vote->voter;
    dp_commit_write_row(commit);
}

/* Does the proof inside a PROPOSE allow its record? SAFETY V2, second half. */
bool dp_commit_is_justified(const dp_commit *commit, const dp_vote_msg *msg)
{
    uint32_t voters = 0;
    uint32_t count = 0;
    uint32_t best = 0;
    const dp_vote *forced = NULL;

    if (msg->vote.ballot == 0) {
        return true;
    }
    for (uint32_t i = 0; i < msg->n_just; i++) {
        const dp_vote *promise = &msg->just[i];
        if (promise->voter >= commit->n || (voters & (1U << promise->voter)) != 0 ||
            promise->accepted > promise->ballot ||
            (!dp_broken(103) && !dp_vote_verify(promise, &commit->crypto, &commit->run,
                                                commit->voters[promise->voter].key))) {
            return false;
        }
        dp_commit_saw(commit, promise);
        voters |= 1U << promise->voter;
        count++;
        if (promise->accepted > best) {
            best = promise->accepted;
            forced = promise;
        }
    }
    if (dp_broken(7) || dp_broken(8) || dp_broken(11)) {
        forced = NULL;
    }
    return count + (dp_broken(102) ? 1 : 0) > commit->n / 2 &&
           (forced == NULL || dp_hash_equal(&forced->hash, &msg->vote.hash));
}

/* A promise with the own signature above the own row: this disk is older than this key's votes. */
void dp_commit_notice_own(dp_commit *commit, const dp_vote *vote)
{
    if (dp_broken(5)) {
        return;
    }
    const bool above = vote->type == DP_MSG_ACCEPTED
                           ? (int64_t)vote->ballot > commit->state.accepted ||
                                 ((int64_t)vote->ballot == commit->state.accepted &&
                                  !dp_hash_equal(&vote->hash, &commit->state.hash))
                           : (int64_t)vote->ballot > commit->state.promised;

    if (commit->self != DP_NOBODY && vote->voter == commit->self && above && !commit->decided &&
        dp_vote_verify(vote, &commit->crypto, &commit->run, commit->voters[commit->self].key)) {
        commit->key_lost = true;
        commit->phase = DP_COMMIT_IDLE;
    }
}

static void keep_waiting(dp_commit *commit, const dp_vote_msg *msg)
{
    if (commit->has_waiting && commit->waiting.vote.ballot > msg->vote.ballot) {
        return;
    }
    if (msg != &commit->waiting) {
        commit->waiting = *msg;
        dp_commit_copy(&commit->waiting_record, msg->record, &msg->vote.hash);
        commit->waiting.record =
            dp_view_of(commit->waiting_record.data, commit->waiting_record.size);
    }
    commit->has_waiting = true;
}

/* SAFETY V2, first half. The signature and the proof have been checked. */
void dp_commit_on_propose(dp_commit *commit, const dp_vote_msg *msg)
{
    const int64_t ballot = msg->vote.ballot;

    if (!dp_commit_may_vote(commit)) {
        keep_waiting(commit,
                     msg); /* Its record may be needed when the votes of others decide it. */
        return;
    }
    if (ballot < commit->state.promised && !dp_broken(9)) {
        send_nack(commit, msg->vote.voter);
        return;
    }
    if (commit->op != 0) {
        keep_waiting(commit, msg);
        return;
    }
    if (ballot == commit->state.accepted) {
        const bool same = dp_hash_equal(&msg->vote.hash, &commit->state.hash);
        if (same && commit->durable.accepted == ballot) {
            dp_commit_send_accepted(commit, msg->vote.voter);
            return;
        }
        if (!same && !dp_broken(10)) {
            return; /* One record per ballot. */
        }
    }
    switch (commit->host.judge(commit->host.context, msg->record)) {
    case DP_VERDICT_NO:
        return;
    case DP_VERDICT_LATER:
        keep_waiting(commit, msg);
        return;
    case DP_VERDICT_YES:
        break;
    }
    if (ballot > commit->state.promised) {
        commit->state.promised = ballot;
    }
    commit->state.accepted = ballot;
    commit->state.hash = msg->vote.hash;
    dp_commit_copy(&commit->accepted, msg->record, &msg->vote.hash);
    commit->phase = DP_COMMIT_IDLE;
    commit->tell_accepted = true;
    dp_commit_write_row(commit);
    if (dp_broken(4)) {
        dp_commit_send_accepted(commit, DP_NOBODY);
        commit->tell_accepted = false;
    }
}

/* ---- votes ---- */

static const dp_commit_bytes *find_record(const dp_commit *commit, const dp_hash *hash)
{
    if (commit->state.accepted >= 0 && dp_hash_equal(&commit->accepted.hash, hash)) {
        return &commit->accepted;
    }
    if (commit->has_value && dp_hash_equal(&commit->value.hash, hash)) {
        return &commit->value;
    }
    if (commit->has_waiting && dp_hash_equal(&commit->waiting_record.hash, hash)) {
        return &commit->waiting_record;
    }
    return NULL;
}

void dp_commit_look(dp_commit *commit, uint32_t ballot, const dp_hash *hash)
{
    dp_cert_of_record cert = {.ballot = ballot};

    for (uint32_t i = 0; i < commit->n; i++) {
        const dp_vote *vote = &commit->votes[i];
        if ((commit->voted & (1U << i)) != 0 && vote->ballot == ballot &&
            dp_hash_equal(&vote->hash, hash)) {
            cert.seals[cert.n].voter = (uint8_t)i;
            memcpy(cert.seals[cert.n].signature, vote->signature, DP_SIGNATURE_BYTES);
            cert.n++;
        }
    }
    if (dp_broken(12) && cert.n > 0 && cert.n < DP_VOTERS_MAX) {
        cert.seals[cert.n] = cert.seals[cert.n - 1]; /* One voter twice. */
        cert.n++;
    }
    const dp_commit_bytes *record = find_record(commit, hash);
    if (cert.n > commit->n / 2 && record != NULL) {
        dp_commit_copy(&commit->outcome, dp_view_of(record->data, record->size), hash);
        commit->cert = cert;
        commit->decided = true;
        commit->phase = DP_COMMIT_IDLE;
    }
}

/* The signature has been checked. */
void dp_commit_tally(dp_commit *commit, const dp_vote *vote)
{
    const uint32_t bit = 1U << vote->voter;
    dp_vote *last = &commit->votes[vote->voter];

    if (commit->decided) {
        return;
    }
    if ((commit->voted & bit) != 0) {
        if (vote->ballot == last->ballot && !dp_hash_equal(&vote->hash, &last->hash)) {
            if (!dp_broken(49)) {
                commit->host.proof(commit->host.context, last, vote);
            }
            return;
        }
        if (vote->ballot < last->ballot) {
            return;
        }
    }
    *last = *vote;
    commit->voted |= bit;
    dp_commit_look(commit, vote->ballot, &vote->hash);
}

bool dp_commit_echo(const dp_commit *commit, uint32_t voter, dp_vote *vote)
{
    dp_assert(voter < DP_VOTERS_MAX);
    if (voter >= commit->n || (commit->voted & (1U << voter)) == 0) {
        return false;
    }
    *vote = commit->votes[voter];
    return true;
}
