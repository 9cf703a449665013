/* Stores arriving chunks and flushes them to disk at bounded intervals. */
#include <string.h>

#include "base/alloc.h"
#include "daemon/peer/object_transfer.h"
#include "daemon/peer/object_transfer_inside.h"
#include "gossip/record/wire.h"
#include "store/object.h"

/* The most that a fetch may lose by a SIGKILL: FLUSH_BYTES, or the bytes of FLUSH_NS_MAX. Making
 * chunks durable may take at most a fifth of the time, so the time between two flushes is four
 * times the length of the last flush, within these limits: with a disk that needs 3 ms for it a
 * line of 30 MB/s loses 1.5 MB. */
enum { FLUSH_BYTES = 16 * 1024 * 1024, FLUSH_SHARE = 4 };

#define FLUSH_NS_MIN (50 * 1000000ULL)
#define FLUSH_NS_MAX (1000 * 1000000ULL)

typedef struct put_job {
    dp_store_thread_job job;
    dp_object_transfer *object_transfer;
    dp_peer peer;
    dp_hash root;
    uint64_t size;
    uint32_t index;
    dp_status status;
    bool complete;
    size_t n_bytes;
    uint8_t bytes[];
} put_job;

/* Chunks are collected in one transaction, which makes the writes fast; but a fetch must continue
 * where SIGKILL ended it. */
static dp_status flush_in_time(dp_object_transfer *object_transfer, dp_store *store, size_t more)
{
    const uint64_t now_ns = uv_hrtime();
    uint64_t wait_ns = object_transfer->flush_took_ns * FLUSH_SHARE;

    wait_ns = wait_ns < FLUSH_NS_MIN ? FLUSH_NS_MIN : wait_ns;
    wait_ns = wait_ns > FLUSH_NS_MAX ? FLUSH_NS_MAX : wait_ns;
    object_transfer->unflushed += more;
    if (object_transfer->unflushed < FLUSH_BYTES &&
        now_ns - object_transfer->flushed_ns < wait_ns) {
        return DP_OK;
    }
    object_transfer->unflushed = 0;
    DP_TRY(dp_object_flush(store));
    object_transfer->flushed_ns = uv_hrtime();
    object_transfer->flush_took_ns = object_transfer->flushed_ns - now_ns;
    return DP_OK;
}

static void run_put(dp_store_thread_job *job, dp_store *store)
{
    put_job *self = (put_job *)job;
    dp_object_info info = {0};
    self->status = dp_object_put_chunk(store, &self->root, self->index,
                                       dp_view_of(self->bytes, self->n_bytes));
    if (self->status == DP_NOTFOUND) {
        /* Dropped here meanwhile; to the node NOTFOUND would mean that the peer lacks it. */
        self->status = DP_AGAIN;
    }
    if (self->status == DP_OK &&
        self->size > DP_CHUNK_BYTES_MIN) { /* One chunk: committed below. */
        self->status = flush_in_time(self->object_transfer, store, self->n_bytes);
    }
    if (self->status == DP_OK && dp_object_stat(store, &self->root, &info) == DP_OK &&
        info.n_present == info.n_chunks) {
        self->status = dp_object_commit(store, &self->root);
        self->complete = self->status == DP_OK;
    }
}

static void done_put(dp_store_thread_job *job)
{
    put_job *self = (put_job *)job;
    dp_object_transfer *object_transfer = self->object_transfer;
    const dp_object_transfer_hooks *hooks = &object_transfer->config.hooks;
    fetch *entry = dp_object_transfer_find_fetch(object_transfer, &self->root);
    if (entry != NULL) {
        entry->writing[self->index] = false;
    }
    if (!object_transfer->closing) {
        if (self->complete && entry != NULL) {
            dp_object_transfer_drop_rest(object_transfer,
                                         /* For chunks that were requested from two peers. */
                                         entry);
            dp_object_transfer_forget_fetch(object_transfer, &self->root);
        }
        hooks->chunk(hooks->context, &self->peer, &self->root, self->index, self->status);
    }
    if (!object_transfer->closing && self->complete) {
        hooks->object(hooks->context, &self->root, self->size);
    }
    dp_free(self);
    dp_object_transfer_job_done(
        object_transfer); /* Not earlier: a hook may close the object transfer. */
}

