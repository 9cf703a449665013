/* Opens a store: both files, the disk reserve and the recovery after a crash. Transactions on
 * meta.db. One file is opened and checked in db_file.c, small values are in kv.c. */
#include "store/db.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/disk.h"
#include "base/size.h"
#include "store/db_file.h"
#include "store/inside.h"

#define READY_KEY "store/ready"

dp_store_options dp_store_options_default(void)
{
    return (dp_store_options){.reserve_bytes = DP_STORE_RESERVE_BYTES,
                              .margin_bytes = DP_STORE_MARGIN_BYTES};
}

static bool damaged(dp_status status)
{
    return status == DP_CORRUPT;
}

static dp_status open_meta(dp_store *store, dp_store_report *report)
{
    uint32_t from = 0;
    const bool had_chunks = dp_dir_has(&store->dir, dp_store_chunks_file.name);
    dp_status status = dp_store_file_open(store, &store->meta, &dp_store_meta_file, &from);
    if (damaged(status)) {
        DP_TRY(dp_store_file_set_aside(store, &dp_store_meta_file, report->moved_to));
        status = dp_store_file_open(store, &store->meta, &dp_store_meta_file, &from);
    }
    report->created = status == DP_OK && from == 0 && !had_chunks;
    return status;
}

/* DP_OK once the index of meta.db has been complete, also if that mark is damaged. DP_NOTFOUND: it
 * may lack chunks, as after a crash during a rebuild, and a start must not sweep those. */
static dp_status look_ready(dp_store *store)
{
    dp_buf flag;
    dp_buf_init(&flag, 16);
    const dp_status status = dp_store_get(store, READY_KEY, &flag);
    dp_buf_close(&flag);
    return status == DP_CORRUPT ? DP_OK : status;
}

static dp_status make_ready(dp_store *store, dp_store_report *report)
{
    int64_t has_chunks = 0;
    int64_t has_objects = 0;
    const dp_status ready = look_ready(store);
    if (ready != DP_NOTFOUND) {
        return ready;
    }
    DP_TRY(dp_sql_number(&store->chunks, "SELECT EXISTS(SELECT 1 FROM chunk)", &has_chunks));
    DP_TRY(dp_sql_number(&store->meta, "SELECT EXISTS(SELECT 1 FROM object)", &has_objects));
    /* With objects only the mark is lost: its key is damaged, or its write was interrupted. */
    report->meta_rebuilt = (has_chunks != 0 && has_objects == 0) || report->moved_to[0] != '\0';
    /* Also if the very first start was interrupted. */
    report->created = !report->meta_rebuilt && has_objects == 0;
    DP_TRY(dp_store_reindex(store, report));
    return dp_store_put(store, READY_KEY, dp_view_text("1"));
}

static bool is_suspect(dp_store *store)
{
    dp_buf flag;
    dp_buf_init(&flag, 16);
    const bool suspect = dp_store_get(store, DP_STORE_SUSPECT_KEY, &flag) == DP_OK;
    dp_buf_close(&flag);
    return suspect;
}

/* Sets a damaged chunks.db aside and copies its rows into a new one. */
static dp_status salvage(dp_store *store, dp_store_report *report)
{
    uint32_t from = 0;
    char moved[64] = "";
    dp_sql_close(&store->chunks);
    DP_TRY(dp_dir_aside_name(&store->dir, dp_store_chunks_file.name, moved));
    DP_TRY(dp_store_salvage_begin(store, moved));
    DP_TRY(dp_store_file_set_aside(store, &dp_store_chunks_file, moved));
    DP_TRY(dp_store_file_open(store, &store->chunks, &dp_store_chunks_file, &from));
    report->chunks_rebuilt = true;
    return dp_store_salvage(store, moved, report);
}

/* Copies the rest of moved after a crash. opened: of the new chunks.db, which holds nothing but
 * copies: if it is damaged, too, it is begun anew. */
