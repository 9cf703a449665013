#include "store/inside.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

dp_status dp_store_scratch(dp_store *store, uint8_t **scratch)
{
    if (store->scratch == NULL) {
        store->scratch = dp_alloc(1, DP_CHUNK_BYTES_MAX);
    }
    *scratch = store->scratch;
    return store->scratch != NULL ? DP_OK : DP_NOMEM;
}

static dp_status put_suspect(dp_store *store, void *context)
{
    (void)context;
    return dp_store_put(store, DP_STORE_SUSPECT_KEY, dp_view_text("1"));
}

dp_status dp_chunk_suspect(dp_store *store)
{
    return dp_store_atomically(store, put_suspect, NULL);
}

static dp_status suspect(dp_store *store, dp_status status)
{
    if (status == DP_NOSPACE) {
        store->quota_reached = false;
    }
    if (status == DP_CORRUPT && store->depth == 0) {
        DP_IGNORE(dp_chunk_suspect(store)); /* The caller hears of the damage anyway. */
    }
    return status;
}

dp_status dp_chunk_begin(dp_store *store)
{
    if (store->batch.open) {
        return DP_OK;
    }
    DP_TRY(suspect(store, dp_sql_begin(&store->chunks)));
    store->batch.open = true;
    return DP_OK;
}

void dp_chunk_done(dp_store *store)
{
    store->batch.n_rows = 0;
    store->batch.bytes = 0;
    store->batch.committed = false;
}

void dp_chunk_abandon(dp_store *store)
{
    if (store->batch.open) {
        dp_sql_rollback(&store->chunks);
        store->batch.open = false;
        store->batch.lost = store->batch.lost || store->batch.n_rows > 0;
        dp_chunk_done(store);
    }
}

dp_status dp_chunk_commit(dp_store *store)
{
    if (!store->batch.open) {
        return DP_OK;
    }
    const dp_status status = suspect(store, dp_sql_commit(&store->chunks));
    store->batch.open = false;
    if (status != DP_OK) {
        store->batch.lost = store->batch.lost || store->batch.n_rows > 0;
        dp_chunk_done(store);
        return status;
    }
    store->batch.committed = true;
    return DP_OK;
}

dp_status dp_chunk_index(dp_store *store)
{
    static const char sql[] = "INSERT OR REPLACE INTO chunk_ix(hash,chunk_id,size) VALUES(?,?,?)";
    for (uint32_t i = 0; i < store->batch.n_rows; i++) {
        dp_query query = dp_query_of(&store->meta, sql);
        dp_bind_hash(&query, &store->batch.rows[i].hash);
        dp_bind_i64(&query, store->batch.rows[i].id);
        dp_bind_u64(&query, store->batch.rows[i].size);
        DP_TRY(dp_query_run(&query));
    }
    return DP_OK;
}

static dp_status index_body(dp_store *store, void *context)
{
    (void)context;
    return dp_chunk_index(store);
}

dp_status dp_chunk_flush(dp_store *store)
{
    DP_TRY(dp_chunk_commit(store));
    if (store->batch.n_rows > 0) {
        DP_TRY(dp_store_atomically(store, index_body, NULL));
    }
    dp_chunk_done(store);
    return DP_OK;
}

dp_status dp_chunk_find(dp_store *store, const dp_hash *hash, int64_t *id, uint32_t *size)
{
    static const char sql[] = "SELECT chunk_id,size FROM chunk_ix WHERE hash=?";
    for (uint32_t i = 0; i < store->batch.n_rows; i++) {
        if (dp_hash_equal(&store->batch.rows[i].hash, hash)) {
            if (id != NULL) {
                *id = store->batch.rows[i].id;
            }
            if (size != NULL) {
                *size = store->batch.rows[i].size;
            }
            return DP_OK;
        }
    }
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, hash);
    DP_TRY(dp_query_next(&query));
    if (id != NULL) {
        *id = dp_column_i64(&query, 0);
    }
    if (size != NULL) {
        *size = (uint32_t)dp_column_u64(&query, 1);
    }
    dp_query_end(&query);
    return DP_OK;
}

static dp_status insert_row(dp_store *store, const dp_hash *hash, dp_view bytes)
{
    static const char sql[] = "INSERT INTO chunk(hash,size,data) VALUES(?,?,?)";
    dp_query query = dp_query_of(&store->chunks, sql);
    dp_bind_hash(&query, hash);
    dp_bind_u64(&query, bytes.size);
    /* Bound by hand: a checksum of the whole chunk, which dp_bind_view would add, is not wanted
     * here. */
    if (query.status == DP_OK) {
        query.status =
            dp_sql_status(&store->chunks, sqlite3_bind_blob64(query.stmt, 3, bytes.data, bytes.size,
                                                              SQLITE_STATIC));
    }
    return dp_query_run(&query);
}

dp_status dp_chunk_add(dp_store *store, const dp_hash *hash, dp_view bytes)
{
    dp_assert(bytes.size > 0 && bytes.size <= DP_CHUNK_BYTES_MAX);
    const dp_status found = dp_chunk_find(store, hash, NULL, NULL);
    if (found != DP_NOTFOUND) {
        return found;
    }
    if (store->batch.committed || store->batch.n_rows == DP_STORE_BATCH_ROWS ||
        store->batch.bytes + bytes.size > store->options.batch_bytes) {
        DP_TRY(dp_chunk_flush(store));
    }
    DP_TRY(dp_chunk_begin(store));
    const dp_status status = insert_row(store, hash, bytes);
    if (status != DP_OK) {
        dp_chunk_abandon(store);
        return suspect(store, status);
    }
    const uint32_t i = store->batch.n_rows++;
    store->batch.rows[i].hash = *hash;
    store->batch.rows[i].id = sqlite3_last_insert_rowid(store->chunks.db);
    store->batch.rows[i].size = (uint32_t)bytes.size;
    store->batch.bytes += bytes.size;
    return DP_OK;
}

