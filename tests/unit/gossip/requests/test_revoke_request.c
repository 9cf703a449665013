/* Revoked invites among whole nodes: the informed nodes, the immediate effects, and members that
 * joined by one. The attacker holds the token of LEAKED and has any number of identities. */
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"
#include "gossip/ledger/inviting.h"
#include "gossip/node/node.h"
#include "gossip/requests/admin_key.h"
#include "gossip/requests/requests.h"
#include "gossip/requests/revoke_request.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { VISITOR = 5, LEAKED = 7, CAPS = DP_CAP_TRAIN | DP_CAP_SERVE };

static void visit(kit_world *world, uint32_t to, uint32_t i)
{
    kit_event *item = kit_push(world, to, DP_EV_LINK_UP);

    item->bytes = malloc(KIT_CREDENTIAL);
    assert_non_null(item->bytes);
    item->event.u.link.credential = kit_credential(i, CAPS, 0, LEAKED, item->bytes);
    item->event.u.link.peer = kit_peer(i);
    kit_drain(world);
}

static void visit_all(kit_world *world, uint32_t i)
{
    for (uint32_t to = 0; to < world->n; to++) {
        visit(world, to, i);
    }
}

static bool is_member(const kit_world *world, uint32_t at, uint32_t i)
{
    const dp_peer peer = kit_peer(i);

    return dp_ledger_member(&world->nodes[at].node->ledger, &peer) != NULL;
}

static dp_admin_command order_of(uint8_t invite)
{
    dp_admin_command order = {.kind = DP_ADMIN_REVOKE_INVITE, .until_ms = UINT64_MAX};

    memset(order.invite.bytes, invite, sizeof order.invite.bytes);
    return order;
}

static dp_status give(kit_world *world, uint32_t to, dp_admin_command order, dp_why *why)
{
    dp_status status = DP_NOMEM;
    kit_event *item = kit_push(world, to, DP_EV_ADMIN_COMMAND);

    item->event.u.order = order;
    item->event.u.order.status = &status;
    item->event.u.order.why = why;
    kit_drain(world);
    return status;
}

static bool sign_without_root(void *context, int key, const char *domain, dp_view bytes,
                              uint8_t signature[DP_SIGNATURE_BYTES])
{
    return key != DP_KEY_ROOT && kit_sign(context, key, domain, bytes, signature);
}

static void a_revoked_invite_admits_nobody_from_the_order_on(void **state)
{
    kit_world *world = kit_together(3);
    dp_why why = {""};
    const dp_admin_command order = order_of(LEAKED);

    (void)state;
    visit_all(world, VISITOR);
    assert_int_equal(give(world, 1, order, &why), DP_OK);
    for (uint32_t i = 0; i < 3; i++) { /* All know, before the chain has it. */
        const dp_node *node = world->nodes[i].node;

        assert_true(dp_revoke_requested(node, &order.invite));
        assert_int_equal(dp_node_invite(node, &order.invite), DP_INVITE_REVOKING);
    }
    kit_run_ms(world, 3000);
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(is_member(world, i, VISITOR));
        assert_true(dp_inviting_revoked(&world->nodes[i].node->ledger, &order.invite));
        assert_int_equal(world->nodes[i].node->requests->invites->n, 0);
        assert_int_equal(dp_node_invite(world->nodes[i].node, &order.invite), DP_INVITE_REVOKED);
    }
    visit_all(world, VISITOR + 1); /* Another identity, by the same token. */
    kit_run_ms(world, 3000);
    assert_false(is_member(world, 0, VISITOR + 1));
    kit_close(world);
}

/* Did the node want this peer's link closed in its last step? */
static bool hung_up(const kit_world *world, uint32_t i)
{
    const dp_peer peer = kit_peer(i);
    bool found = false;

    for (uint32_t k = 0; k < world->actions->count; k++) {
        const dp_action *action = &world->actions->items[k];
        found = found || (action->type == DP_DO_HANGUP && dp_peer_equal(&action->u.peer, &peer));
    }
    return found;
}

