#include "gossip/context/context.h"
#include "gossip/node/node.h"
#include "gossip/round/admit.h"
#include "gossip/round/round.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { CAPS = DP_CAP_TRAIN | DP_CAP_SERVE, VISITOR = 4, MANY = 40 };

/* A peer of which there is no more than a link. */
static void visit_with(kit_world *world, uint32_t to, uint32_t i, uint32_t caps, uint16_t uses,
                       uint8_t invite)
{
    kit_event *item = kit_push(world, to, DP_EV_LINK_UP);

    item->bytes = malloc(KIT_CREDENTIAL);
    assert_non_null(item->bytes);
    item->event.u.link.credential = kit_credential(i, caps, uses, invite, item->bytes);
    item->event.u.link.peer = kit_peer(i);
    kit_drain(world);
}

static bool is_member(const kit_world *world, uint32_t i)
{
    const dp_peer peer = kit_peer(i);

    return dp_ledger_member(&world->nodes[0].node->ledger, &peer) != NULL;
}

static void visit_all(kit_world *world, uint32_t i, uint16_t uses, uint8_t invite)
{
    for (uint32_t to = 0; to < world->n; to++) {
        visit_with(world, to, i, CAPS, uses, invite);
    }
}

/* In the table of node 0: at work, as far as it says. */
static void looks_busy(kit_world *world, uint32_t i)
{
    dp_members *members = world->nodes[0].node->members;
    const dp_peer peer = kit_peer(i);
    dp_member *member =
        (dp_member *)(uintptr_t)dp_members_at(members, dp_members_find(members, &peer));

    member->summary = dp_members_at(members, 1)->summary;
    member->summary.has_trainer = true;
    member->has_summary = true;
}

static void a_linked_newcomer_is_admitted_before_it_works(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    visit_all(world, VISITOR, 0, 2);
    assert_false(is_member(world, VISITOR));
    kit_run_ms(world, 1500);
    assert_true(is_member(world, VISITOR));
    const dp_peer peer = kit_peer(VISITOR);
    const dp_roster_entry *entry = dp_ledger_member(&world->nodes[0].node->ledger, &peer);
    assert_int_equal(entry->included, 0);
    kit_close(world);
}

static void in_a_long_round_a_record_of_its_own_admits(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    world->manifest.round_ms = 60000;
    kit_start_anew(world, 3000);
    const dp_node_view before = kit_look(world, 0);
    visit_all(world, VISITOR, 0, 2);
    kit_run_ms(world, 2000);
    assert_true(is_member(world, VISITOR));
    assert_int_equal(kit_look(world, 0).round, before.round);
    assert_int_equal(kit_look(world, 0).slot, before.slot + 1);
    kit_close(world);
}

/* Seen: three identities of one token took a run from 29 rounds in ten seconds to five in
 * thirty. */
static void no_round_waits_for_a_guest(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    visit_all(world, VISITOR, 1, 7);
    kit_run_ms(world, 1500);
    assert_true(is_member(world, VISITOR)); /* It is silent, and soon dead. */
    kit_run_ms(world, 8000);
    visit_all(world, VISITOR + 1, 1, 7);
    looks_busy(world, VISITOR + 1);
    assert_int_equal(dp_round_active(world->nodes[0].node), 3);
    const uint64_t round = kit_look(world, 0).round;
    kit_run_ms(world, 3000);
    assert_in_range(kit_look(world, 0).round, round + 4, round + 7);
    assert_false(is_member(world, VISITOR + 1)); /* The invite was for one. */
    kit_close(world);
}

/* Behind an address that no voter reaches and that reaches none. */
static void a_member_reports_a_newcomer_that_reaches_no_voter(void **state)
{
    kit_world *world = kit_together(4);
    uint32_t plain = 0;

    (void)state;
    while (dp_node_is_voter(world->nodes[plain].node)) {
        plain++;
    }
    visit_with(world, plain, VISITOR, CAPS, 0, 2);
    kit_run_ms(world, 4000);
    assert_true(is_member(world, VISITOR));
    kit_close(world);
}

static void tell_of(dp_node *node, uint32_t i, dp_status expected)
{
    uint8_t bytes[DP_MSG_HEAD_BYTES + 32 + 2 + KIT_CREDENTIAL];
    uint8_t credential[KIT_CREDENTIAL];
    const dp_peer peer = kit_peer(i);
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    dp_write_u8(&writer, DP_MSG_GUEST);
    dp_write_u8(&writer, DP_MSG_VERSION);
    dp_write_bytes(&writer, peer.bytes, sizeof peer.bytes);
    dp_write_u16(&writer, KIT_CREDENTIAL);
    dp_write_view(&writer,
                  kit_credential(expected == DP_DENIED ? i + 1 : i, CAPS, 0, 2, credential));
    assert_int_equal(dp_admit_message(node, dp_view_of(bytes, writer.size)), expected);
    assert_int_equal(dp_admit_message(node, dp_view_of(bytes, writer.size - 1)), DP_BADMSG);
}

static void reported_newcomers_are_bounded_and_forgotten(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;

    (void)state;
    tell_of(node, 100, DP_DENIED); /* With the credential of another node. */
    for (uint32_t i = 0; i < DP_TOLD_GUESTS_MAX; i++) {
        tell_of(node, 100 + i, DP_OK);
        tell_of(node, 100 + i, DP_OK);
    }
    tell_of(node, 200, DP_TOOBIG);
    node->now = dp_time_after(node->now, DP_TOLD_GUEST_US);
    tell_of(node, 200, DP_OK);
    kit_close(world);
}

