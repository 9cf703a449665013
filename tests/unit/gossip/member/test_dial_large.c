/* The links of a node of a large run, whose members do not all link to each other: which it dials,
 * and which it closes. */
#include "gossip/member/members_internal.h"
#include "tests/unit/gossip/kit/mesh.h"

enum { MEMBERS = 100 };

typedef struct table {
    dp_members *members;
    dp_actions *actions;
    dp_out out;
    dp_time now;
} table;

/* So many members and this node, of which the first few vote. It has run for a while; none is
 * linked. */
static table *table_of(uint32_t n, uint32_t voters)
{
    static uint8_t credentials[MEMBERS + 1][34];
    table *t = calloc(1, sizeof *t);

    assert_non_null(t);
    t->actions = calloc(1, sizeof *t->actions);
    assert_non_null(t->actions);
    t->now = (dp_time){100 * DP_SECOND};
    CHECK_OK(dp_out_open(&t->out));
    const dp_members_config config = {.run = mesh_run,
                                      .self = mesh_peer(0),
                                      .incarnation = 1,
                                      .credential = mesh_credential(0, credentials[0]),
                                      .caps = 7,
                                      .members_max = 2 * MEMBERS,
                                      .seed = 4,
                                      .crypto = mesh_crypto(0),
                                      .admit = mesh_admit};
    CHECK_OK(dp_members_open(&t->members, &config));
    dp_out_begin(&t->out, t->actions);
    dp_members_start(t->members, t->now, 1, &t->out);
    dp_members_mark(t->members, 0, true, false);
    for (uint32_t i = 1; i <= n; i++) {
        const dp_peer peer = mesh_peer(i);
        const dp_addr addr = mesh_addr(i);
        CHECK(dp_members_add(t->members, &peer, mesh_credential(i, credentials[i]), 7, &addr, 1) ==
              i);
        dp_members_mark(t->members, i, true, i <= voters);
    }
    CHECK(dp_members_large(t->members) == (n + 1 > DP_FULL_MESH_MAX));
    t->now.us += 10 * DP_SECOND;
    t->members->rows[0].member.heard = t->now;
    dp_out_begin(&t->out, t->actions);
    return t;
}

static void table_close(table *t)
{
    dp_members_close(t->members);
    dp_out_close(&t->out);
    free(t->actions);
    free(t);
}

/* The members from the first to before the end have links, for so long. */
static void link_all(table *t, uint32_t first, uint32_t end, uint64_t for_us)
{
    for (uint32_t i = first; i < end; i++) {
        t->members->rows[i].member.linked = true;
        t->members->rows[i].linked_at = (dp_time){t->now.us - for_us};
        dp_rowset_set(&t->members->linked, i, true);
    }
    t->members->dial_stale = true;
}

/* Actions of this type of one look at the links; of these, to voters. */
static uint32_t looks(table *t, dp_action_type type, uint32_t *to_voters)
{
    uint32_t count = 0;

    *to_voters = 0;
    dp_out_begin(&t->out, t->actions);
    dp_members_dial(t->members, t->now, &t->out);
    for (uint32_t i = 0; i < t->actions->count; i++) {
        const dp_action *action = &t->actions->items[i];
        const dp_peer *peer = type == DP_DO_DIAL ? &action->u.dial.peer : &action->u.peer;
        if (action->type == type) {
            count++;
            *to_voters += t->members->rows[dp_members_find(t->members, peer)].member.voter ? 1 : 0;
        }
    }
    return count;
}

static void others_are_dialled_up_to_twelve_links_and_voters_up_to_three(void **state)
{
    (void)state;
    table *t = table_of(MEMBERS, 7);
    uint32_t voters = 0;
    link_all(t, 8, 19, 0);
    CHECK(looks(t, DP_DO_DIAL, &voters) == 4 && voters == 3); /* The twelfth of the others. */
    table_close(t);
}

