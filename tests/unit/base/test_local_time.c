/* Times of the day, and the local clock where it is changed: Europe's rules, written out, so that
 * no table of the system is needed. */
#include "base/local_time.h"

#include <stdlib.h>
#include <time.h>

#include "tests/lib/check.h"

#define MINUTE UINT64_C(60000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define MARCH_29 UINT64_C(1774742400000) /* 2026-03-29 00:00 UTC, a Sunday: 02:00 becomes 03:00 */
#define NOV_28 UINT64_C(1795824000000)   /* 2026-11-28 00:00 UTC */
#define OCT_25 UINT64_C(1792886400000)   /* 2026-10-25 00:00 UTC, a Sunday: 03:00 becomes 02:00 */

static void use(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static void times_of_the_day_are_read_and_nothing_else(void **state)
{
    static const char *const bad[] = {"",       "7",     "24:01", "7:60", "7:5", "007:30",
                                      "07:300", "-1:00", "a:30",  "7.30", ":30", "25:00"};
    uint32_t minute = 7;
    const char *end = "";
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(!dp_day_time_read(bad[i], &minute, &end) && minute == 7);
    }
    CHECK(dp_day_time_read("7:30", &minute, &end) && minute == 450 && *end == '\0');
    CHECK(dp_day_time_read("00:00-07", &minute, &end) && minute == 0 && *end == '-');
    CHECK(dp_day_time_read("24:00", &minute, &end) && minute == DP_DAY_MINUTES);
}

static void the_next_such_time_is_today_or_tomorrow(void **state)
{
    (void)state;
    use("UTC");
    CHECK(dp_local_next(MARCH_29 + 6 * HOUR, 450) == MARCH_29 + 450 * MINUTE);
    CHECK(dp_local_next(MARCH_29 + 450 * MINUTE, 450) == MARCH_29 + DAY + 450 * MINUTE);
    CHECK(dp_local_next(MARCH_29 + 450 * MINUTE - 1, 450) == MARCH_29 + 450 * MINUTE);
    CHECK(dp_local_next(MARCH_29 + 8 * HOUR, 0) == MARCH_29 + DAY);
    CHECK(dp_local_week_minute(MARCH_29) == 6 * DP_DAY_MINUTES);
    CHECK(dp_local_week_minute(0) == 3 * DP_DAY_MINUTES);
}

static void an_hour_that_is_skipped_is_its_end_and_the_first_of_two_counts(void **state)
{
    (void)state;
    use("CET-1CEST,M3.5.0,M10.5.0/3");
    const uint64_t change = MARCH_29 + HOUR; /* 02:00 CET */
    CHECK(dp_local_next(change - HOUR, 150) == change);
    CHECK(dp_local_next(change, 150) == change + DAY - HOUR + 30 * MINUTE); /* 02:30 CEST */
    CHECK(dp_local_next(change - HOUR, 190) == change + 10 * MINUTE);       /* 03:10 CEST */
    /* 02:30 comes at 00:30 UTC and at 01:30 UTC. */
    CHECK(dp_local_next(OCT_25 - HOUR, 150) == OCT_25 + 30 * MINUTE);
    CHECK(dp_local_next(OCT_25 + 30 * MINUTE, 150) == OCT_25 + DAY + HOUR + 30 * MINUTE);
    CHECK(dp_local_week_minute(OCT_25 + 30 * MINUTE) == dp_local_week_minute(OCT_25 + 90 * MINUTE));
}

static void minutes_of_the_calendar_are_found_where_the_clock_shows_them(void **state)
{
    (void)state;
    use("UTC");
    CHECK(dp_local_at((int64_t)(MARCH_29 / MINUTE) + 5) == MARCH_29 + 5 * MINUTE);
    CHECK(dp_local_at(-7) == 0 && dp_local_at(3) == 3 * MINUTE);
    use("CET-1CEST,M3.5.0,M10.5.0/3");
    const uint64_t change = MARCH_29 + HOUR; /* 02:00 CET */
    const int64_t day = dp_local_minutes(MARCH_29) - 60;
    CHECK(dp_local_at(day) == MARCH_29 - HOUR && dp_local_at(day + 150) == change);
    CHECK(dp_local_at(day + 190) == change + 10 * MINUTE);
    const int64_t autumn = dp_local_minutes(OCT_25) - 120;
    CHECK(dp_local_at(autumn + 150) == OCT_25 + 30 * MINUTE); /* The first of two. */
    use("XYZ+12");
    CHECK(dp_local_at(dp_local_minutes(OCT_25)) == OCT_25);
    use("XYZ-14");
    CHECK(dp_local_at(dp_local_minutes(OCT_25)) == OCT_25);
}

