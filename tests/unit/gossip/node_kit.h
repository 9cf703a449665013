/* A few whole nodes joined by a perfect network and a driver that does at once what they ask: for tests of what nodes do
 * together. Faults are the simulator's business, except for the few that a test asks for by hand. */
#ifndef DP_TESTS_NODE_KIT_H
#define DP_TESTS_NODE_KIT_H

#include <stdlib.h>

#include "base/trainer_msg.h"
#include "gossip/mix_msg.h"
#include "tests/unit/gossip/chain_kit.h"

enum { KIT_NODES = 6, KIT_QUEUE = 4096, KIT_RECORDS = 256, KIT_OBJECTS = 2048, KIT_STEP_MS = 10 };

typedef struct kit_event {
    uint32_t to;
    dp_event event;
    uint8_t *bytes; /* that the event points to */
    dp_hash leaf;
} kit_event;

typedef struct kit_record {
    uint8_t *record;
    size_t record_size;
    uint8_t cert[DP_CERT_OF_RECORD_BYTES_MAX];
    size_t cert_size;
} kit_record;

typedef struct kit_node {
    dp_node *node;
    uint32_t index;
    bool linked[KIT_NODES];
    uint64_t incarnation;
    /* disk */
    kit_record records[KIT_RECORDS];
    uint64_t slots;
    uint8_t *vote;
    size_t vote_size;
    uint8_t *pending;
    size_t pending_size;
    uint8_t *proof;
    size_t proof_size;
    uint8_t
        exchange[DP_MIX_ROW_BYTES]; /* a row that a test put there; those of nodes are not kept */
    bool has_exchange;
    dp_hash held[KIT_OBJECTS];
    uint32_t n_held;
    uint64_t saved_round;
    dp_hash saved_root;
    /* trainer */
    bool trains;
    uint32_t steps;
    uint64_t round;
    dp_hash theta;
    uint64_t published;  /* blobs ever */
    uint32_t settles[3]; /* APPLYs by dp_settle */
    dp_action restore;   /* last DP_DO_TRAINER_RESTORE */
    uint32_t restores;
    bool holds_frozen;      /* RESTORE has brought F, and no state was loaded since */
    uint32_t mixes;         /* MIXes, ... */
    uint32_t mixes_of_none; /* ... and those of them that found no F */
    uint32_t emptied;       /* APPLYs that left nothing in the drawers */
    bool deaf;              /* gets no messages */
    bool reopens;           /* its node wants to be opened anew */
    bool mute_blobs;        /* its blobs cannot be fetched */
    bool saves_nothing;
    uint32_t errs; /* so many states that its trainer makes now will not be those of others */
} kit_node;

typedef struct kit_world {
    kit_node nodes[KIT_NODES];
    uint32_t n;
    dp_manifest manifest;
    uint64_t now_us;
    kit_event *queue;
    uint32_t first;
    uint32_t count;
    dp_actions *actions;
    dp_hash root_of_round[KIT_RECORDS];
    dp_hash head_of_slot[KIT_RECORDS];
    bool forked;          /* two chains: what holds within one is not compared */
    uint64_t state_bytes; /* what a state is said to weigh; a blob has 8 */
    uint32_t states_fetched;
    bool mute_states; /* nobody gives one */
} kit_world;

static inline kit_event *kit_push(kit_world *world, uint32_t to, dp_event_type type)
{
    assert_true(world->count < KIT_QUEUE);
    kit_event *item = &world->queue[(world->first + world->count++) % KIT_QUEUE];

    memset(item, 0, sizeof *item);
    item->to = to;
    item->event.type = type;
    return item;
}

static inline bool kit_holds(const kit_node *node, const dp_hash *root)
{
    for (uint32_t i = 0; i < node->n_held; i++) {
        if (dp_hash_equal(&node->held[i], root)) {
            return true;
        }
    }
    return false;
}

