/* The end of a run in this store, whose rows go; and the free pages of chunks.db, which go back to
 * the disk. */
#include "store/inside.h"

#include <stdio.h>

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

/* Pages of one transaction. Its rollback journal has up to two pages for each, and has to fit on a
 * disk that is full. */
static unsigned pages_at_once(const dp_store *store)
{
    enum { PAGE_BYTES = 65536, PAGES_MAX = 256 }; /* 16 MiB, so that a vote waits little. */
    uint64_t disk = UINT64_MAX;
    if (dp_dir_free_bytes(&store->dir, &disk) != DP_OK || disk / 4 / PAGE_BYTES > PAGES_MAX) {
        return PAGES_MAX;
    }
    const unsigned pages = (unsigned)(disk / 4 / PAGE_BYTES);
    return pages > 0 ? pages : 1;
}

static dp_status vacuum(dp_sql *chunks, unsigned pages)
{
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%u)", pages);
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
    DP_TRY(vacuum(&store->chunks, pages_at_once(store)));
    DP_TRY(dp_sql_number(&store->chunks, "PRAGMA freelist_count", &after));
    *more = after > 0 && after < before;
    return DP_OK;
}