static void the_record_that_revokes_an_invite_cuts_its_guests(void **state)
{
    kit_world *world = kit_together(3);
    dp_why why = {""};
    uint8_t credential[KIT_CREDENTIAL];
    dp_event again = {
        .type = DP_EV_LINK_UP,
        .u.link = {.peer = kit_peer(VISITOR + 1),
                   .credential = kit_credential(VISITOR + 1, CAPS, 0, LEAKED, credential)}};

    (void)state;
    assert_int_equal(give(world, 1, order_of(LEAKED), &why), DP_OK);
    visit(world, 0, VISITOR);
    world->nodes[0].linked[VISITOR] = true;
    kit_run_ms(world, 3000);
    assert_false(world->nodes[0].linked[VISITOR]);
    kit_event_in(world, 1, &again); /* Nor does another identity of it get a link. */
    assert_true(hung_up(world, VISITOR + 1));
    assert_true(world->nodes[1].linked[2]);
    kit_close(world);
}

/* Within a round: no later than a round after the order every voter's chain has it. */
static void the_chain_has_it_within_a_round(void **state)
{
    kit_world *world = kit_together(3);
    dp_why why = {""};
    const dp_admin_command order = order_of(LEAKED);

    (void)state;
    const uint64_t round = kit_look(world, 0).round;
    assert_int_equal(give(world, 1, order, &why), DP_OK);
    while (!dp_inviting_revoked(&world->nodes[0].node->ledger, &order.invite)) {
        assert_true(kit_look(world, 0).round <= round + 1);
        kit_run_ms(world, 50);
    }
    assert_true(kit_look(world, 0).round <= round + 1);
    kit_close(world);
}

static void members_that_came_by_it_stay_unless_they_are_named(void **state)
{
    kit_world *world = kit_together(3);
    dp_why why = {""};
    dp_admin_command order = order_of(LEAKED);

    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        visit_all(world, VISITOR + i);
    }
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).members, 13);
    assert_int_equal(give(world, 1, order, &why), DP_OK);
    kit_run_ms(world, 3000);
    assert_int_equal(kit_look(world, 0).members, 13);
    order.members = true; /* The order may be given again; ten are more than one record takes. */
    assert_int_equal(give(world, 1, order, &why), DP_OK);
    kit_run_ms(world, 8000);
    assert_int_equal(kit_look(world, 0).members, 3);
    for (uint32_t i = 0; i < 10; i++) {
        assert_false(is_member(world, 2, VISITOR + i));
    }
    assert_int_equal(world->nodes[1].node->requests->invites->n_sweeps, 0);
    kit_close(world);
}

static void of_members_that_came_by_it_one_that_administers_is_put_out_by_the_root_key(void **state)
{
    kit_world *world = kit_together(3);
    dp_why why = {""};
    const dp_peer visitor = kit_peer(VISITOR);
    dp_admin_command order = order_of(LEAKED);

    (void)state;
    visit_all(world, VISITOR);
    kit_run_ms(world, 3000);
    for (uint32_t i = 0; i < 3; i++) {
        dp_ledger *ledger = &world->nodes[i].node->ledger;
        assert_true(is_member(world, i, VISITOR));
        ledger->roster[dp_ledger_find(ledger, &visitor)].caps |= DP_CAP_ADMIN;
    }
    order.members = true;
    world->nodes[1].node->config.crypto.sign = sign_without_root;
    assert_int_equal(give(world, 1, order, &why), DP_OK);
    assert_int_equal(dp_admin_remove(world->nodes[1].node, &visitor), DP_DENIED);
    assert_int_equal(world->nodes[1].node->requests->n_removes, 0);
    assert_int_equal(world->nodes[1].node->requests->invites->n_sweeps, 0);
    assert_false(dp_node_revoked(world->nodes[1].node, &visitor));
    assert_int_equal(give(world, 0, order, &why), DP_OK);
    assert_true(dp_node_revoked(world->nodes[0].node, &visitor));
    kit_close(world);
}

