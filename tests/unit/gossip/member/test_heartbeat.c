#include "tests/unit/gossip/kit/mesh.h"

#include "tests/lib/mutate.h"

enum { VOTERS_MAX = 5 };

/* Beats alone: every node is linked to those that linked[][] says, and delivery is instant. */
typedef struct group {
    uint32_t n;
    bool linked[8][8];
    bool running[8];
    dp_heartbeat beats[8];
    uint64_t now;
    dp_actions *actions;
    dp_out out;
} group;

static group *group_of(uint32_t n, uint32_t voters)
{
    group *const g = calloc(1, sizeof *g);
    assert_non_null(g);
    g->n = n;
    g->now = DP_SECOND;
    g->actions = calloc(1, sizeof *g->actions);
    assert_non_null(g->actions);
    CHECK_OK(dp_out_open(&g->out));
    dp_peer set[VOTERS_MAX];
    for (uint32_t i = 0; i < voters; i++) {
        set[i] = mesh_peer(i);
    }
    for (uint32_t i = 0; i < n; i++) {
        g->running[i] = true;
        dp_heartbeat_init(&g->beats[i], &(dp_heartbeat_config){.run = mesh_run,
                                                               .self = mesh_peer(i),
                                                               .incarnation = 1,
                                                               .crypto = mesh_crypto(i)});
        dp_heartbeat_set_voters(&g->beats[i], set, voters, (dp_time){g->now});
        for (uint32_t k = 0; k < n; k++) {
            g->linked[i][k] = i != k;
        }
    }
    return g;
}

static void group_close(group *g)
{
    dp_out_close(&g->out);
    free(g->actions);
    free(g);
}

static uint32_t number_of(const dp_peer *peer)
{
    return peer->bytes[0] - 1U;
}

/* Delivers the messages of i, and the messages that these cause. */
static void deliver(group *g, uint32_t i, uint32_t depth)
{
    uint8_t bytes[16][DP_HEARTBEAT_BYTES];
    uint32_t to[16];
    uint32_t n = 0;

    assert_true(depth < 4); /* passing on must end */
    for (uint32_t k = 0; k < g->actions->count; k++) {
        const dp_action *const action = &g->actions->items[k];
        if (action->type != DP_DO_SEND) {
            continue;
        }
        assert_int_equal(action->u.send.bytes.size, DP_HEARTBEAT_BYTES);
        for (uint32_t j = 0; j < g->n; j++) {
            if (g->linked[i][j] && g->running[j] &&
                (action->u.send.to == DP_TO_ALL || number_of(&action->u.send.peer) == j)) {
                assert_true(n < 16);
                memcpy(bytes[n], action->u.send.bytes.data, DP_HEARTBEAT_BYTES);
                to[n++] = j;
            }
        }
    }
    const dp_peer from = mesh_peer(i);
    for (uint32_t k = 0; k < n; k++) {
        dp_out_begin(&g->out, g->actions);
        DP_IGNORE(dp_heartbeat_message(&g->beats[to[k]], (dp_time){g->now}, &from,
                                       dp_view_of(bytes[k], DP_HEARTBEAT_BYTES), &g->out));
        deliver(g, to[k], depth + 1);
    }
}

static void run(group *g, uint64_t us)
{
    for (const uint64_t end = g->now + us; g->now < end; g->now += 10 * DP_MS) {
        for (uint32_t i = 0; i < g->n; i++) {
            if (g->running[i]) {
                dp_out_begin(&g->out, g->actions);
                dp_heartbeat_clock(&g->beats[i], g->beats[i].wall_ms + 10);
                dp_heartbeat_tick(&g->beats[i], (dp_time){g->now}, 7, 3, &g->out);
                deliver(g, i, 0);
            }
        }
        for (uint32_t i = 0; i < g->n; i++) {
            CHECK_OK(dp_heartbeat_check(&g->beats[i], NULL));
        }
    }
}

static void a_founder_alone_is_its_own_quorum_at_once(void **state)
{
    (void)state;
    group *const g = group_of(1, 1);
    run(g, 10 * DP_MS);
    CHECK(dp_heartbeat_quorum(&g->beats[0]));
    group_close(g);
}

