#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/disk.h"
#include "store/inside.h"
#include "store/schema.h"

/* EXCLUSIVE before the first read: no shared-memory file, so that a full disk can still be opened.
 * secure_delete is on in Debian's build and would write everything twice. mmap stays off: an I/O
 * error would be a signal. */
#define COMMON_PRAGMAS                                                                             \
    "PRAGMA locking_mode=EXCLUSIVE; PRAGMA secure_delete=OFF; PRAGMA synchronous=FULL; PRAGMA "    \
    "mmap_size=0;"                                                                                 \
    "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY;"

#define READY_KEY "store/ready"

enum { SCHEMA_BYTES_MAX = 64 * 1024 };

struct file {
    const char *name;
    const char *before; /* Pragmas that write nothing. */
    const char *after;  /* Pragmas that may write; run once the version is known. */
    const char *const *steps;
};

static const struct file meta_file = {
    .name = "meta.db",
    .before = COMMON_PRAGMAS "PRAGMA page_size=4096; PRAGMA cache_size=-512;",
    .after = "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=256; PRAGMA "
             "journal_size_limit=4194304;",
    .steps = dp_schema_meta,
};
static const struct file chunks_file = {
    .name = "chunks.db",
    .before = COMMON_PRAGMAS
    "PRAGMA page_size=65536; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA cache_size=-8192;",
    .after = "PRAGMA journal_mode=TRUNCATE;",
    .steps = dp_schema_chunks,
};

dp_store_options dp_store_options_default(void)
{
    return (dp_store_options){.ballast_bytes = DP_STORE_BALLAST_BYTES,
                              .margin_bytes = DP_STORE_MARGIN_BYTES};
}

/* ---- Opening one file. */

static uint32_t big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* What the header of a file says that is a database. */
typedef struct header {
    bool there;
    uint8_t write_version;
    uint8_t read_version;
    uint32_t version;
    uint32_t application;
} header;

/* SQLite file format: versions of the format at bytes 18 and 19, user_version at byte 60,
 * application id at byte 68, big-endian. */
