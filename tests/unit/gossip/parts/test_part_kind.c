/* A round of parts, step by step: objects of publications, results and sums that are held, checked,
 * lost, announced and dropped. The test makes the messages of a node. */
#include "gossip/parts/part_round.h"
#include "gossip/round/kind.h"
#include "gossip/round/round_msg.h"
#include "tests/unit/gossip/kit/part_kit.h"

enum { NODES = 3, BYTES = 8 };

/* Members that do not publish any more; node 0 has no claims and no messages of owners. */
static kit_world *still(void)
{
    kit_world *world = kit_parted(NODES);
    dp_node *node = world->nodes[0].node;

    for (uint32_t i = 0; i < NODES; i++) {
        kit_command(world, i, DP_COMMAND_PAUSE);
    }
    kit_run_ms(world, 3000);
    node->round->n_claims = 0;
    dp_round_index_claims(node);
    dp_part_round_open_round(node);
    node->parts->n_garbage = 0;
    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    node->round->checks = 0;
    node->changed = false;
    return world;
}

static dp_hash root_of(uint32_t owner, uint32_t number)
{
    return (dp_hash){{(uint8_t)owner, (uint8_t)number, 88}};
}

static dp_result *result_of(dp_node *node, uint32_t owner, uint32_t part)
{
    dp_result *result = &node->parts->results[node->parts->n_results++];

    *result = (dp_result){.word = {.owner = kit_peer(owner),
                                   .round = node->ledger.round + 1,
                                   .base = node->ledger.base,
                                   .part = part,
                                   .root = root_of(owner, part),
                                   .bytes = BYTES,
                                   .n = 1},
                          .since = node->now};
    return result;
}

static dp_sum *sum_of(dp_node *node, uint32_t owner, uint32_t part)
{
    dp_sum *sum = &node->parts->sums[node->parts->n_sums++];

    *sum = (dp_sum){.word = {.owner = kit_peer(owner),
                             .round = node->ledger.round + 1,
                             .part = part,
                             .root = root_of(owner, 10 + part),
                             .bytes = BYTES,
                             .n = 2}};
    return sum;
}

static dp_claim *claim_by(dp_node *node, uint32_t author)
{
    dp_claim *claim = &node->round->claims[node->round->n_claims++];

    *claim = (dp_claim){.ready = {.peer = kit_peer(author),
                                  .round = node->ledger.round + 1,
                                  .base = node->ledger.base,
                                  .parted = true,
                                  .energy = 50,
                                  .parts = {.n = node->ledger.layout.cuts.n}},
                        .told_at = node->now};
    for (uint32_t p = 0; p < claim->ready.parts.n; p++) {
        claim->ready.parts.refs[p] = (dp_part_ref){.root = root_of(author, 20 + p), .bytes = BYTES};
    }
    claim->ready.root = dp_part_list_root(&claim->ready.parts);
    dp_round_index_claims(node);
    return claim;
}

static void a_voter_that_has_a_result_is_counted_once(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[0].node;
    dp_result *result = result_of(node, 1, 1);
    dp_result *other = result_of(node, 2, 2);
    const dp_hash roots[2] = {root_of(9, 9), result->word.root};

    (void)state;
    result->held = other->held = true;
    node->kind->have(node, 1, DP_MEMBER_NONE, roots, 1);
    assert_int_equal(result->have, 0);
    assert_false(node->changed);
    node->kind->have(node, DP_NOBODY, DP_MEMBER_NONE, roots, 2);
    assert_int_equal(result->have, 0);
    node->kind->have(node, 1, DP_MEMBER_NONE, roots, 2);
    assert_true(result->have == 2 && other->have == 0 && node->changed);
    node->changed = false;
    node->kind->have(node, 1, DP_MEMBER_NONE, roots, 2);
    assert_false(node->changed);
    node->kind->have(node, 2, DP_MEMBER_NONE, roots, 2);
    assert_true(result->have == 6 && node->changed);
    kit_close(world);
}

static void a_voter_tells_of_results_that_it_holds_and_has_checked(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[0].node;
    dp_have_msg have = {.n = 0};

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        dp_result *result = result_of(node, 1, i % NODES);
        result->held = i != 1;
        result->checked = i != 2;
        result->bad = i == 3;
    }
    node->kind->add_have(node, &have);
    assert_int_equal(have.n, 1);
    assert_true(dp_hash_equal(&have.roots[0], &node->parts->results[0].word.root));
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(node->parts->results[i].have, i == 0 ? 1U << node->commit->self : 0);
    }
    kit_close(world);
}

