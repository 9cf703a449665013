/* Contributions that are too late for their round, in a run that counts them in the next one (mode
 * stale); and those that are never counted. */
#include "gossip/context/context.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"
#include "tests/unit/gossip/kit/node_kit.h"

/* Three nodes that vote, with a round of half a second behind them. */
static kit_world *three(dp_switch stale)
{
    kit_world *world = kit_open(3);

    world->manifest.stale = stale;
    kit_start_anew(world, 4000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    return world;
}

/* Until the next record. */
static void run_round(kit_world *world)
{
    const uint64_t round = kit_look(world, 0).round;

    for (uint32_t i = 0; i < 1000 && kit_look(world, 0).round == round; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    kit_run_ms(world, 2 * KIT_STEP_MS);
    assert_int_equal(kit_look(world, 0).round, round + 1);
    assert_int_equal(kit_look(world, 1).round, round + 1);
}

/* Rounds until one is decided without node 1, whose blob no node can fetch. */
static void run_until_late(kit_world *world)
{
    world->nodes[1].mute_blobs = true;
    for (uint32_t i = 0; i < 3 && kit_look(world, 0).listed_last == 3; i++) {
        run_round(world);
    }
    assert_int_equal(kit_look(world, 0).listed_last, 2);
}

static const dp_record *newest(kit_world *world)
{
    static dp_record record;
    const kit_record *at = &world->nodes[0].records[world->nodes[0].slots];

    assert_int_equal(dp_record_decode(&record, dp_view_of(at->record, at->record_size)), DP_OK);
    return &record;
}

static uint32_t settled(const kit_world *world, dp_settle how)
{
    return world->nodes[1].settles[how];
}

static void a_late_update_counts_in_the_next_round_by_half(void **state)
{
    kit_world *world = three(DP_ON);

    (void)state;
    const uint32_t left_out = settled(world, DP_SETTLE_LEFT_OUT);
    run_until_late(world);
    const uint64_t published = world->nodes[1].published;
    const uint32_t counted = settled(world, DP_SETTLE_INCLUDED);
    assert_int_equal(newest(world)->aged, 0);
    world->nodes[1].mute_blobs = false;
    run_round(world);
    const dp_record *record = newest(world);
    assert_int_equal(record->n_listed, 3);
    assert_int_equal(record->aged, 1U << 1); /* Peers rise with their numbers. */
    assert_int_equal(record->listed[1].clip, record->listed[0].clip / 2);
    assert_int_equal(world->nodes[1].published, published); /* It announces nothing meanwhile. */
    assert_int_equal(settled(world, DP_SETTLE_INCLUDED), counted + 1);
    assert_int_equal(settled(world, DP_SETTLE_LEFT_OUT), left_out);
    run_round(world);
    assert_int_equal(newest(world)->n_listed, 3);
    assert_int_equal(newest(world)->aged, 0);
    assert_int_equal(world->nodes[1].published, published + 1);
    kit_close(world);
}

static void an_update_too_late_for_the_next_round_too_is_carried(void **state)
{
    kit_world *world = three(DP_ON);

    (void)state;
    const uint32_t left_out = settled(world, DP_SETTLE_LEFT_OUT);
    run_until_late(world);
    const uint64_t published = world->nodes[1].published;
    assert_int_equal(settled(world, DP_SETTLE_LEFT_OUT), left_out);
    run_round(world);
    assert_int_equal(newest(world)->n_listed, 2);
    assert_int_equal(settled(world, DP_SETTLE_LEFT_OUT), left_out + 1);
    world->nodes[1].mute_blobs = false;
    run_round(world);
    assert_int_equal(world->nodes[1].published, published + 1);
    assert_int_equal(newest(world)->n_listed, 3);
    assert_int_equal(newest(world)->aged, 0);
    kit_close(world);
}

static void back(kit_world *world)
{
    world->nodes[1].restores = 0;
    kit_boot(world, 1);
    kit_link(world, 1, 0);
    kit_link(world, 1, 2);
    kit_drain(world);
    kit_run_ms(world, 200);
    assert_int_equal(world->nodes[1].restores, 1);
}

static void a_restarted_node_still_waits_for_the_next_round(void **state)
{
    kit_world *world = three(DP_ON);

    (void)state;
    run_until_late(world);
    const uint64_t round = kit_look(world, 0).round;
    const uint64_t published = world->nodes[1].published;
    kit_kill(world, 1);
    back(world);
    assert_int_equal(kit_look(world, 0).round, round);
    assert_int_equal(world->nodes[1].restore.u.restore.settle, DP_SETTLE_NONE);
    assert_int_equal(world->nodes[1].published, published);
    kit_close(world);
}

static void a_node_that_was_away_learns_that_the_next_round_has_counted_it(void **state)
{
    kit_world *world = three(DP_ON);

    (void)state;
    run_until_late(world);
    world->nodes[1].mute_blobs = false;
    kit_run_ms(world, 450); /* Until it is asked for again. */
    kit_kill(world, 1);
    const uint64_t round = kit_look(world, 0).round;
    for (uint32_t i = 0; i < 1000 && kit_look(world, 0).round == round; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_int_equal(newest(world)->aged, 1U << 1);
    const uint32_t counted = settled(world, DP_SETTLE_INCLUDED);
    back(world); /* Before it has that record. */
    assert_int_equal(world->nodes[1].restore.u.restore.settle, DP_SETTLE_NONE);
    assert_int_equal(settled(world, DP_SETTLE_INCLUDED), counted + 1);
    kit_close(world);
}

static void without_the_rule_late_work_is_carried_at_once(void **state)
{
    kit_world *world = three(DP_OFF);

    (void)state;
    const uint32_t left_out = settled(world, DP_SETTLE_LEFT_OUT);
    run_until_late(world);
    assert_int_equal(settled(world, DP_SETTLE_LEFT_OUT), left_out + 1);
    world->nodes[1].mute_blobs = false;
    run_round(world);
    assert_int_equal(newest(world)->n_listed, 3);
    assert_int_equal(newest(world)->aged, 0);
    kit_close(world);
}

static kit_world *three_that_list(uint32_t most)
{
    kit_world *world = kit_open(3);

    world->manifest.contributors_max = most;
    kit_start_anew(world, 4000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    return world;
}

/* Node 0 finds the others' updates to be bad: with rows in the record, and in lists. */
static void check_refused(uint32_t most, bool heavy, const char *cause)
{
    kit_world *world = three_that_list(most);

    assert_true(world->nodes[0].haves > 0);
    world->nodes[0].picky = !heavy;
    world->nodes[0].heavy = heavy;
    kit_run_ms(world, 1000); /* Updates that it had found valid before are decided. */
    const uint64_t before = kit_look(world, 0).rejected;
    const uint32_t told = world->nodes[0].haves;
    for (uint32_t i = 0; i < 3; i++) {
        run_round(world); /* The others are a majority. */
    }
    assert_int_equal(world->nodes[0].haves, told);
    assert_true(kit_look(world, 0).rejected >= before + 3);
    assert_non_null(world->nodes[0].rejected_cause);
    assert_string_equal(world->nodes[0].rejected_cause, cause);
    kit_close(world);
}

static void an_update_that_is_bad_is_counted_and_named_and_not_told_as_held(void **state)
{
    (void)state;
    check_refused(DP_MANIFEST_LISTED_DEFAULT, false,
                  "its update has a codec that this run does not use");
    check_refused(64, false, "its update has a codec that this run does not use");
    check_refused(DP_MANIFEST_LISTED_DEFAULT, true, "its update cannot be decoded");
}

static void a_copier_of_an_update_delays_no_round(void **state)
{
    kit_world *world = three_that_list(DP_MANIFEST_LISTED_DEFAULT);

    (void)state;
    world->nodes[2].copies = true;
    run_round(world); /* For which it may have published before. */
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t began = world->now_us;
        run_round(world);
        assert_true(world->now_us - began < 3 * DP_SECOND);
        assert_int_equal(newest(world)->n_listed, 2);
    }
    world->nodes[2].copies = false;
    run_round(world);
    run_round(world);
    assert_int_equal(newest(world)->n_listed, 3);
    kit_close(world);
}

/* A READY for the round under way. */
static dp_ready ready_of(kit_world *world, uint32_t author, uint32_t steps)
{
    const dp_ledger *ledger = &world->nodes[0].node->ledger;

    return (dp_ready){.peer = kit_peer(author),
                      .round = ledger->round + 1,
                      .base = ledger->base,
                      .root = dp_hash_of("test/blob", dp_view_text("some")),
                      .bytes = 8,
                      .tokens = 100,
                      .reach = {.own = world->nodes[1].own + 1, .leased = world->nodes[1].leased},
                      .steps = steps};
}

/* Sent to node 0 by node 1. If it is counted as rejected, no part of it is kept or fetched. */
static bool is_refused(kit_world *world, dp_ready ready, uint32_t signer)
{
    const dp_ledger *ledger = &world->nodes[0].node->ledger;
    const dp_crypto crypto = kit_crypto(signer);
    const uint64_t before = kit_look(world, 0).rejected;
    const uint32_t claims = world->nodes[0].node->round->n_claims;
    uint8_t bytes[DP_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    assert_true(dp_ready_sign(&ready, &crypto, &ledger->run, &ledger->fork));
    dp_ready_msg_write(&writer, &ready);
    kit_tell(world, 1, 0, dp_view_of(writer.data, writer.size));
    const bool refused = kit_look(world, 0).rejected == before + 1;
    const dp_claim *claim = dp_round_claim_of(world->nodes[0].node, &ready.peer);
    assert_true(refused == (claim == NULL || !dp_hash_equal(&claim->ready.root, &ready.root)));
    assert_true(!refused || world->nodes[0].node->round->n_claims == claims);
    return refused;
}

static void a_claim_that_no_record_may_list_is_refused_on_arrival(void **state)
{
    kit_world *world = kit_open(3);

    (void)state;
    kit_start_anew(world, 4000);
    run_round(world);
    assert_true(is_refused(world, ready_of(world, 1, 1), 2)); /* signed by another */
    assert_true(is_refused(world, ready_of(world, 1, 0), 1)); /* no step */
    dp_ready ready = ready_of(world, 9, 1);
    ready.reach.leased = 0;
    assert_true(is_refused(world, ready, 9)); /* nobody's */
    ready = ready_of(world, 1, 1);
    ready.parted = true;
    ready.parts.n = 2;
    ready.parts.refs[0] = (dp_part_ref){.root = ready.root, .bytes = 4};
    ready.parts.refs[1] = ready.parts.refs[0];
    assert_true(is_refused(world, ready, 1)); /* of parts, where updates are whole */
    ready = ready_of(world, 1, 1);
    ready.bytes = DP_OBJECT_BYTES_MAX + 1;
    assert_true(is_refused(world, ready, 1));
    assert_false(is_refused(world, ready_of(world, 1, 1), 1));
    kit_close(world);
}

/* Gives node 0 a STATE of node 1 about the newest round, with this root and signed by signer: does
 * node 0 take it? */
static bool takes_state(kit_world *world, uint32_t signer, uint8_t root)
{
    const dp_node *node = world->nodes[0].node;
    const dp_crypto crypto = kit_crypto(signer);
    dp_state_msg state = {.voter = kit_peer(1), .round = node->ledger.round, .root = {{root}}};
    const dp_state_vote *vote = &node->round->states[dp_ledger_voter(&node->ledger, &state.voter)];
    uint8_t bytes[DP_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    assert_true(dp_state_sign(&crypto, &node->run, &node->ledger.fork, state.round, &state.root,
                              state.signature));
    dp_state_msg_write(&writer, &state);
    kit_tell(world, 1, 0, dp_view_of(writer.data, writer.size));
    return dp_hash_equal(&vote->root, &state.root);
}

static void a_state_that_its_voter_did_not_sign_counts_for_nothing(void **state)
{
    kit_world *world = kit_together(3);
    const uint64_t before = kit_look(world, 0).rejected;

    (void)state;
    assert_false(takes_state(world, 2, 1));
    assert_int_equal(kit_look(world, 0).rejected, before + 1);
    assert_true(takes_state(world, 1, 2));
    assert_int_equal(kit_look(world, 0).rejected, before + 1);
    kit_close(world);
}

/* Of a thousand contributions most are not requested at first; each that arrives makes room for the
 * next one at once. */
static void an_update_that_was_too_many_is_fetched_when_another_has_come(void **state)
{
    kit_world *world = kit_open(3);
    dp_event come = {.type = DP_EV_OBJECT, .u.object.size = 8};

    (void)state;
    kit_start_anew(world, 4000);
    run_round(world);
    dp_node *const node = world->nodes[0].node;
    dp_out_begin(&node->out, world->actions);
    for (uint8_t i = 0; dp_picker_count(node->picker) < DP_WANTED_MAX; i++) {
        memset(come.u.object.root.bytes, 100 + i, DP_HASH_BYTES);
        assert_int_equal(dp_picker_want(node->picker, node->now, &come.u.object.root, 8,
                                        DP_USE_DATA, DP_PRIORITY_DATA, &node->out),
                         DP_OK);
    }
    const dp_ready ready = ready_of(world, 1, 1);
    assert_false(is_refused(world, ready, 1));
    assert_false(dp_picker_wants(node->picker, &ready.root));
    kit_event_in(world, 0, &come);
    assert_true(dp_picker_wants(node->picker, &ready.root));
    kit_close(world);
}

/* Chain and disk after 40 rounds of one update of 8 bytes each: the newest checkpoint is of round
 * 38. */
static void updates_of_the_eight_rounds_before_the_newest_checkpoint_are_kept(void **state)
{
    kit_world *world = kit_open(1);
    dp_node *const node = world->nodes[0].node;
    static dp_history_item items[41];
    const uint64_t newest = 38;

    (void)state;
    dp_out_begin(&node->out, world->actions);
    node->ledger.round = 40;
    for (uint64_t round = 1; round <= 40; round++) {
        items[round] = (dp_history_item){.root = {{(uint8_t)round, 77}}, .bytes = 8};
        node->chain->history[round % DP_HISTORY_ROUNDS] =
            (dp_history_row){.round = round, .proven = true, .n = 1, .items = &items[round]};
        dp_node_hold(node, &items[round].root, 8);
    }
    memset(node->saved->at, 0, sizeof node->saved->at);
    node->saved->at[0] = (dp_saved){.has = true, .round = newest};
    node->standing.tensor_bytes = 4;    /* All that is kept comes to more than a quarter of it. */
    for (uint32_t i = 0; i < 40; i++) { /* Two rounds at a time. */
        dp_chain_drop_old(node);
    }
    for (uint64_t round = 1; round <= 40; round++) {
        assert_int_equal(dp_node_holds(node, &items[round].root),
                         round + DP_WINDOW_ROUNDS > newest);
    }
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_update_counts_in_the_next_round_by_half),
        cmocka_unit_test(an_update_too_late_for_the_next_round_too_is_carried),
        cmocka_unit_test(a_restarted_node_still_waits_for_the_next_round),
        cmocka_unit_test(a_node_that_was_away_learns_that_the_next_round_has_counted_it),
        cmocka_unit_test(without_the_rule_late_work_is_carried_at_once),
        cmocka_unit_test(an_update_that_is_bad_is_counted_and_named_and_not_told_as_held),
        cmocka_unit_test(a_copier_of_an_update_delays_no_round),
        cmocka_unit_test(a_claim_that_no_record_may_list_is_refused_on_arrival),
        cmocka_unit_test(a_state_that_its_voter_did_not_sign_counts_for_nothing),
        cmocka_unit_test(an_update_that_was_too_many_is_fetched_when_another_has_come),
        cmocka_unit_test(updates_of_the_eight_rounds_before_the_newest_checkpoint_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
