/* Single events of a node that is in rounds: what it tells a voter that links again, whom it asks
 * to void an exchange in doubt, and when it exchanges in pairs. */
#include "gossip/context/context.h"
#include "gossip/member/members_internal.h"
#include "gossip/node/node_steps.h"
#include "gossip/pairs/mix_internal.h"
#include "gossip/requests/request_msg.h"
#include "gossip/round/round.h"
#include "gossip/training/training.h"
#include "tests/unit/gossip/kit/node_kit.h"

static const dp_action *sent(const dp_actions *actions, uint8_t type)
{
    for (uint32_t i = 0; i < actions->count; i++) {
        const dp_action *action = &actions->items[i];
        if (action->type == DP_DO_SEND && dp_msg_type_of(action->u.send.bytes) == type) {
            return action;
        }
    }
    return NULL;
}

static void step(kit_world *world, dp_event *event)
{
    event->now = world->nodes[0].node->now;
    event->wall_ms = world->nodes[0].node->wall_ms;
    dp_node_step(world->nodes[0].node, event, world->actions);
}

/* It may have lost its disk, and must not vote otherwise. */
static void a_voter_that_links_again_is_told_its_own_vote(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    const dp_peer peer = kit_peer(1);
    const uint32_t voter = dp_ledger_voter(&node->ledger, &peer);
    uint8_t credential[KIT_CREDENTIAL];
    dp_event up = {
        .type = DP_EV_LINK_UP,
        .u.link = {.peer = peer, .credential = kit_credential(1, DP_CAP_ALL, 0, 1, credential)}};
    dp_event down = {.type = DP_EV_LINK_DOWN, .u.link = {.peer = peer, .cause = DP_LINK_CLOSED}};

    (void)state;
    for (uint32_t voted = 0; voted < 2; voted++) {
        step(world, &down);
        node->commit->voted = voted == 0 ? 0 : 1U << voter;
        node->commit->votes[voter] = (dp_vote){.type = DP_MSG_ACCEPTED,
                                               .voter = (uint8_t)voter,
                                               .slot = node->commit->slot,
                                               .ballot = 3,
                                               .hash = {{8}}};
        step(world, &up);
        const dp_action *echo = sent(world->actions, DP_MSG_ACCEPTED);
        assert_int_equal(echo != NULL, voted);
        if (echo != NULL) {
            dp_vote_msg msg;
            assert_true(dp_peer_equal(&echo->u.send.peer, &peer));
            assert_int_equal(dp_vote_msg_read(echo->u.send.bytes, &msg), DP_OK);
            assert_int_equal(msg.vote.ballot, 3);
            assert_int_equal(msg.vote.hash.bytes[0], 8);
        }
        node->commit->voted = 0;
    }
    kit_close(world);
}

/* Node 0 has asked node 1 to commit an exchange, and node 1 has been dead for so long that the
 * voters may be asked. */
static dp_node *in_doubt(kit_world *world)
{
    dp_node *node = world->nodes[0].node;
    const dp_peer peer = kit_peer(1);
    dp_mix *mix = node->mix;

    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    node->now.us += DP_VOTER_DEAD_US;
    mix->state = DP_MIX_ASKED;
    mix->since = (dp_time){node->now.us - DP_VOTER_DEAD_US};
    mix->x.initiator = true;
    mix->x.peer = peer;
    mix->x.id.bytes[0] = 44;
    mix->x.other.incarnation = 6;
    memset(mix->x.life, 55, sizeof mix->x.life);
    node->members->rows[dp_node_member_index(node, &peer)].member.state = DP_MEMBER_DEAD;
    node->ledger.roster[dp_ledger_find(&node->ledger, &peer)].fenced = 5;
    node->repeat_at = (dp_time){0};
    node->requests->n_fences = 0;
    return node;
}

static void the_voters_are_asked_to_void_an_exchange_in_doubt_with_a_dead_node(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = in_doubt(world);
    const dp_peer peer = kit_peer(1);
    dp_fence_ask ask;

    (void)state;
    dp_node_repeat(node);
    const dp_action *send = sent(world->actions, DP_MSG_FENCE_ASK);
    assert_non_null(send);
    assert_int_equal(dp_fence_msg_read(send->u.send.bytes, &ask), DP_OK);
    assert_true(dp_peer_equal(&ask.fence.peer, &peer));
    assert_true(dp_peer_equal(&ask.asker, &node->self));
    assert_int_equal(ask.fence.incarnation, 6);
    assert_int_equal(ask.exchange[0], 44);
    assert_int_equal(ask.signature[63], 55);
    assert_int_equal(node->requests->n_fences, 1); /* This node votes too. */
    assert_true(dp_peer_equal(&node->requests->fences[0].fence.peer, &peer));
    node->mix->state = DP_MIX_IDLE;
    kit_close(world);
}

