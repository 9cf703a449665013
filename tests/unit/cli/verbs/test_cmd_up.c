/* up, down, version: the daemon itself, with a mock of its start. */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/version.h"
#include "tests/unit/cli/start_kit.h"

static void up_tells_a_daemon_that_it_started_from_one_that_ran(void **state)
{
    (void)state;
    start_kit.starts = true;
    verb_answer("{'pid': 77, 'state': 'idle'}");
    assert_int_equal(VERB(dp_verb_up, "--dir", "/d"), 0);
    assert_true(verb_asked(0, "hello", "{}"));
    assert_true(verb_said("dpnoded started (pid 77, idle). No run yet.\nto join one: dpnode join"));
    assert_string_equal(verb_kit.err, "");
    start_kit.starts = false;
    verb_answer("{'pid': 77, 'state': 'training', 'run': 'kjv'}");
    assert_int_equal(VERB(dp_verb_up, "--dir", "/d"), 0);
    assert_true(verb_said("is running (pid 77, training). Run: kjv"));
    assert_true(verb_warned("It keeps its --dir and --listen")); /* Which was not obeyed. */
    verb_answer("{'pid': 77}");
    assert_int_equal(VERB(dp_verb_up, "--json"), 0);
    assert_true(verb_said("\"started\":false"));
}

static void a_daemon_that_cannot_be_started_is_told(void **state)
{
    (void)state;
    start_kit.fails = DP_EXIT_UNAVAILABLE;
    assert_int_equal(VERB_ALONE(dp_verb_up), DP_EXIT_UNAVAILABLE);
    assert_true(verb_warned("E0102") && verb_kit.n_calls == 0);
}

static void down_waits_until_the_process_is_no_more(void **state)
{
    char answer[64];
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child); /* It has ended, and its number is free. */
    snprintf(answer, sizeof answer, "{'pid': %d}", (int)child);
    verb_answer(answer);
    assert_int_equal(VERB_ALONE(dp_verb_down), 0);
    assert_true(verb_asked(0, "down", "{}") &&
                verb_said("has stopped; to start it again: dpnode up"));
    verb_answer(answer);
    assert_int_equal(VERB(dp_verb_down, "--json"), 0);
    assert_true(verb_said("\"ended\":true"));
    verb_kit.is_down = true;
    assert_int_equal(VERB_ALONE(dp_verb_down), DP_EXIT_UNAVAILABLE);
}

static bool poll_is_over; /* The time of a wait passes at once. */

int poll(struct pollfd *fds, nfds_t n, int wait_ms)
{
    const struct timespec wait = {.tv_sec = wait_ms / 1000};
    return poll_is_over ? 0 : ppoll(fds, n, &wait, NULL);
}

static void a_daemon_that_is_still_ending_is_no_success(void **state)
{
    char answer[64];
    (void)state;
    snprintf(answer, sizeof answer, "{'pid': %d}", (int)getpid());
    poll_is_over = true;
    verb_answer(answer);
    assert_int_equal(VERB_ALONE(dp_verb_down), DP_EXIT_TEMPORARY);
    assert_true(verb_said("is stopping and still writes"));
    verb_answer(answer);
    assert_int_equal(VERB(dp_verb_down, "--json"), DP_EXIT_TEMPORARY);
    assert_true(verb_said("\"ended\":false"));
    poll_is_over = false;
}

static void version_is_told_with_and_without_a_daemon(void **state)
{
    (void)state;
    verb_answer("{'version': '9.9'}");
    assert_int_equal(VERB_ALONE(dp_verb_version), 0);
    assert_string_equal(verb_kit.out, "dpnode " DP_VERSION_TEXT "\ndpnoded 9.9\n");
    verb_kit.is_down = true;
    assert_int_equal(VERB_ALONE(dp_verb_version), 0);
    assert_string_equal(verb_kit.out, "dpnode " DP_VERSION_TEXT "\n");
    assert_int_equal(VERB(dp_verb_version, "--json"), 0);
    assert_string_equal(verb_kit.out, "{\"version\":\"" DP_VERSION_TEXT "\"}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        START_TEST(up_tells_a_daemon_that_it_started_from_one_that_ran),
        START_TEST(a_daemon_that_cannot_be_started_is_told),
        START_TEST(down_waits_until_the_process_is_no_more),
        START_TEST(a_daemon_that_is_still_ending_is_no_success),
        START_TEST(version_is_told_with_and_without_a_daemon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
