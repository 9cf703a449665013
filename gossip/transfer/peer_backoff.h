/* Peer backoff: claims of newer records by a peer are ignored for a while, after it was asked for
 * them several times and gave none that follow. Any peer may claim any number; without this, one
 * member could keep every newcomer waiting for records that do not exist. Knows no chain; the
 * caller reports failures and answers of peers. */
#ifndef DP_GOSSIP_TRANSFER_PEER_BACKOFF_H
#define DP_GOSSIP_TRANSFER_PEER_BACKOFF_H

#include <stdbool.h>

#include "base/clock.h"
#include "gossip/core/id.h"

enum {
    DP_BACKOFFS_MAX = 16,   /* peers at once; of more the oldest is forgotten, and believed again */
    DP_BACKOFF_FAILURES = 4 /* in a row; an answer may be late or lost */
};
#define DP_BACKOFF_US (30 * DP_SECOND)

typedef struct dp_backoff_row {
    dp_peer peer;
    uint32_t failures; /* 0: empty */
    dp_time at;        /* of the last one */
} dp_backoff_row;

typedef struct dp_backoff {
    dp_backoff_row rows[DP_BACKOFFS_MAX];
} dp_backoff;

void dp_backoff_failed(dp_backoff *doubt, const dp_peer *peer, dp_time now);
/* The peer gave the records that it claimed. */
void dp_backoff_gave(dp_backoff *doubt, const dp_peer *peer);
bool dp_backed_off(const dp_backoff *doubt, const dp_peer *peer, dp_time now);

#endif
