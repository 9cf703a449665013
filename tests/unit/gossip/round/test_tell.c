/* Offers to vote: to which voters, and over which links. */
#include "gossip/member/members_internal.h"
#include "gossip/round/round.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { VOTERS = 5, NODES = 6 }; /* one member does not vote: their number is odd */

typedef struct offers {
    uint32_t on_links;
    uint32_t carried; /* by a voter, to another */
} offers;

/* The offers that it sends now, in a run of so many known members. */
static offers told_among(kit_world *world, uint32_t candidate, uint32_t members)
{
    dp_node *node = world->nodes[candidate].node;
    const uint32_t count = node->members->count;
    offers found = {0};

    node->members->count = members;
    dp_out_begin(&node->out, world->actions);
    dp_round_tell(node);
    node->members->count = count;
    for (uint32_t i = 0; i < world->actions->count; i++) {
        const dp_action *action = &world->actions->items[i];
        if (action->type != DP_DO_SEND) {
            continue;
        }
        const dp_view bytes = action->u.send.bytes;
        const bool relay = dp_msg_type_of(bytes) == DP_MSG_RELAY;
        found.on_links += dp_msg_type_of(bytes) == DP_MSG_VOTER_OK ? 1 : 0;
        found.carried += relay && bytes.data[DP_RELAY_HEAD_BYTES] == DP_MSG_VOTER_OK ? 1 : 0;
    }
    return found;
}

static uint32_t candidate_of(const kit_world *world)
{
    uint32_t candidate = 0;

    while (world->nodes[candidate].node->commit->self != DP_NOBODY) {
        candidate++;
    }
    assert_in_range(candidate, 0, NODES - 1);
    return candidate;
}

static void an_offer_is_carried_to_voters_without_a_link_in_a_small_run_alone(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    kit_run_ms(world, 3000);
    const uint32_t candidate = candidate_of(world);
    const dp_node *node = world->nodes[candidate].node;
    assert_int_equal(node->ledger.n_voters, VOTERS);
    assert_int_equal(told_among(world, candidate, NODES).on_links, VOTERS);
    kit_cut(world, candidate, kit_index(&node->ledger.voters[2].peer));
    kit_run_ms(world, 2000); /* Its beats on that link are old by then. */
    const offers small = told_among(world, candidate, NODES);
    assert_int_equal(small.on_links, VOTERS - 1);
    assert_true(small.carried > 0);
    const offers large = told_among(world, candidate, DP_FULL_MESH_MAX + 1);
    assert_int_equal(large.on_links, VOTERS - 1);
    assert_int_equal(large.carried, 0);
    kit_close(world);
}

/* Its crash would take the state with it, which others may not be able to prove by then. */
static void a_node_whose_disk_leads_to_no_state_does_not_offer_to_vote(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    kit_run_ms(world, 3000);
    const uint32_t candidate = candidate_of(world);
    dp_saved_all *saved = world->nodes[candidate].node->saved;
    assert_int_equal(told_among(world, candidate, NODES).on_links, VOTERS);
    const dp_saved_all before = *saved;
    *saved = (dp_saved_all){0}; /* It still holds all updates, from the first round on. */
    assert_int_equal(told_among(world, candidate, NODES).on_links, VOTERS);
    world->nodes[candidate].node->chain->history[1].items[0].root.bytes[0] ^= 1;
    assert_int_equal(told_among(world, candidate, NODES).on_links, 0);
    *saved = before;
    assert_int_equal(told_among(world, candidate, NODES).on_links, VOTERS);
    kit_close(world);
}

/* The holder of the root key may need to know who could vote. */
static void a_halted_node_and_one_that_hears_no_majority_offer_to_all(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    kit_run_ms(world, 3000);
    const uint32_t candidate = candidate_of(world);
    dp_node *node = world->nodes[candidate].node;
    assert_int_equal(told_among(world, candidate, NODES).on_links, VOTERS);
    node->halted = true;
    assert_int_equal(told_among(world, candidate, NODES).on_links, 1); /* One message, to all. */
    node->halted = false;
    node->beat.quorum = false;
    assert_int_equal(told_among(world, candidate, NODES).on_links, 1);
    node->beat.quorum = true;
    kit_close(world);
}

