/* Where a trainer starts again when its states are not the certified ones. */
#include "tests/unit/gossip/node_kit.h"

static kit_world *three(void)
{
    kit_world *world = kit_open(3);
    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    return world;
}

/* Run until node 1 has diverged so often. */
static void until_diverged(kit_world *world, uint64_t times)
{
    for (uint32_t i = 0; i < 400 && kit_look(world, 1).diverged < times; i++) {
        kit_run_ms(world, 50);
    }
    assert_int_equal(kit_look(world, 1).diverged, times);
}

static void a_trainer_that_errs_again_and_again_rests_and_is_tried_later(void **state)
{
    kit_world *world = three();

    (void)state;
    world->nodes[1].errs = 3;
    until_diverged(world, 3);
    const uint64_t round = kit_look(world, 0).round;
    kit_run_ms(world, 10 * 1000);
    assert_true(kit_look(world, 0).round > round + 3); /* Rounds go on without it, ... */
    assert_int_equal(kit_look(world, 0).listed_last, 2);
    assert_int_equal(kit_look(world, 1).diverged, 3); /* ... and it tries nothing. */
    kit_run_ms(world, 55 * 1000);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    assert_int_equal(kit_look(world, 1).diverged, 3);
    kit_close(world);
}

static void one_wrong_state_is_loaded_again_at_once_and_forgiven_in_time(void **state)
{
    kit_world *world = three();

    (void)state;
    for (uint64_t times = 1; times <= 4; times++) { /* Never three in a row. */
        world->nodes[1].errs = 1;
        until_diverged(world, times);
        kit_run_ms(world, 12 * 1000);
        assert_int_equal(kit_look(world, 0).listed_last, 3);
    }
    kit_close(world);
}

/* From the seed it would come to the same wrong state; what others hold is certified. */
static void who_errs_in_the_first_rounds_takes_the_state_of_another(void **state)
{
    kit_world *world = kit_open(3);

    (void)state;
    world->nodes[2].saves_nothing = true;
    kit_link_all(world);
    kit_run_ms(world, 2000);
    const uint32_t before = world->states_fetched;
    world->nodes[2].errs = 1;
    for (uint32_t i = 0; i < 200 && kit_look(world, 2).diverged == 0; i++) {
        kit_run_ms(world, 50);
    }
    assert_int_equal(kit_look(world, 2).diverged, 1);
    assert_true(kit_look(world, 0).round < 8);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    assert_true(world->states_fetched > before);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trainer_that_errs_again_and_again_rests_and_is_tried_later),
        cmocka_unit_test(one_wrong_state_is_loaded_again_at_once_and_forgiven_in_time),
        cmocka_unit_test(who_errs_in_the_first_rounds_takes_the_state_of_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
