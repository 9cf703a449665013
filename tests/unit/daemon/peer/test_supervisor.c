/* The messages of a daemon to its supervisor, and the end of a daemon before its machine ends. The
 * socket of the supervisor is real; the driver's knowledge is played. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/peer/supervisor.h"
#include "tests/unit/daemon/desk.h"
#include "tests/unit/daemon/hurry.h"

static dp_driver_view view; /* of the driver */

void dp_driver_look(const dp_driver *driver, dp_driver_view *out)
{
    (void)driver;
    *out = view;
}

const dp_manifest *dp_driver_manifest(const dp_driver *driver)
{
    return &driver->manifest;
}

static struct {
    dp_supervisor *supervisor;
    int socket; /* of the supervisor; -1: there is none */
    char heard[4096];
} bench;

/* A node whose work rounds count. */
static void bench_open(void)
{
    desk_open();
    memset(&bench, 0, sizeof bench);
    bench.socket = -1;
    view = (dp_driver_view){.running = true, .trainer = "up", .counted = 5};
    view.node.mode = DP_MODE_SYNC;
    desk.daemon.driver = desk.driver;
    desk.config.drain_time = 25;
}

static void listen_as(bool abstract)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char path[TEMPDIR_FILE_MAX];
    tempdir_file(&desk.shelf.dir, "notify", path);
    snprintf(at.sun_path, sizeof at.sun_path, "%s%.90s", abstract ? "@" : "", path);
    setenv("NOTIFY_SOCKET", at.sun_path, 1);
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
                                       strlen(at.sun_path) + (abstract ? 0 : 1));
    if (abstract) {
        at.sun_path[0] = '\0';
    }
    bench.socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(bench.socket, (const struct sockaddr *)&at, size), 0);
}

static void hear(void)
{
    char text[256];
    ssize_t size;
    while ((size = recv(bench.socket, text, sizeof text - 1, 0)) >= 0) {
        text[size] = '\0';
        strncat(bench.heard, text, sizeof bench.heard - strlen(bench.heard) - 1);
        strncat(bench.heard, ";", sizeof bench.heard - strlen(bench.heard) - 1);
    }
}

static void guard_open(void)
{
    CHECK_OK(dp_supervisor_open(&bench.supervisor, &desk.daemon));
    desk.daemon.supervisor = bench.supervisor;
}

static void bench_close(void)
{
    dp_supervisor_close(bench.supervisor);
    if (bench.socket >= 0) {
        hear();
        close(bench.socket);
    }
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    desk_close();
}

static bool hears_three_beats(void *context)
{
    (void)context;
    hear();
    unsigned beats = 0;
    for (const char *at = bench.heard; (at = strstr(at, "WATCHDOG=1")) != NULL; at++) {
        beats++;
    }
    return beats >= 3;
}

static bool has_ended(void *context)
{
    (void)context;
    return desk.ended;
}

static void a_supervisor_hears_of_begin_life_and_end(void **state)
{
    (void)state;
    for (int abstract = 0; abstract <= 1; abstract++) {
        bench_open();
        listen_as(abstract != 0);
        setenv("WATCHDOG_USEC", "4000", 1);
        guard_open();
        turn_until(&desk.loop, hears_three_beats, NULL);
        assert_true(strncmp(bench.heard, "READY=1;", 8) == 0);
        bench_close();
        assert_non_null(strstr(bench.heard, "STOPPING=1;"));
    }
}

/* systemd ends a process that says STOPPING=1 after TimeoutStopSec, even if it lives again. */
static void a_new_life_in_the_same_process_is_a_reload(void **state)
{
    (void)state;
    bench_open();
    listen_as(false);
    guard_open();
    desk.daemon.again = true;
    bench_close();
    assert_non_null(strstr(bench.heard, "RELOADING=1\nMONOTONIC_USEC="));
    assert_null(strstr(bench.heard, "STOPPING"));
}

