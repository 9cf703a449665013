/* Shared by the tests of object transfers: an object transfer with a store, a store thread and a
 * transport, and two of them that are linked in one loop. */
#ifndef DP_TESTS_UNIT_DAEMON_POST_H
#define DP_TESTS_UNIT_DAEMON_POST_H

#include "daemon/peer/object_transfer.h"
#include "gossip/record/wire.h"
#include "store/object.h"
#include "tests/unit/daemon/party.h"
#include "tests/unit/store/shelf.h"

enum { OBJECT_BYTES = 3 * DP_CHUNK_BYTES_MIN + 1000, ROUND = 4 };

struct post {
    struct guest guest;
    shelf shelf;
    dp_store_thread *store_thread;
    dp_object_transfer *object_transfer;
    unsigned n_infos;
    unsigned n_infos_before; /* when one more was asked for */
    unsigned n_chunks;
    unsigned n_objects;
    unsigned n_manifests;
    unsigned n_chunk_messages;
    unsigned n_lost;
    dp_hash lost_root;
    dp_status lost_status;
    unsigned n_others; /* messages that are the node's */
    dp_status last;
    dp_peer last_peer;
    uint64_t size;
    dp_hash leaves[DP_CHUNKS_MAX];
    uint8_t have[DP_CHUNKS_MAX];
    size_t manifest_bytes;
    bool close_in_hook;
    bool begins;                /* to receive the object when size and leaves have come */
    const struct post *fetches; /* the same, and asks for all its chunks, as the node does */
    const struct post *asks;    /* as the node does, for the next chunk when it is told of one */
};

struct route {
    uv_loop_t loop;
    struct post a;
    struct post b;
};

static inline void on_info(void *context, const dp_peer *peer, const dp_hash *root, uint64_t size,
                           const dp_hash *leaves)
{
    struct post *post = context;
    (void)peer;
    post->n_infos++;
    post->size = size;
    memcpy(post->leaves, leaves, dp_object_chunks(size) * sizeof leaves[0]);
    if (post->begins || post->fetches != NULL) {
        dp_object_transfer_begin(post->object_transfer, root, size, post->leaves, DP_USE_BLOB,
                                 ROUND);
    }
    for (uint32_t i = 0; post->fetches != NULL && i < dp_object_chunks(size); i++) {
        dp_object_transfer_get_chunk(post->object_transfer, &post->fetches->guest.peer, root, i);
    }
}

static inline void on_chunk(void *context, const dp_peer *peer, const dp_hash *root, uint32_t index,
                            dp_status status)
{
    struct post *post = context;
    post->n_chunks++;
    post->last = status;
    post->last_peer = *peer;
    post->have[index] = status == DP_OK;
    if (post->asks != NULL && index + 1 < dp_object_chunks(post->size)) {
        dp_object_transfer_get_chunk(post->object_transfer, &post->asks->guest.peer, root,
                                     index + 1);
    }
    if (post->close_in_hook) {
        dp_object_transfer_close(post->object_transfer);
        post->object_transfer = NULL;
    }
}

static inline void on_object(void *context, const dp_hash *root, uint64_t size)
{
    struct post *post = context;
    (void)root;
    (void)size;
    post->n_objects++;
}

static inline void on_manifest(void *context, const dp_peer *peer, dp_view bytes)
{
    struct post *post = context;
    (void)peer;
    post->n_manifests++;
    post->manifest_bytes = bytes.size;
}

static inline void on_lost(void *context, const dp_hash *root, dp_status status)
{
    struct post *post = context;
    post->n_lost++;
    post->lost_root = *root;
    post->lost_status = status;
}

