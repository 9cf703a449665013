/* Recovery at start: makes both files agree after a crash, a lost file or a damaged one (SAFETY
 * R8). */
#include "store/inside.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { RECOVER_ROWS_MAX = 1024 }; /* Rows judged between two deletions. */

/* Rows of chunks.db that meta.db does not name: kept if an object wants them, else dropped. */
struct orphans {
    int64_t ids[RECOVER_ROWS_MAX];
    uint32_t n_ids;
    struct {
        dp_hash hash;
        int64_t id;
        uint32_t size;
    } adopt[RECOVER_ROWS_MAX];
    uint32_t n_adopt;
};

static dp_status is_wanted(dp_store *store, const dp_hash *hash)
{
    static const char sql[] = "SELECT 1 FROM part WHERE hash=? LIMIT 1";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, hash);
    const dp_status status = dp_query_next(&query);
    dp_query_end(&query);
    return status;
}

/* DP_OK: the row matches its hash. DP_BADHASH. */
static dp_status verify_row(dp_store *store, int64_t id, const dp_hash *hash, uint32_t *size)
{
    uint8_t *scratch = NULL;
    size_t got = 0;
    DP_TRY(dp_store_scratch(store, &scratch));
    const dp_status status = dp_chunk_read_row(store, id, scratch, DP_CHUNK_BYTES_MAX, &got);
    if (status != DP_OK) {
        return status == DP_TOOBIG ? DP_BADHASH : status;
    }
    const dp_hash leaf = dp_chunk_leaf(dp_view_of(scratch, got));
    *size = (uint32_t)got;
    return dp_hash_equal(&leaf, hash) ? DP_OK : DP_BADHASH;
}

/* Checks one row. keep_all: index every row that verifies (meta.db is new). */
static dp_status judge(dp_store *store, struct orphans *orphans, int64_t id, const dp_hash *hash,
                       bool keep_all, dp_store_report *report)
{
    int64_t indexed = 0;
    const dp_status found = dp_chunk_find(store, hash, &indexed, NULL);
    if (found == DP_OK && indexed == id) {
        return DP_OK;
    }
    if (found != DP_OK && found != DP_NOTFOUND) {
        return found;
    }
    const dp_status wanted = keep_all ? DP_OK : is_wanted(store, hash);
    if (wanted != DP_OK && wanted != DP_NOTFOUND) {
        return wanted;
    }
    if (found == DP_NOTFOUND && wanted == DP_OK) {
        uint32_t size = 0;
        const dp_status status = verify_row(store, id, hash, &size);
        if (status == DP_OK) {
            orphans->adopt[orphans->n_adopt].hash = *hash;
            orphans->adopt[orphans->n_adopt].id = id;
            orphans->adopt[orphans->n_adopt].size = size;
            orphans->n_adopt++;
            return DP_OK;
        }
        if (status != DP_BADHASH) {
            return status;
        }
        report->chunks_damaged++;
    }
    orphans->ids[orphans->n_ids++] = id;
    return DP_OK;
}

static dp_status adopt_body(dp_store *store, void *context)
{
    static const char sql[] = "INSERT OR REPLACE INTO chunk_ix(hash,chunk_id,size) VALUES(?,?,?)";
    const struct orphans *orphans = (const struct orphans *)context;
    for (uint32_t i = 0; i < orphans->n_adopt; i++) {
        dp_query query = dp_query_of(&store->meta, sql);
        dp_bind_hash(&query, &orphans->adopt[i].hash);
        dp_bind_i64(&query, orphans->adopt[i].id);
        dp_bind_u64(&query, orphans->adopt[i].size);
        DP_TRY(dp_query_run(&query));
    }
    return DP_OK;
}

