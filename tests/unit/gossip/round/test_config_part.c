/* Voters that are replaced, handed over and removed: the config part of a record, with and without
 * a round. */
#include "gossip/context/context.h"
#include "gossip/node/node.h"
#include "gossip/requests/request_msg.h"
#include "gossip/requests/requests.h"
#include "gossip/round/config_part.h"
#include "gossip/round/judge.h"
#include "gossip/round/round.h"
#include "tests/unit/gossip/kit/node_kit.h"

static dp_status revoke(kit_world *world, uint32_t by, uint32_t peer, dp_why *why)
{
    dp_status status = DP_AGAIN;
    kit_event *item = kit_push(world, by, DP_EV_ADMIN_COMMAND);

    item->event.u.order = (dp_admin_command){
        .kind = DP_ADMIN_REVOKE, .peer = kit_peer(peer), .status = &status, .why = why};
    kit_drain(world);
    return status;
}

static bool votes(const kit_world *world, uint32_t at, uint32_t who)
{
    const dp_peer peer = kit_peer(who);

    return dp_ledger_voter(&world->nodes[at].node->ledger, &peer) != DP_NOBODY;
}

static void a_dead_voter_is_replaced_when_no_round_is_near(void **state)
{
    kit_world *world = kit_together(4);
    uint32_t dead = 1;

    (void)state;
    while (!votes(world, 0, dead)) {
        dead++;
    }
    for (uint32_t i = 0; i < 4; i++) {
        kit_command(world, i, DP_COMMAND_PAUSE);
    }
    kit_run_ms(world, 5000);
    kit_kill(world, dead);
    const dp_node_view before = kit_look(world, 0);
    kit_run_ms(world, 80000);
    const dp_node_view after = kit_look(world, 0);
    assert_int_equal(after.round, before.round);
    assert_int_equal(after.slot,
                     before.slot + 1); /* One record, and no second that says the same. */
    assert_int_equal(after.voters, 3);
    assert_false(votes(world, 0, dead));
    for (uint32_t i = 0; i < 4; i++) {
        kit_command(world, i, i == dead ? DP_COMMAND_PAUSE : DP_COMMAND_RESUME);
    }
    kit_run_ms(world, 4000);
    assert_true(kit_look(world, 0).round > before.round);
    kit_close(world);
}

static void two_dead_voters_of_five_are_let_go_when_nobody_can_follow(void **state)
{
    kit_world *world = kit_together(5);

    (void)state;
    for (uint32_t i = 0; i < 5; i++) {
        kit_command(world, i, DP_COMMAND_PAUSE);
    }
    kit_kill(world, 3);
    kit_kill(world, 4);
    kit_run_ms(world, 70000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    kit_kill(world, 2); /* Never below three by itself. */
    kit_run_ms(world, 70000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    kit_close(world);
}

static void voters_become_no_more_while_one_of_them_is_dead(void **state)
{
    kit_world *world = kit_open(5);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < i; k++) {
            kit_link(world, i, k);
        }
    }
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    kit_kill(world, 2);
    kit_run_ms(world, 4000);
    for (uint32_t i = 3; i < 5; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (k != 2) {
                kit_link(world, i, k);
            }
        }
    }
    const uint64_t before = kit_look(world, 0).round;
    kit_run_ms(world, 8000);
    assert_true(kit_look(world, 0).round > before + 4);
    assert_int_equal(kit_look(world, 0).members, 5);
    /* If two newcomers are lost too, two of five could not decide. */
    assert_int_equal(kit_look(world, 0).voters, 3);
    kit_boot(world, 2);
    for (uint32_t i = 0; i < 5; i++) {
        if (i != 2) {
            kit_link(world, i, 2);
        }
    }
    kit_run_ms(world, 8000);
    assert_int_equal(kit_look(world, 0).voters, 5);
    kit_close(world);
}

/* Node 0 votes alone, and demands this uptime; the others hold themselves for old enough from the
 * start. */
