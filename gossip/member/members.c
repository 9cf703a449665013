#include "gossip/member/members.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/member/members_internal.h"

dp_status dp_members_open(dp_members **members, const dp_members_config *config)
{
    if (config->members_max < 2 || config->members_max > DP_MEMBERS_MAX ||
        config->credential.size > DP_CREDENTIAL_MAX || config->n_addrs > DP_ADDRS_MAX ||
        config->admit == NULL) {
        return DP_BADARG;
    }
    dp_members *const made = dp_alloc(1, sizeof *made);
    if (made == NULL) {
        return DP_NOMEM;
    }
    made->capacity = config->members_max;
    made->rows = dp_reserve(made->capacity, sizeof *made->rows);
    made->order = dp_alloc(made->capacity, sizeof *made->order);
    if (made->rows == NULL || made->order == NULL ||
        dp_rowset_open(&made->linked, made->capacity) != DP_OK ||
        dp_rowset_open(&made->accused, made->capacity) != DP_OK ||
        dp_rowset_open(&made->urgent, made->capacity) != DP_OK ||
        dp_rowset_open(&made->voters, made->capacity) != DP_OK ||
        dp_map_init(&made->index, made->capacity, config->seed) != DP_OK) {
        dp_members_close(made);
        return DP_NOMEM;
    }
    made->run = config->run;
    made->crypto = config->crypto;
    made->beat = config->beat;
    made->admit = config->admit;
    made->admit_context = config->admit_context;
    made->forget = config->forget;
    made->period_us = DP_PROBE_US_MIN;
    made->probe_at = DP_NEVER;
    made->sync_at = DP_NEVER;
    made->guests_at = DP_NEVER;
    dp_rng_init(&made->rng, config->seed ^ 0x6d656d62657273ULL);
    for (uint32_t i = 0; i < DP_PROBES_MAX; i++) {
        made->probes[i].target = DP_MEMBER_NONE;
    }
    for (uint32_t i = 0; i < DP_RELAYED_MAX; i++) {
        made->relayed[i].requester = DP_MEMBER_NONE;
    }
    const uint32_t own = dp_members_row_add(made, &config->self, false);
    dp_assert(own == 0);
    made->rows[0].member.state = DP_MEMBER_ALIVE;
    dp_members_recount(made);
    made->rows[0].member.incarnation = config->incarnation;
    dp_members_set_credential(&made->rows[0].member, config->credential, config->caps);
    dp_members_set_addrs(&made->rows[0].member, config->addrs, config->n_addrs);
    memcpy(made->rows[0].member.name, config->name, sizeof config->name);
    *members = made;
    return DP_OK;
}

void dp_members_close(dp_members *members)
{
    if (members == NULL) {
        return;
    }
    dp_map_close(&members->index);
    dp_rowset_close(&members->linked);
    dp_rowset_close(&members->accused);
    dp_rowset_close(&members->urgent);
    dp_rowset_close(&members->voters);
    dp_free(members->order);
    dp_free(members->rows);
    dp_free(members);
}

void dp_members_remove(dp_members *members, uint32_t index, dp_time now, uint64_t guest_us,
                       dp_out *out)
{
    dp_assert(index > 0 && index < members->count);
    dp_row *const row = &members->rows[index];

    if (row->removed) {
        return;
    }
    row->removed = true;
    row->down = true;
    members->dial_stale = true;
    dp_rowset_set(&members->voters, index, false);
    row->member.in_roster = false;
    row->member.voter = false;
    dp_members_recount(members);
    dp_members_cleared(members, index);
    dp_members_state_set(members, index, DP_MEMBER_LEFT, now, "removed", out);
    if (guest_us > 0) {
        row->guest_until = dp_time_after(now, guest_us);
        members->guests_at = dp_time_min(members->guests_at, row->guest_until);
    } else if (row->member.linked) {
        dp_out_add(out, DP_DO_HANGUP)->u.peer = row->member.peer;
    }
}

