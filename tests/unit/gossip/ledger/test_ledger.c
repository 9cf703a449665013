/* A record is applied to the ledger: each field that it sets, and those that it leaves. */
#include "gossip/ledger/valid.h"
#include "tests/unit/gossip/kit/chain_kit.h"

static dp_ledger ledger;
static dp_record record;
static dp_admitted admitted[DP_CONFIG_ADMIT_MAX];

/* Three members that vote, after round 5; node 2 was counted last in round 4. The record is
 * empty. */
static int begin(void **state)
{
    (void)state;
    kit_ledger(&ledger);
    kit_voters(&ledger, 3);
    ledger.round = 5;
    ledger.slot = 6;
    ledger.roster[2].included = 4;
    ledger.roster[2].w = 7;
    kit_round(&ledger, &record);
    memset(admitted, 0, sizeof admitted);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dp_ledger_close(&ledger);
    return 0;
}

static dp_roster_entry *entry_of(uint32_t who)
{
    const dp_peer peer = kit_peer(who);
    const uint32_t index = dp_ledger_find(&ledger, &peer);

    assert_int_not_equal(index, DP_NOBODY);
    return &ledger.roster[index];
}

/* Node 9 comes by an invite of so many uses. */
static void admit(uint16_t uses)
{
    dp_admitted *of = &admitted[record.config.n_admits];

    record.has_config = true;
    record.config.admits[record.config.n_admits++].peer = kit_peer(9);
    *of = (dp_admitted){.caps = DP_CAP_TRAIN, .uses = uses, .until_ms = 4321};
    of->invite.bytes[0] = 3;
    of->invite_above.bytes[0] = 4;
    memset(of->x_public, 5, sizeof of->x_public);
}

static void check_admitted(uint64_t slot, uint64_t round, bool strict)
{
    const dp_roster_entry *entry = entry_of(9);

    assert_int_equal(entry->caps, DP_CAP_TRAIN);
    assert_int_equal(entry->invite.bytes[0], 3);
    assert_int_equal(entry->invite_above.bytes[0], 4);
    assert_int_equal(entry->x_public[31], 5);
    assert_int_equal(entry->until_ms, 4321);
    assert_int_equal(entry->strict, strict);
    assert_int_equal(entry->counted_ms, record.time_ms);
    assert_int_equal(entry->admitted_slot, slot);
    assert_int_equal(entry->admitted_round, round);
    assert_int_equal(entry->included, 0);
    assert_int_equal(entry->gone, 0);
}

static void a_round_is_booked_with_those_that_it_lists_and_those_that_are_late(void **state)
{
    const dp_hash hash = {{8, 8}};
    const dp_hash base = {{6, 6}};

    (void)state;
    ledger.stale = true;
    ledger.base = base;
    kit_round(&ledger, &record);
    kit_list(&ledger, &record, 0, 4096, 10, 100)->w = 11;
    kit_list(&ledger, &record, 1, 4096, 10, 100)->w = 12;
    record.aged = 2; /* Node 1 made it for the round before. */
    record.late[record.n_late++] = kit_peer(2);
    record.tokens_total = 12345;
    record.clip_median = 77;
    record.time_ms = ledger.time_ms + 500;
    admit(1);
    dp_ledger_apply(&ledger, &record, &hash, admitted);
    assert_int_equal(ledger.slot, 7);
    assert_int_equal(ledger.round, 6);
    assert_int_equal(ledger.time_ms, record.time_ms);
    assert_true(dp_hash_equal(&ledger.head, &hash) && dp_hash_equal(&ledger.base, &hash));
    assert_true(ledger.has_before && dp_hash_equal(&ledger.base_before, &base));
    assert_true(dp_hash_equal(&ledger.state_before, &record.state_root));
    assert_int_equal(ledger.tokens, 12345);
    assert_int_equal(ledger.clip_median, 77);
    assert_int_equal(ledger.n_members, 4);
    assert_int_equal(ledger.n_voters, 3);
    for (uint32_t i = 0; i < 2; i++) {
        const dp_roster_entry *entry = entry_of(i);
        assert_int_equal(entry->included, 6 - i);
        assert_int_equal(entry->touched, 6);
        assert_int_equal(entry->w, 11 + i);
        assert_int_equal(entry->counted_ms, record.time_ms);
        assert_int_equal(entry->lease.reach.own, record.listed[i].reach.own);
        assert_true(entry->lease.granted > 0); /* Samples for the next rounds. */
    }
    assert_int_equal(entry_of(2)->touched, 6);
    assert_int_equal(entry_of(2)->included, 4);
    assert_int_equal(entry_of(2)->w, 7);
    assert_int_equal(entry_of(2)->counted_ms, 0);
    assert_int_equal(entry_of(2)->lease.granted, 0);
    check_admitted(7, 6, true);
}

static void without_the_rule_for_late_updates_no_state_before_is_kept(void **state)
{
    const dp_hash hash = {{8, 8}};

    (void)state;
    ledger.stale = false;
    kit_list(&ledger, &record, 0, 4096, 10, 100);
    dp_ledger_apply(&ledger, &record, &hash, admitted);
    assert_false(ledger.has_before);
    assert_int_equal(entry_of(0)->included, 6);
    assert_int_equal(entry_of(1)->touched, 0);
}

