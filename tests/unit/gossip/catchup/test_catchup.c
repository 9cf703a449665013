/* Tests of catch-up: the peer that a node asks for missed records, the time at which it asks
 * another one, and the peers whose state it trusts. */
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/proof.h"
#include "gossip/context/context.h"
#include "gossip/member/members_internal.h"
#include "gossip/node/node.h"
#include "gossip/training/state_load.h"
#include "gossip/training/training.h"
#include "tests/unit/gossip/kit/node_kit.h"

static dp_actions actions;

/* Requests for records among the actions of the node, and the receiver of the last one. */
static uint32_t asked(dp_peer *whom)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < actions.count; i++) {
        const dp_action *action = &actions.items[i];
        if (action->type == DP_DO_SEND &&
            dp_msg_type_of(action->u.send.bytes) == DP_MSG_RECORDS_GET) {
            *whom = action->u.send.peer;
            count++;
        }
    }
    return count;
}

static uint32_t tick(dp_node *node, uint64_t later_us, dp_peer *whom)
{
    dp_out_begin(&node->out, &actions);
    node->now = dp_time_after(node->now, later_us);
    dp_catchup_tick(node);
    return asked(whom);
}

static void a_peer_silent_for_a_second_is_not_asked_again(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *const node = world->nodes[0].node;
    const dp_peer first = kit_peer(1);
    const dp_peer second = kit_peer(2);
    dp_peer whom = {{0}};

    (void)state;
    dp_catchup_hint(node, &first, node->ledger.slot + 5);
    assert_true(dp_catchup_behind(node));
    assert_int_equal(tick(node, 0, &whom), 1);
    assert_true(dp_peer_equal(&whom, &first));
    dp_catchup_hint(node, &second, node->ledger.slot + 6);
    assert_int_equal(dp_catchup_wake(node).us, node->now.us + DP_SECOND);
    assert_int_equal(tick(node, DP_SECOND - 1, &whom), 0);
    assert_int_equal(tick(node, 1, &whom), 1);
    assert_true(dp_peer_equal(&whom, &second));
    assert_int_equal(tick(node, DP_SECOND, &whom), 0); /* It gave none either: no peer has more. */
    assert_false(dp_catchup_behind(node));
    kit_close(world);
}

/* Twelve of them, each with more to tell, took a join from 0.6 s to 50 s. */
static void members_are_asked_before_anybody_else(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *const node = world->nodes[0].node;
    const dp_peer member = kit_peer(2);
    dp_peer whom = {{0}};

    (void)state;
    for (uint32_t i = 1; i < 3; i++) {
        dp_member *row = (dp_member *)(uintptr_t)dp_members_at(node->members, i);
        row->summary.slot = node->ledger.slot + (i == 1 ? 1000000 : 5);
        row->has_summary = true;
    }
    ((dp_member *)(uintptr_t)dp_members_at(node->members, dp_node_member_index(node, &member)))
        ->in_roster = true;
    const dp_peer liar = kit_peer(1);
    dp_members_mark(node->members, dp_node_member_index(node, &liar), false, false);
    dp_catchup_hint(node, &liar, node->ledger.slot + 1000000);
    node->members->slot_most = node->ledger.slot + 1000000;
    assert_int_equal(tick(node, 0, &whom), 1);
    assert_true(dp_peer_equal(&whom, &member));
    kit_close(world);
}

static void one_request_at_a_time_is_under_way(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *const node = world->nodes[0].node;
    const dp_peer first = kit_peer(1);
    dp_peer whom = {{0}};

    (void)state;
    dp_catchup_hint(node, &first, node->ledger.slot + 5);
    assert_int_equal(tick(node, 0, &whom), 1);
    dp_catchup_hint(node, &first, node->ledger.slot + 7);
    for (uint32_t i = 0; i < 9; i++) {
        assert_int_equal(tick(node, DP_SECOND / 10, &whom), 0);
    }
    kit_close(world);
}

