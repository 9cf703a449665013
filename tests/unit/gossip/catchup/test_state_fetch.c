/* A state that a node fetched is its own from then on: the next life starts from it (SAFETY G5). */
#include "tests/unit/gossip/kit/node_kit.h"

/* Node 2 was away for ten rounds. It has fetched a state of one of them, and no update of the
 * rounds after it. */
static kit_world *with_a_fetched_state(void)
{
    kit_world *world = kit_together(3);
    const uint64_t before = kit_look(world, 2).round;

    world->state_bytes = 40;
    kit_kill(world, 2);
    while (kit_look(world, 0).round < before + 12) {
        kit_run_ms(world, KIT_STEP_MS);
        const bool saves = kit_look(world, 0).round < before + 10;
        world->nodes[0].saves_nothing = world->nodes[1].saves_nothing = !saves;
    }
    kit_boot(world, 2);
    world->states_fetched = 0;
    world->nodes[0].mute_blobs = world->nodes[1].mute_blobs = true;
    kit_link_all(world);
    kit_run_ms(world, 1500);
    assert_int_equal(world->states_fetched, 1);
    assert_in_range(kit_look(world, 2).applied, before + 8, kit_look(world, 2).round - 1);
    return world;
}

static void a_fetched_state_is_a_checkpoint_before_the_rounds_after_it_are_applied(void **state)
{
    kit_world *world = with_a_fetched_state();
    const uint64_t round = kit_look(world, 2).applied;

    (void)state;
    assert_true(dp_saved_is_own(world->nodes[2].node, round));
    assert_int_equal(world->nodes[2].saved_round, round);
    kit_kill(world, 2);
    kit_boot(world, 2); /* It is linked to no node. */
    assert_int_equal(kit_look(world, 2).applied, round);
    assert_true(kit_look(world, 2).round > round);
    kit_close(world);
}

static void a_node_can_restart_by_an_own_checkpoint_and_the_updates_after_it(void **state)
{
    kit_world *world = with_a_fetched_state();
    dp_node *const node = world->nodes[2].node;
    const dp_saved_all before = *node->saved;

    (void)state;
    assert_false(dp_catchup_can_restart(node)); /* Updates are missing. */
    world->nodes[0].mute_blobs = world->nodes[1].mute_blobs = false;
    world->nodes[2].saves_nothing = true;
    kit_run_ms(world, 2000);
    assert_int_equal(kit_look(world, 2).applied, kit_look(world, 2).round);
    assert_true(dp_catchup_can_restart(node));
    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        node->saved->at[i].fetched = true;
    }
    assert_false(dp_catchup_can_restart(node));
    *node->saved = before;
    for (uint32_t i = 0; i < DP_SAVED_MAX; i++) {
        node->saved->at[i].bad = true;
    }
    assert_false(dp_catchup_can_restart(node));
    *node->saved = before;
    assert_true(dp_catchup_can_restart(node));
    kit_close(world);
}

/* One voter of three has lost its disk. The two others start again from theirs, one of them from a
 * state that it fetched. */
static void two_voters_of_three_certify_the_newest_state_by_their_disks_alone(void **state)
{
    kit_world *world = with_a_fetched_state();

    (void)state;
    world->nodes[0].mute_blobs = world->nodes[1].mute_blobs = false;
    world->nodes[2].saves_nothing = true;
    kit_run_ms(world, 2000);
    const uint64_t round = kit_look(world, 2).applied;
    assert_int_equal(round, kit_look(world, 0).round);
    for (uint32_t i = 0; i < 3; i++) {
        kit_kill(world, i);
    }
    kit_boot(world, 0);
    kit_boot(world, 2);
    world->nodes[0].mute_blobs = true;
    world->mute_states = true;
    kit_link(world, 0, 2);
    kit_drain(world);
    kit_run_ms(world, 2000);
    dp_hash certified;
    assert_int_equal(kit_look(world, 2).applied, round);
    assert_true(dp_chain_certified(world->nodes[0].node, round, &certified));
    world->nodes[0].mute_blobs = false;
    kit_run_ms(world, 4000);
    assert_true(kit_look(world, 0).round > round);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fetched_state_is_a_checkpoint_before_the_rounds_after_it_are_applied),
        cmocka_unit_test(a_node_can_restart_by_an_own_checkpoint_and_the_updates_after_it),
        cmocka_unit_test(two_voters_of_three_certify_the_newest_state_by_their_disks_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
