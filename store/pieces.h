/* A large object put into the store in pieces, so that a vote can be written between two of them.
 * Not a stream: all bytes are in memory from the beginning. */
#ifndef DP_STORE_PIECES_H
#define DP_STORE_PIECES_H

#include "store/object.h"

/* What one call hashes or writes, about 30 ms of either; the last call also syncs. */
#define DP_PIECE_BYTES ((uint64_t)16 << 20)

typedef struct dp_pieces {
    dp_view bytes;   /* borrowed until the end */
    dp_pin pin;      /* from the end on */
    dp_pin writing;  /* until then: of this writer alone */
    dp_hash root;    /* valid once dp_pieces_put has given DP_OK */
    dp_hash *leaves; /* NULL: not begun */
    uint32_t hashed; /* chunks */
    uint32_t written;
    bool begun;
} dp_pieces;

/* The next piece. DP_OK: the object is whole, durable and pinned. DP_AGAIN: call again. Else it has
 * failed, and what was written goes with the next collect once nothing pins it. */
DP_MUST dp_status dp_pieces_put(dp_pieces *pieces, dp_store *store);
/* It has failed, or is given up: the next collect takes what was written, unless it was whole
 * before or somebody else is writing it too. */
void dp_pieces_drop(const dp_pieces *pieces, dp_store *store);
void dp_pieces_close(dp_pieces *pieces);

#endif
