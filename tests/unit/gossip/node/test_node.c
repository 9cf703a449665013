/* Whole nodes together: a founder alone, three that join, crashes and stragglers. */
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/proof.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "gossip/member/members_internal.h"
#include "gossip/node/node.h"
#include "gossip/pairs/mix_internal.h"
#include "gossip/round/round.h"
#include "gossip/training/training.h"
#include "gossip/transfer/picker_internal.h"
#include "tests/unit/gossip/kit/node_kit.h"

static void a_founder_alone_commits_rounds(void **state)
{
    kit_world *world = kit_open(1);

    (void)state;
    kit_run_ms(world, 5000);
    const dp_node_view view = kit_look(world, 0);
    assert_int_equal(view.mode, DP_MODE_SYNC);
    assert_true(view.round >= 7);
    assert_true(view.applied + 1 >= view.round);
    assert_int_equal(view.voters, 1);
    assert_true(view.is_voter);
    assert_true(world->nodes[0].settles[DP_SETTLE_INCLUDED] >= 7);
    assert_int_equal(world->nodes[0].settles[DP_SETTLE_LEFT_OUT], 0);
    kit_close(world);
}

static void those_who_join_are_admitted_and_become_voters(void **state)
{
    kit_world *world = kit_open(3);

    (void)state;
    kit_run_ms(world, 1000);
    kit_link_all(world);
    kit_run_ms(world, 6000);
    for (uint32_t i = 0; i < 3; i++) {
        const dp_node_view view = kit_look(world, i);
        assert_int_equal(view.mode, DP_MODE_SYNC);
        assert_int_equal(view.members, 3);
        assert_int_equal(view.voters, 3);
        assert_int_equal(view.listed_last, 3);
        assert_true(view.round >= 8);
    }
    kit_close(world);
}

static kit_world *three(void)
{
    kit_world *world = kit_open(3);

    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    return world;
}

static void a_killed_voter_does_not_stop_the_others(void **state)
{
    kit_world *world = three();

    (void)state;
    for (uint32_t dead = 0; dead < 3; dead++) {
        const uint64_t before = kit_look(world, (dead + 1) % 3).round;
        kit_kill(world, dead);
        kit_run_ms(world, 4000);
        assert_true(kit_look(world, (dead + 1) % 3).round >= before + 4);
        kit_boot(world, dead);
        kit_link_all(world);
        kit_run_ms(world, 3000);
        assert_int_equal(kit_look(world, dead).mode, DP_MODE_SYNC);
        assert_int_equal(kit_look(world, dead).listed_last, 3);
        assert_true(kit_look(world, dead).round + 1 >= kit_look(world, (dead + 1) % 3).round);
    }
    kit_close(world);
}

static void all_killed_at_once_go_on_where_they_were(void **state)
{
    kit_world *world = three();

    (void)state;
    const uint64_t before = kit_look(world, 0).round;
    for (uint32_t i = 0; i < 3; i++) {
        kit_kill(world, i);
    }
    for (uint32_t i = 0; i < 3; i++) {
        kit_boot(world, i);
    }
    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_true(kit_look(world, 0).round >= before + 3);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    kit_close(world);
}

static void without_a_majority_nothing_is_decided_and_nodes_gossip(void **state)
{
    kit_world *world = three();

    (void)state;
    kit_kill(world, 1);
    kit_kill(world, 2);
    const uint64_t before = kit_look(world, 0).slot;
    kit_run_ms(world, 6000);
    assert_int_equal(kit_look(world, 0).slot, before);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_GOSSIP);
    kit_boot(world, 1);
    kit_link_all(world);
    kit_run_ms(world, 5000);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_SYNC);
    assert_true(kit_look(world, 0).slot > before);
    kit_close(world);
}

