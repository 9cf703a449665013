/* Statements in a table: the rights of their authors, and statements without an effect. */
#include "gossip/member/members_internal.h"
#include "tests/unit/gossip/kit/mesh.h"

static mesh *linked(uint32_t n)
{
    mesh *const m = mesh_of(n, 21);

    mesh_join_all(m);
    mesh_run_for(m, DP_SECOND);
    return m;
}

/* A statement by author, as node 1 sends it to node 0; damage: its signature does not hold. */
static dp_status tell(mesh *m, dp_statement statement, bool damage)
{
    uint8_t bytes[2 + DP_STATEMENT_BYTES_MAX + 2] = {DP_MSG_STATEMENT, DP_MSG_VERSION};
    uint32_t author = 0;

    while (author < MESH_NODES_MAX) {
        const dp_peer peer = mesh_peer(author);
        if (dp_peer_equal(&peer, &statement.author)) {
            break;
        }
        author++;
    }
    const dp_crypto crypto = mesh_crypto(author);
    const size_t size = dp_statement_sign(&statement, &crypto, &mesh_run, bytes + 2);
    bytes[2 + size - 1] ^= damage ? 1 : 0;
    dp_out_begin(&m->out, m->actions);
    const dp_status status = dp_members_message(m->nodes[0].members, mesh_now(m), 1, 1,
                                                dp_view_of(bytes, 2 + size + 2), &m->out);
    CHECK_OK(dp_members_check(m->nodes[0].members, NULL));
    return status;
}

static dp_statement accusation(uint32_t author, uint32_t subject)
{
    return (dp_statement){.kind = DP_STATEMENT_SUSPECT,
                          .cause = DP_CAUSE_SILENCE,
                          .subject = mesh_peer(subject),
                          .author = mesh_peer(author),
                          .incarnation = 1};
}

static dp_statement own_word(uint32_t author, dp_statement_kind kind, uint64_t incarnation)
{
    return (dp_statement){.kind = kind,
                          .subject = mesh_peer(author),
                          .author = mesh_peer(author),
                          .incarnation = incarnation};
}

static void nobody_unknown_is_accused_and_nobody_unknown_accuses(void **state)
{
    mesh *const m = linked(4);

    (void)state;
    CHECK_STATUS(tell(m, accusation(1, 9), false), DP_DENIED);
    CHECK_STATUS(tell(m, accusation(9, 2), false), DP_DENIED);
    CHECK(mesh_state(m, 0, 2) == DP_MEMBER_ALIVE);
    mesh_close(m);
}

static void an_accusation_counts_only_with_its_authors_signature(void **state)
{
    mesh *const m = linked(4);
    const dp_members *members = m->nodes[0].members;

    (void)state;
    CHECK_STATUS(tell(m, accusation(1, 2), true), DP_BADSIG);
    CHECK(members->accused.count == 0);
    CHECK_OK(tell(m, accusation(1, 2), false));
    CHECK(members->accused.count == 1);
    CHECK_OK(tell(m, accusation(1, 2), true)); /* Not new: not even verified. */
    CHECK(members->accused.count == 1);
    mesh_close(m);
}

static void an_accusation_of_an_earlier_life_is_answered_and_of_a_later_one_waits(void **state)
{
    mesh *const m = linked(4);
    dp_statement of_life = accusation(1, 2);

    (void)state;
    of_life.incarnation = 0;
    CHECK_OK(tell(m, of_life, false));
    CHECK(m->actions->count == 1); /* The newer statement of the accused. */
    CHECK(dp_msg_type_of(m->actions->items[0].u.send.bytes) == DP_MSG_STATEMENT);
    of_life.incarnation = 2;
    CHECK_OK(tell(m, of_life, false));
    CHECK(m->actions->count == 0);
    CHECK(m->nodes[0].members->accused.count == 0);
    mesh_close(m);
}

static void an_accused_node_refutes_signed_accusations_of_this_life(void **state)
{
    mesh *const m = linked(3);
    const dp_member *own = &m->nodes[0].members->rows[0].member;
    dp_statement of_us = accusation(1, 0);

    (void)state;
    CHECK_STATUS(tell(m, of_us, true), DP_BADSIG);
    CHECK(own->revision == 0);
    of_us.incarnation = 7;
    CHECK_OK(tell(m, of_us, false));
    CHECK(own->revision == 0);
    of_us.incarnation = 1;
    CHECK_OK(tell(m, of_us, false));
    CHECK(own->revision == 1); /* Refuted. */
    mesh_close(m);
}

static void a_node_that_hears_of_its_later_life_reports_that_its_key_is_used(void **state)
{
    mesh *const m = linked(3);

    (void)state;
    CHECK_OK(tell(m, own_word(0, DP_STATEMENT_ALIVE, 1), false));
    CHECK(m->actions->count == 0);
    CHECK_OK(tell(m, own_word(0, DP_STATEMENT_ALIVE, 2), false));
    CHECK(m->actions->count == 1);
    CHECK(m->actions->items[0].type == DP_DO_NOTE);
    assert_string_equal(m->actions->items[0].u.note.cause,
                        "another process uses the key of this node");
    mesh_close(m);
}

