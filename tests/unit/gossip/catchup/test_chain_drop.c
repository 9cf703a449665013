/* Which blobs of decided rounds are let go, and when: the history of a chain is set here. */
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { NEWEST = 60, OLDEST = 30, ITEM = 100 };

static dp_history_item items[DP_HISTORY_ROUNDS][2 * DP_DROPS_PER_TICK];

static dp_hash root_of(uint64_t round, uint32_t k)
{
    return (dp_hash){{(uint8_t)round, (uint8_t)k, 200}};
}

/* A chain of which the rounds from OLDEST to NEWEST are known, each with n items that are here. */
static kit_world *begin(uint32_t n)
{
    kit_world *world = kit_together(1);
    dp_node *node = world->nodes[0].node;

    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    node->ledger.round = NEWEST;
    for (uint32_t i = 0; i < DP_HISTORY_ROUNDS; i++) {
        dp_history_row *row = &node->chain->history[i];
        const bool known = i >= OLDEST && i <= NEWEST;
        *row = (dp_history_row){.items = items[i], .round = known ? i : 0, .n = known ? n : 0};
        for (uint32_t k = 0; k < n && known; k++) {
            items[i][k] = (dp_history_item){.root = root_of(i, k), .bytes = ITEM};
            dp_node_hold(node, &items[i][k].root, ITEM);
        }
    }
    memset(node->saved, 0, sizeof *node->saved);
    return world;
}

static uint32_t drops(const kit_world *world)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < world->actions->count; i++) {
        n += world->actions->items[i].type == DP_DO_OBJECT_DROP;
    }
    return n;
}

/* Somebody names it as its blob; it is not for that to let it go. */
static void data_of_the_run_and_states_are_never_let_go_as_blobs(void **state)
{
    kit_world *world = begin(1);
    dp_node *node = world->nodes[0].node;
    const dp_hash root = {{77}};
    const dp_manifest manifest = node->manifest;

    (void)state;
    for (uint32_t what = 0; what < 7; what++) {
        dp_node_hold(node, &root, 8);
        if (what == 0) {
            node->manifest.shards[1].root = root;
            node->manifest.n_shards = 2;
        } else if (what == 1) {
            node->manifest.tokenizer = root;
        } else if (what == 2) {
            node->manifest.base = root;
        } else if (what == 3) {
            node->catchup->state_root = root;
            node->catchup->wants_state = true;
        } else if (what == 4) {
            node->saved->at[DP_SAVED_MAX - 1].root = root;
            node->saved->at[DP_SAVED_MAX - 1].has = true;
        } else if (what == 5) { /* A state that is no longer wanted, and a place without one. */
            node->catchup->state_root = root;
            node->saved->at[0].root = root;
        }
        assert_true(dp_chain_let_go(node, &root, 5));
        assert_int_equal(dp_node_holds(node, &root), what < 5);
        node->manifest = manifest;
        node->catchup->wants_state = false;
        memset(node->saved, 0, sizeof *node->saved);
    }
    kit_close(world);
}

static void an_object_that_a_kept_round_names_is_needed(void **state)
{
    kit_world *world = begin(2);
    dp_node *node = world->nodes[0].node;

    (void)state;
    for (uint64_t round = OLDEST; round <= NEWEST; round += 15) {
        const dp_hash root = root_of(round, 1);
        dp_history_row *row = dp_chain_row(node, round);
        dp_node_hold(node, &root, ITEM);
        assert_true(dp_chain_let_go(node, &root, round));
        assert_true(dp_node_holds(node, &root));
        row->n = 1; /* It is not in it. */
        assert_true(dp_chain_let_go(node, &root, round));
        assert_false(dp_node_holds(node, &root));
        row->n = 2;
        dp_node_hold(node, &root, ITEM);
        row->dropped = true;
        assert_true(dp_chain_let_go(node, &root, round));
        assert_false(dp_node_holds(node, &root));
        dp_node_hold(node, &root, ITEM);
        row->dropped = false;
        row->round = 0;
        assert_true(dp_chain_let_go(node, &root, round));
        assert_false(dp_node_holds(node, &root));
    }
    kit_close(world);
}

static void a_round_is_let_go_once_and_one_of_many_blobs_by_and_by(void **state)
{
    kit_world *world = begin(DP_LISTED_DEFAULT + 1);
    dp_node *node = world->nodes[0].node;
    dp_history_row *small = dp_chain_row(node, OLDEST);
    dp_history_row *large = dp_chain_row(node, OLDEST + 1);

    (void)state;
    small->n = DP_LISTED_DEFAULT;
    dp_chain_drop_row(node, small);
    assert_true(small->dropped && !small->rest);
    assert_int_equal(drops(world), DP_LISTED_DEFAULT);
    assert_int_equal(kit_find(world->actions, DP_DO_OBJECT_DROP)->u.keep.round, OLDEST);
    const dp_hash again = root_of(OLDEST, 0);
    dp_node_hold(node, &again, ITEM);
    dp_chain_drop_row(node, small); /* It is another's by now. */
    assert_true(dp_node_holds(node, &again));
    dp_history_row empty = {.n = 0};
    dp_chain_drop_row(node, &empty);
    assert_false(empty.dropped);

    dp_out_begin(&node->out, world->actions);
    dp_chain_drop_row(node, large);
    assert_true(large->dropped && large->rest);
    assert_int_equal(drops(world), 0);
    assert_int_equal(dp_chain_drop_rest(node), DP_DROPS_PER_TICK - DP_LISTED_DEFAULT - 1);
    assert_int_equal(drops(world), DP_LISTED_DEFAULT + 1);
    assert_false(large->rest);
    assert_int_equal(dp_chain_drop_rest(node), DP_DROPS_PER_TICK);
    kit_close(world);
}

