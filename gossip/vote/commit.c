#include "gossip/vote/commit.h"

#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/core/msg.h"
#include "gossip/vote/commit_row.h"

/* ---- slot ---- */

void dp_commit_init(dp_commit *commit, const dp_commit_host *host, const dp_crypto *crypto,
                    const dp_run_id *run, const uint8_t *vote_key)
{
    memset(commit, 0, sizeof *commit);
    commit->host = *host;
    commit->crypto = *crypto;
    commit->run = *run;
    commit->self = DP_NOBODY;
    commit->has_key = vote_key != NULL;
    if (vote_key != NULL) {
        memcpy(commit->key, vote_key, sizeof commit->key);
    }
}

void dp_commit_copy(dp_commit_bytes *to, dp_view record, const dp_hash *hash)
{
    dp_assert(record.size > 0 && record.size <= DP_RECORD_BYTES_MAX);
    memmove(to->data, record.data, record.size);
    to->size = record.size;
    to->hash = *hash;
}

static dp_hash order_weight(const dp_commit *commit, uint32_t voter)
{
    dp_digest digest;

    dp_assert(voter < commit->n);
    dp_digest_init(&digest, "dpnode/order/1");
    dp_digest_add(&digest, dp_view_of(commit->run.bytes, DP_HASH_BYTES));
    dp_digest_add(&digest, dp_view_of(commit->fork.bytes, DP_HASH_BYTES));
    dp_digest_add_u64(&digest, commit->slot);
    dp_digest_add(&digest, dp_view_of(commit->voters[voter].peer.bytes, 32));
    return dp_digest_end(&digest);
}

static void set_order(dp_commit *commit)
{
    dp_hash weights[DP_VOTERS_MAX];

    for (uint32_t i = 0; i < commit->n; i++) {
        uint32_t at = i;
        weights[i] = order_weight(commit, i);
        while (at > 0 && dp_hash_compare(&weights[commit->order[at - 1]], &weights[i]) < 0) {
            commit->order[at] = commit->order[at - 1];
            at--;
        }
        commit->order[at] = i;
    }
}

uint32_t dp_commit_owner(const dp_commit *commit, uint32_t ballot)
{
    dp_assert(commit->n > 0 && commit->n <= DP_VOTERS_MAX);
    return commit->order[ballot % commit->n];
}

dp_peer dp_commit_owner_next(const dp_commit *commit)
{
    dp_assert(commit->n > 0);
    return commit->voters[dp_commit_owner(commit, commit->seen > 0 ? (uint32_t)commit->seen : 0)]
        .peer;
}

bool dp_commit_owns(const dp_commit *commit, uint32_t ballot, uint32_t voter)
{
    dp_assert(voter < commit->n);
    if ((dp_broken(1) && ballot == 0) || dp_broken(2)) {
        return true;
    }
    return dp_commit_owner(commit, ballot) == voter;
}

/* Take up the durable row if it is of the slot that begins; a row of a later slot is kept for
 * then. */
static void take_row(dp_commit *commit, const dp_ledger *ledger)
{
    dp_commit_row row;

    if (commit->row_size == 0) {
        return;
    }
    const dp_status status = dp_commit_row_read(dp_view_of(commit->row, commit->row_size), &row);
    dp_assert(status == DP_OK); /* It was read once by dp_commit_restore. */
    const bool ended = dp_ledger_was_fork(ledger, &row.fork) ||
                       (commit->has_ended && dp_hash_equal(&commit->ended, &row.fork));
    if (row.slot > commit->slot && !ended) {
        return;
    }
    if (row.slot == commit->slot && dp_hash_equal(&row.fork, &commit->fork) &&
        dp_hash_equal(&row.prev, &commit->prev)) {
        commit->state.promised = row.promised;
        commit->state.accepted = row.accepted;
        if (row.accepted >= 0) {
            commit->state.hash = dp_record_hash(row.record);
            dp_commit_copy(&commit->accepted, row.record, &commit->state.hash);
        }
        commit->durable = commit->state;
        commit->seen = commit->state.promised;
    }
    commit->row_size = 0;
}

dp_status dp_commit_restore(dp_commit *commit, dp_view bytes)
{
    dp_commit_row row;
    dp_status status = dp_commit_row_read(bytes, &row);

    if (status == DP_OK && row.record.size > DP_RECORD_BYTES_MAX) {
        status = DP_BADMSG; /* Its voted form is given to this file. */
    }
    commit->key_lost = status != DP_OK; /* A row that cannot be read may hide a promise. */
    if (status == DP_OK) {
        memcpy(commit->row, bytes.data, bytes.size);
        commit->row_size = bytes.size;
    }
    return status;
}

void dp_commit_end_fork(dp_commit *commit, const dp_hash *fork)
{
    commit->has_ended = true;
    commit->ended = *fork;
}

