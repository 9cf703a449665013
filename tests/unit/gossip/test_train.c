/* What a trainer learns from: fetched whole before it is opened. */
#include "gossip/node_internal.h"
#include "tests/unit/gossip/node_kit.h"

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
    assert_int_equal(dp_spread_count(node->spread), DP_DATA_AT_ONCE);
    for (uint32_t i = 0; i < SHARDS; i++) {
        dp_event event = {.type = DP_EV_OBJECT};
        event.u.object.root = world->manifest.shards[i].root;
        event.u.object.size = 8;
        assert_true(dp_spread_wants(node->spread, &event.u.object.root));
        kit_event_in(world, 1, &event);
        assert_int_equal(kit_find(world->actions, DP_DO_TRAINER_OPEN) != NULL, i == SHARDS - 1);
        kit_drain(world);
        assert_true(dp_spread_count(node->spread) <= DP_DATA_AT_ONCE);
    }
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
    assert_int_equal(dp_spread_count(node->spread), 0);
    kit_event_in(world, 0, &lost);
    assert_false(dp_node_holds(node, &lost.u.object.root));
    assert_true(dp_spread_wants(node->spread, &lost.u.object.root));
    kit_event_in(world, 0, &lost); /* Told twice, it is wanted once. */
    assert_int_equal(dp_spread_count(node->spread), 1);
    kit_close(world);
}

static void who_was_emptied_keeps_what_it_does_next(void **state)
{
    dp_train *train = calloc(1, sizeof *train);
    dp_ring_row row = {.round = 0};

    (void)state;
    assert_non_null(train);
    for (uint64_t round = 100; round < 140; round++) {
        row.round = round;
        row.gap = round - 99;
        const bool empties = row.gap == 17 || row.gap == 34;
        assert_int_equal(dp_train_fade(train, &row), empties ? 0 : 55109);
    }
    free(train);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_shards_are_fetched_at_a_time_and_all_before_the_trainer_opens),
        cmocka_unit_test(a_shard_that_was_lost_is_wanted_again),
        cmocka_unit_test(who_was_emptied_keeps_what_it_does_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
