/* Refused admin commands: each gives a status and a sentence, and begins nothing. (Accepted ones:
 * test_fork.c.) */
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/proof.h"
#include "gossip/context/context.h"
#include "gossip/node/node.h"
#include "gossip/requests/requests.h"
#include "gossip/requests/revoke_request.h"
#include "tests/unit/gossip/kit/node_kit.h"

/* Signs nothing in this domain: the key is lost, or the device that holds it refuses. */
static const char *refused_domain;

static bool sign_other_domains(void *context, int key, const char *domain, dp_view bytes,
                               uint8_t signature[DP_SIGNATURE_BYTES])
{
    return strcmp(domain, refused_domain) != 0 && kit_sign(context, key, domain, bytes, signature);
}

static bool sign_without_root(void *context, int key, const char *domain, dp_view bytes,
                              uint8_t signature[DP_SIGNATURE_BYTES])
{
    return key != DP_KEY_ROOT && kit_sign(context, key, domain, bytes, signature);
}

/* Node 0 of three, which has lost the other two voters. */
static kit_world *alone(void)
{
    kit_world *world = kit_together(3);

    kit_kill(world, 1);
    kit_kill(world, 2);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_GOSSIP);
    return world;
}

static void refuse(kit_world *world, uint32_t to, dp_admin_command order, dp_status wanted,
                   const char *sentence)
{
    dp_status status = DP_OK;
    dp_why why = {""};
    kit_event *item = kit_push(world, to, DP_EV_ADMIN_COMMAND);
    const uint64_t slot = kit_look(world, to).slot;

    item->event.u.order = order;
    item->event.u.order.status = &status;
    item->event.u.order.why = &why;
    kit_drain(world);
    assert_int_equal(status, wanted);
    assert_non_null(strstr(why.text, sentence));
    assert_int_equal(kit_look(world, to).slot, slot);
    assert_false(world->nodes[to].reopens);
}

static dp_admin_command revoke(uint32_t index)
{
    return (dp_admin_command){.kind = DP_ADMIN_REVOKE, .peer = kit_peer(index)};
}

static void without_the_root_key_nobody_forks_merges_or_revokes_an_admin(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    world->nodes[1].node->config.crypto.sign = sign_without_root;
    refuse(world, 1, (dp_admin_command){.kind = DP_ADMIN_FORK}, DP_DENIED,
           "does not have the root key");
    refuse(world, 1, (dp_admin_command){.kind = DP_ADMIN_MERGE}, DP_DENIED,
           "does not have the root key");
    refuse(world, 1, revoke(2), DP_DENIED, "only the root key removes an admin");
    kit_close(world);
}

static void the_root_key_of_another_run_is_none(void **state)
{
    kit_world *world = kit_together(1);

    (void)state;
    world->nodes[0].node->ledger.root_key[0] ^= 1;
    refuse(world, 0, (dp_admin_command){.kind = DP_ADMIN_FORK}, DP_DENIED,
           "does not have the root key");
    world->nodes[0].node->ledger.root_key[0] ^= 1;
    kit_close(world);
}

static void a_member_without_the_right_revokes_nobody_and_an_admin_others(void **state)
{
    kit_world *world = kit_together(3);
    dp_ledger *ledger = &world->nodes[1].node->ledger;
    const dp_peer self = kit_peer(1);
    const dp_peer other = kit_peer(2);

    (void)state;
    world->nodes[1].node->config.crypto.sign = sign_without_root;
    ledger->roster[dp_ledger_find(ledger, &self)].caps = DP_CAP_TRAIN;
    ledger->roster[dp_ledger_find(ledger, &other)].caps = DP_CAP_TRAIN;
    refuse(world, 1, revoke(2), DP_DENIED, "neither the root key nor the right");
    ledger->roster[dp_ledger_find(ledger, &self)].caps = DP_CAP_ALL;
    refused_domain = "dpnode/remove/1";
    world->nodes[1].node->config.crypto.sign = sign_other_domains;
    refuse(world, 1, revoke(2), DP_DENIED, "this node does not have the key to sign with");
    assert_false(dp_node_revoked(world->nodes[1].node, &other));
    kit_close(world);
}

