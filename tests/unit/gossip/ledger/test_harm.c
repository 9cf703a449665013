/* Accusations and the removals based on them, against forged contents. */
#include "gossip/ledger/harm.h"
#include "tests/lib/check.h"
#include "tests/unit/gossip/kit/valid_kit.h"

enum { ACCUSED = 3 };

static dp_harms harms;

/* Three voters, and a member that does not vote. */
static int setup(void **state)
{
    (void)state;
    kit_begin(1000);
    const dp_peer accused = kit_peer(ACCUSED);
    dp_hash key;
    memcpy(key.bytes, accused.bytes, sizeof key.bytes);
    assert_int_equal(dp_map_put(&ledger.map, &key, ledger.n_roster), DP_OK);
    ledger.roster[ledger.n_roster++] = (dp_roster_entry){.peer = accused, .caps = DP_CAP_TRAIN};
    ledger.n_members++;
    memset(&harms, 0, sizeof harms);
    return 0;
}

static dp_harm word_of(uint32_t voter, uint32_t accused, uint64_t round)
{
    dp_harm harm = {.accused = kit_peer(accused), .round = round, .voter = kit_peer(voter)};
    const dp_crypto crypto = kit_crypto(voter);

    assert_true(dp_harm_sign(&harm, &crypto, &ledger.run, &ledger.fork));
    return harm;
}

static void say(uint32_t voter, uint64_t round)
{
    const dp_harm harm = word_of(voter, ACCUSED, round);

    assert_true(dp_harms_want(&harms, &ledger, &harm));
    dp_harms_add(&harms, &ledger, &harm);
}

static dp_status judge(const dp_remove *remove)
{
    const dp_crypto crypto = kit_crypto(0);
    const char *cause = NULL;
    const dp_status status = dp_harm_valid(&ledger, &crypto, remove, &cause);

    assert_true(status == DP_OK || cause != NULL);
    return status;
}

static dp_remove by_two(void)
{
    dp_remove remove;

    say(0, ledger.round);
    say(2, ledger.round + 1);
    assert_true(dp_harms_removal(&harms, &ledger, 0, &remove));
    return remove;
}

static void a_word_comes_back_from_its_bytes(void **state)
{
    const dp_harm harm = word_of(1, ACCUSED, 77);
    const dp_crypto crypto = kit_crypto(1);
    uint8_t bytes[DP_HARM_MESSAGE_BYTES + 1];
    uint8_t key[DP_PUBLIC_KEY_BYTES];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_harm back;

    (void)state;
    dp_harm_write(&writer, &harm);
    assert_int_equal(writer.size, DP_HARM_MESSAGE_BYTES);
    CHECK_OK(dp_harm_read(dp_view_of(bytes, writer.size), &back));
    assert_memory_equal(&back, &harm, sizeof back);
    kit_vote_key(1, key);
    assert_true(dp_harm_verify(&back, key, &crypto, &ledger.run, &ledger.fork));
    back.round++;
    assert_false(dp_harm_verify(&back, key, &crypto, &ledger.run, &ledger.fork));
    for (size_t size = 0; size < DP_HARM_MESSAGE_BYTES; size++) {
        CHECK_STATUS(dp_harm_read(dp_view_of(bytes, size), &back), DP_BADMSG);
    }
    CHECK_STATUS(dp_harm_read(dp_view_of(bytes, sizeof bytes), &back), DP_BADMSG);
    bytes[0]++;
    CHECK_STATUS(dp_harm_read(dp_view_of(bytes, writer.size), &back), DP_BADMSG);
}

static void a_majority_of_the_voters_puts_out_and_one_does_not(void **state)
{
    dp_remove remove = {.reason = DP_REMOVE_LEFT};

    (void)state;
    say(1, ledger.round + 1);
    assert_false(dp_harms_removal(&harms, &ledger, 0, &remove));
    assert_int_equal(remove.reason, DP_REMOVE_LEFT); /* Untouched. */
    say(0, ledger.round - 3);
    assert_true(dp_harms_removal(&harms, &ledger, 0, &remove));
    assert_int_equal(remove.reason, DP_REMOVE_HARMFUL);
    assert_int_equal(remove.n_seals, 2);
    assert_int_equal(remove.seals[0].voter, 0); /* Rising. */
    CHECK_OK(judge(&remove));
}