static void with_twelve_links_to_others_only_voters_are_dialled(void **state)
{
    (void)state;
    table *t = table_of(MEMBERS, 7);
    uint32_t voters = 0;
    link_all(t, 8, 20, 0);
    CHECK(looks(t, DP_DO_DIAL, &voters) == 3 && voters == 3);
    table_close(t);
    t = table_of(MEMBERS, 7);
    link_all(t, 1, 4, 0); /* Three voters, and nobody else. */
    CHECK(looks(t, DP_DO_DIAL, &voters) == 8 && voters == 0);
    table_close(t);
    t = table_of(MEMBERS, 7);
    link_all(t, 1, 4, 0);
    link_all(t, 8, 20, 0);
    CHECK(looks(t, DP_DO_DIAL, &voters) == 0);
    table_close(t);
}

static void a_voter_and_a_node_that_is_no_member_yet_dial_all_voters(void **state)
{
    (void)state;
    for (uint32_t joins = 0; joins < 2; joins++) {
        table *t = table_of(MEMBERS, 7);
        uint32_t voters = 0;
        dp_members_mark(t->members, 0, joins == 0, joins == 0);
        link_all(t, 1, 4, 0);
        link_all(t, 8, 20, 0);
        CHECK(looks(t, DP_DO_DIAL, &voters) == 4 && voters == 4);
        table_close(t);
    }
}

static void a_dial_names_the_addresses_and_is_given_up_after_a_while(void **state)
{
    (void)state;
    table *t = table_of(MEMBERS, 7);
    uint32_t voters = 0;
    link_all(t, 8, 20, 0);
    link_all(t, 2, 4, 0);
    t->members->rows[1].member.linked = false;
    CHECK(looks(t, DP_DO_DIAL, &voters) == 1);
    const dp_action *dial = &t->actions->items[0];
    const uint32_t index = dp_members_find(t->members, &dial->u.dial.peer);
    dp_row *row = &t->members->rows[index];
    CHECK(dial->u.dial.n_addrs == 1);
    const dp_addr addr = mesh_addr(index);
    assert_memory_equal(&dial->u.dial.addrs[0], &addr, sizeof addr);
    CHECK(row->dialling && row->dial_at.us == t->now.us + 15 * DP_SECOND);
    t->members->dial_stale = true;
    t->now.us = row->dial_at.us - 1;
    const bool again = looks(t, DP_DO_DIAL, &voters) == 1 &&
                       dp_members_find(t->members, &t->actions->items[0].u.dial.peer) == index;
    CHECK(!again && row->dialling);
    t->now.us++; /* Nobody has answered for the driver. */
    t->members->dial_stale = true;
    (void)looks(t, DP_DO_DIAL, &voters);
    CHECK(!row->dialling && row->dial_at.us > t->now.us);
    table_close(t);
}

static void of_more_than_thirty_two_links_to_others_old_ones_are_closed_four_at_a_time(void **state)
{
    (void)state;
    table *t = table_of(MEMBERS, 7);
    uint32_t voters = 0;
    link_all(t, 8, 40, 2 * DP_SECOND);
    CHECK(looks(t, DP_DO_HANGUP, &voters) == 0);
    link_all(t, 40, 43, 2 * DP_SECOND);
    CHECK(looks(t, DP_DO_HANGUP, &voters) == 3 && voters == 0);
    uint32_t closing = 0;
    for (uint32_t i = 1; i <= MEMBERS; i++) {
        closing += t->members->rows[i].closing ? 1 : 0;
    }
    CHECK(closing == 3);
    link_all(t, 43, 60, 2 * DP_SECOND);
    CHECK(looks(t, DP_DO_HANGUP, &voters) == 4);
    table_close(t);
}

