/* Retention of objects: pins, and the collection of objects that nothing names. */
#include "store/inside.h"

#include "base/alloc.h"
#include "base/assert.h"

enum { COLLECT_IDS_MAX = 4096 }; /* Chunk rows deleted in one transaction. */

/* A statement about one row of pin, whose first four places are root, run, kind and round. */
static dp_status run_for_pin(dp_store *store, const char *sql, const dp_hash *root,
                             const dp_pin *pin)
{
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, root);
    dp_bind_hash(&query, &pin->run);
    dp_bind_i64(&query, pin->kind);
    dp_bind_u64(&query, pin->round);
    return dp_query_run(&query);
}

dp_status dp_pin_insert(dp_store *store, const dp_hash *root, const dp_pin *pin)
{
    static const char sql[] = "INSERT OR IGNORE INTO pin(root,run,kind,round) VALUES(?,?,?,?)";
    return run_for_pin(store, sql, root, pin);
}

dp_status dp_pin_delete(dp_store *store, const dp_hash *root, const dp_pin *pin)
{
    static const char sql[] = "DELETE FROM pin WHERE root=? AND run=? AND kind=? AND round=?";
    return run_for_pin(store, sql, root, pin);
}

struct pin_call {
    const dp_hash *root;
    const dp_pin *pin;
};

static dp_status pin_body(dp_store *store, void *context)
{
    static const char there_sql[] = "SELECT 1 FROM object WHERE root=?";
    const struct pin_call *call = (const struct pin_call *)context;
    dp_query there = dp_query_of(&store->meta, there_sql);
    dp_bind_hash(&there, call->root);
    DP_TRY(dp_query_next(&there));
    dp_query_end(&there);
    return dp_pin_insert(store, call->root, call->pin);
}

dp_status dp_object_pin(dp_store *store, const dp_hash *root, const dp_pin *pin)
{
    struct pin_call call = {.root = root, .pin = pin};
    return dp_store_atomically(store, pin_body, &call);
}

static dp_status unpin_body(dp_store *store, void *context)
{
    const struct pin_call *call = (const struct pin_call *)context;
    return dp_pin_delete(store, call->root, call->pin);
}

dp_status dp_object_unpin(dp_store *store, const dp_hash *root, const dp_pin *pin)
{
    struct pin_call call = {.root = root, .pin = pin};
    return dp_store_atomically(store, unpin_body, &call);
}

dp_pin dp_object_writing(dp_store *store, const dp_hash *run)
{
    return (dp_pin){.run = *run, .kind = DP_PIN_WRITING, .round = ++store->writings};
}

static dp_status prune_body(dp_store *store, void *context)
{
    static const char sql[] = "DELETE FROM pin WHERE run=? AND kind=? AND round<?";
    const dp_pin *before = (const dp_pin *)context;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, &before->run);
    dp_bind_i64(&query, before->kind);
    dp_bind_u64(&query, before->round);
    return dp_query_run(&query);
}

dp_status dp_object_prune(dp_store *store, const dp_hash *run, dp_pin_kind kind,
                          uint64_t before_round)
{
    dp_pin before = {.run = *run, .kind = kind, .round = before_round};
    return dp_store_atomically(store, prune_body, &before);
}

dp_status dp_object_pins(dp_store *store, const dp_hash *run, dp_pin_kind kind, dp_hash *roots,
                         uint32_t max, uint32_t *count)
{
    static const char sql[] = "SELECT DISTINCT root FROM pin WHERE run=? AND kind=? LIMIT ?";
    uint32_t n = 0;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_i64(&query, kind);
    dp_bind_u64(&query, max);
    dp_status status = dp_query_next(&query);
    while (status == DP_OK) {
        roots[n++] = dp_column_hash(&query, 0);
        status = dp_query_next(&query);
    }
    if (status != DP_NOTFOUND) {
        return status;
    }
    *count = n;
    return DP_OK;
}

/* ---- Collecting: meta.db forgets first, then chunks.db gives the space back (SAFETY R1). */

struct collect {
    int64_t *ids;   /* COLLECT_IDS_MAX */
    dp_hash *roots; /* COLLECT_IDS_MAX */
    uint32_t n_ids;
    uint32_t n_roots;
    uint64_t bytes;
};

static dp_status run_for_object(dp_store *store, const char *sql, int64_t object)
{
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_i64(&query, object);
    return dp_query_run(&query);
}

