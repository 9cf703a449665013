/* More contributions are announced than a node follows: the ones that keep their places. */
#include "gossip/context/context.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { MEMBERS = 6, NEWCOMER = 9 };

/* Six members that publish nothing of their own, and room at node 0 for so many claims more. */
static kit_world *with_room(uint32_t room)
{
    kit_world *world = kit_together(MEMBERS);

    for (uint32_t i = 0; i < MEMBERS; i++) {
        kit_command(world, i, DP_COMMAND_PAUSE);
    }
    kit_run_ms(world, 3000);
    dp_round *round = world->nodes[0].node->round;
    round->n_claims = 0;
    dp_round_index_claims(world->nodes[0].node);
    round->ready_max = room;
    return world;
}

/* A READY of this author whose blob no node has. */
static void tell(kit_world *world, uint32_t author)
{
    const dp_ledger *ledger = &world->nodes[0].node->ledger;
    const dp_crypto crypto = kit_crypto(author);
    dp_ready ready = {.peer = kit_peer(author),
                      .round = ledger->round + 1,
                      .base = ledger->base,
                      .root = {{(uint8_t)(200 + author)}},
                      .bytes = 8,
                      .tokens = 1,
                      .steps = 1};
    const dp_lease *lease = dp_ledger_lease(ledger, &ready.peer);
    uint8_t bytes[DP_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    ready.reach = lease != NULL ? lease->reach : (dp_reach){0};
    ready.reach.own += 100;
    assert_true(dp_ready_sign(&ready, &crypto, &ledger->run, &ledger->fork));
    dp_ready_msg_write(&writer, &ready);
    kit_tell(world, author < MEMBERS ? author : 1, 0, dp_view_of(writer.data, writer.size));
    kit_drain(world);
}

static bool is_followed(const kit_world *world, uint32_t author)
{
    const dp_peer peer = kit_peer(author);

    return dp_round_claim_of(world->nodes[0].node, &peer) != NULL;
}

static void a_member_s_claim_finds_room_when_nothing_comes_of_another(void **state)
{
    kit_world *world = with_room(2);

    (void)state;
    tell(world, 1);
    kit_run_ms(world, 100);
    tell(world, 2);
    tell(world, 3);
    assert_true(is_followed(world, 1) && is_followed(world, 2) && !is_followed(world, 3));
    kit_run_ms(world, DP_CLAIM_PATIENCE_US / 1000);
    tell(world, 3);
    assert_true(!is_followed(world, 1) && is_followed(world, 2) && is_followed(world, 3));
    assert_false(dp_picker_wants(world->nodes[0].node->picker, &(dp_hash){{201}})); /* No longer. */
    assert_int_equal(world->nodes[0].node->round->n_claims, 2);
    kit_close(world);
}

static void a_displaced_author_displaces_no_other_in_that_round(void **state)
{
    kit_world *world = with_room(1);

    (void)state;
    tell(world, 1);
    kit_run_ms(world, DP_CLAIM_PATIENCE_US / 1000);
    tell(world, 2);
    assert_true(is_followed(world, 2));
    for (uint32_t i = 0; i < 3; i++) {
        kit_run_ms(world, DP_CLAIM_PATIENCE_US / 1000);
        tell(world, 1);
        assert_true(is_followed(world, 2) && !is_followed(world, 1));
    }
    kit_close(world);
}

static void a_claim_whose_blob_is_here_keeps_its_place(void **state)
{
    kit_world *world = with_room(1);
    dp_event come = {.type = DP_EV_OBJECT, .u.object = {.root = {{201}}, .size = 8}};

    (void)state;
    tell(world, 1);
    kit_event_in(world, 0, &come);
    kit_run_ms(world, 2 * DP_CLAIM_PATIENCE_US / 1000);
    tell(world, 2);
    assert_true(is_followed(world, 1) && !is_followed(world, 2));
    kit_close(world);
}

static void a_newcomer_s_claim_is_not_followed(void **state)
{
    kit_world *world = with_room(2);
    uint8_t credential[KIT_CREDENTIAL];
    const dp_peer peer = kit_peer(NEWCOMER);

    (void)state;
    assert_true(dp_members_add(world->nodes[0].node->members, &peer,
                               kit_credential(NEWCOMER, DP_CAP_TRAIN, 0, 1, credential),
                               DP_CAP_TRAIN, NULL, 0) != DP_MEMBER_NONE);
    tell(world, NEWCOMER);
    assert_false(is_followed(world, NEWCOMER));
    tell(world, 1);
    tell(world, 2);
    assert_true(is_followed(world, 1) && is_followed(world, 2));
    kit_close(world);
}

/* At most one gives way: the oldest of which nothing has come for two seconds. */
static void a_claim_gives_way_at_these_bounds_and_no_sooner(void **state)
{
    kit_world *world = with_room(3);
    dp_node *node = world->nodes[0].node;
    dp_round *round = node->round;
    const dp_peer peer = kit_peer(4);

    (void)state;
    for (uint32_t author = 1; author <= 3; author++) {
        tell(world, author);
    }
    assert_int_equal(round->n_claims, 3);
    for (uint32_t i = 0; i < 3; i++) {
        round->claims[i].told_at = node->now;
    }
    for (uint32_t what = 0; what < 9; what++) {
        dp_claim *claim = &round->claims[1];
        const dp_claim before = *claim;
        claim->told_at = (dp_time){node->now.us - DP_CLAIM_PATIENCE_US + (what == 1 ? 1 : 0)};
        claim->held = what == 2;
        claim->have = what == 3 ? 1 : 0;
        claim->evidence = what == 4;
        claim->bad = what == 5;
        claim->ready.peer = what == 6 ? node->self : claim->ready.peer;
        node->ledger.parted = what == 7;
        round->gave_way[dp_node_member_index(node, &peer)] = what == 8;
        assert_int_equal(dp_claim_has_room(node, &peer), what == 0 || what == 5);
        *claim = before;
        node->ledger.parted = false;
    }
    round->gave_way[dp_node_member_index(node, &peer)] = false;
    round->claims[0].told_at = (dp_time){1001};
    round->claims[1].told_at = (dp_time){1002};
    round->claims[2].told_at = (dp_time){1000};
    const dp_peer oldest = round->claims[2].ready.peer;
    round->claims[0].ready.root = round->claims[2].ready.root; /* It is needed yet. */
    const dp_hash root = round->claims[2].ready.root;
    dp_out_begin(&node->out, world->actions);
    assert_true(dp_claim_make_room(node, &peer));
    assert_int_equal(round->n_claims, 2);
    assert_null(dp_round_claim_of(node, &oldest));
    assert_true(round->gave_way[dp_node_member_index(node, &oldest)]);
    assert_true(dp_picker_wants(node->picker, &root));
    assert_true(dp_claim_make_room(node, &peer)); /* There is room: nobody gives way. */
    assert_int_equal(round->n_claims, 2);
    dp_claim_open_round(node);
    assert_false(round->gave_way[dp_node_member_index(node, &oldest)]);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_s_claim_finds_room_when_nothing_comes_of_another),
        cmocka_unit_test(a_displaced_author_displaces_no_other_in_that_round),
        cmocka_unit_test(a_claim_whose_blob_is_here_keeps_its_place),
        cmocka_unit_test(a_newcomer_s_claim_is_not_followed),
        cmocka_unit_test(a_claim_gives_way_at_these_bounds_and_no_sooner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
