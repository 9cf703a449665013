/* The votes about the state after the newest round. */
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { VOTERS = 3 };

static kit_world *quiet(void)
{
    kit_world *world = kit_together(VOTERS);
    dp_node *node = world->nodes[0].node;

    for (uint32_t i = 0; i < VOTERS; i++) {
        kit_command(world, i, DP_COMMAND_PAUSE);
    }
    kit_run_ms(world, 3000);
    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    return world;
}

static void vote(dp_node *node, uint32_t voter, uint64_t round, uint8_t root)
{
    dp_state_vote *state = &node->round->states[voter];

    *state = (dp_state_vote){.known = true, .round = round, .root = {{root}}};
    memset(state->signature, 10 + (int)voter, sizeof state->signature);
}

static void a_state_is_certified_by_a_majority_for_one_root_of_this_round(void **state)
{
    kit_world *world = quiet();
    dp_node *node = world->nodes[0].node;
    const uint64_t round = node->ledger.round;
    dp_seal seals[DP_VOTERS_MAX];
    dp_hash root;
    uint32_t n = 0;

    (void)state;
    memset(node->round->states, 0, sizeof node->round->states);
    assert_false(dp_round_state_cert(node, &root, seals, &n));
    vote(node, 0, round, 1);
    assert_false(dp_round_state_cert(node, &root, seals, &n));
    vote(node, 1, round, 2);
    assert_false(dp_round_state_cert(node, &root, seals, &n));
    vote(node, 2, round + 1, 2);
    assert_false(dp_round_state_cert(node, &root, seals, &n));
    vote(node, 2, round, 2);
    node->round->states[2].known = false;
    assert_false(dp_round_state_cert(node, &root, seals, &n));
    node->round->states[2].known = true;
    assert_true(dp_round_state_cert(node, &root, seals, &n));
    assert_int_equal(n, 2);
    assert_int_equal(root.bytes[0], 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(seals[i].voter, 1 + i);
        assert_int_equal(seals[i].signature[DP_SIGNATURE_BYTES - 1], 11 + i);
    }
    kit_close(world);
}

static void a_voter_tells_its_state_once_at_an_instant_and_only_of_the_newest_round(void **state)
{
    kit_world *world = quiet();
    dp_node *node = world->nodes[0].node;
    const uint32_t self = node->commit->self;
    dp_state_msg told;

    (void)state;
    node->round->state_told = (dp_time){0};
    assert_true(node->round->states[self].known);
    dp_round_tell_state(node);
    const dp_action *send = kit_find(world->actions, DP_DO_SEND);
    assert_non_null(send);
    assert_int_equal(dp_state_msg_read(send->u.send.bytes, &told), DP_OK);
    assert_true(dp_peer_equal(&told.voter, &node->self));
    assert_int_equal(told.round, node->ledger.round);
    assert_true(dp_hash_equal(&told.root, &node->standing.state_root));
    const dp_crypto crypto = kit_crypto(1);
    assert_true(dp_state_verify(&crypto, node->ledger.voters[self].key, &node->run,
                                &node->ledger.fork, told.round, &told.root, told.signature));
    assert_int_equal(node->round->state_told.us, node->now.us);
    const uint32_t sent = world->actions->count;
    dp_round_tell_state(node);
    assert_int_equal(world->actions->count, sent);
    for (uint32_t what = 0; what < 3; what++) {
        node->round->state_told = (dp_time){0};
        node->round->states[self].known = what != 0;
        node->round->states[self].round = node->ledger.round - (what == 1 ? 1 : 0);
        node->commit->self = what == 2 ? DP_NOBODY : self;
        dp_round_tell_state(node);
        assert_int_equal(world->actions->count, sent);
    }
    node->commit->self = self;
    kit_close(world);
}

