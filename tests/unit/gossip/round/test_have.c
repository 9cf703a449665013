/* Voters announce the updates that they hold in few messages, and forward READYs only where these
 * may not arrive directly. */
#include "gossip/round/deadline.h"
#include "gossip/round/judge.h"
#include "gossip/round/round_msg.h"
#include "tests/unit/gossip/kit/claim_kit.h"

enum { NODES = 5, ROUNDS = 10 };

static void run_rounds(kit_world *world, uint64_t rounds)
{
    const uint64_t end = kit_look(world, 0).round + rounds;

    for (uint32_t i = 0; i < 4000 && kit_look(world, 0).round < end; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_int_equal(kit_look(world, 0).round, end);
}

static void updates_that_come_together_are_told_in_one_message(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    kit_run_ms(world, 3000);
    const uint32_t voters = world->nodes[0].node->ledger.n_voters;
    assert_int_equal(voters, NODES);
    memset(world->sent, 0, sizeof world->sent);
    run_rounds(world, ROUNDS);
    assert_int_equal(kit_look(world, 0).listed_last, NODES);
    /* Each voter to each other: once, and again when the next slot begins. */
    const uint32_t once = ROUNDS * voters * (voters - 1);
    assert_in_range(world->sent[DP_MSG_HAVE], once, 2 * once);
    /* Each author to all, and one repetition; no node forwards a READY that all have from its
     * author. */
    assert_in_range(world->sent[DP_MSG_READY], once, 3 * once);
    kit_run_ms(world, 10000);
    assert_int_equal(world->sent[DP_MSG_RELAY], 0); /* All are linked, and no link is mute. */
    kit_close(world);
}

static void the_ready_of_a_voter_reaches_those_that_do_not_hear_it(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    kit_run_ms(world, 3000);
    kit_cut(world, 0, 1);
    kit_run_ms(world, 2000);
    run_rounds(world, 3);
    assert_int_equal(kit_look(world, 1).listed_last, NODES);
    kit_close(world);
}

/* A slow one is announced when it arrives, and does not delay the others. */
static void an_update_that_arrives_later_is_announced_later(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    kit_run_ms(world, 3000);
    run_rounds(world, 1);
    dp_node *node = world->nodes[1].node;
    dp_round_have_soon(node);
    const dp_time at = node->round->have_at;
    assert_true(at.us > node->now.us && at.us <= node->now.us + DP_HAVE_US_MAX);
    dp_round_have_soon(node); /* Another one: it extends no wait. */
    assert_int_equal(node->round->have_at.us, at.us);
    assert_true(dp_node_wake(node).us <= at.us);
    kit_run_ms(world, DP_HAVE_US_MAX / DP_MS + KIT_STEP_MS);
    assert_int_equal(node->round->have_at.us, 0);
    kit_close(world);
}

static void a_voter_counts_itself_among_those_that_hold_what_it_tells(void **state)
{
    kit_world *world = kit_together(NODES);
    const dp_node *node = world->nodes[1].node;
    uint32_t told = 0;

    (void)state;
    kit_run_ms(world, 3000);
    for (uint32_t step = 0; step < 100; step++) {
        world->nodes[4].trains = false; /* The others wait for it. */
        kit_run_ms(world, KIT_STEP_MS);
        for (uint32_t i = 0; i < node->round->n_claims; i++) {
            const dp_claim *claim = &node->round->claims[i];
            assert_true(!claim->have_told || (claim->have >> node->commit->self & 1U) != 0);
            told += claim->have_told ? 1 : 0;
        }
    }
    assert_true(told > 0);
    kit_close(world);
}

/* HAVEs that were sent: how many names of blobs are in each. */
static uint32_t told(const kit_world *world, uint32_t *names)
{
    uint32_t n = 0;

    *names = 0;
    for (uint32_t i = 0; i < world->actions->count; i++) {
        const dp_action *action = &world->actions->items[i];
        dp_have_msg have;
        if (action->type == DP_DO_SEND && dp_msg_type_of(action->u.send.bytes) == DP_MSG_HAVE) {
            assert_int_equal(dp_have_msg_read(action->u.send.bytes, &have), DP_OK);
            assert_true(dp_have_verify(&have, &world->nodes[0].node->config.crypto,
                                       &world->nodes[0].node->run));
            *names += have.n;
            n++;
        }
    }
    return n;
}

/* After a 64th of a round, or as soon as those of all at work are here. */
static void a_voter_waits_a_little_for_more_that_it_can_tell_with_the_first(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 8; what++) {
        kit_world *world = kit_together(3);
        dp_node *node = world->nodes[0].node;
        dp_round *round = node->round;
        const uint32_t self = node->commit->self;
        uint32_t names = 0;
        round->n_claims = 0;
        for (uint32_t i = 0; i < 3; i++) {
            dp_claim *claim = kit_claim(node, i, (uint8_t)(i + 1));
            claim->found = DP_FOUND_GOOD;
            claim->held = what != 3 || i != 1;
        }
        round->claims[2].checked = what != 0 && what != 2;
        round->claims[1].have_told = what == 4;
        round->claims[1].bad = what == 5;
        round->have_at = (dp_time){0};
        node->commit->self = what == 6 ? DP_NOBODY : self;
        dp_out_begin(&node->out, world->actions);
        if (what != 7) {
            dp_round_have_soon(node);
            const uint64_t share_us = dp_deadline_length(&round->deadline) / 64;
            const uint64_t wait_us = share_us < DP_HAVE_US_MAX ? share_us : DP_HAVE_US_MAX;
            assert_int_equal(round->have_at.us, node->now.us + wait_us);
            node->now.us += wait_us - (what == 2 ? 0 : 1);
            dp_round_have_soon(node); /* It does not begin anew. */
            assert_int_equal(round->have_at.us, node->now.us + (what == 2 ? 0 : 1));
        }
        dp_round_have_tick(node);
        /* 0, 3 and 5: not all are here and good, and it is too soon. 7: nothing waits. */
        const bool tells = what == 1 || what == 2 || what == 4;
        assert_int_equal(told(world, &names), tells ? 2 : 0); /* To the two other voters. */
        assert_int_equal(names, !tells ? 0 : what == 1 ? 6 : 4);
        assert_int_equal(round->have_at.us == 0, tells || what >= 6);
        assert_int_equal(round->claims[0].have_told, tells);
        assert_int_equal(round->claims[0].have, tells ? 1U << self : 0);
        assert_int_equal(round->claims[2].have_told, tells && what != 2);
        node->commit->self = self;
        round->n_claims = 0;
        dp_round_index_claims(node);
        kit_close(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_that_come_together_are_told_in_one_message),
        cmocka_unit_test(the_ready_of_a_voter_reaches_those_that_do_not_hear_it),
        cmocka_unit_test(an_update_that_arrives_later_is_announced_later),
        cmocka_unit_test(a_voter_counts_itself_among_those_that_hold_what_it_tells),
        cmocka_unit_test(a_voter_waits_a_little_for_more_that_it_can_tell_with_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
