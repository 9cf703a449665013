/* A round of whole updates, step by step: fetched, checked, announced, listed and judged updates.
 * The test makes the claims of a node. */
#include "gossip/context/context.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { MEMBERS = 4, BYTES = 2000, OWN = 0 };

/* Members that do not publish; node 0 has no claims. The world collects its actions. */
static kit_world *still(void)
{
    kit_world *world = kit_together(MEMBERS);
    dp_node *node = world->nodes[OWN].node;

    for (uint32_t i = 0; i < MEMBERS; i++) {
        kit_command(world, i, DP_COMMAND_PAUSE);
    }
    kit_run_ms(world, 3000);
    node->round->n_claims = 0;
    dp_round_index_claims(node);
    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    node->changed = false;
    return world;
}

static dp_hash root_of(uint32_t author)
{
    return (dp_hash){{(uint8_t)author, 99}};
}

static dp_claim *claim_by(kit_world *world, uint32_t author)
{
    dp_node *node = world->nodes[OWN].node;
    dp_claim *claim = &node->round->claims[node->round->n_claims++];
    const dp_lease *lease;

    *claim = (dp_claim){.ready = {.peer = kit_peer(author),
                                  .round = node->ledger.round + 1,
                                  .base = node->ledger.base,
                                  .root = root_of(author),
                                  .bytes = BYTES,
                                  .tokens = 5,
                                  .steps = 1,
                                  .state_root = node->standing.state_root},
                        .told_at = node->now};
    lease = dp_ledger_lease(&node->ledger, &claim->ready.peer);
    claim->ready.reach = lease != NULL ? lease->reach : (dp_reach){0};
    dp_round_index_claims(node);
    return claim;
}

static dp_claim *good_claim_by(kit_world *world, uint32_t author)
{
    dp_claim *claim = claim_by(world, author);

    claim->held = claim->checked = true;
    claim->size = BYTES;
    claim->energy = 70 + author;
    claim->found = DP_FOUND_GOOD;
    return claim;
}

static uint32_t count(const kit_world *world, dp_action_type type)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < world->actions->count; i++) {
        n += world->actions->items[i].type == type ? 1 : 0;
    }
    return n;
}

static void a_present_blob_is_checked_at_once_and_a_missing_one_asked_of_its_author(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[OWN].node;
    dp_claim *here = claim_by(world, 1);
    dp_claim *away = claim_by(world, 2);
    dp_claim *bad = claim_by(world, 3);

    (void)state;
    dp_node_hold(node, &here->ready.root, 1234);
    bad->bad = true;
    for (uint32_t i = 0; i < 3; i++) {
        node->kind->fetch(node, &node->round->claims[i]);
    }
    assert_true(here->held && here->checking && !here->checked);
    assert_int_equal(here->size, 1234);
    assert_int_equal(here->held_at.us, node->now.us);
    assert_int_equal(node->round->checks, 1);
    assert_int_equal(node->round->check_bytes, 1234);
    const dp_action *check = kit_find(world->actions, DP_DO_CHECK);
    assert_true(check != NULL && dp_hash_equal(&check->u.check.root, &here->ready.root));
    assert_int_equal(check->u.check.first, 0);
    assert_int_equal(check->u.check.end, DP_PART_WHOLE);
    assert_int_equal(count(world, DP_DO_CHECK), 1);
    assert_true(dp_picker_wants(node->picker, &away->ready.root) && !away->held);
    const dp_action *get = kit_find(world->actions, DP_DO_GET_INFO);
    assert_true(get != NULL && dp_peer_equal(&get->u.get.peer, &away->ready.peer));
    assert_int_equal(count(world, DP_DO_GET_INFO), 1);
    assert_false(dp_picker_wants(node->picker, &bad->ready.root));
    here->held_at = (dp_time){5}; /* Once it was here it stays so for the waits of the relay. */
    here->checking = true;
    node->kind->fetch(node, here);
    assert_int_equal(here->held_at.us, 5);
    assert_int_equal(count(world, DP_DO_CHECK), 1);
    kit_close(world);
}

