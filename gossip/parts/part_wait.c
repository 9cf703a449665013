#include "gossip/parts/part_wait.h"

#include "base/assert.h"
#include "base/sort.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t lower_median(uint64_t *values, uint32_t n)
{
    dp_sort_u64(values, n);
    return n > 0 ? values[(n - 1) / 2] : 0;
}

dp_part_wait dp_part_wait_of(uint64_t chunk_us, uint64_t rtt_us, uint64_t *bytes, uint32_t n,
                             uint64_t rate, uint64_t hard_us)
{
    const unsigned __int128 all = (unsigned __int128)lower_median(bytes, n) * n * DP_SECOND /
                                  (rate > 0 ? rate : DP_PART_RATE_GUESS);

    return (dp_part_wait){
        .base_us = least(most(4 * chunk_us + 4 * rtt_us, DP_PART_BASE_US_MIN), hard_us / 4),
        .transfer_us = all < hard_us ? (uint64_t)all : hard_us,
        .hard_us = hard_us};
}

dp_time dp_part_wait_owner(const dp_part_wait *wait, dp_time since, dp_time moved, uint32_t waits)
{
    const uint64_t quiet_us = waits * wait->base_us;
    const uint64_t bytes_us = least(DP_PART_SLOWER_MAX * wait->transfer_us, wait->hard_us / 2);
    const uint64_t all_us = least(most(quiet_us, bytes_us), wait->hard_us);
    const dp_time from = moved.us > since.us ? moved : since;

    return dp_time_min(dp_time_after(from, quiet_us), dp_time_after(since, all_us));
}

uint64_t dp_part_wait_line(const dp_part_wait *wait)
{
    return least(wait->base_us + wait->transfer_us, wait->hard_us / 4);
}

uint64_t dp_part_wait_close(const dp_part_wait *wait)
{
    return least(DP_PART_WAITS * dp_part_wait_line(wait), DP_PART_HARDS * wait->hard_us);
}
