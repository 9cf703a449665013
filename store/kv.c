/* Small values under text keys in meta.db, and the incarnation of a node, which is one of them. */
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
