/* Suspicion of members: accusations, and their end in death or refutation. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/core/msg.h"
#include "gossip/member/members_internal.h"

void dp_members_cleared(dp_members *members, uint32_t index)
{
    dp_row *const row = &members->rows[index];

    dp_assert(index > 0 && index < members->count);
    row->n_accusers = 0;
    row->accusation_bytes = 0;
    row->suspect_at = (dp_time){0};
    dp_rowset_set(&members->accused, index, false);
    dp_rowset_set(&members->urgent, index, false);
}

/* ---- accusations ---- */

uint32_t dp_members_find_accuser(const dp_row *row, const dp_peer *peer)
{
    uint32_t i = 0;

    dp_assert(row->n_accusers <= DP_ACCUSERS_MAX);
    while (i < row->n_accusers && !dp_peer_equal(&row->accusers[i].peer, peer)) {
        i++;
    }
    return i;
}

static uint32_t count_resets(const dp_row *row)
{
    uint32_t resets = 0;

    for (uint32_t i = 0; i < row->n_accusers; i++) {
        resets += row->accusers[i].reset;
    }
    return resets;
}

/* False when the list is full or holds it already without anything to add. */
bool dp_members_add_accuser(dp_members *members, uint32_t index, const dp_peer *peer, bool reset,
                            dp_time now)
{
    dp_row *const row = &members->rows[index];
    const uint32_t at = dp_members_find_accuser(row, peer);

    dp_assert(index < members->count);
    if (at < row->n_accusers) {
        if (!reset || row->accusers[at].reset) {
            return false;
        }
        row->accusers[at].reset = true;
        return true;
    }
    if (row->n_accusers == DP_ACCUSERS_MAX) {
        return false;
    }
    if (row->n_accusers == 0) {
        row->suspect_at = now;
        dp_rowset_set(&members->accused, index, true);
    }
    row->accusers[row->n_accusers++] = (dp_accuser){.peer = *peer, .reset = reset};
    return true;
}

/* At most ACCUSALS_PER_WINDOW in STORM_WINDOW_US: a node that finds everybody silent is probably
 * cut off itself. */
static bool storm_allows(dp_members *members, dp_time now)
{
    const uint32_t slot = members->n_accusals % ACCUSALS_PER_WINDOW;

    if (members->n_accusals >= ACCUSALS_PER_WINDOW &&
        dp_time_between(members->accusals[slot], now) < STORM_WINDOW_US) {
        return false;
    }
    members->accusals[slot] = now;
    members->n_accusals++;
    return true;
}

/* Accusers that a death needs (SAFETY D3): two from four nodes up, else the own evidence alone. */
uint32_t dp_members_accusers_needed(const dp_members *members)
{
    dp_assert(members->count > 0);
    if (dp_broken(48)) {
        return (dp_members_alive(members) + 2) / 4 > 1 ? 2 : 1;
    }
    return dp_members_alive(members) >= 4 ? 2 : 1;
}

static bool sign_accusation(dp_members *members, dp_row *row, dp_statement_kind kind,
                            dp_statement_cause cause)
{
    const dp_statement statement = {.kind = kind,
                                    .cause = cause,
                                    .subject = row->member.peer,
                                    .incarnation = row->member.incarnation,
                                    .revision = row->member.revision,
                                    .author = members->rows[0].member.peer};

    uint8_t bytes[DP_STATEMENT_BYTES_MAX];
    const size_t size = dp_statement_sign(&statement, &members->crypto, &members->run, bytes);
    dp_assert(size <= sizeof row->accusation); /* It has no addresses. */
    memcpy(row->accusation, bytes, size);
    row->accusation_bytes = (uint16_t)size;
    return row->accusation_bytes > 0;
}

void dp_members_accuse(dp_members *members, uint32_t index, dp_statement_cause cause, dp_time now,
                       dp_out *out)
{
    dp_row *const row = &members->rows[index];
    const dp_peer *const self = &members->rows[0].member.peer;
    const bool again = dp_members_find_accuser(row, self) < row->n_accusers;

    dp_assert(index > 0 && index < members->count);
    if (dp_members_is_guest(members, index)) {
        dp_members_guest_gone(members, index, now, out);
        return;
    }
    if (members->leaving || !dp_time_reached(now, members->quiet_until)) {
        return;
    }
    if (!again && !storm_allows(members, now)) {
        return;
    }
    if (!dp_members_add_accuser(members, index, self, cause == DP_CAUSE_RESET, now)) {
        if (row->accusation_bytes > 0 && row->n_accusers < dp_members_accusers_needed(members)) {
            /* A node that came later, or lost the first copy, may second the accusation. */
            dp_members_flood(members, dp_view_of(row->accusation, row->accusation_bytes),
                             (dp_view){0}, index, index, out);
        }
        dp_members_conclude(members, index, now, out);
        return;
    }
    dp_members_state_set(members, index, DP_MEMBER_SUSPECT, now,
                         cause == DP_CAUSE_RESET ? "connection broken" : "silent", out);
    if (sign_accusation(members, row, DP_STATEMENT_SUSPECT, cause)) {
        dp_members_flood(members, dp_view_of(row->accusation, row->accusation_bytes), (dp_view){0},
                         index, index, out);
        if (row->member.linked) {
            dp_members_statement_send(members, row, true, &row->member.peer, out);
        }
    }
    dp_members_conclude(members, index, now, out);
}

