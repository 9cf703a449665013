/* Promises and accepts of a voter, and the voters that get them: the other voters lie, and the disk
 * fails. */
#include "tests/unit/gossip/kit/lone_voter.h"

static void an_accept_whose_write_failed_is_told_to_nobody(void **state)
{
    lone_voter *voter = lone_open(3);
    const uint32_t ballot = lone_ballot_of(voter, 1, 0);
    const dp_vote_msg msg = lone_proposal(voter, "a record", 1, ballot, ballot > 0 ? 2 : 0);

    (void)state;
    assert_int_equal(lone_tell(voter, &msg), DP_OK);
    assert_int_equal(voter->ops, 1);
    lone_wrote(voter, DP_IO);
    assert_int_equal(lone_sent(voter, DP_MSG_ACCEPTED), 0);
    assert_int_equal(voter->commit.voted, 0); /* It does not count it for itself either. */
    assert_int_equal(lone_tell(voter, &msg), DP_OK);
    assert_int_equal(lone_sent(voter, DP_MSG_ACCEPTED), 0);
    lone_wrote(voter, DP_OK);
    assert_int_equal(lone_sent(voter, DP_MSG_ACCEPTED), 2);
    lone_close(voter);
}

static void a_promise_whose_write_failed_is_told_to_nobody(void **state)
{
    lone_voter *voter = lone_open(3);
    dp_vote_msg msg = {.vote = {.ballot = lone_ballot_of(voter, 1, 1)}};

    (void)state;
    lone_sign(voter, &msg.vote, DP_MSG_PREPARE, 1);
    assert_int_equal(lone_tell(voter, &msg), DP_OK);
    lone_wrote(voter, DP_IO);
    assert_int_equal(lone_sent(voter, DP_MSG_PROMISE), 0);
    assert_int_equal(lone_tell(voter, &msg), DP_OK);
    assert_int_equal(lone_sent(voter, DP_MSG_PROMISE), 0);
    lone_wrote(voter, DP_OK);
    assert_int_equal(lone_sent(voter, DP_MSG_PROMISE), 1);
    lone_close(voter);
}

/* Correctly signed, in the ballot of another owner: ballot 0, which needs no proof, and a later
 * one. */
static void a_proposal_by_another_than_the_ballots_owner_is_refused(void **state)
{
    (void)state;
    for (uint32_t from = 0; from <= 1; from++) {
        lone_voter *voter = lone_open(3);
        const uint32_t ballot = lone_ballot_of(voter, 1, from);
        const dp_vote_msg lie = lone_proposal(voter, "a record", 2, ballot, ballot > 0 ? 2 : 0);
        const dp_vote_msg msg = lone_proposal(voter, "a record", 1, ballot, ballot > 0 ? 2 : 0);
        assert_int_equal(lone_tell(voter, &lie), DP_DENIED);
        assert_int_equal(voter->judged, 0);
        assert_int_equal(voter->ops, 0);
        assert_int_equal(lone_tell(voter, &msg), DP_OK);
        assert_int_equal(voter->ops, 1);
        lone_close(voter);
    }
}

static void a_request_for_promises_by_another_than_the_ballots_owner_is_refused(void **state)
{
    lone_voter *voter = lone_open(3);
    dp_vote_msg msg = {.vote = {.ballot = lone_ballot_of(voter, 1, 1)}};

    (void)state;
    lone_sign(voter, &msg.vote, DP_MSG_PREPARE, 2);
    assert_int_equal(lone_tell(voter, &msg), DP_DENIED);
    assert_int_equal(voter->ops, 0);
    assert_int_equal(voter->commit.seen, -1); /* Nor does it drive up the ballots. */
    lone_close(voter);
}

/* Half of four, and less than half of three and five. */
static void a_proof_of_fewer_than_a_majority_is_refused(void **state)
{
    static const uint32_t few[] = {3, 1, 4, 2, 5, 2, 7, 3};

    (void)state;
    for (uint32_t i = 0; i < sizeof few / sizeof few[0]; i += 2) {
        lone_voter *voter = lone_open(few[i]);
        const uint32_t ballot = lone_ballot_of(voter, 1, 1);
        const dp_vote_msg lie = lone_proposal(voter, "a record", 1, ballot, few[i + 1]);
        const dp_vote_msg msg = lone_proposal(voter, "a record", 1, ballot, few[i + 1] + 1);
        assert_int_equal(lone_tell(voter, &lie), DP_DENIED);
        assert_int_equal(voter->ops, 0);
        if (few[i + 1] + 1 < few[i]) { /* Voter 0 is the one that is asked. */
            assert_int_equal(lone_tell(voter, &msg), DP_OK);
            assert_int_equal(voter->ops, 1);
        }
        lone_close(voter);
    }
}

