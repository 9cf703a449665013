/* Reads the objects and rows of the store from which the node is rebuilt: updates, votes, the
 * pending publication, exchanges, proofs. */
#include <sodium.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"
#include "daemon/peer/bandwidth_limiter.h"
#include "daemon/peer/driver_inside.h"
#include "daemon/peer/driver_restore_inside.h"
#include "gossip/vote/commit_row.h"
#include "store/chain.h"
#include "store/object.h"
#include "store/peers.h"
#include "store/rows.h"
#include "store/vote.h"

enum { ID_BYTES = 16 };

static void restore_object(restore_job *self, dp_store *store, const dp_hash *root)
{
    dp_object_info info;
    if (dp_object_stat(store, root, &info) == DP_OK && info.complete) {
        DP_IGNORE(
            /* Otherwise it is fetched again. */
            dp_node_restore_object(self->node, root, info.size));
    }
}

static void want(restore_job *self, const dp_hash *root)
{
    DP_IGNORE(dp_map_put(&self->wanted, root, 0)); /* It has room for all that records can list. */
}

/* After a round of parts is decided, only its results are needed. */
static void want_listed(restore_job *self, dp_view record)
{
    if (dp_record_decode(&self->record, record) != DP_OK || self->record.kind != DP_RECORD_ROUND) {
        return;
    }
    for (uint32_t i = 0; i < self->record.n_listed && !self->record.parted; i++) {
        want(self, &self->record.listed[i].root);
    }
    for (uint32_t p = 0; p < self->record.n_parts; p++) {
        if (self->record.parts[p].has) {
            want(self, &self->record.parts[p].root);
        }
    }
}

static dp_status want_pending(const dp_store_row *row, void *context)
{
    dp_part_list parts;
    DP_TRY(dp_node_pending_parts(row->bytes, &parts));
    for (uint32_t p = 0; p < parts.n; p++) {
        want(context, &parts.refs[p].root);
    }
    return DP_OK;
}

static dp_status want_blobs(const dp_chain_record *entry, void *context)
{
    want_listed(context, entry->record);
    return DP_OK;
}

static bool is_wanted(const restore_job *self, const dp_hash *root)
{
    uint32_t value;
    return dp_map_get(&self->wanted, root, &value);
}

dp_status dp_restore_objects(restore_job *self, dp_store *store)
{
    dp_chain_tip tip;
    restore_object(self, store, &self->driver->manifest.tokenizer);
    restore_object(self, store, &self->driver->manifest.init);
    restore_object(self, store, &self->driver->manifest.base);
    for (uint32_t i = 0; i < self->driver->manifest.n_shards; i++) {
        restore_object(self, store, &self->driver->manifest.shards[i].root);
    }
    if (dp_chain_head(store, &self->driver->facts.run, &tip) != DP_OK) {
        return DP_OK;
    }
    const uint64_t from =
        tip.slot > DP_DRIVER_BLOB_WINDOW ? tip.slot - DP_DRIVER_BLOB_WINDOW + 1 : 1;
    return dp_chain_each(store, &self->driver->facts.run, from, DP_DRIVER_BLOB_WINDOW, want_blobs,
                         self);
}

/* Blobs of the last rounds and of the record voted for go to the node, which drops them later. All
 * other blobs, and states, are of an earlier life and would never be dropped, so this drops them.
 * The state that was being fetched is kept for a while. */
dp_status dp_restore_blobs(restore_job *self, dp_store *store)
{
    const dp_hash *run = &self->driver->facts.run;
    const dp_pin pin = {.run = *run, .kind = DP_PIN_BLOB};
    uint32_t count = 0;
    DP_TRY(dp_store_row_each(store, run, DP_DRIVER_PENDING, want_pending, self));
    DP_TRY(dp_object_pins(store, run, DP_PIN_BLOB, self->pinned, self->pins_max, &count));
    for (uint32_t i = 0; i < count; i++) {
        if (is_wanted(self, &self->pinned[i])) {
            restore_object(self, store, &self->pinned[i]);
        } else {
            DP_TRY(dp_object_unpin(store, &self->pinned[i], &pin));
        }
    }
    DP_TRY(dp_ckpt_carry_over(store, run, uv_hrtime() / 1000000000U + 1));
    DP_TRY(dp_object_pins(store, run, DP_PIN_LEASE, self->pinned, 1, &count));
    if (count > 0) {
        dp_node_restore_part(self->node, &self->pinned[0]);
    }
    return DP_OK;
}

