#include "tests/unit/gossip/kit/mesh.h"

#include "gossip/member/members_internal.h"
#include "gossip/member/statement.h"
#include "tests/lib/allocfail.h"
#include "tests/lib/mutate.h"

static void two_nodes_meet_and_hold_each_other_alive(void **state)
{
    (void)state;
    mesh *const m = mesh_of(2, 1);

    mesh_join(m, 0, 1);
    mesh_run_for(m, DP_SECOND);
    CHECK(mesh_state(m, 0, 1) == DP_MEMBER_ALIVE);
    CHECK(mesh_state(m, 1, 0) == DP_MEMBER_ALIVE);
    CHECK(mesh_sees(m, 0, 1)->incarnation == 1);
    CHECK(mesh_sees(m, 0, 1)->rtt.samples > 0);
    CHECK(mesh_sees(m, 0, 1)->has_summary);
    CHECK(m->refused == 0);
    mesh_close(m);
}

static void a_newcomer_at_one_node_is_soon_linked_to_all(void **state)
{
    (void)state;
    mesh *const m = mesh_of(8, 2);

    for (uint32_t i = 1; i < m->n; i++) {
        mesh_join(m, i, 0);
    }
    mesh_run_for(m, 5 * DP_SECOND);
    for (uint32_t i = 0; i < m->n; i++) {
        CHECK(dp_members_alive(m->nodes[i].members) == m->n);
        for (uint32_t k = 0; k < m->n; k++) {
            CHECK(i == k || mesh_sees(m, i, k)->linked);
        }
    }
    CHECK(m->refused == 0);
    mesh_close(m);
}

static void a_killed_peer_is_dead_at_once_in_groups_of_two_to_eight(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 8; n++) {
        mesh *const m = mesh_of(n, 100 + n);
        mesh_join_all(m);
        mesh_run_for(m, 3 * DP_SECOND);
        mesh_kill(m, n - 1);
        CHECK(mesh_wait_state(m, 0, n - 1, DP_MEMBER_DEAD, 500 * DP_MS) < 500 * DP_MS);
        mesh_run_for(m, 100 * DP_MS);
        for (uint32_t i = 0; i + 1 < n; i++) {
            CHECK(mesh_state(m, i, n - 1) == DP_MEMBER_DEAD);
            CHECK(mesh_state(m, i, (i + 1) % (n - 1)) == DP_MEMBER_ALIVE);
        }
        mesh_close(m);
    }
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void a_frozen_peer_is_dead_within_two_seconds_at_the_median(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 8; n += 2) {
        enum { RUNS = 15 };
        uint64_t took[RUNS];
        for (uint32_t run = 0; run < RUNS; run++) {
            mesh *const m = mesh_of(n, 1000 * n + run);
            mesh_join_all(m);
            mesh_run_for(m, 3 * DP_SECOND + 37 * DP_MS * run);
            m->nodes[n - 1].frozen = true;
            took[run] = mesh_wait_state(m, 0, n - 1, DP_MEMBER_DEAD, 10 * DP_SECOND);
            mesh_close(m);
        }
        qsort(took, RUNS, sizeof took[0], compare_u64);
        print_message("frozen, %u nodes: p50 %llu ms, worst %llu ms\n", n,
                      (unsigned long long)(took[RUNS / 2] / 1000),
                      (unsigned long long)(took[RUNS - 1] / 1000));
        CHECK(took[RUNS / 2] <= 2 * DP_SECOND);
        CHECK(took[RUNS - 1] <= 5 * DP_SECOND);
    }
}

static void a_quiet_group_accuses_nobody_for_ten_minutes(void **state)
{
    (void)state;
    mesh *const m = mesh_of(6, 5);
    mesh_join_all(m);
    mesh_run_for(m, 600 * DP_SECOND);
    for (uint32_t i = 0; i < m->n; i++) {
        for (uint32_t k = 0; k < m->n; k++) {
            CHECK(mesh_state(m, i, k) == DP_MEMBER_ALIVE);
            CHECK(mesh_sees(m, i, k)->revision == 0);
        }
    }
    mesh_close(m);
}

