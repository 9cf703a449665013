#include "daemon/courier.h"

#include <string.h>

#include "base/alloc.h"
#include "gossip/wire.h"
#include "store/chain.h"
#include "store/ckpt.h"
#include "store/object.h"

enum { RECORDS_MESSAGE_MAX = 90 * 1024 };

typedef struct fetch {
    dp_hash root;
    uint64_t size;
    uint8_t asked[DP_CHUNKS_MAX]; /* requests under way per chunk */
} fetch;

typedef enum serve_kind { SERVE_INFO, SERVE_CHUNK, SERVE_RECORDS, SERVE_MANIFEST } serve_kind;

typedef struct serve {
    serve_kind kind;
    dp_peer peer;
    dp_hash root;
    uint32_t index; /* or count of records */
    uint64_t from;
} serve;

struct dp_courier {
    dp_courier_config config;
    bool closing;
    uint32_t n_jobs;
    fetch *fetches[DP_COURIER_FETCHES_MAX];
    uint32_t n_fetches;
    serve serves[DP_COURIER_SERVES_MAX];
    uint32_t n_serves;
    dp_peer busy[DP_COURIER_SERVES_MAX]; /* peers of the serves being read */
    uint32_t n_busy;
    uint8_t manifest[DP_MANIFEST_BYTES_MAX];
    size_t manifest_bytes;
};

static void release(dp_courier *courier)
{
    if (courier->closing && courier->n_jobs == 0) {
        for (uint32_t i = 0; i < courier->n_fetches; i++) {
            dp_free(courier->fetches[i]);
        }
        dp_free(courier);
    }
}

static bool post(dp_courier *courier, dp_saver_job *job, dp_saver_class class)
{
    if (dp_saver_post(courier->config.saver, job, class) != DP_OK) {
        return false;
    }
    courier->n_jobs++;
    return true;
}

dp_status dp_courier_open(dp_courier **out, const dp_courier_config *config)
{
    dp_courier *courier = dp_alloc(1, sizeof *courier);
    if (courier == NULL) {
        return DP_NOMEM;
    }
    courier->config = *config;
    *out = courier;
    return DP_OK;
}

void dp_courier_close(dp_courier *courier)
{
    if (courier != NULL) {
        courier->closing = true;
        release(courier);
    }
}

void dp_courier_set_manifest(dp_courier *courier, dp_view manifest)
{
    if (manifest.size <= sizeof courier->manifest) {
        memcpy(courier->manifest, manifest.data, manifest.size);
        courier->manifest_bytes = manifest.size;
    }
}

static dp_pin pin_of(const dp_courier *courier, dp_object_use use, uint64_t round)
{
    static const dp_pin_kind kinds[] = {
        [DP_USE_BLOB] = DP_PIN_BLOB,         [DP_USE_STATE] = DP_PIN_STATE,
        [DP_USE_DATA] = DP_PIN_DATA,         [DP_USE_PENDING] = DP_PIN_PENDING,
        [DP_USE_EXCHANGE] = DP_PIN_EXCHANGE,
    };
    return (dp_pin){.run = courier->config.run, .kind = kinds[use], .round = round};
}

/* ---- fetching ---- */

static fetch *find_fetch(const dp_courier *courier, const dp_hash *root)
{
    for (uint32_t i = 0; i < courier->n_fetches; i++) {
        if (dp_hash_equal(&courier->fetches[i]->root, root)) {
            return courier->fetches[i];
        }
    }
    return NULL;
}

static void forget_fetch(dp_courier *courier, const dp_hash *root)
{
    for (uint32_t i = 0; i < courier->n_fetches; i++) {
        if (dp_hash_equal(&courier->fetches[i]->root, root)) {
            dp_free(courier->fetches[i]);
            courier->fetches[i] = courier->fetches[--courier->n_fetches];
            return;
        }
    }
}

