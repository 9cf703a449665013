/* Requests that wait for the next record: the accepted ones, their lifetime, and those that a
 * record lists. */
#include "gossip/context/context.h"
#include "gossip/requests/request_msg.h"
#include "gossip/requests/requests.h"
#include "gossip/round/config_part.h"
#include "tests/unit/gossip/kit/node_kit.h"

static dp_node *begin(kit_world *world)
{
    dp_node *node = world->nodes[0].node;

    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    node->changed = false;
    return node;
}

static dp_remove leave_of(const dp_node *node, uint32_t who)
{
    const dp_crypto crypto = kit_crypto(who);
    dp_remove remove = {.peer = kit_peer(who), .reason = DP_REMOVE_LEFT, .incarnation = 1};

    assert_true(dp_remove_sign(&remove, &crypto, DP_KEY_IDENTITY, &node->run));
    return remove;
}

static dp_remove revoke_of(const dp_node *node, uint32_t who, uint32_t by)
{
    const dp_crypto crypto = kit_crypto(by);
    dp_remove remove = {
        .peer = kit_peer(who), .reason = DP_REMOVE_REVOKED, .incarnation = 1, .by = kit_peer(by)};

    assert_true(dp_remove_sign(&remove, &crypto, DP_KEY_IDENTITY, &node->run));
    return remove;
}

static dp_roster_entry *entry_of(dp_node *node, uint32_t who)
{
    const dp_peer peer = kit_peer(who);

    return &node->ledger.roster[dp_ledger_find(&node->ledger, &peer)];
}

static void a_member_that_wants_to_leave_is_told_of_to_the_voters_once(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = begin(world);
    dp_remove remove = leave_of(node, 1);
    dp_remove read;

    (void)state;
    remove.signature[5] ^= 1;
    assert_int_equal(dp_request_removal(node, &remove), DP_BADSIG);
    remove.signature[5] ^= 1;
    assert_int_equal(dp_request_removal(node, &remove), DP_OK);
    assert_true(node->changed);
    assert_int_equal(node->requests->n_removes, 1);
    assert_false(dp_node_revoked(node, &remove.peer));
    const dp_action *send = kit_find(world->actions, DP_DO_SEND);
    assert_true(send != NULL && send->u.send.to == DP_TO_PEER);
    assert_int_equal(dp_remove_msg_read(send->u.send.bytes, &read), DP_OK);
    assert_memory_equal(&read.signature, &remove.signature, sizeof read.signature);
    const uint32_t sent = world->actions->count;
    node->changed = false;
    assert_int_equal(dp_request_removal(node, &remove), DP_OK);
    assert_true(!node->changed && world->actions->count == sent);
    assert_int_equal(node->requests->n_removes, 1);
    dp_remove stranger = leave_of(node, 9);
    assert_int_equal(dp_request_removal(node, &stranger), DP_OK);
    assert_int_equal(node->requests->n_removes, 1);
    remove.reason = DP_REMOVE_ABSENT;
    assert_int_equal(dp_request_removal(node, &remove), DP_DENIED);
    remove.reason = DP_REMOVE_HARMFUL;
    assert_int_equal(dp_request_removal(node, &remove), DP_DENIED);
    node->requests->n_removes = DP_REMOVES_MAX;
    dp_remove another = leave_of(node, 2);
    assert_int_equal(dp_request_removal(node, &another), DP_AGAIN);
    node->requests->n_removes = DP_REMOVES_MAX - 1;
    assert_int_equal(dp_request_removal(node, &another), DP_OK);
    assert_int_equal(node->requests->n_removes, DP_REMOVES_MAX);
    kit_close(world);
}

