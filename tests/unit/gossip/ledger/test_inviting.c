/* Invites that admit no node, by the chain. The attacker of these tests holds a token, or was a
 * member that may invite, and has any number of identities; each rule here keeps all of them out of
 * the roster. */
#include "gossip/ledger/inviting.h"
#include "tests/unit/gossip/kit/valid_kit.h"

enum { LEAKED = 9, OTHER = 3, DAY_MS = 24 * 3600 * 1000 };

/* The invite and nodes from which the credentials of newcomers derive, and their contents. */
static dp_admitted rests;
static uint8_t credentials[DP_CONFIG_ADMIT_MAX][KIT_CREDENTIAL];

static dp_status admit_resting(void *context, dp_view credential, const dp_run_id *run,
                               const uint8_t *root, const dp_peer *peer, uint64_t now_ms,
                               dp_admitted *out)
{
    DP_TRY(kit_admit(context, credential, run, root, peer, now_ms, out));
    out->invite_above = rests.invite_above;
    out->n_above = rests.n_above;
    memcpy(out->above, rests.above, sizeof out->above);
    return DP_OK;
}

static const char *cause;

static dp_status judge(void)
{
    const dp_crypto crypto = kit_crypto(0);
    const dp_admission admission = {.check = admit_resting};
    const dp_valid valid = {
        .ledger = &ledger, .crypto = &crypto, .admission = &admission, .admitted = admitted};

    return dp_valid_record(&valid, &record, &cause);
}

static void begin_record(void)
{
    memset(&record, 0, sizeof record);
    record.kind = DP_RECORD_CONFIG;
    record.run = ledger.run;
    record.fork = ledger.fork;
    record.slot = ledger.slot + 1;
    record.prev = ledger.head;
    record.time_ms = ledger.time_ms + 1;
    record.has_config = true;
}

static void admit(uint32_t index, uint8_t invite)
{
    const uint32_t at = record.config.n_admits++;

    record.config.admits[at] =
        (dp_admit){.peer = kit_peer(index),
                   .credential = kit_credential(index, DP_CAP_ALL, 0, invite, credentials[at])};
}

static dp_invite_id id_of(uint8_t invite)
{
    dp_invite_id id;

    memset(id.bytes, invite, sizeof id.bytes);
    return id;
}

/* by: a node, or KIT_ROOT. */
static dp_invite_revoke *revoke(uint8_t invite, uint64_t until_ms, uint32_t by)
{
    const bool root = by == KIT_ROOT;
    const dp_crypto crypto = kit_crypto(root ? 0 : by);
    dp_invite_revoke *word = &record.config.revoked[record.config.n_revoked++];

    record.config.has_revoked = true;
    *word = (dp_invite_revoke){.id = id_of(invite), .until_ms = until_ms, .by = kit_peer(by)};
    if (root) {
        memcpy(word->by.bytes, ledger.root_key, sizeof word->by.bytes);
    }
    assert_true(
        dp_invite_revoke_sign(word, &crypto, root ? DP_KEY_ROOT : DP_KEY_IDENTITY, &ledger.run));
    return word;
}

static void apply(void)
{
    const dp_hash hash = dp_hash_of("test/record", dp_view_of(&record.slot, sizeof record.slot));

    assert_int_equal(judge(), DP_OK);
    dp_ledger_apply(&ledger, &record, &hash, admitted);
    begin_record();
}

/* Members 0, 1 and 2 may do everything; the record is empty. */
static int setup(void **state)
{
    (void)state;
    memset(&rests, 0, sizeof rests);
    kit_begin(1000);
    begin_record();
    return 0;
}