/* Remember what is being fetched; the oldest makes room, since the node asks again for what it still wants. */
static bool remember_fetch(dp_courier *courier, const dp_hash *root, uint64_t size)
{
    if (find_fetch(courier, root) != NULL) {
        return true;
    }
    fetch *entry = dp_alloc(1, sizeof *entry);
    if (entry == NULL) {
        return false;
    }
    if (courier->n_fetches == DP_COURIER_FETCHES_MAX) {
        dp_free(courier->fetches[0]);
        memmove(courier->fetches, courier->fetches + 1,
                (DP_COURIER_FETCHES_MAX - 1) * sizeof(fetch *));
        courier->n_fetches--;
    }
    entry->root = *root;
    entry->size = size;
    courier->fetches[courier->n_fetches++] = entry;
    return true;
}

typedef struct begin_job {
    dp_saver_job job;
    dp_courier *courier;
    dp_hash root;
    uint64_t size;
    dp_pin pin;
    dp_status status;
    bool complete;
    uint8_t missing[(DP_CHUNKS_MAX + 7) / 8];
    dp_hash leaves[];
} begin_job;

static dp_status run_begin_steps(begin_job *self, dp_store *store)
{
    uint32_t n_missing = 0;
    DP_TRY(dp_object_begin(store, &self->root, self->size, self->leaves, &self->pin));
    DP_TRY(dp_object_missing(store, &self->root, self->missing, sizeof self->missing, &n_missing));
    if (n_missing == 0) {
        DP_TRY(dp_object_commit(store, &self->root));
        self->complete = true;
    }
    return DP_OK;
}

static void run_begin(dp_saver_job *job, dp_store *store)
{
    begin_job *self = (begin_job *)job;
    self->status = run_begin_steps(self, store);
}

static void done_begin(dp_saver_job *job)
{
    static const dp_peer nobody = {{0}};
    begin_job *self = (begin_job *)job;
    dp_courier *courier = self->courier;
    const dp_courier_hooks *hooks = &courier->config.hooks;
    const uint32_t n_chunks = dp_object_chunks(self->size);
    if (!courier->closing && self->status == DP_OK) {
        if (self->complete) {
            forget_fetch(courier, &self->root);
        }
        /* A download that an earlier life began goes on where it was. */
        for (uint32_t i = 0; i < n_chunks && !self->complete && !courier->closing; i++) {
            if ((self->missing[i / 8] >> (i % 8) & 1) == 0) {
                hooks->chunk(hooks->context, &nobody, &self->root, i, DP_OK);
            }
        }
        if (self->complete && !courier->closing) {
            hooks->object(hooks->context, &self->root, self->size);
        }
    }
    dp_free(self);
    courier->n_jobs--; /* Not earlier: a hook may close the courier. */
    release(courier);
}

void dp_courier_begin(dp_courier *courier, const dp_hash *root, uint64_t size,
                      const dp_hash *leaves, dp_object_use use, uint64_t round)
{
    const uint32_t n_chunks = dp_object_chunks(size);
    if (n_chunks > DP_CHUNKS_MAX || !remember_fetch(courier, root, size)) {
        return;
    }
    begin_job *job = dp_alloc(1, sizeof *job + n_chunks * sizeof(dp_hash));
    if (job == NULL) {
        return;
    }
    job->job.run = run_begin;
    job->job.done = done_begin;
    job->courier = courier;
    job->root = *root;
    job->size = size;
    job->pin = pin_of(courier, use, round);
    memcpy(job->leaves, leaves, n_chunks * sizeof(dp_hash));
    /* Urgent: in front of every chunk of this object. */
    if (!post(courier, &job->job, DP_SAVER_URGENT)) {
        dp_free(job);
    }
}

void dp_courier_get_info(dp_courier *courier, const dp_peer *peer, const dp_hash *root)
{
    uint8_t bytes[64];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_wire_write_info_get(&writer, root);
    DP_IGNORE(dp_transport_send(courier->config.transport, peer, DP_LANE_CONTROL,
                                dp_view_of(bytes, writer.size)));
}