static void nobody_revokes_itself_a_stranger_or_one_more_than_fit(void **state)
{
    kit_world *world = kit_together(2);
    dp_requests *requests = world->nodes[0].node->requests;

    (void)state;
    refuse(world, 0, revoke(0), DP_BADARG, "to leave the run: dpnode leave");
    refuse(world, 0, revoke(5), DP_NOTFOUND, "not a member of the run");
    for (uint32_t i = 0; i < DP_REMOVES_MAX; i++) {
        requests->removes[i] = (dp_remove){.peer = kit_peer(6 + i), .reason = DP_REMOVE_LEFT};
    }
    requests->n_removes = DP_REMOVES_MAX;
    refuse(world, 0, revoke(1), DP_AGAIN, "8 removals already wait");
    kit_close(world);
}

static void removing_the_only_voter_names_the_way_to_continue(void **state)
{
    static dp_actions actions;
    kit_world *world = kit_together(2);
    dp_node *node = world->nodes[1].node;
    dp_status status = DP_NOMEM;
    dp_why why = {""};
    dp_admin_command order = revoke(0);
    dp_event event = {.type = DP_EV_ADMIN_COMMAND, .now = {world->now_us}};

    (void)state;
    assert_int_equal(node->ledger.n_voters, 1);
    order.status = &status;
    order.why = &why;
    event.u.order = order;
    dp_node_step(node, &event, &actions);
    assert_int_equal(status, DP_OK);
    assert_non_null(strstr(why.text, "dpnode run fork"));
    kit_close(world);
}

static void a_fork_needs_the_state_that_all_would_go_on_from(void **state)
{
    kit_world *world = alone();
    dp_standing *standing = &world->nodes[0].node->standing;

    (void)state;
    standing->has_theta = false;
    refuse(world, 0, (dp_admin_command){.kind = DP_ADMIN_FORK}, DP_AGAIN,
           "from which the run would continue");
    standing->has_theta = true;
    kit_close(world);
}

static void a_fork_needs_somebody_who_may_vote(void **state)
{
    kit_world *world = alone();
    dp_node *node = world->nodes[0].node;
    dp_ledger *ledger = &node->ledger;
    const dp_peer self = kit_peer(0);
    dp_roster_entry *entry = &ledger->roster[dp_ledger_find(ledger, &self)];
    const dp_admin_command fork = {.kind = DP_ADMIN_FORK};

    (void)state;
    node->commit->key_lost = true;
    refuse(world, 0, fork, DP_AGAIN, "neither this node nor a connected one may vote");
    node->commit->key_lost = false;
    node->config.has_vote_key = false;
    refuse(world, 0, fork, DP_AGAIN, "neither this node nor a connected one may vote");
    node->config.has_vote_key = true;
    entry->caps = DP_CAP_TRAIN;
    refuse(world, 0, fork, DP_AGAIN, "neither this node nor a connected one may vote");
    entry->caps = DP_CAP_ALL;
    refused_domain = "dpnode/voter/1";
    node->config.crypto.sign = sign_other_domains;
    refuse(world, 0, fork, DP_AGAIN, "neither this node nor a connected one may vote");
    node->config.crypto.sign = kit_sign;
    kit_close(world);
}

static void a_root_key_that_does_not_sign_forks_nothing(void **state)
{
    kit_world *world = alone();
    dp_node *node = world->nodes[0].node;
    const dp_admin_command fork = {.kind = DP_ADMIN_FORK};

    (void)state;
    node->config.crypto.sign = sign_other_domains;
    refused_domain = "dpnode/fork/1";
    refuse(world, 0, fork, DP_DENIED, "could not sign");
    /* A halted node would remove the voter that voted twice, which also needs a signature. */
    refused_domain = "dpnode/remove/1";
    node->halted = true;
    node->proof->culprit = kit_peer(1);
    refuse(world, 0, fork, DP_DENIED, "could not sign");
    node->halted = false;
    kit_close(world);
}

/* No link between those of a and the others, from now on. */
static void split(kit_world *world, uint32_t a)
{
    for (uint32_t i = 0; i < world->n; i++) {
        for (uint32_t k = i + 1; k < world->n; k++) {
            if (((a >> i) & 1) != ((a >> k) & 1)) {
                kit_cut(world, i, k);
            }
        }
    }
    kit_drain(world);
}

