#include "gossip/round/deadline.h"

#include "base/assert.h"
#include "base/run/part_cuts.h"

enum { COPIES = 2 };

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
    dp_assert(least <= most);
    if (value < least) {
        value = least;
    }
    return value > most ? most : value;
}

void dp_deadline_measure(dp_deadline *deadline, uint64_t round_us)
{
    const uint64_t sample = clamp(round_us, deadline->round_us / 2, 3 * deadline->round_us);

    if (deadline->average_us == 0) {
        deadline->average_us = sample;
    }
    deadline->average_us = (3 * deadline->average_us + sample) / 4;
}

uint64_t dp_deadline_length(const dp_deadline *deadline)
{
    return deadline->average_us > deadline->round_us ? deadline->average_us : deadline->round_us;
}

uint64_t dp_deadline_hard(const dp_deadline *deadline)
{
    const uint64_t length = dp_deadline_length(deadline);

    dp_assert(deadline->round_us > 0);
    return length + length / 2 + 2 * DP_SECOND;
}

uint64_t dp_deadline_grace(const dp_deadline *deadline, uint64_t step_us, uint64_t transfer_us,
                           uint64_t rtt_p95_us)
{
    const uint64_t delay = 4 * rtt_p95_us + 50 * DP_MS;
    const uint64_t most = deadline->round_us / 2 + DP_SECOND / 2;
    const uint64_t least = delay < most ? delay : most;
    const uint64_t quarter = dp_deadline_length(deadline) / 4;

    return clamp(step_us + 2 * transfer_us, least, quarter > least ? quarter : least);
}

uint64_t dp_deadline_long_grace(const dp_deadline *deadline)
{
    return dp_deadline_length(deadline) + DP_SECOND / 2;
}

bool dp_deadline_is_owed(uint32_t missed, uint64_t round)
{
    uint32_t period = 6;

    if (missed + 1 < period) {
        return missed == 2;
    }
    while (2 * period <= missed + 1 && period < 192) {
        period *= 2;
    }
    return round % period == 0;
}

uint64_t dp_deadline_bid(uint64_t rtt_p95_us, uint64_t fsync_p95_us, uint32_t distance,
                         uint32_t failed)
{
    uint64_t wait =
        clamp(4 * rtt_p95_us + 2 * fsync_p95_us, DP_BID_US_MIN, DP_BID_US_MAX) * (1 + distance);

    while (failed > 0 && wait < DP_BID_BACKOFF_US_MAX) {
        wait *= 2;
        failed--;
    }
    return wait < DP_BID_BACKOFF_US_MAX ? wait : DP_BID_BACKOFF_US_MAX;
}

uint32_t dp_deadline_enough(uint32_t active)
{
    const uint32_t share = (3 * active + 4) / 5;
    const uint32_t least = share > 2 ? share : 2;

    return active < least ? active : least;
}

uint64_t dp_deadline_send(uint64_t bytes, uint32_t others, uint32_t uplink)
{
    const uint64_t copies = others < COPIES ? others : COPIES;

    return bytes > UINT64_MAX / (1000ULL * COPIES)
               ? UINT64_MAX
               : bytes * copies * 1000 / uplink; /* bytes per kB/s are ms */
}

uint64_t dp_deadline_scatter(uint64_t bytes, uint32_t own_share, uint32_t uplink)
{
    dp_assert(own_share <= DP_PART_WHOLE);
    const uint64_t share = bytes / DP_PART_WHOLE; /* So that no product overflows. */
    const uint64_t rest = bytes % DP_PART_WHOLE;
    const uint64_t leaves = DP_PART_WHOLE - own_share;

    return dp_deadline_send(share * leaves + rest * leaves / DP_PART_WHOLE, 1, uplink);
}

uint64_t dp_deadline_part(uint64_t round_us, uint64_t late_us, uint64_t send_us)
{
    const uint64_t least = round_us / 4;
    const uint64_t most = round_us - least;

    if (send_us >= most || late_us >= most - send_us) {
        return least;
    }
    return round_us - late_us - send_us;
}
