/* The publication of a node from inside: its row, what it says to the others, the answers of the
 * trainer, and where a trainer starts. */
#include "base/trainer/trainer_msg.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "gossip/member/members_internal.h"
#include "gossip/pairs/mix_internal.h"
#include "gossip/round/round.h"
#include "gossip/training/state_load.h"
#include "gossip/training/training.h"
#include "tests/unit/gossip/kit/part_kit.h"

static dp_node *begin(kit_world *world)
{
    dp_node *node = world->nodes[0].node;

    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    assert_true(node->train->pending.has && node->train->pending.durable);
    return node;
}

static uint32_t sent(const kit_world *world, uint8_t type)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < world->actions->count; i++) {
        const dp_action *action = &world->actions->items[i];
        count += action->type == DP_DO_SEND && dp_msg_type_of(action->u.send.bytes) == type ? 1 : 0;
    }
    return count;
}

static void a_row_that_is_made_during_a_write_is_written_after_it(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    dp_train *train = node->train;

    (void)state;
    train->pending.durable = false;
    train->op = 5;
    dp_train_write_row(node);
    assert_true(train->row_waits);
    assert_int_equal(train->op, 5);
    assert_int_equal(world->actions->count, 0);
    assert_false(dp_train_stored(node, 4, DP_OK));
    assert_true(dp_train_stored(node, 5, DP_OK));
    assert_false(train->pending.durable); /* That was the row before. */
    assert_false(train->row_waits);
    const dp_action *store = kit_find(world->actions, DP_DO_STORE);
    assert_non_null(store);
    assert_int_equal(store->u.store.kind, DP_STORE_PENDING);
    assert_int_equal(store->u.store.op, train->op);
    assert_int_not_equal(train->op, 5);
    assert_true(dp_hash_equal(&store->u.store.keep[0], &train->pending.a_root));
    assert_true(dp_hash_equal(&store->u.store.keep[1], &train->pending.blob_root));
    assert_true(dp_train_stored(node, train->op, DP_OK));
    assert_true(train->pending.durable);
    assert_int_equal(train->op, 0);
    assert_false(dp_train_stored(node, 0, DP_OK));
    kit_close(world);
}

/* The publication holds what was frozen for an exchange. */
static void a_durable_row_lets_go_of_the_frozen_work_that_is_in_it(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 3; what++) {
        kit_world *world = kit_together(1);
        dp_node *node = begin(world);
        dp_mix *mix = node->mix;
        mix->has_f = true;
        mix->f.f_root = mix->f.own.root = (dp_hash){{6}};
        mix->f.mark = DP_MIX_MARK_ABORTED;
        node->train->pending.f_root = mix->f.f_root;
        if (what == 1) {
            node->train->pending.f_root.bytes[0]++;
        } else if (what == 2) {
            mix->state = DP_MIX_PREPARED;
        }
        node->train->op = 5;
        assert_true(dp_train_stored(node, 5, DP_OK));
        assert_int_equal(mix->has_f, what != 0);
        mix->state = DP_MIX_IDLE;
        mix->has_f = false;
        kit_close(world);
    }
}

static void a_publication_is_told_to_all_once_its_row_is_durable(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = begin(world);
    dp_pending *pending = &node->train->pending;

    (void)state;
    pending->ready.round = node->ledger.round + 1;
    pending->ready.base = node->ledger.base;
    dp_train_announce(node);
    assert_int_equal(sent(world, DP_MSG_READY), 1);
    assert_int_equal(kit_find(world->actions, DP_DO_SEND)->u.send.to, DP_TO_ALL);
    for (uint32_t what = 0; what < 4; what++) {
        dp_out_begin(&node->out, world->actions);
        pending->durable = what != 0;
        node->halted = what == 1;
        pending->ready.round = node->ledger.round + (what == 2 ? 0 : 1);
        pending->has = what != 3;
        dp_train_announce(node);
        assert_int_equal(sent(world, DP_MSG_READY), 0);
        pending->has = pending->durable = true;
        node->halted = false;
    }
    pending->ready.round = node->ledger.round + 1;
    const uint32_t count = node->members->count;
    for (uint32_t what = 0; what < 4; what++) {
        /* More members than a record lists, or more peers than have links to all: to the voters. */
        node->ledger.listed_max = what == 1 ? 2 : 3;
        node->members->count = what == 2   ? DP_FULL_MESH_MAX
                               : what == 3 ? DP_FULL_MESH_MAX + 1
                                           : count;
        dp_out_begin(&node->out, world->actions);
        dp_train_announce(node);
        node->members->count = count;
        assert_true(sent(world, DP_MSG_READY) > 0);
        assert_int_equal(kit_find(world->actions, DP_DO_SEND)->u.send.to,
                         what % 2 == 0 ? DP_TO_ALL : DP_TO_PEER);
    }
    kit_close(world);
}

