/* Statements that arrive, one rule at a time: whose word counts, what it changes, and to whom it is
 * passed on. */
#include "gossip/member/members_internal.h"
#include "tests/unit/gossip/kit/mesh.h"

enum { NODES = 6 };

static mesh *linked(void)
{
    mesh *const m = mesh_of(NODES, 21);

    mesh_join_all(m);
    mesh_run_for(m, DP_SECOND);
    for (uint32_t i = 0; i < NODES; i++) {
        dp_members_mark(m->nodes[0].members, i, true, false);
    }
    return m;
}

static dp_row *row_of(const mesh *m, uint32_t i)
{
    const dp_peer peer = mesh_peer(i);

    return &m->nodes[0].members->rows[dp_members_find(m->nodes[0].members, &peer)];
}

/* The statement of this author, as this node sends it to node 0. */
static dp_status tell_from(mesh *m, uint32_t from, uint32_t author, dp_statement statement)
{
    uint8_t bytes[2 + DP_STATEMENT_BYTES_MAX + 2] = {DP_MSG_STATEMENT, DP_MSG_VERSION};
    const dp_crypto crypto = mesh_crypto(author);
    const dp_peer sender = mesh_peer(from);

    statement.author = mesh_peer(author);
    const size_t size = dp_statement_sign(&statement, &crypto, &mesh_run, bytes + 2);
    dp_out_begin(&m->out, m->actions);
    return dp_members_message(m->nodes[0].members, mesh_now(m), 1,
                              dp_members_find(m->nodes[0].members, &sender),
                              dp_view_of(bytes, 2 + size + 2), &m->out);
}

static dp_status accuse(mesh *m, uint32_t author, uint32_t subject, dp_statement_kind kind,
                        dp_statement_cause cause)
{
    const dp_row *row = row_of(m, subject);

    return tell_from(m, author == 0 ? 1 : author, author,
                     (dp_statement){.kind = kind,
                                    .cause = cause,
                                    .subject = row->member.peer,
                                    .incarnation = row->member.incarnation,
                                    .revision = row->member.revision});
}

static dp_status suspect(mesh *m, uint32_t author, uint32_t subject)
{
    return accuse(m, author, subject, DP_STATEMENT_SUSPECT, DP_CAUSE_SILENCE);
}

/* Statements that were sent, and to how many. */
static uint32_t sent(const mesh *m)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->actions->count; i++) {
        const dp_action *action = &m->actions->items[i];
        count +=
            action->type == DP_DO_SEND && dp_msg_type_of(action->u.send.bytes) == DP_MSG_STATEMENT
                ? 1
                : 0;
    }
    return count;
}

static void only_a_member_that_is_known_and_not_removed_accuses_another_member(void **state)
{
    (void)state;
    mesh *const m = linked();
    CHECK_STATUS(suspect(m, 0, 2), DP_DENIED); /* As if by this node. */
    row_of(m, 1)->removed = true;
    CHECK_STATUS(suspect(m, 1, 2), DP_DENIED);
    row_of(m, 1)->removed = false;
    const uint16_t size = row_of(m, 1)->member.credential_bytes;
    row_of(m, 1)->member.credential_bytes = 0;
    CHECK_STATUS(suspect(m, 1, 2), DP_DENIED);
    row_of(m, 1)->member.credential_bytes = size;
    CHECK(m->nodes[0].members->accused.count == 0);
    CHECK_OK(suspect(m, 1, 2));
    CHECK(m->nodes[0].members->accused.count == 1);
    mesh_close(m);
}

/* Node 3 brings the word, a member; it is by a guest, or about one. */
static void a_guest_accuses_nobody_and_nobody_accuses_a_guest(void **state)
{
    (void)state;
    mesh *const m = linked();
    const dp_statement about_2 = {.kind = DP_STATEMENT_SUSPECT,
                                  .cause = DP_CAUSE_SILENCE,
                                  .subject = mesh_peer(2),
                                  .incarnation = row_of(m, 2)->member.incarnation};
    row_of(m, 1)->member.in_roster = false;
    CHECK_STATUS(tell_from(m, 3, 1, about_2), DP_DENIED);
    row_of(m, 1)->member.in_roster = true;
    row_of(m, 2)->member.in_roster = false;
    CHECK_OK(tell_from(m, 3, 1, about_2)); /* Not even looked at. */
    CHECK(m->nodes[0].members->accused.count == 0);
    row_of(m, 2)->member.in_roster = true;
    CHECK_OK(tell_from(m, 3, 1, about_2));
    CHECK(m->nodes[0].members->accused.count == 1);
    mesh_close(m);
}

