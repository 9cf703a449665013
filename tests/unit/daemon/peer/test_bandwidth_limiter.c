/* The limits of the owner that outlive a daemon, and the effect of a month on them. */
#include "daemon/peer/bandwidth_limiter.h"

#include "tests/unit/daemon/caller.h"

#define GB UINT64_C(1000000000)
#define DAY UINT64_C(86400000)
#define NOV_10 (UINT64_C(1793491200000) + 9 * DAY) /* 2026-11-10, UTC */

static uint64_t wall;

static uint64_t wall_ms(void)
{
    return wall;
}

static dp_config_live live;

static void begin(struct house *house)
{
    dp_config_live_init(&live, &house->config);
    dp_config_live_load(&live, house->shelf.store);
    house->daemon.live = &live;
    house->daemon.config = &live.now;
    CHECK_OK(dp_bandwidth_limiter_open(&house->daemon.bandwidth_limiter, &house->daemon, wall_ms));
}

/* As at the end of a daemon, and at the start of the next one. */
static void end(struct house *house)
{
    dp_bandwidth_limiter_close(house->daemon.bandwidth_limiter);
    house->daemon.bandwidth_limiter = NULL;
}

static void start_anew(struct house *house)
{
    end(house);
    house_close_rows(house);
    begin(house);
    house_open_rows(house);
}

static void note_kept(void *context, dp_status status)
{
    CHECK_OK(status);
    *(bool *)context = true;
}

static bool is_true(void *context)
{
    return *(bool *)context;
}

static void set(struct house *house, const char *setting, const char *value)
{
    dp_why why = {""};
    CHECK_OK(dp_config_live_order(&live, setting, value, "ann", wall, &why));
    dp_bandwidth_limiter_act(house->daemon.bandwidth_limiter);
}

static void set_and_keep(struct house *house, const char *setting, const char *value)
{
    bool kept = false;
    set(house, setting, value);
    CHECK_OK(dp_config_live_keep(&live, house->daemon.store_thread, note_kept, &kept));
    turn_until(&house->loop, is_true, &kept);
}

static dp_bandwidth_limiter_view see(const struct house *house)
{
    dp_bandwidth_limiter_view view = {.used_up = false};
    CHECK(dp_bandwidth_limiter_look(house->daemon.bandwidth_limiter, &view));
    return view;
}

static void settings_outlive_the_daemon(void **state)
{
    struct house house;
    (void)state;
    wall = NOV_10;
    house_open(&house);
    begin(&house);
    CHECK(dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).upload == 0);
    set_and_keep(&house, "upload-max", "8");
    CHECK(dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).upload == 1000000);
    start_anew(&house);
    CHECK(dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).upload == 1000000);
    CHECK(dp_config_from(&live.now, "upload-max") == DP_SETTING_ORDER);
    set(&house, "upload-max", "16"); /* Not kept yet: kill -9. */
    start_anew(&house);
    CHECK(dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).upload == 1000000);
    set_and_keep(&house, "upload-max", "0");
    start_anew(&house);
    CHECK(dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).upload == 0);
    end(&house);
    house_close(&house);
}

static void limits_and_the_count_outlive_rows_that_meta_db_has_lost(void **state)
{
    struct house house;
    (void)state;
    wall = NOV_10;
    house_open(&house);
    begin(&house);
    set_and_keep(&house, "upload-max", "8");
    dp_bandwidth_limiter_count(house.daemon.bandwidth_limiter, 3 * GB, GB);
    end(&house);
    house_close_rows(&house);
    CHECK_OK(dp_store_delete(house.shelf.store, "limits"));
    CHECK_OK(dp_store_delete(house.shelf.store, "traffic"));
    begin(&house);
    house_open_rows(&house);
    CHECK(dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).upload == 1000000);
    assert_int_equal(see(&house).used[DP_BANDWIDTH_QUOTA_UP], 3 * GB);
    end(&house);
    house_close(&house);
}

