/* Each rule of validity: a good record, and the same with one thing wrong. */
#include "gossip/ledger/weights.h"
#include "tests/unit/gossip/kit/valid_kit.h"

static uint8_t credential[4][KIT_CREDENTIAL];

/* Three members that vote; 0 and 1 contribute, 2 is late. */
static int setup(void **state)
{
    (void)state;
    kit_begin(1000);
    (void)kit_list(&ledger, &record, 0, 1000, 10, 400);
    (void)kit_list(&ledger, &record, 1, 500, 10, 900);
    record.late[record.n_late++] = kit_peer(2);
    dp_valid_fill(&ledger, &record);
    return 0;
}

static void a_good_round_is_valid(void **state)
{
    (void)state;
    assert_int_equal(verdict(), DP_OK);
}

static void it_must_follow_the_chain(void **state)
{
    (void)state;
    record.slot++;
    assert_int_equal(verdict(), DP_AGAIN);
    record.slot -= 2;
    assert_int_equal(verdict(), DP_EXISTS);
    record.slot++;
    record.prev.bytes[0] ^= 1;
    assert_int_equal(verdict(), DP_DENIED);
    record.prev.bytes[0] ^= 1;
    record.fork.bytes[0] ^= 1;
    assert_int_equal(verdict(), DP_DENIED);
    record.fork.bytes[0] ^= 1;
    record.time_ms = ledger.time_ms - 1;
    assert_int_equal(verdict(), DP_DENIED);
}

static void round_and_base_must_be_the_next(void **state)
{
    (void)state;
    record.round++;
    assert_int_equal(verdict(), DP_DENIED);
    record.round--;
    record.base.bytes[3] ^= 1;
    assert_int_equal(verdict(), DP_DENIED);
}

static void the_state_needs_a_majority_of_signatures(void **state)
{
    (void)state;
    record.n_state = 2;
    assert_int_equal(verdict(), DP_OK);
    record.n_state = 1;
    assert_int_equal(verdict(), DP_DENIED);
    record.n_state = 2;
    record.state[1].signature[0] ^= 1;
    assert_int_equal(verdict(), DP_BADSIG);
    record.state[1].voter = 3; /* Of three. */
    assert_int_equal(verdict(), DP_DENIED);
}

static void a_round_has_contributions_and_each_has_work_in_it(void **state)
{
    const dp_record good = record;

    (void)state;
    record.n_listed = 0;
    assert_int_equal(verdict(), DP_DENIED);
    record = good;
    record.listed[1].steps = 0;
    assert_int_equal(verdict(), DP_DENIED);
    record = good;
    record.listed[1].tokens = DP_TOKENS_MAX + 1ULL;
    assert_int_equal(verdict(), DP_DENIED);
    record = good;
    record.listed[1].carried = UINT64_MAX;
    assert_int_equal(verdict(), DP_DENIED);
    record = good;
    record.listed[1].bytes = 0;
    assert_int_equal(verdict(), DP_DENIED);
    record.listed[1].bytes = DP_OBJECT_BYTES_MAX + 1;
    assert_int_equal(verdict(), DP_DENIED);
    record = good;
    record.listed[1].energy = DP_ENERGY_MAX + 1;
    assert_int_equal(verdict(), DP_DENIED);
    record = good;
    assert_int_equal(verdict(), DP_OK);
}

static void a_contribution_must_be_signed_for_this_state(void **state)
{
    (void)state;
    record.listed[1].signature[5] ^= 1;
    assert_int_equal(verdict(), DP_BADSIG);
    record.listed[1].signature[5] ^= 1;
    record.listed[0].tokens++;
    assert_int_equal(verdict(), DP_BADSIG);
}

static void strangers_and_removed_members_are_not_listed(void **state)
{
    (void)state;
    ledger.roster[1].gone = DP_REMOVE_REVOKED;
    assert_int_equal(verdict(), DP_DENIED);
    ledger.roster[1].gone = 0;
    ledger.roster[1].caps = DP_CAP_VOTE;
    assert_int_equal(verdict(), DP_DENIED);
}

