/* Where a trainer starts again when its states are not the certified ones. */
#include "tests/unit/gossip/kit/node_kit.h"

static kit_world *so_many(uint32_t n)
{
    kit_world *world = kit_open(n);
    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    assert_int_equal(kit_look(world, 0).listed_last, n);
    return world;
}

static kit_world *three(void)
{
    return so_many(3);
}

/* Run until node 1 has diverged so often. */
static void until_diverged(kit_world *world, uint64_t times)
{
    for (uint32_t i = 0; i < 400 && kit_look(world, 1).diverged < times; i++) {
        kit_run_ms(world, 50);
    }
    assert_int_equal(kit_look(world, 1).diverged, times);
}

static void a_trainer_that_errs_again_and_again_rests_and_is_tried_later(void **state)
{
    kit_world *world = three();

    (void)state;
    world->nodes[1].errs = 3;
    until_diverged(world, 3);
    const uint64_t round = kit_look(world, 0).round;
    kit_run_ms(world, 10 * 1000);
    assert_true(kit_look(world, 0).round > round + 3); /* Rounds go on without it, ... */
    assert_int_equal(kit_look(world, 0).listed_last, 2);
    assert_int_equal(kit_look(world, 1).diverged, 3); /* ... and it tries nothing. */
    kit_run_ms(world, 55 * 1000);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    assert_int_equal(kit_look(world, 1).diverged, 3);
    kit_close(world);
}

static void one_wrong_state_is_loaded_again_at_once_and_forgiven_in_time(void **state)
{
    kit_world *world = three();

    (void)state;
    for (uint64_t times = 1; times <= 4; times++) { /* Never three in a row. */
        world->nodes[1].errs = 1;
        until_diverged(world, times);
        kit_run_ms(world, 12 * 1000);
        assert_int_equal(kit_look(world, 0).listed_last, 3);
    }
    kit_close(world);
}

/* From the seed it would reach the same wrong state; the state of others is certified. */
static void a_node_wrong_in_the_first_rounds_takes_the_state_of_another(void **state)
{
    kit_world *world = kit_open(3);

    (void)state;
    world->nodes[2].saves_nothing = true;
    kit_link_all(world);
    kit_run_ms(world, 2000);
    const uint32_t before = world->states_fetched;
    world->nodes[2].errs = 1;
    for (uint32_t i = 0; i < 200 && kit_look(world, 2).diverged == 0; i++) {
        kit_run_ms(world, 50);
    }
    assert_int_equal(kit_look(world, 2).diverged, 1);
    assert_true(kit_look(world, 0).round < 8);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    assert_true(world->states_fetched > before);
    kit_close(world);
}

