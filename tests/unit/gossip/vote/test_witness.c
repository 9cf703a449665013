/* Voters and members that lie: pairs of votes that convict, and the reaction of a node to the lies
 * of one peer. */
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/proof.h"
#include "gossip/context/context.h"
#include "gossip/requests/request_msg.h"
#include "gossip/requests/requests.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"
#include "gossip/transfer/peer_backoff.h"
#include "gossip/vote/witness.h"
#include "tests/unit/gossip/kit/node_kit.h"

static dp_vote vote(uint8_t type, uint32_t ballot, uint8_t record)
{
    return (dp_vote){.type = type, .voter = 1, .slot = 9, .ballot = ballot, .hash = {{record}}};
}

static dp_vote promise(uint32_t ballot, uint32_t accepted_plus_one, uint8_t record)
{
    dp_vote made = vote(DP_MSG_PROMISE, ballot, record);

    made.accepted = accepted_plus_one;
    return made;
}

static bool against(dp_vote a, dp_vote b)
{
    assert_int_equal(dp_votes_contradict(&a, &b), dp_votes_contradict(&b, &a));
    return dp_votes_contradict(&a, &b);
}

static void two_records_in_one_ballot_convict(void **state)
{
    (void)state;
    assert_true(against(vote(DP_MSG_ACCEPTED, 3, 1), vote(DP_MSG_ACCEPTED, 3, 2)));
    assert_true(against(vote(DP_MSG_PROPOSE, 3, 1), vote(DP_MSG_PROPOSE, 3, 2)));
    assert_true(against(vote(DP_MSG_PROPOSE, 3, 1), vote(DP_MSG_ACCEPTED, 3, 2)));
    assert_false(against(vote(DP_MSG_ACCEPTED, 3, 1), vote(DP_MSG_ACCEPTED, 3, 1)));
    assert_false(against(vote(DP_MSG_ACCEPTED, 3, 1), vote(DP_MSG_ACCEPTED, 4, 2)));
}

static void a_promise_that_hides_an_accept_convicts(void **state)
{
    (void)state;
    assert_true(against(vote(DP_MSG_ACCEPTED, 0, 1), promise(2, 0, 0)));
    assert_true(against(vote(DP_MSG_ACCEPTED, 3, 1), promise(5, 2, 1)));
    assert_true(against(vote(DP_MSG_ACCEPTED, 3, 1), promise(5, 4, 2)));
    assert_false(against(vote(DP_MSG_ACCEPTED, 3, 1), promise(5, 4, 1)));
    assert_false(against(vote(DP_MSG_ACCEPTED, 3, 1), promise(7, 6, 2))); /* A later accept. */
    assert_false(against(vote(DP_MSG_ACCEPTED, 3, 1), promise(3, 0, 0))); /* It came before. */
    assert_false(against(vote(DP_MSG_ACCEPTED, 3, 1), promise(2, 0, 0)));
}

static void two_promises_of_one_ballot_say_the_same(void **state)
{
    (void)state;
    assert_true(against(promise(5, 0, 0), promise(5, 2, 1)));
    assert_true(against(promise(5, 2, 1), promise(5, 2, 2)));
    assert_false(against(promise(5, 2, 1), promise(5, 2, 1)));
    assert_false(against(promise(5, 2, 1), promise(6, 4, 2)));
    /* After a failed write a voter may name an accept of this ballot: no voter uses such a
     * promise. */
    assert_false(against(promise(5, 2, 1), promise(5, 6, 2)));
}

static void a_voter_follows_one_chain(void **state)
{
    dp_vote other = vote(DP_MSG_PREPARE, 2, 0);
    dp_vote fork = vote(DP_MSG_ACCEPTED, 3, 2);
    dp_vote later = vote(DP_MSG_ACCEPTED, 3, 2);

    (void)state;
    other.prev.bytes[0] = 1;
    fork.fork.bytes[0] = 1;
    later.slot++;
    assert_true(against(vote(DP_MSG_ACCEPTED, 0, 1), other));
    assert_false(against(vote(DP_MSG_ACCEPTED, 3, 1), fork));
    assert_false(against(vote(DP_MSG_ACCEPTED, 3, 1), later));
}

