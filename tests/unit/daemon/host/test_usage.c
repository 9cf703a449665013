#include "tests/lib/check.h"

#include <math.h>

#include "daemon/host/usage.h"

enum { SECOND = 1000 * 1000 };

static void nothing_told_is_nothing_known(void **state)
{
    (void)state;
    dp_usage usage = {0};
    dp_usage_told(&usage, 0, 0);
    CHECK(usage.share == 0);
}

static void the_first_minute_is_a_plain_mean(void **state)
{
    (void)state;
    dp_usage usage = {0};
    dp_usage_told(&usage, 9 * SECOND, 10 * SECOND);
    CHECK(usage.share == 0.9);
    dp_usage_told(&usage, 9 * SECOND, 20 * SECOND); /* ten seconds of waiting */
    CHECK(usage.share == 0.45);
}

static void later_the_last_minute_or_so_counts(void **state)
{
    (void)state;
    dp_usage usage = {0};
    uint64_t computed = 0;
    uint64_t trained = 0;
    for (int i = 0; i < 600; i++) {
        computed += SECOND;
        trained += SECOND;
        dp_usage_told(&usage, computed, trained);
    }
    CHECK(usage.share == 1);
    for (int i = 0; i < 60; i++) { /* a minute at half */
        computed += SECOND / 2;
        trained += SECOND;
        dp_usage_told(&usage, computed, trained);
    }
    CHECK(usage.share > 0.65 && usage.share < 0.72);
    for (int i = 0; i < 600; i++) {
        computed += SECOND / 2;
        trained += SECOND;
        dp_usage_told(&usage, computed, trained);
    }
    CHECK(fabs(usage.share - 0.5) < 0.001);
}

static void another_trainer_begins_anew(void **state)
{
    (void)state;
    dp_usage usage = {0};
    dp_usage_told(&usage, 100 * (uint64_t)SECOND, 1000 * (uint64_t)SECOND);
    dp_usage_told(&usage, 2 * SECOND, 4 * SECOND);
    CHECK(usage.share == 0.5);
}

static void totals_that_cannot_be_stay_a_share(void **state)
{
    (void)state;
    dp_usage usage = {0};
    dp_usage_told(&usage, UINT64_MAX, 1);
    CHECK(usage.share == 1);
    dp_usage_told(&usage, UINT64_MAX, UINT64_MAX);
    CHECK(usage.share >= 0 && usage.share <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_told_is_nothing_known),
        cmocka_unit_test(the_first_minute_is_a_plain_mean),
        cmocka_unit_test(later_the_last_minute_or_so_counts),
        cmocka_unit_test(another_trainer_begins_anew),
        cmocka_unit_test(totals_that_cannot_be_stay_a_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
