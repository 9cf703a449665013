/* Peers that the chain has not admitted, in the table of a member: 1 and 2 are members beside it,
 * peers from GUEST on are not. */
#include "gossip/member/members_internal.h"
#include "tests/unit/gossip/kit/mesh.h"

enum { GUEST = 10, MEMBERS = 3, CREDENTIAL = 33 };

typedef struct table {
    dp_members *members;
    dp_out out;
    dp_actions *actions;
    uint64_t now_us;
} table;

static dp_time now_of(const table *t)
{
    return (dp_time){.us = t->now_us};
}

/* The first byte names the invite. */
static dp_view credential_of(uint32_t i, uint8_t invite, uint8_t bytes[CREDENTIAL])
{
    const dp_peer peer = mesh_peer(i);

    bytes[0] = invite;
    memcpy(bytes + 1, peer.bytes, 32);
    return dp_view_of(bytes, CREDENTIAL);
}

static bool admit(void *context, const dp_peer *peer, dp_view credential, uint64_t wall_ms,
                  dp_admitted *grants)
{
    (void)context;
    (void)wall_ms;
    *grants = (dp_admitted){.caps = 7};
    grants->invite.bytes[0] = credential.data[0];
    return credential.size == CREDENTIAL && memcmp(credential.data + 1, peer->bytes, 32) == 0;
}

/* The number of actions of this type about this peer in the last call. */
static uint32_t count_of(const table *t, dp_action_type type, uint32_t i)
{
    const dp_peer peer = mesh_peer(i);
    uint32_t count = 0;

    for (uint32_t k = 0; k < t->actions->count; k++) {
        const dp_action *action = &t->actions->items[k];
        count += action->type == type && dp_peer_equal(&action->u.peer, &peer) ? 1 : 0;
    }
    return count;
}

static uint32_t link_of(table *t, uint32_t i, uint8_t invite)
{
    const dp_peer peer = mesh_peer(i);
    const dp_addr addr = mesh_addr(i);
    uint8_t credential[CREDENTIAL];

    t->now_us += 1000;
    dp_out_begin(&t->out, t->actions);
    return dp_members_link_up(t->members, now_of(t), 1, &peer, &addr,
                              credential_of(i, invite, credential), false, &t->out);
}

static void cut(table *t, uint32_t i, dp_link_cause cause)
{
    const dp_peer peer = mesh_peer(i);

    t->now_us += 1000;
    dp_out_begin(&t->out, t->actions);
    dp_members_link_down(t->members, now_of(t), 1, &peer, cause, &t->out);
}

static void tick(table *t, uint64_t us)
{
    t->now_us += us;
    dp_out_begin(&t->out, t->actions);
    dp_members_tick(t->members, now_of(t), 1, &t->out);
}

static const dp_member *row_of(const table *t, uint32_t i)
{
    const dp_peer peer = mesh_peer(i);
    const uint32_t index = dp_members_find(t->members, &peer);

    return index != DP_MEMBER_NONE ? dp_members_at(t->members, index) : NULL;
}

static table *open_table(bool is_member)
{
    table *t = calloc(1, sizeof *t);
    uint8_t credential[CREDENTIAL];
    const dp_members_config config = {.run = mesh_run,
                                      .self = mesh_peer(0),
                                      .incarnation = 1,
                                      .credential = credential_of(0, 0, credential),
                                      .caps = 7,
                                      .members_max = 200,
                                      .seed = 7,
                                      .crypto = mesh_crypto(0),
                                      .admit = admit};
    assert_non_null(t);
    t->actions = calloc(1, sizeof *t->actions);
    assert_non_null(t->actions);
    t->now_us = DP_SECOND;
    CHECK_OK(dp_out_open(&t->out));
    CHECK_OK(dp_members_open(&t->members, &config));
    dp_out_begin(&t->out, t->actions);
    dp_members_start(t->members, now_of(t), 1, &t->out);
    for (uint32_t i = 1; i < MEMBERS; i++) {
        dp_members_mark(t->members, link_of(t, i, 0), true, false);
    }
    dp_members_mark(t->members, 0, is_member, false);
    tick(t, 1000);
    return t;
}

