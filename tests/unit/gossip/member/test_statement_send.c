/* The statements that a node sends: its own, those of others that it passes on, and the comparison
 * of tables. */
#include "gossip/member/members_internal.h"
#include "gossip/member/statement.h"
#include "tests/unit/gossip/kit/mesh.h"

/* Node 0 of n that are all linked, with statements of all. */
static dp_members *begin(mesh **m, uint32_t n)
{
    *m = mesh_of(n, 11);
    mesh_join_all(*m);
    mesh_run_for(*m, 2 * DP_SECOND);
    dp_members *const members = (*m)->nodes[0].members;
    for (uint32_t i = 0; i < n; i++) {
        CHECK(members->rows[i].statement_bytes > 0);
        CHECK(members->rows[i].statement_kind == DP_STATEMENT_ALIVE);
    }
    dp_out_begin(&(*m)->out, (*m)->actions);
    return members;
}

static const dp_action *only_action(const mesh *m)
{
    CHECK(m->actions->count == 1 && m->actions->items[0].type == DP_DO_SEND);
    return &m->actions->items[0];
}

/* The entry at the beginning of these bytes; the credential that goes with it. */
static dp_statement entry_of(dp_reader *reader, dp_view *credential)
{
    dp_statement statement = {.revision = 0};
    dp_view bytes;

    CHECK_OK(dp_statement_read(reader, &statement, &bytes));
    *credential = dp_read_view(reader, dp_read_u16(reader));
    CHECK(!reader->failed);
    return statement;
}

static dp_statement sent_in(const dp_action *send, dp_view *credential)
{
    const dp_view bytes = send->u.send.bytes;
    dp_reader reader = dp_reader_of(bytes);

    CHECK(dp_read_u8(&reader) == DP_MSG_STATEMENT && dp_read_u8(&reader) == DP_MSG_VERSION);
    const dp_statement statement = entry_of(&reader, credential);
    CHECK(dp_reader_left(&reader) == 0);
    return statement;
}

static bool is_sent_to(const mesh *m, uint32_t index)
{
    const dp_peer *peer = &m->nodes[0].members->rows[index].member.peer;
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->actions->count; i++) {
        n += m->actions->items[i].type == DP_DO_SEND &&
             dp_peer_equal(&m->actions->items[i].u.send.peer, peer);
    }
    CHECK(n <= 1);
    return n == 1;
}

/* It has to hear of it to refute it; the one that said it does not. */
static void the_subject_of_a_statement_hears_of_it_too_unless_it_comes_from_it(void **state)
{
    (void)state;
    mesh *m = NULL;
    dp_members *const members = begin(&m, 4);
    const dp_row *row = &members->rows[2];
    const dp_view statement = dp_view_of(row->statement, row->statement_bytes);
    const dp_view credential = dp_members_credential(row);
    for (uint32_t what = 0; what < 4; what++) {
        dp_out_begin(&m->out, m->actions);
        members->rows[2].member.linked = what != 3;
        dp_members_flood(members, statement, credential, what == 2 ? 0 : 2, what == 1 ? 2 : 1,
                         &m->out);
        CHECK(is_sent_to(m, 2) == (what == 0 || what == 2));
        CHECK(is_sent_to(m, 1) == (what == 1));
        CHECK(is_sent_to(m, 3));
        dp_view told;
        const dp_statement read = sent_in(&m->actions->items[0], &told);
        CHECK(dp_peer_equal(&read.subject, &row->member.peer));
        CHECK(dp_view_equal(told, credential) && credential.size > 0);
    }
    members->rows[2].member.linked = true;
    mesh_close(m);
}

