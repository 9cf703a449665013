/* The store directory of one node: two SQLite files, a lock and a disk reserve, opened, checked and
 * written transaction by transaction. It does not know the meaning of the bytes.
 *
 *   lock       held with flock while the store is open; holds the pid as text
 *   meta.db    small rows: votes, chain, checkpoints, journal, index of objects (WAL,
 *              synchronous=FULL)
 *   chunks.db  the bytes of objects in chunks of at most 4 MiB (rollback journal, synchronous=FULL)
 *   KEY.row    copies of a few small rows of meta.db
 *   reserve.bin  ballast: released when the disk is full, so that meta.db can still be written and
 *                chunks.db can still delete
 *
 * Threads: none. All calls on one dp_store come from one thread (the store thread); every call
 * blocks until it is done. Durability: a function that writes returns DP_OK only after COMMIT and
 * fsync; dp_object_put_chunk alone is durable later (see object.h). Inside dp_store_atomically that
 * moment is the return of the outermost call. Errors of every writing function, beside its own:
 * DP_NOSPACE (disk or quota full; nothing was written, reading goes on, the same call may succeed
 * later), DP_NOMEM (nothing was written), DP_IO and DP_CORRUPT (the file is not used for writing
 * any more until the store is opened again, unless it was a read that failed: see
 * dp_store_failed). */
#ifndef DP_STORE_DB_H
#define DP_STORE_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/disk.h"

enum {
    DP_STORE_VERSION = 1,             /* user_version of both files. */
    DP_STORE_KEY_MAX = 64,            /* Characters in a kv key. */
    DP_STORE_VALUE_MAX = 1024 * 1024, /* Bytes in a kv value. */
};
#define DP_STORE_RESERVE_BYTES                                                                     \
    ((uint64_t)64 << 20) /* Default; enough for thousands of votes and records. */
#define DP_STORE_MARGIN_BYTES ((uint64_t)64 << 20)

typedef struct dp_store dp_store;

typedef struct dp_store_options {
    uint64_t reserve_bytes; /* Size of reserve.bin; 0: none. */
    uint64_t margin_bytes;  /* Free bytes that a big write must leave on the disk. */
    uint64_t max_bytes;     /* Quota for both files; 0: no quota. */
    uint64_t batch_bytes;   /* Most chunk bytes in one transaction; 0: DP_STORE_BATCH_BYTES. */
    const char *vfs;        /* Name of a SQLite VFS (tests: power cuts); NULL: the default one. */
} dp_store_options;

/* Findings of dp_store_open; all zero after a start without any. */
typedef struct dp_store_report {
    bool created; /* The directory held no store. */
    /* meta.db was unreadable or missing: votes, chain and checkpoints are gone. */
    bool meta_rebuilt;
    /* chunks.db was damaged or missing: chunks that could not be read are gone. */
    bool chunks_rebuilt;
    char moved_to[64];        /* new name of the damaged meta.db, or "" */
    uint32_t objects_dropped; /* objects that nothing referred to, or that were incomplete */
    uint32_t chunks_swept;    /* rows in chunks.db that no object wanted */
    uint32_t chunks_adopted;  /* rows of chunks.db from before a crash that an object wants */
    uint32_t chunks_damaged;  /* rows that did not match their hash while rebuilding */
    uint32_t ckpts_dropped;   /* checkpoints begun and never committed */
    uint32_t mode_was;        /* as dp_dir has them */
    uint32_t n_tightened;
} dp_store_report;

/* Ballast and margin of 64 MiB, no quota. */
dp_store_options dp_store_options_default(void);

/* Opens or creates the store in dir (made with mode 0700 if absent; its parent must exist). options
 * may be NULL (the defaults), report and why may be NULL. DP_BUSY: a living process holds it, why
 * names its pid. DP_VERSION: written by a newer program; the databases are untouched. DP_BADMSG:
 * the files are databases of another program. DP_IO, DP_NOSPACE, DP_NOMEM, DP_DENIED. On failure
 * *store is untouched and nothing stays locked. */
