/* Rows of the table of members: found by key, added, and once the table is full given to another
 * peer. */
#include <string.h>

#include "base/assert.h"
#include "gossip/member/members_internal.h"

bool dp_members_row_is_guest(const dp_members *members, const dp_row *row)
{
    return members->rows[0].member.in_roster && row != &members->rows[0] &&
           !row->member.in_roster && !row->member.voter && !dp_broken(195);
}

bool dp_members_is_guest(const dp_members *members, uint32_t index)
{
    dp_assert(index < members->count);
    return dp_members_row_is_guest(members, &members->rows[index]);
}

static bool is_alive(const dp_row *row)
{
    return row->member.state == DP_MEMBER_ALIVE || row->member.state == DP_MEMBER_SUSPECT;
}

bool dp_members_counts(const dp_members *members, const dp_row *row)
{
    return is_alive(row) && !dp_members_row_is_guest(members, row);
}

void dp_members_recount(dp_members *members)
{
    members->n_alive = 0;
    members->n_guests = 0;
    members->n_known = 0;
    for (uint32_t i = 0; i < members->count; i++) {
        const dp_row *row = &members->rows[i];
        members->n_alive += dp_members_counts(members, row) ? 1 : 0;
        members->n_guests += row->member.linked && dp_members_row_is_guest(members, row) ? 1 : 0;
        members->n_known += dp_members_row_is_guest(members, row) ? 0 : 1;
    }
}

bool dp_members_large(const dp_members *members)
{
    return members->n_known > DP_FULL_MESH_MAX;
}

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

/* May this row be given to another peer? Members by the chain and linked peers keep their rows.
 * Another peer that is alive makes room only for a member. */
static bool may_go(const dp_members *members, uint32_t index, bool for_member)
{
    const dp_row *row = &members->rows[index];
    const bool alive =
        row->member.state == DP_MEMBER_ALIVE || row->member.state == DP_MEMBER_SUSPECT;

    dp_assert(index > 0 && index < members->count);
    return !row->member.linked && !row->member.in_roster && !row->member.voter && !row->dialling &&
           (!alive || for_member) && !is_probed(members, index) && !dp_broken(130);
}

static dp_time seen_at(const dp_row *row)
{
    return row->member.heard.us > row->member.changed.us ? row->member.heard : row->member.changed;
}

/* Frees the row of the peer that has been silent for longest; DP_MEMBER_NONE: all are needed. */
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

    dp_assert(members->count <= members->capacity);
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

void dp_members_set_credential(dp_member *member, dp_view credential, uint32_t caps)
{
    dp_assert(credential.size <= DP_CREDENTIAL_MAX);
    if (credential.size > 0) {
        memcpy(member->credential, credential.data, credential.size);
        member->credential_bytes = (uint16_t)credential.size;
        member->caps = caps;
    }
}

void dp_members_set_addrs(dp_member *member, const dp_addr *addrs, uint32_t n_addrs)
{
    member->n_addrs = n_addrs < DP_ADDRS_MAX ? n_addrs : DP_ADDRS_MAX;
    for (uint32_t i = 0; i < member->n_addrs; i++) {
        member->addrs[i] = addrs[i];
    }
}

uint32_t dp_members_add(dp_members *members, const dp_peer *peer, dp_view credential, uint32_t caps,
                        const dp_addr *addrs, uint32_t n_addrs)
{
    uint32_t index = dp_members_find(members, peer);

    if (index == DP_MEMBER_NONE) {
        index = dp_members_row_add(members, peer, false);
    }
    if (index == DP_MEMBER_NONE) {
        return index;
    }
    dp_member *const member = &members->rows[index].member;
    if (member->credential_bytes == 0 && credential.size <= DP_CREDENTIAL_MAX) {
        dp_members_set_credential(member, credential, caps);
    }
    if (member->n_addrs == 0) {
        dp_members_set_addrs(member, addrs, n_addrs);
        members->dial_stale = true;
    }
    return index;
}

void dp_members_mark(dp_members *members, uint32_t index, bool in_roster, bool voter)
{
    dp_assert(index < members->count);
    dp_member *const member = &members->rows[index].member;

    if (member->in_roster != in_roster || member->voter != voter) {
        const bool is_new = in_roster && !member->in_roster;
        dp_rowset_set(&members->voters, index, voter);
        member->in_roster = in_roster;
        member->voter = voter;
        /* Until it is greeted: it may become a voter in the record after. */
        members->rows[index].is_new = is_new || (in_roster && members->rows[index].is_new);
        members->greets = members->greets || is_new;
        dp_members_recount(members);
        members->dial_stale = true;
    }
}

/* ---- reads of the table ---- */

