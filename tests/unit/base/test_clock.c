#include "base/clock.h"

#include "tests/lib/check.h"

static const dp_time early = {.us = 1000};
static const dp_time late = {.us = 4000};

static void a_sum_saturates_at_never(void **state)
{
    (void)state;
    assert_int_equal(dp_time_after(early, 3000).us, late.us);
    assert_int_equal(dp_time_after(early, UINT64_MAX).us, DP_NEVER.us);
    assert_int_equal(dp_time_after(DP_NEVER, 1).us, DP_NEVER.us);
}

static void a_span_backwards_is_zero(void **state)
{
    (void)state;
    assert_int_equal(dp_time_between(early, late), 3000);
    assert_int_equal(dp_time_between(late, early), 0);
}

static void an_instant_is_reached_at_itself(void **state)
{
    (void)state;
    assert_true(dp_time_reached(late, late));
    assert_true(dp_time_reached(late, early));
    assert_false(dp_time_reached(early, late));
    assert_false(dp_time_reached(late, DP_NEVER));
    assert_int_equal(dp_time_min(late, early).us, early.us);
    assert_int_equal(dp_time_min(early, DP_NEVER).us, early.us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_saturates_at_never),
        cmocka_unit_test(a_span_backwards_is_zero),
        cmocka_unit_test(an_instant_is_reached_at_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
