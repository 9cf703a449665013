#include "daemon/peer/object_transfer.h"

#include <string.h>

#include "base/alloc.h"
#include "daemon/peer/object_transfer_inside.h"
#include "gossip/record/wire.h"
#include "store/object.h"

static void release(dp_object_transfer *object_transfer)
{
    if (object_transfer->closing && object_transfer->n_jobs == 0) {
        for (uint32_t i = 0; i < object_transfer->n_fetches; i++) {
            dp_free(object_transfer->fetches[i]);
        }
        dp_free(object_transfer);
    }
}

void dp_object_transfer_job_done(dp_object_transfer *object_transfer)
{
    object_transfer->n_jobs--;
    release(object_transfer);
}

bool dp_object_transfer_post(dp_object_transfer *object_transfer, dp_store_thread_job *job,
                             dp_store_thread_class class)
{
    if (dp_store_thread_post(object_transfer->config.store_thread, job, class) != DP_OK) {
        return false;
    }
    object_transfer->n_jobs++;
    return true;
}

dp_status dp_object_transfer_open(dp_object_transfer **out, const dp_object_transfer_config *config)
{
    dp_object_transfer *object_transfer = dp_alloc(1, sizeof *object_transfer);
    if (object_transfer == NULL) {
        return DP_NOMEM;
    }
    object_transfer->config = *config;
    *out = object_transfer;
    return DP_OK;
}

void dp_object_transfer_close(dp_object_transfer *object_transfer)
{
    if (object_transfer != NULL) {
        object_transfer->closing = true;
        release(object_transfer);
    }
}

void dp_object_transfer_set_manifest(dp_object_transfer *object_transfer, dp_view manifest)
{
    if (manifest.size <= sizeof object_transfer->manifest) {
        memcpy(object_transfer->manifest, manifest.data, manifest.size);
        object_transfer->manifest_bytes = manifest.size;
    }
}

static dp_pin pin_of(const dp_object_transfer *object_transfer, dp_object_use use, uint64_t round)
{
    static const dp_pin_kind kinds[] = {
        [DP_USE_BLOB] = DP_PIN_BLOB,         [DP_USE_STATE] = DP_PIN_STATE,
        [DP_USE_DATA] = DP_PIN_DATA,         [DP_USE_PENDING] = DP_PIN_PENDING,
        [DP_USE_EXCHANGE] = DP_PIN_EXCHANGE,
    };
    return (dp_pin){.run = object_transfer->config.run, .kind = kinds[use], .round = round};
}

/* ---- fetching ---- */

fetch *dp_object_transfer_find_fetch(const dp_object_transfer *object_transfer, const dp_hash *root)
{
    for (uint32_t i = 0; i < object_transfer->n_fetches; i++) {
        if (dp_hash_equal(&object_transfer->fetches[i]->root, root)) {
            return object_transfer->fetches[i];
        }
    }
    return NULL;
}

bool dp_object_transfer_fetches(const dp_object_transfer *object_transfer, const dp_hash *root)
{
    return dp_object_transfer_find_fetch(object_transfer, root) != NULL;
}

void dp_object_transfer_forget_fetch(dp_object_transfer *object_transfer, const dp_hash *root)
{
    for (uint32_t i = 0; i < object_transfer->n_fetches; i++) {
        if (dp_hash_equal(&object_transfer->fetches[i]->root, root)) {
            dp_free(object_transfer->fetches[i]);
            object_transfer->fetches[i] = object_transfer->fetches[--object_transfer->n_fetches];
            return;
        }
    }
}

/* Remembers the objects under way; the oldest is replaced, since the node requests a wanted object
 * again. */
static bool remember_fetch(dp_object_transfer *object_transfer, const dp_hash *root, uint64_t size)
{
    if (dp_object_transfer_find_fetch(object_transfer, root) != NULL) {
        return true;
    }
    fetch *entry = dp_alloc(1, sizeof *entry);
    if (entry == NULL) {
        return false;
    }
    if (object_transfer->n_fetches == DP_OBJECT_TRANSFER_FETCHES_MAX) {
        dp_free(object_transfer->fetches[0]);
        memmove(object_transfer->fetches, object_transfer->fetches + 1,
                (DP_OBJECT_TRANSFER_FETCHES_MAX - 1) * sizeof(fetch *));
        object_transfer->n_fetches--;
    }
    entry->root = *root;
    entry->size = size;
    object_transfer->fetches[object_transfer->n_fetches++] = entry;
    return true;
}

