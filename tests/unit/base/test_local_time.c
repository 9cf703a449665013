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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_the_day_are_read_and_nothing_else),
        cmocka_unit_test(the_next_such_time_is_today_or_tomorrow),
        cmocka_unit_test(an_hour_that_is_skipped_is_its_end_and_the_first_of_two_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
