#include "cli/cmd.h"

#include <stdio.h>

#include "tests/lib/check.h"

static int run_nothing(dp_cmd *cmd)
{
    (void)cmd;
    return 0;
}

static const dp_verb verb = {
    .name = "try",
    .run = run_nothing,
    .arguments = "WHAT",
    .summary = "try",
    .examples = "",
    .n_args_min = 1,
    .n_args_max = 2,
    .options = {{"last", 'n', "N", "how many"},
                {"follow", 'f', NULL, "go on"},
                {"expires", 0, "TIME", "until"}},
};

static dp_cmd cmd;
static dp_control_error error;

/* Parse words of which the last is NULL. */
static dp_status parse(const char *const *words)
{
    static char room[16][160];
    char *argv[16];
    int argc = 0;
    for (; words[argc] != NULL; argc++) {
        snprintf(room[argc], sizeof room[argc], "%s", words[argc]);
        argv[argc] = room[argc];
    }
    cmd = (dp_cmd){.n_args = 0};
    error = (dp_control_error){.exit = 0};
    return dp_cmd_parse(&cmd, &verb, argc, argv, &error);
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void options_stand_anywhere_in_every_form(void **state)
{
    (void)state;
    CHECK_OK(PARSE("-n", "5", "a", "--json", "--expires=7d", "-f", "b", "--socket", "/run/x"));
    CHECK(cmd.json && cmd.socket_given && cmd.n_args == 2);
    assert_string_equal(cmd.args[1], "b");
    assert_string_equal(cmd.socket, "/run/x");
    assert_string_equal(dp_cmd_option(&cmd, "last"), "5");
    assert_string_equal(dp_cmd_option(&cmd, "expires"), "7d");
    assert_non_null(dp_cmd_option(&cmd, "follow"));
    CHECK_OK(PARSE("-n12", "a"));
    assert_string_equal(dp_cmd_option(&cmd, "last"), "12");
    assert_null(dp_cmd_option(&cmd, "follow"));
}

static void a_dash_alone_and_what_follows_two_dashes_are_arguments(void **state)
{
    (void)state;
    CHECK_OK(PARSE("-", "--", "--json"));
    CHECK(cmd.n_args == 2 && !cmd.json);
    assert_string_equal(cmd.args[0], "-");
    assert_string_equal(cmd.args[1], "--json");
}

static void refused(dp_status status)
{
    CHECK_STATUS(status, DP_BADARG);
    CHECK(error.exit == DP_EXIT_USAGE && error.what[0] != '\0');
    assert_string_equal(error.code, "E0001");
    assert_string_equal(error.fix, "dpnode try --help");
}

static void an_unknown_argument_is_refused_with_usage(void **state)
{
    (void)state;
    refused(PARSE("a", "--wrong"));
    refused(PARSE("a", "-x"));
    refused(PARSE("a", "-fn"));
    refused(PARSE("a", "--follow=yes"));
    refused(PARSE("a", "--last"));
    refused(PARSE("a", "--las", "4"));
    refused(PARSE("a", "b", "c"));
    refused(PARSE(""));
    refused(PARSE("a", ""));
    refused(PARSE("--", ""));
    assert_non_null(strstr(error.what, "empty"));
    refused(PARSE("--json"));
    refused(PARSE("a", "--socket", ""));
    assert_non_null(strstr(error.why, "--socket"));
    refused(PARSE("a", "--socket="));
    refused(PARSE("a", "--socket",
                  "/0123456789012345678901234567890123456789012345678901234567890123456789012345678"
                  "901234567890123456789"));
}

static void an_option_that_is_nearly_right_is_named(void **state)
{
    (void)state;
    refused(PARSE("a", "--folow"));
    assert_string_equal(error.why, "--folow; did you mean --follow?");
    refused(PARSE("a", "--lsat=4"));
    assert_string_equal(error.why, "--lsat=4; did you mean --last?");
    refused(PARSE("a", "--scoket", "/x"));
    assert_non_null(strstr(error.why, "did you mean --socket?"));
    refused(PARSE("a", "--zebra"));
    assert_string_equal(error.why, "--zebra");
    refused(PARSE("a", "-x"));
    assert_string_equal(error.why, "-x");
}

static void help_needs_no_arguments(void **state)
{
    (void)state;
    CHECK_OK(PARSE("-h"));
    CHECK(cmd.help);
}

static void numbers_have_bounds(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "x", "-1", "+4", "4x", " 4", "0", "101", "99999999999999999999999"};
    uint64_t number = 42;
    CHECK_OK(PARSE("a"));
    CHECK(dp_cmd_number(&cmd, "last", 1, 100, &number, &error) && number == 42);
    CHECK_OK(PARSE("a", "-n", "100"));
    CHECK(dp_cmd_number(&cmd, "last", 1, 100, &number, &error) && number == 100);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_OK(PARSE("a", "-n", bad[i]));
        CHECK(!dp_cmd_number(&cmd, "last", 1, 100, &number, &error) && number == 100);
        CHECK(error.exit == DP_EXIT_USAGE && strstr(error.why, "--last") != NULL);
    }
}

static void spans_of_time_have_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t seconds;
    } good[] = {{"90", 90},     {"90s", 90},    {"15m", 900},
                {"15min", 900}, {"24h", 86400}, {"7d", 604800}};
    static const char *const bad[] = {"", "0", "d", "7w", "-1d", "1.5h", "99999999999d"};
    uint64_t seconds = 0;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_OK(PARSE("a", "--expires", good[i].text));
        CHECK(dp_cmd_seconds(&cmd, "expires", &seconds, &error) && seconds == good[i].seconds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_OK(PARSE("a", "--expires", bad[i]));
        CHECK(!dp_cmd_seconds(&cmd, "expires", &seconds, &error) && seconds == 604800);
    }
}

static void every_verb_has_its_texts_and_a_name_of_its_own(void **state)
{
    (void)state;
    size_t count = 0;
    const dp_verb *const *verbs = dp_verbs(&count);
    CHECK(count > 20);
    for (size_t i = 0; i < count; i++) {
        CHECK(verbs[i]->run != NULL && verbs[i]->summary[0] != '\0');
        CHECK(strncmp(verbs[i]->examples, "  ", 2) == 0 &&
              strstr(verbs[i]->examples, verbs[i]->name) != NULL);
        CHECK(verbs[i]->n_args_max <= DP_ARGUMENTS_MAX &&
              verbs[i]->n_args_min <= verbs[i]->n_args_max);
        for (size_t k = 0; k < i; k++) {
            CHECK(strcmp(verbs[i]->name, verbs[k]->name) != 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_stand_anywhere_in_every_form),
        cmocka_unit_test(a_dash_alone_and_what_follows_two_dashes_are_arguments),
        cmocka_unit_test(an_unknown_argument_is_refused_with_usage),
        cmocka_unit_test(an_option_that_is_nearly_right_is_named),
        cmocka_unit_test(help_needs_no_arguments),
        cmocka_unit_test(numbers_have_bounds),
        cmocka_unit_test(spans_of_time_have_units),
        cmocka_unit_test(every_verb_has_its_texts_and_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