typedef struct begin_job {
    dp_store_thread_job job;
    dp_object_transfer *object_transfer;
    dp_hash root;
    uint64_t size;
    dp_pin pin;
    dp_status status;
    bool complete;
    uint8_t missing[(DP_CHUNKS_MAX + 7) / 8];
    dp_hash leaves[];
} begin_job;

static bool is_here(const begin_job *self, uint32_t index)
{
    return (self->missing[index / 8] >> (index % 8) & 1) == 0;
}

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

static void run_begin(dp_store_thread_job *job, dp_store *store)
{
    begin_job *self = (begin_job *)job;
    self->status = run_begin_steps(self, store);
}

static void remove_request(fetch *entry, uint32_t at)
{
    entry->n_requests--;
    memmove(entry->requests + at, entry->requests + at + 1,
            (entry->n_requests - at) * sizeof entry->requests[0]);
}

static void remember_request(fetch *entry, const dp_peer *peer, uint32_t index, bool held_back)
{
    if (entry->n_requests == REQUESTS_MAX) {
        remove_request(entry, 0); /* Its chunk is dropped if it arrives. */
    }
    entry->requests[entry->n_requests++] =
        (request){.peer = *peer, .index = index, .held_back = held_back};
}

bool dp_object_transfer_answered(fetch *entry, const dp_peer *peer, uint32_t index)
{
    for (uint32_t i = 0; i < entry->n_requests; i++) {
        if (entry->requests[i].index == index && dp_peer_equal(&entry->requests[i].peer, peer)) {
            remove_request(entry, i);
            return true;
        }
    }
    return false;
}

/* True if an earlier request of the list was sent to the same peer. */
static bool is_told(const fetch *entry, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++) {
        if (!entry->requests[i].held_back &&
            dp_peer_equal(&entry->requests[i].peer, &entry->requests[at].peer)) {
            return true;
        }
    }
    return false;
}

/* Tells the peers that were asked for chunks not to send the outstanding ones. */
void dp_object_transfer_drop_rest(const dp_object_transfer *object_transfer, fetch *entry)
{
    uint8_t bytes[64];

    for (uint32_t i = 0; i < entry->n_requests; i++) {
        if (!entry->requests[i].held_back && !is_told(entry, i)) {
            dp_writer writer = dp_writer_of(bytes, sizeof bytes);
            dp_wire_write_chunk_drop(&writer, &entry->root);
            DP_IGNORE(dp_transport_send(object_transfer->config.transport, &entry->requests[i].peer,
                                        DP_LANE_CONTROL, dp_view_of(bytes, writer.size)));
        }
    }
    entry->n_requests = 0;
}

static void ask(const dp_object_transfer *object_transfer, const dp_hash *root, const dp_peer *peer,
                uint32_t index)
{
    uint8_t bytes[64];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    dp_wire_write_chunk_get(&writer, root, index);
    DP_IGNORE(dp_transport_send(object_transfer->config.transport, peer, DP_LANE_CONTROL,
                                dp_view_of(bytes, writer.size)));
}

/* Sends the requests that were held back during the store's search, except for chunks that are
 * here. */
static void ask_held_back(const dp_object_transfer *object_transfer, const begin_job *begun)
{
    fetch *entry = dp_object_transfer_find_fetch(object_transfer, &begun->root);

    for (uint32_t i = 0; entry != NULL && i < entry->n_requests;) {
        request *held = &entry->requests[i];
        if (held->held_back && begun->status == DP_OK && is_here(begun, held->index)) {
            remove_request(entry, i);
            continue;
        }
        if (held->held_back) {
            held->held_back = false;
            ask(object_transfer, &entry->root, &held->peer, held->index);
        }
        i++;
    }
}

static void set_begun(const dp_object_transfer *object_transfer, const dp_hash *root)
{
    fetch *entry = dp_object_transfer_find_fetch(object_transfer, root);

    if (entry != NULL) {
        entry->begun = true;
    }
}

