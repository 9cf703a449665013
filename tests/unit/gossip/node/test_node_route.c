/* Messages at a node: the rights of senders, forwarded and answered messages, and refused and
 * counted ones. */
#include "gossip/context/context.h"
#include "gossip/record/wire.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"
#include "gossip/training/training.h"
#include "tests/unit/gossip/kit/node_kit.h"

static kit_world *three(void)
{
    kit_world *world = kit_open(3);

    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    return world;
}

static uint8_t room[DP_MESSAGE_MAX + 1];

static dp_writer fresh(void)
{
    return dp_writer_of(room, sizeof room);
}

static dp_view written(const dp_writer *writer)
{
    assert_false(writer->full);
    return dp_view_of(writer->data, writer->size);
}

/* From node 1 to node 0. */
static void refused(kit_world *world, dp_view bytes)
{
    const uint64_t before = kit_look(world, 0).rejected;

    kit_tell(world, 1, 0, bytes);
    assert_int_equal(kit_look(world, 0).rejected, before + 1);
}

static const dp_actions *taken(kit_world *world, dp_view bytes)
{
    const uint64_t before = kit_look(world, 0).rejected;
    const dp_actions *actions = kit_tell(world, 1, 0, bytes);

    assert_int_equal(kit_look(world, 0).rejected, before);
    return actions;
}

/* The first message of this type to this peer among actions, or an empty one. */
static dp_view sent(const dp_actions *actions, uint32_t to, dp_msg_type type)
{
    const dp_peer peer = kit_peer(to);

    for (uint32_t i = 0; i < actions->count; i++) {
        const dp_action *action = &actions->items[i];
        if (action->type == DP_DO_SEND && action->u.send.to == DP_TO_PEER &&
            dp_peer_equal(&action->u.send.peer, &peer) &&
            dp_msg_type_of(action->u.send.bytes) == type) {
            return action->u.send.bytes;
        }
    }
    return (dp_view){0};
}

static dp_vote vote_of(kit_world *world, dp_msg_type type, uint64_t slot)
{
    const dp_ledger *ledger = &world->nodes[0].node->ledger;
    const dp_run_id run = kit_run();
    const dp_crypto crypto = kit_crypto(1);
    const dp_peer peer = kit_peer(1);
    dp_vote vote = {.type = type,
                    .voter = (uint8_t)dp_ledger_voter(ledger, &peer),
                    .fork = ledger->fork,
                    .slot = slot,
                    .prev = ledger->head,
                    .ballot = 9};

    assert_true(dp_vote_sign(&vote, &crypto, &run));
    return vote;
}

static dp_view vote_message(const dp_vote *vote)
{
    const dp_vote_msg msg = {.vote = *vote};
    dp_writer writer = fresh();

    dp_vote_msg_write(&writer, &msg);
    return written(&writer);
}

static void strangers_oneself_and_messages_over_the_limit_are_refused(void **state)
{
    kit_world *world = three();
    dp_writer writer = fresh();
    const uint64_t before = kit_look(world, 0).rejected;

    (void)state;
    dp_wire_write_manifest_get(&writer);
    kit_tell(world, 9, 0, written(&writer));
    kit_tell(world, 0, 0, written(&writer));
    kit_tell(world, 1, 0, dp_view_of(room, DP_MESSAGE_MAX + 1));
    assert_int_equal(kit_look(world, 0).rejected, before + 3);
    const dp_action *serve = kit_find(taken(world, written(&writer)), DP_DO_SERVE_MANIFEST);
    assert_non_null(serve);
    const dp_peer asker = kit_peer(1);
    assert_true(dp_peer_equal(&serve->u.peer, &asker));
    kit_close(world);
}