static void a_proof_that_counts_a_voter_twice_is_refused(void **state)
{
    lone_voter *voter = lone_open(3);
    dp_vote_msg lie = lone_proposal(voter, "a record", 1, lone_ballot_of(voter, 1, 1), 1);

    (void)state;
    lie.just[lie.n_just++] = lie.just[0];
    assert_int_equal(lone_tell(voter, &lie), DP_DENIED);
    assert_int_equal(voter->ops, 0);
    lone_close(voter);
}

static void a_proof_whose_promises_were_not_signed_so_is_refused(void **state)
{
    lone_voter *voter = lone_open(3);
    const uint32_t ballot = lone_ballot_of(voter, 1, 1);
    dp_vote_msg lie = lone_proposal(voter, "a record", 1, ballot, 2);

    (void)state;
    lie.just[1].signature[0] ^= 1; /* nobody's signature */
    assert_int_equal(lone_tell(voter, &lie), DP_DENIED);
    lie = lone_proposal(voter, "a record", 1, ballot, 2);
    lie.just[1].voter = 0; /* another's */
    assert_int_equal(lone_tell(voter, &lie), DP_DENIED);
    lie = lone_proposal(voter, "a record", 1, ballot, 2);
    lie.just[1].accepted = 1; /* of another promise */
    lie.just[1].hash = lie.vote.hash;
    assert_int_equal(lone_tell(voter, &lie), DP_DENIED);
    lie = lone_proposal(voter, "a record", 1, ballot, 2);
    lie.just[1].voter = 3; /* of no voter */
    assert_int_equal(lone_tell(voter, &lie), DP_DENIED);
    assert_int_equal(voter->ops, 0);
    lone_close(voter);
}

/* The promise that names the highest accepted ballot binds, not the first, and none that is above
 * its own ballot. */
static void a_proposal_of_another_record_than_its_proof_names_is_refused(void **state)
{
    lone_voter *voter = lone_open(5);
    const uint32_t ballot = lone_ballot_of(voter, 1, 5);
    const dp_hash old = dp_record_hash(dp_view_text("an older record"));
    const dp_hash forced = dp_record_hash(dp_view_text("the record"));
    dp_vote_msg msg = lone_proposal(voter, "an older record", 1, ballot, 3);

    (void)state;
    msg.just[0].accepted = 1;
    msg.just[0].hash = old;
    lone_sign(voter, &msg.just[0], DP_MSG_PROMISE, 1);
    msg.just[1].accepted = 2;
    msg.just[1].hash = forced;
    lone_sign(voter, &msg.just[1], DP_MSG_PROMISE, 2);
    assert_int_equal(lone_tell(voter, &msg), DP_DENIED);
    msg.record = dp_view_text("the record");
    msg.vote.hash = forced;
    lone_sign(voter, &msg.vote, DP_MSG_PROPOSE, 1);
    msg.just[2].accepted = ballot + 1;
    msg.just[2].hash = forced;
    lone_sign(voter, &msg.just[2], DP_MSG_PROMISE, 3);
    assert_int_equal(lone_tell(voter, &msg), DP_DENIED);
    msg.just[2].accepted = 0;
    lone_sign(voter, &msg.just[2], DP_MSG_PROMISE, 3);
    assert_int_equal(lone_tell(voter, &msg), DP_OK);
    assert_int_equal(voter->ops, 1);
    lone_close(voter);
}