static void the_lowest_accept_is_remembered(void **state)
{
    dp_witness *witness = calloc(1, sizeof *witness);
    dp_ledger ledger = {.slot = 8, .n_voters = 3};

    (void)state;
    assert_non_null(witness);
    dp_witness_begin(witness, &ledger);
    for (uint32_t ballot = 0; ballot < 9; ballot++) {
        const dp_vote accepted = vote(DP_MSG_ACCEPTED, ballot, 1);
        assert_null(dp_witness_take(witness, &accepted));
    }
    const dp_vote hides = promise(2, 0, 0);
    const dp_vote *found = dp_witness_take(witness, &hides);
    assert_non_null(found);
    assert_int_equal(found->ballot, 0);
    ledger.slot += DP_WITNESS_SLOTS;
    dp_witness_begin(witness, &ledger);
    assert_null(dp_witness_find(witness, 9)); /* Its place was needed. */
    assert_null(dp_witness_take(witness, &hides));
    free(witness);
}

/* An accept that comes late is below a promise of long ago, though the last promise names a later
 * one. */
static void the_lowest_promise_is_remembered(void **state)
{
    dp_witness *witness = calloc(1, sizeof *witness);
    const dp_ledger ledger = {.slot = 8, .n_voters = 3};
    const dp_vote promises[] = {promise(7, 0, 0), promise(5, 0, 0), promise(9, 9, 2)};
    const dp_vote hidden = vote(DP_MSG_ACCEPTED, 4, 1);

    (void)state;
    assert_non_null(witness);
    dp_witness_begin(witness, &ledger);
    for (uint32_t i = 0; i < 3; i++) {
        assert_null(dp_witness_take(witness, &promises[i]));
    }
    const dp_vote *found = dp_witness_take(witness, &hidden);
    assert_non_null(found);
    assert_int_equal(found->ballot, 5);
    free(witness);
}

/* ---- a whole node ---- */

static kit_world *three(void)
{
    kit_world *world = kit_open(3);

    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    return world;
}

/* Another record for this slot of the chain, and this voter's signature under it. */
static dp_view rival_at(kit_world *world, uint64_t slot, uint32_t liar, uint32_t ballot_more,
                        uint8_t *room, size_t capacity)
{
    static dp_record record;
    static uint8_t bytes[DP_RECORD_BYTES_MAX];
    uint8_t cert_bytes[DP_CERT_OF_RECORD_BYTES_MAX];
    const dp_node *node = world->nodes[0].node;
    const kit_record *last = &world->nodes[0].records[slot];
    const dp_crypto crypto = kit_crypto(liar);
    const dp_peer peer = kit_peer(liar);
    dp_cert_of_record cert;
    dp_view encoded;
    dp_view cert_view;
    dp_writer writer = dp_writer_of(room, capacity);

    assert_int_equal(dp_record_decode(&record, dp_view_of(last->record, last->record_size)), DP_OK);
    assert_int_equal(dp_cert_of_record_decode(&cert, dp_view_of(last->cert, last->cert_size)),
                     DP_OK);
    record.time_ms++;
    assert_int_equal(dp_record_encode(&record, bytes, sizeof bytes, &encoded), DP_OK);
    dp_vote accepted = {.type = DP_MSG_ACCEPTED,
                        .voter = (uint8_t)dp_ledger_voter(&node->ledger, &peer),
                        .slot = record.slot,
                        .prev = record.prev,
                        .ballot = cert.ballot + ballot_more,
                        .hash = dp_record_hash(encoded)};
    assert_true(dp_vote_sign(&accepted, &crypto, &node->run));
    cert = (dp_cert_of_record){.ballot = accepted.ballot, .n = 1};
    cert.seals[0].voter = accepted.voter;
    memcpy(cert.seals[0].signature, accepted.signature, sizeof accepted.signature);
    assert_int_equal(dp_cert_of_record_encode(&cert, cert_bytes, sizeof cert_bytes, &cert_view),
                     DP_OK);
    dp_decide_msg_write(&writer, record.slot, cert_view, encoded);
    assert_false(writer.full);
    return dp_view_of(room, writer.size);
}

