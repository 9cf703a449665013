/* Pinging: whom to ask next whether it lives, directly and through others, and what an answer or
 * silence means.
 *
 * After type and version:
 *     PING      u32 sequence | summary | belief | heard
 *     ACK       u32 sequence | u8 nack | 32 about | summary | belief | rider
 *     PING_REQ  u32 sequence | 32 target
 *   belief: u8 state, u64 incarnation, u32 revision that the sender holds of the receiver
 *   heard:  u32 tag, u8 bitmap of the voters that the sender hears (beat.h); rider: u8 count and
 *           that many HEARTBEATs
 *   about:  whose life is attested: the sender's own, or that of the target of a PING_REQ
 *   nack 1: the target of a PING_REQ has not answered the helper */
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/member/members_internal.h"

enum {
    BELIEF_BYTES = 1 + 8 + 4,
    PING_BYTES = DP_MSG_HEAD_BYTES + 4 + DP_SUMMARY_BYTES + BELIEF_BYTES + 5,
    ACK_BYTES_MAX =
        DP_MSG_HEAD_BYTES + 4 + 1 + 32 + DP_SUMMARY_BYTES + BELIEF_BYTES + DP_BEAT_RIDER_MAX,
    PING_REQ_BYTES = DP_MSG_HEAD_BYTES + 4 + 32,
    SMALL_GROUP = 16, /* up to so many members each probes several at once */
    PROBES_IN_SMALL_GROUP = 4,
    RTT_SAMPLES_LEAST = 4 /* of each link, however much its other end says of itself */
};
#define TIMEOUT_US_MIN (150 * DP_MS)
#define TIMEOUT_US_MAX (900 * DP_MS)
#define DEAD_PING_US (5 * DP_SECOND)
#define RTT_AGE_US (5 * DP_SECOND) /* then a link is measured again */

static uint64_t timeout_of(const dp_members *members, uint32_t index)
{
    return dp_rtt_timeout(&members->rows[index].member.rtt, TIMEOUT_US_MAX / 2, TIMEOUT_US_MIN,
                          TIMEOUT_US_MAX) *
           (1 + members->lhm);
}

static void write_belief(dp_writer *writer, const dp_member *about)
{
    dp_write_u8(writer, (uint8_t)about->state);
    dp_write_u64(writer, about->incarnation);
    dp_write_u32(writer, about->revision);
}

/* What a guest holds of this node is nothing to refute. */
static void read_belief(dp_members *members, uint32_t from, dp_reader *reader, dp_out *out)
{
    const uint8_t state = dp_read_u8(reader);
    const uint64_t incarnation = dp_read_u64(reader);
    const uint32_t revision = dp_read_u32(reader);

    if (!reader->failed && state <= DP_MEMBER_LEFT && !dp_members_is_guest(members, from)) {
        dp_members_believed(members, (dp_member_state)state, incarnation, revision, out);
    }
}

static void send_ping(dp_members *members, uint32_t to, uint32_t sequence, dp_time now, dp_out *out)
{
    const dp_member *const member = &members->rows[to].member;
    dp_writer writer = dp_out_writer(out, DP_MSG_PING, PING_BYTES);
    dp_view message;

    dp_write_u32(&writer, sequence);
    dp_summary_write(&writer, &members->summary);
    write_belief(&writer, member);
    if (members->beat != NULL) {
        dp_beat_write_heard(members->beat, now, &writer);
    } else {
        dp_write_u32(&writer, 0);
        dp_write_u8(&writer, 0);
    }
    if (dp_out_message(out, &writer, &message)) {
        dp_out_send(out, &member->peer, message);
    }
}

static void send_ack(dp_members *members, uint32_t to, uint32_t sequence, bool nack,
                     const dp_peer *about, uint32_t tag, uint8_t heard, dp_time now, dp_out *out)
{
    const dp_member *const member = &members->rows[to].member;
    dp_writer writer = dp_out_writer(out, DP_MSG_ACK, ACK_BYTES_MAX);
    dp_view message;

    dp_write_u32(&writer, sequence);
    dp_write_u8(&writer, nack ? 1 : 0);
    dp_write_bytes(&writer, about->bytes, sizeof about->bytes);
    dp_summary_write(&writer, &members->summary);
    write_belief(&writer, member);
    if (members->beat != NULL) {
        dp_beat_write_rider(members->beat, now, tag, heard, &writer);
    } else {
        dp_write_u8(&writer, 0);
    }
    if (dp_out_message(out, &writer, &message)) {
        dp_out_send(out, &member->peer, message);
    }
}