static inline void kit_hold(kit_node *node, const dp_hash *root)
{
    if (!kit_holds(node, root)) {
        assert_true(node->n_held < KIT_OBJECTS);
        node->held[node->n_held++] = *root;
    }
}

/* Blobs are 8 bytes that name their author and number. */
static inline dp_hash kit_blob(uint32_t author, uint64_t number, dp_hash *leaf)
{
    uint64_t bytes = (uint64_t)author << 32 | number;

    *leaf = dp_chunk_leaf(dp_view_of(&bytes, sizeof bytes));
    return dp_object_root(sizeof bytes, leaf);
}

static inline uint8_t *kit_copy(dp_view bytes)
{
    uint8_t *copy = malloc(bytes.size + 1);

    assert_non_null(copy);
    memcpy(copy, bytes.data, bytes.size);
    return copy;
}

static inline uint32_t kit_index(const dp_peer *peer)
{
    return (uint32_t)(peer->bytes[0] - 0x10);
}

static inline void kit_send(kit_world *world, uint32_t from, uint32_t to, dp_view bytes)
{
    if (world->nodes[to].node == NULL || world->nodes[to].deaf || world->nodes[from].deaf ||
        !world->nodes[from].linked[to]) {
        return;
    }
    kit_event *item = kit_push(world, to, DP_EV_MESSAGE);
    item->bytes = kit_copy(bytes);
    item->event.u.message.peer = kit_peer(from);
    item->event.u.message.bytes = dp_view_of(item->bytes, bytes.size);
}

static inline void kit_link(kit_world *world, uint32_t a, uint32_t b)
{
    const uint32_t ends[2] = {a, b};

    if (world->nodes[a].node == NULL || world->nodes[b].node == NULL || world->nodes[a].linked[b]) {
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        kit_event *item = kit_push(world, ends[i], DP_EV_LINK_UP);
        item->bytes = malloc(KIT_CREDENTIAL);
        assert_non_null(item->bytes);
        item->event.u.link.credential = kit_credential(ends[1 - i], DP_CAP_ALL, 0, 1, item->bytes);
        item->event.u.link.peer = kit_peer(ends[1 - i]);
        item->event.u.link.outgoing = i == 0;
        world->nodes[ends[i]].linked[ends[1 - i]] = true;
    }
}

/* Both ends hear of it. */
static inline void kit_cut(kit_world *world, uint32_t a, uint32_t b)
{
    const uint32_t ends[2] = {a, b};

    for (uint32_t i = 0; i < 2; i++) {
        if (world->nodes[ends[i]].linked[ends[1 - i]]) {
            world->nodes[ends[i]].linked[ends[1 - i]] = false;
            kit_event *item = kit_push(world, ends[i], DP_EV_LINK_DOWN);
            item->event.u.link.peer = kit_peer(ends[1 - i]);
            item->event.u.link.cause = DP_LINK_CLOSED;
        }
    }
}

static inline void kit_append(kit_node *node, const dp_action *action)
{
    kit_record *record = &node->records[action->u.store.slot];

    record->record = kit_copy(action->u.store.bytes);
    record->record_size = action->u.store.bytes.size;
    record->cert_size = action->u.store.cert.size;
    memcpy(record->cert, action->u.store.cert.data, record->cert_size);
    node->slots = action->u.store.slot;
}