/* Their sender has just spoken: it has a second more, and is not asked again at once. */
static void records_that_do_not_follow_put_the_next_request_off(void **state)
{
    static uint8_t room[DP_MESSAGE_MAX];
    kit_world *world = kit_together(3);
    dp_node *const node = world->nodes[0].node;
    const uint64_t slot = world->nodes[0].slots;
    const kit_record *const old = &world->nodes[0].records[slot];
    const dp_peer first = kit_peer(1);
    const dp_peer second = kit_peer(2);
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_peer whom = {{0}};

    (void)state;
    dp_wire_begin_records(&writer, slot);
    assert_true(dp_wire_add_record(&writer, dp_view_of(old->record, old->record_size),
                                   dp_view_of(old->cert, old->cert_size)));
    dp_catchup_hint(node, &first, slot + 5);
    assert_int_equal(tick(node, 0, &whom), 1);
    assert_true(dp_peer_equal(&whom, &first));
    dp_catchup_hint(node, &second, slot + 6);
    assert_int_equal(tick(node, DP_SECOND / 2, &whom), 0);
    assert_int_equal(dp_catchup_records(node, dp_view_of(room, writer.size), &first), DP_OK);
    assert_int_equal(asked(&whom), 0);
    assert_int_equal(dp_catchup_wake(node).us, node->now.us + DP_SECOND);
    assert_int_equal(tick(node, DP_SECOND - 1, &whom), 0);
    assert_int_equal(tick(node, 1, &whom), 1);
    assert_true(dp_peer_equal(&whom, &second));
    kit_close(world);
}

/* Sets the state that this member says it serves. */
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

static void a_state_that_the_chain_does_not_certify_is_not_fetched(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *const node = world->nodes[0].node;
    const uint64_t round = world->nodes[1].saved_round;
    const dp_hash lie = {{7}};

    (void)state;
    assert_true(round > 0);
    dp_out_begin(&node->out, &actions);
    dp_train_unload(node);
    serves(node, 1, round, &lie);
    serves(node, 2, node->ledger.round + 1, &lie); /* Nor one of a round that is not decided. */
    dp_catchup_state(node);
    assert_false(node->catchup->wants_state);
    assert_false(dp_picker_wants(node->picker, &lie));
    serves(node, 1, round, &world->nodes[1].saved_root);
    dp_catchup_state(node);
    assert_true(node->catchup->wants_state);
    assert_true(dp_picker_wants(node->picker, &world->nodes[1].saved_root));
    assert_false(dp_picker_wants(node->picker, &lie));
    kit_close(world);
}

/* A peer that announces a certified state with a false size would make all its holders count as
 * liars. */
static void a_state_is_taken_however_long_somebody_says_that_it_is(void **state)
{
    static const dp_hash leaves[DP_CHUNKS_MAX];
    kit_world *world = kit_together(3);
    dp_node *const node = world->nodes[0].node;
    const dp_hash root = world->nodes[1].saved_root;
    dp_event event = {.type = DP_EV_OBJECT_INFO};

    (void)state;
    dp_out_begin(&node->out, &actions);
    dp_train_unload(node);
    serves(node, 1, world->nodes[1].saved_round, &root); /* 1,000 bytes */
    dp_catchup_state(node);
    event.u.object.peer = kit_peer(2);
    event.u.object.root = root;
    event.u.object.size = dp_manifest_state_bytes_max(&node->manifest) + 1;
    event.u.object.leaves = leaves;
    kit_event_in(world, 0, &event);
    assert_null(kit_find(world->actions, DP_DO_OBJECT_BEGIN)); /* But not as long as no state is. */
    event.u.object.peer = kit_peer(1);
    event.u.object.size = 77;
    kit_event_in(world, 0, &event);
    assert_non_null(kit_find(world->actions, DP_DO_OBJECT_BEGIN));
    kit_close(world);
}

/* The peer that was last asked for the object, or a zero id. */
static dp_peer asked_for(const dp_hash *root)
{
    dp_peer whom = {{0}};

    for (uint32_t i = 0; i < actions.count; i++) {
        const dp_action *action = &actions.items[i];
        if (action->type == DP_DO_GET_INFO && dp_hash_equal(&action->u.get.root, root)) {
            whom = action->u.get.peer;
        }
    }
    return whom;
}

static void when_the_link_to_who_was_asked_breaks_another_is_asked_at_once(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *const node = world->nodes[0].node;
    const dp_hash root = {{9}};
    dp_event event = {.type = DP_EV_LINK_DOWN, .u.link.cause = DP_LINK_RESET};

    (void)state;
    dp_out_begin(&node->out, &actions);
    assert_int_equal(dp_picker_want(node->picker, node->now, &root, 100, DP_USE_STATE,
                                    DP_PRIORITY_STATE, &node->out),
                     DP_OK);
    dp_picker_holders_all(node->picker, node->now, &root, &node->out);
    const dp_peer first = asked_for(&root);
    assert_false(dp_peer_equal(&first, &(dp_peer){{0}}));
    event.u.link.peer = first;
    event.now = node->now;
    event.wall_ms = node->wall_ms;
    dp_node_step(node, &event, &actions);
    const dp_peer second = asked_for(&root);
    assert_false(dp_peer_equal(&second, &(dp_peer){{0}}));
    assert_false(dp_peer_equal(&second, &first));
    kit_close(world);
}

