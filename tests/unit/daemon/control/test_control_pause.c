/* pause and resume: their parameters, answers and errors. The suspension of the node is a mock. */
#include "tests/unit/daemon/bandwidth_limiter_kit.h"
#include "tests/unit/daemon/suspension_kit.h"

const char *dp_call_state(const dp_daemon *daemon)
{
    return daemon->driver == NULL ? "idle" : "paused";
}

static void open_member(void)
{
    call_open();
    allowance_open();
    suspension_open();
}

static void a_pause_says_by_whom_and_the_first_one_since_when(void **state)
{
    (void)state;
    open_member();
    CALL_ALONE(dp_method_pause);
    assert_string_equal(text_at(call_body(), "state"), "paused");
    assert_string_equal(text_at(dp_pack_key(call_body(), "paused"), "by"), "carol");
    assert_true(suspension_kit.pause.holds && suspension_kit.pause.since_ms != 0);
    assert_true(suspension_kit.pause.until_ms == 0 && !suspension_kit.pause.waits);
    assert_true(desk_logged("paused by its owner, by carol, since ") &&
                desk_logged("; to train again: dpnode resume"));
    suspension_kit.owner = (dp_pause){.holds = true, .since_ms = 77, .user = "ann"};
    CALL_ALONE(dp_method_pause);
    assert_int_equal(suspension_kit.pause.since_ms, 77);
    assert_string_equal(suspension_kit.pause.user, "ann");
    call_close();
}

static void a_pause_has_the_end_that_was_ordered_last(void **state)
{
    const uint64_t now_ms = dp_unix_ms();
    (void)state;
    open_member();
    CALL(dp_method_pause, NUMBER("for_s", 7200));
    assert_int_equal(suspension_kit.pause.for_ms, 7200000);
    assert_int_equal(suspension_kit.pause.until_ms, suspension_kit.pause.since_ms + 7200000);
    CALL(dp_method_pause, NUMBER("until_ms", now_ms + 5000000));
    assert_true(suspension_kit.pause.until_ms == now_ms + 5000000 &&
                suspension_kit.pause.for_ms == 0);
    assert_int_equal(number_at(dp_pack_key(call_body(), "paused"), "until_ms"), now_ms + 5000000);
    CALL_ALONE(dp_method_pause);
    assert_int_equal(suspension_kit.pause.until_ms, 0);
    call_close();
}

static void a_pause_after_the_round_has_no_end_before_it_begins(void **state)
{
    (void)state;
    open_member();
    CALL(dp_method_pause, NUMBER("for_s", 60), FLAG("after_round", true));
    assert_true(suspension_kit.pause.waits && suspension_kit.pause.until_ms == 0);
    assert_true(flag_at(dp_pack_key(call_body(), "paused"), "waits"));
    suspension_kit.owner = (dp_pause){.holds = true, .since_ms = 77};
    CALL(dp_method_pause, FLAG("after_round", true)); /* It is paused already. */
    assert_false(suspension_kit.pause.waits);
    call_close();
}

static void an_end_that_cannot_be_is_refused_and_nothing_changes(void **state)
{
    const uint64_t now_ms = dp_unix_ms();
    (void)state;
    open_member();
    CALL(dp_method_pause, NUMBER("for_s", 0));
    assert_true(call_failed("E0132", 64));
    CALL(dp_method_pause, NUMBER("for_s", DP_PAUSE_MS_MAX / 1000 + 1));
    assert_true(call_failed("E0132", 64));
    CALL(dp_method_pause, TEXT("for_s", "soon"));
    assert_true(call_failed("E0132", 64));
    CALL(dp_method_pause, NUMBER("until_ms", now_ms - 1));
    assert_true(call_failed("E0132", 64));
    CALL(dp_method_pause, NUMBER("until_ms", now_ms + 2 * DP_PAUSE_MS_MAX));
    assert_true(call_failed("E0132", 64));
    CALL(dp_method_pause, NUMBER("until_ms", now_ms + 9000), NUMBER("for_s", 9));
    assert_true(call_failed("E0132", 64));
    assert_int_equal(suspension_kit.n_pauses, 0);
    call_close();
}

static void a_resume_within_a_used_up_month_says_when_training_begins(void **state)
{
    (void)state;
    open_member();
    suspension_kit.owner = (dp_pause){.holds = true, .since_ms = 77};
    CALL_ALONE(dp_method_resume);
    assert_true(suspension_kit.n_pauses == 1 && !suspension_kit.pause.holds);
    assert_string_equal(text_at(call_body(), "state"), "paused");
    assert_null(dp_pack_key(call_body(), "paused"));
    bandwidth_limiter_kit.cap = "this month's upload is used up";
    CALL_ALONE(dp_method_resume);
    assert_true(call_failed("E0126", 75));
    assert_string_equal(call_kit.error.why, "this month's upload is used up");
    /* The owner's own pause has ended nevertheless. */
    assert_true(suspension_kit.n_pauses == 2 && !suspension_kit.pause.holds);
    call_close();
}

static void a_resume_that_something_else_stops_says_what(void **state)
{
    (void)state;
    open_member();
    suspension_kit.owner = (dp_pause){.holds = true, .since_ms = 77};
    suspension_kit.word = "battery";
    suspension_kit.text = "the machine runs on battery";
    CALL_ALONE(dp_method_resume);
    assert_true(call_failed("E0135", 75));
    assert_string_equal(call_kit.error.why, "the machine runs on battery");
    assert_true(suspension_kit.n_pauses == 1 && !suspension_kit.pause.holds);
    call_close();
}

static void an_order_that_is_not_written_holds_and_is_told(void **state)
{
    (void)state;
    open_member();
    suspension_kit.kept = DP_NOSPACE;
    CALL_ALONE(dp_method_pause);
    assert_true(call_failed("E0127", 74) && suspension_kit.pause.holds);
    suspension_kit.pauses = DP_AGAIN;
    CALL_ALONE(dp_method_resume);
    assert_true(call_failed("E0127", 74));
    call_kit.fails_at = 1;
    CALL_ALONE(dp_method_pause);
    assert_true(call_failed("E0127", 74));
    call_kit.fails_at = 0;
    desk.daemon.suspension = NULL; /* The daemon is ending. */
    CALL_ALONE(dp_method_pause);
    assert_true(call_failed("E0402", 75));
    CALL_ALONE(dp_method_resume);
    assert_true(call_failed("E0402", 75));
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_says_by_whom_and_the_first_one_since_when),
        cmocka_unit_test(a_pause_has_the_end_that_was_ordered_last),
        cmocka_unit_test(a_pause_after_the_round_has_no_end_before_it_begins),
        cmocka_unit_test(an_end_that_cannot_be_is_refused_and_nothing_changes),
        cmocka_unit_test(a_resume_within_a_used_up_month_says_when_training_begins),
        cmocka_unit_test(a_resume_that_something_else_stops_says_what),
        cmocka_unit_test(an_order_that_is_not_written_holds_and_is_told),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