static void the_roster_tells_who_came_by_which_invite_and_who_is_gone(void **state)
{
    kit_world *world = kit_together(3);
    const dp_node *node = world->nodes[0].node;
    const dp_invite_id other = {{3}};
    dp_invite_id id;
    dp_roster_view row;
    dp_why why = {""};
    uint32_t came = 0;
    uint32_t gone = 0;
    dp_admin_command order = order_of(LEAKED);

    (void)state;
    visit_all(world, VISITOR);
    kit_run_ms(world, 3000);
    order.members = true;
    assert_int_equal(give(world, 0, order, &why), DP_OK);
    kit_run_ms(world, 3000);
    for (uint32_t i = 0; dp_node_roster(node, i, &row); i++) {
        const bool so = dp_invite_id_compare(&row.invite, &order.invite) == 0;
        came += so ? 1 : 0;
        gone += so && row.gone == DP_REMOVE_REVOKED ? 1 : 0;
    }
    assert_int_equal(came, 1);
    assert_int_equal(gone, 1);
    assert_int_equal(dp_node_invite(node, &other), DP_INVITE_STANDS);
    assert_true(dp_node_revoked_invite(node, 0, &id));
    assert_int_equal(dp_invite_id_compare(&id, &order.invite), 0);
    assert_false(dp_node_revoked_invite(node, 1, &id));
    kit_close(world);
}

static void a_member_invited_by_such_a_member_is_removed_too(void **state)
{
    const dp_invite_id leaked = {{LEAKED}};
    const dp_invite_id other = {{1}};
    const dp_roster_entry direct = {.invite = leaked};
    const dp_roster_entry below = {.invite = other, .invite_above = leaked};

    (void)state;
    assert_true(dp_invite_brought(&direct, &leaked));
    assert_true(dp_invite_brought(&below, &leaked));
    assert_false(dp_invite_brought(&direct, &other));
}

static void an_order_that_cannot_be_obeyed_says_why(void **state)
{
    kit_world *world = kit_together(3);
    dp_ledger *ledger = &world->nodes[1].node->ledger;
    const dp_peer self = kit_peer(1);
    dp_admin_command order = order_of(LEAKED);
    dp_why why = {""};

    (void)state;
    assert_int_equal(give(world, 1, order_of(0), &why), DP_BADARG);
    world->nodes[1].node->config.crypto.sign = sign_without_root;
    const uint32_t caps = ledger->roster[dp_ledger_find(ledger, &self)].caps;
    ledger->roster[dp_ledger_find(ledger, &self)].caps = DP_CAP_TRAIN;
    assert_int_equal(give(world, 1, order, &why), DP_DENIED);
    assert_non_null(strstr(why.text, "neither the root key nor the right"));
    ledger->roster[dp_ledger_find(ledger, &self)].caps = caps;
    ledger->n_revoked = DP_REVOKED_INVITES_MAX;
    for (uint32_t i = 0; i < DP_REVOKED_INVITES_MAX; i++) {
        ledger->revoked[i] = (dp_revoked_invite){.id = {{(uint8_t)i, 1}}, .until_ms = UINT64_MAX};
    }
    assert_int_equal(give(world, 1, order, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "256 revoked invites, the largest number"));
    ledger->n_revoked = 0;
    /* Expired for long, and harmless: the statement is forgotten 400 days after the end. */
    order.until_ms = 1;
    assert_int_equal(give(world, 1, order, &why), DP_OK);
    kit_close(world);
}