static void one_blob_is_not_listed_for_two(void **state)
{
    (void)state;
    kit_round(&ledger, &record);
    (void)kit_list(&ledger, &record, 0, 1000, 10, 400);
    dp_listed *copy = kit_list(&ledger, &record, 1, 1000, 10, 400);
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_OK);
    copy->root = record.listed[0].root;
    dp_ready ready = dp_ready_of_listed(&record, copy);
    const dp_crypto crypto = kit_crypto(1);
    assert_true(dp_ready_sign(&ready, &crypto, &ledger.run, &ledger.fork));
    memcpy(copy->signature, ready.signature, sizeof copy->signature);
    assert_int_equal(verdict(), DP_DENIED);
    record.listed[0].energy = 0;
    copy->energy = 0;
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_OK); /* Two members without work. */
}

static void the_numbers_must_be_those_that_follow(void **state)
{
    (void)state;
    record.listed[0].q--;
    assert_int_equal(verdict(), DP_DENIED);
    record.listed[0].q++;
    record.listed[1].clip--;
    assert_int_equal(verdict(), DP_DENIED);
    record.listed[1].clip++;
    record.w_total++;
    assert_int_equal(verdict(), DP_DENIED);
    record.w_total--;
    record.tokens_total++;
    assert_int_equal(verdict(), DP_DENIED);
    record.tokens_total--;
    record.alpha++;
    assert_int_equal(verdict(), DP_DENIED);
}

static void gradients_are_clipped_to_nobody_elses(void **state)
{
    (void)state;
    assert_true(record.listed[1].clip < DP_CLIP_ONE && record.clip_median != 0);
    ledger.unclipped = true;
    assert_int_equal(verdict(), DP_DENIED);
    const unsigned __int128 energy = record.listed[1].energy;
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_OK);
    assert_int_equal(record.listed[0].clip, DP_CLIP_ONE);
    assert_int_equal(record.listed[1].clip, DP_CLIP_ONE);
    assert_true(record.clip_median == 0 && record.listed[1].energy == energy);
}

static void late_members_were_included_lately(void **state)
{
    (void)state;
    record.late[0] = kit_peer(1);
    assert_int_equal(verdict(), DP_DENIED); /* Listed. */
    record.late[0] = kit_peer(2);
    ledger.roster[2].included = 1;
    assert_int_equal(verdict(), DP_DENIED); /* Too long ago. */
    ledger.roster[2].included = 2;
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_OK);
    record.late[0] = kit_peer(9);
    assert_int_equal(verdict(), DP_DENIED); /* A stranger. */
}

/* The chain with this record, and the next one, in which node 2, late before, is listed for the
 * round that this one closed. */
static void list_late(dp_record *next, bool stale)
{
    const dp_hash hash = dp_hash_of("test/record", dp_view_text("before"));
    const dp_crypto crypto = kit_crypto(2);
    const dp_hash base = record.base;
    const dp_hash state_root = record.state_root;

    ledger.stale = stale;
    dp_ledger_apply(&ledger, &record, &hash, admitted);
    kit_round(&ledger, next);
    (void)kit_list(&ledger, next, 0, 1000, 10, 400);
    dp_listed *late = kit_list(&ledger, next, 2, 1000, 10, 400);
    next->aged = 1U << 1;
    dp_ready ready = dp_ready_of_listed(next, late);
    ready.round--;
    ready.base = base;
    ready.state_root = state_root;
    assert_true(dp_ready_sign(&ready, &crypto, &ledger.run, &ledger.fork));
    memcpy(late->signature, ready.signature, sizeof late->signature);
    dp_valid_fill(&ledger, next);
}

