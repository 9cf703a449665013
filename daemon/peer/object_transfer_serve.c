/* Serves peers' requests: object information, chunks, records and the manifest, read off the loop,
 * two at a time per peer, and sent as fast as the bulk lane takes them. */
#include <string.h>

#include "base/alloc.h"
#include "daemon/net/peer_memory.h"
#include "daemon/peer/object_transfer_inside.h"
#include "gossip/record/wire.h"
#include "store/chain.h"
#include "store/ckpt.h"
#include "store/object.h"

enum { RECORDS_MESSAGE_MAX = DP_RECORDS_BYTES_MAX };

typedef struct serve_job {
    dp_store_thread_job job;
    dp_object_transfer *object_transfer;
    dp_run_id run;
    serve what;
    dp_buf message;
    dp_status lost; /* DP_OK; DP_BADHASH, DP_NOTFOUND: it is no longer whole */
} serve_job;

/* A state that a peer fetches stays until that peer has all of it. Without the lease it may be
 * dropped, and the peer asks in vain. */
static void lease(const serve_job *self, dp_store *store)
{
    DP_IGNORE(dp_ckpt_lease(store, &self->run, &self->what.root, uv_hrtime() / 1000000000U + 1));
}

/* Tells the peer that the object is not here, so that it asks another peer at once. */
static dp_status say_absent(serve_job *self)
{
    uint8_t *room = NULL;
    DP_TRY(dp_buf_reserve(&self->message, DP_CHUNK_HEAD_BYTES, &room));
    dp_writer writer = dp_writer_of(room, DP_CHUNK_HEAD_BYTES);
    dp_wire_write_chunk_head(&writer, &self->what.root, 0, false);
    dp_buf_commit(&self->message, writer.size);
    return DP_OK;
}

static dp_status read_info(serve_job *self, dp_store *store)
{
    dp_object_info info;
    uint8_t *room = NULL;
    const dp_status found = dp_object_stat(store, &self->what.root, &info);
    if (found == DP_NOTFOUND || (found == DP_OK && !info.complete)) {
        return say_absent(self);
    }
    DP_TRY(found);
    lease(self, store);
    dp_hash *leaves = dp_alloc(info.n_chunks + 1, sizeof *leaves);
    dp_status status = leaves == NULL
                           ? DP_NOMEM
                           : dp_object_leaves(store, &self->what.root, leaves, info.n_chunks);
    if (status == DP_OK) {
        status = dp_buf_reserve(&self->message, DP_INFO_BYTES_MAX, &room);
    }
    if (status == DP_OK) {
        dp_writer writer = dp_writer_of(room, DP_INFO_BYTES_MAX);
        dp_wire_write_info(&writer, &self->what.root, info.size, leaves);
        dp_buf_commit(&self->message, writer.size);
    }
    dp_free(leaves);
    return status;
}

/* A chunk of it that cannot be read counts as missing from now on (store/chunk.c); one that was
 * never here has no row. */
static dp_status lost_with(const serve_job *self, dp_store *store, dp_status read)
{
    dp_object_info info;
    if (read != DP_BADHASH && read != DP_NOTFOUND) {
        return DP_OK;
    }
    const dp_status found = dp_object_stat(store, &self->what.root, &info);
    const bool gone = found == DP_OK && self->what.index < info.n_chunks &&
                      (!info.complete || read == DP_BADHASH);
    return gone ? read : DP_OK;
}

static dp_status read_chunk(serve_job *self, dp_store *store)
{
    dp_object_info info;
    uint8_t *room = NULL;
    size_t size = 0;
    const bool known = dp_object_stat(store, &self->what.root, &info) == DP_OK;
    const size_t most = known ? dp_object_chunk_bytes(info.size) : 0;
    DP_TRY(dp_buf_reserve(&self->message, DP_CHUNK_HEAD_BYTES + most, &room));
    lease(self, store);
    const dp_status read = known ? dp_object_read_chunk(store, &self->what.root, self->what.index,
                                                        room + DP_CHUNK_HEAD_BYTES, most, &size)
                                 : DP_NOTFOUND;
    const bool found = read == DP_OK;
    self->lost = lost_with(self, store, read);
    dp_writer writer = dp_writer_of(room, DP_CHUNK_HEAD_BYTES);
    dp_wire_write_chunk_head(&writer, &self->what.root, self->what.index, found);
    dp_buf_commit(&self->message, writer.size + (found ? size : 0));
    return DP_OK;
}

static dp_status add_record(const dp_chain_record *entry, void *context)
{
    return dp_wire_add_record(context, entry->record, entry->cert) ? DP_OK : DP_AGAIN;
}