static dp_status go_on_salvaging(dp_store *store, const char *moved, dp_status opened,
                                 dp_store_report *report)
{
    uint32_t from = 0;
    report->chunks_rebuilt = true;
    const dp_status status = opened == DP_OK ? dp_store_salvage(store, moved, report) : opened;
    if (!damaged(status) || (opened == DP_OK && store->chunks.failed != DP_CORRUPT)) {
        return status;
    }
    dp_chunk_abandon(store);
    dp_chunk_done(store);
    dp_sql_close(&store->chunks);
    DP_TRY(dp_store_salvage_begin(store, moved));
    DP_TRY(dp_dir_release(&store->dir, dp_store_chunks_file.name));
    DP_TRY(dp_store_file_open(store, &store->chunks, &dp_store_chunks_file, &from));
    return dp_store_salvage(store, moved, report);
}

static dp_status open_chunks(dp_store *store, dp_store_report *report)
{
    uint32_t from = 0;
    char moved[64] = "";
    dp_store_salvage_end(store);
    dp_store_salvage_name(store, DP_STORE_SALVAGE_KEY, moved);
    const dp_status status =
        dp_store_file_open(store, &store->chunks, &dp_store_chunks_file, &from);
    if (status != DP_OK && !damaged(status)) {
        return status;
    }
    if (moved[0] != '\0' && dp_dir_has(&store->dir, moved)) {
        return go_on_salvaging(store, moved, status, report);
    }
    /* With a name, but no such file, a crash came before the renaming; the index is cleared. */
    if (status == DP_OK && !is_suspect(store) && moved[0] == '\0') {
        int64_t has_objects = 0;
        DP_TRY(dp_sql_number(&store->meta, "SELECT EXISTS(SELECT 1 FROM object)", &has_objects));
        report->chunks_rebuilt = from == 0 && has_objects != 0;
        return DP_OK;
    }
    return salvage(store, report);
}

/* DP_NOSPACE, with a sentence if it ended the copying of a damaged chunks.db. */
static dp_status no_room(dp_store *store, dp_why *why)
{
    char moved[64] = "";
    char full[DP_DISK_TEXT_MAX];
    char more[DP_SIZE_TEXT_MAX];
    dp_store_salvage_name(store, DP_STORE_SALVAGE_KEY, moved);
    const uint64_t all = dp_store_file_bytes(&store->dir, moved);
    const uint64_t copied = dp_store_file_bytes(&store->dir, dp_store_chunks_file.name);
    if (moved[0] == '\0' || all == 0) {
        return DP_NOSPACE;
    }
    dp_disk_full_text(store->dir.path, full);
    dp_size_text(all > copied ? all - copied : all, more);
    return dp_why_set(why, DP_NOSPACE,
                      "%s; the copy of the damaged file %s needs up to %s more; free as much, then "
                      "start the daemon again",
                      full, moved, more);
}

static void open_ballast(dp_store *store)
{
    if (store->options.reserve_bytes > 0) {
        store->reserve_held = true; /* Until proven otherwise; reserve is idempotent. */
        if (dp_dir_reserve(&store->dir, DP_STORE_RESERVE_NAME, store->options.reserve_bytes) !=
            DP_OK) {
            store->reserve_held = false;
        }
    }
}

static dp_status open_all(dp_store *store, dp_store_report *report, dp_why *why)
{
    DP_TRY(dp_store_file_peek(&store->dir, dp_store_meta_file.name, why));
    DP_TRY(dp_store_file_peek(&store->dir, dp_store_chunks_file.name, why));
    DP_TRY(open_meta(store, report));
    dp_status status = open_chunks(store, report);
    if (status != DP_OK) {
        return status == DP_NOSPACE ? no_room(store, why) : status;
    }
    open_ballast(store);
    status = make_ready(store, report);
    if (status == DP_OK) {
        status = dp_store_recover(store, report);
    }
    /* On a full disk the store still opens for reading; the next start drops the rows that recovery
     * could not drop. */
    return status == DP_NOSPACE ? DP_OK : status;
}

/* The file to rebuild; NULL: it is rebuilt already, or no file is damaged. */
static const dp_store_file *damaged_file(const dp_store *store, const dp_store_report *report)
{
    if (store->meta.failed == DP_CORRUPT && report->moved_to[0] == '\0') {
        return &dp_store_meta_file;
    }
    return store->chunks.failed == DP_CORRUPT && !report->chunks_rebuilt ? &dp_store_chunks_file
                                                                         : NULL;
}

