/* Guests: peers with a valid credential that the chain has not admitted, or not yet. The holder of
 * one token can make any number of them. So each has a place here only as long as its own link
 * stands; no node forwards statements about a guest, accuses it, waits for it or dials an address
 * that it names. */
#include <string.h>

#include "base/assert.h"
#include "gossip/member/members_internal.h"

#define GREET_US DP_SECOND

static uint32_t count_of(const dp_members *members, const dp_invite_id *invite)
{
    uint32_t count = 0;

    for (uint32_t k = 0; k < members->linked.count; k++) {
        const dp_row *row = &members->rows[members->linked.at[k]];
        count += dp_members_row_is_guest(members, row) && !row->closing &&
                         memcmp(&row->member.invite, invite, sizeof *invite) == 0
                     ? 1
                     : 0;
    }
    return count;
}

/* Of the invite with the most guests, the one that came first; DP_MEMBER_NONE if none has more than
 * own. */
static uint32_t find_least(const dp_members *members, uint32_t own)
{
    uint32_t best = DP_MEMBER_NONE;
    uint32_t most = own;

    for (uint32_t k = 0; k < members->linked.count; k++) {
        const uint32_t i = members->linked.at[k];
        const dp_row *row = &members->rows[i];
        if (!dp_members_row_is_guest(members, row) || row->closing) {
            continue;
        }
        const uint32_t count = count_of(members, &row->member.invite);
        if (count > most || (best != DP_MEMBER_NONE && count == most &&
                             row->linked_at.us < members->rows[best].linked_at.us)) {
            best = i;
            most = count;
        }
    }
    return best;
}

bool dp_members_guest_enter(dp_members *members, uint32_t index, dp_out *out)
{
    dp_row *const row = &members->rows[index];

    dp_assert(index > 0 && index < members->count);
    if (!dp_members_row_is_guest(members, row) || members->n_guests < DP_GUESTS_MAX) {
        return true;
    }
    const uint32_t least = find_least(members, count_of(members, &row->member.invite));
    if (least == DP_MEMBER_NONE || !dp_out_room(out, 1)) {
        dp_out_add(out, DP_DO_HANGUP)->u.peer = row->member.peer;
        return false;
    }
    members->rows[least].closing = true;
    dp_out_add(out, DP_DO_HANGUP)->u.peer = members->rows[least].member.peer;
    return true;
}

void dp_members_guest_gone(dp_members *members, uint32_t index, dp_time now, dp_out *out)
{
    dp_row *const row = &members->rows[index];

    dp_assert(index > 0 && index < members->count);
    if (row->member.linked && !row->closing && dp_out_room(out, 1)) {
        row->closing = true;
        dp_out_add(out, DP_DO_HANGUP)->u.peer = row->member.peer;
    }
    if (!row->member.linked &&
        (row->member.state == DP_MEMBER_ALIVE || row->member.state == DP_MEMBER_SUSPECT)) {
        dp_members_state_set(members, index, DP_MEMBER_DEAD, now, "its link has ended", out);
    }
}

/* Takes the addresses from the statement that the peer made about itself while it was a guest. */
static void take_addresses(dp_row *row)
{
    dp_statement statement;
    dp_view bytes;
    dp_reader reader = dp_reader_of(dp_view_of(row->statement, row->statement_bytes));

    if (row->statement_bytes == 0 || row->statement_kind != DP_STATEMENT_ALIVE ||
        dp_statement_read(&reader, &statement, &bytes) != DP_OK || statement.n_addrs == 0) {
        return;
    }
    row->member.n_addrs = statement.n_addrs;
    memcpy(row->member.addrs, statement.addrs, sizeof row->member.addrs);
}

void dp_members_greet(dp_members *members, dp_time now, dp_out *out)
{
    if (!members->greets) {
        return;
    }
    members->greets = false;
    for (uint32_t i = 0; i < members->count; i++) {
        dp_row *const row = &members->rows[i];
        if (!row->is_new) {
            continue;
        }
        row->is_new = false;
        if (i == 0) {
            dp_members_tell_own(members, out);
            continue;
        }
        take_addresses(row);
        members->dial_stale = true;
        if (row->member.linked) {
            dp_members_sync_send(members, i, true, out);
        } else { /* Others may know where it is. */
            members->sync_at = dp_time_min(members->sync_at, dp_time_after(now, GREET_US));
        }
    }
}