static dp_event published(const dp_node *node)
{
    return (dp_event){.type = DP_EV_PUBLISHED,
                      .u.published = {.round = node->ledger.round + 1,
                                      .root = {{1, 9}},
                                      .bytes = 8,
                                      .a_root = {{2, 9}},
                                      .a_bytes = 8,
                                      .tokens = 10,
                                      .steps = 2,
                                      .rate = 77,
                                      .reach = dp_train_reach(node)}};
}

static void an_answer_that_was_not_asked_for_publishes_nothing(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    const dp_hash before = node->train->pending.ready.root;
    dp_event event = published(node);

    (void)state;
    node->train->publishing = false;
    dp_train_published(node, &event);
    assert_int_equal(world->actions->count, 0);
    assert_true(dp_hash_equal(&node->train->pending.ready.root, &before));
    kit_close(world);
}

static void a_publication_knows_the_frozen_work_that_is_in_it(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);

    (void)state;
    node->mix->has_f = true;
    node->mix->f.f_root = node->mix->f.own.root = (dp_hash){{6}};
    node->mix->f.mark = DP_MIX_MARK_ABORTED;
    node->train->publishing = true;
    node->train->publish_order = 3;
    dp_event event = published(node);
    event.u.published.reach.own++;
    dp_train_published(node, &event);
    const dp_pending *pending = &node->train->pending;
    assert_true(dp_hash_equal(&pending->ready.root, &event.u.published.root));
    assert_true(dp_hash_equal(&pending->f_root, &node->mix->f.f_root));
    assert_int_equal(pending->f_order, 3);
    assert_int_equal(node->standing.uplink, 77);
    assert_int_equal(node->standing.published_tokens, 10);
    assert_false(node->train->publishing);
    node->mix->has_f = false;
    kit_close(world);
}

/* Numbers that no record may list: the trainer starts again, or rounds would wait for them. */
static void
an_update_with_numbers_out_of_range_is_dropped_and_the_trainer_starts_again(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    const dp_hash before = node->train->pending.ready.root;
    dp_event event = published(node);

    (void)state;
    event.u.published.steps = 0;
    node->train->publishing = true;
    dp_train_published(node, &event);
    assert_true(dp_hash_equal(&node->train->pending.ready.root, &before));
    const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
    assert_non_null(note);
    assert_int_equal(note->u.note.code, DP_NOTE_REJECTED);
    assert_int_equal(node->standing.state, DP_TRAINER_EMPTY);
    assert_false(node->train->spoiled);
    kit_close(world);
}

static void parts_of_the_publication_before_are_let_go_unless_they_are_in_this_one(void **state)
{
    kit_world *world = kit_parted(3);
    dp_node *node = begin(world);
    dp_pending *pending = &node->train->pending;

    (void)state;
    const dp_part_list old = pending->ready.parts;
    assert_int_equal(old.n, 3);
    pending->ready.round = 1; /* Long ago: no round that may be replayed needs them. */
    const uint32_t claims = node->round->n_claims;
    node->round->n_claims = 0;
    dp_hash roots[3];
    for (uint32_t p = 0; p < 3; p++) {
        roots[p] = pending->ready.parts.refs[p].root = (dp_hash){{(uint8_t)(p + 1), 123}};
        dp_node_hold(node, &roots[p], 8);
    }
    dp_event event = published(node);
    event.u.published.parts = old;
    event.u.published.parts.refs[1].root = roots[1];
    event.u.published.reach.own++;
    event.u.published.energy = 5;
    node->train->publishing = true;
    node->train->publish_cuts = node->ledger.layout.cuts;
    dp_train_published(node, &event);
    assert_true(pending->ready.parted);
    assert_true(dp_hash_equal(&pending->ready.parts.refs[1].root, &roots[1]));
    assert_false(dp_node_holds(node, &roots[0]));
    assert_true(dp_node_holds(node, &roots[1]));
    assert_false(dp_node_holds(node, &roots[2]));
    node->round->n_claims = claims;
    kit_close(world);
}

