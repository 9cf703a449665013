/* How a node that was cut off finds the others again. */
#include "gossip/member/members_internal.h"
#include "tests/unit/gossip/kit/mesh.h"

enum { NODES = 5, LAST = NODES - 1 };

/* All are voters and linked to all. */
static mesh *voters(void)
{
    mesh *const m = mesh_of(NODES, 11);
    dp_peer peers[NODES];

    for (uint32_t i = 0; i < NODES; i++) {
        peers[i] = mesh_peer(i);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        dp_heartbeat_set_voters(&m->nodes[i].beat, peers, NODES, mesh_now(m));
    }
    mesh_join_all(m);
    mesh_run_for(m, 3 * DP_SECOND);
    for (uint32_t i = 0; i < NODES; i++) {
        CHECK(dp_heartbeat_quorum(&m->nodes[i].beat));
    }
    return m;
}

static void cut_off(mesh *m, bool blocked)
{
    for (uint32_t i = 0; i < LAST; i++) {
        mesh_block(m, i, LAST, blocked);
    }
}

static uint32_t links_of(const mesh *m, uint32_t node)
{
    return dp_members_linked(m->nodes[node].members)->count;
}

static void a_node_that_is_cut_off_ends_links_that_nothing_comes_through(void **state)
{
    (void)state;
    mesh *const m = voters();

    cut_off(m, true);
    mesh_run_for(m, 6 * DP_SECOND);
    CHECK(!dp_heartbeat_quorum(&m->nodes[LAST].beat));
    CHECK(links_of(m, LAST) == 0);
    mesh_close(m);
}

static void after_any_cut_all_links_stand_again_in_a_second_and_a_half(void **state)
{
    static const uint64_t cuts_s[] = {5, 8, 20, 60, 200};

    (void)state;
    for (uint32_t i = 0; i < sizeof cuts_s / sizeof cuts_s[0]; i++) {
        mesh *const m = voters();
        cut_off(m, true);
        mesh_run_for(m, cuts_s[i] * DP_SECOND);
        cut_off(m, false);
        mesh_run_for(m, 3 * DP_SECOND / 2);
        CHECK(links_of(m, LAST) == LAST);
        mesh_run_for(m, DP_SECOND);
        CHECK(dp_heartbeat_quorum(&m->nodes[LAST].beat));
        for (uint32_t k = 0; k < LAST; k++) {
            CHECK(mesh_state(m, k, LAST) == DP_MEMBER_ALIVE);
        }
        mesh_close(m);
    }
}

static void while_a_majority_is_heard_a_mute_link_is_left_to_tcp(void **state)
{
    (void)state;
    mesh *const m = voters();

    mesh_block(m, 0, LAST, true);
    mesh_run_for(m, 12 * DP_SECOND);
    CHECK(mesh_sees(m, LAST, 0)->linked && mesh_sees(m, 0, LAST)->linked);
    mesh_close(m);
}

static void a_process_that_stood_still_ends_no_link(void **state)
{
    (void)state;
    mesh *const m = voters();

    m->nodes[LAST].frozen = true;
    mesh_run_for(m, 10 * DP_SECOND);
    m->nodes[LAST].frozen = false;
    for (uint32_t ms = 0; ms < 5000; ms += 100) {
        mesh_run_for(m, 100 * DP_MS);
        CHECK(links_of(m, LAST) == LAST);
    }
    mesh_close(m);
}

/* While a majority is heard, dead members are dialled every 30 s, since they may have returned. */
static void a_node_that_loses_the_majority_dials_the_dead_within_a_second(void **state)
{
    (void)state;
    mesh *const m = voters();

    mesh_kill(m, 0);
    mesh_kill(m, 1);
    mesh_run_for(m, 200 * DP_SECOND);
    const dp_members *members = m->nodes[LAST].members;
    CHECK(dp_heartbeat_quorum(&m->nodes[LAST].beat));
    uint64_t latest = 0;
    for (uint32_t i = 1; i < members->count; i++) {
        const dp_row *row = &members->rows[i];
        latest = !row->member.linked && row->dial_at.us > latest ? row->dial_at.us : latest;
    }
    CHECK(latest > m->now + 2 * DP_SECOND);
    cut_off(m, true);
    while (dp_heartbeat_quorum(&m->nodes[LAST].beat)) {
        mesh_run_for(m, 10 * DP_MS);
    }
    mesh_run_for(m, DP_SECOND);
    for (uint32_t i = 1; i < members->count; i++) {
        const dp_row *row = &members->rows[i];
        CHECK(row->member.linked || row->dialling ||
              row->dial_at.us <= m->now + 5 * DP_DIAL_US_ALONE / 4);
    }
    mesh_close(m);
}

static uint32_t hangups(const mesh *m, uint32_t index)
{
    const dp_peer *peer = &m->nodes[0].members->rows[index].member.peer;
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->actions->count; i++) {
        n += m->actions->items[i].type == DP_DO_HANGUP &&
             dp_peer_equal(&m->actions->items[i].u.peer, peer);
    }
    return n;
}

