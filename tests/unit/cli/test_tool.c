#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/tool.h"

static const dp_verb verb = {.name = "data tokenize",
                             .options = {{"out", 'o', "FOLDER", ""}, {"vocab", 0, "N", ""}}};

static void words_are_added_where_they_were_given(void **state)
{
    (void)state;
    const dp_cmd cmd = {.verb = &verb, .values = {"book"}};
    dp_cli_words words = {.count = 0};
    dp_cli_words_add(&words, "data");
    dp_cli_words_option(&words, &cmd, "--out");
    dp_cli_words_option(&words, &cmd, "--vocab");
    dp_cli_words_pair(&words, "--rows", NULL);
    dp_cli_words_pair(&words, "--rows", "3");
    static const char *const wanted[] = {"data", "--out", "book", "--rows", "3"};
    assert_int_equal(words.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(words.list[i], wanted[i]);
    }
    assert_null(words.list[5]);
}

static void too_many_words_are_refused_and_not_cut(void **state)
{
    (void)state;
    static dp_cli_tool tool;
    dp_cli_words words = {.count = 0};
    for (size_t i = 0; i < 2 * DP_CLI_TOOL_ARGUMENTS_MAX; i++) {
        dp_cli_words_add(&words, "word");
    }
    assert_null(words.list[words.count]);
    assert_int_equal(dp_cli_tool_run(&tool, words.list), DP_TOOBIG);
}

static void a_program_of_another_name_is_run_and_heard(void **state)
{
    (void)state;
    static dp_cli_tool tool;
    const char *const arguments[] = {"-c", "echo out; echo err >&2; exit 3", NULL};
    assert_int_equal(dp_cli_tool_run_program(&tool, "sh", arguments), DP_OK);
    assert_int_equal(tool.exit, 3);
    assert_string_equal(tool.answer, "out\n");
    assert_string_equal(tool.words, "err");
    const char *const none[] = {NULL};
    assert_int_equal(dp_cli_tool_run_program(&tool, "dpnode-that-is-not-there", none), DP_NOTFOUND);
}

static void a_manifest_lies_in_memory_until_it_is_closed(void **state)
{
    (void)state;
    static dp_manifest manifest;
    char path[DP_CLI_TOOL_PATH_MAX];
    uint8_t wanted[DP_MANIFEST_BYTES_MAX];
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest_default(&manifest);
    assert_int_equal(dp_manifest_encode(&manifest, wanted, &size), DP_OK);
    const int fd = dp_cli_tool_manifest(&manifest, path);
    assert_true(fd >= 0);
    assert_int_equal(access(path, R_OK), 0);
    assert_int_equal(pread(fd, bytes, sizeof bytes, 0), size);
    assert_memory_equal(bytes, wanted, size);
    assert_int_equal(close(fd), 0);
}

/* ---- failures ---- */

static char said[2048];

static FILE *hearing;
static int hearing_before;

/* From here on said gets the standard output. */
static void hear(void)
{
    hearing = tmpfile();
    hearing_before = dup(STDOUT_FILENO);
    assert_true(hearing != NULL && hearing_before >= 0);
    fflush(stdout);
    assert_true(dup2(fileno(hearing), STDOUT_FILENO) >= 0);
}

static void stop_hearing(void)
{
    fflush(stdout);
    assert_true(dup2(hearing_before, STDOUT_FILENO) >= 0);
    close(hearing_before);
    rewind(hearing);
    said[fread(said, 1, sizeof said - 1, hearing)] = '\0';
    fclose(hearing);
}

/* The report of the verb about a tool that ended so, as JSON. */
static int failed(int exit, const char *words, const dp_cli_failure *rows)
{
    static dp_cli_tool tool;
    const dp_cmd cmd = {.verb = &verb, .json = true};
    tool.exit = exit;
    strcpy(tool.words, words);
    hear();
    const int answer = dp_cli_tool_failed(&cmd, &tool, rows, "give fewer");
    stop_hearing();
    return answer;
}

static void a_long_answer_is_read_whole_and_one_above_the_limit_is_told(void **state)
{
    static dp_cli_tool tool;
    const dp_cmd cmd = {.verb = &verb, .json = true};
    const char *const long_one[] = {"-c", "head -c 140000 /dev/zero | tr '\\0' x", NULL};
    const char *const too_long[] = {"-c", "head -c 1200000 /dev/zero", NULL};
    (void)state;
    assert_int_equal(dp_cli_tool_run_program(&tool, "sh", long_one), DP_OK);
    assert_int_equal(strlen(tool.answer), 140000);
    const dp_status status = dp_cli_tool_run_program(&tool, "sh", too_long);
    assert_int_equal(status, DP_TOOBIG);
    hear();
    const int exit = dp_cli_tool_missing(&cmd, status);
    stop_hearing();
    assert_int_equal(exit, DP_EXIT_SOFTWARE);
    assert_non_null(strstr(said, "E0504"));
    assert_null(strstr(said, "no process"));
}

static void a_failure_has_the_verbs_row_or_the_common_one(void **state)
{
    static const dp_cli_failure rows[] = {
        {DP_EXIT_DATA, "E0501", "another file", "the input is bad"}, {0, NULL, NULL, NULL}};
    (void)state;
    assert_int_equal(failed(DP_EXIT_DATA, "line 3 is torn", rows), DP_EXIT_DATA);
    assert_non_null(strstr(said, "E0501"));
    assert_non_null(strstr(said, "line 3 is torn"));
    assert_int_equal(failed(DP_EXIT_USAGE, "'x' must be a number\nusage: ...", rows),
                     DP_EXIT_USAGE);
    assert_non_null(strstr(said, "dpnode data tokenize --help"));
    assert_null(strstr(said, "usage:"));
    assert_int_equal(failed(DP_EXIT_NOINPUT, "", NULL), DP_EXIT_NOINPUT);
    assert_non_null(strstr(said, "E0502"));
    assert_int_equal(failed(DP_EXIT_IO, "", NULL), DP_EXIT_IO);
    assert_non_null(strstr(said, "E0503"));
}

static void any_other_end_is_told_as_such(void **state)
{
    (void)state;
    assert_int_equal(failed(-1, "killed", NULL), DP_EXIT_SOFTWARE);
    assert_non_null(strstr(said, "E0504"));
    assert_non_null(strstr(said, "give fewer"));
    assert_int_equal(failed(0, "", NULL), DP_EXIT_SOFTWARE); /* It answered nonsense. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_added_where_they_were_given),
        cmocka_unit_test(too_many_words_are_refused_and_not_cut),
        cmocka_unit_test(a_program_of_another_name_is_run_and_heard),
        cmocka_unit_test(a_manifest_lies_in_memory_until_it_is_closed),
        cmocka_unit_test(a_long_answer_is_read_whole_and_one_above_the_limit_is_told),
        cmocka_unit_test(a_failure_has_the_verbs_row_or_the_common_one),
        cmocka_unit_test(any_other_end_is_told_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
