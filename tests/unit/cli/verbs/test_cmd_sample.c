/* sample, eval: questions to the model, and their answers for people. */
#include "tests/unit/cli/tool_kit.h"
#include "tests/unit/cli/verb_kit.h"

static void a_sample_asks_only_for_what_was_given(void **state)
{
    (void)state;
    verb_answer("{'text': 'And it came to pass', 'round': 9}");
    assert_int_equal(VERB_ALONE(dp_verb_sample), 0);
    assert_true(verb_asked(0, "sample", "{'tokens': 120}"));
    assert_string_equal(verb_kit.out, "And it came to pass\n");
    verb_answer("{'text': 'x'}");
    assert_int_equal(VERB(dp_verb_sample, "-p", "In the", "-n", "80", "--seed", "7"), 0);
    assert_true(verb_asked(0, "sample", "{'tokens': 80, 'prompt': 'In the', 'seed': 7}"));
}

static void tokens_are_chosen_as_was_asked_for(void **state)
{
    (void)state;
    verb_answer("{'text': 'x', 'top_k': 5}");
    assert_int_equal(VERB(dp_verb_sample, "-t", "0.5", "-k", "5", "--top-p", "0.9"), 0);
    assert_true(
        verb_asked(0, "sample", "{'tokens': 120, 'temperature': 0.5, 'top_k': 5, 'top_p': 0.9}"));
    verb_answer("{'text': 'x'}"); /* of a daemon that ignores it */
    assert_int_equal(VERB(dp_verb_sample, "--top-p", "0.9"), DP_EXIT_PROTOCOL);
    assert_true(verb_warned("E0102"));
}

static void a_folder_is_read_without_a_daemon(void **state)
{
    (void)state;
    verb_kit.is_down = true;
    tool_kit.answer = "{'step': 7, 'text': 'And it'}";
    tool_kit.exit = 0;
    assert_int_equal(VERB(dp_verb_sample, "run", "--seed", "7", "-n", "9", "--threads", "2"), 0);
    assert_string_equal(tool_kit.words, "sample run --tokens 9 --threads 2 --seed 7 ");
    assert_string_equal(verb_kit.out, "And it\n");
    tool_kit.answer = "";
    tool_kit.exit = DP_EXIT_DATA;
    tool_kit.says = "run holds no checkpoint";
    assert_int_equal(VERB(dp_verb_sample, "run"), DP_EXIT_DATA);
    assert_true(verb_warned("E0520") && verb_warned("run holds no checkpoint"));
    verb_kit.is_down = false;
    assert_int_equal(VERB(dp_verb_sample, "--threads", "2"), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
}

static void a_sample_cannot_steer_the_terminal_but_may_break_lines(void **state)
{
    (void)state;
    verb_answer("{'text': 'a\\n\\u001b[2Jb'}");
    assert_int_equal(VERB_ALONE(dp_verb_sample), 0);
    assert_null(strchr(verb_kit.out, '\x1b'));
    assert_true(verb_said("a\n"));
}

static void numbers_out_of_range_ask_nothing(void **state)
{
    (void)state;
    assert_int_equal(VERB(dp_verb_sample, "-n", "0"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_sample, "-n", "2001"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_sample, "--seed", "x"), DP_EXIT_USAGE);
    static const char *const wrong[][2] = {{"--temperature", "-1"},  {"--temperature", "nan"},
                                           {"--temperature", "0x1"}, {"--temperature", ""},
                                           {"--top-k", "0"},         {"--top-p", "2"},
                                           {"--top-p", "0"},         {"--top-p", "1e-400"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(VERB(dp_verb_sample, wrong[i][0], wrong[i][1]), DP_EXIT_USAGE);
        assert_true(verb_warned("E0001"));
    }
    assert_int_equal(VERB(dp_verb_eval, "-n", "-1"), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
}

static void an_evaluation_is_a_line_with_its_perplexity(void **state)
{
    (void)state;
    verb_answer("{'loss': 2.0, 'bits_per_byte': 1.25, 'tokens': 5000, 'round': 12}");
    assert_int_equal(VERB(dp_verb_eval, "-n", "5000"), 0);
    assert_true(verb_asked(0, "eval", "{'tokens': 5000}"));
    assert_string_equal(verb_kit.out,
                        "round 12: loss 2.0000 per token, perplexity 7.39, 1.2500 bits per byte, "
                        "on 5000 held-out tokens\n");
    verb_answer("{'loss': 2.0}");
    assert_int_equal(VERB(dp_verb_eval, "--json"), 0);
    assert_true(verb_asked(0, "eval", "{'tokens': 0}") && verb_said("\"loss\""));
}

static void data_of_ones_own_goes_with_a_folder_only(void **state)
{
    (void)state;
    assert_int_equal(VERB(dp_verb_eval, "--data", "other.txt"), DP_EXIT_USAGE);
    assert_true(verb_warned("E0001") && verb_warned("dpnode eval FOLDER --data FILE --best"));
    assert_int_equal(verb_kit.n_calls, 0);
}

static void what_the_daemon_refuses_is_said(void **state)
{
    (void)state;
    verb_refuse(DP_EXIT_TEMPORARY, "E0404", "the trainer has not loaded the model");
    assert_int_equal(VERB_ALONE(dp_verb_sample), DP_EXIT_TEMPORARY);
    assert_true(verb_warned("E0404") && verb_warned("the fix"));
    verb_refuse(DP_EXIT_TEMPORARY, "E0404", "the trainer has not loaded the model");
    assert_int_equal(VERB(dp_verb_eval, "--json"), DP_EXIT_TEMPORARY);
    assert_true(verb_said("\"error\"") && verb_said("E0404"));
    verb_kit.is_down = true;
    assert_int_equal(VERB_ALONE(dp_verb_sample), DP_EXIT_UNAVAILABLE);
    assert_int_equal(VERB_ALONE(dp_verb_eval), DP_EXIT_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(a_sample_asks_only_for_what_was_given),
        VERB_TEST(tokens_are_chosen_as_was_asked_for),
        VERB_TEST(a_folder_is_read_without_a_daemon),
        VERB_TEST(a_sample_cannot_steer_the_terminal_but_may_break_lines),
        VERB_TEST(numbers_out_of_range_ask_nothing),
        VERB_TEST(an_evaluation_is_a_line_with_its_perplexity),
        VERB_TEST(data_of_ones_own_goes_with_a_folder_only),
        VERB_TEST(what_the_daemon_refuses_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