/* Checks up to RECOVER_ROWS_MAX rows with id > *after; *more: there may be others. */
static dp_status judge_some(dp_store *store, struct orphans *orphans, int64_t *after, bool keep_all,
                            bool *more, dp_store_report *report)
{
    static const char sql[] = "SELECT id,hash FROM chunk WHERE id>? ORDER BY id LIMIT ?";
    uint32_t rows = 0;
    dp_query query = dp_query_of(&store->chunks, sql);
    dp_bind_i64(&query, *after);
    dp_bind_i64(&query, RECOVER_ROWS_MAX);
    dp_status status = dp_query_next(&query);
    while (status == DP_OK) {
        const dp_hash hash = dp_column_hash(&query, 1);
        *after = dp_column_i64(&query, 0);
        rows++;
        status = judge(store, orphans, *after, &hash, keep_all, report);
        if (status != DP_OK) {
            dp_query_end(&query);
            return status;
        }
        status = dp_query_next(&query);
    }
    *more = rows == RECOVER_ROWS_MAX;
    return status == DP_NOTFOUND ? DP_OK : status;
}

static dp_status judge_chunks(dp_store *store, bool keep_all, dp_store_report *report)
{
    struct orphans *orphans = dp_alloc(1, sizeof *orphans);
    if (orphans == NULL) {
        return DP_NOMEM;
    }
    int64_t after = INT64_MIN;
    bool more = true;
    dp_status status = DP_OK;
    while (more && status == DP_OK) {
        orphans->n_ids = 0;
        orphans->n_adopt = 0;
        status = judge_some(store, orphans, &after, keep_all, &more, report);
        if (status == DP_OK && orphans->n_adopt > 0) {
            status = dp_store_atomically(store, adopt_body, orphans);
        }
        if (status == DP_OK) {
            report->chunks_adopted += orphans->n_adopt;
            status = dp_chunk_delete(store, orphans->ids, orphans->n_ids);
        }
        if (status == DP_OK) {
            report->chunks_swept += orphans->n_ids;
        }
    }
    dp_free(orphans);
    return status;
}

/* Recipes of objects that meta.db does not have. */
static dp_status sweep_recipes(dp_store *store)
{
    static const char list_sql[] = "SELECT root FROM recipe";
    static const char there_sql[] = "SELECT 1 FROM object WHERE root=?";
    static const char drop_sql[] = "DELETE FROM recipe WHERE root=?";
    DP_TRY(dp_chunk_begin(store));
    dp_query list = dp_query_of(&store->chunks, list_sql);
    dp_status status = dp_query_next(&list);
    while (status == DP_OK) {
        const dp_hash root = dp_column_hash(&list, 0);
        dp_query there = dp_query_of(&store->meta, there_sql);
        dp_bind_hash(&there, &root);
        status = dp_query_next(&there);
        dp_query_end(&there);
        if (status == DP_NOTFOUND) {
            /* Deleting the row under the cursor is allowed; the cursor goes on behind it. */
            dp_query drop = dp_query_of(&store->chunks, drop_sql);
            dp_bind_hash(&drop, &root);
            status = dp_query_run(&drop);
        }
        status = status == DP_OK ? dp_query_next(&list) : status;
    }
    dp_query_end(&list);
    if (status != DP_NOTFOUND) {
        dp_chunk_abandon(store);
        return status;
    }
    return dp_chunk_flush(store);
}

static dp_status sweep(dp_store *store, dp_store_report *report)
{
    DP_TRY(judge_chunks(store, false, report));
    return sweep_recipes(store);
}

dp_status dp_store_sweep(dp_store *store, dp_store_report *report)
{
    store->orphans = true;
    dp_status status = sweep(store, report);
    if (status == DP_NOSPACE && dp_store_release_reserve(store)) {
        status = sweep(store, report);
    }
    store->orphans = status != DP_OK;
    return status;
}

/* ---- The other way round: index rows without a chunk, or that no object wants. */

static dp_status mark_incomplete(dp_store *store)
{
    static const char sql[] = "UPDATE object SET complete=0 WHERE complete=1 AND EXISTS(SELECT 1 "
                              "FROM part p WHERE p.object_id=object.id"
                              " AND NOT EXISTS(SELECT 1 FROM chunk_ix x WHERE x.hash=p.hash))";
    dp_query query = dp_query_of(&store->meta, sql);
    return dp_query_run(&query);
}

