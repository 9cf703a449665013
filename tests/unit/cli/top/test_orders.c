/* Orders are the requests that the verbs pause, resume, limits and why send. */
#include "cli/top/orders.h"

#include "tests/unit/cli/verb_kit.h"

static dp_facts facts;
static dp_screen screen;
static const dp_source source = {.socket = "socket"};

static int setup(void **state)
{
    memset(&facts, 0, sizeof facts);
    memset(&screen, 0, sizeof screen);
    facts.n_peers = 2;
    facts.peers[0].self = true;
    snprintf(facts.peers[1].id, sizeof facts.peers[1].id, "b0b");
    snprintf(facts.peers[1].name, sizeof facts.peers[1].name, "bob");
    facts.n_rounds = 1;
    facts.rounds[0] = (dp_facts_round){.key = 9, .round = 7, .time_ms = 5};
    facts.n_events = 1;
    return verb_setup(state);
}

static void order(dp_screen_order which)
{
    dp_orders_do(which, &source, &facts, &screen);
}

static void pause_and_resume_say_what_follows(void **state)
{
    (void)state;
    verb_answer("{'state': 'paused'}");
    order(DP_SCREEN_PAUSE);
    assert_true(verb_asked(0, "pause", "{}"));
    assert_non_null(strstr(screen.message, "r resumes"));
    verb_refuse(75, "E0105", "this node is in no run");
    order(DP_SCREEN_RESUME);
    assert_true(verb_asked(1, "resume", "{}"));
    assert_string_equal(screen.message, "E0105: this node is in no run: the cause");
}

static void only_the_limits_that_were_changed_are_sent(void **state)
{
    (void)state;
    verb_answer("{'upload_mbit': 5, 'download_mbit': 0}");
    order(DP_SCREEN_ASK_LIMITS);
    assert_true(verb_asked(0, "limits", "{}"));
    assert_int_equal(screen.dialog, DP_DIALOG_LIMITS);
    order(DP_SCREEN_SET_LIMITS);
    assert_int_equal(verb_kit.n_calls, 1);
    assert_string_equal(screen.message, "the limits were not changed");
    snprintf(screen.digits[1], sizeof screen.digits[1], "20");
    verb_answer("{'upload_mbit': 5, 'download_mbit': 20}");
    order(DP_SCREEN_SET_LIMITS);
    assert_true(verb_asked(1, "limits", "{'download_mbit': 20}"));
    assert_string_equal(screen.message, "upload 5 Mbit/s, download 20 Mbit/s; kept over restarts");
}

static void why_is_asked_about_the_selected_line(void **state)
{
    (void)state;
    verb_answer("{'answer': 'it trains'}");
    order(DP_SCREEN_WHY);
    assert_true(verb_asked(0, "why", "{}"));
    assert_string_equal(screen.title, "why: this node");
    screen.chosen[DP_PANEL_PEERS].index = 1;
    verb_answer("{'answer': 'bob is alive'}");
    order(DP_SCREEN_WHY);
    assert_true(verb_asked(1, "why", "{'peer': 'b0b'}"));
    assert_string_equal(screen.title, "why: bob");
    assert_non_null(strstr(screen.text, "bob is alive"));
    screen.focus = DP_PANEL_ROUNDS;
    verb_answer("{'answer': 'x'}");
    order(DP_SCREEN_WHY);
    assert_true(verb_asked(2, "why", "{'round': 7}"));
    screen.focus = DP_PANEL_EVENTS;
    verb_answer("{'answer': 'x'}");
    order(DP_SCREEN_WHY);
    assert_true(verb_asked(3, "why", "{}"));
}

static void details_of_a_round_are_the_daemons_words_of_now(void **state)
{
    (void)state;
    screen.focus = DP_PANEL_ROUNDS;
    verb_answer_after("[{'round': {'round': 6, 'time_ms': 4}}, {'round': {'round': 7, 'time_ms': "
                      "5, 'peers': [{'name': 'bob'}]}}]",
                      "{}");
    order(DP_SCREEN_DETAILS);
    assert_true(verb_asked(0, "rounds", "{'last': 10}"));
    assert_string_equal(screen.title, "round 7");
    assert_non_null(strstr(screen.text, "bob"));
    screen.dialog = DP_DIALOG_NONE;
    verb_kit.is_down = true;
    order(DP_SCREEN_DETAILS);
    assert_int_equal(screen.dialog, DP_DIALOG_NONE);
    assert_string_equal(screen.message, "E0101: no daemon is running");
}

static void details_of_nodes_and_events_ask_nothing(void **state)
{
    (void)state;
    order(DP_SCREEN_DETAILS);
    assert_string_equal(screen.title, "node");
    screen.focus = DP_PANEL_EVENTS;
    order(DP_SCREEN_DETAILS);
    assert_string_equal(screen.title, "event");
    order(DP_SCREEN_NOTHING);
    order(DP_SCREEN_QUIT);
    assert_int_equal(verb_kit.n_calls, 0);
}

#define ORDER_TEST(test) cmocka_unit_test_setup(test, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ORDER_TEST(pause_and_resume_say_what_follows),
        ORDER_TEST(only_the_limits_that_were_changed_are_sent),
        ORDER_TEST(why_is_asked_about_the_selected_line),
        ORDER_TEST(details_of_a_round_are_the_daemons_words_of_now),
        ORDER_TEST(details_of_nodes_and_events_ask_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