static void who_came_too_late_may_count_in_the_next_round(void **state)
{
    static dp_record next;

    (void)state;
    list_late(&next, true);
    record = next;
    assert_int_equal(verdict(), DP_OK);
    assert_int_equal(record.listed[1].clip, DP_CLIP_ONE / 2);
    record.listed[1].clip *= 2;
    assert_int_equal(verdict(), DP_DENIED); /* Not as if it had come in time, */
    record = next;
    record.aged = 0;
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_BADSIG); /* nor for a round that its author did not name. */
    record.aged = 3;
    assert_int_equal(verdict(), DP_DENIED); /* Node 0 was counted in the round before. */
    record = next;
    const dp_hash hash = dp_hash_of("test/record", dp_view_text("after"));
    dp_ledger_apply(&ledger, &record, &hash, admitted);
    assert_int_equal(dp_ledger_member(&ledger, &record.listed[0].peer)->included, 7);
    assert_int_equal(dp_ledger_member(&ledger, &record.listed[1].peer)->included, 6);
}

static void late_work_counts_in_no_later_round_and_in_no_other_run(void **state)
{
    static dp_record next;

    (void)state;
    list_late(&next, false);
    record = next;
    assert_int_equal(verdict(), DP_DENIED); /* The manifest has no such rule. */
    ledger.stale = true;
    ledger.has_before = true;
    ledger.roster[2].admitted_round = ledger.round;
    assert_int_equal(verdict(), DP_DENIED); /* It was no member when that round was decided. */
    ledger.roster[2].admitted_round = 0;
    ledger.base_before = record.base;
    assert_int_equal(verdict(), DP_BADSIG);
    ledger.round += 20;
    /* Its lease has ended. */
    assert_false(dp_ledger_may_be_stale(&ledger, &record.listed[1].peer));
}

static void lines_are_told_only_where_updates_may_be_thinner(void **state)
{
    (void)state;
    record.lines = DP_LINES_SLOW;
    assert_int_equal(verdict(), DP_DENIED);
    ledger.density.sparsest = 2 * ledger.density.densest;
    assert_int_equal(verdict(), DP_OK);
    record.lines = DP_LINES_FREE;
    assert_int_equal(verdict(), DP_OK);
}

static void admit(uint32_t index, uint16_t uses, uint8_t invite)
{
    const uint32_t at = record.config.n_admits++;

    record.has_config = true;
    record.config.admits[at].peer = kit_peer(index);
    record.config.admits[at].credential =
        kit_credential(index, DP_CAP_ALL, uses, invite, credential[at]);
}

static void a_newcomer_is_listed_with_its_admission(void **state)
{
    (void)state;
    (void)kit_list(&ledger, &record, 4, 500, 10, 900);
    dp_valid_fill(&ledger, &record);
    assert_int_equal(verdict(), DP_DENIED);
    admit(4, 0, 1);
    assert_int_equal(verdict(), DP_OK);
    record.config.admits[0].peer = kit_peer(5); /* The credential of another node. */
    assert_int_equal(verdict(), DP_DENIED);
}

static void nobody_is_admitted_to_a_full_run(void **state)
{
    (void)state;
    admit(4, 0, 1);
    assert_int_equal(verdict(), DP_OK);
    ledger.capacity = ledger.n_roster;
    assert_int_equal(verdict(), DP_DENIED);
}

static void an_invite_admits_no_more_than_its_uses(void **state)
{
    (void)state;
    admit(4, 2, 1);
    admit(5, 2, 1);
    assert_int_equal(verdict(), DP_OK);
    admit(6, 2, 1);
    assert_int_equal(verdict(), DP_DENIED);
    record.config.n_admits = 2;
    memset(&ledger.roster[1].invite, 1, sizeof ledger.roster[1].invite);
    assert_int_equal(verdict(), DP_DENIED); /* One was used in an earlier record. */
}

static void nobody_is_admitted_twice(void **state)
{
    (void)state;
    admit(1, 0, 1);
    assert_int_equal(verdict(), DP_DENIED);
}

static void propose_voters(uint32_t n)
{
    record.has_config = true;
    record.config.n_voters = n;
    for (uint32_t i = 0; i < n; i++) {
        dp_voter_entry *entry = &record.config.voters[i];
        const dp_crypto crypto = kit_crypto(i);
        memset(entry, 0, sizeof *entry);
        entry->voter.peer = kit_peer(i);
        kit_vote_key(i, entry->voter.key);
        entry->kept = i < ledger.n_voters;
        if (!entry->kept) {
            assert_true(dp_voter_ok_sign(&crypto, &ledger.run, &ledger.head, entry->voter.key,
                                         entry->signature));
        }
    }
}

