/* Members without a link between them, and their knowledge of each other. */
#include "gossip/member/members_internal.h"
#include "tests/unit/gossip/kit/mesh.h"

static void tell(mesh *m, uint32_t node, uint64_t round, dp_mode mode)
{
    dp_members_tell(m->nodes[node].members,
                    &(dp_summary){.mode = mode, .has_trainer = true, .round = round});
}

/* The voters, as all that know them have them. */
static void let_vote(mesh *m, uint32_t from, uint32_t end)
{
    for (uint32_t i = 0; i < m->n; i++) {
        dp_members *const members = m->nodes[i].members;
        for (uint32_t k = from; k < end; k++) {
            const dp_peer peer = mesh_peer(k);
            const uint32_t index = dp_members_find(members, &peer);
            dp_members_mark(members, index, members->rows[index].member.in_roster, true);
        }
    }
}

/* n nodes, linked but for 0 and 1, all at round 7. 1 votes. */
static mesh *apart(uint32_t n)
{
    mesh *const m = mesh_of(n, 3);

    mesh_block(m, 0, 1, true);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = i + 1; k < n; k++) {
            if (k != 1) {
                mesh_join(m, i, k);
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        tell(m, i, 7, DP_MODE_SYNC);
    }
    mesh_run_for(m, DP_SECOND);
    CHECK(!mesh_sees(m, 0, 1)->linked && mesh_state(m, 0, 1) == DP_MEMBER_ALIVE);
    let_vote(m, 1, 2);
    mesh_run_for(m, 2 * DP_SECOND);
    return m;
}

static void they_know_round_mode_and_name_of_each_other(void **state)
{
    (void)state;
    mesh *const m = apart(5);

    for (uint32_t i = 0; i < 2; i++) {
        const dp_member *const other = mesh_sees(m, i, 1 - i);
        CHECK(other->has_summary && other->summary.round == 7 && other->summary.has_trainer);
        CHECK(other->summary.mode == DP_MODE_SYNC);
        assert_string_equal(other->name, i == 0 ? "nb" : "na");
    }
    CHECK(m->refused == 0);
    mesh_close(m);
}

static void a_new_round_or_mode_reaches_them_in_half_a_second(void **state)
{
    (void)state;
    mesh *const m = apart(5);

    for (uint64_t round = 8; round < 20; round++) {
        tell(m, 1, round, round % 2 == 0 ? DP_MODE_PAUSED : DP_MODE_SYNC);
        mesh_run_for(m, DP_SECOND / 2);
        CHECK(mesh_sees(m, 0, 1)->summary.round == round);
        CHECK(mesh_sees(m, 0, 1)->summary.mode == (round % 2 == 0 ? DP_MODE_PAUSED : DP_MODE_SYNC));
    }
    mesh_close(m);
}

/* One in the middle of many is found, and kept to. */
static void a_single_member_between_them_is_enough(void **state)
{
    (void)state;
    mesh *const m = mesh_of(8, 5);

    for (uint32_t i = 0; i < 7; i++) { /* 0, 2, 4 and 6 on one side, 1, 3, 5 on the other; 7 */
        mesh_join(m, i, 7);
        for (uint32_t k = i + 1; k < 7; k++) {
            if ((i ^ k) % 2 != 0) {
                mesh_block(m, i, k, true);
            } else {
                mesh_join(m, i, k);
            }
        }
    }
    for (uint32_t i = 0; i < 7; i++) {
        tell(m, i, 7, DP_MODE_SYNC);
    }
    mesh_run_for(m, DP_SECOND);
    let_vote(m, 0, 7);
    mesh_run_for(m, 8 * DP_SECOND);
    for (uint64_t round = 8; round < 12; round++) {
        for (uint32_t i = 0; i < 7; i++) {
            tell(m, i, round, DP_MODE_SYNC);
        }
        mesh_run_for(m, DP_SECOND / 2);
        for (uint32_t i = 0; i < 7; i++) {
            for (uint32_t k = 0; k < 7; k++) {
                CHECK((i ^ k) % 2 == 0 || mesh_sees(m, i, k)->summary.round == round);
            }
        }
    }
    mesh_close(m);
}

/* A SUMMARY by node 1, signed with the key of signer, as node 2 brings it to node 0. */
static dp_status bring(mesh *m, uint32_t signer, uint64_t incarnation, uint64_t sequence,
                       uint64_t round)
{
    const dp_crypto crypto = mesh_crypto(signer);
    const dp_signed_summary said = {.peer = mesh_peer(1),
                                    .incarnation = incarnation,
                                    .sequence = sequence,
                                    .summary = {.round = round, .mode = DP_MODE_SYNC}};
    const dp_peer carrier = mesh_peer(2);
    uint8_t bytes[DP_SUMMARY_MESSAGE_MAX];
    const size_t size = dp_summary_sign(&said, &crypto, &mesh_run, bytes);

    dp_out_begin(&m->out, m->actions);
    return dp_members_message(m->nodes[0].members, mesh_now(m), 1,
                              dp_members_find(m->nodes[0].members, &carrier),
                              dp_view_of(bytes, size), &m->out);
}

