/* rounds, logs, why: their output for users and for scripts. */
#include "cli/verbs/cmd_rounds.h"
#include <time.h>

#include "tests/unit/cli/verb_kit.h"

/* In front of libc's: no test waits. */
int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)wanted;
    (void)left;
    return 0;
}

static void a_decided_round_is_a_line_below_a_head(void **state)
{
    (void)state;
    verb_answer_after("[{'round': {'round': 12, 'kind': 'sync', 'listed': 3, 'active': 4, "
                      "'duration_ms': 1500, 'bytes': 1048576, 'loss': 2.5, 'counted': true, "
                      "'parts': 4, 'parts_empty': 1}}, "
                      "{'round': {'round': 13, 'kind': 'sync', 'counted': false}}]",
                      "{'count': 2}");
    assert_int_equal(VERB(dp_verb_rounds, "-n", "2"), 0);
    assert_true(verb_asked(0, "rounds", "{'last': 2, 'follow': false}"));
    assert_true(verb_said("3/4") && verb_said("1.5 s") && verb_said("1.0 MiB"));
    assert_true(verb_said("2.500") && verb_said("parts 3/4") && verb_said("not by this node"));
    assert_true(strncmp(verb_kit.out, "TIME", 4) == 0);
}

static void a_wide_line_has_the_phases(void **state)
{
    (void)state;
    verb_answer_after(
        "[{'round': {'round': 12, 'kind': 'sync', 'counted': true, 'compute_ms': 3100, "
        "'transfer_ms': 0, 'wait_ms': 640, 'phases': {'opened_at_ms': 1, "
        "'published_ms': 3100, 'ready_ms': 3150, 'decided_ms': 3700}}}]",
        "{'count': 1}");
    assert_int_equal(VERB(dp_verb_rounds, "-w"), 0);
    assert_true(verb_said("COMPUTE  TRANSFER      WAIT PUBLISHED     READY      HELD   DECIDED   "
                          "APPLIED\n"));
    assert_true(verb_said("   3.10 s    0.00 s    0.64 s    3.10 s    3.15 s         -    3.70 s   "
                          "      -"));
    verb_answer_after("[{'round': {'round': 12, 'kind': 'sync', 'counted': true}}]",
                      "{'count': 1}");
    assert_int_equal(VERB_ALONE(dp_verb_rounds), 0);
    assert_null(strstr(verb_kit.out, "COMPUTE"));
}

static void who_was_left_out_is_named_with_the_cause(void **state)
{
    (void)state;
    verb_answer_after(
        "[{'round': {'round': 12, 'kind': 'sync', 'counted': true, 'left_out': "
        "[{'short': 'bbbb', 'name': 'bob', 'cause': 'it has not announced an update'}]}}]",
        "{'count': 1}");
    assert_int_equal(VERB_ALONE(dp_verb_rounds), 0);
    assert_true(verb_asked(0, "rounds", "{'last': 20, 'follow': false}"));
    assert_true(verb_said("bob") && verb_said("it has not announced an update"));
}

static void an_exchange_shows_its_partner_and_weights(void **state)
{
    (void)state;
    verb_answer_after("[{'round': {'round': 12, 'kind': 'gossip', 'exchange': {'peer': {'short': "
                      "'bbbb', 'name': 'bob'}, 'weight_own': 10, 'weight_other': 30, 'moved': "
                      "0.25, 'cause': 'done'}}}]",
                      "{'count': 1}");
    assert_int_equal(VERB_ALONE(dp_verb_rounds), 0);
    assert_true(verb_said("bob") && verb_said("10") && verb_said("30") && verb_said("0.25"));
    assert_true(verb_said("done"));
}

static void where_nothing_is_to_be_listed_a_sentence_is_said(void **state)
{
    (void)state;
    verb_answer("{'count': 0}");
    assert_int_equal(VERB_ALONE(dp_verb_rounds), 0);
    assert_true(verb_said("no round is decided yet"));
    verb_answer("{'count': 0}");
    assert_int_equal(VERB(dp_verb_rounds, "--json"), 0);
    assert_null(strstr(verb_kit.out, "no round is decided"));
}

