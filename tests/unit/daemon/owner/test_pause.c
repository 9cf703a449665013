/* The bytes of an owner's pause, and the words for it. */
#include "daemon/owner/pause.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/check.h"

#define NOW UINT64_C(1795431302000)
#define HOUR_MS UINT64_C(3600000)

static const dp_pause since_nov = {
    .holds = true, .since_ms = NOW, .until_ms = NOW + HOUR_MS, .user = "alice"};

static void a_pause_is_read_as_it_was_written(void **state)
{
    uint8_t bytes[DP_PAUSE_BYTES_MAX];
    dp_pause read = {.holds = false};
    (void)state;
    CHECK_OK(dp_pause_read(&read, dp_pause_write(&since_nov, bytes)));
    CHECK(read.holds && read.since_ms == since_nov.since_ms);
    CHECK(read.until_ms == NOW + HOUR_MS && read.for_ms == 0 && !read.waits);
    assert_string_equal(read.user, "alice");
    const dp_pause later = {.holds = true, .waits = true, .since_ms = 1, .for_ms = HOUR_MS};
    CHECK_OK(dp_pause_read(&read, dp_pause_write(&later, bytes)));
    CHECK(read.holds && read.waits && read.for_ms == HOUR_MS && read.user[0] == '\0');
}

static void a_pause_of_the_version_before_has_no_end(void **state)
{
    static const uint8_t old[] = {1, 1, 0, 0, 0, 0, 0, 0, 0, 3, 'b', 'o', 'b'};
    dp_pause read = {.holds = false};
    (void)state;
    CHECK_OK(dp_pause_read(&read, dp_view_of(old, sizeof old)));
    CHECK(read.holds && !read.waits && read.since_ms == 1 && read.until_ms == 0);
    assert_string_equal(read.user, "bob");
}

static void a_user_without_a_name_keeps_the_end(void **state)
{
    uint8_t bytes[DP_PAUSE_BYTES_MAX];
    dp_pause nameless = since_nov;
    dp_pause read = {.holds = false};
    (void)state;
    snprintf(nameless.user, sizeof nameless.user, "uid 10001");
    CHECK_OK(dp_pause_read(&read, dp_pause_write(&nameless, bytes)));
    CHECK(read.until_ms == since_nov.until_ms);
    assert_string_equal(read.user, "uid 10001");
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
    bytes[whole.size - 1] = 2; /* neither waits nor not */
    dp_pause read = {.holds = false};
    CHECK(dp_pause_read(&read, whole) == DP_CORRUPT && read.holds && !read.waits);
    bytes[whole.size - 1] = 0;
    bytes[10] = '\033'; /* It would reach a terminal. */
    CHECK(dp_pause_read(&read, whole) == DP_CORRUPT && read.holds);
    bytes[10] = 'a';
    bytes[whole.size - 2] = 1; /* a length of centuries */
    CHECK(dp_pause_read(&read, whole) == DP_CORRUPT && read.holds && read.for_ms == 0);
    bytes[0] = 3;
    CHECK(dp_pause_read(&read, whole) == DP_VERSION && read.holds);
}

static void it_is_told_since_when_and_by_whom(void **state)
{
    char text[DP_PAUSE_TEXT_MAX];
    dp_pause pause = since_nov;
    (void)state;
    pause.until_ms = 0;
    dp_pause_text(&pause, text, sizeof text);
    assert_string_equal(text, ", by alice, since 2026-11-23 10:55:02 UTC");
    dp_pause_text(&since_nov, text, sizeof text);
    assert_string_equal(text,
                        ", by alice, since 2026-11-23 10:55:02 UTC, until 2026-11-23 11:55:02 UTC");
    setenv("TZ", "CET-1", 1); /* The owner's hours, not those of another place. */
    tzset();
    dp_pause_text(&pause, text, sizeof text);
    assert_string_equal(text, ", by alice, since 2026-11-23 11:55:02 CET");
    setenv("TZ", "UTC", 1);
    tzset();
    pause = (dp_pause){.holds = true, .waits = true, .since_ms = NOW, .for_ms = HOUR_MS / 2};
    dp_pause_text(&pause, text, sizeof text);
    assert_string_equal(text, ", when a round has counted this node's work, for 30 min");
    dp_pause_text(&(dp_pause){.holds = true}, text, sizeof text);
    assert_string_equal(text, "");
}

static void a_length_passes_whatever_the_clock_is_set_to_and_an_hour_goes_by_the_clock(void **state)
{
    dp_pause length = {.holds = true, .for_ms = HOUR_MS};
    dp_pause hour = since_nov;
    (void)state;
    dp_pause_begin(&length, NOW);
    CHECK(dp_pause_clock_moved(&length, 5 * (int64_t)HOUR_MS));
    CHECK(!dp_pause_is_over(&length, NOW + 5 * HOUR_MS + HOUR_MS - 1));
    CHECK(dp_pause_is_over(&length, NOW + 6 * HOUR_MS));
    CHECK(dp_pause_clock_moved(&length, -5 * (int64_t)HOUR_MS));
    CHECK(!dp_pause_is_over(&length, NOW + HOUR_MS - 1) &&
          dp_pause_is_over(&length, NOW + HOUR_MS));
    CHECK(!dp_pause_clock_moved(&hour, 5 * (int64_t)HOUR_MS));
    CHECK(dp_pause_is_over(&hour, NOW + 5 * HOUR_MS));
}

static void a_start_with_a_clock_set_back_does_not_lengthen_a_pause(void **state)
{
    dp_pause pause = {.holds = true, .since_ms = NOW, .until_ms = NOW + HOUR_MS, .for_ms = HOUR_MS};
    (void)state;
    CHECK(!dp_pause_restart(&pause, NOW + 1000) && pause.until_ms == NOW + HOUR_MS);
    CHECK(dp_pause_restart(&pause, 1000)); /* 1970: no battery keeps the clock */
    CHECK(pause.until_ms == 1000 + HOUR_MS);
    pause = (dp_pause){.holds = true, .waits = true, .for_ms = HOUR_MS};
    CHECK(dp_pause_restart(&pause, NOW)); /* Its work was lost with the daemon. */
    CHECK(!pause.waits && pause.since_ms == NOW && pause.until_ms == NOW + HOUR_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_is_read_as_it_was_written),
        cmocka_unit_test(a_pause_of_the_version_before_has_no_end),
        cmocka_unit_test(a_user_without_a_name_keeps_the_end),
        cmocka_unit_test(bytes_that_are_no_order_pause_as_well),
        cmocka_unit_test(it_is_told_since_when_and_by_whom),
        cmocka_unit_test(
            a_length_passes_whatever_the_clock_is_set_to_and_an_hour_goes_by_the_clock),
        cmocka_unit_test(a_start_with_a_clock_set_back_does_not_lengthen_a_pause),
    };
    setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