static void a_goodbye_needs_the_signature_and_stays_until_a_later_life(void **state)
{
    mesh *const m = linked(4);
    dp_statement down = own_word(2, DP_STATEMENT_DOWN, 1);

    (void)state;
    down.revision = 1;
    CHECK_STATUS(tell(m, down, true), DP_BADSIG);
    CHECK(mesh_state(m, 0, 2) == DP_MEMBER_ALIVE);
    CHECK_OK(tell(m, down, false));
    CHECK(mesh_state(m, 0, 2) == DP_MEMBER_DEAD);
    CHECK_OK(tell(m, own_word(2, DP_STATEMENT_ALIVE, 1), false)); /* Older than the goodbye. */
    CHECK(mesh_state(m, 0, 2) == DP_MEMBER_DEAD);
    CHECK_OK(tell(m, own_word(2, DP_STATEMENT_ALIVE, 2), false));
    CHECK(mesh_state(m, 0, 2) == DP_MEMBER_ALIVE);
    CHECK_STATUS(tell(m, own_word(9, DP_STATEMENT_DOWN, 1), false), DP_DENIED);
    mesh_close(m);
}

static void a_list_with_a_false_count_flags_or_more_at_its_end_is_refused(void **state)
{
    mesh *const m = linked(3);
    dp_members *members = m->nodes[0].members;
    uint8_t bytes[DP_MESSAGE_MAX];

    (void)state;
    dp_out_begin(&m->out, m->actions);
    dp_members_sync_send(members, 1, true, &m->out);
    CHECK(m->actions->count == 1);
    const dp_view list = m->actions->items[0].u.send.bytes;
    memcpy(bytes, list.data, list.size);
    bytes[list.size] = 0;
    dp_out_begin(&m->out, m->actions);
    const dp_time now = mesh_now(m);
    CHECK_OK(dp_members_message(members, now, 1, 1, dp_view_of(bytes, list.size), &m->out));
    CHECK(m->actions->count == 1); /* It wanted an answer. */
    CHECK_STATUS(dp_members_message(members, now, 1, 1, dp_view_of(bytes, list.size + 1), &m->out),
                 DP_BADMSG);
    for (size_t size = 0; size < list.size; size++) {
        CHECK_STATUS(dp_members_message(members, now, 1, 1, dp_view_of(bytes, size), &m->out),
                     DP_BADMSG);
    }
    CHECK(!members->reading_list);
    bytes[2] = 3;
    CHECK_STATUS(dp_members_message(members, now, 1, 1, dp_view_of(bytes, list.size), &m->out),
                 DP_BADMSG);
    bytes[2] = 0;
    bytes[3] = DP_SYNC_ENTRIES_MAX + 1;
    CHECK_STATUS(dp_members_message(members, now, 1, 1, dp_view_of(bytes, list.size), &m->out),
                 DP_BADMSG);
    mesh_close(m);
}

/* The cause in the note of the last step that says that a member is in this state. */
static const char *noted(const mesh *m, dp_member_state as)
{
    for (uint32_t i = 0; i < m->actions->count; i++) {
        const dp_action *const action = &m->actions->items[i];
        if (action->type == DP_DO_NOTE && action->u.note.code == DP_NOTE_MEMBER &&
            action->u.note.b == as) {
            return action->u.note.cause;
        }
    }
    return "no note";
}

static void a_broken_connection_and_silence_are_noted_as_that(void **state)
{
    (void)state;
    for (uint32_t broken = 0; broken < 2; broken++) {
        mesh *const m = linked(4);
        dp_members *const members = m->nodes[0].members;
        const char *const cause = broken == 1 ? "connection broken" : "silent";
        dp_out_begin(&m->out, m->actions);
        dp_members_accuse(members, 2, broken == 1 ? DP_CAUSE_RESET : DP_CAUSE_SILENCE, mesh_now(m),
                          &m->out);
        assert_string_equal(noted(m, DP_MEMBER_SUSPECT), cause);
        dp_out_begin(&m->out, m->actions);
        dp_members_die(members, 2, broken == 1, mesh_now(m), &m->out);
        assert_string_equal(noted(m, DP_MEMBER_DEAD), cause);
        mesh_close(m);
    }
}

/* Passes a COMPARE of node 0 to node 1; returns its answer, if any. */
static dp_view answer_to_compare(mesh *m, dp_view message)
{
    const dp_peer asker = mesh_peer(0);
    dp_members *members = m->nodes[1].members;

    dp_out_begin(&m->out, m->actions);
    CHECK_OK(dp_members_message(members, mesh_now(m), 1, dp_members_find(members, &asker), message,
                                &m->out));
    CHECK(m->actions->count <= 1);
    return m->actions->count == 0 ? (dp_view){0} : m->actions->items[0].u.send.bytes;
}