static void with_json_each_round_and_event_is_a_line_of_its_own(void **state)
{
    (void)state;
    verb_answer_after("[{'round': {'round': 12}}, {'round': {'round': 13}}]", "{'count': 2}");
    assert_int_equal(VERB(dp_verb_rounds, "--json", "-f"), 0);
    assert_true(verb_asked(0, "rounds", "{'last': 20, 'follow': true}"));
    assert_string_equal(verb_kit.out, "{\"round\":12}\n{\"round\":13}\n");
    verb_answer_after("[{'event': {'id': 7}}]", "{'count': 1}");
    assert_int_equal(VERB(dp_verb_logs, "--json"), 0);
    assert_string_equal(verb_kit.out, "{\"id\":7}\n");
}

static void an_event_is_a_line_that_cannot_steer_the_terminal(void **state)
{
    (void)state;
    verb_answer_after("[{'event': {'time_ms': 0, 'name': 'run.joined', 'round': 7, 'text': "
                      "'a\\u001b[2Jb'}}, {'event': {'name': 'daemon.up', 'text': 'is up'}}]",
                      "{'count': 2}");
    assert_int_equal(VERB(dp_verb_logs, "-n", "2"), 0);
    assert_true(verb_asked(0, "events", "{'last': 2, 'follow': false}"));
    assert_true(verb_said("run.joined") && verb_said("     7  ") && verb_said("     -  is up"));
    assert_null(strchr(verb_kit.out, '\x1b'));
}

static void events_are_chosen_by_the_beginning_of_their_name(void **state)
{
    static const char events[] =
        "[{'event': {'id': 1, 'name': 'join.failed'}}, {'event': {'id': 2, 'name': 'rejoin'}}, "
        "{'event': {'id': 3, 'name': 'trainer.up'}}, {'event': {'id': 4, 'name': 'joi'}}]";
    (void)state;
    verb_answer_after(events, "{'count': 4}");
    assert_int_equal(VERB(dp_verb_logs, "--only", "join,trainer", "--json"), 0);
    assert_true(verb_asked(0, "events", "{'last': 1000000, 'follow': false}"));
    assert_string_equal(verb_kit.out, "{\"id\":1,\"name\":\"join.failed\"}\n"
                                      "{\"id\":3,\"name\":\"trainer.up\"}\n");
    verb_answer_after(events, "{'count': 4}");
    assert_int_equal(VERB(dp_verb_logs, "-f", "-n", "9", "--only", ",,rejoin,", "--json"), 0);
    assert_true(verb_asked(0, "events", "{'last': 9, 'follow': true}"));
    assert_string_equal(verb_kit.out, "{\"id\":2,\"name\":\"rejoin\"}\n");
    verb_answer_after(events, "{'count': 4}");
    assert_int_equal(VERB(dp_verb_logs, "--only", ","), 0);
    assert_true(verb_said("no event with such a name is kept"));
    assert_int_equal(VERB(dp_verb_logs, "--only"), DP_EXIT_USAGE);
}