/* The disk cannot read a row, which is then as good as damaged. SQLite may have rolled back the
 * transaction of the batch. */
static dp_status unread(dp_store *store)
{
    if (store->batch.open && sqlite3_get_autocommit(store->chunks.db) != 0) {
        dp_chunk_abandon(store);
    }
    return DP_BADHASH;
}

dp_status dp_chunk_read_row(dp_store *store, int64_t id, void *out, size_t capacity, size_t *size)
{
    sqlite3_blob *blob = NULL;
    const int opened = sqlite3_blob_open(store->chunks.db, "main", "chunk", "data", id, 0, &blob);
    if (opened != SQLITE_OK) {
        sqlite3_blob_close(blob);
        if (dp_sql_unread(opened)) {
            return unread(store);
        }
        return (opened & 0xff) == SQLITE_ERROR
                   ? DP_NOTFOUND
                   : suspect(store, dp_sql_status(&store->chunks, opened));
    }
    const int bytes = sqlite3_blob_bytes(blob);
    const bool fits = bytes >= 0 && (size_t)bytes <= capacity;
    const int read = fits ? sqlite3_blob_read(blob, out, bytes, 0) : SQLITE_TOOBIG;
    sqlite3_blob_close(blob);
    if (dp_sql_unread(read)) {
        return unread(store);
    }
    const dp_status status = dp_sql_status(&store->chunks, read);
    if (status == DP_OK) {
        *size = (size_t)bytes;
    }
    return suspect(store, status);
}

static dp_status forget_body(dp_store *store, void *context)
{
    static const char drop_sql[] = "DELETE FROM chunk_ix WHERE hash=?";
    static const char mark_sql[] =
        "UPDATE object SET complete=0 WHERE id IN (SELECT object_id FROM part WHERE hash=?)";
    dp_query drop = dp_query_of(&store->meta, drop_sql);
    dp_bind_hash(&drop, (const dp_hash *)context);
    DP_TRY(dp_query_run(&drop));
    dp_query mark = dp_query_of(&store->meta, mark_sql);
    dp_bind_hash(&mark, (const dp_hash *)context);
    return dp_query_run(&mark);
}

/* A chunk whose bytes are wrong counts as missing from now on. If the disk does not take that note,
 * the next reader finds out again. */
static void forget(dp_store *store, const dp_hash *hash, int64_t id)
{
    dp_hash copy = *hash;
    if (dp_store_atomically(store, forget_body, &copy) == DP_OK && store->depth == 0 &&
        dp_chunk_delete(store, &id, 1) != DP_OK) {
        store->orphans = true;
    }
}

dp_status dp_chunk_read(dp_store *store, const dp_hash *hash, void *out, size_t capacity,
                        size_t *size)
{
    int64_t id = 0;
    uint32_t want = 0;
    DP_TRY(dp_chunk_find(store, hash, &id, &want));
    if (want > capacity) {
        return DP_TOOBIG;
    }
    size_t got = 0;
    dp_status status = dp_chunk_read_row(store, id, out, capacity, &got);
    if (status == DP_OK || status == DP_TOOBIG) {
        const bool right = status == DP_OK && got == want;
        const dp_hash leaf = right ? dp_chunk_leaf(dp_view_of(out, got)) : (dp_hash){0};
        status = right && dp_hash_equal(&leaf, hash) ? DP_OK : DP_BADHASH;
    }
    if (status == DP_OK) {
        *size = got;
    } else if (status == DP_BADHASH || status == DP_NOTFOUND) {
        forget(store, hash, id);
    }
    return status;
}

static dp_status delete_rows(dp_store *store, const int64_t *ids, uint32_t count)
{
    static const char sql[] = "DELETE FROM chunk WHERE id=?";
    DP_TRY(dp_chunk_flush(store));
    DP_TRY(dp_chunk_begin(store));
    for (uint32_t i = 0; i < count; i++) {
        dp_query query = dp_query_of(&store->chunks, sql);
        dp_bind_i64(&query, ids[i]);
        const dp_status status = dp_query_run(&query);
        if (status != DP_OK) {
            dp_chunk_abandon(store);
            return suspect(store, status);
        }
    }
    DP_TRY(dp_chunk_commit(store));
    dp_chunk_done(store);
    return DP_OK;
}

/* A read has failed: of a failed write the store would know. */
static bool is_unread(const dp_store *store, dp_status status)
{
    return status == DP_IO && dp_store_failed(store) == DP_OK;
}

/* To delete a row SQLite reads the list of its pages. One that it cannot read stays, and with it a
 * bad place of the disk; without that no start would succeed. */
dp_status dp_chunk_delete(dp_store *store, const int64_t *ids, uint32_t count)
{
    const dp_status all = count > 0 ? delete_rows(store, ids, count) : DP_OK;
    if (!is_unread(store, all)) {
        return all;
    }
    for (uint32_t i = 0; i < count; i++) {
        const dp_status one = delete_rows(store, ids + i, 1);
        if (one != DP_OK && !is_unread(store, one)) {
            return one;
        }
    }
    return DP_OK;
}
