/* Fetching of the training data, which is whole before it is opened, and of the updates of a
 * decided round. */
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fetch.h"
#include "gossip/context/context.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { SHARDS = 9 };

/* A run of so many nodes, not linked yet; the first has all of its data. */
static kit_world *run_with_data(uint32_t n)
{
    kit_world *world = kit_open(n);
    dp_manifest *const m = &world->manifest;

    m->n_shards = SHARDS;
    for (uint32_t i = 0; i < SHARDS; i++) {
        m->shards[i] = (dp_manifest_shard){.bytes = 8, .tokens = 4};
        memset(m->shards[i].root.bytes, 100 + (int)i, DP_HASH_BYTES);
        kit_hold(&world->nodes[0], &m->shards[i].root);
    }
    for (uint32_t i = 0; i < n; i++) {
        kit_kill(world, i);
        world->nodes[i].theta = (dp_hash){{0}};
        kit_boot(world, i);
    }
    return world;
}

static void few_shards_are_fetched_at_a_time_and_all_before_the_trainer_opens(void **state)
{
    kit_world *world = run_with_data(2);
    dp_node *const node = world->nodes[1].node;

    (void)state;
    assert_int_equal(dp_picker_count(node->picker), DP_DATA_AT_ONCE);
    for (uint32_t i = 0; i < SHARDS; i++) {
        dp_event event = {.type = DP_EV_OBJECT};
        event.u.object.root = world->manifest.shards[i].root;
        event.u.object.size = 8;
        assert_true(dp_picker_wants(node->picker, &event.u.object.root));
        kit_event_in(world, 1, &event);
        assert_int_equal(kit_find(world->actions, DP_DO_TRAINER_OPEN) != NULL, i == SHARDS - 1);
        kit_drain(world);
        assert_true(dp_picker_count(node->picker) <= DP_DATA_AT_ONCE);
    }
    kit_close(world);
}

static void the_base_below_adapters_is_here_before_the_trainer_opens(void **state)
{
    kit_world *world = kit_open(2);
    dp_event event = {.type = DP_EV_OBJECT};

    (void)state;
    world->manifest.adapt_rank = 4;
    world->manifest.base_bytes = 8;
    memset(world->manifest.base.bytes, 77, DP_HASH_BYTES);
    kit_kill(world, 1);
    world->nodes[1].theta = (dp_hash){{0}};
    kit_boot(world, 1);
    assert_null(kit_find(world->actions, DP_DO_TRAINER_OPEN));
    event.u.object.root = world->manifest.base;
    event.u.object.size = 8;
    assert_true(dp_picker_wants(world->nodes[1].node->picker, &event.u.object.root));
    kit_event_in(world, 1, &event);
    assert_non_null(kit_find(world->actions, DP_DO_TRAINER_OPEN));
    kit_close(world);
}

static void a_shard_that_was_lost_is_wanted_again(void **state)
{
    kit_world *world = run_with_data(2);
    dp_node *const node = world->nodes[0].node;
    dp_event lost = {.type = DP_EV_OBJECT_LOST};
    dp_event down = {.type = DP_EV_TRAINER_DOWN};

    (void)state;
    lost.u.object.root = world->manifest.shards[5].root;
    kit_event_in(world, 0, &down);
    assert_int_equal(dp_picker_count(node->picker), 0);
    kit_event_in(world, 0, &lost);
    assert_false(dp_node_holds(node, &lost.u.object.root));
    assert_true(dp_picker_wants(node->picker, &lost.u.object.root));
    kit_event_in(world, 0, &lost); /* Told twice, it is wanted once. */
    assert_int_equal(dp_picker_count(node->picker), 1);
    kit_close(world);
}

enum { UPDATES = 100 };

/* A decided round of the second of two nodes that are not linked, none of whose updates it has. */
typedef struct decided {
    kit_world *world;
    dp_node *node;
    dp_history_item items[UPDATES];
    dp_history_row row;
} decided;