static void obey(kit_world *world, uint32_t to, dp_admin_command_kind kind)
{
    dp_status status = DP_AGAIN;
    dp_why why = {""};
    kit_event *item = kit_push(world, to, DP_EV_ADMIN_COMMAND);

    item->event.u.order = (dp_admin_command){.kind = kind, .status = &status, .why = &why};
    kit_drain(world);
    assert_int_equal(status, DP_OK);
}

/* {0,1} begins anew first; {2} goes on with 3 and 4, loses them, and begins anew later. */
static kit_world *two_chains(void)
{
    kit_world *world = kit_together(5);

    split(world, 3);
    kit_run_ms(world, 4000);
    obey(world, 0, DP_ADMIN_FORK);
    kit_run_ms(world, 2000);
    kit_kill(world, 3);
    kit_kill(world, 4);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 2).mode, DP_MODE_GOSSIP);
    obey(world, 2, DP_ADMIN_FORK);
    kit_run_ms(world, 2000);
    kit_link_all(world);
    kit_run_ms(world, 3000);
    return world;
}

static void of_two_chains_the_one_begun_later_cannot_go_on(void **state)
{
    kit_world *world = two_chains();

    (void)state;
    assert_false(
        dp_hash_equal(&world->nodes[0].node->ledger.fork, &world->nodes[2].node->ledger.fork));
    refuse(world, 2, (dp_admin_command){.kind = DP_ADMIN_MERGE}, DP_DENIED, "restarted earlier");
    world->nodes[0].node->config.crypto.sign = sign_other_domains;
    refused_domain = "dpnode/stop/1";
    refuse(world, 0, (dp_admin_command){.kind = DP_ADMIN_MERGE}, DP_DENIED, "could not sign");
    world->nodes[0].node->config.crypto.sign = kit_sign;
    obey(world, 0, DP_ADMIN_MERGE);
    kit_run_ms(world, 8000);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(
            dp_hash_equal(&world->nodes[0].node->ledger.fork, &world->nodes[i].node->ledger.fork));
        assert_int_equal(kit_look(world, i).mode, DP_MODE_SYNC);
    }
    kit_close(world);
}

/* The state of round t0 is on one disk, and the run has gone on since. */
static dp_admin_command back_to(kit_world *world, uint32_t index)
{
    const kit_node *node = &world->nodes[index];
    const dp_history_row *row = dp_chain_row(node->node, node->saved_round);

    assert_non_null(row);
    return (dp_admin_command){.kind = DP_ADMIN_FORK,
                              .back = true,
                              .round = row->round,
                              .slot = row->slot,
                              .state_root = row->root};
}

static void give(kit_world *world, uint32_t to, dp_admin_command order)
{
    dp_status status = DP_AGAIN;
    dp_why why = {""};
    kit_event *item = kit_push(world, to, DP_EV_ADMIN_COMMAND);

    item->event.u.order = order;
    item->event.u.order.status = &status;
    item->event.u.order.why = &why;
    kit_drain(world);
    assert_int_equal(status, DP_OK);
}

static dp_admin_command revoke_invite(uint8_t invite)
{
    return (dp_admin_command){
        .kind = DP_ADMIN_REVOKE_INVITE, .invite = {{invite}}, .until_ms = UINT64_MAX};
}