static inline void kit_store(kit_world *world, kit_node *node, const dp_action *action)
{
    const dp_view bytes = action->u.store.bytes;
    kit_event *done = kit_push(world, node->index, DP_EV_STORED);

    done->event.u.stored.op = action->u.store.op;
    switch (action->u.store.kind) {
    case DP_STORE_VOTE:
        free(node->vote);
        node->vote = kit_copy(bytes);
        node->vote_size = bytes.size;
        break;
    case DP_STORE_PENDING:
        free(node->pending);
        node->pending = kit_copy(bytes);
        node->pending_size = bytes.size;
        break;
    case DP_STORE_DECIDED: {
        const dp_hash hash = dp_record_hash(bytes);
        const uint64_t slot = action->u.store.slot;
        assert_int_equal(slot, node->slots + 1);
        assert_true(slot < KIT_RECORDS);
        if (!dp_hash_is_zero(&world->head_of_slot[slot]) && !world->forked) { /* S1 */
            assert_true(dp_hash_equal(&world->head_of_slot[slot], &hash));
        }
        world->head_of_slot[slot] = hash;
        kit_append(node, action);
        break;
    }
    case DP_STORE_FORK:
        world->forked = true;
        assert_in_range(action->u.store.slot, 1, node->slots + 1);
        while (node->slots >= action->u.store.slot) {
            free(node->records[node->slots--].record);
        }
        kit_append(node, action);
        if (node->saved_round > action->u.store.round) {
            node->saved_round = 0;
        }
        break;
    case DP_STORE_PROOF:
        free(node->proof);
        node->proof = kit_copy(bytes);
        node->proof_size = bytes.size;
        break;
    case DP_STORE_EXCHANGE:
        break;
    }
}

static inline void kit_apply(kit_world *world, kit_node *node, const dp_action *action)
{
    dp_digest digest;
    kit_event *done = kit_push(world, node->index, DP_EV_APPLIED);

    assert_int_equal(action->u.apply.round, node->round + 1);
    dp_digest_init(&digest, "test/theta");
    dp_digest_add(&digest, dp_view_of(node->theta.bytes, DP_HASH_BYTES));
    for (uint32_t i = 0; i < action->u.apply.n_items; i++) {
        assert_true(kit_holds(node, &action->u.apply.items[i].root));
        dp_digest_add(&digest, dp_view_of(action->u.apply.items[i].root.bytes, DP_HASH_BYTES));
        dp_digest_add_u64(&digest, action->u.apply.items[i].q);
    }
    node->theta = dp_digest_end(&digest);
    node->round = action->u.apply.round;
    node->settles[action->u.apply.settle]++;
    node->emptied += action->u.apply.lambda == 0 ? 1 : 0;
    assert_true(node->round < KIT_RECORDS);
    if (!dp_hash_is_zero(&world->root_of_round[node->round]) && !world->forked) { /* S2 */
        assert_true(dp_hash_equal(&world->root_of_round[node->round], &node->theta));
    }
    world->root_of_round[node->round] = node->theta;
    done->event.u.applied.round = node->round;
    done->event.u.applied.tensor_root = node->theta;
    done->event.u.applied.tensor_bytes = world->state_bytes;
    done->event.u.applied.tensor_root.bytes[0] ^= node->errs > 0;
    node->errs -= node->errs > 0;
}

static inline void kit_publish(kit_world *world, kit_node *node, const dp_action *action)
{
    dp_hash leaf;
    const dp_hash root = kit_blob(node->index, ++node->published, &leaf);
    kit_event *object = kit_push(world, node->index, DP_EV_OBJECT);

    kit_hold(node, &root);
    object->event.u.object.root = root;
    object->event.u.object.size = 8;
    kit_event *done = kit_push(world, node->index, DP_EV_PUBLISHED);
    done->event.u.published.round = action->u.publish.round;
    done->event.u.published.root = root;
    done->event.u.published.bytes = 8;
    done->event.u.published.a_root = root;
    done->event.u.published.a_bytes = 8;
    done->event.u.published.energy = 100;
    done->event.u.published.steps = node->steps;
    done->event.u.published.tokens = (uint64_t)node->steps * 100;
    node->steps = 0;
}

static inline void kit_serve_records(kit_world *world, kit_node *node, const dp_action *action);