static decided *decided_of(uint32_t n)
{
    decided *d = calloc(1, sizeof *d);

    assert_non_null(d);
    d->world = kit_open(2);
    d->node = d->world->nodes[1].node;
    d->row = (dp_history_row){.round = d->node->ledger.round, .n = n, .items = d->items};
    for (uint32_t i = 0; i < n; i++) {
        d->items[i] = (dp_history_item){.peer = kit_peer(0), .bytes = 8};
        memset(d->items[i].root.bytes, 1 + (int)i, DP_HASH_BYTES);
    }
    dp_out_begin(&d->node->out, d->world->actions);
    return d;
}

static void decided_close(decided *d)
{
    kit_close(d->world);
    free(d);
}

static void a_round_is_here_when_the_last_of_its_updates_is(void **state)
{
    decided *d = decided_of(3);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(dp_train_fetch_row(d->node, &d->row));
        assert_true(dp_picker_wants(d->node->picker, &d->items[2].root));
        dp_node_hold(d->node, &d->items[i].root, 8);
    }
    assert_true(dp_train_fetch_row(d->node, &d->row));
    dp_node_unhold(d->node, &d->items[0].root); /* It is found missing, though it was here. */
    dp_picker_cancel(d->node->picker, d->node->now, &d->items[0].root, &d->node->out);
    assert_false(dp_train_fetch_row(d->node, &d->row));
    assert_true(dp_picker_wants(d->node->picker, &d->items[0].root));
    decided_close(d);
}

/* Its author, of whom alone it was wanted before the round was decided, may be gone. */
static void an_object_wanted_of_its_author_is_asked_of_all_without_more_room(void **state)
{
    decided *d = decided_of(UPDATES);
    dp_picker *picker = d->node->picker;
    const dp_hash *early = &d->items[90].root;

    (void)state;
    assert_int_equal(dp_picker_want(picker, d->node->now, early, 0, DP_USE_BLOB, DP_PRIORITY_ROUND,
                                    &d->node->out),
                     DP_OK);
    assert_false(dp_picker_asks_all(picker, early, DP_PRIORITY_ROUND));
    assert_false(dp_train_fetch_row(d->node, &d->row));
    assert_int_equal(dp_picker_count(picker), DP_WANTED_MAX);
    assert_true(dp_picker_asks_all(picker, early, DP_PRIORITY_ROUND));
    assert_true(dp_picker_asks_all(picker, &d->items[DP_WANTED_MAX - 2].root, DP_PRIORITY_ROUND));
    assert_false(dp_picker_wants(picker, &d->items[DP_WANTED_MAX - 1].root));
    decided_close(d);
}

static void a_round_that_was_let_go_is_not_fetched(void **state)
{
    decided *d = decided_of(3);

    (void)state;
    d->row.dropped = true;
    assert_false(dp_train_fetch_row(d->node, &d->row));
    assert_int_equal(dp_picker_count(d->node->picker), 0);
    decided_close(d);
}

static void the_first_free_place_is_taken(void **state)
{
    decided *d = decided_of(4);
    const dp_hash *next = &d->items[3].root;
    uint32_t place = 0;

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        dp_node_hold(d->node, &d->items[i].root, 8);
    }
    assert_true(dp_map_get(&d->node->held_map, &d->items[1].root, &place));
    dp_node_unhold(d->node, &d->items[1].root);
    dp_node_hold(d->node, next, 8);
    uint32_t again = 0;
    assert_true(dp_map_get(&d->node->held_map, next, &again));
    assert_int_equal(again, place);
    decided_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_shards_are_fetched_at_a_time_and_all_before_the_trainer_opens),
        cmocka_unit_test(the_base_below_adapters_is_here_before_the_trainer_opens),
        cmocka_unit_test(a_shard_that_was_lost_is_wanted_again),
        cmocka_unit_test(a_round_is_here_when_the_last_of_its_updates_is),
        cmocka_unit_test(an_object_wanted_of_its_author_is_asked_of_all_without_more_room),
        cmocka_unit_test(a_round_that_was_let_go_is_not_fetched),
        cmocka_unit_test(the_first_free_place_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