static void a_link_is_not_closed_in_its_first_two_seconds_nor_twice(void **state)
{
    (void)state;
    table *t = table_of(MEMBERS, 7);
    uint32_t voters = 0;
    link_all(t, 8, 60, 2 * DP_SECOND - 1);
    CHECK(looks(t, DP_DO_HANGUP, &voters) == 0);
    link_all(t, 8, 9, 2 * DP_SECOND);
    CHECK(looks(t, DP_DO_HANGUP, &voters) == 1);
    CHECK(t->members->rows[8].closing);
    CHECK(looks(t, DP_DO_HANGUP, &voters) == 0);
    table_close(t);
}

static void a_node_that_does_not_vote_closes_links_to_voters_beyond_four(void **state)
{
    (void)state;
    table *t = table_of(MEMBERS, 7);
    uint32_t voters = 0;
    link_all(t, 1, 5, 2 * DP_SECOND);
    link_all(t, 8, 40, 2 * DP_SECOND);
    CHECK(looks(t, DP_DO_HANGUP, &voters) == 0);
    link_all(t, 5, 7, 2 * DP_SECOND);
    CHECK(looks(t, DP_DO_HANGUP, &voters) == 2 && voters == 2);
    table_close(t);
}

/* Each member has links to three voters or four, so a voter has its share of these beside its own.
 * Here 4 * 101 / 8. */
static void a_voter_keeps_its_share_of_the_links_of_all(void **state)
{
    (void)state;
    table *t = table_of(MEMBERS, 7);
    uint32_t voters = 0;
    dp_members_mark(t->members, 0, true, true);
    CHECK(t->members->voters.count == 8);
    link_all(t, 1, 8 + 32 + 50, 2 * DP_SECOND);
    CHECK(looks(t, DP_DO_HANGUP, &voters) == 0);
    link_all(t, 8 + 32 + 50, 8 + 32 + 51, 2 * DP_SECOND);
    CHECK(looks(t, DP_DO_HANGUP, &voters) == 1 && voters == 0);
    table_close(t);
}

static void it_wakes_for_the_next_dial_and_soon_with_too_many_links(void **state)
{
    (void)state;
    table *t = table_of(MEMBERS, 7);
    dp_members *members = t->members;
    link_all(t, 1, 4, 0);
    link_all(t, 8, 20, 0);
    dp_members_dial_find(members);
    CHECK(members->dial_next.us == DP_NEVER.us && !members->dial_stale);
    members->rows[1].member.linked = false; /* Of the voters, which are looked at alone, */
    dp_rowset_set(&members->linked, 1, false);
    members->rows[1].dial_at = (dp_time){t->now.us + 7};
    members->rows[4].dial_at = members->rows[5].dial_at = (dp_time){t->now.us + 9};
    members->rows[6].dial_at = members->rows[7].dial_at = (dp_time){t->now.us + 9};
    members->rows[50].dial_at = (dp_time){t->now.us + 3}; /* ... not this one. */
    dp_members_dial_find(members);
    CHECK(members->dial_next.us == t->now.us + 7);
    members->rows[19].member.linked = false; /* Now of the others too. */
    dp_rowset_set(&members->linked, 19, false);
    for (uint32_t i = 8; i <= MEMBERS; i++) {
        members->rows[i].dial_at = (dp_time){t->now.us + (i == 50 ? 3 : 20)};
    }
    dp_members_dial_find(members);
    CHECK(members->dial_next.us == t->now.us + 3);
    link_all(t, 8, 60, 0);
    members->rows[1].dial_at.us = members->rows[4].dial_at.us = t->now.us + DP_SECOND;
    members->rows[5].dial_at.us = members->rows[6].dial_at.us = t->now.us + DP_SECOND;
    members->rows[7].dial_at.us = t->now.us + DP_SECOND;
    dp_members_dial_find(members);
    CHECK(members->dial_next.us == t->now.us + DP_DIAL_US_MIN);
    table_close(t);
}

