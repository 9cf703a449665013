/* Small values under text keys in meta.db, some with a copy in a file, and the incarnation of a
 * node, which is one of them.
 *
 * The file KEY.row: 32 checksum of the value | value. */
#include <stdio.h>
#include <string.h>

#include "store/inside.h"

dp_status dp_store_get(dp_store *store, const char *key, dp_buf *out)
{
    static const char sql[] = "SELECT key,val,chk FROM kv WHERE key=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_text(&query, key);
    DP_TRY(dp_query_next(&query));
    dp_status status = dp_column_check(&query, 0, 1);
    if (status == DP_OK) {
        status = dp_buf_append(out, dp_column_view(&query, 1));
    }
    dp_query_end(&query);
    return status;
}

struct put {
    const char *key;
    dp_view value;
};

static dp_status put_body(dp_store *store, void *context)
{
    static const char sql[] = "INSERT OR REPLACE INTO kv(key,val,chk) VALUES(?,?,?)";
    const struct put *put = (const struct put *)context;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_text(&query, put->key);
    dp_bind_view(&query, put->value);
    dp_bind_check(&query);
    return dp_query_run(&query);
}

dp_status dp_store_put(dp_store *store, const char *key, dp_view value)
{
    if (strlen(key) > DP_STORE_KEY_MAX || value.size > DP_STORE_VALUE_MAX) {
        return DP_TOOBIG;
    }
    struct put put = {.key = key, .value = value};
    return dp_store_atomically(store, put_body, &put);
}

static dp_status delete_body(dp_store *store, void *context)
{
    static const char sql[] = "DELETE FROM kv WHERE key=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_text(&query, ((const struct put *)context)->key);
    return dp_query_run(&query);
}

dp_status dp_store_delete(dp_store *store, const char *key)
{
    struct put put = {.key = key};
    return dp_store_atomically(store, delete_body, &put);
}

/* ---- Values with a copy. */

enum { COPY_NAME_MAX = DP_STORE_KEY_MAX + 8 };

static const char copy_domain[] = "dpnode/store-copy/1";

static void copy_name(const char *key, char name[COPY_NAME_MAX])
{
    snprintf(name, COPY_NAME_MAX, "%s.row", key);
}

static dp_status write_copy(const dp_store *store, const char *key, dp_view value)
{
    const dp_hash sum = dp_hash_of(copy_domain, value);
    char name[COPY_NAME_MAX];
    dp_buf bytes;
    copy_name(key, name);
    dp_buf_init(&bytes, sizeof sum + DP_STORE_VALUE_MAX);
    dp_status status = dp_buf_append(&bytes, dp_view_of(sum.bytes, sizeof sum.bytes));
    status = status == DP_OK ? dp_buf_append(&bytes, value) : status;
    status =
        status == DP_OK ? dp_dir_write_secret(store->dir.path, name, dp_buf_view(&bytes)) : status;
    dp_buf_close(&bytes);
    return status;
}

static dp_status delete_copy(const dp_store *store, const char *key)
{
    char name[COPY_NAME_MAX];
    copy_name(key, name);
    return dp_dir_delete_secret(store->dir.path, name);
}

/* DP_NOTFOUND: there is none. DP_CORRUPT: there is one, and it cannot be read. */
static dp_status read_copy(const dp_store *store, const char *key, dp_buf *out)
{
    char name[COPY_NAME_MAX];
    dp_buf bytes;
    copy_name(key, name);
    dp_buf_init(&bytes, sizeof(dp_hash) + DP_STORE_VALUE_MAX);
    dp_status status = dp_dir_read_secret(store->dir.path, name, &bytes, NULL);
    if (status == DP_OK && bytes.size >= sizeof(dp_hash)) {
        const dp_view value =
            dp_view_of(bytes.data + sizeof(dp_hash), bytes.size - sizeof(dp_hash));
        const dp_hash sum = dp_hash_of(copy_domain, value);
        status = memcmp(sum.bytes, bytes.data, sizeof sum.bytes) == 0 ? dp_buf_append(out, value)
                                                                      : DP_CORRUPT;
    } else if (status != DP_NOTFOUND && status != DP_NOMEM) {
        status = DP_CORRUPT;
    }
    dp_buf_close(&bytes);
    return status;
}

dp_status dp_store_get_either(dp_store *store, const char *key, dp_buf *out)
{
    const dp_status row = dp_store_get(store, key, out);
    if (row != DP_NOTFOUND && row != DP_CORRUPT) {
        return row;
    }
    const dp_status copy = read_copy(store, key, out);
    return copy == DP_NOTFOUND ? row : copy;
}

dp_status dp_store_put_both(dp_store *store, const char *key, dp_view value)
{
    if (strlen(key) > DP_STORE_KEY_MAX || value.size > DP_STORE_VALUE_MAX) {
        return DP_TOOBIG;
    }
    if (write_copy(store, key, value) != DP_OK) {
        /* On a full disk the reserve lets the row be written. An old copy would contradict it. */
        DP_TRY(delete_copy(store, key));
    }
    return dp_store_put(store, key, value);
}

dp_status dp_store_delete_both(dp_store *store, const char *key)
{
    DP_TRY(delete_copy(store, key));
    return dp_store_delete(store, key);
}

/* ---- The incarnation. */

struct bump {
    uint64_t floor;
    uint64_t given;
};

static dp_status bump_body(dp_store *store, void *context)
{
    static const char key[] = "store/incarnation";
    struct bump *bump = (struct bump *)context;
    uint8_t bytes[8];
    dp_buf saved;
    dp_buf_init(&saved, sizeof bytes);
    dp_status status = dp_store_get(store, key, &saved);
    uint64_t last = bump->floor;
    if (status == DP_OK) { /* One that is damaged counts as absent: floor stands in for it. */
        dp_reader reader = dp_reader_of(dp_buf_view(&saved));
        const uint64_t before = dp_read_u64(&reader);
        last = before > last ? before : last;
    }
    dp_buf_close(&saved);
    if (status != DP_OK && status != DP_NOTFOUND && status != DP_CORRUPT) {
        return status;
    }
    if (last == UINT64_MAX) {
        return DP_TOOBIG;
    }
    bump->given = last + 1;
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_write_u64(&writer, bump->given);
    return dp_store_put(store, key, dp_view_of(bytes, sizeof bytes));
}

dp_status dp_store_bump_incarnation(dp_store *store, uint64_t floor, uint64_t *incarnation)
{
    struct bump bump = {.floor = floor};
    DP_TRY(dp_store_atomically(store, bump_body, &bump));
    *incarnation = bump.given;
    return DP_OK;
}