/* Decides in place of the node: serves every request. */
static inline void post_message(void *context, const dp_peer *peer, dp_view bytes)
{
    struct post *post = (struct post *)context;
    dp_hash root;
    uint32_t index = 0;
    uint64_t from = 0;
    uint32_t count = 0;
    post->n_chunk_messages += dp_msg_type_of(bytes) == DP_MSG_CHUNK;
    if (post->object_transfer == NULL ||
        dp_object_transfer_message(post->object_transfer, peer, bytes)) {
        return;
    }
    post->n_others++;
    if (dp_wire_read_info_get(bytes, &root) == DP_OK) {
        dp_object_transfer_serve_info(post->object_transfer, peer, &root);
    } else if (dp_wire_read_chunk_get(bytes, &root, &index) == DP_OK) {
        dp_object_transfer_serve_chunk(post->object_transfer, peer, &root, index);
    } else if (dp_wire_read_records_get(bytes, &from, &count) == DP_OK) {
        dp_object_transfer_serve_records(post->object_transfer, peer, from, count);
    } else if (dp_msg_type_of(bytes) == DP_MSG_MANIFEST_GET) {
        dp_object_transfer_serve_manifest(post->object_transfer, peer);
    }
}

static inline void post_drained(void *context, const dp_peer *peer)
{
    struct post *post = (struct post *)context;
    if (post->object_transfer != NULL) {
        dp_object_transfer_drained(post->object_transfer, peer);
    }
}

static inline void post_open(struct post *post, uv_loop_t *loop, int number)
{
    memset(post, 0, sizeof *post);
    dp_transport_config config = guest_config(&post->guest, loop, number, 1);
    config.hooks.message = post_message;
    config.hooks.drained = post_drained;
    guest_open_as(&post->guest, &config); /* the guest is the first member: one context for both */
    shelf_open(&post->shelf);
    CHECK_OK(dp_store_thread_open(&post->store_thread, loop, post->shelf.store));
    const dp_object_transfer_config object_transfer = {
        .store_thread = post->store_thread,
        .transport = post->guest.transport,
        .run = party_of()->run,
        .hooks = {post, on_info, on_chunk, on_object, on_manifest, on_lost}};
    CHECK_OK(dp_object_transfer_open(&post->object_transfer, &object_transfer));
}

static inline void post_close(struct post *post)
{
    dp_object_transfer_close(post->object_transfer);
    post->object_transfer = NULL;
    guest_close(&post->guest);
    dp_store_thread_close(post->store_thread);
}

static inline void route_open(struct route *route)
{
    turn_open(&route->loop);
    post_open(&route->a, &route->loop, 0);
    post_open(&route->b, &route->loop, 1);
    party_link(&route->a.guest, &route->b.guest);
}

static inline void route_close(struct route *route)
{
    post_close(&route->a);
    post_close(&route->b);
    turn_close(&route->loop);
    shelf_close(&route->a.shelf);
    shelf_close(&route->b.shelf);
}

/* Stores are the store thread's while it runs; here nothing else is posted meanwhile. */
static inline dp_hash give_object(struct post *post, size_t size)
{
    return put_noise(post->shelf.store, 5, size, DP_PIN_BLOB, ROUND);
}

static inline bool has_info(void *context)
{
    const struct post *post = context;
    return post->n_infos > post->n_infos_before;
}

static inline bool has_object(void *context)
{
    return ((struct post *)context)->n_objects > 0;
}

static inline bool has_chunk(void *context)
{
    return ((struct post *)context)->n_chunks > 0;
}

static inline void fetch_info(struct post *to, const struct post *from, const dp_hash *root)
{
    to->n_infos_before = to->n_infos;
    dp_object_transfer_get_info(to->object_transfer, &from->guest.peer, root, 0);
    turn_until(to->guest.loop, has_info, to);
}

static inline void fetch(struct post *to, const struct post *from, const dp_hash *root)
{
    fetch_info(to, from, root);
    dp_object_transfer_begin(to->object_transfer, root, to->size, to->leaves, DP_USE_BLOB, ROUND);
    for (uint32_t i = 0; i < dp_object_chunks(to->size); i++) {
        dp_object_transfer_get_chunk(to->object_transfer, &from->guest.peer, root, i);
    }
    turn_until(to->guest.loop, has_object, to);
}

#endif
