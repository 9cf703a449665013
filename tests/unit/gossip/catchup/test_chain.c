/* The chain of a node from inside: failing writes, certified states, dropped blobs, and the record
 * and report of a double vote. */
#include "gossip/catchup/chain.h"
#include "gossip/catchup/equivocation.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/proof.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "gossip/record/wire.h"
#include "gossip/round/round.h"
#include "gossip/vote/witness.h"
#include "tests/unit/gossip/kit/node_kit.h"

static dp_node *begin(kit_world *world)
{
    dp_node *node = world->nodes[0].node;

    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    node->changed = false;
    return node;
}

/* A record is being written; the disk answers. */
static void a_record_that_could_not_be_written_is_written_again_after_a_while(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    dp_chain *chain = node->chain;
    bool written = true;

    (void)state;
    assert_int_equal(chain->op, 0);
    assert_false(dp_chain_stored(node, 5, DP_OK, &written) || written);
    chain->op = 5;
    chain->stored_at = (dp_time){node->now.us - 30};
    assert_false(dp_chain_stored(node, 6, DP_OK, &written) || written);
    assert_int_equal(chain->op, 5);
    const uint32_t count = chain->fsync.count;
    assert_true(dp_chain_stored(node, 5, DP_OK, &written) && written);
    assert_true(chain->op == 0 && !chain->failed);
    assert_int_equal(chain->fsync.count, count + 1);
    chain->op = 7;
    assert_true(dp_chain_stored(node, 7, DP_NOSPACE, &written) && !written);
    assert_true(chain->op == 0 && chain->failed);
    assert_int_equal(chain->fsync.count, count + 1);
    chain->stored_at = (dp_time){node->now.us - DP_REPEAT_US + 1};
    dp_chain_tick(node);
    assert_int_equal(world->actions->count, 0);
    chain->stored_at.us--;
    dp_chain_tick(node);
    const dp_action *store = kit_find(world->actions, DP_DO_STORE);
    assert_true(store != NULL && store->u.store.kind == DP_STORE_DECIDED);
    assert_true(chain->op != 0 && store->u.store.op == chain->op && !chain->failed);
    assert_int_equal(store->u.store.slot, chain->decoded.slot);
    assert_int_equal(store->u.store.bytes.size, chain->record_size);
    assert_int_equal(store->u.store.cert.size, chain->cert_size);
    assert_true(store->u.store.bytes.data == chain->record &&
                store->u.store.cert.data == chain->cert);
    assert_int_equal(chain->stored_at.us, node->now.us);
    dp_chain_tick(node);
    assert_int_equal(world->actions->count, 1);
    chain->op = 0;
    kit_close(world);
}

static void the_newest_state_is_certified_once(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    dp_history_row *row = dp_chain_row(node, node->ledger.round);
    const dp_hash root = {{4}};
    dp_hash found;

    (void)state;
    assert_non_null(row);
    row->certified = false;
    assert_false(dp_chain_certified(node, row->round, &found));
    assert_true(dp_chain_certify(node, &root));
    assert_false(dp_chain_certify(node, &root));
    assert_true(dp_chain_certified(node, row->round, &found) && dp_hash_equal(&found, &root));
    assert_true(dp_chain_digest(node, row->round, &found) && dp_hash_equal(&found, &row->digest));
    assert_false(dp_chain_digest(node, row->round + 1, &found));
    assert_false(dp_chain_certified(node, row->round + 1, &found));
    assert_null(dp_chain_row(node, 0));
    assert_null(dp_chain_row(node, row->round + DP_HISTORY_ROUNDS));
    const uint64_t round = node->ledger.round;
    node->ledger.round = 0;
    node->chain->genesis_certified = false;
    assert_true(dp_chain_digest(node, 0, &found));
    assert_true(dp_hash_equal(&found, &node->chain->genesis_digest));
    assert_false(dp_chain_certified(node, 0, &found));
    assert_true(dp_chain_certify(node, &root));
    assert_false(dp_chain_certify(node, &root));
    assert_true(dp_chain_certified(node, 0, &found) && dp_hash_equal(&found, &root));
    node->ledger.round = round;
    kit_close(world);
}

