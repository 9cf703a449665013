/* The private header of the object transfer: object_transfer.c fetches, object_transfer_put.c
 * stores, object_transfer_serve.c serves, object_transfer_ahead.c requests early. */
#ifndef DP_DAEMON_PEER_OBJECT_TRANSFER_INSIDE_H
#define DP_DAEMON_PEER_OBJECT_TRANSFER_INSIDE_H

#include "daemon/peer/object_transfer.h"
#include "gossip/transfer/picker.h"

enum {
    /* Requests for chunks of one object: those of the node, and earlier ones that took too long and
     * may still be answered. Beyond that the oldest is forgotten. */
    REQUESTS_MAX = 4 * DP_FLIGHTS_MAX,
    /* objects whose chunks are requested together with size and leaves */
    AHEADS_MAX = DP_FLIGHTS_MAX
};

/* A chunk counts only if it was requested of the peer that sends it. */
typedef struct request {
    dp_peer peer;
    uint32_t index;
    bool held_back; /* not sent yet: it waits for the store's list of chunks */
} request;

typedef struct fetch {
    dp_hash root;
    uint64_t size;
    bool begun; /* the store has said which chunks are here */
    uint32_t n_requests;
    request requests[REQUESTS_MAX]; /* without an answer, the oldest first */
    bool writing[DP_CHUNKS_MAX];    /* it has arrived and is being written */
} fetch;

/* Chunks of an object whose size and leaves are not known yet, requested together with these. */
typedef struct asked_ahead {
    dp_peer peer;
    dp_hash root;
    uint32_t chunks; /* bit per chunk that has not arrived, and that the node has not requested */
} asked_ahead;

typedef enum serve_kind { SERVE_INFO, SERVE_CHUNK, SERVE_RECORDS, SERVE_MANIFEST } serve_kind;

typedef struct serve {
    serve_kind kind;
    dp_peer peer;
    dp_hash root;
    uint32_t index; /* or count of records */
    uint64_t from;
    uint32_t before; /* requests of the same peer that wait before this one */
} serve;

struct dp_object_transfer {
    dp_object_transfer_config config;
    bool closing;
    uint32_t n_jobs;
    fetch *fetches[DP_OBJECT_TRANSFER_FETCHES_MAX];
    uint32_t n_fetches;
    const struct begin_job *telling; /* objects whose stored chunks are being told to the node */
    asked_ahead aheads[AHEADS_MAX];  /* the last requested objects; next_ahead is the oldest */
    uint32_t next_ahead;
    serve serves[DP_OBJECT_TRANSFER_SERVES_MAX];
    uint32_t n_serves;
    dp_peer busy[DP_OBJECT_TRANSFER_SERVES_MAX]; /* peers of the serves being read */
    uint32_t n_busy;
    uint8_t manifest[DP_MANIFEST_BYTES_MAX];
    size_t manifest_bytes;
    uint64_t flushed_ns; /* these three are the store thread's */
    uint64_t flush_took_ns;
    size_t unflushed;
};

/* object_transfer_ahead.c: asks this peer for the first n chunks of an object whose info was
 * requested from it. */
void dp_object_transfer_ahead_ask(dp_object_transfer *object_transfer, const dp_peer *peer,
                                  const dp_hash *root, uint32_t n);
/* Was this chunk requested in this way? Removes the entry: it has arrived, or counts as a normal
 * request from now on. */
bool dp_object_transfer_ahead_take(dp_object_transfer *object_transfer, const dp_peer *peer,
                                   const dp_hash *root, uint32_t index);
/* The object is no longer wanted: tells the asked peers. */
void dp_object_transfer_ahead_drop(dp_object_transfer *object_transfer, const dp_hash *root);
/* False: the store thread takes no more jobs, and the caller keeps the job. */
bool dp_object_transfer_post(dp_object_transfer *object_transfer, dp_store_thread_job *job,
                             dp_store_thread_class class);
/* object_transfer_serve.c: a peer that asked for chunks of this object no longer wants them. */
void dp_object_transfer_unserve(dp_object_transfer *object_transfer, const dp_peer *peer,
                                const dp_hash *root);
/* Is it being fetched? */
bool dp_object_transfer_fetches(const dp_object_transfer *object_transfer, const dp_hash *root);
/* A job has ended. Frees the object transfer when it is closing and this was the last one: call it
 * last. */
void dp_object_transfer_job_done(dp_object_transfer *object_transfer);

/* object_transfer.c: fetches under way */
fetch *dp_object_transfer_find_fetch(const dp_object_transfer *object_transfer,
                                     const dp_hash *root);
void dp_object_transfer_forget_fetch(dp_object_transfer *object_transfer, const dp_hash *root);
void dp_object_transfer_drop_rest(const dp_object_transfer *object_transfer, fetch *entry);
/* Removes the oldest request for this chunk to this peer. False: there is none. */
bool dp_object_transfer_answered(fetch *entry, const dp_peer *peer, uint32_t index);

#endif
