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
    /* Node 1 lies about node 2: suspect, then dead, with valid signatures. */
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
    mesh_run_for(m, 5 * DP_SECOND); /* the others dial it: it knows no peer */
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

    mesh_run_for(m, 5 * DP_SECOND); /* their remaining messages do not revive them */
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
static void a_live_peer_that_is_no_member_gives_way_only_to_a_member(void **state)
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

static void a_removed_member_is_no_voter_and_no_member(void **state)
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
        /* Damages copies of the messages under way and delivers them with the originals. */
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

static bool admit_all(void *context, const dp_peer *peer, dp_view credential, uint64_t wall_ms,
                      dp_admitted *grants)
{
    (void)context;
    (void)peer;
    (void)credential;
    (void)wall_ms;
    *grants = (dp_admitted){.caps = 5, .uses = 6, .invite = {{7}}};
    return true;
}

static void a_credential_is_kept_up_to_its_largest_size(void **state)
{
    static uint8_t bytes[DP_CREDENTIAL_MAX + 1];
    const dp_peer peer = mesh_peer(1);
    dp_members_config config = {.self = mesh_peer(0),
                                .incarnation = 1,
                                .crypto = mesh_crypto(0),
                                .members_max = 2,
                                .admit = admit_all};
    dp_actions *const actions = calloc(1, sizeof *actions);
    dp_out out;

    (void)state;
    assert_non_null(actions);
    CHECK_OK(dp_out_open(&out));
    for (uint32_t size = DP_CREDENTIAL_MAX - 1; size <= DP_CREDENTIAL_MAX + 1; size++) {
        const bool fits = size <= DP_CREDENTIAL_MAX;
        const dp_view credential = dp_view_of(bytes, size);
        const dp_addr addr = mesh_addr(1);
        dp_members *members = NULL;
        config.credential = credential;
        CHECK_STATUS(dp_members_open(&members, &config), fits ? DP_OK : DP_BADARG);
        config.credential = dp_view_of(bytes, 1);
        if (!fits) {
            CHECK_OK(dp_members_open(&members, &config));
        }
        dp_out_begin(&out, actions);
        dp_members_start(members, (dp_time){DP_SECOND}, 1, &out);
        const uint32_t index = dp_members_link_up(members, (dp_time){DP_SECOND}, 1, &peer, &addr,
                                                  credential, true, &out);
        const dp_member *const member = dp_members_at(members, index);
        CHECK(member->credential_bytes == (fits ? size : 0));
        CHECK(member->caps == (fits ? 5 : 0) && member->uses == (fits ? 6 : 0));
        CHECK(member->invite.bytes[0] == (fits ? 7 : 0));
        CHECK(dp_members_link_up(members, (dp_time){DP_SECOND}, 1, &(dp_peer){{9}}, &addr,
                                 credential, true, &out) == DP_MEMBER_NONE);
        dp_members_close(members);
    }
    dp_out_close(&out);
    free(actions);
}

static void open_takes_what_is_in_bounds_and_nothing_else(void **state)
{
    const dp_members_config good = {.self = mesh_peer(0),
                                    .incarnation = 1,
                                    .members_max = DP_MEMBERS_MAX,
                                    .n_addrs = DP_ADDRS_MAX,
                                    .admit = admit_all};
    dp_members *members = NULL;

    (void)state;
    CHECK_OK(dp_members_open(&members, &good));
    dp_members_close(members);
    for (uint32_t what = 0; what < 4; what++) {
        dp_members_config bad = good;
        bad.members_max = what == 0 ? 1 : what == 1 ? DP_MEMBERS_MAX + 1 : 2;
        bad.n_addrs = what == 2 ? DP_ADDRS_MAX + 1 : 0;
        bad.admit = what == 3 ? NULL : admit_all;
        CHECK_STATUS(dp_members_open(&members, &bad), DP_BADARG);
    }
}