/* ---- answers of the trainer ---- */

static void only_the_answer_about_the_round_that_is_being_applied_is_taken(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    dp_event event = {.type = DP_EV_APPLIED, .u.applied = {.round = node->standing.applied + 1}};

    (void)state;
    node->standing.applying = false;
    dp_train_applied(node, &event);
    node->standing.applying = true;
    event.u.applied.round++;
    dp_train_applied(node, &event);
    assert_true(node->standing.applying);
    assert_int_equal(world->actions->count, 0);
    event.u.applied.round--;
    event.u.applied.status = DP_CORRUPT;
    dp_train_applied(node, &event);
    assert_false(node->standing.applying);
    assert_int_equal(node->standing.state, DP_TRAINER_EMPTY);
    const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
    assert_non_null(note);
    assert_int_equal(note->u.note.code, DP_NOTE_DIVERGED);
    assert_int_equal(note->u.note.round, event.u.applied.round);
    assert_string_equal(note->u.note.cause, "apply failed");
    kit_close(world);
}

static void a_checkpoint_that_the_trainer_cannot_load_is_not_loaded_again(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    dp_event event = {.type = DP_EV_TRAINER_AT, .u.at = {.round = 7, .status = DP_CORRUPT}};

    (void)state;
    memset(node->saved, 0, sizeof *node->saved);
    node->saved->at[2] = (dp_saved){.has = true, .round = 7, .root = {{5}}};
    node->train->moving_round = 7;
    node->train->moving_root = node->saved->at[2].root;
    node->standing.state = DP_TRAINER_SET;
    dp_train_at(node, &event); /* Nothing is being loaded. */
    node->standing.state = DP_TRAINER_MOVING;
    event.u.at.round = 8;
    dp_train_at(node, &event);
    assert_false(node->saved->at[2].bad);
    assert_int_equal(node->standing.state, DP_TRAINER_MOVING);
    event.u.at.round = 7;
    dp_train_at(node, &event);
    assert_true(node->saved->at[2].bad);
    assert_int_equal(node->standing.state, DP_TRAINER_EMPTY);
    kit_close(world);
}

static void a_publication_of_a_decided_round_is_settled_when_its_trainer_goes(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    const dp_event down = {.type = DP_EV_TRAINER_DOWN};
    dp_pending *pending = &node->train->pending;

    (void)state;
    pending->settled = false;
    pending->ready.round = node->ledger.round + 1;
    pending->ready.base = node->ledger.base;
    dp_train_event(node, &down);
    assert_false(pending->settled); /* Its record may come. */
    pending->ready.round = node->ledger.round;
    pending->has = false;
    dp_train_event(node, &down);
    assert_false(pending->settled);
    pending->has = true;
    dp_train_event(node, &down);
    assert_true(pending->settled);
    kit_close(world);
}

/* ---- the start of a trainer ---- */

/* The checkpoint from which the trainer is started; 0: from none. */
static uint64_t loaded(kit_world *world)
{
    dp_node *node = world->nodes[0].node;

    dp_out_begin(&node->out, world->actions);
    node->standing.state = DP_TRAINER_EMPTY;
    dp_train_load(node);
    const dp_action *load = kit_find(world->actions, DP_DO_TRAINER_LOAD);
    assert_true(load == NULL || (node->train->moving_round == load->u.load.round &&
                                 dp_hash_equal(&node->train->moving_root, &load->u.load.root) &&
                                 node->standing.state == DP_TRAINER_MOVING));
    return load != NULL ? load->u.load.round : 0;
}