static void a_thawed_node_comes_back_and_accuses_nobody(void **state)
{
    (void)state;
    mesh *const m = mesh_of(5, 6);
    mesh_join_all(m);
    mesh_run_for(m, 3 * DP_SECOND);
    m->nodes[4].frozen = true;
    mesh_run_for(m, 20 * DP_SECOND);
    CHECK(mesh_state(m, 0, 4) == DP_MEMBER_DEAD);
    m->notes_dead = 0;
    m->nodes[4].frozen = false;
    mesh_run_for(m, 3 * DP_SECOND);
    for (uint32_t i = 0; i < m->n; i++) {
        for (uint32_t k = 0; k < m->n; k++) {
            CHECK(mesh_state(m, i, k) == DP_MEMBER_ALIVE);
        }
    }
    CHECK(m->notes_dead == 0);
    CHECK(mesh_sees(m, 0, 4)->revision > 0); /* it refuted */
    mesh_close(m);
}

static void one_blocked_pair_among_four_kills_nobody(void **state)
{
    (void)state;
    mesh *const m = mesh_of(4, 7);
    mesh_join_all(m);
    mesh_run_for(m, 3 * DP_SECOND);
    mesh_block(m, 0, 1, true);
    mesh_run_for(m, 60 * DP_SECOND);
    CHECK(m->notes_dead == 0);
    CHECK(mesh_state(m, 2, 0) == DP_MEMBER_ALIVE);
    CHECK(mesh_state(m, 2, 1) == DP_MEMBER_ALIVE);
    CHECK(mesh_state(m, 0, 1) == DP_MEMBER_ALIVE); /* helpers vouch for it */
    mesh_close(m);
}

static void one_accuser_among_five_kills_nobody(void **state)
{
    (void)state;
    mesh *const m = mesh_of(5, 8);
    mesh_join_all(m);
    mesh_run_for(m, 3 * DP_SECOND);
    /* Node 1 lies about node 2: suspect, then dead, signed as it should be. */
    for (uint32_t kind = DP_STATEMENT_SUSPECT; kind <= DP_STATEMENT_DEAD; kind++) {
        const dp_statement lie = {.kind = (dp_statement_kind)kind,
                                  .cause = DP_CAUSE_RESET,
                                  .subject = mesh_peer(2),
                                  .incarnation = 1,
                                  .revision = 0,
                                  .author = mesh_peer(1)};
        uint8_t bytes[2 + DP_STATEMENT_BYTES_MAX + 2] = {DP_MSG_STATEMENT, DP_MSG_VERSION};
        const dp_crypto crypto = mesh_crypto(1);
        const size_t size = dp_statement_sign(&lie, &crypto, &mesh_run, bytes + 2);
        for (uint32_t to = 0; to < m->n; to++) {
            mesh_send(m, 1, to, dp_view_of(bytes, 2 + size + 2));
        }
    }
    mesh_run_for(m, 10 * DP_SECOND);
    CHECK(m->notes_dead == 0);
    CHECK(mesh_state(m, 0, 2) == DP_MEMBER_ALIVE);
    CHECK(mesh_sees(m, 0, 2)->revision >= 1); /* refuted */
    mesh_close(m);
}

static void a_restarted_node_is_known_by_its_higher_incarnation(void **state)
{
    (void)state;
    mesh *const m = mesh_of(3, 9);
    mesh_join_all(m);
    mesh_run_for(m, 2 * DP_SECOND);
    mesh_kill(m, 2);
    mesh_run_for(m, DP_SECOND);
    CHECK(mesh_state(m, 0, 2) == DP_MEMBER_DEAD);
    mesh_boot(m, 2);
    mesh_run_for(m, 5 * DP_SECOND); /* the others dial it: it knows nobody */
    CHECK(mesh_state(m, 0, 2) == DP_MEMBER_ALIVE);
    CHECK(mesh_sees(m, 0, 2)->incarnation == 2);
    CHECK(dp_members_alive(m->nodes[2].members) == 3);
    mesh_close(m);
}

