#include "gossip/member/idle.h"

#include "tests/lib/check.h"

static dp_time at(uint64_t us)
{
    return (dp_time){100 * DP_SECOND + us};
}

static void a_node_falls_quiet_late_and_speaks_at_once(void **state)
{
    dp_idle idle = {0};

    (void)state;
    dp_idle_set(&idle, false, at(0));
    assert_false(dp_idle_is_quiet(&idle, at(0)));
    dp_idle_set(&idle, true, at(0));
    dp_idle_set(&idle, true, at(DP_IDLE_AFTER_US - 1)); /* A repeated call does not restart it. */
    assert_false(dp_idle_is_quiet(&idle, at(DP_IDLE_AFTER_US - 1)));
    assert_true(dp_idle_is_quiet(&idle, at(DP_IDLE_AFTER_US)));
    dp_idle_set(&idle, false, at(DP_IDLE_AFTER_US));
    assert_false(dp_idle_is_quiet(&idle, at(DP_IDLE_AFTER_US)));
}

static void a_node_is_patient_at_once_and_for_a_while_after_the_end(void **state)
{
    dp_idle idle = {0};

    (void)state;
    assert_false(dp_idle_is_patient(&idle, at(0))); /* It was never idle. */
    dp_idle_set(&idle, true, at(0));
    assert_true(dp_idle_is_patient(&idle, at(0)));
    dp_idle_set(&idle, false, at(DP_SECOND));
    assert_true(dp_idle_is_patient(&idle, at(2 * DP_SECOND)));
    assert_false(dp_idle_is_patient(&idle, at(DP_SECOND + DP_IDLE_GRACE_US)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_falls_quiet_late_and_speaks_at_once),
        cmocka_unit_test(a_node_is_patient_at_once_and_for_a_while_after_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