static void questions_that_cannot_be_read_are_refused(void **state)
{
    kit_world *world = three();
    static const uint8_t types[] = {
        DP_MSG_INFO_GET,  DP_MSG_CHUNK_GET,  DP_MSG_RECORDS_GET, DP_MSG_RECORDS,
        DP_MSG_RELAY,     DP_MSG_DECIDE,     DP_MSG_PREPARE,     DP_MSG_READY,
        DP_MSG_HAVE,      DP_MSG_STATE,      DP_MSG_VOTER_OK,    DP_MSG_REMOVE,
        DP_MSG_FENCE_ASK, DP_MSG_FORK,       DP_MSG_STOP,        DP_MSG_PROOF,
        DP_MSG_MIX_OFFER, DP_MSG_PING,       DP_MSG_HEARTBEAT,   DP_MSG_SYNC,
        DP_MSG_STATEMENT, DP_MSG_MIX_STATUS, DP_MSG_ACK,         DP_MSG_PING_REQ,
        DP_MSG_MIX_SIGNED};

    (void)state;
    for (size_t i = 0; i < sizeof types; i++) {
        const uint8_t bytes[3] = {types[i], DP_MSG_VERSION, 0};
        refused(world, dp_view_of(bytes, sizeof bytes));
        refused(world, dp_view_of(bytes, 2));
    }
    const uint8_t other_version[2] = {DP_MSG_MANIFEST_GET, DP_MSG_VERSION + 1};
    refused(world, dp_view_of(other_version, 2));
    kit_close(world);
}

static void records_are_served_up_to_the_head_and_not_beyond(void **state)
{
    kit_world *world = three();
    const uint64_t head = kit_look(world, 0).slot;
    dp_writer writer = fresh();

    (void)state;
    dp_wire_write_records_get(&writer, head - 1, 50);
    const dp_action *serve = kit_find(taken(world, written(&writer)), DP_DO_SERVE_RECORDS);
    assert_non_null(serve);
    assert_int_equal(serve->u.serve.from, head - 1);
    assert_int_equal(serve->u.serve.count, 2);
    writer = fresh();
    dp_wire_write_records_get(&writer, 1, 1);
    assert_int_equal(kit_find(taken(world, written(&writer)), DP_DO_SERVE_RECORDS)->u.serve.count,
                     1);
    writer = fresh();
    dp_wire_write_records_get(&writer, head + 1, 50);
    assert_null(kit_find(taken(world, written(&writer)), DP_DO_SERVE_RECORDS));
    kit_close(world);
}

static void objects_are_served_by_their_root(void **state)
{
    kit_world *world = three();
    const dp_hash root = {{3, 4, 5}};
    dp_writer writer = fresh();

    (void)state;
    dp_wire_write_info_get(&writer, &root);
    const dp_action *serve = kit_find(taken(world, written(&writer)), DP_DO_SERVE_INFO);
    assert_non_null(serve);
    assert_true(dp_hash_equal(&serve->u.get.root, &root));
    writer = fresh();
    dp_wire_write_chunk_get(&writer, &root, 6);
    serve = kit_find(taken(world, written(&writer)), DP_DO_SERVE_CHUNK);
    assert_non_null(serve);
    assert_int_equal(serve->u.get.index, 6);
    kit_close(world);
}

static bool gets_info(kit_world *world, uint32_t from, const dp_hash *root)
{
    dp_writer writer = fresh();

    dp_wire_write_info_get(&writer, root);
    const dp_actions *actions = kit_tell(world, from, 0, written(&writer));
    const bool serves = kit_find(actions, DP_DO_SERVE_INFO) != NULL;
    const dp_view answer = sent(actions, from, DP_MSG_CHUNK);
    dp_wire_chunk chunk;
    assert_int_equal(serves, answer.size == 0);
    if (!serves) {
        assert_int_equal(dp_wire_read_chunk(answer, &chunk), DP_OK);
        assert_true(dp_hash_equal(&chunk.root, root));
        assert_false(chunk.found);
        assert_int_equal(chunk.index, 0);
    }
    return serves;
}

