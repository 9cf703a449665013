/* Which links a node keeps.
 *
 * In a run of up to DP_FULL_MESH_MAX known members a node dials every member. In a larger run
 * (compare the active view of HyParView: Leitao, Pereira, Rodrigues 2007):
 * - A voter keeps links to all voters, any other node to DP_VOTER_LINKS of them.
 * - A node dials others while it has fewer than DP_MESH_LINKS_LOW links to nodes that do not vote.
 *   It accepts every link that a member opens, and above DP_MESH_LINKS_HIGH closes random ones. A
 *   voter may have its share of everybody's DP_VOTER_LINKS links in addition.
 * A node that has just started does not know yet how large the run is. For SETTLE_US it dials no
 * more than DP_MESH_LINKS_LOW. Members do not dial guests (gossip/member/guest.c).
 *
 * A link that is closed in order is no evidence of death: the other members watch that node. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/member/members_internal.h"

enum { DIALS_PER_TICK = 8, CLOSES_PER_TICK = 4 };

#define DIAL_PATIENCE_US (15 * DP_SECOND)
#define SETTLE_US (2 * DP_SECOND)
#define KEPT_US_MIN                                                                                \
    (2 * DP_SECOND) /* a link lives so long at least: a newcomer learns addresses on it */

/* Counts of links by kind, for the rules above. */
typedef struct survey {
    bool own_voter;
    bool settled;    /* started long enough ago to know how large the run is */
    uint32_t voters; /* linked */
    uint32_t others; /* linked */
} survey;

static survey look_around(const dp_members *members)
{
    survey now = {.own_voter = members->rows[0].member.voter,
                  .settled = dp_time_between(members->started_at, members->rows[0].member.heard) >=
                             SETTLE_US};

    dp_assert(members->linked.count <= members->count);
    for (uint32_t k = 0; k < members->linked.count; k++) {
        if (members->rows[members->linked.at[k]].member.voter) {
            now.voters++;
        } else {
            now.others++;
        }
    }
    return now;
}

static bool wants_link(const dp_members *members, uint32_t index, const survey *now)
{
    const dp_row *const row = &members->rows[index];

    dp_assert(index < members->count);
    if (row->removed || row->member.linked || row->member.n_addrs == 0 ||
        row->member.state == DP_MEMBER_LEFT || dp_members_is_guest(members, index)) {
        return false;
    }
    if (!dp_members_large(members)) {
        return now->settled || now->voters + now->others < DP_MESH_LINKS_LOW;
    }
    if (row->member.voter) {
        /* The voter that drafts a record admits those that it has a link to. */
        return now->own_voter || now->voters < DP_VOTER_LINKS || !members->rows[0].member.in_roster;
    }
    return now->others < DP_MESH_LINKS_LOW;
}

/* It hears no majority of the voters: cut off, or they are. */
static bool is_alone(const dp_members *members)
{
    return members->beat != NULL && members->beat->n_voters > 0 &&
           !dp_heartbeat_quorum(members->beat) && !dp_members_large(members);
}

void dp_members_dial_later(dp_members *members, dp_row *row, dp_time now)
{
    const uint32_t doubled = row->dials_failed < 7 ? row->dials_failed : 7;
    const uint64_t most_us =
        is_alone(members) && !dp_broken(123) ? DP_DIAL_US_ALONE : DP_DIAL_US_MAX;
    uint64_t wait_us = DP_DIAL_US_MIN << doubled;

    if (wait_us > most_us) {
        wait_us = most_us;
    }
    wait_us = wait_us * 3 / 4 + dp_rng_below(&members->rng, wait_us / 2 + 1);
    row->dial_at = dp_time_after(now, wait_us);
    row->dialling = false;
    members->dial_stale = true;
}

/* Among links of one kind, voters or not, a random one that is old enough; DP_MEMBER_NONE if there
 * is none. */
