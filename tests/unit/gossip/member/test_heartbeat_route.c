/* Heartbeats: the way to a voter without a link, and what a beat tells of its voter. */
#include "tests/unit/gossip/kit/mesh.h"

/* Node 0 and voter 1 do not hear each other; of the two voters between, one hears voter 1. */
static void the_way_to_a_voter_is_one_that_hears_it(void **state)
{
    (void)state;
    mesh *const m = mesh_of(4, 23);
    const dp_peer set[4] = {mesh_peer(0), mesh_peer(1), mesh_peer(2), mesh_peer(3)};
    dp_peer relays[2];
    for (uint32_t i = 0; i < 4; i++) {
        dp_heartbeat_set_voters(&m->nodes[i].beat, set, 4, mesh_now(m));
    }
    mesh_join_all(m);
    mesh_block(m, 0, 1, true);
    mesh_block(m, 1, 2, true);
    mesh_run_for(m, 10 * DP_SECOND);
    CHECK(dp_heartbeat_route(&m->nodes[0].beat, mesh_now(m), 1, relays, 2) == 1);
    const dp_peer between = mesh_peer(3);
    CHECK(dp_peer_equal(&relays[0], &between));
    CHECK(dp_heartbeat_route(&m->nodes[0].beat, mesh_now(m), 0, relays, 2) == 0); /* Itself. */
    mesh_close(m);
}

static void a_beat_tells_the_slot_and_the_round_of_its_voter_here_and_there(void **state)
{
    (void)state;
    mesh *const m = mesh_of(2, 24);
    const dp_peer set[2] = {mesh_peer(0), mesh_peer(1)};
    for (uint32_t i = 0; i < 2; i++) {
        dp_heartbeat_set_voters(&m->nodes[i].beat, set, 2, mesh_now(m));
    }
    mesh_join_all(m);
    mesh_run_for(m, DP_SECOND);
    dp_heartbeat *beat = &m->nodes[0].beat;
    beat->beat_at = mesh_now(m);
    dp_out_begin(&m->out, m->actions);
    dp_heartbeat_tick(beat, mesh_now(m), 77, 66, &m->out);
    CHECK(beat->voters[beat->own].slot == 77 && beat->voters[beat->own].round == 66);
    mesh_perform(m, 0);
    mesh_run_for(m, 10 * DP_MS);
    const dp_heartbeat *other = &m->nodes[1].beat;
    CHECK(other->voters[1 - other->own].slot == 77 && other->voters[1 - other->own].round == 66);
    mesh_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_to_a_voter_is_one_that_hears_it),
        cmocka_unit_test(a_beat_tells_the_slot_and_the_round_of_its_voter_here_and_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