static void updates_that_a_loaded_state_holds_are_not_fetched_any_more(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *const node = world->nodes[0].node;
    const uint64_t round = node->ledger.round;
    const dp_history_row *row = dp_chain_row(node, round);
    const dp_event event = {.type = DP_EV_TRAINER_AT,
                            .u.at = {.round = round, .root = world->nodes[0].theta}};

    (void)state;
    assert_true(row != NULL && row->n > 0);
    const dp_hash root = row->items[0].root;
    dp_node_unhold(node, &root);
    dp_out_begin(&node->out, &actions);
    assert_int_equal(dp_picker_want(node->picker, node->now, &root, 8, DP_USE_BLOB,
                                    DP_PRIORITY_ROUND, &node->out),
                     DP_OK);
    dp_train_unload(node);
    node->standing.state = DP_TRAINER_MOVING;
    node->train->moving_round = round;
    dp_train_at(node, &event);
    assert_int_equal(node->standing.state, DP_TRAINER_SET);
    assert_false(dp_picker_wants(node->picker, &root));
    kit_close(world);
}

static void a_record_that_may_not_follow_is_counted_and_ends_its_message(void **state)
{
    static uint8_t room[DP_MESSAGE_MAX];
    kit_world *world = kit_together(3);
    dp_node *const node = world->nodes[0].node;
    const kit_record *const old = &world->nodes[0].records[world->nodes[0].slots];
    const dp_peer first = kit_peer(1);
    const uint64_t rejected = node->rejected;
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    dp_wire_begin_records(&writer, node->ledger.slot + 1);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(dp_wire_add_record(&writer, dp_view_text("no record at all"),
                                       dp_view_of(old->cert, old->cert_size)));
    }
    node->proof->record_asked_at = (dp_time){0};
    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    assert_int_equal(dp_catchup_records(node, dp_view_of(room, writer.size), &first), DP_OK);
    assert_int_equal(node->rejected, rejected + 1);
    assert_int_equal(node->catchup->size, 0);
    assert_int_equal(node->proof->record_asked_at.us, node->now.us);
    kit_close(world);
}

static dp_member *row_of(const dp_node *node, uint32_t peer)
{
    const dp_peer who = kit_peer(peer);

    return (dp_member *)(uintptr_t)dp_members_at(node->members, dp_node_member_index(node, &who));
}

static void a_node_is_behind_by_the_hint_of_a_linked_member_that_is_not_doubted(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *const node = world->nodes[0].node;
    const dp_peer first = kit_peer(1);
    dp_member *row = row_of(node, 1);

    (void)state;
    assert_false(dp_catchup_behind(node));
    dp_catchup_hint(node, &first, node->ledger.slot);
    assert_false(dp_catchup_behind(node));
    dp_catchup_hint(node, &first, node->ledger.slot + 1);
    assert_true(dp_catchup_behind(node));
    row->linked = false;
    assert_false(dp_catchup_behind(node));
    row->linked = true;
    row->in_roster = row->voter = false; /* A guest. */
    assert_false(dp_catchup_behind(node));
    row->in_roster = row->voter = true;
    assert_true(dp_catchup_behind(node));
    node->catchup->doubt.rows[0] =
        (dp_backoff_row){.peer = first, .failures = DP_BACKOFF_FAILURES, .at = node->now};
    assert_false(dp_catchup_behind(node));
    node->catchup->doubt.rows[0].failures = 0;
    node->catchup->hint_peer = kit_peer(5); /* Nobody known. */
    assert_false(dp_catchup_behind(node));
    kit_close(world);
}