static dp_status read_records(serve_job *self, dp_store *store)
{
    uint8_t *room = NULL;
    DP_TRY(dp_buf_reserve(&self->message, RECORDS_MESSAGE_MAX, &room));
    dp_writer writer = dp_writer_of(room, RECORDS_MESSAGE_MAX);
    dp_wire_begin_records(&writer, self->what.from);
    const uint32_t count =
        self->what.index < DP_RECORDS_PER_MESSAGE ? self->what.index : DP_RECORDS_PER_MESSAGE;
    const dp_status status =
        dp_chain_each(store, &self->run, self->what.from, count, add_record, &writer);
    if (status != DP_OK &&
        status != DP_AGAIN) { /* AGAIN: full; the peer continues from where this ends. */
        return status;
    }
    dp_buf_commit(&self->message, writer.size);
    return DP_OK;
}

static void run_serve(dp_store_thread_job *job, dp_store *store)
{
    serve_job *self = (serve_job *)job;
    dp_status status = DP_OK;
    switch (self->what.kind) {
    case SERVE_INFO:
        status = read_info(self, store);
        break;
    case SERVE_CHUNK:
        status = read_chunk(self, store);
        break;
    case SERVE_RECORDS:
        status = read_records(self, store);
        break;
    case SERVE_MANIFEST:
        break;
    }
    if (status != DP_OK) {
        dp_buf_clear(&self->message);
    }
}

static void pump(dp_object_transfer *object_transfer);

static void done_serve(dp_store_thread_job *job)
{
    serve_job *self = (serve_job *)job;
    dp_object_transfer *object_transfer = self->object_transfer;
    for (uint32_t i = 0; i < object_transfer->n_busy; i++) {
        if (dp_peer_equal(&object_transfer->busy[i], &self->what.peer)) {
            object_transfer->busy[i] = object_transfer->busy[--object_transfer->n_busy];
            break;
        }
    }
    if (!object_transfer->closing && self->message.size > 0) {
        /* If the answer is lost, the peer asks again. */
        DP_IGNORE(
            dp_transport_give(object_transfer->config.transport, &self->what.peer, &self->message));
    }
    if (!object_transfer->closing && self->lost != DP_OK &&
        !dp_object_transfer_fetches(object_transfer, &self->what.root)) {
        const dp_object_transfer_hooks *hooks = &object_transfer->config.hooks;
        hooks->lost(hooks->context, &self->what.root, self->lost);
    }
    if (!object_transfer->closing) {
        pump(object_transfer);
    }
    dp_buf_close(&self->message);
    dp_free(self);
    dp_object_transfer_job_done(object_transfer);
}

/* The memory that peers make this node hold, with the chunks that are being read, has reached its
 * budget (peer_memory.h). */
static bool is_full(const dp_object_transfer *object_transfer)
{
    dp_transport_stats stats;
    dp_transport_look(object_transfer->config.transport, &stats);
    return stats.held + (uint64_t)object_transfer->n_busy * DP_CHUNK_BYTES_MAX >= stats.held_limit;
}

/* Above the budget each peer still gets one answer at a time: otherwise those that do not read
 * theirs would keep all others from being served. */
static bool peer_is_busy(const dp_object_transfer *object_transfer, const dp_peer *peer, bool full)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < object_transfer->n_busy; i++) {
        count += dp_peer_equal(&object_transfer->busy[i], peer);
    }
    const uint64_t waiting = dp_transport_bulk_waiting(object_transfer->config.transport, peer);
    return count >= (full ? 1 : DP_OBJECT_TRANSFER_SERVES_PER_PEER) ||
           (waiting != UINT64_MAX && waiting >= (full ? 1 : DP_TRANSPORT_BULK_LOW));
}

static bool start_serve(dp_object_transfer *object_transfer, const serve *what)
{
    serve_job *job = dp_alloc(1, sizeof *job);
    if (job == NULL) {
        return false;
    }
    job->job.run = run_serve;
    job->job.done = done_serve;
    job->object_transfer = object_transfer;
    job->run = object_transfer->config.run;
    job->what = *what;
    dp_buf_init(&job->message, DP_MESSAGE_BULK_MAX);
    if (!dp_object_transfer_post(object_transfer, &job->job, DP_STORE_THREAD_BULK)) {
        dp_free(job);
        return false;
    }
    object_transfer->busy[object_transfer->n_busy++] = what->peer;
    return true;
}

static void remove_serve(dp_object_transfer *object_transfer, uint32_t index)
{
    const dp_peer peer = object_transfer->serves[index].peer;
    object_transfer->n_serves--;
    memmove(object_transfer->serves + index, object_transfer->serves + index + 1,
            (object_transfer->n_serves - index) * sizeof object_transfer->serves[0]);
    for (uint32_t i = index; i < object_transfer->n_serves; i++) {
        object_transfer->serves[i].before -= dp_peer_equal(&object_transfer->serves[i].peer, &peer);
    }
}

/* The bytes of chunks for guests that are being read, or that wait until the guests take them. */
static uint64_t held_for_guests(const dp_object_transfer *object_transfer)
{
    uint64_t bytes = dp_transport_waiting(object_transfer->config.transport, true);
    for (uint32_t i = 0; i < object_transfer->n_busy; i++) {
        bytes += dp_transport_is_guest(object_transfer->config.transport, &object_transfer->busy[i])
                     ? DP_CHUNK_BYTES_MAX
                     : 0;
    }
    return bytes;
}