/* ---- probes of our own ---- */

static dp_probe *free_probe(dp_members *members)
{
    for (uint32_t i = 0; i < DP_PROBES_MAX; i++) {
        if (members->probes[i].target == DP_MEMBER_NONE) {
            return &members->probes[i];
        }
    }
    return NULL;
}

static bool is_probed(const dp_members *members, uint32_t index)
{
    for (uint32_t i = 0; i < DP_PROBES_MAX; i++) {
        if (members->probes[i].target == index) {
            return true;
        }
    }
    return false;
}

/* Whoever brought the target's last SUMMARY, and random linked rows; in a large run, where few of
 * them are linked to the target, also the linked voters, who know many. */
static uint32_t pick_helpers(dp_members *members, uint32_t target,
                             uint32_t helpers[HELPERS + DP_VOTERS_MAX])
{
    const uint32_t via = members->rows[target].far_via;
    const bool known = via != 0 && members->rows[via].member.linked;
    uint32_t n =
        dp_members_pick(members, target, known ? via : 0, helpers, known ? HELPERS - 1 : HELPERS);

    if (known) {
        helpers[n++] = via;
    }

    for (uint32_t k = 0; dp_members_large(members) && k < members->voters.count; k++) {
        const uint32_t voter = members->voters.at[k];
        bool there = voter == target || !members->rows[voter].member.linked;
        for (uint32_t i = 0; i < n && !there; i++) {
            there = helpers[i] == voter;
        }
        if (!there && n < HELPERS + DP_VOTERS_MAX) {
            helpers[n++] = voter;
        }
    }
    return n;
}

/* Ask helpers, and once more the target itself: the first ping may have met a slow moment. */
static void go_indirect(dp_members *members, dp_probe *probe, dp_time now, dp_out *out)
{
    uint32_t helpers[HELPERS + DP_VOTERS_MAX];
    const uint32_t n = pick_helpers(members, probe->target, helpers);
    const dp_member *const target = &members->rows[probe->target].member;

    probe->indirect = true;
    probe->asked = (uint8_t)n;
    probe->nacks = 0;
    probe->sent = now;
    probe->deadline = dp_time_after(now, timeout_of(members, probe->target));
    if (target->linked) {
        send_ping(members, probe->target, probe->sequence + 1, now, out);
    }
    for (uint32_t i = 0; i < n; i++) {
        dp_writer writer = dp_out_writer(out, DP_MSG_PING_REQ, PING_REQ_BYTES);
        dp_view message;
        dp_write_u32(&writer, probe->sequence + 1);
        dp_write_bytes(&writer, target->peer.bytes, sizeof target->peer.bytes);
        if (dp_out_message(out, &writer, &message)) {
            dp_out_send(out, &members->rows[helpers[i]].member.peer, message);
        }
    }
}

static void start_probe(dp_members *members, uint32_t index, dp_time now, dp_out *out)
{
    dp_probe *const probe = free_probe(members);

    if (probe == NULL || is_probed(members, index)) {
        return;
    }
    members->sequence += 2;
    dp_rowset_set(&members->urgent, index, false);
    *probe = (dp_probe){.target = index, .sequence = members->sequence, .sent = now};
    if (!members->rows[index].member.linked) {
        go_indirect(members, probe, now, out);
        return;
    }
    probe->deadline = dp_time_after(now, timeout_of(members, index));
    send_ping(members, index, probe->sequence, now, out);
}

static void fail_probe(dp_members *members, dp_probe *probe, dp_time now, dp_out *out)
{
    const uint32_t target = probe->target;

    /* Helpers that do not even say that they failed: perhaps it is we who are slow (Lifeguard,
     * section IV-A). */
    if (probe->nacks < probe->asked && members->lhm < DP_LHM_MAX) {
        members->lhm++;
    }
    probe->target = DP_MEMBER_NONE;
    if (dp_members_watches(members, target)) {
        dp_members_accuse(members, target, DP_CAUSE_SILENCE, now, out);
    }
}

static void succeed(dp_members *members, dp_probe *probe)
{
    if (members->lhm > 0) {
        members->lhm--;
    }
    probe->target = DP_MEMBER_NONE;
}

/* No member has to be asked whether it lives: then the link whose delay was measured least, since
 * its other end always speaks first; else the one measured longest ago, since all samples of a busy
 * moment may be too long. */
