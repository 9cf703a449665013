/* explain: each row of docs/ERRORS.md, found by its code. */
#include "tests/unit/cli/verb_kit.h"

static void a_code_gets_its_meaning_and_its_exit_status(void **state)
{
    (void)state;
    assert_int_equal(VERB(dp_verb_explain, "E0203"), 0);
    assert_true(verb_said("E0203  the token is incomplete or mistyped"));
    assert_true(verb_said("\nexit status: 65\n"));
    assert_int_equal(VERB(dp_verb_explain, "e0213"), 0);
    assert_true(verb_said("\nexit status: 75, 77\n"));
    assert_int_equal(VERB(dp_verb_explain, "E0303"), 0);
    assert_true(verb_said("\nexit status: that of the cause\n"));
    assert_int_equal(verb_kit.n_calls, 0); /* No daemon is asked. */
}

static void another_word_is_refused_with_the_way_to_the_list(void **state)
{
    static const char *const words[] = {"E0299", "E020", "E02030", "token"};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        assert_int_equal(VERB(dp_verb_explain, words[i]), DP_EXIT_USAGE);
        assert_true(verb_warned("no error has this code"));
        assert_true(verb_warned("dpnode explain   # lists all codes"));
    }
    assert_int_equal(VERB(dp_verb_explain, "E0203", "E0204"), DP_EXIT_USAGE);
}

static void without_a_code_every_row_of_the_document_is_a_line(void **state)
{
    char line[4096];
    size_t n_rows = 0;
    size_t n_lines = 0;
    (void)state;
    FILE *const file = fopen("docs/ERRORS.md", "re"); /* Tests run in the root of the tree. */
    assert_non_null(file);
    assert_int_equal(VERB_ALONE(dp_verb_explain), 0);
    while (fgets(line, sizeof line, file) != NULL) {
        char wanted[16];
        if (strncmp(line, "| E0", 4) == 0) {
            snprintf(wanted, sizeof wanted, "%.5s  ", line + 2);
            assert_true(verb_said(wanted));
            n_rows++;
        }
    }
    fclose(file);
    for (const char *at = verb_kit.out; *at != '\0'; at++) {
        n_lines += *at == '\n';
    }
    assert_true(n_rows > 80);
    assert_int_equal(n_lines, n_rows);
}

static void json_has_the_exit_statuses_as_numbers(void **state)
{
    (void)state;
    assert_int_equal(VERB(dp_verb_explain, "E0213", "--json"), 0);
    assert_true(
        verb_said("{\"code\":\"E0213\",\"exit\":[75,77],\"group\":\"Tokens\",\"meaning\":"));
    assert_int_equal(VERB(dp_verb_explain, "E0106", "--json"), 0);
    assert_true(verb_said("\"exit\":[],\"group\":\"The daemon\""));
    assert_int_equal(VERB(dp_verb_explain, "--json"), 0);
    assert_true(verb_said("\n{\"code\":\"E0002\",\"exit\":[64],\"group\":\"Usage\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(a_code_gets_its_meaning_and_its_exit_status),
        VERB_TEST(another_word_is_refused_with_the_way_to_the_list),
        VERB_TEST(without_a_code_every_row_of_the_document_is_a_line),
        VERB_TEST(json_has_the_exit_statuses_as_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