static void
the_trainer_starts_from_the_newest_checkpoint_that_the_chain_does_not_contradict(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    const uint64_t round = node->ledger.round;

    (void)state;
    assert_true(round >= 4);
    memset(node->saved, 0, sizeof *node->saved);
    for (uint32_t i = 0; i < 3; i++) {
        dp_saved *ckpt = &node->saved->at[2 - i];
        *ckpt = (dp_saved){.has = true, .round = round - i, .root = {{(uint8_t)(1 + i)}}};
        dp_history_row *row = dp_chain_row(node, ckpt->round);
        row->certified = true;
        row->root = dp_state_root(ckpt->round, &ckpt->root, &row->digest);
    }
    assert_int_equal(loaded(world), round);
    node->saved->at[2].bad = true;
    assert_int_equal(loaded(world), round - 1);
    node->saved->at[2].bad = false;
    node->saved->at[2].round = round + 1; /* Beyond the chain. */
    assert_int_equal(loaded(world), round - 1);
    node->saved->at[1].root.bytes[0] ^= 0x40; /* Certified otherwise. */
    assert_int_equal(loaded(world), round - 2);
    dp_chain_row(node, round - 1)->certified = false; /* Nobody knows. */
    assert_int_equal(loaded(world), round - 1);
    node->saved->at[1].has = false;
    dp_history_row *after = dp_chain_row(node, round - 1);
    after->round = 0; /* The round after it cannot be replayed. */
    assert_int_equal(loaded(world), 0);
    after->round = round - 1;
    node->train->barred = (dp_time){node->now.us + 1};
    assert_int_equal(loaded(world), 0);
    assert_int_equal(node->standing.state, DP_TRAINER_EMPTY);
    node->train->barred = node->now;
    node->chain->op = 5; /* The chain grows just now. */
    assert_int_equal(loaded(world), 0);
    node->chain->op = 0;
    assert_int_equal(loaded(world), round - 2);
    kit_close(world);
}

static void a_trainer_is_told_to_stop_once(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);

    (void)state;
    node->train->training = true;
    node->train->train_round = 7;
    dp_train_stop(node);
    assert_false(node->train->training);
    assert_int_equal(node->train->train_round, 0);
    dp_train_stop(node);
    assert_int_equal(world->actions->count, 1);
    assert_int_equal(world->actions->items[0].type, DP_DO_TRAIN_STOP);
    kit_close(world);
}

static void an_offer_to_vote_waits_for_the_first_checkpoint_only(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    const dp_event saved = {.type = DP_EV_SAVED,
                            .u.saved = {.round = 3, .tensor_root = {{3}}, .tensor_bytes = 12}};

    (void)state;
    memset(node->saved, 0, sizeof *node->saved);
    node->repeat_at = DP_NEVER;
    dp_train_event(node, &saved);
    assert_true(node->repeat_at.us <= node->now.us);
    assert_true(dp_saved_is_own(node, 3));
    node->repeat_at = DP_NEVER;
    dp_train_event(node, &saved);
    assert_int_equal(node->repeat_at.us, DP_NEVER.us);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_that_is_made_during_a_write_is_written_after_it),
        cmocka_unit_test(a_durable_row_lets_go_of_the_frozen_work_that_is_in_it),
        cmocka_unit_test(a_publication_is_told_to_all_once_its_row_is_durable),
        cmocka_unit_test(an_answer_that_was_not_asked_for_publishes_nothing),
        cmocka_unit_test(a_publication_knows_the_frozen_work_that_is_in_it),
        cmocka_unit_test(
            an_update_with_numbers_out_of_range_is_dropped_and_the_trainer_starts_again),
        cmocka_unit_test(parts_of_the_publication_before_are_let_go_unless_they_are_in_this_one),
        cmocka_unit_test(only_the_answer_about_the_round_that_is_being_applied_is_taken),
        cmocka_unit_test(a_checkpoint_that_the_trainer_cannot_load_is_not_loaded_again),
        cmocka_unit_test(a_publication_of_a_decided_round_is_settled_when_its_trainer_goes),
        cmocka_unit_test(
            the_trainer_starts_from_the_newest_checkpoint_that_the_chain_does_not_contradict),
        cmocka_unit_test(a_trainer_is_told_to_stop_once),
        cmocka_unit_test(an_offer_to_vote_waits_for_the_first_checkpoint_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