static void spans_have_a_unit_and_nothing_else_is_one(void **state)
{
    static const char *const bad[] = {"",      "0",   "0h",          "m",         "-5m",
                                      "5 m",   "5w",  "1.5h",        "h5",        "5hm",
                                      "10:40", " 5m", "99999999999", "4294967295"};
    uint64_t seconds = 7;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(!dp_span_read(bad[i], &seconds) && seconds == 7);
    }
    CHECK(dp_span_read("90", &seconds) && seconds == 90);
    CHECK(dp_span_read("90s", &seconds) && seconds == 90);
    CHECK(dp_span_read("15m", &seconds) && seconds == 900);
    CHECK(dp_span_read("15min", &seconds) && seconds == 900);
    CHECK(dp_span_read("24h", &seconds) && seconds == 86400);
    CHECK(dp_span_read("7d", &seconds) && seconds == 7 * 86400);
}

static uint64_t before(const char *text, uint64_t now_ms)
{
    uint64_t at = 7;
    return dp_instant_read(text, now_ms, DP_INSTANT_BEFORE, &at) ? at : UINT64_MAX;
}

static uint64_t after(const char *text, uint64_t now_ms)
{
    uint64_t at = 7;
    return dp_instant_read(text, now_ms, DP_INSTANT_AFTER, &at) ? at : UINT64_MAX;
}

static void what_was_is_a_span_ago_or_the_last_such_time(void **state)
{
    const uint64_t now = NOV_28 + 12 * HOUR + 5;
    (void)state;
    use("UTC");
    CHECK(before("10m", now) == now - 10 * MINUTE && before("3d", now) == now - 3 * DAY);
    CHECK(before("10:40", now) == NOV_28 + 10 * HOUR + 40 * MINUTE);
    CHECK(before("12:00", now) == NOV_28 + 12 * HOUR);
    CHECK(before("12:01", now) == NOV_28 - 12 * HOUR + MINUTE);
    CHECK(before("24:00", now) == NOV_28 && before("0:00", now) == NOV_28);
    CHECK(before("2026-11-28T10:40", now) == NOV_28 + 10 * HOUR + 40 * MINUTE);
    CHECK(before("2026-11-29T10:40:07", now) == NOV_28 + DAY + 10 * HOUR + 40 * MINUTE + 7000);
    CHECK(before("3d", 2 * DAY) == UINT64_MAX);
}

static void what_comes_is_the_next_such_time_and_no_span(void **state)
{
    const uint64_t now = NOV_28 + 12 * HOUR;
    (void)state;
    use("UTC");
    CHECK(after("10:40", now) == NOV_28 + DAY + 10 * HOUR + 40 * MINUTE);
    CHECK(after("12:00", now) == NOV_28 + DAY + 12 * HOUR);
    CHECK(after("12:01", now) == NOV_28 + 12 * HOUR + MINUTE);
    CHECK(after("2026-12-01T00:00", now) == NOV_28 + 3 * DAY);
    CHECK(after("2h", now) == UINT64_MAX && after("7", now) == UINT64_MAX);
}

static void dates_are_of_the_local_clock(void **state)
{
    (void)state;
    use("CET-1CEST,M3.5.0,M10.5.0/3");
    CHECK(before("2026-11-28T10:40", NOV_28) == NOV_28 + 9 * HOUR + 40 * MINUTE);
    CHECK(before("10:40", NOV_28 + 9 * HOUR) == NOV_28 - 15 * HOUR + 40 * MINUTE);
    CHECK(before("10:40", NOV_28 + 10 * HOUR) == NOV_28 + 9 * HOUR + 40 * MINUTE);
}

static void other_texts_are_no_instants(void **state)
{
    static const char *const bad[] = {"",
                                      "soon",
                                      "2026-11-28",
                                      "2026-11-28 10:40",
                                      "2026-02-29T10:40",
                                      "2026-13-01T00:00",
                                      "2026-00-01T00:00",
                                      "2026-01-00T00:00",
                                      "2026-11-28T24:00",
                                      "2026-11-28T10:60",
                                      "2026-11-28T10:40:60",
                                      "2026-11-28T10:40Z",
                                      "2026-11-28T10:40:",
                                      "1969-12-31T23:59",
                                      "26-11-28T10:40",
                                      "2026-11-28T1:40",
                                      "10:40:00",
                                      "25:00",
                                      "-10m",
                                      "10:40x",
                                      "2026-11-28T10:4"};
    (void)state;
    use("UTC");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(before(bad[i], NOV_28) == UINT64_MAX && after(bad[i], NOV_28) == UINT64_MAX);
    }
    CHECK(before("2024-02-29T00:00", NOV_28) == UINT64_C(1709164800000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_the_day_are_read_and_nothing_else),
        cmocka_unit_test(the_next_such_time_is_today_or_tomorrow),
        cmocka_unit_test(an_hour_that_is_skipped_is_its_end_and_the_first_of_two_counts),
        cmocka_unit_test(minutes_of_the_calendar_are_found_where_the_clock_shows_them),
        cmocka_unit_test(spans_have_a_unit_and_nothing_else_is_one),
        cmocka_unit_test(what_was_is_a_span_ago_or_the_last_such_time),
        cmocka_unit_test(what_comes_is_the_next_such_time_and_no_span),
        cmocka_unit_test(dates_are_of_the_local_clock),
        cmocka_unit_test(other_texts_are_no_instants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