static void close_table(table *t)
{
    dp_why why;

    CHECK_OK(dp_members_check(t->members, &why));
    dp_members_close(t->members);
    dp_out_close(&t->out);
    free(t->actions);
    free(t);
}

static dp_crypto crypto_of(uint32_t i)
{
    static dp_peer peers[256];

    peers[i] = mesh_peer(i);
    return (dp_crypto){.context = &peers[i], .sign = mesh_sign, .verify = mesh_verify};
}

/* A STATEMENT from one peer: another one lives, and can be dialled. */
static dp_status tell(table *t, uint32_t from, uint32_t about, uint64_t incarnation)
{
    uint8_t bytes[DP_STATEMENT_BYTES_MAX];
    uint8_t message[DP_MESSAGE_MAX];
    uint8_t credential[CREDENTIAL];
    const dp_crypto crypto = crypto_of(about);
    const dp_peer sender = mesh_peer(from);
    const dp_statement statement = {.kind = DP_STATEMENT_ALIVE,
                                    .subject = mesh_peer(about),
                                    .incarnation = incarnation,
                                    .author = mesh_peer(about),
                                    .n_addrs = 1,
                                    .addrs = {mesh_addr(about)}};
    const size_t size = dp_statement_sign(&statement, &crypto, &mesh_run, bytes);
    dp_writer writer = dp_writer_of(message, sizeof message);

    dp_write_u8(&writer, DP_MSG_STATEMENT);
    dp_write_u8(&writer, DP_MSG_VERSION);
    dp_write_bytes(&writer, bytes, size);
    dp_write_u16(&writer, CREDENTIAL);
    dp_write_view(&writer, credential_of(about, 9, credential));
    t->now_us += 1000;
    dp_out_begin(&t->out, t->actions);
    return dp_members_message(t->members, now_of(t), 1, dp_members_find(t->members, &sender),
                              dp_view_of(message, writer.size), &t->out);
}

/* ---- tests ---- */

static void guests_are_not_among_those_who_live(void **state)
{
    table *t = open_table(true);

    (void)state;
    assert_int_equal(dp_members_alive(t->members), MEMBERS);
    const uint32_t index = link_of(t, GUEST, 1);
    assert_true(dp_members_is_guest(t->members, index));
    assert_int_equal(row_of(t, GUEST)->state, DP_MEMBER_ALIVE);
    assert_int_equal(dp_members_alive(t->members), MEMBERS);
    dp_members_mark(t->members, index, true, false);
    assert_int_equal(dp_members_alive(t->members), MEMBERS + 1);
    dp_members_mark(t->members, index, false, false);
    assert_int_equal(dp_members_alive(t->members), MEMBERS);
    close_table(t);
}

/* One connection with 60 invented members filled the tables of a run. */
static void nobody_brings_in_others_by_telling_of_them(void **state)
{
    table *t = open_table(true);

    (void)state;
    (void)link_of(t, GUEST, 1);
    for (uint32_t i = 1; i <= 60; i++) {
        CHECK_OK(tell(t, GUEST, GUEST + i, 1));
        CHECK_OK(tell(t, 1, GUEST + 100 + i, 1));
    }
    assert_int_equal(dp_members_count(t->members), MEMBERS + 1);
    close_table(t);
}

/* Otherwise it would learn of no peer: the chain is not known yet. */
static void a_node_that_is_no_member_believes_its_peers(void **state)
{
    table *t = open_table(false);

    (void)state;
    (void)link_of(t, GUEST, 1);
    CHECK_OK(tell(t, GUEST, GUEST + 1, 1));
    assert_non_null(row_of(t, GUEST + 1));
    close_table(t);
}

