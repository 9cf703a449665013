/* Each rule of a FORK: a good one, and the same with one thing wrong. */
#include "gossip/ledger/valid.h"
#include "tests/unit/gossip/kit/chain_kit.h"

static dp_ledger ledger;
static dp_record record;
static uint8_t room[DP_RECORD_BYTES_MAX];

static void offer_by(uint32_t place, uint32_t index)
{
    dp_voter_entry *entry = &record.config.voters[place];
    const dp_crypto crypto = kit_crypto(index);

    memset(entry, 0, sizeof *entry);
    entry->voter.peer = kit_peer(index);
    kit_vote_key(index, entry->voter.key);
    assert_true(
        dp_voter_ok_sign(&crypto, &ledger.run, &record.prev, entry->voter.key, entry->signature));
}

static void sign_removal(int key)
{
    const dp_crypto crypto = kit_crypto(0);

    assert_true(dp_remove_sign(&record.config.removes[0], &crypto, key, &ledger.run));
}

/* Of four members 0, 1 and 2 go on, and the root key puts 3 out. */
static int setup(void **state)
{
    (void)state;
    kit_ledger(&ledger);
    kit_voters(&ledger, 4);
    ledger.round = 5;
    ledger.slot = 6;
    memset(&record, 0, sizeof record);
    record.kind = DP_RECORD_FORK;
    record.run = ledger.run;
    record.fork = ledger.fork;
    record.slot = ledger.slot + 1;
    record.prev = ledger.head;
    record.time_ms = ledger.time_ms;
    record.round = ledger.round;
    record.has_config = true;
    record.config.n_voters = 3;
    for (uint32_t i = 0; i < 3; i++) {
        offer_by(i, i);
    }
    record.config.n_removes = 1;
    dp_remove *remove = &record.config.removes[0];
    *remove = (dp_remove){.peer = kit_peer(3), .reason = DP_REMOVE_REVOKED};
    memcpy(remove->by.bytes, ledger.root_key, sizeof remove->by.bytes);
    sign_removal(DP_KEY_ROOT);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dp_ledger_close(&ledger);
    return 0;
}

/* damage: the root key signed other bytes. */
static dp_status verdict_of(bool damage)
{
    const dp_crypto crypto = kit_crypto(0);
    const dp_admission admission = kit_admission();
    dp_valid valid = {.ledger = &ledger, .crypto = &crypto, .admission = &admission};
    const char *cause = NULL;

    assert_int_equal(dp_record_encode(&record, room, sizeof room, &valid.bytes), DP_OK);
    assert_true(dp_fork_sign(&crypto, room, valid.bytes.size));
    room[valid.bytes.size - 1] ^= damage ? 1 : 0;
    const dp_status status = dp_valid_record(&valid, &record, &cause);
    assert_true((status == DP_OK) == (cause[0] == '\0'));
    return status;
}

static dp_status verdict(void)
{
    return verdict_of(false);
}

static void a_fork_that_the_root_key_signed_is_valid(void **state)
{
    (void)state;
    assert_int_equal(verdict(), DP_OK);
    assert_int_equal(verdict_of(true), DP_BADSIG);
}

static void it_goes_on_after_the_last_round(void **state)
{
    (void)state;
    record.round++;
    assert_int_equal(verdict(), DP_DENIED);
    record.round -= 2;
    assert_int_equal(verdict(), DP_DENIED);
}

static void it_admits_fences_and_keeps_nobody(void **state)
{
    uint8_t credential[KIT_CREDENTIAL];

    (void)state;
    record.config.n_fences = 1;
    record.config.fences[0] = (dp_fence){.peer = kit_peer(1), .incarnation = 2};
    assert_int_equal(verdict(), DP_DENIED);
    record.config.n_fences = 0;
    record.config.n_admits = 1;
    record.config.admits[0] = (dp_admit){
        .peer = kit_peer(9), .credential = kit_credential(9, DP_CAP_ALL, 0, 1, credential)};
    assert_int_equal(verdict(), DP_DENIED);
    record.config.n_admits = 0;
    record.config.voters[0].kept = true;
    memset(record.config.voters[0].signature, 0, DP_SIGNATURE_BYTES);
    assert_int_equal(verdict(), DP_DENIED);
}

