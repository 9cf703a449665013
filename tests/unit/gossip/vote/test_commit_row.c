/* The durable vote row: its parts that bind a voter in a new slot. */
#include "tests/unit/gossip/kit/lone_voter.h"

static uint8_t bytes[DP_COMMIT_ROW_MAX];

/* Voter 0 starts with this row, and the slot after the ledger's head begins. */
static lone_voter *restart_with(const dp_commit_row *row)
{
    lone_voter *voter = lone_open(3);
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    dp_commit_row_write(&writer, row);
    lone_boot(voter, 0);
    assert_int_equal(dp_commit_restore(&voter->commit, dp_view_of(bytes, writer.size)), DP_OK);
    lone_begin(voter);
    return voter;
}

/* Of the slot that begins: ballot 7 promised, ballot 6 accepted. */
static dp_commit_row row_of_now(void)
{
    lone_voter *voter = lone_open(3);
    const dp_commit_row row = {.fork = voter->ledger.fork,
                               .slot = voter->ledger.slot + 1,
                               .prev = voter->ledger.head,
                               .promised = 7,
                               .accepted = 6,
                               .record = dp_view_text("a record")};

    lone_close(voter);
    return row;
}

static void a_row_of_this_slot_binds_its_voter(void **state)
{
    const dp_commit_row row = row_of_now();
    lone_voter *voter = restart_with(&row);
    const dp_hash hash = dp_record_hash(row.record);

    (void)state;
    assert_int_equal(voter->commit.state.promised, 7);
    assert_int_equal(voter->commit.state.accepted, 6);
    assert_true(dp_hash_equal(&voter->commit.state.hash, &hash));
    assert_int_equal(voter->commit.durable.promised, 7);
    assert_int_equal(voter->commit.seen, 7);
    assert_false(dp_commit_propose(&voter->commit, lone_now)); /* Ballot 0 is past. */
    assert_true(dp_commit_bid(&voter->commit, lone_now));
    assert_true(voter->commit.ballot > 7);
    lone_close(voter);
}

/* A vote after another record, or in another fork, or of an earlier slot, does not bind in this
 * one. */
static void a_row_of_another_slot_does_not_bind(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        dp_commit_row row = row_of_now();
        row.prev.bytes[0] ^= i == 0 ? 1 : 0;
        row.fork.bytes[0] ^= i == 1 ? 1 : 0;
        row.slot -= i == 2 ? 1 : 0;
        lone_voter *voter = restart_with(&row);
        assert_int_equal(voter->commit.state.promised, -1);
        assert_int_equal(voter->commit.state.accepted, -1);
        assert_true(dp_commit_may_vote(&voter->commit));
        assert_true(dp_commit_bid(&voter->commit, lone_now));
        lone_close(voter);
    }
}

/* The records before it are missing here: a vote now would overwrite it. Without them the voter
 * does not answer. */
static void a_row_of_a_later_slot_keeps_its_voter_silent_until_then(void **state)
{
    dp_commit_row row = row_of_now();
    row.slot++;
    lone_voter *voter = restart_with(&row);
    const uint32_t ballot = lone_ballot_of(voter, 1, 1);
    dp_vote_msg ask = {.vote = {.ballot = ballot}};
    const dp_vote_msg msg = lone_proposal(voter, "another", 1, ballot, 2);

    (void)state;
    lone_sign(voter, &ask.vote, DP_MSG_PREPARE, 1);
    assert_int_equal(lone_tell(voter, &ask), DP_OK);
    assert_int_equal(lone_tell(voter, &msg), DP_OK);
    assert_false(dp_commit_bid(&voter->commit, lone_now));
    assert_int_equal(voter->ops, 0);
    voter->ledger.slot++; /* The missing record has come. */
    lone_begin(voter);
    assert_int_equal(voter->commit.state.promised, 7);
    assert_int_equal(voter->commit.state.accepted, 6);
    lone_close(voter);
}

/* Its fork has ended, by the chain or by a message to this node: the voter answers. */
static void a_row_of_a_fork_that_has_ended_holds_nothing_back(void **state)
{
    dp_commit_row row = row_of_now();
    row.slot += 3;
    row.fork.bytes[0] ^= 1;
    lone_voter *voter = restart_with(&row);

    (void)state;
    assert_false(dp_commit_may_vote(&voter->commit));
    dp_commit_end_fork(&voter->commit, &row.fork);
    lone_begin(voter);
    assert_true(dp_commit_may_vote(&voter->commit));
    assert_int_equal(voter->commit.state.promised, -1);
    lone_close(voter);
}

static void a_row_that_says_what_cannot_be_is_refused(void **state)
{
    static dp_commit_row row;
    dp_commit_row bad = row_of_now();
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    (void)state;
    bad.accepted = 8; /* above what was promised */
    dp_commit_row_write(&writer, &bad);
    assert_int_equal(dp_commit_row_read(dp_view_of(bytes, writer.size), &row), DP_BADMSG);
    bad = row_of_now();
    bad.accepted = -1; /* a record that was not accepted */
    writer = dp_writer_of(bytes, sizeof bytes);
    dp_commit_row_write(&writer, &bad);
    assert_int_equal(dp_commit_row_read(dp_view_of(bytes, writer.size), &row), DP_BADMSG);
    bad = row_of_now();
    bad.record.size = 0; /* accepted, and no record */
    writer = dp_writer_of(bytes, sizeof bytes);
    dp_commit_row_write(&writer, &bad);
    assert_int_equal(dp_commit_row_read(dp_view_of(bytes, writer.size), &row), DP_BADMSG);
    bad = row_of_now();
    writer = dp_writer_of(bytes, sizeof bytes);
    dp_commit_row_write(&writer, &bad);
    assert_int_equal(dp_commit_row_read(dp_view_of(bytes, writer.size), &row), DP_OK);
    bytes[0]++;
    assert_int_equal(dp_commit_row_read(dp_view_of(bytes, writer.size), &row), DP_VERSION);
}

static void every_field_of_a_row_comes_back(void **state)
{
    const dp_commit_row rows[2] = {{.fork = {{1, 2}},
                                    .slot = 0x0102030405060708,
                                    .prev = {{3, 4}},
                                    .promised = INT32_MAX,
                                    .accepted = 0x01020304,
                                    .record = dp_view_text("a record")},
                                   {.promised = -1, .accepted = -1}};

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        dp_commit_row read;
        dp_commit_row_write(&writer, &rows[i]);
        assert_int_equal(dp_commit_row_read(dp_view_of(bytes, writer.size), &read), DP_OK);
        assert_true(dp_hash_equal(&read.fork, &rows[i].fork));
        assert_true(dp_hash_equal(&read.prev, &rows[i].prev));
        assert_true(read.slot == rows[i].slot && read.promised == rows[i].promised);
        assert_true(read.accepted == rows[i].accepted);
        assert_true(dp_view_equal(read.record, rows[i].record));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_of_this_slot_binds_its_voter),
        cmocka_unit_test(a_row_of_another_slot_does_not_bind),
        cmocka_unit_test(a_row_of_a_later_slot_keeps_its_voter_silent_until_then),
        cmocka_unit_test(a_row_of_a_fork_that_has_ended_holds_nothing_back),
        cmocka_unit_test(a_row_that_says_what_cannot_be_is_refused),
        cmocka_unit_test(every_field_of_a_row_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
