#include "gossip/links.h"

#include "base/assert.h"

void dp_rtt_add(dp_rtt *rtt, uint64_t sample_us)
{
    const uint32_t sample = sample_us < DP_RTT_US_MAX ? (uint32_t)sample_us : DP_RTT_US_MAX;

    if (rtt->samples == 0) {
        rtt->srtt_us = sample;
        rtt->rttvar_us = sample / 2;
    } else {
        const uint32_t off = sample > rtt->srtt_us ? sample - rtt->srtt_us : rtt->srtt_us - sample;
        rtt->rttvar_us = (uint32_t)((3ULL * rtt->rttvar_us + off) / 4);
        rtt->srtt_us = (uint32_t)((7ULL * rtt->srtt_us + sample) / 8);
    }
    if (rtt->samples < UINT32_MAX) {
        rtt->samples++;
    }
}

uint64_t dp_rtt_timeout(const dp_rtt *rtt, uint64_t guess_us, uint64_t least_us, uint64_t most_us)
{
    dp_assert(least_us <= most_us);
    const uint64_t sum = rtt->samples == 0 ? guess_us : rtt->srtt_us + 4ULL * rtt->rttvar_us;

    return sum < least_us ? least_us : sum > most_us ? most_us : sum;
}

uint64_t dp_rtt_p95(const dp_rtt *rtt)
{
    return rtt->samples == 0 ? 0 : rtt->srtt_us + 2ULL * rtt->rttvar_us;
}

void dp_span_add(dp_span *span, uint64_t sample_us)
{
    span->us[span->count % DP_SPAN_SAMPLES] =
        sample_us < UINT32_MAX ? (uint32_t)sample_us : UINT32_MAX;
    span->count++;
    if (span->count == UINT32_MAX) {
        /* Keep the ring's place and the fact that it is full. */
        span->count = DP_SPAN_SAMPLES + (UINT32_MAX % DP_SPAN_SAMPLES);
    }
}

uint64_t dp_span_percentile(const dp_span *span, uint32_t percent)
{
    dp_assert(percent >= 1 && percent <= 100);
    const uint32_t n = span->count < DP_SPAN_SAMPLES ? span->count : DP_SPAN_SAMPLES;
    if (n == 0) {
        return 0;
    }
    const uint32_t rank = (percent * n + 99) / 100; /* from 1 */

    for (uint32_t i = 0; i < n; i++) {
        uint32_t less = 0;
        uint32_t equal = 0;
        for (uint32_t k = 0; k < n; k++) {
            less += span->us[k] < span->us[i];
            equal += span->us[k] == span->us[i];
        }
        if (less < rank && rank <= less + equal) {
            return span->us[i];
        }
    }
    return 0; /* not reached: one sample has every rank */
}