static dp_status drop_index_body(dp_store *store, void *context)
{
    static const char list_sql[] = "SELECT chunk_id FROM chunk_ix ORDER BY chunk_id";
    static const char there_sql[] = "SELECT 1 FROM chunk WHERE id=?";
    static const char drop_sql[] = "DELETE FROM chunk_ix WHERE chunk_id=?";
    static const char unwanted_sql[] =
        "DELETE FROM chunk_ix WHERE hash NOT IN (SELECT hash FROM part)";
    (void)context;
    dp_query unwanted = dp_query_of(&store->meta, unwanted_sql);
    DP_TRY(dp_query_run(&unwanted));
    uint32_t dropped = 0;
    dp_query list = dp_query_of(&store->meta, list_sql);
    dp_status status = dp_query_next(&list);
    while (status == DP_OK) {
        const int64_t id = dp_column_i64(&list, 0);
        dp_query there = dp_query_of(&store->chunks, there_sql);
        dp_bind_i64(&there, id);
        status = dp_query_next(&there);
        dp_query_end(&there);
        if (status == DP_NOTFOUND) {
            /* Deleting the row under the cursor is allowed; the cursor goes on behind it. */
            dp_query drop = dp_query_of(&store->meta, drop_sql);
            dp_bind_i64(&drop, id);
            status = dp_query_run(&drop);
            dropped++;
        }
        if (status != DP_OK) {
            dp_query_end(&list);
            return status;
        }
        status = dp_query_next(&list);
    }
    if (status != DP_NOTFOUND) {
        return status;
    }
    return dropped > 0 ? mark_incomplete(store) : DP_OK;
}

static dp_status drop_ckpts_body(dp_store *store, void *context)
{
    static const char sql[] = "DELETE FROM ckpt WHERE state=0";
    dp_query query = dp_query_of(&store->meta, sql);
    DP_TRY(dp_query_run(&query));
    *(uint32_t *)context = (uint32_t)sqlite3_changes(store->meta.db);
    return DP_OK;
}

static dp_status drop_writers_body(dp_store *store, void *context)
{
    static const char sql[] = "DELETE FROM pin WHERE kind=?";
    (void)context;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_i64(&query, DP_PIN_WRITING);
    return dp_query_run(&query);
}

static dp_status count_objects(dp_store *store, int64_t *count)
{
    return dp_sql_number(&store->meta, "SELECT count(*) FROM object", count);
}

dp_status dp_store_recover(dp_store *store, dp_store_report *report)
{
    int64_t before = 0;
    int64_t after = 0;
    DP_TRY(dp_store_atomically(store, drop_ckpts_body, &report->ckpts_dropped));
    DP_TRY(dp_store_atomically(store, drop_writers_body, NULL));
    DP_TRY(dp_store_atomically(store, drop_index_body, NULL));
    DP_TRY(count_objects(store, &before));
    DP_TRY(dp_object_collect(store, NULL));
    DP_TRY(count_objects(store, &after));
    report->objects_dropped = (uint32_t)(before - after);
    return dp_store_sweep(store, report);
}

/* ---- meta.db is new and empty: objects come back from the recipes. */

struct recipe {
    dp_hash root;
    uint64_t size;
    dp_pin pin;
    dp_hash leaves[DP_CHUNKS_MAX];
    uint32_t n_leaves;
};

/* DP_BADMSG: the recipe contradicts itself. */
static dp_status read_recipe(const dp_query *query, struct recipe *recipe)
{
    recipe->root = dp_column_hash(query, 0);
    recipe->size = dp_column_u64(query, 1);
    recipe->pin.run = dp_column_hash(query, 2);
    recipe->pin.kind = (dp_pin_kind)dp_column_i64(query, 3);
    recipe->pin.round = dp_column_u64(query, 4);
    const dp_view leaves = dp_column_view(query, 5);
    if (recipe->size > DP_OBJECT_BYTES_MAX || recipe->pin.round > INT64_MAX) {
        return DP_BADMSG;
    }
    recipe->n_leaves = dp_object_chunks(recipe->size);
    if (leaves.size != recipe->n_leaves * sizeof(dp_hash)) {
        return DP_BADMSG;
    }
    if (leaves.size > 0) {
        memcpy(recipe->leaves, leaves.data, leaves.size);
    }
    const dp_hash root = dp_object_root(recipe->size, recipe->leaves);
    return dp_hash_equal(&root, &recipe->root) ? DP_OK : DP_BADMSG;
}

