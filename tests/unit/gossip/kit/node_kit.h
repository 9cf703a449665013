/* A few whole nodes joined by a perfect network and a driver that executes their actions at once:
 * for tests of several nodes together. The simulator tests faults, except for a few that a test
 * makes itself.
 *
 * Which kit to use, in the order in which a test should look for one:
 *
 *   nothing          a function of bytes or numbers
 *   cast.h           a run with root key, founder and invited nodes: identity, certificates
 *   pair.h           two ends of a connection: channel (includes cast.h)
 *   chain_kit.h      a manifest, a ledger, keys that sign with a hash: records
 *   valid_kit.h      a ledger after round 5 and a record on it: what may stand in a record
 *   lone_voter.h     one voter, whose disk and network are the test's: votes
 *   mesh.h           member tables and a queue of messages: membership
 *   fetcher.h        one node that fetches, with the peers played: object transfer
 *   pool.h           nodes that exchange displacement of integers: pair exchanges
 *   mix_kit.h        two of them, whose exchange the test sets: pair exchanges field by field
 *   node_kit.h       whole nodes: rounds, catch-up, requests, admin commands
 *   claim_kit.h      a node whose updates of a round the test makes
 *   part_kit.h       whole nodes in a run with parts
 *   site_kit.h       the same at two sites
 *
 * node_world.h (the nodes, their queue) and node_driver.h (what is done for them) are the lower
 * halves of this header, and nothing else includes them. The smallest kit that shows the behaviour
 * is the right one: it fails closer to the cause, and runs faster. */
#ifndef DP_TESTS_NODE_KIT_H
#define DP_TESTS_NODE_KIT_H

#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fetch.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/proof.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "gossip/node/node.h"
#include "gossip/node/node_steps.h"
#include "gossip/pairs/mix_msg.h"
#include "gossip/requests/requests.h"
#include "gossip/round/kind.h"
#include "gossip/training/state_load.h"
#include "gossip/training/training.h"
#include "tests/unit/gossip/kit/node_driver.h"

static inline void kit_event_in(kit_world *world, uint32_t to, dp_event *event)
{
    kit_node *node = &world->nodes[to];
    dp_why why;

    if (node->node == NULL) {
        return;
    }
    event->now = (dp_time){.us = world->now_us};
    event->wall_ms = 5000 + world->now_us / 1000;
    dp_node_step(node->node, event, world->actions);
    assert_int_equal(dp_node_check(node->node, &why), DP_OK);
    for (uint32_t i = 0; i < world->actions->count; i++) {
        kit_obey(world, node, &world->actions->items[i]);
    }
}

/* Delivers only this message, at once, from a linked peer; returns the actions of the node. */
static inline const dp_actions *kit_tell(kit_world *world, uint32_t from, uint32_t to,
                                         dp_view bytes)
{
    dp_event event = {.type = DP_EV_MESSAGE, .u.message = {.peer = kit_peer(from), .bytes = bytes}};

    kit_event_in(world, to, &event);
    return world->actions;
}

/* The first of this type among them, or NULL. */
static inline const dp_action *kit_find(const dp_actions *actions, dp_action_type type)
{
    for (uint32_t i = 0; i < actions->count; i++) {
        if (actions->items[i].type == type) {
            return &actions->items[i];
        }
    }
    return NULL;
}

static inline void kit_drain(kit_world *world)
{
    for (uint32_t turns = 0; world->count > 0; turns++) {
        kit_event item = world->queue[world->first];
        /* Otherwise the nodes exchange messages endlessly at one instant. */
        assert_true(turns < 100000);
        world->first = (world->first + 1) % KIT_QUEUE;
        world->count--;
        if (item.event.type == DP_EV_OBJECT_INFO) {
            item.event.u.object.leaves = &item.leaf;
        }
        kit_event_in(world, item.to, &item.event);
        free(item.bytes);
    }
}

/* Of this node's next life. credential: room for its own. */
static inline dp_node_config kit_config(kit_world *world, uint32_t index,
                                        uint8_t credential[KIT_CREDENTIAL])
{
    dp_node_config config = {.manifest = &world->manifest,
                             .run = kit_run(),
                             .self = kit_peer(index),
                             .incarnation = ++world->nodes[index].incarnation,
                             .has_vote_key = true,
                             .members_max = 64,
                             .seed = index + 1,
                             .crypto = kit_crypto(index),
                             .admission = kit_admission()};

    config.credential = kit_credential(index, DP_CAP_ALL, 0, 1, credential);
    kit_vote_key(index, config.vote_public_key);
    return config;
}