static void numbers_out_of_range_ask_nothing(void **state)
{
    (void)state;
    assert_int_equal(VERB(dp_verb_rounds, "-n", "1000001"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_logs, "-n", "x"), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
    verb_kit.is_down = true;
    assert_int_equal(VERB_ALONE(dp_verb_rounds), DP_EXIT_UNAVAILABLE);
    assert_int_equal(VERB_ALONE(dp_verb_logs), DP_EXIT_UNAVAILABLE);
    assert_int_equal(VERB_ALONE(dp_verb_why), DP_EXIT_UNAVAILABLE);
}

static void why_asks_about_the_node_a_round_or_a_peer(void **state)
{
    (void)state;
    verb_answer("{'answer': 'it trains', 'causes': [{'time_ms': 0, 'text': 'a trainer is up'}], "
                "'fix': 'dpnode up'}");
    assert_int_equal(VERB_ALONE(dp_verb_why), 0);
    assert_true(verb_asked(0, "why", "{}"));
    assert_true(verb_said("it trains\n") && verb_said("a trainer is up\n"));
    assert_true(verb_said("fix: dpnode up\n"));
    static const char *const words[][3] = {{"413", NULL, "{'round': 413}"},
                                           {"round", "413", "{'round': 413}"},
                                           {"peer", "bob", "{'peer': 'bob'}"},
                                           {"peer", "7", "{'peer': '7'}"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        verb_answer("{'answer': 'x', 'known': true}");
        assert_int_equal(VERB(dp_verb_why, words[i][0], words[i][1]), 0);
        assert_true(verb_asked(0, "why", words[i][2]));
    }
}

static void a_question_that_is_not_understood_asks_nothing(void **state)
{
    static const char *const words[][2] = {
        {"bob", NULL}, {"round", "bob"}, {"413", "bob"}, {"12x", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        assert_int_equal(VERB(dp_verb_why, words[i][0], words[i][1]), DP_EXIT_USAGE);
        assert_true(verb_warned("the arguments are not understood") && verb_kit.n_calls == 0);
    }
}

static void what_is_not_known_ends_with_1(void **state)
{
    (void)state;
    verb_answer("{'answer': 'no such round', 'known': false}");
    assert_int_equal(VERB(dp_verb_why, "9"), DP_EXIT_NEGATIVE);
    assert_true(verb_said("no such round"));
    verb_answer("{'answer': 'no such round', 'known': false}");
    assert_int_equal(VERB(dp_verb_why, "9", "--json"), DP_EXIT_NEGATIVE);
    assert_true(verb_said("\"known\":false"));
    verb_refuse(DP_EXIT_NOINPUT, "E0110", "no peer of this name");
    assert_int_equal(VERB(dp_verb_why, "peer", "eve"), DP_EXIT_NOINPUT);
}

static void times_and_members_are_asked_of_the_daemon(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    verb_answer("{'count': 0, 'filtered': true}");
    assert_int_equal(VERB(dp_verb_rounds, "--since", "2026-11-28T10:40", "--until", "11:00"), 0);
    assert_true(verb_asked(0, "rounds",
                           "{'follow': false, 'since_ms': 1795862400000, 'until_ms': "
                           "1795863600000}"));
    assert_true(verb_said("nothing is kept that fits"));
    verb_answer("{'count': 0, 'filtered': true}");
    assert_int_equal(VERB(dp_verb_logs, "--until", "2026-11-28T10:40", "-n", "9", "--peer", "bob"),
                     0);
    assert_true(verb_asked(
        0, "events", "{'last': 9, 'follow': false, 'until_ms': 1795862400000, 'peer': 'bob'}"));
    verb_answer("{'answer': 'x'}");
    assert_int_equal(VERB(dp_verb_why, "--peer", "bob", "--since", "2026-11-28T10:40"), 0);
    assert_true(verb_asked(0, "why", "{'peer': 'bob', 'since_ms': 1795862400000}"));
    verb_answer_after("[{'round': {'round': 12}}]", "{'count': 1}");
    assert_int_equal(VERB(dp_verb_rounds, "--since", "2d"), DP_EXIT_PROTOCOL);
    assert_true(verb_warned("E0102") && verb_warned("older version"));
}

static void lines_of_another_day_stand_below_its_date(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    verb_answer_after("[{'event': {'time_ms': 1000000000000, 'name': 'a', 'text': 'one'}}, "
                      "{'event': {'time_ms': 1000000060000, 'name': 'a', 'text': 'two'}}, "
                      "{'event': {'time_ms': 1000086400000, 'name': 'a', 'text': 'three'}}]",
                      "{'count': 3}");
    assert_int_equal(VERB(dp_verb_logs, "-n", "3"), 0);
    assert_true(verb_said("2001-09-09\n01:46:40 a "));
    assert_true(verb_said("one\n01:47:40 a "));
    assert_true(verb_said("two\n2001-09-10\n01:46:40 a "));
}

static void times_that_are_none_name_the_forms(void **state)
{
    static const dp_verb *const verbs[] = {&dp_verb_rounds, &dp_verb_logs, &dp_verb_why};
    static const char *const bad[] = {"soon", "25:00", "2026-02-30T10:40", "-2d", ""};
    (void)state;
    for (size_t v = 0; v < sizeof verbs / sizeof verbs[0]; v++) {
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            assert_int_equal(VERB(*verbs[v], "--since", bad[i]), DP_EXIT_USAGE);
            assert_true(verb_warned("--since is") &&
                        verb_warned("10m, 2h or 3d, 10:40, or 2026-11-28T10:40"));
            assert_int_equal(VERB(*verbs[v], "--until", bad[i]), DP_EXIT_USAGE);
        }
        assert_int_equal(VERB(*verbs[v], "--since", "1h", "--until", "2h"), DP_EXIT_USAGE);
        assert_true(verb_warned("--until is not after --since"));
    }
    assert_int_equal(VERB(dp_verb_logs, "-f", "--until", "1h"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_why, "7", "--peer", "bob"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_why, "peer", "bob", "--peer", "eve"), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
}

static void a_list_that_follows_goes_on_after_what_it_has_when_the_daemon_is_back(void **state)
{
    (void)state;
    verb_cut_after(
        "[{'round': {'round': 12, 'slot': 14}}, {'round': {'round': 13, 'slot': 15, "
        "'seq': 700}}, {'round': {'round': 13, 'slot': 15, 'seq': 701, 'exchange': {}}}]");
    verb_refuse(DP_EXIT_UNAVAILABLE, "E0101", "no daemon is running");
    verb_cut_after("[{'round': {'round': 14, 'slot': 16}}]");
    verb_cut_after("[{'round': {'round': 9, 'slot': 11, 'seq': 702}}]"); /* It went back. */
    verb_refuse(DP_EXIT_UNAVAILABLE, "E0110", "this node has no run");
    assert_int_equal(VERB(dp_verb_rounds, "-f", "--json"), DP_EXIT_UNAVAILABLE);
    assert_true(verb_asked(0, "rounds", "{'last': 20, 'follow': true}"));
    assert_true(verb_asked(1, "rounds", "{'after': 701, 'after_slot': 15, 'follow': true}"));
    assert_true(verb_asked(2, "rounds", "{'after': 701, 'after_slot': 15, 'follow': true}"));
    assert_true(verb_asked(3, "rounds", "{'after': 701, 'after_slot': 16, 'follow': true}"));
    assert_true(verb_asked(4, "rounds", "{'after': 702, 'after_slot': 11, 'follow': true}"));
    assert_int_equal(verb_kit.n_calls, 5);
    assert_true(verb_warned("the daemon is away"));
    verb_cut_after("[{'event': {'id': 7, 'name': 'a'}}]");
    verb_answer("{'count': 0}");
    assert_int_equal(VERB(dp_verb_logs, "-f", "--json"), 0);
    assert_true(verb_asked(1, "events", "{'after': 7, 'after_slot': 0, 'follow': true}"));
    verb_cut_after("[]");
    verb_answer("{'count': 0, 'filtered': true}");
    assert_int_equal(VERB(dp_verb_logs, "-f", "-n", "0"), 0);
    assert_true(json_object_get(verb_kit.calls[1].params, "since_ms") != NULL);
    verb_cut_after("[]"); /* One that does not follow ends. */
    assert_int_equal(VERB_ALONE(dp_verb_logs), DP_EXIT_UNAVAILABLE);
    assert_int_equal(verb_kit.n_calls, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(a_decided_round_is_a_line_below_a_head),
        VERB_TEST(a_wide_line_has_the_phases),
        VERB_TEST(who_was_left_out_is_named_with_the_cause),
        VERB_TEST(an_exchange_shows_its_partner_and_weights),
        VERB_TEST(where_nothing_is_to_be_listed_a_sentence_is_said),
        VERB_TEST(with_json_each_round_and_event_is_a_line_of_its_own),
        VERB_TEST(an_event_is_a_line_that_cannot_steer_the_terminal),
        VERB_TEST(events_are_chosen_by_the_beginning_of_their_name),
        VERB_TEST(numbers_out_of_range_ask_nothing),
        VERB_TEST(why_asks_about_the_node_a_round_or_a_peer),
        VERB_TEST(a_question_that_is_not_understood_asks_nothing),
        VERB_TEST(what_is_not_known_ends_with_1),
        VERB_TEST(times_and_members_are_asked_of_the_daemon),
        VERB_TEST(lines_of_another_day_stand_below_its_date),
        VERB_TEST(times_that_are_none_name_the_forms),
        VERB_TEST(a_list_that_follows_goes_on_after_what_it_has_when_the_daemon_is_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
