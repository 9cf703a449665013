/* Lines of a call that takes long. */
#include "cli/progress.h"
#include "tests/unit/cli/verb_kit.h"

static const char *notice;

/* A verb with one notice. */
static int run_tell(dp_cmd *cmd)
{
    json_t *value = verb_json(notice);
    const int status = dp_progress(cmd, value);
    json_decref(value);
    return status;
}

static const dp_verb tell = {
    .name = "tell", .run = run_tell, .arguments = "", .summary = "", .examples = ""};

static void a_phase_begins_and_ends_with_a_mark_and_its_time(void **state)
{
    (void)state;
    notice = "{'phase': 'data', 'text': 'is fetched'}";
    assert_int_equal(VERB_ALONE(tell), 0);
    assert_string_equal(verb_kit.err, "- data: is fetched\n");
    notice = "{'phase': 'data', 'ok': true, 'text': 'all here', 'ms': 12}";
    assert_int_equal(VERB_ALONE(tell), 0);
    assert_true(verb_warned(" data: all here (12 ms)\n"));
    assert_true(verb_kit.err[0] != '-');
    const size_t good = strlen(verb_kit.err);
    notice = "{'phase': 'data', 'ok': false, 'text': 'all here', 'ms': 12}";
    assert_int_equal(VERB_ALONE(tell), 0);
    assert_true(verb_kit.err[0] != '-' && good > 0);
    assert_string_equal(verb_kit.out, ""); /* A script reads the result alone. */
}

static void what_others_wrote_cannot_steer_the_terminal(void **state)
{
    (void)state;
    notice = "{'phase': 'clock', 'text': '\\u001b[2Jx'}";
    assert_int_equal(VERB_ALONE(tell), 0);
    assert_string_equal(verb_kit.err, "- clock: ?[2Jx\n");
    notice = "{}";
    assert_int_equal(VERB_ALONE(tell), 0);
    assert_string_equal(verb_kit.err, "- ?: \n");
}

static void with_json_a_notice_is_a_line_of_its_own_on_stdout(void **state)
{
    (void)state;
    notice = "{'phase': 'data', 'extra': [1, 2]}";
    assert_int_equal(VERB(tell, "--json"), 0);
    assert_string_equal(verb_kit.out, "{\"phase\":\"data\",\"extra\":[1,2]}\n");
    assert_string_equal(verb_kit.err, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(a_phase_begins_and_ends_with_a_mark_and_its_time),
        VERB_TEST(what_others_wrote_cannot_steer_the_terminal),
        VERB_TEST(with_json_a_notice_is_a_line_of_its_own_on_stdout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