static void a_node_is_behind_if_a_linked_member_of_its_chain_is_two_slots_ahead(void **state)
{
    kit_world *world = kit_together(2);
    dp_node *const node = world->nodes[0].node;
    const dp_peer first = kit_peer(1);
    dp_member *row = row_of(node, 1);

    (void)state;
    node->catchup->hint_slot = 0;
    row->has_summary = true;
    row->summary.fork = dp_fork_tag(&node->ledger.fork);
    row->summary.slot = node->members->slot_most = node->ledger.slot + 1;
    assert_false(dp_catchup_behind(node)); /* That one is being decided. */
    row->summary.slot = node->members->slot_most = node->ledger.slot + 2;
    assert_true(dp_catchup_behind(node));
    row->has_summary = false;
    assert_false(dp_catchup_behind(node));
    row->has_summary = true;
    row->in_roster = row->voter = false;
    assert_false(dp_catchup_behind(node));
    row->in_roster = row->voter = true;
    node->ledger.forks[node->ledger.n_forks++] = (dp_hash){{9, 9}};
    row->summary.fork = dp_fork_tag(&node->ledger.forks[0]);
    assert_false(dp_catchup_behind(node));
    row->summary.fork = dp_fork_tag(&node->ledger.fork);
    node->ledger.n_forks--;
    node->catchup->doubt.rows[0] =
        (dp_backoff_row){.peer = first, .failures = DP_BACKOFF_FAILURES, .at = node->now};
    assert_false(dp_catchup_behind(node));
    node->catchup->doubt.rows[0].failures = 0;
    assert_true(dp_catchup_behind(node));
    kit_close(world);
}

static void nobody_is_asked_while_a_record_is_written_or_could_not_be(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *const node = world->nodes[0].node;
    const dp_peer first = kit_peer(1);
    dp_peer whom = {{0}};

    (void)state;
    dp_catchup_hint(node, &first, node->ledger.slot + 5);
    node->chain->op = 77;
    assert_int_equal(tick(node, 0, &whom), 0);
    node->chain->op = 0;
    node->chain->failed = true;
    assert_int_equal(tick(node, 0, &whom), 0);
    node->chain->failed = false;
    assert_int_equal(tick(node, 0, &whom), 1);
    assert_int_equal(dp_catchup_wake(node).us, node->now.us + DP_SECOND);
    node->chain->op = 77; /* Its end goes on with it. */
    assert_int_equal(dp_catchup_wake(node).us, DP_NEVER.us);
    node->chain->op = 0;
    node->chain->failed = true;
    assert_int_equal(dp_catchup_wake(node).us, DP_NEVER.us);
    node->chain->failed = false;
    node->now.us += 3 * DP_SECOND; /* Late, and not at once for ever. */
    assert_int_equal(dp_catchup_wake(node).us, node->now.us + DP_SECOND / 10);
    node->catchup->asked_at.us = node->now.us - DP_SECOND;
    assert_int_equal(dp_catchup_wake(node).us, node->now.us + DP_SECOND / 10);
    kit_close(world);
}

static void a_request_names_the_next_slot_and_as_many_records_as_a_message_holds(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *const node = world->nodes[0].node;
    const dp_peer first = kit_peer(1);
    uint64_t slot = 0;
    uint32_t count = 0;
    dp_peer whom = {{0}};

    (void)state;
    dp_catchup_hint(node, &first, node->ledger.slot + 5);
    assert_int_equal(tick(node, 0, &whom), 1);
    const dp_action *send = kit_find(&actions, DP_DO_SEND);
    assert_int_equal(dp_wire_read_records_get(send->u.send.bytes, &slot, &count), DP_OK);
    assert_int_equal(slot, node->ledger.slot + 1);
    assert_int_equal(count, DP_RECORDS_PER_MESSAGE);
    kit_close(world);
}

/* The peer of a hint that is not linked, or that is doubted while another is not. */
static void the_peer_of_a_hint_is_asked_if_it_is_linked_and_no_better_one_is_known(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *const node = world->nodes[0].node;
    const dp_peer first = kit_peer(1);
    const dp_peer second = kit_peer(2);
    dp_peer whom = {{0}};

    (void)state;
    node->members->slot_most = node->ledger.slot;
    dp_catchup_hint(node, &first, node->ledger.slot + 5);
    row_of(node, 1)->linked = false;
    assert_int_equal(tick(node, 0, &whom), 0);
    row_of(node, 1)->linked = true;
    node->catchup->doubt.rows[0] =
        (dp_backoff_row){.peer = first, .failures = DP_BACKOFF_FAILURES, .at = node->now};
    dp_member *other = row_of(node, 2);
    other->has_summary = true;
    other->summary.slot = node->members->slot_most = node->ledger.slot + 1;
    other->summary.fork = dp_fork_tag(&node->ledger.fork);
    assert_int_equal(tick(node, 0, &whom), 1);
    assert_true(dp_peer_equal(&whom, &second));
    node->catchup->asked_at = (dp_time){0};
    other->has_summary = false; /* A doubted one is better than none. */
    assert_int_equal(tick(node, 0, &whom), 1);
    assert_true(dp_peer_equal(&whom, &first));
    kit_close(world);
}

