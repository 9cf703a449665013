/* A node announces the time of its next wake (dp_node_wake). A tick before that time must find
 * nothing to do: otherwise the announced time was too late. */
#include "tests/unit/gossip/kit/node_kit.h"

static kit_world *five(void)
{
    kit_world *world = kit_together(5);

    kit_run_ms(world, 2000);
    world->early_ticks = true;
    return world;
}

static void in_rounds(void **state)
{
    kit_world *world = five();

    (void)state;
    kit_run_ms(world, 6000);
    kit_close(world);
}

static void without_a_majority(void **state)
{
    kit_world *world = five();

    (void)state;
    for (uint32_t a = 0; a < 2; a++) {
        for (uint32_t b = 2; b < 5; b++) {
            kit_cut(world, a, b);
        }
    }
    kit_cut(world, 2, 3);
    kit_cut(world, 2, 4);
    kit_run_ms(world, 10000);
    kit_link_all(world);
    kit_run_ms(world, 4000);
    kit_close(world);
}

static void after_deaths_and_returns(void **state)
{
    kit_world *world = five();

    (void)state;
    kit_kill(world, 4);
    kit_run_ms(world, 5000);
    kit_boot(world, 4);
    kit_link_all(world);
    kit_run_ms(world, 4000);
    world->nodes[3].deaf = true;
    kit_run_ms(world, 6000);
    world->nodes[3].deaf = false;
    kit_run_ms(world, 4000);
    kit_close(world);
}

static void in_an_idle_run_and_at_its_end(void **state)
{
    kit_world *world = five();

    (void)state;
    for (uint32_t i = 0; i < 5; i++) {
        kit_command(world, i, DP_COMMAND_PAUSE);
    }
    kit_run_ms(world, 60000);
    kit_command(world, 2, DP_COMMAND_RESUME);
    kit_run_ms(world, 4000);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_rounds),
        cmocka_unit_test(without_a_majority),
        cmocka_unit_test(after_deaths_and_returns),
        cmocka_unit_test(in_an_idle_run_and_at_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