static void nobody_is_asked_to_void_an_exchange_that_may_still_end(void **state)
{
    kit_world *world = kit_together(3);
    const dp_peer peer = kit_peer(1);

    (void)state;
    for (uint32_t what = 0; what < 6; what++) {
        dp_node *node = in_doubt(world);
        dp_roster_entry *entry = &node->ledger.roster[dp_ledger_find(&node->ledger, &peer)];
        if (what == 0) {
            node->mix->state = DP_MIX_PREPARED;
        } else if (what == 1) {
            node->members->rows[dp_node_member_index(node, &peer)].member.state = DP_MEMBER_ALIVE;
        } else if (what == 2) {
            node->mix->since.us++;
        } else if (what == 3) {
            entry->fenced = 6;
        } else if (what == 4) {
            node->mix->x.peer = kit_peer(5); /* Of no run. */
        } else {
            node->mix->since.us++;
            entry->gone = 1; /* It is no member any more: at once. */
        }
        dp_node_repeat(node);
        assert_int_equal(sent(world->actions, DP_MSG_FENCE_ASK) != NULL, what == 5);
        assert_int_equal(node->requests->n_fences, what == 5 ? 1 : 0);
        entry->gone = 0;
    }
    world->nodes[0].node->mix->state = DP_MIX_IDLE;
    kit_close(world);
}

/* Node 0 of three without the others, so that it works in pairs. */
static kit_world *without_majority(void)
{
    kit_world *world = kit_together(3);

    kit_kill(world, 1);
    kit_kill(world, 2);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).mode, DP_MODE_GOSSIP);
    assert_true(world->nodes[0].node->mix->now.gossip);
    return world;
}

static void work_is_exchanged_while_the_trainer_stands_at_the_newest_round_and_trains(void **state)
{
    kit_world *world = without_majority();
    dp_node *node = world->nodes[0].node;
    dp_roster_entry *own = &node->ledger.roster[dp_ledger_find(&node->ledger, &node->self)];
    dp_event tick = {.type = DP_EV_TICK};

    (void)state;
    step(world, &tick);
    assert_true(node->mix->now.gossip);
    node->train->publishing = true;
    step(world, &tick);
    assert_false(node->mix->now.gossip);
    node->train->publishing = false;
    node->standing.applying = true;
    step(world, &tick);
    assert_false(node->mix->now.gossip);
    node->standing.applying = false;
    own->fenced = node->config.incarnation; /* The voters have voided what this life exchanges. */
    step(world, &tick);
    assert_false(node->mix->now.gossip);
    own->fenced = node->config.incarnation - 1;
    node->manifest.exchange = DP_EXCHANGE_GRADIENTS; /* Nobody has work of its own. */
    step(world, &tick);
    assert_false(node->mix->now.gossip);
    node->manifest.exchange = DP_EXCHANGE_UPDATES;
    step(world, &tick);
    assert_true(node->mix->now.gossip);
    own->gone = DP_REMOVE_LEFT; /* It is no member any more. */
    step(world, &tick);
    assert_false(node->mix->now.gossip);
    own->gone = 0;
    node->standing.applied--;
    node->standing.applying = true;
    step(world, &tick);
    assert_false(node->mix->now.gossip);
    node->standing.applied++;
    node->standing.applying = false;
    kit_close(world);
}

