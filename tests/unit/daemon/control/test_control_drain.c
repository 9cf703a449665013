/* drain: the daemon ends, or the caller continues, when a round has counted this node's work. The
 * supervisor is a mock; waits end at once. */
#include "daemon/peer/supervisor.h"
#include "tests/unit/daemon/call_kit.h"
#include "tests/unit/daemon/hurry.h"

static struct {
    const char *drained; /* the answer of the supervisor */
    uint64_t counted;
    uint64_t limit_ms; /* that it was asked with */
    uint32_t n_asked;
} supervisor;

const char *dp_supervisor_drained(const dp_daemon *daemon, uint64_t counted, uint64_t waited_ms,
                                  uint64_t limit_ms)
{
    (void)daemon;
    (void)counted;
    (void)waited_ms;
    supervisor.limit_ms = limit_ms;
    supervisor.n_asked++;
    return supervisor.drained;
}

uint64_t dp_supervisor_counted(const dp_daemon *daemon)
{
    (void)daemon;
    return supervisor.counted;
}

static void open_node(void)
{
    memset(&supervisor, 0, sizeof supervisor);
    call_open();
    desk.config.drain_time = 25;
    hurry_from_ms = 50;
}

static void close_node(void)
{
    hurry_from_ms = UINT64_MAX;
    call_close();
}

static bool was_asked(void *context)
{
    return supervisor.n_asked >= *(const uint32_t *)context;
}

static void wait_for_looks(uint32_t n)
{
    turn_until(&desk.loop, was_asked, &n);
}

static bool has_ended(void *context)
{
    (void)context;
    return desk.ended;
}

static void the_daemon_ends_after_the_reply_when_its_work_is_counted(void **state)
{
    (void)state;
    open_node();
    supervisor.counted = 5;
    CALL_ALONE(dp_method_drain);
    assert_true(desk_logged("drain requested") && desk_logged("after 25 s at the latest"));
    wait_for_looks(3);
    assert_true(call_kit.n_frames == 0 && supervisor.limit_ms == 25000);
    supervisor.counted = 6;
    supervisor.drained = "drained: this node's work is counted";
    call_wait();
    assert_true(flag_at(call_body(), "counted"));
    assert_string_equal(text_at(call_body(), "text"), "drained: this node's work is counted");
    turn_until(&desk.loop, has_ended, NULL);
    assert_int_equal(desk.exit_status, 0);
    close_node();
}

static void a_drain_before_a_leave_lets_the_daemon_be(void **state)
{
    (void)state;
    open_node();
    supervisor.drained = "drained: the time is over";
    CALL(dp_method_drain, FLAG("end", false), NUMBER("seconds", 7));
    call_wait();
    assert_false(flag_at(call_body(), "counted"));
    assert_int_equal(supervisor.limit_ms, 7000);
    close_node(); /* No timer is left: the loop ends. */
    assert_false(desk.ended);
}

static void a_wait_is_a_day_at_most(void **state)
{
    (void)state;
    open_node();
    supervisor.drained = "drained";
    CALL(dp_method_drain, FLAG("end", false), NUMBER("seconds", UINT64_MAX));
    call_wait();
    assert_int_equal(supervisor.limit_ms, 86400000);
    close_node();
}

static void a_node_that_has_left_meanwhile_is_drained(void **state)
{
    (void)state;
    open_node();
    CALL(dp_method_drain, FLAG("end", false));
    desk.daemon.driver = NULL;
    call_wait();
    assert_string_equal(text_at(call_body(), "text"), "drained: this node has left the run");
    close_node();
}

static void a_daemon_that_ends_for_another_reason_is_not_ended_twice(void **state)
{
    (void)state;
    open_node();
    CALL_ALONE(dp_method_drain);
    desk.daemon.ending = true;
    close_node();
    assert_false(desk.ended);
}

static void without_a_run_or_memory_nothing_is_drained(void **state)
{
    (void)state;
    open_node();
    call_kit.fails_at = 1;
    CALL_ALONE(dp_method_drain);
    assert_true(call_failed("E0199", 70));
    desk.daemon.driver = NULL;
    CALL_ALONE(dp_method_drain);
    assert_true(call_failed("E0105", 75));
    assert_false(desk_logged("daemon.draining"));
    close_node();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_daemon_ends_after_the_reply_when_its_work_is_counted),
        cmocka_unit_test(a_drain_before_a_leave_lets_the_daemon_be),
        cmocka_unit_test(a_wait_is_a_day_at_most),
        cmocka_unit_test(a_node_that_has_left_meanwhile_is_drained),
        cmocka_unit_test(a_daemon_that_ends_for_another_reason_is_not_ended_twice),
        cmocka_unit_test(without_a_run_or_memory_nothing_is_drained),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
