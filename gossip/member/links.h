/* Measured delay and rate of one link as integers: estimators only, which neither send nor time
 * anything. */
#ifndef DP_GOSSIP_MEMBER_LINKS_H
#define DP_GOSSIP_MEMBER_LINKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DP_RTT_US_MAX = 60 * 1000 * 1000, /* a longer sample is cut to this */
    DP_RTT_WINDOW = 16,               /* samples of which the least is kept */
    DP_SPAN_SAMPLES = 32              /* latest durations that a dp_span remembers */
};

/* Round-trip time by RFC 6298: srtt += (r - srtt) / 8, rttvar += (|srtt - r| - rttvar) / 4. Zeroed:
 * no sample yet. */
typedef struct dp_rtt {
    uint32_t srtt_us;
    uint32_t rttvar_us;
    uint32_t least_us[2]; /* of the window that fills, and of the one before it */
    uint32_t samples;     /* saturates */
} dp_rtt;

void dp_rtt_add(dp_rtt *rtt, uint64_t sample_us);
/* srtt + 4 rttvar within [least_us, most_us]; guess_us takes the place of the sum before the first
 * sample. */
uint64_t dp_rtt_timeout(const dp_rtt *rtt, uint64_t guess_us, uint64_t least_us, uint64_t most_us);
/* srtt + 2 rttvar, about the 95th percentile of a delay whose mean deviation is rttvar. 0 without
 * samples. */
uint64_t dp_rtt_p95(const dp_rtt *rtt);
/* The least of the last DP_RTT_WINDOW to 2 DP_RTT_WINDOW samples, which is how far away the other
 * is: queues and busy processors only ever add to it (minimum filter of BBR; Cardwell et al. 2016).
 * UINT64_MAX without samples. */
uint64_t dp_rtt_least(const dp_rtt *rtt);

/* The last DP_SPAN_SAMPLES durations of one kind of work, for percentiles. Zeroed: empty. */
typedef struct dp_span {
    uint32_t us[DP_SPAN_SAMPLES]; /* a ring */
    /* the same, rising: percentiles are asked for more often than samples come */
    uint32_t sorted[DP_SPAN_SAMPLES];
    uint32_t count; /* samples ever, saturates */
} dp_span;

void dp_span_add(dp_span *span, uint64_t sample_us);
/* Nearest-rank percentile, percent in 1..100, of the remembered samples; 0 when empty. */
uint64_t dp_span_percentile(const dp_span *span, uint32_t percent);

#endif