static void a_newcomer_that_may_not_train_is_not_admitted(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    visit_with(world, 0, VISITOR, DP_CAP_OBSERVE, 0, 2);
    kit_run_ms(world, 1500);
    assert_false(is_member(world, VISITOR));
    kit_close(world);
}

static void many_of_one_invite_keep_nobody_of_another_waiting(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    static dp_record draft;
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
    uint8_t credential[KIT_CREDENTIAL];

    (void)state;
    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    for (uint32_t i = 0; i < 14; i++) { /* The last two have another. */
        const dp_peer peer = kit_peer(MANY - i);
        assert_true(
            dp_members_link_up(node->members, node->now, 1, &peer, &(dp_addr){0},
                               kit_credential(MANY - i, CAPS, 0, i < 12 ? 2 : 3, credential), false,
                               &node->out) != DP_MEMBER_NONE);
    }
    memset(&draft, 0, sizeof draft);
    dp_admit_draft(node, &draft, admitted);
    assert_int_equal(draft.config.n_admits, DP_CONFIG_ADMIT_MAX);
    uint32_t others = 0;
    for (uint32_t i = 0; i < draft.config.n_admits; i++) {
        others += kit_index(&draft.config.admits[i].peer) <= MANY - 12 ? 1 : 0;
        assert_true(i == 0 || dp_peer_compare(&draft.config.admits[i - 1].peer,
                                              &draft.config.admits[i].peer) < 0);
    }
    assert_int_equal(others, 2);
    kit_close(world);
}

/* The node that made the invite of a newcomer's credential. */
static dp_peer inviter;

static dp_status admit_resting(void *context, dp_view credential, const dp_run_id *run,
                               const uint8_t *root, const dp_peer *peer, uint64_t now_ms,
                               dp_admitted *out)
{
    DP_TRY(kit_admit(context, credential, run, root, peer, now_ms, out));
    out->n_above = 1;
    out->above[0] = inviter;
    return DP_OK;
}

/* Otherwise no record would be valid while the newcomer waits: its invite is of a node that the
 * record itself removes. */
static void an_inviter_that_is_away_does_not_give_its_place_to_whom_it_invited(void **state)
{
    enum { AWAY = 3 };
    kit_world *world = kit_together(4);
    dp_node *node = world->nodes[0].node;
    static dp_record draft;
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];

    (void)state;
    visit_with(world, 0, VISITOR, CAPS, 0, 2);
    dp_ledger *ledger = &node->ledger;
    ledger->judges_invites = true;
    ledger->capacity = ledger->n_members;
    ledger->absent_ms = 1;
    ledger->round += DP_GAP_MAX + 2;
    const dp_peer away = kit_peer(AWAY);
    for (uint32_t i = 0; i < ledger->n_roster; i++) {
        dp_roster_entry *entry = &ledger->roster[i];
        entry->touched = dp_peer_equal(&entry->peer, &away) ? 0 : ledger->round;
        entry->counted_ms = 0;
    }
    node->round->n_claims = 0;
    dp_round_index_claims(node);
    node->config.admission.check = admit_resting;
    for (uint32_t i = 0; i < 2; i++) {
        inviter = kit_peer(i == 0 ? AWAY : 1);
        memset(&draft, 0, sizeof draft);
        draft.time_ms = ledger->time_ms + 1000;
        dp_admit_draft(node, &draft, admitted);
        assert_int_equal(draft.config.n_admits, i);
        assert_int_equal(draft.config.n_removes, i);
    }
    assert_true(dp_peer_equal(&draft.config.removes[0].peer, &away));
    kit_close(world);
}

/* Each of them is signed or requested, or concerns only the guest; none is about another node. */
static void a_guest_asks_and_does_not_tell(void **state)
{
    static const dp_msg_type asks[] = {DP_MSG_RECORDS_GET, DP_MSG_INFO_GET, DP_MSG_CHUNK_GET,
                                       DP_MSG_MANIFEST_GET, DP_MSG_PING};
    static const dp_msg_type tells[] = {DP_MSG_READY, DP_MSG_HAVE,  DP_MSG_PING_REQ,
                                        DP_MSG_RELAY, DP_MSG_PROOF, DP_MSG_SUMMARY};

    (void)state;
    for (uint32_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        assert_false(dp_admit_members_only((uint8_t)asks[i]));
    }
    for (uint32_t i = 0; i < sizeof tells / sizeof tells[0]; i++) {
        assert_true(dp_admit_members_only((uint8_t)tells[i]));
    }
    assert_false(dp_admit_members_only(255)); /* Counted as invalid, as from any peer. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linked_newcomer_is_admitted_before_it_works),
        cmocka_unit_test(in_a_long_round_a_record_of_its_own_admits),
        cmocka_unit_test(no_round_waits_for_a_guest),
        cmocka_unit_test(a_member_reports_a_newcomer_that_reaches_no_voter),
        cmocka_unit_test(reported_newcomers_are_bounded_and_forgotten),
        cmocka_unit_test(a_newcomer_that_may_not_train_is_not_admitted),
        cmocka_unit_test(many_of_one_invite_keep_nobody_of_another_waiting),
        cmocka_unit_test(an_inviter_that_is_away_does_not_give_its_place_to_whom_it_invited),
        cmocka_unit_test(a_guest_asks_and_does_not_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