static void a_month_is_counted_through_starts_and_transports(void **state)
{
    struct house house;
    (void)state;
    wall = NOV_10;
    house_open(&house);
    begin(&house);
    dp_bandwidth_limiter_count(house.daemon.bandwidth_limiter, 3 * GB, GB);
    dp_bandwidth_limiter_count(house.daemon.bandwidth_limiter, 5 * GB, GB);
    assert_int_equal(see(&house).used[DP_BANDWIDTH_QUOTA_UP], 5 * GB);
    dp_bandwidth_limiter_count(house.daemon.bandwidth_limiter, GB, 0); /* Another transport. */
    assert_int_equal(see(&house).used[DP_BANDWIDTH_QUOTA_UP], 6 * GB);
    start_anew(&house);
    assert_int_equal(see(&house).used[DP_BANDWIDTH_QUOTA_UP], 6 * GB);
    assert_int_equal(see(&house).used[DP_BANDWIDTH_QUOTA_DOWN], GB);
    dp_bandwidth_limiter_count(house.daemon.bandwidth_limiter, GB, GB);
    assert_int_equal(see(&house).used[DP_BANDWIDTH_QUOTA_UP], 7 * GB);
    wall += 30 * DAY;
    start_anew(&house);
    assert_int_equal(see(&house).used[DP_BANDWIDTH_QUOTA_UP], 0);
    wall -= 30 * DAY;
    start_anew(&house);
    assert_int_equal(see(&house).used[DP_BANDWIDTH_QUOTA_UP], 7 * GB);
    end(&house);
    house_close(&house);
}

static void the_count_of_a_short_life_is_kept(void **state)
{
    struct house house;
    dp_buf row;
    dp_bandwidth_quota month;
    (void)state;
    wall = NOV_10;
    house_open(&house);
    begin(&house);
    dp_bandwidth_limiter_count(house.daemon.bandwidth_limiter, 3 * GB, GB); /* The first second. */
    set_and_keep(&house, "upload-max", "8"); /* Earlier writes are done too. */
    house_close_rows(&house);
    dp_buf_init(&row, 4096);
    dp_bandwidth_quota_init(&month, 1, wall, 0);
    CHECK_OK(dp_store_get(house.shelf.store, "traffic", &row));
    CHECK_OK(dp_bandwidth_quota_read(&month, dp_buf_view(&row)));
    assert_int_equal(month.counts[0].used[DP_BANDWIDTH_QUOTA_UP], 3 * GB);
    dp_buf_close(&row);
    house_open_rows(&house);
    end(&house);
    house_close(&house);
}

static void a_month_that_is_used_up_closes_the_line_and_says_until_when(void **state)
{
    struct house house;
    char why[128] = "";
    (void)state;
    wall = NOV_10;
    house_open(&house);
    begin(&house);
    set_and_keep(&house, "upload-max", "80");
    set_and_keep(&house, "upload-month", "21GB");
    const uint64_t at_first = dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).upload;
    CHECK(at_first > 21 * GB / (21 * 86400) &&
          at_first < 80 * 125000); /* A day's may go at once. */
    CHECK(!dp_bandwidth_limiter_why(house.daemon.bandwidth_limiter, why, sizeof why));
    dp_bandwidth_limiter_count(house.daemon.bandwidth_limiter, 20 * GB, 0);
    const uint64_t later = dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).upload;
    CHECK(later > 1 && later < at_first / 10);
    dp_bandwidth_limiter_count(house.daemon.bandwidth_limiter, 22 * GB, 0);
    CHECK(dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).upload == 1);
    CHECK(dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).download == 0);
    CHECK(see(&house).used_up &&
          dp_bandwidth_limiter_why(house.daemon.bandwidth_limiter, why, sizeof why));
    assert_string_equal(why, "this month's upload of 21.0 GB is used up until 2026-12-01");
    CHECK(house_logged(&house, "limits.used_up"));
    start_anew(&house);
    CHECK(dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).upload == 1);
    set(&house, "upload-month", "30GB");
    CHECK(dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).upload > 1000);
    set(&house, "upload-month", "21GB");
    wall += 21 * DAY; /* December */
    dp_bandwidth_limiter_count(house.daemon.bandwidth_limiter, 0, 0);
    CHECK(!see(&house).used_up &&
          dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).upload > 1000);
    CHECK(house_logged(&house, "limits.again"));
    end(&house);
    house_close(&house);
}

static void rows_that_cannot_be_read_are_told_and_no_more(void **state)
{
    struct house house;
    (void)state;
    wall = NOV_10;
    house_open(&house);
    house_close_rows(&house);
    CHECK_OK(dp_store_put(house.shelf.store, "limits", dp_view_text("nonsense")));
    CHECK_OK(dp_store_put(house.shelf.store, "traffic", dp_view_text("")));
    begin(&house);
    house_open_rows(&house);
    CHECK(dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).upload == 0);
    CHECK(house_logged(&house, "the stored limits cannot be read"));
    CHECK(house_logged(&house, "the stored count of this month's bytes cannot be read"));
    set_and_keep(&house, "download-max", "1");
    start_anew(&house);
    CHECK(dp_bandwidth_limiter_limits(house.daemon.bandwidth_limiter).download == 125000);
    end(&house);
    house_close(&house);
}

