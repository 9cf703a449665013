#include "cli/watch/source.h"

#include "tests/unit/cli/verb_kit.h"

enum { NOW = 1000 };

static void many_readers_of_one_second_cost_one_question(void **state)
{
    dp_source source;

    (void)state;
    dp_source_open(&source, "socket");
    verb_answer("{'state':'training','run':{}}");
    verb_answer("{'peers':[]}");
    dp_source_look(&source, NOW);
    dp_source_look(&source, NOW + DP_SOURCE_FRESH_MS - 1);
    assert_int_equal(verb_kit.n_calls, 2);
    assert_int_equal(source.version, 1);
    assert_string_equal(dp_json_text(source.status, "state", ""), "training");
    assert_non_null(source.peers);
    verb_answer("{'state':'idle'}");
    dp_source_look(&source, NOW + DP_SOURCE_FRESH_MS);
    assert_int_equal(verb_kit.n_calls, 3); /* A node in no run has no peers. */
    assert_int_equal(source.version, 2);
    assert_null(source.peers);
    verb_answer("{'state':'idle'}");
    dp_source_expire(&source);
    dp_source_look(&source, NOW + DP_SOURCE_FRESH_MS);
    assert_int_equal(source.version, 3);
    dp_source_close(&source);
}

static void where_no_daemon_answers_it_is_told_why(void **state)
{
    dp_source source;

    (void)state;
    dp_source_open(&source, "socket");
    verb_answer("{'state':'idle'}");
    dp_source_look(&source, NOW);
    verb_kit.is_down = true;
    dp_source_look(&source, 2 * NOW);
    assert_null(source.status);
    assert_string_equal(source.error.code, "E0101");
    assert_int_equal(source.version, 2);
    dp_source_close(&source);
}

static void a_node_that_left_between_two_questions_has_no_peers(void **state)
{
    dp_source source;

    (void)state;
    dp_source_open(&source, "socket");
    verb_answer("{'state':'training','run':{}}");
    verb_refuse(69, "E0110", "in no run");
    dp_source_look(&source, NOW);
    assert_non_null(source.status);
    assert_null(source.peers);
    dp_source_close(&source);
}

static void a_list_has_what_the_daemon_streams(void **state)
{
    dp_source source;
    dp_control_error error;

    (void)state;
    dp_source_open(&source, "socket");
    verb_answer_after("[{'round':{'slot':1}},{'round':{'slot':2}},{'other':1}]", "{'count':2}");
    json_t *list = dp_source_list(&source, "rounds", 7, &error);
    assert_int_equal(json_array_size(list), 2);
    assert_int_equal(dp_json_int(json_array_get(list, 1), "slot", 0), 2);
    assert_int_equal(dp_json_int(verb_kit.calls[0].params, "last", 0), 7);
    json_decref(list);
    verb_answer_after("[{'event':{'id':3}}]", "{'count':1}");
    list = dp_source_list(&source, "events", 1000000, &error);
    assert_int_equal(json_array_size(list), 1);
    assert_int_equal(dp_json_int(verb_kit.calls[1].params, "last", 0), DP_SOURCE_LAST_MAX);
    json_decref(list);
    verb_refuse(69, "E0110", "in no run");
    assert_null(dp_source_list(&source, "rounds", 7, &error));
    assert_string_equal(error.code, "E0110");
    dp_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(many_readers_of_one_second_cost_one_question, verb_setup),
        cmocka_unit_test_setup(where_no_daemon_answers_it_is_told_why, verb_setup),
        cmocka_unit_test_setup(a_node_that_left_between_two_questions_has_no_peers, verb_setup),
        cmocka_unit_test_setup(a_list_has_what_the_daemon_streams, verb_setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