uint32_t dp_members_count(const dp_members *members)
{
    return members->count;
}

const dp_member *dp_members_at(const dp_members *members, uint32_t index)
{
    dp_assert(index < members->count);
    return &members->rows[index].member;
}

uint32_t dp_members_alive(const dp_members *members)
{
    return members->n_alive;
}

/* So much later than planned is a probe: more than a busy loop explains. Else 0. */
uint64_t dp_members_gap(const dp_members *members, dp_time now)
{
    const uint64_t late_us = dp_time_between(members->probe_at, now);

    return members->started && late_us > 2 * members->period_us ? late_us : 0;
}

bool dp_members_unsure(const dp_members *members, dp_time now)
{
    return !dp_time_reached(now, members->unsure_until) || dp_members_gap(members, now) > 0;
}

uint64_t dp_members_rtt_p95(const dp_members *members)
{
    uint64_t worst = 0;

    for (uint32_t k = 0; k < members->linked.count; k++) {
        const uint32_t i = members->linked.at[k];
        const uint64_t p95 =
            dp_members_is_guest(members, i) ? 0 : dp_rtt_p95(&members->rows[i].member.rtt);
        worst = p95 > worst ? p95 : worst;
    }
    return worst;
}

uint64_t dp_members_rtt_voters(const dp_members *members, uint32_t n)
{
    uint64_t first[DP_VOTERS_MAX];
    uint32_t count = 0;

    n = n < DP_VOTERS_MAX ? n : DP_VOTERS_MAX;
    for (uint32_t k = 0; k < members->linked.count; k++) {
        const dp_member *const member = &members->rows[members->linked.at[k]].member;
        const uint64_t p95 = dp_rtt_p95(&member->rtt);
        if (!member->voter || (count == n && (n == 0 || p95 >= first[n - 1]))) {
            continue;
        }
        uint32_t at = count < n ? count++ : n - 1;
        while (at > 0 && p95 < first[at - 1]) {
            first[at] = first[at - 1];
            at--;
        }
        first[at] = p95;
    }
    return count > 0 ? first[count - 1] : 0;
}

const dp_rowset *dp_members_linked(const dp_members *members)
{
    return &members->linked;
}

uint64_t dp_members_slot_most(const dp_members *members)
{
    return members->slot_most;
}

uint32_t dp_members_pick(dp_members *members, uint32_t not_a, uint32_t not_b, uint32_t *picked,
                         uint32_t most)
{
    uint32_t seen = 0;

    dp_assert(picked != NULL || most == 0);
    /* Reservoir sampling (Vitter 1985, algorithm R): one pass, no list. */
    for (uint32_t k = 0; k < members->linked.count; k++) {
        const uint32_t i = members->linked.at[k];
        if (members->rows[i].member.state != DP_MEMBER_ALIVE || i == not_a || i == not_b ||
            dp_members_is_guest(members, i)) {
            continue;
        }
        seen++;
        if (seen <= most) {
            picked[seen - 1] = i;
        } else {
            const uint64_t place = dp_rng_below(&members->rng, seen);
            if (place < most) {
                picked[place] = i;
            }
        }
    }
    return seen < most ? seen : most;
}

void dp_members_state_set(dp_members *members, uint32_t index, dp_member_state state, dp_time now,
                          const char *cause, dp_out *out)
{
    dp_row *const row = &members->rows[index];
    dp_member *const member = &row->member;
    const dp_member_state old = member->state;

    dp_assert(index < members->count);
    dp_assert(cause != NULL);
    if (old == state) {
        return;
    }
    members->n_alive -= dp_members_counts(members, row) ? 1 : 0;
    member->state = state;
    members->n_alive += dp_members_counts(members, row) ? 1 : 0;
    member->changed = now;
    members->dial_stale = true;
    dp_out_note(out, (dp_note){.code = DP_NOTE_MEMBER,
                               .peer = member->peer,
                               .a = (uint64_t)old,
                               .b = (uint64_t)state,
                               .cause = cause});
}

bool dp_members_watches(const dp_members *members, uint32_t index)
{
    const dp_row *const row = &members->rows[index];

    dp_assert(index < members->count);
    if (row->removed || row->down || dp_members_is_guest(members, index) ||
        (row->member.state != DP_MEMBER_ALIVE && row->member.state != DP_MEMBER_SUSPECT)) {
        return false;
    }
    if (row->member.linked || !dp_members_large(members)) {
        return true;
    }
    /* Others watch those that are not linked here. A link lost against the will of both is watched
     * on. */
    return row->linked_at.us != 0 && !row->let_go;
}

bool dp_members_keeps_dial(const dp_peer *a, const dp_peer *b)
{
    return dp_peer_compare(a, b) < 0;
}