static void goodbye_needs_no_accuser_and_left_leaves_a_proof(void **state)
{
    (void)state;
    mesh *const m = mesh_of(5, 10);
    mesh_join_all(m);
    mesh_run_for(m, 2 * DP_SECOND);
    for (uint32_t leaver = 3; leaver < 5; leaver++) {
        dp_out_begin(&m->out, m->actions);
        dp_members_leave(m->nodes[leaver].members, mesh_now(m), 1, leaver == 4, &m->out);
        mesh_perform(m, leaver);
    }
    mesh_run_for(m, 10 * DP_MS);
    CHECK(mesh_state(m, 0, 3) == DP_MEMBER_DEAD);
    CHECK(mesh_state(m, 0, 4) == DP_MEMBER_LEFT);

    mesh_run_for(m, 5 * DP_SECOND); /* what they still send does not revive them */
    CHECK(mesh_state(m, 0, 3) == DP_MEMBER_DEAD);
    CHECK(mesh_state(m, 0, 4) == DP_MEMBER_LEFT);
    mesh_close(m);
}

static void a_stranger_without_a_credential_is_not_believed(void **state)
{
    (void)state;
    mesh *const m = mesh_of(2, 11);
    mesh_join_all(m);
    mesh_run_for(m, DP_SECOND);
    const dp_statement claim = {.kind = DP_STATEMENT_ALIVE,
                                .subject = mesh_peer(9),
                                .incarnation = 3,
                                .author = mesh_peer(9)};
    uint8_t bytes[2 + DP_STATEMENT_BYTES_MAX + 2] = {DP_MSG_STATEMENT, DP_MSG_VERSION};
    const dp_crypto crypto = mesh_crypto(9);
    const size_t size = dp_statement_sign(&claim, &crypto, &mesh_run, bytes + 2);

    dp_out_begin(&m->out, m->actions);
    CHECK_STATUS(dp_members_message(m->nodes[0].members, mesh_now(m), 1, 1,
                                    dp_view_of(bytes, 2 + size + 2), &m->out),
                 DP_DENIED);
    CHECK(dp_members_count(m->nodes[0].members) == 2);
    CHECK(m->actions->count == 0);
    mesh_close(m);
}

static void a_partition_does_not_bury_the_majority_by_one_node(void **state)
{
    (void)state;
    mesh *const m = mesh_of(5, 12);
    mesh_join_all(m);
    mesh_run_for(m, 2 * DP_SECOND);
    for (uint32_t i = 1; i < 5; i++) {
        mesh_block(m, 0, i, true);
    }
    mesh_run_for(m, 30 * DP_SECOND);
    for (uint32_t i = 1; i < 5; i++) {
        CHECK(mesh_state(m, i, 0) == DP_MEMBER_DEAD);
        CHECK(mesh_state(m, 0, i) != DP_MEMBER_DEAD); /* no second accuser */
        mesh_block(m, 0, i, false);
    }
    mesh_run_for(m, 5 * DP_SECOND);
    for (uint32_t i = 1; i < 5; i++) {
        CHECK(mesh_state(m, i, 0) == DP_MEMBER_ALIVE);
        CHECK(mesh_state(m, 0, i) == DP_MEMBER_ALIVE);
    }
    mesh_close(m);
}