static dp_status read_header(const dp_dir *dir, const char *name, header *out, dp_why *why)
{
    uint8_t bytes[100];
    const int fd = openat(dir->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    *out = (header){0};
    if (fd < 0) {
        return errno == ENOENT ? DP_OK
                               : dp_why_set(why, DP_DENIED, "cannot open %s/%s", dir->path, name);
    }
    const ssize_t got = read(fd, bytes, sizeof bytes);
    close(fd);
    if (got == (ssize_t)sizeof bytes && memcmp(bytes, "SQLite format 3", 16) == 0) {
        *out = (header){.there = true,
                        .write_version = bytes[18],
                        .read_version = bytes[19],
                        .version = big_endian(bytes + 60),
                        .application = big_endian(bytes + 68)};
    }
    return DP_OK;
}

/* Wrong bits in the header, rather than another program's or a later one's file: SQLite would open
 * it to read alone, or the name is wrong beside files of ours, or no program has such a version. */
static bool is_spoilt(const dp_dir *dir, const header *is)
{
    enum { FORMAT_MAX = 2, VERSION_MAX = DP_STORE_VERSION + 1000 };
    const bool named = is->application == DP_SCHEMA_APPLICATION_ID || is->application == 0;
    return is->there &&
           (is->write_version > FORMAT_MAX || is->read_version > FORMAT_MAX ||
            is->version > VERSION_MAX || (!named && dp_dir_has(dir, DP_STORE_BALLAST_NAME)));
}

/* Look at the header before SQLite does, which may write while it recovers. What is not a database
 * at all is left to SQLite, and what is spoilt to open_file. */
static dp_status peek(const dp_dir *dir, const char *name, dp_why *why)
{
    header is;
    DP_TRY(read_header(dir, name, &is, why));
    if (!is.there || is_spoilt(dir, &is)) {
        return DP_OK;
    }
    if (is.application != DP_SCHEMA_APPLICATION_ID && is.application != 0) {
        return dp_why_set(why, DP_BADMSG,
                          "%s/%s is a database of another program; choose another directory",
                          dir->path, name);
    }
    if (is.version > DP_STORE_VERSION) {
        return dp_why_set(
            why, DP_VERSION,
            "%s/%s was written by a newer dpnode (store version %u, this one knows %d); upgrade",
            dir->path, name, (unsigned)is.version, DP_STORE_VERSION);
    }
    return DP_OK;
}

/* What a check found. A page that could not be read is told as a finding too, with SQLite's code:
 * no reason to take the file for damaged and set it aside. */
static dp_status finding(dp_sql *sql, const char *text)
{
    static const char unread[] = "error code=";
    if (text == NULL) {
        return DP_NOMEM;
    }
    if (strcmp(text, "ok") == 0) {
        return DP_OK;
    }
    const char *code = strstr(text, unread);
    const dp_status status = code != NULL
                                 ? dp_sql_status(sql, (int)strtol(code + strlen(unread), NULL, 10))
                                 : DP_CORRUPT;
    return status != DP_OK ? status : DP_CORRUPT;
}

/* A check of SQLite's by name. DP_CORRUPT unless the file says it is sound. */
static dp_status check(dp_sql *sql, const char *pragma)
{
    sqlite3_stmt *stmt = NULL;
    DP_TRY(dp_sql_status(sql, sqlite3_prepare_v2(sql->db, pragma, -1, &stmt, NULL)));
    const int code = sqlite3_step(stmt);
    dp_status status = code == SQLITE_ROW ? DP_OK : dp_sql_status(sql, code);
    if (status == DP_OK) {
        status = finding(sql, (const char *)sqlite3_column_text(stmt, 0));
    }
    sqlite3_finalize(stmt);
    return status;
}

/* Each page may be sound and the file still be of two times: a log that lost its end, beside pages
 * that were written from it. An index then names rows that its table lacks, and what is fetched
 * again could never be written. It is made anew from the table. */
static dp_status check_rows(dp_sql *sql)
{
    const dp_status status = check(sql, "PRAGMA integrity_check(1)");
    if (status != DP_CORRUPT) {
        return status;
    }
    DP_TRY(check(sql, "PRAGMA quick_check(1)"));
    DP_TRY(dp_sql_exec(sql, "REINDEX"));
    return check(sql, "PRAGMA integrity_check(1)");
}

/* All of the schema as one text, as of now. */
static dp_status schema_text(dp_sql *sql, dp_buf *text)
{
    static const char all[] =
        "SELECT group_concat(type||' '||name||' '||tbl_name||' '||coalesce(sql,''),char(10)) "
        "FROM (SELECT * FROM sqlite_schema ORDER BY type,name)";
    dp_query query = dp_query_of(sql, all);
    dp_status status = dp_query_next(&query);
    if (status == DP_OK) {
        status = dp_buf_append(text, dp_column_view(&query, 0));
    }
    dp_query_end(&query);
    return status;
}

/* A wrong bit in it may refuse nothing: a column of another name is missing in every query, at
 * every start. DP_CORRUPT unless it is what the steps make. */
static dp_status check_schema(dp_sql *sql, const struct file *file)
{
    dp_sql fresh = {0};
    dp_buf is;
    dp_buf wanted;
    uint32_t from = 0;
    dp_buf_init(&is, SCHEMA_BYTES_MAX);
    dp_buf_init(&wanted, SCHEMA_BYTES_MAX);
    dp_status status = dp_sql_open(&fresh, ":memory:", NULL);
    if (status == DP_OK) {
        status = dp_sql_migrate(&fresh, file->steps, DP_STORE_VERSION, &from);
        status = status == DP_OK ? schema_text(&fresh, &wanted) : status;
        dp_sql_close(&fresh);
    }
    status = status == DP_OK ? schema_text(sql, &is) : status;
    if (status == DP_TOOBIG || (status == DP_OK && (is.size != wanted.size ||
                                                    memcmp(is.data, wanted.data, is.size) != 0))) {
        status = DP_CORRUPT;
    }
    dp_buf_close(&is);
    dp_buf_close(&wanted);
    return status;
}

static dp_status prepare_file(dp_sql *sql, const struct file *file, uint32_t *from)
{
    int64_t version = 0;
    DP_TRY(dp_sql_exec(sql, file->before));
    DP_TRY(dp_sql_number(sql, "PRAGMA user_version", &version));
    if (version > DP_STORE_VERSION) {
        return DP_VERSION; /* Only the write-ahead log said so. */
    }
    if (version > 0 && file == &meta_file) {
        DP_TRY(check_rows(sql)); /* Of chunks.db it would read every byte; there the hashes tell. */
    }
    DP_TRY(dp_sql_exec(sql, file->after));
    DP_TRY(dp_sql_migrate(sql, file->steps, DP_STORE_VERSION, from));
    if (*from > 0) { /* It was not made this instant. */
        DP_TRY(check_schema(sql, file));
    }
    dp_sql_trust(sql);
    return DP_OK;
}

static dp_status open_file(dp_store *store, dp_sql *sql, const struct file *file, uint32_t *from)
{
    char path[DP_DIR_PATH_MAX];
    header is;
    DP_TRY(read_header(&store->dir, file->name, &is, NULL));
    if (is_spoilt(&store->dir, &is)) {
        return DP_CORRUPT;
    }
    dp_dir_join(&store->dir, file->name, path);
    DP_TRY(dp_sql_open(sql, path, store->options.vfs));
    const dp_status status = prepare_file(sql, file, from);
    if (status != DP_OK) {
        dp_sql_close(sql);
    }
    return status;
}

/* A log or journal left beside a file that was moved would be played into the new one. */
static dp_status set_aside(dp_store *store, const struct file *file, char moved[64])
{
    static const char *const tails[] = {"-wal", "-journal"};
    char name[64];
    char ignored[64];
    DP_TRY(dp_dir_set_aside(&store->dir, file->name, moved));
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        snprintf(name, sizeof name, "%s%s", file->name, tails[i]);
        if (dp_dir_has(&store->dir, name)) {
            DP_TRY(dp_dir_set_aside(&store->dir, name, ignored));
        }
    }
    return DP_OK;
}