static void the_record_carries_the_evidence(void **state)
{
    const dp_remove remove = by_two();
    uint8_t bytes[1024];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_remove back = {.n_seals = 7};

    (void)state;
    dp_remove_write(&writer, &remove);
    dp_reader reader = dp_reader_of(dp_view_of(bytes, writer.size));
    assert_true(dp_remove_read(&reader, &back));
    CHECK_OK(dp_reader_finish(&reader));
    assert_memory_equal(&back, &remove, sizeof back);
    for (size_t size = 0; size < writer.size; size++) {
        reader = dp_reader_of(dp_view_of(bytes, size));
        assert_false(dp_remove_read(&reader, &back));
    }
    for (uint8_t n = 0; n < 255; n++) { /* None, and more than there can be. */
        bytes[33] = n;
        reader = dp_reader_of(dp_view_of(bytes, sizeof bytes));
        assert_true(!dp_remove_read(&reader, &back) || (n > 0 && n <= DP_VOTERS_MAX));
    }
    bytes[33] = 2;
    bytes[34] = 2; /* The first voter after the second. */
    reader = dp_reader_of(dp_view_of(bytes, writer.size));
    assert_false(dp_remove_read(&reader, &back));
}

static void a_record_may_carry_it_and_its_evidence_is_looked_at(void **state)
{
    (void)state;
    (void)kit_list(&ledger, &record, 0, 1000, 10, 400);
    record.has_config = true;
    record.config.removes[record.config.n_removes++] = by_two();
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_OK);
    record.config.removes[0].n_seals = 1;
    assert_int_equal(verdict(), DP_DENIED);
}

/* A lying voter or proposer gains nothing without the accusations of a majority. */
static void forged_evidence_is_refused(void **state)
{
    const dp_remove good = by_two();
    dp_remove bad = good;

    (void)state;
    CHECK_OK(judge(&good));
    bad.n_seals = 1;
    CHECK_STATUS(judge(&bad), DP_DENIED);
    bad = good;
    bad.seals[1] = bad.seals[0]; /* One voter twice. */
    CHECK_STATUS(judge(&bad), DP_DENIED);
    bad = good;
    bad.seals[1].voter = (uint8_t)ledger.n_voters;
    CHECK_STATUS(judge(&bad), DP_DENIED);
    bad = good;
    bad.seals[0].signature[5] ^= 1;
    CHECK_STATUS(judge(&bad), DP_BADSIG);
    bad = good;
    bad.seals[0].round++; /* Another round than was signed. */
    CHECK_STATUS(judge(&bad), DP_BADSIG);
    bad = good;
    bad.peer = kit_peer(9); /* A stranger. */
    CHECK_STATUS(judge(&bad), DP_DENIED);
    ledger.fork.bytes[0] ^= 1; /* Accusations of another chain. */
    CHECK_STATUS(judge(&good), DP_BADSIG);
}

static void words_of_long_ago_put_nobody_out(void **state)
{
    const dp_remove old = by_two();

    (void)state;
    ledger.round += DP_HARM_ROUNDS;
    CHECK_STATUS(judge(&old), DP_DENIED);
    dp_harms_prune(&harms, &ledger, false);
    assert_int_equal(harms.n, 1); /* One was said a round later. */
    dp_remove remove;
    assert_false(dp_harms_removal(&harms, &ledger, 0, &remove));
    ledger.round++;
    dp_harms_prune(&harms, &ledger, false);
    assert_int_equal(harms.n, 0);
    const dp_harm early = word_of(0, ACCUSED, ledger.round + 2);
    assert_false(dp_harms_want(&harms, &ledger, &early));
}

static void a_voter_is_not_put_out_for_harm(void **state)
{
    dp_remove remove = by_two();

    (void)state;
    const dp_harm harm = word_of(0, 1, ledger.round);
    assert_false(dp_harms_want(&harms, &ledger, &harm));
    remove.peer = kit_peer(1);
    CHECK_STATUS(judge(&remove), DP_DENIED);
}

static void a_run_that_trusts_its_members_puts_nobody_out(void **state)
{
    const dp_remove remove = by_two();

    (void)state;
    ledger.judges = false;
    CHECK_STATUS(judge(&remove), DP_DENIED);
}