static void behind_a_thin_uplink_the_second_who_asks_for_the_update_hears_not_here(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;
    const dp_hash other = {{3, 4, 5}};
    dp_pending *pending = &node->train->pending;

    (void)state;
    *pending = (dp_pending){
        .has = true,
        .settled = true,
        .ready = {.round = node->ledger.round + 1, .root = {{9, 9}}, .bytes = 4000 * 1000}};
    node->standing.uplink = 1000;
    dp_relay_came(&node->relay, DP_SECOND);
    const dp_hash root = pending->ready.root;
    assert_true(gets_info(world, 1, &root));
    assert_false(gets_info(world, 2, &root));
    assert_true(gets_info(world, 1, &root));
    assert_true(gets_info(world, 2, &other));
    pending->ready.round--; /* Decided by now: all nodes that need it must have it. */
    assert_true(gets_info(world, 2, &root));
    kit_close(world);
}

static void a_message_for_another_is_passed_on_with_one_hop_less(void **state)
{
    kit_world *world = three();
    const dp_peer target = kit_peer(2);
    const dp_peer nobody = kit_peer(9);
    dp_wire_relay relay;
    dp_writer writer = fresh();

    (void)state;
    dp_wire_write_relay(&writer, 2, &target, dp_view_text("inside"));
    const dp_view passed = sent(taken(world, written(&writer)), 2, DP_MSG_RELAY);
    assert_int_equal(dp_wire_read_relay(passed, &relay), DP_OK);
    assert_int_equal(relay.hops, 1);
    assert_true(dp_peer_equal(&relay.target, &target));
    assert_true(dp_view_equal(relay.message, dp_view_text("inside")));
    writer = fresh();
    dp_wire_write_relay(&writer, 0, &target, dp_view_text("inside"));
    assert_int_equal(sent(taken(world, written(&writer)), 2, DP_MSG_RELAY).size, 0);
    writer = fresh();
    dp_wire_write_relay(&writer, 2, &nobody, dp_view_text("inside"));
    taken(world, written(&writer)); /* There is no receiver for it, and no node is at fault. */
    kit_close(world);
}

static void only_what_is_signed_or_harmless_comes_through_others(void **state)
{
    kit_world *world = three();
    const dp_peer self = kit_peer(0);
    const dp_crypto crypto = kit_crypto(2);
    const dp_run_id run = kit_run();
    dp_have_msg have = {.voter = kit_peer(2), .round = kit_look(world, 0).round + 1};
    uint8_t inside[DP_ROUND_MESSAGE_MAX];
    dp_writer within = dp_writer_of(inside, sizeof inside);
    dp_writer writer = fresh();

    (void)state;
    dp_have_msg_write(&within, &have);
    dp_wire_write_relay(&writer, 1, &self, written(&within));
    refused(world, written(&writer)); /* The carrier may have made it. */
    assert_true(dp_have_sign(&have, &crypto, &run));
    within = dp_writer_of(inside, sizeof inside);
    dp_have_msg_write(&within, &have);
    writer = fresh();
    dp_wire_write_relay(&writer, 1, &self, written(&within));
    taken(world, written(&writer));
    static const uint8_t not_so[] = {DP_MSG_PING,         DP_MSG_MIX_OFFER,  DP_MSG_RECORDS_GET,
                                     DP_MSG_MANIFEST_GET, DP_MSG_RELAY,      DP_MSG_MIX_SIGNED,
                                     DP_MSG_ROTATE,       DP_MSG_SECRET_GET, DP_MSG_SECRET};
    for (size_t i = 0; i < sizeof not_so; i++) {
        const uint8_t bytes[2] = {not_so[i], DP_MSG_VERSION};
        writer = fresh();
        dp_wire_write_relay(&writer, 1, &self, dp_view_of(bytes, sizeof bytes));
        refused(world, written(&writer));
    }
    const uint8_t bytes[2] = {DP_MSG_PING, DP_MSG_VERSION};
    writer = fresh();
    dp_wire_write_relay(&writer, 1, &self, dp_view_of(bytes, 1)); /* Too short for a type. */
    refused(world, written(&writer));
    kit_close(world);
}

/* Four nodes; first two voters without a link to each other, then a lost voter, then a member
 * linked to both. */
