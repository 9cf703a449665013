/* The weight of work from earlier rounds, and how long a node behind a thin line trains in a round
 * of parts. */
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"
#include "gossip/round/deadline.h"
#include "gossip/round/round.h"
#include "gossip/training/training.h"
#include "tests/lib/check.h"
#include "tests/unit/gossip/kit/part_kit.h"

static void a_member_whose_work_was_discarded_keeps_its_later_work(void **state)
{
    dp_train *train = calloc(1, sizeof *train);
    dp_history_row row = {.round = 0};

    (void)state;
    assert_non_null(train);
    for (uint64_t round = 100; round < 140; round++) {
        row.round = round;
        row.gap = round - 99;
        const bool empties = row.gap == 17 || row.gap == 34;
        assert_int_equal(dp_train_fade(train, &row), empties ? 0 : 55109);
    }
    free(train);
}

static bool is_due_after(dp_node *node, uint64_t elapsed_us)
{
    const dp_time now = node->now;
    const uint32_t steps = node->train->steps;
    const uint32_t n_claims = node->round->n_claims;

    node->train->steps = 0;
    node->round->n_claims = 0; /* No node waits. */
    node->now = (dp_time){.us = node->round->opened.us + elapsed_us};
    const bool is_due = dp_train_is_due(node);
    node->now = now;
    node->train->steps = steps;
    node->round->n_claims = n_claims;
    return is_due;
}

static void parts_leave_a_thin_line_before_the_round_is_over(void **state)
{
    const uint64_t round_us = 500 * DP_MS;
    kit_world *world = kit_parted(4);
    dp_node *node = world->nodes[0].node;
    const dp_part_cuts cuts = {.n = 4, .first = {0, 16384, 32768, 49152}};

    (void)state;
    node->round->slot_opened = node->round->opened;
    node->train->pending.made_here = true;
    node->train->pending.ready.bytes = 200 * 1000;
    node->standing.uplink = 0;
    CHECK(!is_due_after(node, round_us - 1) && is_due_after(node, round_us));
    node->standing.uplink = 1000; /* 200 ms, of which those of a part added up here are spared. */
    node->ledger.layout.cuts = cuts;
    for (uint32_t p = 0; p < cuts.n; p++) {
        node->ledger.layout.owners[p] = kit_peer(p);
    }
    CHECK(!is_due_after(node, round_us - 150 * DP_MS - 1));
    CHECK(is_due_after(node, round_us - 150 * DP_MS));
    node->ledger.layout.owners[0] = kit_peer(1);
    CHECK(is_due_after(node, round_us - 200 * DP_MS));
    CHECK(!is_due_after(node, round_us - 200 * DP_MS - 1));
    node->standing.uplink = 1; /* Never nothing. */
    CHECK(!is_due_after(node, round_us / 4 - 1) && is_due_after(node, round_us / 4));
    kit_close(world);
}

/* A single paused node: no number of ready nodes is enough. */
static void a_part_is_not_due_because_nobody_is_at_work(void **state)
{
    kit_world *world = kit_open(1);
    dp_node *const node = world->nodes[0].node;
    const uint64_t round_us = 500 * DP_MS;

    (void)state;
    kit_run_ms(world, 2000);
    assert_true(node->round->opened.us > 0);
    node->paused = true;
    assert_int_equal(dp_round_active(node), 0);
    assert_false(is_due_after(node, 0));
    assert_false(is_due_after(node, round_us - 1));
    assert_true(is_due_after(node, round_us));
    kit_close(world);
}

/* The grace of a round begins with it: right after a publication, when no step of the next one is
 * measured. */