static void a_fence_of_this_life_has_the_trainer_start_again_without_its_exchange(void **state)
{
    kit_world *world = without_majority();
    dp_node *node = world->nodes[0].node;
    const uint64_t incarnation = node->config.incarnation;

    (void)state;
    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    dp_node_fence(node, &node->self, incarnation);
    assert_null(kit_find(world->actions, DP_DO_NOTE)); /* Nothing was frozen. */
    node->mix->has_f = true;
    node->mix->f.own.incarnation = incarnation;
    node->mix->f.mark = DP_MIX_MARK_COMMITTED;
    node->mix->f.f_root.bytes[0] = node->mix->f.own.root.bytes[0] = 7;
    dp_node_fence(node, &node->self, incarnation);
    const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
    assert_non_null(note);
    assert_int_equal(note->u.note.code, DP_NOTE_DISCARDED);
    assert_int_equal(note->u.note.a, 65536);
    assert_string_equal(note->u.note.cause, "fenced");
    assert_int_not_equal(node->standing.state, DP_TRAINER_SET);
    kit_close(world);
}

/* Before it, its start may still be under way. */
static void a_node_without_majority_works_alone_once_the_time_of_the_fallback_is_over(void **state)
{
    kit_world *world = without_majority();
    dp_node *node = world->nodes[0].node;
    dp_event tick = {.type = DP_EV_TICK};

    (void)state;
    node->mode = DP_MODE_JOINING;
    node->started_at = (dp_time){node->now.us - node->beat.fallback_us};
    step(world, &tick);
    assert_int_equal(node->mode, DP_MODE_JOINING);
    node->started_at.us--;
    step(world, &tick);
    assert_int_equal(node->mode, DP_MODE_GOSSIP);
    kit_close(world);
}

/* In a run of pairs, between its rounds as well, until this node has published or its part is
 * due. */
static void
with_pairs_work_is_exchanged_between_rounds_until_the_part_of_the_next_is_due(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 4; what++) {
        kit_world *world = kit_together(3);
        dp_node *node = world->nodes[0].node;
        dp_event nothing = {.type = DP_EV_STORED, .u.stored = {.op = 0}};
        for (uint32_t i = 0; i < 1000 && (dp_train_undecided(node) || !node->train->training ||
                                          node->standing.applied != node->ledger.round ||
                                          node->mode != DP_MODE_SYNC);
             i++) {
            kit_run_ms(world, KIT_STEP_MS);
        }
        node->manifest.pairs = what == 0 ? DP_OFF : DP_ON;
        node->train->steps = 0;
        node->round->n_claims = 0;
        dp_round_index_claims(node);
        node->round->opened = node->now;
        if (what == 2) {
            node->round->opened = (dp_time){1};
        } else if (what == 3) {
            node->train->pending.has = true;
            node->train->pending.ready.round = node->ledger.round + 1;
            node->train->pending.ready.base = node->ledger.base;
        }
        step(world, &nothing);
        assert_int_equal(node->mode, DP_MODE_SYNC);
        assert_int_equal(node->mix->now.gossip, what == 1);
        assert_int_equal(node->mix->now.round, node->standing.applied);
        assert_true(dp_hash_equal(&node->mix->now.base, &node->ledger.base));
        node->train->pending.has = false;
        kit_close(world);
    }
}

static const char *mode_note(const kit_world *world, dp_mode mode)
{
    for (uint32_t i = 0; i < world->actions->count; i++) {
        const dp_action *action = &world->actions->items[i];
        if (action->type == DP_DO_NOTE && action->u.note.code == DP_NOTE_MODE &&
            action->u.note.b == (uint64_t)mode) {
            return action->u.note.cause;
        }
    }
    return NULL;
}

