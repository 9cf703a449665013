/* Which state a node fetches, when it does without one, and what it does with one that has come. */
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "gossip/training/state_load.h"
#include "gossip/training/training.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { ROUNDS = 7 };

/* Node 0 of three, after seven rounds or more; no member tells of a state. */
static dp_node *begin(kit_world **world)
{
    *world = kit_together(3);
    while (kit_look(*world, 0).round < ROUNDS) {
        kit_run_ms(*world, KIT_STEP_MS);
    }
    dp_node *node = (*world)->nodes[0].node;
    memset((*world)->actions, 0, sizeof *(*world)->actions);
    dp_out_begin(&node->out, (*world)->actions);
    for (uint32_t i = 1; i < 3; i++) {
        ((dp_member *)(uintptr_t)dp_members_at(node->members, i))->has_summary = false;
    }
    node->now.us += DP_SECOND;
    return node;
}

/* The chain certifies this state for the round. */
static void certify(dp_node *node, uint64_t round, const dp_hash *root)
{
    dp_history_row *row = dp_chain_row(node, round);

    assert_non_null(row);
    row->certified = true;
    row->root = dp_state_root(round, root, &row->digest);
}

/* The member with this index tells that it has this state, of a thousand bytes. */
static dp_member *tells(const dp_node *node, uint32_t index, uint64_t round, const dp_hash *root)
{
    dp_member *member = (dp_member *)(uintptr_t)dp_members_at(node->members, index);

    assert_true(member->linked);
    member->has_summary = true;
    member->summary.saved_round = round;
    member->summary.saved_root = *root;
    member->summary.saved_bytes = 1000;
    member->summary_at = node->now;
    return member;
}

/* All updates after this round are missing here: 100 bytes a round. */
static void lose_updates(dp_node *node, uint64_t round)
{
    for (uint64_t r = round + 1; r <= node->ledger.round; r++) {
        dp_history_row *row = dp_chain_row(node, r);
        assert_true(row != NULL && row->n > 0);
        row->n = 1;
        row->here = 0;
        row->dropped = false;
        row->items[0].bytes = 100;
        row->items[0].root = (dp_hash){{(uint8_t)r, 200}};
    }
}

static void of_several_certified_states_the_newest_decided_one_is_fetched(void **state)
{
    kit_world *world;
    dp_node *node = begin(&world);
    const uint64_t round = node->ledger.round;
    const dp_hash older = {{1, 1}};
    const dp_hash newer = {{2, 2}};

    (void)state;
    dp_train_unload(node);
    certify(node, round - 1, &older);
    certify(node, round, &newer);
    dp_member *first = tells(node, 1, round, &newer);
    (void)tells(node, 2, round - 1, &older);
    first->has_summary = false;
    dp_catchup_state(node);
    assert_true(dp_hash_equal(&node->catchup->state_root, &older));
    node->catchup->wants_state = false;
    first->has_summary = true;
    dp_catchup_state(node);
    assert_true(dp_hash_equal(&node->catchup->state_root, &newer));
    assert_int_equal(node->catchup->state_round, round);
    kit_close(world);
}

static void a_state_that_is_here_in_part_goes_before_a_newer_one(void **state)
{
    kit_world *world;
    dp_node *node = begin(&world);
    const uint64_t round = node->ledger.round;
    const dp_hash older = {{1, 1}};
    const dp_hash newer = {{2, 2}};

    (void)state;
    for (uint32_t order = 0; order < 2; order++) {
        certify(node, round - 1, &older);
        certify(node, round, &newer);
        (void)tells(node, 1 + order, round, &newer);
        (void)tells(node, 2 - order, round - 1, &older);
        dp_train_unload(node);
        node->catchup->wants_state = false;
        node->catchup->part = older;
        dp_catchup_state(node);
        assert_true(dp_hash_equal(&node->catchup->state_root, &older));
        assert_true(dp_hash_is_zero(&node->catchup->part)); /* It is this one. */
    }
    /* Not if the updates after it are gone. */
    lose_updates(node, round - 1);
    dp_chain_row(node, round)->dropped = true;
    node->catchup->wants_state = false;
    node->catchup->part = older;
    node->started_at = (dp_time){node->now.us - DP_STATE_PATIENCE_US};
    dp_catchup_state(node);
    assert_true(dp_hash_equal(&node->catchup->state_root, &newer));
    kit_close(world);
}