static dp_status read_vote(restore_job *self, dp_store *store, dp_buf *record)
{
    /* Of one thread, at the start. */
    static uint8_t bytes[DP_COMMIT_ROW_HEAD + DP_RECORD_WHOLE_MAX];
    dp_vote_row vote;
    DP_TRY(dp_vote_load(store, &self->driver->facts.run, &vote, record));
    if (vote.promised == DP_VOTE_ROW_NONE) {
        return DP_OK; /* The key exists and has never voted. */
    }
    dp_commit_row row = {.slot = vote.slot,
                         .promised = vote.promised,
                         .accepted = vote.accepted,
                         .record = dp_buf_view(record)};
    memcpy(row.fork.bytes, vote.place, DP_HASH_BYTES);
    memcpy(row.prev.bytes, vote.place + DP_HASH_BYTES, DP_HASH_BYTES);
    /* Its blobs are here, and possibly at no other node. */
    if (vote.accepted != DP_VOTE_ROW_NONE) {
        want_listed(self, row.record);
    }
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_view view;
    dp_commit_row_write(&writer, &row);
    DP_TRY(dp_writer_finish(&writer, &view));
    return dp_node_restore_vote(self->node, view);
}

dp_status dp_restore_vote(restore_job *self, dp_store *store)
{
    dp_buf record;
    dp_buf_init(&record, DP_RECORD_WHOLE_MAX);
    const dp_status status = read_vote(self, store, &record);
    dp_buf_close(&record);
    return status == DP_NOTFOUND ? DP_OK : status;
}

typedef struct row_walk {
    restore_job *job;
    dp_store *store;
} row_walk;

/* The objects come first, since the row needs them. */
static void restore_kept(const row_walk *walk, const dp_store_row *row)
{
    for (uint32_t i = 0; i < DP_ROW_KEEPS; i++) {
        if (!dp_hash_is_zero(&row->keep[i])) {
            restore_object(walk->job, walk->store, &row->keep[i]);
        }
    }
}

static dp_status restore_pending_row(const dp_store_row *row, void *context)
{
    const row_walk *walk = context;
    if (strcmp(row->name, DP_DRIVER_PENDING) != 0) {
        return DP_CORRUPT;
    }
    restore_kept(walk, row);
    return dp_node_restore_pending(walk->job->node, row->bytes);
}

static dp_status restore_exchange_row(const dp_store_row *row, void *context)
{
    const row_walk *walk = context;
    uint8_t id[ID_BYTES];
    if (dp_unhex(row->name + strlen(DP_DRIVER_EXCHANGE), id, sizeof id) != DP_OK) {
        return DP_CORRUPT;
    }
    restore_kept(walk, row);
    return dp_node_restore_exchange(walk->job->node, id, row->bytes);
}

dp_status dp_restore_pending(restore_job *self, dp_store *store)
{
    row_walk walk = {.job = self, .store = store};
    return dp_store_row_each(store, &self->driver->facts.run, DP_DRIVER_PENDING,
                             restore_pending_row, &walk);
}

dp_status dp_restore_exchanges(restore_job *self, dp_store *store)
{
    row_walk walk = {.job = self, .store = store};
    return dp_store_row_each(store, &self->driver->facts.run, DP_DRIVER_EXCHANGE,
                             restore_exchange_row, &walk);
}

static dp_status restore_proof_row(const dp_store_row *row, void *context)
{
    const row_walk *walk = context;
    if (strcmp(row->name, DP_DRIVER_PROOF) != 0) {
        return DP_CORRUPT;
    }
    return dp_node_restore_proof(walk->job->node, row->bytes);
}

dp_status dp_restore_proof(restore_job *self, dp_store *store)
{
    row_walk walk = {.job = self, .store = store};
    return dp_store_row_each(store, &self->driver->facts.run, DP_DRIVER_PROOF, restore_proof_row,
                             &walk);
}