/* Length of a suspicion: at most six times the least, shortened by each accuser beyond the first as
 * max - (max - min) * log(c + 1) / log(k + 1) (Lifeguard, section IV-B), the quotient in 1/256 by
 * table. */
dp_time dp_members_suspicion_end(const dp_members *members, uint32_t index)
{
    static const uint16_t quotient[CONFIRMATIONS + 1][CONFIRMATIONS + 1] = {
        {256, 256, 256, 256}, {0, 256, 256, 256}, {0, 162, 256, 256}, {0, 128, 203, 256}};
    const dp_row *const row = &members->rows[index];
    const uint32_t n = dp_members_alive(members);
    const uint32_t others = n > 2 ? n - 2 : 0; /* nodes that might confirm */
    const uint32_t k = others < CONFIRMATIONS ? others : CONFIRMATIONS;
    const uint32_t confirmed = row->n_accusers > 1 ? row->n_accusers - 1 : 0;
    const uint32_t c = confirmed < CONFIRMATIONS ? confirmed : CONFIRMATIONS;
    uint32_t bits = 0;

    dp_assert(index > 0 && index < members->count);
    while (n >> bits > 1) {
        bits++;
    }
    /* log10(n) is about 0.301 * log2(n): 77 / 256. */
    const uint64_t scale = bits * 77 > 256 ? bits * 77 : 256;
    const uint64_t least_us = 2 * members->period_us * scale / 256;
    const uint64_t most_us = 6 * least_us;

    return dp_time_after(row->suspect_at, most_us - (most_us - least_us) * quotient[k][c] / 256);
}

void dp_members_die(dp_members *members, uint32_t index, bool reset, dp_time now, dp_out *out)
{
    dp_row *const row = &members->rows[index];

    dp_assert(index > 0 && index < members->count);
    dp_members_state_set(members, index, DP_MEMBER_DEAD, now,
                         reset ? "connection broken" : "silent", out);
    if (sign_accusation(members, row, DP_STATEMENT_DEAD,
                        reset ? DP_CAUSE_RESET : DP_CAUSE_SILENCE)) {
        dp_members_flood(members, dp_view_of(row->accusation, row->accusation_bytes), (dp_view){0},
                         index, index, out);
    }
}

void dp_members_conclude(dp_members *members, uint32_t index, dp_time now, dp_out *out)
{
    dp_row *const row = &members->rows[index];
    const uint32_t own = dp_members_find_accuser(row, &members->rows[0].member.peer);
    const bool own_accuses = own < row->n_accusers;
    const uint32_t needed = dp_members_accusers_needed(members);

    dp_assert(index > 0 && index < members->count);
    if (row->member.state != DP_MEMBER_SUSPECT || !dp_time_reached(now, members->quiet_until)) {
        return;
    }
    if (own_accuses && row->accusers[own].reset && count_resets(row) >= needed) {
        dp_members_die(members, index, true, now, out);
        return;
    }
    if (!dp_time_reached(now, dp_members_suspicion_end(members, index))) {
        return;
    }
    if (own_accuses ? row->n_accusers >= needed
                    : !dp_members_watches(members, index) && row->n_accusers > needed) {
        dp_members_die(members, index, false, now, out);
    }
}

void dp_members_heard(dp_members *members, uint32_t index, dp_time now, dp_out *out)
{
    dp_assert(index < members->count);
    dp_row *const row = &members->rows[index];

    row->member.heard = now;
    if (row->member.state == DP_MEMBER_ALIVE || row->down) {
        return;
    }
    if (row->member.state == DP_MEMBER_SUSPECT || row->member.state == DP_MEMBER_DEAD) {
        /* Others may hold it dead still; shown our old accusation, it refutes it to everybody. */
        if (row->member.state == DP_MEMBER_DEAD) {
            dp_members_statement_send(members, row, true, &row->member.peer, out);
        }
        dp_members_cleared(members, index);
        dp_members_state_set(members, index, DP_MEMBER_ALIVE, now, "heard", out);
    }
}
