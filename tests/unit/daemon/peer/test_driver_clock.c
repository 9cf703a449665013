/* Clocks of peers: reported in the log, and used if a majority agrees. The roster and the clock of
 * the loop are mocks. */
#include "tests/unit/daemon/desk.h"

#define MINUTE_MS (60LL * 1000)
#define DAY_MS (24 * 60 * MINUTE_MS)

static struct {
    uint64_t now_ms;  /* of the loop */
    uint32_t members; /* this node included: peers 1 to members - 1 */
    bool joins;
    uint32_t n_rows; /* that were read of the table of members */
    uint32_t n_progress;
    char progress[256];
} net;

uint64_t uv_now(const uv_loop_t *loop)
{
    (void)loop;
    return net.now_ms;
}

bool dp_node_member(const dp_node *node, uint32_t index, dp_member_view *view)
{
    (void)node;
    net.n_rows++;
    *view = (dp_member_view){.peer = {{(uint8_t)index}}, .in_roster = true};
    return index < net.members;
}

bool dp_node_admitted(const dp_node *node, const dp_peer *peer, uint8_t x_public[32])
{
    const dp_peer member = {{peer->bytes[0]}};
    (void)node;
    (void)x_public;
    return net.joins || (dp_peer_equal(peer, &member) && peer->bytes[0] < net.members);
}

void dp_node_look(const dp_node *node, dp_node_view *view)
{
    (void)node;
    *view =
        (dp_node_view){.members = net.members, .mode = net.joins ? DP_MODE_JOINING : DP_MODE_SYNC};
}

static void on_progress(void *context, const char *phase, const char *text)
{
    (void)context;
    assert_string_equal(phase, "clock");
    net.n_progress++;
    snprintf(net.progress, sizeof net.progress, "%s", text);
}

/* A member of a run of four, whose certificate is valid for a day in both directions. */
static dp_driver *open_member(void)
{
    dp_driver *driver = desk_open();
    memset(&net, 0, sizeof net);
    net.now_ms = 1000000;
    net.members = 4;
    driver->node = (dp_node *)(void *)&net;
    driver->has_manifest = true;
    driver->own.member_from_ms = dp_unix_ms() - DAY_MS;
    driver->own.member_until_ms = dp_unix_ms() + DAY_MS;
    return driver;
}

/* A handshake with peer number (0: somebody unknown), whose clock is so far ahead. */
static bool meet(uint8_t number, int64_t ahead_ms, bool refused)
{
    const dp_peer peer = {{number}};
    const dp_addr addr = {.family = 4, .ip = {10, 0, 0, number}, .port = 7};
    return dp_driver_met(desk.driver, number != 0 ? &peer : NULL, &addr,
                         (uint64_t)((int64_t)dp_unix_ms() + ahead_ms), refused);
}

/* Within what passes between two looks at this machine's clock. */
static bool is_about(int64_t is_ms, int64_t wanted_ms)
{
    return is_ms > wanted_ms - 20000 && is_ms < wanted_ms + 20000;
}

static void a_majority_that_agrees_is_gone_by_until_it_is_right_again(void **state)
{
    dp_driver *driver = open_member();
    dp_wall_view clock;
    char text[256] = "";
    (void)state;
    assert_true(meet(1, 10 * MINUTE_MS, false));
    assert_true(meet(2, 10 * MINUTE_MS, false));
    assert_true(driver->clock.correction_ms == 0); /* Two of four. */
    assert_true(meet(3, 10 * MINUTE_MS, false));
    assert_true(is_about(driver->clock.correction_ms, 10 * MINUTE_MS));
    assert_true(is_about((int64_t)(dp_driver_wall_ms(driver) - dp_unix_ms()), 10 * MINUTE_MS));
    assert_true(desk_logged("clock.corrected") && desk_logged("3 of 4 members"));
    assert_true(dp_driver_clock(driver, &clock, text, sizeof text));
    assert_non_null(strstr(text, "this node uses theirs"));
    for (uint8_t i = 1; i <= 3; i++) {
        assert_true(meet(i, 0, false));
    }
    dp_driver_clock_tick(driver);
    assert_true(driver->clock.correction_ms == 0);
    assert_true(desk_logged("clock.right"));
    assert_false(dp_driver_clock(driver, &clock, text, sizeof text));
    driver->node = NULL;
    desk_close();
}

static void clocks_of_strangers_to_the_roster_correct_nothing(void **state)
{
    dp_driver *driver = open_member();
    (void)state;
    for (uint8_t i = 10; i < 14; i++) {
        assert_true(meet(i, 10 * MINUTE_MS, false));
    }
    assert_true(driver->clock.correction_ms == 0);
    assert_false(desk_logged("clock.corrected"));
    driver->node = NULL;
    desk_close();
}

/* One token makes any number of identities, each of which is met once. */
static void handshakes_of_strangers_leave_the_correction_standing(void **state)
{
    (void)state;
    for (int joins = 0; joins < 2; joins++) {
        dp_driver *driver = open_member();
        const dp_addr addr = {.family = 4, .ip = {10, 0, 0, 1}, .port = 7};
        net.joins = joins == 1;
        for (uint8_t i = 1; i <= 3; i++) {
            assert_true(meet(i, 10 * MINUTE_MS, false));
        }
        for (uint32_t i = 0; i < 2 * DP_WALL_MET_MAX; i++) {
            const dp_peer peer = {{(uint8_t)i, (uint8_t)(i >> 8), 1}};
            assert_true(dp_driver_met(driver, &peer, &addr, dp_unix_ms(), false));
        }
        assert_true(is_about(driver->clock.correction_ms, 10 * MINUTE_MS));
        assert_true(joins == 1 || net.n_rows == 0); /* A look-up is enough. */
        driver->node = NULL;
        desk_close();
    }
}

