/* Content-addressed objects in chunks (base/digest.h names them): written whole or chunk by chunk
 * in any order, read with every hash checked, and kept as long as something refers to them.
 *
 * An object lives while a pin, a checkpoint or a row of the protocol (rows.h) names its root. There
 * are no reference counts: dp_object_collect and each start drop objects that nothing names.
 * Writing order (SAFETY R1): chunk rows commit in chunks.db before meta.db names them; dropping
 * goes in reverse. */
#ifndef DP_STORE_OBJECT_H
#define DP_STORE_OBJECT_H

#include "store/db.h"

enum {
    DP_STORE_BATCH_BYTES = 128 * 1024 * 1024, /* Most chunk bytes in one transaction (R10). */
    DP_STORE_BATCH_ROWS = 1024,               /* Most chunks in one transaction. */
};

typedef enum dp_pin_kind {
    DP_PIN_BLOB = 1, /* A peer's update. */
    DP_PIN_STATE,    /* A state that is being fetched or served. */
    DP_PIN_DATA,     /* Token shards, tokenizer. */
    DP_PIN_MANIFEST,
    DP_PIN_PENDING,  /* A publication that no row names yet. */
    DP_PIN_EXCHANGE, /* A pair exchange that no row names yet; a partner's update. */
    DP_PIN_LEASE,    /* A state that peers or an earlier process fetched (ckpt.h). */
    DP_PIN_WRITING,  /* An object that is being written or read in pieces (dp_object_writing). */
} dp_pin_kind;

/* A reason to keep an object. run: 32 bytes that name the run; zero: none. */
typedef struct dp_pin {
    dp_hash run;
    dp_pin_kind kind;
    uint64_t round;
} dp_pin;

typedef struct dp_object_info {
    uint64_t size; /* Bytes. */
    uint32_t n_chunks;
    uint32_t n_present; /* Chunks that are here, flushed or not. */
    bool complete;      /* dp_object_commit has succeeded. */
} dp_object_info;

/* Announces an object that will come in chunks, and pins it. leaves: dp_object_chunks(size) hashes.
 * DP_BADHASH: root does not follow from size and leaves. DP_TOOBIG: above DP_OBJECT_BYTES_MAX. A
 * known object is only pinned, so that an interrupted download continues. */
DP_MUST dp_status dp_object_begin(dp_store *store, const dp_hash *root, uint64_t size,
                                  const dp_hash *leaves, const dp_pin *pin);
/* Stores one chunk. DP_BADHASH: the bytes do not match the leaf; nothing was stored. DP_NOTFOUND:
 * no such object or index. DP_OK at once if the chunk exists. Durable after dp_object_flush or
 * dp_object_commit; a batch also flushes itself at DP_STORE_BATCH_BYTES. If a flush fails, the
 * chunks of the batch are missing again. */
DP_MUST dp_status dp_object_put_chunk(dp_store *store, const dp_hash *root, uint32_t index,
                                      dp_view chunk);
/* Makes all chunks put so far durable, of every object. DP_AGAIN, once: a write that failed in
 * between, of this or of another object, lost chunks; dp_object_missing tells which. */
DP_MUST dp_status dp_object_flush(dp_store *store);
/* Flush and mark the object complete. DP_AGAIN: chunks are missing. Repeating it is DP_OK. */
DP_MUST dp_status dp_object_commit(dp_store *store, const dp_hash *root);
/* A pin for one writer or reader of an object, which may begin and give up independently of others
 * of the same object: every call gives another pin, and opening the store removes those of an
 * earlier process. */
dp_pin dp_object_writing(dp_store *store, const dp_hash *run);
/* As dp_object_commit, and pin takes the place of writing in the same transaction. */
DP_MUST dp_status dp_object_commit_as(dp_store *store, const dp_hash *root, const dp_pin *writing,
                                      const dp_pin *pin);
/* bitmap: bit i (of byte i / 8, lowest first) set for each missing chunk; (n_chunks + 7) / 8 bytes,
 * at most bitmap_bytes, else DP_TOOBIG. n_missing may be NULL. DP_NOTFOUND. */
DP_MUST dp_status dp_object_missing(dp_store *store, const dp_hash *root, uint8_t *bitmap,
                                    size_t bitmap_bytes, uint32_t *n_missing);

/* Puts a whole object from memory: hashes, writes, commits and pins it. One transaction on each
 * file for up to DP_STORE_BATCH_BYTES. root may be NULL. */
DP_MUST dp_status dp_object_put(dp_store *store, dp_view bytes, const dp_pin *pin, dp_hash *root);

/* The same with leaves that the caller has computed from these bytes, on other threads for example.
 * They are trusted here; wrong ones show when the object is read. */
DP_MUST dp_status dp_object_put_hashed(dp_store *store, dp_view bytes, const dp_hash *leaves,
                                       const dp_pin *pin, dp_hash *root);

/* DP_NOTFOUND if never begun or dropped. */
DP_MUST dp_status dp_object_stat(dp_store *store, const dp_hash *root, dp_object_info *info);
/* The leaves, n_leaves == info.n_chunks of them, else DP_BADARG. */
DP_MUST dp_status dp_object_leaves(dp_store *store, const dp_hash *root, dp_hash *leaves,
                                   uint32_t n_leaves);
/* Reads one chunk into out (capacity bytes), *size = its size. Works on incomplete objects.
 * DP_NOTFOUND: object, index or chunk; DP_TOOBIG: capacity; DP_BADHASH: the bytes on disk do not
 * match the leaf; the chunk then counts as missing and can be put again. */
DP_MUST dp_status dp_object_read_chunk(dp_store *store, const dp_hash *root, uint32_t index,
                                       void *out, size_t capacity, size_t *size);
/* Reads the whole object into out, which holds size == info.size bytes, else DP_BADARG. DP_AGAIN:
 * not complete. */
DP_MUST dp_status dp_object_read(dp_store *store, const dp_hash *root, void *out, uint64_t size);
/* Reads and checks every chunk through a buffer of one chunk. DP_BADHASH, DP_AGAIN, DP_NOTFOUND. */
DP_MUST dp_status dp_object_verify(dp_store *store, const dp_hash *root);

/* Pins an object; a second equal pin changes nothing. DP_NOTFOUND: no such object. */
DP_MUST dp_status dp_object_pin(dp_store *store, const dp_hash *root, const dp_pin *pin);
/* DP_OK also if the pin is absent. */
DP_MUST dp_status dp_object_unpin(dp_store *store, const dp_hash *root, const dp_pin *pin);
/* Removes the pins of one kind in one run with round < before_round. */
DP_MUST dp_status dp_object_prune(dp_store *store, const dp_hash *run, dp_pin_kind kind,
                                  uint64_t before_round);
/* The objects with such a pin, at most max of them. */
DP_MUST dp_status dp_object_pins(dp_store *store, const dp_hash *run, dp_pin_kind kind,
                                 dp_hash *roots, uint32_t max, uint32_t *count);
/* Drops all objects that nothing names any more. *bytes: chunk bytes freed; bytes may be NULL. */
DP_MUST dp_status dp_object_collect(dp_store *store, uint64_t *bytes);

#endif