static void an_object_that_comes_is_held_by_those_that_claim_it(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[OWN].node;
    dp_claim *claim = claim_by(world, 1);
    dp_claim *other = claim_by(world, 2);
    const uint32_t waits = node->relay.waits.count;

    (void)state;
    claim->told_at = (dp_time){node->now.us - 77};
    assert_true(node->kind->knows(node, &claim->ready.root));
    const dp_hash unknown = root_of(9);
    assert_false(node->kind->knows(node, &unknown));
    node->kind->object(node, &unknown, BYTES);
    assert_false(node->changed);
    node->kind->object(node, &claim->ready.root, BYTES);
    assert_true(node->changed && claim->held && claim->checking && !other->held);
    assert_int_equal(claim->size, BYTES);
    assert_int_equal(node->relay.waits.count, waits + 1);
    node->changed = false;
    node->kind->object(node, &claim->ready.root, BYTES + 1);
    assert_false(node->changed);
    assert_int_equal(claim->size, BYTES);
    node->standing.state = DP_TRAINER_OFF; /* It cannot be checked now. */
    node->kind->object(node, &other->ready.root, BYTES);
    assert_true(other->held && !other->checking);
    node->kind->look(node);
    assert_false(other->checking);
    node->standing.state = DP_TRAINER_SET;
    node->kind->look(node);
    assert_true(other->checking);
    node->kind->trainer_down(node);
    assert_false(other->checking || claim->checking);
    kit_close(world);
}

static void a_lost_blob_is_fetched_again_and_its_check_no_longer_counts(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[OWN].node;
    dp_claim *claim = good_claim_by(world, 1);
    dp_claim *other = good_claim_by(world, 2);

    (void)state;
    claim->checking = true;
    node->kind->lost(node, &claim->ready.root);
    assert_false(claim->held || claim->checking);
    assert_true(dp_picker_wants(node->picker, &claim->ready.root));
    assert_true(other->held && !dp_picker_wants(node->picker, &other->ready.root));
    kit_close(world);
}

static void a_check_says_whether_an_update_is_good(void **state)
{
    static const struct {
        bool ok;
        bool foreign;
        unsigned __int128 energy;
        const char *cause; /* NULL: it is good */
    } rows[] = {
        {true, false, 7, NULL},
        {true, false, DP_ENERGY_MAX, NULL},
        {true, false, DP_ENERGY_MAX + 1, "its update cannot be decoded"},
        {false, false, 7, "its update cannot be decoded"},
        {false, true, 7, "its update has a codec that this run does not use"},
    };
    kit_world *world = still();
    dp_node *node = world->nodes[OWN].node;

    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dp_event event = {.type = DP_EV_CHECKED};
        node->round->n_claims = 0;
        dp_claim *claim = claim_by(world, 1);
        dp_claim *next = claim_by(world, 2);
        const uint64_t rejected = node->rejected;
        claim->held = claim->checking = next->held = true;
        node->changed = false;
        dp_out_begin(&node->out, world->actions);
        event.u.checked.root = claim->ready.root;
        event.u.checked.ok = rows[i].ok;
        event.u.checked.foreign = rows[i].foreign;
        event.u.checked.energy = rows[i].energy;
        assert_true(node->kind->checked(node, &event));
        assert_true(claim->checked && !claim->checking && node->changed);
        assert_int_equal(claim->bad, rows[i].cause != NULL);
        assert_true(claim->energy == rows[i].energy);
        assert_int_equal(node->rejected, rejected + (rows[i].cause != NULL ? 1 : 0));
        assert_true(next->checking && !next->checked); /* Its turn has come. */
        const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
        assert_int_equal(note != NULL, rows[i].cause != NULL);
        if (note != NULL) {
            assert_string_equal(note->u.note.cause, rows[i].cause);
            assert_int_equal(note->u.note.code, DP_NOTE_REJECTED);
            assert_true(dp_peer_equal(&note->u.note.peer, &claim->ready.peer));
        }
        node->changed = false;
        event.u.checked.root = root_of(8);
        assert_false(node->kind->checked(node, &event));
        assert_false(node->changed);
        node->round->checks = 0;
    }
    kit_close(world);
}

