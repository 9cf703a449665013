/* The root key begins the chain anew: after the loss of a majority, against nodes that continued,
 * after a proof. */
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "gossip/node/node.h"
#include "tests/unit/gossip/kit/node_kit.h"

static dp_status order(kit_world *world, uint32_t to, dp_admin_command_kind kind, dp_why *why)
{
    dp_status status = DP_AGAIN;
    kit_event *item = kit_push(world, to, DP_EV_ADMIN_COMMAND);

    item->event.u.order = (dp_admin_command){.kind = kind, .status = &status, .why = why};
    kit_drain(world);
    return status;
}

/* No link between those of a and the others, from now on. */
static void split(kit_world *world, uint32_t a)
{
    for (uint32_t i = 0; i < world->n; i++) {
        for (uint32_t k = i + 1; k < world->n; k++) {
            if (((a >> i) & 1) != ((a >> k) & 1)) {
                kit_cut(world, i, k);
            }
        }
    }
    kit_drain(world);
}

static bool same_chain(const kit_world *world, uint32_t a, uint32_t b)
{
    return dp_hash_equal(&world->nodes[a].node->ledger.fork, &world->nodes[b].node->ledger.fork);
}

static void a_healthy_run_is_not_forked(void **state)
{
    kit_world *world = kit_together(3);
    dp_why why = {""};

    (void)state;
    assert_int_equal(order(world, 0, DP_ADMIN_FORK, &why), DP_EXISTS);
    assert_true(why.text[0] != '\0');
    kit_close(world);
}

static void after_the_loss_of_a_majority_the_root_key_goes_on_with_the_rest(void **state)
{
    kit_world *world = kit_together(3);
    dp_why why = {""};

    (void)state;
    kit_kill(world, 1);
    kit_kill(world, 2);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_GOSSIP);
    const dp_node_view before = kit_look(world, 0);
    assert_int_equal(order(world, 0, DP_ADMIN_FORK, &why), DP_OK);
    while (kit_look(world, 0).slot == before.slot) {
        kit_run_ms(world, 10);
    }
    /* The FORK proves the state from which it continues: a returning node gets this one, not the
     * one before. */
    assert_int_equal(kit_look(world, 0).round, before.round);
    assert_int_equal(dp_saved_told(world->nodes[0].node)->round, before.round);
    const dp_history_row *row = dp_chain_row(world->nodes[0].node, before.round);
    assert_true(row != NULL && row->certified && row->proven);
    assert_true(dp_hash_equal(&row->root, &world->nodes[0].node->standing.state_root));
    kit_run_ms(world, 5000);
    const dp_node_view after = kit_look(world, 0);
    assert_int_equal(after.mode, DP_MODE_SYNC);
    assert_int_equal(after.voters, 1);
    assert_true(after.round >= before.round + 3);
    kit_close(world);
}

static void a_node_that_continued_adopts_the_fork_and_is_counted_again(void **state)
{
    kit_world *world = kit_together(5);
    dp_why why = {""};

    (void)state;
    split(world, 3); /* 0 and 1 apart; three voters of five go on. */
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_GOSSIP);
    assert_int_equal(kit_look(world, 2).mode, DP_MODE_SYNC);
    const uint64_t base = kit_look(world, 0).slot;
    assert_true(kit_look(world, 2).slot > base + 2);
    assert_int_equal(order(world, 0, DP_ADMIN_FORK, &why), DP_OK);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_SYNC);
    assert_true(same_chain(world, 0, 1));
    assert_false(same_chain(world, 0, 2));
    kit_link_all(world);
    kit_run_ms(world, 6000);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(same_chain(world, 0, i));
        assert_int_equal(kit_look(world, i).mode, DP_MODE_SYNC);
        assert_true(kit_look(world, i).slot + 1 >= kit_look(world, 0).slot);
    }
    assert_int_equal(kit_look(world, 0).listed_last, 5);
    for (uint32_t i = 2; i < 5;
         i++) { /* The publication of the chain that went: taken back, not lost. */
        assert_int_equal(world->nodes[i].restore.u.restore.settle, DP_SETTLE_LEFT_OUT);
    }
    kit_close(world);
}

/* Two votes of node 1 for the slot under way of node 0 that contradict each other. */
static dp_view double_vote(const kit_world *world, uint8_t *room, size_t size)
{
    const dp_run_id run = kit_run();
    const dp_crypto liar = kit_crypto(1);
    dp_writer writer = dp_writer_of(room, size);
    dp_vote votes[2];

    for (uint32_t i = 0; i < 2; i++) {
        votes[i] = (dp_vote){.type = DP_MSG_ACCEPTED,
                             .slot = kit_look(world, 0).slot + 1,
                             .prev = kit_look(world, 0).head,
                             .ballot = 7,
                             .hash = {{(uint8_t)(i + 1)}}};
        assert_true(dp_vote_sign(&votes[i], &liar, &run));
    }
    dp_proof_msg_write(&writer, &votes[0], &votes[1]);
    return dp_view_of(room, writer.size);
}

