/* The publication under way: its row, its announcement, and the same after a restart. */
#include <string.h>

#include "base/assert.h"
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"
#include "gossip/training/state_load.h"
#include "gossip/training/training.h"

enum {
    PENDING_VERSION = 3,
    PENDING_PARTED = 4
}; /* 1: a READY without reach; 2: without the order of F */

enum { READY_BYTES = 2 + 32 + 8 + 32 + 32 + 8 + 8 + 8 + 16 + 4 + 4 + 32 + DP_SIGNATURE_BYTES };

bool dp_train_undecided(const dp_node *node)
{
    const dp_pending *pending = &node->train->pending;

    return pending->has && dp_node_is_open(node, &pending->ready);
}

static void write_ready(dp_writer *writer, const dp_ready *ready)
{
    if (ready->parted) { /* Of a size that its list gives. */
        dp_write_u8(writer, PENDING_PARTED);
        dp_write_u16(writer, (uint16_t)(READY_BYTES + 16 + 4 + 1 + ready->parts.n * 40));
    } else {
        dp_write_u8(writer, PENDING_VERSION);
    }
    dp_ready_msg_write(writer, ready);
}

static void write_parts(dp_writer *writer, const dp_pending *pending)
{
    dp_assert(pending->cuts.n <= DP_PARTS_MAX);
    dp_assert(pending->ready.parted);
    dp_write_bytes(writer, pending->blob_root.bytes, DP_HASH_BYTES);
    dp_write_u8(writer, (uint8_t)pending->cuts.n);
    for (uint32_t p = 0; p < pending->cuts.n; p++) {
        dp_write_u16(writer, pending->cuts.first[p]);
    }
}

static bool read_parts(dp_reader *reader, dp_pending *pending)
{
    dp_read_bytes(reader, pending->blob_root.bytes, DP_HASH_BYTES);
    pending->cuts.n = dp_read_u8(reader);
    for (uint32_t p = 0; p < pending->cuts.n && p < DP_PARTS_MAX; p++) {
        pending->cuts.first[p] = dp_read_u16(reader);
    }
    return pending->cuts.n > 0 && dp_part_cuts_good(&pending->cuts);
}

void dp_train_write_row(dp_node *node)
{
    dp_train *train = node->train;
    dp_writer writer = dp_writer_of(train->row, sizeof train->row);
    dp_view row;

    dp_assert(node->train->pending.has);
    if (train->op != 0) {
        train->row_waits = true;
        return;
    }
    train->row_waits = false;
    train->row_failed = false;
    write_ready(&writer, &train->pending.ready);
    dp_write_bytes(&writer, train->pending.a_root.bytes, DP_HASH_BYTES);
    dp_write_u64(&writer, train->pending.a_bytes);
    dp_write_u64(&writer, train->pending.slot);
    dp_write_bytes(&writer, train->pending.f_root.bytes, DP_HASH_BYTES);
    dp_write_u64(&writer, train->pending.f_order);
    if (train->pending.ready.parted) {
        write_parts(&writer, &train->pending);
    }
    const dp_status status = dp_writer_finish(&writer, &row);
    dp_assert(status == DP_OK);
    dp_action *action = dp_out_store(&node->out, DP_STORE_PENDING, &train->op);
    action->u.store.bytes = row;
    action->u.store.keep[0] = train->pending.a_root;
    action->u.store.keep[1] = train->pending.blob_root;
}

dp_status dp_train_pending_parts(dp_view row, dp_part_list *parts)
{
    dp_reader reader = dp_reader_of(row);
    dp_ready ready = {.round = 0};

    if (dp_read_u8(&reader) == PENDING_PARTED) {
        const dp_view message = dp_read_view(&reader, dp_read_u16(&reader));
        if (reader.failed) {
            return DP_BADMSG;
        }
        DP_TRY(dp_ready_msg_read(message, &ready));
    }
    *parts = ready.parts;
    return DP_OK;
}

