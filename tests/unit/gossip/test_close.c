/* Whom a round waits for, how long and how often. */
#include "gossip/node_internal.h"
#include "tests/unit/gossip/node_kit.h"

enum { ROUNDS = 30 };

typedef struct rounds {
    uint64_t took_us[ROUNDS];
    uint32_t listed[ROUNDS];
} rounds;

/* Three nodes and their rounds of half a second; the trainer of node 1 makes its first step of a round so late. */
static void watch(uint64_t late_us, rounds *seen)
{
    kit_world *world = kit_open(3);
    uint32_t n = 0;

    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    uint64_t round = kit_look(world, 0).round;
    uint64_t since_us = world->now_us;
    bool first = true; /* It began before it was watched. */
    while (n < ROUNDS) {
        world->nodes[1].trains = world->now_us - since_us >= late_us;
        kit_run_ms(world, KIT_STEP_MS);
        const dp_node_view view = kit_look(world, 0);
        if (view.round == round) {
            assert_true(world->now_us - since_us < 10 * DP_SECOND);
            continue;
        }
        assert_int_equal(view.round, round + 1);
        if (!first) {
            seen->took_us[n] = world->now_us - since_us;
            seen->listed[n++] = view.listed_last;
        }
        first = false;
        round = view.round;
        since_us = world->now_us;
    }
    kit_close(world);
}

static void who_is_always_a_little_late_is_counted_in_every_third_round(void **state)
{
    rounds seen = {0};
    uint32_t missed = 0;
    uint32_t counted = 0;

    (void)state;
    watch(800 * DP_MS, &seen);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        missed = seen.listed[i] == 3 ? 0 : missed + 1;
        counted += seen.listed[i] == 3 ? 1 : 0;
        assert_true(missed <= 2);
        assert_true(seen.took_us[i] < 1100 * DP_MS);
    }
    assert_true(counted <= ROUNDS / 3 + 1);
}

static void who_never_comes_is_waited_for_ever_more_rarely(void **state)
{
    rounds seen = {0};
    uint32_t waits = 0;

    (void)state;
    watch(UINT64_MAX, &seen);
    for (uint32_t i = 1; i < ROUNDS; i++) {
        waits += seen.took_us[i] > DP_SECOND ? 1 : 0;
        assert_int_equal(seen.listed[i], 2);
        assert_true(seen.took_us[i] <
                    3250 * DP_MS); /* The hard deadline, L being not much longer. */
    }
    assert_in_range(
        waits, 3,
        4); /* In the 3rd round without it, and by the number of the round in the 6th, 12th and 24th. */
}

/* Once who is owed a wait holds a round up, the voter has nothing to look at but what it has planned. */
static void a_voter_that_gives_a_longer_grace_sleeps_until_it_is_over(void **state)
{
    kit_world *world = kit_open(3);
    uint32_t looks = 0;
    uint32_t naps = 0;

    (void)state;
    kit_link_all(world);
    kit_run_ms(world, 4000);
    for (uint64_t ms = 0; ms < 10000; ms += KIT_STEP_MS) {
        world->nodes[1].trains = false;
        kit_run_ms(world, KIT_STEP_MS);
        const dp_node *node = world->nodes[0].node;
        const dp_round *round = node->round;
        if (round->enough_at.us != 0 && round->close_at.us == 0 && round->grace_us > DP_SECOND) {
            looks++;
            naps += dp_round_wake(node).us <= node->now.us + 20 * DP_MS ? 1 : 0;
        }
    }
    assert_true(looks > 1000 / KIT_STEP_MS);
    assert_true(naps <= looks / 10); /* The round is told again, the grace ends. */
    kit_close(world);
}

static void updates_that_take_long_to_come_stretch_the_grace_to_a_quarter_of_a_round(void **state)
{
    kit_world *world = kit_open(3);

    (void)state;
    kit_link_all(world);
    kit_run_ms(world, 4000);
    dp_node *node = world->nodes[0].node;
    world->nodes[1].trains = false; /* So that there is somebody to wait for. */
    kit_run_ms(world, 3000);
    const uint64_t before = node->round->grace_us;
    for (uint32_t i = 0; i < DP_SPAN_SAMPLES; i++) {
        dp_relay_came(&node->relay, 10 * DP_SECOND);
    }
    const uint64_t quarter = dp_deadline_length(&node->round->deadline) / 4;
    assert_true(before < quarter);
    uint64_t longest = 0;
    for (uint32_t i = 0; i < 1000 / KIT_STEP_MS; i++) {
        kit_run_ms(world, KIT_STEP_MS);
        longest = node->round->grace_us > longest ? node->round->grace_us : longest;
    }
    assert_true(longest >= quarter);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_always_a_little_late_is_counted_in_every_third_round),
        cmocka_unit_test(who_never_comes_is_waited_for_ever_more_rarely),
        cmocka_unit_test(a_voter_that_gives_a_longer_grace_sleeps_until_it_is_over),
        cmocka_unit_test(updates_that_take_long_to_come_stretch_the_grace_to_a_quarter_of_a_round),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