void dp_courier_get_chunk(dp_courier *courier, const dp_peer *peer, const dp_hash *root,
                          uint32_t index)
{
    fetch *entry = find_fetch(courier, root);
    if (entry == NULL || index >= dp_object_chunks(entry->size)) {
        return;
    }
    if (entry->asked[index] < UINT8_MAX) {
        entry->asked[index]++;
    }
    uint8_t bytes[64];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_wire_write_chunk_get(&writer, root, index);
    DP_IGNORE(dp_transport_send(courier->config.transport, peer, DP_LANE_CONTROL,
                                dp_view_of(bytes, writer.size)));
}

void dp_courier_get_manifest(dp_courier *courier, const dp_peer *peer)
{
    uint8_t bytes[16];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_wire_write_manifest_get(&writer);
    DP_IGNORE(dp_transport_send(courier->config.transport, peer, DP_LANE_CONTROL,
                                dp_view_of(bytes, writer.size)));
}

typedef struct put_job {
    dp_saver_job job;
    dp_courier *courier;
    dp_peer peer;
    dp_hash root;
    uint64_t size;
    uint32_t index;
    dp_status status;
    bool complete;
    size_t n_bytes;
    uint8_t bytes[];
} put_job;

static void run_put(dp_saver_job *job, dp_store *store)
{
    put_job *self = (put_job *)job;
    dp_object_info info = {0};
    self->status = dp_object_put_chunk(store, &self->root, self->index,
                                       dp_view_of(self->bytes, self->n_bytes));
    if (self->status == DP_NOTFOUND) {
        self->status =
            DP_AGAIN; /* Dropped here meanwhile; to the node NOTFOUND would mean that the peer lacks it. */
    }
    if (self->status == DP_OK && dp_object_stat(store, &self->root, &info) == DP_OK &&
        info.n_present == info.n_chunks) {
        self->status = dp_object_commit(store, &self->root);
        self->complete = self->status == DP_OK;
    }
}

static void done_put(dp_saver_job *job)
{
    put_job *self = (put_job *)job;
    dp_courier *courier = self->courier;
    const dp_courier_hooks *hooks = &courier->config.hooks;
    if (!courier->closing) {
        if (self->complete) {
            forget_fetch(courier, &self->root);
        }
        hooks->chunk(hooks->context, &self->peer, &self->root, self->index, self->status);
    }
    if (!courier->closing && self->complete) {
        hooks->object(hooks->context, &self->root, self->size);
    }
    dp_free(self);
    courier->n_jobs--; /* Not earlier: a hook may close the courier. */
    release(courier);
}

static void take_chunk(dp_courier *courier, const dp_peer *peer, dp_view message)
{
    dp_wire_chunk chunk;
    if (dp_wire_read_chunk(message, &chunk) != DP_OK) {
        return;
    }
    const dp_courier_hooks *hooks = &courier->config.hooks;
    fetch *entry = find_fetch(courier, &chunk.root);
    if (!chunk.found && chunk.index == 0 && (entry == NULL || entry->asked[0] == 0)) {
        /* The answer to INFO_GET of one that lacks it. */
        hooks->chunk(hooks->context, peer, &chunk.root, 0, DP_NOTFOUND);
        return;
    }
    if (entry == NULL || chunk.index >= dp_object_chunks(entry->size) ||
        entry->asked[chunk.index] == 0) {
        return; /* Nobody asked, or it came twice. */
    }
    entry->asked[chunk.index]--;
    if (!chunk.found || chunk.bytes.size != dp_object_chunk_size(entry->size, chunk.index)) {
        const dp_status status = chunk.found ? DP_BADHASH : DP_NOTFOUND;
        hooks->chunk(hooks->context, peer, &chunk.root, chunk.index, status);
        return;
    }
    put_job *job = dp_alloc(1, sizeof *job + chunk.bytes.size);
    if (job == NULL) {
        return;
    }
    job->job.run = run_put;
    job->job.done = done_put;
    job->courier = courier;
    job->peer = *peer;
    job->root = chunk.root;
    job->size = entry->size;
    job->index = chunk.index;
    job->n_bytes = chunk.bytes.size;
    memcpy(job->bytes, chunk.bytes.data, chunk.bytes.size);
    if (!post(courier, &job->job,
              entry->size <= DP_CHUNK_BYTES_MIN ? DP_SAVER_URGENT : DP_SAVER_BULK)) {
        dp_free(job);
    }
}