static kit_world *with_a_member_between(uint32_t who[4])
{
    kit_world *world = kit_open(4);
    uint32_t n = 0;

    kit_link_all(world);
    kit_run_ms(world, 4000);
    const dp_ledger *ledger = &world->nodes[0].node->ledger;
    assert_int_equal(ledger->n_voters, 3);
    for (uint32_t i = 0; i < 4; i++) {
        const dp_peer peer = kit_peer(i);
        who[dp_ledger_voter(ledger, &peer) == DP_NOBODY ? 3 : n++] = i;
    }
    assert_int_equal(n, 3);
    kit_kill(world, who[2]);
    kit_cut(world, who[0], who[1]);
    return world;
}

static void two_voters_with_only_a_member_between_them_go_on_deciding(void **state)
{
    uint32_t who[4];
    kit_world *world = with_a_member_between(who);

    (void)state;
    kit_run_ms(world, 5000);
    const uint64_t round = kit_look(world, who[0]).round;
    kit_run_ms(world, 10 * 1000);
    assert_true(kit_look(world, who[0]).round > round + 5);
    assert_true(kit_look(world, who[1]).round > round + 5);
    assert_int_equal(kit_look(world, who[3]).listed_last, 3);
    kit_close(world);
}

static void a_blob_out_of_reach_has_its_claim_shown_to_members(void **state)
{
    uint32_t who[4];
    kit_world *world = with_a_member_between(who);
    const dp_run_id run = kit_run();
    const dp_crypto author = kit_crypto(who[2]);
    dp_node *const near = world->nodes[who[0]].node;
    const dp_node *const member = world->nodes[who[3]].node;
    dp_writer writer = fresh();

    (void)state;
    kit_run_ms(world, 5000);
    for (uint32_t i = 0; i < 4; i++) {
        world->nodes[i].mute_blobs = true; /* So that the round stays open. */
    }
    kit_run_ms(world, 3000);
    assert_int_equal(member->ledger.round, near->ledger.round);
    dp_ready ready = {.peer = kit_peer(who[2]),
                      .round = near->ledger.round + 1,
                      .base = near->ledger.base,
                      .bytes = 8,
                      .steps = 1,
                      .tokens = 100,
                      .reach = {.own = 1U << 30},
                      .state_root = near->standing.state_root};
    ready.root.bytes[0] = 77;
    assert_true(dp_ready_sign(&ready, &author, &run, &near->ledger.fork));
    dp_ready_msg_write(&writer, &ready);
    kit_tell(world, who[3], who[0], written(&writer));
    assert_null(dp_round_claim_of(member, &ready.peer));
    kit_run_ms(world, 5000);
    assert_non_null(dp_round_claim_of(member, &ready.peer));
    assert_true(dp_picker_wants(member->picker, &ready.root));
    kit_close(world);
}

static void a_vote_of_a_decided_slot_is_answered_with_the_records(void **state)
{
    kit_world *world = three();
    const uint64_t head = kit_look(world, 0).slot;

    (void)state;
    dp_vote vote = vote_of(world, DP_MSG_PREPARE, head - 1);
    const dp_action *serve = kit_find(taken(world, vote_message(&vote)), DP_DO_SERVE_RECORDS);
    assert_non_null(serve);
    assert_int_equal(serve->u.serve.from, head - 1);
    assert_int_equal(serve->u.serve.count, 2);
    vote = vote_of(world, DP_MSG_ACCEPTED, head - 1); /* A voter that accepted gets it anyway. */
    assert_null(kit_find(taken(world, vote_message(&vote)), DP_DO_SERVE_RECORDS));
    kit_close(world);
}