/* Notes the chunks that only this object wants. */
static dp_status note_chunks(dp_store *store, struct collect *collect, int64_t object)
{
    static const char sql[] =
        "SELECT DISTINCT x.chunk_id,x.size FROM part p JOIN chunk_ix x ON x.hash=p.hash WHERE "
        "p.object_id=?1"
        " AND NOT EXISTS(SELECT 1 FROM part q WHERE q.hash=p.hash AND q.object_id<>?1)";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_i64(&query, object);
    dp_status status = dp_query_next(&query);
    while (status == DP_OK) {
        dp_assert(collect->n_ids < COLLECT_IDS_MAX);
        collect->ids[collect->n_ids++] = dp_column_i64(&query, 0);
        collect->bytes += dp_column_u64(&query, 1);
        status = dp_query_next(&query);
    }
    return status == DP_NOTFOUND ? DP_OK : status;
}

static dp_status drop_index(dp_store *store, const int64_t *ids, uint32_t count)
{
    static const char sql[] = "DELETE FROM chunk_ix WHERE chunk_id=?";
    for (uint32_t i = 0; i < count; i++) {
        DP_TRY(run_for_object(store, sql, ids[i]));
    }
    return DP_OK;
}

static dp_status collect_body(dp_store *store, void *context)
{
    static const char dead_sql[] =
        "SELECT id,root FROM object WHERE root NOT IN (SELECT root FROM live) ORDER BY id LIMIT 1";
    static const char parts_sql[] = "DELETE FROM part WHERE object_id=?";
    static const char object_sql[] = "DELETE FROM object WHERE id=?";
    struct collect *collect = (struct collect *)context;
    collect->n_ids = 0;
    collect->n_roots = 0;
    collect->bytes = 0;
    while (collect->n_ids + DP_CHUNKS_MAX <= COLLECT_IDS_MAX &&
           collect->n_roots < COLLECT_IDS_MAX) {
        dp_query dead = dp_query_of(&store->meta, dead_sql);
        const dp_status status = dp_query_next(&dead);
        if (status != DP_OK) {
            return status == DP_NOTFOUND ? DP_OK : status;
        }
        const int64_t object = dp_column_i64(&dead, 0);
        collect->roots[collect->n_roots++] = dp_column_hash(&dead, 1);
        dp_query_end(&dead);
        const uint32_t before = collect->n_ids;
        DP_TRY(note_chunks(store, collect, object));
        DP_TRY(drop_index(store, collect->ids + before, collect->n_ids - before));
        DP_TRY(run_for_object(store, parts_sql, object));
        DP_TRY(run_for_object(store, object_sql, object));
    }
    return DP_OK;
}

static dp_status drop_recipes(dp_store *store, const dp_hash *roots, uint32_t count)
{
    static const char sql[] = "DELETE FROM recipe WHERE root=?";
    DP_TRY(dp_chunk_begin(store));
    for (uint32_t i = 0; i < count; i++) {
        dp_query query = dp_query_of(&store->chunks, sql);
        dp_bind_hash(&query, &roots[i]);
        const dp_status status = dp_query_run(&query);
        if (status != DP_OK) {
            dp_chunk_abandon(store);
            return status;
        }
    }
    return DP_OK;
}

static dp_status drop_collected(dp_store *store, const struct collect *collect)
{
    DP_TRY(dp_chunk_delete(store, collect->ids, collect->n_ids));
    DP_TRY(drop_recipes(store, collect->roots, collect->n_roots));
    return dp_chunk_flush(store);
}

static dp_status collect_all(dp_store *store, struct collect *collect, uint64_t *bytes)
{
    do { /* Each turn removes objects, so it ends. */
        DP_TRY(dp_store_atomically(store, collect_body, collect));
        if (collect->n_roots == 0) {
            return DP_OK;
        }
        dp_status status = drop_collected(store, collect);
        if (status == DP_NOSPACE && dp_store_release_reserve(store)) {
            status = drop_collected(store, collect);
        }
        if (status != DP_OK) {
            store->orphans = true; /* meta.db has forgotten which they are. */
            return status;
        }
        *bytes += collect->bytes;
    } while (true);
}

dp_status dp_object_collect(dp_store *store, uint64_t *bytes)
{
    dp_assert(store->depth == 0);
    uint64_t freed = 0;
    DP_TRY(dp_chunk_flush(store)); /* Chunks of the batch must be in the index first. */
    if (store->orphans) {
        dp_store_report ignored = {0};
        DP_TRY(dp_store_sweep(store, &ignored));
    }
    struct collect collect = {.ids = dp_alloc(COLLECT_IDS_MAX, sizeof *collect.ids),
                              .roots = dp_alloc(COLLECT_IDS_MAX, sizeof *collect.roots)};
    dp_status status = DP_NOMEM;
    if (collect.ids != NULL && collect.roots != NULL) {
        status = collect_all(store, &collect, &freed);
    }
    dp_free(collect.ids);
    dp_free(collect.roots);
    if (bytes != NULL) {
        *bytes = freed;
    }
    return status;
}