static void a_blob_is_let_go_unless_something_else_needs_it(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    const dp_hash blob = {{1, 55}};
    const dp_hash wanted = {{2, 55}};

    (void)state;
    dp_node_hold(node, &blob, 8);
    assert_true(dp_chain_let_go(node, &blob, 77));
    const dp_action *drop = kit_find(world->actions, DP_DO_OBJECT_DROP);
    assert_true(drop != NULL && dp_hash_equal(&drop->u.keep.root, &blob));
    assert_true(drop->u.keep.use == DP_USE_BLOB && drop->u.keep.round == 77);
    assert_false(dp_node_holds(node, &blob));
    assert_true(dp_chain_let_go(node, &blob, 77));
    assert_int_equal(world->actions->count, 1);
    assert_int_equal(dp_picker_want(node->picker, node->now, &wanted, 8, DP_USE_BLOB,
                                    DP_PRIORITY_ROUND, &node->out),
                     DP_OK);
    assert_true(dp_chain_let_go(node, &wanted, 77));
    assert_false(dp_picker_wants(node->picker, &wanted));
    const dp_hash state_root = {{3, 55}}; /* A state, the tokenizer: not by the name of a blob. */
    dp_saved_add(node, 1, &state_root, 8, false);
    dp_node_hold(node, &state_root, 8);
    assert_true(dp_chain_let_go(node, &state_root, 77));
    assert_true(dp_node_holds(node, &state_root));
    node->manifest.tokenizer = blob;
    dp_node_hold(node, &blob, 8);
    dp_chain_drop(node, &blob, 77);
    assert_true(dp_node_holds(node, &blob));
    memset(&node->manifest.tokenizer, 0, sizeof node->manifest.tokenizer);
    node->out.sends_max = world->actions->count; /* There is no room: it is asked for again. */
    assert_false(dp_chain_let_go(node, &blob, 77));
    assert_true(dp_node_holds(node, &blob));
    node->out.sends_max = DP_OUT_SENDS_MAX;
    kit_close(world);
}

static void updates_that_had_no_room_are_let_go_later_unless_they_are_claimed_again(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    dp_round *round = node->round;
    dp_unlisted rows[3];

    (void)state;
    dp_unlisted *const before = round->unlisted;
    const uint32_t max = round->unlisted_max;
    round->unlisted = rows;
    round->unlisted_max = 3;
    for (uint32_t i = 0; i < 3; i++) {
        rows[i] = (dp_unlisted){.root = {{(uint8_t)i, 66}}, .round = 5 + i};
        dp_node_hold(node, &rows[i].root, 8);
    }
    round->n_unlisted = 3;
    round->n_claims = 1;
    round->claims[0].ready.root = rows[2].root;
    dp_round_drop_more(node, 2);
    assert_int_equal(round->n_unlisted, 1);
    assert_true(dp_node_holds(node, &rows[2].root)); /* It is dropped with its claim. */
    assert_false(dp_node_holds(node, &rows[1].root));
    assert_true(dp_node_holds(node, &rows[0].root));
    const dp_action *drop = kit_find(world->actions, DP_DO_OBJECT_DROP);
    assert_true(drop != NULL && drop->u.keep.round == 6);
    assert_int_equal(world->actions->count, 1);
    node->out.sends_max = 1;
    dp_round_drop_more(node, 5);
    assert_int_equal(round->n_unlisted, 1);
    node->out.sends_max = DP_OUT_SENDS_MAX;
    dp_round_drop_more(node, 5);
    assert_int_equal(round->n_unlisted, 0);
    round->n_claims = 0;
    round->unlisted = before;
    round->unlisted_max = max;
    kit_close(world);
}

