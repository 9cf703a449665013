#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "compute/machine/tool.h"

/* Standard error goes into a file meanwhile. */
static FILE *said;
static int before;

static int listen_in(void **state)
{
    (void)state;
    said = tmpfile();
    before = dup(STDERR_FILENO);
    return said == NULL || before < 0 || dup2(fileno(said), STDERR_FILENO) < 0;
}

static int end_listening(void **state)
{
    (void)state;
    return dup2(before, STDERR_FILENO) < 0 || close(before) != 0 || fclose(said) != 0;
}

/* All that was said since the last call. */
static const char *heard(void)
{
    static char text[512];
    rewind(said);
    text[fread(text, 1, sizeof text - 1, said)] = '\0';
    rewind(said);
    assert_int_equal(ftruncate(fileno(said), 0), 0);
    return text;
}

static void a_failure_is_one_line_and_a_status_of_sysexits(void **state)
{
    (void)state;
    static const struct {
        dp_status status;
        int exit;
    } rows[] = {{DP_NOTFOUND, EX_NOINPUT}, {DP_IO, EX_IOERR},       {DP_NOSPACE, EX_IOERR},
                {DP_NOMEM, EX_OSERR},      {DP_BADMSG, EX_DATAERR}, {DP_TOOBIG, EX_DATAERR}};
    dp_why why = {{0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[256];
        snprintf(line, sizeof line, "%s\n", dp_status_text(rows[i].status));
        assert_int_equal(dp_tool_complain(rows[i].status, &why), rows[i].exit);
        assert_string_equal(heard(), line);
    }
    snprintf(why.text, sizeof why.text, "the file is torn");
    assert_int_equal(dp_tool_complain(DP_BADMSG, &why), EX_DATAERR);
    assert_string_equal(heard(), "the file is torn\n");
}

static void a_number_is_digits_within_its_bounds(void **state)
{
    (void)state;
    uint64_t number = 5;
    assert_true(dp_tool_number("0", 0, 9, &number) && number == 0);
    assert_true(dp_tool_number("9", 0, 9, &number) && number == 9);
    assert_true(dp_tool_number("18446744073709551615", 0, UINT64_MAX, &number));
    assert_true(number == UINT64_MAX);
    assert_string_equal(heard(), "");
}

static void what_is_no_number_is_told_and_changes_nothing(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",    " 3",  "-1",  "+3", "3x", "0x3",
                                        "3.0", "1e1", "two", "2",  "10", "18446744073709551616"};
    uint64_t number = 5;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char line[128];
        snprintf(line, sizeof line, "'%s' must be a number from 3 to 9\n", wrong[i]);
        assert_false(dp_tool_number(wrong[i], 3, 9, &number));
        assert_int_equal(number, 5);
        assert_string_equal(heard(), line);
    }
}

#define heard_test(test) cmocka_unit_test_setup_teardown(test, listen_in, end_listening)

int main(void)
{
    const struct CMUnitTest tests[] = {
        heard_test(a_failure_is_one_line_and_a_status_of_sysexits),
        heard_test(a_number_is_digits_within_its_bounds),
        heard_test(what_is_no_number_is_told_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