static void a_voter_that_holds_an_update_is_counted_once_and_asked_for_it(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[OWN].node;
    dp_claim *claim = claim_by(world, 1);
    dp_claim *other = claim_by(world, 2);
    const dp_hash roots[2] = {root_of(7), claim->ready.root};
    const uint32_t voter = node->commit->self == 0 ? 1 : 0;
    const uint32_t member = dp_node_member_index(node, &node->ledger.voters[voter].peer);

    (void)state;
    node->kind->have(node, DP_NOBODY, member, roots, 2);
    assert_int_equal(claim->have, 0);
    node->kind->fetch(node, claim);
    dp_out_begin(&node->out, world->actions);
    node->kind->have(node, voter, member, roots, 2);
    assert_int_equal(claim->have, 1U << voter);
    assert_int_equal(other->have, 0);
    assert_true(node->changed);
    node->changed = false;
    node->kind->have(node, voter, member, roots, 2);
    assert_false(node->changed);
    assert_int_equal(claim->have, 1U << voter);
    kit_close(world);
}

static void a_voter_tells_of_what_it_holds_and_has_found_good(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[OWN].node;
    dp_have_msg have = {.n = 0};

    (void)state;
    assert_true(node->commit->self != DP_NOBODY);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        dp_claim *claim = good_claim_by(world, i);
        claim->held = i != 1;
        claim->checked = i != 2;
        claim->bad = i == 3;
    }
    node->kind->add_have(node, &have);
    assert_int_equal(have.n, 1);
    assert_true(dp_hash_equal(&have.roots[0], &node->round->claims[0].ready.root));
    for (uint32_t i = 0; i < MEMBERS; i++) {
        assert_int_equal(node->round->claims[i].have, i == 0 ? 1U << node->commit->self : 0);
    }
    kit_close(world);
}

static void a_ready_without_a_linked_holder_is_shown_to_all(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[OWN].node;
    dp_claim *claim = claim_by(world, 1);
    const dp_peer holder = kit_peer(2);
    const uint32_t voter = dp_ledger_voter(&node->ledger, &holder);
    dp_member *author = (dp_member *)(uintptr_t)dp_members_at(
        node->members, dp_node_member_index(node, &claim->ready.peer));

    (void)state;
    assert_true(voter != DP_NOBODY);
    node->kind->repeat(node);
    assert_int_equal(world->actions->count, 0); /* Its author is linked. */
    author->linked = false;
    for (uint32_t what = 0; what < 4; what++) {
        dp_out_begin(&node->out, world->actions);
        claim->held = what == 1;
        claim->bad = what == 2;
        claim->have = what == 3 ? 1U << voter : 0; /* And that one is linked. */
        node->kind->repeat(node);
        assert_int_equal(count(world, DP_DO_SEND) > 0, what == 0);
        if (what == 0) {
            const dp_action *send = kit_find(world->actions, DP_DO_SEND);
            dp_ready ready;
            assert_int_equal(dp_ready_msg_read(send->u.send.bytes, &ready), DP_OK);
            assert_true(dp_hash_equal(&ready.root, &claim->ready.root));
        }
    }
    author->linked = true;
    kit_close(world);
}

static void a_record_is_accepted_when_all_is_here_and_as_it_says(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[OWN].node;
    static dp_record record;

    (void)state;
    memset(&record, 0, sizeof record);
    for (uint32_t i = 0; i < 2; i++) {
        const dp_claim *claim = good_claim_by(world, i);
        record.listed[i] = (dp_listed){.peer = claim->ready.peer,
                                       .root = claim->ready.root,
                                       .bytes = BYTES,
                                       .energy = claim->energy};
    }
    record.n_listed = 2;
    record.round = node->ledger.round + 1;
    dp_claim *claim = &node->round->claims[1];
    assert_int_equal(node->kind->judge(node, &record), DP_VERDICT_YES);
    claim->held = false;
    assert_int_equal(node->kind->judge(node, &record), DP_VERDICT_LATER);
    claim->held = true;
    claim->checked = false;
    assert_int_equal(node->kind->judge(node, &record), DP_VERDICT_LATER);
    claim->checked = true;
    claim->bad = true;
    assert_int_equal(node->kind->judge(node, &record), DP_VERDICT_NO);
    claim->bad = false;
    record.listed[1].energy++;
    assert_int_equal(node->kind->judge(node, &record), DP_VERDICT_NO);
    record.listed[1].energy--;
    record.listed[1].bytes++;
    assert_int_equal(node->kind->judge(node, &record), DP_VERDICT_NO);
    record.listed[1].bytes--;
    assert_int_equal(node->kind->judge(node, &record), DP_VERDICT_YES);
    claim->evidence = true; /* Met in a record alone. */
    dp_round_index_claims(node);
    assert_int_equal(node->kind->judge(node, &record), DP_VERDICT_YES);
    kit_close(world);
}

