/* The owner of a ballot: when it may use one, which value it takes, and what it sends again to
 * whom. The other voters are the test's. */
#include "tests/unit/gossip/kit/lone_voter.h"

static dp_verdict verdict;
static size_t value_size;
static uint32_t sent_to[DP_VOTERS_MAX];
static uint32_t proofs;

static dp_verdict judge(void *context, dp_view record)
{
    ((lone_voter *)context)->judged++;
    assert_true(record.size > 0);
    return verdict;
}

static size_t value(void *context, uint8_t *out)
{
    (void)context;
    memset(out, 'v', 20);
    return value_size;
}

static void send(void *context, uint32_t to, dp_view message)
{
    lone_voter *voter = context;

    voter->sent[dp_msg_type_of(message) - DP_MSG_PREPARE]++;
    if (to < DP_VOTERS_MAX) {
        sent_to[to]++;
    }
}

static void proof(void *context, const dp_vote *a, const dp_vote *b)
{
    (void)context;
    assert_false(dp_hash_equal(&a->hash, &b->hash));
    proofs++;
}

/* One of n voters, of whom this one, or another, owns ballot 0. */
static lone_voter *begin(uint32_t n, bool owns)
{
    lone_voter *voter = lone_open(n);
    const uint32_t owner = dp_commit_owner(&voter->commit, 0);

    lone_boot(voter, owns ? owner : (owner + 1) % n);
    lone_begin(voter);
    voter->commit.host.judge = judge;
    voter->commit.host.value = value;
    voter->commit.host.send = send;
    voter->commit.host.proof = proof;
    verdict = DP_VERDICT_YES;
    value_size = 20;
    proofs = voter->ops = voter->judged = 0;
    memset(voter->sent, 0, sizeof voter->sent);
    memset(sent_to, 0, sizeof sent_to);
    return voter;
}

static uint32_t other_of(const lone_voter *voter, uint32_t k)
{
    return (voter->self + 1 + k) % voter->commit.n;
}

/* ---- the value ---- */

static void
a_value_that_the_host_refuses_or_lacks_ends_the_ballot_and_one_for_later_waits(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 4; what++) {
        lone_voter *voter = begin(3, true);
        dp_commit *commit = &voter->commit;
        verdict = what == 0 ? DP_VERDICT_NO : what == 1 ? DP_VERDICT_LATER : DP_VERDICT_YES;
        value_size = what == 2 ? 0 : 20;
        assert_int_equal(dp_commit_propose(commit, lone_now), what == 1 || what == 3);
        assert_int_equal(commit->phase, what == 1   ? DP_COMMIT_CHOOSING
                                        : what == 3 ? DP_COMMIT_ACCEPTING
                                                    : DP_COMMIT_IDLE);
        assert_int_equal(commit->has_value, what == 1 || what == 3);
        assert_int_equal(voter->ops, what == 3);
        assert_int_equal(commit->state.accepted, what == 3 ? 0 : -1);
        assert_int_equal(commit->seen, 0);
        if (what == 1) { /* Its blobs have come. */
            verdict = DP_VERDICT_YES;
            value_size = 0; /* It is not asked for another. */
            dp_commit_poke(commit, lone_now);
            assert_int_equal(commit->phase, DP_COMMIT_ACCEPTING);
            assert_int_equal(voter->ops, 1);
            assert_int_equal(voter->judged, 2);
        }
        assert_int_equal(lone_sent(voter, DP_MSG_PROPOSE), 0);
        lone_close(voter);
    }
}

static void ballot_zero_is_for_its_owner_once_and_before_any_promise(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 7; what++) {
        lone_voter *voter = begin(3, what != 1);
        dp_commit *commit = &voter->commit;
        const uint32_t self = commit->self;
        commit->state.promised = what == 2 ? 0 : -1;
        commit->key_lost = what == 3;
        commit->decided = what == 4;
        commit->op = what == 5 ? 9 : 0;
        commit->self = what == 6 ? DP_NOBODY : self;
        assert_int_equal(dp_commit_propose(commit, lone_now), what == 0);
        assert_int_equal(voter->ops, what == 0);
        if (what >= 3) {
            assert_false(dp_commit_bid(commit, lone_now));
        }
        commit->self = self;
        commit->op = 0;
        lone_close(voter);
    }
}

