/* Statements that a node sends: of itself, and those of others that it passes on. */
#include <string.h>

#include "base/assert.h"
#include "gossip/member/members_internal.h"

static void write_entry(dp_writer *writer, dp_view statement, dp_view credential)
{
    dp_write_view(writer, statement);
    dp_write_u16(writer, (uint16_t)credential.size);
    dp_write_view(writer, credential);
}

dp_view dp_members_credential(const dp_row *row)
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

    dp_assert(subject < members->count);
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
    const dp_view credential = accusation ? (dp_view){0} : dp_members_credential(row);
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

/* The nonce is new for each comparison, so nobody can prepare rows that cancel each other. */
uint64_t dp_members_table_sum(const dp_members *members, uint64_t nonce)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < members->count; i++) {
        const dp_row *const row = &members->rows[i];
        const dp_member *const member = &row->member;
        if (row->removed || row->statement_bytes == 0 || dp_members_is_guest(members, i)) {
            continue;
        }
        uint8_t bytes[8 + DP_PUBLIC_KEY_BYTES + 8 + 4 + 2];
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        dp_write_u64(&writer, nonce);
        dp_write_bytes(&writer, member->peer.bytes, sizeof member->peer.bytes);
        dp_write_u64(&writer, member->incarnation);
        dp_write_u32(&writer, member->revision);
        dp_write_u8(&writer, (uint8_t)row->statement_kind);
        dp_write_u8(&writer, member->state == DP_MEMBER_DEAD ? 1 : 0);
        const dp_hash hash = dp_hash_of("dpnode/table/1", dp_view_of(bytes, writer.size));
        dp_reader reader = dp_reader_of(dp_view_of(hash.bytes, sizeof hash.bytes));
        sum += dp_read_u64(&reader);
    }
    return sum;
}

void dp_members_compare_send(dp_members *members, uint32_t to, dp_out *out)
{
    const uint64_t nonce = dp_rng_next(&members->rng);
    dp_writer writer = dp_out_writer(out, DP_MSG_SYNC, DP_MSG_HEAD_BYTES + 3 + 16);
    dp_view message;

    dp_assert(to > 0 && to < members->count);
    dp_write_u8(&writer, DP_SYNC_COMPARE);
    dp_write_u16(&writer, 0);
    dp_write_u64(&writer, nonce);
    dp_write_u64(&writer, dp_members_table_sum(members, nonce));
    if (dp_out_message(out, &writer, &message)) {
        dp_out_send(out, &members->rows[to].member.peer, message);
    }
}

void dp_members_sync_send(dp_members *members, uint32_t to, bool answer_wanted, dp_out *out)
{
    dp_assert(to < members->count);
    enum { ENTRY_MAX = DP_STATEMENT_BYTES_MAX + 2 + DP_CREDENTIAL_MAX };
    _Static_assert(DP_MSG_HEAD_BYTES + 3 + DP_SYNC_ENTRIES_MAX * ENTRY_MAX <= DP_MESSAGE_MAX,
                   "a SYNC fits in a message");
    dp_writer writer =
        dp_out_writer(out, DP_MSG_SYNC, DP_MSG_HEAD_BYTES + 3 + DP_SYNC_ENTRIES_MAX * ENTRY_MAX);
    dp_view message;
    uint32_t count = 0;

    dp_write_u8(&writer, answer_wanted ? DP_SYNC_ANSWER_WANTED : DP_SYNC_LIST);
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
                        dp_members_credential(row));
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

void dp_members_tell_own(dp_members *members, dp_out *out)
{
    const dp_row *const own = &members->rows[0];

    if (own->statement_bytes > 0) {
        dp_members_flood(members, dp_view_of(own->statement, own->statement_bytes),
                         dp_view_of(own->member.credential, own->member.credential_bytes), 0, 0,
                         out);
    }
}
