#include "store/pieces.h"

#include "base/alloc.h"
#include "store/inside.h"

static dp_view chunk_of(const dp_pieces *pieces, uint32_t index)
{
    const uint64_t at = (uint64_t)index * dp_object_chunk_bytes(pieces->bytes.size);

    return dp_view_of(pieces->bytes.data + at, dp_object_chunk_size(pieces->bytes.size, index));
}

/* Up to the size of a piece. False: there are more. */
static bool hash_piece(dp_pieces *pieces, uint32_t n_chunks)
{
    for (uint64_t done = 0; pieces->hashed < n_chunks; pieces->hashed++) {
        const dp_view chunk = chunk_of(pieces, pieces->hashed);
        if (done >= DP_PIECE_BYTES) {
            return false;
        }
        pieces->leaves[pieces->hashed] = dp_chunk_leaf(chunk);
        done += chunk.size;
    }
    return true;
}

static dp_status write_piece(dp_pieces *pieces, dp_store *store, uint32_t n_chunks)
{
    for (uint64_t done = 0; pieces->written < n_chunks; pieces->written++) {
        const dp_view chunk = chunk_of(pieces, pieces->written);
        if (done >= DP_PIECE_BYTES) {
            DP_TRY(dp_object_flush(store)); /* Else the last sync would wait for all of them. */
            return DP_AGAIN;
        }
        DP_TRY(dp_object_put_chunk(store, &pieces->root, pieces->written, chunk));
        done += chunk.size;
    }
    const dp_status status =
        dp_object_commit_as(store, &pieces->root, &pieces->writing, &pieces->pin);
    return status == DP_AGAIN ? DP_IO : status; /* A sync failed: written chunks are missing. */
}

dp_status dp_pieces_put(dp_pieces *pieces, dp_store *store)
{
    const uint32_t n_chunks = dp_object_chunks(pieces->bytes.size);

    if (pieces->bytes.size > DP_OBJECT_BYTES_MAX) {
        return DP_TOOBIG;
    }
    if (pieces->leaves == NULL) {
        pieces->leaves = dp_alloc((size_t)n_chunks + 1, sizeof *pieces->leaves);
        if (pieces->leaves == NULL) {
            return DP_NOMEM;
        }
    }
    if (!hash_piece(pieces, n_chunks)) {
        return DP_AGAIN;
    }
    if (pieces->bytes.size <= DP_PIECE_BYTES) { /* At once, which costs fewer syncs. */
        return dp_object_put_hashed(store, pieces->bytes, pieces->leaves, &pieces->pin,
                                    &pieces->root);
    }
    if (!pieces->begun) {
        pieces->root = dp_object_root(pieces->bytes.size, pieces->leaves);
        pieces->writing = dp_object_writing(store, &pieces->pin.run);
        DP_TRY(dp_object_begin(store, &pieces->root, pieces->bytes.size, pieces->leaves,
                               &pieces->writing));
        pieces->begun = true;
        return DP_AGAIN;
    }
    return write_piece(pieces, store, n_chunks);
}

void dp_pieces_drop(dp_pieces *pieces, dp_store *store)
{
    if (pieces->begun) {
        /* If this fails too, the next start drops it. */
        DP_IGNORE(dp_object_unpin(store, &pieces->root, &pieces->writing));
    }
    pieces->begun = false;
    pieces->written = 0;
}

void dp_pieces_close(dp_pieces *pieces)
{
    dp_free(pieces->leaves);
    pieces->leaves = NULL;
}

dp_status dp_pieces_read(dp_pieces_reading *reading, dp_store *store)
{
    dp_object_info info;
    uint8_t *scratch = NULL;

    DP_TRY(dp_object_stat(store, &reading->root, &info));
    if (!info.complete) {
        return DP_AGAIN;
    }
    DP_TRY(dp_store_scratch(store, &scratch));
    reading->size = info.size;
    for (uint64_t done = 0; done < DP_PIECE_BYTES && reading->next < info.n_chunks;
         reading->next++) {
        size_t size = 0;
        DP_TRY(dp_object_read_chunk(store, &reading->root, reading->next, scratch,
                                    DP_CHUNK_BYTES_MAX, &size));
        if (size != dp_object_chunk_size(info.size, reading->next)) {
            return DP_BADHASH;
        }
        if (reading->take != NULL) {
            DP_TRY(reading->take(reading->context, dp_view_of(scratch, size)));
        }
        done += size;
    }
    reading->more = reading->next < info.n_chunks;
    return DP_OK;
}