/* In its first seconds: a peer with the rest may be linked soon. */
static void a_node_with_a_part_of_a_state_waits_a_moment_before_it_takes_another(void **state)
{
    kit_world *world;
    dp_node *node = begin(&world);
    const uint64_t round = node->ledger.round;
    const dp_hash part = {{1, 1}};
    const dp_hash other = {{2, 2}};

    (void)state;
    dp_train_unload(node);
    certify(node, round, &other);
    (void)tells(node, 1, round, &other);
    node->catchup->part = part; /* No round that is known certifies it. */
    node->started_at = (dp_time){node->now.us - DP_STATE_PATIENCE_US + 1};
    dp_catchup_state(node);
    assert_false(node->catchup->wants_state);
    node->started_at.us--;
    dp_catchup_state(node);
    assert_true(node->catchup->wants_state);
    assert_true(dp_hash_equal(&node->catchup->state_root, &other));
    kit_close(world);
}

static void a_certified_part_is_asked_of_all_even_if_no_member_tells_of_it(void **state)
{
    kit_world *world;
    dp_node *node = begin(&world);
    const uint64_t round = node->ledger.round;
    const dp_hash part = {{1, 1}};

    (void)state;
    node->catchup->part = part;
    dp_train_unload(node);
    dp_catchup_state(node);
    assert_false(node->catchup->wants_state); /* Nobody certified it. */
    certify(node, round - 1, &part);
    node->standing.has_theta = true;
    node->standing.applied = round - 1;
    dp_catchup_state(node);
    assert_false(node->catchup->wants_state); /* It is no newer than what the trainer has. */
    node->standing.applied = round - 2;
    lose_updates(node, round - 1);
    dp_chain_row(node, round)->dropped = true;
    dp_catchup_state(node);
    assert_false(node->catchup->wants_state); /* The updates after it are gone. */
    dp_chain_row(node, round)->dropped = false;
    dp_catchup_state(node);
    assert_true(node->catchup->wants_state);
    assert_true(dp_hash_equal(&node->catchup->state_root, &part));
    assert_int_equal(node->catchup->state_round, round - 1);
    assert_true(dp_picker_wants(node->picker, &part));
    assert_non_null(kit_find(world->actions, DP_DO_GET_INFO));
    node->standing.applied = round;
    kit_close(world);
}

static void a_node_with_all_updates_needs_no_state_unless_a_member_gives_one(void **state)
{
    kit_world *world;
    dp_node *node = begin(&world);
    const dp_hash root = {{1, 1}};

    (void)state;
    assert_true(dp_catchup_needs_no_state(node));
    certify(node, 1, &root);
    dp_member *member = tells(node, 1, 1, &root);
    assert_false(dp_catchup_needs_no_state(node));
    member->summary.saved_root = (dp_hash){{0}};
    assert_true(dp_catchup_needs_no_state(node));
    lose_updates(node, node->ledger.round - 1);
    assert_false(dp_catchup_needs_no_state(node));
    kit_close(world);
}

static void a_state_is_preferred_if_it_is_less_to_fetch_than_five_rounds_or_more(void **state)
{
    kit_world *world;
    dp_node *node = begin(&world);
    const uint64_t round = node->ledger.round;
    const dp_hash root = {{1, 1}};

    (void)state;
    certify(node, round - 1, &root);
    lose_updates(node, round - 6);
    dp_member *member = tells(node, 1, round - 1, &root);
    member->summary.saved_bytes = 399; /* With the last update 499, and five updates are 500. */
    assert_true(dp_catchup_prefers_state(node, round - 5));
    member->summary.saved_bytes = 400;
    assert_false(dp_catchup_prefers_state(node, round - 5));
    dp_node_hold(node, &root, 400); /* It is here. */
    assert_true(dp_catchup_prefers_state(node, round - 5));
    dp_node_unhold(node, &root);
    member->summary.saved_bytes = 1;
    assert_false(dp_catchup_prefers_state(node, round - 4));
    member->summary.saved_bytes = UINT64_MAX - 100; /* A lie. */
    assert_false(dp_catchup_prefers_state(node, round - 5));
    member->summary.saved_bytes = 1;
    dp_chain_row(node, round)->dropped = true;
    assert_false(dp_catchup_prefers_state(node, round - 5)); /* It leads nowhere. */
    dp_chain_row(node, round)->dropped = false;
    dp_chain_row(node, round - 3)->dropped = true; /* Replay leads nowhere. */
    assert_true(dp_catchup_prefers_state(node, round - 5));
    member->summary.saved_round = round - 5;
    certify(node, round - 5, &root);
    assert_false(dp_catchup_prefers_state(node, round - 5)); /* It is no newer. */
    kit_close(world);
}

