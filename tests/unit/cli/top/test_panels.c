#include "cli/top/panels.h"

#include "tests/unit/cli/top/picture_kit.h"

static dp_screen screen;
static const dp_area all = {.rows = 8, .columns = 80};

static int setup(void **state)
{
    memset(&screen, 0, sizeof screen);
    picture_setup(state);
    picture_of_three();
    picture_open(80, 8, true);
    return 0;
}

static void the_link_of_each_node_is_told_in_words(void **state)
{
    (void)state;
    picture_facts.peers[1].linked = false;
    picture_facts.peers[2].linked = false;
    PICTURE_SET(picture_facts.peers[2].state, "dead");
    dp_panel_peers(&picture, &all, &picture_facts, &screen);
    assert_true(picture_has("this node") && picture_has("via voters"));
    /* The numbers of a dead one are of before. */
    assert_true(picture_has(" carol            dead     voter    none                -        - "));
    assert_string_equal(dp_panel_role(&picture_facts.peers[0]), "voter");
    assert_string_equal(dp_panel_role(&(dp_facts_peer){.member = true}), "trainer");
    assert_string_equal(dp_panel_role(&(dp_facts_peer){.state = "alive"}), "newcomer");
    assert_string_equal(dp_panel_role(&(dp_facts_peer){.state = "dead"}), "-");
}

static void an_exchange_of_two_nodes_stands_among_the_rounds(void **state)
{
    dp_facts_round *const last = &picture_facts.rounds[picture_facts.n_rounds - 1];
    (void)state;
    last->gossip = true;
    PICTURE_SET(last->partner, "bob");
    dp_panel_rounds(&picture, &all, &picture_facts, &screen);
    assert_true(picture_has("\n      - averaged with bob alone\n"));
    assert_true(picture_has("left out"));
}

static void only_the_panel_with_the_focus_has_a_selected_line(void **state)
{
    int chosen = 0;
    (void)state;
    screen.focus = DP_PANEL_EVENTS;
    dp_panel_peers(&picture, &all, &picture_facts, &screen);
    for (int i = 0; i < picture.columns * picture.rows; i++) {
        chosen += picture.cells[i].style == DP_STYLE_CHOSEN;
    }
    assert_int_equal(chosen, 0);
    dp_panel_events(&picture, &all, &picture_facts, &screen);
    for (int i = 0; i < picture.columns; i++) {
        assert_int_equal(picture.cells[picture.columns + i].style, DP_STYLE_CHOSEN);
    }
}

static void the_own_share_is_a_bar_and_numbers(void **state)
{
    const dp_area line = {.rows = 1, .columns = 80};
    (void)state;
    picture_open(80, 1, false);
    dp_panel_own(&picture, &line, &picture_facts);
    assert_true(picture_is(" this node ###....... 32 % of the tokens   counted in 19 of the last "
                           "20 rounds\n"));
}

#define PANEL_TEST(test) cmocka_unit_test_setup_teardown(test, setup, picture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PANEL_TEST(the_link_of_each_node_is_told_in_words),
        PANEL_TEST(an_exchange_of_two_nodes_stands_among_the_rounds),
        PANEL_TEST(only_the_panel_with_the_focus_has_a_selected_line),
        PANEL_TEST(the_own_share_is_a_bar_and_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
