/* Facts from the daemon's replies, also from replies that make no sense. */
#include "cli/top/facts.h"

#include <math.h>

#include "tests/unit/cli/verb_kit.h"

enum { NOW = 1000000 };

static dp_facts facts;

static int setup(void **state)
{
    memset(&facts, 0, sizeof facts);
    return verb_setup(state);
}

static void take(void (*into)(dp_facts *, const json_t *), const char *text)
{
    json_t *const value = verb_json(text);
    into(&facts, value);
    json_decref(value);
}

static void status_at(uint64_t unix_ms, const char *text)
{
    json_t *const value = verb_json(text);
    dp_facts_status(&facts, value, unix_ms);
    json_decref(value);
}

#define HEALTHY                                                                                    \
    "{'state': 'training', 'name': 'alice', 'id': 'aa', 'run': {'name': 'kjv', 'id': '01', "       \
    "'round': 7, 'slot': 9, 'tokens': 5000, 'members': 3, 'alive': 2, 'quorum': true, 'is_voter'"  \
    ": true, 'trains': true, 'trainer': 'up', 'tokens_per_s': 100.0, 'loss': 3.5, 'upload_max'"    \
    ": 125000, 'trainer_ms': {'trained': 1000, 'computed': 900, 'publish': 30, 'apply': 30}}}"

static void a_node_that_trains_is_healthy_and_needs_no_reason(void **state)
{
    (void)state;
    snprintf(facts.reason, sizeof facts.reason, "an old one");
    status_at(NOW, HEALTHY);
    assert_true(facts.known && facts.healthy && facts.in_run && facts.has_round && facts.voter);
    assert_string_equal(facts.reason, "");
    assert_string_equal(facts.unit, "tokens");
    assert_int_equal(facts.round, 7);
    assert_int_equal(facts.upload_max, 125000);
    assert_false(facts.paused);
}

static void trouble_makes_it_unhealthy(void **state)
{
    static const char *const troubles[] = {
        "{'state': 'paused', 'run': {}}",
        "{'state': 'training', 'run': {'quorum': false, 'trains': true, 'trainer': 'up'}}",
        "{'state': 'training', 'run': {'quorum': true, 'trains': false, 'trainer': 'up'}}",
        "{'state': 'training', 'run': {'quorum': true, 'trains': true, 'trainer': 'failing'}}",
        "{'state': 'training', 'run': {'quorum': true, 'trains': true, 'trainer': 'up', "
        "'refused': true}}",
        "{'state': 'training', 'paused': {'waits': true}, 'run': {'quorum': true, 'trains': true, "
        "'trainer': 'up'}}",
        "{'state': 'training', 'problem': {}, 'run': {'quorum': true, 'trains': true, "
        "'trainer': 'up'}}"};
    (void)state;
    for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++) {
        status_at(NOW, troubles[i]);
        assert_false(facts.healthy);
        assert_false(facts.has_round);
    }
    take(dp_facts_why, "{'answer': 'paused by its owner'}");
    assert_string_equal(facts.reason, "paused by its owner");
}

static void a_node_without_a_run_tells_the_problem_of_its_first_start(void **state)
{
    (void)state;
    status_at(NOW, HEALTHY);
    status_at(NOW, "{'state': 'idle', 'problem': {'code': 'E0201', 'what': 'the token has "
                   "expired', 'why': 'a day ago', 'fix': 'ask for another'}}");
    assert_false(facts.in_run);
    assert_string_equal(facts.reason,
                        "E0201 the token has expired: a day ago. To correct it: ask for another");
}

static void times_are_of_the_last_half_minute_or_minute(void **state)
{
    dp_facts_times times;
    (void)state;
    assert_false(dp_facts_times_of(&facts, &times));
    status_at(NOW, HEALTHY);
    assert_true(dp_facts_times_of(&facts, &times)); /* since the start */
    assert_true(fabs(times.steps - 0.9) < 1e-9 && fabs(times.rounds - 0.06) < 1e-9);
    assert_true(fabs(times.waiting - 0.04) < 1e-9);
    for (int i = 1; i <= 4; i++) { /* From now on it steps half of the time. */
        char text[200];
        snprintf(text, sizeof text,
                 "{'run': {'id': '01', 'trainer_ms': {'trained': %d, 'computed': %d}}}",
                 1000 + 30000 * i, 900 + 15000 * i);
        status_at(NOW + 30000 * (uint64_t)i, text);
    }
    assert_true(dp_facts_times_of(&facts, &times));
    assert_true(fabs(times.steps - 0.5) < 1e-9);
    status_at(NOW + 130000, "{'run': {'id': '01', 'trainer_ms': {'trained': 10, 'computed': 1}}}");
    assert_true(dp_facts_times_of(&facts, &times)); /* another trainer */
    assert_true(fabs(times.steps - 0.1) < 1e-9);
}