static void a_row_is_told_to_a_linked_peer_with_its_credential_if_it_lives(void **state)
{
    (void)state;
    mesh *m = NULL;
    dp_members *const members = begin(&m, 3);
    dp_row *const row = &members->rows[2];
    const dp_peer stranger = mesh_peer(9);
    const dp_peer *to = &members->rows[1].member.peer;
    dp_view credential;
    dp_members_statement_send(members, row, false, to, &m->out);
    dp_statement read = sent_in(only_action(m), &credential);
    CHECK(dp_peer_equal(&read.subject, &row->member.peer) && credential.size > 0);
    CHECK(dp_peer_equal(&only_action(m)->u.send.peer, to));
    row->statement_kind = DP_STATEMENT_DOWN; /* It needs none to be believed. */
    dp_out_begin(&m->out, m->actions);
    dp_members_statement_send(members, row, false, to, &m->out);
    (void)sent_in(only_action(m), &credential);
    CHECK(credential.size == 0);
    row->statement_kind = DP_STATEMENT_ALIVE;
    dp_out_begin(&m->out, m->actions);
    dp_members_statement_send(members, row, true, to, &m->out); /* Nobody is accused. */
    dp_members_statement_send(members, row, false, &stranger, &m->out);
    members->rows[1].member.linked = false;
    dp_members_statement_send(members, row, false, to, &m->out);
    members->rows[1].member.linked = true;
    CHECK(m->actions->count == 0);
    dp_members_accuse(members, 2, DP_CAUSE_SILENCE, mesh_now(m), &m->out);
    CHECK(row->accusation_bytes > 0);
    dp_out_begin(&m->out, m->actions);
    dp_members_statement_send(members, row, true, to, &m->out);
    read = sent_in(only_action(m), &credential);
    CHECK(credential.size == 0 && dp_peer_equal(&read.subject, &row->member.peer));
    CHECK(dp_peer_equal(&read.author, &members->rows[0].member.peer));
    mesh_close(m);
}

static void a_node_that_goes_says_so_once_to_all(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 3; what++) {
        mesh *m = NULL;
        dp_members *const members = begin(&m, 2);
        dp_row *const own = &members->rows[0];
        const uint32_t revision = own->member.revision = what == 2 ? UINT32_MAX : 7;
        dp_members_leave(members, mesh_now(m), 1, what == 1, &m->out);
        CHECK(members->leaving == (what != 2));
        if (what == 2) { /* Nobody would take it for newer. */
            CHECK(m->actions->count == 0 && own->member.revision == revision);
        } else {
            dp_view credential;
            const dp_statement read = sent_in(only_action(m), &credential);
            CHECK(only_action(m)->u.send.to == DP_TO_ALL && credential.size == 0);
            CHECK(read.kind == (what == 1 ? DP_STATEMENT_LEFT : DP_STATEMENT_DOWN));
            CHECK(own->statement_kind == read.kind && read.revision == 8);
            CHECK(read.incarnation == own->member.incarnation && read.n_addrs == 0);
            dp_members_leave(members, mesh_now(m), 1, true, &m->out);
            CHECK(m->actions->count == 1 && own->member.revision == 8);
        }
        members->leaving = false;
        mesh_close(m);
    }
}

/* All that two tables could differ in; what is not compared is left out of the sum. */
static void the_sum_of_a_table_changes_with_all_that_is_compared_and_nothing_else(void **state)
{
    (void)state;
    mesh *m = NULL;
    dp_members *const members = begin(&m, 4);
    dp_row *const row = &members->rows[2];
    const dp_row before = *row;
    const uint64_t sum = dp_members_table_sum(members, 5);
    CHECK(sum == dp_members_table_sum(members, 5) && sum != dp_members_table_sum(members, 6));
    for (uint32_t what = 0; what < 10; what++) {
        *row = before;
        if (what == 0) {
            row->member.incarnation++;
        } else if (what == 1) {
            row->member.revision++;
        } else if (what == 2) {
            row->statement_kind = DP_STATEMENT_DOWN;
        } else if (what == 3) {
            row->member.state = DP_MEMBER_DEAD;
        } else if (what == 4) {
            row->member.peer.bytes[31] ^= 1;
        } else if (what == 5) {
            row->removed = true;
        } else if (what == 6) {
            row->statement_bytes = 0;
        } else if (what == 7) {
            row->member.state = DP_MEMBER_SUSPECT; /* An opinion of this node. */
        } else if (what == 8) {
            row->member.linked = false;
        } else {
            row->member.heard.us++;
        }
        CHECK((dp_members_table_sum(members, 5) != sum) == (what < 7));
    }
    row->removed = true;
    const uint64_t without = dp_members_table_sum(members, 5);
    *row = before;
    row->statement_bytes = 0;
    CHECK(dp_members_table_sum(members, 5) == without);
    *row = before;
    mesh_close(m);
}

