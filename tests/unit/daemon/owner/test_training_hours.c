/* The owner's hours: what can be written, and when they begin and end. */
#include "daemon/owner/training_hours.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/check.h"

#define MINUTE UINT64_C(60000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define MONDAY UINT64_C(1793577600000)   /* 2026-11-02 00:00 UTC */
#define MARCH_29 UINT64_C(1774742400000) /* 2026-03-29, a Sunday: 02:00 CET becomes 03:00 CEST */
#define OCT_25 UINT64_C(1792886400000)   /* 2026-10-25, a Sunday: 03:00 CEST becomes 02:00 CET */

static void use(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static dp_hours of(const char *text)
{
    dp_hours schedule;
    dp_why why = {""};
    const dp_status status = dp_hours_read(&schedule, text, &why);
    if (status != DP_OK) {
        print_error("%s: %s\n", text, why.text);
    }
    CHECK_OK(status);
    return schedule;
}

static void a_night_lasts_into_the_next_morning(void **state)
{
    const dp_hours night = of("22:00-07:00");
    (void)state;
    use("UTC");
    CHECK(dp_hours_open(&night, MONDAY) && dp_hours_open(&night, MONDAY + 7 * HOUR - 1));
    CHECK(!dp_hours_open(&night, MONDAY + 7 * HOUR));
    CHECK(!dp_hours_open(&night, MONDAY + 22 * HOUR - 1));
    CHECK(dp_hours_open(&night, MONDAY + 22 * HOUR));
    CHECK(dp_hours_next(&night, MONDAY + HOUR + 1) == MONDAY + 7 * HOUR);
    CHECK(dp_hours_next(&night, MONDAY + 7 * HOUR) == MONDAY + 22 * HOUR);
    CHECK(dp_hours_next(&night, MONDAY + 22 * HOUR) == MONDAY + DAY + 7 * HOUR);
}

static void days_are_those_on_which_a_window_begins(void **state)
{
    const dp_hours week = of("mon-fri 22:00-07:00, SAT-sun");
    const dp_hours turn = of("sun 23:00-01:00,fri-mon 12:00-13:00");
    (void)state;
    use("UTC");
    CHECK(!dp_hours_open(&week, MONDAY + HOUR));          /* Sunday's night ended at 24:00. */
    CHECK(dp_hours_open(&week, MONDAY + DAY + HOUR));     /* Monday's goes on. */
    CHECK(dp_hours_open(&week, MONDAY + 5 * DAY + HOUR)); /* Friday's, and Saturday. */
    CHECK(dp_hours_next(&week, MONDAY + 4 * DAY + 23 * HOUR) == MONDAY + 7 * DAY);
    CHECK(dp_hours_open(&turn, MONDAY + 30 * MINUTE)); /* over the end of the week */
    CHECK(!dp_hours_open(&turn, MONDAY + HOUR));
    CHECK(dp_hours_open(&turn, MONDAY + 12 * HOUR));
    CHECK(!dp_hours_open(&turn, MONDAY + DAY + 12 * HOUR));
    CHECK(dp_hours_open(&turn, MONDAY + 4 * DAY + 12 * HOUR));
}

static void without_windows_it_is_always_open_and_never_changes(void **state)
{
    const dp_hours always = of("always");
    const dp_hours whole = of("00:00-24:00");
    (void)state;
    use("UTC");
    CHECK(of("").n == 0 && of("  ").n == 0 && always.n == 0);
    CHECK(dp_hours_open(&always, MONDAY) && dp_hours_next(&always, MONDAY) == 0);
    CHECK(dp_hours_open(&whole, MONDAY) && dp_hours_next(&whole, MONDAY) == 0);
}

static void windows_go_by_the_clock_where_it_is_changed(void **state)
{
    const dp_hours hour = of("02:00-03:00");
    const dp_hours night = of("22:00-07:00");
    (void)state;
    use("CET-1CEST,M3.5.0,M10.5.0/3");
    CHECK(!dp_hours_open(&hour, MARCH_29 + HOUR)); /* That day has no such hour. */
    CHECK(dp_hours_next(&hour, MARCH_29) == MARCH_29 + DAY);
    CHECK(dp_hours_open(&hour, OCT_25) && dp_hours_open(&hour, OCT_25 + HOUR)); /* twice */
    CHECK(dp_hours_next(&hour, OCT_25) == OCT_25 + 2 * HOUR);
    CHECK(dp_hours_next(&night, MARCH_29) == MARCH_29 + 5 * HOUR); /* 07:00 CEST */
    CHECK(dp_hours_next(&night, OCT_25) == OCT_25 + 6 * HOUR);     /* 07:00 CET */
}

static void each_mistake_is_named_with_its_window(void **state)
{
    static const struct {
        const char *text;
        const char *wanted;
    } bad[] = {{"22:00-22:00", "window 1, \"22:00-22:00\", is empty"},
               {"sat, 08:00-08:00", "window 2, \"08:00-08:00\", is empty"},
               {"22:00", "window 1, \"22:00\", is not like"},
               {"22-07", "is not like"},
               {"22:00-25:00", "is not like"},
               {"24:00-07:00", "is not like"},
               {"moon 22:00-07:00", "has an unknown day"},
               {"mon-fry 22:00-07:00", "has an unknown day"},
               {"mon+tue", "has an unknown day"},
               {"22:00-07:00 sat", "has something after its end"},
               {"22:00-07:00,", "window 2, \"\", is not like"},
               {",", "window 1, \"\", is not like"},
               {"mon,tue,wed,thu,fri,sat,sun,mon,tue,wed,thu,fri,sat,sun,mon,tue,wed",
                "at most 16 windows"}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        dp_hours schedule = of("sat");
        dp_why why = {""};
        CHECK_STATUS(dp_hours_read(&schedule, bad[i].text, &why), DP_BADARG);
        if (strstr(why.text, bad[i].wanted) == NULL) {
            print_error("%s\n", why.text);
        }
        CHECK(strstr(why.text, bad[i].wanted) != NULL);
        CHECK(schedule.n == 1 && schedule.windows[0].days == 32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_night_lasts_into_the_next_morning),
        cmocka_unit_test(days_are_those_on_which_a_window_begins),
        cmocka_unit_test(without_windows_it_is_always_open_and_never_changes),
        cmocka_unit_test(windows_go_by_the_clock_where_it_is_changed),
        cmocka_unit_test(each_mistake_is_named_with_its_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
