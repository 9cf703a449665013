/* Nodes whose updates have fewer elements while lines are slow: a run with a span of densities. */
#include "gossip/context/context.h"
#include "gossip/round/round.h"
#include "tests/unit/gossip/kit/node_kit.h"

/* Three nodes, of which the first alone votes, with a round of half a second behind them. */
static kit_world *three(uint32_t keep_most)
{
    kit_world *world = kit_open(3);

    world->manifest.voters_max = 1;
    world->manifest.codec_keep = 32;
    world->manifest.codec_keep_most = keep_most;
    kit_start_anew(world, 4000);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    return world;
}

static void run_rounds(kit_world *world, uint64_t n)
{
    const uint64_t round = kit_look(world, 0).round;

    for (uint32_t i = 0; i < 4000 && kit_look(world, 0).round < round + n; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    kit_run_ms(world, 20 * KIT_STEP_MS);
    assert_true(kit_look(world, 1).round >= round + n);
}

static uint32_t wanted(kit_world *world, uint32_t i)
{
    return dp_node_keep(world->nodes[i].node, kit_look(world, i).round + 1);
}

static void where_an_update_does_not_come_all_become_thinner(void **state)
{
    kit_world *world = three(128);

    (void)state;
    assert_int_equal(wanted(world, 0), 32);
    assert_int_equal(world->nodes[2].keep, 32);
    world->nodes[1].mute_blobs = true; /* It is not listed, but waited for. */
    for (uint32_t i = 0; i < 12 && wanted(world, 0) == 32; i++) {
        run_rounds(world, 1);
    }
    assert_int_equal(wanted(world, 0), 64);
    assert_int_equal(wanted(world, 1), 64);
    assert_int_equal(wanted(world, 2), 64);
    run_rounds(world, 12);
    assert_int_equal(wanted(world, 2), 128);
    assert_int_equal(world->nodes[0].keep, 128); /* Made so, and looked at so. */
    assert_int_equal(world->nodes[2].keep, 128);
    assert_int_equal(world->nodes[0].keep_checked, 128);
    assert_int_equal(world->nodes[2].keep_checked, 128);
    world->nodes[1].mute_blobs = false;
    for (uint32_t i = 0; i < 60 && wanted(world, 0) != 32; i++) {
        run_rounds(world, 1);
    }
    assert_int_equal(wanted(world, 0), 32);
    kit_kill(world, 2);
    kit_boot(world, 2);
    kit_link_all(world);
    run_rounds(world, 1);
    assert_int_equal(wanted(world, 2), wanted(world, 0)); /* Its records say it. */
    kit_close(world);
}

static void without_a_span_nobody_speaks_of_densities(void **state)
{
    kit_world *world = three(0);

    (void)state;
    world->nodes[1].mute_blobs = true;
    run_rounds(world, 6);
    assert_int_equal(wanted(world, 0), 0);
    assert_int_equal(world->nodes[0].keep, 0);
    assert_int_equal(world->nodes[0].keep_checked, 0);
    assert_int_equal(dp_round_lines(world->nodes[0].node), DP_LINES_FIT);
    kit_close(world);
}

/* Others wait for it, but it does not notice. */
static void the_own_update_takes_as_long_as_the_own_line(void **state)
{
    kit_world *world = three(128);
    dp_node *node = world->nodes[0].node;

    (void)state;
    world->nodes[1].mute_blobs = true; /* Its round is under way for a while. */
    for (uint32_t i = 0; i < 400 && dp_round_claim_of(node, &node->self) == NULL; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    dp_claim *own = dp_round_claim_of(node, &node->self);
    assert_non_null(own);
    node->round->n_claims = 1;
    node->round->claims[0] = *own;
    own = &node->round->claims[0];
    own->ready.bytes = 1000 * 1000;
    node->standing.uplink = 0; /* Not measured, as on a short path. */
    assert_int_equal(dp_round_lines(node), DP_LINES_FREE);
    node->standing.uplink = 10 * 1000; /* 0.1 s of 0.5 */
    assert_int_equal(dp_round_lines(node), DP_LINES_FIT);
    node->standing.uplink = 5 * 1000;
    assert_int_equal(dp_round_lines(node), DP_LINES_SLOW);
    own->bad = true; /* No node waits for it. */
    assert_int_equal(dp_round_lines(node), DP_LINES_FIT);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_an_update_does_not_come_all_become_thinner),
        cmocka_unit_test(without_a_span_nobody_speaks_of_densities),
        cmocka_unit_test(the_own_update_takes_as_long_as_the_own_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
