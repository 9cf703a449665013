/* Whole pictures, exactly, at several sizes. */
#include "cli/top/draw.h"

#include "tests/unit/cli/top/picture_kit.h"

#define PICTURES "tests/unit/cli/top/pictures/"

static dp_screen screen;

static int setup(void **state)
{
    memset(&screen, 0, sizeof screen);
    return picture_setup(state);
}

static void draw(int columns, int rows, bool utf8)
{
    picture_open(columns, rows, utf8);
    dp_screen_settle(&screen, &picture_facts);
    dp_draw(&picture, &picture_facts, &screen, PICTURE_NOW);
}

static void three_nodes_at_80x24(void **state)
{
    (void)state;
    picture_of_three();
    draw(80, 24, true);
    assert_true(picture_is_of(PICTURES "80x24.txt"));
}

static void the_manual_has_this_picture(void **state)
{
    (void)state;
    picture_of_three();
    draw(80, 24, true);
    assert_non_null(strstr(picture_file("docs/USING.md"), picture_text()));
}

static void three_nodes_at_80x24_where_only_ascii_is_shown(void **state)
{
    (void)state;
    picture_of_three();
    draw(80, 24, false);
    assert_true(picture_is_of(PICTURES "80x24_ascii.txt"));
}

static void three_nodes_at_120x40(void **state)
{
    (void)state;
    picture_of_three();
    draw(120, 40, true);
    assert_true(picture_is_of(PICTURES "120x40.txt"));
}

static void a_small_terminal_has_the_most_important_lines(void **state)
{
    (void)state;
    picture_of_three();
    draw(20, 5, true);
    assert_true(picture_is("training, round 40\n"
                           "loss 3.412\n"
                           "2.05k tokens/s here\xe2\x80\xa6\n"
                           "3 of 3 nodes alive\n"
                           "\n"));
}

static void in_between_the_panel_with_the_selection_is_shown(void **state)
{
    (void)state;
    picture_of_three();
    screen.focus = DP_PANEL_ROUNDS;
    draw(60, 12, true);
    assert_true(picture_has("rounds 1-5 of 40"));
    assert_null(strstr(picture_text(), "NAME"));
}

static void no_size_crashes_it_with_any_dialog(void **state)
{
    static const int sizes[][2] = {{1, 1},  {1, 60},  {2, 2},   {20, 5},  {59, 30},
                                   {80, 1}, {60, 12}, {61, 13}, {500, 3}, {500, 200}};
    (void)state;
    picture_of_three();
    PICTURE_SET(picture_facts.reason, "a reason that is longer than one line of the screen is, "
                                      "with words and more words and at last its end");
    PICTURE_SET(screen.title, "title");
    PICTURE_SET(screen.text, picture_facts.reason);
    PICTURE_SET(screen.message, "a message that is longer than a small screen is wide, too");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int variant = 0; variant < 18; variant++) {
            screen.dialog = (dp_dialog)(variant % 6);
            picture_facts.known = variant / 6 != 2;
            picture_facts.in_run = variant / 6 == 0;
            draw(sizes[i][0], sizes[i][1], variant % 2 == 0);
        }
    }
}

static void without_a_daemon_it_says_what_it_waits_for(void **state)
{
    (void)state;
    PICTURE_SET(picture_facts.problem, "no daemon is running");
    PICTURE_SET(picture_facts.remedy, "dpnode up");
    draw(80, 24, true);
    assert_true(picture_has("no daemon is running.\n To start it: dpnode up\n"));
    assert_true(picture_has("goes on by itself"));
}

static void without_a_run_it_names_the_ways_into_one(void **state)
{
    (void)state;
    picture_facts.known = true;
    PICTURE_SET(picture_facts.state, "idle");
    draw(80, 24, true);
    assert_true(picture_has("dpnode join TOKEN") && picture_has("dpnode run create --demo kjv"));
}

static void an_old_picture_is_marked(void **state)
{
    (void)state;
    picture_of_three();
    picture_facts.old = true;
    picture_facts.answered_ms = PICTURE_NOW - 12000;
    PICTURE_SET(picture_facts.problem, "no daemon is running");
    PICTURE_SET(picture_facts.remedy, "dpnode up");
    draw(80, 24, true);
    assert_true(picture_has("no answer   round 40"));
    assert_true(picture_has("OLD PICTURE, 12 s old: no daemon is running."));
    assert_true(picture_has("(dpnode up)") && picture_has("carol")); /* and the rest stays */
    draw(20, 5, true);
    assert_true(picture_has("OLD, round 40\n"));
}