/* Of what the promises name the highest accept binds; the owner asks its host only if they name
 * none. */
static void the_promises_of_a_majority_say_which_value_is_proposed(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 4; what++) {
        lone_voter *voter = begin(5, false);
        dp_commit *commit = &voter->commit;
        const dp_view old = dp_view_text("an older record");
        const dp_view older = dp_view_text("a record before it");
        assert_true(dp_commit_bid(commit, lone_now));
        assert_int_equal(commit->phase, DP_COMMIT_PROMISING);
        lone_wrote(voter, DP_OK);
        assert_int_equal(commit->phase, DP_COMMIT_PREPARING);
        assert_int_equal(lone_sent(voter, DP_MSG_PREPARE), 4);
        for (uint32_t k = 0; k < 2; k++) {
            dp_vote_msg msg = {.vote = {.ballot = commit->ballot}};
            const bool first = k == (what == 2 ? 1 : 0);
            if (what == 1 || what == 2) { /* In either order. */
                msg.record = first ? old : older;
                msg.vote.accepted = first ? commit->ballot : commit->ballot - 1;
                msg.vote.hash = dp_record_hash(msg.record);
            } else if (what == 3 && k == 1) { /* Above its own ballot: no promise says that. */
                msg.record = old;
                msg.vote.accepted = commit->ballot + 1;
                msg.vote.hash = dp_record_hash(old);
            }
            lone_sign(voter, &msg.vote, DP_MSG_PROMISE, other_of(voter, k));
            DP_IGNORE(lone_tell(voter, &msg) == DP_OK);
            assert_int_equal(voter->ops, k == 1 && what != 3 ? 2 : 1);
        }
        if (what == 3) {
            assert_int_equal(commit->phase, DP_COMMIT_PREPARING);
            assert_int_equal(__builtin_popcount(commit->promised_by), 2);
        } else {
            const dp_hash hash = dp_record_hash(old);
            assert_int_equal(commit->phase, DP_COMMIT_ACCEPTING);
            assert_int_equal(dp_hash_equal(&commit->state.hash, &hash), what != 0);
            assert_int_equal(commit->state.accepted, commit->ballot);
            lone_wrote(voter, DP_OK);
            assert_int_equal(commit->phase, DP_COMMIT_PROPOSING);
            assert_int_equal(lone_sent(voter, DP_MSG_PROPOSE), 4);
            assert_int_equal(lone_sent(voter, DP_MSG_ACCEPTED), 4);
        }
        lone_close(voter);
    }
}

static void
a_promise_of_another_ballot_or_after_a_write_that_failed_counts_for_nothing(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 3; what++) {
        lone_voter *voter = begin(3, false);
        dp_commit *commit = &voter->commit;
        assert_true(dp_commit_bid(commit, lone_now));
        lone_wrote(voter, what == 2 ? DP_IO : DP_OK);
        dp_vote_msg msg = {.vote = {.ballot = commit->ballot + (what == 1 ? 1 : 0)}};
        lone_sign(voter, &msg.vote, DP_MSG_PROMISE, other_of(voter, 0));
        DP_IGNORE(lone_tell(voter, &msg) == DP_OK);
        assert_int_equal(voter->ops, what == 0 ? 2 : 1);
        assert_int_equal(commit->phase, what == 0   ? DP_COMMIT_ACCEPTING
                                        : what == 1 ? DP_COMMIT_PREPARING
                                                    : DP_COMMIT_IDLE);
        assert_int_equal(lone_sent(voter, DP_MSG_PREPARE), what == 2 ? 0 : 2);
        lone_close(voter);
    }
}

/* ---- again ---- */

