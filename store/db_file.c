#include "store/db_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/schema.h"

/* EXCLUSIVE before the first read: no shared-memory file, so that a full disk can still be opened.
 * secure_delete is on in Debian's build and would write everything twice. mmap stays off: an I/O
 * error would be a signal. */
#define COMMON_PRAGMAS                                                                             \
    "PRAGMA locking_mode=EXCLUSIVE; PRAGMA secure_delete=OFF; PRAGMA synchronous=FULL; PRAGMA "    \
    "mmap_size=0;"                                                                                 \
    "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY;"

enum { SCHEMA_BYTES_MAX = 64 * 1024 };

const dp_store_file dp_store_meta_file = {
    .name = "meta.db",
    .before = COMMON_PRAGMAS "PRAGMA page_size=4096; PRAGMA cache_size=-512;",
    .after = "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=256; PRAGMA "
             "journal_size_limit=4194304;",
    .steps = dp_schema_meta,
};
const dp_store_file dp_store_chunks_file = {
    .name = "chunks.db",
    .before = COMMON_PRAGMAS
    "PRAGMA page_size=65536; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA cache_size=-8192;",
    .after = "PRAGMA journal_mode=TRUNCATE;",
    .steps = dp_schema_chunks,
};

static uint32_t big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* The header of a database file; there is false for any other file. */
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

/* True if the header has wrong bits, as opposed to a file of another program or of a later version:
 * SQLite would open it only for reading, or the application id is foreign beside other files of
 * this store, or no program has such a version. */
static bool is_spoilt(const dp_dir *dir, const header *is)
{
    enum { FORMAT_MAX = 2, VERSION_MAX = DP_STORE_VERSION + 1000 };
    const bool named = is->application == DP_SCHEMA_APPLICATION_ID || is->application == 0;
    return is->there &&
           (is->write_version > FORMAT_MAX || is->read_version > FORMAT_MAX ||
            is->version > VERSION_MAX || (!named && dp_dir_has(dir, DP_STORE_RESERVE_NAME)));
}

dp_status dp_store_file_peek(const dp_dir *dir, const char *name, dp_why *why)
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

/* The status of one line that a check gives. SQLite reports a page that it could not read as a
 * finding too, with an error code; such a file is not damaged and must not be set aside. */
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

/* Runs one of SQLite's checks. DP_CORRUPT unless it answers "ok". */
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

/* Every page may be sound while the file mixes two moments: the log has lost its end, and some
 * pages were written from it. An index then names rows that its table lacks, so that writing them
 * again fails. Rebuilds such an index from its table. */
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

/* The whole schema of an open file as one text. */
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

/* DP_CORRUPT unless the schema is the one that the steps make. SQLite accepts a schema with a wrong
 * bit, such as another name of a column, and every query on that column then fails at every
 * start. */
static dp_status check_schema(dp_sql *sql, const dp_store_file *file)
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

static dp_status prepare_file(dp_sql *sql, const dp_store_file *file, uint32_t *from)
{
    int64_t version = 0;
    DP_TRY(dp_sql_exec(sql, file->before));
    DP_TRY(dp_sql_number(sql, "PRAGMA user_version", &version));
    if (version > DP_STORE_VERSION) {
        return DP_VERSION; /* The write-ahead log has it; the header of the file does not yet. */
    }
    if (version > 0 && file == &dp_store_meta_file) {
        DP_TRY(check_rows(sql)); /* In chunks.db it would read every byte; hashes check those. */
    }
    DP_TRY(dp_sql_exec(sql, file->after));
    DP_TRY(dp_sql_migrate(sql, file->steps, DP_STORE_VERSION, from));
    if (*from > 0) { /* It existed before. */
        DP_TRY(check_schema(sql, file));
    }
    dp_sql_trust(sql);
    return DP_OK;
}

dp_status dp_store_file_open(dp_store *store, dp_sql *sql, const dp_store_file *file,
                             uint32_t *from)
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

uint64_t dp_store_file_bytes(const dp_dir *dir, const char *name)
{
    struct stat info;
    const bool there = fstatat(dir->fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
    return there && info.st_size > 0 ? (uint64_t)info.st_size : 0;
}

dp_status dp_store_file_set_aside(dp_store *store, const dp_store_file *file, char moved[64])
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
