/* The end of a run in this store: its rows go, and the file of the chunks gives its space back. */
#include "store/inside.h"

#include "base/assert.h"

static dp_status drop_body(dp_store *store, void *context)
{
    static const char *const of_run[] = {
        "DELETE FROM ckpt WHERE run=?", "DELETE FROM pin WHERE run=?",
        "DELETE FROM row WHERE run=?",  "DELETE FROM record WHERE run=?",
        "DELETE FROM head WHERE run=?",
    };
    /* Data of a run that was created here, up to the moment that the run had its name. */
    static const char unnamed_sql[] =
        "DELETE FROM pin WHERE run=zeroblob(32) AND NOT EXISTS(SELECT 1 FROM ckpt) AND NOT"
        " EXISTS(SELECT 1 FROM head) AND NOT EXISTS(SELECT 1 FROM row) AND NOT"
        " EXISTS(SELECT 1 FROM vote)";
    for (size_t i = 0; i < sizeof of_run / sizeof of_run[0]; i++) {
        dp_query query = dp_query_of(&store->meta, of_run[i]);
        dp_bind_hash(&query, (const dp_hash *)context);
        DP_TRY(dp_query_run(&query));
    }
    dp_query unnamed = dp_query_of(&store->meta, unnamed_sql);
    return dp_query_run(&unnamed);
}

dp_status dp_store_drop_run(dp_store *store, const dp_hash *run)
{
    dp_hash copy = *run;
    dp_assert(!dp_hash_is_zero(run));
    return dp_store_atomically(store, drop_body, &copy);
}

static dp_status vacuum(dp_sql *chunks)
{
    /* 64 MiB: the rollback journal of this transaction is not larger. */
    static const char sql[] = "PRAGMA incremental_vacuum(1024)";
    DP_TRY(dp_sql_begin(chunks));
    const dp_status status = dp_sql_exec(chunks, sql);
    if (status != DP_OK) {
        dp_sql_rollback(chunks);
        return status;
    }
    return dp_sql_commit(chunks);
}

dp_status dp_store_shrink(dp_store *store, bool *more)
{
    int64_t before = 0;
    int64_t after = 0;
    dp_assert(store->depth == 0);
    DP_TRY(dp_chunk_flush(store));
    DP_TRY(dp_sql_number(&store->chunks, "PRAGMA freelist_count", &before));
    if (before == 0) {
        *more = false;
        return DP_OK;
    }
    DP_TRY(vacuum(&store->chunks));
    DP_TRY(dp_sql_number(&store->chunks, "PRAGMA freelist_count", &after));
    *more = after > 0 && after < before;
    return DP_OK;
}
