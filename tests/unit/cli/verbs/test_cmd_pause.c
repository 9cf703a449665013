/* pause, resume, drain, leave: the request of each, and its exit status. */
#include <stdlib.h>
#include <time.h>

#include "base/local_time.h"
#include "cli/print.h"
#include "tests/unit/cli/verb_kit.h"

static void pause_and_resume_ask_once_and_say_what_follows(void **state)
{
    (void)state;
    verb_answer("{'state': 'paused'}");
    assert_int_equal(VERB_ALONE(dp_verb_pause), 0);
    assert_true(verb_asked(0, "pause", "{}") && verb_said("paused") && verb_said("dpnode resume"));
    verb_answer("{'state': 'training'}");
    assert_int_equal(VERB_ALONE(dp_verb_resume), 0);
    assert_true(verb_asked(0, "resume", "{}") && verb_said("resumed training"));
    verb_answer("{'state': 'paused'}");
    assert_int_equal(VERB(dp_verb_pause, "--json"), 0);
    assert_true(verb_said("\"state\""));
    verb_refuse(DP_EXIT_TEMPORARY, "E0105", "this node is in no run");
    assert_int_equal(VERB_ALONE(dp_verb_pause), DP_EXIT_TEMPORARY);
    assert_true(verb_warned("E0105"));
}

static void a_pause_has_an_end_and_waits_for_a_round_where_that_is_asked(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    verb_answer("{'state': 'paused', 'paused': {'text': ', by ann, since x, until y'}}");
    assert_int_equal(VERB(dp_verb_pause, "--for", "2h"), 0);
    assert_true(verb_asked(0, "pause", "{'for_s': 7200}"));
    assert_true(verb_said("paused, by ann, since x, until y; training continues"));
    verb_answer("{'state': 'training', 'paused': {'waits': true, 'text': ', when'}}");
    assert_int_equal(VERB(dp_verb_pause, "--after-round", "--for", "1h"), 0);
    assert_true(verb_asked(0, "pause", "{'for_s': 3600, 'after_round': true}"));
    assert_true(verb_said("will pause, when; training continues"));
    verb_answer("{'state': 'paused', 'paused': {'text': ''}}");
    assert_int_equal(VERB(dp_verb_pause, "--until", "07:30"), 0);
    char asked[64];
    snprintf(asked, sizeof asked, "{'until_ms': %llu}",
             (unsigned long long)dp_local_next(dp_print_now_ms(), 450));
    assert_true(verb_asked(0, "pause", asked));
    verb_answer("{'state': 'paused', 'paused': {'text': ''}}");
    assert_int_equal(VERB(dp_verb_pause, "--until", "2126-11-28T07:30"), 0);
    assert_true(verb_asked(0, "pause", "{'until_ms': 4951524600000}"));
}

