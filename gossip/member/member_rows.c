/* Rows of the table of members: found by key, added, and once the table is full given to another
 * peer. */
#include <string.h>

#include "base/assert.h"
#include "gossip/member/members_internal.h"

static dp_hash key_of(const dp_peer *peer)
{
    dp_hash key;

    _Static_assert(sizeof key.bytes == sizeof peer->bytes, "a peer is a key of the map");
    memcpy(key.bytes, peer->bytes, sizeof key.bytes);
    return key;
}

uint32_t dp_members_find(const dp_members *members, const dp_peer *peer)
{
    const dp_hash key = key_of(peer);
    uint32_t index = 0;

    return dp_map_get(&members->index, &key, &index) ? index : DP_MEMBER_NONE;
}

static bool is_probed(const dp_members *members, uint32_t index)
{
    bool probed = false;

    for (uint32_t i = 0; i < DP_PROBES_MAX; i++) {
        probed = probed || members->probes[i].target == index;
    }
    for (uint32_t i = 0; i < DP_RELAYED_MAX; i++) {
        probed = probed ||
                 (members->relayed[i].requester != DP_MEMBER_NONE &&
                  (members->relayed[i].requester == index || members->relayed[i].target == index));
    }
    return probed;
}

/* A member by the chain keeps its row, and who is linked; of others who is alive makes room for a
 * member alone. */
static bool may_go(const dp_members *members, uint32_t index, bool for_member)
{
    const dp_row *row = &members->rows[index];
    const bool alive =
        row->member.state == DP_MEMBER_ALIVE || row->member.state == DP_MEMBER_SUSPECT;

    return !row->member.linked && !row->member.in_roster && !row->member.voter && !row->dialling &&
           (!alive || for_member) && !is_probed(members, index) && !dp_broken(130);
}

static dp_time seen_at(const dp_row *row)
{
    return row->member.heard.us > row->member.changed.us ? row->member.heard : row->member.changed;
}

/* The row of whom nothing was heard for longest; DP_MEMBER_NONE: all are needed. */
static uint32_t free_row(dp_members *members, bool for_member)
{
    uint32_t best = DP_MEMBER_NONE;

    for (uint32_t i = 1; i < members->count; i++) {
        if (may_go(members, i, for_member) &&
            (best == DP_MEMBER_NONE ||
             seen_at(&members->rows[i]).us < seen_at(&members->rows[best]).us)) {
            best = i;
        }
    }
    if (best == DP_MEMBER_NONE) {
        return best;
    }
    const dp_row *row = &members->rows[best];
    const dp_hash key = key_of(&row->member.peer);
    members->n_alive -= dp_members_counts(members, row) ? 1 : 0;
    members->n_known -= dp_members_is_guest(members, best) ? 0 : 1;
    dp_rowset_set(&members->accused, best, false);
    dp_rowset_set(&members->urgent, best, false);
    const bool removed = dp_map_remove(&members->index, &key);
    dp_assert(removed);
    if (members->forget != NULL) {
        members->forget(members->admit_context, best);
    }
    return best;
}

uint32_t dp_members_row_add(dp_members *members, const dp_peer *peer, bool for_member)
{
    const dp_hash key = key_of(peer);
    const bool is_new = members->count < members->capacity;
    const uint32_t index = is_new ? members->count : free_row(members, for_member);

    if (index == DP_MEMBER_NONE || dp_map_put(&members->index, &key, index) != DP_OK) {
        return DP_MEMBER_NONE;
    }
    members->rows[index] = (dp_row){.member.peer = *peer};
    members->count += is_new ? 1 : 0;
    members->n_known += dp_members_is_guest(members, index) ? 0 : 1;
    members->dial_stale = true;
    return index;
}

uint32_t dp_members_enter(dp_members *members, const dp_peer *peer, uint32_t caps)
{
    if (dp_members_find(members, peer) == DP_MEMBER_NONE &&
        dp_members_row_add(members, peer, true) == DP_MEMBER_NONE) {
        return DP_MEMBER_NONE;
    }
    return dp_members_add(members, peer, (dp_view){0}, caps, NULL, 0);
}