static uint32_t pick_to_close(dp_members *members, bool voter, dp_time now)
{
    uint32_t picked = DP_MEMBER_NONE;
    uint32_t seen = 0;

    for (uint32_t k = 0; k < members->linked.count; k++) {
        const dp_row *const row = &members->rows[members->linked.at[k]];
        if (row->member.voter == voter && !row->closing &&
            dp_time_between(row->linked_at, now) >= KEPT_US_MIN &&
            dp_rng_below(&members->rng, ++seen) == 0) {
            picked = members->linked.at[k];
        }
    }
    return picked;
}

/* True if links of some kind are too many; then which kind. */
static bool too_many(const dp_members *members, const survey *there, bool *voters)
{
    uint32_t others_high = DP_MESH_LINKS_HIGH;

    if (there->own_voter && members->voters.count > 0) {
        others_high += (DP_VOTER_LINKS + 1) * members->count / members->voters.count;
    }
    *voters = !there->own_voter && there->voters > DP_VOTER_LINKS + 1;
    return *voters || there->others > others_high;
}

/* Closes surplus links. */
static void close_some(dp_members *members, survey there, dp_time now, dp_out *out)
{
    bool voter = false;

    for (uint32_t k = 0; k < CLOSES_PER_TICK && too_many(members, &there, &voter); k++) {
        const uint32_t index = pick_to_close(members, voter, now);
        if (index == DP_MEMBER_NONE || !dp_out_room(out, 1)) {
            return;
        }
        members->rows[index].closing = true;
        dp_out_add(out, DP_DO_HANGUP)->u.peer = members->rows[index].member.peer;
        there.voters -= voter ? 1 : 0;
        there.others -= voter ? 0 : 1;
    }
}

/* There are enough links to others, so only a voter may be wanted. */
static bool only_voters(const dp_members *members, const survey *there)
{
    return dp_members_large(members) && there->others >= DP_MESH_LINKS_LOW;
}

/* Dials this row if a link to it is wanted and its time has come. */
static bool dial_one(dp_members *members, uint32_t index, survey *there, dp_time now, dp_out *out)
{
    dp_row *const row = &members->rows[index];

    dp_assert(index < members->count);
    if (index == 0 || !dp_time_reached(now, row->dial_at) || !wants_link(members, index, there)) {
        return false;
    }
    if (row->dialling) { /* the driver forgot to answer */
        dp_members_dial_later(members, row, now);
        return false;
    }
    if (row->dial_at.us == 0 && !dp_members_large(members) &&
        !dp_members_keeps_dial(&members->rows[0].member.peer, &row->member.peer)) {
        /* The other's dial would win over ours: let it come first. */
        row->dial_at = dp_time_after(now, DP_DIAL_US_MIN);
        return false;
    }
    dp_action *const action = dp_out_add(out, DP_DO_DIAL);
    action->u.dial.peer = row->member.peer;
    action->u.dial.n_addrs = row->member.n_addrs;
    memcpy(action->u.dial.addrs, row->member.addrs, sizeof row->member.addrs);
    row->dialling = true;
    row->dial_at = dp_time_after(now, DIAL_PATIENCE_US);
    there->voters += row->member.voter ? 1 : 0;
    there->others += row->member.voter ? 0 : 1;
    return true;
}

/* A majority was heard until now, so the dead were dialled rarely. */
static void hasten(dp_members *members, dp_time now)
{
    const bool alone = is_alone(members);

    dp_assert(members->count > 0);
    for (uint32_t i = 1; alone && !members->alone && i < members->count; i++) {
        dp_row *const row = &members->rows[i];
        if (!row->dialling) {
            const uint64_t wait_us = dp_rng_below(&members->rng, DP_DIAL_US_ALONE);
            row->dial_at = dp_time_min(row->dial_at, dp_time_after(now, wait_us));
            members->dial_stale = true;
        }
    }
    members->alone = alone;
}