static void voters_grow_by_two_with_signed_offers(void **state)
{
    (void)state;
    admit(3, 0, 1);
    admit(4, 0, 1);
    propose_voters(4);
    assert_int_equal(verdict(), DP_DENIED); /* Even. */
    propose_voters(5);
    assert_int_equal(verdict(), DP_OK);
    record.config.voters[4].signature[0] ^= 1;
    assert_int_equal(verdict(), DP_BADSIG);
    propose_voters(5);
    memcpy(record.config.voters[4].voter.key, record.config.voters[3].voter.key,
           DP_PUBLIC_KEY_BYTES);
    assert_int_equal(verdict(), DP_DENIED); /* One key twice. */
    propose_voters(5);
    record.config.voters[1].voter.key[0] ^= 1;
    assert_int_equal(verdict(), DP_DENIED); /* Not the key that is kept. */
}

static void voters_need_the_capability(void **state)
{
    (void)state;
    propose_voters(3);
    ledger.roster[2].caps = DP_CAP_TRAIN;
    assert_int_equal(verdict(), DP_DENIED);
}

static void a_member_leaves_with_its_own_signature(void **state)
{
    const dp_crypto own = kit_crypto(2);
    dp_remove *removal = &record.config.removes[0];

    (void)state;
    propose_voters(1); /* It was a voter. */
    record.config.n_removes = 1;
    *removal = (dp_remove){.peer = kit_peer(2), .reason = DP_REMOVE_LEFT, .incarnation = 1};
    assert_true(dp_remove_sign(removal, &own, DP_KEY_IDENTITY, &ledger.run));
    assert_int_equal(verdict(), DP_OK);
    removal->reason = DP_REMOVE_REVOKED; /* That is the root key's to say. */
    assert_int_equal(verdict(), DP_DENIED);
    removal->reason = DP_REMOVE_LEFT;
    removal->peer = kit_peer(1);
    assert_int_equal(verdict(), DP_BADSIG);
    removal->peer = kit_peer(8);
    assert_int_equal(verdict(), DP_DENIED);
}

static void a_voter_does_not_go_before_others_vote(void **state)
{
    const dp_crypto own = kit_crypto(2);
    dp_remove *removal = &record.config.removes[0];

    (void)state;
    record.has_config = true;
    record.config.n_removes = 1;
    *removal = (dp_remove){.peer = kit_peer(2), .reason = DP_REMOVE_LEFT, .incarnation = 1};
    assert_true(dp_remove_sign(removal, &own, DP_KEY_IDENTITY, &ledger.run));
    assert_int_equal(verdict(), DP_DENIED);
    ledger.n_members = 1; /* The last of all may. */
    assert_int_equal(verdict(), DP_OK);
}

static void admins_put_out_others_and_the_root_key_anybody(void **state)
{
    const dp_crypto admin = kit_crypto(0);
    const dp_crypto other = kit_crypto(1);
    dp_remove *removal = &record.config.removes[0];

    (void)state;
    propose_voters(1);
    record.config.n_removes = 1;
    *removal = (dp_remove){.peer = kit_peer(2), .reason = DP_REMOVE_REVOKED, .by = kit_peer(0)};
    assert_true(dp_remove_sign(removal, &admin, DP_KEY_IDENTITY, &ledger.run));
    assert_int_equal(verdict(), DP_DENIED); /* It may administer too. */
    ledger.roster[2].caps = DP_CAP_TRAIN;
    assert_int_equal(verdict(), DP_OK);
    removal->by = kit_peer(1);
    assert_int_equal(verdict(), DP_BADSIG); /* Signed by another. */
    assert_true(dp_remove_sign(removal, &other, DP_KEY_IDENTITY, &ledger.run));
    ledger.roster[1].caps = DP_CAP_TRAIN;
    assert_int_equal(verdict(), DP_DENIED);
    ledger.roster[2].caps = DP_CAP_ALL;
    memcpy(removal->by.bytes, ledger.root_key, sizeof removal->by.bytes);
    assert_true(dp_remove_sign(removal, &admin, DP_KEY_ROOT, &ledger.run));
    assert_int_equal(verdict(), DP_OK);
}