static void a_node_that_has_just_started_dials_twelve_and_the_others_after_two_seconds(void **state)
{
    (void)state;
    table *t = table_of(30, 3);
    uint32_t voters = 0;
    t->members->started_at = (dp_time){t->now.us - 2 * DP_SECOND + 1};
    for (uint32_t i = 1; i <= 30; i++) {
        t->members->rows[i].dial_at = (dp_time){1}; /* Each is due. */
    }
    CHECK(looks(t, DP_DO_DIAL, &voters) == 8);
    link_all(t, 1, 12, 0);
    CHECK(looks(t, DP_DO_DIAL, &voters) <= 1);
    link_all(t, 12, 13, 0);
    CHECK(looks(t, DP_DO_DIAL, &voters) == 0);
    dp_members_dial_find(t->members);
    CHECK(t->members->dial_next.us == t->members->started_at.us + 2 * DP_SECOND);
    t->members->started_at.us--;
    t->members->dial_stale = true;
    CHECK(looks(t, DP_DO_DIAL, &voters) == 8);
    table_close(t);
}

static void a_link_that_ends_in_order_is_watched_by_others_only(void **state)
{
    (void)state;
    table *t = table_of(MEMBERS, 7);
    for (uint32_t i = 0; i < 2; i++) {
        const dp_peer peer = mesh_peer(20 + i);
        const dp_addr addr = mesh_addr(20 + i);
        uint8_t bytes[34];
        const uint32_t index = dp_members_link_up(t->members, t->now, 1, &peer, &addr,
                                                  mesh_credential(20 + i, bytes), true, &t->out);
        CHECK(dp_members_watches(t->members, index));
        dp_members_link_down(t->members, t->now, 1, &peer, i == 0 ? DP_LINK_CLOSED : DP_LINK_RESET,
                             &t->out);
        CHECK(dp_members_watches(t->members, index) == (i == 1));
    }
    table_close(t);
}

/* Where a peer dialled from is no address to dial. */
static void the_address_that_was_dialled_is_kept_if_none_is_known(void **state)
{
    (void)state;
    table *t = table_of(MEMBERS, 7);
    const dp_addr other = mesh_addr(99);
    const dp_addr nowhere = {.family = 0};
    for (uint32_t what = 0; what < 4; what++) {
        const dp_peer peer = mesh_peer(20 + what);
        dp_row *row = &t->members->rows[dp_members_find(t->members, &peer)];
        uint8_t bytes[34];
        row->member.n_addrs = what == 3 ? 1 : 0;
        const dp_addr before = row->member.addrs[0];
        (void)dp_members_link_up(t->members, t->now, 1, &peer, what == 1 ? &nowhere : &other,
                                 mesh_credential(20 + what, bytes), what != 0, &t->out);
        CHECK(row->member.n_addrs == (what >= 2 ? 1 : 0));
        assert_memory_equal(&row->member.addrs[0], what == 2 ? &other : &before, sizeof other);
    }
    table_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_dialled_up_to_twelve_links_and_voters_up_to_three),
        cmocka_unit_test(with_twelve_links_to_others_only_voters_are_dialled),
        cmocka_unit_test(a_voter_and_a_node_that_is_no_member_yet_dial_all_voters),
        cmocka_unit_test(a_dial_names_the_addresses_and_is_given_up_after_a_while),
        cmocka_unit_test(
            of_more_than_thirty_two_links_to_others_old_ones_are_closed_four_at_a_time),
        cmocka_unit_test(a_link_is_not_closed_in_its_first_two_seconds_nor_twice),
        cmocka_unit_test(a_node_that_does_not_vote_closes_links_to_voters_beyond_four),
        cmocka_unit_test(a_voter_keeps_its_share_of_the_links_of_all),
        cmocka_unit_test(it_wakes_for_the_next_dial_and_soon_with_too_many_links),
        cmocka_unit_test(
            a_node_that_has_just_started_dials_twelve_and_the_others_after_two_seconds),
        cmocka_unit_test(a_link_that_ends_in_order_is_watched_by_others_only),
        cmocka_unit_test(the_address_that_was_dialled_is_kept_if_none_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