static void rounds_are_told_anew_or_come_after_the_others(void **state)
{
    (void)state;
    status_at(NOW, HEALTHY);
    take(dp_facts_add_rounds,
         "[{'slot': 1, 'round': 1, 'tokens': 300, 'loss': 5.0, 'counted': true, 'duration_ms': "
         "2000, 'peers': [{'id': 'aa', 'tokens': 100, 'steps': 10}, {'id': 'bb', 'tokens': 200, "
         "'steps': 20}]}, {'slot': 2, 'round': 2, 'loss': 4.0, 'tokens': 100, 'duration_ms': 2000,"
         " 'left_out': [{'name': 'alice', 'cause': 'late'}, {'short': 'q3x', 'cause': 'y'}]}]");
    take(dp_facts_add_rounds, "[{'slot': 2, 'round': 2, 'loss': 3.0, 'tokens': 100, 'duration_ms': "
                              "2000}, {'slot': 2, 'time_ms': 5, 'round': 2, 'exchange': {'peer': "
                              "{'name': 'bob'}}}, {'slot': 3, 'round': 3}]");
    assert_int_equal(facts.n_rounds, 4);
    assert_true(facts.rounds[1].loss == 3.0 && facts.rounds[1].n_left_out == 0);
    assert_true(facts.rounds[2].gossip);
    assert_string_equal(facts.rounds[2].partner, "bob");
    dp_facts_own own;
    assert_true(dp_facts_own_of(&facts, &own));
    assert_true(own.rounds == 3 && own.counted == 1 && fabs(own.share - 0.25) < 1e-9);
    assert_true(fabs(dp_facts_speed(&facts) - 100) < 1e-9);
    dp_facts_peer peer = {.step_ms = 100};
    assert_true(fabs(dp_facts_peer_speed(&facts, &peer) - 100) < 1e-9);
    peer.step_ms = 0;
    assert_true(dp_facts_peer_speed(&facts, &peer) == 0);
}

static void the_oldest_rounds_go_where_there_is_no_room(void **state)
{
    (void)state;
    for (int i = 1; i <= DP_FACTS_ROUNDS_MAX + 3; i++) {
        char text[80];
        snprintf(text, sizeof text, "[{'slot': %d, 'round': %d}]", i, i);
        take(dp_facts_add_rounds, text);
    }
    assert_int_equal(facts.n_rounds, DP_FACTS_ROUNDS_MAX);
    assert_int_equal(facts.rounds[0].round, 4);
    status_at(NOW, HEALTHY); /* another run */
    assert_int_equal(facts.n_rounds, 0);
}

static void peers_have_what_is_known_of_them(void **state)
{
    (void)state;
    take(dp_facts_peers,
         "{'peers': [{'id': '00000000000000ff11', 'short': 'q3x', 'name': null, 'state': 'alive', "
         "'self': true, 'round': null, 'included': 0, 'addresses': []}, {'id': 'zz', 'name': "
         "'bob', 'linked': true, 'voter': true, 'roster': true, 'rtt_ms': 1.5, 'round': 8, "
         "'included': 7, 'addresses': ['192.0.2.1:7717', 'x']}], 'more': 5}");
    assert_int_equal(facts.n_peers, 2);
    assert_int_equal(facts.more_peers, 5);
    assert_int_equal(facts.peers[0].key, 255);
    assert_string_equal(facts.peers[0].name, "");
    assert_false(facts.peers[0].has_round);
    assert_string_equal(facts.peers[1].address, "192.0.2.1:7717");
    assert_true(facts.peers[1].linked && facts.peers[1].rtt_ms == 1.5);
    dp_facts_peers(&facts, NULL);
    assert_int_equal(facts.n_peers, 0);
}

/* The daemon is ours, but may be of another version. */
static void replies_of_other_types_are_taken_as_nothing(void **state)
{
    static const char *const odd[] = {"{}",
                                      "[]",
                                      "7",
                                      "{'run': 3, 'state': 4, 'peers': {}}",
                                      "[1, null, {'slot': 'x', 'peers': 3, 'left_out': 1}]",
                                      "{'run': {'round': -5, 'loss': 1e300, 'trainer_ms': []}}",
                                      "{'peers': [null, {'addresses': 3, 'id': 5}]}"};
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        status_at(NOW, odd[i]);
        take(dp_facts_peers, odd[i]);
        take(dp_facts_add_rounds, odd[i]);
        take(dp_facts_events, odd[i]);
        take(dp_facts_why, odd[i]);
    }
    assert_int_equal(facts.round, 0);
    assert_true(facts.loss == 0);
}

static void long_texts_are_cut_and_many_lines_are_bounded(void **state)
{
    static char long_text[2000];
    (void)state;
    memset(long_text, 'x', sizeof long_text - 1);
    json_t *const events = json_array();
    json_t *const list = json_array();
    for (int i = 0; i < 300; i++) {
        json_array_append_new(events, json_pack("{s:i,s:s}", "id", i, "text", long_text));
        json_array_append_new(list, json_pack("{s:s,s:s}", "name", long_text, "id", long_text));
    }
    json_t *const peers = json_pack("{s:o}", "peers", list);
    dp_facts_events(&facts, events);
    dp_facts_peers(&facts, peers);
    assert_int_equal(facts.n_events, DP_FACTS_EVENTS_MAX);
    assert_int_equal(facts.n_peers, DP_FACTS_PEERS_MAX);
    assert_int_equal(strlen(facts.events[0].text), DP_FACTS_TEXT_MAX - 1);
    json_decref(events);
    json_decref(peers);
}

#define FACTS_TEST(test) cmocka_unit_test_setup(test, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FACTS_TEST(a_node_that_trains_is_healthy_and_needs_no_reason),
        FACTS_TEST(trouble_makes_it_unhealthy),
        FACTS_TEST(a_node_without_a_run_tells_the_problem_of_its_first_start),
        FACTS_TEST(times_are_of_the_last_half_minute_or_minute),
        FACTS_TEST(rounds_are_told_anew_or_come_after_the_others),
        FACTS_TEST(the_oldest_rounds_go_where_there_is_no_room),
        FACTS_TEST(peers_have_what_is_known_of_them),
        FACTS_TEST(replies_of_other_types_are_taken_as_nothing),
        FACTS_TEST(long_texts_are_cut_and_many_lines_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