static void a_comparison_has_a_new_nonce_and_the_sum_with_it(void **state)
{
    (void)state;
    mesh *m = NULL;
    dp_members *const members = begin(&m, 3);
    uint64_t last = 0;
    for (uint32_t i = 0; i < 3; i++) {
        dp_out_begin(&m->out, m->actions);
        dp_members_compare_send(members, 2, &m->out);
        const dp_action *send = only_action(m);
        dp_reader reader = dp_reader_of(send->u.send.bytes);
        CHECK(dp_peer_equal(&send->u.send.peer, &members->rows[2].member.peer));
        CHECK(dp_read_u8(&reader) == DP_MSG_SYNC && dp_read_u8(&reader) == DP_MSG_VERSION);
        CHECK(dp_read_u8(&reader) == DP_SYNC_COMPARE && dp_read_u16(&reader) == 0);
        const uint64_t nonce = dp_read_u64(&reader);
        CHECK(nonce != last && dp_read_u64(&reader) == dp_members_table_sum(members, nonce));
        CHECK_OK(dp_reader_finish(&reader));
        last = nonce;
    }
    mesh_close(m);
}

/* Subjects of a SYNC, in their order, with the accusation of one that is dead after its row. */
static void a_list_has_the_own_row_and_then_the_others_from_where_the_last_one_stopped(void **state)
{
    (void)state;
    mesh *m = NULL;
    dp_members *const members = begin(&m, 5);
    dp_members_accuse(members, 4, DP_CAUSE_SILENCE, mesh_now(m), &m->out);
    CHECK(members->rows[4].accusation_bytes > 0);
    members->rows[3].removed = true;
    for (uint32_t what = 0; what < 3; what++) {
        static const uint32_t wanted[3][5] = {{0, 1, 4}, {0, 4, 1}, {0, 1, 4, 4}};
        members->sync_row = what == 1 ? 3 : 0; /* Node 2 is the one that is told. */
        members->rows[4].member.state = what == 2 ? DP_MEMBER_DEAD : DP_MEMBER_ALIVE;
        dp_out_begin(&m->out, m->actions);
        dp_members_sync_send(members, 2, what == 1, &m->out);
        dp_reader reader = dp_reader_of(only_action(m)->u.send.bytes);
        CHECK(dp_read_u8(&reader) == DP_MSG_SYNC && dp_read_u8(&reader) == DP_MSG_VERSION);
        CHECK(dp_read_u8(&reader) == (what == 1 ? DP_SYNC_ANSWER_WANTED : DP_SYNC_LIST));
        const uint32_t n = dp_read_u16(&reader);
        CHECK(n == (what == 2 ? 4 : 3));
        for (uint32_t i = 0; i < n; i++) {
            dp_view credential;
            const dp_statement read = entry_of(&reader, &credential);
            const dp_peer *peer = &members->rows[wanted[what][i]].member.peer;
            CHECK(dp_peer_equal(&read.subject, peer));
            CHECK((credential.size > 0) == (i < 3));
        }
        CHECK_OK(dp_reader_finish(&reader));
        CHECK(members->sync_row == (what == 1 ? 3 : 0) + 4);
    }
    members->rows[3].removed = false;
    members->rows[4].member.state = DP_MEMBER_SUSPECT;
    mesh_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_subject_of_a_statement_hears_of_it_too_unless_it_comes_from_it),
        cmocka_unit_test(a_row_is_told_to_a_linked_peer_with_its_credential_if_it_lives),
        cmocka_unit_test(a_node_that_goes_says_so_once_to_all),
        cmocka_unit_test(the_sum_of_a_table_changes_with_all_that_is_compared_and_nothing_else),
        cmocka_unit_test(a_comparison_has_a_new_nonce_and_the_sum_with_it),
        cmocka_unit_test(
            a_list_has_the_own_row_and_then_the_others_from_where_the_last_one_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