static void a_vote_of_a_later_slot_has_its_records_asked_for(void **state)
{
    kit_world *world = three();
    const uint64_t head = kit_look(world, 0).slot;
    const dp_vote vote = vote_of(world, DP_MSG_PREPARE, head + 3);
    dp_vote elsewhere = vote;

    (void)state;
    const dp_view question = sent(taken(world, vote_message(&vote)), 1, DP_MSG_RECORDS_GET);
    uint64_t from = 0;
    uint32_t count = 0;
    assert_int_equal(dp_wire_read_records_get(question, &from, &count), DP_OK);
    assert_int_equal(from, head + 1);
    elsewhere.fork.bytes[0] = 7; /* Of a chain that is not ours: not our slot. */
    assert_int_equal(sent(taken(world, vote_message(&elsewhere)), 1, DP_MSG_RECORDS_GET).size, 0);
    kit_close(world);
}

static void a_vote_after_another_record_than_ours_is_refused(void **state)
{
    kit_world *world = three();
    dp_vote vote = vote_of(world, DP_MSG_PREPARE, kit_look(world, 0).slot + 1);

    (void)state;
    vote.prev.bytes[0] ^= 1;
    refused(world, vote_message(&vote));
    kit_close(world);
}

static void a_decision_whose_record_is_of_another_slot_changes_nothing(void **state)
{
    kit_world *world = three();
    const uint64_t head = kit_look(world, 0).slot;
    const kit_record *old = &world->nodes[0].records[head];
    dp_writer writer = fresh();

    (void)state;
    dp_decide_msg_write(&writer, head + 1, dp_view_of(old->cert, old->cert_size),
                        dp_view_of(old->record, old->record_size));
    taken(world, written(&writer)); /* It is known. */
    writer = fresh();
    dp_decide_msg_write(&writer, head + 1, dp_view_of(old->cert, old->cert_size),
                        dp_view_of(room, 0));
    refused(world, written(&writer));
    writer = fresh();
    dp_decide_msg_write(&writer, head + 5, dp_view_of(old->cert, old->cert_size),
                        dp_view_of(old->record, old->record_size));
    assert_true(sent(taken(world, written(&writer)), 1, DP_MSG_RECORDS_GET).size > 0);
    assert_int_equal(kit_look(world, 0).slot, head);
    kit_close(world);
}

static void a_halted_node_answers_votes_with_the_proof(void **state)
{
    kit_world *world = three();
    const dp_run_id run = kit_run();
    const dp_crypto liar = kit_crypto(2);
    dp_vote votes[2];
    dp_writer writer = fresh();

    (void)state;
    const uint64_t next = kit_look(world, 0).slot + 1;
    for (uint32_t i = 0; i < 2; i++) {
        votes[i] = vote_of(world, DP_MSG_ACCEPTED, next);
        votes[i].hash.bytes[0] = (uint8_t)(i + 1);
        assert_true(dp_vote_sign(&votes[i], &liar, &run));
    }
    dp_proof_msg_write(&writer, &votes[0], &votes[1]);
    taken(world, written(&writer));
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_HALTED);
    const dp_vote vote = vote_of(world, DP_MSG_PREPARE, next);
    assert_true(sent(taken(world, vote_message(&vote)), 1, DP_MSG_PROOF).size > 0);
    kit_close(world);
}

static void a_proof_comes_through_others(void **state)
{
    kit_world *world = three();
    const dp_run_id run = kit_run();
    const dp_crypto liar = kit_crypto(2);
    const dp_peer self = kit_peer(0);
    uint8_t inside[DP_ROUND_MESSAGE_MAX];
    dp_writer within = dp_writer_of(inside, sizeof inside);
    dp_writer writer = fresh();
    dp_vote votes[2];

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        votes[i] = vote_of(world, DP_MSG_ACCEPTED, kit_look(world, 0).slot + 1);
        votes[i].hash.bytes[0] = (uint8_t)(i + 1);
        assert_true(dp_vote_sign(&votes[i], &liar, &run));
    }
    dp_proof_msg_write(&within, &votes[0], &votes[1]);
    dp_wire_write_relay(&writer, 1, &self, written(&within));
    taken(world, written(&writer));
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_HALTED);
    kit_close(world);
}