static void nobody_has_a_quorum_before_voters_are_known(void **state)
{
    (void)state;
    dp_heartbeat beat;
    dp_actions *const actions = calloc(1, sizeof *actions);
    dp_out out;
    assert_non_null(actions);
    CHECK_OK(dp_out_open(&out));
    dp_out_begin(&out, actions);
    dp_heartbeat_init(&beat,
                      &(dp_heartbeat_config){.self = mesh_peer(0), .crypto = mesh_crypto(0)});
    dp_heartbeat_tick(&beat, (dp_time){DP_SECOND}, 0, 0, &out);
    CHECK(!dp_heartbeat_quorum(&beat));
    CHECK(actions->count == 0);
    CHECK(dp_heartbeat_wake(&beat).us == UINT64_MAX);
    dp_out_close(&out);
    free(actions);
}

static void three_voters_and_a_listener_agree_on_a_quorum(void **state)
{
    (void)state;
    group *const g = group_of(4, 3);
    run(g, 2 * DP_SECOND);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK(dp_heartbeat_quorum(&g->beats[i]));
        CHECK(dp_heartbeat_heard(&g->beats[i], (dp_time){g->now}) == 7);
        CHECK(g->beats[i].changes == 1);
    }
    CHECK(g->beats[3].voters[0].slot == 7 && g->beats[3].voters[0].round == 3);
    group_close(g);
}

static void losing_one_of_three_voters_keeps_the_quorum_and_two_lose_it(void **state)
{
    (void)state;
    group *const g = group_of(4, 3);
    run(g, 2 * DP_SECOND);
    g->running[1] = false;
    run(g, 5 * DP_SECOND);
    CHECK(dp_heartbeat_quorum(&g->beats[0]));
    CHECK(dp_heartbeat_quorum(&g->beats[3]));
    g->running[2] = false;
    run(g, DP_SECOND);
    CHECK(dp_heartbeat_quorum(
        &g->beats[0])); /* not yet: beats stay fresh, then the fallback time runs */
    run(g, 3 * DP_SECOND);
    CHECK(!dp_heartbeat_quorum(&g->beats[0]));
    CHECK(!dp_heartbeat_quorum(&g->beats[3]));
    group_close(g);
}

static void the_quorum_is_back_after_two_beats(void **state)
{
    (void)state;
    group *const g = group_of(3, 3);
    run(g, 2 * DP_SECOND);
    g->running[1] = g->running[2] = false;
    run(g, 5 * DP_SECOND);
    CHECK(!dp_heartbeat_quorum(&g->beats[0]));
    g->running[1] = true;
    run(g, 300 * DP_MS);
    CHECK(!dp_heartbeat_quorum(&g->beats[0]));
    run(g, DP_SECOND);
    CHECK(dp_heartbeat_quorum(&g->beats[0]));
    group_close(g);
}

static void the_opinion_changes_at_most_once_per_hold_time(void **state)
{
    (void)state;
    group *const g = group_of(3, 3);
    for (uint32_t i = 0; i < 3; i++) {
        dp_heartbeat_hold(&g->beats[i], 30 * DP_SECOND);
    }
    run(g, 2 * DP_SECOND);
    CHECK(g->beats[0].changes == 1);
    g->running[1] = g->running[2] = false;
    run(g, 20 * DP_SECOND);
    CHECK(dp_heartbeat_quorum(&g->beats[0])); /* held */
    run(g, 15 * DP_SECOND);
    CHECK(!dp_heartbeat_quorum(&g->beats[0]));
    CHECK(g->beats[0].changes == 2);
    group_close(g);
}

static void in_a_partition_only_the_majority_side_sees_a_quorum(void **state)
{
    (void)state;
    group *const g = group_of(7, 5); /* voters 0..4, others 5, 6; {0,1,5} | {2,3,4,6} */
    run(g, 2 * DP_SECOND);
    for (uint32_t i = 0; i < 7; i++) {
        for (uint32_t k = 0; k < 7; k++) {
            const bool a = i < 2 || i == 5;
            const bool b = k < 2 || k == 5;
            g->linked[i][k] = i != k && a == b;
        }
    }
    run(g, 5 * DP_SECOND);
    for (uint32_t i = 0; i < 7; i++) {
        CHECK(dp_heartbeat_quorum(&g->beats[i]) == !(i < 2 || i == 5));
    }
    group_close(g);
}