/* ---- serving ---- */

typedef struct serve_job {
    dp_saver_job job;
    dp_courier *courier;
    dp_run_id run;
    serve what;
    dp_buf message;
} serve_job;

/* A state that somebody is fetching stays until it is whole there. Without a lease it may go, and is asked for in vain. */
static void lease(const serve_job *self, dp_store *store)
{
    DP_IGNORE(dp_ckpt_lease(store, &self->run, &self->what.root, uv_hrtime() / 1000000000U + 1));
}

/* Who asks need not wait to learn that it has to ask another. */
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

static dp_status read_chunk(serve_job *self, dp_store *store)
{
    uint8_t *room = NULL;
    size_t size = 0;
    DP_TRY(dp_buf_reserve(&self->message, DP_CHUNK_HEAD_BYTES + DP_CHUNK_BYTES_MAX, &room));
    lease(self, store);
    const bool found =
        dp_object_read_chunk(store, &self->what.root, self->what.index, room + DP_CHUNK_HEAD_BYTES,
                             DP_CHUNK_BYTES_MAX, &size) == DP_OK;
    dp_writer writer = dp_writer_of(room, DP_CHUNK_HEAD_BYTES);
    dp_wire_write_chunk_head(&writer, &self->what.root, self->what.index, found);
    dp_buf_commit(&self->message, writer.size + (found ? size : 0));
    return DP_OK;
}

static dp_status add_record(const dp_chain_row *entry, void *context)
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
        status != DP_AGAIN) { /* AGAIN: full; the asker goes on from where this ends. */
        return status;
    }
    dp_buf_commit(&self->message, writer.size);
    return DP_OK;
}

static void run_serve(dp_saver_job *job, dp_store *store)
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

static void pump(dp_courier *courier);

static void done_serve(dp_saver_job *job)
{
    serve_job *self = (serve_job *)job;
    dp_courier *courier = self->courier;
    courier->n_jobs--;
    for (uint32_t i = 0; i < courier->n_busy; i++) {
        if (dp_peer_equal(&courier->busy[i], &self->what.peer)) {
            courier->busy[i] = courier->busy[--courier->n_busy];
            break;
        }
    }
    if (!courier->closing && self->message.size > 0) {
        const dp_view message = dp_buf_view(&self->message);
        /* A lost answer is asked for again. */
        DP_IGNORE(
            dp_transport_send(courier->config.transport, &self->what.peer, DP_LANE_BULK, message));
    }
    if (!courier->closing) {
        pump(courier);
    }
    dp_buf_close(&self->message);
    dp_free(self);
    release(courier);
}

static bool peer_is_busy(const dp_courier *courier, const dp_peer *peer)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < courier->n_busy; i++) {
        count += dp_peer_equal(&courier->busy[i], peer);
    }
    const uint64_t waiting = dp_transport_bulk_waiting(courier->config.transport, peer);
    return count >= DP_COURIER_SERVES_PER_PEER ||
           (waiting != UINT64_MAX && waiting >= DP_TRANSPORT_BULK_LOW);
}

static bool start_serve(dp_courier *courier, const serve *what)
{
    serve_job *job = dp_alloc(1, sizeof *job);
    if (job == NULL) {
        return false;
    }
    job->job.run = run_serve;
    job->job.done = done_serve;
    job->courier = courier;
    job->run = courier->config.run;
    job->what = *what;
    dp_buf_init(&job->message, DP_MESSAGE_BULK_MAX);
    if (!post(courier, &job->job, DP_SAVER_BULK)) {
        dp_free(job);
        return false;
    }
    courier->busy[courier->n_busy++] = what->peer;
    return true;
}