void dp_members_tell(dp_members *members, const dp_summary *summary)
{
    members->push = members->push || summary->mode != members->summary.mode ||
                    summary->has_trainer != members->summary.has_trainer;
    if (summary->mode != members->summary.mode || summary->round != members->summary.round ||
        summary->has_trainer != members->summary.has_trainer) {
        dp_members_far_changed(members);
    }
    members->summary = *summary;
    members->rows[0].member.summary = *summary;
    members->rows[0].member.has_summary = true;
}

bool dp_members_calm(const dp_members *members)
{
    if (!members->started || members->leaving || dp_members_large(members) ||
        members->n_guests > 0 || members->urgent.count > 0) {
        return false;
    }
    for (uint32_t i = 1; i < members->count; i++) {
        const dp_row *const row = &members->rows[i];
        if (row->member.state == DP_MEMBER_SUSPECT ||
            (row->member.state == DP_MEMBER_ALIVE &&
             (!row->member.linked || !row->member.has_summary))) {
            return false;
        }
    }
    return true;
}

void dp_members_idle(dp_members *members, dp_time now)
{
    const bool quiet = members->beat != NULL && dp_idle_is_quiet(&members->beat->idle, now);

    if (members->quiet && !quiet) {
        members->probe_at = now;
        members->sync_at = dp_time_min(members->sync_at, dp_time_after(now, DP_SYNC_US));
    }
    members->quiet = quiet;
}

void dp_members_start(dp_members *members, dp_time now, uint64_t wall_ms, dp_out *out)
{
    dp_assert(!members->started);
    dp_assert(members->count > 0);
    (void)wall_ms;
    (void)out;
    members->started = true;
    members->rows[0].member.heard = now;
    members->started_at = now;
    dp_members_own_alive(members);
    /* Not everybody at the same instant. */
    members->probe_at = dp_time_after(now, dp_rng_below(&members->rng, members->period_us) + 1);
    members->sync_at = dp_time_after(now, DP_SYNC_US / 2 + dp_rng_below(&members->rng, DP_SYNC_US));
}

/* ---- links ---- */

/* A gap in our own time (a stopped process, a sleeping laptop): the silence of others in that time
 * is not evidence. */
static void observe(dp_members *members, dp_time now)
{
    const uint64_t late_us = dp_members_gap(members, now);

    if (late_us == 0) {
        return;
    }
    members->quiet_until = dp_time_after(now, 2 * members->period_us);
    members->unsure_until = dp_time_after(members->quiet_until, 3 * members->period_us);
    if (members->lhm < DP_LHM_MAX) {
        members->lhm++;
    }
    for (uint32_t k = 0; k < members->accused.count; k++) {
        dp_row *const row = &members->rows[members->accused.at[k]];
        row->suspect_at = dp_time_after(row->suspect_at, late_us);
    }
    dp_members_probe_reset(members, now);
}

uint32_t dp_members_link_up(dp_members *members, dp_time now, uint64_t wall_ms, const dp_peer *peer,
                            const dp_addr *addr, dp_view credential, bool outgoing, dp_out *out)
{
    (void)wall_ms;
    observe(members, now);
    uint32_t index = dp_members_find(members, peer);
    if (index == 0) {
        return DP_MEMBER_NONE;
    }
    if (index == DP_MEMBER_NONE) {
        index = dp_members_row_add(members, peer, false);
        if (index == DP_MEMBER_NONE) {
            dp_out_add(out, DP_DO_HANGUP)->u.peer = *peer;
            return index;
        }
    }
    dp_row *const row = &members->rows[index];
    if (row->removed && dp_time_reached(now, row->guest_until)) {
        dp_out_add(out, DP_DO_HANGUP)->u.peer = *peer;
        return index;
    }
    if (credential.size > 0 && credential.size <= DP_CREDENTIAL_MAX) {
        dp_admitted grants = {0};
        /* The channel has checked it; this only reads its capabilities, whatever the time. */
        if (members->admit(members->admit_context, peer, credential, 0, &grants)) {
            dp_members_set_credential(&row->member, credential, grants.caps);
            row->member.uses = grants.uses;
            row->member.invite = grants.invite;
        }
    }
    if (!dp_members_guest_enter(members, index, out)) {
        return DP_MEMBER_NONE;
    }
    if (row->member.n_addrs == 0 && outgoing && addr->family != 0) {
        dp_members_set_addrs(&row->member, addr, 1);
    }
    if (dp_members_is_guest(members, index)) {
        members->n_guests += row->member.linked ? 0 : 1;
        members->guests_at = dp_time_min(members->guests_at, dp_time_after(now, DP_GUEST_US));
    }
    row->member.linked = true;
    dp_rowset_set(&members->linked, index, true);
    row->dialling = false;
    row->dials_failed = 0;
    row->down = row->removed;
    row->let_go = false;
    row->linked_at = now;
    row->asked = (dp_time){0};
    members->dial_stale = true;
    if (row->removed) {
        members->guests_at = dp_time_min(members->guests_at, row->guest_until);
    } else if (row->member.state == DP_MEMBER_UNKNOWN || row->member.state == DP_MEMBER_LEFT) {
        dp_members_cleared(members, index);
        dp_members_state_set(members, index, DP_MEMBER_ALIVE, now, "linked", out);
    }
    dp_members_heard(members, index, now, out);
    dp_members_sync_send(members, index, false, out);
    return index;
}

