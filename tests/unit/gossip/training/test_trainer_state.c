/* The trainer of a node, field by field: when it loads, arrives at a state, differs from the
 * others, or is to begin anew. */
#include "gossip/catchup/chain.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "gossip/training/state_load.h"
#include "gossip/training/training.h"
#include "tests/unit/gossip/kit/node_kit.h"

static kit_world *begin(void)
{
    kit_world *world = kit_together(1);
    dp_node *node = world->nodes[0].node;

    for (uint32_t i = 0; i < 1000 && node->standing.applied != node->ledger.round; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_int_equal(node->standing.applied, node->ledger.round);
    dp_out_begin(&node->out, world->actions);
    node->changed = false;
    return world;
}

static void a_trainer_that_is_to_load_anew_has_no_state_steps_or_order(void **state)
{
    (void)state;
    for (uint32_t training = 0; training < 2; training++) {
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        dp_train *train = node->train;
        node->standing.state = DP_TRAINER_SET;
        node->standing.has_theta = node->standing.applying = true;
        train->steps = 5;
        train->tokens = 500;
        train->training = training == 1;
        dp_train_reload(node, "a cause");
        assert_int_equal(node->standing.state, DP_TRAINER_EMPTY);
        assert_false(node->standing.has_theta || node->standing.applying || train->training);
        assert_int_equal(train->steps, 0);
        assert_int_equal(train->tokens, 0);
        assert_true(node->changed);
        assert_int_equal(kit_find(world->actions, DP_DO_TRAIN_STOP) != NULL, training);
        const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
        assert_true(note != NULL && note->u.note.code == DP_NOTE_CATCHUP);
        assert_string_equal(note->u.note.cause, "a cause");
        assert_int_equal(note->u.note.a, node->standing.applied);
        assert_int_equal(note->u.note.b, node->ledger.round);
        kit_close(world);
    }
}

static void a_loaded_state_counts_if_it_was_asked_for_and_could_be_read(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 4; what++) {
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        dp_train *train = node->train;
        const uint64_t round = node->ledger.round;
        const dp_hash root = node->standing.tensor_root;
        dp_event event = {.type = DP_EV_TRAINER_AT, .u.at = {.round = round, .root = root}};
        node->standing.state = what == 1 ? DP_TRAINER_EMPTY : DP_TRAINER_MOVING;
        node->standing.has_theta = false;
        node->standing.applied = 0;
        train->moving_round = what == 2 ? round - 1 : round;
        train->moving_root = root;
        train->fresh = false;
        train->training = true;
        train->train_round = 9;
        event.u.at.status = what == 3 ? DP_CORRUPT : DP_OK;
        memset(node->saved, 0, sizeof *node->saved);
        node->saved->at[0] = (dp_saved){.has = true, .round = round, .root = root};
        dp_train_at(node, &event);
        assert_int_equal(node->standing.state, what == 0   ? DP_TRAINER_SET
                                               : what == 2 ? DP_TRAINER_MOVING
                                                           : DP_TRAINER_EMPTY);
        assert_int_equal(node->standing.has_theta, what == 0);
        assert_int_equal(node->standing.applied, what == 0 ? round : 0);
        assert_int_equal(train->fresh, what == 0);
        assert_int_equal(train->training, what == 1 || what == 2);
        assert_int_equal(train->train_round, what == 0 ? 0 : 9);
        assert_int_equal(node->changed, what == 0 || what == 3);
        assert_int_equal(node->saved->at[0].has && !node->saved->at[0].bad, what != 3);
        memset(node->saved, 0, sizeof *node->saved);
        kit_close(world);
    }
}