static void a_member_that_was_heard_just_now_is_not_suspected_by_others_words(void **state)
{
    (void)state;
    mesh *const m = linked();
    dp_row *row = row_of(m, 2);
    row->member.heard = mesh_now(m);
    CHECK_OK(suspect(m, 1, 2));
    CHECK(row->n_accusers == 1 && row->member.state == DP_MEMBER_ALIVE);
    CHECK(dp_rowset_has(&m->nodes[0].members->urgent, 2)); /* It is probed. */
    row->member.heard = (dp_time){m->now - 2 * m->nodes[0].members->period_us + 1};
    CHECK_OK(suspect(m, 3, 2));
    CHECK(row->n_accusers == 2 && row->member.state == DP_MEMBER_ALIVE);
    row->member.heard.us--;
    CHECK_OK(suspect(m, 4, 2));
    CHECK(row->n_accusers == 3 && row->member.state == DP_MEMBER_SUSPECT);
    mesh_close(m);
}

static void without_a_link_the_word_of_another_makes_a_member_suspect(void **state)
{
    (void)state;
    mesh *const m = linked();
    dp_row *row = row_of(m, 2);
    row->member.heard = mesh_now(m);
    row->member.linked = false;
    dp_rowset_set(&m->nodes[0].members->linked, 2, false);
    CHECK_OK(suspect(m, 1, 2));
    CHECK(row->member.state == DP_MEMBER_SUSPECT);
    bool noted = false;
    for (uint32_t i = 0; i < m->actions->count; i++) {
        const dp_action *action = &m->actions->items[i];
        noted =
            noted || (action->type == DP_DO_NOTE && strcmp(action->u.note.cause, "accused") == 0 &&
                      action->u.note.b == DP_MEMBER_SUSPECT);
    }
    CHECK(noted);
    mesh_close(m);
}

static void an_accusation_is_passed_on_once_and_again_when_a_connection_broke_too(void **state)
{
    (void)state;
    mesh *const m = linked();
    CHECK_OK(suspect(m, 1, 2));
    CHECK(sent(m) > 0);
    CHECK_OK(suspect(m, 1, 2));
    CHECK(sent(m) == 0);
    CHECK_OK(accuse(m, 1, 2, DP_STATEMENT_SUSPECT, DP_CAUSE_RESET));
    CHECK(sent(m) > 0 && row_of(m, 2)->accusers[0].reset);
    CHECK_OK(accuse(m, 1, 2, DP_STATEMENT_SUSPECT, DP_CAUSE_RESET));
    CHECK(sent(m) == 0);
    mesh_close(m);
}

static void in_a_large_run_the_first_four_accusers_of_a_member_are_passed_on(void **state)
{
    (void)state;
    mesh *const m = linked();
    dp_row *row = row_of(m, 2);
    dp_members *members = m->nodes[0].members;
    const uint32_t n_known = members->n_known;
    for (uint32_t many = 0; many < 2; many++) {
        members->n_known = DP_FULL_MESH_MAX + 1;
        row->n_accusers = many == 0 ? CONFIRMATIONS : 1 + CONFIRMATIONS;
        for (uint32_t i = 0; i < row->n_accusers; i++) {
            row->accusers[i] = (dp_accuser){.peer = mesh_peer(15 + i)};
        }
        dp_rowset_set(&members->accused, 2, true);
        row->suspect_at = mesh_now(m);
        row->member.heard = mesh_now(m);
        CHECK_OK(suspect(m, 1, 2));
        CHECK((sent(m) > 0) == (many == 0));
        members->n_known = n_known;
    }
    mesh_close(m);
}

static void of_a_member_that_stopped_or_is_unknown_no_accusation_is_kept(void **state)
{
    (void)state;
    mesh *const m = linked();
    row_of(m, 2)->down = true;
    CHECK_OK(suspect(m, 1, 2));
    row_of(m, 2)->down = false;
    row_of(m, 2)->member.state = DP_MEMBER_UNKNOWN;
    CHECK_OK(suspect(m, 1, 2));
    row_of(m, 2)->member.state = DP_MEMBER_ALIVE;
    CHECK(row_of(m, 2)->n_accusers == 0);
    mesh_close(m);
}

