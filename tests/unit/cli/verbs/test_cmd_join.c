/* join: a token is all that it takes. The start of a daemon is played. */
#include "cli/verbs/cmd_join.h"
#include "tests/unit/cli/start_kit.h"
#include "tests/unit/cli/token_kit.h"

static int reset(void **state)
{
    unsetenv("DPNODE_TOKEN");
    return start_setup(state);
}

static void a_token_brings_the_node_in_and_says_at_which_round(void **state)
{
    (void)state;
    verb_answer_after("[{'phase': 'data', 'ok': true, 'text': 'all here', 'ms': 12}]",
                      "{'run': 'kjv', 'round': 12}");
    assert_int_equal(VERB(dp_verb_join, "DPN1-ABC", "--name", "ann"), 0);
    assert_true(verb_asked(0, "run.join", "{'token': 'DPN1-ABC', 'name': 'ann'}"));
    assert_true(verb_said("joined kjv at round 12"));
    assert_true(verb_warned("data: all here (12 ms)"));
}

static void a_token_may_come_from_a_pipe_or_the_environment(void **state)
{
    (void)state;
    verb_kit.in = "  DPN1-PIPE \n";
    verb_answer("{'run': 'kjv'}");
    assert_int_equal(VERB(dp_verb_join, "-"), 0);
    assert_true(verb_asked(0, "run.join", "{'token': 'DPN1-PIPE'}"));
    setenv("DPNODE_TOKEN", "DPN1-ENV", 1);
    verb_answer("{'run': 'kjv'}");
    assert_int_equal(VERB_ALONE(dp_verb_join), 0);
    assert_true(verb_asked(0, "run.join", "{'token': 'DPN1-ENV'}"));
}

static void without_a_token_no_daemon_is_started(void **state)
{
    (void)state;
    start_kit.fails = DP_EXIT_SOFTWARE; /* It would be seen. */
    assert_int_equal(VERB_ALONE(dp_verb_join), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
}

static void for_a_text_that_is_no_valid_token_no_daemon_is_started(void **state)
{
    (void)state;
    start_kit.starts = true;
    assert_int_equal(VERB(dp_verb_join, "/nowhere/token.txt"), DP_EXIT_DATA);
    assert_true(verb_warned("/nowhere/token.txt: No such file or directory"));
    assert_int_equal(VERB(dp_verb_join, "DPN1-ABC"), DP_EXIT_DATA);
    assert_true(verb_warned("E0203"));
    token_make(-600, 1);
    assert_int_equal(VERB(dp_verb_join, token_text), DP_EXIT_DATA);
    assert_true(verb_warned("E0201"));
    assert_true(start_kit.n == 0 && verb_kit.n_calls == 0);
}

static void a_node_that_is_in_already_is_told_apart(void **state)
{
    (void)state;
    verb_answer("{'run': 'kjv', 'round': 12, 'already': 'paused'}");
    assert_int_equal(VERB(dp_verb_join, "DPN1-ABC"), 0);
    assert_true(verb_said("this node is a member of kjv already (paused)"));
    verb_answer("{'run': 'kjv', 'round': 12}");
    assert_int_equal(VERB(dp_verb_join, "DPN1-ABC", "--json"), 0);
    assert_true(verb_said("\"round\":12"));
}

static void a_daemon_started_for_a_join_that_fails_is_ended_again(void **state)
{
    (void)state;
    start_kit.starts = true;
    token_make(3600, 1);
    verb_refuse(DP_EXIT_TEMPORARY, "E0209", "nobody answers");
    assert_int_equal(VERB(dp_verb_join, token_text), DP_EXIT_TEMPORARY);
    assert_true(start_kit.n_undone == 1 && verb_warned("E0209"));
    start_kit.starts = false; /* It ran before: it stays. */
    verb_refuse(DP_EXIT_TEMPORARY, "E0209", "nobody answers");
    assert_int_equal(VERB(dp_verb_join, "DPN1-ABC"), DP_EXIT_TEMPORARY);
    assert_int_equal(start_kit.n_undone, 1);
}

static void a_daemon_that_cannot_be_started_is_told(void **state)
{
    (void)state;
    start_kit.fails = DP_EXIT_UNAVAILABLE;
    assert_int_equal(VERB(dp_verb_join, "DPN1-ABC"), DP_EXIT_UNAVAILABLE);
    assert_true(verb_warned("E0102") && verb_kit.n_calls == 0);
}

#define TEST(test) cmocka_unit_test_setup(test, reset)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_brings_the_node_in_and_says_at_which_round),
        TEST(a_token_may_come_from_a_pipe_or_the_environment),
        TEST(without_a_token_no_daemon_is_started),
        TEST(for_a_text_that_is_no_valid_token_no_daemon_is_started),
        TEST(a_node_that_is_in_already_is_told_apart),
        TEST(a_daemon_started_for_a_join_that_fails_is_ended_again),
        TEST(a_daemon_that_cannot_be_started_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