static kit_world *with_hasty_candidates(uint32_t uptime_s)
{
    kit_world *world = kit_open(3);

    world->manifest.voter_uptime_s = uptime_s;
    for (uint32_t i = 0; i < 3; i++) {
        kit_kill(world, i);
        kit_boot(world, i);
        world->nodes[i].node->manifest.voter_uptime_s = i == 0 ? uptime_s : 0;
    }
    kit_run_ms(world, (uptime_s + 2) * 1000ULL); /* The voter itself is up for longer. */
    kit_link_all(world);
    return world;
}

static void a_candidate_votes_once_the_voters_have_seen_it_for_the_uptime(void **state)
{
    kit_world *world = with_hasty_candidates(20);

    (void)state;
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).members, 3);
    assert_true(world->nodes[0].node->round->n_offers > 0);
    kit_run_ms(world, 12000);
    assert_int_equal(kit_look(world, 0).voters, 1);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    kit_close(world);
}

static void a_voter_that_starts_anew_goes_by_the_chain(void **state)
{
    kit_world *world = with_hasty_candidates(20);

    (void)state;
    for (uint32_t i = 0; i < 6 && kit_look(world, 0).voters == 1; i++) {
        kit_run_ms(world, 8000);
        kit_kill(world, 0);
        kit_boot(world, 0);
        world->nodes[0].node->manifest.voter_uptime_s = 20;
        kit_link(world, 0, 1);
        kit_link(world, 0, 2);
        kit_drain(world);
    }
    kit_run_ms(world, 2000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    kit_close(world);
}

static void a_sole_voter_that_leaves_hands_over_first(void **state)
{
    kit_world *world = kit_together(2);

    (void)state;
    kit_command(world, 0, DP_COMMAND_LEAVE);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_LEFT);
    assert_true(votes(world, 1, 1));
    const uint64_t before = kit_look(world, 1).round;
    kit_kill(world, 0);
    kit_run_ms(world, 4000);
    assert_true(kit_look(world, 1).round > before + 2);
    kit_close(world);
}

static void a_sole_voter_stays_while_nobody_may_follow(void **state)
{
    kit_world *world = kit_sole_voter();

    (void)state;
    kit_command(world, 0, DP_COMMAND_LEAVE);
    const uint64_t before = kit_look(world, 1).round;
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_SYNC);
    assert_true(votes(world, 0, 0));
    assert_true(kit_look(world, 1).round > before + 2);
    kit_close(world);
}

/* A newcomer waits for the voter's place. A record that admits it without the place is invalid, and
 * no round would be decided. */
static void a_sole_voter_of_a_full_run_that_cannot_leave_admits_nobody(void **state)
{
    kit_world *world = kit_open(3);

    (void)state;
    world->manifest.members_max = 2;
    world->manifest.voters_max = 1;
    for (uint32_t i = 0; i < 3; i++) {
        kit_kill(world, i);
        kit_boot(world, i);
    }
    kit_link(world, 0, 1);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).members, 2);
    for (uint32_t i = 0; i < 2; i++) {
        world->nodes[i].node->ledger.roster[1].caps = DP_CAP_TRAIN;
    }
    kit_link(world, 0, 2);
    kit_link(world, 1, 2);
    kit_run_ms(world, 1000);
    world->nodes[2].node->ledger.roster[1].caps = DP_CAP_TRAIN;
    kit_command(world, 0, DP_COMMAND_LEAVE);
    const uint64_t before = kit_look(world, 1).round;
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_SYNC);
    assert_int_equal(kit_look(world, 1).members, 2);
    assert_true(kit_look(world, 1).round > before + 2);
    kit_close(world);
}