static void a_round_to_come_and_nodes_to_come_are_told(void **state)
{
    (void)state;
    picture_of_three();
    picture_facts.n_rounds = 0;
    picture_facts.n_peers = 1;
    picture_facts.n_events = 0;
    draw(80, 24, true);
    assert_true(picture_has("The curve begins with the second"));
    assert_true(picture_has("No round is decided yet. A round takes"));
    assert_true(picture_has("No other node yet. dpnode invite prints a token"));
    assert_true(picture_has("share is known after the first round"));
    assert_true(picture_has("No events yet."));
}

static void the_reason_has_two_lines_and_the_rest_moves_down(void **state)
{
    (void)state;
    picture_of_three();
    picture_facts.healthy = false;
    PICTURE_SET(picture_facts.state, "gossip");
    PICTURE_SET(picture_facts.reason,
                "no majority of the 3 voters is reachable, so no round can be decided. Until then "
                "this node trains on and averages in pairs; and a third line is in why, not here, "
                "so that the panels keep their room on a small screen");
    draw(80, 24, true);
    assert_true(
        picture_has(" no majority of the 3 voters is reachable, so no round can be decided. "
                    "Until"));
    assert_true(picture_has("... w: all\n"));
    assert_true(picture_has("events"));
}

/* Sixty-four members: the panel scrolls with the selection. */
static void all_of_64_nodes_are_reached_by_scrolling(void **state)
{
    (void)state;
    picture_of_three();
    for (int i = 4; i <= 64; i++) {
        char name[16];
        snprintf(name, sizeof name, "node-%d", i);
        picture_peer(name, i);
    }
    draw(80, 24, true);
    assert_true(picture_has("nodes 1-5 of 64"));
    for (int i = 1; i < 64; i++) {
        char name[16];
        assert_int_equal(dp_screen_key(&screen, &picture_facts, DP_KEY_DOWN), DP_SCREEN_NOTHING);
        draw(80, 24, true);
        snprintf(name, sizeof name, "node-%d", i + 1);
        assert_true(picture_has(i == 1 ? "bob" : i == 2 ? "carol" : name));
    }
    assert_true(picture_has("nodes 60-64 of 64"));
}

/* A peer's name with sequences that would clear the screen or hide the line of another node gains
 * nothing: the picture differs from one with an honest name in the cells of that name alone. */
static void a_hostile_name_changes_its_own_cells_alone(void **state)
{
    static char honest[PICTURE_MAX];
    (void)state;
    picture_of_three();
    PICTURE_SET(picture_facts.peers[1].name, "?[2J?[1;1Hmallory");
    PICTURE_SET(picture_facts.events[19].text, "??]0;title? round 40 ?[8m hidden");
    draw(80, 24, true);
    snprintf(honest, sizeof honest, "%s", picture_text());
    PICTURE_SET(picture_facts.peers[1].name, "\x1b[2J\x1b[1;1Hmal\xe2\x80\xaelory");
    PICTURE_SET(picture_facts.events[19].text, "\x07\x1b]0;title\x07 round 40 \xc2\x9b[8m hidden");
    picture_facts.events[19].text[0] = '\x1b';
    draw(80, 24, true);
    assert_string_equal(picture_text(), honest);
    assert_null(strchr(picture_text(), '\x1b'));
}

#define DRAW_TEST(test) cmocka_unit_test_setup_teardown(test, setup, picture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DRAW_TEST(three_nodes_at_80x24),
        DRAW_TEST(the_manual_has_this_picture),
        DRAW_TEST(three_nodes_at_80x24_where_only_ascii_is_shown),
        DRAW_TEST(three_nodes_at_120x40),
        DRAW_TEST(a_small_terminal_has_the_most_important_lines),
        DRAW_TEST(in_between_the_panel_with_the_selection_is_shown),
        DRAW_TEST(no_size_crashes_it_with_any_dialog),
        DRAW_TEST(without_a_daemon_it_says_what_it_waits_for),
        DRAW_TEST(without_a_run_it_names_the_ways_into_one),
        DRAW_TEST(an_old_picture_is_marked),
        DRAW_TEST(a_round_to_come_and_nodes_to_come_are_told),
        DRAW_TEST(the_reason_has_two_lines_and_the_rest_moves_down),
        DRAW_TEST(all_of_64_nodes_are_reached_by_scrolling),
        DRAW_TEST(a_hostile_name_changes_its_own_cells_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