static void
no_more_blobs_are_let_go_at_a_time_than_a_tick_takes_or_a_step_has_room_for(void **state)
{
    enum { MANY = DP_DROPS_PER_TICK + 10 };
    kit_world *world = begin(1);
    dp_node *node = world->nodes[0].node;
    dp_history_row *row = dp_chain_row(node, NEWEST);

    (void)state;
    row->n = MANY;
    for (uint32_t k = 0; k < MANY; k++) {
        row->items[k].root = root_of(NEWEST, k);
        dp_node_hold(node, &row->items[k].root, ITEM);
    }
    dp_chain_drop_row(node, row);
    assert_int_equal(dp_chain_drop_rest(node), 0);
    assert_int_equal(drops(world), DP_DROPS_PER_TICK);
    assert_true(row->rest);
    const dp_hash last = root_of(NEWEST, MANY - 1);
    const dp_hash first = root_of(NEWEST, 0);
    assert_true(dp_node_holds(node, &last) && !dp_node_holds(node, &first));
    dp_out_begin(&node->out, world->actions);
    node->out.sends_max = 0; /* There is no room at all. */
    assert_int_equal(dp_chain_drop_rest(node), 0);
    assert_true(row->rest && dp_node_holds(node, &last));
    node->out.sends_max = DP_OUT_SENDS_MAX;
    assert_int_equal(dp_chain_drop_rest(node), DP_DROPS_PER_TICK - 10);
    assert_int_equal(drops(world), 10);
    assert_false(row->rest || dp_node_holds(node, &last));
    kit_close(world);
}

/* The first round that is kept, found by what is left when nothing more is let go. */
static uint64_t first_kept(kit_world *world)
{
    dp_node *node = world->nodes[0].node;
    uint64_t first = OLDEST;

    for (uint32_t turn = 0; turn < 2 * DP_HISTORY_ROUNDS; turn++) {
        dp_out_begin(&node->out, world->actions);
        dp_chain_drop_old(node);
        assert_in_range(drops(world), 0, 2); /* Two rounds at a time, of one blob each. */
    }
    while (first < NEWEST && dp_chain_row(node, first)->dropped) {
        first++;
    }
    for (uint64_t round = OLDEST; round <= NEWEST; round++) {
        const dp_hash root = root_of(round, 0);
        assert_int_equal(dp_node_holds(node, &root), round >= first);
        assert_int_equal(dp_chain_row(node, round)->dropped, round < first);
    }
    return first;
}

/* Eight rounds before it, and as many more as come to a quarter of a state. */
static void rounds_are_kept_from_before_the_newest_proven_checkpoint_on(void **state)
{
    const struct {
        uint64_t saved;
        uint64_t tensor_bytes;
        bool fetched;
        uint64_t first;
    } cases[] = {
        {58, 4, false, 51},             /* Rounds 51 to 58 are eight. */
        {58, 4 * 11 * ITEM, false, 50}, /* Those from 50 on are more than a quarter. */
        {58, 4 * 11 * ITEM - 4, false, 51},
        {58, 4 * 20 * ITEM, false, 41},
        {NEWEST, 4, false, 53},
        {40, 4, false, 33},
        {58, 4, true, OLDEST}, /* The next life does not find it. */
        {0, 4, false, OLDEST},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kit_world *world = begin(1);
        dp_node *node = world->nodes[0].node;
        node->standing.tensor_bytes = cases[i].tensor_bytes;
        if (cases[i].saved > 0) {
            dp_chain_row(node, cases[i].saved)->proven = true;
            node->saved->at[0] = (dp_saved){
                .has = true, .round = cases[i].saved, .root = {{99}}, .fetched = cases[i].fetched};
        }
        assert_int_equal(first_kept(world), cases[i].first);
        memset(node->saved, 0, sizeof *node->saved);
        kit_close(world);
    }
}

static void what_is_fetched_for_rounds_that_a_state_holds_is_given_up(void **state)
{
    kit_world *world = begin(2);
    dp_node *node = world->nodes[0].node;

    (void)state;
    for (uint64_t round = NEWEST - 1; round <= NEWEST; round++) {
        const dp_hash root = root_of(round, 1);
        dp_node_unhold(node, &root);
        assert_int_equal(dp_picker_want(node->picker, node->now, &root, ITEM, DP_USE_BLOB,
                                        DP_PRIORITY_ROUND, &node->out),
                         DP_OK);
    }
    dp_chain_cancel(node, NEWEST - 1);
    const dp_hash before = root_of(NEWEST - 1, 1);
    const dp_hash last = root_of(NEWEST, 1);
    const dp_hash here = root_of(NEWEST - 1, 0);
    assert_false(dp_picker_wants(node->picker, &before));
    assert_true(dp_picker_wants(node->picker, &last) && dp_node_holds(node, &here));
    dp_chain_cancel(node, NEWEST);
    assert_false(dp_picker_wants(node->picker, &last));
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_of_the_run_and_states_are_never_let_go_as_blobs),
        cmocka_unit_test(an_object_that_a_kept_round_names_is_needed),
        cmocka_unit_test(a_round_is_let_go_once_and_one_of_many_blobs_by_and_by),
        cmocka_unit_test(
            no_more_blobs_are_let_go_at_a_time_than_a_tick_takes_or_a_step_has_room_for),
        cmocka_unit_test(rounds_are_kept_from_before_the_newest_proven_checkpoint_on),
        cmocka_unit_test(what_is_fetched_for_rounds_that_a_state_holds_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
