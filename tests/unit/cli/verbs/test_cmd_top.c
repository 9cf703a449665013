/* dpnode top without a terminal: one picture as text, or an error that names what to use. */
#include "tests/unit/cli/verb_kit.h"

static void one_picture_is_printed_without_a_terminal(void **state)
{
    (void)state;
    verb_answer("{'state': 'idle', 'name': 'alice'}");
    verb_answer_after("[]", "{}");
    assert_int_equal(VERB(dp_verb_top, "--once"), 0);
    assert_true(verb_said("idle") && verb_said("dpnode join TOKEN"));
    size_t lines = 0;
    for (const char *at = verb_kit.out; *at != '\0'; at++) {
        lines += *at == '\n';
    }
    assert_int_equal(lines, 24);
    verb_answer("{'state': 'idle', 'name': 'alice'}");
    verb_answer_after("[]", "{}");
    assert_int_equal(VERB(dp_verb_top, "--once", "--size", "20x5"), 0);
}

static void without_a_daemon_the_picture_is_an_error(void **state)
{
    (void)state;
    verb_kit.is_down = true;
    assert_int_equal(VERB(dp_verb_top, "--once"), DP_EXIT_UNAVAILABLE);
    assert_true(verb_warned("E0101"));
    assert_string_equal(verb_kit.out, "");
}

static void without_a_terminal_it_names_status(void **state)
{
    (void)state;
    assert_int_equal(VERB_ALONE(dp_verb_top), DP_EXIT_UNAVAILABLE);
    assert_true(verb_warned("E0607") && verb_warned("dpnode status") && verb_warned("--json"));
    assert_int_equal(VERB(dp_verb_top, "--json"), DP_EXIT_USAGE);
    assert_true(verb_said("dpnode status --json"));
}

static void wrong_sizes_and_times_are_refused(void **state)
{
    static const char *const sizes[] = {"80",  "x24",   "80x",  "80x24x",
                                        "0x5", "501x5", "-1x5", "ax5"};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(VERB(dp_verb_top, "--once", "--size", sizes[i]), DP_EXIT_USAGE);
        assert_true(verb_warned("E0001"));
    }
    assert_int_equal(VERB(dp_verb_top, "--every", "0s"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_top, "--every", "2h"), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(one_picture_is_printed_without_a_terminal),
        VERB_TEST(without_a_daemon_the_picture_is_an_error),
        VERB_TEST(without_a_terminal_it_names_status),
        VERB_TEST(wrong_sizes_and_times_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
