/* A FORK between its arrival and the start from it: what it waits for, what is written, and which
 * of them a node keeps. */
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "tests/unit/gossip/kit/node_kit.h"

static dp_node *begin(kit_world *world)
{
    dp_node *node = world->nodes[0].node;

    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    return node;
}

/* One that goes on from the newest record, and is to be written. */
static dp_fork_record *to_write(dp_node *node)
{
    dp_fork_record *next = &node->forks->next;
    const dp_head *head = dp_fork_head(node, node->ledger.slot);

    assert_non_null(head);
    *next = (dp_fork_record){.has = true,
                             .id = {{3}},
                             .slot = node->ledger.slot + 1,
                             .prev = head->hash,
                             .size = 5,
                             .bytes = {1, 2, 3, 4, 5}};
    return next;
}

static void a_fork_is_written_with_its_slot_its_round_and_an_empty_certificate(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    const dp_fork_record *next = to_write(node);
    const dp_head *first = dp_fork_head(node, 0); /* The run begins with its own name. */

    (void)state;
    assert_true(first != NULL && dp_hash_equal(&first->hash, &node->run));
    assert_int_equal(first->round, 0);
    assert_null(dp_fork_head(node, node->ledger.slot + 1));
    dp_fork_tick(node);
    const dp_action *store = kit_find(world->actions, DP_DO_STORE);
    assert_non_null(store);
    assert_int_equal(store->u.store.kind, DP_STORE_FORK);
    assert_int_equal(store->u.store.op, node->forks->op);
    assert_int_equal(store->u.store.slot, next->slot);
    assert_int_equal(store->u.store.round, node->ledger.round);
    assert_int_equal(store->u.store.bytes.size, 5);
    assert_memory_equal(store->u.store.bytes.data, next->bytes, 5);
    assert_int_equal(store->u.store.cert.size, 5);
    assert_memory_equal(store->u.store.cert.data, ((const uint8_t[5]){0}), 5);
    assert_int_equal(node->forks->stored_at.us, node->now.us);
    dp_fork_tick(node);
    assert_int_equal(world->actions->count, 1);
    kit_close(world);
}

static void a_fork_waits_for_the_record_that_is_being_written(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);

    (void)state;
    (void)to_write(node);
    node->chain->op = 9;
    dp_fork_tick(node);
    assert_int_equal(world->actions->count, 0);
    assert_true(node->forks->next.has);
    node->chain->op = 0;
    dp_fork_tick(node);
    assert_int_equal(world->actions->count, 1);
    kit_close(world);
}

static void a_fork_after_a_record_that_this_chain_lacks_is_not_written(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);

    (void)state;
    to_write(node)->prev.bytes[0] ^= 1;
    dp_fork_tick(node);
    assert_false(node->forks->next.has);
    to_write(node)->slot = node->ledger.slot + 2;
    dp_fork_tick(node);
    assert_false(node->forks->next.has);
    assert_int_equal(world->actions->count, 0);
    kit_close(world);
}

static void a_fork_that_could_not_be_written_is_written_again_after_a_while(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    dp_forks *forks = node->forks;

    (void)state;
    (void)to_write(node);
    dp_fork_tick(node);
    const uint32_t op = forks->op;
    assert_false(dp_fork_stored(node, op + 1, DP_OK));
    assert_int_equal(forks->op, op);
    assert_true(dp_fork_stored(node, op, DP_NOSPACE));
    assert_true(forks->failed && forks->op == 0);
    assert_false(dp_fork_stored(node, 0, DP_OK)); /* None is under way. */
    forks->stored_at = (dp_time){node->now.us - DP_REPEAT_US + 1};
    dp_fork_tick(node);
    assert_int_equal(world->actions->count, 1);
    forks->stored_at.us--;
    dp_fork_tick(node);
    assert_int_equal(world->actions->count, 2);
    assert_true(forks->op != 0 && !forks->failed);
    assert_null(kit_find(world->actions, DP_DO_NOTE));
    assert_false(node->reopening);
    kit_close(world);
}

static void a_written_fork_tells_how_many_slots_and_rounds_it_takes_back(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    dp_forks *forks = node->forks;
    const uint64_t slot = node->ledger.slot;

    (void)state;
    dp_fork_record *next = to_write(node);
    next->slot = slot - 1;
    next->prev = dp_fork_head(node, slot - 2)->hash;
    const uint64_t round = dp_fork_head(node, slot - 2)->round;
    assert_true(round < node->ledger.round);
    dp_fork_tick(node);
    assert_int_equal(kit_find(world->actions, DP_DO_STORE)->u.store.round, round);
    assert_true(dp_fork_stored(node, forks->op, DP_OK));
    const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
    assert_non_null(note);
    assert_int_equal(note->u.note.code, DP_NOTE_ADOPTED);
    assert_int_equal(note->u.note.round, round);
    assert_int_equal(note->u.note.a, 2);
    assert_int_equal(note->u.note.b, node->ledger.round - round);
    assert_false(forks->failed);
    assert_true(node->reopening);
    kit_close(world);
}

/* This node has no checkpoint of the newest round. */
static void without_newest_checkpoint(dp_node *node)
{
    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        node->saved->at[i].has = false;
    }
}

