#include "gossip/transfer/peer_backoff.h"

#include <string.h>

static dp_backoff_row *find(dp_backoff *doubt, const dp_peer *peer)
{
    for (uint32_t i = 0; i < DP_BACKOFFS_MAX; i++) {
        if (doubt->rows[i].failures > 0 && dp_peer_equal(&doubt->rows[i].peer, peer)) {
            return &doubt->rows[i];
        }
    }
    return NULL;
}

void dp_backoff_failed(dp_backoff *doubt, const dp_peer *peer, dp_time now)
{
    dp_backoff_row *row = find(doubt, peer);

    if (row == NULL) {
        row = &doubt->rows[0];
        for (uint32_t i = 1; i < DP_BACKOFFS_MAX && row->failures > 0; i++) {
            if (doubt->rows[i].failures == 0 || doubt->rows[i].at.us < row->at.us) {
                row = &doubt->rows[i];
            }
        }
        *row = (dp_backoff_row){.peer = *peer};
    }
    row->failures += row->failures < DP_BACKOFF_FAILURES ? 1 : 0;
    row->at = now;
}

void dp_backoff_gave(dp_backoff *doubt, const dp_peer *peer)
{
    dp_backoff_row *row = find(doubt, peer);

    if (row != NULL) {
        memset(row, 0, sizeof *row);
    }
}

bool dp_backed_off(const dp_backoff *doubt, const dp_peer *peer, dp_time now)
{
    for (uint32_t i = 0; i < DP_BACKOFFS_MAX; i++) {
        const dp_backoff_row *row = &doubt->rows[i];
        if (row->failures >= DP_BACKOFF_FAILURES && dp_peer_equal(&row->peer, peer)) {
            return dp_time_between(row->at, now) < DP_BACKOFF_US;
        }
    }
    return false;
}
