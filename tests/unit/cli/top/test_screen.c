#include "cli/top/screen.h"

#include "tests/unit/cli/top/picture_kit.h"

static dp_screen screen;

static int setup(void **state)
{
    memset(&screen, 0, sizeof screen);
    picture_setup(state);
    picture_of_three();
    dp_screen_settle(&screen, &picture_facts);
    return 0;
}

static dp_screen_order key(int which)
{
    return dp_screen_key(&screen, &picture_facts, which);
}

static void q_quits_and_tab_goes_around_the_panels(void **state)
{
    (void)state;
    assert_int_equal(key('q'), DP_SCREEN_QUIT);
    assert_int_equal(key(DP_KEY_TAB), DP_SCREEN_NOTHING);
    assert_int_equal(screen.focus, DP_PANEL_ROUNDS);
    key(DP_KEY_TAB);
    key(DP_KEY_TAB);
    assert_int_equal(screen.focus, DP_PANEL_PEERS);
    key(DP_KEY_BACK_TAB);
    assert_int_equal(screen.focus, DP_PANEL_EVENTS);
}

static void the_selection_stays_within_its_panel(void **state)
{
    (void)state;
    key('k');
    assert_ptr_equal(dp_screen_peer(&screen, &picture_facts), &picture_facts.peers[0]);
    key('j');
    key(DP_KEY_DOWN);
    key(DP_KEY_DOWN);
    assert_ptr_equal(dp_screen_peer(&screen, &picture_facts), &picture_facts.peers[2]);
    key(DP_KEY_PAGE_UP);
    assert_ptr_equal(dp_screen_peer(&screen, &picture_facts), &picture_facts.peers[0]);
    key('G');
    assert_ptr_equal(dp_screen_peer(&screen, &picture_facts), &picture_facts.peers[2]);
    picture_facts.n_peers = 0;
    dp_screen_settle(&screen, &picture_facts);
    assert_null(dp_screen_peer(&screen, &picture_facts));
    key('j');
    assert_int_equal(key(DP_KEY_ENTER), DP_SCREEN_NOTHING);
}

static void a_selected_round_stays_selected_and_the_newest_follows_the_newest(void **state)
{
    (void)state;
    key(DP_KEY_TAB);
    assert_int_equal(dp_screen_round(&screen, &picture_facts)->round, 40);
    picture_round(41, 3.1, 3);
    dp_screen_settle(&screen, &picture_facts);
    assert_int_equal(dp_screen_round(&screen, &picture_facts)->round, 41);
    key('j');
    assert_int_equal(dp_screen_round(&screen, &picture_facts)->round, 40);
    picture_round(42, 3.1, 3);
    dp_screen_settle(&screen, &picture_facts);
    assert_int_equal(dp_screen_round(&screen, &picture_facts)->round, 40);
}

static void pause_and_resume_are_asked_once(void **state)
{
    (void)state;
    assert_int_equal(key('p'), DP_SCREEN_NOTHING);
    assert_int_equal(screen.dialog, DP_DIALOG_PAUSE);
    assert_int_equal(key('y'), DP_SCREEN_PAUSE);
    assert_int_equal(screen.dialog, DP_DIALOG_NONE);
    key('p');
    assert_int_equal(key(DP_KEY_ENTER), DP_SCREEN_NOTHING);
    assert_string_equal(screen.message, "not paused");
    key('r');
    assert_string_equal(screen.message, "it is not paused");
    picture_facts.paused = true;
    key('p');
    assert_int_equal(screen.dialog, DP_DIALOG_NONE);
    assert_string_equal(screen.message, "it is paused already; r resumes");
    key('r');
    assert_int_equal(key('Y'), DP_SCREEN_RESUME);
    picture_facts.in_run = false;
    key('p');
    assert_int_equal(screen.dialog, DP_DIALOG_NONE);
}

static void without_a_daemon_nothing_is_ordered(void **state)
{
    (void)state;
    picture_facts.old = true;
    for (const char *at = "prlw"; *at != '\0'; at++) {
        assert_int_equal(key(*at), DP_SCREEN_NOTHING);
        assert_int_equal(screen.dialog, DP_DIALOG_NONE);
        assert_string_equal(screen.message, "no daemon answers; this key works when it does");
    }
}