static void another_chain_is_asked_for_once_a_second(void **state)
{
    kit_world *world = kit_together(2);
    dp_node *node = begin(world);
    const dp_peer peer = kit_peer(1);
    const uint64_t slot = node->ledger.slot;
    uint64_t first = 0;
    uint32_t count = 0;

    (void)state;
    node->proof->record_asked_at = (dp_time){0};
    dp_equivocation_fetch(node, &peer, 0);
    dp_equivocation_fetch(node, &peer, slot + 9);
    assert_int_equal(world->actions->count, 0);
    dp_equivocation_fetch(node, &peer, slot);
    assert_int_equal(world->actions->count, 1);
    assert_int_equal(
        dp_wire_read_records_get(world->actions->items[0].u.send.bytes, &first, &count), DP_OK);
    assert_int_equal(first, slot);
    assert_int_equal(count, DP_WITNESS_SLOTS);
    assert_int_equal(node->proof->record_asked_at.us, node->now.us);
    dp_equivocation_fetch(node, &peer, slot);
    assert_int_equal(world->actions->count, 1);
    node->now.us += DP_SECOND - 1;
    dp_equivocation_fetch(node, &peer, slot);
    assert_int_equal(world->actions->count, 1);
    node->now.us += 1;
    node->halted = true;
    dp_equivocation_fetch(node, &peer, slot);
    assert_int_equal(world->actions->count, 1);
    node->halted = false;
    dp_equivocation_fetch(node, &peer, slot);
    assert_int_equal(world->actions->count, 2);
    kit_close(world);
}

/* Two votes of node 1 that contradict each other, for the slot under way. */
static void double_vote(const kit_world *world, dp_vote votes[2])
{
    const dp_node *node = world->nodes[0].node;
    const dp_crypto liar = kit_crypto(1);

    for (uint32_t i = 0; i < 2; i++) {
        votes[i] =
            (dp_vote){.type = DP_MSG_ACCEPTED,
                      .voter = (uint8_t)dp_ledger_voter(&node->ledger, &world->nodes[1].node->self),
                      .fork = node->ledger.fork,
                      .slot = node->ledger.slot + 1,
                      .prev = node->ledger.head,
                      .ballot = 7,
                      .hash = {{(uint8_t)(i + 1)}}};
        assert_true(dp_vote_sign(&votes[i], &liar, &node->run));
    }
}

static void votes_that_are_seen_convict_and_the_proof_is_written_told_and_restored(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = begin(world);
    const dp_peer culprit = kit_peer(1);
    dp_vote votes[2];
    dp_vote read[2];

    (void)state;
    double_vote(world, votes);
    dp_equivocation_saw(node, &votes[0]);
    assert_false(node->halted);
    dp_equivocation_saw(node, &votes[1]);
    assert_true(node->halted && node->changed && dp_proof_of_votes(node));
    assert_true(dp_peer_equal(&node->proof->culprit, &culprit));
    const dp_action *halt = kit_find(world->actions, DP_DO_HALT);
    assert_true(halt != NULL && dp_peer_equal(&halt->u.note.peer, &culprit));
    assert_int_equal(halt->u.note.round, node->ledger.round + 1);
    assert_string_equal(halt->u.note.cause, "voted twice");
    const dp_action *store = kit_find(world->actions, DP_DO_STORE);
    assert_true(store != NULL && store->u.store.kind == DP_STORE_PROOF);
    const dp_view row = store->u.store.bytes;
    const dp_action *send = kit_find(world->actions, DP_DO_SEND);
    assert_true(send != NULL && send->u.send.to == DP_TO_ALL);
    assert_int_equal(dp_proof_msg_read(send->u.send.bytes, &read[0], &read[1]), DP_OK);
    assert_memory_equal(&read[0].hash, &votes[0].hash, sizeof read[0].hash);
    assert_memory_equal(&read[1].hash, &votes[1].hash, sizeof read[1].hash);
    /* The disk refuses it: it is written again. */
    const uint32_t op = node->proof->op;
    assert_true(op != 0 && !dp_proof_stored(node, op + 1, DP_OK));
    assert_true(dp_proof_stored(node, op, DP_NOSPACE));
    assert_true(node->proof->failed && node->proof->op == 0);
    const uint32_t n = world->actions->count;
    node->now.us += DP_REPEAT_US - 1;
    dp_proof_tick(node);
    assert_int_equal(world->actions->count, n);
    node->now.us += 1;
    dp_proof_tick(node);
    assert_int_equal(world->actions->count, n + 1);
    assert_true(dp_proof_stored(node, node->proof->op, DP_OK) && !node->proof->failed);
    dp_proof_tick(node);
    assert_int_equal(world->actions->count, n + 1);
    /* Read back, the row is the same and halts again. */
    uint8_t bytes[DP_PROOF_ROW_MAX];
    memcpy(bytes, row.data, row.size);
    memset(node->proof, 0, sizeof *node->proof);
    node->halted = false;
    assert_int_equal(dp_proof_restore(node, dp_view_of(bytes, row.size)), DP_OK);
    assert_int_equal(node->proof->row_size, row.size);
    assert_memory_equal(node->proof->row, bytes, row.size);
    assert_true(dp_peer_equal(&node->proof->culprit, &culprit));
    begin(world);
    dp_proof_start(node);
    assert_true(node->halted);
    dp_proof_tell(node, &culprit);
    send = kit_find(world->actions, DP_DO_SEND);
    assert_true(send != NULL && dp_msg_type_of(send->u.send.bytes) == DP_MSG_PROOF);
    bytes[0] = 77;
    assert_int_equal(dp_proof_restore(node, dp_view_of(bytes, row.size)), DP_VERSION);
    assert_int_equal(dp_proof_restore(node, dp_view_of(bytes, DP_PROOF_ROW_HEAD - 1)), DP_BADMSG);
    kit_close(world);
}

