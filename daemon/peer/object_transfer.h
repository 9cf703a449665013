/* Moves objects between the store and peers: fetches the chunks that the node requested, checks
 * and stores them off the loop, and serves object information, chunks, records and the manifest to
 * peers. It does not decide which objects to fetch. Loop thread only. */
#ifndef DP_DAEMON_PEER_OBJECT_TRANSFER_H
#define DP_DAEMON_PEER_OBJECT_TRANSFER_H

#include "daemon/host/store_thread.h"
#include "daemon/net/transport.h"
#include "gossip/node/node.h"

enum {
    DP_OBJECT_TRANSFER_FETCHES_MAX = 128, /* objects being fetched */
    DP_OBJECT_TRANSFER_SERVES_MAX =
        512, /* waiting requests of peers; more are dropped, and the peer asks again */
    DP_OBJECT_TRANSFER_WAITING_PER_PEER = 96, /* of those, for one peer */
    DP_OBJECT_TRANSFER_SERVES_PER_PEER = 2    /* being read from the store or sent, per peer */
};

typedef struct dp_object_transfer dp_object_transfer;

typedef struct dp_object_transfer_hooks {
    void *context;
    void (*info)(void *context, const dp_peer *peer, const dp_hash *root, uint64_t size,
                 const dp_hash *leaves);
    void (*chunk)(void *context, const dp_peer *peer, const dp_hash *root, uint32_t index,
                  dp_status status);
    void (*object)(void *context, const dp_hash *root, uint64_t size);
    void (*manifest)(void *context, const dp_peer *peer, dp_view bytes);
    /* The store could not serve it: it is no longer whole here. DP_BADHASH: bytes of it were
     * damaged; DP_NOTFOUND: this was noticed before. Not called for objects that are being
     * fetched. */
    void (*lost)(void *context, const dp_hash *root, dp_status status);
} dp_object_transfer_hooks;

typedef struct dp_object_transfer_config {
    dp_store_thread *store_thread;
    dp_transport *transport;
    dp_run_id run;
    dp_object_transfer_hooks hooks;
} dp_object_transfer_config;

DP_MUST dp_status dp_object_transfer_open(dp_object_transfer **object_transfer,
                                          const dp_object_transfer_config *config);
/* Jobs under way finish first: memory is freed with the last of them; hooks are no longer
 * called. */
void dp_object_transfer_close(dp_object_transfer *object_transfer);
/* The canonical bytes of the answer to MANIFEST_GET; copied. */
void dp_object_transfer_set_manifest(dp_object_transfer *object_transfer, dp_view manifest);

/* Actions of the node. */
void dp_object_transfer_begin(dp_object_transfer *object_transfer, const dp_hash *root,
                              uint64_t size, const dp_hash *leaves, dp_object_use use,
                              uint64_t round);
/* ahead: so many first chunks are requested with it, and dp_object_transfer_get_chunk will not ask
 * this peer for them again. */
void dp_object_transfer_get_info(dp_object_transfer *object_transfer, const dp_peer *peer,
                                 const dp_hash *root, uint32_t ahead);
void dp_object_transfer_get_chunk(dp_object_transfer *object_transfer, const dp_peer *peer,
                                  const dp_hash *root, uint32_t index);
/* The node no longer wants it: tells the peers that were asked for chunks of it, and drops chunks
 * that still arrive. */
void dp_object_transfer_cancel(dp_object_transfer *object_transfer, const dp_hash *root);
void dp_object_transfer_get_manifest(dp_object_transfer *object_transfer, const dp_peer *peer);
void dp_object_transfer_serve_info(dp_object_transfer *object_transfer, const dp_peer *peer,
                                   const dp_hash *root);
void dp_object_transfer_serve_chunk(dp_object_transfer *object_transfer, const dp_peer *peer,
                                    const dp_hash *root, uint32_t index);
void dp_object_transfer_serve_records(dp_object_transfer *object_transfer, const dp_peer *peer,
                                      uint64_t from, uint32_t count);
void dp_object_transfer_serve_manifest(dp_object_transfer *object_transfer, const dp_peer *peer);

/* True if the message was INFO, CHUNK, CHUNK_DROP or MANIFEST, and has been handled. */
bool dp_object_transfer_message(dp_object_transfer *object_transfer, const dp_peer *peer,
                                dp_view bytes);
void dp_object_transfer_drained(dp_object_transfer *object_transfer, const dp_peer *peer);

#endif
