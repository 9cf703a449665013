/* dpnode limits: distinguishes a daemon that does not know a limit from one that does. */
#include <string.h>

#include "cli/client.h"
#include "tests/lib/check.h"

dp_status __wrap_dp_client_open_within(dp_client *client, const char *path, uint32_t most_ms,
                                       dp_control_error *error);
int __wrap_dp_client_call(dp_client *client, const dp_packer *packer, dp_on_notice *on_notice,
                          void *context, json_t **result, dp_control_error *error);

/* Stands for the daemon. */
static json_t *answer;

dp_status __wrap_dp_client_open_within(dp_client *client, const char *path, uint32_t most_ms,
                                       dp_control_error *error)
{
    (void)path;
    (void)most_ms;
    (void)error;
    *client = (dp_client){.fd = -1};
    dp_buf_init(&client->in, DP_CONTROL_FRAME_MAX);
    dp_buf_init(&client->out, DP_CONTROL_FRAME_MAX);
    return DP_OK;
}

int __wrap_dp_client_call(dp_client *client, const dp_packer *packer, dp_on_notice *on_notice,
                          void *context, json_t **result, dp_control_error *error)
{
    (void)packer;
    (void)on_notice;
    (void)context;
    (void)error;
    CHECK(client->out.size > 0);
    *result = json_incref(answer);
    return 0;
}

static int run(char *option, char *value)
{
    char *argv[] = {option, value};
    dp_cmd cmd = {.json = false};
    dp_control_error error;
    CHECK_OK(dp_cmd_parse(&cmd, &dp_verb_limits, 2, argv, &error));
    return dp_verb_limits.run(&cmd);
}

static void limits_confirmed_by_the_daemon_are_accepted(void **state)
{
    (void)state;
    answer =
        json_pack("{s:i, s:i, s:I, s:i, s:i}", "upload_mbit", 5, "download_mbit", 0, "upload_month",
                  (json_int_t)200000000000, "download_month", 0, "month_day", 15);
    assert_int_equal(run("--upload", "5"), 0);
    assert_int_equal(run("--download", "0"), 0);
    assert_int_equal(run("--upload-month", "200GB"), 0);
    assert_int_equal(run("--month-day", "15"), 0);
    json_decref(answer);
}

static void a_daemon_that_does_not_know_of_months_has_not_set_one(void **state)
{
    (void)state;
    answer = json_pack("{s:i, s:i}", "upload_mbit", 5, "download_mbit", 0);
    assert_int_equal(run("--upload", "5"), 0);
    assert_int_equal(run("--upload-month", "200GB"), DP_EXIT_PROTOCOL);
    assert_int_equal(run("--month-day", "15"), DP_EXIT_PROTOCOL);
    json_decref(answer);
}

static void an_order_can_be_dropped_and_a_wrong_value_asks_nothing(void **state)
{
    (void)state;
    answer = json_pack("{s:i, s:i, s:{}}", "celsius_max", 80, "store_max", 0, "set");
    assert_int_equal(run("--celsius", "80"), 0);
    assert_int_equal(run("--disk", "50GB"), 0);
    assert_int_equal(run("--reset", "celsius"), 0);
    assert_int_equal(run("--reset", "all"), 0);
    assert_int_equal(run("--threads", "4"), DP_EXIT_PROTOCOL);
    json_decref(answer);
    answer = NULL;
    assert_int_equal(run("--reset", "celsius_max"), DP_EXIT_USAGE);
    assert_int_equal(run("--celsius", "80C"), DP_EXIT_USAGE);
    assert_int_equal(run("--vram-share", "101"), DP_EXIT_USAGE);
    assert_int_equal(run("--nice", "20"), DP_EXIT_USAGE);
    assert_int_equal(run("--disk", "50GX"), DP_EXIT_USAGE);
}

static void hours_and_switches_are_sent_as_they_are_meant(void **state)
{
    (void)state;
    answer = json_pack("{s:s, s:b, s:b, s:{s:s}}", "schedule", "22:00-07:00", "idle_only", 1,
                       "not_on_battery", 0, "notes", "schedule", "closed until Mon 22:00");
    assert_int_equal(run("--schedule", "22:00-07:00"), 0);
    assert_int_equal(run("--idle-only", "on"), 0);
    assert_int_equal(run("--not-on-battery", "off"), 0);
    assert_int_equal(run("--idle-only", "yes"), DP_EXIT_USAGE);
    assert_int_equal(run("--celsius", "80"), DP_EXIT_PROTOCOL);
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_confirmed_by_the_daemon_are_accepted),
        cmocka_unit_test(an_order_can_be_dropped_and_a_wrong_value_asks_nothing),
        cmocka_unit_test(hours_and_switches_are_sent_as_they_are_meant),
        cmocka_unit_test(a_daemon_that_does_not_know_of_months_has_not_set_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