/* A path that is cut silently: TCP may keep the connection for long. */
static void a_link_that_nothing_comes_through_counts_as_none(void **state)
{
    (void)state;
    mesh *const m = mesh_of(5, 9);

    mesh_join_all(m);
    mesh_run_for(m, 2 * DP_SECOND);
    let_vote(m, 1, 2);
    mesh_block(m, 0, 1, true);
    tell(m, 1, 8, DP_MODE_SYNC);
    mesh_run_for(m, 6 * DP_SECOND);
    CHECK(mesh_sees(m, 0, 1)->linked && mesh_sees(m, 0, 1)->summary.round == 8);
    for (uint64_t round = 9; round < 12; round++) {
        tell(m, 1, round, DP_MODE_SYNC);
        mesh_run_for(m, DP_SECOND);
        CHECK(mesh_sees(m, 0, 1)->summary.round == round);
    }
    mesh_block(m, 0, 1, false);
    mesh_run_for(m, 3 * DP_SECOND);
    CHECK_OK(bring(m, 1, 1, 1000, 3));
    CHECK(mesh_sees(m, 0, 1)->summary.round == 11); /* The link works again. */
    mesh_close(m);
}

static void a_link_is_mute_from_its_first_unanswered_ping_and_not_for_lack_of_pings(void **state)
{
    (void)state;
    mesh *const m = mesh_of(2, 9);
    mesh_join(m, 0, 1);
    mesh_run_for(m, DP_SECOND);
    dp_members *const members = m->nodes[0].members;
    const dp_row *const row = &members->rows[1];
    CHECK(!dp_members_mute(row, dp_time_after(mesh_now(m), 60 * DP_SECOND)));
    dp_out_begin(&m->out, m->actions);
    dp_members_send_ping(members, 1, 0, mesh_now(m), &m->out);
    const dp_time first = mesh_now(m);
    dp_members_send_ping(members, 1, 0, dp_time_after(first, 2 * DP_SECOND), &m->out);
    CHECK(!dp_members_mute(row, dp_time_after(first, 3 * DP_SECOND - 1)));
    CHECK(dp_members_mute(row, dp_time_after(first, 3 * DP_SECOND)));
    mesh_perform(m, 0);
    mesh_run_for(m, DP_SECOND / 10);
    CHECK(!dp_members_mute(row, dp_time_after(first, 60 * DP_SECOND))); /* It has answered. */
    mesh_close(m);
}

static void nobody_tells_it_for_another(void **state)
{
    (void)state;
    mesh *const m = apart(4);

    CHECK_STATUS(bring(m, 2, 1, 1000, 99), DP_BADSIG);
    CHECK(mesh_sees(m, 0, 1)->summary.round == 7);
    CHECK_OK(bring(m, 1, 1, 1000, 99));
    CHECK(mesh_sees(m, 0, 1)->summary.round == 99);
    mesh_close(m);
}

/* The rows that a node's record of the run names; the others are guests. */
static void set_members(mesh *m, uint32_t n)
{
    dp_members *const members = m->nodes[0].members;

    for (uint32_t i = 0; i < m->n; i++) {
        const dp_peer peer = mesh_peer(i);
        members->rows[dp_members_find(members, &peer)].member.in_roster = i < n;
    }
}

static void a_summary_of_a_stranger_or_with_a_guest_in_it_is_refused(void **state)
{
    (void)state;
    mesh *const m = apart(4);
    dp_members *const members = m->nodes[0].members;
    const dp_peer peer = mesh_peer(1);
    dp_row *const row = &members->rows[dp_members_find(members, &peer)];
    const uint16_t credential_bytes = row->member.credential_bytes;

    set_members(m, 1); /* Its author, node 1, is a guest, and so is its sender, node 2. */
    CHECK_STATUS(bring(m, 1, 1, 1000, 99), DP_DENIED);
    set_members(m, 2);
    CHECK_STATUS(bring(m, 1, 1, 1000, 99), DP_DENIED);
    set_members(m, 4);
    row->member.credential_bytes = 0; /* Only its name is known. */
    CHECK_STATUS(bring(m, 1, 1, 1000, 99), DP_DENIED);
    row->member.credential_bytes = credential_bytes;
    CHECK(row->member.summary.round == 7);
    CHECK_OK(bring(m, 1, 1, 1000, 99));
    CHECK(row->member.summary.round == 99);
    mesh_close(m);
}