/* Its death takes none of the few accusations that this node may make in ten seconds. */
static void a_guest_that_goes_is_gone_and_nobody_is_told(void **state)
{
    table *t = open_table(true);

    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        (void)link_of(t, GUEST + i, 1);
        cut(t, GUEST + i, DP_LINK_RESET);
        assert_int_equal(row_of(t, GUEST + i)->state, DP_MEMBER_DEAD);
        for (uint32_t k = 0; k < t->actions->count; k++) {
            assert_int_not_equal(t->actions->items[k].type, DP_DO_SEND);
        }
    }
    cut(t, 1, DP_LINK_RESET);
    assert_int_equal(row_of(t, 1)->state, DP_MEMBER_DEAD);
    close_table(t);
}

static void a_silent_guest_is_hung_up(void **state)
{
    table *t = open_table(true);

    (void)state;
    (void)link_of(t, GUEST, 1);
    tick(t, DP_GUEST_US - DP_SECOND);
    assert_int_equal(count_of(t, DP_DO_HANGUP, GUEST), 0);
    tick(t, 2 * DP_SECOND);
    assert_int_equal(count_of(t, DP_DO_HANGUP, GUEST), 1);
    close_table(t);
}

static void of_the_invite_with_most_guests_the_first_gives_way(void **state)
{
    table *t = open_table(true);

    (void)state;
    (void)link_of(t, GUEST, 2);
    for (uint32_t i = 1; i < DP_GUESTS_MAX; i++) {
        assert_true(link_of(t, GUEST + i, 1) != DP_MEMBER_NONE);
        assert_int_equal(count_of(t, DP_DO_HANGUP, GUEST), 0);
    }
    assert_true(link_of(t, GUEST + DP_GUESTS_MAX, 2) != DP_MEMBER_NONE);
    assert_int_equal(count_of(t, DP_DO_HANGUP, GUEST + 1), 1);
    assert_true(link_of(t, GUEST + DP_GUESTS_MAX + 2, 3) != DP_MEMBER_NONE);
    assert_int_equal(count_of(t, DP_DO_HANGUP, GUEST + 1), 0); /* Its link ends already. */
    assert_int_equal(count_of(t, DP_DO_HANGUP, GUEST + 2), 1);
    dp_out_begin(&t->out, t->actions);
    const dp_peer closing = mesh_peer(GUEST + 2);
    dp_members_guest_gone(t->members, dp_members_find(t->members, &closing), now_of(t), &t->out);
    assert_int_equal(count_of(t, DP_DO_HANGUP, GUEST + 2), 0);
    assert_true(link_of(t, GUEST + DP_GUESTS_MAX + 1, 1) == DP_MEMBER_NONE);
    assert_int_equal(count_of(t, DP_DO_HANGUP, GUEST + DP_GUESTS_MAX + 1), 1);
    close_table(t);
}

/* A named address was dialled a hundred times in a second. */
static void where_a_guest_can_be_dialled_matters_once_it_is_a_member(void **state)
{
    table *t = open_table(true);

    (void)state;
    const uint32_t index = link_of(t, GUEST, 1);
    CHECK_OK(tell(t, GUEST, GUEST, 1));
    cut(t, GUEST, DP_LINK_RESET);
    for (uint32_t i = 0; i < 100; i++) {
        tick(t, 100 * DP_MS);
        assert_int_equal(count_of(t, DP_DO_DIAL, GUEST), 0);
    }
    dp_members_mark(t->members, index, true, false);
    tick(t, 1000);
    assert_int_equal(row_of(t, GUEST)->n_addrs, 1);
    close_table(t);
}

/* Members dialled such newcomers, and hung up at once where the places of guests were taken. */
static void an_address_heard_before_admission_is_not_dialled_after_it(void **state)
{
    table *t = open_table(false);

    (void)state;
    CHECK_OK(tell(t, 1, GUEST, 1));
    assert_int_equal(row_of(t, GUEST)->n_addrs, 1);
    dp_members_mark(t->members, 0, true, false);
    for (uint32_t i = 0; i < 100; i++) {
        tick(t, 100 * DP_MS);
        assert_int_equal(count_of(t, DP_DO_DIAL, GUEST), 0);
    }
    close_table(t);
}