static uint32_t least_measured(const dp_members *members, dp_time now)
{
    uint32_t least = RTT_SAMPLES_LEAST;
    uint64_t oldest_us = RTT_AGE_US;
    uint32_t found = DP_MEMBER_NONE;

    for (uint32_t k = 0; k < members->linked.count; k++) {
        const uint32_t index = members->linked.at[k];
        const dp_member *const member = &members->rows[index].member;
        const uint64_t age_us = dp_time_between(members->rows[index].acked, now);
        if (member->state != DP_MEMBER_ALIVE || is_probed(members, index) ||
            dp_members_is_guest(members, index)) {
            continue;
        }
        if (member->rtt.samples < least) {
            least = member->rtt.samples;
            found = index;
        } else if (least == RTT_SAMPLES_LEAST && age_us >= oldest_us) {
            oldest_us = age_us;
            found = index;
        }
    }
    return found;
}

/* The next watched row that has been silent for a period, or whose summary (hungry: whose last ACK)
 * is old; else one of whom little was measured. DP_MEMBER_NONE after one turn of the table. */
static uint32_t next_target(dp_members *members, bool hungry, dp_time now)
{
    const uint32_t turns =
        2 * (dp_members_large(members) ? members->order_count + 1 : members->count);
    for (uint32_t turn = 0; turn < turns; turn++) {
        if (members->order_at >= members->order_count) {
            /* A new turn in a new order, with rows that came since (Fisher, Yates). */
            members->order_count = 0;
            members->order_at = 0;
            for (uint32_t i = 0; i < members->count; i++) {
                if (dp_members_large(members) && (i == 0 || !dp_members_watches(members, i))) {
                    continue;
                }
                const uint32_t last = members->order_count++;
                const uint32_t k = (uint32_t)dp_rng_below(&members->rng, last + 1);
                members->order[last] = members->order[k];
                members->order[k] = i;
            }
            if (members->order_count == 0) {
                return DP_MEMBER_NONE;
            }
        }
        const uint32_t index = members->order[members->order_at++];
        const dp_member *const member = &members->rows[index].member;
        const bool silent =
            member->heard.us == 0 || dp_time_between(member->heard, now) >= members->period_us;
        const bool stale =
            hungry ? dp_time_between(members->rows[index].acked, now) >= members->period_us
                   : dp_time_between(member->summary_at, now) >= SUMMARY_US;
        if (index != 0 && (silent || (stale && member->linked)) &&
            dp_members_watches(members, index) && !is_probed(members, index)) {
            return index;
        }
    }
    return least_measured(members, now);
}

/* Whose link stands although it is held dead is pinged on, of no probe. Its answer is life; and if
 * the other side has long ended the connection, only what is sent on it brings that to light, and
 * who cannot be dialled would wait for us to dial for ever. */
static void ping_the_dead(dp_members *members, dp_time now, dp_out *out)
{
    if (!dp_time_reached(now, members->dead_at)) {
        return;
    }
    members->dead_at = dp_time_after(now, DEAD_PING_US);
    for (uint32_t k = 0; k < members->linked.count; k++) {
        if (members->rows[members->linked.at[k]].member.state == DP_MEMBER_DEAD &&
            !dp_members_is_guest(members, members->linked.at[k])) {
            send_ping(members, members->linked.at[k], 0, now, out);
        }
    }
}

/* clamp(8 srtt, 250 ms, 1 s) with the mean srtt of the linked members. */
static void measure_period(dp_members *members)
{
    uint64_t sum = 0;
    uint64_t n = 0;

    for (uint32_t k = 0; k < members->linked.count; k++) {
        const dp_member *const member = &members->rows[members->linked.at[k]].member;
        if (member->rtt.samples > 0 && !dp_members_is_guest(members, members->linked.at[k])) {
            sum += member->rtt.srtt_us;
            n++;
        }
    }
    const uint64_t period_us = n == 0 ? DP_PROBE_US_MIN : 8 * (sum / n);
    members->period_us = period_us < DP_PROBE_US_MIN   ? DP_PROBE_US_MIN
                         : period_us > DP_PROBE_US_MAX ? DP_PROBE_US_MAX
                                                       : period_us;
}

void dp_members_probe_reset(dp_members *members, dp_time now)
{
    for (uint32_t i = 0; i < DP_PROBES_MAX; i++) {
        members->probes[i].target = DP_MEMBER_NONE;
    }
    members->probe_at = now;
}

