#include "tests/lib/check.h"

#include "tests/sim/evil.h"
#include "tests/sim/script.h"

static dp_status read_text(dp_script *script, const char *text, dp_why *why)
{
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

    assert_non_null(in);
    const dp_status status = dp_script_read(script, in, "a.dps", why);
    fclose(in);
    return status;
}

static void a_written_script_is_read_back(void **state)
{
    dp_script script = {.options = {.seed = UINT64_MAX,
                                    .nodes = 7,
                                    .until_us = 81250000,
                                    .faults = 1U << DP_FAULT_FLAP | 1U << DP_FAULT_CRASH,
                                    .all_on = true,
                                    .profile = DP_PROFILE_RIVALS,
                                    .keep_vote_key = true,
                                    .lucky = true,
                                    .span = true,
                                    .parts = true,
                                    .enrolled = true,
                                    .sites = 2,
                                    .contributors = 1024,
                                    .loss_milli = 5,
                                    .churn_milli = 1200,
                                    .round_ms = 2500,
                                    .evil = DP_EVIL_TRAINER,
                                    .store = DP_SIM_STORE_REAL,
                                    .trace = -1},
                        .invariant = "M14"};
    dp_script again = {0};
    char text[1000] = {0};
    FILE *out = fmemopen(text, sizeof text - 1, "w");

    (void)state;
    assert_non_null(out);
    CHECK_OK(dp_script_write(&script, out));
    fclose(out);
    CHECK_OK(read_text(&again, text, NULL));
    CHECK(again.options.seed == script.options.seed && again.options.nodes == 7);
    CHECK(again.options.until_us == script.options.until_us);
    CHECK(again.options.faults == script.options.faults && again.options.all_on);
    CHECK(again.options.profile == DP_PROFILE_RIVALS && again.options.keep_vote_key &&
          again.options.lucky && again.options.span);
    CHECK(again.options.parts && again.options.enrolled && again.options.sites == 2 &&
          again.options.contributors == 1024 && again.options.evil == DP_EVIL_TRAINER);
    CHECK(again.options.loss_milli == 5 && again.options.churn_milli == 1200 &&
          again.options.round_ms == 2500 && again.options.store == DP_SIM_STORE_REAL);
    assert_string_equal(again.invariant, "M14");
}

static void a_parse_error_is_reported_with_its_line(void **state)
{
    static const struct {
        const char *text;
        const char *told;
    } cases[] = {
        {"hello\n", "a.dps:1: not a script: the first line must be \"dpsim 1\""},
        {"dpsim 1\n", "a.dps:1: ends without a seed"},
        {"dpsim 1\nseed x\n", "a.dps:2: cannot read \"seed x\""},
        {"dpsim 1\nseed -1\n", "a.dps:2: cannot read \"seed -1\""},
        {"dpsim 1\nseed 18446744073709551616\n",
         "a.dps:2: cannot read \"seed 18446744073709551616\""},
        {"dpsim 1\nseed 1\n# well\nfaults rain\n", "a.dps:4: cannot read \"faults rain\""},
        {"dpsim 1\nseed 1\nnodes 0\n", "a.dps:3: cannot read \"nodes 0\""},
        {"dpsim 1\nseed 1\ncontributors 1025\n", "a.dps:3: cannot read \"contributors 1025\""},
        {"dpsim 1\nseed 1\nclose-milli 991\n", "a.dps:3: cannot read \"close-milli 991\""},
        {"dpsim 1\nseed 1\nevil none\n", "a.dps:3: cannot read \"evil none\""},
        {"dpsim 1\nseed 1\nstore tape\n", "a.dps:3: cannot read \"store tape\""},
        {"dpsim 1\nseed 1\nenrolled maybe\n", "a.dps:3: cannot read \"enrolled maybe\""},
        {"dpsim 1\nseed 1\nuntil nan\n", "a.dps:3: cannot read \"until nan\""},
        {"dpsim 1\nseed 1\nprofile\n", "a.dps:3: cannot read \"profile \""},
        {"dpsim 1\nseed 1\ninvariant TOOLONGER\n", "a.dps:3: cannot read \"invariant TOOLONGER\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_script script;
        dp_why why = {0};
        CHECK_STATUS(read_text(&script, cases[i].text, &why), DP_BADMSG);
        assert_string_equal(why.text, cases[i].told);
    }
}

static void another_version_is_refused(void **state)
{
    dp_script script;
    dp_why why = {0};

    (void)state;
    CHECK_STATUS(read_text(&script, "dpsim 2\nseed 1\n", &why), DP_VERSION);
    assert_string_equal(why.text, "a.dps:1: a script of version 2; this program reads version 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_script_is_read_back),
        cmocka_unit_test(a_parse_error_is_reported_with_its_line),
        cmocka_unit_test(another_version_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