static void a_revoked_invite_admits_nobody_in_that_record_and_later(void **state)
{
    (void)state;
    admit(4, LEAKED);
    assert_int_equal(verdict(), DP_OK);
    (void)revoke(LEAKED, UINT64_MAX, KIT_ROOT);
    assert_int_equal(judge(), DP_DENIED);
    assert_string_equal(cause, "an invite was revoked");
    record.config.n_admits = 0;
    apply();
    admit(4, LEAKED);
    assert_int_equal(judge(), DP_DENIED);
    record.config.n_admits = 0;
    admit(4, OTHER); /* The same node by another invite is admitted: the owner decides that. */
    assert_int_equal(judge(), DP_OK);
}

static void an_invite_revoked_in_the_same_record_admits_nobody(void **state)
{
    (void)state;
    (void)revoke(OTHER, UINT64_MAX, KIT_ROOT);
    apply();
    admit(4, LEAKED);
    (void)revoke(LEAKED, UINT64_MAX, KIT_ROOT);
    assert_int_equal(judge(), DP_DENIED);
}

/* The attacker joins by the leaked token, which allows it to invite, and makes its own invites for
 * its next identities. */
static void an_invite_of_a_node_that_came_by_a_revoked_one_admits_nobody(void **state)
{
    (void)state;
    rests.invite_above = id_of(LEAKED);
    rests.n_above = 1;
    rests.above[0] = kit_peer(2);
    admit(4, OTHER);
    assert_int_equal(judge(), DP_OK);
    record.config.n_admits = 0;
    (void)revoke(LEAKED, UINT64_MAX, KIT_ROOT);
    apply();
    admit(4, OTHER);
    assert_int_equal(judge(), DP_DENIED);
}

static void put_out(uint32_t index)
{
    const dp_crypto crypto = kit_crypto(0);
    dp_remove *remove = &record.config.removes[record.config.n_removes++];

    *remove = (dp_remove){.peer = kit_peer(index), .reason = DP_REMOVE_REVOKED};
    memcpy(remove->by.bytes, ledger.root_key, sizeof remove->by.bytes);
    assert_true(dp_remove_sign(remove, &crypto, DP_KEY_ROOT, &ledger.run));
}

static void invites_of_a_revoked_member_admit_nobody(void **state)
{
    (void)state;
    ledger.n_voters = 1; /* 2 is an ordinary member. */
    rests.n_above = 1;
    rests.above[0] = kit_peer(2);
    put_out(2);
    record.config.has_revoked = true;
    apply();
    admit(4, OTHER);
    assert_int_equal(judge(), DP_DENIED);
    assert_string_equal(cause, "the node that made the invite is not a member");
    rests.above[0] = kit_peer(1); /* Of two nodes above either counts. */
    rests.n_above = 2;
    rests.above[1] = kit_peer(2);
    assert_int_equal(judge(), DP_DENIED);
    rests.above[1] = kit_peer(0);
    assert_int_equal(judge(), DP_OK);
}

static void the_record_that_puts_a_member_out_admits_nobody_by_its_invites(void **state)
{
    (void)state;
    ledger.n_voters = 1;
    rests.n_above = 1;
    rests.above[0] = kit_peer(2);
    admit(4, OTHER);
    put_out(2);
    assert_int_equal(judge(), DP_OK); /* As records were judged before there were such lists. */
    record.config.has_revoked = true;
    assert_int_equal(judge(), DP_DENIED);
}

/* The attacker leaves before it can be revoked, or never joins with the inviting identity: then
 * that identity could not be removed. */
static void invites_of_a_node_that_left_or_never_came_admit_nobody(void **state)
{
    (void)state;
    record.config.has_revoked = true;
    apply();
    rests.n_above = 1;
    rests.above[0] = kit_peer(2);
    admit(4, OTHER);
    assert_int_equal(judge(), DP_OK);
    const dp_peer left = kit_peer(2);
    ledger.roster[dp_ledger_find(&ledger, &left)].gone = DP_REMOVE_LEFT;
    assert_int_equal(judge(), DP_DENIED);
    rests.above[0] = kit_peer(12);
    assert_int_equal(judge(), DP_DENIED);
    rests.n_above = 0; /* Of the root key. */
    assert_int_equal(judge(), DP_OK);
}