static void dials_back_off_to_half_a_minute(void **state)
{
    (void)state;
    mesh *const m = mesh_of(1, 13);
    const dp_peer peer = mesh_peer(5);
    const dp_addr addr = mesh_addr(5);
    DP_IGNORE(dp_members_add(m->nodes[0].members, &peer, (dp_view){0}, 0, &addr, 1) == 0);
    uint32_t dials = 0;

    for (uint64_t us = 0; us < 120 * DP_SECOND; us += 50 * DP_MS) {
        m->now += 50 * DP_MS;
        dp_out_begin(&m->out, m->actions);
        dp_members_tick(m->nodes[0].members, mesh_now(m), 1, &m->out);
        for (uint32_t i = 0; i < m->actions->count; i++) {
            if (m->actions->items[i].type == DP_DO_DIAL) {
                dials++;
                dp_members_link_down(m->nodes[0].members, mesh_now(m), 1, &peer, DP_LINK_REFUSED,
                                     &m->out);
            }
        }
    }
    CHECK(dials >= 8 && dials <= 16); /* 7 doublings, then about every 30 s */
    mesh_close(m);
}

static void a_full_table_gives_rows_of_strangers_to_others_and_keeps_members(void **state)
{
    (void)state;
    mesh *const m = mesh_of(1, 14);
    dp_members *const members = m->nodes[0].members;
    dp_why why;

    for (uint32_t i = 1; i < MESH_NODES_MAX; i++) {
        const dp_peer peer = mesh_peer(i);
        CHECK(dp_members_enter(members, &peer, 0) == i);
        dp_members_mark(members, i, i != 2, false);
    }
    for (uint32_t i = MESH_NODES_MAX; i < MESH_NODES_MAX + 3; i++) {
        const dp_peer peer = mesh_peer(i);
        const dp_peer before = mesh_peer(i == MESH_NODES_MAX ? 2 : i - 1);
        CHECK(dp_members_add(members, &peer, (dp_view){0}, 0, NULL, 0) == 2);
        CHECK(dp_members_find(members, &before) == DP_MEMBER_NONE);
        CHECK_STATUS(dp_members_check(members, &why), DP_OK);
    }
    dp_members_mark(members, 2, true, false);
    const dp_peer peer = mesh_peer(2);
    CHECK(dp_members_enter(members, &peer, 0) == DP_MEMBER_NONE); /* All are members. */
    CHECK(dp_members_count(members) == MESH_NODES_MAX);
    mesh_close(m);
}

/* Peers that are made up say that they are alive. */
static void who_is_alive_and_no_member_makes_room_for_a_member_alone(void **state)
{
    (void)state;
    mesh *const m = mesh_of(1, 14);
    dp_members *const members = m->nodes[0].members;

    dp_out_begin(&m->out, m->actions);
    for (uint32_t i = 1; i < MESH_NODES_MAX; i++) {
        const dp_peer peer = mesh_peer(i);
        CHECK(dp_members_enter(members, &peer, 0) == i);
        dp_members_state_set(members, i, DP_MEMBER_ALIVE, mesh_now(m), "test", &m->out);
    }
    const dp_peer stranger = mesh_peer(MESH_NODES_MAX);
    CHECK(dp_members_add(members, &stranger, (dp_view){0}, 0, NULL, 0) == DP_MEMBER_NONE);
    const uint32_t alive = dp_members_alive(members);
    CHECK(dp_members_enter(members, &stranger, 0) != DP_MEMBER_NONE);
    CHECK(dp_members_alive(members) == alive - 1);
    mesh_close(m);
}

static void who_is_removed_is_no_voter_and_no_member_any_more(void **state)
{
    (void)state;
    mesh *const m = mesh_of(1, 14);
    dp_members *const members = m->nodes[0].members;
    const dp_peer peer = mesh_peer(1);
    const uint32_t index = dp_members_add(members, &peer, (dp_view){0}, 0, NULL, 0);
    dp_members_mark(members, index, true, true);
    CHECK(dp_members_at(members, index)->voter && dp_members_at(members, index)->in_roster);
    dp_out_begin(&m->out, m->actions);
    dp_members_remove(members, index, mesh_now(m), 0, &m->out);
    CHECK(!dp_members_at(members, index)->voter && !dp_members_at(members, index)->in_roster);
    mesh_close(m);
}

