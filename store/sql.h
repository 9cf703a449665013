/* A thin layer over SQLite for this folder: one connection, cached statements, typed binding, and
 * SQLite's codes as dp_status. Nothing outside store/ includes it. */
#ifndef DP_STORE_SQL_H
#define DP_STORE_SQL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"

enum { DP_SQL_STATEMENTS_MAX = 128 };

typedef struct dp_sql {
    sqlite3 *db;
    struct {
        const char *text; /* Compared by address: always the same static string. */
        sqlite3_stmt *stmt;
    } cache[DP_SQL_STATEMENTS_MAX];
    uint32_t n_cached;
    dp_status failed; /* SAFETY R5: DP_IO of a write, or DP_CORRUPT, once seen; no more writing. */
    bool full;        /* The last error was a full disk in this file. */
} dp_sql;

/* Opens without reading. A write-ahead log keeps its contents at close, until dp_sql_trust. */
DP_MUST dp_status dp_sql_open(dp_sql *sql, const char *path, const char *vfs);
void dp_sql_trust(dp_sql *sql);
/* For salvage: lets SQLite read a file that is shorter than its header says. */
void dp_sql_tolerate(dp_sql *sql);
void dp_sql_close(
    dp_sql *sql); /* Accepts a zeroed or closed one; an open transaction is rolled back. */
/* SQLite's code as a status; DP_IO, unless it is of a read, and DP_CORRUPT are remembered in
 * failed. */
dp_status dp_sql_status(dp_sql *sql, int code);
/* True if the disk did not give bytes that were asked for. No write is in doubt then. */
bool dp_sql_unread(int code);
/* Runs several statements without results. */
DP_MUST dp_status dp_sql_exec(dp_sql *sql, const char *text);
/* Reads the first column of the first row. DP_NOTFOUND: no row. */
DP_MUST dp_status dp_sql_number(dp_sql *sql, const char *text, int64_t *value);
/* Runs steps[user_version] .. steps[count - 1], each with its new user_version in one transaction.
 * *from: the version found. DP_VERSION: newer than count; DP_BADMSG: tables of another program; in
 * both cases nothing is written. */
DP_MUST dp_status dp_sql_migrate(dp_sql *sql, const char *const *steps, uint32_t count,
                                 uint32_t *from);
DP_MUST dp_status dp_sql_begin(dp_sql *sql);
/* Commits; rolls back if COMMIT fails. */
DP_MUST dp_status dp_sql_commit(dp_sql *sql);
void dp_sql_rollback(dp_sql *sql);

/* One statement that is bound and stepped. The first error sticks, and every later call returns it.
 * Values are bound in order. A checksum over all values bound so far can be bound, or one over
 * values read compared. */
typedef struct dp_query {
    dp_sql *sql;
    sqlite3_stmt *stmt;
    dp_status status;
    int n_bound;
    dp_digest check;
} dp_query;

dp_query dp_query_of(dp_sql *sql, const char *text);
void dp_bind_u64(dp_query *query,
                 uint64_t value); /* Above INT64_MAX: DP_TOOBIG, since it could not be ordered. */
void dp_bind_i64(dp_query *query, int64_t value);
void dp_bind_hash(dp_query *query, const dp_hash *hash);
void dp_bind_view(dp_query *query, dp_view bytes); /* The bytes must live until the query ends. */
void dp_bind_text(dp_query *query, const char *text); /* Likewise. */
void dp_bind_check(dp_query *query);
/* Runs to the end; the statement must return no rows. */
DP_MUST dp_status dp_query_run(dp_query *query);
/* Steps to the next row. DP_OK: a row can be read. DP_NOTFOUND: no more. After any status but DP_OK
 * the query has ended. */
DP_MUST dp_status dp_query_next(dp_query *query);
/* Ends a query before its last row; harmless otherwise. */
void dp_query_end(dp_query *query);

uint64_t dp_column_u64(const dp_query *query, int column);
int64_t dp_column_i64(const dp_query *query, int column);
dp_view dp_column_view(const dp_query *query, int column); /* Lives until the next step. */
/* Zeros unless the column is a blob of exactly size bytes. */
void dp_column_bytes(const dp_query *query, int column, void *out, size_t size);
dp_hash dp_column_hash(const dp_query *query, int column);
void dp_column_text(const dp_query *query, int column, char *out,
                    size_t out_size); /* Cut to fit. */
/* Checks columns first .. last against the checksum in column last + 1. DP_CORRUPT. */
DP_MUST dp_status dp_column_check(const dp_query *query, int first, int last);

#endif