static void an_object_of_another_size_than_told_is_held_against_who_told(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[0].node;
    dp_result *result = result_of(node, 1, 1);
    dp_sum *sum = sum_of(node, 2, 0);
    const uint64_t rejected = node->rejected;

    (void)state;
    assert_false(node->kind->sized(node, &node->ledger.base, BYTES));
    assert_true(node->kind->sized(node, &result->word.root, BYTES));
    assert_true(node->kind->sized(node, &sum->word.root, BYTES));
    assert_int_equal(node->rejected, rejected);
    assert_false(node->kind->sized(node, &result->word.root, BYTES + 1));
    assert_true(result->bad && !sum->bad);
    assert_false(node->kind->sized(node, &sum->word.root, BYTES - 1));
    assert_true(sum->bad);
    assert_int_equal(node->rejected, rejected + 2);
    assert_false(node->kind->sized(node, &sum->word.root, BYTES)); /* It has lied. */
    sum->bad = result->bad = false;
    sum->held = result->held = true; /* An object that is here is judged by itself. */
    assert_true(node->kind->sized(node, &result->word.root, BYTES + 1));
    assert_true(node->kind->sized(node, &sum->word.root, BYTES + 1));
    assert_false(result->bad || sum->bad);
    kit_close(world);
}

static void a_lost_object_counts_as_missing_and_is_checked_again(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[0].node;
    dp_claim *claim = claim_by(node, 1);
    dp_result *result = result_of(node, 1, 1);
    dp_sum *sum = sum_of(node, 2, 0);

    (void)state;
    claim->parts.held = claim->parts.checking = 7;
    result->held = result->checking = true;
    sum->held = sum->checking = sum->in_use = true;
    node->kind->lost(node, &claim->ready.parts.refs[1].root);
    assert_int_equal(claim->parts.held, 5);
    assert_int_equal(claim->parts.checking, 5);
    assert_true(result->held && sum->held);
    node->kind->lost(node, &result->word.root);
    assert_false(result->held || result->checking);
    assert_true(dp_picker_wants(node->picker, &result->word.root));
    assert_true(sum->held && sum->in_use);
    node->kind->lost(node, &sum->word.root);
    assert_false(sum->held || sum->checking || sum->in_use);
    assert_int_equal(claim->parts.held, 5);
    kit_close(world);
}

static void each_object_of_the_round_is_known(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[0].node;
    const dp_claim *claim = claim_by(node, 1);
    const dp_result *result = result_of(node, 1, 1);
    const dp_sum *sum = sum_of(node, 2, 0);
    const dp_hash other = root_of(9, 9);

    (void)state;
    for (uint32_t p = 0; p < claim->ready.parts.n; p++) {
        assert_true(node->kind->knows(node, &claim->ready.parts.refs[p].root));
    }
    assert_true(node->kind->knows(node, &result->word.root));
    assert_true(node->kind->knows(node, &sum->word.root));
    assert_false(node->kind->knows(node, &other));
    node->kind->object(node, &other, BYTES);
    assert_false(node->changed);
    dp_node_hold(node, &result->word.root, BYTES + 2);
    node->kind->object(node, &result->word.root, BYTES + 2);
    assert_true(node->changed && result->held && result->checking);
    assert_int_equal(result->size, BYTES + 2);
    const dp_action *check = kit_find(world->actions, DP_DO_CHECK);
    assert_true(check != NULL && dp_hash_equal(&check->u.check.root, &result->word.root));
    assert_int_equal(check->u.check.first, node->ledger.layout.cuts.first[1]);
    assert_int_equal(check->u.check.end, dp_part_end(&node->ledger.layout.cuts, 1));
    kit_close(world);
}