static void a_halt_names_the_double_voter_and_the_round_that_is_not_decided(void **state)
{
    kit_world *world = kit_together(3);
    dp_ledger *const ledger = &world->nodes[0].node->ledger;
    const dp_peer culprit = kit_peer(1);
    uint8_t room[512];

    (void)state;
    ledger->round++; /* Rounds and slots are counted apart. */
    const dp_actions *const done = kit_tell(world, 2, 0, double_vote(world, room, sizeof room));
    const dp_action *const halt = kit_find(done, DP_DO_HALT);
    assert_non_null(halt);
    assert_int_equal(halt->u.note.round, ledger->round + 1);
    assert_true(dp_peer_equal(&halt->u.note.peer, &culprit));
    assert_string_equal(halt->u.note.cause, "voted twice");
    kit_close(world);
}

static void a_fork_ends_a_halt_and_leaves_the_double_voter_out(void **state)
{
    kit_world *world = kit_together(5);
    dp_why why = {""};
    const dp_peer culprit = kit_peer(1);
    uint8_t room[512];

    (void)state;
    kit_send(world, 2, 0, double_vote(world, room, sizeof room));
    kit_run_ms(world, 2000);
    assert_int_equal(kit_look(world, 4).mode, DP_MODE_HALTED);
    assert_int_equal(order(world, 0, DP_ADMIN_FORK, &why), DP_OK);
    kit_run_ms(world, 5000);
    for (uint32_t i = 0; i < 5; i++) {
        assert_null(dp_ledger_member(&world->nodes[i].node->ledger, &culprit));
        assert_int_equal(kit_look(world, i).mode, i == 1 ? DP_MODE_LEFT : DP_MODE_SYNC);
    }
    assert_int_equal(kit_look(world, 0).voters, 3);
    assert_int_equal(kit_look(world, 0).listed_last, 4);
    assert_true(kit_look(world, 0).round > 5);
    kit_kill(world, 0);
    kit_boot(world, 0);
    assert_true(kit_look(world, 0).mode != DP_MODE_HALTED); /* The proof has done its work. */
    kit_close(world);
}

static void two_forks_of_one_slot_halt_both_sides_until_one_is_named(void **state)
{
    kit_world *world = kit_together(5);
    dp_why why = {""};

    (void)state;
    split(world, 3);
    split(world, 7); /* {0,1} {2} {3,4}: no group decides. */
    kit_run_ms(world, 4000);
    assert_int_equal(order(world, 0, DP_ADMIN_FORK, &why), DP_OK);
    assert_int_equal(order(world, 4, DP_ADMIN_FORK, &why), DP_OK);
    kit_run_ms(world, 3000);
    assert_false(same_chain(world, 0, 4));
    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_HALTED);
    assert_int_equal(kit_look(world, 4).mode, DP_MODE_HALTED);
    kit_kill(world, 0);
    kit_boot(world, 0);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_HALTED);
    kit_link_all(world);
    assert_int_equal(order(world, 1, DP_ADMIN_MERGE, &why),
                     DP_OK); /* Until one of them is named. */
    kit_run_ms(world, 8000);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(kit_look(world, i).mode, DP_MODE_SYNC);
        assert_true(same_chain(world, 1, i));
    }
    assert_int_equal(kit_look(world, 1).listed_last, 5);
    kit_kill(world, 4);
    kit_boot(world, 4);
    kit_link_all(world);
    kit_run_ms(world, 3000);
    assert_int_equal(kit_look(world, 4).mode, DP_MODE_SYNC); /* It has not forgotten. */
    assert_int_equal(order(world, 1, DP_ADMIN_MERGE, &why), DP_EXISTS);
    kit_close(world);
}