static void the_own_state_is_signed_once_and_anew_when_it_is_another(void **state)
{
    kit_world *world = quiet();
    dp_node *node = world->nodes[0].node;
    const uint32_t self = node->commit->self;
    dp_state_vote *own = &node->round->states[self];

    (void)state;
    node->round->state_told = (dp_time){0};
    dp_round_state_own(node);
    assert_int_equal(world->actions->count, 0); /* It is already signed and announced. */
    node->standing.state_root.bytes[0] ^= 1;
    dp_round_state_own(node);
    assert_true(world->actions->count > 0 && own->known);
    assert_true(dp_hash_equal(&own->root, &node->standing.state_root));
    assert_int_equal(own->round, node->ledger.round);
    dp_round_state_withdraw(node);
    assert_false(own->known);
    for (uint32_t what = 0; what < 4; what++) {
        node->commit->self = what == 0 ? DP_NOBODY : self;
        node->commit->key_lost = what == 1;
        node->standing.has_theta = what != 2;
        node->standing.applied = node->ledger.round - (what == 3 ? 1 : 0);
        dp_round_state_own(node);
        assert_false(own->known);
    }
    node->commit->self = self;
    node->standing.has_theta = true;
    node->standing.applied = node->ledger.round;
    node->standing.state_root.bytes[0] ^= 1;
    dp_round_state_own(node);
    assert_true(own->known);
    kit_close(world);
}

/* Of a voter, of this round or the next, signed, and not yet known. */
static void the_state_of_another_voter_is_kept_and_looked_at(void **state)
{
    kit_world *world = quiet();
    dp_node *node = world->nodes[0].node;
    const uint32_t voter = dp_ledger_voter(&node->ledger, &world->nodes[1].node->self);
    dp_state_vote *kept = &node->round->states[voter];
    uint8_t room[256];

    (void)state;
    for (uint64_t more = 0; more < 3; more++) {
        const dp_crypto crypto = kit_crypto(1);
        dp_state_msg told = {.voter = world->nodes[1].node->self,
                             .round = node->ledger.round + more,
                             .root = {{7, (uint8_t)more}}};
        dp_writer writer = dp_writer_of(room, sizeof room);
        assert_true(dp_state_sign(&crypto, &node->run, &node->ledger.fork, told.round, &told.root,
                                  told.signature));
        dp_state_msg_write(&writer, &told);
        node->changed = false;
        *kept = (dp_state_vote){.known = true, .round = node->ledger.round};
        assert_int_equal(dp_round_state_message(node, dp_view_of(room, writer.size)), DP_OK);
        assert_int_equal(node->changed, more < 2);
        assert_int_equal(dp_hash_equal(&kept->root, &told.root), more < 2);
        if (more < 2) {
            assert_int_equal(kept->round, told.round);
            assert_memory_equal(kept->signature, told.signature, sizeof told.signature);
            node->changed = false;
            assert_int_equal(dp_round_state_message(node, dp_view_of(room, writer.size)), DP_OK);
            assert_false(node->changed);
            kept->known = false;
            room[writer.size - 1] ^= 1;
            assert_int_equal(dp_round_state_message(node, dp_view_of(room, writer.size)),
                             DP_BADSIG);
        }
    }
    kit_close(world);
}

static void a_certified_state_is_told_to_the_trainer_once(void **state)
{
    kit_world *world = quiet();
    dp_node *node = world->nodes[0].node;

    (void)state;
    node->round->certified = true;
    assert_true(dp_round_take_certified(node));
    assert_false(dp_round_take_certified(node));
    kit_close(world);
}

/* A node that does not vote has told no state: those of the voters stay. */
static void a_node_withdraws_its_own_state_and_no_other(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    const uint32_t self = node->commit->self;

    (void)state;
    for (uint32_t votes = 0; votes < 2; votes++) {
        for (uint32_t i = 0; i < 3; i++) {
            node->round->states[i].known = true;
        }
        node->commit->self = votes == 1 ? self : DP_NOBODY;
        dp_round_state_withdraw(node);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(node->round->states[i].known, votes == 0 || i != self);
        }
    }
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_is_certified_by_a_majority_for_one_root_of_this_round),
        cmocka_unit_test(a_voter_tells_its_state_once_at_an_instant_and_only_of_the_newest_round),
        cmocka_unit_test(the_own_state_is_signed_once_and_anew_when_it_is_another),
        cmocka_unit_test(the_state_of_another_voter_is_kept_and_looked_at),
        cmocka_unit_test(a_certified_state_is_told_to_the_trainer_once),
        cmocka_unit_test(a_node_withdraws_its_own_state_and_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
