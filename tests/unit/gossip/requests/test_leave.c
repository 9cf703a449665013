/* Leaving for good: the nodes for which a leaving node still waits. */
#include "gossip/context/context.h"
#include "gossip/requests/leave.h"
#include "gossip/requests/request_msg.h"
#include "tests/unit/gossip/kit/node_kit.h"

static dp_leaving leaving(const kit_world *world, uint32_t index)
{
    return kit_look(world, index).leaving;
}

/* Until the chain has taken this node out, no longer. */
static void run_until_taken_out(kit_world *world, uint32_t index)
{
    kit_command(world, index, DP_COMMAND_LEAVE);
    assert_int_equal(leaving(world, index), DP_LEAVING_WAITS);
    for (uint32_t turns = 0; kit_look(world, index).mode != DP_MODE_LEFT; turns++) {
        assert_true(turns < 400);
        kit_run_ms(world, KIT_STEP_MS);
    }
}

static dp_member_state seen_as(const kit_world *world, uint32_t by, uint32_t whom)
{
    const dp_members *members = world->nodes[by].node->members;
    const dp_peer peer = kit_peer(whom);

    return dp_members_at(members, dp_members_find(members, &peer))->state;
}

static void a_member_that_stays_is_not_waited_for(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    assert_int_equal(leaving(world, 1), DP_LEAVING_NOT);
    kit_close(world);
}

static void a_voter_goes_when_those_who_vote_after_it_show_that_they_have_its_removal(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    run_until_taken_out(world, 2);
    assert_int_equal(leaving(world, 2), DP_LEAVING_WAITS);
    assert_true(world->nodes[0].linked[2]); /* No node closes its links meanwhile. */
    kit_run_ms(world, 500);
    assert_int_equal(leaving(world, 2), DP_LEAVING_FREE);
    assert_int_equal(seen_as(world, 0, 2), DP_MEMBER_LEFT);
    kit_close(world);
}

static void a_voter_that_nobody_answers_any_more_goes_after_a_minute(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    run_until_taken_out(world, 2);
    kit_kill(world, 0);
    kit_kill(world, 1);
    kit_run_ms(world, DP_LINGER_US / 1000 - 100);
    assert_int_equal(leaving(world, 2), DP_LEAVING_WAITS);
    kit_run_ms(world, 200);
    assert_int_equal(leaving(world, 2), DP_LEAVING_FREE);
    kit_close(world);
}

/* Two of three have decided a record that removes one of them and leaves one voter, which has not
 * received it. */
static void a_node_that_lacks_the_removal_gets_it_from_the_removed_one(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    run_until_taken_out(world, 2);
    const dp_ledger *const ledger = &world->nodes[2].node->ledger;
    const dp_peer first = kit_peer(0);
    const uint32_t stays = dp_ledger_voter(ledger, &first) != DP_NOBODY ? 0 : 1;
    kit_kill(world, 0);
    kit_kill(world, 1);
    kit_node *const other = &world->nodes[stays]; /* Votes alone from now on. */
    const uint64_t slot = kit_look(world, 2).slot;
    for (; other->slots >= slot; other->slots--) { /* As if it had not been written. */
        free(other->records[other->slots].record);
    }
    kit_boot(world, stays);
    assert_int_equal(kit_look(world, stays).voters, 3);
    kit_link(world, stays, 2);
    kit_run_ms(world, 2500);
    assert_int_equal(leaving(world, 2), DP_LEAVING_FREE);
    kit_kill(world, 2);
    assert_true(kit_look(world, stays).slot >= slot);
    const uint64_t before = kit_look(world, stays).round;
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, stays).voters, 1);
    assert_true(kit_look(world, stays).round > before);
    kit_close(world);
}

static void a_node_that_never_voted_leaves_at_once(void **state)
{
    kit_world *world = kit_together(4);
    uint32_t index = 0;

    (void)state;
    while (dp_node_is_voter(world->nodes[index].node)) {
        index++;
    }
    run_until_taken_out(world, index);
    assert_int_equal(leaving(world, index), DP_LEAVING_FREE);
    kit_close(world);
}