/* A state has no bytes here: its root is what the trainer takes. */
static inline void kit_get_state(kit_world *world, kit_node *node, const dp_action *action)
{
    kit_event *item;

    if (world->mute_states) {
        return;
    }
    if (action->type == DP_DO_GET_INFO) {
        item = kit_push(world, node->index, DP_EV_OBJECT_INFO);
        item->event.u.object.root = action->u.get.root;
        item->event.u.object.size = world->state_bytes;
        item->event.u.object.peer = action->u.get.peer;
        return;
    }
    item = kit_push(world, node->index, DP_EV_CHUNK);
    item->event.u.chunk.root = action->u.get.root;
    item->event.u.chunk.peer = action->u.get.peer;
    item = kit_push(world, node->index, DP_EV_OBJECT);
    item->event.u.object.root = action->u.get.root;
    item->event.u.object.size = world->state_bytes;
    world->states_fetched++;
}

static inline void kit_get(kit_world *world, kit_node *node, const dp_action *action)
{
    const uint32_t peer = kit_index(&action->u.get.peer);
    kit_node *other = &world->nodes[peer];
    dp_hash leaf = {{0}};

    if (other->node == NULL || other->deaf || !node->linked[peer]) {
        return;
    }
    for (uint64_t round = 1; round <= other->saved_round; round++) {
        if (dp_hash_equal(&world->root_of_round[round], &action->u.get.root)) {
            kit_get_state(world, node, action);
            return;
        }
    }
    if (other->mute_blobs || !kit_holds(other, &action->u.get.root)) {
        return;
    }
    for (uint32_t author = 0; author < world->n; author++) {
        for (uint64_t number = 1; number <= world->nodes[author].published; number++) {
            const dp_hash root = kit_blob(author, number, &leaf);
            if (!dp_hash_equal(&root, &action->u.get.root)) {
                continue;
            }
            if (action->type == DP_DO_GET_INFO) {
                kit_event *item = kit_push(world, node->index, DP_EV_OBJECT_INFO);
                item->leaf = leaf;
                item->event.u.object.root = root;
                item->event.u.object.size = 8;
                item->event.u.object.peer = action->u.get.peer;
                item->event.u.object.leaves = &item->leaf;
            } else {
                kit_event *item = kit_push(world, node->index, DP_EV_CHUNK);
                item->event.u.chunk.root = root;
                item->event.u.chunk.peer = action->u.get.peer;
                kit_hold(node, &root);
                item = kit_push(world, node->index, DP_EV_OBJECT);
                item->event.u.object.root = root;
                item->event.u.object.size = 8;
            }
            return;
        }
    }
}

static inline void kit_obey(kit_world *world, kit_node *node, const dp_action *action)
{
    kit_event *item;

    switch ((int)action->type) {
    case DP_DO_SEND:
        if (action->u.send.to == DP_TO_PEER) {
            kit_send(world, node->index, kit_index(&action->u.send.peer), action->u.send.bytes);
        }
        for (uint32_t i = 0; action->u.send.to == DP_TO_ALL && i < world->n; i++) {
            if (i != node->index) {
                kit_send(world, node->index, i, action->u.send.bytes);
            }
        }
        break;
    case DP_DO_STORE:
        kit_store(world, node, action);
        break;
    case DP_DO_REOPEN:
        node->reopens = true;
        break;
    case DP_DO_HANGUP:
        kit_cut(world, node->index, kit_index(&action->u.peer));
        break;
    case DP_DO_GET_INFO:
    case DP_DO_GET_CHUNK:
        kit_get(world, node, action);
        break;
    case DP_DO_SERVE_RECORDS:
        kit_serve_records(world, node, action);
        break;
    case DP_DO_TRAINER_OPEN:
        (void)kit_push(world, node->index, DP_EV_TRAINER_UP);
        break;
    case DP_DO_TRAINER_INIT:
    case DP_DO_TRAINER_LOAD:
        item = kit_push(world, node->index, DP_EV_TRAINER_AT);
        node->holds_frozen = false;
        node->round = action->type == DP_DO_TRAINER_LOAD ? action->u.load.round : 0;
        node->theta = action->type == DP_DO_TRAINER_LOAD
                          ? action->u.load.root
                          : dp_hash_of("test/theta", dp_view_text("start"));
        item->event.u.at.round = node->round;
        item->event.u.at.root = node->theta;
        break;
    case DP_DO_TRAINER_RESTORE:
        node->restore = *action;
        node->restores++;
        node->holds_frozen = node->holds_frozen || action->u.restore.frozen;
        break;
    case DP_DO_MIX:
        node->mixes++;
        node->mixes_of_none += node->holds_frozen ? 0 : 1;
        item = kit_push(world, node->index, DP_EV_MIXED);
        memcpy(item->event.u.mixed.exchange, action->u.mix.exchange, DP_EXCHANGE_BYTES);
        break;
    case DP_DO_TRAIN:
        node->trains = true;
        break;
    case DP_DO_TRAIN_STOP:
        node->trains = false;
        break;
    case DP_DO_PUBLISH:
        kit_publish(world, node, action);
        break;
    case DP_DO_CHECK:
        item = kit_push(world, node->index, DP_EV_CHECKED);
        item->event.u.checked.root = action->u.object.root;
        item->event.u.checked.ok = true;
        item->event.u.checked.energy = 100;
        break;
    case DP_DO_APPLY:
        kit_apply(world, node, action);
        break;
    case DP_DO_SAVE:
        if (node->saves_nothing) {
            break;
        }
        node->saved_round = action->u.save.round;
        node->saved_root = action->u.save.tensor_root;
        item = kit_push(world, node->index, DP_EV_SAVED);
        item->event.u.saved.round = action->u.save.round;
        item->event.u.saved.tensor_root = action->u.save.tensor_root;
        item->event.u.saved.tensor_bytes = world->state_bytes;
        break;
    default: /* Keeping, dropping, dialling and notes need no answer. */
        break;
    }
}

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