static void a_state_that_did_not_come_is_not_preferred_for_a_minute(void **state)
{
    kit_world *world;
    dp_node *node = begin(&world);
    const uint64_t round = node->ledger.round;
    const dp_hash root = {{1, 1}};

    (void)state;
    certify(node, round, &root);
    lose_updates(node, round - 6);
    tells(node, 1, round, &root)->summary.saved_bytes = 1;
    node->now.us += 100 * DP_SECOND;
    node->catchup->gave_up_at = (dp_time){node->now.us - 60 * DP_SECOND + 1};
    assert_false(dp_catchup_prefers_state(node, round - 5));
    node->catchup->gave_up_at.us--;
    assert_true(dp_catchup_prefers_state(node, round - 5));
    kit_close(world);
}

/* A state of the newest round is wanted, and nothing of it has come for as long as it may take. The
 * trainer stands at the round before it. */
static dp_node *waits_in_vain(kit_world **world, dp_hash *root)
{
    dp_node *node = begin(world);
    dp_catchup *catchup = node->catchup;
    const uint64_t round = node->ledger.round;

    *root = (dp_hash){{1, 1}};
    certify(node, round, root);
    (void)tells(node, 1, round, root);
    node->standing.applied = round - 1;
    dp_catchup_state(node);
    assert_true(catchup->wants_state);
    node->now.us += 20 * DP_SECOND;
    catchup->state_moved = (dp_time){node->now.us - DP_STATE_PATIENCE_US};
    catchup->chosen_at = node->now; /* It is not outdated. */
    memset((*world)->actions, 0, sizeof *(*world)->actions);
    dp_out_begin(&node->out, (*world)->actions);
    return node;
}

static void a_state_that_does_not_come_gives_way_to_replay(void **state)
{
    kit_world *world;
    dp_hash root;
    dp_node *node = waits_in_vain(&world, &root);
    dp_catchup *catchup = node->catchup;

    (void)state;
    catchup->hasty = 2;
    catchup->stuck_at = node->now;
    dp_catchup_state_tick(node);
    assert_false(catchup->wants_state);
    assert_false(dp_picker_wants(node->picker, &root));
    assert_int_equal(catchup->hasty, 0);
    assert_int_equal(catchup->gave_up_at.us, node->now.us);
    assert_int_equal(catchup->stuck_at.us, 0);
    const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
    assert_non_null(note);
    assert_int_equal(note->u.note.code, DP_NOTE_CATCHUP);
    assert_int_equal(note->u.note.a, node->ledger.round - 1);
    assert_int_equal(note->u.note.b, node->ledger.round);
    node->standing.applied = node->ledger.round;
    kit_close(world);
}

static void a_state_is_waited_for_while_it_comes_or_replay_leads_nowhere(void **state)
{
    kit_world *world;
    dp_hash root;
    dp_node *node = waits_in_vain(&world, &root);
    const uint64_t round = node->ledger.round;

    (void)state;
    node->catchup->state_moved.us++;
    dp_catchup_state_tick(node);
    assert_true(node->catchup->wants_state);
    node->catchup->state_moved.us--;
    node->standing.applied = round;
    dp_catchup_state_tick(node);
    assert_true(node->catchup->wants_state);
    node->standing.applied = round - 1;
    lose_updates(node, round - 1);
    dp_chain_row(node, round)->dropped = true;
    dp_catchup_state_tick(node);
    assert_true(node->catchup->wants_state);
    dp_chain_row(node, round)->dropped = false;
    const dp_saved_all saved = *node->saved; /* Without a trainer, from the newest checkpoint: */
    node->standing.state = DP_TRAINER_OFF;
    memset(node->saved, 0, sizeof *node->saved);
    dp_catchup_state_tick(node);
    assert_true(node->catchup->wants_state); /* ... there is none. */
    node->saved->at[1] = (dp_saved){.has = true, .round = round - 1};
    dp_catchup_state_tick(node);
    assert_false(node->catchup->wants_state);
    *node->saved = saved;
    kit_close(world);
}

static void the_updates_after_a_wanted_state_are_fetched_before_it(void **state)
{
    kit_world *world;
    dp_node *node = begin(&world);
    const uint64_t round = node->ledger.round;
    const dp_hash root = {{1, 1}};

    (void)state;
    certify(node, round - 2, &root);
    lose_updates(node, round - 6);
    (void)tells(node, 1, round - 2, &root);
    dp_train_unload(node);
    dp_catchup_state(node);
    assert_true(node->catchup->wants_state);
    dp_catchup_state_tick(node);
    for (uint64_t r = round - 5; r <= round; r++) {
        assert_int_equal(dp_picker_wants(node->picker, &dp_chain_row(node, r)->items[0].root),
                         r > round - 2);
    }
    kit_close(world);
}