static inline void kit_boot(kit_world *world, uint32_t index)
{
    kit_node *node = &world->nodes[index];
    uint8_t credential[KIT_CREDENTIAL];
    const dp_node_config config = kit_config(world, index, credential);

    assert_int_equal(dp_node_open(&node->node, &config), DP_OK);
    for (uint64_t slot = 1; slot <= node->slots; slot++) {
        const kit_record *record = &node->records[slot];
        assert_int_equal(dp_node_restore_record(node->node, slot,
                                                dp_view_of(record->record, record->record_size),
                                                dp_view_of(record->cert, record->cert_size)),
                         DP_OK);
    }
    if (node->vote != NULL) {
        assert_int_equal(dp_node_restore_vote(node->node, dp_view_of(node->vote, node->vote_size)),
                         DP_OK);
    }
    if (node->proof != NULL) {
        assert_int_equal(
            dp_node_restore_proof(node->node, dp_view_of(node->proof, node->proof_size)), DP_OK);
    }
    if (node->pending != NULL) {
        assert_int_equal(
            dp_node_restore_pending(node->node, dp_view_of(node->pending, node->pending_size)),
            DP_OK);
    }
    if (node->has_exchange) {
        dp_mix_row row;
        const dp_view bytes = dp_view_of(node->exchange, sizeof node->exchange);
        assert_int_equal(dp_mix_row_read(bytes, &row), DP_OK);
        assert_int_equal(dp_node_restore_exchange(node->node, row.id.bytes, bytes), DP_OK);
    }
    if (node->saved_round > 0) {
        assert_int_equal(dp_node_restore_checkpoint(node->node, node->saved_round,
                                                    &node->saved_root, world->state_bytes),
                         DP_OK);
    }
    for (uint32_t i = 0; i < node->n_held; i++) {
        assert_int_equal(dp_node_restore_object(node->node, &node->held[i], 8), DP_OK);
    }
    node->trains = false;
    if (world->external) {
        node->node->manifest.arch = DP_ARCH_EXTERNAL;
    }
    (void)kit_push(world, index, DP_EV_START);
    kit_drain(world);
}

/* kill -9: memory is lost, the peers see a reset. */
static inline void kit_kill(kit_world *world, uint32_t index)
{
    kit_node *node = &world->nodes[index];

    dp_node_close(node->node);
    node->node = NULL;
    for (uint32_t i = 0; i < world->n; i++) {
        if (node->linked[i]) {
            node->linked[i] = false;
            world->nodes[i].linked[index] = false;
            kit_event *item = kit_push(world, i, DP_EV_LINK_DOWN);
            item->event.u.link.peer = kit_peer(index);
            item->event.u.link.cause = DP_LINK_RESET;
        }
    }
    kit_drain(world);
}

/* Nodes that asked for it, with the links that they had. */
static inline void kit_reopen(kit_world *world)
{
    for (uint32_t i = 0; i < world->n; i++) {
        kit_node *node = &world->nodes[i];
        bool linked[KIT_NODES];
        if (!node->reopens) {
            continue;
        }
        node->reopens = false;
        memcpy(linked, node->linked, sizeof linked);
        kit_kill(world, i);
        kit_boot(world, i);
        for (uint32_t k = 0; k < world->n; k++) {
            if (linked[k]) {
                kit_link(world, i, k);
            }
        }
        kit_drain(world);
    }
}

/* Ticks a node before its announced wake: an action now means that the wake was too late. */
static inline void kit_tick_early(kit_world *world, kit_node *node)
{
    dp_event event = {
        .type = DP_EV_TICK, .now = {.us = world->now_us}, .wall_ms = 5000 + world->now_us / 1000};
    const uint64_t wake_us = dp_node_wake(node->node).us;

    if (wake_us <= world->now_us) {
        return;
    }
    dp_node_step(node->node, &event, world->actions);
    for (uint32_t i = 0; i < world->actions->count; i++) {
        const dp_action *action = &world->actions->items[i];
        print_error("node %u at %llu us, wake %llu us: action %d, message %d\n", node->index,
                    (unsigned long long)world->now_us, (unsigned long long)wake_us,
                    (int)action->type,
                    action->type == DP_DO_SEND ? dp_msg_type_of(action->u.send.bytes) : -1);
    }
    assert_int_equal(world->actions->count, 0);
}