static void the_root_key_takes_the_run_back_to_an_earlier_round(void **state)
{
    kit_world *world = kit_together(4);

    (void)state;
    kit_run_ms(world, 8000); /* Too far for a replay from the seed. */
    world->nodes[1].saves_nothing = true;
    kit_run_ms(world, 2000);
    give(world, 0, revoke(3));
    kit_run_ms(world, 2000);
    for (uint8_t invite = 32; invite > 29; invite--) { /* Against the order in a record. */
        give(world, 0, revoke_invite(invite));
        kit_run_ms(world, 1000);
    }
    assert_int_equal(world->nodes[0].node->ledger.n_revoked, 3);
    const dp_admin_command order = back_to(world, 1);
    const uint64_t before = kit_look(world, 0).round;
    const uint64_t slot = kit_look(world, 0).slot;
    const uint32_t fetched = world->states_fetched;
    const dp_peer revoked = kit_peer(3);
    assert_true(order.round > 0 && order.round + 4 < before);
    assert_null(dp_ledger_member(&world->nodes[0].node->ledger, &revoked));
    give(world, 1, order);
    kit_run_ms(world, 200);
    assert_true(kit_look(world, 1).round < before);
    kit_run_ms(world, 6000);
    for (uint32_t i = 0; i < 3; i++) {
        const dp_node_view view = kit_look(world, i);
        assert_int_equal(view.mode, DP_MODE_SYNC);
        assert_int_equal(view.voters, 3); /* It was one, and took in the others. */
        assert_int_equal(view.listed_last, 3);
        assert_true(
            dp_hash_equal(&world->nodes[0].node->ledger.fork, &world->nodes[i].node->ledger.fork));
        /* A member that was put out after that round stays out. */
        assert_null(dp_ledger_member(&world->nodes[i].node->ledger, &revoked));
        assert_int_equal(world->nodes[i].node->ledger.n_revoked, 3);
    }
    assert_true(world->states_fetched > fetched);
    assert_false(dp_hash_is_zero(&world->nodes[0].node->ledger.fork));
    assert_true(world->nodes[0].node->forks->own[0].slot == order.slot + 1 && order.slot < slot);
    /* To that very round again, and to none before it. */
    dp_admin_command older = order;
    older.round--;
    older.slot--;
    refuse(world, 1, older, DP_DENIED, "a restart cannot be undone");
    give(world, 1, order);
    kit_run_ms(world, 6000);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    assert_int_equal(world->nodes[0].node->forks->n, 2);
    kit_close(world);
}

static void a_fork_goes_back_to_no_state_that_is_not_there(void **state)
{
    kit_world *world = kit_together(3);
    dp_admin_command order;

    (void)state;
    kit_run_ms(world, 2000);
    order = back_to(world, 0);
    order.round = kit_look(world, 0).round;
    refuse(world, 0, order, DP_EXISTS, "no round can be undone");
    world->nodes[0].saves_nothing = true;
    kit_run_ms(world, 2000);
    order = back_to(world, 0);
    order.slot++;
    refuse(world, 0, order, DP_NOTFOUND, "too old");
    order.slot--;
    order.state_root.bytes[0] ^= 1;
    refuse(world, 0, order, DP_CORRUPT, "not the state that the voters signed");
    order.state_root.bytes[0] ^= 1;
    world->nodes[0].node->config.crypto.sign = sign_without_root;
    refuse(world, 0, order, DP_DENIED, "does not have the root key");
    kit_close(world);
}

/* n members were put out after the slot that the order goes back to. */
static void put_out_since(dp_ledger *ledger, const dp_admin_command *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        ledger->roster[ledger->n_roster++] = (dp_roster_entry){.peer = kit_peer(20 + i),
                                                               .admitted_slot = 1,
                                                               .gone = DP_REMOVE_REVOKED,
                                                               .gone_slot = order->slot + 1};
    }
}

static void a_fork_puts_out_again_as_many_as_a_record_has_room_for(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    dp_ledger *ledger = &node->ledger;
    const uint32_t n_roster = ledger->n_roster;

    (void)state;
    kit_run_ms(world, 2000);
    const dp_admin_command order = back_to(world, 0);
    world->nodes[0].saves_nothing = true;
    kit_run_ms(world, 2000);
    put_out_since(ledger, &order, DP_CONFIG_REMOVE_MAX + 1);
    refuse(world, 0, order, DP_TOOBIG, "more than 8 members");
    /* Eight have room; the chain knows none of these, so it is refused as a whole, and only
     * then. */
    ledger->n_roster--;
    refuse(world, 0, order, DP_DENIED, "is not valid at this node");
    /* The voter that voted twice is among them: the FORK removes it only once, so they still have
     * room. */
    node->halted = true;
    node->proof->culprit = kit_peer(20);
    refuse(world, 0, order, DP_DENIED, "is not valid at this node");
    node->halted = false;
    ledger->n_roster = n_roster;
    kit_close(world);
}

