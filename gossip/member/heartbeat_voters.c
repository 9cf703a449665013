/* The set of voters whose heartbeats count, and the last heartbeats of voters of earlier sets. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/core/msg.h"
#include "gossip/member/heartbeat.h"

uint32_t dp_heartbeat_find_voter(const dp_heartbeat *beat, const dp_peer *peer)
{
    dp_assert(beat->n_voters <= DP_VOTERS_MAX);
    for (uint32_t i = 0; i < beat->n_voters; i++) {
        if (dp_peer_equal(&beat->voters[i].peer, peer)) {
            return i;
        }
    }
    return DP_VOTERS_MAX;
}

/* Those of the present set that the next one lacks. */
static void remember(dp_heartbeat *beat, const dp_peer *next, uint32_t n)
{
    dp_assert(n <= DP_VOTERS_MAX);
    for (uint32_t i = 0; i < beat->n_voters; i++) {
        const dp_heartbeat_voter *const voter = &beat->voters[i];
        bool stays = voter->incarnation == 0; /* Or nothing is known of it. */
        uint32_t at = 0;
        for (uint32_t k = 0; k < n && !stays; k++) {
            stays = dp_peer_equal(&voter->peer, &next[k]);
        }
        if (stays) {
            continue;
        }
        while (at < DP_HEARTBEAT_PAST_MAX && !dp_peer_equal(&beat->past[at].peer, &voter->peer)) {
            at++;
        }
        if (at == DP_HEARTBEAT_PAST_MAX) {
            at = beat->n_past++ % DP_HEARTBEAT_PAST_MAX;
        }
        beat->past[at] = (dp_heartbeat_past){
            .peer = voter->peer, .incarnation = voter->incarnation, .sequence = voter->sequence};
    }
}

static void recall(const dp_heartbeat *beat, dp_heartbeat_voter *voter)
{
    for (uint32_t i = 0; i < DP_HEARTBEAT_PAST_MAX; i++) {
        if (beat->past[i].incarnation != 0 && dp_peer_equal(&beat->past[i].peer, &voter->peer)) {
            voter->incarnation = beat->past[i].incarnation;
            voter->sequence = beat->past[i].sequence;
        }
    }
}

void dp_heartbeat_set_voters(dp_heartbeat *beat, const dp_peer *voters, uint32_t n, dp_time now)
{
    dp_assert(n <= DP_VOTERS_MAX);
    dp_assert(n >= 1 && n <= DP_VOTERS_MAX);
    dp_heartbeat_voter next[DP_VOTERS_MAX] = {0};
    dp_digest digest;

    dp_digest_init(&digest, "dpnode/voters/1");
    beat->own = DP_VOTERS_MAX;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t old = dp_heartbeat_find_voter(beat, &voters[i]);
        if (old < DP_VOTERS_MAX) {
            next[i] = beat->voters[old];
            next[i].heard = 0; /* its bits meant the old order */
        }
        next[i].peer = voters[i];
        if (old == DP_VOTERS_MAX) {
            recall(beat, &next[i]);
        }
        if (dp_peer_equal(&voters[i], &beat->self)) {
            beat->own = i;
        }
        dp_digest_add(&digest, dp_view_of(voters[i].bytes, sizeof voters[i].bytes));
    }
    const dp_hash tag = dp_digest_end(&digest);
    dp_reader reader = dp_reader_of(dp_view_of(tag.bytes, sizeof tag.bytes));
    const uint32_t new_tag = dp_read_u32(&reader);

    if (new_tag == beat->tag && n == beat->n_voters) {
        return;
    }
    remember(beat, voters, n);
    memcpy(beat->voters, next, sizeof next);
    beat->n_voters = n;
    beat->tag = new_tag;
    beat->beat_at = beat->own < DP_VOTERS_MAX ? now : DP_NEVER;
}
