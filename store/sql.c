#include "store/sql.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "store/schema.h"

static const char check_domain[] = "dpnode/store-row/1";

/* SQLite gives CORRUPTFS for EIO, which is also how file systems with checksums report a wrong
 * one. */
bool dp_sql_unread(int code)
{
    return code == SQLITE_IOERR_READ || code == SQLITE_IOERR_SHORT_READ ||
           code == SQLITE_IOERR_CORRUPTFS;
}

dp_status dp_sql_status(dp_sql *sql, int code)
{
    const int primary = code & 0xff;
    if (primary == SQLITE_OK || primary == SQLITE_ROW || primary == SQLITE_DONE) {
        return DP_OK;
    }
    const int cause = sql->db != NULL ? sqlite3_system_errno(sql->db) : 0;
    const bool no_room = cause == ENOSPC || cause == EDQUOT;
    if (primary == SQLITE_NOMEM || code == SQLITE_IOERR_NOMEM) {
        return DP_NOMEM;
    }
    if (primary == SQLITE_FULL ||
        ((primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) && no_room)) {
        sql->full = true;
        return DP_NOSPACE;
    }
    if (primary == SQLITE_IOERR) {
        sql->failed = dp_sql_unread(code) ? sql->failed : DP_IO;
        return DP_IO;
    }
    if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_CONSTRAINT) {
        sql->failed =
            DP_CORRUPT; /* A constraint of ours breaks only when rows contradict each other. */
        return DP_CORRUPT;
    }
    switch (primary) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return DP_BUSY;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return DP_DENIED;
    case SQLITE_TOOBIG:
        return DP_TOOBIG;
    case SQLITE_ERROR: /* A table is missing: the schema is not ours. */
        return DP_CORRUPT;
    default:
        return DP_IO;
    }
}