static void what_was_not_answered_is_sent_again_to_those_who_did_not_answer(void **state)
{
    const dp_time due = dp_time_after(lone_now, DP_COMMIT_RESEND_US);
    lone_voter *voter = begin(5, false);
    dp_commit *commit = &voter->commit;
    const uint32_t answered = other_of(voter, 0);

    (void)state;
    assert_true(dp_commit_bid(commit, lone_now));
    dp_commit_poke(commit, due); /* The row is not written. */
    assert_int_equal(lone_sent(voter, DP_MSG_PREPARE), 0);
    lone_wrote(voter, DP_OK);
    commit->promised_by |= 1U << answered;
    dp_commit_poke(commit, (dp_time){due.us - 1});
    assert_int_equal(lone_sent(voter, DP_MSG_PREPARE), 4);
    memset(sent_to, 0, sizeof sent_to);
    dp_commit_poke(commit, due);
    assert_int_equal(lone_sent(voter, DP_MSG_PREPARE), 4 + 3);
    dp_commit_poke(commit, due);
    assert_int_equal(lone_sent(voter, DP_MSG_PREPARE), 4 + 3);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(sent_to[i], i == voter->self || i == answered ? 0 : 1);
    }
    memset(sent_to, 0, sizeof sent_to);
    memset(commit->value.data, 'v', 20);
    commit->value.size = 20;
    commit->has_value = true;
    commit->phase = DP_COMMIT_PROPOSING;
    commit->voted = 1U << answered | 1U << other_of(voter, 1);
    commit->votes[answered].ballot = commit->ballot;
    commit->votes[other_of(voter, 1)].ballot = commit->ballot - 1; /* For an earlier one. */
    commit->decided = true;
    dp_commit_poke(commit, dp_time_after(due, DP_COMMIT_RESEND_US));
    commit->decided = false;
    commit->key_lost = true;
    dp_commit_poke(commit, dp_time_after(due, DP_COMMIT_RESEND_US));
    commit->key_lost = false;
    assert_int_equal(lone_sent(voter, DP_MSG_PROPOSE), 0);
    dp_commit_poke(commit, dp_time_after(due, DP_COMMIT_RESEND_US));
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(sent_to[i], i == voter->self || i == answered ? 0 : 1);
    }
    lone_close(voter);
}

/* ---- votes that are met (commit_acceptor.c) ---- */

/* A restored backup of the disk: a vote with the own signature that the row does not have. */
static void an_own_vote_that_the_row_does_not_have_ends_voting(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 8; what++) {
        lone_voter *voter = begin(3, false);
        dp_commit *commit = &voter->commit;
        const dp_hash hash = {{1}};
        commit->state.promised = 9;
        commit->state.accepted = 5;
        commit->state.hash = hash;
        dp_vote vote = {.ballot = what == 2   ? 6
                                  : what == 3 ? 4
                                  : what == 5 ? 9
                                  : what == 6 ? 10
                                              : 5,
                        .hash = hash};
        vote.hash.bytes[0] ^= what == 1 || what == 3 || what == 7 ? 1 : 0;
        const bool promise = what == 5 || what == 6;
        lone_sign(voter, &vote, promise ? DP_MSG_PROMISE : DP_MSG_ACCEPTED, voter->self);
        vote.signature[0] ^= what == 7 ? 1 : 0;
        commit->phase = DP_COMMIT_PREPARING;
        dp_commit_notice_own(commit, &vote);
        /* Another record in its ballot, a later accept, a later promise. */
        const bool lost = what == 1 || what == 2 || what == 6;
        assert_int_equal(commit->key_lost, lost);
        assert_int_equal(commit->phase, lost ? DP_COMMIT_IDLE : DP_COMMIT_PREPARING);
        commit->key_lost = false;
        commit->decided = true; /* Nothing of this slot matters any more. */
        dp_commit_notice_own(commit, &vote);
        assert_false(commit->key_lost);
        lone_close(voter);
    }
}