static void limits_are_typed_into_two_fields(void **state)
{
    (void)state;
    assert_int_equal(key('l'), DP_SCREEN_ASK_LIMITS);
    dp_screen_limits(&screen, 0, 100000);
    for (const char *at = "0205"; *at != '\0'; at++) {
        key(*at);
    }
    assert_int_equal(dp_screen_field(&screen, 0), 205);
    key(DP_KEY_BACKSPACE);
    key('x');
    key(DP_KEY_TAB);
    key('9'); /* a seventh digit is not taken */
    assert_int_equal(key(DP_KEY_ENTER), DP_SCREEN_SET_LIMITS);
    assert_int_equal(dp_screen_field(&screen, 0), 20);
    assert_int_equal(dp_screen_field(&screen, 1), 100000);
    dp_screen_limits(&screen, 5, 5);
    key(DP_KEY_BACKSPACE);
    key(DP_KEY_BACKSPACE);
    assert_int_equal(dp_screen_field(&screen, 0), 0);
    assert_int_equal(key(DP_KEY_ESCAPE), DP_SCREEN_NOTHING);
    assert_int_equal(screen.dialog, DP_DIALOG_NONE);
}

static void a_text_scrolls_and_any_other_key_closes_it(void **state)
{
    (void)state;
    dp_screen_show(&screen, "title", "text");
    key('k');
    assert_int_equal(screen.scroll, 0);
    key('j');
    key(' ');
    assert_int_equal(screen.scroll, 1 + DP_SCREEN_PAGE);
    key(DP_KEY_PAGE_UP);
    assert_int_equal(screen.scroll, 1);
    assert_int_equal(key('q'), DP_SCREEN_NOTHING);
    assert_int_equal(screen.dialog, DP_DIALOG_NONE);
    key('?');
    assert_int_equal(screen.dialog, DP_DIALOG_HELP);
    key(DP_KEY_ESCAPE);
    assert_int_equal(screen.dialog, DP_DIALOG_NONE);
    key('z');
    assert_string_equal(screen.message, "? shows the keys");
}

static void any_keys_in_any_order_keep_it_whole(void **state)
{
    static const int keys[] = {'q', '?',  'p', 'r', 'l', 'w', 'y', 'n', 'j', 'k', 'g', 'G', '1',
                               '9', '\t', 10,  27,  127, 256, 257, 258, 259, 260, 261, 262, 263};
    (void)state;
    srand(3);
    for (int i = 0; i < 20000; i++) {
        const dp_screen_order order = key(keys[rand() % (int)(sizeof keys / sizeof keys[0])]);
        if (order == DP_SCREEN_ASK_LIMITS) {
            dp_screen_limits(&screen, (uint64_t)rand() % 100001, 0);
        }
        picture_facts.n_peers = (uint32_t)rand() % 4;
        picture_facts.n_events = (uint32_t)rand() % 20;
        dp_screen_settle(&screen, &picture_facts);
        for (dp_panel panel = DP_PANEL_PEERS; panel < DP_PANELS; panel++) {
            const uint32_t lines = dp_screen_lines(&picture_facts, panel);
            assert_true(screen.chosen[panel].index < lines || screen.chosen[panel].index == 0);
        }
        assert_true(dp_screen_field(&screen, 0) <= 999999);
    }
}

#define SCREEN_TEST(test) cmocka_unit_test_setup_teardown(test, setup, picture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCREEN_TEST(q_quits_and_tab_goes_around_the_panels),
        SCREEN_TEST(the_selection_stays_within_its_panel),
        SCREEN_TEST(a_selected_round_stays_selected_and_the_newest_follows_the_newest),
        SCREEN_TEST(pause_and_resume_are_asked_once),
        SCREEN_TEST(without_a_daemon_nothing_is_ordered),
        SCREEN_TEST(limits_are_typed_into_two_fields),
        SCREEN_TEST(a_text_scrolls_and_any_other_key_closes_it),
        SCREEN_TEST(any_keys_in_any_order_keep_it_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