static void a_voter_in_the_middle_carries_beats_between_two_that_are_not_linked(void **state)
{
    (void)state;
    group *const g = group_of(3, 3); /* 0 - 2 - 1 */
    g->linked[0][1] = g->linked[1][0] = false;
    run(g, 4 * DP_SECOND);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(dp_heartbeat_quorum(&g->beats[i]));
        CHECK(dp_heartbeat_heard(&g->beats[i], (dp_time){g->now}) == 7);
    }
    dp_peer relays[2];
    CHECK(dp_heartbeat_route(&g->beats[0], (dp_time){g->now}, 1, relays, 2) == 1);
    CHECK(number_of(&relays[0]) == 2);
    CHECK(dp_heartbeat_route(&g->beats[0], (dp_time){g->now}, 2, relays, 2) == 0); /* direct */
    group_close(g);
}

static void riders_bring_the_beats_that_the_other_side_lacks(void **state)
{
    (void)state;
    group *const g = group_of(4, 3); /* 3 hears others only through forwarded heartbeats */
    for (uint32_t i = 0; i < 3; i++) {
        g->linked[i][3] = g->linked[3][i] = false;
    }
    const dp_peer from = mesh_peer(0);
    for (uint32_t k = 0; k < 20; k++) {
        run(g, 100 * DP_MS);
        uint8_t bytes[DP_HEARTBEAT_RIDER_MAX];
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        const dp_time now = {g->now};
        dp_heartbeat_write_rider(&g->beats[0], now, g->beats[3].tag, 0, &writer);
        CHECK(!writer.full);
        dp_reader reader = dp_reader_of(dp_view_of(bytes, writer.size));
        dp_out_begin(&g->out, g->actions);
        CHECK_OK(dp_heartbeat_read_rider(&g->beats[3], now, &from, &reader, &g->out));
        CHECK_OK(dp_reader_finish(&reader));
        for (size_t cut = 0; cut < writer.size; cut++) {
            reader = dp_reader_of(dp_view_of(bytes, cut));
            CHECK_STATUS(dp_heartbeat_read_rider(&g->beats[3], now, &from, &reader, &g->out),
                         DP_BADMSG);
        }
    }
    CHECK(dp_heartbeat_quorum(&g->beats[3]));
    group_close(g);
}

static void a_node_that_two_of_three_voters_do_not_reach_still_sees_the_quorum(void **state)
{
    (void)state;
    mesh *const m = mesh_of(5, 21);
    const dp_peer set[3] = {mesh_peer(0), mesh_peer(1), mesh_peer(2)};
    for (uint32_t i = 0; i < 5; i++) {
        dp_heartbeat_set_voters(&m->nodes[i].beat, set, 3, mesh_now(m));
    }
    mesh_join_all(m);
    mesh_block(m, 4, 0, true);
    mesh_block(m, 4, 1, true);
    mesh_run_for(m, 5 * DP_SECOND);
    CHECK(dp_heartbeat_quorum(&m->nodes[4].beat));
    CHECK(m->nodes[4].beat.voters[0].direct.us == 0);
    for (uint32_t i = 0; i < 600; i++) { /* a minute without a flicker */
        mesh_run_for(m, 100 * DP_MS);
        CHECK(dp_heartbeat_quorum(&m->nodes[4].beat));
        CHECK(dp_heartbeat_heard(&m->nodes[4].beat, mesh_now(m)) == 7);
    }
    CHECK(m->nodes[4].beat.changes == 1);
    mesh_block(m, 4, 2, true); /* now only node 3, no voter, passes them on */
    mesh_run_for(m, 10 * DP_SECOND);
    CHECK(dp_heartbeat_quorum(&m->nodes[4].beat));
    mesh_close(m);
}