static void only_the_root_key_and_admins_revoke_invites(void **state)
{
    (void)state;
    ledger.roster[2].caps = DP_CAP_ALL & ~(uint32_t)DP_CAP_ADMIN;
    (void)revoke(LEAKED, UINT64_MAX, 1);
    assert_int_equal(judge(), DP_OK);
    record.config.n_revoked = 0;
    (void)revoke(LEAKED, UINT64_MAX, 2);
    assert_int_equal(judge(), DP_DENIED);
    record.config.n_revoked = 0;
    (void)revoke(LEAKED, UINT64_MAX, 12);
    assert_int_equal(judge(), DP_DENIED);
    record.config.n_revoked = 0;
    revoke(LEAKED, UINT64_MAX, KIT_ROOT)->until_ms--; /* Signed for another time. */
    assert_int_equal(judge(), DP_BADSIG);
    record.config.n_revoked = 0;
    (void)revoke(LEAKED, UINT64_MAX, KIT_ROOT);
    memset(record.config.revoked[0].id.bytes, OTHER, DP_INVITE_ID_BYTES);
    assert_int_equal(judge(), DP_BADSIG); /* One statement does not revoke other invites. */
}

static void an_invite_is_revoked_once_or_for_longer(void **state)
{
    const uint64_t until_ms = ledger.time_ms + 5000;

    (void)state;
    (void)revoke(LEAKED, record.time_ms, KIT_ROOT);
    assert_int_equal(judge(), DP_DENIED); /* No node could join by it any more. */
    record.config.n_revoked = 0;
    (void)revoke(LEAKED, until_ms, KIT_ROOT);
    apply();
    (void)revoke(LEAKED, until_ms, KIT_ROOT);
    assert_int_equal(judge(), DP_DENIED);
    record.config.n_revoked = 0;
    (void)revoke(LEAKED, until_ms + 1, KIT_ROOT);
    apply();
    assert_int_equal(ledger.n_revoked, 1);
    assert_int_equal(ledger.revoked[0].until_ms, until_ms + 1);
}

static void an_entry_stays_until_no_credential_of_it_can_be_valid(void **state)
{
    const uint64_t end_ms = ledger.time_ms + DAY_MS;
    const uint64_t until_ms = dp_invite_revoke_until(end_ms);
    const dp_invite_id id = id_of(LEAKED);

    (void)state;
    assert_int_equal(until_ms, end_ms + DP_CERT_NODE_MS_MAX);
    (void)revoke(LEAKED, until_ms, KIT_ROOT);
    apply();
    record.time_ms = until_ms;
    record.config.has_revoked = true;
    apply();
    assert_true(dp_inviting_revoked(&ledger, &id));
    record.time_ms = until_ms + 1;
    record.config.has_revoked = true;
    apply();
    assert_false(dp_inviting_revoked(&ledger, &id));
}

/* Otherwise a member that may revoke could make the chain forget entries by revoking more. */
static void a_full_list_drops_nothing_that_counts(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < DP_REVOKED_INVITES_MAX; i++) {
        ledger.revoked[i] = (dp_revoked_invite){.id = {{(uint8_t)i, 77}}, .until_ms = UINT64_MAX};
    }
    ledger.n_revoked = DP_REVOKED_INVITES_MAX;
    ledger.judges_invites = true;
    (void)revoke(LEAKED, UINT64_MAX, KIT_ROOT);
    assert_int_equal(judge(), DP_DENIED);
    assert_string_equal(cause, "the list of revoked invites is full");
    ledger.revoked[5].until_ms = ledger.time_ms;
    apply();
    assert_int_equal(ledger.n_revoked, DP_REVOKED_INVITES_MAX);
    const dp_invite_id leaked = id_of(LEAKED);
    assert_true(dp_inviting_revoked(&ledger, &leaked));
}