void dp_commit_begin(dp_commit *commit, const dp_ledger *ledger, const dp_peer *self)
{
    const uint32_t index = dp_ledger_voter(ledger, self);

    commit->fork = ledger->fork;
    commit->slot = ledger->slot + 1;
    commit->prev = ledger->head;
    commit->n = ledger->n_voters;
    memcpy(commit->voters, ledger->voters, sizeof commit->voters);
    set_order(commit);
    commit->state = (dp_commit_state){.promised = -1, .accepted = -1};
    commit->durable = commit->state;
    commit->op = 0;
    commit->promise_to = DP_NOBODY;
    commit->tell_accepted = false;
    commit->seen = -1;
    commit->began = (dp_time){0};
    commit->has_waiting = false;
    commit->has_prepare = false;
    commit->phase = DP_COMMIT_IDLE;
    commit->promised_by = 0;
    commit->best = -1;
    commit->has_value = false;
    commit->voted = 0;
    commit->decided = false;
    take_row(commit, ledger);
    commit->self = DP_NOBODY;
    if (index != DP_NOBODY && commit->has_key &&
        memcmp(commit->voters[index].key, commit->key, sizeof commit->key) == 0) {
        commit->self = index;
    }
    if (dp_broken(5)) {
        commit->self = index;
        commit->key_lost = false;
    }
}

/* ---- sending and writing ---- */

void dp_commit_sign(dp_commit *commit, dp_vote *vote, uint8_t type)
{
    vote->type = type;
    vote->voter = (uint8_t)commit->self;
    vote->fork = commit->fork;
    vote->slot = commit->slot;
    vote->prev = commit->prev;
    const bool signed_it = dp_vote_sign(vote, &commit->crypto, &commit->run);
    dp_assert(signed_it || dp_broken(5));
}

void dp_commit_send(dp_commit *commit, uint32_t voter, const dp_vote_msg *msg)
{
    dp_writer writer = dp_writer_of(commit->room, sizeof commit->room);
    dp_view bytes;

    dp_vote_msg_write(&writer, msg);
    const dp_status status = dp_writer_finish(&writer, &bytes);
    dp_assert(status == DP_OK);
    if (voter != DP_NOBODY) {
        commit->host.send(commit->host.context, voter, bytes);
        return;
    }
    for (uint32_t i = 0; i < commit->n; i++) {
        if (i != commit->self) {
            commit->host.send(commit->host.context, i, bytes);
        }
    }
}

void dp_commit_write_row(dp_commit *commit)
{
    dp_writer writer = dp_writer_of(commit->row, sizeof commit->row);
    dp_view row;

    dp_assert(commit->op == 0);
    commit->writing = commit->state;
    if (dp_broken(3)) { /* The promise is only remembered. */
        commit->writing.promised = commit->writing.accepted;
    } else if (dp_broken(4)) {
        commit->writing.accepted = -1;
    }
    const bool with_record = commit->writing.accepted >= 0;
    const dp_commit_row fields = {
        .fork = commit->fork,
        .slot = commit->slot,
        .prev = commit->prev,
        .promised = commit->writing.promised,
        .accepted = commit->writing.accepted,
        .record = dp_view_of(commit->accepted.data, with_record ? commit->accepted.size : 0)};
    dp_commit_row_write(&writer, &fields);
    const dp_status status = dp_writer_finish(&writer, &row);
    dp_assert(status == DP_OK);
    commit->op = commit->host.store(commit->host.context, commit->slot, row);
    dp_assert(commit->op != 0);
}

/* ---- events ---- */

void dp_commit_saw(const dp_commit *commit, const dp_vote *vote)
{
    if (commit->host.saw != NULL && vote->voter != commit->self) {
        commit->host.saw(commit->host.context, vote);
    }
}

/* Too high a ballot for this early: an honest voter repeats it. */
static bool is_early(dp_commit *commit, dp_time now, uint32_t ballot)
{
    if (commit->began.us == 0) {
        commit->began = now;
    }
    const uint64_t seconds = 1 + dp_time_between(commit->began, now) / DP_SECOND;
    return ballot > seconds * DP_BALLOTS_PER_SECOND;
}

