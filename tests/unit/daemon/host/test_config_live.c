/* The orders of an owner above the settings of the start: which one counts, their row, and the
 * configuration that is read again. */
#include "daemon/host/config_live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"

static dp_config_live live;
static dp_config_live next;

static dp_config said(const char *name, const char *value)
{
    char argument[64];
    dp_config config;
    dp_why why = {""};
    bool help = false;
    bool version = false;
    snprintf(argument, sizeof argument, "--%s=%s", name, value);
    char *argv[] = {(char[]){"dpnoded"}, argument, (char[]){"--config="}, NULL};
    CHECK_OK(dp_config_read(&config, 3, argv, &help, &version, &why));
    return config;
}

static void order(const char *name, const char *text)
{
    dp_why why = {""};
    CHECK_OK(dp_config_live_order(&live, name, text, "ann", 77, &why));
}

static const dp_config_order *order_of(const dp_config_live *of, const char *name)
{
    return &of->orders[dp_setting_find(name, strlen(name))];
}

static void the_command_line_wins_at_the_start_and_the_last_order_after_it(void **state)
{
    const dp_config config = said("upload-max", "10");
    uint8_t bytes[DP_CONFIG_LIVE_BYTES_MAX];
    (void)state;
    dp_config_live_init(&live, &config);
    CHECK(live.now.upload_max == 10 && live.now.month_day == 1);
    CHECK(dp_config_from(&live.now, "upload-max") == DP_SETTING_COMMAND);
    assert_int_equal(dp_config_live_write(&live, bytes).size, 2);
    order("upload-max", "5");
    order("download-max", "7");
    CHECK(live.now.upload_max == 5);
    CHECK(dp_config_from(&live.now, "upload-max") == DP_SETTING_ORDER_NOW);
    CHECK(dp_config_from(&live.now, "download-max") == DP_SETTING_ORDER);
    dp_config_live_init(&next, &config); /* The next start, with the same command line ... */
    CHECK_OK(dp_config_live_read(&next, dp_config_live_write(&live, bytes)));
    CHECK(next.now.upload_max == 10 && next.now.download_max == 7);
    CHECK(dp_config_from(&next.now, "upload-max") == DP_SETTING_COMMAND);
    CHECK(dp_config_from(&next.now, "download-max") == DP_SETTING_ORDER);
    CHECK(order_of(&next, "download-max")->set_ms == 77);
    assert_string_equal(order_of(&next, "download-max")->user, "ann");
    const dp_config other = said("nice", "1"); /* ... and with one that says nothing of it. */
    dp_config_live_init(&live, &other);
    CHECK_OK(dp_config_live_read(&live, dp_config_live_write(&next, bytes)));
    CHECK(live.now.upload_max == 5);
    CHECK(dp_config_from(&live.now, "upload-max") == DP_SETTING_ORDER);
    dp_config_live_init(&live, &config);
    order("upload-max", "10"); /* As the command line says. */
    CHECK(dp_config_from(&live.now, "upload-max") == DP_SETTING_COMMAND);
    dp_config_live_forget(&live, "upload-max");
    CHECK(live.now.upload_max == 10 && !order_of(&live, "upload-max")->kept);
}

static void an_order_is_a_value_of_a_live_setting(void **state)
{
    static const struct {
        const char *name, *text;
        dp_status wanted;
    } bad[] = {{"listen", "[::]:1", DP_UNSUPPORTED}, {"upload", "1", DP_NOTFOUND},
               {"upload-max", "fast", DP_BADARG},    {"upload-max", "100001", DP_BADARG},
               {"month-day", "0", DP_BADARG},        {"upload-month", "200GX", DP_BADARG}};
    const dp_config config = said("nice", "1");
    (void)state;
    dp_config_live_init(&live, &config);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        dp_why why = {""};
        CHECK_STATUS(dp_config_live_order(&live, bad[i].name, bad[i].text, "", 1, &why),
                     bad[i].wanted);
        CHECK(strstr(why.text, bad[i].name) != NULL);
        CHECK(live.now.upload_max == 0 && live.now.month_day == 1);
    }
}

