/* The open store, its batch of chunks and the calls that the files of this folder share. Private to
 * store/. */
#ifndef DP_STORE_INSIDE_H
#define DP_STORE_INSIDE_H

#include "store/db.h"
#include "store/dir.h"
#include "store/object.h"
#include "store/sql.h"

#define DP_STORE_RESERVE_NAME "reserve.bin"
#define DP_STORE_SUSPECT_KEY                                                                       \
    "store/chunks_suspect" /* kv: chunks.db contradicted itself; salvage at next start. */
/* kv: the name of a damaged chunks.db whose rows are being copied into the new one ... */
#define DP_STORE_SALVAGE_KEY "store/salvage"
/* ... and of one whose rows have been copied, which is to be deleted. */
#define DP_STORE_SALVAGED_KEY "store/salvaged"

/* Chunks written in the open transaction of chunks.db and not yet named in meta.db. */
typedef struct dp_chunk_batch {
    struct {
        dp_hash hash;
        int64_t id;
        uint32_t size;
    } rows[DP_STORE_BATCH_ROWS];
    uint32_t n_rows;
    uint64_t bytes;
    bool open;      /* A transaction of chunks.db is open. */
    bool committed; /* The rows are durable in chunks.db, but the index in meta.db failed. */
    bool lost;      /* Rows were dropped with a failed write; dp_object_flush has not told yet. */
} dp_chunk_batch;

struct dp_store {
    dp_dir dir;
    dp_store_options options;
    dp_sql meta;
    dp_sql chunks;
    dp_chunk_batch batch;
    uint8_t *scratch; /* One chunk of DP_CHUNK_BYTES_MAX, made when first needed. */
    unsigned depth;   /* Nesting of dp_store_atomically. */
    dp_status doomed; /* First failure inside the open transaction. */
    bool reserve_held;
    bool quota_reached;  /* The last DP_NOSPACE came from the quota, not from the disk. */
    bool orphans;        /* chunks.db may have rows that no object wants: dp_store_sweep. */
    uint64_t writings;   /* Pins given by dp_object_writing. */
    bool events_counted; /* n_events is the number of rows of the table event. */
    uint64_t n_events;
};

/* ---- chunk.c: rows of chunks.db and the index of them. Hashes are trusted where it says so. */
/* Adds a chunk to the batch unless it exists. The caller has checked or computed the hash. */
DP_MUST dp_status dp_chunk_add(dp_store *store, const dp_hash *hash, dp_view bytes);
/* DP_OK if the chunk exists, in the batch or in the index; id and size may be NULL. DP_NOTFOUND. */
DP_MUST dp_status dp_chunk_find(dp_store *store, const dp_hash *hash, int64_t *id, uint32_t *size);
/* Reads a chunk and checks it against hash. DP_BADHASH also forgets the chunk. */
DP_MUST dp_status dp_chunk_read(dp_store *store, const dp_hash *hash, void *out, size_t capacity,
                                size_t *size);
/* Reads row id without a check. DP_NOTFOUND; DP_BADHASH: the disk cannot read it. */
DP_MUST dp_status dp_chunk_read_row(dp_store *store, int64_t id, void *out, size_t capacity,
                                    size_t *size);
/* Opens the transaction of the batch if it is not open. */
DP_MUST dp_status dp_chunk_begin(dp_store *store);
/* Commits the rows in chunks.db (first half of SAFETY R1). */
DP_MUST dp_status dp_chunk_commit(dp_store *store);
/* Names the rows in meta.db (second half), inside a transaction; call dp_chunk_done after its
 * commit. */
DP_MUST dp_status dp_chunk_index(dp_store *store);
void dp_chunk_done(dp_store *store);
/* Commits and names the rows. The next dp_object_flush reports chunks that a failure dropped. */
DP_MUST dp_status dp_chunk_flush(dp_store *store);
/* Drops the open transaction and the batch. */
void dp_chunk_abandon(dp_store *store);
/* Marks for the next start that chunks.db contradicts itself (SAFETY R5). */
DP_MUST dp_status dp_chunk_suspect(dp_store *store);
/* Deletes rows of chunks.db that meta.db no longer names, in one transaction. Those that the disk
 * cannot read stay. */
DP_MUST dp_status dp_chunk_delete(dp_store *store, const int64_t *ids, uint32_t count);
/* The shared buffer of DP_CHUNK_BYTES_MAX bytes. */
DP_MUST dp_status dp_store_scratch(dp_store *store, uint8_t **scratch);

/* ---- keep.c: inside a transaction. */
DP_MUST dp_status dp_pin_insert(dp_store *store, const dp_hash *root, const dp_pin *pin);
DP_MUST dp_status dp_pin_delete(dp_store *store, const dp_hash *root, const dp_pin *pin);

/* ---- object.c */
/* Rows object, part and, if pin is not NULL, pin; inside a transaction. */
DP_MUST dp_status dp_object_insert(dp_store *store, const dp_hash *root, uint64_t size,
                                   const dp_hash *leaves, bool complete, const dp_pin *pin);
/* DP_OK if root names a complete object or is zero; DP_AGAIN, DP_NOTFOUND. */
DP_MUST dp_status dp_object_require(dp_store *store, const dp_hash *root);

/* ---- space.c */
/* Releases the disk reserve. False: there is none. If the file could not be removed, the next try
 * of the write tells whether there is room. */
bool dp_store_release_reserve(dp_store *store);

/* ---- ckpt.c */
/* Drops all complete checkpoints but the newest of every run and those kept, oldest first, to make
 * room (SAFETY R6). */
DP_MUST dp_status dp_ckpt_make_room(dp_store *store);

/* ---- recover.c: SAFETY R8. */
/* Makes both files agree: drops unfinished checkpoints, orphan chunks, and index rows without a
 * chunk. */
DP_MUST dp_status dp_store_recover(dp_store *store, dp_store_report *report);
/* Drops rows of chunks.db that no object of meta.db wants, with the disk reserve where the disk is
 * full, and indexes those that one wants. A failure leaves orphans set. */
DP_MUST dp_status dp_store_sweep(dp_store *store, dp_store_report *report);
/* After meta.db was rebuilt empty: indexes every chunk that verifies and every object whose recipe
 * exists. */
DP_MUST dp_status dp_store_reindex(dp_store *store, dp_store_report *report);
/* Before a damaged chunks.db is renamed to moved: records that its rows are to be copied, and
 * clears the index. A crash from here on leaves the rest to the next start. */
DP_MUST dp_status dp_store_salvage_begin(dp_store *store, const char *moved);
/* Copies the readable rows of a damaged chunks.db, now called moved, into the new one, except those
 * that it has, then removes it. DP_NOSPACE: it stays, and the next start copies the rest. */
DP_MUST dp_status dp_store_salvage(dp_store *store, const char *moved, dp_store_report *report);
/* Removes a file whose rows have been copied, if a crash has left one. */
void dp_store_salvage_end(dp_store *store);
/* The name under a key above; "" if there is none. */
void dp_store_salvage_name(dp_store *store, const char *key, char moved[64]);

#endif