static void of_the_votes_of_a_voter_the_last_counts_and_two_in_one_ballot_are_a_proof(void **state)
{
    lone_voter *voter = begin(5, false);
    dp_commit *commit = &voter->commit;
    const uint32_t by = other_of(voter, 0);
    dp_vote vote = {.ballot = 4, .hash = {{1}}};
    dp_vote echo;

    (void)state;
    assert_false(dp_commit_echo(commit, by, &echo));
    lone_sign(voter, &vote, DP_MSG_ACCEPTED, by);
    dp_commit_tally(commit, &vote);
    assert_true(dp_commit_echo(commit, by, &echo));
    assert_int_equal(echo.ballot, 4);
    dp_commit_tally(commit, &vote); /* The same again. */
    assert_int_equal(proofs, 0);
    vote.hash.bytes[0] = 2;
    dp_commit_tally(commit, &vote);
    assert_int_equal(proofs, 1);
    vote.ballot = 3;
    dp_commit_tally(commit, &vote); /* It came late. */
    assert_int_equal(proofs, 1);
    assert_true(dp_commit_echo(commit, by, &echo));
    assert_int_equal(echo.ballot, 4);
    assert_int_equal(echo.hash.bytes[0], 1);
    vote.ballot = 5;
    dp_commit_tally(commit, &vote);
    assert_true(dp_commit_echo(commit, by, &echo));
    assert_int_equal(echo.ballot, 5);
    assert_int_equal(echo.hash.bytes[0], 2);
    commit->decided = true;
    vote.ballot = 6;
    dp_commit_tally(commit, &vote);
    assert_true(dp_commit_echo(commit, by, &echo));
    assert_int_equal(echo.ballot, 5);
    assert_false(dp_commit_echo(commit, 5, &echo)); /* There is no such voter. */
    lone_close(voter);
}

/* A NACK is not signed; it says which ballot the next bid has to exceed. */
static void a_vote_of_no_voter_or_of_a_ballot_that_is_too_high_by_now_is_refused(void **state)
{
    lone_voter *voter = begin(3, false);
    dp_commit *commit = &voter->commit;
    dp_vote_msg nack = {.vote = {.type = DP_MSG_NACK, .voter = 3, .ballot = 7}};

    (void)state;
    assert_int_equal(lone_tell(voter, &nack), DP_DENIED);
    nack.vote.voter = (uint8_t)other_of(voter, 0);
    nack.vote.ballot = (uint32_t)INT32_MAX + 1;
    assert_int_equal(lone_tell(voter, &nack), DP_DENIED);
    assert_int_equal(commit->began.us, 0);
    nack.vote.ballot = DP_BALLOTS_PER_SECOND + 1;
    assert_int_equal(lone_tell(voter, &nack), DP_AGAIN);
    assert_int_equal(commit->began.us, lone_now.us);
    assert_int_equal(commit->seen, -1);
    nack.vote.ballot = DP_BALLOTS_PER_SECOND;
    assert_int_equal(lone_tell(voter, &nack), DP_OK);
    assert_int_equal(commit->seen, DP_BALLOTS_PER_SECOND);
    nack.vote.ballot = 2 * DP_BALLOTS_PER_SECOND;
    const dp_time second = dp_time_after(lone_now, DP_SECOND);
    assert_int_equal(dp_commit_message(commit, (dp_time){second.us - 1}, &nack), DP_AGAIN);
    assert_int_equal(dp_commit_message(commit, second, &nack), DP_OK);
    assert_int_equal(commit->seen, 2 * DP_BALLOTS_PER_SECOND);
    nack.vote.ballot = 3;
    assert_int_equal(dp_commit_message(commit, second, &nack), DP_OK);
    assert_int_equal(commit->seen, 2 * DP_BALLOTS_PER_SECOND);
    lone_close(voter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_value_that_the_host_refuses_or_lacks_ends_the_ballot_and_one_for_later_waits),
        cmocka_unit_test(ballot_zero_is_for_its_owner_once_and_before_any_promise),
        cmocka_unit_test(the_promises_of_a_majority_say_which_value_is_proposed),
        cmocka_unit_test(
            a_promise_of_another_ballot_or_after_a_write_that_failed_counts_for_nothing),
        cmocka_unit_test(what_was_not_answered_is_sent_again_to_those_who_did_not_answer),
        cmocka_unit_test(an_own_vote_that_the_row_does_not_have_ends_voting),
        cmocka_unit_test(of_the_votes_of_a_voter_the_last_counts_and_two_in_one_ballot_are_a_proof),
        cmocka_unit_test(a_vote_of_no_voter_or_of_a_ballot_that_is_too_high_by_now_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
