#include "tests/lib/check.h"

#include "base/run/run_mode.h"

static void the_first_mode_is_what_a_manifest_has_anyway(void **state)
{
    (void)state;
    size_t count;
    const dp_run_mode *const modes = dp_run_modes(&count);
    dp_manifest standard;
    dp_manifest set;
    dp_manifest_default(&standard);
    dp_manifest_default(&set);
    dp_run_mode_set(&set, &modes[0]);
    CHECK(memcmp(&standard, &set, sizeof set) == 0);
}

static void every_mode_makes_a_possible_run_and_is_found_by_its_name(void **state)
{
    (void)state;
    size_t count;
    const dp_run_mode *const modes = dp_run_modes(&count);
    CHECK(count >= 3);
    for (size_t i = 0; i < count; i++) {
        dp_manifest manifest;
        dp_manifest_default(&manifest);
        dp_run_mode_set(&manifest, &modes[i]);
        const bool judged = dp_manifest_judgeable(&manifest);
        CHECK(judged ==
              (strcmp(modes[i].name, "ddp") != 0 && strcmp(modes[i].name, "gossip") != 0));
        CHECK(dp_manifest_check(&manifest, NULL) == (judged ? DP_OK : DP_BADARG));
        manifest.trust = DP_TRUST_MEMBERS;
        dp_run_decide(&manifest, false);
        CHECK_OK(dp_manifest_check(&manifest, NULL));
        CHECK(dp_run_mode_find(modes[i].name) == &modes[i]);
        /* The outer step stays within its cap from the first round on: m is then the update
         * itself. */
        const double mu = modes[i].outer_mu_milli * 1e-3;
        CHECK(mu == 0 || modes[i].alpha_milli * 1e-3 * (1 + mu) <= 1.5);
    }
    CHECK(dp_run_mode_find("") == NULL && dp_run_mode_find("Stale") == NULL);
}

static void a_mode_leaves_time_and_steps_that_it_does_not_name(void **state)
{
    (void)state;
    dp_manifest manifest;
    dp_manifest_default(&manifest);
    manifest.round_ms = 777;
    manifest.inner_steps_max = 77;
    dp_run_mode_set(&manifest, dp_run_mode_find("average"));
    CHECK(manifest.round_ms == 777 && manifest.inner_steps_max == 77 && manifest.pairs == DP_OFF);
    dp_run_mode_set(&manifest, dp_run_mode_find("gossip"));
    CHECK(manifest.round_ms == 120000 && manifest.inner_steps_max > 1000);
    CHECK(manifest.pairs == DP_ON);
    dp_run_mode_set(&manifest, dp_run_mode_find("ddp"));
    CHECK(manifest.pairs == DP_OFF && manifest.exchange == DP_EXCHANGE_GRADIENTS);
    CHECK(manifest.inner_steps_max == 1 && manifest.stale == DP_OFF);
    dp_run_mode_set(&manifest, dp_run_mode_find("stale"));
    CHECK(manifest.exchange == DP_EXCHANGE_UPDATES && manifest.stale == DP_ON);
    CHECK(manifest.codec == DP_CODEC_SPARSE);
}

/* Rounds of parts have no judge. */
static void a_run_adds_up_in_parts_where_its_members_trust_each_other(void **state)
{
    (void)state;
    static const struct {
        const char *mode;
        bool parts;
    } cases[] = {{"sparse", false}, {"diloco", true}, {"average", true},
                 {"gossip", true},  {"ddp", true},    {"stale", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_manifest manifest;
        dp_manifest_default(&manifest);
        dp_run_mode_set(&manifest, dp_run_mode_find(cases[i].mode));
        CHECK(manifest.reduce == DP_REDUCE_WHOLE && manifest.site_sums == DP_OFF);
        manifest.trust = DP_TRUST_MEMBERS;
        dp_run_decide(&manifest, false);
        CHECK((manifest.reduce == DP_REDUCE_PARTS) == cases[i].parts);
        CHECK((manifest.site_sums == DP_ON) == cases[i].parts);
        manifest.contributors_max = 33; /* More than a sum can name. */
        dp_run_decide(&manifest, false);
        CHECK(manifest.reduce == DP_REDUCE_WHOLE && manifest.site_sums == DP_OFF);
    }
}

static void of_long_updates_momentum_takes_its_own_length_where_there_is_any(void **state)
{
    (void)state;
    dp_manifest manifest;
    dp_manifest_default(&manifest);
    CHECK(manifest.long_once == DP_OFF);
    dp_run_mode_set(&manifest, dp_run_mode_find("diloco"));
    CHECK(manifest.long_once == DP_ON);
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    manifest.outer_mu_milli = 0;
    CHECK_STATUS(dp_manifest_check(&manifest, NULL), DP_BADARG);
    dp_run_decide(&manifest, false);
    CHECK(manifest.long_once == DP_OFF);
    CHECK_OK(dp_manifest_check(&manifest, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_adds_up_in_parts_where_its_members_trust_each_other),
        cmocka_unit_test(of_long_updates_momentum_takes_its_own_length_where_there_is_any),
        cmocka_unit_test(the_first_mode_is_what_a_manifest_has_anyway),
        cmocka_unit_test(every_mode_makes_a_possible_run_and_is_found_by_its_name),
        cmocka_unit_test(a_mode_leaves_time_and_steps_that_it_does_not_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