static void a_member_between_two_voters_that_are_not_linked_is_the_way_to_the_other(void **state)
{
    (void)state;
    mesh *const m = mesh_of(4, 22);
    const dp_peer set[3] = {mesh_peer(0), mesh_peer(1), mesh_peer(2)};
    dp_peer relays[2];
    for (uint32_t i = 0; i < 4; i++) {
        dp_heartbeat_set_voters(&m->nodes[i].beat, set, 3, mesh_now(m));
    }
    mesh_join_all(m);
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < i; k++) {
            mesh_block(m, i, k, true);
        }
    }
    mesh_run_for(m, 10 * DP_SECOND);
    for (uint32_t i = 0; i < 100; i++) {
        mesh_run_for(m, 100 * DP_MS);
        CHECK(dp_heartbeat_route(&m->nodes[0].beat, mesh_now(m), 1, relays, 2) == 1);
        CHECK(number_of(&relays[0]) == 3);
        CHECK(dp_heartbeat_route(&m->nodes[3].beat, mesh_now(m), 1, relays, 2) == 0);
    }
    CHECK(dp_heartbeat_route(&m->nodes[0].beat, mesh_now(m), 1, relays, 0) == 0);
    mesh_block(m, 3, 1, true);
    mesh_run_for(m, 3 * DP_SECOND); /* The beat that it brought grows old. */
    CHECK(dp_heartbeat_route(&m->nodes[0].beat, mesh_now(m), 1, relays, 2) == 0);
    mesh_close(m);
}

static void old_forged_and_foreign_beats_bring_nothing(void **state)
{
    (void)state;
    group *const g = group_of(3, 3);
    run(g, DP_SECOND);
    uint8_t bytes[DP_HEARTBEAT_BYTES + 16];
    const dp_peer from = mesh_peer(1);
    const dp_time now = {g->now};
    memcpy(bytes, g->beats[1].voters[1].message, DP_HEARTBEAT_BYTES);

    dp_out_begin(&g->out, g->actions);
    CHECK_STATUS(dp_heartbeat_message(&g->beats[0], now, &from,
                                      dp_view_of(bytes, DP_HEARTBEAT_BYTES), &g->out),
                 DP_EXISTS);
    bytes[42] = (uint8_t)(bytes[42] + 9); /* a later sequence under the old signature */
    CHECK_STATUS(dp_heartbeat_message(&g->beats[0], now, &from,
                                      dp_view_of(bytes, DP_HEARTBEAT_BYTES), &g->out),
                 DP_BADSIG);
    bytes[2] = 200; /* no voter */
    CHECK_STATUS(dp_heartbeat_message(&g->beats[0], now, &from,
                                      dp_view_of(bytes, DP_HEARTBEAT_BYTES), &g->out),
                 DP_NOTFOUND);
    bytes[1] = 9;
    CHECK_STATUS(dp_heartbeat_message(&g->beats[0], now, &from,
                                      dp_view_of(bytes, DP_HEARTBEAT_BYTES), &g->out),
                 DP_VERSION);
    bytes[1] = DP_MSG_VERSION;
    bytes[0] = DP_MSG_PING;
    CHECK_STATUS(dp_heartbeat_message(&g->beats[0], now, &from,
                                      dp_view_of(bytes, DP_HEARTBEAT_BYTES), &g->out),
                 DP_BADMSG);
    memcpy(bytes, g->beats[1].voters[1].message, DP_HEARTBEAT_BYTES);
    bytes[78] = 2; /* neither with a quorum nor without */
    CHECK_STATUS(dp_heartbeat_message(&g->beats[0], now, &from,
                                      dp_view_of(bytes, DP_HEARTBEAT_BYTES), &g->out),
                 DP_BADMSG);
    bytes[78] = 1;
    memset(bytes + 42, 0, 8); /* the first is number one */
    CHECK_STATUS(dp_heartbeat_message(&g->beats[0], now, &from,
                                      dp_view_of(bytes, DP_HEARTBEAT_BYTES), &g->out),
                 DP_BADMSG);
    const dp_heartbeat before = g->beats[0];
    dp_rng rng;
    dp_rng_init(&rng, 4);
    for (uint32_t i = 0; i < 2000; i++) {
        memcpy(bytes, g->beats[1].voters[1].message, DP_HEARTBEAT_BYTES);
        const size_t size = mutate(&rng, bytes, DP_HEARTBEAT_BYTES, sizeof bytes);
        const dp_status status =
            dp_heartbeat_message(&g->beats[0], now, &from, dp_view_of(bytes, size), &g->out);
        CHECK(status != DP_OK);
    }
    CHECK(before.voters[1].sequence == g->beats[0].voters[1].sequence);
    group_close(g);
}