static void a_word_by_somebody_who_may_not_is_refused_and_reaches_nobody(void **state)
{
    kit_world *world = kit_together(3);
    const dp_crypto crypto = kit_crypto(2);
    const dp_run_id run = kit_run();
    dp_invite_revoke word = {.id = {{LEAKED}}, .until_ms = UINT64_MAX, .by = kit_peer(2)};
    uint8_t room[DP_MSG_HEAD_BYTES + DP_INVITE_REVOKE_BYTES];

    (void)state;
    assert_true(dp_invite_revoke_sign(&word, &crypto, DP_KEY_IDENTITY, &run));
    for (uint32_t i = 0; i < 3; i++) {
        dp_ledger *ledger = &world->nodes[i].node->ledger;
        ledger->roster[dp_ledger_find(ledger, &word.by)].caps = DP_CAP_TRAIN | DP_CAP_INVITE;
    }
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_invite_revoke_msg_write(&writer, &word);
    const uint64_t rejected = kit_look(world, 0).rejected;
    kit_send(world, 2, 0, dp_view_of(room, writer.size));
    kit_drain(world);
    assert_int_equal(kit_look(world, 0).rejected, rejected + 1);
    assert_false(dp_revoke_requested(world->nodes[0].node, &word.id));
    memcpy(word.by.bytes, world->nodes[0].node->ledger.root_key, sizeof word.by.bytes);
    writer = dp_writer_of(room, sizeof room); /* In the name of the root key. */
    dp_invite_revoke_msg_write(&writer, &word);
    kit_send(world, 2, 0, dp_view_of(room, writer.size));
    kit_drain(world);
    assert_int_equal(kit_look(world, 0).rejected, rejected + 2);
    kit_close(world);
}

static void a_guest_with_a_revoked_invite_is_told(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[2].node;
    const dp_peer self = kit_peer(2);
    dp_why why = {""};

    (void)state;
    assert_int_equal(give(world, 1, order_of(1), &why), DP_OK); /* All came by this one, */
    kit_run_ms(world, 3000);
    assert_int_equal(kit_look(world, 0).members, 3); /* and stay. */
    assert_int_equal(dp_node_refused(node, &why), DP_OK);
    node->ledger.roster[dp_ledger_find(&node->ledger, &self)].gone = DP_REMOVE_ABSENT;
    assert_int_equal(dp_node_refused(node, &why), DP_DENIED);
    assert_string_equal(why.text, "its invite was revoked");
    node->ledger.roster[dp_ledger_find(&node->ledger, &self)].gone = 0;
    kit_close(world);
}

/* Going back to a round before a revocation does not undo it. */
static void a_fork_revokes_again_what_was_revoked_since(void **state)
{
    kit_world *world = kit_together(4);
    dp_why why = {""};
    const dp_admin_command revoked = order_of(LEAKED);

    (void)state;
    kit_run_ms(world, 8000);
    world->nodes[1].saves_nothing = true;
    kit_run_ms(world, 2000);
    assert_int_equal(give(world, 0, revoked, &why), DP_OK);
    kit_run_ms(world, 2000);
    const dp_history_row *row = dp_chain_row(world->nodes[1].node, world->nodes[1].saved_round);
    assert_non_null(row);
    const dp_admin_command back = {.kind = DP_ADMIN_FORK,
                                   .back = true,
                                   .round = row->round,
                                   .slot = row->slot,
                                   .state_root = row->root};
    assert_int_equal(give(world, 1, back, &why), DP_OK);
    kit_run_ms(world, 4000);
    for (uint32_t i = 0; i < 4; i++) {
        const dp_ledger *ledger = &world->nodes[i].node->ledger;
        assert_int_equal(ledger->n_forks, 1);
        assert_true(dp_inviting_revoked(ledger, &revoked.invite));
    }
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_revoked_invite_admits_nobody_from_the_order_on),
        cmocka_unit_test(the_record_that_revokes_an_invite_cuts_its_guests),
        cmocka_unit_test(the_chain_has_it_within_a_round),
        cmocka_unit_test(members_that_came_by_it_stay_unless_they_are_named),
        cmocka_unit_test(
            of_members_that_came_by_it_one_that_administers_is_put_out_by_the_root_key),
        cmocka_unit_test(the_roster_tells_who_came_by_which_invite_and_who_is_gone),
        cmocka_unit_test(a_member_invited_by_such_a_member_is_removed_too),
        cmocka_unit_test(an_order_that_cannot_be_obeyed_says_why),
        cmocka_unit_test(a_word_by_somebody_who_may_not_is_refused_and_reaches_nobody),
        cmocka_unit_test(a_guest_with_a_revoked_invite_is_told),
        cmocka_unit_test(a_fork_revokes_again_what_was_revoked_since),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
