/* The states of members: accusations, their end in death or refutation, and the statements that
 * carry them. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/core/msg.h"
#include "gossip/member/members_internal.h"

enum { SYNC_ANSWER_WANTED = 1 };
#define RESET_US (5 * DP_SECOND)

static bool is_newer(uint64_t incarnation, uint32_t revision, const dp_member *than)
{
    if (dp_broken(55)) { /* The last word counts, of whichever life. */
        return incarnation != than->incarnation || revision != than->revision;
    }
    return incarnation > than->incarnation ||
           (incarnation == than->incarnation && revision > than->revision);
}

static bool is_same(uint64_t incarnation, uint32_t revision, const dp_member *as)
{
    return incarnation == as->incarnation && revision == as->revision;
}

void dp_members_cleared(dp_members *members, uint32_t index)
{
    dp_row *const row = &members->rows[index];

    row->n_accusers = 0;
    row->accusation_bytes = 0;
    row->suspect_at = (dp_time){0};
    dp_rowset_set(&members->accused, index, false);
    dp_rowset_set(&members->urgent, index, false);
}

/* ---- sending ---- */

static void write_entry(dp_writer *writer, dp_view statement, dp_view credential)
{
    dp_write_view(writer, statement);
    dp_write_u16(writer, (uint16_t)credential.size);
    dp_write_view(writer, credential);
}

static dp_view credential_of(const dp_row *row)
{
    return row->statement_kind == DP_STATEMENT_ALIVE
               ? dp_view_of(row->member.credential, row->member.credential_bytes)
               : (dp_view){0};
}

void dp_members_flood(dp_members *members, dp_view statement, dp_view credential, uint32_t subject,
                      uint32_t from, dp_out *out)
{
    dp_writer writer = dp_out_writer(out, DP_MSG_STATEMENT,
                                     DP_MSG_HEAD_BYTES + statement.size + 2 + credential.size);
    dp_view message;

    write_entry(&writer, statement, credential);
    if (!dp_out_message(out, &writer, &message)) {
        return;
    }
    uint32_t picked[FLOOD_PEERS];
    const uint32_t n = dp_members_pick(
        members, from, subject, picked,
        dp_members_large(members) && !members->refuting ? FLOOD_PEERS_LARGE : FLOOD_PEERS);
    for (uint32_t i = 0; i < n; i++) {
        dp_out_send(out, &members->rows[picked[i]].member.peer, message);
    }
    /* The accused must hear of it to refute it. */
    if (subject != 0 && subject != from && members->rows[subject].member.linked) {
        dp_out_send(out, &members->rows[subject].member.peer, message);
    }
}

void dp_members_statement_send(const dp_members *members, const dp_row *row, bool accusation,
                               const dp_peer *to, dp_out *out)
{
    const uint32_t index = dp_members_find(members, to);
    const dp_view statement = accusation ? dp_view_of(row->accusation, row->accusation_bytes)
                                         : dp_view_of(row->statement, row->statement_bytes);
    const dp_view credential = accusation ? (dp_view){0} : credential_of(row);
    dp_view message;

    if (statement.size == 0 || index == DP_MEMBER_NONE || !members->rows[index].member.linked) {
        return;
    }
    dp_writer writer = dp_out_writer(out, DP_MSG_STATEMENT,
                                     DP_MSG_HEAD_BYTES + statement.size + 2 + credential.size);
    write_entry(&writer, statement, credential);
    if (dp_out_message(out, &writer, &message)) {
        dp_out_send(out, to, message);
    }
}

static void sign_own(dp_members *members, dp_statement_kind kind)
{
    dp_row *const own = &members->rows[0];
    dp_statement statement = {.kind = kind,
                              .subject = own->member.peer,
                              .incarnation = own->member.incarnation,
                              .revision = own->member.revision,
                              .author = own->member.peer};

    if (kind == DP_STATEMENT_ALIVE) {
        statement.n_addrs = own->member.n_addrs;
        memcpy(statement.addrs, own->member.addrs, sizeof statement.addrs);
    }
    own->statement_bytes =
        (uint16_t)dp_statement_sign(&statement, &members->crypto, &members->run, own->statement);
    own->statement_kind = kind;
}