static void a_blob_of_another_codec_is_refused_and_counted(void **state)
{
    kit_world *world = three();

    (void)state;
    const uint64_t before = kit_look(world, 0).rejected;
    world->nodes[0].picky = true;
    kit_run_ms(world, 3000);
    assert_true(kit_look(world, 0).rejected > before);
    assert_non_null(world->nodes[0].rejected_cause);
    assert_string_equal(world->nodes[0].rejected_cause,
                        "its update has a codec that this run does not use");
    kit_close(world);
}

static void a_restarted_node_tells_the_same_contribution_again(void **state)
{
    kit_world *world = three();
    kit_node *node = &world->nodes[2];

    (void)state;
    node->mute_blobs =
        true; /* Its next blob is not held by others, so it is left out for a while. */
    const uint64_t published = node->published;
    for (uint32_t i = 0; i < 200 && node->published == published; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_int_equal(node->published, published + 1);
    kit_kill(world, 2);
    kit_boot(world, 2);
    kit_run_ms(world, 300);
    /* Not linked: it cannot know a decision, so the row is undecided and comes back as it was. */
    assert_int_equal(node->restores, 1);
    assert_int_equal(node->restore.u.restore.settle, DP_SETTLE_NONE);
    assert_int_equal(node->published, published + 1);
    node->mute_blobs = false;
    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 2).listed_last, 3);
    kit_close(world);
}

static void a_straggler_is_left_out_and_stays_a_member(void **state)
{
    kit_world *world = three();
    kit_node *node = &world->nodes[1];

    (void)state;
    node->mute_blobs = true;
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).listed_last, 2);
    assert_int_equal(kit_look(world, 0).members, 3);
    assert_true(node->settles[DP_SETTLE_LEFT_OUT] > 0);
    node->mute_blobs = false;
    kit_run_ms(world, 3000);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    kit_close(world);
}

static void a_late_joiner_replays_the_whole_chain(void **state)
{
    kit_world *world = kit_open(3);

    (void)state;
    kit_link(world, 0, 1);
    kit_drain(world);
    kit_run_ms(world, 3000);
    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 2).mode, DP_MODE_SYNC);
    assert_true(kit_look(world, 2).round + 1 >= kit_look(world, 0).round);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    kit_close(world);
}

/* Node 2 is away for at least ten rounds of two updates of 8 bytes, then comes back to states of so
 * many bytes. */
static kit_world *back_after_ten_rounds(uint64_t state_bytes, bool mute_states)
{
    kit_world *world = three();

    world->state_bytes = state_bytes;
    world->mute_states = mute_states;
    const uint64_t before = kit_look(world, 2).round;
    kit_kill(world, 2);
    while (kit_look(world, 0).round < before + 10) {
        kit_run_ms(world, 500);
    }
    world->states_fetched = 0;
    kit_boot(world, 2);
    world->nodes[0].mute_blobs = world->nodes[1].mute_blobs = true; /* Records come first. */
    kit_link_all(world);
    kit_run_ms(world, 1500);
    world->nodes[0].mute_blobs = world->nodes[1].mute_blobs = false;
    kit_run_ms(world, 2000);
    return world;
}

static void many_missed_rounds_are_replayed_when_a_state_is_more_to_fetch(void **state)
{
    kit_world *world = back_after_ten_rounds(4096, false);

    (void)state;
    assert_int_equal(world->states_fetched, 0);
    assert_int_equal(kit_look(world, 2).mode, DP_MODE_SYNC);
    assert_int_equal(kit_look(world, 2).round, kit_look(world, 0).round);
    kit_close(world);
}

static void a_state_is_fetched_when_it_is_less_than_the_missed_updates(void **state)
{
    kit_world *world = back_after_ten_rounds(40, false);

    (void)state;
    assert_int_equal(world->states_fetched, 1);
    assert_int_equal(kit_look(world, 2).mode, DP_MODE_SYNC);
    assert_int_equal(kit_look(world, 2).round, kit_look(world, 0).round);
    kit_close(world);
}

