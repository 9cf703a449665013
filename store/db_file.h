/* One SQLite file of a store: its header, its pragmas, its schema and the checks on opening. Does
 * not know the other file (db.c). Private to this folder. */
#ifndef DP_STORE_DB_FILE_H
#define DP_STORE_DB_FILE_H

#include "store/inside.h"

typedef struct dp_store_file {
    const char *name;
    const char *before;       /* pragmas that write nothing */
    const char *after;        /* pragmas that may write; run once the version is known */
    const char *const *steps; /* of the schema (schema.h) */
} dp_store_file;

extern const dp_store_file dp_store_meta_file;
extern const dp_store_file dp_store_chunks_file;

/* Reads the header before SQLite does, which may write while it recovers. DP_BADMSG: a database of
 * another program; DP_VERSION: written by a newer dpnode; DP_DENIED: it cannot be opened; each with
 * a sentence in why. DP_OK also where the file is absent, is no database, or has a damaged header:
 * dp_store_file_open tells. */
DP_MUST dp_status dp_store_file_peek(const dp_dir *dir, const char *name, dp_why *why);
/* Opens or creates the file, checks it and brings its schema up to date. *from: the version of its
 * schema before; 0: it was made now. On failure sql is closed. DP_CORRUPT: damaged; set it
 * aside. */
DP_MUST dp_status dp_store_file_open(dp_store *store, dp_sql *sql, const dp_store_file *file,
                                     uint32_t *from);
/* Renames a damaged file to moved, with its log and journal: SQLite would play one that stays into
 * the new file. */
DP_MUST dp_status dp_store_file_set_aside(dp_store *store, const dp_store_file *file,
                                          char moved[64]);
/* Size of a file; 0 if there is none. */
uint64_t dp_store_file_bytes(const dp_dir *dir, const char *name);

#endif