/* Between half of the interval and one and a half first, then between three and five quarters. */
static void tables_are_compared_at_instants_spread_around_the_interval(void **state)
{
    uint64_t least[2] = {UINT64_MAX, UINT64_MAX};
    uint64_t most[2] = {0, 0};

    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        mesh *const m = mesh_of(1, seed);
        dp_members *const members = m->nodes[0].members;
        uint64_t before = m->now;
        for (uint32_t k = 0; k < 2; k++) {
            const uint64_t wait = members->sync_at.us - before;
            least[k] = wait < least[k] ? wait : least[k];
            most[k] = wait > most[k] ? wait : most[k];
            before = members->sync_at.us;
            CHECK(dp_members_wake(members).us <= before);
            dp_out_begin(&m->out, m->actions);
            dp_members_tick(members, (dp_time){before - 1}, 1, &m->out);
            CHECK(members->sync_at.us == before);
            dp_members_tick(members, (dp_time){before}, 1, &m->out);
            CHECK(members->sync_at.us > before);
        }
        mesh_close(m);
    }
    CHECK(least[0] >= DP_SYNC_US / 2 && least[0] < DP_SYNC_US * 3 / 4);
    CHECK(most[0] < DP_SYNC_US * 3 / 2 && most[0] > DP_SYNC_US * 5 / 4);
    CHECK(least[1] >= DP_SYNC_US * 3 / 4 && least[1] < DP_SYNC_US);
    CHECK(most[1] < DP_SYNC_US * 5 / 4 && most[1] > DP_SYNC_US);
}

/* One thing after the other is due, each sooner than the one before. */
static void it_wakes_for_what_is_due_first(void **state)
{
    (void)state;
    mesh *const m = mesh_of(3, 21);
    dp_members *const members = m->nodes[0].members;
    mesh_join_all(m);
    mesh_run_for(m, 3 * DP_SECOND);
    const uint64_t now = m->now;
    dp_time *const due[] = {&members->sync_at,
                            &members->probe_at,
                            &members->guests_at,
                            &members->probes[1].deadline,
                            &members->relayed[1].deadline,
                            &members->dial_next,
                            &members->far_at};
    enum { DUE = sizeof due / sizeof due[0] };
    members->push = members->greets = members->dial_stale = false;
    assert_int_equal(members->urgent.count, 0);
    for (uint32_t i = 0; i < DP_PROBES_MAX; i++) {
        members->probes[i].target = i == 1 ? 1 : DP_MEMBER_NONE;
    }
    for (uint32_t i = 0; i < DP_RELAYED_MAX; i++) {
        members->relayed[i].requester = i == 1 ? 1 : DP_MEMBER_NONE;
    }
    members->n_relayed = 1;
    for (uint32_t i = 0; i < DUE; i++) {
        *due[i] = DP_NEVER;
    }
    CHECK(dp_members_wake(members).us == DP_NEVER.us);
    for (uint64_t i = 0; i < DUE; i++) {
        *due[i] = (dp_time){now + (20 - i) * DP_SECOND};
        CHECK(dp_members_wake(members).us == due[i]->us);
    }
    for (uint32_t i = 0; i < DUE; i++) {
        *due[i] = DP_NEVER;
    }
    dp_out_begin(&m->out, m->actions);
    members->rows[0].member.heard = (dp_time){now};
    dp_members_accuse(members, 1, DP_CAUSE_SILENCE, (dp_time){now}, &m->out);
    dp_members_accuse(members, 2, DP_CAUSE_SILENCE, (dp_time){now}, &m->out);
    CHECK(members->rows[2].member.state == DP_MEMBER_SUSPECT);
    const dp_time end = dp_members_suspicion_end(members, 2);
    CHECK(end.us > now);
    members->dial_stale = false;
    for (uint32_t i = 0; i < DUE; i++) {
        *due[i] = DP_NEVER;
    }
    CHECK(dp_members_wake(members).us == end.us);
    members->rows[0].member.heard = end; /* Time has had its say. */
    CHECK(dp_members_wake(members).us == DP_NEVER.us);
    members->rows[0].member.heard = (dp_time){now};
    members->push = true; /* At once. */
    CHECK(dp_members_wake(members).us == now);
    members->push = false;
    members->greets = true;
    CHECK(dp_members_wake(members).us == now);
    members->started = false;
    CHECK(dp_members_wake(members).us == DP_NEVER.us);
    mesh_close(m);
}