static dp_status insert_recipe(dp_store *store, const struct recipe *recipe)
{
    dp_object_info info;
    const dp_status known = dp_object_stat(store, &recipe->root, &info);
    if (known != DP_NOTFOUND) {
        return known; /* meta.db is not new after all. */
    }
    for (uint32_t i = 0; i < recipe->n_leaves; i++) {
        const dp_status found = dp_chunk_find(store, &recipe->leaves[i], NULL, NULL);
        if (found != DP_OK) {
            return found == DP_NOTFOUND ? DP_OK
                                        : found; /* Its chunks are damaged: the peers have them. */
        }
    }
    return dp_object_insert(store, &recipe->root, recipe->size, recipe->leaves, true, &recipe->pin);
}

static dp_status insert_recipes(dp_store *store, struct recipe *recipe)
{
    static const char sql[] = "SELECT root,size,run,kind,round,leaves FROM recipe";
    dp_query query = dp_query_of(&store->chunks, sql);
    dp_status status = dp_query_next(&query);
    while (status == DP_OK) {
        status = read_recipe(&query, recipe) == DP_OK ? insert_recipe(store, recipe) : DP_OK;
        if (status != DP_OK) {
            dp_query_end(&query);
            return status;
        }
        status = dp_query_next(&query);
    }
    return status == DP_NOTFOUND ? DP_OK : status;
}

/* The certified roots and the older states are lost with the list of checkpoints, but a run's model
 * may be nowhere else. */
static dp_status recover_states(dp_store *store)
{
    /* SQLite takes root from the row that has the maximum. */
    static const char sql[] =
        "INSERT INTO ckpt(run,round,slot,state_root,object,created_ms,state)"
        " SELECT p.run,max(p.round),0,zeroblob(32),p.root,0,1 FROM pin p JOIN object o ON"
        " o.root=p.root WHERE p.kind=? AND p.round>0 AND o.complete=1"
        " AND p.run NOT IN(SELECT run FROM ckpt) GROUP BY p.run";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_i64(&query, DP_PIN_STATE);
    return dp_query_run(&query);
}

static dp_status reindex_body(dp_store *store, void *context)
{
    DP_TRY(insert_recipes(store, (struct recipe *)context));
    return recover_states(store);
}

dp_status dp_store_reindex(dp_store *store, dp_store_report *report)
{
    DP_TRY(judge_chunks(store, true, report));
    struct recipe *recipe = dp_alloc(1, sizeof *recipe);
    if (recipe == NULL) {
        return DP_NOMEM;
    }
    const dp_status status = dp_store_atomically(store, reindex_body, recipe);
    dp_free(recipe);
    return status;
}

/* ---- chunks.db is damaged: its readable rows move into a new one. */

/* Copies rows in one direction up to the damage. Returns the status that ended it: DP_NOTFOUND
 * after the last row. */
static dp_status copy_rows(dp_store *store, dp_sql *old, const char *sql, uint8_t *scratch,
                           dp_store_report *report)
{
    dp_query query = dp_query_of(old, sql);
    dp_status status = dp_query_next(&query);
    while (status == DP_OK) {
        const dp_hash hash = dp_column_hash(&query, 0);
        if (dp_chunk_find(store, &hash, NULL, NULL) == DP_OK) {
            status = dp_query_next(&query);
            continue; /* From the other direction, or before a crash. */
        }
        const dp_view data = dp_column_view(&query, 1);
        const bool fits = data.size > 0 && data.size <= DP_CHUNK_BYTES_MAX;
        const dp_hash leaf = fits ? dp_chunk_leaf(data) : (dp_hash){0};
        if (fits && dp_hash_equal(&leaf, &hash)) {
            memcpy(scratch, data.data, data.size);
            status = dp_chunk_add(store, &hash, dp_view_of(scratch, data.size));
            if (status != DP_OK) {
                dp_query_end(&query);
                return status;
            }
        } else {
            report->chunks_damaged++;
        }
        status = dp_query_next(&query);
    }
    return status;
}