static void a_new_voter_set_keeps_what_is_known_of_those_who_stay(void **state)
{
    (void)state;
    group *const g = group_of(4, 1); /* the founder alone, then three */
    run(g, DP_SECOND);
    CHECK(dp_heartbeat_quorum(&g->beats[0]));
    const dp_peer set[3] = {mesh_peer(0), mesh_peer(1), mesh_peer(2)};
    for (uint32_t i = 0; i < 4; i++) {
        dp_heartbeat_set_voters(&g->beats[i], set, 3, (dp_time){g->now});
    }
    CHECK(g->beats[3].voters[0].sequence > 0);
    run(g, DP_SECOND);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK(dp_heartbeat_quorum(&g->beats[i]));
        CHECK(g->beats[i].changes == 1); /* the change of the set was not felt */
    }
    group_close(g);
}

static void a_voter_again_is_not_heard_by_earlier_heartbeats(void **state)
{
    (void)state;
    group *const g = group_of(3, 3);
    uint8_t old[DP_HEARTBEAT_BYTES];
    const dp_peer set[3] = {mesh_peer(0), mesh_peer(1), mesh_peer(2)};
    const dp_peer other = mesh_peer(3);
    run(g, DP_SECOND);
    dp_heartbeat *const beat = &g->beats[0];
    memcpy(old, beat->voters[2].message, sizeof old);
    run(g, DP_SECOND);
    const uint64_t newest = beat->voters[2].sequence;
    g->running[2] = false;
    dp_heartbeat_set_voters(beat, set, 1, (dp_time){g->now});
    run(g, DP_SECOND);
    dp_heartbeat_set_voters(beat, set, 3, (dp_time){g->now});
    CHECK(beat->voters[2].sequence == newest && !dp_heartbeat_fresh(beat, (dp_time){g->now}, 2));
    dp_out_begin(&g->out, g->actions);
    CHECK(dp_heartbeat_message(beat, (dp_time){g->now}, &set[2], dp_view_of(old, sizeof old),
                               &g->out) == DP_EXISTS);
    CHECK(!dp_heartbeat_fresh(beat, (dp_time){g->now}, 2));
    g->running[2] = true;
    run(g, DP_SECOND); /* Its new beats count. */
    CHECK(beat->voters[2].sequence > newest && dp_heartbeat_fresh(beat, (dp_time){g->now}, 2));
    for (uint32_t i = 0; i < 2 * DP_HEARTBEAT_PAST_MAX;
         i++) { /* Many join and leave: the oldest is dropped. */
        dp_peer many[2] = {set[0], other};
        many[1].bytes[31] = (uint8_t)i;
        dp_heartbeat_set_voters(beat, many, 2, (dp_time){g->now});
        beat->voters[1].incarnation = 1;
        CHECK_OK(dp_heartbeat_check(beat, NULL));
    }
    group_close(g);
}

static void a_minority_of_wrong_clocks_moves_nobodys_time(void **state)
{
    static const uint64_t right = 1700000000000ULL;
    static const uint64_t ten_years = 10ULL * 365 * 86400 * 1000;

    (void)state;
    group *const g = group_of(4, 3); /* three voters and a listener */
    for (uint32_t wrong = 0; wrong < 3; wrong++) {
        for (uint32_t ahead = 0; ahead < 2; ahead++) {
            for (uint32_t i = 0; i < g->n; i++) {
                const uint64_t off = ahead == 1 ? right + ten_years : right - ten_years;
                dp_heartbeat_clock(&g->beats[i], i == wrong ? off : right + i);
            }
            run(g, DP_SECOND);
            for (uint32_t i = 0; i < g->n; i++) {
                CHECK(dp_heartbeat_agreed_ms(&g->beats[i], (dp_time){g->now}) - right - 1000 < 20);
            }
        }
    }
    group_close(g);
}

