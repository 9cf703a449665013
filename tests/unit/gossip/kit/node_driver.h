/* The driver of the nodes in node_world.h: disk, trainer and objects execute requests at once. */
#ifndef DP_TESTS_NODE_DRIVER_H
#define DP_TESTS_NODE_DRIVER_H

#include "gossip/catchup/proof.h"
#include "gossip/context/context.h"
#include "gossip/record/wire.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"
#include "tests/unit/gossip/kit/node_world.h"

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

/* In a run of any model nobody takes steps once the script is gone: a trainer tells of those that a
 * record has left out. */
static inline void kit_tell_unsent(kit_world *world, kit_node *node, uint32_t settle,
                                   uint32_t steps)
{
    if (!world->external || settle == DP_SETTLE_NONE) {
        return;
    }
    node->unsent = settle == DP_SETTLE_LEFT_OUT ? steps : 0;
    if (node->unsent > 0 && !node->node->scripted) {
        kit_push(world, node->index, DP_EV_TRAINED)->event.u.trained.steps = node->unsent;
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
    kit_tell_unsent(world, node, action->u.apply.settle,
                    action->u.apply.lambda > 0 ? node->offered : 0);
}

static inline void kit_publish(kit_world *world, kit_node *node, const dp_action *action)
{
    dp_hash leaf;
    dp_hash root = kit_blob(node->index, ++node->published, &leaf);

    kit_event *done = kit_push(world, node->index, DP_EV_PUBLISHED);
    done->event.u.published.round = action->u.publish.round;
    if (node->copies && world->nodes[0].told_round == action->u.publish.round &&
        action->u.publish.cuts.n == 0) {
        root = world->nodes[0].told_root;
    }
    kit_hold(node, &root);
    node->told_root = root;
    done->event.u.published.root = root;
    done->event.u.published.bytes = 8;
    done->event.u.published.a_root = root;
    done->event.u.published.a_bytes = 8;
    done->event.u.published.energy = node->far ? KIT_FAR_ENERGY : 100;
    done->event.u.published.rate = node->rate;
    done->event.u.published.parts.n = action->u.publish.cuts.n;
    for (uint32_t p = 0; p < action->u.publish.cuts.n; p++) {
        dp_part_ref *ref = &done->event.u.published.parts.refs[p];
        *ref = (dp_part_ref){.root = kit_blob(node->index, ++node->published, &leaf),
                             .bytes = node->tells_more ? 9 : 8};
        if (node->copies && p + 1 < action->u.publish.cuts.n &&
            world->nodes[0].told_round == action->u.publish.round) {
            *ref = world->nodes[0].told.refs[p];
        }
        kit_hold(node, &ref->root);
    }
    node->told = done->event.u.published.parts;
    node->told_round = action->u.publish.round;
    node->steps = node->empty > 0 ? 0 : node->steps;
    node->empty -= node->empty > 0;
    done->event.u.published.steps = node->steps;
    done->event.u.published.tokens = (uint64_t)node->steps * 100;
    if (node->steps == 0 && node->unsent > 0) { /* Its samples are behind it already. */
        done->event.u.published.steps = node->unsent;
        done->event.u.published.tokens = (uint64_t)node->unsent * 100;
    }
    node->offered = done->event.u.published.steps;
    node->unsent = 0;
    node->own += node->again > 0 ? 0 : node->steps;
    node->again -= node->again > 0;
    done->event.u.published.reach.own = node->own;
    done->event.u.published.reach.leased = node->leased;
    node->steps = 0;
}

/* Is this object a sum: one that no node has published as a part of its own? */
static inline bool kit_is_sum(const kit_world *world, const dp_hash *root)
{
    bool found = false;

    for (uint32_t i = 0; i < world->n; i++) {
        const dp_part_list *told = &world->nodes[i].told;
        for (uint32_t p = 0; p < told->n; p++) {
            found = found || dp_hash_equal(&told->refs[p].root, root);
        }
    }
    return !found;
}

static inline void kit_count_haves(kit_node *node, dp_view bytes)
{
    dp_have_msg have;

    if (bytes.size == 0 || bytes.data[0] != DP_MSG_HAVE) {
        return;
    }
    assert_int_equal(dp_have_msg_read(bytes, &have), DP_OK);
    for (uint32_t i = 0; i < have.n; i++) {
        node->haves += !dp_hash_equal(&have.roots[i], &node->told_root) &&
                       !dp_hash_equal(&have.roots[i], &node->sum);
    }
}

static inline void kit_reduce(kit_world *world, kit_node *node, const dp_action *action)
{
    dp_hash leaf;

    node->reduce = *action;
    node->reduces++;
    assert_in_range(action->u.reduce.n_items, 1, DP_LISTED_MAX);
    for (uint32_t i = 0; i < action->u.reduce.n_items; i++) {
        assert_true(kit_holds(node, &action->u.reduce.items[i].root));
    }
    if (node->adds_late) {
        return;
    }
    kit_event *done = kit_push(world, node->index, DP_EV_REDUCED);
    done->event.u.reduced.round = action->u.reduce.round;
    done->event.u.reduced.part = action->u.reduce.part;
    done->event.u.reduced.status = node->adds_nothing ? DP_CORRUPT : DP_OK;
    if (!node->adds_nothing) {
        done->event.u.reduced.root = kit_blob(node->index, ++node->published, &leaf);
        done->event.u.reduced.bytes = 8;
        node->sum = done->event.u.reduced.root;
        kit_hold(node, &done->event.u.reduced.root);
    }
}

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
    if (dp_hash_equal(&world->manifest.init, &action->u.get.root)) {
        if (action->type != DP_DO_GET_INFO) {
            kit_hold(node, &action->u.get.root);
        }
        kit_get_state(world, node, action);
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

/* Of the last publications of nodes that are far. */
static inline uint32_t kit_energy(const kit_world *world, const dp_hash *root)
{
    for (uint32_t author = 0; author < world->n; author++) {
        dp_hash leaf;
        const dp_hash last = kit_blob(author, world->nodes[author].published, &leaf);
        if (world->nodes[author].far && dp_hash_equal(&last, root)) {
            return KIT_FAR_ENERGY;
        }
    }
    return 100;
}

/* The trainer's judgement of an update: along the voter's own work, or against it if the node
 * rejects this author; then it helps at most at its own length. */
static inline void kit_judge(kit_world *world, const kit_node *node, const dp_action *action)
{
    const uint32_t author = kit_index(&action->u.judge.peer);
    kit_event *item = kit_push(world, node->index, DP_EV_JUDGED);

    item->event.u.judged.root = action->u.judge.root;
    item->event.u.judged.found.compared = true;
    item->event.u.judged.found.align = (node->rejects >> author & 1U) != 0 ? -20000 : 20000;
    if (node->alike) {
        memset(item->event.u.judged.found.likeness, 0x5a, DP_LIKENESS_BYTES);
    }
    if (action->u.judge.tokens > 0) {
        const bool helps =
            action->u.judge.scale == DP_CLIP_ONE && (node->bears >> author & 1U) != 0;
        item->event.u.judged.found.held =
            (dp_gain){.micro = helps ? 1000 : -1000, .error_micro = 10, .tokens = 64};
    }
}

static inline void kit_obey(kit_world *world, kit_node *node, const dp_action *action)
{
    kit_event *item;

    node->last[action->type] = *action;
    switch ((int)action->type) {
    case DP_DO_SEND:
        kit_count_haves(node, action->u.send.bytes);
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
        if (!action->u.restore.frozen) {
            node->offered = action->u.restore.steps;
            kit_tell_unsent(world, node, action->u.restore.settle,
                            action->u.restore.lambda > 0 ? node->offered : 0);
        }
        break;
    case DP_DO_MIX:
        node->mixes++;
        node->mixes_of_none += node->holds_frozen ? 0 : 1;
        item = kit_push(world, node->index, DP_EV_MIXED);
        memcpy(item->event.u.mixed.exchange, action->u.mix.exchange, DP_EXCHANGE_BYTES);
        break;
    case DP_DO_TRAIN:
        node->trains = true;
        node->own = action->u.train.reach.own > node->own ? action->u.train.reach.own : node->own;
        node->leased = action->u.train.reach.leased;
        break;
    case DP_DO_TRAIN_STOP:
        node->trains = false;
        break;
    case DP_DO_PUBLISH:
        node->keep = action->u.publish.keep;
        kit_publish(world, node, action);
        break;
    case DP_DO_CHECK:
        item = kit_push(world, node->index, DP_EV_CHECKED);
        item->event.u.checked.root = action->u.check.root;
        item->event.u.checked.first = action->u.check.first;
        item->event.u.checked.end = action->u.check.end;
        item->event.u.checked.ok =
            !node->picky && !(node->dislikes_sums && kit_is_sum(world, &action->u.check.root));
        item->event.u.checked.foreign = node->picky;
        item->event.u.checked.energy = node->heavy   ? DP_ENERGY_MAX + 1
                                       : node->light ? 0
                                                     : kit_energy(world, &action->u.check.root);
        if (node->heavy_sums && kit_is_sum(world, &action->u.check.root)) {
            item->event.u.checked.energy = 1 << 20;
        }
        node->keep_checked = action->u.check.keep;
        break;
    case DP_DO_APPLY:
        kit_apply(world, node, action);
        break;
    case DP_DO_JUDGE:
        node->judge = *action;
        node->judged++;
        node->gains += action->u.judge.tokens > 0 ? 1 : 0;
        if (!node->judges_late) {
            kit_judge(world, node, action);
        }
        break;
    case DP_DO_REDUCE:
        kit_reduce(world, node, action);
        break;
    case DP_DO_OBJECT_DROP:
        node->dropped = action->u.keep.root;
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
    case DP_DO_SECRETS:
        node->secrets = action->u.secrets;
        break;
    case DP_DO_RENEWED:
        node->renewal = action->u.renewal;
        node->renewals++;
        break;
    case DP_DO_NOTE:
        if (action->u.note.code == DP_NOTE_REJECTED && !dp_peer_is_zero(&action->u.note.peer)) {
            node->rejected_cause = action->u.note.cause;
        } else if (action->u.note.code == DP_NOTE_CLOSED) {
            node->closed_cause = action->u.note.cause;
        } else if (action->u.note.code == DP_NOTE_LEFT_OUT) {
            node->left_out_cause = action->u.note.cause;
        } else if (action->u.note.code == DP_NOTE_STRAGGLER) {
            node->straggler = action->u.note;
        }
        break;
    default: /* Keeping, dropping and dialling need no answer. */
        break;
    }
}

#endif