static void a_fence_only_rises(void **state)
{
    (void)state;
    record.has_config = true;
    record.config.n_fences = 1;
    record.config.fences[0] = (dp_fence){.peer = kit_peer(2), .incarnation = 3};
    assert_int_equal(verdict(), DP_OK);
    ledger.roster[2].fenced = 3;
    assert_int_equal(verdict(), DP_DENIED);
}

/* ---- ledger ---- */

static void the_ledger_follows_the_record(void **state)
{
    const dp_hash hash = dp_hash_of("test", dp_view_text("h"));

    (void)state;
    admit(4, 0, 1);
    assert_int_equal(verdict(), DP_OK);
    const dp_hash before = dp_ledger_digest(&ledger);
    dp_ledger_apply(&ledger, &record, &hash, admitted);
    assert_int_equal(ledger.slot, 7);
    assert_int_equal(ledger.round, 6);
    assert_true(dp_hash_equal(&ledger.base, &hash));
    assert_int_equal(ledger.tokens, 1500);
    assert_int_equal(ledger.n_members, 4);
    const dp_peer newcomer = kit_peer(4);
    assert_int_equal(dp_ledger_member(&ledger, &newcomer)->admitted_round, 6);
    assert_int_equal(ledger.roster[0].included, 6);
    assert_int_equal(ledger.roster[0].w, record.listed[0].w);
    const dp_hash after = dp_ledger_digest(&ledger);
    assert_false(dp_hash_equal(&before, &after));
}

static void a_removed_member_stays_known_and_out(void **state)
{
    const dp_hash hash = dp_hash_of("test", dp_view_text("h"));
    const dp_crypto own = kit_crypto(2);

    (void)state;
    record.has_config = true;
    record.config.n_removes = 1;
    record.config.removes[0] =
        (dp_remove){.peer = kit_peer(2), .reason = DP_REMOVE_LEFT, .incarnation = 1};
    assert_true(dp_remove_sign(&record.config.removes[0], &own, DP_KEY_IDENTITY, &ledger.run));
    dp_ledger_apply(&ledger, &record, &hash, admitted);
    const dp_peer gone = kit_peer(2);
    assert_null(dp_ledger_member(&ledger, &gone));
    assert_int_not_equal(dp_ledger_find(&ledger, &gone), DP_NOBODY);
    assert_int_equal(ledger.n_members, 2);
}

static void the_digest_does_not_depend_on_the_map(void **state)
{
    const dp_manifest manifest = kit_manifest();
    const dp_run_id run = kit_run();
    dp_ledger other;
    dp_ledger third;

    (void)state;
    assert_int_equal(dp_ledger_open(&other, &manifest, &run, 1), DP_OK);
    assert_int_equal(dp_ledger_open(&third, &manifest, &run, 99), DP_OK);
    const dp_hash a = dp_ledger_digest(&other);
    const dp_hash b = dp_ledger_digest(&third);
    assert_true(dp_hash_equal(&a, &b));
    dp_ledger_close(&other);
    dp_ledger_close(&third);
}

static void the_digest_has_every_bit_of_the_middle_clip(void **state)
{
    const dp_hash before = dp_ledger_digest(&ledger);

    (void)state;
    for (uint32_t bit = 0; bit < 128; bit++) {
        ledger.clip_median ^= (unsigned __int128)1 << bit;
        const dp_hash other = dp_ledger_digest(&ledger);
        assert_false(dp_hash_equal(&other, &before));
        ledger.clip_median ^= (unsigned __int128)1 << bit;
    }
    const dp_hash after = dp_ledger_digest(&ledger);
    assert_true(dp_hash_equal(&after, &before));
}