static void equal_tables_are_compared_in_one_short_message_and_unlike_ones_are_told(void **state)
{
    mesh *const m = linked(5);
    dp_members *members = m->nodes[0].members;
    uint8_t bytes[64];

    (void)state;
    dp_out_begin(&m->out, m->actions);
    dp_members_compare_send(members, 1, &m->out);
    CHECK(m->actions->count == 1);
    const dp_view sent = m->actions->items[0].u.send.bytes;
    CHECK(sent.size == DP_MSG_HEAD_BYTES + 3 + 16);
    memcpy(bytes, sent.data, sent.size);
    const dp_view compare = dp_view_of(bytes, sent.size);
    CHECK(answer_to_compare(m, compare).size == 0);
    const dp_peer peer = mesh_peer(3);
    dp_row *const row = &m->nodes[1].members->rows[dp_members_find(m->nodes[1].members, &peer)];
    row->member.revision++; /* It has refuted something since. */
    const dp_view answer = answer_to_compare(m, compare);
    CHECK(dp_msg_type_of(answer) == DP_MSG_SYNC && answer.data[2] == DP_SYNC_ANSWER_WANTED);
    row->member.revision--;
    CHECK(answer_to_compare(m, compare).size == 0);
    bytes[DP_MSG_HEAD_BYTES + 3]++; /* A sum under another nonce is not comparable with this one. */
    CHECK(answer_to_compare(m, compare).size > 0);
    mesh_close(m);
}

static void a_comparison_with_entries_or_of_another_length_is_refused(void **state)
{
    mesh *const m = linked(3);
    dp_members *members = m->nodes[0].members;
    uint8_t bytes[32] = {DP_MSG_SYNC, DP_MSG_VERSION, DP_SYNC_COMPARE};

    (void)state;
    for (size_t size = 2; size < sizeof bytes; size++) {
        dp_out_begin(&m->out, m->actions);
        CHECK_STATUS(
            dp_members_message(members, mesh_now(m), 1, 1, dp_view_of(bytes, size), &m->out),
            size == 2 + 3 + 16 ? DP_OK : DP_BADMSG);
    }
    bytes[3] = 1;
    CHECK_STATUS(dp_members_message(members, mesh_now(m), 1, 1, dp_view_of(bytes, 21), &m->out),
                 DP_BADMSG);
    mesh_close(m);
}

/* Does node 0 watch it, in a run too large for links to all? */
static bool watches_in_a_large_run(mesh *m, uint32_t index)
{
    dp_members *const members = m->nodes[0].members;
    const uint32_t n_known = members->n_known;

    members->n_known = DP_FULL_MESH_MAX + 1;
    const bool watches = dp_members_watches(members, index);
    members->n_known = n_known;
    return watches;
}

/* It has other links now. Probes from here would go through helpers without a link to it, and end
 * in accusations of a member that lives. */
static void after_a_lost_link_a_word_by_others_ends_the_watch_in_a_large_run(void **state)
{
    mesh *const m = linked(4);
    const dp_peer peer = mesh_peer(3);
    const uint32_t index = dp_members_find(m->nodes[0].members, &peer);

    (void)state;
    CHECK(watches_in_a_large_run(m, index));
    mesh_block(m, 0, 3, true);
    mesh_part(m, 0, 3, DP_LINK_RESET);
    mesh_run_for(m, DP_MS);
    CHECK(!mesh_sees(m, 0, 3)->linked && watches_in_a_large_run(m, index));
    CHECK_OK(tell(m, own_word(3, DP_STATEMENT_ALIVE, 2), false));
    CHECK(mesh_state(m, 0, 3) == DP_MEMBER_ALIVE && !watches_in_a_large_run(m, index));
    mesh_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_unknown_is_accused_and_nobody_unknown_accuses),
        cmocka_unit_test(an_accusation_counts_only_with_its_authors_signature),
        cmocka_unit_test(an_accusation_of_an_earlier_life_is_answered_and_of_a_later_one_waits),
        cmocka_unit_test(an_accused_node_refutes_signed_accusations_of_this_life),
        cmocka_unit_test(a_node_that_hears_of_its_later_life_reports_that_its_key_is_used),
        cmocka_unit_test(a_goodbye_needs_the_signature_and_stays_until_a_later_life),
        cmocka_unit_test(a_list_with_a_false_count_flags_or_more_at_its_end_is_refused),
        cmocka_unit_test(a_broken_connection_and_silence_are_noted_as_that),
        cmocka_unit_test(equal_tables_are_compared_in_one_short_message_and_unlike_ones_are_told),
        cmocka_unit_test(a_comparison_with_entries_or_of_another_length_is_refused),
        cmocka_unit_test(after_a_lost_link_a_word_by_others_ends_the_watch_in_a_large_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