static void a_record_between_rounds_changes_members_voters_and_the_epoch_alone(void **state)
{
    const dp_hash hash = {{8, 8}};
    const dp_hash base = ledger.base;
    const dp_hash commitment = {{4, 2}};

    (void)state;
    record.kind = DP_RECORD_CONFIG;
    record.round = 0;
    admit(0);
    record.config.fences[0] = (dp_fence){.peer = kit_peer(1), .incarnation = 9};
    record.config.n_fences = 1;
    record.config.removes[0] = (dp_remove){.peer = kit_peer(2), .reason = DP_REMOVE_LEFT};
    record.config.n_removes = 1;
    record.config.voters[0].voter.peer = kit_peer(1);
    memset(record.config.voters[0].voter.key, 3, DP_PUBLIC_KEY_BYTES);
    record.config.n_voters = 1;
    record.config.has_rotation = true;
    record.config.rotation.next = (dp_epoch){.epoch = 6, .commitment = commitment};
    entry_of(2)->lease = (dp_lease){.n = 1, .granted = 40, .ranges = {{.first = 0, .count = 40}}};
    dp_ledger_apply(&ledger, &record, &hash, admitted);
    assert_int_equal(ledger.slot, 7);
    assert_int_equal(ledger.round, 5);
    assert_true(dp_hash_equal(&ledger.head, &hash) && dp_hash_equal(&ledger.base, &base));
    check_admitted(7, 5, false);
    assert_int_equal(entry_of(1)->fenced, 9);
    assert_int_equal(entry_of(0)->fenced, 0);
    assert_int_equal(entry_of(2)->gone, DP_REMOVE_LEFT);
    assert_int_equal(entry_of(2)->gone_slot, 7);
    assert_int_equal(entry_of(2)->lease.n, 0);
    assert_int_equal(ledger.pool.n, 1); /* Its samples are free. */
    assert_int_equal(ledger.pool.ranges[0].count, 40);
    assert_int_equal(ledger.n_members, 3); /* One came, and one went. */
    const dp_peer voter = kit_peer(1);
    assert_int_equal(ledger.n_voters, 1);
    assert_true(dp_peer_equal(&ledger.voters[0].peer, &voter));
    assert_int_equal(ledger.voters[0].key[31], 3);
    assert_int_equal(ledger.epoch.epoch, 6);
    assert_true(dp_hash_equal(&ledger.epoch.commitment, &commitment));
}

static void without_a_config_part_nothing_of_one_is_applied(void **state)
{
    const dp_hash hash = {{8, 8}};
    const uint32_t epoch = ledger.epoch.epoch;

    (void)state;
    admit(0);
    record.config.fences[0] = (dp_fence){.peer = kit_peer(1), .incarnation = 9};
    record.config.n_fences = record.config.n_voters = 1;
    record.config.has_rotation = true;
    record.config.rotation.next.epoch = 6;
    record.has_config = false;
    kit_list(&ledger, &record, 0, 4096, 10, 100);
    dp_ledger_apply(&ledger, &record, &hash, admitted);
    assert_int_equal(ledger.n_members, 3);
    assert_int_equal(ledger.n_voters, 3);
    assert_int_equal(entry_of(1)->fenced, 0);
    assert_int_equal(ledger.epoch.epoch, epoch);
}

/* A member that was counted last in this round, of so many members. */
static void a_member_may_be_late_for_four_turns_of_all_members(void **state)
{
    dp_roster_entry *entry = entry_of(1);

    (void)state;
    ledger.listed_max = 2;
    ledger.n_members = 3; /* Two turns: eight rounds. */
    entry->included = 5;
    assert_true(dp_ledger_may_be_late(&ledger, entry, 13));
    assert_false(dp_ledger_may_be_late(&ledger, entry, 14));
    ledger.n_members = 2;
    assert_true(dp_ledger_may_be_late(&ledger, entry, 9));
    assert_false(dp_ledger_may_be_late(&ledger, entry, 10));
    entry->gone = DP_REMOVE_LEFT;
    assert_false(dp_ledger_may_be_late(&ledger, entry, 9));
    entry->gone = 0;
    entry->included = 0; /* It was never counted. */
    assert_false(dp_ledger_may_be_late(&ledger, entry, 4));
}

static void work_may_count_late_if_it_did_not_in_its_round_and_its_author_was_a_member(void **state)
{
    const dp_peer peer = kit_peer(1);
    const dp_peer stranger = kit_peer(8);
    dp_roster_entry *entry = entry_of(1);

    (void)state;
    for (uint32_t what = 0; what < 5; what++) {
        ledger.has_before = what != 1;
        entry->admitted_round = what == 2 ? ledger.round : ledger.round - 1;
        entry->included = what == 3 ? ledger.round : ledger.round - 1;
        entry->gone = what == 4 ? DP_REMOVE_REVOKED : 0;
        assert_int_equal(dp_ledger_may_be_stale(&ledger, &peer), what == 0);
        assert_false(dp_ledger_may_be_stale(&ledger, &stranger));
    }
    entry->gone = 0;
}

int main(void)
{
#define OF(test) cmocka_unit_test_setup_teardown(test, begin, teardown)
    const struct CMUnitTest tests[] = {
        OF(a_round_is_booked_with_those_that_it_lists_and_those_that_are_late),
        OF(without_the_rule_for_late_updates_no_state_before_is_kept),
        OF(a_record_between_rounds_changes_members_voters_and_the_epoch_alone),
        OF(without_a_config_part_nothing_of_one_is_applied),
        OF(a_member_may_be_late_for_four_turns_of_all_members),
        OF(work_may_count_late_if_it_did_not_in_its_round_and_its_author_was_a_member),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