dp_status dp_train_restore(dp_node *node, dp_view row)
{
    dp_pending *pending = &node->train->pending;
    dp_pending read = {.has = true, .durable = true};
    dp_reader reader = dp_reader_of(row);
    const uint8_t version = dp_read_u8(&reader);

    dp_assert(!node->started);
    if (version != (node->ledger.parted ? PENDING_PARTED : PENDING_VERSION)) {
        return DP_VERSION;
    }
    const dp_view ready =
        dp_read_view(&reader, version == PENDING_PARTED ? dp_read_u16(&reader) : READY_BYTES);
    dp_read_bytes(&reader, read.a_root.bytes, DP_HASH_BYTES);
    read.a_bytes = dp_read_u64(&reader);
    read.slot = dp_read_u64(&reader);
    dp_read_bytes(&reader, read.f_root.bytes, DP_HASH_BYTES);
    read.f_order = dp_read_u64(&reader);
    if (version == PENDING_PARTED && !read_parts(&reader, &read)) {
        return DP_BADMSG;
    }
    DP_TRY(dp_reader_finish(&reader));
    DP_TRY(dp_ready_msg_read(ready, &read.ready));
    if (!dp_peer_equal(&read.ready.peer, &node->self) ||
        read.ready.parted != (version == PENDING_PARTED) ||
        (read.ready.parted && read.ready.parts.n != read.cuts.n)) {
        return DP_DENIED;
    }
    if (!read.ready.parted) {
        read.blob_root = read.ready.root;
    }
    if (dp_broken(26)) {
        return DP_OK;
    }
    *pending = read;
    node->standing.published_tokens = read.ready.tokens;
    node->train->revived = true;
    return DP_OK;
}

/* Tell the contribution of the round under way; the same one after a restart. */
void dp_train_announce(dp_node *node)
{
    const dp_pending *pending = &node->train->pending;
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    if (!pending->has || !pending->durable || !dp_train_undecided(node) || node->halted) {
        return;
    }
    dp_round_ready(node, &pending->ready, false, true);
    dp_ready_msg_write(&writer, &pending->ready);
    if (node->ledger.n_members <= node->ledger.listed_max &&
        dp_members_count(node->members) <= DP_FULL_MESH_MAX) {
        dp_node_send_all(node, dp_view_of(writer.data, writer.size));
    } else {
        dp_node_send_voters(node, dp_view_of(writer.data, writer.size));
    }
}

bool dp_train_stored(dp_node *node, uint32_t op, dp_status status)
{
    dp_train *train = node->train;
    dp_mix_frozen_view frozen;

    if (train->op == 0 || op != train->op) {
        return false;
    }
    train->op = 0;
    if (train->row_waits) {
        dp_train_write_row(node);
        return true;
    }
    if (status != DP_OK) {
        train->row_failed = true;
        return true;
    }
    train->pending.durable = true;
    if (dp_mix_frozen_row(node->mix, &frozen) &&
        dp_hash_equal(&frozen.f_root, &train->pending.f_root) && !dp_mix_locked(node->mix)) {
        dp_mix_folded(node->mix, node->now, &node->out);
    }
    dp_train_announce(node);
    dp_node_changed(node);
    return true;
}

static void make_parted(const dp_node *node, dp_ready *ready, const dp_event *event)
{
    dp_assert(node->ledger.parted);
    ready->parted = true;
    ready->energy = event->u.published.energy;
    ready->rate = dp_part_rate_told(event->u.published.rate, node->ledger.rate_median);
    ready->parts = event->u.published.parts;
    ready->root = dp_part_list_root(&ready->parts);
    ready->bytes = dp_part_list_bytes(&ready->parts);
}