static void a_sole_voter_is_needed_while_nobody_may_follow(void **state)
{
    kit_world *world = kit_sole_voter();

    (void)state;
    kit_command(world, 0, DP_COMMAND_LEAVE);
    kit_run_ms(world, DP_LEAVE_US / 1000 + 1000);
    assert_int_equal(leaving(world, 0), DP_LEAVING_WAITS);
    kit_run_ms(world, 3 * world->manifest.round_ms);
    assert_int_equal(leaving(world, 0), DP_LEAVING_NEEDED);
    kit_command(world, 0, DP_COMMAND_LEAVE);
    assert_int_equal(leaving(world, 0), DP_LEAVING_WAITS);
    kit_close(world);
}

static void a_voter_that_hears_no_majority_does_not_wait_for_a_record(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    kit_kill(world, 0);
    kit_kill(world, 1);
    kit_run_ms(world, 3000);
    kit_command(world, 2, DP_COMMAND_LEAVE);
    kit_run_ms(world, DP_LEAVE_US / 1000 - 100);
    assert_int_equal(leaving(world, 2), DP_LEAVING_WAITS);
    kit_run_ms(world, 200);
    assert_int_equal(leaving(world, 2), DP_LEAVING_FREE);
    kit_close(world);
}

static void the_last_member_goes_by_its_own_record(void **state)
{
    kit_world *world = kit_open(1);

    (void)state;
    kit_run_ms(world, 2000);
    run_until_taken_out(world, 0);
    assert_int_equal(leaving(world, 0), DP_LEAVING_FREE);
    kit_close(world);
}

static void a_removed_node_may_link_for_a_minute_and_then_no_more(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    run_until_taken_out(world, 2);
    kit_run_ms(world, 1000);
    assert_true(world->nodes[0].linked[2]);
    kit_kill(world, 2); /* It starts again, as one that crashed. */
    kit_boot(world, 2);
    kit_link(world, 0, 2);
    kit_run_ms(world, 1000);
    assert_true(world->nodes[0].linked[2]);
    assert_int_equal(seen_as(world, 0, 2), DP_MEMBER_LEFT);
    assert_int_equal(leaving(world, 2), DP_LEAVING_FREE);
    kit_run_ms(world, DP_LINGER_US / 1000);
    assert_false(world->nodes[0].linked[2]);
    kit_link(world, 0, 2);
    kit_drain(world);
    assert_false(world->nodes[0].linked[2]);
    kit_close(world);
}

static void a_word_about_an_earlier_life_comes_back_whole(void **state)
{
    dp_fence_ask ask = {.fence = {.peer = kit_peer(3), .incarnation = 0x0102030405060708},
                        .asker = kit_peer(4)};
    dp_fence_ask read = {0};
    uint8_t bytes[512];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    (void)state;
    memset(ask.exchange, 5, sizeof ask.exchange);
    memset(ask.signature, 6, sizeof ask.signature);
    dp_fence_msg_write(&writer, &ask);
    assert_int_equal(dp_fence_msg_read(dp_view_of(bytes, writer.size), &read), DP_OK);
    assert_memory_equal(&read, &ask, sizeof read);
    for (size_t size = 0; size < writer.size; size++) {
        assert_int_not_equal(dp_fence_msg_read(dp_view_of(bytes, size), &read), DP_OK);
    }
}

static void a_node_that_was_never_a_member_has_left_at_once(void **state)
{
    kit_world *world = kit_open(2); /* Not linked: node 1 stays a stranger. */

    (void)state;
    kit_run_ms(world, 500);
    kit_command(world, 1, DP_COMMAND_LEAVE);
    assert_int_equal(kit_look(world, 1).mode, DP_MODE_LEFT);
    assert_int_equal(leaving(world, 1), DP_LEAVING_FREE);
    kit_close(world);
}

/* Of three voters that stay, two must show the record that takes this node out; after a minute, or
 * if it never voted, it goes anyway. */