static void the_row_of_the_version_before_is_read(void **state)
{
    static const uint8_t old[] = {1, 2, 0, 5, 0, 0, 0, 0, 0, 0, 0, 4, 15, 0, 0, 0, 0, 0, 0, 0};
    const dp_config config = said("nice", "1");
    uint8_t copy[sizeof old];
    (void)state;
    dp_config_live_init(&live, &config);
    CHECK_OK(dp_config_live_read(&live, dp_view_of(old, sizeof old)));
    CHECK(live.now.upload_max == 5 && live.now.month_day == 15);
    CHECK(order_of(&live, "month-day")->set_ms == 0);
    static const struct {
        uint8_t at, byte;
    } bad[] = {{1, 1}, {1, 3}, {2, 4}, {2, 5}, {5, 2}, {11, 0}, {12, 0}, {12, 29}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memcpy(copy, old, sizeof old);
        copy[bad[i].at] = bad[i].byte;
        dp_config_live_init(&live, &config);
        CHECK_STATUS(dp_config_live_read(&live, dp_view_of(copy, sizeof copy)), DP_CORRUPT);
        CHECK(live.now.upload_max == 0 && !order_of(&live, "upload-max")->kept);
    }
}

static void a_row_that_is_not_right_changes_nothing(void **state)
{
    static const uint8_t of_a_newer_version[] = "\x02\x01\x04late\x01"
                                                "1\0\0\0\0\0\0\0\0";
    const dp_config config = said("nice", "1");
    uint8_t bytes[DP_CONFIG_LIVE_BYTES_MAX];
    (void)state;
    dp_config_live_init(&live, &config);
    order("upload-max", "5");
    order("month-day", "15");
    const dp_view view = dp_config_live_write(&live, bytes);
    for (size_t size = 0; size < view.size; size++) {
        dp_config_live_init(&next, &config);
        CHECK_STATUS(dp_config_live_read(&next, dp_view_of(bytes, size)), DP_CORRUPT);
        CHECK(next.now.upload_max == 0 && !order_of(&next, "upload-max")->kept);
    }
    for (size_t at = 0; at < view.size; at++) {
        const uint8_t was = bytes[at];
        bytes[at] = '\033'; /* It would reach a terminal, if it were read as a text. */
        dp_config_live_init(&next, &config);
        const dp_status status = dp_config_live_read(&next, view);
        CHECK(status == DP_OK || status == DP_CORRUPT || status == DP_VERSION);
        CHECK(strchr(order_of(&next, "upload-max")->user, '\033') == NULL);
        CHECK(next.now.month_day >= 1 && next.now.month_day <= 28);
        bytes[at] = was;
    }
    bytes[0] = 3;
    CHECK_STATUS(dp_config_live_read(&next, view), DP_VERSION);
    dp_config_live_init(&next, &config);
    CHECK_OK(dp_config_live_read(
        &next, dp_view_of(of_a_newer_version, sizeof of_a_newer_version))); /* With its NUL. */
    CHECK(next.now.upload_max == 0);
}

static void settings_that_are_read_again_change_if_they_are_live(void **state)
{
    bool changed[DP_CONFIG_SETTINGS_MAX];
    const dp_config config = said("nice", "1");
    dp_config fresh = config;
    dp_why why = {""};
    const int listen = dp_setting_find("listen", 6);
    const int upload = dp_setting_find("upload-max", 10);
    const int download = dp_setting_find("download-max", 12);
    (void)state;
    dp_config_live_init(&live, &config);
    order("download-max", "7");
    CHECK_OK(dp_config_set(&fresh, "upload-max", "9", &why));
    CHECK_OK(dp_config_set(&fresh, "download-max", "8", &why));
    CHECK_OK(dp_config_set(&fresh, "listen", "[::]:1", &why));
    fresh.from[upload] = DP_SETTING_FILE;
    fresh.line[upload] = 3;
    dp_config_live_take(&live, &fresh, changed);
    CHECK(live.now.upload_max == 9 && changed[upload] && !live.left[upload]);
    CHECK(live.now.from[upload] == DP_SETTING_FILE && live.now.line[upload] == 3);
    CHECK(live.now.download_max == 7 && !changed[download]); /* The owner's order stays. */
    assert_string_equal(live.now.listen, "[::]:7717");
    CHECK(live.left[listen] && !changed[listen]);
    dp_config_live_forget(&live, "download-max");
    assert_int_equal(live.now.download_max, 8);
    dp_config_live_take(&live, &config, changed);
    CHECK(!live.left[listen] && changed[upload] && live.now.upload_max == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_command_line_wins_at_the_start_and_the_last_order_after_it),
        cmocka_unit_test(an_order_is_a_value_of_a_live_setting),
        cmocka_unit_test(the_row_of_the_version_before_is_read),
        cmocka_unit_test(a_row_that_is_not_right_changes_nothing),
        cmocka_unit_test(settings_that_are_read_again_change_if_they_are_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