dp_status dp_commit_message(dp_commit *commit, dp_time now, const dp_vote_msg *msg)
{
    const dp_vote *vote = &msg->vote;

    if (vote->voter >= commit->n || vote->ballot > INT32_MAX) {
        return DP_DENIED;
    }
    if (is_early(commit, now, vote->ballot)) {
        return DP_AGAIN;
    }
    if (vote->type == DP_MSG_NACK) {
        if ((int64_t)vote->ballot > commit->seen) {
            commit->seen = vote->ballot;
        }
        return DP_OK;
    }
    if (!dp_broken(104) &&
        !dp_vote_verify(vote, &commit->crypto, &commit->run, commit->voters[vote->voter].key)) {
        return DP_BADSIG;
    }
    if (vote->voter == commit->self) {
        dp_commit_notice_own(commit, vote);
        return DP_OK;
    }
    dp_commit_saw(commit, vote);
    if ((vote->type == DP_MSG_PREPARE || (vote->type == DP_MSG_PROPOSE && !dp_broken(101))) &&
        !dp_commit_owns(commit, vote->ballot, vote->voter)) {
        return DP_DENIED;
    }
    if ((int64_t)vote->ballot > commit->seen) {
        commit->seen = vote->ballot;
    }
    if (vote->type == DP_MSG_PREPARE) {
        dp_commit_on_prepare(commit, vote);
    } else if (vote->type == DP_MSG_PROPOSE) {
        for (uint32_t i = 0; i < msg->n_just; i++) {
            dp_commit_notice_own(commit, &msg->just[i]);
        }
        if (!dp_commit_is_justified(commit, msg)) {
            return DP_DENIED;
        }
        dp_commit_on_propose(commit, msg);
        for (uint32_t i = 0; i < commit->n && !commit->decided; i++) {
            if ((commit->voted & (1U << i)) != 0) { /* Votes may have come before the record. */
                dp_commit_look(commit, commit->votes[i].ballot, &commit->votes[i].hash);
            }
        }
    } else if (vote->type == DP_MSG_PROMISE) {
        dp_commit_owner_promise(commit, now, msg);
    } else {
        dp_commit_tally(commit, vote);
    }
    return DP_OK;
}

static void retry_deferred(dp_commit *commit)
{
    if (commit->op == 0 && commit->has_prepare) {
        commit->has_prepare = false;
        dp_commit_on_prepare(commit, &commit->prepare);
    }
    if (commit->op == 0 && commit->has_waiting && dp_commit_may_vote(commit)) {
        commit->has_waiting = false;
        dp_commit_on_propose(commit, &commit->waiting);
        /* Its record stays known: the votes of others may still decide it. */
        commit->has_waiting = true;
        if ((int64_t)commit->waiting.vote.ballot < commit->state.promised ||
            (int64_t)commit->waiting.vote.ballot == commit->state.accepted) {
            commit->has_waiting = false;
        }
    }
}

bool dp_commit_stored(dp_commit *commit, dp_time now, uint32_t op, dp_status status)
{
    if (commit->op == 0 || op != commit->op) {
        return false;
    }
    commit->op = 0;
    const uint32_t promise_to = commit->promise_to;
    const bool tell_accepted = commit->tell_accepted;
    commit->promise_to = DP_NOBODY;
    commit->tell_accepted = false;
    if (status == DP_OK) {
        commit->durable = commit->writing;
    }
    if (commit->key_lost) {
        return true;
    }
    if (status == DP_OK && promise_to != DP_NOBODY) {
        dp_commit_send_promise(commit, promise_to);
    }
    if ((status == DP_OK || dp_broken(100)) && tell_accepted) {
        dp_commit_send_accepted(commit, DP_NOBODY);
    }
    dp_commit_owner_stored(commit, now, status == DP_OK);
    if (!commit->decided) {
        retry_deferred(commit);
    }
    return true;
}

void dp_commit_poke(dp_commit *commit, dp_time now)
{
    if (commit->decided) {
        return;
    }
    retry_deferred(commit);
    dp_commit_owner_poke(commit, now);
}

uint32_t dp_commit_distance(const dp_commit *commit)
{
    const uint32_t last = commit->seen < 0 ? 0 : (uint32_t)(commit->seen % commit->n);

    dp_assert(commit->self < commit->n);
    for (uint32_t i = 0; i < commit->n; i++) {
        if (commit->order[(last + i) % commit->n] == commit->self) {
            return i;
        }
    }
    return commit->n;
}

bool dp_commit_active(const dp_commit *commit)
{
    return commit->seen >= 0 || commit->voted != 0 || commit->has_waiting;
}

dp_status dp_commit_check(const dp_commit *commit, dp_why *why)
{
    const dp_commit_state *state = &commit->state;

    if (state->accepted > state->promised) {
        return dp_why_set(why, DP_CORRUPT, "slot %llu: accepted above promised",
                          (unsigned long long)commit->slot);
    }
    if (commit->durable.promised > state->promised || commit->durable.accepted > state->accepted) {
        return dp_why_set(why, DP_CORRUPT, "slot %llu: memory behind disk",
                          (unsigned long long)commit->slot);
    }
    if (state->accepted >= 0 && !dp_hash_equal(&commit->accepted.hash, &state->hash)) {
        return dp_why_set(why, DP_CORRUPT, "slot %llu: accepted record",
                          (unsigned long long)commit->slot);
    }
    return DP_OK;
}