static void with_two_of_three_clocks_the_earlier_one_counts(void **state)
{
    (void)state;
    group *const g = group_of(2, 3);
    dp_heartbeat_clock(&g->beats[0], 5000);
    dp_heartbeat_clock(&g->beats[1], 9000);
    run(g, DP_SECOND);
    CHECK(dp_heartbeat_agreed_ms(&g->beats[0], (dp_time){g->now}) - 6000 <= 10);
    CHECK(dp_heartbeat_agreed_ms(&g->beats[1], (dp_time){g->now}) - 6000 <= 10);
    group_close(g);
}

static void beats_of_long_rounds_are_rarer_and_silence_counts_as_much_later(void **state)
{
    (void)state;
    CHECK(dp_heartbeat_pace(500) == 1 && dp_heartbeat_pace(19999) == 1);
    CHECK(dp_heartbeat_pace(30000) == 3 && dp_heartbeat_pace(86400000) == 4);
    group *const g = group_of(3, 3);
    for (uint32_t i = 0; i < g->n; i++) {
        g->beats[i].pace = dp_heartbeat_pace(30000);
        g->beats[i].fallback_us = DP_SECOND + 9 * DP_HEARTBEAT_US;
    }
    run(g, 30 * DP_SECOND);
    CHECK(g->beats[0].sequence >= 39 && g->beats[0].sequence <= 42);
    CHECK(dp_heartbeat_quorum(&g->beats[0]));
    g->running[1] = false;
    g->running[2] = false;
    run(g, DP_SECOND + 6 * DP_HEARTBEAT_US);
    CHECK(dp_heartbeat_quorum(&g->beats[0]));
    run(g, DP_SECOND + 12 * DP_HEARTBEAT_US);
    CHECK(!dp_heartbeat_quorum(&g->beats[0]));
    group_close(g);
}

static void the_pace_of_a_manifest_sets_the_time_of_the_fallback(void **state)
{
    dp_heartbeat beat;

    (void)state;
    dp_heartbeat_init(&beat, &(dp_heartbeat_config){.self = mesh_peer(0), .pace = 3});
    CHECK(beat.pace == 3 && beat.fallback_us == DP_SECOND + 9 * DP_HEARTBEAT_US);
    dp_heartbeat_init(&beat, &(dp_heartbeat_config){.self = mesh_peer(0)});
    CHECK(beat.pace == 1 && beat.fallback_us == DP_SECOND + 3 * DP_HEARTBEAT_US);
}

static void set_idle(group *g, uint32_t i, bool idle)
{
    dp_heartbeat_idle(&g->beats[i], idle, (dp_time){g->now});
}

/* Runs so long; all nodes that run must see a quorum all the time. */
static void run_with_quorum(group *g, uint64_t us)
{
    for (const uint64_t end = g->now + us; g->now < end;) {
        run(g, 100 * DP_MS);
        for (uint32_t i = 0; i < g->n; i++) {
            CHECK(!g->running[i] || dp_heartbeat_quorum(&g->beats[i]));
        }
    }
}

static void an_idle_run_has_rare_beats_and_nobody_is_missed(void **state)
{
    (void)state;
    group *const g = group_of(4, 3);
    run(g, 2 * DP_SECOND);
    for (uint32_t i = 0; i < g->n; i++) { /* They do not find out at the same time. */
        set_idle(g, i, true);
        run_with_quorum(g, 3 * DP_SECOND);
    }
    run_with_quorum(g, DP_IDLE_AFTER_US);
    const uint64_t before = g->beats[0].sequence;
    run_with_quorum(g, 10 * DP_IDLE_BEAT_US);
    CHECK(g->beats[0].sequence - before <= 11);
    const dp_peer peers[2] = {mesh_peer(1), mesh_peer(2)};
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t voter = dp_heartbeat_find_voter(&g->beats[3], &peers[k]);
        CHECK(dp_heartbeat_fresh(&g->beats[3], (dp_time){g->now}, voter));
    }
    const uint64_t clock = dp_heartbeat_agreed_ms(&g->beats[0], (dp_time){g->now});
    /* The age of the others' heartbeats does not matter. */
    CHECK(clock - g->beats[0].wall_ms + 20 <= 40);
    for (uint32_t i = 0; i < g->n; i++) { /* Nor that it is over. */
        set_idle(g, i, false);
        run_with_quorum(g, 900 * DP_MS);
    }
    run_with_quorum(g, 3 * DP_IDLE_BEAT_US);
    CHECK(dp_heartbeat_wake(&g->beats[0]).us <= g->now + DP_HEARTBEAT_US);
    group_close(g);
}