static void done_begin(dp_store_thread_job *job)
{
    static const dp_peer nobody = {{0}};
    begin_job *self = (begin_job *)job;
    dp_object_transfer *object_transfer = self->object_transfer;
    const dp_object_transfer_hooks *hooks = &object_transfer->config.hooks;
    const uint32_t n_chunks = dp_object_chunks(self->size);
    set_begun(object_transfer, &self->root);
    if (!object_transfer->closing && self->status == DP_OK) {
        if (self->complete) {
            dp_object_transfer_forget_fetch(object_transfer, &self->root);
        }
        /* A download of an earlier life continues. When the node is told of one stored chunk, it
         * asks for the next, which may be stored too: then it is told of that one, and no peer is
         * asked. */
        object_transfer->telling = self;
        for (uint32_t i = 0; i < n_chunks && !self->complete && !object_transfer->closing; i++) {
            if (is_here(self, i)) {
                hooks->chunk(hooks->context, &nobody, &self->root, i, DP_OK);
            }
        }
        object_transfer->telling = NULL;
        if (self->complete && !object_transfer->closing) {
            hooks->object(hooks->context, &self->root, self->size);
        }
    }
    if (!object_transfer->closing) {
        ask_held_back(object_transfer, self);
    }
    dp_free(self);
    dp_object_transfer_job_done(
        object_transfer); /* Not earlier: a hook may close the object transfer. */
}

void dp_object_transfer_begin(dp_object_transfer *object_transfer, const dp_hash *root,
                              uint64_t size, const dp_hash *leaves, dp_object_use use,
                              uint64_t round)
{
    const uint32_t n_chunks = dp_object_chunks(size);
    if (n_chunks > DP_CHUNKS_MAX || !remember_fetch(object_transfer, root, size)) {
        return;
    }
    begin_job *job = dp_alloc(1, sizeof *job + n_chunks * sizeof(dp_hash));
    if (job == NULL) {
        return;
    }
    job->job.run = run_begin;
    job->job.done = done_begin;
    job->object_transfer = object_transfer;
    job->root = *root;
    job->size = size;
    job->pin = pin_of(object_transfer, use, round);
    memcpy(job->leaves, leaves, n_chunks * sizeof(dp_hash));
    /* Urgent: sent before every chunk of this object. */
    if (!dp_object_transfer_post(object_transfer, &job->job, DP_STORE_THREAD_URGENT)) {
        dp_free(job);
        set_begun(object_transfer, root); /* The store will not answer. */
    }
}

void dp_object_transfer_get_info(dp_object_transfer *object_transfer, const dp_peer *peer,
                                 const dp_hash *root, uint32_t ahead)
{
    uint8_t bytes[64];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_wire_write_info_get(&writer, root);
    DP_IGNORE(dp_transport_send(object_transfer->config.transport, peer, DP_LANE_CONTROL,
                                dp_view_of(bytes, writer.size)));
    if (ahead > 0) {
        dp_object_transfer_ahead_ask(object_transfer, peer, root, ahead);
    }
}

void dp_object_transfer_get_chunk(dp_object_transfer *object_transfer, const dp_peer *peer,
                                  const dp_hash *root, uint32_t index)
{
    fetch *entry = dp_object_transfer_find_fetch(object_transfer, root);
    if (entry == NULL || index >= dp_object_chunks(entry->size)) {
        return;
    }
    if (object_transfer->telling != NULL && dp_hash_equal(&object_transfer->telling->root, root) &&
        is_here(object_transfer->telling, index)) {
        return;
    }
    const bool sent = dp_object_transfer_ahead_take(object_transfer, peer, root, index);
    remember_request(entry, peer, index, !sent && !entry->begun);
    if (!sent && entry->begun) {
        ask(object_transfer, root, peer, index);
    }
}

void dp_object_transfer_cancel(dp_object_transfer *object_transfer, const dp_hash *root)
{
    fetch *entry = dp_object_transfer_find_fetch(object_transfer, root);

    dp_object_transfer_ahead_drop(object_transfer, root);
    if (entry != NULL) { /* It stays, since the same object may be begun again at once. */
        dp_object_transfer_drop_rest(object_transfer, entry);
    }
}

void dp_object_transfer_get_manifest(dp_object_transfer *object_transfer, const dp_peer *peer)
{
    uint8_t bytes[16];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_wire_write_manifest_get(&writer);
    DP_IGNORE(dp_transport_send(object_transfer->config.transport, peer, DP_LANE_CONTROL,
                                dp_view_of(bytes, writer.size)));
}