static void a_vote_that_its_voter_did_not_sign_counts_for_nothing(void **state)
{
    static const uint8_t types[] = {DP_MSG_PREPARE, DP_MSG_PROPOSE, DP_MSG_PROMISE,
                                    DP_MSG_ACCEPTED};
    lone_voter *voter = lone_open(3);
    const uint32_t ballot = lone_ballot_of(voter, 1, 1);

    (void)state;
    for (uint32_t i = 0; i < sizeof types; i++) {
        dp_vote_msg lie = lone_proposal(voter, "a record", 1, ballot, 2);
        lone_sign(voter, &lie.vote, types[i], 2);
        lie.vote.voter = 1;
        assert_int_equal(lone_tell(voter, &lie), DP_BADSIG);
    }
    assert_int_equal(voter->ops, 0);
    assert_int_equal(voter->commit.seen, -1);
    assert_int_equal(voter->commit.voted, 0);
    lone_close(voter);
}

/* A PREPARE or NACK names a ballot; an own one is above it. */
static void a_bid_is_above_every_ballot_that_was_met(void **state)
{
    (void)state;
    for (uint32_t nack = 0; nack <= 1; nack++) {
        lone_voter *voter = lone_open(3);
        dp_vote_msg msg = {.vote = {.ballot = lone_ballot_of(voter, 1, 40)}};
        lone_sign(voter, &msg.vote, nack != 0 ? DP_MSG_NACK : DP_MSG_PREPARE, 1);
        assert_int_equal(lone_tell(voter, &msg), DP_OK);
        if (nack == 0) {
            lone_wrote(voter, DP_OK);
        }
        assert_int_equal(voter->commit.seen, msg.vote.ballot);
        assert_true(dp_commit_bid(&voter->commit, lone_now));
        assert_true(voter->commit.ballot > msg.vote.ballot);
        assert_int_equal(dp_commit_owner(&voter->commit, voter->commit.ballot), 0);
        lone_close(voter);
    }
    lone_voter *voter = lone_open(3); /* A vote for a record names one too. */
    dp_vote_msg vote = {.vote = {.ballot = lone_ballot_of(voter, 1, 40)}};
    lone_sign(voter, &vote.vote, DP_MSG_ACCEPTED, 2);
    assert_int_equal(lone_tell(voter, &vote), DP_OK);
    assert_int_equal(voter->commit.seen, vote.vote.ballot);
    assert_true(dp_commit_active(&voter->commit));
    lone_close(voter);
}

/* It came while the row of a promise was being written. */
static void a_proposal_that_came_during_a_write_is_voted_on_when_the_write_is_done(void **state)
{
    lone_voter *voter = lone_open(3);
    dp_vote_msg prepare = {.vote = {.ballot = lone_ballot_of(voter, 1, 1)}};
    const dp_vote_msg proposal =
        lone_proposal(voter, "a record", 1, lone_ballot_of(voter, 1, prepare.vote.ballot), 2);

    (void)state;
    lone_sign(voter, &prepare.vote, DP_MSG_PREPARE, 1);
    assert_int_equal(lone_tell(voter, &prepare), DP_OK);
    assert_int_equal(voter->ops, 1);
    DP_IGNORE(lone_tell(voter, &proposal) == DP_OK);
    assert_int_equal(voter->ops, 1);
    lone_wrote(voter, DP_OK);
    assert_int_equal(voter->ops, 2); /* At once. */
    lone_wrote(voter, DP_OK);
    assert_int_equal(lone_sent(voter, DP_MSG_ACCEPTED), 2);
    lone_close(voter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_accept_whose_write_failed_is_told_to_nobody),
        cmocka_unit_test(a_promise_whose_write_failed_is_told_to_nobody),
        cmocka_unit_test(a_proposal_by_another_than_the_ballots_owner_is_refused),
        cmocka_unit_test(a_request_for_promises_by_another_than_the_ballots_owner_is_refused),
        cmocka_unit_test(a_proof_of_fewer_than_a_majority_is_refused),
        cmocka_unit_test(a_proof_that_counts_a_voter_twice_is_refused),
        cmocka_unit_test(a_proof_whose_promises_were_not_signed_so_is_refused),
        cmocka_unit_test(a_proposal_of_another_record_than_its_proof_names_is_refused),
        cmocka_unit_test(a_vote_that_its_voter_did_not_sign_counts_for_nothing),
        cmocka_unit_test(a_bid_is_above_every_ballot_that_was_met),
        cmocka_unit_test(a_proposal_that_came_during_a_write_is_voted_on_when_the_write_is_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
