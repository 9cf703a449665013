#include "daemon/net/peer_memory.h"

#include "tests/lib/check.h"

#define GIB (1ULL << 30)

static void the_budget_is_a_quarter_of_the_machine_and_not_less_than_its_least(void **state)
{
    dp_peer_memory memory;

    (void)state;
    dp_peer_memory_init(&memory, 16 * GIB);
    assert_int_equal(memory.limit, 4 * GIB);
    dp_peer_memory_init(&memory, GIB / 2);
    assert_int_equal(memory.limit, DP_PEER_MEMORY_LEAST);
    dp_peer_memory_init(&memory, 0);
    assert_int_equal(memory.limit, DP_PEER_MEMORY_LEAST);
}

static void guests_have_a_small_part_of_it_together(void **state)
{
    dp_peer_memory memory;

    (void)state;
    dp_peer_memory_init(&memory, 16 * GIB);
    assert_true(dp_peer_memory_take(&memory, true, DP_PEER_MEMORY_GUESTS_MAX));
    assert_false(dp_peer_memory_take(&memory, true, 1));
    assert_true(dp_peer_memory_take(&memory, false, memory.limit - DP_PEER_MEMORY_GUESTS_MAX));
    assert_false(dp_peer_memory_take(&memory, false, 1));
    dp_peer_memory_give(&memory, true, 1);
    assert_true(dp_peer_memory_take(&memory, false, 1));
    assert_false(dp_peer_memory_take(&memory, true, 1)); /* All of it is in use. */
}

static void the_most_that_was_held_is_remembered(void **state)
{
    dp_peer_memory memory;

    (void)state;
    dp_peer_memory_init(&memory, 16 * GIB);
    dp_peer_memory_take_anyway(&memory, false, memory.limit + 5);
    dp_peer_memory_give(&memory, false, memory.limit + 5);
    assert_int_equal(memory.bytes, 0);
    assert_int_equal(memory.most, memory.limit + 5);
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