/* Lets so much time pass: a step of training per KIT_STEP_MS, a tick whenever a node requests
 * one. */
static inline void kit_run_ms(kit_world *world, uint64_t ms)
{
    const uint64_t end = world->now_us + ms * 1000;

    while (world->now_us < end) {
        world->now_us += KIT_STEP_MS * 1000;
        for (uint32_t i = 0; i < world->n; i++) {
            kit_node *node = &world->nodes[i];
            if (node->node == NULL) {
                continue;
            }
            const bool scriptless = world->external && !node->node->scripted;
            if (node->trains && !scriptless) {
                kit_event *item = kit_push(world, i, DP_EV_TRAINED);
                item->event.u.trained.steps = ++node->steps;
                item->event.u.trained.step_us = KIT_STEP_MS * 1000;
            }
            if (dp_node_wake(node->node).us <= world->now_us) {
                (void)kit_push(world, i, DP_EV_TICK);
            }
        }
        kit_drain(world);
        kit_reopen(world);
        for (uint32_t i = 0; world->early_ticks && i < world->n; i++) {
            if (world->nodes[i].node != NULL) {
                kit_tick_early(world, &world->nodes[i]);
            }
        }
    }
}

static inline kit_world *kit_open(uint32_t n)
{
    kit_world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    world->queue = calloc(KIT_QUEUE, sizeof *world->queue);
    world->actions = calloc(1, sizeof *world->actions);
    assert_true(world->queue != NULL && world->actions != NULL);
    world->n = n;
    world->state_bytes = 4096;
    world->now_us = 1000000;
    world->manifest = kit_manifest();
    world->manifest.round_ms = 500;
    world->manifest.inner_steps_max = 1000;
    world->manifest.voter_uptime_s = 0;
    world->manifest.n_shards = 0;
    memset(&world->manifest.tokenizer, 0, sizeof world->manifest.tokenizer);
    for (uint32_t i = 0; i < n; i++) {
        world->nodes[i].index = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        kit_boot(world, i);
    }
    return world;
}

static inline void kit_link_all(kit_world *world)
{
    for (uint32_t a = 0; a < world->n; a++) {
        for (uint32_t b = a + 1; b < world->n; b++) {
            kit_link(world, a, b);
        }
    }
    kit_drain(world);
}

static inline void kit_close(kit_world *world)
{
    for (uint32_t i = 0; i < world->n; i++) {
        kit_node *node = &world->nodes[i];
        dp_node_close(node->node);
        free(node->vote);
        free(node->pending);
        free(node->proof);
        for (uint64_t slot = 1; slot <= node->slots; slot++) {
            free(node->records[slot].record);
        }
    }
    for (; world->count > 0; world->count--) {
        free(world->queue[world->first].bytes);
        world->first = (world->first + 1) % KIT_QUEUE;
    }
    free(world->queue);
    free(world->actions);
    free(world);
}

static inline dp_node_view kit_look(const kit_world *world, uint32_t index)
{
    dp_node_view view;

    dp_node_look(world->nodes[index].node, &view);
    return view;
}

/* A command of its owner. */
static inline void kit_command(kit_world *world, uint32_t to, dp_command command)
{
    kit_push(world, to, DP_EV_COMMAND)->event.u.command = command;
    kit_drain(world);
}

/* n nodes that have found each other, all members, as many voters as may be. */
static inline kit_world *kit_together(uint32_t n)
{
    kit_world *world = kit_open(n);

    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).members, n);
    assert_int_equal(kit_look(world, 0).voters, n % 2 == 0 ? n - 1 : n);
    return world;
}

/* All start once more, by what the world's manifest says now, are linked, and have so much time
 * behind them. */
static inline void kit_start_anew(kit_world *world, uint32_t ms)
{
    for (uint32_t i = 0; i < world->n; i++) {
        kit_kill(world, i);
        kit_boot(world, i);
    }
    kit_link_all(world);
    kit_run_ms(world, ms);
}

/* Of two: the other may train, and not vote. */
static inline kit_world *kit_sole_voter(void)
{
    kit_world *world = kit_together(2);

    for (uint32_t i = 0; i < 2; i++) {
        world->nodes[i].node->ledger.roster[1].caps = DP_CAP_TRAIN;
    }
    return world;
}

#endif
