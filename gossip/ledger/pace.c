#include "gossip/ledger/pace.h"

#include "base/mutation.h"

typedef unsigned __int128 u128;

#define SPEED_MAX ((uint64_t)1 << 62)
#define Q16_PER_MS ((u128)65536 * 1000) /* Q16 per second from tokens per millisecond */

enum { FIRST_STEPS = 16, FIRST_SHARE = 1024 };

dp_pace dp_pace_first(const dp_manifest *manifest)
{
    const uint64_t steps =
        (uint64_t)manifest->batch_rows * dp_manifest_sample_tokens(manifest) * FIRST_STEPS;
    const uint64_t share = manifest->total_tokens / FIRST_SHARE;

    /* The version with the gain of codecs has this rule too; runs from before it count as they
     * did. */
    return (dp_pace){.bounded = manifest->codec_gain == DP_ON,
                     .first = steps > share ? steps : share,
                     .first_ms = manifest->round_ms};
}

static uint64_t span_of(const dp_pace *pace, uint64_t span_ms)
{
    const uint64_t span = pace->speed == 0 ? pace->first_ms : span_ms;

    return span > DP_PACE_LEAST_MS ? span : DP_PACE_LEAST_MS;
}

uint64_t dp_pace_most(const dp_pace *pace, uint64_t span_ms)
{
    if (!pace->bounded || dp_broken(111)) {
        return UINT64_MAX;
    }
    if (pace->speed == 0) {
        return pace->first;
    }
    /* Below 2^62 * 2^4 * 2^46: times of records are below 2^46 ms for two thousand years, and cut
     * there. */
    const uint64_t span = span_of(pace, span_ms) >> 46 == 0 ? span_of(pace, span_ms) : (1ULL << 46);
    const u128 most = (u128)pace->speed * DP_PACE_SLACK * span / Q16_PER_MS;
    return most < UINT64_MAX ? (uint64_t)most : UINT64_MAX;
}

uint64_t dp_pace_speed(const dp_pace *pace, uint64_t tokens, uint64_t span_ms)
{
    const u128 speed = (u128)tokens * Q16_PER_MS / span_of(pace, span_ms);

    return speed < SPEED_MAX ? (uint64_t)speed : SPEED_MAX;
}

void dp_pace_next(dp_pace *pace, uint64_t speed)
{
    const uint64_t least = pace->speed - pace->speed / DP_PACE_FALL;
    const uint64_t most = pace->speed == 0 ? SPEED_MAX : 2 * pace->speed;

    if (!pace->bounded) {
        return;
    }
    pace->speed = speed < least ? least : speed > most ? most : speed;
    pace->speed = pace->speed == 0 ? 1 : pace->speed < SPEED_MAX ? pace->speed : SPEED_MAX;
}