/* Opens, and rebuilds each damaged file once. Some damage shows only when both files are compared;
 * a store that never opens again would lose more than one with a rebuilt file. */
static dp_status open_or_rebuild(dp_store *store, dp_store_report *report, dp_why *why)
{
    dp_status status = open_all(store, report, why);
    const dp_store_file *file = damaged_file(store, report);
    for (; damaged(status) && file != NULL; file = damaged_file(store, report)) {
        dp_store_report again = {0};
        memcpy(again.moved_to, report->moved_to, sizeof again.moved_to);
        dp_chunk_abandon(store);
        dp_chunk_done(store);
        if (file == &dp_store_chunks_file) {
            DP_TRY(dp_chunk_suspect(store)); /* It is salvaged when it is opened. */
        }
        dp_sql_close(&store->chunks);
        dp_sql_close(&store->meta);
        *report = again;
        if (file == &dp_store_meta_file) {
            DP_TRY(dp_store_file_set_aside(store, &dp_store_meta_file, report->moved_to));
        }
        status = open_all(store, report, why);
    }
    return status;
}

dp_status dp_store_open(dp_store **store, const char *dir, const dp_store_options *options,
                        dp_store_report *report, dp_why *why)
{
    dp_store_report found = {0};
    dp_store *opened = dp_alloc(1, sizeof *opened);
    if (opened == NULL) {
        return dp_why_set(why, DP_NOMEM, "no memory to open the store in %s", dir);
    }
    if (why != NULL) {
        why->text[0] = '\0';
    }
    opened->options = options != NULL ? *options : dp_store_options_default();
    if (opened->options.batch_bytes == 0) {
        opened->options.batch_bytes = DP_STORE_BATCH_BYTES;
    }
    dp_status status = dp_dir_open(&opened->dir, dir, why);
    if (status == DP_OK) {
        status = open_or_rebuild(opened, &found, why);
    }
    if (status != DP_OK) {
        dp_store_close(opened);
        if (why != NULL && why->text[0] == '\0') {
            char full[DP_DISK_TEXT_MAX] = "";
            if (status == DP_NOSPACE) {
                dp_disk_full_text(dir, full);
            }
            dp_why_set(why, status, "cannot open the store in %s: %s", dir,
                       full[0] != '\0' ? full : dp_status_text(status));
        }
        return status;
    }
    found.mode_was = opened->dir.mode_was;
    found.n_tightened = opened->dir.n_tightened;
    if (report != NULL) {
        *report = found;
    }
    *store = opened;
    return DP_OK;
}

void dp_store_close(dp_store *store)
{
    if (store == NULL) {
        return;
    }
    dp_sql_close(&store->chunks);
    dp_sql_close(&store->meta);
    dp_dir_close(&store->dir);
    dp_free(store->scratch);
    dp_free(store);
}

dp_status dp_store_failed(const dp_store *store)
{
    return store->meta.failed != DP_OK ? store->meta.failed : store->chunks.failed;
}

/* ---- Transactions on meta.db. */

static dp_status run_once(dp_store *store, dp_store_body *body, void *context)
{
    DP_TRY(dp_sql_begin(&store->meta));
    store->depth = 1;
    store->doomed = DP_OK;
    dp_status status = body(store, context);
    store->depth = 0;
    if (status == DP_OK) {
        status = store->doomed;
    }
    if (status == DP_OK) {
        return dp_sql_commit(&store->meta);
    }
    dp_sql_rollback(&store->meta);
    return status;
}

dp_status dp_store_atomically(dp_store *store, dp_store_body *body, void *context)
{
    if (store->depth > 0) {
        store->depth++;
        const dp_status inner = body(store, context);
        store->depth--;
        if (inner != DP_OK && store->doomed == DP_OK) {
            store->doomed = inner; /* An inner body may have written half: roll back all. */
        }
        return inner;
    }
    store->meta.full = false;
    const dp_status status = run_once(store, body, context);
    const bool again = status == DP_NOSPACE && store->meta.full && dp_store_release_reserve(store);
    const dp_status last = again ? run_once(store, body, context) : status;
    if (last == DP_NOSPACE) {
        store->quota_reached = false; /* Rows have none. */
    }
    return last;
}
