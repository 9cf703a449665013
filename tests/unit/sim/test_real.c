#include "tests/lib/check.h"

#include <string.h>

#include "tests/sim/real.h"

static dp_sim_options options_of(uint64_t seed, dp_sim_store store)
{
    return (dp_sim_options){
        .seed = seed, .nodes = 4, .faults = DP_FAULTS_ALL, .trace = -1, .store = store};
}

static dp_sim_totals run(uint64_t seed, dp_sim_store store, char invariant[8])
{
    static dp_sim sim;
    const dp_sim_options options = options_of(seed, store);

    CHECK_OK(dp_sim_open(&sim, &options));
    dp_sim_run(&sim);
    const dp_sim_totals totals = sim.totals;
    memcpy(invariant, sim.failure.invariant, 8);
    dp_sim_close(&sim);
    return totals;
}

static void one_seed_in_sixteen_has_the_real_store(void **state)
{
    static dp_sim sim;
    unsigned count = 0;
    (void)state;
    sim.plan.nodes = 5;
    for (sim.options.seed = 1; sim.options.seed <= 160; sim.options.seed++) {
        count += dp_real_wanted(&sim) ? 1 : 0;
    }
    assert_int_equal(count, 10);
    sim.plan.nodes = DP_REAL_NODES_MAX + 1;
    sim.options.store = DP_SIM_STORE_REAL;
    CHECK(!dp_real_wanted(&sim));
}

static void the_same_seed_gives_the_same_run_on_the_real_store(void **state)
{
    char first[8];
    char second[8];
    (void)state;
    const dp_sim_totals a = run(3, DP_SIM_STORE_REAL, first);
    const dp_sim_totals b = run(3, DP_SIM_STORE_REAL, second);
    assert_string_equal(first, "");
    CHECK(a.digest == b.digest && a.rounds > 15);
}

static void a_disk_that_lies_about_sync_is_found_after_the_first_crashes(void **state)
{
    char invariant[8];
    unsigned caught = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        run(seed, DP_SIM_STORE_LIES, invariant);
        caught += strcmp(invariant, "S8") == 0 ? 1 : 0;
    }
    CHECK(caught > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_seed_in_sixteen_has_the_real_store),
        cmocka_unit_test(the_same_seed_gives_the_same_run_on_the_real_store),
        cmocka_unit_test(a_disk_that_lies_about_sync_is_found_after_the_first_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