static void a_state_that_nobody_gives_gives_way_to_a_replay(void **state)
{
    kit_world *world = back_after_ten_rounds(40, true);

    (void)state;
    assert_true(kit_look(world, 2).applied + 10 <= kit_look(world, 0).round); /* It waits. */
    kit_run_ms(world, 6000);
    assert_int_equal(kit_look(world, 2).mode, DP_MODE_SYNC);
    assert_true(kit_look(world, 2).applied + 1 >= kit_look(world, 0).round);
    assert_int_equal(world->states_fetched, 0);
    kit_close(world);
}

static void updates_after_a_state_on_its_way_are_fetched_before_it(void **state)
{
    kit_world *world = back_after_ten_rounds(40, true);
    dp_hash leaf;

    (void)state;
    assert_true(kit_look(world, 2).applied + 10 <= kit_look(world, 0).round);
    const dp_hash lately = kit_blob(0, world->nodes[0].published - 1, &leaf);
    assert_true(kit_holds(&world->nodes[2], &lately));
    const dp_hash missed = kit_blob(0, world->nodes[0].published - 8, &leaf);
    assert_false(kit_holds(&world->nodes[2], &missed)); /* The state will contain it. */
    world->mute_states = false;
    kit_run_ms(world, 3000);
    assert_int_equal(kit_look(world, 2).mode, DP_MODE_SYNC);
    assert_int_equal(world->states_fetched, 1);
    kit_close(world);
}

static void a_dead_trainer_costs_rounds_and_not_membership(void **state)
{
    kit_world *world = three();

    (void)state;
    (void)kit_push(world, 1, DP_EV_TRAINER_DOWN);
    world->nodes[1].trains = false;
    kit_drain(world);
    kit_run_ms(world, 2000);
    assert_int_equal(kit_look(world, 0).listed_last, 2);
    (void)kit_push(world, 1, DP_EV_TRAINER_UP);
    kit_drain(world);
    kit_run_ms(world, 3000);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    assert_int_equal(kit_look(world, 0).members, 3);
    kit_close(world);
}

static void the_chain_removes_a_leaving_member(void **state)
{
    kit_world *world = three();

    (void)state;
    kit_command(world, 2, DP_COMMAND_LEAVE);
    kit_run_ms(world, 3000);
    assert_int_equal(kit_look(world, 2).mode, DP_MODE_LEFT);
    assert_int_equal(kit_look(world, 0).members, 2);
    assert_int_equal(kit_look(world, 0).voters, 1);
    const uint64_t before = kit_look(world, 0).round;
    kit_kill(world, 2);
    kit_run_ms(world, 3000);
    assert_true(kit_look(world, 0).round > before);
    kit_close(world);
}

static void a_paused_node_is_not_waited_for(void **state)
{
    kit_world *world = three();

    (void)state;
    kit_command(world, 2, DP_COMMAND_PAUSE);
    kit_run_ms(world, 4000);
    const uint64_t before = kit_look(world, 0).round;
    kit_run_ms(world, 4000);
    assert_true(kit_look(world, 0).round >= before + 5);
    assert_false(world->nodes[2].trains);
    kit_command(world, 2, DP_COMMAND_RESUME);
    kit_run_ms(world, 3000);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    kit_close(world);
}

/* Fewer messages suffice to distinguish members from dead ones, and no node falls back to
 * gossip. */
static void a_run_that_all_have_paused_is_quiet_and_wakes_at_once(void **state)
{
    kit_world *world = three();

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        kit_command(world, i, DP_COMMAND_PAUSE);
    }
    kit_run_ms(world, 4000);
    const uint64_t talking = world->messages;
    kit_run_ms(world, 4000);
    const uint64_t before_quiet = world->messages - talking;
    kit_run_ms(world, 10000);
    const uint64_t quiet = world->messages;
    kit_run_ms(world, 60000);
    assert_true(world->messages - quiet < before_quiet); /* in fifteen times the time */
    const uint64_t round = kit_look(world, 0).round;
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(kit_look(world, i).mode, DP_MODE_PAUSED);
        assert_true(kit_look(world, i).quorum);
    }
    kit_command(world, 2, DP_COMMAND_RESUME);
    kit_run_ms(world, 3000);
    assert_int_equal(kit_look(world, 2).mode, DP_MODE_SYNC);
    assert_true(kit_look(world, 2).round >= round + 2);
    kit_command(world, 0, DP_COMMAND_RESUME);
    kit_run_ms(world, 3000);
    assert_int_equal(kit_look(world, 0).listed_last, 2);
    kit_close(world);
}

