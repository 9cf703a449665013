/* Whose word that it has more records is not believed for a while: who was asked for them time and
 * again and gave none that follow. Anybody may say any number; without this one member could keep
 * every newcomer waiting for records that do not exist. Knows no chain; the caller says when
 * somebody failed or gave. */
#ifndef DP_GOSSIP_TRANSFER_DOUBT_H
#define DP_GOSSIP_TRANSFER_DOUBT_H

#include <stdbool.h>

#include "base/clock.h"
#include "gossip/core/id.h"

enum {
    DP_DOUBTS_MAX = 16,   /* peers at once; of more the oldest is forgotten, and believed again */
    DP_DOUBT_FAILURES = 4 /* in a row; an answer may be late or lost */
};
#define DP_DOUBT_US (30 * DP_SECOND)

typedef struct dp_doubt_row {
    dp_peer peer;
    uint32_t failures; /* 0: empty */
    dp_time at;        /* of the last one */
} dp_doubt_row;

typedef struct dp_doubt {
    dp_doubt_row rows[DP_DOUBTS_MAX];
} dp_doubt;

void dp_doubt_failed(dp_doubt *doubt, const dp_peer *peer, dp_time now);
/* It gave what it spoke of. */
void dp_doubt_gave(dp_doubt *doubt, const dp_peer *peer);
bool dp_doubted(const dp_doubt *doubt, const dp_peer *peer, dp_time now);

#endif