static void an_end_that_is_no_time_is_refused_before_anything_is_asked(void **state)
{
    static const char *const bad[] = {"25:00", "7", "soon", "07:30:00", "2h", "2026-13-01T07:30"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(VERB(dp_verb_pause, "--until", bad[i]), DP_EXIT_USAGE);
        assert_true(verb_warned("E0001") && verb_warned("local time of the day"));
    }
    assert_int_equal(VERB(dp_verb_pause, "--for", "2 hours"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_pause, "--for", "2h", "--until", "07:30"), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
    verb_answer("{'state': 'paused'}"); /* An older daemon has paused without an end. */
    assert_int_equal(VERB(dp_verb_pause, "--for", "2h"), DP_EXIT_PROTOCOL);
    assert_true(verb_warned("E0102") && verb_warned("it has paused until resume"));
}

static void drain_waits_so_long_and_the_daemon_ends(void **state)
{
    (void)state;
    verb_answer("{'counted': true, 'text': 'drained: its work is counted'}");
    assert_int_equal(VERB_ALONE(dp_verb_drain), 0);
    assert_true(verb_asked(0, "drain", "{'end': true}"));
    assert_true(verb_said("its work is counted; the daemon stops"));
    verb_answer("{'counted': false, 'text': 'x'}");
    assert_int_equal(VERB(dp_verb_drain, "--time", "2m"), 0);
    assert_true(verb_asked(0, "drain", "{'end': true, 'seconds': 120}"));
    assert_int_equal(VERB(dp_verb_drain, "--time", "soon"), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
}

static void drain_can_leave_after_it(void **state)
{
    (void)state;
    verb_answer("{'counted': true, 'text': 'drained'}");
    verb_answer("{'run': 'kjv'}");
    assert_int_equal(VERB(dp_verb_drain, "--leave", "--keep-data", "--delete-run", "kjv"), 0);
    assert_true(verb_asked(0, "drain", "{'end': false}"));
    assert_true(verb_asked(1, "run.leave", "{'keep_data': true, 'delete_run': 'kjv'}"));
    assert_true(verb_said("left kjv"));
}

static void options_of_leave_without_it_change_nothing(void **state)
{
    (void)state;
    assert_int_equal(VERB(dp_verb_drain, "--keep-data"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_drain, "--delete-run", "kjv"), DP_EXIT_USAGE);
    assert_true(verb_warned("needs --leave") && verb_kit.n_calls == 0);
}

static void a_drain_that_fails_does_not_leave(void **state)
{
    (void)state;
    verb_refuse(DP_EXIT_TEMPORARY, "E0105", "this node is in no run");
    assert_int_equal(VERB(dp_verb_drain, "--leave"), DP_EXIT_TEMPORARY);
    assert_int_equal(verb_kit.n_calls, 1);
}

static void leave_keeps_or_drops_the_data(void **state)
{
    (void)state;
    verb_answer("{'run': 'kjv'}");
    assert_int_equal(VERB_ALONE(dp_verb_leave), 0);
    assert_true(verb_asked(0, "run.leave", "{'keep_data': false}"));
    assert_true(verb_said("left kjv; training continues on its other members"));
    verb_answer("{'run': 'kjv', 'ended': true}");
    assert_int_equal(VERB(dp_verb_leave, "--delete-run", "kjv"), 0);
    assert_true(verb_said("left kjv; no member is left that votes, so the run has ended"));
    verb_answer("{'run': null, 'ended': false}");
    assert_int_equal(VERB_ALONE(dp_verb_leave), 0);
    assert_true(verb_said("no longer tries to join by its token; to join: dpnode join TOKEN"));
    verb_answer("{'run': 'kjv'}");
    assert_int_equal(VERB(dp_verb_leave, "--keep-data", "--json"), 0);
    assert_true(verb_asked(0, "run.leave", "{'keep_data': true}") && verb_said("\"run\""));
    verb_refuse(DP_EXIT_TEMPORARY, "E0111", "the run ends with this node");
    assert_int_equal(VERB_ALONE(dp_verb_leave), DP_EXIT_TEMPORARY);
    assert_string_equal(verb_kit.out, "");
}

static void without_a_daemon_each_ends_as_unavailable(void **state)
{
    static const dp_verb *const verbs[] = {&dp_verb_pause, &dp_verb_resume, &dp_verb_drain,
                                           &dp_verb_leave};
    (void)state;
    verb_kit.is_down = true;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        assert_int_equal(VERB_ALONE(*verbs[i]), DP_EXIT_UNAVAILABLE);
        assert_true(verb_warned("E0101"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(pause_and_resume_ask_once_and_say_what_follows),
        VERB_TEST(a_pause_has_an_end_and_waits_for_a_round_where_that_is_asked),
        VERB_TEST(an_end_that_is_no_time_is_refused_before_anything_is_asked),
        VERB_TEST(drain_waits_so_long_and_the_daemon_ends),
        VERB_TEST(drain_can_leave_after_it),
        VERB_TEST(options_of_leave_without_it_change_nothing),
        VERB_TEST(a_drain_that_fails_does_not_leave),
        VERB_TEST(leave_keeps_or_drops_the_data),
        VERB_TEST(without_a_daemon_each_ends_as_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
