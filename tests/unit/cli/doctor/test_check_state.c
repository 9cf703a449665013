#include "cli/doctor/check_state.h"

#include "tests/lib/check.h"

static void check(const char *text, bool live, bool ready, const char *why)
{
    json_error_t error;
    json_t *const status = json_loads(text, 0, &error);
    assert_non_null(status);
    assert_int_equal(dp_check_state(status, DP_CHECK_LIVE), live);
    assert_int_equal(dp_check_state(status, DP_CHECK_READY), ready);
    assert_string_equal(dp_check_state_text(status, live ? DP_CHECK_READY : DP_CHECK_LIVE), why);
    json_decref(status);
}

static void a_node_is_ready_while_its_trainer_is_up_and_it_trains(void **state)
{
    (void)state;
    check("{\"state\":\"training\",\"run\":{\"trainer\":\"up\"}}", true, true, "training");
    check("{\"state\":\"gossip\",\"run\":{\"trainer\":\"up\"}}", true, true, "gossip");
    check("{\"state\":\"waiting\",\"run\":{\"trainer\":\"up\"}}", true, true, "waiting");
    check("{\"state\":\"training\",\"run\":{\"trainer\":\"starting\"}}", true, false,
          "the trainer starts");
    check("{\"state\":\"training\",\"run\":{\"trainer\":\"failing\"}}", true, false,
          "the trainer fails and is started again");
    check("{\"state\":\"training\",\"run\":{\"trainer\":\"down\"}}", true, false,
          "the trainer is down");
    check("{\"state\":\"paused\",\"run\":{\"trainer\":\"up\"}}", true, false, "paused");
    check("{\"state\":\"idle\"}", true, false, "idle");
}

static void a_node_that_has_lost_its_run_is_not_live(void **state)
{
    (void)state;
    check("{\"state\":\"idle\",\"lost\":\"the store was damaged\"}", false, false,
          "the store was damaged");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_is_ready_while_its_trainer_is_up_and_it_trains),
        cmocka_unit_test(a_node_that_has_lost_its_run_is_not_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
