#include "store/rows.h"

#include <string.h>

#include "store/inside.h"

#define COLUMNS "run,name,keep0,keep1,keep2,bytes,chk"

static dp_status read_row(const dp_query *query, dp_store_row *row)
{
    DP_TRY(dp_column_check(query, 0, 5));
    dp_column_text(query, 1, row->name, sizeof row->name);
    for (int i = 0; i < DP_ROW_KEEPS; i++) {
        row->keep[i] = dp_column_hash(query, 2 + i);
    }
    row->bytes = dp_column_view(query, 5);
    return DP_OK;
}

/* The roots that the row of that name keeps now, zero where there is none. A damaged row keeps
 * nothing to rely on. */
static dp_status read_kept(dp_store *store, const dp_hash *run, const char *name,
                           dp_hash keep[DP_ROW_KEEPS])
{
    static const char sql[] = "SELECT " COLUMNS " FROM row WHERE run=? AND name=?";
    dp_store_row row;
    memset(keep, 0, DP_ROW_KEEPS * sizeof *keep);
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_text(&query, name);
    const dp_status status = dp_query_next(&query);
    if (status == DP_OK && read_row(&query, &row) == DP_OK) {
        memcpy(keep, row.keep, sizeof row.keep);
    }
    dp_query_end(&query);
    return status == DP_NOTFOUND ? DP_OK : status;
}

static dp_status require_new(dp_store *store, const dp_store_row *row,
                             const dp_hash before[DP_ROW_KEEPS])
{
    for (uint32_t i = 0; i < DP_ROW_KEEPS; i++) {
        bool kept = false;
        for (uint32_t k = 0; k < DP_ROW_KEEPS; k++) {
            kept = kept || dp_hash_equal(&row->keep[i], &before[k]);
        }
        if (!kept) {
            DP_TRY(dp_object_require(store, &row->keep[i]));
        }
    }
    return DP_OK;
}

static dp_status check_count(dp_store *store, const dp_hash *run)
{
    static const char sql[] = "SELECT count(*) FROM row WHERE run=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    DP_TRY(dp_query_next(&query));
    const uint64_t count = dp_column_u64(&query, 0);
    dp_query_end(&query);
    return count > DP_ROWS_MAX ? DP_TOOBIG : DP_OK;
}

struct put {
    const dp_hash *run;
    const dp_store_row *row;
};

static dp_status put_body(dp_store *store, void *context)
{
    static const char sql[] = "INSERT OR REPLACE INTO row(" COLUMNS ") VALUES(?,?,?,?,?,?,?)";
    const struct put *put = (const struct put *)context;
    dp_hash before[DP_ROW_KEEPS];
    DP_TRY(read_kept(store, put->run, put->row->name, before));
    DP_TRY(require_new(store, put->row, before));
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, put->run);
    dp_bind_text(&query, put->row->name);
    for (uint32_t i = 0; i < DP_ROW_KEEPS; i++) {
        dp_bind_hash(&query, &put->row->keep[i]);
    }
    dp_bind_view(&query, put->row->bytes);
    dp_bind_check(&query);
    DP_TRY(dp_query_run(&query));
    return check_count(store, put->run);
}

dp_status dp_store_row_put(dp_store *store, const dp_hash *run, const dp_store_row *row)
{
    if (row->name[0] == '\0' || memchr(row->name, '\0', sizeof row->name) == NULL) {
        return DP_BADARG;
    }
    if (row->bytes.size > DP_ROW_BYTES_MAX) {
        return DP_TOOBIG;
    }
    struct put put = {.run = run, .row = row};
    return dp_store_atomically(store, put_body, &put);
}

struct drop {
    const dp_hash *run;
    const char *name;
};

static dp_status delete_body(dp_store *store, void *context)
{
    static const char sql[] = "DELETE FROM row WHERE run=? AND name=?";
    const struct drop *drop = (const struct drop *)context;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, drop->run);
    dp_bind_text(&query, drop->name);
    return dp_query_run(&query);
}

dp_status dp_store_row_delete(dp_store *store, const dp_hash *run, const char *name)
{
    struct drop drop = {.run = run, .name = name};
    return dp_store_atomically(store, delete_body, &drop);
}

dp_status dp_store_row_each(dp_store *store, const dp_hash *run, const char *prefix,
                            dp_store_row_visit *visit, void *context)
{
    static const char sql[] =
        "SELECT " COLUMNS " FROM row WHERE run=? AND name>=? ORDER BY name LIMIT ?";
    const size_t size = strlen(prefix);
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_text(&query, prefix);
    dp_bind_i64(&query, DP_ROWS_MAX);
    dp_status status = dp_query_next(&query);
    while (status == DP_OK) {
        dp_store_row row;
        status = read_row(&query, &row);
        const bool past = status == DP_OK &&
                          strncmp(row.name, prefix, size) != 0; /* Names with it stand together. */
        if (status == DP_OK && !past) {
            status = visit(&row, context);
        }
        if (status != DP_OK || past) {
            dp_query_end(&query);
            return status;
        }
        status = dp_query_next(&query);
    }
    return status == DP_NOTFOUND ? DP_OK : status;
}

static dp_status drop_body(dp_store *store, void *context)
{
    static const char sql[] = "DELETE FROM row WHERE run=?1 AND substr(name,1,length(?2))=?2";
    const struct drop *drop = (const struct drop *)context;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, drop->run);
    dp_bind_text(&query, drop->name);
    return dp_query_run(&query);
}

dp_status dp_store_row_drop(dp_store *store, const dp_hash *run, const char *prefix)
{
    struct drop drop = {.run = run, .name = prefix};
    return dp_store_atomically(store, drop_body, &drop);
}