static void a_member_that_stops_is_away_and_not_suspect(void **state)
{
    kit_world *world = three();
    dp_member_view member = {0};

    (void)state;
    kit_command(world, 2, DP_COMMAND_STOP);
    for (uint32_t i = 0; dp_node_member(world->nodes[0].node, i, &member); i++) {
        const dp_peer stopped = kit_peer(2);
        if (dp_peer_equal(&member.peer, &stopped)) {
            break;
        }
    }
    assert_int_equal(member.state, DP_MEMBER_DEAD); /* At once. */
    kit_kill(world, 2);
    kit_boot(world, 2);
    kit_link_all(world);
    kit_run_ms(world, 3000);
    assert_int_equal(kit_look(world, 0).alive, 3);
    assert_int_equal(kit_look(world, 0).listed_last, 3);
    kit_close(world);
}

/* NACKs carry no signature: one that a stranger wrote in the name of a voter must not use up the
 * ballots. */
static void a_nack_counts_only_from_its_voter(void **state)
{
    kit_world *world = three();
    uint8_t bytes[DP_VOTE_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    const dp_node *node = world->nodes[0].node;
    const dp_peer forger = kit_peer(2);
    const dp_peer named = kit_peer(1);
    const dp_vote_msg msg = {.vote = {.type = DP_MSG_NACK,
                                      .voter = (uint8_t)dp_ledger_voter(&node->ledger, &named),
                                      .fork = node->ledger.fork,
                                      .slot = node->ledger.slot + 1,
                                      .prev = node->ledger.head,
                                      .ballot = INT32_MAX}};

    (void)state;
    dp_vote_msg_write(&writer, &msg);
    const uint64_t rejected = kit_look(world, 0).rejected;
    const int64_t seen = node->commit->seen;
    kit_event *item = kit_push(world, 0, DP_EV_MESSAGE);
    item->bytes = kit_copy(dp_view_of(writer.data, writer.size));
    item->event.u.message.peer = forger;
    item->event.u.message.bytes = dp_view_of(item->bytes, writer.size);
    kit_drain(world);
    assert_true(kit_look(world, 0).rejected > rejected);
    assert_int_equal(node->commit->seen, seen);
    kit_close(world);
}

static void an_object_that_nobody_waits_for_any_more_is_let_go(void **state)
{
    kit_world *world = three();
    kit_event *late = kit_push(world, 0, DP_EV_OBJECT);
    const dp_hash root = {{9}};

    (void)state;
    late->event.u.object.root = root;
    late->event.u.object.size = 8;
    kit_drain(world);
    assert_false(dp_node_holds(world->nodes[0].node, &root));
    kit_close(world);
}

/* A READY may name any object as its blob; a node that closes its round does not forget another
 * object because of it. */
static void data_and_states_are_not_let_go_of_as_blobs(void **state)
{
    static dp_actions actions;
    kit_world *world = kit_open(1);
    dp_node *node = world->nodes[0].node;
    dp_hash roots[5];

    (void)state;
    kit_run_ms(world, 1000);
    for (uint32_t i = 0; i < 5; i++) {
        roots[i] = (dp_hash){{0x77, (uint8_t)i}};
    }
    node->manifest.n_shards = 1;
    node->manifest.shards[0].root = roots[0];
    node->manifest.tokenizer = roots[1];
    node->saved->at[DP_SAVED_MAX - 1].has = true;
    node->saved->at[DP_SAVED_MAX - 1].root = roots[2];
    node->catchup->wants_state = true;
    node->catchup->state_root = roots[3];
    dp_out_begin(&node->out, &actions);
    for (uint32_t i = 0; i < 5; i++) {
        dp_node_hold(node, &roots[i], 100);
        dp_chain_drop(node, &roots[i], 1);
        assert_int_equal(dp_node_holds(node, &roots[i]), i < 4);
    }
    assert_int_equal(actions.count, 1); /* The last one is an update like any other. */
    kit_close(world);
}

static void an_own_contribution_without_a_step_is_not_claimed(void **state)
{
    kit_world *world = kit_open(1);
    dp_node *node = world->nodes[0].node;
    dp_ready ready = {.peer = node->self, .bytes = 8, .root = {{5}}, .reach = {.own = 1000}};

    (void)state;
    ready.round = node->ledger.round + 1;
    const uint32_t before = node->round->n_claims;
    dp_round_ready(node, &ready, false, true);
    assert_int_equal(node->round->n_claims, before);
    ready.steps = 1;
    dp_out_begin(&node->out, world->actions);
    dp_round_ready(node, &ready, false, true);
    assert_int_equal(node->round->n_claims, before + 1);
    kit_close(world);
}

static void messages_of_junk_are_counted_and_change_nothing(void **state)
{
    kit_world *world = three();
    uint8_t junk[300];

    (void)state;
    for (uint32_t type = 0; type < 256; type++) {
        for (uint32_t i = 0; i < sizeof junk; i++) {
            junk[i] = (uint8_t)(i * 7 + type);
        }
        junk[0] = (uint8_t)type;
        junk[1] = 1;
        kit_send(world, 1, 0, dp_view_of(junk, sizeof junk));
    }
    kit_drain(world);
    assert_true(kit_look(world, 0).rejected > 200);
    const uint64_t before = kit_look(world, 0).round;
    kit_run_ms(world, 2000);
    assert_true(kit_look(world, 0).round > before);
    kit_close(world);
}

static void proof_of_a_double_vote_halts_everybody(void **state)
{
    kit_world *world = three();
    const dp_run_id run = kit_run();
    dp_vote votes[2];
    uint8_t room[512];
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    const dp_node_view view = kit_look(world, 0);
    const dp_crypto liar = kit_crypto(1);
    for (uint32_t i = 0; i < 2; i++) {
        votes[i] = (dp_vote){.type = DP_MSG_ACCEPTED,
                             .voter = 1,
                             .slot = view.slot + 1,
                             .prev = view.head,
                             .ballot = 7,
                             .hash = {{(uint8_t)(i + 1)}}};
        assert_true(dp_vote_sign(&votes[i], &liar, &run));
    }
    dp_proof_msg_write(&writer, &votes[0], &votes[1]);
    kit_send(world, 2, 0, dp_view_of(room, writer.size - 1));
    kit_drain(world);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_SYNC); /* Half a proof is not a proof. */
    kit_send(world, 2, 0, dp_view_of(room, writer.size));
    kit_drain(world);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(kit_look(world, i).mode, DP_MODE_HALTED);
    }
    const uint64_t before = kit_look(world, 0).slot;
    kit_run_ms(world, 3000);
    assert_int_equal(kit_look(world, 0).slot, before);
    kit_close(world);
}

