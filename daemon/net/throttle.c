#include "daemon/net/throttle.h"

#include "base/assert.h"

enum { SECOND_US = 1000000 };

static uint64_t at_least(uint64_t value, uint64_t least)
{
    return value > least ? value : least;
}

static int64_t burst(const dp_throttle *throttle)
{
    return (int64_t)at_least(throttle->rate / DP_THROTTLE_BURST_SHARE, DP_THROTTLE_BURST_BYTES);
}

uint64_t dp_throttle_slice(const dp_throttle *throttle)
{
    return at_least(throttle->rate / DP_THROTTLE_SLICE_SHARE, DP_THROTTLE_SLICE_BYTES);
}

void dp_throttle_init(dp_throttle *throttle)
{
    *throttle = (dp_throttle){0};
    dp_list_init(&throttle->waiting);
}

static void refill(dp_throttle *throttle, uint64_t now_us)
{
    while (throttle->rate != 0 && throttle->at_us < now_us && throttle->room < burst(throttle)) {
        const uint64_t past = now_us - throttle->at_us;
        const uint64_t step = past < SECOND_US ? past : SECOND_US; /* The product fits. */
        const uint64_t millionths = throttle->rate * step + throttle->fraction;
        throttle->room += (int64_t)(millionths / SECOND_US);
        throttle->fraction = millionths % SECOND_US;
        throttle->at_us += step;
    }
    if (throttle->room >= burst(throttle)) {
        throttle->room = burst(throttle);
        throttle->fraction = 0;
    }
    throttle->at_us = at_least(now_us, throttle->at_us);
}

void dp_throttle_set(dp_throttle *throttle, uint64_t rate, uint64_t now_us)
{
    dp_assert(rate <= DP_THROTTLE_RATE_MAX);
    refill(throttle, now_us);
    const bool was_limited = throttle->rate != 0;
    throttle->rate = rate;
    if (!was_limited || throttle->room > burst(throttle)) {
        throttle->room = burst(throttle);
    }
    throttle->fraction = 0;
    throttle->at_us = now_us;
}

static bool has_room(const dp_throttle *throttle)
{
    return throttle->rate == 0 || throttle->room >= (int64_t)dp_throttle_slice(throttle);
}

uint64_t dp_throttle_ask(dp_throttle *throttle, dp_throttle_place *place, uint64_t now_us)
{
    if (throttle->rate == 0) {
        return UINT64_MAX;
    }
    if (place->granted > 0) {
        return place->granted;
    }
    refill(throttle, now_us);
    if (!place->waits && dp_list_empty(&throttle->waiting) && has_room(throttle)) {
        return (uint64_t)throttle->room;
    }
    if (!place->waits) {
        throttle->since_us = dp_list_empty(&throttle->waiting) ? now_us : throttle->since_us;
        place->waits = true;
        dp_list_push_back(&throttle->waiting, &place->item);
    }
    return 0;
}

void dp_throttle_pay(dp_throttle *throttle, dp_throttle_place *place, uint64_t bytes,
                     uint64_t now_us)
{
    place->granted = 0;
    if (throttle->rate != 0) {
        refill(throttle, now_us);
        throttle->room -= (int64_t)bytes;
    }
}

void dp_throttle_pay_control(dp_throttle *throttle, uint64_t bytes, uint64_t now_us)
{
    if (throttle->rate == 0) {
        return;
    }
    refill(throttle, now_us);
    const int64_t least = -(int64_t)throttle->rate;
    const int64_t left = throttle->room - (int64_t)bytes;
    if (left >= least) {
        throttle->room = left;
    } else if (throttle->room > least) {
        throttle->room = least;
    }
}

void dp_throttle_leave(dp_throttle *throttle, dp_throttle_place *place, uint64_t now_us)
{
    if (place->waits) {
        dp_list_remove(&place->item);
        if (dp_list_empty(&throttle->waiting)) {
            throttle->held_us += now_us - throttle->since_us;
        }
    }
    *place = (dp_throttle_place){0};
}

dp_throttle_place *dp_throttle_call(dp_throttle *throttle, uint64_t now_us)
{
    refill(throttle, now_us);
    if (dp_list_empty(&throttle->waiting) || !has_room(throttle)) {
        return NULL;
    }
    dp_throttle_place *place = DP_LIST_ITEM(throttle->waiting.next, dp_throttle_place, item);
    dp_throttle_leave(throttle, place, now_us);
    place->granted = dp_throttle_slice(throttle);
    return place;
}

uint64_t dp_throttle_wait_us(dp_throttle *throttle, uint64_t now_us)
{
    refill(throttle, now_us);
    if (dp_list_empty(&throttle->waiting)) {
        return UINT64_MAX;
    }
    if (has_room(throttle)) {
        return 0;
    }
    const uint64_t lacking = (uint64_t)((int64_t)dp_throttle_slice(throttle) - throttle->room);
    return lacking * SECOND_US / throttle->rate + 1;
}

uint64_t dp_throttle_held_us(const dp_throttle *throttle, uint64_t now_us)
{
    const bool waits = !dp_list_empty(&throttle->waiting);
    return throttle->held_us + (waits ? now_us - throttle->since_us : 0);
}