void dp_members_link_down(dp_members *members, dp_time now, uint64_t wall_ms, const dp_peer *peer,
                          dp_link_cause cause, dp_out *out)
{
    (void)wall_ms;
    observe(members, now);
    const uint32_t index = dp_members_find(members, peer);
    if (index == DP_MEMBER_NONE || index == 0) {
        return;
    }
    dp_row *const row = &members->rows[index];
    if (cause == DP_LINK_REFUSED) {
        row->dials_failed++;
        dp_members_dial_later(members, row, now);
        dp_rowset_set(&members->urgent, index, true);
        return;
    }
    const bool was_linked = row->member.linked;
    row->member.linked = false;
    row->let_go = cause == DP_LINK_CLOSED;
    row->closing = false;
    dp_rowset_set(&members->linked, index, false);
    dp_members_dial_later(members, row, now);
    if (dp_members_is_guest(members, index)) {
        members->n_guests -= was_linked ? 1 : 0;
        dp_members_guest_gone(members, index, now, out);
        return;
    }
    if (!was_linked || !dp_members_watches(members, index)) {
        return;
    }
    dp_rowset_set(&members->urgent, index, true);
    if (cause == DP_LINK_RESET) {
        dp_members_accuse(members, index, DP_CAUSE_RESET, now, out);
    } else if (cause == DP_LINK_TIMEOUT) {
        dp_members_accuse(members, index, DP_CAUSE_SILENCE, now, out);
    }
}

/* ---- time ---- */

void dp_members_tick(dp_members *members, dp_time now, uint64_t wall_ms, dp_out *out)
{
    dp_assert(members->started);
    (void)wall_ms;
    if (members->leaving) {
        return;
    }
    observe(members, now);
    members->rows[0].member.heard = now;
    for (uint32_t k = 0; k < members->accused.count; k++) { /* concluding clears no row */
        dp_members_conclude(members, members->accused.at[k], now, out);
    }
    dp_members_greet(members, now, out);
    dp_members_probe_tick(members, now, out);
    dp_members_far_tick(members, now, out);
    dp_members_dial(members, now, out);
    dp_members_part(members, now, out);
    if (dp_time_reached(now, members->sync_at)) {
        uint32_t picked = 0;
        if (dp_members_pick(members, 0, 0, &picked, 1) == 1) {
            dp_members_compare_send(members, picked, out);
        }
        const uint64_t every_us = members->quiet ? DP_IDLE_SYNC_US : DP_SYNC_US;
        members->sync_at =
            dp_time_after(now, every_us * 3 / 4 + dp_rng_below(&members->rng, every_us / 2));
    }
}

dp_time dp_members_wake(dp_members *members)
{
    if (!members->started || members->leaving) {
        return DP_NEVER;
    }
    dp_time wake = dp_time_min(members->sync_at, dp_members_probe_wake(members));
    if (members->greets) {
        return members->rows[0].member.heard; /* at once */
    }

    for (uint32_t k = 0; k < members->accused.count; k++) {
        const uint32_t i = members->accused.at[k];
        if (members->rows[i].member.state == DP_MEMBER_SUSPECT) {
            const dp_time end = dp_members_suspicion_end(members, i);
            /* One that has ended and did not suffice waits for evidence, not for time. */
            if (end.us > members->rows[0].member.heard.us) {
                wake = dp_time_min(wake, end);
            }
        }
    }
    if (members->dial_stale) {
        dp_members_dial_find(members);
    }
    wake = dp_time_min(wake, dp_members_part_wake(members));
    if (!dp_members_large(members)) {
        wake = dp_time_min(wake, members->far_at);
    }
    return dp_time_min(wake, members->dial_next);
}