static void a_difference_is_told_once_a_minute_of_each_kind(void **state)
{
    dp_driver *driver = open_member();
    (void)state;
    assert_true(meet(1, 3 * MINUTE_MS, false));
    const uint32_t entries = dp_event_log_entries(desk.daemon.event_log);
    assert_true(desk_logged("clock.differs"));
    assert_true(meet(2, 3 * MINUTE_MS, true)); /* A peer again, in the same minute. */
    assert_int_equal(dp_event_log_entries(desk.daemon.event_log), entries);
    assert_true(meet(0, 3 * MINUTE_MS, true)); /* Somebody unknown is told beside it. */
    assert_int_equal(dp_event_log_entries(desk.daemon.event_log), entries + 1);
    assert_true(desk_logged("or it repeats an old message"));
    net.now_ms += 60 * 1000;
    assert_true(meet(2, -3 * MINUTE_MS, true));
    assert_int_equal(dp_event_log_entries(desk.daemon.event_log), entries + 2);
    assert_true(desk_logged("its certificate is not valid at that time, so it is refused"));
    driver->node = NULL;
    desk_close();
}

static void a_difference_within_the_skew_is_not_told(void **state)
{
    dp_driver *driver = open_member();
    (void)state;
    assert_true(meet(1, MINUTE_MS, false));
    assert_true(meet(0, -MINUTE_MS, false));
    assert_false(desk_logged("clock.differs"));
    driver->node = NULL;
    desk_close();
}

static void a_clock_that_nobody_can_have_is_not_heard(void **state)
{
    dp_driver *driver = open_member();
    const dp_peer peer = {{1}};
    const dp_addr addr = {.family = 4};
    (void)state;
    assert_true(dp_driver_met(driver, &peer, &addr, 0, false));
    assert_true(dp_driver_met(driver, &peer, &addr, UINT64_MAX, false));
    driver->closing = true;
    assert_true(meet(1, 3 * MINUTE_MS, false));
    assert_int_equal(driver->wall.n, 0);
    assert_false(desk_logged("clock.differs"));
    driver->node = NULL;
    desk_close();
}

static void a_peer_by_whose_clock_our_certificate_is_over_will_cut_the_link(void **state)
{
    dp_driver *driver = open_member();
    (void)state;
    assert_false(meet(1, 2 * DAY_MS, false));
    assert_false(meet(1, -2 * DAY_MS, false));
    assert_true(meet(1, 2 * DAY_MS, true)); /* There is no link anyway. */
    driver->facts.renewal.until_ms = dp_unix_ms() + 3 * DAY_MS;
    assert_true(meet(1, 2 * DAY_MS, false));
    assert_false(meet(1, 4 * DAY_MS, false));
    assert_false(meet(1, -2 * DAY_MS, false)); /* Before it began, which a renewal leaves. */
    driver->node = NULL;
    desk_close();
}

static void a_newcomer_hears_it_where_it_waits(void **state)
{
    dp_driver *driver = open_member();
    (void)state;
    driver->has_manifest = false;
    driver->node = NULL;
    driver->hooks.progress = on_progress;
    assert_true(meet(0, 5 * MINUTE_MS, false));
    assert_int_equal(net.n_progress, 1);
    assert_non_null(strstr(net.progress, "10.0.0.0:7"));
    assert_non_null(strstr(net.progress, "ahead of this machine's"));
    desk_close();
}

static void a_difference_that_nobody_confirms_is_shown_as_one_of_two(void **state)
{
    dp_driver *driver = open_member();
    dp_wall_view clock;
    char text[256] = "";
    (void)state;
    assert_true(meet(1, -5 * MINUTE_MS, false));
    assert_true(dp_driver_clock(driver, &clock, text, sizeof text));
    assert_non_null(strstr(text, "ahead of that of the only peer met"));
    assert_true(meet(2, -9 * MINUTE_MS, false));
    assert_true(dp_driver_clock(driver, &clock, text, sizeof text));
    assert_non_null(strstr(text, "the other nodes (median)"));
    assert_true(clock.met == 2 && clock.correction_ms == 0);
    driver->node = NULL;
    desk_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_majority_that_agrees_is_gone_by_until_it_is_right_again),
        cmocka_unit_test(clocks_of_strangers_to_the_roster_correct_nothing),
        cmocka_unit_test(handshakes_of_strangers_leave_the_correction_standing),
        cmocka_unit_test(a_difference_is_told_once_a_minute_of_each_kind),
        cmocka_unit_test(a_difference_within_the_skew_is_not_told),
        cmocka_unit_test(a_clock_that_nobody_can_have_is_not_heard),
        cmocka_unit_test(a_peer_by_whose_clock_our_certificate_is_over_will_cut_the_link),
        cmocka_unit_test(a_newcomer_hears_it_where_it_waits),
        cmocka_unit_test(a_difference_that_nobody_confirms_is_shown_as_one_of_two),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
