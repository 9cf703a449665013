#include "tests/lib/check.h"

#include "tests/sim/duel.h"
#include "tests/sim/sim.h"

static dp_sim_totals run(dp_profile profile, uint64_t seed, uint32_t nodes, uint64_t until_us)
{
    static dp_sim sim;
    const dp_sim_options options = {.seed = seed,
                                    .nodes = nodes,
                                    .until_us = until_us,
                                    .faults = DP_FAULTS_ALL,
                                    .profile = profile,
                                    .trace = -1};

    CHECK_OK(dp_sim_open(&sim, &options));
    const bool right = profile == DP_PROFILE_DUEL ? dp_duel_run(&sim) : dp_sim_run(&sim);
    if (!right) {
        print_error("%s: %s\n", sim.failure.invariant, sim.failure.sentence);
    }
    CHECK(right);
    const dp_sim_totals totals = sim.totals;
    dp_sim_close(&sim);
    return totals;
}

static void a_duel_is_a_function_of_its_seed(void **state)
{
    (void)state;
    const dp_sim_totals first = run(DP_PROFILE_DUEL, 3, 0, 0);
    const dp_sim_totals again = run(DP_PROFILE_DUEL, 3, 0, 0);
    const dp_sim_totals other = run(DP_PROFILE_DUEL, 4, 0, 0);
    assert_int_equal(first.digest, again.digest);
    assert_true(first.digest != other.digest);
}

static void a_run_is_a_function_of_its_seed(void **state)
{
    (void)state;
    const dp_sim_totals first = run(DP_PROFILE_SWARM, 11, 5, 15000000);
    const dp_sim_totals again = run(DP_PROFILE_SWARM, 11, 5, 15000000);
    const dp_sim_totals other = run(DP_PROFILE_SWARM, 12, 5, 15000000);
    assert_int_equal(first.digest, again.digest);
    assert_true(first.digest != other.digest);
}

static uint64_t digest_of(uint64_t seed, bool lucky)
{
    static dp_sim sim;
    const dp_sim_options options = {
        .seed = seed, .nodes = 4, .until_us = 8000000, .lucky = lucky, .trace = -1};

    CHECK_OK(dp_sim_open(&sim, &options));
    CHECK(dp_sim_run(&sim));
    const uint64_t digest = sim.totals.digest;
    dp_sim_close(&sim);
    return digest;
}

static void bad_luck_changes_some_runs_and_not_all(void **state)
{
    uint32_t changed = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        changed += digest_of(seed, false) != digest_of(seed, true);
    }
    assert_in_range(changed, 2, 10);
}

static void a_founder_alone_decides_rounds(void **state)
{
    (void)state;
    assert_true(run(DP_PROFILE_CALM, 1, 1, 20000000).rounds >= 5);
}

static void five_nodes_without_faults_come_together(void **state)
{
    (void)state;
    assert_true(run(DP_PROFILE_CALM, 2, 5, 0).rounds >= 15);
}

static void in_pairs_between_rounds_work_is_exchanged_and_rounds_go_on(void **state)
{
    (void)state;
    dp_sim_options options = {.seed = 3, .nodes = 5, .until_us = 40000000, .trace = -1};
    uint64_t exchanges[2];
    uint64_t rounds[2];
    static const dp_profile profiles[2] = {DP_PROFILE_GOSSIP, DP_PROFILE_PAIRS};
    for (int i = 0; i < 2; i++) {
        static dp_sim sim;
        options.profile = profiles[i]; /* Without faults: a majority is always heard. */
        options.lucky = true;
        CHECK_OK(dp_sim_open(&sim, &options));
        CHECK(dp_sim_run(&sim));
        exchanges[i] = sim.totals.exchanges;
        rounds[i] = sim.totals.rounds;
        dp_sim_close(&sim);
    }
    assert_int_equal(exchanges[0], 0);
    assert_true(exchanges[1] > 2 * rounds[1] && rounds[1] >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duel_is_a_function_of_its_seed),
        cmocka_unit_test(a_run_is_a_function_of_its_seed),
        cmocka_unit_test(bad_luck_changes_some_runs_and_not_all),
        cmocka_unit_test(a_founder_alone_decides_rounds),
        cmocka_unit_test(five_nodes_without_faults_come_together),
        cmocka_unit_test(in_pairs_between_rounds_work_is_exchanged_and_rounds_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