static void the_mode_follows_from_what_a_node_knows_and_says_why(void **state)
{
    const struct {
        dp_mode from;
        dp_mode to;
        const char *cause;
    } cases[] = {
        {DP_MODE_GOSSIP, DP_MODE_SYNC, "quorum"},
        {DP_MODE_SYNC, DP_MODE_PAUSED, "owner"},
        {DP_MODE_SYNC, DP_MODE_HALTED, "two forks"},
        {DP_MODE_PAUSED, DP_MODE_HALTED, "voted twice"}, /* It is paused, too. */
        {DP_MODE_PAUSED, DP_MODE_JOINING, "no state"},
        {DP_MODE_SYNC, DP_MODE_SYNC, NULL}, /* A state that is behind keeps its mode. */
        {DP_MODE_JOINING, DP_MODE_JOINING, NULL},
        {DP_MODE_JOINING, DP_MODE_SYNC, "quorum"}, /* An observer has no state. */
        {DP_MODE_SYNC, DP_MODE_GOSSIP, "no quorum"},
    };

    (void)state;
    for (uint32_t what = 0; what < sizeof cases / sizeof cases[0]; what++) {
        kit_world *world = kit_together(3);
        dp_node *node = world->nodes[0].node;
        dp_event nothing = {.type = DP_EV_STORED, .u.stored = {.op = 0}};
        node->mode = cases[what].from;
        node->paused = what == 1 || what == 3;
        node->halted = what == 2 || what == 3;
        node->proof->row_size = 1;
        node->proof->row[0] = what == 3 ? 1 : 2;
        node->standing.has_theta = what != 4 && what != 5 && what != 7;
        node->standing.applied -= what == 6 ? 1 : 0;
        node->standing.applying = what == 6;
        node->config.observer = what == 7;
        node->beat.quorum = what != 8;
        step(world, &nothing);
        assert_int_equal(node->mode, cases[what].to);
        const char *cause = mode_note(world, cases[what].to);
        assert_int_equal(cause != NULL, cases[what].cause != NULL);
        if (cause != NULL) {
            assert_string_equal(cause, cases[what].cause);
        }
        assert_int_equal(node->members->summary.mode, cases[what].to);
        assert_int_equal(node->members->summary.slot, node->ledger.slot);
        assert_int_equal(node->members->summary.round, node->standing.applied);
        node->halted = node->config.observer = false;
        node->proof->row_size = 0;
        kit_close(world);
    }
}

/* Nobody trains, nothing is being decided, and all that live are here: as a member that does not
 * train sees it, in a run that the others have paused, and as one that is paused. */
static void a_node_is_idle_if_nothing_is_done_and_nobody_is_missing(void **state)
{
    kit_world *world = kit_together(3);
    dp_node *node = world->nodes[0].node;
    dp_event nothing = {.type = DP_EV_STORED, .u.stored = {.op = 0}};
    dp_member *other = NULL;

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        kit_command(world, i, DP_COMMAND_PAUSE);
    }
    kit_run_ms(world, 5000);
    const dp_peer peer = kit_peer(1);
    other = (dp_member *)(uintptr_t)dp_members_at(node->members, dp_node_member_index(node, &peer));
    for (uint32_t what = 0; what < 8; what++) {
        const dp_member before = *other;
        const bool paused = node->paused;
        const dp_trainer_state trainer = node->standing.state;
        if (what == 1) { /* In mode SYNC, without a trainer. */
            node->paused = false;
            node->mode = DP_MODE_SYNC;
            node->standing.state = DP_TRAINER_OFF;
        } else if (what == 2) {
            node->beat.quorum = false;
        } else if (what == 3) {
            other->state = DP_MEMBER_SUSPECT;
        } else if (what == 4) {
            other->linked = false;
        } else if (what == 5) {
            other->summary.mode = DP_MODE_SYNC;
            other->summary.has_trainer = true;
            other->summary.round = node->ledger.round;
        } else if (what == 6) {
            node->chain->op = 99;
        } else if (what == 7) {
            node->paused = false;
            node->mode = DP_MODE_JOINING;
            node->standing.has_theta = false;
            node->standing.state = DP_TRAINER_OFF;
        }
        step(world, &nothing);
        assert_int_equal(node->beat.idle.idle, what < 2);
        *other = before;
        node->paused = paused;
        node->standing.state = trainer;
        node->standing.has_theta = true;
        node->beat.quorum = true;
        node->chain->op = 0;
        node->mode = DP_MODE_PAUSED;
    }
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_voter_that_links_again_is_told_its_own_vote),
        cmocka_unit_test(the_voters_are_asked_to_void_an_exchange_in_doubt_with_a_dead_node),
        cmocka_unit_test(nobody_is_asked_to_void_an_exchange_that_may_still_end),
        cmocka_unit_test(work_is_exchanged_while_the_trainer_stands_at_the_newest_round_and_trains),
        cmocka_unit_test(a_fence_of_this_life_has_the_trainer_start_again_without_its_exchange),
        cmocka_unit_test(a_node_without_majority_works_alone_once_the_time_of_the_fallback_is_over),
        cmocka_unit_test(
            with_pairs_work_is_exchanged_between_rounds_until_the_part_of_the_next_is_due),
        cmocka_unit_test(the_mode_follows_from_what_a_node_knows_and_says_why),
        cmocka_unit_test(a_node_is_idle_if_nothing_is_done_and_nobody_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
