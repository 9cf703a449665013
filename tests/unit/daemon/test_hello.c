#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/hello.h"

static void a_name_comes_as_it_was_said(void **state)
{
    uint8_t bytes[64];
    char name[DP_NAME_MAX + 1] = "";

    (void)state;
    const size_t size = dp_hello_write("anna-2", bytes, sizeof bytes);
    assert_true(dp_hello_read(dp_view_of(bytes, size), name));
    assert_string_equal(name, "anna-2");
}

static void what_a_later_version_adds_is_skipped(void **state)
{
    uint8_t bytes[64];
    char name[DP_NAME_MAX + 1] = "";

    (void)state;
    const size_t size = dp_hello_write("anna", bytes, sizeof bytes);
    bytes[0] = 9;
    memset(bytes + size, 0xff, 20);
    assert_true(dp_hello_read(dp_view_of(bytes, size + 20), name));
    assert_string_equal(name, "anna");
}

static void what_is_no_hello_leaves_the_name(void **state)
{
    static const uint8_t zero[] = {0, 1, 'x'};
    static const uint8_t cut[] = {1, 5, 'x'};
    char name[DP_NAME_MAX + 1] = "was";

    (void)state;
    assert_false(dp_hello_read(dp_view_of(zero, sizeof zero), name));
    assert_false(dp_hello_read(dp_view_of(cut, sizeof cut), name));
    assert_false(dp_hello_read(dp_view_of(cut, 1), name));
    assert_false(dp_hello_read(dp_view_of(cut, 0), name));
    assert_string_equal(name, "was");
}

static void a_name_for_a_terminal_is_printable_and_short(void **state)
{
    uint8_t bytes[202] = {1, 200};
    char name[DP_NAME_MAX + 1] = "";

    (void)state;
    memset(bytes + 2, 'a', 200);
    memcpy(bytes + 2, "\x1b[2J\"\\\x80 ", 8);
    assert_true(dp_hello_read(dp_view_of(bytes, sizeof bytes), name));
    assert_int_equal(strlen(name), DP_NAME_MAX);
    assert_memory_equal(name, "_[2J____a", 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_comes_as_it_was_said),
        cmocka_unit_test(what_a_later_version_adds_is_skipped),
        cmocka_unit_test(what_is_no_hello_leaves_the_name),
        cmocka_unit_test(a_name_for_a_terminal_is_printable_and_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