static void take_chunk(dp_object_transfer *object_transfer, const dp_peer *peer, dp_view message)
{
    dp_wire_chunk chunk;
    if (dp_wire_read_chunk(message, &chunk) != DP_OK) {
        return;
    }
    const dp_object_transfer_hooks *hooks = &object_transfer->config.hooks;
    fetch *entry = dp_object_transfer_find_fetch(object_transfer, &chunk.root);
    const bool exists = entry != NULL && chunk.index < dp_object_chunks(entry->size);
    /* The node has not requested such a chunk yet, and will. */
    const bool ahead =
        dp_object_transfer_ahead_take(object_transfer, peer, &chunk.root, chunk.index) &&
        chunk.found;
    if (!exists || !(ahead || dp_object_transfer_answered(entry, peer, chunk.index))) {
        /* Not requested of this peer, or received twice; or the answer to INFO_GET of a peer that
         * lacks it. */
        if (!chunk.found && chunk.index == 0) {
            hooks->chunk(hooks->context, peer, &chunk.root, 0, DP_NOTFOUND);
        }
        return;
    }
    if (!chunk.found || chunk.bytes.size != dp_object_chunk_size(entry->size, chunk.index)) {
        const dp_status status = chunk.found ? DP_BADHASH : DP_NOTFOUND;
        hooks->chunk(hooks->context, peer, &chunk.root, chunk.index, status);
        return;
    }
    if (entry->writing[chunk.index]) {
        /* A slow disk makes the node ask other peers too; their chunks would only make it
         * slower. */
        return;
    }
    put_job *job = dp_alloc(1, sizeof *job + chunk.bytes.size);
    if (job == NULL) {
        return;
    }
    job->job.run = run_put;
    job->job.done = done_put;
    job->object_transfer = object_transfer;
    job->peer = *peer;
    job->root = chunk.root;
    job->size = entry->size;
    job->index = chunk.index;
    job->n_bytes = chunk.bytes.size;
    memcpy(job->bytes, chunk.bytes.data, chunk.bytes.size);
    entry->writing[chunk.index] = dp_object_transfer_post(
        object_transfer, &job->job,
        entry->size <= DP_CHUNK_BYTES_MIN ? DP_STORE_THREAD_URGENT : DP_STORE_THREAD_BULK);
    if (!entry->writing[chunk.index]) {
        dp_free(job);
    }
}

bool dp_object_transfer_message(dp_object_transfer *object_transfer, const dp_peer *peer,
                                dp_view bytes)
{
    const dp_object_transfer_hooks *hooks = &object_transfer->config.hooks;
    switch (dp_msg_type_of(bytes)) {
    case DP_MSG_INFO: {
        /* Loop thread only; large for its stack. */
        static dp_hash leaves[DP_CHUNKS_MAX];
        dp_wire_info info;
        if (dp_wire_read_info(bytes, &info, leaves) == DP_OK) {
            hooks->info(hooks->context, peer, &info.root, info.size, leaves);
        }
        return true;
    }
    case DP_MSG_CHUNK_DROP: {
        dp_hash root;
        if (dp_wire_read_chunk_drop(bytes, &root) == DP_OK) {
            dp_object_transfer_unserve(object_transfer, peer, &root);
        }
        return true;
    }
    case DP_MSG_CHUNK:
        take_chunk(object_transfer, peer, bytes);
        return true;
    case DP_MSG_MANIFEST: {
        dp_view manifest;
        if (dp_wire_read_manifest(bytes, &manifest) == DP_OK) {
            hooks->manifest(hooks->context, peer, manifest);
        }
        return true;
    }
    default:
        return false;
    }
}