static void one_that_is_brought_again_counts_for_nothing(void **state)
{
    (void)state;
    mesh *const m = apart(4);

    CHECK_OK(bring(m, 1, 1, 1000, 10));
    CHECK_OK(bring(m, 1, 1, 999, 5));
    CHECK(mesh_sees(m, 0, 1)->summary.round == 10);
    CHECK_OK(bring(m, 1, 2, 1, 11)); /* of its next life */
    CHECK_OK(bring(m, 1, 1, 2000, 5));
    CHECK(mesh_sees(m, 0, 1)->summary.round == 11);
    mesh_close(m);
}

static void a_summary_from_a_link_is_not_replaced(void **state)
{
    (void)state;
    mesh *const m = mesh_of(3, 4);

    mesh_join_all(m);
    for (uint32_t i = 0; i < 3; i++) {
        tell(m, i, 7, DP_MODE_SYNC);
    }
    mesh_run_for(m, 2 * DP_SECOND);
    CHECK_OK(bring(m, 1, 1, 1000, 3));
    CHECK(mesh_sees(m, 0, 1)->summary.round == 7);
    mesh_close(m);
}

static uint32_t relays(const mesh *m)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->actions->count; i++) {
        const dp_action *const action = &m->actions->items[i];
        count += action->type == DP_DO_SEND && dp_msg_type_of(action->u.send.bytes) == DP_MSG_RELAY;
    }
    return count;
}

static void no_more_than_three_in_a_quarter_of_a_second_are_sent(void **state)
{
    (void)state;
    mesh *const m = apart(8);
    uint32_t count = 0;

    for (uint32_t ms = 0; ms < 2000; ms += 10) { /* A new round every 10 ms. */
        m->now += 10 * DP_MS;
        tell(m, 0, 8 + ms, DP_MODE_SYNC);
        dp_out_begin(&m->out, m->actions);
        dp_members_tick(m->nodes[0].members, mesh_now(m), 1, &m->out);
        count += relays(m);
    }
    CHECK(count >= 8 && count <= 9 * 3);
    mesh_close(m);
}

static void two_that_do_not_vote_tell_each_other_nothing(void **state)
{
    (void)state;
    mesh *const m = mesh_of(4, 3);

    mesh_block(m, 0, 1, true);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t k = i + 1; k < 4; k++) {
            if (k != 1) {
                mesh_join(m, i, k);
            }
        }
    }
    mesh_run_for(m, DP_SECOND);
    let_vote(m, 2, 4);
    tell(m, 1, 7, DP_MODE_SYNC);
    mesh_run_for(m, 4 * DP_SECOND);
    CHECK(!mesh_sees(m, 0, 1)->has_summary && mesh_state(m, 0, 1) == DP_MEMBER_ALIVE);
    CHECK(mesh_sees(m, 2, 1)->summary.round == 7);
    mesh_close(m);
}

static void where_all_are_linked_none_is_sent(void **state)
{
    (void)state;
    mesh *const m = mesh_of(4, 6);

    mesh_join_all(m);
    mesh_run_for(m, DP_SECOND);
    for (uint32_t ms = 0; ms < 100; ms += 10) {
        m->now += 10 * DP_MS;
        tell(m, 0, ms, DP_MODE_SYNC);
        dp_out_begin(&m->out, m->actions);
        dp_members_tick(m->nodes[0].members, mesh_now(m), 1, &m->out);
        CHECK(relays(m) == 0);
    }
    mesh_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_know_round_mode_and_name_of_each_other),
        cmocka_unit_test(a_new_round_or_mode_reaches_them_in_half_a_second),
        cmocka_unit_test(a_single_member_between_them_is_enough),
        cmocka_unit_test(a_link_that_nothing_comes_through_counts_as_none),
        cmocka_unit_test(a_link_is_mute_from_its_first_unanswered_ping_and_not_for_lack_of_pings),
        cmocka_unit_test(nobody_tells_it_for_another),
        cmocka_unit_test(a_summary_of_a_stranger_or_with_a_guest_in_it_is_refused),
        cmocka_unit_test(one_that_is_brought_again_counts_for_nothing),
        cmocka_unit_test(a_summary_from_a_link_is_not_replaced),
        cmocka_unit_test(no_more_than_three_in_a_quarter_of_a_second_are_sent),
        cmocka_unit_test(two_that_do_not_vote_tell_each_other_nothing),
        cmocka_unit_test(where_all_are_linked_none_is_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