static void damaged_messages_never_hurt(void **state)
{
    (void)state;
    mesh *const m = mesh_of(6, 15);
    m->delay_us = 30 * DP_MS; /* so that messages are under way when we look */
    mesh_join_all(m);
    dp_rng rng;
    dp_rng_init(&rng, 77);
    for (uint32_t round = 0; round < 400; round++) {
        mesh_run_for(m, 20 * DP_MS);
        if (round == 200) {
            m->nodes[5].frozen = true; /* so that accusations are about, too */
        }
        /* Damage copies of what is under way and deliver them beside the originals. */
        const uint32_t n_items = m->n_items;
        for (uint32_t i = 0; i < n_items && i < 8; i++) {
            const mesh_item item = m->items[i];
            if (item.kind != MESH_MESSAGE || item.size == 0 || m->nodes[item.to].frozen) {
                continue;
            }
            uint8_t *const copy = malloc(item.size + 64);
            assert_non_null(copy);
            memcpy(copy, item.bytes, item.size);
            const size_t size = mutate(&rng, copy, item.size, item.size + 64);
            const mesh_item bad = {.kind = MESH_MESSAGE,
                                   .from = item.from,
                                   .to = item.to,
                                   .bytes = copy,
                                   .size = size};
            mesh_deliver(m, &bad);
            for (size_t cut = 0; cut < item.size; cut += 1 + item.size / 16) {
                const mesh_item shorter = {.kind = MESH_MESSAGE,
                                           .from = item.from,
                                           .to = item.to,
                                           .bytes = item.bytes,
                                           .size = cut};
                mesh_deliver(m, &shorter);
            }
            free(copy);
        }
    }
    CHECK(m->refused > 0);
    for (uint32_t i = 0; i < 5; i++) {
        CHECK(dp_members_count(m->nodes[i].members) == 6);
    }
    mesh_close(m);
}

static dp_status open_and_close(void *context)
{
    (void)context;
    dp_members *members = NULL;
    const dp_members_config config = {.self = mesh_peer(0),
                                      .incarnation = 1,
                                      .members_max = 8,
                                      .crypto = mesh_crypto(0),
                                      .admit = mesh_admit};
    DP_TRY(dp_members_open(&members, &config));
    dp_members_close(members);
    return DP_OK;
}

static void open_survives_every_failed_allocation(void **state)
{
    (void)state;
    CHECK(fail_each_allocation(open_and_close, NULL) >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_nodes_meet_and_hold_each_other_alive),
        cmocka_unit_test(a_newcomer_at_one_node_is_soon_linked_to_all),
        cmocka_unit_test(a_killed_peer_is_dead_at_once_in_groups_of_two_to_eight),
        cmocka_unit_test(a_frozen_peer_is_dead_within_two_seconds_at_the_median),
        cmocka_unit_test(a_quiet_group_accuses_nobody_for_ten_minutes),
        cmocka_unit_test(a_thawed_node_comes_back_and_accuses_nobody),
        cmocka_unit_test(one_blocked_pair_among_four_kills_nobody),
        cmocka_unit_test(one_accuser_among_five_kills_nobody),
        cmocka_unit_test(a_restarted_node_is_known_by_its_higher_incarnation),
        cmocka_unit_test(goodbye_needs_no_accuser_and_left_leaves_a_proof),
        cmocka_unit_test(a_stranger_without_a_credential_is_not_believed),
        cmocka_unit_test(a_partition_does_not_bury_the_majority_by_one_node),
        cmocka_unit_test(dials_back_off_to_half_a_minute),
        cmocka_unit_test(who_is_removed_is_no_voter_and_no_member_any_more),
        cmocka_unit_test(a_full_table_gives_rows_of_strangers_to_others_and_keeps_members),
        cmocka_unit_test(who_is_alive_and_no_member_makes_room_for_a_member_alone),
        cmocka_unit_test(damaged_messages_never_hurt),
        cmocka_unit_test(open_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