static void a_fork_revokes_again_as_many_invites_as_a_record_has_room_for(void **state)
{
    kit_world *world = kit_together(3);
    dp_ledger *ledger = &world->nodes[0].node->ledger;

    (void)state;
    kit_run_ms(world, 2000);
    const dp_admin_command order = back_to(world, 0);
    world->nodes[0].saves_nothing = true;
    kit_run_ms(world, 2000);
    for (uint32_t i = 0; i <= DP_CONFIG_REVOKE_MAX; i++) {
        ledger->revoked[ledger->n_revoked++] = (dp_revoked_invite){
            .id = {{(uint8_t)(20 + i)}}, .until_ms = UINT64_MAX, .slot = order.slot + 1};
    }
    refuse(world, 0, order, DP_TOOBIG, "more than 8 members or invites have been revoked");
    kit_close(world);
}

static void one_revoked_invite_more_than_a_record_takes_waits_for_another_order(void **state)
{
    kit_world *world = kit_together(3);
    const dp_admin_command ninth = revoke_invite(20 + DP_CONFIG_REVOKE_MAX);

    (void)state;
    for (uint8_t i = 0; i < DP_CONFIG_REVOKE_MAX; i++) {
        give(world, 0, revoke_invite((uint8_t)(20 + i)));
    }
    refuse(world, 0, ninth, DP_AGAIN, "8 revocations already wait for the next record");
    assert_false(dp_revoke_requested(world->nodes[0].node, &ninth.invite));
    kit_run_ms(world, 3000);
    give(world, 0, ninth); /* The chain has the eight. */
    kit_close(world);
}

/* A device that signs this domain with another key. */
static bool sign_wrongly(void *context, int key, const char *domain, dp_view bytes,
                         uint8_t signature[DP_SIGNATURE_BYTES])
{
    const bool is_signed = kit_sign(context, key, domain, bytes, signature);

    signature[0] ^= strcmp(domain, refused_domain) == 0 ? 1 : 0;
    return is_signed;
}

static void an_invite_is_revoked_by_a_key_that_signs_and_signs_rightly(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    const dp_admin_command order = revoke_invite(20);

    (void)state;
    refused_domain = "dpnode/invite-revoke/1";
    node->config.crypto.sign = sign_other_domains;
    refuse(world, 0, order, DP_DENIED, "this node does not have the key to sign with");
    node->config.crypto.sign = sign_wrongly;
    refuse(world, 0, order, DP_BADSIG, "the revocation is not valid: ");
    assert_false(dp_revoke_requested(node, &order.invite));
    node->config.crypto.sign = kit_sign;
    give(world, 0, order);
    assert_true(dp_revoke_requested(node, &order.invite));
    kit_close(world);
}

static void an_order_that_nobody_knows_is_refused(void **state)
{
    kit_world *world = kit_together(1);

    (void)state;
    refuse(world, 0, (dp_admin_command){.kind = (dp_admin_command_kind)99}, DP_UNSUPPORTED,
           "unknown admin command 99");
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_the_root_key_nobody_forks_merges_or_revokes_an_admin),
        cmocka_unit_test(the_root_key_of_another_run_is_none),
        cmocka_unit_test(a_member_without_the_right_revokes_nobody_and_an_admin_others),
        cmocka_unit_test(nobody_revokes_itself_a_stranger_or_one_more_than_fit),
        cmocka_unit_test(removing_the_only_voter_names_the_way_to_continue),
        cmocka_unit_test(a_fork_needs_the_state_that_all_would_go_on_from),
        cmocka_unit_test(a_fork_needs_somebody_who_may_vote),
        cmocka_unit_test(a_root_key_that_does_not_sign_forks_nothing),
        cmocka_unit_test(of_two_chains_the_one_begun_later_cannot_go_on),
        cmocka_unit_test(the_root_key_takes_the_run_back_to_an_earlier_round),
        cmocka_unit_test(a_fork_goes_back_to_no_state_that_is_not_there),
        cmocka_unit_test(a_fork_puts_out_again_as_many_as_a_record_has_room_for),
        cmocka_unit_test(a_fork_revokes_again_as_many_invites_as_a_record_has_room_for),
        cmocka_unit_test(one_revoked_invite_more_than_a_record_takes_waits_for_another_order),
        cmocka_unit_test(an_invite_is_revoked_by_a_key_that_signs_and_signs_rightly),
        cmocka_unit_test(an_order_that_nobody_knows_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
