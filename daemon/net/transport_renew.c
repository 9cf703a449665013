/* New keys for old links. Rekeying (gossip/channel/channel_record.c) derives each key from the one
 * before by a one-way function, so a stolen key reads the rest of that connection. Therefore the
 * side that dialed a link dials its connections again after an hour or 64 GiB, with a new
 * Diffie-Hellman exchange; the new connection replaces the old one, and the link stays up. */
#include "base/assert.h"
#include "daemon/net/transport_bulk.h"

enum { RETRY_MS = 10 * 1000 };

static bool is_old(const dp_transport *transport, const dp_conn *conn, uint32_t times)
{
    const uint64_t age_ms = uv_now(transport->config.loop) - conn->proved_ms;
    return age_ms >= times * transport->renew_ms || conn->moved / times >= transport->renew_bytes;
}

void dp_link_renew(dp_transport *transport, dp_link *link)
{
    const uint64_t now = uv_now(transport->config.loop);
    const dp_conn *control = link->lanes[DP_LANE_CONTROL];
    if (!control->outgoing || now < link->renew_retry_ms) {
        return;
    }
    if (is_old(transport, control, 1)) {
        link->renew_retry_ms = now + RETRY_MS;
        dp_link_dial_again(transport, link);
    }
    for (uint32_t stripe = 0; stripe < DP_CHANNEL_STRIPES_MAX; stripe++) {
        const dp_conn *conn = link->lanes[DP_LANE_BULK + stripe];
        /* Chunks under way on it would have to be requested again. */
        if (conn != NULL && is_old(transport, conn, 1) &&
            (dp_bulk_is_quiet(conn) || is_old(transport, conn, 2))) {
            link->renew_retry_ms = now + RETRY_MS;
            dp_link_dial_bulk(transport, link, (uint8_t)stripe);
        }
    }
}
