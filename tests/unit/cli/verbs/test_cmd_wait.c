/* wait: the conditions, and the end of the time. The clock is played, so nothing sleeps. */
#include <time.h>

#include "tests/unit/cli/verb_kit.h"

static uint64_t played_ms;
static uint32_t n_pauses;

int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    played_ms += (uint64_t)time->tv_sec * 1000 + (uint64_t)time->tv_nsec / 1000000;
    n_pauses++;
    return 0;
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    (void)id;
    *now = (struct timespec){.tv_sec = (time_t)(played_ms / 1000),
                             .tv_nsec = (long)(played_ms % 1000) * 1000000};
    return 0;
}

#define RUN_OF(round, alive, loss)                                                                 \
    "{'state': 'training', 'run': {'name': 'kjv', 'round': " #round ", 'alive': " #alive           \
    ", 'loss': " #loss "}}"

static void it_returns_when_the_round_is_decided(void **state)
{
    (void)state;
    n_pauses = 0;
    verb_answer("{'state': 'idle', 'trying': true}");
    verb_answer("{'state': 'idle', 'problem': {'code': 'E0202'}}"); /* It tries to join. */
    verb_answer("{'state': 'joining', 'run': {'name': 'kjv', 'round': null}}");
    verb_answer(RUN_OF(11, 3, null));
    verb_answer(RUN_OF(13, 3, 4.5));
    assert_int_equal(VERB(dp_verb_wait, "--round", "12"), 0);
    assert_int_equal(verb_kit.n_calls, 5);
    assert_int_equal(n_pauses, 4);
    assert_true(verb_said("kjv: round 13, 3 nodes alive, loss 4.500"));
}

static void all_conditions_must_hold_at_once(void **state)
{
    (void)state;
    verb_answer(RUN_OF(12, 3, 4.5));
    verb_answer(RUN_OF(13, 2, 3.5));
    verb_answer(RUN_OF(14, 3, null)); /* No loss yet is not a low one. */
    verb_answer(RUN_OF(15, 3, 3.5));
    assert_int_equal(VERB(dp_verb_wait, "--loss", "3.5", "--peers", "3", "--json"), 0);
    assert_string_equal(verb_kit.out, "{\"run\":\"kjv\",\"round\":15,\"alive\":3,\"loss\":3.5,"
                                      "\"waited_ms\":750}\n");
}

static void after_the_time_it_says_how_far_the_run_is(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        verb_answer(RUN_OF(3, 1, null));
    }
    assert_int_equal(VERB(dp_verb_wait, "--peers", "2", "--timeout", "1s"), DP_EXIT_TEMPORARY);
    assert_int_equal(verb_kit.n_calls, 5);
    assert_true(verb_warned("E0129"));
    assert_true(
        verb_warned("after 1 s: round 3, 1 node alive, loss unknown; this node is training"));
    assert_true(verb_warned("dpnode why"));
}

static void a_node_that_will_never_get_there_is_not_waited_for(void **state)
{
    (void)state;
    verb_answer("{'state': 'idle'}");
    assert_int_equal(VERB(dp_verb_wait, "--round", "1"), DP_EXIT_UNAVAILABLE);
    assert_true(verb_warned("E0110"));
    verb_kit.is_down = true;
    assert_int_equal(VERB(dp_verb_wait, "--round", "1"), DP_EXIT_UNAVAILABLE);
    assert_true(verb_warned("E0101"));
}

static void a_daemon_that_closes_before_the_time_is_over_is_told_as_such(void **state)
{
    (void)state;
    verb_refuse(DP_EXIT_UNAVAILABLE, "E0103", "the daemon gave no answer");
    assert_int_equal(VERB(dp_verb_wait, "--round", "1", "--timeout", "1s"), DP_EXIT_UNAVAILABLE);
    assert_true(verb_warned("E0103"));
}

static void what_cannot_be_waited_for_is_refused(void **state)
{
    static const char *const losses[] = {"0", "-1", "nan", "inf", "x", "3.2x"};
    (void)state;
    assert_int_equal(VERB_ALONE(dp_verb_wait), DP_EXIT_USAGE);
    assert_true(verb_warned("give --round, --loss or --peers"));
    assert_int_equal(VERB(dp_verb_wait, "--timeout", "5m"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_wait, "--round", "0"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_wait, "--peers", "70000"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_wait, "--round", "1", "--timeout", "soon"), DP_EXIT_USAGE);
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        assert_int_equal(VERB(dp_verb_wait, "--loss", losses[i]), DP_EXIT_USAGE);
        assert_true(verb_warned("--loss must be a number above 0"));
    }
    assert_int_equal(verb_kit.n_calls, 0);
}

static void an_error_about_a_text_that_is_no_utf8_is_json(void **state)
{
    (void)state;
    assert_int_equal(VERB(dp_verb_wait, "--loss", "caf\xe9", "--json"), DP_EXIT_USAGE);
    json_t *const told = verb_json(verb_kit.out);
    assert_string_equal(dp_json_text(json_object_get(told, "error"), "why", ""), "caf");
    json_decref(told);
}

static void an_error_cannot_steer_the_terminal(void **state)
{
    (void)state;
    assert_int_equal(VERB(dp_verb_wait, "--loss",
                          "\xc2\x9b"
                          "2J\x1b[31m"),
                     DP_EXIT_USAGE);
    assert_true(verb_warned("why: ??2J?[31m"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(it_returns_when_the_round_is_decided),
        VERB_TEST(all_conditions_must_hold_at_once),
        VERB_TEST(after_the_time_it_says_how_far_the_run_is),
        VERB_TEST(a_node_that_will_never_get_there_is_not_waited_for),
        VERB_TEST(a_daemon_that_closes_before_the_time_is_over_is_told_as_such),
        VERB_TEST(an_error_about_a_text_that_is_no_utf8_is_json),
        VERB_TEST(an_error_cannot_steer_the_terminal),
        VERB_TEST(what_cannot_be_waited_for_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