static void give_proof(kit_world *world, uint32_t to, uint32_t culprit, uint64_t slot)
{
    const dp_run_id run = kit_run();
    const dp_crypto liar = kit_crypto(culprit);
    dp_vote votes[2];
    uint8_t room[512];
    dp_writer writer = dp_writer_of(room, sizeof room);

    for (uint32_t i = 0; i < 2; i++) {
        votes[i] = (dp_vote){.type = DP_MSG_ACCEPTED,
                             /* Only a label: the owner of the key decides. */
                             .voter = 0,
                             .slot = slot,
                             .prev = kit_look(world, to).head,
                             .ballot = 7,
                             .hash = {{(uint8_t)(i + 1)}}};
        assert_true(dp_vote_sign(&votes[i], &liar, &run));
    }
    dp_proof_msg_write(&writer, &votes[0], &votes[1]);
    kit_send(world, (to + 1) % world->n, to, dp_view_of(room, writer.size));
    kit_drain(world);
}

static void a_proof_survives_a_restart_and_reaches_who_was_away(void **state)
{
    kit_world *world = three();
    const dp_peer culprit = kit_peer(1);

    (void)state;
    kit_kill(world, 2);
    give_proof(world, 0, 1, kit_look(world, 0).slot + 1);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_HALTED);
    kit_kill(world, 0);
    kit_kill(world, 1);
    kit_boot(world, 0);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_HALTED);
    assert_memory_equal(kit_look(world, 0).culprit.bytes, culprit.bytes, sizeof culprit.bytes);
    kit_boot(world, 2);
    kit_link(world, 0, 2);
    kit_drain(world);
    assert_int_equal(kit_look(world, 2).mode, DP_MODE_HALTED);
    assert_memory_equal(kit_look(world, 2).culprit.bytes, culprit.bytes, sizeof culprit.bytes);
    assert_false(world->nodes[2].trains);
    kit_close(world);
}