/* One number each. */
static void ask_limits(struct caller *caller, const char *key, uint64_t value)
{
    dp_buf out = {.max = 4096};
    size_t start = 0;
    dp_packer packer = dp_control_begin(&out, DP_CONTROL_REQUEST, 9, "limits", &start);
    dp_group map = dp_map_begin(&packer);
    if (key != NULL) {
        dp_pair_u64(&map, key, value);
    }
    dp_group_end(&map);
    CHECK_OK(dp_control_end(&out, start, &packer));
    send_bytes(caller, dp_buf_view(&out));
    dp_buf_close(&out);
}

static void a_client_sets_limits_within_their_bounds_and_hears_who_says_so(void **state)
{
    static const struct {
        const char *key;
        const char *setting;
        uint64_t value;
    } bad[] = {{"upload_mbit", "upload-max", 100001},
               {"upload_month", "upload-month", DP_BANDWIDTH_QUOTA_CAP_MAX + 1},
               {"month_day", "month-day", 0},
               {"month_day", "month-day", 29}};
    struct house house;
    struct caller caller;
    dp_control_frame frame;
    dp_control_error error;
    uint64_t number = 0;
    char text[64] = "";
    (void)state;
    wall = NOV_10;
    house_open(&house);
    begin(&house);
    house_open_control(&house);
    caller_open(&caller, &house);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ask_limits(&caller, bad[i].key, bad[i].value);
        const size_t size = next_frame(&caller, &frame);
        CHECK(frame.error != NULL);
        dp_control_error_read(frame.error, &error);
        assert_string_equal(error.code, "E0125");
        CHECK(strstr(error.why, bad[i].setting) != NULL);
        used(&caller, &frame, size);
    }
    ask_limits(&caller, "upload_month", 200 * GB);
    const size_t size = next_frame(&caller, &frame);
    CHECK(frame.error == NULL);
    CHECK(dp_pack_get_u64(dp_pack_key(frame.body, "upload_month"), &number) && number == 200 * GB);
    CHECK(dp_pack_copy_text(dp_pack_key(dp_pack_key(frame.body, "from"), "upload_month"), text,
                            sizeof text));
    assert_string_equal(text, "dpnode limits");
    CHECK(dp_pack_get_u64(dp_pack_key(dp_pack_key(frame.body, "month"), "upload_rate"), &number) &&
          number > 0);
    used(&caller, &frame, size);
    start_anew(&house); /* It was durable when that was said. */
    assert_int_equal(live.now.upload_month, 200 * GB);
    caller_close(&caller);
    end(&house);
    house_close(&house);
}

static void a_quota_below_the_use_of_the_store_is_told(void **state)
{
    struct house house;
    struct caller caller;
    dp_control_frame frame;
    char text[128] = "";
    (void)state;
    wall = NOV_10;
    house_open(&house);
    begin(&house);
    house_open_control(&house);
    caller_open(&caller, &house);
    ask_limits(&caller, "store_max", UINT64_C(1) << 30);
    size_t size = next_frame(&caller, &frame);
    CHECK(frame.error == NULL);
    CHECK(dp_pack_key(dp_pack_key(frame.body, "notes"), "store_max") == NULL);
    used(&caller, &frame, size);
    CHECK(!house_logged(&house, "limits.disk"));
    ask_limits(&caller, "store_max", 1000);
    size = next_frame(&caller, &frame);
    CHECK(frame.error == NULL);
    CHECK(dp_pack_copy_text(dp_pack_key(dp_pack_key(frame.body, "notes"), "store_max"), text,
                            sizeof text));
    CHECK(strstr(text, "and updates may wait for room") != NULL);
    used(&caller, &frame, size);
    CHECK(house_logged(&house, "the limit of the store is 1.0 kB; the store uses "));
    caller_close(&caller);
    end(&house);
    house_close(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_outlive_the_daemon),
        cmocka_unit_test(limits_and_the_count_outlive_rows_that_meta_db_has_lost),
        cmocka_unit_test(a_month_is_counted_through_starts_and_transports),
        cmocka_unit_test(the_count_of_a_short_life_is_kept),
        cmocka_unit_test(a_month_that_is_used_up_closes_the_line_and_says_until_when),
        cmocka_unit_test(rows_that_cannot_be_read_are_told_and_no_more),
        cmocka_unit_test(a_client_sets_limits_within_their_bounds_and_hears_who_says_so),
        cmocka_unit_test(a_quota_below_the_use_of_the_store_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