static void a_revoked_member_is_out_at_once_and_then_by_the_chain(void **state)
{
    kit_world *world = kit_together(4);
    dp_why why = {""};
    const dp_peer gone = kit_peer(3);

    (void)state;
    assert_int_equal(revoke(world, 0, 3, &why), DP_OK);
    assert_int_equal(kit_look(world, 3).mode, DP_MODE_LEFT);
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(world->nodes[i].linked[3]);
        assert_false(dp_round_may_contribute(world->nodes[i].node, &gone));
        kit_link(world, i, 3); /* No node keeps the link. */
        kit_drain(world);
        assert_false(world->nodes[i].linked[3]);
    }
    assert_int_equal(kit_look(world, 0).members,
                     4); /* Not in the chain yet, so valid() does not ask. */
    kit_run_ms(world, 4000);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(kit_look(world, i).members, 3);
        assert_int_equal(kit_look(world, i).listed_last, 3);
        assert_false(votes(world, i, 3));
    }
    assert_int_equal(world->nodes[0].node->requests->n_removes, 0);
    kit_close(world);
}

/* Does this voter hold a contribution of who, so that it would list it? */
static bool would_list(const kit_world *world, uint32_t at, uint32_t who)
{
    const dp_node *node = world->nodes[at].node;
    const dp_peer peer = kit_peer(who);
    uint32_t chosen[DP_CLAIMS_MAX];
    const uint32_t n = dp_round_held(node, chosen);

    for (uint32_t i = 0; i < n; i++) {
        if (dp_peer_equal(&node->round->claims[chosen[i]].ready.peer, &peer)) {
            return true;
        }
    }
    return false;
}

/* A record without a round may remove a member whose contribution is held here. */
static void the_claim_of_who_was_removed_between_rounds_is_not_listed(void **state)
{
    kit_world *world = kit_together(4);
    dp_node *node = world->nodes[0].node;
    const dp_peer gone = kit_peer(3);
    dp_claim claim = {.ready = {.peer = gone, .bytes = 8},
                      .have = UINT32_MAX,
                      .held = true,
                      .size = 8,
                      .checked = true,
                      .found = DP_FOUND_GOOD};
    dp_seal seals[DP_VOTERS_MAX];
    uint32_t n_seals = 0;

    (void)state;
    assert_true(dp_round_state_cert(node, &claim.ready.state_root, seals, &n_seals));
    node->round->n_claims = 1;
    node->round->claims[0] = claim;
    dp_round_index_claims(node);
    assert_true(would_list(world, 0, 3));
    node->ledger.roster[dp_ledger_find(&node->ledger, &gone)].gone = DP_REMOVE_REVOKED;
    assert_false(would_list(world, 0, 3));
    kit_close(world);
}

static void fences_stand_in_a_record_in_order_of_key(void **state)
{
    kit_world *world = kit_together(4);
    dp_node *node = world->nodes[0].node;
    static dp_record draft;

    (void)state;
    for (uint32_t i = 3; i > 1; i--) {
        kit_kill(world, i);
    }
    kit_run_ms(world, 8000);
    for (uint32_t i = 3; i > 1; i--) {
        const dp_peer asker = kit_peer(i - 2);
        dp_request_fence(node, &(dp_fence){.peer = kit_peer(i), .incarnation = i}, &asker);
    }
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
    memset(&draft, 0, sizeof draft);
    dp_config_draft(node, &draft, admitted);
    assert_int_equal(draft.config.n_fences, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const dp_peer peer = kit_peer(2 + i);
        assert_true(dp_peer_equal(&draft.config.fences[i].peer, &peer));
        assert_int_equal(draft.config.fences[i].incarnation, 2 + i);
    }
    kit_close(world);
}