dp_status dp_members_message(dp_members *members, dp_time now, uint64_t wall_ms, uint32_t from,
                             dp_view bytes, dp_out *out)
{
    dp_assert(from < members->count);
    dp_assert(from > 0 && from < members->count);
    observe(members, now);
    dp_reader reader = dp_reader_of(bytes);
    const uint8_t type = dp_read_u8(&reader);
    const uint8_t version = dp_read_u8(&reader);

    if (reader.failed || bytes.size > DP_MESSAGE_MAX) {
        return DP_BADMSG;
    }
    if (version != DP_MSG_VERSION) {
        return DP_VERSION;
    }
    switch (type) {
    case DP_MSG_PING:
        return dp_members_ping(members, now, from, &reader, out);
    case DP_MSG_ACK:
        return dp_members_ack(members, now, from, &reader, out);
    case DP_MSG_PING_REQ:
        return dp_members_ping_req(members, now, from, &reader, out);
    case DP_MSG_STATEMENT: {
        const dp_status status = dp_members_statement(members, now, wall_ms, from, &reader, out);
        return status != DP_OK ? status : dp_reader_finish(&reader);
    }
    case DP_MSG_SYNC:
        return dp_members_sync(members, now, wall_ms, from, &reader, out);
    case DP_MSG_SUMMARY:
        return dp_members_far_message(members, now, from, bytes);
    default:
        return DP_BADMSG;
    }
}

dp_status dp_members_check(const dp_members *members, dp_why *why)
{
    if (members->count == 0 || members->count > members->capacity) {
        return dp_why_set(why, DP_CORRUPT, "members: %u rows of %u", members->count,
                          members->capacity);
    }
    if (members->rows[0].member.state != DP_MEMBER_ALIVE || members->rows[0].n_accusers > 0) {
        return dp_why_set(why, DP_CORRUPT, "members: this node does not hold itself alive");
    }
    uint32_t alive = 0;
    uint32_t guests = 0;
    for (uint32_t i = 0; i < members->count; i++) {
        const dp_row *const row = &members->rows[i];
        alive += dp_members_counts(members, row) ? 1 : 0;
        guests += row->member.linked && dp_members_is_guest(members, i) ? 1 : 0;
        if (dp_rowset_has(&members->linked, i) != row->member.linked ||
            dp_rowset_has(&members->accused, i) != (row->n_accusers > 0)) {
            return dp_why_set(why, DP_CORRUPT, "members: row %u is in the wrong sets", i);
        }
        if (dp_members_find(members, &row->member.peer) != i) {
            return dp_why_set(why, DP_CORRUPT, "members: row %u is not found under its key", i);
        }
        if (row->n_accusers > DP_ACCUSERS_MAX ||
            (row->member.state == DP_MEMBER_SUSPECT && row->n_accusers == 0)) {
            return dp_why_set(why, DP_CORRUPT, "members: row %u is suspect without accuser", i);
        }
        for (uint32_t k = 0; k < row->n_accusers; k++) {
            for (uint32_t l = 0; l < k; l++) {
                if (dp_peer_equal(&row->accusers[k].peer, &row->accusers[l].peer)) {
                    return dp_why_set(why, DP_CORRUPT, "members: row %u has an accuser twice", i);
                }
            }
        }
        if (row->removed && row->member.state != DP_MEMBER_LEFT) {
            return dp_why_set(why, DP_CORRUPT, "members: row %u is removed and not left", i);
        }
    }
    if (alive != members->n_alive || guests != members->n_guests) {
        return dp_why_set(why, DP_CORRUPT, "members: %u alive, %u counted; %u guests, %u counted",
                          alive, members->n_alive, guests, members->n_guests);
    }
    return DP_OK;
}
