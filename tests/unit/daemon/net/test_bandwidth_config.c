/* The source of each limit of the owner: stored row, environment or configuration. */
#include "daemon/net/bandwidth_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"

static dp_config said(const char *name, const char *value)
{
    char argument[64];
    dp_config config;
    dp_why why = {""};
    bool help = false;
    bool version = false;
    snprintf(argument, sizeof argument, "--%s=%s", name, value);
    char *argv[] = {(char[]){"dpnoded"}, argument, NULL};
    CHECK_OK(dp_config_read(&config, 2, argv, &help, &version, &why));
    return config;
}

static void stored_limits_apply_without_other_settings(void **state)
{
    const dp_config config = said("upload-max", "10");
    uint8_t bytes[DP_BANDWIDTH_CONFIG_BYTES_MAX];
    dp_bandwidth_config_set set;
    dp_bandwidth_config_set next;
    (void)state;
    dp_bandwidth_config_begin(&set, &config);
    CHECK(set.values[DP_BANDWIDTH_CONFIG_UPLOAD].value == 10);
    CHECK(set.values[DP_BANDWIDTH_CONFIG_UPLOAD].from == DP_BANDWIDTH_CONFIG_COMMAND);
    CHECK(set.values[DP_BANDWIDTH_CONFIG_MONTH_DAY].value == 1);
    CHECK(set.values[DP_BANDWIDTH_CONFIG_MONTH_DAY].from == DP_BANDWIDTH_CONFIG_STANDARD);
    assert_int_equal(dp_bandwidth_config_write(&set, bytes).size, 2);
    dp_bandwidth_config_change(&set, DP_BANDWIDTH_CONFIG_UPLOAD, 5);
    dp_bandwidth_config_change(&set, DP_BANDWIDTH_CONFIG_DOWNLOAD, 7);
    CHECK(set.values[DP_BANDWIDTH_CONFIG_UPLOAD].value == 5);
    CHECK(set.values[DP_BANDWIDTH_CONFIG_UPLOAD].from == DP_BANDWIDTH_CONFIG_NOW);
    CHECK(set.values[DP_BANDWIDTH_CONFIG_DOWNLOAD].from == DP_BANDWIDTH_CONFIG_KEPT);
    dp_bandwidth_config_begin(&next, &config); /* The next start, with the same command line ... */
    CHECK_OK(dp_bandwidth_config_read(&next, dp_bandwidth_config_write(&set, bytes)));
    CHECK(next.values[DP_BANDWIDTH_CONFIG_UPLOAD].value == 10);
    CHECK(next.values[DP_BANDWIDTH_CONFIG_UPLOAD].from == DP_BANDWIDTH_CONFIG_COMMAND);
    CHECK(next.values[DP_BANDWIDTH_CONFIG_DOWNLOAD].value == 7);
    CHECK(next.values[DP_BANDWIDTH_CONFIG_DOWNLOAD].from == DP_BANDWIDTH_CONFIG_KEPT);
    const dp_config other = said("nice", "1"); /* ... and with one that says nothing of it. */
    dp_bandwidth_config_begin(&set, &other);
    CHECK_OK(dp_bandwidth_config_read(&set, dp_bandwidth_config_write(&next, bytes)));
    CHECK(set.values[DP_BANDWIDTH_CONFIG_UPLOAD].value == 5);
    CHECK(set.values[DP_BANDWIDTH_CONFIG_UPLOAD].from == DP_BANDWIDTH_CONFIG_KEPT);
    dp_bandwidth_config_change(&next, DP_BANDWIDTH_CONFIG_UPLOAD,
                               10); /* As the command line says. */
    CHECK(next.values[DP_BANDWIDTH_CONFIG_UPLOAD].from == DP_BANDWIDTH_CONFIG_COMMAND);
}

static void the_environment_says_so_too(void **state)
{
    dp_bandwidth_config_set set;
    (void)state;
    setenv("DPNODE_UPLOAD_MONTH", "200GB", 1);
    const dp_config config = said("nice", "1");
    unsetenv("DPNODE_UPLOAD_MONTH");
    dp_bandwidth_config_begin(&set, &config);
    CHECK(set.values[DP_BANDWIDTH_CONFIG_UPLOAD_MONTH].value == UINT64_C(200000000000));
    CHECK(set.values[DP_BANDWIDTH_CONFIG_UPLOAD_MONTH].from == DP_BANDWIDTH_CONFIG_ENVIRONMENT);
    for (int from = DP_BANDWIDTH_CONFIG_STANDARD; from <= DP_BANDWIDTH_CONFIG_NOW; from++) {
        CHECK(strlen(dp_bandwidth_config_from_text((dp_bandwidth_config_from)from)) > 1);
    }
}

static void a_row_that_is_not_right_changes_nothing(void **state)
{
    static const struct {
        uint8_t at, byte;
        dp_status wanted;
    } bad[] = {{0, 2, DP_VERSION},
               {1, 1, DP_CORRUPT},
               {1, 3, DP_CORRUPT},
               {2, 4, DP_CORRUPT},
               {2, DP_BANDWIDTH_CONFIG_COUNT, DP_CORRUPT},
               {5, 2, DP_CORRUPT},
               {11, 0, DP_CORRUPT},
               {12, 0, DP_CORRUPT},
               {12, 29, DP_CORRUPT}};
    const dp_config config = said("nice", "1");
    uint8_t bytes[DP_BANDWIDTH_CONFIG_BYTES_MAX];
    dp_bandwidth_config_set set;
    dp_bandwidth_config_set next;
    (void)state;
    dp_bandwidth_config_begin(&set, &config);
    dp_bandwidth_config_change(&set, DP_BANDWIDTH_CONFIG_UPLOAD, 5);
    dp_bandwidth_config_change(&set, DP_BANDWIDTH_CONFIG_MONTH_DAY, 15);
    const dp_view view = dp_bandwidth_config_write(&set, bytes);
    assert_int_equal(view.size, 20);
    for (size_t size = 0; size < view.size; size++) {
        dp_bandwidth_config_begin(&next, &config);
        CHECK_STATUS(dp_bandwidth_config_read(&next, dp_view_of(bytes, size)), DP_CORRUPT);
        CHECK(!next.values[DP_BANDWIDTH_CONFIG_UPLOAD].kept &&
              next.values[DP_BANDWIDTH_CONFIG_UPLOAD].value == 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t copy[DP_BANDWIDTH_CONFIG_BYTES_MAX];
        memcpy(copy, bytes, view.size);
        copy[bad[i].at] = bad[i].byte;
        dp_bandwidth_config_begin(&next, &config);
        CHECK_STATUS(dp_bandwidth_config_read(&next, dp_view_of(copy, view.size)), bad[i].wanted);
        CHECK(!next.values[DP_BANDWIDTH_CONFIG_UPLOAD].kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_limits_apply_without_other_settings),
        cmocka_unit_test(the_environment_says_so_too),
        cmocka_unit_test(a_row_that_is_not_right_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
