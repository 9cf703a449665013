/* The bytes of an owner's pause, and the words for it. */
#include "daemon/host/pause.h"

#include "tests/lib/check.h"

static const dp_pause since_nov = {
    .holds = true, .since_ms = UINT64_C(1795431302000), .user = "alice"};

static void a_pause_is_read_as_it_was_written(void **state)
{
    uint8_t bytes[DP_PAUSE_BYTES_MAX];
    dp_pause read = {.holds = false};
    (void)state;
    CHECK_OK(dp_pause_read(&read, dp_pause_write(&since_nov, bytes)));
    CHECK(read.holds && read.since_ms == since_nov.since_ms);
    assert_string_equal(read.user, "alice");
}

static void bytes_that_are_no_order_pause_as_well(void **state)
{
    uint8_t bytes[DP_PAUSE_BYTES_MAX];
    (void)state;
    const dp_view whole = dp_pause_write(&since_nov, bytes);
    for (size_t size = 0; size < whole.size; size++) {
        dp_pause read = {.holds = false};
        CHECK(dp_pause_read(&read, dp_view_of(bytes, size)) == DP_CORRUPT);
        CHECK(read.holds && read.since_ms == 0 && read.user[0] == '\0');
    }
    bytes[whole.size - 1] = '\033'; /* It would reach a terminal. */
    dp_pause read = {.holds = false};
    CHECK(dp_pause_read(&read, whole) == DP_CORRUPT && read.holds);
    bytes[0] = 2;
    CHECK(dp_pause_read(&read, whole) == DP_VERSION && read.holds);
}

static void it_is_told_since_when_and_by_whom(void **state)
{
    char text[128];
    (void)state;
    dp_pause_text(&since_nov, text, sizeof text);
    assert_string_equal(text, ", by alice, since 2026-11-23 10:55:02 UTC");
    dp_pause_text(&(dp_pause){.holds = true}, text, sizeof text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_is_read_as_it_was_written),
        cmocka_unit_test(bytes_that_are_no_order_pause_as_well),
        cmocka_unit_test(it_is_told_since_when_and_by_whom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
