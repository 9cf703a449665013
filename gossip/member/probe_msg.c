/* PING, ACK and PING_REQ, as they are sent and as they come.
 *
 * After type and version:
 *     PING      u32 sequence | summary | belief | heard
 *     ACK       u32 sequence | u8 nack | 32 about | summary | belief | rider
 *     PING_REQ  u32 sequence | 32 target
 *   belief: u8 state, u64 incarnation, u32 revision that the sender holds of the receiver
 *   heard:  u32 tag, u8 bitmap of the voters that the sender hears (heartbeat.h); rider: u8 count
 *           and that many HEARTBEATs
 *   about: the member that is attested as alive: the sender's own, or that of the target of a
 *   PING_REQ nack 1: the target of a PING_REQ has not answered the helper */
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/member/members_internal.h"

enum {
    BELIEF_BYTES = 1 + 8 + 4,
    PING_BYTES = DP_MSG_HEAD_BYTES + 4 + DP_SUMMARY_BYTES + BELIEF_BYTES + 5,
    ACK_BYTES_MAX =
        DP_MSG_HEAD_BYTES + 4 + 1 + 32 + DP_SUMMARY_BYTES + BELIEF_BYTES + DP_HEARTBEAT_RIDER_MAX
};

static void write_belief(dp_writer *writer, const dp_member *about)
{
    dp_write_u8(writer, (uint8_t)about->state);
    dp_write_u64(writer, about->incarnation);
    dp_write_u32(writer, about->revision);
}

/* Reads the sender's view of this node. A guest's view is ignored: this node need not refute it. */
static void read_belief(dp_members *members, uint32_t from, dp_reader *reader, dp_out *out)
{
    const uint8_t state = dp_read_u8(reader);
    const uint64_t incarnation = dp_read_u64(reader);
    const uint32_t revision = dp_read_u32(reader);

    if (!reader->failed && state <= DP_MEMBER_LEFT && !dp_members_is_guest(members, from)) {
        dp_members_believed(members, (dp_member_state)state, incarnation, revision, out);
    }
}

void dp_members_send_ping(dp_members *members, uint32_t to, uint32_t sequence, dp_time now,
                          dp_out *out)
{
    dp_row *const row = &members->rows[to];
    const dp_member *const member = &row->member;
    dp_writer writer = dp_out_writer(out, DP_MSG_PING, PING_BYTES);
    dp_view message;

    dp_assert(to > 0 && to < members->count);
    row->asked = row->asked.us == 0 ? now : row->asked;
    dp_write_u32(&writer, sequence);
    dp_summary_write(&writer, &members->summary);
    write_belief(&writer, member);
    if (members->beat != NULL) {
        dp_heartbeat_write_heard(members->beat, now, &writer);
    } else {
        dp_write_u32(&writer, 0);
        dp_write_u8(&writer, 0);
    }
    if (dp_out_message(out, &writer, &message)) {
        dp_out_send(out, &member->peer, message);
    }
}

void dp_members_send_ack(dp_members *members, uint32_t to, uint32_t sequence, bool nack,
                         const dp_peer *about, uint32_t tag, uint8_t heard, dp_time now,
                         dp_out *out)
{
    const dp_member *const member = &members->rows[to].member;
    dp_writer writer = dp_out_writer(out, DP_MSG_ACK, ACK_BYTES_MAX);
    dp_view message;

    dp_assert(to > 0 && to < members->count);
    dp_write_u32(&writer, sequence);
    dp_write_u8(&writer, nack ? 1 : 0);
    dp_write_bytes(&writer, about->bytes, sizeof about->bytes);
    dp_summary_write(&writer, &members->summary);
    write_belief(&writer, member);
    if (members->beat != NULL) {
        dp_heartbeat_write_rider(members->beat, now, tag, heard, &writer);
    } else {
        dp_write_u8(&writer, 0);
    }
    if (dp_out_message(out, &writer, &message)) {
        dp_out_send(out, &member->peer, message);
    }
}

static void succeed(dp_members *members, dp_probe *probe)
{
    dp_assert(probe->target < members->count);
    if (members->lhm > 0) {
        members->lhm--;
    }
    probe->target = DP_MEMBER_NONE;
}

static void take_summary(dp_members *members, uint32_t from, const dp_summary *summary, dp_time now)
{
    dp_member *const member = &members->rows[from].member;

    dp_assert(from < members->count);
    member->summary = *summary;
    member->has_summary = true;
    member->summary_at = now;
    if (summary->slot > members->slot_most) {
        members->slot_most = summary->slot;
    }
}

dp_status dp_members_ping(dp_members *members, dp_time now, uint32_t from, dp_reader *reader,
                          dp_out *out)
{
    dp_summary summary;
    const uint32_t sequence = dp_read_u32(reader);

    DP_TRY(dp_summary_read(reader, &summary));
    dp_reader belief = *reader;
    DP_IGNORE(dp_read_view(reader, BELIEF_BYTES).size ==
              0); /* read below, once all is known to be there */
    const uint32_t tag = dp_read_u32(reader);
    const uint8_t heard = dp_read_u8(reader);
    DP_TRY(dp_reader_finish(reader));

    take_summary(members, from, &summary, now);
    read_belief(members, from, &belief, out);
    if (!members->leaving) {
        dp_members_send_ack(members, from, sequence, false, &members->rows[0].member.peer, tag,
                            heard, now, out);
    }
    return DP_OK;
}