static void a_chain_without_lists_has_the_digest_that_it_had(void **state)
{
    const dp_hash before = dp_ledger_digest(&ledger);

    (void)state;
    assert_true(dp_inviting_due(&ledger) == false);
    ledger.revoked[0] = (dp_revoked_invite){.id = id_of(LEAKED), .until_ms = 5};
    ledger.n_revoked = 1;
    dp_hash after = dp_ledger_digest(&ledger);
    assert_true(dp_hash_equal(&before, &after));
    ledger.judges_invites = true;
    after = dp_ledger_digest(&ledger);
    assert_false(dp_hash_equal(&before, &after));
    ledger.revoked[0].until_ms = 6;
    const dp_hash other = dp_ledger_digest(&ledger);
    assert_false(dp_hash_equal(&other, &after));
}

static void a_revocation_without_a_list_calls_for_one(void **state)
{
    (void)state;
    assert_false(dp_inviting_due(&ledger));
    ledger.roster[2].gone = DP_REMOVE_LEFT;
    assert_false(dp_inviting_due(&ledger));
    ledger.roster[2].gone = DP_REMOVE_HARMFUL; /* Its invites go with it. */
    assert_true(dp_inviting_due(&ledger));
    ledger.roster[2].gone = DP_REMOVE_REVOKED;
    assert_true(dp_inviting_due(&ledger));
    record.config.has_revoked = true;
    apply();
    assert_false(dp_inviting_due(&ledger));
}

static void no_byte_of_a_word_can_be_another_and_all_of_it_comes_back(void **state)
{
    const dp_crypto crypto = kit_crypto(1);
    dp_invite_revoke word = {.until_ms = 0x0102030405060708, .by = kit_peer(1)};
    uint8_t bytes[2 + DP_INVITE_REVOKE_BYTES];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_invite_revoke read = {0};

    (void)state;
    word.id = id_of(9);
    assert_true(dp_invite_revoke_sign(&word, &crypto, DP_KEY_IDENTITY, &ledger.run));
    dp_invite_revoke_msg_write(&writer, &word);
    assert_int_equal(writer.size, sizeof bytes);
    assert_int_equal(dp_invite_revoke_msg_read(dp_view_of(bytes, sizeof bytes), &read), DP_OK);
    assert_memory_equal(&read, &word, sizeof read);
    assert_true(dp_invite_revoke_verify(&read, &crypto, &ledger.run));
    assert_false(dp_invite_revoke_verify(&read, &crypto, &(dp_run_id){{9}}));
    for (size_t at = 0; at < sizeof bytes; at++) {
        bytes[at] ^= 1;
        assert_true(dp_invite_revoke_msg_read(dp_view_of(bytes, sizeof bytes), &read) != DP_OK ||
                    !dp_invite_revoke_verify(&read, &crypto, &ledger.run));
        bytes[at] ^= 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_revoked_invite_admits_nobody_in_that_record_and_later,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(an_invite_revoked_in_the_same_record_admits_nobody, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            an_invite_of_a_node_that_came_by_a_revoked_one_admits_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(invites_of_a_revoked_member_admit_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(
            the_record_that_puts_a_member_out_admits_nobody_by_its_invites, setup, teardown),
        cmocka_unit_test_setup_teardown(invites_of_a_node_that_left_or_never_came_admit_nobody,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(only_the_root_key_and_admins_revoke_invites, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_invite_is_revoked_once_or_for_longer, setup, teardown),
        cmocka_unit_test_setup_teardown(an_entry_stays_until_no_credential_of_it_can_be_valid,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_list_drops_nothing_that_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_chain_without_lists_has_the_digest_that_it_had, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_revocation_without_a_list_calls_for_one, setup, teardown),
        cmocka_unit_test(no_byte_of_a_word_can_be_another_and_all_of_it_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