static void its_voters_are_an_odd_number_and_no_more_than_the_run_has(void **state)
{
    (void)state;
    record.config.n_voters = 2;
    assert_int_equal(verdict(), DP_DENIED);
    record.config.n_voters = 0;
    assert_int_equal(verdict(), DP_DENIED);
    record.config.n_voters = 1;
    assert_int_equal(verdict(), DP_OK);
    record.config.n_voters = 3;
    ledger.voters_max = 1;
    assert_int_equal(verdict(), DP_DENIED);
}

static void its_voters_are_members_who_may_vote_and_said_so_each_with_a_key(void **state)
{
    (void)state;
    ledger.roster[1].caps = DP_CAP_TRAIN;
    assert_int_equal(verdict(), DP_DENIED);
    ledger.roster[1].caps = DP_CAP_ALL;
    record.config.voters[1].signature[0] ^= 1;
    assert_int_equal(verdict(), DP_BADSIG);
    offer_by(1, 1);
    offer_by(2, 7); /* A stranger. */
    assert_int_equal(verdict(), DP_DENIED);
    offer_by(2, 2);
    memcpy(record.config.voters[2].voter.key, record.config.voters[1].voter.key,
           DP_PUBLIC_KEY_BYTES);
    const dp_crypto crypto = kit_crypto(2);
    assert_true(dp_voter_ok_sign(&crypto, &ledger.run, &record.prev,
                                 record.config.voters[2].voter.key,
                                 record.config.voters[2].signature));
    assert_int_equal(verdict(), DP_DENIED);
}

static void it_puts_out_by_the_root_key_who_is_a_member_and_not_its_voter(void **state)
{
    dp_remove *remove = &record.config.removes[0];

    (void)state;
    sign_removal(DP_KEY_IDENTITY);
    assert_int_equal(verdict(), DP_BADSIG);
    remove->by = kit_peer(0); /* An admin's word is for records that are voted. */
    sign_removal(DP_KEY_IDENTITY);
    assert_int_equal(verdict(), DP_DENIED);
    memcpy(remove->by.bytes, ledger.root_key, sizeof remove->by.bytes);
    remove->peer = kit_peer(1);
    sign_removal(DP_KEY_ROOT);
    assert_int_equal(verdict(), DP_DENIED);
    remove->peer = kit_peer(8);
    sign_removal(DP_KEY_ROOT);
    assert_int_equal(verdict(), DP_DENIED);
    remove->peer = kit_peer(3);
    sign_removal(DP_KEY_ROOT);
    ledger.roster[3].gone = 4;
    assert_int_equal(verdict(), DP_DENIED);
    ledger.roster[3].gone = 0;
    assert_int_equal(verdict(), DP_OK);
    *remove = (dp_remove){.peer = kit_peer(3), .reason = DP_REMOVE_LEFT, .incarnation = 1};
    const dp_crypto own = kit_crypto(3);
    assert_true(dp_remove_sign(remove, &own, DP_KEY_IDENTITY, &ledger.run));
    assert_int_equal(verdict(), DP_DENIED);
}

static void sign_revocation(int key)
{
    const dp_crypto crypto = kit_crypto(0);

    assert_true(dp_invite_revoke_sign(&record.config.revoked[0], &crypto, key, &ledger.run));
}

static void it_revokes_invites_by_the_root_key_alone(void **state)
{
    dp_invite_revoke *word = &record.config.revoked[0];

    (void)state;
    record.config.has_revoked = true;
    record.config.n_revoked = 1;
    *word = (dp_invite_revoke){.id = {{7}}, .until_ms = UINT64_MAX};
    memcpy(word->by.bytes, ledger.root_key, sizeof word->by.bytes);
    sign_revocation(DP_KEY_ROOT);
    assert_int_equal(verdict(), DP_OK);
    word->signature[0] ^= 1;
    assert_int_equal(verdict(), DP_BADSIG);
    word->by = kit_peer(0); /* An admin's word is for records that are voted. */
    sign_revocation(DP_KEY_IDENTITY);
    assert_int_equal(verdict(), DP_DENIED);
}

#define RULE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_fork_that_the_root_key_signed_is_valid),
        RULE(it_goes_on_after_the_last_round),
        RULE(it_admits_fences_and_keeps_nobody),
        RULE(its_voters_are_an_odd_number_and_no_more_than_the_run_has),
        RULE(its_voters_are_members_who_may_vote_and_said_so_each_with_a_key),
        RULE(it_puts_out_by_the_root_key_who_is_a_member_and_not_its_voter),
        RULE(it_revokes_invites_by_the_root_key_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