/* An answer that we wait for on behalf of others. */
static void answer_relayed(dp_members *members, uint32_t from, uint32_t sequence, dp_time now,
                           dp_out *out)
{
    for (uint32_t i = 0; members->n_relayed > 0 && i < DP_RELAYED_MAX; i++) {
        dp_relayed *const relayed = &members->relayed[i];
        if (relayed->requester != DP_MEMBER_NONE && relayed->target == from &&
            relayed->own_sequence == sequence) {
            if (members->rows[relayed->requester].member.linked) {
                dp_members_send_ack(members, relayed->requester, relayed->their_sequence, false,
                                    &members->rows[from].member.peer, 0, 0, now, out);
            }
            relayed->requester = DP_MEMBER_NONE;
            members->n_relayed--;
        }
    }
}

dp_status dp_members_ack(dp_members *members, dp_time now, uint32_t from, dp_reader *reader,
                         dp_out *out)
{
    dp_summary summary;
    dp_peer about;
    const uint32_t sequence = dp_read_u32(reader);
    const uint8_t nack = dp_read_u8(reader);

    dp_read_bytes(reader, about.bytes, sizeof about.bytes);
    DP_TRY(dp_summary_read(reader, &summary));
    dp_reader belief = *reader;
    DP_IGNORE(dp_read_view(reader, BELIEF_BYTES).size == 0);
    dp_member *const member = &members->rows[from].member;
    if (reader->failed || nack > 1) {
        return DP_BADMSG;
    }
    if (members->beat != NULL) {
        DP_TRY(dp_heartbeat_read_rider(members->beat, now, &member->peer, reader, out));
    } else {
        const uint8_t riders = dp_read_u8(reader);
        DP_IGNORE(dp_read_view(reader, (size_t)riders * DP_HEARTBEAT_BYTES).size == 0);
    }
    DP_TRY(dp_reader_finish(reader));

    take_summary(members, from, &summary, now);
    read_belief(members, from, &belief, out);
    const bool indirect = !dp_peer_equal(&about, &member->peer);
    if (indirect && dp_members_is_guest(members, from)) {
        return DP_DENIED;
    }
    if (!indirect) {
        members->rows[from].acked = now;
        members->rows[from].asked = (dp_time){0};
    }
    if (!indirect && nack == 0) {
        answer_relayed(members, from, sequence, now, out);
    }
    for (uint32_t i = 0; i < DP_PROBES_MAX; i++) {
        dp_probe *const probe = &members->probes[i];
        if (probe->target == DP_MEMBER_NONE || (sequence & ~1U) != probe->sequence ||
            !dp_peer_equal(&about, &members->rows[probe->target].member.peer)) {
            continue;
        }
        if (nack == 1) {
            probe->nacks = (uint8_t)(probe->nacks + (indirect && probe->nacks < probe->asked));
            continue;
        }
        /* Each stage has its own number, so a sample is never of the wrong ping (Karn). */
        if (!indirect && !probe->last && (sequence & 1U) == (probe->indirect ? 1U : 0U)) {
            dp_rtt_add(&member->rtt, dp_time_between(probe->sent, now));
        }
        if (indirect) {
            dp_members_heard(members, probe->target, now, out);
        }
        succeed(members, probe);
    }
    return DP_OK;
}

dp_status dp_members_ping_req(dp_members *members, dp_time now, uint32_t from, dp_reader *reader,
                              dp_out *out)
{
    dp_peer target;
    const uint32_t sequence = dp_read_u32(reader);

    dp_read_bytes(reader, target.bytes, sizeof target.bytes);
    DP_TRY(dp_reader_finish(reader));
    if (dp_members_is_guest(members, from)) {
        return DP_DENIED;
    }
    const uint32_t index = dp_members_find(members, &target);
    dp_relayed *free_slot = NULL;
    for (uint32_t i = 0; i < DP_RELAYED_MAX && free_slot == NULL; i++) {
        if (members->relayed[i].requester == DP_MEMBER_NONE) {
            free_slot = &members->relayed[i];
        }
    }
    if (index == DP_MEMBER_NONE || index == 0 || index == from ||
        !members->rows[index].member.linked || free_slot == NULL) {
        dp_members_send_ack(members, from, sequence, true, &target, 0, 0, now, out);
        return DP_OK;
    }
    members->sequence += 2;
    members->n_relayed++;
    *free_slot = (dp_relayed){.requester = from,
                              .target = index,
                              .their_sequence = sequence,
                              .own_sequence = members->sequence,
                              .deadline = dp_time_after(now, dp_members_timeout(members, index))};
    dp_members_send_ping(members, index, members->sequence, now, out);
    return DP_OK;
}
