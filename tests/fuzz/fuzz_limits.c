/* Any bytes as the store's rows of an owner's limits: those that are kept (first byte even), and
 * the counts of months (odd). What is read is written again as it is, is within its bounds, and can
 * be lived with. */
#include <string.h>

#include "base/assert.h"
#include "daemon/host/month.h"
#include "daemon/net/allow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_kept(dp_view bytes)
{
    static const dp_config config = {.month_day = 1};
    uint8_t again[DP_ALLOW_BYTES_MAX];
    dp_allow_set set;
    dp_allow_begin(&set, &config);
    if (dp_allow_read(&set, bytes) != DP_OK) {
        for (int i = 0; i < DP_ALLOWS; i++) {
            dp_assert(!set.values[i].kept);
        }
        return;
    }
    for (int i = 0; i < DP_ALLOWS; i++) {
        dp_assert(set.values[i].value >= dp_allow_rows[i].least &&
                  set.values[i].value <= dp_allow_rows[i].most);
    }
    dp_assert(dp_view_equal(dp_allow_write(&set, again), bytes));
}

static void check_counts(dp_view bytes)
{
    static const uint64_t caps[DP_MONTH_WAYS] = {DP_MONTH_CAP_MAX, 1};
    static const uint64_t walls[] = {0, UINT64_C(1795305600000), UINT64_MAX};
    uint8_t again[DP_MONTH_BYTES_MAX];
    dp_month month;
    dp_month_init(&month, 1, 0, 0);
    if (dp_month_read(&month, bytes) == DP_OK) {
        dp_assert(dp_view_equal(dp_month_write(&month, again), bytes));
    }
    for (uint64_t i = 0; i < sizeof walls / sizeof walls[0]; i++) {
        dp_month_pass(&month, caps, 28, walls[i], i);
        dp_month_use(&month, DP_MONTH_UP, UINT64_MAX / 2);
        dp_assert(month.n <= DP_MONTHS_MAX);
        dp_assert(dp_month_rate(&month, DP_MONTH_UP, caps[0]) == 0);
        dp_assert(dp_month_left_ms(&month) <= UINT64_C(32) * 86400000);
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
