#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/net/hello.h"

static const dp_renewal none;

static void a_name_comes_as_it_was_said(void **state)
{
    uint8_t bytes[64];
    dp_hello hello = {.rules = 0};

    (void)state;
    const size_t size = dp_hello_write("anna-2", &none, bytes, sizeof bytes);
    assert_true(dp_hello_read(dp_view_of(bytes, size), &hello));
    assert_string_equal(hello.name, "anna-2");
    assert_int_equal(hello.rules, DP_RULES);
}

static void a_hello_without_rules_means_the_first_ones(void **state)
{
    static const uint8_t bytes[] = {1, 4, 'a', 'n', 'n', 'a'};
    dp_hello hello = {.rules = 0};

    (void)state;
    assert_true(dp_hello_read(dp_view_of(bytes, sizeof bytes), &hello));
    assert_string_equal(hello.name, "anna");
    assert_int_equal(hello.rules, 1);
}

static void fields_of_a_later_version_are_skipped(void **state)
{
    uint8_t bytes[64];
    dp_hello hello = {.rules = 0};

    (void)state;
    const size_t size = dp_hello_write("anna", &none, bytes, sizeof bytes);
    bytes[0] = 9;
    memset(bytes + size, 0xff, 20);
    assert_true(dp_hello_read(dp_view_of(bytes, size + 20), &hello));
    assert_string_equal(hello.name, "anna");
    assert_int_equal(hello.rules, DP_RULES);
}

static void a_renewal_is_shown_and_what_is_cut_is_no_hello(void **state)
{
    uint8_t bytes[256];
    dp_hello hello = {.rules = 0};
    const dp_renewal renewal = {.peer = {{1}}, .until_ms = 77, .by = {{2}}, .signature = {3, 4, 5}};

    (void)state;
    const size_t size = dp_hello_write("anna", &renewal, bytes, sizeof bytes);
    assert_true(dp_hello_read(dp_view_of(bytes, size), &hello));
    assert_memory_equal(&hello.renewal, &renewal, sizeof renewal);
    assert_false(dp_hello_read(dp_view_of(bytes, size - 1), &hello));
    bytes[0] = 2; /* Of that version the rest is nothing. */
    assert_true(dp_hello_read(dp_view_of(bytes, size), &hello));
    assert_int_equal(hello.renewal.until_ms, 0);
}

static void bytes_that_are_no_hello_leave_the_name(void **state)
{
    static const uint8_t zero[] = {0, 1, 'x'};
    static const uint8_t cut[] = {1, 5, 'x'};
    static const uint8_t no_rules[] = {2, 1, 'x', 2, 0, 0};
    dp_hello hello = {.name = "was", .rules = 7};

    (void)state;
    assert_false(dp_hello_read(dp_view_of(zero, sizeof zero), &hello));
    assert_false(dp_hello_read(dp_view_of(cut, sizeof cut), &hello));
    assert_false(dp_hello_read(dp_view_of(cut, 1), &hello));
    assert_false(dp_hello_read(dp_view_of(cut, 0), &hello));
    assert_false(dp_hello_read(dp_view_of(no_rules, sizeof no_rules), &hello));
    assert_string_equal(hello.name, "was");
    assert_int_equal(hello.rules, 7);
}

static void a_name_for_a_terminal_is_printable_and_short(void **state)
{
    uint8_t bytes[202] = {1, 200};
    dp_hello hello = {.rules = 0};

    (void)state;
    memset(bytes + 2, 'a', 200);
    memcpy(bytes + 2, "\x1b[2J\"\\\x80 ", 8);
    assert_true(dp_hello_read(dp_view_of(bytes, sizeof bytes), &hello));
    assert_int_equal(strlen(hello.name), DP_NAME_MAX);
    assert_memory_equal(hello.name, "_[2J____a", 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_comes_as_it_was_said),
        cmocka_unit_test(a_hello_without_rules_means_the_first_ones),
        cmocka_unit_test(fields_of_a_later_version_are_skipped),
        cmocka_unit_test(a_renewal_is_shown_and_what_is_cut_is_no_hello),
        cmocka_unit_test(bytes_that_are_no_hello_leave_the_name),
        cmocka_unit_test(a_name_for_a_terminal_is_printable_and_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