static void steps_of_before_a_load_are_no_reason_to_publish(void **state)
{
    static dp_actions actions;
    kit_world *world = three();
    dp_node *const node = world->nodes[1].node;
    dp_event trained = {.type = DP_EV_TRAINED};

    (void)state;
    for (uint32_t i = 0; i < 100 && node->train->steps == 0; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_true(node->train->steps > 0);
    dp_out_begin(&node->out, &actions);
    dp_train_unload(node);
    assert_int_equal(node->train->steps, 0);
    assert_int_equal(node->train->tokens, 0);
    trained.u.trained.steps = 5;
    dp_train_event(node, &trained); /* On its way while the load was asked for. */
    assert_int_equal(node->train->steps, 0);
    kit_close(world);
}

/* Its author may be gone forever. */
static void a_listed_update_is_asked_of_all_after_only_its_author(void **state)
{
    static dp_actions actions;
    kit_world *world = three();
    dp_node *const node = world->nodes[1].node;
    const dp_time later = dp_time_after(node->now, DP_SECOND);
    const dp_peer other = kit_peer(0);
    dp_history_item item = {.peer = kit_peer(2), .root = {{77}}, .bytes = 100};
    dp_history_row row = {.round = node->ledger.round, .n = 1, .items = &item};

    (void)state;
    dp_out_begin(&node->out, &actions);
    assert_int_equal(dp_picker_want(node->picker, node->now, &row.items[0].root, 0, DP_USE_BLOB,
                                    DP_PRIORITY_ROUND, &node->out),
                     DP_OK);
    dp_picker_holder(node->picker, node->now, &row.items[0].root,
                     dp_node_member_index(node, &row.items[0].peer), &node->out);
    assert_false(dp_train_fetch_row(node, &row));
    dp_out_begin(&node->out, &actions);
    dp_picker_tick(node->picker, later, &node->out);
    assert_int_equal(actions.count, 1);
    assert_int_equal(actions.items[0].type, DP_DO_GET_INFO);
    assert_true(dp_peer_equal(&actions.items[0].u.get.peer, &other));
    kit_close(world);
}

/* Sets the state that this member is known to serve. */
static void serves(const dp_node *node, uint32_t peer, uint64_t round, const dp_hash *root)
{
    const dp_peer who = kit_peer(peer);
    const uint32_t index = dp_node_member_index(node, &who);
    dp_member *member = (dp_member *)(uintptr_t)dp_members_at(node->members, index);

    member->has_summary = true;
    member->summary.saved_round = round;
    member->summary.saved_root = *root;
    member->summary.saved_bytes = 1000;
    member->summary_at = node->now;
}

static void the_state_of_which_chunks_are_here_goes_before_a_newer_one(void **state)
{
    static dp_actions actions;
    kit_world *world = three();
    dp_node *const node = world->nodes[1].node;
    const uint64_t older = world->nodes[0].saved_round;
    const dp_hash root = world->nodes[0].saved_root;

    (void)state;
    kit_run_ms(world, 2000);
    const uint64_t newer = world->nodes[0].saved_round;
    assert_true(older > 0 && newer > older);
    serves(node, 0, older, &root);
    serves(node, 2, newer, &world->nodes[0].saved_root);
    dp_out_begin(&node->out, &actions);
    dp_train_unload(node);
    node->started_at = node->now;
    dp_node_restore_part(node, &(dp_hash){{5}});
    dp_catchup_state(node); /* A peer that gives it may be linked soon. */
    assert_false(node->catchup->wants_state);
    node->now = dp_time_after(node->now, DP_STATE_PATIENCE_US);
    dp_catchup_state(node);
    assert_int_equal(node->catchup->state_round, newer);
    node->catchup->wants_state = false;
    dp_node_restore_part(node, &root);
    dp_catchup_state(node);
    assert_true(node->catchup->wants_state);
    assert_int_equal(node->catchup->state_round, older);
    kit_close(world);
}

static void a_publication_of_no_steps_is_not_waited_for(void **state)
{
    kit_world *world = kit_open(1);

    (void)state;
    kit_run_ms(world, 3000);
    const uint64_t round = kit_look(world, 0).round;
    world->nodes[0].empty = 1;
    kit_run_ms(world, 3000);
    assert_int_equal(world->nodes[0].empty, 0);
    assert_true(kit_look(world, 0).round >
                round + 1); /* No other node ends the round of a single node. */
    kit_close(world);
}

/* Node 1 has asked node 3, which is gone, for the outcome of an exchange. */
static dp_mix_row in_doubt(kit_world *world)
{
    const uint8_t name = 7;
    dp_mix_row row = {.mark = DP_MIX_MARK_ASKED,
                      .initiator = true,
                      .has_f = true,
                      .order = 1,
                      .number = 1,
                      .ticket = 5,
                      .peer = kit_peer(3),
                      .own = {.bytes = 8, .steps = 4, .tokens = 40, .incarnation = 1},
                      .other = {.bytes = 8, .steps = 4, .tokens = 40, .incarnation = 1},
                      .f_bytes = 8};
    kit_node *const node = &world->nodes[1];

    kit_kill(world, 3);
    kit_kill(world, 1);
    const dp_peer self = kit_peer(1);
    row.id = dp_mix_id_of(&self, 1, row.number);
    row.own.root = dp_hash_of("test/own", dp_view_of(&name, 1));
    row.other.root = dp_hash_of("test/other", dp_view_of(&name, 1));
    row.f_root = dp_hash_of("test/f", dp_view_of(&name, 1));
    dp_mix_row_write(&row, node->exchange);
    node->has_exchange = true;
    kit_boot(world, 1);
    kit_link(world, 0, 1);
    kit_link(world, 2, 1);
    return row;
}

/* The message of node 3 that it has committed. */
static void tell_done(kit_world *world, const dp_mix_row *row)
{
    kit_event *const item = kit_push(world, 1, DP_EV_MESSAGE);
    uint8_t bytes[DP_MIX_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    dp_write_u8(&writer, DP_MSG_MIX_DONE);
    dp_write_u8(&writer, DP_MSG_VERSION);
    dp_write_bytes(&writer, row->id.bytes, sizeof row->id.bytes);
    dp_write_u64(&writer, row->ticket);
    dp_write_bytes(&writer, row->own.root.bytes, DP_HASH_BYTES);
    dp_write_bytes(&writer, row->other.root.bytes, DP_HASH_BYTES);
    dp_write_u64(&writer, row->own.incarnation);
    dp_write_u64(&writer, row->other.incarnation);
    item->bytes = kit_copy(dp_view_of(bytes, writer.size));
    item->event.u.message.peer = kit_peer(3);
    item->event.u.message.bytes = dp_view_of(item->bytes, writer.size);
    kit_drain(world);
}

static void an_exchange_waits_until_a_trainer_that_is_loaded_anew_has_its_frozen_work(void **state)
{
    kit_world *world = so_many(4);

    (void)state;
    const dp_mix_row row = in_doubt(world);
    kit_run_ms(world, 3000);
    assert_true(world->nodes[1].holds_frozen);
    world->nodes[1].errs = 3; /* Then its trainer rests, without a state. */
    until_diverged(world, 3);
    assert_int_equal(world->nodes[1].mixes, 0);
    tell_done(world, &row);
    assert_int_equal(world->nodes[1].mixes, 0);
    kit_run_ms(world, 65 * 1000);
    assert_int_equal(world->nodes[1].mixes_of_none, 0);
    assert_int_equal(kit_look(world, 0).listed_last, 3); /* In doubt no more. */
    kit_close(world);
}

/* A fence of this life of a node, as a record brings it. */
static void fence(kit_world *world, uint32_t to, uint32_t peer)
{
    static dp_actions actions;
    dp_node *const node = world->nodes[to].node;
    const dp_peer whom = kit_peer(peer);

    dp_out_begin(&node->out, &actions);
    dp_node_fence(node, &whom, 1);
}

static void the_fence_of_a_dead_partner_ends_the_doubt_and_of_nobody_else(void **state)
{
    kit_world *world = so_many(4);
    const dp_mix *mix = NULL;
    dp_mix_frozen_view frozen;

    (void)state;
    (void)in_doubt(world);
    mix = world->nodes[1].node->mix;
    assert_true(dp_mix_view(mix).in_doubt);
    fence(world, 1, 2);
    assert_true(dp_mix_view(mix).in_doubt);
    fence(world, 1, 3);
    assert_false(dp_mix_view(mix).in_doubt);
    assert_true(dp_mix_frozen_row(mix, &frozen)); /* Its own half stays its work. */
    kit_close(world);
}

static void a_record_that_fences_a_dead_partner_ends_the_doubt(void **state)
{
    kit_world *world = so_many(4);

    (void)state;
    (void)in_doubt(world);
    kit_run_ms(world, 2000);
    assert_true(dp_mix_view(world->nodes[1].node->mix).in_doubt);
    for (uint32_t i = 0; i < 3; i++) { /* As requested by the node in doubt. */
        const dp_peer asker = kit_peer(1);
        dp_request_fence(world->nodes[i].node, &(dp_fence){.peer = kit_peer(3), .incarnation = 1},
                         &asker);
    }
    for (uint32_t i = 0; i < 300 && world->nodes[1].node->ledger.roster[3].fenced == 0; i++) {
        kit_run_ms(world, 100); /* It must be dead by then. */
    }
    assert_int_equal(world->nodes[1].node->ledger.roster[3].fenced, 1);
    assert_false(dp_mix_view(world->nodes[1].node->mix).in_doubt);
    kit_close(world);
}

/* A publication that took F with it says so: then F is in a, and comes back with it alone. */
static void frozen_work_that_is_in_a_publication_comes_back_once(void **state)
{
    static dp_actions actions;
    kit_world *world = so_many(4);
    dp_mix_frozen_view frozen;

    (void)state;
    (void)in_doubt(world);
    kit_run_ms(world, 500);
    dp_node *const node = world->nodes[1].node;
    dp_out_begin(&node->out, &actions);
    dp_node_fence(node, &(dp_peer){{0}}, 1);
    const dp_peer partner = kit_peer(3);
    dp_node_fence(node, &partner, 1); /* Ended: only F remains. */
    assert_true(dp_mix_frozen_row(node->mix, &frozen));
    node->train->pending.has = true;
    node->train->pending.durable = true;
    for (uint32_t inside = 0; inside <= 1; inside++) {
        uint32_t restores = 0;
        node->train->pending.f_root = inside == 1 ? frozen.f_root : (dp_hash){{0}};
        dp_out_begin(&node->out, &actions);
        dp_train_bring_back(node);
        for (uint32_t i = 0; i < actions.count; i++) {
            restores +=
                actions.items[i].type == DP_DO_TRAINER_RESTORE && actions.items[i].u.restore.frozen
                    ? 1
                    : 0;
        }
        assert_int_equal(restores, 1 - inside);
        assert_int_equal(dp_mix_frozen_row(node->mix, &frozen), inside == 0);
    }
    kit_close(world);
}

/* F was deleted from the disk; then an object outside of the exchange. */
static void frozen_work_that_the_disk_lost_is_let_go_of(void **state)
{
    static dp_actions actions;

    (void)state;
    for (uint32_t which = 0; which < 2; which++) {
        kit_world *world = so_many(4);
        dp_mix_frozen_view frozen;
        (void)in_doubt(world);
        kit_run_ms(world, 500);
        dp_node *const node = world->nodes[1].node;
        const dp_mix_look before = dp_mix_view(node->mix);
        assert_true(before.in_doubt && dp_mix_frozen_row(node->mix, &frozen));
        const dp_hash roots[] = {frozen.f_root, {{0x77}}};
        dp_out_begin(&node->out, &actions);
        const bool ours = dp_mix_lost(node->mix, node->now, &roots[which], &node->out);
        assert_int_equal(ours, which == 0);
        assert_int_equal(dp_mix_frozen_row(node->mix, &frozen), which == 1);
        assert_int_equal(dp_mix_view(node->mix).in_doubt, which == 1);
        assert_false(which == 0 && dp_mix_lost(node->mix, node->now, &roots[which], &node->out));
        dp_mix_trainer_restore(node->mix, node->now, 65536, &node->out);
        assert_int_equal(kit_find(&actions, DP_DO_TRAINER_RESTORE) != NULL, which == 1);
        kit_close(world);
    }
}

/* Its partner has its half, by the fence: what was frozen for the exchange would count twice. */
static void a_fenced_node_gives_up_its_exchange_and_the_work_in_it(void **state)
{
    kit_world *world = so_many(4);
    dp_mix_frozen_view frozen;

    (void)state;
    (void)in_doubt(world);
    kit_run_ms(world, 500);
    dp_node *const node = world->nodes[1].node;
    assert_true(dp_mix_frozen_row(node->mix, &frozen));
    assert_int_equal(node->standing.state, DP_TRAINER_SET);
    fence(world, 1, 1);
    assert_false(dp_mix_view(node->mix).in_doubt);
    assert_false(dp_mix_frozen_row(node->mix, &frozen));
    assert_int_equal(node->standing.state,
                     DP_TRAINER_EMPTY); /* Its trainer still has it: it is loaded again. */
    kit_close(world);
}

/* A FORK continues without the records of this node's leases: these samples belong to others
 * now. */
static void
samples_that_a_fork_took_back_are_not_trained_and_what_was_is_worth_nothing(void **state)
{
    static dp_actions actions;
    kit_world *world = three();
    dp_node *const node = world->nodes[1].node;
    const uint64_t granted = dp_ledger_lease(&node->ledger, &node->self)->granted;

    (void)state;
    assert_true(granted > 0 && node->train->pending.has);
    node->train->pending.ready.round = node->ledger.round; /* decided */
    node->train->pending.ready.reach.leased = granted;
    dp_out_begin(&node->out, &actions);
    dp_train_bring_back(node);
    const dp_action *restore = kit_find(&actions, DP_DO_TRAINER_RESTORE);
    assert_non_null(restore);
    assert_int_equal(restore->u.restore.lambda, dp_train_lambda(node->chain->gap));
    assert_true(restore->u.restore.lambda > 0);
    assert_int_equal(dp_train_reach(node).leased, granted);
    node->train->pending.ready.reach.leased = granted + 1;
    dp_out_begin(&node->out, &actions);
    dp_train_bring_back(node);
    restore = kit_find(&actions, DP_DO_TRAINER_RESTORE);
    assert_non_null(restore);
    assert_int_equal(restore->u.restore.lambda, 0);
    assert_int_equal(dp_train_reach(node).leased, granted);
    kit_close(world);
}

/* A newcomer proves a state by the record after it. The signatures that prove the newest state are
 * only in the memory of the voters that made them: without a further record newcomers get the state
 * before. */
static void a_state_that_nobody_can_prove_gives_way_to_the_one_before(void **state)
{
    kit_world *world = three();

    (void)state;
    while (dp_saved_newest(world->nodes[0].node) != kit_look(world, 0).round) {
        kit_run_ms(world, 10);
    }
    kit_kill(world, 1);
    kit_kill(world, 2);
    const dp_node *const node = world->nodes[0].node;
    const uint64_t round = kit_look(world, 0).round;
    kit_run_ms(world, 1000);
    assert_int_equal(kit_look(world, 0).round, round);
    assert_int_equal(dp_saved_told(node)->round, round); /* It may yet be proven. */
    kit_run_ms(world, 5000);
    assert_int_equal(dp_saved_told(node)->round, round - 1);
    kit_boot(world, 1);
    kit_link_all(world);
    kit_run_ms(world, 3000);
    assert_true(kit_look(world, 0).round > round);
    assert_true(dp_saved_told(node)->round >= round);
    kit_close(world);
}

/* Members announce a state until they have saved the next, and serve it for longer. */
static void the_state_of_which_chunks_are_here_is_asked_for_when_nobody_tells_of_it(void **state)
{
    static dp_actions actions;
    kit_world *world = three();
    dp_node *const node = world->nodes[1].node;
    const uint64_t older = world->nodes[0].saved_round;
    const dp_hash root = world->nodes[0].saved_root;

    (void)state;
    kit_run_ms(world, 2000);
    const uint64_t newer = world->nodes[0].saved_round;
    assert_true(older > 0 && newer > older);
    serves(node, 0, newer, &world->nodes[0].saved_root);
    serves(node, 2, newer, &world->nodes[0].saved_root);
    dp_out_begin(&node->out, &actions);
    dp_train_unload(node);
    node->started_at = node->now;
    dp_node_restore_part(node, &root);
    dp_catchup_state(node);
    assert_true(node->catchup->wants_state);
    assert_int_equal(node->catchup->state_round, older);
    assert_true(dp_picker_wants(node->picker, &root));
    const dp_action *ask = kit_find(&actions, DP_DO_GET_INFO);
    assert_non_null(ask);
    assert_true(dp_hash_equal(&ask->u.get.root, &root));
    node->now = dp_time_after(node->now, DP_STATE_PATIENCE_US); /* No node serves it. */
    dp_out_begin(&node->out, &actions);
    dp_catchup_state(node);
    assert_int_equal(node->catchup->state_round, newer);
    assert_false(dp_picker_wants(node->picker, &root));
    kit_close(world);
}

/* Node 1 has chosen the older of two states of node 0, which node 2 also announced. */
static kit_world *with_an_older_state(dp_actions *actions, uint64_t *newer)
{
    kit_world *world = three();
    dp_node *const node = world->nodes[1].node;
    const uint64_t older = world->nodes[0].saved_round;
    const dp_hash root = world->nodes[0].saved_root;

    kit_run_ms(world, 2000);
    *newer = world->nodes[0].saved_round;
    assert_true(older > 0 && *newer > older);
    serves(node, 0, older, &root);
    serves(node, 2, older, &root);
    dp_out_begin(&node->out, actions);
    dp_train_unload(node);
    dp_catchup_state(node);
    assert_int_equal(node->catchup->state_round, older);
    return world;
}

/* So much later; node 0 announces its newer state, and node 2 stands still. */
static void later(kit_world *world, uint64_t us, uint64_t newer)
{
    dp_node *const node = world->nodes[1].node;

    node->now = dp_time_after(node->now, us);
    serves(node, 0, newer, &world->nodes[0].saved_root);
    dp_catchup_tick(node);
}

static void
a_state_that_nobody_who_lives_tells_of_gives_way_to_the_one_that_is_told_of(void **state)
{
    static dp_actions actions;
    uint64_t newer = 0;
    kit_world *world = with_an_older_state(&actions, &newer);
    dp_node *const node = world->nodes[1].node;

    (void)state;
    later(world, DP_SECOND, newer); /* Node 2 announced the older one a second ago. */
    assert_true(node->catchup->state_round < newer);
    later(world, DP_SECOND, newer);
    assert_int_equal(node->catchup->state_round, newer);
    assert_true(dp_picker_wants(node->picker, &world->nodes[0].saved_root));
    kit_close(world);
}

static void a_state_of_which_something_came_is_stayed_with(void **state)
{
    static dp_actions actions;
    uint64_t newer = 0;
    kit_world *world = with_an_older_state(&actions, &newer);
    dp_node *const node = world->nodes[1].node;
    const dp_hash leaf = {{0}};
    dp_event info = {.type = DP_EV_OBJECT_INFO, .now = node->now};

    (void)state;
    info.u.object.root = node->catchup->state_root;
    info.u.object.peer = kit_peer(2);
    info.u.object.size = 1000;
    info.u.object.leaves = &leaf;
    dp_out_begin(&node->out, &actions);
    dp_picker_info(node->picker, node->now, &info, &node->out);
    later(world, 2 * DP_SECOND, newer);
    assert_true(node->catchup->state_round < newer);
    kit_close(world);
}

/* A peer that asked for a chunk of the checkpoint was refused; no other peer should ask for it. */
static void a_checkpoint_that_cannot_be_read_is_told_to_nobody(void **state)
{
    kit_world *world = three();
    const dp_node *const node = world->nodes[0].node;
    dp_event lost = {.type = DP_EV_OBJECT_LOST};

    (void)state;
    kit_run_ms(world, 2000);
    const dp_saved *told = dp_saved_told(node);
    assert_non_null(told);
    const uint64_t round = told->round;
    lost.u.object.root = told->root;
    kit_event_in(world, 0, &lost);
    told = dp_saved_told(node);
    assert_true(told == NULL || !dp_hash_equal(&told->root, &lost.u.object.root));
    kit_run_ms(world, 3000);
    assert_true(kit_look(world, 0).round > round); /* It trains on, and saves the next one. */
    told = dp_saved_told(node);
    assert_true(told != NULL && told->round > round);
    kit_close(world);
}

/* Only this keeps a state that was fetched from a peer: its remaining chunks are dropped. */
static void of_a_state_that_came_from_a_peer_and_cannot_be_read_nothing_stays(void **state)
{
    static dp_actions actions;
    const dp_hash root = dp_hash_of("test/state", dp_view_text("fetched"));
    kit_world *world = three();
    dp_node *const node = world->nodes[1].node;
    dp_event lost = {.type = DP_EV_OBJECT_LOST, .now = node->now};

    (void)state;
    dp_out_begin(&node->out, &actions);
    dp_saved_add(node, 1000, &root, 1000, true);
    assert_true(dp_hash_equal(&dp_saved_told(node)->root, &root));
    lost.u.object.root = root;
    dp_node_step(node, &lost, &actions);
    const dp_action *drop = kit_find(&actions, DP_DO_OBJECT_DROP);
    assert_non_null(drop);
    assert_true(dp_hash_equal(&drop->u.keep.root, &root));
    assert_false(dp_hash_equal(&dp_saved_told(node)->root, &root));
    kit_close(world);
}

static void a_blob_that_cannot_be_read_any_more_is_fetched_again(void **state)
{
    kit_world *world = three();
    dp_node *const node = world->nodes[1].node;
    dp_claim *const claim = &node->round->claims[node->round->n_claims++];
    dp_event lost = {.type = DP_EV_OBJECT_LOST};

    (void)state;
    lost.u.object.root = dp_hash_of("test/blob", dp_view_text("lost"));
    *claim = (dp_claim){.ready = {.peer = kit_peer(2),
                                  .round = node->ledger.round + 1,
                                  .base = node->ledger.base,
                                  .root = lost.u.object.root},
                        .held = true,
                        /* The result of this check will be about lost bytes. */
                        .checking = true};
    dp_node_hold(node, &lost.u.object.root, 100);
    kit_event_in(world, 1, &lost);
    assert_false(claim->held);
    assert_false(claim->checking);
    assert_false(dp_node_holds(node, &lost.u.object.root));
    assert_true(dp_picker_wants(node->picker, &lost.u.object.root));
    kit_close(world);
}

/* Imported weights: the founder has them, the others fetch them, and no node initializes any from
 * the seed. */
static void a_run_starts_from_the_weights_of_its_manifest(void **state)
{
    kit_world *world = kit_open(3);

    (void)state;
    world->manifest.init = dp_hash_of("test/theta", dp_view_text("from elsewhere"));
    world->manifest.init_bytes = world->state_bytes;
    kit_hold(&world->nodes[0], &world->manifest.init);
    for (uint32_t i = 0; i < 3; i++) {
        kit_kill(world, i);
        kit_boot(world, i);
    }
    assert_true(dp_hash_equal(&world->nodes[0].theta, &world->manifest.init));
    assert_int_equal(world->states_fetched, 0);
    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    for (uint32_t i = 1; i < 3; i++) { /* Equal states are checked at every round. */
        assert_true(kit_holds(&world->nodes[i], &world->manifest.init));
        assert_true(world->nodes[i].round > 1);
    }
    kit_close(world);
}

/* Without them a node cannot train; it waits and does not initialize others. */
static void without_its_first_weights_a_node_waits(void **state)
{
    kit_world *world = kit_open(1);

    (void)state;
    world->manifest.init = dp_hash_of("test/theta", dp_view_text("from elsewhere"));
    kit_kill(world, 0);
    world->nodes[0].theta = (dp_hash){{0}};
    kit_boot(world, 0);
    kit_run_ms(world, 2000);
    assert_true(dp_hash_is_zero(&world->nodes[0].theta));
    assert_int_equal(kit_look(world, 0).round, 0);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trainer_that_errs_again_and_again_rests_and_is_tried_later),
        cmocka_unit_test(one_wrong_state_is_loaded_again_at_once_and_forgiven_in_time),
        cmocka_unit_test(a_node_wrong_in_the_first_rounds_takes_the_state_of_another),
        cmocka_unit_test(a_state_that_nobody_can_prove_gives_way_to_the_one_before),
        cmocka_unit_test(steps_of_before_a_load_are_no_reason_to_publish),
        cmocka_unit_test(a_listed_update_is_asked_of_all_after_only_its_author),
        cmocka_unit_test(the_state_of_which_chunks_are_here_goes_before_a_newer_one),
        cmocka_unit_test(a_publication_of_no_steps_is_not_waited_for),
        cmocka_unit_test(the_state_of_which_chunks_are_here_is_asked_for_when_nobody_tells_of_it),
        cmocka_unit_test(
            a_state_that_nobody_who_lives_tells_of_gives_way_to_the_one_that_is_told_of),
        cmocka_unit_test(a_state_of_which_something_came_is_stayed_with),
        cmocka_unit_test(a_checkpoint_that_cannot_be_read_is_told_to_nobody),
        cmocka_unit_test(of_a_state_that_came_from_a_peer_and_cannot_be_read_nothing_stays),
        cmocka_unit_test(a_blob_that_cannot_be_read_any_more_is_fetched_again),
        cmocka_unit_test(a_run_starts_from_the_weights_of_its_manifest),
        cmocka_unit_test(without_its_first_weights_a_node_waits),
        cmocka_unit_test(the_fence_of_a_dead_partner_ends_the_doubt_and_of_nobody_else),
        cmocka_unit_test(a_record_that_fences_a_dead_partner_ends_the_doubt),
        cmocka_unit_test(frozen_work_that_is_in_a_publication_comes_back_once),
        cmocka_unit_test(frozen_work_that_the_disk_lost_is_let_go_of),
        cmocka_unit_test(a_fenced_node_gives_up_its_exchange_and_the_work_in_it),
        cmocka_unit_test(
            samples_that_a_fork_took_back_are_not_trained_and_what_was_is_worth_nothing),
        cmocka_unit_test(an_exchange_waits_until_a_trainer_that_is_loaded_anew_has_its_frozen_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