void dp_store_salvage_name(dp_store *store, const char *key, char moved[64])
{
    dp_buf name;
    dp_buf_init(&name, 63);
    moved[0] = '\0';
    if (dp_store_get(store, key, &name) == DP_OK && name.size > 0) {
        memcpy(moved, name.data, name.size);
        moved[name.size] = '\0';
    }
    dp_buf_close(&name);
}

static dp_status begin_body(dp_store *store, void *context)
{
    static const char sql[] = "DELETE FROM chunk_ix";
    dp_query query = dp_query_of(&store->meta, sql);
    DP_TRY(dp_query_run(&query));
    DP_TRY(mark_incomplete(store));
    DP_TRY(dp_store_delete(store, DP_STORE_SALVAGED_KEY)); /* This name may be the same. */
    return dp_store_put(store, DP_STORE_SALVAGE_KEY, dp_view_text((const char *)context));
}

dp_status dp_store_salvage_begin(dp_store *store, const char *moved)
{
    char name[64];
    snprintf(name, sizeof name, "%s", moved);
    return dp_store_atomically(store, begin_body, name);
}

static dp_status salvaged_body(dp_store *store, void *context)
{
    static const char sql[] = "UPDATE object SET complete=1 WHERE complete=0 AND NOT EXISTS(SELECT "
                              "1 FROM part p WHERE p.object_id=object.id"
                              " AND NOT EXISTS(SELECT 1 FROM chunk_ix x WHERE x.hash=p.hash))";
    dp_query query = dp_query_of(&store->meta, sql);
    DP_TRY(dp_query_run(&query));
    DP_TRY(dp_store_delete(store, DP_STORE_SALVAGE_KEY));
    DP_TRY(dp_store_put(store, DP_STORE_SALVAGED_KEY, dp_view_text((const char *)context)));
    return dp_store_delete(store, DP_STORE_SUSPECT_KEY);
}

void dp_store_salvage_end(dp_store *store)
{
    char moved[64];
    dp_store_salvage_name(store, DP_STORE_SALVAGED_KEY, moved);
    if (moved[0] == '\0') {
        return;
    }
    if (!dp_dir_has(&store->dir, moved) || dp_dir_release(&store->dir, moved) == DP_OK) {
        DP_IGNORE(dp_store_delete(store, DP_STORE_SALVAGED_KEY)); /* Otherwise at the next start. */
    }
}

dp_status dp_store_salvage(dp_store *store, const char *moved, dp_store_report *report)
{
    static const char newest_sql[] = "SELECT hash,data FROM chunk ORDER BY id DESC";
    static const char oldest_sql[] = "SELECT hash,data FROM chunk ORDER BY id";
    char path[DP_DIR_PATH_MAX];
    uint8_t *scratch = NULL;
    dp_sql old = {0};
    dp_dir_join(&store->dir, moved, path);
    char name[64];
    DP_TRY(dp_store_scratch(store, &scratch));
    dp_status status = dp_sql_open(&old, path, store->options.vfs);
    if (status == DP_OK) {
        dp_sql_tolerate(&old);
        status = copy_rows(store, &old, newest_sql, scratch, report);
        if (status == DP_CORRUPT || status == DP_IO) {
            status = copy_rows(store, &old, oldest_sql, scratch, report);
        }
    }
    dp_sql_close(&old);
    if (status == DP_NOMEM || status == DP_NOSPACE || dp_store_failed(store) != DP_OK) {
        return status; /* The old file has the rest, and the next start goes on. */
    }
    /* Copied as far as the damage allowed. Nothing in the old file is of use any more. */
    DP_TRY(dp_chunk_flush(store));
    snprintf(name, sizeof name, "%s", moved);
    DP_TRY(dp_store_atomically(store, salvaged_body, name));
    dp_store_salvage_end(store);
    return DP_OK;
}