static void remove_serve(dp_courier *courier, uint32_t index)
{
    courier->n_serves--;
    memmove(courier->serves + index, courier->serves + index + 1,
            (courier->n_serves - index) * sizeof courier->serves[0]);
}

static void pump(dp_courier *courier)
{
    for (uint32_t i = 0; i < courier->n_serves && courier->n_busy < DP_COURIER_SERVES_MAX;) {
        const serve what = courier->serves[i];
        if (peer_is_busy(courier, &what.peer)) {
            i++;
            continue;
        }
        if (!start_serve(courier, &what)) {
            return;
        }
        remove_serve(courier, i);
    }
}

static uint32_t count_waiting(const dp_courier *courier, const dp_peer *peer)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < courier->n_serves; i++) {
        count += dp_peer_equal(&courier->serves[i].peer, peer);
    }
    return count;
}

/* The queue is full: the last request of the peer with most of them goes, unless who asks now has as many. */
static bool make_room(dp_courier *courier, uint32_t count)
{
    uint32_t most = 0;
    uint32_t victim = 0;
    for (uint32_t i = 0; i < courier->n_serves; i++) {
        const uint32_t waiting = count_waiting(courier, &courier->serves[i].peer);
        if (waiting >= most) {
            most = waiting;
            victim = i;
        }
    }
    if (most <= count + 1) {
        return false;
    }
    remove_serve(courier, victim);
    return true;
}

static void enqueue(dp_courier *courier, const serve *what)
{
    const uint32_t count = count_waiting(courier, &what->peer);
    if (count < DP_COURIER_WAITING_PER_PEER &&
        (courier->n_serves < DP_COURIER_SERVES_MAX || make_room(courier, count))) {
        courier->serves[courier->n_serves++] = *what;
        pump(courier);
    }
}

void dp_courier_serve_info(dp_courier *courier, const dp_peer *peer, const dp_hash *root)
{
    enqueue(courier, &(serve){.kind = SERVE_INFO, .peer = *peer, .root = *root});
}

void dp_courier_serve_chunk(dp_courier *courier, const dp_peer *peer, const dp_hash *root,
                            uint32_t index)
{
    enqueue(courier, &(serve){.kind = SERVE_CHUNK, .peer = *peer, .root = *root, .index = index});
}

void dp_courier_serve_records(dp_courier *courier, const dp_peer *peer, uint64_t from,
                              uint32_t count)
{
    enqueue(courier, &(serve){.kind = SERVE_RECORDS, .peer = *peer, .from = from, .index = count});
}

void dp_courier_serve_manifest(dp_courier *courier, const dp_peer *peer)
{
    uint8_t bytes[DP_MANIFEST_BYTES_MAX + 16];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_wire_write_manifest(&writer, dp_view_of(courier->manifest, courier->manifest_bytes));
    if (courier->manifest_bytes >
        0) { /* It fits the control lane, and a newcomer has no other yet. */
        DP_IGNORE(dp_transport_send(courier->config.transport, peer, DP_LANE_CONTROL,
                                    dp_view_of(bytes, writer.size)));
    }
}

void dp_courier_drained(dp_courier *courier, const dp_peer *peer)
{
    (void)peer;
    pump(courier);
}

bool dp_courier_message(dp_courier *courier, const dp_peer *peer, dp_view bytes)
{
    const dp_courier_hooks *hooks = &courier->config.hooks;
    switch (dp_msg_type_of(bytes)) {
    case DP_MSG_INFO: {
        static dp_hash
            leaves[DP_CHUNKS_MAX]; /* Loop thread only; too large for its stack to be lent often. */
        dp_wire_info info;
        if (dp_wire_read_info(bytes, &info, leaves) == DP_OK) {
            hooks->info(hooks->context, peer, &info.root, info.size, leaves);
        }
        return true;
    }
    case DP_MSG_CHUNK:
        take_chunk(courier, peer, bytes);
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