static void a_member_offers_to_vote_once_it_has_been_up_for_long_enough(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    kit_run_ms(world, 3000);
    const uint32_t candidate = candidate_of(world);
    dp_node *node = world->nodes[candidate].node;
    node->manifest.voter_uptime_s = 2;
    node->started_at = (dp_time){node->now.us - 2 * DP_SECOND + 1};
    assert_int_equal(told_among(world, candidate, NODES).on_links, 0);
    node->started_at.us--;
    assert_int_equal(told_among(world, candidate, NODES).on_links, VOTERS);
    kit_close(world);
}

/* In a large run links come all the time: what is asked for out of turn waits a little. */
static void news_is_told_at_once_in_a_small_run_and_after_a_wait_in_a_large_one(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    dp_round *round = node->round;
    const uint32_t count = node->members->count;

    (void)state;
    dp_out_begin(&node->out, world->actions);
    node->now.us += DP_SECOND;
    const dp_time now = node->now;
    for (uint32_t what = 0; what < 5; what++) {
        const bool large = what == 1 || what == 2;
        node->now = now;
        node->members->count = large ? DP_FULL_MESH_MAX + 1 : what == 4 ? DP_FULL_MESH_MAX : count;
        round->told_at = (dp_time){now.us - DP_REPEAT_US / 2 + (what == 2 ? 0 : 1)};
        round->repeat_planned = (dp_time){now.us + (what == 3 ? 0 : 1)};
        round->tell_us = DP_REPEAT_US;
        node->repeat_at = now;
        const bool told = dp_round_repeat(node);
        assert_int_equal(told, what != 1 && what != 3);
        if (what == 1) { /* It is due half an interval after the last time, and urgent then. */
            assert_int_equal(node->repeat_at.us, round->told_at.us + DP_REPEAT_US / 2);
            assert_int_equal(round->repeat_planned.us, UINT64_MAX);
            assert_false(dp_round_repeat(node));
            node->now = node->repeat_at;
            assert_true(dp_round_repeat(node));
        } else {
            assert_int_equal(node->repeat_at.us, now.us + DP_REPEAT_US);
        }
        assert_int_equal(round->repeat_planned.us, node->repeat_at.us);
        /* As planned it is told after waits that double. */
        assert_int_equal(round->told_at.us,
                         what == 3 ? now.us - DP_REPEAT_US / 2 + 1 : node->now.us);
        assert_int_equal(round->tell_us, DP_REPEAT_US);
        node->members->count = count;
    }
    static const uint64_t waits[] = {1, 2, 4, 8, 8};
    round->tell_us = DP_REPEAT_US;
    round->told_at = node->now = now;
    for (uint32_t i = 0; i < 5; i++) {
        const uint64_t wait = waits[i] * DP_REPEAT_US;
        for (uint32_t early = 2; early-- > 0;) {
            node->now.us = round->told_at.us + wait - early;
            node->repeat_at = round->repeat_planned = node->now;
            assert_int_equal(dp_round_repeat(node), early == 0);
        }
        assert_int_equal(round->tell_us, 2 * wait);
    }
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offer_is_carried_to_voters_without_a_link_in_a_small_run_alone),
        cmocka_unit_test(a_node_whose_disk_leads_to_no_state_does_not_offer_to_vote),
        cmocka_unit_test(a_halted_node_and_one_that_hears_no_majority_offer_to_all),
        cmocka_unit_test(a_member_offers_to_vote_once_it_has_been_up_for_long_enough),
        cmocka_unit_test(news_is_told_at_once_in_a_small_run_and_after_a_wait_in_a_large_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
