/* A voter and a member without a link between them, or with one that nothing comes through: each
 * tells the other its summary, signed, through members that may be linked to both. A round waits
 * for a member by its summary, whichever way that came. Two that do not vote decide on no round and
 * tell each other nothing: with 64 members, a fifth of all pairs without a link, that was half of
 * what each node sent.
 *
 * One SUMMARY goes to each such row once a second, and at once (but not within FAR_US_MIN of the
 * last) when round, mode or trainer change: by the member that brought its last one here, and by
 * FAR_CARRIERS random ones, in a RELAY of one hop. So a node sends at most (FAR_CARRIERS + 1) *
 * DP_FULL_MESH_MAX of them in FAR_US_MIN, and none in a run too large for links to everybody. A
 * carrier can keep a summary back or bring it late; it can make none, and an older one than is
 * known counts for nothing. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/core/msg.h"
#include "gossip/member/members_internal.h"
#include "gossip/record/wire.h"

enum { FAR_CARRIERS = 2 };
#define FAR_US_MIN (250 * DP_MS)
#define MUTE_US (3 * DP_SECOND) /* a PING is answered at once */

dp_time dp_members_mute_at(const dp_row *row)
{
    return row->asked.us == 0 ? DP_NEVER : dp_time_after(row->asked, MUTE_US);
}

bool dp_members_mute(const dp_row *row, dp_time now)
{
    return dp_time_reached(now, dp_members_mute_at(row));
}

static bool is_far(const dp_members *members, uint32_t index, dp_time now)
{
    const dp_row *const row = &members->rows[index];

    return (row->member.voter || members->rows[0].member.voter) &&
           (!row->member.linked || dp_members_mute(row, now)) && !row->removed && !row->down &&
           !dp_members_is_guest(members, index) && row->member.credential_bytes > 0 &&
           (row->member.state == DP_MEMBER_ALIVE || row->member.state == DP_MEMBER_SUSPECT);
}

void dp_members_far_changed(dp_members *members)
{
    members->far_at = dp_time_min(members->far_at, dp_time_after(members->far_told, FAR_US_MIN));
}

static void send_to(dp_members *members, uint32_t index, dp_view message, dp_out *out)
{
    const dp_row *const row = &members->rows[index];
    uint32_t carriers[FAR_CARRIERS + 1];
    uint32_t n = dp_members_pick(members, index, row->far_via, carriers, FAR_CARRIERS);
    dp_writer writer = dp_out_writer(out, DP_MSG_RELAY, DP_RELAY_HEAD_BYTES + message.size);
    dp_view relay;

    dp_assert(index < members->count);
    if (row->far_via != 0 && members->rows[row->far_via].member.linked) {
        carriers[n++] = row->far_via;
    }
    dp_write_u8(&writer, 1);
    dp_write_bytes(&writer, row->member.peer.bytes, sizeof row->member.peer.bytes);
    dp_write_view(&writer, message);
    if (!dp_out_message(out, &writer, &relay)) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        dp_out_send(out, &members->rows[carriers[i]].member.peer, relay);
    }
}

void dp_members_far_tick(dp_members *members, dp_time now, dp_out *out)
{
    const dp_member *const self = &members->rows[0].member;
    uint8_t message[DP_SUMMARY_MESSAGE_MAX];
    size_t size = 0;

    if (dp_members_large(members) || !dp_time_reached(now, members->far_at)) {
        return;
    }
    members->far_told = now;
    members->far_at = dp_time_after(now, dp_members_summary_us(members));
    for (uint32_t i = 1; self->has_summary && i < members->count; i++) {
        if (!is_far(members, i, now)) {
            continue;
        }
        if (size == 0) {
            dp_signed_summary own = {.peer = self->peer,
                                     .incarnation = self->incarnation,
                                     .sequence = ++members->far_sequence,
                                     .summary = members->summary};
            memcpy(own.name, self->name, sizeof own.name);
            size = dp_summary_sign(&own, &members->crypto, &members->run, message);
        }
        if (size == 0) {
            return; /* No identity key: nobody believes this node. */
        }
        send_to(members, i, dp_view_of(message, size), out);
    }
}

static bool is_newer(const dp_signed_summary *summary, const dp_row *row)
{
    if (dp_broken(121)) { /* An earlier one may come again. */
        return true;
    }
    return summary->incarnation > row->far_incarnation ||
           (summary->incarnation == row->far_incarnation && summary->sequence > row->far_sequence);
}

dp_status dp_members_far_message(dp_members *members, dp_time now, uint32_t from, dp_view bytes)
{
    dp_signed_summary said;

    dp_assert(from < members->count);
    DP_TRY(dp_summary_open(bytes, &said));
    const uint32_t index = dp_members_find(members, &said.peer);
    if (index == DP_MEMBER_NONE || members->rows[index].member.credential_bytes == 0 ||
        dp_members_is_guest(members, index) || dp_members_is_guest(members, from)) {
        return DP_DENIED;
    }
    dp_row *const row = &members->rows[index];
    /* Newer statements come on a link. */
    if (index == 0 || (row->member.linked && !dp_members_mute(row, now)) || row->removed ||
        said.incarnation < row->member.incarnation || !is_newer(&said, row)) {
        return DP_OK;
    }
    if (!dp_broken(120) && !dp_summary_verify(bytes, &said.peer, &members->crypto, &members->run)) {
        return DP_BADSIG;
    }
    row->far_incarnation = said.incarnation;
    row->far_sequence = said.sequence;
    row->far_via = from;
    row->member.summary = said.summary;
    row->member.has_summary = true;
    if (!row->member.linked) {
        row->member.summary_at = now; /* A mute link is pinged on. */
    }
    memcpy(row->member.name, said.name, sizeof row->member.name);
    return DP_OK;
}