void dp_members_probe_tick(dp_members *members, dp_time now, dp_out *out)
{
    for (uint32_t i = 0; i < DP_PROBES_MAX; i++) {
        dp_probe *const probe = &members->probes[i];
        if (probe->target == DP_MEMBER_NONE || !dp_time_reached(now, probe->deadline)) {
            continue;
        }
        if (dp_time_between(probe->sent, members->rows[probe->target].member.heard) > 0) {
            probe->target = DP_MEMBER_NONE; /* it spoke otherwise: that is life too */
        } else if (!probe->indirect) {
            go_indirect(members, probe, now, out);
        } else if (!probe->last) {
            probe->last = true;
            probe->deadline = dp_time_after(now, timeout_of(members, probe->target));
            if (members->rows[probe->target].member.linked) {
                send_ping(members, probe->target, probe->sequence + 1, now, out);
            }
        } else {
            fail_probe(members, probe, now, out);
        }
    }
    for (uint32_t i = 0; members->n_relayed > 0 && i < DP_RELAYED_MAX; i++) {
        dp_relayed *const relayed = &members->relayed[i];
        if (relayed->requester == DP_MEMBER_NONE || !dp_time_reached(now, relayed->deadline)) {
            continue;
        }
        if (members->rows[relayed->requester].member.linked) {
            send_ack(members, relayed->requester, relayed->their_sequence, true,
                     &members->rows[relayed->target].member.peer, 0, 0, now, out);
        }
        relayed->requester = DP_MEMBER_NONE;
        members->n_relayed--;
    }
    while (members->urgent.count > 0) {
        const uint32_t first = members->urgent.at[0];
        if (dp_members_watches(members, first)) {
            start_probe(members, first, now, out);
        }
        dp_rowset_set(&members->urgent, first, false);
    }
    if (members->push) {
        members->push = false;
        for (uint32_t k = 0; k < members->linked.count; k++) {
            if (!dp_members_is_guest(members, members->linked.at[k])) {
                /* Of no probe: only for its summary. */
                send_ping(members, members->linked.at[k], 0, now, out);
            }
        }
    }
    if (!dp_time_reached(now, members->probe_at)) {
        return;
    }
    measure_period(members);
    ping_the_dead(members, now, out);
    const uint32_t most = dp_members_alive(members) <= SMALL_GROUP ? PROBES_IN_SMALL_GROUP : 1;
    /* A node that some voter does not reach lives on the beats that come with ACKs; they must not
     * get rare. */
    const bool hungry = members->beat != NULL && dp_beat_wants_riders(members->beat, now);
    for (uint32_t k = 0; k < most; k++) {
        const uint32_t target = next_target(members, hungry, now);
        if (target == DP_MEMBER_NONE) {
            break;
        }
        start_probe(members, target, now, out);
    }
    members->probe_at =
        dp_time_after(now, hungry ? members->period_us : members->period_us * (1 + members->lhm));
}

dp_time dp_members_probe_wake(const dp_members *members)
{
    dp_time wake = members->push ? members->rows[0].member.heard : members->probe_at;

    for (uint32_t i = 0; i < DP_PROBES_MAX; i++) {
        if (members->probes[i].target != DP_MEMBER_NONE) {
            wake = dp_time_min(wake, members->probes[i].deadline);
        }
    }
    for (uint32_t i = 0; members->n_relayed > 0 && i < DP_RELAYED_MAX; i++) {
        if (members->relayed[i].requester != DP_MEMBER_NONE) {
            wake = dp_time_min(wake, members->relayed[i].deadline);
        }
    }
    for (uint32_t k = 0; k < members->urgent.count; k++) {
        if (dp_members_watches(members, members->urgent.at[k])) {
            return members->rows[0].member.heard; /* at once */
        }
    }
    return wake;
}

/* ---- messages ---- */

static void take_summary(dp_members *members, uint32_t from, const dp_summary *summary, dp_time now)
{
    dp_member *const member = &members->rows[from].member;

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
        send_ack(members, from, sequence, false, &members->rows[0].member.peer, tag, heard, now,
                 out);
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
                send_ack(members, relayed->requester, relayed->their_sequence, false,
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
        DP_TRY(dp_beat_read_rider(members->beat, now, &member->peer, reader, out));
    } else {
        const uint8_t riders = dp_read_u8(reader);
        DP_IGNORE(dp_read_view(reader, (size_t)riders * DP_BEAT_BYTES).size == 0);
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
        send_ack(members, from, sequence, true, &target, 0, 0, now, out);
        return DP_OK;
    }
    members->sequence += 2;
    members->n_relayed++;
    *free_slot = (dp_relayed){.requester = from,
                              .target = index,
                              .their_sequence = sequence,
                              .own_sequence = members->sequence,
                              .deadline = dp_time_after(now, timeout_of(members, index))};
    send_ping(members, index, members->sequence, now, out);
    return DP_OK;
}