static void only_members_with_the_right_revoke(void **state)
{
    kit_world *world = kit_together(3);
    dp_why why = {""};

    (void)state;
    assert_int_equal(revoke(world, 0, 0, &why), DP_BADARG);
    assert_int_equal(revoke(world, 0, 5, &why), DP_NOTFOUND);
    const uint64_t rejected = kit_look(world, 0).rejected;
    dp_remove forged = {.peer = kit_peer(1), .reason = DP_REMOVE_REVOKED, .by = kit_peer(2)};
    const dp_run_id run = kit_run();
    const dp_crypto crypto = kit_crypto(2);
    uint8_t room[256];
    dp_writer writer = dp_writer_of(room, sizeof room);
    assert_true(dp_remove_sign(&forged, &crypto, DP_KEY_IDENTITY, &run));
    dp_remove_msg_write(&writer, &forged);
    kit_send(world, 2, 0, dp_view_of(room, writer.size));
    kit_drain(world);
    assert_int_equal(kit_look(world, 0).rejected, rejected + 1); /* 1 may administer too. */
    assert_true(world->nodes[0].linked[1]);
    kit_close(world);
}

static void a_voter_that_is_dead_for_long_stays_where_nobody_can_take_its_place(void **state)
{
    static dp_record draft;
    static dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
    kit_world *world = kit_together(5);
    dp_node *node = world->nodes[0].node;

    (void)state;
    assert_int_equal(node->ledger.n_voters, 5);
    node->now.us += 2 * DP_VOTER_DEAD_US;
    const uint32_t last = node->commit->self == 4 ? 3 : 4;
    for (uint32_t dead = 0; dead < 3; dead++) {
        node->round->n_offers = 0;
        for (uint32_t i = 0; i < 5; i++) {
            node->round->voter_seen[i] = node->now;
        }
        for (uint32_t k = 0; k < dead; k++) {
            node->round->voter_seen[last - k] = (dp_time){node->now.us - DP_VOTER_DEAD_US};
        }
        memset(&draft, 0, sizeof draft);
        dp_config_draft(node, &draft, admitted);
        /* Of two that are dead both go, and the count falls by two. */
        assert_int_equal(draft.config.n_voters, dead == 2 ? 3 : 0);
        assert_int_equal(draft.has_config, dead == 2);
        for (uint32_t i = 0; i < draft.config.n_voters; i++) {
            assert_true(draft.config.voters[i].kept);
        }
    }
    kit_close(world);
}

static void removals_stand_in_order_of_peer_whatever_the_order_in_which_they_came(void **state)
{
    static const uint32_t order[] = {3, 1, 4, 2};
    dp_config_part config = {.n_removes = 0};

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        const dp_remove remove = {.peer = kit_peer(order[i]), .incarnation = order[i]};
        assert_false(dp_config_removes(&config, &remove.peer));
        dp_config_add_removal(&config, &remove);
        assert_int_equal(config.n_removes, i + 1);
        assert_true(dp_config_removes(&config, &remove.peer));
    }
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(config.removes[i].incarnation, i + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_voter_is_replaced_when_no_round_is_near),
        cmocka_unit_test(two_dead_voters_of_five_are_let_go_when_nobody_can_follow),
        cmocka_unit_test(voters_become_no_more_while_one_of_them_is_dead),
        cmocka_unit_test(a_candidate_votes_once_the_voters_have_seen_it_for_the_uptime),
        cmocka_unit_test(a_voter_that_starts_anew_goes_by_the_chain),
        cmocka_unit_test(a_sole_voter_that_leaves_hands_over_first),
        cmocka_unit_test(a_sole_voter_stays_while_nobody_may_follow),
        cmocka_unit_test(a_sole_voter_of_a_full_run_that_cannot_leave_admits_nobody),
        cmocka_unit_test(a_revoked_member_is_out_at_once_and_then_by_the_chain),
        cmocka_unit_test(the_claim_of_who_was_removed_between_rounds_is_not_listed),
        cmocka_unit_test(fences_stand_in_a_record_in_order_of_key),
        cmocka_unit_test(only_members_with_the_right_revoke),
        cmocka_unit_test(a_voter_that_is_dead_for_long_stays_where_nobody_can_take_its_place),
        cmocka_unit_test(removals_stand_in_order_of_peer_whatever_the_order_in_which_they_came),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