static void pump(dp_object_transfer *object_transfer)
{
    uint64_t guests = object_transfer->n_serves > 0 ? held_for_guests(object_transfer) : 0;
    bool full = object_transfer->n_serves > 0 && is_full(object_transfer);
    for (uint32_t i = 0; i < object_transfer->n_serves &&
                         object_transfer->n_busy < DP_OBJECT_TRANSFER_SERVES_MAX;) {
        const serve what = object_transfer->serves[i];
        const bool guest = dp_transport_is_guest(object_transfer->config.transport, &what.peer);
        if (peer_is_busy(object_transfer, &what.peer, full) ||
            (guest && guests >= DP_PEER_MEMORY_GUESTS_MAX)) {
            i++;
            continue;
        }
        guests += guest ? DP_CHUNK_BYTES_MAX : 0;
        if (!start_serve(object_transfer, &what)) {
            return;
        }
        full = full || is_full(object_transfer);
        remove_serve(object_transfer, i);
    }
}

/* Chunks that are being read from the store, or that the transport already has, are still sent: at
 * most two chunks and DP_TRANSPORT_BULK_LOW. */
void dp_object_transfer_unserve(dp_object_transfer *object_transfer, const dp_peer *peer,
                                const dp_hash *root)
{
    uint32_t kept = 0;
    uint32_t before = 0;
    for (uint32_t i = 0; i < object_transfer->n_serves; i++) {
        serve *what = &object_transfer->serves[i];
        const bool theirs = dp_peer_equal(&what->peer, peer);
        if (theirs && what->kind == SERVE_CHUNK && dp_hash_equal(&what->root, root)) {
            continue;
        }
        what->before = theirs ? before++ : what->before;
        object_transfer->serves[kept++] = *what;
    }
    object_transfer->n_serves = kept;
}

static uint32_t count_waiting(const dp_object_transfer *object_transfer, const dp_peer *peer)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < object_transfer->n_serves; i++) {
        count += dp_peer_equal(&object_transfer->serves[i].peer, peer);
    }
    return count;
}

/* The queue is full: the last request of the peer with most of them is dropped, unless the asking
 * peer has as many. */
static bool make_room(dp_object_transfer *object_transfer, uint32_t count)
{
    uint32_t most = 0;
    uint32_t victim = 0;
    for (uint32_t i = 0; i < object_transfer->n_serves; i++) {
        const uint32_t waiting = object_transfer->serves[i].before + 1;
        if (waiting >= most) {
            most = waiting;
            victim = i;
        }
    }
    if (most <= count + 1) {
        return false;
    }
    remove_serve(object_transfer, victim);
    return true;
}

static void enqueue(dp_object_transfer *object_transfer, const serve *what)
{
    const uint32_t count = count_waiting(object_transfer, &what->peer);
    if (count < DP_OBJECT_TRANSFER_WAITING_PER_PEER &&
        (object_transfer->n_serves < DP_OBJECT_TRANSFER_SERVES_MAX ||
         make_room(object_transfer, count))) {
        object_transfer->serves[object_transfer->n_serves] = *what;
        object_transfer->serves[object_transfer->n_serves++].before = count;
        pump(object_transfer);
    }
}

void dp_object_transfer_serve_info(dp_object_transfer *object_transfer, const dp_peer *peer,
                                   const dp_hash *root)
{
    enqueue(object_transfer, &(serve){.kind = SERVE_INFO, .peer = *peer, .root = *root});
}

void dp_object_transfer_serve_chunk(dp_object_transfer *object_transfer, const dp_peer *peer,
                                    const dp_hash *root, uint32_t index)
{
    enqueue(object_transfer,
            &(serve){.kind = SERVE_CHUNK, .peer = *peer, .root = *root, .index = index});
}

void dp_object_transfer_serve_records(dp_object_transfer *object_transfer, const dp_peer *peer,
                                      uint64_t from, uint32_t count)
{
    enqueue(object_transfer,
            &(serve){.kind = SERVE_RECORDS, .peer = *peer, .from = from, .index = count});
}

void dp_object_transfer_serve_manifest(dp_object_transfer *object_transfer, const dp_peer *peer)
{
    uint8_t bytes[DP_MANIFEST_BYTES_MAX + 16];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_wire_write_manifest(&writer,
                           dp_view_of(object_transfer->manifest, object_transfer->manifest_bytes));
    if (object_transfer->manifest_bytes >
        0) { /* It fits the control lane, and a newcomer has no other yet. */
        DP_IGNORE(dp_transport_send(object_transfer->config.transport, peer, DP_LANE_CONTROL,
                                    dp_view_of(bytes, writer.size)));
    }
}

void dp_object_transfer_drained(dp_object_transfer *object_transfer, const dp_peer *peer)
{
    (void)peer;
    pump(object_transfer);
}