static void a_check_of_a_part_is_of_its_own_range_and_within_the_energy_told(void **state)
{
    static const struct {
        bool ok;
        bool foreign;
        uint64_t energy;
        uint64_t bytes;
        const char *cause;
    } rows[] = {
        {true, false, 50, BYTES, NULL},
        {true, false, 0, BYTES, NULL},
        {true, false, 51, BYTES,
         "a part of its update has another size or more energy than it announced"},
        {true, false, 50, BYTES + 1,
         "a part of its update has another size or more energy than it announced"},
        {false, false, 50, BYTES, "its update cannot be decoded"},
        {false, true, 50, BYTES, "its update has a codec that this run does not use"},
    };
    kit_world *world = still();
    dp_node *node = world->nodes[0].node;
    const dp_part_cuts *cuts = &node->ledger.layout.cuts;

    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dp_event event = {.type = DP_EV_CHECKED};
        node->round->n_claims = 0;
        dp_claim *claim = claim_by(node, 1);
        const uint64_t rejected = node->rejected;
        claim->parts.held = 7;
        claim->parts.checking = 7;
        dp_node_hold(node, &claim->ready.parts.refs[1].root, rows[i].bytes);
        event.u.checked.root = claim->ready.parts.refs[1].root;
        event.u.checked.ok = rows[i].ok;
        event.u.checked.foreign = rows[i].foreign;
        event.u.checked.energy = rows[i].energy;
        event.u.checked.first = cuts->first[0]; /* Not of its part. */
        event.u.checked.end = dp_part_end(cuts, 0);
        node->changed = false;
        assert_false(node->kind->checked(node, &event));
        assert_int_equal(claim->parts.checking, 7);
        event.u.checked.first = cuts->first[1];
        assert_false(node->kind->checked(node, &event));
        event.u.checked.end = dp_part_end(cuts, 1);
        dp_out_begin(&node->out, world->actions);
        assert_true(node->kind->checked(node, &event));
        assert_true(node->changed);
        assert_int_equal(claim->parts.checking, 5);
        assert_int_equal(claim->parts.checked, 2);
        assert_int_equal(claim->parts.bad, rows[i].cause != NULL ? 2 : 0);
        assert_int_equal(claim->parts.nothing, rows[i].energy == 0 ? 2 : 0);
        assert_int_equal(node->rejected, rejected + (rows[i].cause != NULL ? 1 : 0));
        const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
        assert_int_equal(note != NULL, rows[i].cause != NULL);
        if (note != NULL) {
            assert_string_equal(note->u.note.cause, rows[i].cause);
        }
    }
    kit_close(world);
}

static void a_result_that_does_not_decode_is_bad_and_its_owner_named(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[0].node;
    dp_result *result = result_of(node, 1, 1);
    dp_event event = {.type = DP_EV_CHECKED};

    (void)state;
    for (uint32_t ok = 0; ok < 2; ok++) {
        const uint64_t rejected = node->rejected;
        event.u.checked =
            (typeof(event.u.checked)){.root = result->word.root,
                                      .ok = ok == 1,
                                      .first = node->ledger.layout.cuts.first[1],
                                      .end = dp_part_end(&node->ledger.layout.cuts, 1)};
        result->held = false;
        assert_false(node->kind->checked(node, &event));
        result->held = result->checking = true;
        result->checked = result->bad = false;
        dp_out_begin(&node->out, world->actions);
        assert_true(node->kind->checked(node, &event));
        assert_true(result->checked && !result->checking);
        assert_int_equal(result->bad, ok == 0);
        assert_int_equal(node->rejected, rejected + 1 - ok);
    }
    kit_close(world);
}

static void a_trainer_that_goes_leaves_no_check_and_no_sum_under_way(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[0].node;
    dp_claim *claim = claim_by(node, 1);
    dp_result *result = result_of(node, 1, 1);
    dp_sum *sum = sum_of(node, 2, 0);

    (void)state;
    claim->parts.checking = 7;
    result->checking = sum->checking = true;
    node->parts->duties[1].reducing = node->parts->collects[2].duty.reducing = true;
    node->kind->trainer_down(node);
    assert_int_equal(claim->parts.checking, 0);
    assert_false(result->checking || sum->checking);
    assert_false(node->parts->duties[1].reducing || node->parts->collects[2].duty.reducing);
    kit_close(world);
}

static void a_new_round_begins_without_words_and_a_new_slot_without_holders(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[0].node;
    dp_result *result = result_of(node, 1, 1);

    (void)state;
    sum_of(node, 2, 0);
    node->parts->n_hints = 1;
    node->parts->ripe_at = node->now;
    node->parts->duties[1].works = node->parts->collects[1].duty.works = true;
    result->have = 7;
    node->kind->open_slot(node, false);
    assert_int_equal(node->parts->n_results, 1);
    assert_int_equal(result->have, 0);
    assert_true(node->parts->duties[1].works && node->parts->ripe_at.us > 0);
    node->kind->open_slot(node, true);
    assert_int_equal(node->parts->n_results + node->parts->n_sums + node->parts->n_hints, 0);
    assert_false(node->parts->duties[1].works || node->parts->collects[1].duty.works);
    assert_int_equal(node->parts->ripe_at.us, 0);
    kit_close(world);
}