static void a_step_that_is_not_measured_leaves_the_last_measure(void **state)
{
    kit_world *world = kit_together(2);
    dp_node *const node = world->nodes[0].node;
    dp_event trained = {.type = DP_EV_TRAINED};

    (void)state;
    assert_int_equal(node->standing.step_us, KIT_STEP_MS * 1000);
    trained.u.trained.steps = node->train->steps + 1;
    dp_train_event(node, &trained);
    assert_int_equal(dp_round_slowest_step(node), KIT_STEP_MS * 1000);
    trained.u.trained.step_us = 2 * KIT_STEP_MS * 1000;
    dp_train_event(node, &trained);
    assert_int_equal(dp_round_slowest_step(node), 2 * KIT_STEP_MS * 1000);
    kit_close(world);
}

/* Once: a node that changed at every tick would never sleep. */
static void a_trainer_s_rest_ends_once_when_its_time_is_over(void **state)
{
    kit_world *world = kit_open(1);
    dp_node *const node = world->nodes[0].node;
    const dp_time end = dp_time_after(node->now, DP_BAR_US);

    (void)state;
    node->changed = false;
    dp_train_tick(node); /* It does not rest. */
    assert_false(node->changed);
    node->train->barred = end;
    dp_train_tick(node);
    assert_false(node->changed);
    assert_int_equal(node->train->barred.us, end.us);
    node->now = end;
    dp_train_tick(node);
    assert_true(node->changed);
    assert_int_equal(node->train->barred.us, 0);
    node->changed = false;
    dp_train_tick(node);
    assert_false(node->changed);
    kit_close(world);
}