/* ... for the slot before the newest. */
static dp_view rival_of(kit_world *world, uint32_t liar, uint32_t ballot_more, uint8_t *room,
                        size_t capacity)
{
    return rival_at(world, world->nodes[0].node->ledger.slot - 1, liar, ballot_more, room,
                    capacity);
}

static void a_second_certificate_of_a_decided_slot_convicts_who_signed_both(void **state)
{
    static uint8_t room[DP_VOTE_MESSAGE_MAX + DP_CERT_OF_RECORD_BYTES_MAX];
    kit_world *world = three();
    const dp_node *node = world->nodes[0].node;
    const kit_record *last = &world->nodes[0].records[node->ledger.slot - 1];
    dp_cert_of_record cert;

    (void)state;
    assert_int_equal(dp_cert_of_record_decode(&cert, dp_view_of(last->cert, last->cert_size)),
                     DP_OK);
    const dp_peer culprit = node->ledger.voters[cert.seals[0].voter].peer;
    const uint32_t liar = kit_index(&culprit);
    kit_send(world, 1, 0, rival_of(world, liar, 1, room, sizeof room));
    kit_drain(world);
    assert_int_equal(kit_look(world, 0).mode,
                     DP_MODE_SYNC); /* In a later ballot it may be honest. */
    kit_send(world, 1, 0, rival_of(world, liar, 0, room, sizeof room));
    kit_drain(world);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(kit_look(world, i).mode, DP_MODE_HALTED);
        assert_true(dp_peer_equal(&world->nodes[i].node->proof->culprit, &culprit));
    }
    kit_close(world);
}

/* Node 2 claims that its chain is longer, and serves bytes that are not a record. */
static void a_peer_that_claims_records_and_gives_none_is_ignored_after_a_while(void **state)
{
    static uint8_t room[DP_MESSAGE_MAX];
    kit_world *world = three();
    const dp_peer liar = kit_peer(2);
    dp_node *node = world->nodes[0].node;
    uint32_t asked = 0;

    (void)state;
    for (uint32_t i = 0; i < 12 && !dp_backed_off(&node->catchup->doubt, &liar, node->now); i++) {
        dp_writer writer = dp_writer_of(room, sizeof room);
        node->catchup->hint_slot = node->ledger.slot + 1000;
        node->catchup->hint_peer = liar;
        assert_true(dp_catchup_behind(node));
        node->catchup->asked = liar; /* As if it had been asked just now. */
        node->catchup->asked_at = node->now;
        dp_wire_begin_records(&writer, node->ledger.slot + 1);
        assert_true(dp_wire_add_record(&writer, dp_view_of("no record", 9), dp_view_of("", 0)));
        kit_send(world, 2, 0, dp_view_of(room, writer.size));
        kit_drain(world);
        assert_int_equal(node->catchup->asked_at.us, node->now.us); /* Not again at once. */
        asked++;
        kit_run_ms(world, 1200);
    }
    assert_true(asked >= 2 && asked <= DP_BACKOFF_FAILURES + 1);
    node->catchup->hint_slot = node->ledger.slot + 1000;
    node->catchup->hint_peer = liar;
    assert_false(dp_catchup_behind(node));
    kit_close(world);
}

static void doubt_ends_by_itself_and_by_a_good_answer(void **state)
{
    dp_backoff doubt = {0};
    const dp_time now = {.us = 1000000};

    (void)state;
    for (uint32_t i = 0; i < DP_BACKOFF_FAILURES; i++) {
        const dp_peer peer = kit_peer(1);
        assert_false(dp_backed_off(&doubt, &peer, now));
        dp_backoff_failed(&doubt, &peer, now);
    }
    const dp_peer peer = kit_peer(1);
    assert_true(dp_backed_off(&doubt, &peer, now));
    assert_false(dp_backed_off(&doubt, &peer, dp_time_after(now, DP_BACKOFF_US)));
    dp_backoff_gave(&doubt, &peer);
    assert_false(dp_backed_off(&doubt, &peer, now));
    for (uint32_t i = 0; i < DP_BACKOFFS_MAX + 3; i++) { /* The table is bounded. */
        const dp_peer other = kit_peer(100 + i);
        dp_backoff_failed(&doubt, &other, dp_time_after(now, i));
    }
    assert_false(dp_backed_off(&doubt, &peer, now));
}

