/* Puts a large object into the store in pieces, so that a vote can be written between two of them.
 * Not a stream: all bytes are in memory from the beginning. */
#ifndef DP_STORE_PIECES_H
#define DP_STORE_PIECES_H

#include "store/object.h"

/* Bytes that one call hashes or writes, about 30 ms of either; the last call also syncs. */
#define DP_PIECE_BYTES ((uint64_t)16 << 20)

typedef struct dp_pieces {
    dp_view bytes;   /* borrowed until the end */
    dp_pin pin;      /* set when the object is whole */
    dp_pin writing;  /* set until then; of this writer only */
    dp_hash root;    /* valid once dp_pieces_put has given DP_OK */
    dp_hash *leaves; /* NULL: not begun */
    uint32_t hashed; /* chunks */
    uint32_t written;
    bool begun;
} dp_pieces;

/* Puts the next piece. DP_OK: the object is whole, durable and pinned. DP_AGAIN: call again. Any
 * other status is a failure; once nothing pins the written chunks, the next collect drops them. */
DP_MUST dp_status dp_pieces_put(dp_pieces *pieces, dp_store *store);
/* Gives up after a failure or before the end: the next collect drops the written chunks, unless the
 * object was whole before or another writer is writing it. */
void dp_pieces_drop(const dp_pieces *pieces, dp_store *store);
void dp_pieces_close(dp_pieces *pieces);

#endif