static bool damaged(dp_status status)
{
    return status == DP_CORRUPT;
}

static dp_status open_meta(dp_store *store, dp_store_report *report)
{
    uint32_t from = 0;
    const bool had_chunks = dp_dir_has(&store->dir, chunks_file.name);
    dp_status status = open_file(store, &store->meta, &meta_file, &from);
    if (damaged(status)) {
        DP_TRY(set_aside(store, &meta_file, report->moved_to));
        status = open_file(store, &store->meta, &meta_file, &from);
    }
    report->created = status == DP_OK && from == 0 && !had_chunks;
    return status;
}

/* True once the index of meta.db has been complete: a crash while it is rebuilt must not let the
 * sweep of the next start take the chunks that were not indexed yet. */
static bool is_ready(dp_store *store)
{
    dp_buf flag;
    dp_buf_init(&flag, 16);
    const bool ready = dp_store_get(store, READY_KEY, &flag) == DP_OK;
    dp_buf_close(&flag);
    return ready;
}

static dp_status make_ready(dp_store *store, dp_store_report *report)
{
    if (is_ready(store)) {
        return DP_OK;
    }
    int64_t has_chunks = 0;
    DP_TRY(dp_sql_number(&store->chunks, "SELECT EXISTS(SELECT 1 FROM chunk)", &has_chunks));
    report->meta_rebuilt = has_chunks != 0 || report->moved_to[0] != '\0';
    report->created = !report->meta_rebuilt; /* Also when the very first start was cut off. */
    DP_TRY(dp_store_reindex(store, report));
    return dp_store_put(store, READY_KEY, dp_view_text("1"));
}