/* The table takes only accusations of voters, each once. */
static void only_news_of_voters_is_wanted(void **state)
{
    (void)state;
    const dp_harm other = word_of(ACCUSED, ACCUSED, ledger.round);
    assert_false(dp_harms_want(&harms, &ledger, &other));
    say(1, ledger.round);
    const dp_harm again = word_of(1, ACCUSED, ledger.round);
    assert_false(dp_harms_want(&harms, &ledger, &again));
    const dp_harm newer = word_of(1, ACCUSED, ledger.round + 1);
    assert_true(dp_harms_want(&harms, &ledger, &newer));
    const dp_harm stranger = word_of(1, 9, ledger.round);
    assert_false(dp_harms_want(&harms, &ledger, &stranger));
}

static void other_voters_begin_anew(void **state)
{
    (void)state;
    (void)by_two();
    dp_harms_prune(&harms, &ledger, false);
    assert_int_equal(harms.n, 1);
    dp_harms_prune(&harms, &ledger, true);
    assert_int_equal(harms.n, 0);
}

static void a_full_table_takes_no_more_and_keeps_what_it_has(void **state)
{
    (void)state;
    harms.n = DP_HARMS_MAX; /* All about others. */
    const dp_harm harm = word_of(1, ACCUSED, ledger.round);
    assert_false(dp_harms_want(&harms, &ledger, &harm));
    dp_harms_add(&harms, &ledger, &harm);
    assert_int_equal(harms.n, DP_HARMS_MAX);
}

/* If one of three voters accuses every member, two thirds of the table remain for the others. */
static void one_voter_alone_does_not_fill_the_table(void **state)
{
    const uint32_t most = DP_HARMS_MAX / ledger.n_voters;

    (void)state;
    for (uint32_t i = 0; i < DP_HARMS_MAX; i++) {
        harms.rows[i] =
            (struct dp_harm_row){.accused = kit_peer(100 + i), .rounds = {ledger.round}};
    }
    harms.n = most - 1;
    const dp_harm last = word_of(0, ACCUSED, ledger.round);
    assert_true(dp_harms_want(&harms, &ledger, &last));
    harms.n = most;
    assert_false(dp_harms_want(&harms, &ledger, &last));
    const dp_harm other = word_of(1, ACCUSED, ledger.round);
    assert_true(dp_harms_want(&harms, &ledger, &other));
    dp_harms_add(&harms, &ledger, &other);
    assert_true(dp_harms_want(&harms, &ledger, &last)); /* It is not alone there. */
}

static void no_byte_of_a_word_can_be_another(void **state)
{
    const dp_harm harm = word_of(1, ACCUSED, 77);
    const dp_crypto crypto = kit_crypto(1);
    uint8_t bytes[DP_HARM_MESSAGE_BYTES];
    uint8_t key[DP_PUBLIC_KEY_BYTES];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    (void)state;
    kit_vote_key(1, key);
    dp_harm_write(&writer, &harm);
    assert_int_equal(writer.size, sizeof bytes);
    for (size_t at = 0; at < sizeof bytes; at++) {
        dp_harm read;
        bytes[at] ^= 1;
        const bool reads = dp_harm_read(dp_view_of(bytes, sizeof bytes), &read) == DP_OK;
        const bool is_voter = reads && dp_peer_equal(&read.voter, &harm.voter);
        /* Another voter has another key. */
        assert_true(!is_voter || !dp_harm_verify(&read, key, &crypto, &ledger.run, &ledger.fork));
        bytes[at] ^= 1;
    }
    assert_true(dp_harm_verify(&harm, key, &crypto, &ledger.run, &ledger.fork));
    assert_false(dp_harm_verify(&harm, key, &crypto, &(dp_run_id){{9}}, &ledger.fork));
    assert_false(dp_harm_verify(&harm, key, &crypto, &ledger.run, &(dp_hash){{9}}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_word_comes_back_from_its_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_majority_of_the_voters_puts_out_and_one_does_not, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_record_carries_the_evidence, setup, teardown),
        cmocka_unit_test_setup_teardown(a_record_may_carry_it_and_its_evidence_is_looked_at, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(forged_evidence_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(words_of_long_ago_put_nobody_out, setup, teardown),
        cmocka_unit_test_setup_teardown(a_voter_is_not_put_out_for_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_that_trusts_its_members_puts_nobody_out, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(only_news_of_voters_is_wanted, setup, teardown),
        cmocka_unit_test_setup_teardown(other_voters_begin_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(one_voter_alone_does_not_fill_the_table, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_table_takes_no_more_and_keeps_what_it_has, setup,
                                        teardown),
        cmocka_unit_test(no_byte_of_a_word_can_be_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