static void a_proof_that_nobody_signed_puts_the_next_of_its_sender_off(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = begin(world);
    uint8_t room[1024];
    dp_vote votes[2];

    (void)state;
    double_vote(world, votes);
    votes[1].signature[0] ^= 1;
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_proof_msg_write(&writer, &votes[0], &votes[1]);
    const dp_view message = dp_view_of(room, writer.size);
    assert_int_equal(dp_proof_message(node, 1, message), DP_BADSIG);
    assert_int_equal(node->proof->again[1].us, node->now.us + DP_PROOF_PATIENCE_US);
    assert_int_equal(node->proof->again[2].us, 0);
    node->now.us += DP_PROOF_PATIENCE_US - 1;
    assert_int_equal(dp_proof_message(node, 1, message), DP_DENIED);
    node->now.us += 1;
    assert_int_equal(dp_proof_message(node, 1, message), DP_BADSIG);
    assert_false(node->halted);
    dp_proof_forget_member(node, 1);
    assert_int_equal(node->proof->again[1].us, 0);
    kit_close(world);
}

static void a_decided_record_is_told_once_after_it_is_written(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);

    (void)state;
    node->round->tells_written = false;
    dp_round_tell_written(node);
    assert_int_equal(world->actions->count, 0);
    node->round->tells_written = true;
    dp_round_tell_written(node);
    assert_int_equal(world->actions->count, 1);
    dp_decide_msg msg;
    assert_int_equal(dp_decide_msg_read(world->actions->items[0].u.send.bytes, &msg), DP_OK);
    assert_int_equal(msg.slot, node->ledger.slot);
    assert_int_equal(msg.cert.size, node->chain->cert_size);
    assert_false(node->round->tells_written);
    dp_round_tell_written(node);
    assert_int_equal(world->actions->count, 1);
    kit_close(world);
}

static void a_fork_beyond_the_largest_is_refused_before_it_is_read(void **state)
{
    static uint8_t bytes[DP_FORK_BYTES_MAX + 1];
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);
    const dp_peer peer = kit_peer(1);

    (void)state;
    assert_int_equal(dp_fork_take(node, dp_view_of(bytes, sizeof bytes), &peer), DP_TOOBIG);
    const dp_status status = dp_fork_take(node, dp_view_of(bytes, sizeof bytes - 1), &peer);
    assert_true(status != DP_OK && status != DP_TOOBIG);
    kit_close(world);
}

static void a_stop_that_ends_no_chain_or_a_halt_by_votes_is_not_taken(void **state)
{
    kit_world *world = kit_together(1);
    dp_node *node = begin(world);

    (void)state;
    for (uint32_t what = 0; what < 3; what++) {
        dp_stop stop = {.has = true, .loser = {{1}}, .survivor = {{(uint8_t)(what == 0 ? 1 : 2)}}};
        assert_true(dp_stop_sign(&node->config.crypto, &node->run, &stop.loser, &stop.survivor,
                                 stop.signature));
        node->forks->stop.has = false;
        node->halted = what == 1;
        node->proof->row_size = what == 1 ? 1 : 0;
        node->proof->row[0] = 1; /* Of votes. */
        assert_int_equal(dp_proof_of_votes(node), what == 1);
        assert_int_equal(dp_fork_stop(node, &stop), DP_OK);
        assert_int_equal(node->forks->stop.has, what == 2);
        stop.signature[0] ^= 1;
        node->forks->stop.has = false;
        assert_int_equal(dp_fork_stop(node, &stop), DP_BADSIG);
    }
    kit_close(world);
}