static void a_death_in_an_idle_run_is_noticed_soon_after_its_end(void **state)
{
    (void)state;
    group *const g = group_of(3, 3);
    run(g, 2 * DP_SECOND);
    for (uint32_t i = 0; i < g->n; i++) {
        set_idle(g, i, true);
    }
    run_with_quorum(g, 3 * DP_IDLE_BEAT_US);
    g->running[1] = false;
    g->running[2] = false;
    const uint64_t before = g->beats[0].sequence;
    set_idle(g, 0, false);
    run(g, 20 * DP_MS);
    CHECK(g->beats[0].sequence == before + 1); /* Its own beat is due at once. */
    run(g, DP_IDLE_GRACE_US + (DP_SECOND + 3 * DP_HEARTBEAT_US) + DP_SECOND);
    CHECK(!dp_heartbeat_quorum(&g->beats[0]));
    set_idle(g, 0, true); /* If it takes the run for idle again, the beats are too old. */
    run(g, 3 * DP_IDLE_BEAT_US);
    CHECK(!dp_heartbeat_quorum(&g->beats[0]));
    group_close(g);
}

static void wakes_do_not_spin(void **state)
{
    (void)state;
    group *const g = group_of(3, 3);
    run(g, 2 * DP_SECOND);
    dp_heartbeat_hold(&g->beats[0], 5 * DP_SECOND);
    for (uint32_t i = 0; i < 200; i++) { /* the others fall silent */
        const dp_time wake = dp_heartbeat_wake(&g->beats[0]);
        g->now = wake.us > g->now ? wake.us : g->now;
        dp_out_begin(&g->out, g->actions);
        dp_heartbeat_tick(&g->beats[0], (dp_time){g->now}, 1, 1, &g->out);
        CHECK(dp_heartbeat_wake(&g->beats[0]).us > g->now);
    }
    CHECK(!dp_heartbeat_quorum(&g->beats[0]));
    group_close(g);
}

/* A node that is no voter has no beat of its own to wake for. */
static void it_wakes_when_the_opinion_may_change_and_no_sooner(void **state)
{
    (void)state;
    const dp_time t = {100 * DP_SECOND};
    const dp_time later = {103 * DP_SECOND};
    group *const g = group_of(4, 3);
    dp_heartbeat *const beat = &g->beats[3];
    CHECK(dp_heartbeat_wake(beat).us == DP_NEVER.us);
    beat->pace = 3;
    beat->fallback_us = 7 * DP_SECOND;
    beat->seen_since = t; /* The second beat counts. */
    beat->seen_at = later;
    CHECK(dp_heartbeat_wake(beat).us == t.us + 6 * DP_HEARTBEAT_US);
    beat->quorum = true; /* The beats seen may be stale. */
    CHECK(dp_heartbeat_wake(beat).us == later.us + 3 * DP_HEARTBEAT_US);
    beat->idle.idle = true;
    CHECK(dp_heartbeat_wake(beat).us == later.us + DP_IDLE_BEAT_US);
    beat->seen_since = (dp_time){0}; /* They are: the fallback. */
    CHECK(dp_heartbeat_wake(beat).us == later.us + 7 * DP_SECOND);
    beat->changed = t; /* Not before the hold time is over. */
    beat->hold_us = 60 * DP_SECOND;
    CHECK(dp_heartbeat_wake(beat).us == t.us + 60 * DP_SECOND);
    beat->hold_us = 10 * DP_SECOND;
    CHECK(dp_heartbeat_wake(beat).us == later.us + 7 * DP_SECOND);
    beat->beat_at = t; /* Its own beat is no opinion. */
    CHECK(dp_heartbeat_wake(beat).us == t.us);
    beat->beat_at = (dp_time){t.us + DP_SECOND};
    beat->hold_us = 60 * DP_SECOND;
    CHECK(dp_heartbeat_wake(beat).us == t.us + DP_SECOND);
    beat->n_voters = 0;
    CHECK(dp_heartbeat_wake(beat).us == DP_NEVER.us);
    group_close(g);
}

