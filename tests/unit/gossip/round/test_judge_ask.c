/* Which updates a voter has its trainer judge, with what in the question, and what it does with the
 * answer: claims are set here one by one. */
#include "gossip/context/context.h"
#include "gossip/ledger/harm.h"
#include "gossip/round/judge.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/round.h"
#include "tests/unit/gossip/kit/claim_kit.h"

enum { OTHER = 3 /* the member that does not vote */ };

/* Node 0 of three voters and another member, in a round of which it knows no update yet. */
static kit_world *begin(void)
{
    kit_world *world = kit_together(4);

    while (world->nodes[0].node->standing.applied != kit_look(world, 0).round ||
           world->nodes[0].node->standing.applying) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    dp_node *node = world->nodes[0].node;
    const dp_peer other = kit_peer(OTHER);
    assert_int_equal(dp_ledger_voter(&node->ledger, &other), DP_NOBODY);
    assert_int_equal(node->standing.state, DP_TRAINER_SET);
    node->round->n_claims = 0;
    dp_judging_trainer_down(node);
    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    return world;
}

static uint32_t asked(const kit_world *world)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < world->actions->count; i++) {
        count += world->actions->items[i].type == DP_DO_JUDGE ? 1 : 0;
    }
    return count;
}

static void only_a_held_checked_and_good_update_is_judged_once(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_claim *update = kit_claim(node, OTHER, 1);
    const dp_claim good = *update;

    (void)state;
    for (uint32_t what = 0; what < 7; what++) {
        *update = good;
        if (what == 0) {
            update->held = false;
        } else if (what == 1) {
            update->checked = false;
        } else if (what == 2) {
            update->bad = true;
        } else if (what == 3) {
            update->evidence = true;
        } else if (what == 4) {
            update->judging = true;
        } else if (what == 5) {
            update->found = DP_FOUND_GOOD;
        }
        dp_judging_look(node);
        assert_int_equal(asked(world), what == 6 ? 1 : 0);
    }
    assert_true(update->judging);
    dp_judging_look(node);
    assert_int_equal(asked(world), 1);
    kit_close(world);
}

static void a_voter_judges_with_the_state_that_the_updates_begin_from(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const uint32_t self = node->commit->self;

    (void)state;
    (void)kit_claim(node, OTHER, 1);
    node->commit->self = DP_NOBODY;
    dp_judging_look(node);
    node->commit->self = self;
    node->standing.state = DP_TRAINER_MOVING;
    dp_judging_look(node);
    node->standing.state = DP_TRAINER_SET;
    node->standing.applying = true;
    dp_judging_look(node);
    node->standing.applying = false;
    node->standing.applied--;
    dp_judging_look(node);
    node->standing.applied++;
    assert_int_equal(asked(world), 0);
    dp_judging_look(node);
    assert_int_equal(asked(world), 1);
    kit_close(world);
}

static void no_more_than_eight_updates_are_at_the_trainer_to_be_judged(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;

    (void)state;
    assert_true(node->round->claims_max > DP_JUDGES_MAX);
    for (uint32_t i = 0; i <= DP_JUDGES_MAX; i++) {
        (void)kit_claim(node, OTHER, (uint8_t)(1 + i));
    }
    dp_judging_look(node);
    assert_int_equal(asked(world), DP_JUDGES_MAX);
    assert_false(node->round->claims[DP_JUDGES_MAX].judging);
    dp_judging_trainer_down(node); /* Its answers will not come. */
    for (uint32_t i = 0; i <= DP_JUDGES_MAX; i++) {
        assert_false(node->round->claims[i].judging);
    }
    dp_judging_look(node);
    assert_int_equal(asked(world), 2 * DP_JUDGES_MAX);
    kit_close(world);
}

static void a_question_names_the_samples_between_the_count_of_the_chain_and_the_claim(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    const dp_peer other = kit_peer(OTHER);
    dp_lease *lease = &node->ledger.roster[dp_ledger_find(&node->ledger, &other)].lease;

    (void)state;
    *lease = (dp_lease){.reach = {.leased = 10, .own = 20},
                        .granted = 10 + 5 + 7 + 9,
                        .n = 3,
                        .ranges = {{100, 5}, {200, 7}, {300, 9}}};
    dp_claim *update = kit_claim(node, OTHER, 1);
    update->ready.reach = (dp_reach){.leased = 10 + 5 + 3, .own = 24};
    dp_judging_look(node);
    const dp_action *judge = kit_find(world->actions, DP_DO_JUDGE);
    assert_non_null(judge);
    assert_true(dp_hash_equal(&judge->u.judge.root, &update->ready.root));
    assert_true(dp_peer_equal(&judge->u.judge.peer, &other));
    assert_int_equal(judge->u.judge.own, 20);
    assert_int_equal(judge->u.judge.own_count, 4);
    assert_int_equal(judge->u.judge.n_ranges, 2);
    assert_int_equal(judge->u.judge.ranges[0].first, 100);
    assert_int_equal(judge->u.judge.ranges[0].count, 5);
    assert_int_equal(judge->u.judge.ranges[1].first, 200);
    assert_int_equal(judge->u.judge.ranges[1].count, 3);
    assert_int_equal(judge->u.judge.tokens, 0); /* It is not suspected. */
    assert_int_equal(judge->u.judge.keep, dp_node_keep(node, update->ready.round));
    update->judging = false;
    dp_judging_trainer_down(node);
    update->ready.reach = lease->reach; /* It went over none. */
    dp_out_begin(&node->out, world->actions);
    dp_judging_look(node);
    judge = kit_find(world->actions, DP_DO_JUDGE);
    assert_non_null(judge);
    assert_int_equal(judge->u.judge.own_count, 0);
    assert_int_equal(judge->u.judge.n_ranges, 0);
    *lease = (dp_lease){.n = 0};
    kit_close(world);
}