/* A peer whose summary names another chain gets the FORK or the STOP of this node. */
static void a_fork_is_told_again_to_those_on_another_chain(void **state)
{
    kit_world *world = kit_together(2);
    dp_node *node = begin(world);
    const dp_peer peer = kit_peer(1);
    dp_member *member =
        (dp_member *)(uintptr_t)dp_members_at(node->members, dp_node_member_index(node, &peer));

    (void)state;
    member->summary.fork = dp_fork_tag(&node->ledger.fork) + 1;
    node->forks->repeat_at = (dp_time){0};
    dp_fork_repeat(node);
    assert_int_equal(world->actions->count, 0); /* There is nothing to send. */
    node->forks->stop.has = true;
    node->forks->repeat_at = (dp_time){node->now.us + 1};
    dp_fork_repeat(node);
    assert_int_equal(world->actions->count, 0);
    node->forks->repeat_at = node->now;
    dp_fork_repeat(node);
    assert_int_equal(world->actions->count, 1);
    assert_int_equal(dp_msg_type_of(world->actions->items[0].u.send.bytes), DP_MSG_STOP);
    assert_true(node->forks->repeat_at.us > node->now.us);
    node->forks->repeat_at = node->now;
    member->summary.fork--;
    dp_fork_repeat(node);
    assert_int_equal(world->actions->count, 1);
    node->forks->stop.has = false;
    kit_close(world);
}

/* Of a slot that is decided here: the first is kept, and the second contradicts it. */
static void two_votes_for_a_decided_slot_convict_whoever_signed_both(void **state)
{
    kit_world *world = kit_together(2);
    dp_node *node = begin(world);
    const dp_witness_slot *entry = dp_witness_find(node->witness, node->ledger.slot);
    const dp_crypto liar = kit_crypto(0);
    const dp_peer from = kit_peer(1);

    (void)state;
    assert_non_null(entry);
    uint32_t voter = 0;
    while (!dp_peer_equal(&entry->voters[voter].peer, &node->self)) {
        voter++;
    }
    for (uint32_t i = 0; i < 2; i++) {
        dp_vote vote = {.type = DP_MSG_ACCEPTED,
                        .voter = (uint8_t)voter,
                        .fork = entry->fork,
                        .slot = entry->slot,
                        .prev = entry->prev,
                        .ballot = 900,
                        .hash = {{(uint8_t)(i + 1)}}};
        assert_true(dp_vote_sign(&vote, &liar, &node->run));
        assert_false(node->halted);
        dp_equivocation_vote(node, &vote, &from);
    }
    assert_true(node->halted);
    assert_true(dp_peer_equal(&node->proof->culprit, &node->self));
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_that_could_not_be_written_is_written_again_after_a_while),
        cmocka_unit_test(the_newest_state_is_certified_once),
        cmocka_unit_test(a_blob_is_let_go_unless_something_else_needs_it),
        cmocka_unit_test(updates_that_had_no_room_are_let_go_later_unless_they_are_claimed_again),
        cmocka_unit_test(another_chain_is_asked_for_once_a_second),
        cmocka_unit_test(votes_that_are_seen_convict_and_the_proof_is_written_told_and_restored),
        cmocka_unit_test(a_proof_that_nobody_signed_puts_the_next_of_its_sender_off),
        cmocka_unit_test(a_decided_record_is_told_once_after_it_is_written),
        cmocka_unit_test(a_fork_beyond_the_largest_is_refused_before_it_is_read),
        cmocka_unit_test(a_stop_that_ends_no_chain_or_a_halt_by_votes_is_not_taken),
        cmocka_unit_test(a_fork_is_told_again_to_those_on_another_chain),
        cmocka_unit_test(two_votes_for_a_decided_slot_convict_whoever_signed_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
