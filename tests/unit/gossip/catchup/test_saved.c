/* Saved states: the one that is remembered and announced, and those that are dropped. */
#include "gossip/catchup/chain.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "tests/unit/gossip/kit/node_kit.h"

static dp_hash root_of(uint64_t round)
{
    return (dp_hash){{(uint8_t)round, 3}};
}

static kit_world *without_states(void)
{
    kit_world *world = kit_open(1);

    memset(world->nodes[0].node->saved, 0, sizeof *world->nodes[0].node->saved);
    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&world->nodes[0].node->out, world->actions);
    return world;
}

static void add(dp_node *node, uint64_t round, bool fetched)
{
    const dp_hash root = root_of(round);

    dp_node_hold(node, &root, 10 * round);
    dp_saved_add(node, round, &root, 10 * round, fetched);
}

static const dp_saved *find(const dp_node *node, uint64_t round)
{
    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        if (node->saved->at[i].has && node->saved->at[i].round == round) {
            return &node->saved->at[i];
        }
    }
    return NULL;
}

static void a_state_is_remembered_in_place_of_the_oldest(void **state)
{
    kit_world *world = without_states();
    dp_node *node = world->nodes[0].node;

    (void)state;
    for (uint64_t i = 0; i < DP_SAVED_MAX; i++) {
        node->changed = false;
        add(node, 20 - i, true);
        assert_true(node->changed);
        const dp_saved *saved = find(node, 20 - i);
        assert_non_null(saved);
        assert_true(saved->fetched && !saved->bad && saved->bytes == 10 * (20 - i));
        assert_int_equal(saved->since.us, node->now.us);
    }
    assert_int_equal(dp_saved_newest(node), 20);
    assert_int_equal(dp_saved_own(node), 0);
    assert_int_equal(world->actions->count, 0);
    add(node, 30, false);
    const uint64_t oldest = 20 - (DP_SAVED_MAX - 1);
    assert_null(find(node, oldest));
    for (uint64_t i = 0; i + 1 < DP_SAVED_MAX; i++) {
        assert_non_null(find(node, 20 - i));
    }
    const dp_hash gone = root_of(oldest);
    assert_false(dp_node_holds(node, &gone));
    const dp_action *drop = kit_find(world->actions, DP_DO_OBJECT_DROP);
    assert_non_null(drop);
    assert_true(dp_hash_equal(&drop->u.keep.root, &gone) && drop->u.keep.use == DP_USE_STATE);
    assert_int_equal(drop->u.keep.round, oldest);
    assert_int_equal(dp_saved_newest(node), 30);
    assert_int_equal(dp_saved_own(node), 30);
    kit_close(world);
}

/* First fetched, then made here: the fetched one is dropped, the driver owns the other. */
static void the_state_of_one_round_is_remembered_once(void **state)
{
    kit_world *world = without_states();
    dp_node *node = world->nodes[0].node;
    const dp_hash root = root_of(5);

    (void)state;
    add(node, 5, true);
    dp_saved_add(node, 5, &root, 50, true); /* The same again. */
    assert_int_equal(world->actions->count, 0);
    dp_saved_add(node, 5, &root, 50, false);
    assert_int_equal(world->actions->count, 1);
    assert_false(find(node, 5)->fetched);
    assert_int_equal(dp_saved_own(node), 5);
    dp_saved_add(node, 5, &root, 50, false);
    assert_int_equal(world->actions->count, 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        n += node->saved->at[i].has ? 1 : 0;
    }
    assert_int_equal(n, 1);
    kit_close(world);
}

static void fetched_states_before_an_own_one_are_let_go_but_not_the_one_that_is_loaded(void **state)
{
    kit_world *world = without_states();
    dp_node *node = world->nodes[0].node;
    const dp_hash loading = root_of(4);

    (void)state;
    add(node, 3, true);
    add(node, 4, true);
    assert_true(DP_SAVED_MAX >= 2);
    dp_saved_drop_before(node, 3, NULL);
    assert_non_null(find(node, 3));
    dp_saved_drop_before(node, 5, &loading);
    assert_null(find(node, 3));
    assert_non_null(find(node, 4));
    dp_saved_drop_before(node, 5, NULL);
    assert_null(find(node, 4));
    add(node, 2, false);
    dp_saved_drop_before(node, 9, NULL);
    assert_non_null(find(node, 2));
    kit_close(world);
}