/* The link of a member that was removed stands until its time is over; then the next one's. */
static void links_of_removed_members_end_each_at_its_time(void **state)
{
    (void)state;
    mesh *const m = voters();
    dp_members *const members = m->nodes[0].members;
    const uint64_t start = m->now;
    for (uint32_t i = 1; i <= 3; i++) {
        members->rows[i].removed = true;
        members->rows[i].guest_until = (dp_time){start + (i == 1 ? 500 : i == 2 ? 300 : 100)};
    }
    members->rows[3].closing = true; /* It ends already. */
    members->guests_at = (dp_time){0};
    static const uint64_t at[] = {0, 299, 300, 301, 500};
    for (uint32_t i = 0; i < 5; i++) {
        dp_out_begin(&m->out, m->actions);
        dp_members_part(members, (dp_time){start + at[i]}, &m->out);
        CHECK(hangups(m, 1) == (i == 4 ? 1 : 0) && members->rows[1].closing == (i == 4));
        CHECK(hangups(m, 2) == (i == 2 ? 1 : 0) && members->rows[2].closing == (i >= 2));
        CHECK(hangups(m, 3) == 0 && hangups(m, 4) == 0);
        CHECK(members->guests_at.us == (i < 2 ? start + 300 : i < 4 ? start + 500 : UINT64_MAX));
    }
    members->rows[1].closing = false;
    members->guests_at = (dp_time){0};
    dp_out_begin(&m->out, m->actions);
    m->out.sends_max = 0; /* There is no room: it is due still. */
    dp_members_part(members, (dp_time){start + 600}, &m->out);
    m->out.sends_max = DP_OUT_SENDS_MAX;
    CHECK(!members->rows[1].closing && members->guests_at.us == start + 500);
    for (uint32_t i = 1; i <= 3; i++) {
        members->rows[i].removed = members->rows[i].closing = false;
    }
    mesh_close(m);
}

static void a_node_that_is_alone_wakes_when_a_link_is_mute_and_it_is_sure(void **state)
{
    (void)state;
    mesh *const m = voters();
    dp_members *const members = m->nodes[0].members;
    for (uint32_t i = 1; i < NODES; i++) {
        members->rows[i].asked = (dp_time){m->now - 100 * i};
        members->rows[i].member.heard = (dp_time){m->now - 200 - 100 * i};
    }
    members->guests_at = (dp_time){m->now + 3600 * DP_SECOND};
    CHECK(dp_members_part_wake(members).us == members->guests_at.us); /* It hears a majority. */
    members->beat->quorum = false;
    for (uint32_t what = 0; what < 3; what++) {
        uint64_t wanted = members->guests_at.us;
        members->unsure_until.us = what == 1 ? m->now + 1800 * DP_SECOND : 0;
        members->rows[LAST].closing = what == 2;
        for (uint32_t i = 1; i < NODES; i++) {
            const uint64_t mute = dp_members_mute_at(&members->rows[i]).us;
            const uint64_t due = mute > members->unsure_until.us ? mute : members->unsure_until.us;
            wanted = due < wanted && !members->rows[i].closing ? due : wanted;
        }
        CHECK(dp_members_part_wake(members).us == wanted);
        CHECK(what != 1 || wanted == m->now + 1800 * DP_SECOND);
    }
    members->rows[LAST].closing = false;
    members->beat->quorum = true;
    mesh_close(m);
}

/* Not those that it is dialling, and not again while it stays alone. */
static void a_node_that_becomes_alone_dials_all_soon(void **state)
{
    (void)state;
    mesh *const m = voters();
    dp_members *const members = m->nodes[0].members;
    const uint64_t late = m->now + 3600 * DP_SECOND;
    for (uint32_t turn = 0; turn < 3; turn++) {
        members->beat->quorum = turn == 0;
        for (uint32_t i = 1; i < NODES; i++) {
            members->rows[i].dial_at = (dp_time){late};
            members->rows[i].dialling = i == 2;
        }
        dp_out_begin(&m->out, m->actions);
        dp_members_dial(members, mesh_now(m), &m->out);
        for (uint32_t i = 1; i < NODES; i++) {
            const bool soon = members->rows[i].dial_at.us <= m->now + DP_DIAL_US_ALONE;
            CHECK(soon == (turn == 1 && i != 2));
            CHECK(soon || members->rows[i].dial_at.us == late);
        }
        CHECK(members->alone == (turn > 0));
    }
    members->beat->quorum = true;
    for (uint32_t i = 1; i < NODES; i++) {
        members->rows[i].dialling = false;
    }
    mesh_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_is_cut_off_ends_links_that_nothing_comes_through),
        cmocka_unit_test(after_any_cut_all_links_stand_again_in_a_second_and_a_half),
        cmocka_unit_test(while_a_majority_is_heard_a_mute_link_is_left_to_tcp),
        cmocka_unit_test(a_process_that_stood_still_ends_no_link),
        cmocka_unit_test(a_node_that_loses_the_majority_dials_the_dead_within_a_second),
        cmocka_unit_test(links_of_removed_members_end_each_at_its_time),
        cmocka_unit_test(a_node_that_is_alone_wakes_when_a_link_is_mute_and_it_is_sure),
        cmocka_unit_test(a_node_that_becomes_alone_dials_all_soon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