static void a_former_voter_goes_at_these_bounds_and_no_sooner(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    dp_roster_entry *own = &node->ledger.roster[dp_ledger_find(&node->ledger, &node->self)];
    const dp_mode mode = node->mode;

    (void)state;
    own->gone_slot = node->ledger.slot;
    node->mode = DP_MODE_LEFT;
    node->now.us = 2 * DP_LINGER_US;
    for (uint32_t what = 0; what < 8; what++) {
        uint32_t showing = 0;
        for (uint32_t i = 0; i < node->ledger.n_voters; i++) { /* It counts itself among them. */
            const bool shows = i != node->beat.own && showing < (what == 1 ? 1U : 0U);
            node->beat.voters[i].slot = own->gone_slot - (shows ? 0 : 1);
            showing += shows ? 1 : 0;
        }
        own->gone = what == 5 ? DP_REMOVE_REVOKED : DP_REMOVE_LEFT;
        node->leave->voted = what != 4;
        node->leave->left_at = (dp_time){node->now.us - DP_LINGER_US + (what == 2 ? 0 : 1)};
        const uint64_t slot = node->ledger.slot;
        node->ledger.slot -= what == 6 ? 1 : 0;
        const bool free = what == 1 || what == 2 || what == 4 || what == 5;
        assert_int_equal(dp_leave_state(node), free ? DP_LEAVING_FREE : DP_LEAVING_WAITS);
        node->ledger.slot = slot;
    }
    own->gone = 0;
    node->leave->left_at = (dp_time){0};
    node->mode = mode;
    kit_close(world);
}

/* A second, and three rounds more for a voter that hears a majority or is the only one. */
static void a_member_waits_for_its_record_as_long_as_one_may_come(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    const uint64_t rounds_us = 3ULL * node->manifest.round_ms * DP_MS;
    const uint32_t self = node->commit->self;
    const uint32_t n_voters = node->ledger.n_voters;
    const uint32_t n_members = node->ledger.n_members;

    (void)state;
    node->now.us += DP_LEAVE_US + rounds_us;
    assert_int_equal(dp_leave_state(node), DP_LEAVING_NOT);
    node->leaving = true;
    for (uint32_t what = 0; what < 7; what++) {
        node->beat.quorum = what != 1 && what != 2;
        node->ledger.n_voters = what == 2 || what == 6 ? 1 : n_voters;
        node->commit->self = what == 3 ? DP_NOBODY : self;
        node->commit->key_lost = what == 4;
        node->ledger.n_members = what == 5 || what == 6 ? 1 : n_members;
        const bool longer = what == 0 || what == 2;
        const uint64_t limit_us = DP_LEAVE_US + (longer ? rounds_us : 0);
        node->leave->asked_at = (dp_time){node->now.us - limit_us + 1};
        assert_int_equal(dp_leave_state(node), DP_LEAVING_WAITS);
        node->leave->asked_at.us--;
        assert_int_equal(dp_leave_state(node), what == 2 ? DP_LEAVING_NEEDED : DP_LEAVING_FREE);
    }
    node->ledger.n_voters = n_voters;
    node->ledger.n_members = n_members;
    node->commit->key_lost = node->leaving = false;
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_that_stays_is_not_waited_for),
        cmocka_unit_test(a_voter_goes_when_those_who_vote_after_it_show_that_they_have_its_removal),
        cmocka_unit_test(a_voter_that_nobody_answers_any_more_goes_after_a_minute),
        cmocka_unit_test(a_node_that_lacks_the_removal_gets_it_from_the_removed_one),
        cmocka_unit_test(a_node_that_never_voted_leaves_at_once),
        cmocka_unit_test(a_sole_voter_is_needed_while_nobody_may_follow),
        cmocka_unit_test(a_voter_that_hears_no_majority_does_not_wait_for_a_record),
        cmocka_unit_test(the_last_member_goes_by_its_own_record),
        cmocka_unit_test(a_removed_node_may_link_for_a_minute_and_then_no_more),
        cmocka_unit_test(a_word_about_an_earlier_life_comes_back_whole),
        cmocka_unit_test(a_node_that_was_never_a_member_has_left_at_once),
        cmocka_unit_test(a_former_voter_goes_at_these_bounds_and_no_sooner),
        cmocka_unit_test(a_member_waits_for_its_record_as_long_as_one_may_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