/* It lacks a second accuser, perhaps. */
static void
who_suspects_a_member_that_is_dead_here_is_shown_the_accusation_of_this_node(void **state)
{
    (void)state;
    mesh *const m = linked();
    dp_row *row = row_of(m, 2);
    dp_out_begin(&m->out, m->actions);
    dp_members_accuse(m->nodes[0].members, 2, DP_CAUSE_RESET, mesh_now(m), &m->out);
    CHECK(row->accusation_bytes > 0);
    row->member.state = DP_MEMBER_DEAD;
    CHECK_OK(suspect(m, 1, 2));
    const dp_peer author = mesh_peer(1);
    CHECK(sent(m) == 1 && dp_peer_equal(&m->actions->items[0].u.send.peer, &author));
    CHECK_OK(accuse(m, 1, 2, DP_STATEMENT_DEAD, DP_CAUSE_SILENCE));
    CHECK(m->actions->count == 0);
    mesh_close(m);
}

/* The other has waited already: so this node need not, if it accuses the member itself. */
static void a_member_is_dead_by_the_word_of_another_if_this_node_suspects_it_too(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 4; what++) {
        mesh *const m = linked();
        dp_members *members = m->nodes[0].members;
        dp_row *row = row_of(m, 2);
        row->member.heard = (dp_time){m->now - DP_SECOND};
        members->period_us = 400 * DP_MS;
        dp_out_begin(&m->out, m->actions);
        if (what != 1) {
            dp_members_accuse(members, 2, DP_CAUSE_SILENCE, mesh_now(m), &m->out);
            CHECK(row->member.state == DP_MEMBER_SUSPECT);
        }
        if (what == 2) {
            members->quiet_until = (dp_time){m->now + 1}; /* Its own time had a gap. */
        }
        CHECK_OK(accuse(m, 1, 2, what == 3 ? DP_STATEMENT_SUSPECT : DP_STATEMENT_DEAD,
                        DP_CAUSE_SILENCE));
        CHECK((row->member.state == DP_MEMBER_DEAD) == (what == 0));
        mesh_close(m);
    }
}

static void a_belief_about_another_life_or_of_a_leaving_node_is_not_refuted(void **state)
{
    (void)state;
    mesh *const m = linked();
    dp_members *members = m->nodes[0].members;
    dp_member *own = &members->rows[0].member;
    const uint64_t life = own->incarnation;
    const uint32_t revision = own->revision;
    dp_out_begin(&m->out, m->actions);
    dp_members_believed(members, DP_MEMBER_ALIVE, life, revision, &m->out);
    dp_members_believed(members, DP_MEMBER_LEFT, life, revision, &m->out);
    dp_members_believed(members, DP_MEMBER_SUSPECT, life + 1, revision, &m->out);
    dp_members_believed(members, DP_MEMBER_SUSPECT, life, revision + 1, &m->out);
    members->leaving = true;
    dp_members_believed(members, DP_MEMBER_SUSPECT, life, revision, &m->out);
    members->leaving = false;
    own->revision = UINT32_MAX;
    dp_members_believed(members, DP_MEMBER_DEAD, life, UINT32_MAX, &m->out);
    own->revision = revision;
    CHECK(m->actions->count == 0);
    members->lhm = 0;
    dp_members_believed(members, DP_MEMBER_DEAD, life, revision, &m->out);
    CHECK(own->revision == revision + 1 && members->lhm == 1 && sent(m) == NODES - 1);
    members->lhm = DP_LHM_MAX;
    dp_members_believed(members, DP_MEMBER_SUSPECT, life, revision + 1, &m->out);
    CHECK(own->revision == revision + 2 && members->lhm == DP_LHM_MAX);
    CHECK(!members->refuting);
    mesh_close(m);
}

static dp_statement alive(const mesh *m, uint32_t i, uint64_t lives_later)
{
    return (dp_statement){.kind = DP_STATEMENT_ALIVE,
                          .subject = mesh_peer(i),
                          .incarnation = row_of(m, i)->member.incarnation + lives_later,
                          .revision = row_of(m, i)->member.revision + 1,
                          .n_addrs = 1,
                          .addrs = {mesh_addr(77)}};
}

