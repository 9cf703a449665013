#include "gossip/transfer/relay.h"

void dp_relay_came(dp_relay *relay, uint64_t wait_us)
{
    if (wait_us > 0) { /* Else it was here before. */
        dp_span_add(&relay->waits, wait_us);
    }
}

/* Long beyond any round, and small enough that sums with it do not overflow. */
static uint64_t copy_us(const dp_relay_ask *ask)
{
    const uint64_t most_us = UINT32_MAX * DP_SECOND;
    const unsigned __int128 us = (unsigned __int128)ask->bytes * 1000 / ask->uplink;

    return us < most_us ? (uint64_t)us : most_us;
}

static bool is_thin(const dp_relay *relay, const dp_relay_ask *ask)
{
    const uint64_t theirs = dp_span_percentile(&relay->waits, 50);

    if (ask->uplink == 0 || theirs == 0) {
        return false;
    }
    const unsigned __int128 all = (unsigned __int128)copy_us(ask) * ask->askers;
    return all >= DP_RELAY_WORTH_US && all > (unsigned __int128)theirs * DP_RELAY_THINNER;
}

static void begin(dp_relay *relay, const dp_relay_ask *ask)
{
    const uint64_t copies_us = ask->uplink == 0 ? 0 : DP_RELAY_COPIES * copy_us(ask);
    const uint64_t wait_us = copies_us + DP_RELAY_MORE_US;

    if (relay->has_first) {
        relay->has_last = true;
        relay->last = relay->first;
    }
    relay->root = ask->root;
    relay->has_first = false;
    relay->kept = ask->askers > 1 && ask->voters > 0 && (ask->always || is_thin(relay, ask));
    relay->until =
        dp_time_after(ask->now, wait_us < ask->round_us / 2 ? wait_us : ask->round_us / 2);
}

bool dp_relay_refuses(dp_relay *relay, const dp_relay_ask *ask)
{
    if (!dp_hash_equal(&relay->root, &ask->root)) {
        begin(relay, ask);
    }
    if (!relay->kept || dp_time_reached(ask->now, relay->until)) {
        return false;
    }
    if (relay->has_first && ask->first_linked) {
        return !dp_peer_equal(&relay->first, &ask->peer);
    }
    const bool again = relay->has_last && dp_peer_equal(&relay->last, &ask->peer);
    if (ask->is_voter && (!again || ask->voters == 1)) {
        relay->has_first = true;
        relay->first = ask->peer;
        return false;
    }
    return ask->voters > 0; /* One of them will ask. */
}