static void a_fork_of_this_node_waits_for_the_checkpoint_of_the_newest_state(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    dp_forks *forks = node->forks;

    (void)state;
    without_newest_checkpoint(node);
    assert_int_equal(node->standing.applied, node->ledger.round);
    dp_fork_save_first(node);
    assert_int_equal(world->actions->count, 1);
    const dp_action *save = kit_find(world->actions, DP_DO_SAVE);
    assert_non_null(save);
    assert_true(save->u.save.must);
    assert_int_equal(save->u.save.round, node->ledger.round);
    assert_int_equal(save->u.save.slot, dp_chain_row(node, node->ledger.round)->slot);
    assert_true(dp_hash_equal(&save->u.save.state_root, &node->standing.state_root));
    assert_true(dp_hash_equal(&save->u.save.tensor_root, &node->standing.tensor_root));
    assert_true(forks->saving);
    assert_int_equal(forks->asked_at.us, node->now.us);
    (void)to_write(node);
    node->now.us += DP_FORK_SAVE_US; /* Not longer than that. */
    dp_fork_tick(node);
    assert_int_equal(world->actions->count, 1);
    assert_true(forks->next.has);
    dp_saved_add(node, node->ledger.round, &node->standing.tensor_root, 8, false);
    dp_fork_tick(node);
    assert_non_null(kit_find(world->actions, DP_DO_STORE));
    assert_false(forks->saving);
    kit_close(world);
}

static void a_fork_whose_checkpoint_cannot_be_saved_is_given_up_with_a_word(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);

    (void)state;
    without_newest_checkpoint(node);
    dp_fork_save_first(node);
    const uint64_t slot = to_write(node)->slot;
    node->now.us += DP_FORK_SAVE_US + 1;
    dp_fork_tick(node);
    assert_false(node->forks->next.has);
    const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
    assert_non_null(note);
    assert_int_equal(note->u.note.code, DP_NOTE_REJECTED);
    assert_int_equal(note->u.note.a, slot);
    assert_null(kit_find(world->actions, DP_DO_STORE));
    kit_close(world);
}

static void
nothing_is_saved_first_before_the_first_round_or_with_a_checkpoint_of_the_newest(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    const uint64_t round = node->ledger.round;

    (void)state;
    without_newest_checkpoint(node);
    node->ledger.round = 0;
    dp_fork_save_first(node);
    node->ledger.round = round;
    dp_saved_add(node, round, &node->standing.tensor_root, 8, false);
    dp_fork_save_first(node);
    assert_int_equal(world->actions->count, 0);
    assert_false(node->forks->saving);
    kit_close(world);
}

static void the_oldest_fork_gives_way_when_more_are_applied_than_are_kept(void **state)
{
    static dp_record record;
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    dp_forks *forks = node->forks;
    const dp_hash hash = {{77}};

    (void)state;
    record.slot = node->ledger.slot;
    for (uint32_t i = 0; i <= DP_FORKS_KEPT; i++) {
        const uint8_t bytes[2] = {(uint8_t)i, 9};
        record.kind = DP_RECORD_ROUND;
        dp_fork_applied(node, &record, &hash, dp_view_of(bytes, sizeof bytes));
        assert_int_equal(forks->n, i);
        record.kind = DP_RECORD_FORK;
        dp_fork_applied(node, &record, &hash, dp_view_of(bytes, sizeof bytes));
    }
    assert_int_equal(forks->n, DP_FORKS_KEPT);
    for (uint32_t i = 0; i < DP_FORKS_KEPT; i++) {
        assert_int_equal(forks->own[i].bytes[0], i + 1);
        assert_int_equal(forks->own[i].size, 2);
        assert_int_equal(forks->own[i].slot, record.slot);
        assert_true(dp_hash_equal(&forks->own[i].id, &node->ledger.fork));
    }
    const dp_head *head = dp_fork_head(node, record.slot);
    assert_true(head != NULL && dp_hash_equal(&head->hash, &hash));
    assert_int_equal(head->round, node->ledger.round);
    assert_null(dp_fork_head(node, record.slot + 1));
    forks->n = 0;
    kit_close(world);
}

static void a_chain_is_elsewhere_if_it_is_one_that_was_left_or_another_that_was_met(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    const dp_hash left = {{1, 2, 3}};
    const dp_hash other = {{4, 5, 6}};

    (void)state;
    assert_int_equal(node->ledger.n_forks, 0);
    node->ledger.n_forks = 2;
    node->ledger.forks[0] = (dp_hash){{8}};
    node->ledger.forks[1] = left;
    node->forks->other.id = other;
    assert_true(dp_fork_elsewhere(node, dp_fork_tag(&left)));
    assert_true(dp_fork_elsewhere(node, dp_fork_tag(&node->ledger.forks[0])));
    assert_false(dp_fork_elsewhere(node, dp_fork_tag(&other))); /* None was met. */
    node->forks->other.has = true;
    assert_true(dp_fork_elsewhere(node, dp_fork_tag(&other)));
    assert_false(dp_fork_elsewhere(node, dp_fork_tag(&node->ledger.fork)));
    assert_false(dp_fork_elsewhere(node, dp_fork_tag(&other) + 1));
    node->ledger.n_forks = 0;
    node->forks->other.has = false;
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fork_is_written_with_its_slot_its_round_and_an_empty_certificate),
        cmocka_unit_test(a_fork_waits_for_the_record_that_is_being_written),
        cmocka_unit_test(a_fork_after_a_record_that_this_chain_lacks_is_not_written),
        cmocka_unit_test(a_fork_that_could_not_be_written_is_written_again_after_a_while),
        cmocka_unit_test(a_written_fork_tells_how_many_slots_and_rounds_it_takes_back),
        cmocka_unit_test(a_fork_of_this_node_waits_for_the_checkpoint_of_the_newest_state),
        cmocka_unit_test(a_fork_whose_checkpoint_cannot_be_saved_is_given_up_with_a_word),
        cmocka_unit_test(
            nothing_is_saved_first_before_the_first_round_or_with_a_checkpoint_of_the_newest),
        cmocka_unit_test(the_oldest_fork_gives_way_when_more_are_applied_than_are_kept),
        cmocka_unit_test(a_chain_is_elsewhere_if_it_is_one_that_was_left_or_another_that_was_met),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
