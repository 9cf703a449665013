/* Probes: pings members directly and through others, and acts on their answers and silence. */
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/member/members_internal.h"

enum {
    PING_REQ_BYTES = DP_MSG_HEAD_BYTES + 4 + 32,
    SMALL_GROUP = 16, /* up to so many members each probes several at once */
    PROBES_IN_SMALL_GROUP = 4,
    RTT_SAMPLES_LEAST = 4 /* of each link, however much its other end says of itself */
};

#define TIMEOUT_US_MIN (150 * DP_MS)
#define TIMEOUT_US_MAX (900 * DP_MS)
#define DEAD_PING_US (5 * DP_SECOND)
#define RTT_AGE_US (5 * DP_SECOND) /* then a link is measured again */
#define SUMMARY_US DP_SECOND       /* in a run of short rounds */

static uint32_t pace_of(const dp_members *members)
{
    return members->beat != NULL ? members->beat->pace : 1;
}

uint64_t dp_members_summary_us(const dp_members *members)
{
    return members->quiet ? DP_IDLE_SUMMARY_US : pace_of(members) * SUMMARY_US;
}

uint64_t dp_members_timeout(const dp_members *members, uint32_t index)
{
    dp_assert(index < members->count);
    return dp_rtt_timeout(&members->rows[index].member.rtt, TIMEOUT_US_MAX / 2, TIMEOUT_US_MIN,
                          TIMEOUT_US_MAX) *
           (1 + members->lhm);
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

/* Picks the helpers of an indirect probe: the peer that brought the target's last SUMMARY, and
 * random linked rows; in a large run, where few of them are linked to the target, also the linked
 * voters, which have many links. */
static uint32_t pick_helpers(dp_members *members, uint32_t target,
                             uint32_t helpers[HELPERS + DP_VOTERS_MAX])
{
    const uint32_t via = members->rows[target].far_via;
    const bool known = via != 0 && members->rows[via].member.linked;
    uint32_t n =
        dp_members_pick(members, target, known ? via : 0, helpers, known ? HELPERS - 1 : HELPERS);

    dp_assert(target < members->count);
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

    dp_assert(probe->target < members->count);
    probe->indirect = true;
    probe->asked = (uint8_t)n;
    probe->sent = now;
    probe->deadline = dp_time_after(now, dp_members_timeout(members, probe->target));
    if (target->linked) {
        dp_members_send_ping(members, probe->target, probe->sequence + 1, now, out);
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

    dp_assert(index > 0 && index < members->count);
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
    probe->deadline = dp_time_after(now, dp_members_timeout(members, index));
    dp_members_send_ping(members, index, probe->sequence, now, out);
}

static void fail_probe(dp_members *members, dp_probe *probe, dp_time now, dp_out *out)
{
    const uint32_t target = probe->target;

    dp_assert(probe->target < members->count);
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

/* No member needs a probe: then the link whose delay was measured least, since its other end always
 * speaks first; else the one measured longest ago, since all samples of a busy moment may be too
 * long. */
static uint32_t least_measured(const dp_members *members, dp_time now)
{
    uint32_t least = RTT_SAMPLES_LEAST;
    uint64_t oldest_us = members->quiet ? DP_IDLE_SUMMARY_US : RTT_AGE_US;
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
 * is old; else one with few measurements. DP_MEMBER_NONE after one turn of the table. */
static uint32_t next_target(dp_members *members, bool hungry, dp_time now)
{
    const uint64_t summary_us = dp_members_summary_us(members);
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
        const uint64_t acked_us = dp_time_between(members->rows[index].acked, now);
        const bool stale = hungry ? acked_us >= members->period_us
                                  : dp_time_between(member->summary_at, now) >= summary_us;
        if (index != 0 && (silent || (stale && member->linked)) &&
            dp_members_watches(members, index) && !is_probed(members, index)) {
            return index;
        }
    }
    return least_measured(members, now);
}

/* Pings members that are held dead although their link stands; these pings belong to no probe. An
 * answer shows that the member is alive. If the other side has ended the connection long ago, only
 * a message sent on it reveals that: a member that cannot be dialled would otherwise wait for ever
 * for this node to dial. */
static void ping_the_dead(dp_members *members, dp_time now, dp_out *out)
{
    if (!dp_time_reached(now, members->dead_at)) {
        return;
    }
    members->dead_at = dp_time_after(now, DEAD_PING_US);
    for (uint32_t k = 0; k < members->linked.count; k++) {
        if (members->rows[members->linked.at[k]].member.state == DP_MEMBER_DEAD &&
            !dp_members_is_guest(members, members->linked.at[k])) {
            dp_members_send_ping(members, members->linked.at[k], 0, now, out);
        }
    }
}

/* clamp(8 srtt, 250 ms, 1 s) with the mean srtt of the linked members, times the pace of
 * heartbeats but for a node that lacks them; longer in an idle run. */
static void measure_period(dp_members *members, bool hungry)
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
    if (members->quiet) {
        members->period_us = DP_IDLE_PROBE_US;
    } else if (!hungry) {
        members->period_us *= pace_of(members);
    }
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
            probe->deadline = dp_time_after(now, dp_members_timeout(members, probe->target));
            if (members->rows[probe->target].member.linked) {
                dp_members_send_ping(members, probe->target, probe->sequence + 1, now, out);
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
            dp_members_send_ack(members, relayed->requester, relayed->their_sequence, true,
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
                dp_members_send_ping(members, members->linked.at[k], 0, now, out);
            }
        }
    }
    if (!dp_time_reached(now, members->probe_at)) {
        return;
    }
    /* A node that some voter does not reach lives on the beats that come with ACKs; they must not
     * get rare. */
    const bool hungry = members->beat != NULL && dp_heartbeat_wants_riders(members->beat, now);
    measure_period(members, hungry);
    ping_the_dead(members, now, out);
    const uint32_t most = dp_members_alive(members) <= SMALL_GROUP ? PROBES_IN_SMALL_GROUP : 1;
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