static void a_revoked_member_is_bound_at_once_and_everybody_told(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = begin(world);
    const dp_remove revoke = revoke_of(node, 2, 1);

    (void)state;
    entry_of(node, 2)->caps &= ~(uint32_t)DP_CAP_ADMIN;
    entry_of(node, 1)->caps &= ~(uint32_t)DP_CAP_ADMIN;
    assert_int_equal(dp_request_removal(node, &revoke), DP_DENIED);
    entry_of(node, 1)->caps |= DP_CAP_ADMIN;
    assert_int_equal(dp_request_removal(node, &revoke), DP_OK);
    assert_true(dp_node_revoked(node, &revoke.peer));
    assert_false(dp_node_revoked(node, &revoke.by));
    const dp_action *send = kit_find(world->actions, DP_DO_SEND);
    assert_true(send != NULL && send->u.send.to == DP_TO_ALL);
    const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
    assert_non_null(note);
    assert_int_equal(note->u.note.code, DP_NOTE_REMOVED);
    assert_string_equal(note->u.note.cause, "revoked");
    assert_non_null(kit_find(world->actions, DP_DO_HANGUP));
    begin(world);
    dp_requests_repeat(node);
    assert_non_null(kit_find(world->actions, DP_DO_SEND));
    begin(world);
    entry_of(node, 2)->gone = DP_REMOVE_REVOKED; /* The chain has it. */
    dp_requests_forget_done(node);
    assert_int_equal(node->requests->n_removes, 0);
    dp_requests_repeat(node);
    assert_null(kit_find(world->actions, DP_DO_SEND));
    entry_of(node, 2)->gone = 0;
    kit_close(world);
}

static void a_request_for_a_fence_stands_for_thirty_seconds_and_is_one_for_each_asker(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = begin(world);
    const dp_peer askers[2] = {kit_peer(1), kit_peer(0)};
    dp_fence fence = {.peer = kit_peer(2), .incarnation = 5};

    (void)state;
    dp_request_fence(node, &fence, &askers[0]);
    fence.incarnation = 7;
    dp_request_fence(node, &fence, &askers[0]);
    assert_int_equal(node->requests->n_fences, 1);
    assert_int_equal(node->requests->fences[0].fence.incarnation, 7);
    assert_int_equal(node->requests->fences[0].asked_at.us, node->now.us);
    assert_true(dp_peer_equal(&node->requests->fences[0].asker, &askers[0]));
    dp_request_fence(node, &fence, &askers[1]);
    assert_int_equal(node->requests->n_fences, 2);
    node->now.us += DP_FENCE_US - 1;
    dp_requests_forget_done(node);
    assert_int_equal(node->requests->n_fences, 2);
    node->now.us += 1;
    assert_false(dp_request_lasts(node, &node->requests->fences[0]));
    dp_request_fence(node, &fence, &askers[1]); /* It repeats it, the other does not. */
    assert_int_equal(node->requests->n_fences, 1);
    assert_true(dp_peer_equal(&node->requests->fences[0].asker, &askers[1]));
    entry_of(node, 2)->fenced = 6;
    dp_requests_forget_done(node);
    assert_int_equal(node->requests->n_fences, 1);
    entry_of(node, 2)->fenced = 7;
    dp_requests_forget_done(node);
    assert_int_equal(node->requests->n_fences, 0);
    kit_close(world);
}

/* In order of peer, of each its latest life, of those dead alone, and no more than fit. */
static void a_record_lists_fences_in_order_and_of_each_peer_the_latest(void **state)
{
    static dp_record draft;
    static dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
    kit_world *world = kit_together(3);
    dp_node *node = begin(world);
    const struct {
        uint32_t who;
        uint64_t life;
    } rows[] = {{2, 4}, {1, 6}, {2, 8}, {2, 3}};

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        node->requests->fences[i] = (dp_fence_request){
            .fence = {.peer = kit_peer(rows[i].who), .incarnation = rows[i].life},
            .asker = {{(uint8_t)(200 + i)}},
            .asked_at = node->now};
    }
    node->requests->n_fences = 4;
    memset(&draft, 0, sizeof draft);
    dp_config_draft(node, &draft, admitted);
    assert_int_equal(draft.config.n_fences, 0); /* They live. */
    for (uint32_t who = 1; who < 3; who++) {
        const dp_peer peer = kit_peer(who);
        ((dp_member *)(uintptr_t)dp_members_at(node->members, dp_node_member_index(node, &peer)))
            ->state = DP_MEMBER_DEAD;
    }
    memset(&draft, 0, sizeof draft);
    dp_config_draft(node, &draft, admitted);
    assert_true(draft.has_config);
    assert_int_equal(draft.config.n_fences, 2);
    const dp_peer first = kit_peer(1);
    assert_true(dp_peer_equal(&draft.config.fences[0].peer, &first));
    assert_int_equal(draft.config.fences[0].incarnation, 6);
    assert_int_equal(draft.config.fences[1].incarnation, 8);
    entry_of(node, 1)->fenced = 6;
    memset(&draft, 0, sizeof draft);
    dp_config_draft(node, &draft, admitted);
    assert_int_equal(draft.config.n_fences, 1);
    node->requests->n_fences = 0;
    for (uint32_t who = 1; who < 3; who++) {
        const dp_peer peer = kit_peer(who);
        ((dp_member *)(uintptr_t)dp_members_at(node->members, dp_node_member_index(node, &peer)))
            ->state = DP_MEMBER_ALIVE;
    }
    kit_close(world);
}