/* The signature is over all of it: no bit of a beat can be another. */
static void no_bit_of_a_beat_can_be_changed_and_every_field_arrives(void **state)
{
    (void)state;
    group *const g = group_of(3, 3);
    const dp_peer from = mesh_peer(1);
    uint8_t bytes[DP_HEARTBEAT_BYTES];
    dp_heartbeat *const own = &g->beats[1];
    own->incarnation = 0x0102030405060708;
    own->sequence = 0x1112131415161718;
    dp_heartbeat_clock(own, 0x2122232425262728);
    dp_out_begin(&g->out, g->actions);
    dp_heartbeat_tick(own, (dp_time){g->now}, 0x3132333435363738, 0x4142434445464748, &g->out);
    assert_int_equal(g->actions->count, 1);
    memcpy(bytes, g->actions->items[0].u.send.bytes.data, sizeof bytes);
    for (size_t at = 0; at < sizeof bytes; at++) {
        bytes[at] ^= 1;
        dp_out_begin(&g->out, g->actions);
        CHECK(dp_heartbeat_message(&g->beats[0], (dp_time){g->now}, &from,
                                   dp_view_of(bytes, sizeof bytes), &g->out) != DP_OK);
        bytes[at] ^= 1;
    }
    CHECK_OK(dp_heartbeat_message(&g->beats[0], (dp_time){g->now}, &from,
                                  dp_view_of(bytes, sizeof bytes), &g->out));
    const dp_heartbeat_voter *const voter = &g->beats[0].voters[1];
    CHECK(voter->incarnation == 0x0102030405060708 && voter->sequence == 0x1112131415161719);
    CHECK(voter->wall_ms == 0x2122232425262728 && voter->arrived.us == g->now);
    CHECK(voter->slot == 0x3132333435363738 && voter->round == 0x4142434445464748);
    CHECK(!voter->quorum && voter->heard == 2 && voter->direct.us == g->now);
    assert_memory_equal(voter->message, bytes, sizeof bytes);
    group_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_founder_alone_is_its_own_quorum_at_once),
        cmocka_unit_test(nobody_has_a_quorum_before_voters_are_known),
        cmocka_unit_test(three_voters_and_a_listener_agree_on_a_quorum),
        cmocka_unit_test(losing_one_of_three_voters_keeps_the_quorum_and_two_lose_it),
        cmocka_unit_test(the_quorum_is_back_after_two_beats),
        cmocka_unit_test(the_opinion_changes_at_most_once_per_hold_time),
        cmocka_unit_test(in_a_partition_only_the_majority_side_sees_a_quorum),
        cmocka_unit_test(a_voter_in_the_middle_carries_beats_between_two_that_are_not_linked),
        cmocka_unit_test(riders_bring_the_beats_that_the_other_side_lacks),
        cmocka_unit_test(a_node_that_two_of_three_voters_do_not_reach_still_sees_the_quorum),
        cmocka_unit_test(a_member_between_two_voters_that_are_not_linked_is_the_way_to_the_other),
        cmocka_unit_test(old_forged_and_foreign_beats_bring_nothing),
        cmocka_unit_test(a_new_voter_set_keeps_what_is_known_of_those_who_stay),
        cmocka_unit_test(a_voter_again_is_not_heard_by_earlier_heartbeats),
        cmocka_unit_test(a_minority_of_wrong_clocks_moves_nobodys_time),
        cmocka_unit_test(with_two_of_three_clocks_the_earlier_one_counts),
        cmocka_unit_test(beats_of_long_rounds_are_rarer_and_silence_counts_as_much_later),
        cmocka_unit_test(the_pace_of_a_manifest_sets_the_time_of_the_fallback),
        cmocka_unit_test(an_idle_run_has_rare_beats_and_nobody_is_missed),
        cmocka_unit_test(a_death_in_an_idle_run_is_noticed_soon_after_its_end),
        cmocka_unit_test(wakes_do_not_spin),
        cmocka_unit_test(it_wakes_when_the_opinion_may_change_and_no_sooner),
        cmocka_unit_test(no_bit_of_a_beat_can_be_changed_and_every_field_arrives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