void dp_members_own_alive(dp_members *members)
{
    sign_own(members, DP_STATEMENT_ALIVE);
}

void dp_members_believed(dp_members *members, dp_member_state state, uint64_t incarnation,
                         uint32_t revision, dp_out *out)
{
    dp_row *const own = &members->rows[0];

    if ((state != DP_MEMBER_SUSPECT && state != DP_MEMBER_DEAD) || members->leaving ||
        !is_same(incarnation, revision, &own->member) || own->member.revision == UINT32_MAX) {
        return; /* of another revision: refuted already, or invented */
    }
    own->member.revision++;
    dp_members_own_alive(members);
    if (members->lhm < DP_LHM_MAX) {
        members->lhm++; /* we were too slow for somebody */
    }
    members->refuting = true;
    dp_members_flood(members, dp_view_of(own->statement, own->statement_bytes), credential_of(own),
                     0, 0, out);
    members->refuting = false;
}

void dp_members_leave(dp_members *members, dp_time now, uint64_t wall_ms, bool for_good,
                      dp_out *out)
{
    (void)now;
    (void)wall_ms;
    dp_row *const own = &members->rows[0];
    dp_view message;

    if (members->leaving || own->member.revision == UINT32_MAX) {
        return;
    }
    members->leaving = true;
    own->member.revision++;
    sign_own(members, for_good ? DP_STATEMENT_LEFT : DP_STATEMENT_DOWN);
    dp_writer writer =
        dp_out_writer(out, DP_MSG_STATEMENT, DP_MSG_HEAD_BYTES + DP_STATEMENT_BYTES_MAX + 2);
    write_entry(&writer, dp_view_of(own->statement, own->statement_bytes), (dp_view){0});
    if (dp_out_message(out, &writer, &message)) {
        dp_out_send_all(out, message);
    }
}

/* ---- accusations ---- */