static inline void kit_drain(kit_world *world)
{
    for (uint32_t turns = 0; world->count > 0; turns++) {
        kit_event item = world->queue[world->first];
        assert_true(turns < 100000); /* Else the nodes talk without end at one instant. */
        world->first = (world->first + 1) % KIT_QUEUE;
        world->count--;
        if (item.event.type == DP_EV_OBJECT_INFO) {
            item.event.u.object.leaves = &item.leaf;
        }
        kit_event_in(world, item.to, &item.event);
        free(item.bytes);
    }
}

static inline void kit_boot(kit_world *world, uint32_t index)
{
    kit_node *node = &world->nodes[index];
    uint8_t credential[KIT_CREDENTIAL];
    dp_node_config config = {.manifest = &world->manifest,
                             .run = kit_run(),
                             .self = kit_peer(index),
                             .incarnation = ++node->incarnation,
                             .has_vote_key = true,
                             .members_max = 64,
                             .seed = index + 1,
                             .crypto = kit_crypto(index),
                             .admission = kit_admission()};

    config.credential = kit_credential(index, DP_CAP_ALL, 0, 1, credential);
    kit_vote_key(index, config.vote_public_key);
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
    (void)kit_push(world, index, DP_EV_START);
    kit_drain(world);
}

/* kill -9: what is in memory is gone, the peers see a reset. */
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

/* So much time passes: a step of training per KIT_STEP_MS, a tick whenever a node wants one. */
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
            if (node->trains) {
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
    world->manifest.patience_milli = 1000;
    memset(&world->manifest.data, 0, sizeof world->manifest.data);
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

#include "gossip/wire.h"

static inline void kit_serve_records(kit_world *world, kit_node *node, const dp_action *action)
{
    static uint8_t room[DP_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(room, sizeof room);

    dp_wire_begin_records(&writer, action->u.serve.from);
    for (uint64_t slot = action->u.serve.from; slot < action->u.serve.from + action->u.serve.count;
         slot++) {
        assert_true(slot <= node->slots);
        const kit_record *record = &node->records[slot];
        if (!dp_wire_add_record(&writer, dp_view_of(record->record, record->record_size),
                                dp_view_of(record->cert, record->cert_size))) {
            break;
        }
    }
    kit_send(world, node->index, kit_index(&action->u.serve.peer), dp_view_of(room, writer.size));
}

#endif