/* A contribution that no record may list must not be accepted: a proposer that lists it gets no
 * decision. */
static void a_claim_that_no_record_may_list_is_refused(void **state)
{
    kit_world *world = three();
    const dp_node *node = world->nodes[0].node;
    const dp_crypto crypto = kit_crypto(2);
    uint8_t room[512];
    dp_ready ready = {.peer = kit_peer(2),
                      .round = node->ledger.round + 1,
                      .base = node->ledger.base,
                      .root = {{7}},
                      .bytes = 100,
                      .tokens = 64,
                      .steps = 1,
                      .carried = UINT64_MAX,
                      .reach = {.own = 1U << 30}};

    (void)state;
    node->round->n_claims = 0;
    dp_round_index_claims(world->nodes[0].node);
    for (uint32_t i = 0; i < 2; i++) {
        dp_writer writer = dp_writer_of(room, sizeof room);
        assert_true(dp_ready_sign(&ready, &crypto, &node->run, &node->ledger.fork));
        dp_ready_msg_write(&writer, &ready);
        kit_send(world, 2, 0, dp_view_of(room, writer.size));
        kit_drain(world);
        assert_int_equal(node->round->n_claims, i); /* The second has no such number. */
        ready.carried = 1000;
    }
    kit_close(world);
}

/* With one message a voter could make every further bid impossible. */
static void a_voter_cannot_use_up_the_ballots(void **state)
{
    static uint8_t bytes[DP_VOTE_MESSAGE_MAX];
    kit_world *world = three();
    const dp_node *node = world->nodes[0].node;
    const dp_peer voter = kit_peer(1);
    dp_vote_msg msg = {.vote = {.type = DP_MSG_NACK,
                                .voter = (uint8_t)dp_ledger_voter(&node->ledger, &voter),
                                .slot = node->ledger.slot + 1,
                                .prev = node->ledger.head,
                                .ballot = INT32_MAX}};

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        dp_vote_msg_write(&writer, &msg);
        kit_send(world, 1, 0, dp_view_of(bytes, writer.size));
        kit_drain(world);
        assert_true(i == 0 ? node->commit->seen < 100 : node->commit->seen >= 700);
        msg.vote.ballot = 700; /* So far it can have come. */
    }
    kit_close(world);
}

static void requests_for_records_are_served_at_a_bounded_rate(void **state)
{
    uint8_t bytes[64];
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;
    const uint32_t member = dp_node_member_index(node, &world->nodes[2].node->self);
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    uint32_t served = 0;

    (void)state;
    while (served < 10000 && dp_picker_serve_allows(node->picker, node->now, member)) {
        served++;
    }
    assert_true(served <= DP_SERVES_PER_SECOND);
    const uint64_t before = world->nodes[2].node->rejected;
    dp_wire_write_records_get(&writer, 1, DP_RECORDS_PER_MESSAGE);
    kit_send(world, 2, 0, dp_view_of(bytes, writer.size));
    kit_drain(world);
    assert_int_equal(world->nodes[2].node->rejected, before);
    assert_false(dp_picker_serve_allows(node->picker, node->now, member));
    assert_true(dp_picker_serve_allows(node->picker, dp_time_after(node->now, DP_SECOND), member));
    kit_close(world);
}

/* sender asks node 0 for a fence of this life, as asker, and shows a statement that is signed by
 * author. */
static void wish_as(kit_world *world, const dp_fence_ask *said, uint32_t author, uint32_t sender)
{
    uint8_t room[512];
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_fence_ask ask = *said;
    const dp_crypto crypto = kit_crypto(author);

    assert_true(dp_life_sign(&ask, &crypto, &world->nodes[0].node->run));
    dp_fence_msg_write(&writer, &ask);
    kit_send(world, sender, 0, dp_view_of(room, writer.size));
    kit_drain(world);
}