static void a_proof_against_a_stranger_stops_nobody(void **state)
{
    kit_world *world = three();

    (void)state;
    give_proof(world, 0, 3, kit_look(world, 0).slot + 1);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_SYNC);
    assert_int_equal(kit_look(world, 0).rejected, 1);
    kit_close(world);
}

static void the_discount_halves_every_four_rounds_and_ends_after_sixteen(void **state)
{
    (void)state;
    assert_int_equal(dp_train_lambda(0), 65536);
    assert_int_equal(dp_train_lambda(4), 32768);
    assert_int_equal(dp_train_lambda(16), 4096);
    assert_int_equal(dp_train_lambda(17), 0);
    for (uint64_t gap = 1; gap < 20; gap++) {
        assert_true(dp_train_lambda(gap) <= dp_train_lambda(gap - 1));
    }
}

/* One part of the node after the other is due, each sooner than the one before. */
static void a_node_wakes_for_the_part_that_is_due_first(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    dp_round *round = node->round;

    (void)state;
    kit_run_ms(world, 3000);
    const uint64_t now = node->now.us;
    round->have_at = round->bid_at = round->enough_at = round->close_at = (dp_time){0};
    node->commit->phase = DP_COMMIT_IDLE;
    node->members->sync_at = node->members->guests_at = node->members->far_at = DP_NEVER;
    node->members->push = node->members->greets = node->members->dial_stale = false;
    node->members->n_relayed = 0;
    for (uint32_t i = 0; i < DP_PROBES_MAX; i++) {
        node->members->probes[i].target = DP_MEMBER_NONE;
    }
    node->members->dial_next = node->members->probe_at = DP_NEVER;
    node->beat.seen_at = (dp_time){now + 200 * DP_SECOND};
    node->beat.beat_at = DP_NEVER;
    node->beat.changed = (dp_time){0};
    node->mix->started = false;
    node->catchup->asked_at = (dp_time){0};
    node->train->training = false;
    round->opened = (dp_time){0};
    node->repeat_at = (dp_time){now + 100 * DP_SECOND};
    assert_int_equal(dp_node_wake(node).us, now + 100 * DP_SECOND);
    node->beat.beat_at = (dp_time){now + 90 * DP_SECOND};
    assert_int_equal(dp_node_wake(node).us, now + 90 * DP_SECOND);
    node->members->sync_at = (dp_time){now + 80 * DP_SECOND};
    assert_int_equal(dp_node_wake(node).us, now + 80 * DP_SECOND);
    node->picker->wants[0] =
        (dp_want){.used = true, .info_from = DP_MEMBER_NONE, .lonely_at = {now + 70 * DP_SECOND}};
    node->picker->queue[0] = 0;
    node->picker->n_wanted = 1;
    assert_int_equal(dp_node_wake(node).us, now + 70 * DP_SECOND);
    node->mix->started = true;
    node->mix->write_at = (dp_time){now + 60 * DP_SECOND};
    assert_int_equal(dp_node_wake(node).us, now + 60 * DP_SECOND);
    node->catchup->asked_at = (dp_time){now + 50 * DP_SECOND};
    const uint64_t records = dp_catchup_wake(node).us;
    assert_true(records > now + 50 * DP_SECOND && records < now + 55 * DP_SECOND);
    assert_int_equal(dp_node_wake(node).us, records);
    node->standing.state = DP_TRAINER_EMPTY;
    node->train->barred = (dp_time){now + 40 * DP_SECOND};
    assert_int_equal(dp_node_wake(node).us, now + 40 * DP_SECOND);
    bool *const failed[] = {&node->chain->failed, &node->train->row_failed, &node->proof->failed,
                            &node->forks->failed};
    for (uint32_t i = 0; i < 4; i++) {
        *failed[i] = true; /* The disk is tried again. */
        assert_int_equal(dp_node_wake(node).us, now + DP_REPEAT_US);
        *failed[i] = false;
    }
    node->reopening = true;
    assert_int_equal(dp_node_wake(node).us, DP_NEVER.us);
    node->reopening = false;
    node->started = false;
    assert_int_equal(dp_node_wake(node).us, DP_NEVER.us);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_founder_alone_commits_rounds),
        cmocka_unit_test(those_who_join_are_admitted_and_become_voters),
        cmocka_unit_test(a_killed_voter_does_not_stop_the_others),
        cmocka_unit_test(all_killed_at_once_go_on_where_they_were),
        cmocka_unit_test(without_a_majority_nothing_is_decided_and_nodes_gossip),
        cmocka_unit_test(a_blob_of_another_codec_is_refused_and_counted),
        cmocka_unit_test(a_restarted_node_tells_the_same_contribution_again),
        cmocka_unit_test(a_straggler_is_left_out_and_stays_a_member),
        cmocka_unit_test(a_late_joiner_replays_the_whole_chain),
        cmocka_unit_test(many_missed_rounds_are_replayed_when_a_state_is_more_to_fetch),
        cmocka_unit_test(a_state_is_fetched_when_it_is_less_than_the_missed_updates),
        cmocka_unit_test(a_state_that_nobody_gives_gives_way_to_a_replay),
        cmocka_unit_test(updates_after_a_state_on_its_way_are_fetched_before_it),
        cmocka_unit_test(a_dead_trainer_costs_rounds_and_not_membership),
        cmocka_unit_test(the_chain_removes_a_leaving_member),
        cmocka_unit_test(a_paused_node_is_not_waited_for),
        cmocka_unit_test(a_run_that_all_have_paused_is_quiet_and_wakes_at_once),
        cmocka_unit_test(a_member_that_stops_is_away_and_not_suspect),
        cmocka_unit_test(a_nack_counts_only_from_its_voter),
        cmocka_unit_test(proof_of_a_double_vote_halts_everybody),
        cmocka_unit_test(a_proof_survives_a_restart_and_reaches_who_was_away),
        cmocka_unit_test(a_proof_against_a_stranger_stops_nobody),
        cmocka_unit_test(the_discount_halves_every_four_rounds_and_ends_after_sixteen),
        cmocka_unit_test(an_object_that_nobody_waits_for_any_more_is_let_go),
        cmocka_unit_test(data_and_states_are_not_let_go_of_as_blobs),
        cmocka_unit_test(an_own_contribution_without_a_step_is_not_claimed),
        cmocka_unit_test(messages_of_junk_are_counted_and_change_nothing),
        cmocka_unit_test(a_node_wakes_for_the_part_that_is_due_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