static void after_its_round_all_that_it_named_is_let_go(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[0].node;
    const dp_claim *claim = claim_by(node, 1);
    const dp_result *result = result_of(node, 1, 1);
    const dp_sum *sum = sum_of(node, 2, 0);
    dp_hash roots[5] = {result->word.root, sum->word.root};

    (void)state;
    for (uint32_t p = 0; p < 3; p++) {
        roots[2 + p] = claim->ready.parts.refs[p].root;
    }
    for (uint32_t i = 0; i < 5; i++) {
        dp_node_hold(node, &roots[i], BYTES);
    }
    node->kind->drop(node);
    assert_true(node->parts->n_garbage > 0 && node->parts->n_garbage <= 5);
    for (uint32_t i = 0; i < 5; i++) { /* They are of use as long as the round is there. */
        assert_true(dp_node_holds(node, &roots[i]));
    }
    node->round->n_claims = node->parts->n_results = node->parts->n_sums = 0;
    for (uint32_t i = 0; i < 5 && node->parts->n_garbage > 0; i++) {
        dp_part_round_sweep(node);
    }
    assert_int_equal(node->parts->n_garbage, 0);
    for (uint32_t i = 0; i < 5; i++) {
        assert_false(dp_node_holds(node, &roots[i]));
    }
    kit_close(world);
}

static void it_wakes_for_what_is_due_first(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[0].node;
    dp_round *round = node->round;
    const uint64_t now = node->now.us;

    (void)state;
    round->enough_at = round->opened = (dp_time){0};
    node->parts->ripe_at = (dp_time){0};
    node->parts->wake_at = (dp_time){now + 90 * DP_SECOND};
    assert_int_equal(node->kind->wake(node).us, now + 90 * DP_SECOND);
    round->opened = (dp_time){now + 10 * DP_SECOND};
    assert_int_equal(node->kind->wake(node).us, now + 10 * DP_SECOND + dp_round_hard_us(node));
    round->enough_at = (dp_time){now + 5 * DP_SECOND};
    round->grace_us = 2 * DP_SECOND;
    assert_int_equal(node->kind->wake(node).us, now + 7 * DP_SECOND);
    node->parts->wake_at = (dp_time){now + 3 * DP_SECOND};
    assert_int_equal(node->kind->wake(node).us, now + 3 * DP_SECOND);
    node->parts->wake_at = (dp_time){now};
    assert_int_equal(node->kind->wake(node).us, now + 20 * DP_MS); /* Met already. */
    node->parts->wake_at = DP_NEVER;
    node->parts->ripe_at = (dp_time){now}; /* Ripe: the record is waited for. */
    const uint64_t wake = node->kind->wake(node).us;
    assert_true(wake > now && wake < now + 5 * DP_SECOND);
    kit_close(world);
}

static void an_object_that_a_member_asks_for_is_fetched_only_from_its_author(void **state)
{
    kit_world *world = still();
    dp_node *node = world->nodes[0].node;
    const dp_claim *claim = claim_by(node, 1);
    const dp_hash *root = &claim->ready.parts.refs[2].root;
    const dp_hash other = root_of(9, 9);
    dp_member *author = (dp_member *)(uintptr_t)dp_members_at(
        node->members, dp_node_member_index(node, &claim->ready.peer));

    (void)state;
    node->kind->asked(node, &other);
    author->linked = false;
    node->kind->asked(node, root);
    assert_false(dp_picker_wants(node->picker, root));
    author->linked = true;
    dp_node_hold(node, root, BYTES);
    node->kind->asked(node, root);
    assert_false(dp_picker_wants(node->picker, root));
    dp_node_unhold(node, root);
    node->kind->asked(node, root);
    assert_true(dp_picker_wants(node->picker, root));
    const dp_action *get = kit_find(world->actions, DP_DO_GET_INFO);
    assert_true(get != NULL && dp_peer_equal(&get->u.get.peer, &claim->ready.peer));
    assert_int_equal(world->actions->count, 1);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_voter_that_has_a_result_is_counted_once),
        cmocka_unit_test(a_voter_tells_of_results_that_it_holds_and_has_checked),
        cmocka_unit_test(an_object_of_another_size_than_told_is_held_against_who_told),
        cmocka_unit_test(a_lost_object_counts_as_missing_and_is_checked_again),
        cmocka_unit_test(each_object_of_the_round_is_known),
        cmocka_unit_test(a_check_of_a_part_is_of_its_own_range_and_within_the_energy_told),
        cmocka_unit_test(a_result_that_does_not_decode_is_bad_and_its_owner_named),
        cmocka_unit_test(a_trainer_that_goes_leaves_no_check_and_no_sum_under_way),
        cmocka_unit_test(a_new_round_begins_without_words_and_a_new_slot_without_holders),
        cmocka_unit_test(after_its_round_all_that_it_named_is_let_go),
        cmocka_unit_test(it_wakes_for_what_is_due_first),
        cmocka_unit_test(an_object_that_a_member_asks_for_is_fetched_only_from_its_author),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
