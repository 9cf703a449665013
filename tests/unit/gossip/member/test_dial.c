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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_is_cut_off_ends_links_that_nothing_comes_through),
        cmocka_unit_test(after_any_cut_all_links_stand_again_in_a_second_and_a_half),
        cmocka_unit_test(while_a_majority_is_heard_a_mute_link_is_left_to_tcp),
        cmocka_unit_test(a_process_that_stood_still_ends_no_link),
        cmocka_unit_test(a_node_that_loses_the_majority_dials_the_dead_within_a_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
