#include "daemon/net/held.h"

#include "base/assert.h"

void dp_held_init(dp_held *held, uint64_t machine)
{
    *held = (dp_held){.limit = machine / 4 > DP_HELD_LEAST ? machine / 4 : DP_HELD_LEAST};
}

void dp_held_take_anyway(dp_held *held, bool guest, uint64_t bytes)
{
    held->bytes += bytes;
    held->guests += guest ? bytes : 0;
    held->most = held->bytes > held->most ? held->bytes : held->most;
}

bool dp_held_take(dp_held *held, bool guest, uint64_t bytes)
{
    const uint64_t left = held->limit > held->bytes ? held->limit - held->bytes : 0;

    if (bytes > left || (guest && held->guests + bytes > DP_HELD_GUESTS_MAX)) {
        return false;
    }
    dp_held_take_anyway(held, guest, bytes);
    return true;
}

void dp_held_give(dp_held *held, bool guest, uint64_t bytes)
{
    dp_assert(bytes <= held->bytes && (!guest || bytes <= held->guests));
    held->bytes -= bytes;
    held->guests -= guest ? bytes : 0;
}