static void a_state_that_nothing_fetches_any_more_is_not_waited_for(void **state)
{
    kit_world *world;
    dp_hash root;
    dp_node *node = waits_in_vain(&world, &root);

    (void)state;
    node->catchup->state_moved = node->now;
    dp_catchup_state_tick(node);
    assert_true(node->catchup->wants_state);
    dp_picker_cancel(node->picker, node->now, &root, &node->out);
    dp_catchup_state_tick(node);
    assert_false(node->catchup->wants_state);
    node->standing.applied = node->ledger.round;
    kit_close(world);
}

static void a_chosen_state_is_told_and_its_wait_begins(void **state)
{
    kit_world *world;
    dp_node *node = begin(&world);
    dp_catchup *catchup = node->catchup;
    const uint64_t round = node->ledger.round;
    const dp_hash root = {{1, 1}};

    (void)state;
    certify(node, round, &root);
    (void)tells(node, 1, round, &root);
    node->standing.applied = round - 1;
    dp_catchup_state(node);
    assert_true(catchup->wants_state);
    assert_int_equal(catchup->state_round, round);
    assert_int_equal(catchup->state_bytes, 1000);
    assert_int_equal(catchup->chosen_at.us, node->now.us);
    assert_int_equal(catchup->state_moved.us, node->now.us);
    const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
    assert_non_null(note);
    assert_int_equal(note->u.note.code, DP_NOTE_CATCHUP);
    assert_int_equal(note->u.note.a, round - 1);
    assert_int_equal(note->u.note.b, round);
    catchup->wants_state = false;
    dp_picker_cancel(node->picker, node->now, &root, &node->out);
    catchup->hasty = 1; /* One is waited for since then, whichever. */
    catchup->state_moved.us = 5;
    dp_catchup_state(node);
    assert_true(catchup->wants_state);
    assert_int_equal(catchup->state_moved.us, 5);
    node->standing.applied = round;
    kit_close(world);
}

static void a_chosen_state_that_is_here_already_is_kept_at_once(void **state)
{
    kit_world *world;
    dp_node *node = begin(&world);
    const uint64_t round = node->ledger.round;
    const dp_hash root = {{1, 1}};

    (void)state;
    certify(node, round, &root);
    (void)tells(node, 1, round, &root);
    dp_node_hold(node, &root, 40);
    node->standing.applied = round - 1;
    node->changed = false;
    dp_catchup_state(node);
    assert_false(node->catchup->wants_state);
    assert_false(dp_picker_wants(node->picker, &root));
    const dp_action *keep = kit_find(world->actions, DP_DO_OBJECT_KEEP);
    assert_non_null(keep);
    assert_true(dp_hash_equal(&keep->u.keep.root, &root));
    assert_int_equal(keep->u.keep.use, DP_USE_STATE);
    assert_int_equal(keep->u.keep.round, round);
    assert_int_equal(node->catchup->state_bytes, 40);
    assert_int_equal(dp_saved_newest(node), round);
    assert_true(node->changed);
    node->standing.applied = round;
    kit_close(world);
}

/* The state that is wanted has come. */
static void has_come(dp_node *node, const dp_hash *root)
{
    node->catchup->wants_state = true;
    node->catchup->state_root = *root;
    node->catchup->state_round = node->ledger.round;
    node->catchup->hasty = 3;
    dp_catchup_object(node, root);
    assert_false(node->catchup->wants_state);
    assert_int_equal(node->catchup->hasty, 0);
}

static void a_state_frees_a_trainer_that_waits_for_a_missing_update_before_it(void **state)
{
    kit_world *world;
    dp_node *node = begin(&world);
    dp_standing *standing = &node->standing;
    const dp_hash root = {{1, 1}};

    (void)state;
    dp_node_hold(node, &root, 40);
    standing->applied = node->ledger.round - 1;
    dp_catchup_stuck(node);
    has_come(node, &root);
    assert_true(dp_catchup_frees_trainer(node));
    assert_false(dp_catchup_frees_trainer(node)); /* Once. */
    standing->applying = true;
    has_come(node, &root);
    assert_false(dp_catchup_frees_trainer(node));
    standing->applying = false;
    standing->applied = node->ledger.round;
    has_come(node, &root);
    assert_false(dp_catchup_frees_trainer(node));
    standing->applied = node->ledger.round - 1;
    dp_catchup_free(node);
    has_come(node, &root);
    assert_false(dp_catchup_frees_trainer(node));
    dp_catchup_stuck(node);
    standing->state = DP_TRAINER_MOVING;
    has_come(node, &root);
    assert_false(dp_catchup_frees_trainer(node));
    standing->state = DP_TRAINER_SET;
    standing->applied = node->ledger.round;
    kit_close(world);
}