static void one_blob_under_two_names_counts_for_the_one_told_first(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 7; what++) {
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        dp_claim *other = kit_claim(node, what == 5 ? 1 : 7, 1);
        dp_claim *update = kit_claim(node, OTHER, 1);
        other->found = DP_FOUND_GOOD;
        if (what == 0) {
            other->told_at.us--;
        } else if (what == 1) {
            other->told_at.us++;
        } else if (what == 3) {
            other->told_at.us--;
            other->evidence = true;
        } else if (what == 4) {
            other->told_at.us--;
            update->energy = 0; /* Of nothing all may have the same. */
        } else if (what == 5) {
            other->told_at.us++; /* But it votes. */
        } else if (what == 6) {
            other->told_at.us--;
            other->ready.root.bytes[0] ^= 1;
        }
        const uint64_t rejected = node->rejected;
        dp_judging_look(node);
        const bool is_copy =
            what == 0 || what == 2 || what == 5; /* 2: told at once, and listed first. */
        assert_int_equal(update->found, is_copy ? DP_FOUND_COPY : DP_FOUND_NONE);
        assert_int_equal(asked(world), is_copy ? 0 : 1);
        assert_int_equal(node->rejected, rejected + (is_copy ? 1 : 0));
        assert_int_equal(kit_find(world->actions, DP_DO_NOTE) != NULL, is_copy);
        assert_int_equal(dp_judging_rejects(node, &update->ready.peer), is_copy);
        kit_close(world);
    }
}

static void an_answer_about_an_update_that_is_gone_makes_room_for_another_question(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_event judged = {.type = DP_EV_JUDGED, .u.judged = {.root = {{77}}}};

    (void)state;
    for (uint32_t i = 0; i <= DP_JUDGES_MAX; i++) {
        (void)kit_claim(node, OTHER, (uint8_t)(1 + i));
    }
    dp_judging_look(node);
    assert_int_equal(asked(world), DP_JUDGES_MAX);
    dp_judging_judged(node, &judged);
    assert_int_equal(asked(world), DP_JUDGES_MAX + 1);
    for (uint32_t i = 0; i <= DP_JUDGES_MAX; i++) {
        assert_int_equal(node->round->claims[i].found, DP_FOUND_NONE);
        assert_true(node->round->claims[i].judging);
    }
    kit_close(world);
}

static void an_answer_about_an_update_that_was_lost_meanwhile_is_not_taken(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_claim *update = kit_claim(node, OTHER, 1);
    dp_event judged = {.type = DP_EV_JUDGED, .u.judged = {.root = update->ready.root}};

    (void)state;
    dp_judging_look(node);
    update->held = false;
    dp_judging_judged(node, &judged);
    assert_false(update->judging);
    assert_int_equal(update->found, DP_FOUND_NONE);
    update->held = true;
    dp_judging_look(node);
    assert_int_equal(asked(world), 2);
    judged.u.judged.found.compared = false;
    dp_judging_judged(node, &judged);
    assert_int_equal(update->found, DP_FOUND_GOOD);
    kit_close(world);
}

static void rejected_updates_of_members_at_work_are_counted(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_claim *update = kit_claim(node, OTHER, 1);

    (void)state;
    assert_int_equal(dp_judging_rejected(node), 0);
    update->found = DP_FOUND_GOOD;
    assert_int_equal(dp_judging_rejected(node), 0);
    update->found = DP_FOUND_AGAINST;
    assert_int_equal(dp_judging_rejected(node), 1);
    update->evidence = true;
    assert_int_equal(dp_judging_rejected(node), 0);
    update->evidence = false;
    update->ready.peer = kit_peer(5); /* Nobody is known by this key. */
    dp_round_index_claims(node);
    assert_int_equal(dp_judging_rejected(node), 0);
    kit_close(world);
}

/* A full list of late members says nothing about the others. */
static void
a_member_that_a_record_neither_lists_nor_names_late_is_ignored_until_one_does(void **state)
{
    static dp_record record;
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;

    (void)state;
    record.round = node->ledger.round;
    record.n_late = DP_LATE_MAX;
    assert_false(dp_judging_ignores(node, &record, false));
    record.n_late = 1;
    assert_true(dp_judging_ignores(node, &record, false));
    record.n_late = DP_LATE_MAX;
    assert_true(dp_judging_ignores(node, &record, false)); /* It stays so. */
    assert_false(dp_judging_ignores(node, &record, true));
    record.n_late = 1;
    assert_true(dp_judging_ignores(node, &record, false));
    record.n_late = 2;
    record.late[0] = node->self;
    assert_false(dp_judging_ignores(node, &record, false));
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_held_checked_and_good_update_is_judged_once),
        cmocka_unit_test(a_voter_judges_with_the_state_that_the_updates_begin_from),
        cmocka_unit_test(no_more_than_eight_updates_are_at_the_trainer_to_be_judged),
        cmocka_unit_test(a_question_names_the_samples_between_the_count_of_the_chain_and_the_claim),
        cmocka_unit_test(one_blob_under_two_names_counts_for_the_one_told_first),
        cmocka_unit_test(an_answer_about_an_update_that_is_gone_makes_room_for_another_question),
        cmocka_unit_test(an_answer_about_an_update_that_was_lost_meanwhile_is_not_taken),
        cmocka_unit_test(rejected_updates_of_members_at_work_are_counted),
        cmocka_unit_test(
            a_member_that_a_record_neither_lists_nor_names_late_is_ignored_until_one_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