/* So many records with one byte too much, none, or of a slot that does not follow. */
static void records_of_no_use_are_let_go_without_a_word(void **state)
{
    static uint8_t room[DP_MESSAGE_MAX + 1];
    kit_world *world = kit_together(2);
    dp_node *const node = world->nodes[0].node;
    const kit_record *const old = &world->nodes[0].records[world->nodes[0].slots];
    const dp_peer first = kit_peer(1);
    const dp_view record = dp_view_of(old->record, old->record_size);
    const dp_view cert = dp_view_of(old->cert, old->cert_size);

    (void)state;
    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    const uint64_t rejected = node->rejected;
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_wire_begin_records(&writer, node->ledger.slot + 2);
    assert_true(dp_wire_add_record(&writer, record, cert));
    assert_int_equal(dp_catchup_records(node, dp_view_of(room, writer.size), &first), DP_OK);
    writer = dp_writer_of(room, sizeof room);
    dp_wire_begin_records(&writer, node->ledger.slot + 1);
    assert_int_equal(dp_catchup_records(node, dp_view_of(room, writer.size), &first), DP_OK);
    assert_int_equal(node->catchup->size, 0);
    assert_int_equal(dp_catchup_records(node, dp_view_of(room, sizeof room), &first), DP_OK);
    assert_int_equal(node->rejected, rejected);
    assert_int_equal(world->actions->count, 0);
    assert_int_not_equal(dp_catchup_records(node, dp_view_of(room, sizeof room - 1), &first),
                         DP_OK);
    kit_close(world);
}

static void a_second_message_is_not_taken_while_one_is_worked_off(void **state)
{
    static uint8_t room[DP_MESSAGE_MAX];
    kit_world *world = kit_together(2);
    dp_node *const node = world->nodes[0].node;
    const kit_record *const old = &world->nodes[0].records[world->nodes[0].slots];
    const dp_peer first = kit_peer(1);
    const dp_peer second = kit_peer(2);
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    dp_wire_begin_records(&writer, world->nodes[0].slots);
    assert_true(dp_wire_add_record(&writer, dp_view_of(old->record, old->record_size),
                                   dp_view_of(old->cert, old->cert_size)));
    node->chain->op = 77; /* Until this is written nothing is looked at. */
    assert_int_equal(dp_catchup_records(node, dp_view_of(room, writer.size), &first), DP_OK);
    assert_int_equal(node->catchup->size, writer.size);
    assert_int_equal(node->catchup->next, 0);
    assert_int_equal(dp_catchup_records(node, dp_view_of(room, writer.size), &second), DP_OK);
    assert_true(dp_peer_equal(&node->catchup->sender, &first));
    node->catchup->asked_at = node->now;
    assert_int_equal(dp_catchup_wake(node).us, DP_NEVER.us);
    node->chain->op = 0;
    node->chain->failed = true;
    dp_catchup_next(node);
    assert_int_equal(node->catchup->next, 0);
    node->chain->failed = false;
    dp_catchup_next(node);
    assert_int_equal(node->catchup->size, 0);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_silent_for_a_second_is_not_asked_again),
        cmocka_unit_test(members_are_asked_before_anybody_else),
        cmocka_unit_test(one_request_at_a_time_is_under_way),
        cmocka_unit_test(records_that_do_not_follow_put_the_next_request_off),
        cmocka_unit_test(when_the_link_to_who_was_asked_breaks_another_is_asked_at_once),
        cmocka_unit_test(updates_that_a_loaded_state_holds_are_not_fetched_any_more),
        cmocka_unit_test(a_state_that_the_chain_does_not_certify_is_not_fetched),
        cmocka_unit_test(a_state_is_taken_however_long_somebody_says_that_it_is),
        cmocka_unit_test(a_record_that_may_not_follow_is_counted_and_ends_its_message),
        cmocka_unit_test(a_node_is_behind_by_the_hint_of_a_linked_member_that_is_not_doubted),
        cmocka_unit_test(a_node_is_behind_if_a_linked_member_of_its_chain_is_two_slots_ahead),
        cmocka_unit_test(nobody_is_asked_while_a_record_is_written_or_could_not_be),
        cmocka_unit_test(a_request_names_the_next_slot_and_as_many_records_as_a_message_holds),
        cmocka_unit_test(the_peer_of_a_hint_is_asked_if_it_is_linked_and_no_better_one_is_known),
        cmocka_unit_test(records_of_no_use_are_let_go_without_a_word),
        cmocka_unit_test(a_second_message_is_not_taken_while_one_is_worked_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