/* The updates that a majority with this voter holds: each reason against one. */
static void a_claim_that_may_not_be_listed_does_not_count_as_held(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[OWN].node;
    uint32_t chosen[DP_CLAIMS_MAX];
    const uint32_t all = (1U << node->ledger.n_voters) - 1;

    (void)state;
    dp_claim *claim = good_claim_by(world, 1);
    const dp_claim good = *claim;
    for (uint32_t what = 0; what < 10; what++) {
        *claim = good;
        claim->have = all;
        claim->evidence = what == 1;
        claim->held = what != 2;
        claim->checked = what != 3;
        claim->bad = what == 4;
        claim->size += what == 5 ? 1 : 0;
        claim->have = what == 6 ? 0 : claim->have;
        claim->ready.state_root.bytes[0] ^= what == 7;
        claim->ready.peer = what == 8 ? kit_peer(1) : claim->ready.peer;
        node->round->states[node->commit->self].round += what == 9 ? 5 : 0;
        const uint32_t held = dp_round_held(node, chosen);
        node->round->states[node->commit->self].round -= what == 9 ? 5 : 0;
        assert_int_equal(held, what == 0 || what == 8 || what == 9 ? 1 : 0);
        assert_true(held == 0 || chosen[0] == 0);
    }
    *claim = good;
    claim->have = 0;
    assert_int_equal(dp_ledger_majority(&node->ledger), 2);
    const uint32_t another = node->commit->self == 0 ? 1 : 0;
    claim->have = 1U << another; /* With this one a majority. */
    assert_int_equal(dp_round_held(node, NULL), 1);
    kit_close(world);
}

static void a_blob_named_by_a_record_becomes_a_claim_with_its_ready(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[OWN].node;
    const dp_claim *claim = claim_by(world, 1);
    dp_ready ready = claim->ready;

    (void)state;
    ready.reach.own += 100;
    node->round->claims[0].ready.reach = ready.reach;
    node->round->claims[0].evidence = true;
    dp_round_index_claims(node);
    assert_null(dp_round_claim_of(node, &ready.peer));
    dp_round_ready(node, &ready, true, false);
    assert_true(claim->evidence && !node->changed);
    dp_round_ready(node, &ready, false, false);
    assert_true(!claim->evidence && node->changed);
    assert_true(dp_round_claim_of(node, &ready.peer) == claim);
    assert_int_equal(node->round->n_claims, 1);
    node->changed = false;
    dp_round_ready(node, &ready, false, false);
    assert_false(node->changed);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_present_blob_is_checked_at_once_and_a_missing_one_asked_of_its_author),
        cmocka_unit_test(an_object_that_comes_is_held_by_those_that_claim_it),
        cmocka_unit_test(a_lost_blob_is_fetched_again_and_its_check_no_longer_counts),
        cmocka_unit_test(a_check_says_whether_an_update_is_good),
        cmocka_unit_test(a_voter_that_holds_an_update_is_counted_once_and_asked_for_it),
        cmocka_unit_test(a_voter_tells_of_what_it_holds_and_has_found_good),
        cmocka_unit_test(a_ready_without_a_linked_holder_is_shown_to_all),
        cmocka_unit_test(a_record_is_accepted_when_all_is_here_and_as_it_says),
        cmocka_unit_test(a_claim_that_may_not_be_listed_does_not_count_as_held),
        cmocka_unit_test(a_blob_named_by_a_record_becomes_a_claim_with_its_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
