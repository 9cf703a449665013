/* revoke, run fork, run merge: no request without a confirmation. */
#include "tests/unit/cli/verb_kit.h"

static void without_yes_nothing_that_lasts_is_asked_for(void **state)
{
    (void)state;
    verb_answer("{'answer': 'bob is alive'}");
    assert_int_equal(VERB(dp_verb_revoke, "bob"), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 1);
    assert_true(verb_asked(0, "why", "{'peer': 'bob'}")); /* Is there such a peer? */
    assert_true(verb_warned("E0122") && verb_warned("needs --yes"));
    assert_int_equal(VERB_ALONE(dp_verb_run_fork), DP_EXIT_USAGE);
    assert_int_equal(VERB_ALONE(dp_verb_run_merge), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
}

static void a_yes_typed_into_a_pipe_counts_for_nothing(void **state)
{
    (void)state;
    verb_kit.in = "yes\n";
    assert_int_equal(VERB_ALONE(dp_verb_run_merge), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
}

static void a_peer_that_is_not_there_is_told_before_any_question(void **state)
{
    (void)state;
    verb_refuse(DP_EXIT_NOINPUT, "E0110", "no peer of this name");
    assert_int_equal(VERB(dp_verb_revoke, "eve", "--yes"), DP_EXIT_NOINPUT);
    assert_int_equal(verb_kit.n_calls, 1);
    assert_true(verb_warned("E0110") && verb_warned("the fix"));
}

static void a_revoked_member_is_named_with_what_follows(void **state)
{
    (void)state;
    verb_answer("{}");
    verb_answer("{'peer': 'q3x7', 'key': 'root'}");
    assert_int_equal(VERB(dp_verb_revoke, "bob", "--yes"), 0);
    assert_true(verb_asked(1, "revoke", "{'peer': 'bob'}"));
    assert_true(verb_said("q3x7 is removed") && verb_said("the next record tells all members"));
    verb_answer("{}");
    verb_answer("{'peer': 'q3x7', 'text': 'one more waits'}");
    assert_int_equal(VERB(dp_verb_revoke, "bob", "--yes"), 0);
    assert_true(verb_said("its links close now, one more waits"));
}

static void a_fork_goes_back_to_the_round_that_is_given(void **state)
{
    (void)state;
    verb_answer("{'text': 'the chain begins anew at round 12'}");
    assert_int_equal(VERB(dp_verb_run_fork, "--to", "12", "--yes"), 0);
    assert_true(verb_asked(0, "run.fork", "{'round': 12}"));
    assert_true(verb_said("the chain begins anew at round 12; this node restarts"));
    verb_answer("{'text': 'x'}");
    assert_int_equal(VERB(dp_verb_run_fork, "--yes"), 0);
    assert_true(verb_asked(0, "run.fork", "{}"));
    assert_int_equal(VERB(dp_verb_run_fork, "--to", "0", "--yes"), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
}

static void a_merge_that_the_daemon_refuses_ends_with_its_status(void **state)
{
    (void)state;
    verb_refuse(77, "E0121", "this node has no root key");
    assert_int_equal(VERB(dp_verb_run_merge, "--yes"), 77);
    assert_true(verb_asked(0, "run.merge", "{}"));
    assert_string_equal(verb_kit.out, "");
}

static void scripts_get_what_the_daemon_said(void **state)
{
    (void)state;
    verb_answer("{'round': 12, 'text': 'x'}");
    assert_int_equal(VERB(dp_verb_run_merge, "--yes", "--json"), 0);
    assert_true(verb_said("\"round\":12"));
    assert_int_equal(VERB(dp_verb_run_merge, "--json"), DP_EXIT_USAGE);
    assert_true(verb_said("\"error\"") && verb_said("E0122"));
}

static void without_a_daemon_each_ends_as_unavailable(void **state)
{
    (void)state;
    verb_kit.is_down = true;
    assert_int_equal(VERB(dp_verb_revoke, "bob", "--yes"), DP_EXIT_UNAVAILABLE);
    assert_int_equal(VERB(dp_verb_run_fork, "--yes"), DP_EXIT_UNAVAILABLE);
    assert_true(verb_warned("E0101"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(without_yes_nothing_that_lasts_is_asked_for),
        VERB_TEST(a_yes_typed_into_a_pipe_counts_for_nothing),
        VERB_TEST(a_peer_that_is_not_there_is_told_before_any_question),
        VERB_TEST(a_revoked_member_is_named_with_what_follows),
        VERB_TEST(a_fork_goes_back_to_the_round_that_is_given),
        VERB_TEST(a_merge_that_the_daemon_refuses_ends_with_its_status),
        VERB_TEST(scripts_get_what_the_daemon_said),
        VERB_TEST(without_a_daemon_each_ends_as_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
