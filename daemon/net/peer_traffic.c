#include "daemon/net/peer_traffic.h"

#include "base/assert.h"

static uint32_t find(const dp_peer_traffic *traffic, const dp_peer *peer)
{
    for (uint32_t i = 0; i < traffic->n; i++) {
        if (dp_peer_equal(&traffic->rows[i].peer, peer)) {
            return i;
        }
    }
    return DP_PEER_TRAFFIC_NONE;
}

/* A new row, or that of the peer without a link that was heard longest ago. */
static uint32_t free_row(dp_peer_traffic *traffic)
{
    uint32_t oldest = DP_PEER_TRAFFIC_NONE;
    if (traffic->n < DP_PEER_TRAFFIC_ROWS) {
        return traffic->n++;
    }
    for (uint32_t i = 0; i < traffic->n; i++) {
        if (!traffic->rows[i].linked && (oldest == DP_PEER_TRAFFIC_NONE ||
                                         traffic->rows[i].heard < traffic->rows[oldest].heard)) {
            oldest = i;
        }
    }
    return oldest;
}

uint32_t dp_peer_traffic_begin(dp_peer_traffic *traffic, const dp_peer *peer)
{
    uint32_t row = find(traffic, peer);
    if (row == DP_PEER_TRAFFIC_NONE) {
        row = free_row(traffic);
        if (row == DP_PEER_TRAFFIC_NONE) {
            return row;
        }
        traffic->rows[row] = (dp_peer_traffic_row){.peer = *peer};
    }
    traffic->rows[row].linked = true;
    traffic->rows[row].heard = ++traffic->links;
    return row;
}

void dp_peer_traffic_end(dp_peer_traffic *traffic, uint32_t row)
{
    if (row != DP_PEER_TRAFFIC_NONE) {
        dp_assert(row < traffic->n && traffic->rows[row].linked);
        traffic->rows[row].linked = false;
        traffic->rows[row].heard = ++traffic->links;
    }
}

void dp_peer_traffic_count(dp_peer_traffic *traffic, uint32_t row, uint64_t sent, uint64_t received)
{
    if (row != DP_PEER_TRAFFIC_NONE) {
        dp_assert(row < traffic->n);
        traffic->rows[row].sent += sent;
        traffic->rows[row].received += received;
    }
}

bool dp_peer_traffic_look(const dp_peer_traffic *traffic, const dp_peer *peer, uint64_t *sent,
                          uint64_t *received)
{
    const uint32_t row = find(traffic, peer);
    if (row == DP_PEER_TRAFFIC_NONE) {
        return false;
    }
    *sent = traffic->rows[row].sent;
    *received = traffic->rows[row].received;
    return true;
}
