#include "cli/top/details.h"

#include "tests/unit/cli/verb_kit.h"

static char text[2000];

static bool says(const char *words)
{
    if (strstr(text, words) == NULL) {
        fprintf(stderr, "no \"%s\" in: %s\n", words, text);
        return false;
    }
    return true;
}

static void a_round_has_each_contributor_and_those_left_out(void **state)
{
    json_t *const round = verb_json(
        "{'round': 7, 'time_ms': 0, 'duration_ms': 3500, 'listed': 2, 'active': 3, 'bytes': 2048, "
        "'loss': 3.25, 'tokens': 4000, 'counted': true, 'peers': [{'name': 'alice', 'tokens': "
        "3000, 'steps': 3}, {'short': 'q3x', 'tokens': 1000, 'steps': 1, 'age': 1}], 'left_out': "
        "[{'name': 'carol', 'cause': 'it came too late'}]}");
    (void)state;
    dp_details_round(round, text, sizeof text);
    assert_true(says("it took 3.5 s") && says("2 of 3 counted, 2.0 KiB") && says("3.2500"));
    assert_true(says("alice: 3.00k, 75 %, 3 steps\n"));
    assert_true(says("q3x: 1.00k, 25 %, 1 steps, late for the round before\n"));
    assert_true(says("carol was left out: it came too late"));
    assert_null(strstr(text, "phases"));
    json_t *const more = verb_json("{'compute_ms': 3100, 'transfer_ms': 0, 'wait_ms': 640, "
                                   "'phases': {'published_ms': 3100, 'decided_ms': 3700}}");
    json_object_update(round, more);
    json_decref(more);
    dp_details_round(round, text, sizeof text);
    assert_true(says("phases        published 3.1 s, decided 3.7 s\n"));
    assert_true(says("time          compute 3.1 s, transfer 0.0 s, wait 0.6 s\n"));
    dp_details_round(round, text, 30);
    assert_int_equal(strlen(text), 29); /* cut, and ended */
    json_decref(round);
}

static void an_exchange_has_its_partner_and_cause(void **state)
{
    json_t *const round = verb_json("{'round': 7, 'exchange': {'peer': {'name': 'bob'}, 'cause': "
                                    "'no majority'}}");
    (void)state;
    dp_details_round(round, text, sizeof text);
    assert_true(says("averaged with bob alone: no majority"));
    json_decref(round);
}

static void a_node_tells_what_is_known_of_it_alone(void **state)
{
    static dp_facts facts;
    dp_facts_peer peer = {.brief = "q3x", .state = "alive"};
    (void)state;
    dp_details_peer(&facts, &peer, text, sizeof text);
    assert_true(says("not told yet") && says("via voters") && says("address       not known"));
    assert_true(says("in no round yet"));
    assert_null(strstr(text, "round trip"));
    peer = (dp_facts_peer){.name = "bob", .linked = true, .rtt_ms = 2, .step_ms = 10, .counted = 5};
    dp_details_peer(&facts, &peer, text, sizeof text);
    assert_true(says("bob") && says("direct") && says("2.0 ms") && says("round 5"));
}

static void why_has_causes_and_the_fix(void **state)
{
    json_t *const why = verb_json("{'answer': 'it waits', 'causes': [{'time_ms': 0, 'text': 'bob "
                                  "went'}], 'fix': 'dpnode peers'}");
    (void)state;
    dp_details_why(why, text, sizeof text);
    assert_true(says("it waits\n") && says("bob went\n") && says("to correct it: dpnode peers"));
    json_decref(why);
}

static void an_event_has_its_name(void **state)
{
    (void)state;
    dp_details_event(&(dp_facts_event){.name = "member.state", .text = "bob: alive -> dead"}, text,
                     sizeof text);
    assert_true(says("member.state") && says("bob: alive -> dead"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_has_each_contributor_and_those_left_out),
        cmocka_unit_test(an_exchange_has_its_partner_and_cause),
        cmocka_unit_test(a_node_tells_what_is_known_of_it_alone),
        cmocka_unit_test(why_has_causes_and_the_fix),
        cmocka_unit_test(an_event_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