/* Node 2 asks for itself. */
static void wish(kit_world *world, uint32_t peer, uint64_t incarnation, uint32_t author)
{
    wish_as(world,
            &(dp_fence_ask){.fence = {.peer = kit_peer(peer), .incarnation = incarnation},
                            .asker = kit_peer(2)},
            author, 2);
}

static void a_life_is_fenced_on_its_own_word_alone(void **state)
{
    kit_world *world = three();
    const dp_node *node = world->nodes[0].node;
    const dp_peer peer = kit_peer(1);
    const uint64_t present =
        dp_members_at(node->members, dp_node_member_index(node, &peer))->incarnation;

    (void)state;
    wish(world, 1, 5, 2);
    assert_int_equal(node->requests->n_fences, 0);
    wish(world, 1, present, 2); /* Also of a life that all nodes know. */
    assert_int_equal(node->requests->n_fences, 0);
    wish(world, 1, 5, 1);
    assert_int_equal(node->requests->n_fences, 1);
    assert_int_equal(node->requests->fences[0].fence.incarnation, 5);
    kit_close(world);
}

/* A liar that is a member gains little: one entry of its own, about a node that has exchanged with
 * it, for half a minute. */
static void a_liar_cannot_fill_the_list_nor_ask_with_the_word_given_to_another(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;
    uint8_t room[512];
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_fence_ask ask = {.fence = {.peer = kit_peer(1), .incarnation = 7}, .asker = kit_peer(2)};
    const dp_crypto victim = kit_crypto(1);

    (void)state;
    for (uint64_t i = 1; i <= 2 * DP_FENCES_MAX; i++) { /* Many exchanges, many lives: one place. */
        wish(world, 1, i, 1);
    }
    assert_int_equal(node->requests->n_fences, 1);
    assert_int_equal(node->requests->fences[0].fence.incarnation, 2 * DP_FENCES_MAX);
    assert_true(dp_life_sign(&ask, &victim, &node->run));
    ask.asker = kit_peer(1); /* The statement was given to node 2, */
    dp_fence_msg_write(&writer, &ask);
    kit_send(world, 2, 0, dp_view_of(room, writer.size));
    ask.asker = kit_peer(2);
    ask.exchange[0] ^= 1; /* ... for another exchange. */
    writer = dp_writer_of(room, sizeof room);
    dp_fence_msg_write(&writer, &ask);
    kit_send(world, 2, 0, dp_view_of(room, writer.size));
    kit_drain(world);
    assert_int_equal(node->requests->n_fences, 1);
    assert_int_equal(node->requests->fences[0].fence.incarnation, 2 * DP_FENCES_MAX);
    kit_close(world);
}

static void a_request_for_a_fence_ends_when_nobody_repeats_it(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[0].node;

    (void)state;
    wish(world, 1, 5, 1);
    assert_int_equal(node->requests->n_fences, 1);
    assert_true(dp_request_lasts(node, &node->requests->fences[0]));
    kit_run_ms(world, 20000);
    wish(world, 1, 5, 1); /* Still in doubt. */
    kit_run_ms(world, 20000);
    dp_requests_forget_done(node);
    assert_int_equal(node->requests->n_fences, 1);
    kit_run_ms(world, 11000);
    dp_requests_forget_done(node);
    assert_int_equal(node->requests->n_fences, 0);
    kit_close(world);
}

