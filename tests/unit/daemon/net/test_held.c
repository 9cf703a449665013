#include "daemon/net/held.h"

#include "tests/lib/check.h"

#define GIB (1ULL << 30)

static void the_budget_is_a_quarter_of_the_machine_and_not_less_than_its_least(void **state)
{
    dp_held held;

    (void)state;
    dp_held_init(&held, 16 * GIB);
    assert_int_equal(held.limit, 4 * GIB);
    dp_held_init(&held, GIB / 2);
    assert_int_equal(held.limit, DP_HELD_LEAST);
    dp_held_init(&held, 0);
    assert_int_equal(held.limit, DP_HELD_LEAST);
}

static void guests_have_a_small_part_of_it_together(void **state)
{
    dp_held held;

    (void)state;
    dp_held_init(&held, 16 * GIB);
    assert_true(dp_held_take(&held, true, DP_HELD_GUESTS_MAX));
    assert_false(dp_held_take(&held, true, 1));
    assert_true(dp_held_take(&held, false, held.limit - DP_HELD_GUESTS_MAX));
    assert_false(dp_held_take(&held, false, 1));
    dp_held_give(&held, true, 1);
    assert_true(dp_held_take(&held, false, 1));
    assert_false(dp_held_take(&held, true, 1)); /* All of it is in use. */
}

static void the_most_that_was_held_is_remembered(void **state)
{
    dp_held held;

    (void)state;
    dp_held_init(&held, 16 * GIB);
    dp_held_take_anyway(&held, false, held.limit + 5);
    dp_held_give(&held, false, held.limit + 5);
    assert_int_equal(held.bytes, 0);
    assert_int_equal(held.most, held.limit + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_budget_is_a_quarter_of_the_machine_and_not_less_than_its_least),
        cmocka_unit_test(guests_have_a_small_part_of_it_together),
        cmocka_unit_test(the_most_that_was_held_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
