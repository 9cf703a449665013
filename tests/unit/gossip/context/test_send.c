/* Messages to one peer, to the voters and to all: on the link where one stands, and through other
 * voters where none does or nothing is heard on it. */
#include "gossip/context/context.h"
#include "gossip/member/members_internal.h"
#include "gossip/record/wire.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { VOTERS = 5 };

static const uint8_t text[] = {200, 1, 'h', 'e', 'l', 'l', 'o'};

/* Node 0 of five voters that all hear each other. */
static kit_world *begin(void)
{
    kit_world *world = kit_together(VOTERS);
    dp_node *node = world->nodes[0].node;

    assert_int_equal(node->beat.n_voters, VOTERS);
    for (uint32_t i = 0; i < VOTERS; i++) {
        node->beat.voters[i].direct = node->now;
        node->beat.voters[i].heard = (1U << VOTERS) - 1;
        node->beat.voters[i].passed = (dp_time){0};
    }
    dp_out_begin(&node->out, world->actions);
    return world;
}

static uint32_t voter_of(const dp_node *node, uint32_t peer)
{
    const dp_peer who = kit_peer(peer);

    return dp_ledger_voter(&node->ledger, &who);
}

static dp_member *row_of(dp_node *node, uint32_t peer)
{
    const dp_peer who = kit_peer(peer);

    return (dp_member *)(uintptr_t)dp_members_at(node->members, dp_node_member_index(node, &who));
}

/* It does not hear this node. */
static void deafen(dp_node *node, uint32_t peer)
{
    node->beat.voters[voter_of(node, peer)].heard &= (uint8_t) ~(1U << node->beat.own);
}

static void unlink_from(dp_node *node, uint32_t peer)
{
    row_of(node, peer)->linked = false;
    node->beat.voters[voter_of(node, peer)].direct = (dp_time){0};
}

typedef struct sent {
    uint32_t direct;  /* bit per peer that got the message itself, */
    uint32_t relays;  /* ... and per peer that is to pass it on, */
    uint32_t carried; /* ... to these */
    uint32_t all;
} sent;

static sent sends(const kit_world *world)
{
    sent found = {0};

    for (uint32_t i = 0; i < world->actions->count; i++) {
        const dp_action *action = &world->actions->items[i];
        const dp_view bytes = action->u.send.bytes;
        assert_int_equal(action->type, DP_DO_SEND);
        if (action->u.send.to == DP_TO_ALL) {
            assert_memory_equal(bytes.data, text, sizeof text);
            found.all++;
            continue;
        }
        const uint32_t bit = 1U << kit_index(&action->u.send.peer);
        if (dp_msg_type_of(bytes) != DP_MSG_RELAY) {
            assert_int_equal(bytes.size, sizeof text);
            assert_memory_equal(bytes.data, text, sizeof text);
            assert_int_equal(found.direct & bit, 0);
            found.direct |= bit;
            continue;
        }
        dp_peer to;
        assert_int_equal(bytes.size, DP_RELAY_HEAD_BYTES + sizeof text);
        assert_int_equal(bytes.data[DP_MSG_HEAD_BYTES], DP_RELAY_HOPS);
        memcpy(to.bytes, bytes.data + DP_MSG_HEAD_BYTES + 1, sizeof to.bytes);
        assert_memory_equal(bytes.data + DP_RELAY_HEAD_BYTES, text, sizeof text);
        found.relays |= bit;
        found.carried |= 1U << kit_index(&to);
    }
    return found;
}

static void a_voter_that_does_not_hear_this_node_is_told_through_two_others_as_well(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 7; what++) {
        kit_world *world = begin();
        dp_node *node = world->nodes[0].node;
        const dp_peer to = kit_peer(what == 5 ? 9 : 3);
        const uint32_t self = node->commit->self;
        if (what == 1) {
            deafen(node, 3);
        } else if (what == 2) {
            unlink_from(node, 3);
        } else if (what == 3) { /* A node without a vote does not know who hears it. */
            deafen(node, 3);
            node->commit->self = DP_NOBODY;
        } else if (what == 4) {
            unlink_from(node, 3);
            node->commit->self = DP_NOBODY;
        } else if (what == 6) { /* Its link stands, and nothing has come by it for long. */
            node->beat.voters[voter_of(node, 3)].direct = (dp_time){0};
        }
        dp_node_send(node, &to, dp_view_of(text, sizeof text));
        const sent found = sends(world);
        const bool relayed = what == 1 || what == 2 || what == 4 || what == 6;
        assert_int_equal(found.direct, what == 2 || what == 4 || what == 5 ? 0 : 1U << 3);
        assert_int_equal(__builtin_popcount(found.relays), relayed ? 2 : 0);
        assert_int_equal(found.relays & (1U << 3 | 1U), 0);
        assert_int_equal(found.carried, relayed ? 1U << 3 : 0);
        node->commit->self = self;
        kit_close(world);
    }
}

static void all_other_voters_are_told_each_by_its_own_way(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;

    (void)state;
    unlink_from(node, 2);
    dp_node_send_voters(node, dp_view_of(text, sizeof text));
    const sent found = sends(world);
    assert_int_equal(found.direct, 0x1e & ~(1U << 2));
    assert_int_equal(found.carried, 1U << 2);
    kit_close(world);
}

static void linked_voters_alone_are_told_where_others_would_be_told_again(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;

    (void)state;
    unlink_from(node, 2);
    deafen(node, 3);
    assert_true(dp_node_send_linked_voters(node, dp_view_of(text, sizeof text)));
    const sent found = sends(world);
    assert_int_equal(found.direct, 0x1e & ~(1U << 2));
    assert_int_equal(found.relays, 0);
    for (uint32_t i = 1; i < VOTERS; i++) {
        unlink_from(node, i);
    }
    dp_out_begin(&node->out, world->actions);
    assert_false(dp_node_send_linked_voters(node, dp_view_of(text, sizeof text)));
    assert_int_equal(world->actions->count, 0);
    kit_close(world);
}

static void what_is_for_all_reaches_voters_without_a_link_through_others(void **state)
{
    kit_world *world = begin();
    dp_node *node = world->nodes[0].node;

    (void)state;
    dp_node_send_all(node, dp_view_of(text, sizeof text));
    sent found = sends(world);
    assert_true(found.all == 1 && found.direct == 0 && found.relays == 0);
    unlink_from(node, 4);
    dp_out_begin(&node->out, world->actions);
    dp_node_send_all(node, dp_view_of(text, sizeof text));
    found = sends(world);
    assert_true(found.all == 1 && found.direct == 0);
    assert_int_equal(__builtin_popcount(found.relays), 2);
    assert_int_equal(found.carried, 1U << 4);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_voter_that_does_not_hear_this_node_is_told_through_two_others_as_well),
        cmocka_unit_test(all_other_voters_are_told_each_by_its_own_way),
        cmocka_unit_test(linked_voters_alone_are_told_where_others_would_be_told_again),
        cmocka_unit_test(what_is_for_all_reaches_voters_without_a_link_through_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
