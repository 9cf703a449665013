#include "cli/token.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/check.h"

static char token[DP_TOKEN_INPUT_MAX];
static dp_control_error error;

static int input(const char *argument)
{
    const dp_cmd cmd = {
        .verb = &dp_verb_join, .args = {argument}, .n_args = argument != NULL ? 1 : 0};
    return dp_token_input(&cmd, token, &error);
}

/* Standard input becomes these bytes. */
static void feed(const char *bytes, size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    CHECK(fwrite(bytes, 1, size, file) == size);
    rewind(file);
    stdin = file;
}

static void a_token_comes_as_argument_or_by_the_environment(void **state)
{
    (void)state;
    CHECK(input("  DPN1-AAAA\n") == 0);
    assert_string_equal(token, "DPN1-AAAA");
    setenv("DPNODE_TOKEN", "DPN1-BBBB", 1);
    CHECK(input(NULL) == 0);
    assert_string_equal(token, "DPN1-BBBB");
    unsetenv("DPNODE_TOKEN");
    CHECK(input(NULL) == DP_EXIT_USAGE);
    assert_string_equal(error.code, "E0001");
    CHECK(strstr(error.fix, "dpnode join ") != NULL);
}

static void a_dash_reads_standard_input(void **state)
{
    (void)state;
    FILE *kept = stdin;
    feed("DPN1-CC\nCC\n", 11);
    CHECK(input("-") == 0);
    assert_string_equal(token, "DPN1-CCCC");
    fclose(stdin);
    stdin = kept;
}

static void a_text_that_cannot_be_a_token_is_refused(void **state)
{
    (void)state;
    static char longest[DP_TOKEN_INPUT_MAX + 8];
    FILE *kept = stdin;
    memset(longest, 'A', sizeof longest - 1);
    CHECK(input(" \n") == DP_EXIT_DATA);
    CHECK(input(longest) == DP_EXIT_DATA);
    feed(longest, sizeof longest - 1);
    CHECK(input("-") == DP_EXIT_DATA);
    fclose(stdin);
    feed("DPN1\0AA", 7);
    CHECK(input("-") == DP_EXIT_DATA);
    fclose(stdin);
    feed("", 0);
    CHECK(input("-") == DP_EXIT_DATA);
    fclose(stdin);
    stdin = kept;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_comes_as_argument_or_by_the_environment),
        cmocka_unit_test(a_dash_reads_standard_input),
        cmocka_unit_test(a_text_that_cannot_be_a_token_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