static void
a_state_is_named_by_round_bytes_and_ledger_and_compared_with_the_certified_one(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 4; what++) {
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        dp_train *train = node->train;
        const uint64_t round = node->ledger.round;
        dp_history_row *row = dp_chain_row(node, round);
        const dp_hash tensor_root = {{5, 6}};
        const dp_hash wanted = dp_state_root(round, &tensor_root, &row->digest);
        row->certified = what == 1 || what == 2;
        row->root = wanted;
        row->root.bytes[0] ^= what == 2 ? 1 : 0;
        train->save_at = node->now;
        train->saves = 3;
        train->strikes = 0;
        train->diverged = 0;
        node->standing.has_theta = false;
        node->standing.applied = 0;
        node->standing.state = DP_TRAINER_SET;
        dp_train_arrive(node, what == 3 ? round + DP_HISTORY_ROUNDS : round, &tensor_root);
        /* One that differs, and one of a round that is not known, are loaded anew. */
        assert_int_equal(node->standing.state, what < 2 ? DP_TRAINER_SET : DP_TRAINER_EMPTY);
        assert_int_equal(train->diverged, what == 2);
        assert_int_equal(train->strikes, what == 2);
        assert_int_equal(node->standing.applied, what == 3 ? 0 : round);
        assert_int_equal(node->standing.has_theta, what < 2);
        assert_int_equal(train->save_at.us, what == 3 ? node->now.us : 0);
        assert_int_equal(train->saves, what == 3 ? 3 : 0);
        if (what != 3) {
            assert_true(dp_hash_equal(&node->standing.tensor_root, &tensor_root));
            assert_true(dp_hash_equal(&node->standing.state_root, &wanted) || what == 2);
        }
        row->certified = false;
        kit_close(world);
    }
}

/* A minute at the third time, and twice as long with each one after it, up to an hour. */
static void a_trainer_that_differs_again_rests_ever_longer(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;
    dp_train *train = node->train;

    (void)state;
    train->strikes = 0;
    train->diverged = 0;
    train->barred = (dp_time){0};
    for (uint32_t time = 1; time <= 12; time++) {
        const uint32_t more = time > DP_STRIKES_MAX + 6 ? 6 : time - DP_STRIKES_MAX;
        train->matches = 7;
        train->moving_root = (dp_hash){{(uint8_t)time}};
        memset(node->saved, 0, sizeof *node->saved);
        node->saved->at[0] = (dp_saved){.has = true, .round = 1, .root = train->moving_root};
        dp_out_begin(&node->out, world->actions);
        dp_train_diverged(node);
        assert_int_equal(train->strikes, time);
        assert_int_equal(train->diverged, time);
        assert_int_equal(train->matches, 0);
        assert_int_equal(train->barred.us,
                         time < DP_STRIKES_MAX ? 0 : node->now.us + ((60 * DP_SECOND) << more));
        assert_true(node->saved->at[0].bad || !node->saved->at[0].has);
        assert_int_equal(node->standing.state, DP_TRAINER_EMPTY);
        const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
        assert_int_equal(note->u.note.code, DP_NOTE_DIVERGED);
        assert_int_equal(note->u.note.a, time);
        assert_int_equal(strstr(note->u.note.cause, "pauses") != NULL, time >= DP_STRIKES_MAX);
    }
    memset(node->saved, 0, sizeof *node->saved);
    kit_close(world);
}

static void work_loses_half_in_four_rounds_and_all_beyond_the_largest_gap(void **state)
{
    (void)state;
    for (uint64_t gap = 0; gap <= DP_GAP_MAX; gap++) {
        const double wanted = 65536.0 / (double)(1U << (gap / 4));
        static const double quarters[4] = {1, 0.8409, 0.7071, 0.5946};
        const double lambda = dp_train_lambda(gap);
        assert_true(lambda > wanted * quarters[gap % 4] * 0.999 - 1);
        assert_true(lambda < wanted * quarters[gap % 4] * 1.001 + 1);
    }
    assert_true(dp_train_lambda(DP_GAP_MAX) > 0);
    assert_int_equal(dp_train_lambda(DP_GAP_MAX + 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trainer_that_is_to_load_anew_has_no_state_steps_or_order),
        cmocka_unit_test(a_loaded_state_counts_if_it_was_asked_for_and_could_be_read),
        cmocka_unit_test(
            a_state_is_named_by_round_bytes_and_ledger_and_compared_with_the_certified_one),
        cmocka_unit_test(a_trainer_that_differs_again_rests_ever_longer),
        cmocka_unit_test(work_loses_half_in_four_rounds_and_all_beyond_the_largest_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