static void a_trainer_has_the_node_woken_when_its_part_of_the_round_is_over(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    dp_train *train = node->train;

    (void)state;
    kit_run_ms(world, 3000);
    for (uint32_t i = 0; i < 1000 && dp_train_undecided(node); i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    node->standing.state = DP_TRAINER_SET;
    train->training = true;
    node->standing.uplink = 0;
    node->round->opened = node->now;
    const uint64_t due = node->now.us + (uint64_t)node->manifest.round_ms * DP_MS;
    assert_int_equal(dp_train_wake(node).us, due);
    train->training = false;
    assert_int_equal(dp_train_wake(node).us, DP_NEVER.us);
    train->training = true;
    node->round->opened = (dp_time){0};
    assert_int_equal(dp_train_wake(node).us, DP_NEVER.us);
    node->round->opened = node->now;
    node->now.us = due;
    assert_int_equal(dp_train_wake(node).us, DP_NEVER.us);
    node->standing.state = DP_TRAINER_EMPTY;
    train->barred = (dp_time){due + 1};
    assert_int_equal(dp_train_wake(node).us, due + 1);
    train->barred = (dp_time){due};
    assert_int_equal(dp_train_wake(node).us, DP_NEVER.us);
    kit_close(world);
}

/* In a run of any model. */
static void without_a_script_nobody_trains_and_nobody_is_waited_for(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;

    (void)state;
    CHECK(node->train->training && dp_round_anybody_works(node) && dp_round_active(node) == 3);
    world->external = true;
    for (uint32_t i = 0; i < world->n; i++) {
        world->nodes[i].node->manifest.arch = DP_ARCH_EXTERNAL;
        dp_node_changed(world->nodes[i].node);
        dp_train_advance(world->nodes[i].node);
    }
    const uint64_t round = node->ledger.round;
    kit_run_ms(world, 5000);
    CHECK(!node->train->training && !dp_round_anybody_works(node) && dp_round_active(node) == 0);
    CHECK(node->standing.state == DP_TRAINER_SET && node->mode == DP_MODE_SYNC);
    CHECK(node->ledger.round <= round + 1); /* One that was under way may end. */
    CHECK(world->nodes[1].node->standing.applied == node->ledger.round);

    /* One script comes, and rounds go on with it alone. */
    const uint64_t idle = node->ledger.round;
    kit_push(world, 0, DP_EV_SCRIPT)->event.u.script.present = true;
    kit_run_ms(world, node->manifest.round_ms * 3 / 4);
    CHECK(node->train->steps > 0 && !node->train->publishing && node->ledger.round == idle);
    kit_run_ms(world, 5000);
    CHECK(node->train->training && dp_round_anybody_works(node) && dp_round_active(node) == 1);
    CHECK(dp_round_active(world->nodes[2].node) == 1);
    CHECK(node->ledger.round > idle + 1);
    CHECK(world->nodes[1].node->standing.applied >= idle + 1);

    /* It goes; its last steps are published, and again nobody is waited for. */
    while (node->train->steps == 0 || node->train->publishing) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    const uint64_t last = node->ledger.round;
    kit_push(world, 0, DP_EV_SCRIPT)->event.u.script.present = false;
    kit_run_ms(world, 5000);
    CHECK(!node->leftover && node->ledger.round >= last + 1);
    CHECK(!node->train->training && dp_round_active(world->nodes[2].node) == 0);

    /* A script goes with its trainer. */
    kit_push(world, 0, DP_EV_SCRIPT)->event.u.script.present = true;
    kit_run_ms(world, 1000);
    CHECK(node->train->training);
    kit_push(world, 0, DP_EV_TRAINER_DOWN);
    kit_run_ms(world, 1000);
    CHECK(!node->scripted && dp_round_active(world->nodes[2].node) == 0);
    kit_close(world);
}

/* Three nodes of a run of any model, the first two with scripts. */
static kit_world *with_two_scripts(void)
{
    kit_world *world = kit_together(3);

    world->external = true;
    for (uint32_t i = 0; i < world->n; i++) {
        world->nodes[i].node->manifest.arch = DP_ARCH_EXTERNAL;
        if (i < 2) {
            kit_push(world, i, DP_EV_SCRIPT)->event.u.script.present = true;
        }
        dp_node_changed(world->nodes[i].node);
        dp_train_advance(world->nodes[i].node);
    }
    kit_run_ms(world, 2000);
    return world;
}

/* Tokens of this node that the chain from this slot on counts. */
static uint64_t counted(const kit_world *world, uint32_t index, uint64_t slot)
{
    const dp_peer peer = kit_peer(index);
    const kit_node *node = &world->nodes[2];
    static dp_record record;
    uint64_t tokens = 0;

    for (; slot <= node->slots; slot++) {
        const kit_record *at = &node->records[slot];
        assert_int_equal(dp_record_decode(&record, dp_view_of(at->record, at->record_size)), DP_OK);
        for (uint32_t i = 0; i < record.n_listed; i++) {
            if (dp_peer_equal(&record.listed[i].peer, &peer)) {
                tokens += record.listed[i].tokens + record.listed[i].carried;
            }
        }
    }
    return tokens;
}

/* The script of node 0 goes, and its last update cannot be fetched. Returns the tokens of it. */
static uint64_t publish_and_leave(kit_world *world, uint64_t *slot)
{
    kit_node *node = &world->nodes[0];

    node->mute_blobs = true;
    const uint64_t published = node->published;
    while (node->published == published) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    *slot = world->nodes[2].slots + 1;
    const uint64_t tokens = (uint64_t)node->offered * 100;
    kit_push(world, 0, DP_EV_SCRIPT)->event.u.script.present = false;
    node->steps = 0;
    kit_drain(world);
    node->node->train->steps = 0; /* None came after the publication. */
    node->node->leftover = false;
    CHECK(tokens > 0 && !dp_node_can_train(node->node));
    return tokens;
}

static void run_until_left_out(kit_world *world)
{
    kit_node *node = &world->nodes[0];
    const uint32_t left_out = node->settles[DP_SETTLE_LEFT_OUT];

    for (uint32_t i = 0; i < 1000 && node->settles[DP_SETTLE_LEFT_OUT] == left_out; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    CHECK(node->settles[DP_SETTLE_LEFT_OUT] == left_out + 1);
}

static void an_update_of_a_script_that_a_record_left_out_is_published_again_without_it(void **state)
{
    kit_world *world = with_two_scripts();
    kit_node *node = &world->nodes[0];
    uint64_t slot = 0;
    const uint64_t tokens = publish_and_leave(world, &slot);

    (void)state;
    run_until_left_out(world);
    CHECK(counted(world, 0, slot) == 0);
    node->mute_blobs = false;
    kit_run_ms(world, 200);
    CHECK(node->node->leftover && dp_node_can_train(node->node)); /* Others wait for it. */
    kit_run_ms(world, 10000);
    CHECK(counted(world, 0, slot) == tokens);
    CHECK(!node->node->leftover && !dp_node_can_train(node->node));
    kit_close(world);
}

static void it_is_published_again_until_a_record_lists_it(void **state)
{
    kit_world *world = with_two_scripts();
    uint64_t slot = 0;
    const uint64_t tokens = publish_and_leave(world, &slot);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        run_until_left_out(world);
    }
    CHECK(counted(world, 0, slot) == 0);
    world->nodes[0].mute_blobs = false;
    kit_run_ms(world, 10000);
    CHECK(counted(world, 0, slot) == tokens);
    kit_close(world);
}

/* Work that nobody could fetch for DP_GAP_MAX rounds is worth nothing any more. */
static void it_is_given_up_when_its_work_has_aged_to_nothing(void **state)
{
    kit_world *world = with_two_scripts();
    kit_node *node = &world->nodes[0];
    uint64_t slot = 0;

    (void)state;
    (void)publish_and_leave(world, &slot);
    const uint32_t emptied = node->emptied;
    for (uint32_t i = 0; i < 3000 && node->emptied == emptied; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    CHECK(node->emptied == emptied + 1);
    node->unsent = 0; /* The trainer has forgotten it. */
    const uint64_t published = node->published;
    kit_run_ms(world, 5000);
    CHECK(node->published <= published + 1); /* One may have been under way. */
    CHECK(counted(world, 0, slot) == 0 && !node->node->leftover);
    kit_close(world);
}

/* kill -9 of the node: after the record that left it out, or before it. */
static void a_restart_keeps_it(void **state)
{
    (void)state;
    for (uint32_t before = 0; before < 2; before++) {
        kit_world *world = with_two_scripts();
        kit_node *node = &world->nodes[0];
        uint64_t slot = 0;
        const uint64_t tokens = publish_and_leave(world, &slot);
        if (!before) {
            run_until_left_out(world);
        }
        kit_kill(world, 0);
        node->steps = 0;
        node->unsent = 0;
        node->offered = 0;
        kit_run_ms(world, 1000); /* Of the others. */
        kit_boot(world, 0);
        node->mute_blobs = false;
        kit_link_all(world);
        kit_run_ms(world, 10000);
        CHECK(counted(world, 0, slot) == tokens);
        CHECK(!node->node->leftover && !dp_node_can_train(node->node));
        kit_close(world);
    }
}

/* A founder alone, which is paused while its newest state is no checkpoint. */
static kit_world *with_an_unsaved_state(void)
{
    kit_world *world = kit_open(1);

    kit_run_ms(world, 3000);
    world->nodes[0].saves_nothing = true;
    const uint64_t round = kit_look(world, 0).round;
    while (kit_look(world, 0).applied <= round) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    kit_command(world, 0, DP_COMMAND_PAUSE);
    assert_int_equal(kit_look(world, 0).applied, round + 1);
    assert_int_equal(world->nodes[0].last[DP_DO_SAVE].u.save.round, round + 1);
    world->nodes[0].last[DP_DO_SAVE] = (dp_action){0};
    return world;
}

static bool asked_to_save(kit_world *world)
{
    const bool asked = world->nodes[0].last[DP_DO_SAVE].u.save.round != 0;

    world->nodes[0].last[DP_DO_SAVE] = (dp_action){0};
    return asked;
}

static void a_checkpoint_that_was_not_made_is_asked_for_again_ever_more_rarely(void **state)
{
    kit_world *world = with_an_unsaved_state();
    const uint64_t round = kit_look(world, 0).applied;

    (void)state;
    world->early_ticks = true;
    kit_run_ms(world, 4900);
    assert_false(asked_to_save(world));
    kit_run_ms(world, 200);
    assert_true(asked_to_save(world));
    kit_run_ms(world, 9800);
    assert_false(asked_to_save(world));
    kit_run_ms(world, 400);
    assert_true(asked_to_save(world));
    kit_run_ms(world, 1000 * 1000);
    assert_true(asked_to_save(world));
    world->nodes[0].saves_nothing = false;
    kit_run_ms(world, 330 * 1000);
    assert_true(asked_to_save(world));
    assert_int_equal(world->nodes[0].saved_round, round);
    kit_run_ms(world, 330 * 1000);
    assert_false(asked_to_save(world)); /* It is there. */
    assert_int_equal(kit_look(world, 0).applied, round);
    kit_close(world);
}

static void a_state_that_is_a_checkpoint_already_is_not_saved_again(void **state)
{
    kit_world *world = with_an_unsaved_state();

    (void)state;
    world->nodes[0].saves_nothing = false;
    kit_run_ms(world, 6000);
    assert_true(asked_to_save(world));
    kit_kill(world, 0);
    kit_boot(world, 0);
    kit_command(world, 0, DP_COMMAND_PAUSE);
    kit_run_ms(world, 10 * 1000);
    assert_int_equal(kit_look(world, 0).applied, world->nodes[0].saved_round);
    assert_false(asked_to_save(world));
    kit_close(world);
}

/* Blobs are kept for 60 rounds: without a checkpoint in time a voter's disk leads to no state. */
static void a_voter_must_have_a_checkpoint_every_32_rounds(void **state)
{
    kit_world *world = kit_open(1);
    const dp_action *save = &world->nodes[0].last[DP_DO_SAVE];

    (void)state;
    kit_run_ms(world, 3000);
    world->nodes[0].saves_nothing = true;
    const uint64_t own = dp_saved_own(world->nodes[0].node);
    assert_true(own > 0);
    while (save->u.save.round < own + 31) {
        kit_run_ms(world, KIT_STEP_MS);
        assert_false(save->u.save.must);
    }
    while (save->u.save.round < own + 32) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_true(save->u.save.must);
    world->nodes[0].saves_nothing = false;
    while (save->u.save.round < own + 34) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_false(save->u.save.must);
    kit_close(world);
}

/* Of three members in a run whose records list one: those go first that were counted longest ago
 * and live, and one more may go for each eighth of a round over. */
static void where_a_record_cannot_list_all_a_node_publishes_when_it_is_its_turn(void **state)
{
    const uint64_t round_us = 500 * DP_MS;
    const uint64_t eighth = round_us / 8;

    (void)state;
    for (uint32_t what = 0; what < 9; what++) {
        kit_world *world = kit_together(3);
        dp_node *node = world->nodes[0].node;
        dp_ledger *ledger = &node->ledger;
        for (uint32_t i = 0;
             i < 1000 && (dp_train_undecided(node) || node->train->op != 0 ||
                          node->mode != DP_MODE_SYNC || node->standing.applied != ledger->round);
             i++) {
            kit_run_ms(world, KIT_STEP_MS);
        }
        assert_false(dp_train_undecided(node));
        const dp_peer one = kit_peer(1);
        dp_roster_entry *own = &ledger->roster[dp_ledger_find(ledger, &node->self)];
        dp_roster_entry *other = &ledger->roster[dp_ledger_find(ledger, &one)];
        dp_member *member =
            (dp_member *)(uintptr_t)dp_members_at(node->members, dp_node_member_index(node, &one));
        for (uint32_t i = 0; i < ledger->n_roster; i++) {
            ledger->roster[i].included = ledger->round - 1;
        }
        own->included = ledger->round; /* Counted last: behind both others. */
        uint64_t elapsed = round_us;
        bool may = false;
        if (what == 0) {
            ledger->listed_max = 2; /* Three may publish at a time. */
            may = true;
        } else {
            ledger->listed_max = 1;
        }
        if (what == 2) {
            elapsed += 2 * eighth - 1;
        } else if (what == 3) {
            elapsed += 2 * eighth;
            may = true;
        } else if (what == 4) {
            own->included = ledger->round - 2;
            may = true;
        } else if (what == 5 || what == 6) { /* One of those before it is away. */
            member->state = what == 5 ? DP_MEMBER_DEAD : DP_MEMBER_ALIVE;
            elapsed += eighth;
            may = what == 5;
        } else if (what == 7) {
            other->included = ledger->round; /* The same as this node: by the order of peers. */
            elapsed += eighth;
            may = dp_peer_compare(&node->self, &one) < 0;
        } else if (what == 8) { /* Found once for a round. */
            node->train->turn_round = ledger->round + 1;
            node->train->turn_before = 0;
            may = true;
        }
        node->train->turn_round = what == 8 ? ledger->round + 1 : 0;
        node->train->steps = 5;
        node->round->n_claims = 0;
        dp_round_index_claims(node);
        node->round->opened = (dp_time){node->now.us - elapsed};
        dp_out_begin(&node->out, world->actions);
        dp_train_advance(node);
        assert_int_equal(kit_find(world->actions, DP_DO_PUBLISH) != NULL, may);
        if (what != 0) {
            assert_int_equal(node->train->turn_round, ledger->round + 1);
        }
        member->state = DP_MEMBER_ALIVE;
        kit_close(world);
    }
}

/* To each of the others that live the whole update has to go. */
static void whole_updates_leave_a_thin_line_before_the_round_is_over(void **state)
{
    const uint64_t round_us = 500 * DP_MS;

    (void)state;
    for (uint32_t n = 1; n <= 3; n++) {
        kit_world *world = kit_together(n);
        dp_node *node = world->nodes[0].node;
        node->round->slot_opened = node->round->opened;
        node->train->pending.ready.bytes = 100 * 1000;
        for (uint32_t what = 0; what < 3; what++) {
            node->train->pending.made_here = what != 1; /* Else its size is of an earlier life. */
            node->standing.uplink = what == 2 ? 0 : 1000;
            const uint64_t send_us = dp_deadline_send(100 * 1000, n - 1, 1000);
            const uint64_t part_us =
                what == 0 && n > 1 ? dp_deadline_part(round_us, 0, send_us) : round_us;
            assert_true(what != 0 || n == 1 || part_us < round_us);
            CHECK(!is_due_after(node, part_us - 1) && is_due_after(node, part_us));
        }
        kit_close(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_whose_work_was_discarded_keeps_its_later_work),
        cmocka_unit_test(a_step_that_is_not_measured_leaves_the_last_measure),
        cmocka_unit_test(a_part_is_not_due_because_nobody_is_at_work),
        cmocka_unit_test(a_trainer_s_rest_ends_once_when_its_time_is_over),
        cmocka_unit_test(parts_leave_a_thin_line_before_the_round_is_over),
        cmocka_unit_test(a_trainer_has_the_node_woken_when_its_part_of_the_round_is_over),
        cmocka_unit_test(without_a_script_nobody_trains_and_nobody_is_waited_for),
        cmocka_unit_test(
            an_update_of_a_script_that_a_record_left_out_is_published_again_without_it),
        cmocka_unit_test(it_is_published_again_until_a_record_lists_it),
        cmocka_unit_test(it_is_given_up_when_its_work_has_aged_to_nothing),
        cmocka_unit_test(a_restart_keeps_it),
        cmocka_unit_test(a_checkpoint_that_was_not_made_is_asked_for_again_ever_more_rarely),
        cmocka_unit_test(a_state_that_is_a_checkpoint_already_is_not_saved_again),
        cmocka_unit_test(a_voter_must_have_a_checkpoint_every_32_rounds),
        cmocka_unit_test(where_a_record_cannot_list_all_a_node_publishes_when_it_is_its_turn),
        cmocka_unit_test(whole_updates_leave_a_thin_line_before_the_round_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
