/* Any bytes as the store's rows of an owner's limits: those that are kept (first byte even), and
 * the counts of months (odd). A row that can be read is within its bounds and can be used, and its
 * values are the same after they were written and read again. */
#include <string.h>

#include "base/assert.h"
#include "daemon/host/bandwidth_quota.h"
#include "daemon/host/config_live.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_kept(dp_view bytes)
{
    static dp_config config;
    static dp_config_live live;
    static dp_config_live again;
    uint8_t row[DP_CONFIG_LIVE_BYTES_MAX];
    uint8_t twice[DP_CONFIG_LIVE_BYTES_MAX];
    dp_why why;
    dp_assert(config.nice != 0 || dp_config_default(&config, &why) == DP_OK);
    dp_config_live_init(&live, &config);
    dp_config_live_init(&again, &config);
    if (dp_config_live_read(&live, bytes) != DP_OK) {
        dp_assert(dp_config_live_write(&live, row).size == 2);
        return;
    }
    dp_assert(live.now.month_day >= 1 && live.now.month_day <= DP_BANDWIDTH_QUOTA_DAY_MAX);
    dp_assert(live.now.upload_max <= DP_CONFIG_MBIT_MAX);
    const dp_view first = dp_config_live_write(&live, row);
    dp_assert(dp_config_live_read(&again, first) == DP_OK);
    dp_assert(dp_view_equal(dp_config_live_write(&again, twice), first));
}

static void check_counts(dp_view bytes)
{
    static const uint64_t caps[DP_BANDWIDTH_QUOTA_WAYS] = {DP_BANDWIDTH_QUOTA_CAP_MAX, 1};
    static const uint64_t walls[] = {0, UINT64_C(1795305600000), UINT64_MAX};
    uint8_t again[DP_BANDWIDTH_QUOTA_BYTES_MAX];
    dp_bandwidth_quota month;
    dp_bandwidth_quota_init(&month, 1, 0, 0);
    if (dp_bandwidth_quota_read(&month, bytes) == DP_OK) {
        dp_assert(dp_view_equal(dp_bandwidth_quota_write(&month, again), bytes));
    }
    for (uint64_t i = 0; i < sizeof walls / sizeof walls[0]; i++) {
        dp_bandwidth_quota_pass(&month, caps, 28, walls[i], i);
        dp_bandwidth_quota_use(&month, DP_BANDWIDTH_QUOTA_UP, UINT64_MAX / 2);
        dp_assert(month.n <= DP_BANDWIDTH_QUOTA_MONTHS_MAX);
        dp_assert(dp_bandwidth_quota_rate(&month, DP_BANDWIDTH_QUOTA_UP, caps[0]) == 0);
        dp_assert(dp_bandwidth_quota_left_ms(&month) <= UINT64_C(32) * 86400000);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0) {
        const dp_view bytes = dp_view_of(data + 1, size - 1);
        if (data[0] % 2 == 0) {
            check_kept(bytes);
        } else {
            check_counts(bytes);
        }
    }
    return 0;
}