static dp_status open_chunks(dp_store *store, dp_store_report *report)
{
    uint32_t from = 0;
    char moved[64] = "";
    dp_status status = open_file(store, &store->chunks, &chunks_file, &from);
    dp_buf flag;
    dp_buf_init(&flag, 16);
    const bool suspect = dp_store_get(store, DP_STORE_SUSPECT_KEY, &flag) == DP_OK;
    dp_buf_close(&flag);
    if (status == DP_OK && !suspect) {
        int64_t has_objects = 0;
        DP_TRY(dp_sql_number(&store->meta, "SELECT EXISTS(SELECT 1 FROM object)", &has_objects));
        report->chunks_rebuilt = from == 0 && has_objects != 0;
        return DP_OK;
    }
    if (status != DP_OK && !damaged(status)) {
        return status;
    }
    dp_sql_close(&store->chunks);
    DP_TRY(set_aside(store, &chunks_file, moved));
    DP_TRY(open_file(store, &store->chunks, &chunks_file, &from));
    report->chunks_rebuilt = true;
    return dp_store_salvage(store, moved, report);
}

static void open_ballast(dp_store *store)
{
    if (store->options.ballast_bytes > 0) {
        store->ballast_held = true; /* Until proven otherwise; reserve is idempotent. */
        if (dp_dir_reserve(&store->dir, DP_STORE_BALLAST_NAME, store->options.ballast_bytes) !=
            DP_OK) {
            store->ballast_held = false;
        }
    }
}

static dp_status open_all(dp_store *store, dp_store_report *report, dp_why *why)
{
    DP_TRY(peek(&store->dir, meta_file.name, why));
    DP_TRY(peek(&store->dir, chunks_file.name, why));
    DP_TRY(open_meta(store, report));
    DP_TRY(open_chunks(store, report));
    open_ballast(store);
    dp_status status = make_ready(store, report);
    if (status == DP_OK) {
        status = dp_store_recover(store, report);
    }
    /* On a full disk the store opens all the same: it can be read, and what recovery drops is
     * dropped next time. */
    return status == DP_NOSPACE ? DP_OK : status;
}

/* Which file is to be made anew: NULL when that has been done, or no file is to blame. */
static const struct file *damaged_file(const dp_store *store, const dp_store_report *report)
{
    if (store->meta.failed == DP_CORRUPT && report->moved_to[0] == '\0') {
        return &meta_file;
    }
    return store->chunks.failed == DP_CORRUPT && !report->chunks_rebuilt ? &chunks_file : NULL;
}

/* Damage that the checks do not see shows itself while both files are brought into one story: a
 * store that could then never be opened again would lose more than one of which a file is rebuilt.
 * Each file once. */
static dp_status open_or_rebuild(dp_store *store, dp_store_report *report, dp_why *why)
{
    dp_status status = open_all(store, report, why);
    const struct file *file = damaged_file(store, report);
    for (; damaged(status) && file != NULL; file = damaged_file(store, report)) {
        dp_store_report again = {0};
        memcpy(again.moved_to, report->moved_to, sizeof again.moved_to);
        dp_chunk_abandon(store);
        dp_chunk_done(store);
        if (file == &chunks_file) {
            DP_TRY(dp_chunk_suspect(store)); /* It is salvaged when it is opened. */
        }
        dp_sql_close(&store->chunks);
        dp_sql_close(&store->meta);
        *report = again;
        if (file == &meta_file) {
            DP_TRY(set_aside(store, &meta_file, report->moved_to));
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
            store->doomed =
                inner; /* Half of an inner body may be written: the whole must go back. */
        }
        return inner;
    }
    store->meta.full = false;
    const dp_status status = run_once(store, body, context);
    if (status == DP_NOSPACE && store->meta.full && store->ballast_held) {
        store->ballast_held = false;
        /* Where it could not be removed, or somebody did it already, the second try tells if there
         * is room. */
        DP_IGNORE(dp_dir_release(&store->dir, DP_STORE_BALLAST_NAME));
        return run_once(store, body, context);
    }
    return status;
}

/* ---- Small facts. */

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
    if (status == DP_OK) {
        dp_reader reader = dp_reader_of(dp_buf_view(&saved));
        const uint64_t before = dp_read_u64(&reader);
        last = before > last ? before : last;
    }
    dp_buf_close(&saved);
    if (status != DP_OK && status != DP_NOTFOUND) {
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