static void a_store_thread_that_is_stuck_gives_no_sign_of_life(void **state)
{
    (void)state;
    bench_open();
    listen_as(false);
    setenv("WATCHDOG_USEC", "2000", 1);
    guard_open();
    dp_store_thread *store_thread = desk.daemon.store_thread;
    desk.daemon.store_thread = NULL; /* It takes no job. */
    for (int i = 0; i < 5; i++) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    hear();
    assert_string_equal(bench.heard, "READY=1;");
    desk.daemon.store_thread = store_thread;
    bench_close();
}

static void the_watchdog_of_another_process_is_not_fed(void **state)
{
    (void)state;
    bench_open();
    listen_as(false);
    setenv("WATCHDOG_USEC", "2000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    guard_open();
    for (int i = 0; i < 5; i++) {
        uv_run(&desk.loop, UV_RUN_NOWAIT);
    }
    bench_close();
    assert_string_equal(bench.heard, "READY=1;STOPPING=1;");
}

static void names_that_are_no_socket_are_not_told_anything(void **state)
{
    static const char *const names[] = {"", "/", "relative", "@"};
    char long_name[300];
    (void)state;
    memset(long_name, 'x', sizeof long_name);
    long_name[0] = '/';
    long_name[sizeof long_name - 1] = '\0';
    for (size_t i = 0; i <= sizeof names / sizeof names[0]; i++) {
        bench_open();
        setenv("NOTIFY_SOCKET", i < sizeof names / sizeof names[0] ? names[i] : long_name, 1);
        setenv("WATCHDOG_USEC", "2000", 1);
        guard_open();
        bench_close();
    }
}

static void a_node_may_end_when_its_work_is_counted_or_nothing_counts_it(void **state)
{
    const uint64_t limit_ms = 1000;
    (void)state;
    bench_open();
    assert_int_equal(dp_supervisor_counted(&desk.daemon), 5);
    assert_null(dp_supervisor_drained(&desk.daemon, 5, limit_ms - 1, limit_ms));
    assert_non_null(
        strstr(dp_supervisor_drained(&desk.daemon, 5, limit_ms, limit_ms), "time is over"));
    assert_non_null(
        strstr(dp_supervisor_drained(&desk.daemon, 4, 0, limit_ms), "this node's work is counted"));
    static const char no_round[] = "no round is open";
    view.trainer = "down";
    assert_non_null(strstr(dp_supervisor_drained(&desk.daemon, 5, 0, limit_ms), no_round));
    view.trainer = "up";
    view.node.mode = DP_MODE_GOSSIP;
    assert_non_null(strstr(dp_supervisor_drained(&desk.daemon, 5, 0, limit_ms), no_round));
    view.node.mode = DP_MODE_SYNC;
    desk.config.observer = true;
    assert_non_null(strstr(dp_supervisor_drained(&desk.daemon, 5, 0, limit_ms), no_round));
    desk.config.observer = false;
    desk.daemon.driver = NULL; /* Idle. */
    assert_non_null(strstr(dp_supervisor_drained(&desk.daemon, 0, 0, limit_ms), no_round));
    assert_int_equal(dp_supervisor_counted(&desk.daemon), 0);
    desk_close();
}

static void in_a_run_of_any_model_a_node_waits_for_the_work_of_its_script(void **state)
{
    const uint64_t limit_ms = 1000;
    (void)state;
    bench_open();
    desk.driver->manifest.arch = DP_ARCH_EXTERNAL;
    assert_non_null(
        strstr(dp_supervisor_drained(&desk.daemon, 5, 0, limit_ms), "no round is open"));
    view.script_pid = 812;
    view.training = true;
    assert_null(dp_supervisor_drained(&desk.daemon, 5, 0, limit_ms));
    view.script_pid = 0; /* It has ended, and its last steps are not published yet, */
    assert_null(dp_supervisor_drained(&desk.daemon, 5, 0, limit_ms));
    view.training = false; /* ... and now they are. */
    view.uncounted = true;
    assert_null(dp_supervisor_drained(&desk.daemon, 5, 0, limit_ms));
    view.uncounted = false;
    view.counted++;
    view.training = true; /* The next script works. */
    assert_non_null(
        strstr(dp_supervisor_drained(&desk.daemon, 5, 0, limit_ms), "this node's work is counted"));
    bench_close();
}

static void draining_asks_for_time_and_ends_with_the_next_counted_round(void **state)
{
    (void)state;
    bench_open();
    listen_as(false);
    guard_open();
    assert_true(dp_supervisor_drain(bench.supervisor, "SIGTERM"));
    assert_false(dp_supervisor_drain(bench.supervisor, "SIGTERM")); /* It drains already. */
    assert_true(desk_logged("SIGTERM: this node stops when a round counts its work"));
    hear();
    const char *const first = strstr(bench.heard, "EXTEND_TIMEOUT_USEC=35000000;");
    assert_non_null(first); /* ... and again, in case its time begins with the second request. */
    assert_non_null(strstr(first + 1, "EXTEND_TIMEOUT_USEC=3"));
    uv_run(&desk.loop, UV_RUN_ONCE);
    assert_false(desk.ended);
    view.counted++;
    turn_until(&desk.loop, has_ended, NULL);
    assert_int_equal(desk.exit_status, 0);
    bench_close();
}

static void a_node_with_nothing_to_wait_for_ends_without_a_word(void **state)
{
    (void)state;
    bench_open();
    view.running = false;
    guard_open();
    assert_true(dp_supervisor_drain(bench.supervisor, "SIGTERM"));
    turn_until(&desk.loop, has_ended, NULL);
    assert_false(desk_logged("daemon.draining"));
    bench_close();
}

static void the_file_of_a_machine_that_goes_away_is_seen(void **state)
{
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    bench_open();
    tempdir_file(&desk.shelf.dir, "going", path);
    snprintf(desk.config.drain_on_file, sizeof desk.config.drain_on_file, "%s", path);
    hurry_from_ms = DP_SUPERVISOR_LOOK_MS;
    guard_open();
    assert_int_equal(hurry_last_ms, DP_SUPERVISOR_LOOK_MS);
    hurry_from_ms = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    assert_false(desk_logged("daemon.draining"));
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fclose(file);
    view.counted++;
    while (!desk_logged("daemon.draining")) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    assert_true(desk_logged("going exists"));
    view.counted++;
    turn_until(&desk.loop, has_ended, NULL);
    bench_close();
}

static void without_memory_there_is_no_guard(void **state)
{
    dp_supervisor *supervisor = NULL;
    (void)state;
    bench_open();
    dp_alloc_fail_after(1);
    CHECK_STATUS(dp_supervisor_open(&supervisor, &desk.daemon), DP_NOMEM);
    dp_alloc_fail_after(0);
    assert_null(supervisor);
    dp_supervisor_close(NULL);
    desk_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_supervisor_hears_of_begin_life_and_end),
        cmocka_unit_test(a_new_life_in_the_same_process_is_a_reload),
        cmocka_unit_test(a_store_thread_that_is_stuck_gives_no_sign_of_life),
        cmocka_unit_test(the_watchdog_of_another_process_is_not_fed),
        cmocka_unit_test(names_that_are_no_socket_are_not_told_anything),
        cmocka_unit_test(a_node_may_end_when_its_work_is_counted_or_nothing_counts_it),
        cmocka_unit_test(in_a_run_of_any_model_a_node_waits_for_the_work_of_its_script),
        cmocka_unit_test(draining_asks_for_time_and_ends_with_the_next_counted_round),
        cmocka_unit_test(a_node_with_nothing_to_wait_for_ends_without_a_word),
        cmocka_unit_test(the_file_of_a_machine_that_goes_away_is_seen),
        cmocka_unit_test(without_memory_there_is_no_guard),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