static void wishes_and_offers_about_nobody_take_no_place(void **state)
{
    kit_world *world = three();
    const dp_node *node = world->nodes[0].node;
    const dp_crypto stranger = kit_crypto(9);
    uint8_t room[512];
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_voter_ok_msg offer = {.peer = kit_peer(9), .head = node->ledger.head};
    const uint32_t before = node->round->n_offers;

    (void)state;
    assert_true(dp_voter_ok_sign(&stranger, &node->run, &offer.head, offer.key, offer.signature));
    dp_voter_ok_msg_write(&writer, &offer);
    kit_send(world, 2, 0, dp_view_of(room, writer.size));
    wish(world, 1, UINT64_MAX, 9);
    assert_int_equal(node->round->n_offers, before);
    assert_int_equal(node->requests->n_fences, 0); /* No life of that number was ever begun. */
    wish(world, 1, 1, 9);
    wish_as(world, /* An asker that is no member. */
            &(dp_fence_ask){.fence = {.peer = kit_peer(1), .incarnation = 1}, .asker = kit_peer(9)},
            1, 2);
    assert_int_equal(node->requests->n_fences, 0);
    kit_close(world);
}

static void a_second_certificate_of_the_newest_slot_convicts_too(void **state)
{
    static uint8_t room[DP_VOTE_MESSAGE_MAX + DP_CERT_OF_RECORD_BYTES_MAX];
    kit_world *world = three();
    const dp_node *node = world->nodes[0].node;
    const kit_record *last = &world->nodes[0].records[node->ledger.slot];
    dp_cert_of_record cert;

    (void)state;
    assert_int_equal(dp_cert_of_record_decode(&cert, dp_view_of(last->cert, last->cert_size)),
                     DP_OK);
    const dp_peer culprit = node->ledger.voters[cert.seals[0].voter].peer;
    kit_send(world, 1, 0,
             rival_at(world, node->ledger.slot, kit_index(&culprit), 0, room, sizeof room));
    kit_drain(world);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_HALTED);
    assert_true(dp_peer_equal(&node->proof->culprit, &culprit));
    kit_close(world);
}

/* It hides every accept below it, also one that comes after other promises. */
static void the_highest_promise_is_remembered(void **state)
{
    dp_witness *witness = calloc(1, sizeof *witness);
    const dp_ledger ledger = {.slot = 8, .n_voters = 3};
    const dp_vote first = promise(2, 0, 0);
    const dp_vote highest = promise(8, 0, 0);
    const dp_vote last = promise(5, 0, 0);
    const dp_vote accept = vote(DP_MSG_ACCEPTED, 6, 1);
    const dp_vote later = vote(DP_MSG_ACCEPTED, 9, 1);

    (void)state;
    assert_non_null(witness);
    dp_witness_begin(witness, &ledger);
    assert_null(dp_witness_take(witness, &first));
    assert_null(dp_witness_take(witness, &highest));
    assert_null(dp_witness_take(witness, &last));
    assert_null(dp_witness_take(witness, &later));
    const dp_vote *hides = dp_witness_take(witness, &accept);
    assert_non_null(hides);
    assert_int_equal(hides->ballot, 8);
    free(witness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_records_in_one_ballot_convict),
        cmocka_unit_test(a_promise_that_hides_an_accept_convicts),
        cmocka_unit_test(two_promises_of_one_ballot_say_the_same),
        cmocka_unit_test(a_voter_follows_one_chain),
        cmocka_unit_test(the_lowest_accept_is_remembered),
        cmocka_unit_test(the_lowest_promise_is_remembered),
        cmocka_unit_test(a_second_certificate_of_a_decided_slot_convicts_who_signed_both),
        cmocka_unit_test(a_peer_that_claims_records_and_gives_none_is_ignored_after_a_while),
        cmocka_unit_test(doubt_ends_by_itself_and_by_a_good_answer),
        cmocka_unit_test(a_life_is_fenced_on_its_own_word_alone),
        cmocka_unit_test(a_liar_cannot_fill_the_list_nor_ask_with_the_word_given_to_another),
        cmocka_unit_test(a_request_for_a_fence_ends_when_nobody_repeats_it),
        cmocka_unit_test(a_claim_that_no_record_may_list_is_refused),
        cmocka_unit_test(a_voter_cannot_use_up_the_ballots),
        cmocka_unit_test(requests_for_records_are_served_at_a_bounded_rate),
        cmocka_unit_test(wishes_and_offers_about_nobody_take_no_place),
        cmocka_unit_test(a_second_certificate_of_the_newest_slot_convicts_too),
        cmocka_unit_test(the_highest_promise_is_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