dp_status dp_sql_open(dp_sql *sql, const char *path, const char *vfs)
{
    *sql = (dp_sql){0};
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const int code = sqlite3_open_v2(path, &sql->db, flags, vfs);
    if (code != SQLITE_OK) {
        const dp_status status = dp_sql_status(sql, code);
        dp_sql_close(sql);
        return status;
    }
    sqlite3_extended_result_codes(sql->db, 1);
    sqlite3_db_config(sql->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_db_config(sql->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return DP_OK;
}

void dp_sql_trust(dp_sql *sql)
{
    sqlite3_db_config(sql->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
}

void dp_sql_tolerate(dp_sql *sql)
{
    /* With a writable schema SQLite reads a file that is shorter than its header says, as far as it
     * goes. */
    sqlite3_db_config(sql->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    sqlite3_db_config(sql->db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, NULL);
}

void dp_sql_close(dp_sql *sql)
{
    for (uint32_t i = 0; i < sql->n_cached; i++) {
        sqlite3_finalize(sql->cache[i].stmt);
    }
    sqlite3_close(sql->db);
    *sql = (dp_sql){0};
}

dp_status dp_sql_exec(dp_sql *sql, const char *text)
{
    return dp_sql_status(sql, sqlite3_exec(sql->db, text, NULL, NULL, NULL));
}

dp_status dp_sql_number(dp_sql *sql, const char *text, int64_t *value)
{
    sqlite3_stmt *stmt = NULL;
    DP_TRY(dp_sql_status(sql, sqlite3_prepare_v2(sql->db, text, -1, &stmt, NULL)));
    const int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW) {
        *value = sqlite3_column_int64(stmt, 0);
    }
    const dp_status status = code == SQLITE_DONE ? DP_NOTFOUND : dp_sql_status(sql, code);
    sqlite3_finalize(stmt);
    return status;
}

static dp_status cached(dp_sql *sql, const char *text, sqlite3_stmt **stmt);
static const char rollback_sql[] = "ROLLBACK";

dp_status dp_sql_begin(dp_sql *sql)
{
    sqlite3_stmt *rollback = NULL;
    if (sql->failed != DP_OK) {
        return sql->failed;
    }
    sql->full = false;
    DP_TRY(cached(sql, rollback_sql, &rollback)); /* When it is wanted, memory may be gone. */
    dp_assert(sqlite3_get_autocommit(sql->db));
    return dp_sql_exec(sql, "BEGIN IMMEDIATE");
}

dp_status dp_sql_commit(dp_sql *sql)
{
    const dp_status status = dp_sql_exec(sql, "COMMIT");
    if (status != DP_OK) {
        dp_sql_rollback(sql);
    }
    return status;
}

void dp_sql_rollback(dp_sql *sql)
{
    sqlite3_stmt *rollback = NULL;
    /* After some errors SQLite has rolled back already; ROLLBACK would then be an error of its
     * own. */
    if (!sqlite3_get_autocommit(sql->db) && cached(sql, rollback_sql, &rollback) == DP_OK) {
        sqlite3_step(rollback);
        sqlite3_reset(rollback); /* The error that led here is the one to report. */
    }
}

static dp_status migrate_step(dp_sql *sql, const char *step, uint32_t version)
{
    char tail[96];
    snprintf(tail, sizeof tail, "PRAGMA application_id=%d; PRAGMA user_version=%u;",
             DP_SCHEMA_APPLICATION_ID, (unsigned)version);
    DP_TRY(dp_sql_begin(sql));
    dp_status status = dp_sql_exec(sql, step);
    if (status == DP_OK) {
        status = dp_sql_exec(sql, tail);
    }
    if (status != DP_OK) {
        dp_sql_rollback(sql);
        return status;
    }
    return dp_sql_commit(sql);
}

dp_status dp_sql_migrate(dp_sql *sql, const char *const *steps, uint32_t count, uint32_t *from)
{
    int64_t version = 0;
    int64_t application = 0;
    int64_t tables = 0;
    DP_TRY(dp_sql_number(sql, "PRAGMA user_version", &version));
    DP_TRY(dp_sql_number(sql, "PRAGMA application_id", &application));
    DP_TRY(dp_sql_number(sql, "SELECT count(*) FROM sqlite_schema", &tables));
    if (tables > 0 && application != DP_SCHEMA_APPLICATION_ID) {
        return DP_BADMSG;
    }
    if (version < 0 || version > (int64_t)count) {
        return DP_VERSION;
    }
    for (uint32_t v = (uint32_t)version; v < count; v++) {
        DP_TRY(migrate_step(sql, steps[v], v + 1));
    }
    *from = (uint32_t)version;
    return DP_OK;
}

/* ---- Queries. */

static void digest_value(dp_digest *digest, int type, dp_view bytes)
{
    dp_digest_add_u64(digest, (uint64_t)type);
    dp_digest_add_u64(digest, bytes.size);
    dp_digest_add(digest, bytes);
}

static void digest_number(dp_digest *digest, int64_t value)
{
    dp_digest_add_u64(digest, SQLITE_INTEGER);
    dp_digest_add_u64(digest, (uint64_t)value);
}

static dp_status cached(dp_sql *sql, const char *text, sqlite3_stmt **stmt)
{
    for (uint32_t i = 0; i < sql->n_cached; i++) {
        if (sql->cache[i].text == text) {
            *stmt = sql->cache[i].stmt;
            return DP_OK;
        }
    }
    dp_assert(sql->n_cached < DP_SQL_STATEMENTS_MAX);
    DP_TRY(dp_sql_status(
        sql, sqlite3_prepare_v3(sql->db, text, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL)));
    sql->cache[sql->n_cached].text = text;
    sql->cache[sql->n_cached].stmt = *stmt;
    sql->n_cached++;
    return DP_OK;
}

dp_query dp_query_of(dp_sql *sql, const char *text)
{
    dp_query query = {.sql = sql};
    query.status = cached(sql, text, &query.stmt);
    dp_digest_init(&query.check, check_domain);
    dp_assert(query.stmt == NULL || !sqlite3_stmt_busy(query.stmt));
    return query;
}

static void bound(dp_query *query, int code)
{
    if (code != SQLITE_OK) {
        query->status = dp_sql_status(query->sql, code);
    }
}

void dp_bind_i64(dp_query *query, int64_t value)
{
    query->n_bound++;
    if (query->status == DP_OK) {
        bound(query, sqlite3_bind_int64(query->stmt, query->n_bound, value));
        digest_number(&query->check, value);
    }
}

void dp_bind_u64(dp_query *query, uint64_t value)
{
    if (query->status == DP_OK && value > INT64_MAX) {
        query->status = DP_TOOBIG;
    }
    dp_bind_i64(query, (int64_t)value);
}

void dp_bind_view(dp_query *query, dp_view bytes)
{
    query->n_bound++;
    if (query->status == DP_OK) {
        /* A NULL pointer would bind NULL, not an empty blob. */
        const void *data = bytes.size > 0 ? (const void *)bytes.data : "";
        bound(query,
              sqlite3_bind_blob64(query->stmt, query->n_bound, data, bytes.size, SQLITE_STATIC));
        digest_value(&query->check, SQLITE_BLOB, bytes);
    }
}

void dp_bind_hash(dp_query *query, const dp_hash *hash)
{
    dp_bind_view(query, dp_view_of(hash->bytes, sizeof hash->bytes));
}

void dp_bind_text(dp_query *query, const char *text)
{
    query->n_bound++;
    if (query->status == DP_OK) {
        bound(query, sqlite3_bind_text(query->stmt, query->n_bound, text, -1, SQLITE_STATIC));
        digest_value(&query->check, SQLITE_TEXT, dp_view_text(text));
    }
}

void dp_bind_check(dp_query *query)
{
    dp_digest copy = query->check;
    const dp_hash sum = dp_digest_end(&copy);
    query->n_bound++;
    if (query->status == DP_OK) {
        bound(query, sqlite3_bind_blob(query->stmt, query->n_bound, sum.bytes, sizeof sum.bytes,
                                       SQLITE_TRANSIENT));
    }
}

void dp_query_end(dp_query *query)
{
    if (query->stmt != NULL) {
        sqlite3_reset(query->stmt);
        sqlite3_clear_bindings(query->stmt);
    }
}

dp_status dp_query_next(dp_query *query)
{
    dp_status status = query->status;
    if (status == DP_OK) {
        const int code = sqlite3_step(query->stmt);
        if (code == SQLITE_ROW) {
            return DP_OK;
        }
        status = code == SQLITE_DONE ? DP_NOTFOUND : dp_sql_status(query->sql, code);
    }
    dp_query_end(query);
    query->status = status;
    return status;
}

dp_status dp_query_run(dp_query *query)
{
    const dp_status status = dp_query_next(query);
    dp_assert(status != DP_OK); /* A statement that gives rows was run as one that does not. */
    return status == DP_NOTFOUND ? DP_OK : status;
}

uint64_t dp_column_u64(const dp_query *query, int column)
{
    return (uint64_t)sqlite3_column_int64(query->stmt, column);
}

int64_t dp_column_i64(const dp_query *query, int column)
{
    return sqlite3_column_int64(query->stmt, column);
}

dp_view dp_column_view(const dp_query *query, int column)
{
    const void *data = sqlite3_column_blob(query->stmt, column);
    const int size = sqlite3_column_bytes(query->stmt, column);
    return dp_view_of(data, data != NULL && size > 0 ? (size_t)size : 0);
}

void dp_column_bytes(const dp_query *query, int column, void *out, size_t size)
{
    const dp_view bytes = dp_column_view(query, column);
    memset(out, 0, size);
    if (bytes.size == size && size > 0) {
        memcpy(out, bytes.data, size);
    }
}

dp_hash dp_column_hash(const dp_query *query, int column)
{
    dp_hash hash;
    dp_column_bytes(query, column, hash.bytes, sizeof hash.bytes);
    return hash;
}

void dp_column_text(const dp_query *query, int column, char *out, size_t out_size)
{
    dp_assert(out_size > 0);
    const dp_view text = dp_column_view(query, column);
    const size_t size = text.size < out_size ? text.size : out_size - 1;
    if (size > 0) {
        memcpy(out, text.data, size);
    }
    out[size] = '\0';
}

dp_status dp_column_check(const dp_query *query, int first, int last)
{
    dp_digest digest;
    dp_digest_init(&digest, check_domain);
    for (int i = first; i <= last; i++) {
        const int type = sqlite3_column_type(query->stmt, i);
        if (type == SQLITE_INTEGER) {
            digest_number(&digest, sqlite3_column_int64(query->stmt, i));
        } else {
            digest_value(&digest, type, dp_column_view(query, i));
        }
    }
    const dp_hash sum = dp_digest_end(&digest);
    const dp_hash saved = dp_column_hash(query, last + 1);
    return dp_hash_equal(&sum, &saved) ? DP_OK : DP_CORRUPT;
}