DP_MUST dp_status dp_store_open(dp_store **store, const char *dir, const dp_store_options *options,
                                dp_store_report *report, dp_why *why);
/* The quota for both files from now on; 0: no quota. Nothing is deleted that is above it, and
 * dp_store_give_back gives free pages back. */
void dp_store_limit(dp_store *store, uint64_t max_bytes);
/* Accepts NULL. Chunks put and not yet flushed are dropped. */
void dp_store_close(dp_store *store);

/* Runs body inside one transaction on meta.db: all of its writes become durable together, or none.
 * Calls nest; the outer body must return an inner failure. When the disk is full the disk reserve
 * is released and body runs a second time, so its effect must not depend on how often it ran.
 * Returns the status of body, or of COMMIT. */
typedef dp_status dp_store_body(dp_store *store, void *context);
DP_MUST dp_status dp_store_atomically(dp_store *store, dp_store_body *body, void *context);

/* Small values under text keys (at most DP_STORE_KEY_MAX characters). get appends to out.
 * DP_NOTFOUND, DP_TOOBIG. */
DP_MUST dp_status dp_store_get(dp_store *store, const char *key, dp_buf *out);
DP_MUST dp_status dp_store_put(dp_store *store, const char *key, dp_view value);
/* DP_OK also if the key is absent. */
DP_MUST dp_status dp_store_delete(dp_store *store, const char *key);

/* The same for what the owner of the node has ordered, with a copy in a file of the directory, so
 * that an order outlives a lost meta.db and a damaged row. get: DP_CORRUPT: neither can be read. */
DP_MUST dp_status dp_store_get_either(dp_store *store, const char *key, dp_buf *out);
DP_MUST dp_status dp_store_put_both(dp_store *store, const char *key, dp_view value);
DP_MUST dp_status dp_store_delete_both(dp_store *store, const char *key);

/* The next incarnation: larger than every one given before and than floor, durable before it is
 * returned. Pass unix seconds as floor, so that the number grows even if the last one is lost, with
 * meta.db or as a damaged row. */
DP_MUST dp_status dp_store_bump_incarnation(dp_store *store, uint64_t floor, uint64_t *incarnation);

/* Bytes in use in both files, without free pages. */
DP_MUST dp_status dp_store_bytes(dp_store *store, uint64_t *bytes);
/* DP_OK if an object of this size may be written beside those that were begun and are not whole yet
 * (SAFETY R6). First drops unreferenced objects,
 * then checkpoints down to one per run, before it returns DP_NOSPACE. dp_object_begin and
 * dp_object_put call it. */
DP_MUST dp_status dp_store_admit(dp_store *store, uint64_t bytes);
/* Why the last call gave DP_NOSPACE: "the disk is full: ..." or "the store is at its limit: ..." */
void dp_store_full_text(dp_store *store, char text[DP_DISK_TEXT_MAX]);
/* Deletes the chain, the checkpoints, the pins and the rows of one run in one transaction, but not
 * its vote key (vote.h). The next dp_object_collect, or start, drops the objects. Pins without a
 * run go too when no rows of another run and no vote key are left. */
DP_MUST dp_status dp_store_drop_run(dp_store *store, const dp_hash *run);
/* Gives at most 16 MiB of free pages of chunks.db back to the disk. *more: there are others. */
DP_MUST dp_status dp_store_shrink(dp_store *store, bool *more);
/* The same, but only while the disk reserve is missing or the files are above the quota. *more: go
 * on. */
DP_MUST dp_status dp_store_give_back(dp_store *store, bool *more);
/* True while reserve.bin has its full size. */
bool dp_store_reserve_held(const dp_store *store);
/* Allocates the disk reserve again once there is space for it and for the margin of big writes.
 * DP_NOSPACE: not yet. */
DP_MUST dp_status dp_store_refill_reserve(dp_store *store);
/* DP_OK, or the error (DP_IO of a write, DP_CORRUPT) that ended writing to one of the files. The
 * daemon should then exit and start again; never retry a failed fsync. A chunk that the disk cannot
 * read counts as damaged, and writing goes on. */
dp_status dp_store_failed(const dp_store *store);

#endif
