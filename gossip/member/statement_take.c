/* Statements that arrive: takes the newer one, changes the member's state by it, and forwards
 * it. */
#include <string.h>

#include "base/assert.h"
#include "gossip/member/members_internal.h"

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
    dp_members_flood(members, dp_view_of(own->statement, own->statement_bytes),
                     dp_members_credential(own), 0, 0, out);
    members->refuting = false;
}

/* A fresh message on its own link weighs more than the statements of others. */
static bool heard_lately(const dp_members *members, const dp_row *row, dp_time now)
{
    return row->member.linked && row->member.heard.us != 0 &&
           dp_time_between(row->member.heard, now) < 2 * members->period_us;
}

static dp_status accused(dp_members *members, dp_time now, uint32_t from,
                         const dp_statement *statement, dp_view bytes, uint32_t index, dp_out *out)
{
    const uint32_t author = dp_members_find(members, &statement->author);

    dp_assert(index < members->count && from < members->count);
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
    const uint32_t known = dp_members_find_accuser(row, &statement->author);
    const bool news = known == row->n_accusers || (reset && !row->accusers[known].reset);
    const bool final = statement->kind == DP_STATEMENT_DEAD;
    if (!news && !final) {
        return DP_OK;
    }
    if (!dp_statement_verify(statement, bytes, &members->crypto, &members->run)) {
        return DP_BADSIG;
    }
    if (dp_members_add_accuser(members, index, &statement->author, reset, now)) {
        dp_rowset_set(&members->urgent, index, true);
        if (!dp_members_large(members) || row->n_accusers <= 1 + CONFIRMATIONS) {
            dp_members_flood(members, bytes, (dp_view){0}, index, from, out);
        }
    }
    if (row->n_accusers > 0 && !heard_lately(members, row, now)) {
        dp_members_state_set(members, index, DP_MEMBER_SUSPECT, now, "accused", out);
    }
    if (final && row->member.state == DP_MEMBER_SUSPECT &&
        dp_members_find_accuser(row, &members->rows[0].member.peer) < row->n_accusers &&
        row->n_accusers >= dp_members_accusers_needed(members) &&
        dp_time_reached(now, members->quiet_until)) {
        dp_members_die(members, index, reset, now, out); /* the other has waited already */
        return DP_OK;
    }
    dp_members_conclude(members, index, now, out);
    return DP_OK;
}

/* Takes the addresses in a statement; an empty list leaves the known ones. A peer that speaks again
 * is likely reachable again, so its dials begin anew; but at most once in RESET_US, so that its
 * statements cannot make all nodes dial an address of its choice all the time. */
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

    dp_assert(from < members->count);
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
        /* It speaks to nodes that it is linked to now, and they watch it. Probes from here would
         * fail through helpers that have no link to it either. */
        row->let_go = row->let_go || !row->member.linked;
        dp_members_state_set(members, index, DP_MEMBER_ALIVE, now, reborn ? "restarted" : "says so",
                             out);
    } else if (statement->kind == DP_STATEMENT_LEFT) {
        dp_members_state_set(members, index, DP_MEMBER_LEFT, now, "left", out);
    } else {
        dp_members_state_set(members, index, DP_MEMBER_DEAD, now, "stopped", out);
    }
    /* In a large run, does not flood a statement about a third node that came in a list: the nodes
     * that learned it first have flooded it. */
    if (guest) {
        return DP_OK;
    }
    if (!dp_members_large(members) || !members->reading_list || index == from) {
        members->refuting =
            statement->revision > 0; /* it must reach every node that believes the accusers */
        dp_members_flood(members, bytes, dp_members_credential(row), index, from, out);
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
        /* An honest guest forwards the statements that it hears, as every node does. */
        return DP_OK;
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

static dp_status compared(dp_members *members, uint32_t from, dp_reader *reader, dp_out *out)
{
    const uint64_t nonce = dp_read_u64(reader);
    const uint64_t sum = dp_read_u64(reader);

    DP_TRY(dp_reader_finish(reader));
    if (dp_members_table_sum(members, nonce) != sum) {
        dp_members_sync_send(members, from, true, out);
    }
    return DP_OK;
}

dp_status dp_members_sync(dp_members *members, dp_time now, uint64_t wall_ms, uint32_t from,
                          dp_reader *reader, dp_out *out)
{
    const uint8_t kind = dp_read_u8(reader);
    const uint16_t count = dp_read_u16(reader);

    if (reader->failed || kind > DP_SYNC_COMPARE || count > DP_SYNC_ENTRIES_MAX ||
        (kind == DP_SYNC_COMPARE && count > 0)) {
        return DP_BADMSG;
    }
    if (kind == DP_SYNC_COMPARE) {
        return compared(members, from, reader, out);
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
    if (kind == DP_SYNC_ANSWER_WANTED) {
        dp_members_sync_send(members, from, false, out);
    }
    return DP_OK;
}