void dp_members_dial(dp_members *members, dp_time now, dp_out *out)
{
    const uint32_t start = (uint32_t)dp_rng_below(&members->rng, members->count);
    uint32_t dials = 0;

    hasten(members, now);
    if (!members->dial_stale && !dp_time_reached(now, members->dial_next)) {
        return;
    }
    survey there = look_around(members);
    if (dp_members_large(members)) {
        close_some(members, there, now, out);
    }
    members->dial_stale = true;
    if (only_voters(members, &there)) {
        for (uint32_t k = 0; k < members->voters.count; k++) {
            dial_one(members, members->voters.at[(start + k) % members->voters.count], &there, now,
                     out);
        }
        return;
    }
    for (uint32_t k = 0; k < members->count && dials < DIALS_PER_TICK; k++) {
        dials += dial_one(members, (start + k) % members->count, &there, now, out) ? 1 : 0;
    }
}

/* At a node that hears no majority, bytes on a mute link wait for TCP's next retransmission, and
 * these become ever rarer: after a cut of 8 s it took 7 s more until the first byte passed. A new
 * connection passes at once, and replaces the old one at the other end. After a gap in our own time
 * no peer has had time to answer. */
static void end_mute(dp_members *members, dp_time now, dp_out *out)
{
    if (!is_alone(members) || dp_broken(124) || dp_members_unsure(members, now)) {
        return;
    }
    for (uint32_t k = 0; k < members->linked.count; k++) {
        dp_row *const row = &members->rows[members->linked.at[k]];
        if (!row->closing && dp_members_mute(row, now) && dp_out_room(out, 1)) {
            row->closing = true;
            dp_out_add(out, DP_DO_HANGUP)->u.peer = row->member.peer;
        }
    }
}

dp_time dp_members_part_wake(const dp_members *members)
{
    const uint32_t n = is_alone(members) ? members->linked.count : 0;
    dp_time wake = members->guests_at;

    for (uint32_t k = 0; k < n; k++) {
        const dp_row *const row = &members->rows[members->linked.at[k]];
        dp_time mute = dp_members_mute_at(row);
        mute.us = mute.us > members->unsure_until.us ? mute.us : members->unsure_until.us;
        wake = row->closing ? wake : dp_time_min(wake, mute);
    }
    return wake;
}

void dp_members_part(dp_members *members, dp_time now, dp_out *out)
{
    dp_time next = DP_NEVER;

    end_mute(members, now, out);
    if (!dp_time_reached(now, members->guests_at)) {
        return;
    }
    for (uint32_t k = 0; k < members->linked.count; k++) {
        dp_row *const row = &members->rows[members->linked.at[k]];
        if (!row->removed && !row->closing && dp_members_is_guest(members, members->linked.at[k])) {
            const dp_time end = dp_time_after(row->member.heard, DP_GUEST_US);
            if (dp_time_reached(now, end)) {
                dp_members_guest_gone(members, members->linked.at[k], now, out);
            } else {
                next = dp_time_min(next, end);
            }
        }
        if (!row->removed || row->closing) {
            continue;
        }
        if (!dp_time_reached(now, row->guest_until) || !dp_out_room(out, 1)) {
            next = dp_time_min(next, row->guest_until);
            continue;
        }
        row->closing = true;
        dp_out_add(out, DP_DO_HANGUP)->u.peer = row->member.peer;
    }
    members->guests_at = next;
}

void dp_members_dial_find(dp_members *members)
{
    const survey there = look_around(members);

    bool voters = false;
    members->dial_next = DP_NEVER;
    if (dp_members_large(members) && too_many(members, &there, &voters)) {
        members->dial_next = dp_time_after(members->rows[0].member.heard, DP_DIAL_US_MIN);
    }
    const bool few = only_voters(members, &there);
    const uint32_t n = few ? members->voters.count : members->count;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t i = few ? members->voters.at[k] : k;
        if (i != 0 && wants_link(members, i, &there)) {
            members->dial_next = dp_time_min(members->dial_next, members->rows[i].dial_at);
        }
    }
    if (!there.settled) {
        members->dial_next =
            dp_time_min(members->dial_next, dp_time_after(members->started_at, SETTLE_US));
    }
    members->dial_stale = false;
}
