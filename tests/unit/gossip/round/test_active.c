/* Which members count as at work, and which a round expects: one reason against each at a time. */
#include "gossip/context/context.h"
#include "gossip/round/round.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { OTHER = 1 };

static kit_world *three(void)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;

    node->round->n_claims = 0;
    dp_round_index_claims(node);
    return world;
}

static dp_member *member_of(const dp_node *node, uint32_t who)
{
    const dp_peer peer = kit_peer(who);

    return (dp_member *)(uintptr_t)dp_members_at(node->members, dp_node_member_index(node, &peer));
}

static void claim_by(dp_node *node, uint32_t who)
{
    node->round->claims[node->round->n_claims++] =
        (dp_claim){.ready = {.peer = kit_peer(who), .round = node->ledger.round + 1}};
    dp_round_index_claims(node);
}

static void a_member_works_unless_something_is_known_against_it(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;
    dp_member *member = member_of(node, OTHER);
    const uint32_t index = dp_node_member_index(node, &member->peer);
    const dp_member good = *member;

    (void)state;
    assert_true(good.has_summary && good.linked && good.in_roster);
    for (uint32_t what = 0; what < 10; what++) {
        *member = good;
        member->state = what == 1 ? DP_MEMBER_SUSPECT : DP_MEMBER_ALIVE;
        member->summary.has_trainer = what != 2;
        member->summary.mode = what == 3   ? DP_MODE_PAUSED
                               : what == 4 ? DP_MODE_LEFT
                                           : good.summary.mode;
        member->in_roster = what != 5;
        member->caps = what == 6 ? good.caps & ~(uint32_t)DP_CAP_TRAIN : good.caps;
        member->has_summary = what != 7 && what != 8;
        member->linked = what != 8;
        member->summary.round = what == 9 ? 0 : good.summary.round;
        const uint64_t round = node->ledger.round;
        const uint32_t row = dp_ledger_find(&node->ledger, &member->peer);
        const uint64_t included = node->ledger.roster[row].included;
        if (what == 9) { /* Far behind, by its own summary and by the chain. */
            node->ledger.roster[row].included = 0;
            assert_true(round > 2);
        }
        const bool works = what == 0 || what == 8 || what == 9;
        const bool active = what == 0;
        assert_int_equal(dp_round_works(node, index), works);
        assert_int_equal(dp_round_is_active(node, index), active);
        assert_int_equal(dp_round_active(node), active ? 3 : 2);
        claim_by(node, OTHER); /* Its READY takes precedence over its summary. */
        assert_int_equal(dp_round_works(node, index), what != 1);
        assert_int_equal(dp_round_is_active(node, index), what != 1);
        node->round->n_claims = 0;
        dp_round_index_claims(node);
        node->ledger.roster[row].included = included;
    }
    *member = good;
    kit_close(world);
}

static void a_member_is_near_within_two_rounds(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;
    dp_member *member = member_of(node, OTHER);
    const uint32_t index = dp_node_member_index(node, &member->peer);
    dp_roster_entry *entry = &node->ledger.roster[dp_ledger_find(&node->ledger, &member->peer)];
    const uint64_t round = node->ledger.round;

    (void)state;
    for (uint64_t behind = 0; behind < 5 && behind <= round; behind++) {
        entry->included = 0;
        member->summary.round = round - behind;
        assert_int_equal(dp_round_is_active(node, index), behind <= 2 || round <= 2);
        member->summary.round = 0;
        entry->included = round - behind;
        assert_int_equal(dp_round_is_active(node, index), behind <= 2 || round <= 2);
    }
    kit_close(world);
}

static void this_node_works_while_it_has_a_trainer_and_stays(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;

    (void)state;
    for (uint32_t what = 0; what < 5; what++) {
        node->standing.state = what == 1 ? DP_TRAINER_EMPTY : DP_TRAINER_SET;
        node->paused = what == 2;
        node->leaving = what == 3;
        node->config.observer = what == 4;
        assert_int_equal(dp_round_works(node, 0), what == 0);
        assert_int_equal(dp_round_is_active(node, 0), what == 0);
    }
    node->config.observer = false;
    kit_close(world);
}

static void anybody_at_work_is_enough(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;

    (void)state;
    assert_true(dp_round_anybody_works(node));
    node->paused = true;
    assert_true(dp_round_anybody_works(node));
    member_of(node, 1)->summary.has_trainer = false;
    assert_true(dp_round_anybody_works(node));
    member_of(node, 2)->summary.has_trainer = false;
    assert_false(dp_round_anybody_works(node));
    kit_close(world);
}

static void others_are_ready_by_good_publications_of_this_round(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;

    (void)state;
    claim_by(node, 0);
    assert_int_equal(dp_round_others_ready(node), 0);
    claim_by(node, 1);
    assert_int_equal(dp_round_others_ready(node), 1);
    dp_claim *claim = &node->round->claims[1];
    claim->evidence = true;
    assert_int_equal(dp_round_others_ready(node), 0);
    claim->evidence = false;
    claim->bad = true;
    assert_int_equal(dp_round_others_ready(node), 0);
    claim->bad = false;
    claim->ready.round = node->ledger.round;
    assert_int_equal(dp_round_others_ready(node), 0);
    node->round->n_claims = 0;
    dp_round_index_claims(node);
    kit_close(world);
}

static void the_slowest_step_is_of_a_member_that_lives(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;
    dp_member *member = member_of(node, OTHER);

    (void)state;
    node->standing.step_us = 100;
    member_of(node, 2)->summary.step_us = 50;
    member->summary.step_us = 300;
    assert_int_equal(dp_round_slowest_step(node), 300);
    member->has_summary = false;
    assert_int_equal(dp_round_slowest_step(node), 100);
    member->has_summary = true;
    member->in_roster = false;
    assert_int_equal(dp_round_slowest_step(node), 100);
    member->in_roster = true;
    member->state = DP_MEMBER_SUSPECT;
    assert_int_equal(dp_round_slowest_step(node), 100);
    member->state = DP_MEMBER_ALIVE;
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_works_unless_something_is_known_against_it),
        cmocka_unit_test(a_member_is_near_within_two_rounds),
        cmocka_unit_test(this_node_works_while_it_has_a_trainer_and_stays),
        cmocka_unit_test(anybody_at_work_is_enough),
        cmocka_unit_test(others_are_ready_by_good_publications_of_this_round),
        cmocka_unit_test(the_slowest_step_is_of_a_member_that_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
