#include "cli/top/dialogs.h"

#include "tests/unit/cli/top/picture_kit.h"

static dp_screen screen;

static int setup(void **state)
{
    memset(&screen, 0, sizeof screen);
    return picture_setup(state);
}

static void without_a_dialog_nothing_is_drawn(void **state)
{
    (void)state;
    dp_grid_put(&picture, 12, 0, 80, DP_STYLE_PLAIN, "below");
    assert_int_equal(dp_dialog_draw(&picture, &picture_facts, &screen), 0);
    assert_true(picture_has("\nbelow\n"));
}

static void the_help_fits_into_80x24(void **state)
{
    (void)state;
    screen.dialog = DP_DIALOG_HELP;
    assert_int_equal(dp_dialog_draw(&picture, &picture_facts, &screen), 0);
    assert_true(picture_has("  q        quit; the node trains on\n"));
    assert_true(picture_has("  TOKENS/S speed of a node's steps, as it says\n"));
}

static void a_long_text_is_shown_from_its_scroll(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        char line[16];
        snprintf(line, sizeof line, "line %d\n", i);
        strcat(screen.text, line);
    }
    screen.dialog = DP_DIALOG_TEXT;
    PICTURE_SET(screen.title, "why: bob");
    assert_int_equal(dp_dialog_draw(&picture, &picture_facts, &screen), 40);
    assert_true(picture_has("why: bob") && picture_has("line 19\n"));
    assert_true(picture_has("1-20 of 60 lines"));
    screen.scroll = 1000;
    dp_dialog_draw(&picture, &picture_facts, &screen);
    assert_true(picture_has("line 59\n") && picture_has("41-60 of 60 lines"));
}

static void the_limits_show_which_one_is_edited(void **state)
{
    (void)state;
    dp_screen_limits(&screen, 0, 25);
    dp_dialog_draw(&picture, &picture_facts, &screen);
    assert_true(picture_has("> upload         0_ Mbit/s   (0: unlimited)\n"));
    assert_true(picture_has("  download      25  Mbit/s\n"));
}

static void a_question_names_the_node(void **state)
{
    (void)state;
    PICTURE_SET(picture_facts.node, "alice");
    screen.dialog = DP_DIALOG_PAUSE;
    dp_dialog_draw(&picture, &picture_facts, &screen);
    assert_true(picture_has("Pause training on alice?") && picture_has("any other key no"));
    screen.dialog = DP_DIALOG_RESUME;
    dp_dialog_draw(&picture, &picture_facts, &screen);
    assert_true(picture_has("Train again on alice?"));
}

#define DIALOG_TEST(test) cmocka_unit_test_setup_teardown(test, setup, picture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIALOG_TEST(without_a_dialog_nothing_is_drawn),
        DIALOG_TEST(the_help_fits_into_80x24),
        DIALOG_TEST(a_long_text_is_shown_from_its_scroll),
        DIALOG_TEST(the_limits_show_which_one_is_edited),
        DIALOG_TEST(a_question_names_the_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