/* REMOVEs that were sent about this peer: to single voters, and to all. */
static uint32_t told_of(const kit_world *world, uint32_t who, bool to_all)
{
    const dp_peer peer = kit_peer(who);
    uint32_t n = 0;

    for (uint32_t i = 0; i < world->actions->count; i++) {
        const dp_action *action = &world->actions->items[i];
        dp_remove read;
        n += action->type == DP_DO_SEND && (action->u.send.to == DP_TO_ALL) == to_all &&
             dp_remove_msg_read(action->u.send.bytes, &read) == DP_OK &&
             dp_peer_equal(&read.peer, &peer);
    }
    return n;
}

/* The leaving of others is told again by them. */
static void a_node_tells_again_that_it_leaves_and_who_was_revoked(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = begin(world);
    const dp_remove leave = leave_of(node, 1);
    const dp_remove revoke = revoke_of(node, 2, 0);

    (void)state;
    entry_of(node, 2)->caps &= ~(uint32_t)DP_CAP_ADMIN;
    assert_int_equal(dp_request_removal(node, &leave), DP_OK);
    assert_int_equal(dp_request_removal(node, &revoke), DP_OK);
    for (uint32_t what = 0; what < 4; what++) {
        const dp_mode mode = node->mode;
        node->leaving = what != 0;
        node->mode = what == 2 ? DP_MODE_LEFT : mode;
        node->requests->own_remove = leave_of(node, what == 3 ? 1 : 0);
        begin(world);
        dp_requests_repeat(node);
        assert_int_equal(told_of(world, 0, false), what == 1 ? 2 : 0); /* Two other voters. */
        assert_int_equal(told_of(world, 1, false) + told_of(world, 1, true), 0);
        assert_int_equal(told_of(world, 2, true), 1);
        node->mode = mode;
    }
    node->leaving = false;
    kit_close(world);
}

/* The node that is revoked is leaving; a peer that is no row of the table is bound by the list. */
static void a_node_that_is_revoked_itself_leaves(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = begin(world);
    const dp_remove revoke = revoke_of(node, 0, 1);

    (void)state;
    entry_of(node, 0)->caps &= ~(uint32_t)DP_CAP_ADMIN;
    assert_int_equal(dp_request_removal(node, &revoke), DP_OK);
    assert_true(node->leaving && dp_node_revoked(node, &node->self));
    assert_int_equal(told_of(world, 0, true), 1);
    assert_null(kit_find(world->actions, DP_DO_HANGUP));
    node->leaving = false;
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_that_wants_to_leave_is_told_of_to_the_voters_once),
        cmocka_unit_test(a_revoked_member_is_bound_at_once_and_everybody_told),
        cmocka_unit_test(a_request_for_a_fence_stands_for_thirty_seconds_and_is_one_for_each_asker),
        cmocka_unit_test(a_record_lists_fences_in_order_and_of_each_peer_the_latest),
        cmocka_unit_test(a_node_tells_again_that_it_leaves_and_who_was_revoked),
        cmocka_unit_test(a_node_that_is_revoked_itself_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