static uint32_t find_accuser(const dp_row *row, const dp_peer *peer)
{
    uint32_t i = 0;

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

/* Fresh word from it over its own link weighs more than what others say. */
static bool heard_lately(const dp_members *members, const dp_row *row, dp_time now)
{
    return row->member.linked && row->member.heard.us != 0 &&
           dp_time_between(row->member.heard, now) < 2 * members->period_us;
}

/* False when the list is full or holds it already without anything to add. */
static bool add_accuser(dp_members *members, uint32_t index, const dp_peer *peer, bool reset,
                        dp_time now)
{
    dp_row *const row = &members->rows[index];
    const uint32_t at = find_accuser(row, peer);

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
    if (members->n_accusals == UINT32_MAX) {
        members->n_accusals = ACCUSALS_PER_WINDOW;
    }
    return true;
}

/* Accusers that a death needs (SAFETY D3): two from four nodes up, else the own evidence alone. */
static uint32_t accusers_needed(const dp_members *members)
{
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
    const bool again = find_accuser(row, self) < row->n_accusers;

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
    if (!add_accuser(members, index, self, cause == DP_CAUSE_RESET, now)) {
        if (row->accusation_bytes > 0 && row->n_accusers < accusers_needed(members)) {
            /* Who came later, or lost the first one, may second it. */
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
    const uint32_t others = n > 2 ? n - 2 : 0; /* who might confirm */
    const uint32_t k = others < CONFIRMATIONS ? others : CONFIRMATIONS;
    const uint32_t confirmed = row->n_accusers > 1 ? row->n_accusers - 1 : 0;
    const uint32_t c = confirmed < CONFIRMATIONS ? confirmed : CONFIRMATIONS;
    uint32_t bits = 0;

    while (n >> bits > 1) {
        bits++;
    }
    /* log10(n) is about 0.301 * log2(n): 77 / 256. */
    const uint64_t scale = bits * 77 > 256 ? bits * 77 : 256;
    const uint64_t least_us = 2 * members->period_us * scale / 256;
    const uint64_t most_us = 6 * least_us;

    return dp_time_after(row->suspect_at, most_us - (most_us - least_us) * quotient[k][c] / 256);
}

static void die(dp_members *members, uint32_t index, bool reset, dp_time now, dp_out *out)
{
    dp_row *const row = &members->rows[index];

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
    const uint32_t own = find_accuser(row, &members->rows[0].member.peer);
    const bool own_accuses = own < row->n_accusers;
    const uint32_t needed = accusers_needed(members);

    if (row->member.state != DP_MEMBER_SUSPECT || !dp_time_reached(now, members->quiet_until)) {
        return;
    }
    if (own_accuses && row->accusers[own].reset && count_resets(row) >= needed) {
        die(members, index, true, now, out);
        return;
    }
    if (!dp_time_reached(now, dp_members_suspicion_end(members, index))) {
        return;
    }
    if (own_accuses ? row->n_accusers >= needed
                    : !dp_members_watches(members, index) && row->n_accusers > needed) {
        die(members, index, false, now, out);
    }
}

/* ---- statements ---- */

static dp_status accused(dp_members *members, dp_time now, uint32_t from,
                         const dp_statement *statement, dp_view bytes, uint32_t index, dp_out *out)
{
    const uint32_t author = dp_members_find(members, &statement->author);

    if (author == DP_MEMBER_NONE || author == 0 || members->rows[author].removed ||
        members->rows[author].member.credential_bytes == 0 ||
        dp_members_is_guest(members, author) || dp_members_is_guest(members, index)) {
        return DP_DENIED;
    }
    dp_row *const row = &members->rows[index];
    if (!is_same(statement->incarnation, statement->revision, &row->member)) {
        if (!is_newer(statement->incarnation, statement->revision, &row->member)) {
            dp_members_statement_send(members, row, false, &members->rows[from].member.peer, out);
        }
        return DP_OK;
    }
    if (row->member.state == DP_MEMBER_DEAD) {
        if (statement->kind == DP_STATEMENT_SUSPECT) { /* it may lack a second accuser */
            dp_members_statement_send(members, row, true, &statement->author, out);
        }
        return DP_OK;
    }
    if (row->down || row->member.state == DP_MEMBER_UNKNOWN) {
        return DP_OK;
    }
    const bool reset = statement->cause == DP_CAUSE_RESET;
    const uint32_t known = find_accuser(row, &statement->author);
    const bool news = known == row->n_accusers || (reset && !row->accusers[known].reset);
    const bool final = statement->kind == DP_STATEMENT_DEAD;
    if (!news && !final) {
        return DP_OK;
    }
    if (!dp_statement_verify(statement, bytes, &members->crypto, &members->run)) {
        return DP_BADSIG;
    }
    if (add_accuser(members, index, &statement->author, reset, now)) {
        dp_rowset_set(&members->urgent, index, true);
        if (!dp_members_large(members) || row->n_accusers <= 1 + CONFIRMATIONS) {
            dp_members_flood(members, bytes, (dp_view){0}, index, from, out);
        }
    }
    if (row->n_accusers > 0 && !heard_lately(members, row, now)) {
        dp_members_state_set(members, index, DP_MEMBER_SUSPECT, now, "accused", out);
    }
    if (final && row->member.state == DP_MEMBER_SUSPECT &&
        find_accuser(row, &members->rows[0].member.peer) < row->n_accusers &&
        row->n_accusers >= accusers_needed(members) && dp_time_reached(now, members->quiet_until)) {
        die(members, index, reset, now, out); /* the other has waited already */
        return DP_OK;
    }
    dp_members_conclude(members, index, now, out);
    return DP_OK;
}

/* An announced list replaces what we had, an empty one does not. Whoever speaks again can be
 * reached again; but not so often that its word has everybody dial an address of its choice all the
 * time. */
static void take_addrs(dp_members *members, dp_row *row, const dp_statement *statement, bool guest,
                       dp_time now)
{
    if (statement->n_addrs == 0 || guest) {
        return; /* A guest's are taken when it is a member. */
    }
    row->member.n_addrs = statement->n_addrs;
    memcpy(row->member.addrs, statement->addrs, sizeof row->member.addrs);
    members->dial_stale = true;
    if (row->reset_at.us != 0 && dp_time_between(row->reset_at, now) < RESET_US) {
        return;
    }
    row->reset_at = now;
    row->dials_failed = 0;
    if (!row->dialling) {
        row->dial_at = dp_time_min(row->dial_at, dp_time_after(now, DP_DIAL_US_MIN));
    }
}

/* Is this sender's word about this subject taken? Of a guest everybody hears on its own link alone,
 * and it tells of itself alone. */
static bool may_tell(const dp_members *members, uint32_t from, uint32_t subject)
{
    if (from == subject) {
        return true;
    }
    return !dp_members_is_guest(members, from) &&
           (subject != DP_MEMBER_NONE ? !dp_members_is_guest(members, subject)
                                      : !members->rows[0].member.in_roster);
}

/* ALIVE, LEFT or DOWN by the subject. index may be DP_MEMBER_NONE. */
static dp_status said(dp_members *members, dp_time now, uint64_t wall_ms, uint32_t from,
                      const dp_statement *statement, dp_view bytes, dp_view credential,
                      uint32_t index, dp_out *out)
{
    dp_admitted grants = {0};

    if (index != DP_MEMBER_NONE &&
        (members->rows[index].removed ||
         !is_newer(statement->incarnation, statement->revision, &members->rows[index].member))) {
        return DP_OK;
    }
    const bool stranger =
        index == DP_MEMBER_NONE || members->rows[index].member.credential_bytes == 0;
    if (stranger && (statement->kind != DP_STATEMENT_ALIVE || credential.size == 0 ||
                     !members->admit(members->admit_context, &statement->subject, credential,
                                     wall_ms, &grants))) {
        return DP_DENIED;
    }
    if (!dp_statement_verify(statement, bytes, &members->crypto, &members->run)) {
        return DP_BADSIG;
    }
    if (stranger) {
        index = dp_members_add(members, &statement->subject, credential, grants.caps, NULL, 0);
        if (index == DP_MEMBER_NONE) {
            return DP_TOOBIG;
        }
    }
    dp_row *const row = &members->rows[index];
    const bool guest = dp_members_is_guest(members, index);
    const bool reborn =
        row->member.incarnation != 0 && statement->incarnation > row->member.incarnation;
    if (statement->incarnation != row->member.incarnation) {
        row->member.life_since = now;
    }
    row->member.incarnation = statement->incarnation;
    row->member.revision = statement->revision;
    memcpy(row->statement, bytes.data, bytes.size);
    row->statement_bytes = (uint16_t)bytes.size;
    row->statement_kind = statement->kind;
    dp_members_cleared(members, index);
    row->down = statement->kind != DP_STATEMENT_ALIVE;
    if (statement->kind == DP_STATEMENT_ALIVE) {
        take_addrs(members, row, statement, guest, now);
        dp_members_state_set(members, index, DP_MEMBER_ALIVE, now, reborn ? "restarted" : "says so",
                             out);
    } else if (statement->kind == DP_STATEMENT_LEFT) {
        dp_members_state_set(members, index, DP_MEMBER_LEFT, now, "left", out);
    } else {
        dp_members_state_set(members, index, DP_MEMBER_DEAD, now, "stopped", out);
    }
    /* What a list brings of third nodes has been flooded by those that learned it first. */
    if (guest) {
        return DP_OK;
    }
    if (!dp_members_large(members) || !members->reading_list || index == from) {
        members->refuting =
            statement->revision > 0; /* it must reach whoever believes the accusers */
        dp_members_flood(members, bytes, credential_of(row), index, from, out);
        members->refuting = false;
    }
    return DP_OK;
}

dp_status dp_members_statement(dp_members *members, dp_time now, uint64_t wall_ms, uint32_t from,
                               dp_reader *reader, dp_out *out)
{
    dp_statement statement;
    dp_view bytes;

    DP_TRY(dp_statement_read(reader, &statement, &bytes));
    const uint16_t credential_size = dp_read_u16(reader);
    const dp_view credential = dp_read_view(reader, credential_size);
    if (reader->failed || credential_size > DP_CREDENTIAL_MAX) {
        return DP_BADMSG;
    }
    const bool accusation =
        statement.kind == DP_STATEMENT_SUSPECT || statement.kind == DP_STATEMENT_DEAD;
    const uint32_t index = dp_members_find(members, &statement.subject);
    if (!may_tell(members, from, index)) {
        return DP_OK; /* An honest newcomer passes on what it hears, as everybody does. */
    }
    if (index == 0) {
        const dp_member *const own = &members->rows[0].member;
        if (!accusation) {
            if (statement.incarnation > own->incarnation) {
                dp_out_note(out, (dp_note){.code = DP_NOTE_REJECTED,
                                           .peer = members->rows[from].member.peer,
                                           .a = statement.incarnation,
                                           .cause = "another process uses the key of this node"});
            }
            return DP_OK;
        }
        if (!is_same(statement.incarnation, statement.revision, own)) {
            return DP_OK;
        }
        if (!dp_statement_verify(&statement, bytes, &members->crypto, &members->run)) {
            return DP_BADSIG;
        }
        dp_members_believed(members, DP_MEMBER_SUSPECT, statement.incarnation, statement.revision,
                            out);
        return DP_OK;
    }
    if (accusation) {
        return index == DP_MEMBER_NONE ? DP_DENIED
                                       : accused(members, now, from, &statement, bytes, index, out);
    }
    return said(members, now, wall_ms, from, &statement, bytes, credential, index, out);
}

/* ---- anti-entropy: u8 flags | u16 count | entries ---- */

void dp_members_sync_send(dp_members *members, uint32_t to, bool answer_wanted, dp_out *out)
{
    enum { ENTRY_MAX = DP_STATEMENT_BYTES_MAX + 2 + DP_CREDENTIAL_MAX };
    _Static_assert(DP_MSG_HEAD_BYTES + 3 + DP_SYNC_ENTRIES_MAX * ENTRY_MAX <= DP_MESSAGE_MAX,
                   "a SYNC fits in a message");
    dp_writer writer =
        dp_out_writer(out, DP_MSG_SYNC, DP_MSG_HEAD_BYTES + 3 + DP_SYNC_ENTRIES_MAX * ENTRY_MAX);
    dp_view message;
    uint32_t count = 0;

    dp_write_u8(&writer, answer_wanted ? SYNC_ANSWER_WANTED : 0);
    const size_t count_at = writer.size;
    dp_write_u16(&writer, 0);
    /* The own row always, then on from where the last SYNC stopped. */
    for (uint32_t k = 0; k < members->count && count + 2 <= DP_SYNC_ENTRIES_MAX; k++) {
        const uint32_t index = k == 0 ? 0 : 1 + members->sync_row % (members->count - 1);
        members->sync_row += k != 0;
        const dp_row *const row = &members->rows[index];
        if (index == to || row->removed) {
            continue;
        }
        if (row->statement_bytes > 0) {
            write_entry(&writer, dp_view_of(row->statement, row->statement_bytes),
                        credential_of(row));
            count++;
        }
        if (row->member.state == DP_MEMBER_DEAD && row->accusation_bytes > 0) {
            write_entry(&writer, dp_view_of(row->accusation, row->accusation_bytes), (dp_view){0});
            count++;
        }
    }
    if (writer.full) {
        return;
    }
    writer.data[count_at] = (uint8_t)count;
    _Static_assert(DP_SYNC_ENTRIES_MAX < 256, "the count fits in its low byte");
    if (dp_out_message(out, &writer, &message)) {
        dp_out_send(out, &members->rows[to].member.peer, message);
    }
}

dp_status dp_members_sync(dp_members *members, dp_time now, uint64_t wall_ms, uint32_t from,
                          dp_reader *reader, dp_out *out)
{
    const uint8_t flags = dp_read_u8(reader);
    const uint16_t count = dp_read_u16(reader);

    if (reader->failed || flags > SYNC_ANSWER_WANTED || count > DP_SYNC_ENTRIES_MAX) {
        return DP_BADMSG;
    }
    members->reading_list = true;
    for (uint32_t i = 0; i < count; i++) {
        /* One entry that we cannot use does not spoil the others; a shape that cannot be read
         * does. */
        if (dp_members_statement(members, now, wall_ms, from, reader, out) == DP_BADMSG) {
            members->reading_list = false;
            return DP_BADMSG;
        }
    }
    members->reading_list = false;
    DP_TRY(dp_reader_finish(reader));
    if (flags == SYNC_ANSWER_WANTED) {
        dp_members_sync_send(members, from, false, out);
    }
    return DP_OK;
}
