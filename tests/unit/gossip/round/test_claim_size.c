/* The length of an object as claimed, and as it turns out to be. */
#include "gossip/context/context.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { MEMBERS = 4, TRUTH = 2000 };

/* Four members that publish nothing of their own. */
static kit_world *silent(void)
{
    kit_world *world = kit_together(MEMBERS);

    for (uint32_t i = 0; i < MEMBERS; i++) {
        kit_command(world, i, DP_COMMAND_PAUSE);
    }
    kit_run_ms(world, 3000);
    world->nodes[0].node->round->n_claims = 0;
    dp_round_index_claims(world->nodes[0].node);
    return world;
}

static dp_hash object_of(uint32_t number)
{
    return (dp_hash){{(uint8_t)number, 77}};
}

/* A READY of this author that names this object, so long. True: node 0 asks for it. */
static bool tell(kit_world *world, uint32_t author, const dp_hash *root, uint64_t bytes)
{
    const dp_ledger *ledger = &world->nodes[0].node->ledger;
    const dp_crypto crypto = kit_crypto(author);
    dp_ready ready = {.peer = kit_peer(author),
                      .round = ledger->round + 1,
                      .base = ledger->base,
                      .root = *root,
                      .bytes = bytes,
                      .tokens = 1,
                      .steps = 1};
    const dp_lease *lease = dp_ledger_lease(ledger, &ready.peer);
    uint8_t message[DP_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(message, sizeof message);

    ready.reach = lease != NULL ? lease->reach : (dp_reach){0};
    ready.reach.own += 100;
    assert_true(dp_ready_sign(&ready, &crypto, &ledger->run, &ledger->fork));
    dp_ready_msg_write(&writer, &ready);
    const dp_actions *actions = kit_tell(world, author, 0, dp_view_of(writer.data, writer.size));
    return kit_find(actions, DP_DO_GET_INFO) != NULL;
}

/* A holder has proved the length. The action that begins the object, or NULL. */
static const dp_action *turns_out(kit_world *world, uint32_t holder, const dp_hash *root,
                                  uint64_t size)
{
    static const dp_hash leaves[DP_CHUNKS_MAX];
    dp_event event = {.type = DP_EV_OBJECT_INFO};

    event.u.object.peer = kit_peer(holder);
    event.u.object.root = *root;
    event.u.object.size = size;
    event.u.object.leaves = leaves;
    kit_event_in(world, 0, &event);
    return kit_find(world->actions, DP_DO_OBJECT_BEGIN);
}

static bool wants(const kit_world *world, const dp_hash *root)
{
    return dp_picker_wants(world->nodes[0].node->picker, root);
}

/* It would have every voter fetch, store and hand to its trainer as much as an object may be
 * long. */
static void an_author_that_claims_a_thousand_bytes_gives_no_more(void **state)
{
    kit_world *world = silent();
    const dp_hash root = object_of(1);
    const dp_peer liar = kit_peer(1);

    (void)state;
    assert_true(tell(world, 1, &root, 1000));
    const uint64_t before = kit_look(world, 0).rejected;
    assert_null(turns_out(world, 1, &root, TRUTH));
    assert_int_equal(kit_look(world, 0).rejected, before + 1);
    assert_false(wants(world, &root));
    const dp_claim *claim = dp_round_claim_of(world->nodes[0].node, &liar);
    assert_true(claim != NULL && claim->bad && !claim->held);
    for (uint32_t i = 0; i < 30; i++) { /* Nor is it asked for again. */
        kit_run_ms(world, 100);
        assert_false(wants(world, &root));
    }
    kit_close(world);
}

/* Another member's object with an invented size: neither its author nor its holders are
 * affected. */
static void a_right_claim_is_fetched_despite_false_ones(void **state)
{
    (void)state;
    for (uint32_t first = 0; first < 2; first++) {
        kit_world *world = silent();
        const dp_hash root = object_of(2);
        const dp_peer honest = kit_peer(2);
        assert_true(tell(world, 1 + first, &root, first == 0 ? 1000 : TRUTH));
        DP_IGNORE(
            tell(world, 2 - first, &root, first == 0 ? TRUTH : 1000)); /* Is wanted already. */
        const dp_action *begun = turns_out(world, 2, &root, TRUTH);
        assert_true(begun != NULL && begun->u.object.size == TRUTH);
        assert_false(dp_round_claim_of(world->nodes[0].node, &honest)->bad);
        kit_close(world);
    }
}

static void a_claim_longer_than_any_update_of_the_run_is_not_followed(void **state)
{
    kit_world *world = silent();
    const uint64_t most = dp_manifest_update_bytes_max(&world->nodes[0].node->manifest);
    const dp_hash roots[2] = {object_of(3), object_of(4)};

    (void)state;
    assert_false(tell(world, 1, &roots[0], most + 1));
    assert_false(wants(world, &roots[0]));
    assert_true(tell(world, 1, &roots[1], most));
    assert_non_null(turns_out(world, 1, &roots[1], most));
    kit_close(world);
}

/* Each is whole in memory until it is decoded, and a round has many. */
static void few_large_updates_are_decoded_at_a_time_and_one_always(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    const dp_hash large = dp_hash_of("test", dp_view_text("large"));

    (void)state;
    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    node->round->checks = 0;
    dp_node_hold(node, &large, (uint64_t)200 << 20);
    dp_round_begin_check(node, &large);
    assert_true(dp_round_may_check(node));
    dp_round_begin_check(node, &large);
    assert_false(dp_round_may_check(node));
    const dp_event done = {.type = DP_EV_CHECKED, .u.checked = {.root = large, .ok = true}};
    DP_IGNORE(dp_round_checked(node, &done));
    assert_true(dp_round_may_check(node));
    dp_node_unhold(node, &large); /* It is not known any more how much it was. */
    DP_IGNORE(dp_round_checked(node, &done));
    assert_true(dp_round_may_check(node));
    kit_close(world);
}

static void a_lie_about_a_length_has_the_round_looked_at(void **state)
{
    kit_world *world = silent();
    dp_node *node = world->nodes[0].node;
    const dp_hash roots[2] = {object_of(5), object_of(6)};

    (void)state;
    assert_true(tell(world, 1, &roots[0], TRUTH));
    assert_true(tell(world, 2, &roots[1], 1000));
    for (uint32_t i = 0; i < 2; i++) {
        node->changed = false;
        memset(world->actions, 0, sizeof *world->actions);
        dp_out_begin(&node->out, world->actions);
        dp_claim_sized(node, &roots[i], TRUTH);
        assert_int_equal(node->changed, i == 1);
    }
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_large_updates_are_decoded_at_a_time_and_one_always),
        cmocka_unit_test(an_author_that_claims_a_thousand_bytes_gives_no_more),
        cmocka_unit_test(a_right_claim_is_fetched_despite_false_ones),
        cmocka_unit_test(a_claim_longer_than_any_update_of_the_run_is_not_followed),
        cmocka_unit_test(a_lie_about_a_length_has_the_round_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