static void a_member_that_speaks_again_has_its_addresses_and_a_dial_soon(void **state)
{
    (void)state;
    mesh *const m = linked();
    dp_row *row = row_of(m, 2);
    row->reset_at = (dp_time){0};
    row->dials_failed = 5;
    row->dial_at = (dp_time){m->now + 20 * DP_SECOND};
    row->member.life_since = (dp_time){3};
    CHECK_OK(tell_from(m, 2, 2, alive(m, 2, 0)));
    const dp_addr addr = mesh_addr(77);
    assert_memory_equal(&row->member.addrs[0], &addr, sizeof addr);
    CHECK(row->dials_failed == 0 && row->dial_at.us == m->now + DP_DIAL_US_MIN);
    CHECK(row->reset_at.us == m->now && row->member.life_since.us == 3);
    row->dials_failed = 5;
    row->dial_at = (dp_time){m->now + 20 * DP_SECOND};
    m->now += 5 * DP_SECOND - 1; /* No more than once in five seconds. */
    CHECK_OK(tell_from(m, 2, 2, alive(m, 2, 0)));
    CHECK(row->dials_failed == 5);
    m->now++;
    row->dialling = true; /* That dial goes on. */
    const uint64_t dial_at = row->dial_at.us;
    CHECK_OK(tell_from(m, 2, 2, alive(m, 2, 1)));
    CHECK(row->dials_failed == 0 && row->dial_at.us == dial_at);
    CHECK(row->member.life_since.us == m->now);
    row->dialling = false;
    mesh_close(m);
}

static void a_word_without_addresses_leaves_those_that_are_known(void **state)
{
    (void)state;
    mesh *const m = linked();
    dp_row *row = row_of(m, 2);
    const uint32_t n = row->member.n_addrs;
    dp_statement word = alive(m, 2, 0);
    word.n_addrs = 0;
    CHECK(n > 0);
    CHECK_OK(tell_from(m, 2, 2, word));
    CHECK(row->member.n_addrs == n);
    mesh_close(m);
}

static void a_peer_of_which_nothing_is_known_must_show_a_credential_and_live(void **state)
{
    (void)state;
    mesh *const m = linked();
    dp_row *row = row_of(m, 2);
    const uint16_t size = row->member.credential_bytes;
    row->member.credential_bytes = 0;
    CHECK_STATUS(tell_from(m, 2, 2, alive(m, 2, 0)), DP_DENIED);
    dp_statement gone = alive(m, 2, 0);
    gone.kind = DP_STATEMENT_DOWN;
    gone.n_addrs = 0;
    CHECK_STATUS(tell_from(m, 2, 2, gone), DP_DENIED);
    row->member.credential_bytes = size;
    CHECK_OK(tell_from(m, 2, 2, gone));
    CHECK(row->down && row->member.state == DP_MEMBER_DEAD);
    mesh_close(m);
}

static void a_word_of_oneself_is_no_newer_by_an_equal_or_earlier_number(void **state)
{
    (void)state;
    mesh *const m = linked();
    dp_row *row = row_of(m, 2);
    dp_statement word = alive(m, 2, 0);
    word.kind = DP_STATEMENT_DOWN;
    word.n_addrs = 0;
    word.revision--;
    CHECK_OK(tell_from(m, 2, 2, word)); /* Of the same. */
    CHECK(!row->down);
    row->member.revision = 3;
    word.revision = 2;
    CHECK_OK(tell_from(m, 2, 2, word));
    CHECK(!row->down && row->member.revision == 3);
    row->removed = true;
    word.revision = 4;
    CHECK_OK(tell_from(m, 2, 2, word));
    CHECK(!row->down);
    row->removed = false;
    CHECK_OK(tell_from(m, 2, 2, word));
    CHECK(row->down && row->member.revision == 4);
    mesh_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_member_that_is_known_and_not_removed_accuses_another_member),
        cmocka_unit_test(a_guest_accuses_nobody_and_nobody_accuses_a_guest),
        cmocka_unit_test(a_member_that_was_heard_just_now_is_not_suspected_by_others_words),
        cmocka_unit_test(without_a_link_the_word_of_another_makes_a_member_suspect),
        cmocka_unit_test(an_accusation_is_passed_on_once_and_again_when_a_connection_broke_too),
        cmocka_unit_test(in_a_large_run_the_first_four_accusers_of_a_member_are_passed_on),
        cmocka_unit_test(of_a_member_that_stopped_or_is_unknown_no_accusation_is_kept),
        cmocka_unit_test(
            who_suspects_a_member_that_is_dead_here_is_shown_the_accusation_of_this_node),
        cmocka_unit_test(a_member_is_dead_by_the_word_of_another_if_this_node_suspects_it_too),
        cmocka_unit_test(a_belief_about_another_life_or_of_a_leaving_node_is_not_refuted),
        cmocka_unit_test(a_member_that_speaks_again_has_its_addresses_and_a_dial_soon),
        cmocka_unit_test(a_word_without_addresses_leaves_those_that_are_known),
        cmocka_unit_test(a_peer_of_which_nothing_is_known_must_show_a_credential_and_live),
        cmocka_unit_test(a_word_of_oneself_is_no_newer_by_an_equal_or_earlier_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