/* It is told of no more: nothing of it has come, and the wait doubles with each that is dropped. */
static void a_state_that_no_member_tells_of_any_more_gives_way_to_one_that_is_told(void **state)
{
    kit_world *world;
    dp_node *node = begin(&world);
    dp_catchup *catchup = node->catchup;
    const uint64_t round = node->ledger.round;
    const dp_hash older = {{1, 1}};
    const dp_hash newer = {{2, 2}};

    (void)state;
    certify(node, round - 1, &older);
    certify(node, round, &newer);
    node->standing.applied = round - 2;
    dp_member *member = tells(node, 1, round - 1, &older);
    dp_catchup_state(node);
    assert_true(dp_hash_equal(&catchup->state_root, &older));
    (void)tells(node, 2, round, &newer);
    catchup->hasty = 1;
    node->now.us += 500 * DP_MS;
    dp_catchup_state_tick(node);
    assert_true(dp_hash_equal(&catchup->state_root, &older)); /* The first tells of it still. */
    member->summary.saved_root = newer;
    member->summary.saved_round = round;
    node->now.us--;
    dp_catchup_state_tick(node);
    assert_true(dp_hash_equal(&catchup->state_root, &older));
    node->now.us++;
    dp_catchup_state_tick(node);
    assert_true(dp_hash_equal(&catchup->state_root, &newer));
    assert_int_equal(catchup->hasty, 2);
    assert_false(dp_picker_wants(node->picker, &older));
    assert_true(dp_picker_wants(node->picker, &newer));
    node->standing.applied = round;
    kit_close(world);
}

/* The wait for a missing update begins when the state is chosen, not when an update was missing
 * before. */
static void a_trainer_that_takes_a_state_in_place_of_updates_is_stuck_from_then_on(void **state)
{
    kit_world *world;
    dp_node *node = begin(&world);
    const uint64_t round = node->ledger.round;
    const dp_hash root = {{1, 1}};

    (void)state;
    certify(node, round, &root);
    lose_updates(node, round - 6);
    tells(node, 1, round, &root)->summary.saved_bytes = 1;
    node->standing.applied = round - 6;
    node->standing.applying = false;
    node->catchup->stuck_at = (dp_time){5};
    dp_train_replay(node);
    assert_true(node->catchup->wants_state);
    assert_int_equal(node->catchup->stuck_at.us, node->now.us);
    node->standing.applied = round;
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_several_certified_states_the_newest_decided_one_is_fetched),
        cmocka_unit_test(a_state_that_is_here_in_part_goes_before_a_newer_one),
        cmocka_unit_test(a_node_with_a_part_of_a_state_waits_a_moment_before_it_takes_another),
        cmocka_unit_test(a_certified_part_is_asked_of_all_even_if_no_member_tells_of_it),
        cmocka_unit_test(a_node_with_all_updates_needs_no_state_unless_a_member_gives_one),
        cmocka_unit_test(a_state_is_preferred_if_it_is_less_to_fetch_than_five_rounds_or_more),
        cmocka_unit_test(a_state_that_did_not_come_is_not_preferred_for_a_minute),
        cmocka_unit_test(a_state_that_does_not_come_gives_way_to_replay),
        cmocka_unit_test(a_state_is_waited_for_while_it_comes_or_replay_leads_nowhere),
        cmocka_unit_test(the_updates_after_a_wanted_state_are_fetched_before_it),
        cmocka_unit_test(a_state_that_nothing_fetches_any_more_is_not_waited_for),
        cmocka_unit_test(a_chosen_state_is_told_and_its_wait_begins),
        cmocka_unit_test(a_chosen_state_that_is_here_already_is_kept_at_once),
        cmocka_unit_test(a_state_frees_a_trainer_that_waits_for_a_missing_update_before_it),
        cmocka_unit_test(a_state_that_no_member_tells_of_any_more_gives_way_to_one_that_is_told),
        cmocka_unit_test(a_trainer_that_takes_a_state_in_place_of_updates_is_stuck_from_then_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
