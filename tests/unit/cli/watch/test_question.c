#include "cli/watch/question.h"

#include "tests/unit/cli/verb_kit.h"

static void parameters_are_asked_with_their_types(void **state)
{
    const dp_parameter list[] = {{.key = "peer", .text = "bob"}, {.key = "round", .number = 7}};
    const dp_question question = {.method = "why", .parameters = list, .n_parameters = 2};
    dp_control_error error;
    json_t *result = NULL;

    (void)state;
    verb_answer("{'answer': 'x'}");
    assert_int_equal(dp_question_ask("socket", 100, &question, &result, &error), 0);
    assert_true(verb_asked(0, "why", "{'peer': 'bob', 'round': 7}"));
    assert_string_equal(dp_json_text(result, "answer", ""), "x");
    json_decref(result);
}

static void without_a_daemon_nothing_is_asked(void **state)
{
    dp_control_error error;
    json_t *result = NULL;

    (void)state;
    verb_kit.is_down = true;
    assert_int_equal(
        dp_question_ask("socket", 0, &(dp_question){.method = "pause"}, &result, &error),
        DP_EXIT_UNAVAILABLE);
    assert_string_equal(error.code, "E0101");
    assert_int_equal(verb_kit.n_calls, 0);
}

static int keep_first(void *context, const json_t *notice)
{
    *(long long *)context = dp_json_int(notice, "n", 0);
    return DP_EXIT_NEGATIVE;
}

static void a_reader_of_notices_may_end_the_question(void **state)
{
    long long first = 0;
    const dp_question question = {.method = "rounds", .on_notice = keep_first, .context = &first};
    dp_control_error error;
    json_t *result = NULL;

    (void)state;
    verb_answer_after("[{'n': 3}, {'n': 4}]", "{}");
    assert_int_equal(dp_question_ask("socket", 0, &question, &result, &error), DP_EXIT_NEGATIVE);
    assert_int_equal(first, 3);
    assert_null(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(parameters_are_asked_with_their_types),
        VERB_TEST(without_a_daemon_nothing_is_asked),
        VERB_TEST(a_reader_of_notices_may_end_the_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
