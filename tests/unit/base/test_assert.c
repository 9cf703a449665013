#include "base/assert.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"

/* Runs dp_assert(value == 4) in a child and returns its wait status; text receives what it
 * printed. */
static int assert_in_child(int value, char *text, size_t text_size)
{
    int ends[2];
    int status = 0;

    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL); /* cmocka and the sanitizers put handlers there. */
        dup2(ends[1], STDERR_FILENO);
        dp_assert(value == 4);
        _exit(0);
    }
    close(ends[1]);
    size_t size = 0;
    ssize_t got = 0;
    while (size < text_size - 1 && (got = read(ends[0], text + size, text_size - 1 - size)) > 0) {
        size += (size_t)got;
    }
    text[size] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_true_condition_goes_on(void **state)
{
    char text[512];

    (void)state;
    assert_int_equal(assert_in_child(4, text, sizeof text), 0);
    assert_string_equal(text, "");
}

static void a_false_condition_names_itself_and_aborts(void **state)
{
    char text[512];

    (void)state;
    const int status = assert_in_child(5, text, sizeof text);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "value == 4"));
    assert_non_null(strstr(text, "test_assert.c:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_true_condition_goes_on),
        cmocka_unit_test(a_false_condition_names_itself_and_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