static void a_member_s_word_has_its_address_dialled_now_and_then_alone(void **state)
{
    table *t = open_table(true);
    uint32_t dials = 0;

    (void)state;
    cut(t, 1, DP_LINK_CLOSED);
    for (uint32_t i = 0; i < 200; i++) { /* 20 seconds. */
        CHECK_OK(tell(t, 2, 1, 2 + i));
        tick(t, 100 * DP_MS);
        const uint32_t now = count_of(t, DP_DO_DIAL, 1);
        dials += now;
        for (uint32_t k = 0; k < now; k++) {
            cut(t, 1, DP_LINK_REFUSED);
        }
    }
    assert_in_range(dials, 4, 24);
    close_table(t);
}

/* The chain may admit it in one record and have it vote in the next, before the table has looked:
 * a node that catches up takes many records at once. */
static void a_newcomer_is_greeted_once_also_if_it_votes_at_once(void **state)
{
    table *t = open_table(true);

    (void)state;
    const uint32_t index = link_of(t, GUEST, 1);
    CHECK_OK(tell(t, GUEST, GUEST, 1));
    const dp_row *row = &t->members->rows[index];
    CHECK(!row->is_new && !t->members->greets && row->member.n_addrs == 0);
    t->members->dial_stale = false;
    dp_members_mark(t->members, index, true, false);
    CHECK(row->is_new && t->members->greets && t->members->dial_stale && row->member.in_roster);
    dp_members_mark(t->members, index, true, true);
    CHECK(row->is_new && t->members->greets && row->member.voter);
    CHECK(dp_rowset_has(&t->members->voters, index));
    CHECK(dp_members_wake(t->members).us == t->members->rows[0].member.heard.us);
    tick(t, 1000);
    CHECK(!row->is_new && !t->members->greets && row->member.n_addrs == 1);
    const dp_peer peer = mesh_peer(GUEST);
    uint32_t told = 0;
    for (uint32_t i = 0; i < t->actions->count; i++) {
        const dp_action *action = &t->actions->items[i];
        told += action->type == DP_DO_SEND && action->u.send.to == DP_TO_PEER &&
                dp_peer_equal(&action->u.send.peer, &peer);
    }
    CHECK(told > 0);                                 /* Of all others. */
    dp_members_mark(t->members, index, true, false); /* No more a voter. */
    CHECK(!row->is_new && !t->members->greets && !dp_rowset_has(&t->members->voters, index));
    t->members->dial_stale = false;
    dp_members_mark(t->members, index, true, false);
    CHECK(!t->members->dial_stale); /* Nothing has changed. */
    dp_members_mark(t->members, index, false, false);
    CHECK(!row->is_new && !t->members->greets && !row->member.in_roster);
    dp_members_mark(t->members, index, true, false);
    dp_members_mark(t->members, index, false, false); /* Taken out before it was greeted. */
    CHECK(!row->is_new);
    close_table(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guests_are_not_among_those_who_live),
        cmocka_unit_test(nobody_brings_in_others_by_telling_of_them),
        cmocka_unit_test(a_node_that_is_no_member_believes_its_peers),
        cmocka_unit_test(a_guest_that_goes_is_gone_and_nobody_is_told),
        cmocka_unit_test(a_silent_guest_is_hung_up),
        cmocka_unit_test(of_the_invite_with_most_guests_the_first_gives_way),
        cmocka_unit_test(where_a_guest_can_be_dialled_matters_once_it_is_a_member),
        cmocka_unit_test(an_address_heard_before_admission_is_not_dialled_after_it),
        cmocka_unit_test(a_member_s_word_has_its_address_dialled_now_and_then_alone),
        cmocka_unit_test(a_newcomer_is_greeted_once_also_if_it_votes_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
