#include "gossip/member/links.h"

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
    if (rtt->samples % DP_RTT_WINDOW == 0) {
        rtt->least_us[1] = rtt->samples == 0 ? sample : rtt->least_us[0];
        rtt->least_us[0] = sample;
    } else if (sample < rtt->least_us[0]) {
        rtt->least_us[0] = sample;
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

uint64_t dp_rtt_least(const dp_rtt *rtt)
{
    return rtt->samples == 0                     ? UINT64_MAX
           : rtt->least_us[0] < rtt->least_us[1] ? rtt->least_us[0]
                                                 : rtt->least_us[1];
}

static void sort_in(uint32_t *sorted, uint32_t n, uint32_t sample)
{
    uint32_t at = n;

    dp_assert(n < DP_SPAN_SAMPLES);
    for (; at > 0 && sorted[at - 1] > sample; at--) {
        sorted[at] = sorted[at - 1];
    }
    sorted[at] = sample;
}

static void sort_out(uint32_t *sorted, uint32_t n, uint32_t sample)
{
    uint32_t at = 0;

    dp_assert(n > 0 && n <= DP_SPAN_SAMPLES);
    while (at + 1 < n && sorted[at] != sample) {
        at++;
    }
    for (; at + 1 < n; at++) {
        sorted[at] = sorted[at + 1];
    }
}

void dp_span_add(dp_span *span, uint64_t sample_us)
{
    const uint32_t sample = sample_us < UINT32_MAX ? (uint32_t)sample_us : UINT32_MAX;
    uint32_t *const place = &span->us[span->count % DP_SPAN_SAMPLES];

    if (span->count < DP_SPAN_SAMPLES) {
        sort_in(span->sorted, span->count, sample);
    } else {
        sort_out(span->sorted, DP_SPAN_SAMPLES, *place);
        sort_in(span->sorted, DP_SPAN_SAMPLES - 1, sample);
    }
    *place = sample;
    span->count++;
    if (span->count == UINT32_MAX) {
        /* Keep the ring's place and the fact that it is full. */
        span->count = DP_SPAN_SAMPLES + (UINT32_MAX % DP_SPAN_SAMPLES);
    }
}

uint64_t dp_span_percentile(const dp_span *span, uint32_t percent)
{
    dp_assert(percent <= 100);
    dp_assert(percent >= 1 && percent <= 100);
    const uint32_t n = span->count < DP_SPAN_SAMPLES ? span->count : DP_SPAN_SAMPLES;

    return n == 0 ? 0 : span->sorted[(percent * n + 99) / 100 - 1]; /* ranks count from 1 */
}
