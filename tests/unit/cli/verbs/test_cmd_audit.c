/* dpnode audit: its output for a daemon's answer, and its exit status. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "tests/lib/check.h"

int __wrap_dp_client_ask(const dp_cmd *cmd, const char *method, json_t **result,
                         dp_control_error *error);

/* Stands for the daemon. */
static json_t *answer;

int __wrap_dp_client_ask(const dp_cmd *cmd, const char *method, json_t **result,
                         dp_control_error *error)
{
    (void)cmd;
    (void)error;
    assert_string_equal(method, "audit");
    *result = json_incref(answer);
    return 0;
}

static json_t *answer_of(uint64_t listed, uint64_t all)
{
    json_t *findings = json_array();
    for (uint64_t i = 0; i < listed; i++) {
        json_array_append_new(findings, json_pack("{s:I, s:s}", "slot", (json_int_t)i + 7, "text",
                                                  "the record is missing"));
    }
    json_t *causes = json_array();
    if (all > 0) {
        json_array_append_new(causes,
                              json_pack("{s:s, s:I, s:I, s:I}", "text", "the record is missing",
                                        "count", (json_int_t)all, "first", (json_int_t)7, "last",
                                        (json_int_t)all + 6));
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:[], s:i}", "head", (json_int_t)500,
                     "records", (json_int_t)(500 - all), "rounds", (json_int_t)499, "n_findings",
                     (json_int_t)all, "stopped", (json_int_t)(all > 0 ? 7 : 0), "loosely",
                     (json_int_t)3, "findings", findings, "causes", causes, "members", "more", 30);
}

/* Runs the verb and reads what it printed. */
static int run(bool json, char *text, size_t size)
{
    dp_cmd cmd = {.verb = &dp_verb_audit, .json = json};
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
    const int status = dp_verb_audit.run(&cmd);
    fflush(stdout);
    assert_true(dup2(before, STDOUT_FILENO) >= 0);
    close(before);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    json_decref(answer);
    return status;
}

static void a_chain_that_holds_ends_with_0(void **state)
{
    static char text[16384];

    (void)state;
    answer = answer_of(0, 0);
    assert_int_equal(run(false, text, sizeof text), 0);
    assert_non_null(strstr(text, "500 of 500 records are valid"));
    assert_null(strstr(text, "findings"));
    assert_null(strstr(text, "cannot be applied"));
    assert_non_null(strstr(text, "and 30 more"));
}

static void each_finding_is_a_line_and_the_end_is_1(void **state)
{
    static char text[16384];

    (void)state;
    answer = answer_of(3, 3);
    assert_int_equal(run(false, text, sizeof text), DP_EXIT_NEGATIVE);
    for (unsigned slot = 7; slot < 10; slot++) {
        char line[64];
        snprintf(line, sizeof line, "record %u: the record is missing\n", slot);
        assert_non_null(strstr(text, line));
    }
    assert_null(strstr(text, "findings in all"));
    assert_non_null(strstr(text, "record 7 cannot be applied"));
}

static void what_is_not_listed_is_counted_by_cause(void **state)
{
    static char text[16384];

    (void)state;
    answer = answer_of(64, 200);
    assert_int_equal(run(false, text, sizeof text), DP_EXIT_NEGATIVE);
    assert_non_null(strstr(text, "200 findings in all"));
    assert_non_null(strstr(text, "200 x the record is missing, records 7 to 206"));
}

static void json_ends_alike(void **state)
{
    static char text[16384];

    (void)state;
    answer = answer_of(1, 1);
    assert_int_equal(run(true, text, sizeof text), DP_EXIT_NEGATIVE);
    assert_non_null(strstr(text, "\"n_findings\""));
    answer = answer_of(0, 0);
    assert_int_equal(run(true, text, sizeof text), 0);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_chain_that_holds_ends_with_0),
        TEST(each_finding_is_a_line_and_the_end_is_1),
        TEST(what_is_not_listed_is_counted_by_cause),
        TEST(json_ends_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