static void rounds_in_a_blob_are_counted_from_the_last_inclusion(void **state)
{
    const dp_roster_entry fresh = {.admitted_round = 7};
    const dp_roster_entry old = {.admitted_round = 1, .included = 9};

    (void)state;
    assert_int_equal(dp_ledger_rounds(NULL, 3), 1);
    assert_int_equal(dp_ledger_rounds(&fresh, 8), 1);
    assert_int_equal(dp_ledger_rounds(&fresh, 10), 3);
    assert_int_equal(dp_ledger_rounds(&old, 10), 1);
    assert_int_equal(dp_ledger_rounds(&old, 100), 4);
}

/* Of the credential, as the admission check has read it, and of the record. */
static void a_new_member_has_what_its_admission_grants(void **state)
{
    const dp_hash hash = {{7}};
    dp_admitted grants = {.caps = DP_CAP_TRAIN, .uses = 3, .until_ms = 12345};

    (void)state;
    memset(grants.invite.bytes, 21, sizeof grants.invite.bytes);
    memset(grants.invite_above.bytes, 22, sizeof grants.invite_above.bytes);
    memset(grants.x_public, 23, sizeof grants.x_public);
    admit(4, 0, 1);
    record.prev = ledger.head;
    const uint64_t round = record.round;
    dp_ledger_apply(&ledger, &record, &hash, &grants);
    const dp_peer peer = kit_peer(4);
    const dp_roster_entry *entry = dp_ledger_member(&ledger, &peer);
    assert_non_null(entry);
    assert_int_equal(entry->caps, DP_CAP_TRAIN);
    assert_memory_equal(&entry->invite, &grants.invite, sizeof entry->invite);
    assert_memory_equal(&entry->invite_above, &grants.invite_above, sizeof entry->invite_above);
    assert_memory_equal(entry->x_public, grants.x_public, sizeof entry->x_public);
    assert_true(entry->strict);
    assert_int_equal(entry->until_ms, 12345);
    assert_int_equal(entry->counted_ms, record.time_ms);
    assert_int_equal(entry->admitted_slot, record.slot);
    assert_int_equal(entry->admitted_round, round);
}

int main(void)
{
#define RULE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        RULE(a_good_round_is_valid),
        RULE(it_must_follow_the_chain),
        RULE(round_and_base_must_be_the_next),
        RULE(the_state_needs_a_majority_of_signatures),
        RULE(a_round_has_contributions_and_each_has_work_in_it),
        RULE(a_contribution_must_be_signed_for_this_state),
        RULE(strangers_and_removed_members_are_not_listed),
        RULE(one_blob_is_not_listed_for_two),
        RULE(the_numbers_must_be_those_that_follow),
        RULE(gradients_are_clipped_to_nobody_elses),
        RULE(late_members_were_included_lately),
        RULE(who_came_too_late_may_count_in_the_next_round),
        RULE(late_work_counts_in_no_later_round_and_in_no_other_run),
        RULE(lines_are_told_only_where_updates_may_be_thinner),
        RULE(a_newcomer_is_listed_with_its_admission),
        RULE(nobody_is_admitted_to_a_full_run),
        RULE(an_invite_admits_no_more_than_its_uses),
        RULE(nobody_is_admitted_twice),
        RULE(voters_grow_by_two_with_signed_offers),
        RULE(voters_need_the_capability),
        RULE(a_member_leaves_with_its_own_signature),
        RULE(a_voter_does_not_go_before_others_vote),
        RULE(admins_put_out_others_and_the_root_key_anybody),
        RULE(a_fence_only_rises),
        RULE(the_ledger_follows_the_record),
        RULE(a_removed_member_stays_known_and_out),
        cmocka_unit_test(the_digest_does_not_depend_on_the_map),
        RULE(the_digest_has_every_bit_of_the_middle_clip),
        cmocka_unit_test(rounds_in_a_blob_are_counted_from_the_last_inclusion),
        RULE(a_new_member_has_what_its_admission_grants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
