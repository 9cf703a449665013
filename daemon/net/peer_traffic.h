/* The bytes that each peer sent and got, over all of its links since the start: a table of fixed
 * size. A peer without a link that was heard longest ago gives its row to a new one. No sockets. */
#ifndef DP_DAEMON_NET_PEER_TRAFFIC_H
#define DP_DAEMON_NET_PEER_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include "gossip/core/id.h"

enum { DP_PEER_TRAFFIC_ROWS = 1024, DP_PEER_TRAFFIC_NONE = DP_PEER_TRAFFIC_ROWS };

typedef struct dp_peer_traffic_row {
    dp_peer peer;
    bool linked;
    uint64_t heard; /* number of the last link that began or ended */
    uint64_t sent;
    uint64_t received;
} dp_peer_traffic_row;

typedef struct dp_peer_traffic {
    uint32_t n;
    uint64_t links; /* begun and ended so far */
    dp_peer_traffic_row rows[DP_PEER_TRAFFIC_ROWS];
} dp_peer_traffic;

/* A link of this peer begins: the row that its bytes are counted in, until it ends.
 * DP_PEER_TRAFFIC_NONE: all rows have links; then they are not counted. */
uint32_t dp_peer_traffic_begin(dp_peer_traffic *traffic, const dp_peer *peer);
/* Both accept DP_PEER_TRAFFIC_NONE. */
void dp_peer_traffic_end(dp_peer_traffic *traffic, uint32_t row);
void dp_peer_traffic_count(dp_peer_traffic *traffic, uint32_t row, uint64_t sent,
                           uint64_t received);
/* False: there was no link, or its row is another's by now. */
bool dp_peer_traffic_look(const dp_peer_traffic *traffic, const dp_peer *peer, uint64_t *sent,
                          uint64_t *received);

#endif
