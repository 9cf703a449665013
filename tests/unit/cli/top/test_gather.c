/* The questions of a look: it costs as much as is new. */
#include "cli/top/gather.h"

#include "tests/unit/cli/verb_kit.h"

enum { SECOND = 1000 };

static dp_facts facts;
static dp_gather gather;

static int setup(void **state)
{
    memset(&facts, 0, sizeof facts);
    dp_gather_open(&gather, "socket");
    return verb_setup(state);
}

static int teardown(void **state)
{
    (void)state;
    dp_gather_close(&gather);
    verb_reset();
    return 0;
}

#define TRAINING(slot)                                                                             \
    "{'state': 'training', 'run': {'id': '01', 'round': 7, 'slot': " slot                          \
    ", 'quorum': true, 'trains': true, 'trainer': 'up'}}"

static void look(uint64_t now_ms, const char *status, const char *rounds)
{
    verb_forget_calls();
    verb_answer(status);
    verb_answer("{'peers': []}");
    if (rounds != NULL) {
        verb_answer_after(rounds, "{}");
    }
    verb_answer_after("[{'event': {'id': 1}}]", "{}");
    dp_gather_look(&gather, &facts, now_ms, now_ms);
    assert_int_equal(verb_kit.n_answers, 0);
}

static void rounds_are_asked_for_when_there_are_new_ones(void **state)
{
    (void)state;
    look(SECOND, TRAINING("9"), "[{'round': {'slot': 8}}, {'round': {'slot': 9}}]");
    assert_true(verb_asked(2, "rounds", "{'last': 512}"));
    assert_true(verb_asked(3, "events", "{'last': 100}"));
    look(2 * SECOND, TRAINING("9"), NULL);
    look(3 * SECOND, TRAINING("11"), "[{'round': {'slot': 10}}, {'round': {'slot': 11}}]");
    assert_true(verb_asked(2, "rounds", "{'last': 3}"));
    assert_int_equal(facts.n_rounds, 4);
    look(4 * SECOND, TRAINING("5"), "[{'round': {'slot': 5}}]"); /* The chain went back. */
    assert_true(verb_asked(2, "rounds", "{'last': 512}"));
    assert_int_equal(facts.n_rounds, 1);
}

static void a_second_look_at_once_asks_nothing(void **state)
{
    (void)state;
    look(SECOND, TRAINING("9"), "[]");
    verb_forget_calls();
    dp_gather_look(&gather, &facts, SECOND + 100, SECOND + 100);
    assert_int_equal(verb_kit.n_calls, 0);
}

static void without_an_answer_the_facts_stay_and_are_old(void **state)
{
    (void)state;
    look(SECOND, TRAINING("9"), "[{'round': {'slot': 9, 'round': 7}}]");
    verb_kit.is_down = true;
    dp_gather_look(&gather, &facts, 2 * SECOND, 2 * SECOND);
    assert_true(facts.old && facts.known && facts.n_rounds == 1 && facts.round == 7);
    assert_int_equal(facts.answered_ms, SECOND);
    assert_string_equal(facts.problem, "no daemon is running");
    assert_string_equal(facts.remedy, "dpnode up");
    verb_kit.is_down = false;
    look(3 * SECOND, TRAINING("9"), "[{'round': {'slot': 9}}]"); /* all of them again */
    assert_true(verb_asked(2, "rounds", "{'last': 512}"));
    assert_false(facts.old);
}

static void the_reason_is_asked_for_while_it_does_not_train(void **state)
{
    (void)state;
    verb_answer("{'state': 'paused', 'run': {'id': '01'}}");
    verb_answer("{'peers': []}");
    verb_answer_after("[]", "{}");
    verb_answer("{'answer': 'paused by its owner'}");
    dp_gather_look(&gather, &facts, SECOND, SECOND);
    assert_true(verb_asked(3, "why", "{}"));
    assert_string_equal(facts.reason, "paused by its owner");
    verb_forget_calls();
    verb_answer("{'state': 'paused', 'run': {'id': '01'}}");
    verb_answer("{'peers': []}");
    verb_answer_after("[]", "{}");
    dp_gather_look(&gather, &facts, 2 * SECOND, 2 * SECOND); /* It is the same. */
    assert_int_equal(verb_kit.n_calls, 3);
    assert_string_equal(facts.reason, "paused by its owner");
    look(3 * SECOND, TRAINING("9"), "[]");
    assert_string_equal(facts.reason, "");
}

#define GATHER_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATHER_TEST(rounds_are_asked_for_when_there_are_new_ones),
        GATHER_TEST(a_second_look_at_once_asks_nothing),
        GATHER_TEST(without_an_answer_the_facts_stay_and_are_old),
        GATHER_TEST(the_reason_is_asked_for_while_it_does_not_train),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
