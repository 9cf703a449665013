#include "compute/machine/governor.h"

enum { FRACTION = 256, STEP = DP_GOVERNOR_WHOLE / 40 };

dp_governor dp_governor_of(uint32_t celsius_max, uint32_t watts_max)
{
    return (dp_governor){
        .celsius_max = celsius_max, .watts_max = watts_max, .share = DP_GOVERNOR_WHOLE};
}

void dp_governor_limit(dp_governor *governor, uint32_t celsius_max, uint32_t watts_max)
{
    governor->celsius_max = celsius_max;
    governor->watts_max = watts_max;
    governor->watts_256 = 0;
    if (!dp_governor_is_set(governor)) {
        governor->share = DP_GOVERNOR_WHOLE;
    }
}

bool dp_governor_is_set(const dp_governor *governor)
{
    return governor->celsius_max != 0 || governor->watts_max != 0;
}

static uint32_t at_least(uint32_t share)
{
    return share < DP_GOVERNOR_MIN ? DP_GOVERNOR_MIN : share;
}

static uint32_t raised(uint32_t share)
{
    return share + STEP < DP_GOVERNOR_WHOLE ? share + STEP : DP_GOVERNOR_WHOLE;
}

static uint32_t by_heat(const dp_governor *governor, int32_t celsius)
{
    const uint32_t share = governor->share;
    if (governor->celsius_max == 0 || celsius == INT32_MIN) {
        return share == 0 ? DP_GOVERNOR_MIN : raised(share);
    }
    const int64_t over = (int64_t)celsius - governor->celsius_max;
    if (over >= DP_GOVERNOR_CELSIUS_STOP) {
        return 0;
    }
    if (over <= -DP_GOVERNOR_CELSIUS_EASE) {
        return share == 0 ? DP_GOVERNOR_MIN : raised(share);
    }
    if (share == 0 || over <= 0) {
        return share;
    }
    return at_least(share - share * (uint32_t)over / 16);
}

static uint32_t by_power(dp_governor *governor, uint32_t watts)
{
    const uint32_t share = governor->share;
    const uint64_t most = (uint64_t)governor->watts_max * FRACTION;
    if (most == 0 || watts == 0) {
        return DP_GOVERNOR_WHOLE;
    }
    const uint64_t now = (uint64_t)watts * FRACTION;
    uint64_t *const mean = &governor->watts_256;
    *mean = *mean == 0 ? now : *mean - *mean / 8 + now / 8;
    if (*mean > most) {
        const uint32_t fitting = (uint32_t)(share * most / *mean);
        const uint32_t slow = share - share / 8;
        return share == 0 ? share : at_least(fitting > slow ? fitting : slow);
    }
    return *mean <= most - most / 20 ? DP_GOVERNOR_WHOLE : share;
}

void dp_governor_told(dp_governor *governor, int32_t celsius, uint32_t watts)
{
    const uint32_t heat = by_heat(governor, celsius);
    const uint32_t power = by_power(governor, watts);
    /* After a stop for heat the share starts low, whatever power a resting card shows. */
    governor->share = governor->share == 0 || heat < power ? heat : power;
}

uint64_t dp_governor_rest_us(const dp_governor *governor, uint64_t worked_us)
{
    if (governor->share == 0) {
        return UINT64_MAX;
    }
    const uint64_t most = DP_GOVERNOR_REST_US_MAX;
    const uint64_t worked =
        worked_us < most * DP_GOVERNOR_WHOLE ? worked_us : most * DP_GOVERNOR_WHOLE;
    const uint64_t rest = worked * (DP_GOVERNOR_WHOLE - governor->share) / governor->share;
    return rest < most ? rest : most;
}

uint64_t dp_governor_rest_end(uint64_t end_us, uint64_t from_us, uint64_t rest_us, uint64_t now_us)
{
    if (rest_us == UINT64_MAX) {
        return end_us;
    }
    if (end_us == UINT64_MAX) {
        return now_us;
    }
    return from_us + rest_us < end_us ? from_us + rest_us : end_us;
}