/* Node 1 has voted twice, as node from says. */
static void give_proof(kit_world *world, uint32_t from)
{
    const dp_run_id run = kit_run();
    const dp_crypto liar = kit_crypto(1);
    dp_writer writer = fresh();
    dp_vote votes[2];

    for (uint32_t i = 0; i < 2; i++) {
        votes[i] = vote_of(world, DP_MSG_ACCEPTED, kit_look(world, 0).slot + 1);
        votes[i].hash.bytes[0] = (uint8_t)(i + 1);
        assert_true(dp_vote_sign(&votes[i], &liar, &run));
    }
    dp_proof_msg_write(&writer, &votes[0], &votes[1]);
    kit_tell(world, from, 0, written(&writer));
}

static uint32_t n_checks;

static bool counted_verify(void *context, const uint8_t public_key[DP_PUBLIC_KEY_BYTES],
                           const char *domain, dp_view bytes,
                           const uint8_t signature[DP_SIGNATURE_BYTES])
{
    const dp_crypto crypto = kit_crypto(0);

    n_checks++;
    return crypto.verify(context, public_key, domain, bytes, signature);
}

/* A hundred PROOFs, signed by no voter, in a second; what they cost. */
static uint32_t flood_with_proofs(kit_world *world, uint32_t from, bool relayed)
{
    const dp_peer self = kit_peer(0);

    n_checks = 0;
    for (uint32_t k = 0; k < 100; k++) {
        uint8_t inside[DP_ROUND_MESSAGE_MAX];
        dp_writer within = dp_writer_of(inside, sizeof inside);
        dp_writer writer = fresh();
        dp_vote votes[2];
        for (uint32_t i = 0; i < 2; i++) {
            votes[i] = vote_of(world, DP_MSG_ACCEPTED, kit_look(world, 0).slot + 1);
            votes[i].hash.bytes[0] = (uint8_t)(i + 1);
            votes[i].signature[0] ^= 1;
        }
        dp_proof_msg_write(&within, &votes[0], &votes[1]);
        dp_wire_write_relay(&writer, 1, &self, written(&within));
        kit_tell(world, from, 0, relayed ? written(&writer) : written(&within));
        world->now_us += 10000;
    }
    return n_checks;
}

static void junk_for_a_proof_costs_few_checks_and_only_its_sender_is_not_heard(void **state)
{
    kit_world *world = three();

    (void)state;
    world->nodes[0].node->config.crypto.verify = counted_verify;
    assert_in_range(flood_with_proofs(world, 1, false), 1, 4);
    assert_in_range(flood_with_proofs(world, 2, true), 1, 4);
    give_proof(world, 2); /* On its own link, though others relay junk. */
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_HALTED);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_oneself_and_messages_over_the_limit_are_refused),
        cmocka_unit_test(questions_that_cannot_be_read_are_refused),
        cmocka_unit_test(records_are_served_up_to_the_head_and_not_beyond),
        cmocka_unit_test(objects_are_served_by_their_root),
        cmocka_unit_test(behind_a_thin_uplink_the_second_who_asks_for_the_update_hears_not_here),
        cmocka_unit_test(a_message_for_another_is_passed_on_with_one_hop_less),
        cmocka_unit_test(only_what_is_signed_or_harmless_comes_through_others),
        cmocka_unit_test(two_voters_with_only_a_member_between_them_go_on_deciding),
        cmocka_unit_test(a_blob_out_of_reach_has_its_claim_shown_to_members),
        cmocka_unit_test(a_vote_of_a_decided_slot_is_answered_with_the_records),
        cmocka_unit_test(a_vote_of_a_later_slot_has_its_records_asked_for),
        cmocka_unit_test(a_vote_after_another_record_than_ours_is_refused),
        cmocka_unit_test(a_decision_whose_record_is_of_another_slot_changes_nothing),
        cmocka_unit_test(a_halted_node_answers_votes_with_the_proof),
        cmocka_unit_test(a_proof_comes_through_others),
        cmocka_unit_test(junk_for_a_proof_costs_few_checks_and_only_its_sender_is_not_heard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