/* It is here, and stays while its round may ask for it. */
static void keep_own(dp_node *node, const dp_hash *root, uint64_t bytes)
{
    dp_assert(bytes > 0);
    dp_node_hold(node, root, bytes);
    dp_action *keep = dp_out_add(&node->out, DP_DO_OBJECT_KEEP);
    keep->u.keep.root = *root;
    keep->u.keep.use = DP_USE_BLOB;
    keep->u.keep.round = node->train->pending.ready.round;
}

/* Of the publication before: its round may have ended before anybody heard of it. */
static void drop_parts(dp_node *node, const dp_pending *old, const dp_part_list *made)
{
    dp_assert(made->n <= DP_PARTS_MAX);
    for (uint32_t p = 0; old->has && p < old->ready.parts.n; p++) {
        const dp_hash *root = &old->ready.parts.refs[p].root;
        bool again = false; /* Parts of nothing may well be equal. */
        for (uint32_t k = 0; k < made->n && !again; k++) {
            again = dp_hash_equal(&made->refs[k].root, root);
        }
        if (!again) {
            dp_chain_drop(node, root, old->ready.round);
        }
    }
}

void dp_train_published(dp_node *node, const dp_event *event)
{
    dp_train *train = node->train;
    dp_mix_frozen_view frozen;

    if (!train->publishing) {
        return;
    }
    train->publishing = false;
    train->steps = 0;
    train->tokens = 0;
    train->exchanges = 0;
    node->standing.uplink = event->u.published.rate;
    dp_pending pending = {.has = true,
                          .made_here = true,
                          .a_root = event->u.published.a_root,
                          .a_bytes = event->u.published.a_bytes,
                          .slot = node->ledger.slot + 1,
                          .f_order = train->publish_order,
                          .blob_root = event->u.published.root,
                          .cuts = train->publish_cuts};
    pending.ready = (dp_ready){.peer = node->self,
                               .round = event->u.published.round,
                               .base = train->publish_base,
                               .root = event->u.published.root,
                               .bytes = event->u.published.bytes,
                               .tokens = event->u.published.tokens,
                               .carried = event->u.published.carried,
                               .reach = event->u.published.reach,
                               .steps = event->u.published.steps,
                               .loss_micro = event->u.published.loss_micro,
                               .state_root = node->standing.state_root};
    if (node->ledger.parted) {
        make_parted(node, &pending.ready, event);
    }
    if (!dp_valid_numbers(&pending.ready)) {
        dp_node_note(node, DP_NOTE_REJECTED, pending.ready.round, &node->self, 0, 0,
                     "this node's update has numbers out of range and is dropped");
        /* Waiting for its outcome would end rounds here. */
        dp_train_reload(node, "this node's update had numbers out of range");
        return;
    }
    if (pending.ready.round == node->ledger.round + 1 && /* Else it is left out anyway. */
        !dp_valid_lease(&node->ledger, &pending.ready)) {
        dp_node_note(node, DP_NOTE_REJECTED, pending.ready.round, &node->self, 0, 0,
                     "this node's update has samples outside of its lease and is dropped");
        train->spoiled = true;
        dp_train_reload(node, "this node's update had samples outside of its lease");
        return;
    }
    if (dp_mix_frozen_row(node->mix, &frozen)) {
        pending.f_root = frozen.f_root;
    }
    if (!dp_ready_sign(&pending.ready, &node->config.crypto, &node->run, &node->ledger.fork)) {
        return;
    }
    drop_parts(node, &train->pending, &pending.ready.parts);
    train->pending = pending;
    node->standing.published_tokens = pending.ready.tokens;
    for (uint32_t p = 0; p < pending.ready.parts.n; p++) {
        keep_own(node, &pending.ready.parts.refs[p].root, pending.ready.parts.refs[p].bytes);
    }
    if (!pending.ready.parted) {
        keep_own(node, &pending.ready.root, pending.ready.bytes);
    }
    dp_node_note(node, DP_NOTE_PUBLISHED, pending.ready.round, NULL, pending.ready.bytes,
                 pending.ready.tokens, "");
    dp_train_write_row(node);
    dp_node_changed(node);
}
