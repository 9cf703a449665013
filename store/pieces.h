/* Puts a large object into the store, or reads one, in pieces, so that a vote can be written
 * between two of them. The object is no stream: to put it, all bytes are in memory at the
 * beginning. */
#ifndef DP_STORE_PIECES_H
#define DP_STORE_PIECES_H

#include "store/object.h"

/* Bytes that one call hashes, writes or reads, about 30 ms of each; the last call that puts also
 * syncs. */
#define DP_PIECE_BYTES ((uint64_t)16 << 20)

typedef struct dp_pieces {
    dp_view bytes;   /* borrowed until the end */
    dp_pin pin;      /* set when the object is whole */
    dp_pin writing;  /* set until then; of this writer only */
    dp_hash root;    /* valid once dp_pieces_put has given DP_OK */
    dp_hash *leaves; /* of the chunks hashed so far; NULL: none */
    uint32_t hashed; /* chunks */
    uint32_t written;
    bool begun;
} dp_pieces;

/* Puts the next piece. DP_OK: the object is whole, durable and pinned. DP_AGAIN: call again. Any
 * other status is a failure; once nothing pins the written chunks, the next collect drops them. */
DP_MUST dp_status dp_pieces_put(dp_pieces *pieces, dp_store *store);
/* Gives up after a failure or before the end: the next collect drops the written chunks, unless the
 * object was whole before or another writer is writing it. Keeps the hashes: dp_pieces_put writes
 * it again from its beginning. */
void dp_pieces_drop(dp_pieces *pieces, dp_store *store);
void dp_pieces_close(dp_pieces *pieces);

/* Gets the chunks of an object in order. It must not call the store. */
typedef dp_status dp_pieces_take(void *context, dp_view chunk);

/* The reading of one object. Zero but for root, take and context at the beginning. */
typedef struct dp_pieces_reading {
    dp_hash root;
    dp_pieces_take *take; /* NULL: the bytes are only checked */
    void *context;        /* of take */
    uint64_t size;        /* of the object; valid from the first take on */
    uint32_t next;        /* the chunk that is read next */
    bool more;            /* there are others: call again */
} dp_pieces_reading;

/* Reads and checks the next piece. DP_AGAIN: the object is not complete, or not any more; other
 * failures as dp_object_read_chunk, or that of take. */
DP_MUST dp_status dp_pieces_read(dp_pieces_reading *reading, dp_store *store);

#endif