static void a_fork_without_the_root_key_is_none(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    dp_record record = {.kind = DP_RECORD_FORK, .has_config = true};
    uint8_t room[2 + DP_FORK_BYTES_MAX] = {DP_MSG_FORK, DP_MSG_VERSION};
    dp_view bytes;
    const dp_crypto crypto = kit_crypto(1);
    dp_voter_entry *entry = &record.config.voters[0];

    (void)state;
    record.run = kit_run();
    record.slot = node->ledger.slot + 1;
    record.prev = node->ledger.head;
    record.time_ms = node->ledger.time_ms;
    record.round = node->ledger.round;
    record.state_root = node->standing.state_root;
    record.config.n_voters = 1;
    entry->voter.peer = kit_peer(1);
    kit_vote_key(1, entry->voter.key);
    assert_true(
        dp_voter_ok_sign(&crypto, &record.run, &record.prev, entry->voter.key, entry->signature));
    assert_int_equal(dp_record_encode(&record, room + 2, sizeof room - 2, &bytes), DP_OK);
    const uint64_t rejected = kit_look(world, 0).rejected;
    kit_send(world, 1, 0, dp_view_of(room, bytes.size + 2)); /* Not signed. */
    kit_drain(world);
    assert_int_equal(kit_look(world, 0).rejected, rejected + 1);
    assert_true(dp_fork_sign(&crypto, room + 2, bytes.size));
    for (size_t at = 0; at < bytes.size; at += 7) { /* Signed, and then damaged. */
        room[2 + at] ^= 1;
        kit_send(world, 1, 0, dp_view_of(room, bytes.size + 2));
        kit_drain(world);
        room[2 + at] ^= 1;
        kit_send(world, 1, 0, dp_view_of(room, at));
        kit_drain(world);
    }
    assert_int_equal(world->nodes[0].node->ledger.n_forks, 0);
    assert_false(world->nodes[0].reopens);
    kit_send(world, 1, 0, dp_view_of(room, bytes.size + 2));
    kit_drain(world);
    assert_true(world->nodes[0].reopens);
    kit_close(world);
}

/* A repeated one has no effect; another one needs a signature of the root key, independent of
 * earlier messages. */
static void a_second_stop_needs_a_signature_too(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    const dp_stop known = {.loser = {{1}}, .survivor = {{2}}};
    const dp_stop others[] = {{.loser = {{3}}, .survivor = {{2}}},
                              {.loser = {{1}}, .survivor = {{3}}}};

    (void)state;
    node->forks->stop.has = true;
    node->forks->stop.loser = known.loser;
    node->forks->stop.survivor = known.survivor;
    assert_int_equal(dp_fork_stop(node, &known), DP_OK);
    assert_int_equal(dp_fork_stop(node, &others[0]), DP_BADSIG);
    assert_int_equal(dp_fork_stop(node, &others[1]), DP_BADSIG);
    kit_close(world);
}

/* Its records come first; a node that is halted has to know that it may want them. */
static void a_fork_from_beyond_the_own_chain_is_a_hint_of_its_records(void **state)
{
    kit_world *world = kit_together(3);
    const dp_peer from = kit_peer(0);
    dp_why why = {""};

    (void)state;
    kit_kill(world, 1);
    kit_kill(world, 2);
    kit_run_ms(world, 4000);
    const uint64_t slot = kit_look(world, 0).slot;
    assert_int_equal(order(world, 0, DP_ADMIN_FORK, &why), DP_OK);
    while (kit_look(world, 0).slot == slot) {
        kit_run_ms(world, 10);
    }
    const dp_fork_record fork = world->nodes[0].node->forks->own[0];
    kit_boot(world, 1);
    dp_node *node = world->nodes[1].node;
    const uint64_t head = node->ledger.slot;
    assert_in_range(head, fork.slot - 2, fork.slot - 1);
    for (uint32_t what = 0; what < 4; what++) {
        dp_view bytes = dp_view_of(fork.bytes, fork.size);
        node->halted = what == 1;
        node->ledger.slot = fork.slot - 2;
        node->catchup->hint_slot = 0;
        node->forks->wanted = 0;
        node->changed = false;
        if (what == 2) { /* Known already, as one that has ended. */
            node->forks->stop = (dp_stop){.has = true, .loser = fork.id};
        } else if (what == 3) { /* Another one waits to be written. */
            node->forks->stop.has = false;
            node->forks->next.has = true;
        }
        (void)dp_fork_take(node, bytes, &from);
        assert_int_equal(node->catchup->hint_slot, what < 2 ? fork.slot : 0);
        assert_int_equal(node->forks->wanted, what == 1 ? fork.slot : 0);
        assert_int_equal(node->changed, what < 2);
        assert_true(what >= 2 || dp_peer_equal(&node->catchup->hint_peer, &from));
        assert_int_equal(node->forks->next.has, what == 3);
        node->forks->next.has = false;
    }
    node->halted = false;
    node->ledger.slot = head;
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_run_is_not_forked),
        cmocka_unit_test(after_the_loss_of_a_majority_the_root_key_goes_on_with_the_rest),
        cmocka_unit_test(a_node_that_continued_adopts_the_fork_and_is_counted_again),
        cmocka_unit_test(a_halt_names_the_double_voter_and_the_round_that_is_not_decided),
        cmocka_unit_test(a_fork_ends_a_halt_and_leaves_the_double_voter_out),
        cmocka_unit_test(two_forks_of_one_slot_halt_both_sides_until_one_is_named),
        cmocka_unit_test(a_fork_without_the_root_key_is_none),
        cmocka_unit_test(a_second_stop_needs_a_signature_too),
        cmocka_unit_test(a_fork_from_beyond_the_own_chain_is_a_hint_of_its_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