static void a_state_that_cannot_be_read_or_loaded_is_told_of_no_more(void **state)
{
    kit_world *world = without_states();
    dp_node *node = world->nodes[0].node;
    const dp_hash fetched = root_of(6);
    const dp_hash own = root_of(7);

    (void)state;
    add(node, 6, true);
    add(node, 7, false);
    assert_int_equal(dp_saved_told(node)->round, 7);
    dp_saved_lost(node, &fetched);
    assert_null(find(node, 6));
    assert_false(dp_node_holds(node, &fetched));
    dp_saved_lost(node, &own);
    assert_true(find(node, 7)->bad);
    assert_int_equal(dp_saved_newest(node), 0);
    assert_int_equal(dp_saved_own(node), 0);
    assert_null(dp_saved_told(node));
    assert_null(dp_saved_proven(node));
    add(node, 8, true);
    const dp_hash other = root_of(8);
    dp_saved_mark_bad(node, &own);
    assert_false(find(node, 8)->bad);
    dp_saved_mark_bad(node, &other);
    assert_true(find(node, 8)->bad);
    kit_close(world);
}

static void the_newest_is_told_of_and_after_a_while_the_newest_that_is_proven(void **state)
{
    kit_world *world = without_states();
    dp_node *node = world->nodes[0].node;

    (void)state;
    node->ledger.round = 9;
    memset(node->chain->history, 0, sizeof node->chain->history[0]);
    for (uint64_t round = 8; round <= 9; round++) {
        node->chain->history[round % DP_HISTORY_ROUNDS].round = round;
        node->chain->history[round % DP_HISTORY_ROUNDS].proven = round == 8;
    }
    add(node, 9, false);
    add(node, 8, false);
    assert_int_equal(dp_saved_told(node)->round, 9);
    assert_int_equal(dp_saved_proven(node)->round, 8);
    node->now.us += DP_STATE_PATIENCE_US - 1;
    assert_int_equal(dp_saved_told(node)->round, 9);
    node->now.us += 1;
    assert_int_equal(dp_saved_told(node)->round, 8);
    node->chain->history[9 % DP_HISTORY_ROUNDS].proven = true;
    assert_int_equal(dp_saved_proven(node)->round, 9);
    node->chain->history[8 % DP_HISTORY_ROUNDS].proven = false;
    node->chain->history[9 % DP_HISTORY_ROUNDS].proven = false;
    assert_int_equal(dp_saved_proven(node)->round, 9);
    node->chain->history[8 % DP_HISTORY_ROUNDS].round = 0; /* Of long ago: the chain went on. */
    assert_int_equal(dp_saved_proven(node)->round, 8);
    node->now.us -= DP_STATE_PATIENCE_US;
    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        node->saved->at[i].since = (dp_time){0}; /* Of an earlier life. */
    }
    assert_int_equal(dp_saved_told(node)->round, 8);
    node->ledger.round = 0;
    kit_close(world);
}

static void a_state_is_certified_by_the_digest_and_the_root_of_its_round(void **state)
{
    kit_world *world = without_states();
    dp_node *node = world->nodes[0].node;
    dp_history_row *row = &node->chain->history[5 % DP_HISTORY_ROUNDS];
    const dp_hash tensor = {{9}};
    const dp_hash other = {{8}};
    bool known = true;

    (void)state;
    row->round = 5;
    row->digest = (dp_hash){{1}};
    row->certified = false;
    row->root = dp_state_root(5, &tensor, &row->digest);
    assert_false(dp_saved_is_certified(node, 5, &tensor, &known) || known);
    row->certified = true;
    assert_true(dp_saved_is_certified(node, 5, &tensor, &known) && known);
    assert_false(dp_saved_is_certified(node, 5, &other, &known));
    assert_true(known);
    assert_false(dp_saved_is_certified(node, 6, &tensor, &known) || known);
    row->round = 0;
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_is_remembered_in_place_of_the_oldest),
        cmocka_unit_test(the_state_of_one_round_is_remembered_once),
        cmocka_unit_test(
            fetched_states_before_an_own_one_are_let_go_but_not_the_one_that_is_loaded),
        cmocka_unit_test(a_state_that_cannot_be_read_or_loaded_is_told_of_no_more),
        cmocka_unit_test(the_newest_is_told_of_and_after_a_while_the_newest_that_is_proven),
        cmocka_unit_test(a_state_is_certified_by_the_digest_and_the_root_of_its_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