/* Another peer takes the row of the one silent for longest, unless a probe is about that one. */
static void a_row_that_a_probe_is_about_is_not_given_away(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 4; what++) {
        mesh *const m = mesh_of(1, 14);
        dp_members *const members = m->nodes[0].members;
        for (uint32_t i = 1; i < MESH_NODES_MAX; i++) {
            const dp_peer peer = mesh_peer(i);
            CHECK(dp_members_enter(members, &peer, 0) == i);
            dp_members_mark(members, i, i != 2, false);
        }
        members->probes[1].target = what == 1 ? 2 : DP_MEMBER_NONE;
        members->relayed[1].requester = what == 2 ? 2 : what == 3 ? 4 : DP_MEMBER_NONE;
        members->relayed[1].target = what == 2 ? 5 : 2; /* The sum does not cover free places. */
        const dp_peer other = mesh_peer(MESH_NODES_MAX);
        CHECK(dp_members_add(members, &other, (dp_view){0}, 0, NULL, 0) ==
              (what == 0 ? 2 : DP_MEMBER_NONE));
        members->probes[1].target = DP_MEMBER_NONE;
        members->relayed[1].requester = DP_MEMBER_NONE;
        mesh_close(m);
    }
}

static void a_new_mode_or_trainer_is_pushed_until_it_was_told(void **state)
{
    (void)state;
    mesh *const m = mesh_of(1, 14);
    dp_members *const members = m->nodes[0].members;
    dp_summary summary = {.mode = DP_MODE_SYNC, .round = 5};

    dp_members_tell(members, &summary);
    for (uint32_t what = 0; what < 4; what++) {
        members->push = false;
        summary.mode = what == 1 ? DP_MODE_PAUSED : summary.mode;
        summary.has_trainer = what == 2 || summary.has_trainer;
        summary.round += what == 3;
        dp_members_tell(members, &summary);
        CHECK(members->push == (what == 1 || what == 2));
        dp_members_tell(members, &summary);
        CHECK(members->push == (what == 1 || what == 2));
        CHECK(members->rows[0].member.summary.round == summary.round);
        CHECK(members->summary.mode == summary.mode && members->rows[0].member.has_summary);
    }
    mesh_close(m);
}

static void a_stranger_that_links_takes_no_row_of_one_that_lives(void **state)
{
    (void)state;
    mesh *const m = mesh_of(1, 14);
    dp_members *const members = m->nodes[0].members;
    const dp_peer other = mesh_peer(MESH_NODES_MAX);
    const dp_addr addr = mesh_addr(MESH_NODES_MAX);

    for (uint32_t i = 1; i < MESH_NODES_MAX; i++) {
        const dp_peer peer = mesh_peer(i);
        CHECK(dp_members_enter(members, &peer, 0) == i);
        dp_members_mark(members, i, i != 2, false);
    }
    members->rows[2].member.state = DP_MEMBER_ALIVE;
    dp_members_recount(members);
    dp_out_begin(&m->out, m->actions);
    CHECK(dp_members_link_up(members, mesh_now(m), 1, &other, &addr, (dp_view){0}, false,
                             &m->out) == DP_MEMBER_NONE);
    CHECK(m->actions->count == 1 && m->actions->items[0].type == DP_DO_HANGUP);
    CHECK(dp_peer_equal(&m->actions->items[0].u.peer, &other));
    members->rows[2].member.state = DP_MEMBER_DEAD;
    dp_members_recount(members);
    dp_out_begin(&m->out, m->actions);
    CHECK(dp_members_link_up(members, mesh_now(m), 1, &other, &addr, (dp_view){0}, false,
                             &m->out) == 2);
    mesh_close(m);
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
        cmocka_unit_test(a_removed_member_is_no_voter_and_no_member),
        cmocka_unit_test(a_full_table_gives_rows_of_strangers_to_others_and_keeps_members),
        cmocka_unit_test(a_live_peer_that_is_no_member_gives_way_only_to_a_member),
        cmocka_unit_test(damaged_messages_never_hurt),
        cmocka_unit_test(open_survives_every_failed_allocation),
        cmocka_unit_test(a_credential_is_kept_up_to_its_largest_size),
        cmocka_unit_test(open_takes_what_is_in_bounds_and_nothing_else),
        cmocka_unit_test(tables_are_compared_at_instants_spread_around_the_interval),
        cmocka_unit_test(it_wakes_for_what_is_due_first),
        cmocka_unit_test(a_row_that_a_probe_is_about_is_not_given_away),
        cmocka_unit_test(a_new_mode_or_trainer_is_pushed_until_it_was_told),
        cmocka_unit_test(a_stranger_that_links_takes_no_row_of_one_that_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
