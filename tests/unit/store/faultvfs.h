/* A SQLite VFS over the default one that counts writes and, at a chosen one, cuts the power, fills
 * the disk or fails an fsync.
 *
 * Model of a power cut: writes since the last sync of a file are on disk or not, each 512-byte
 * sector for itself; reverted bytes beyond the old end are zero; a truncate happens as a whole or
 * not at all; what was never written is never damaged (SQLite calls it powersafe overwrite); after
 * the cut nothing more reaches the disk. */
#ifndef DP_TESTS_UNIT_STORE_FAULTVFS_H
#define DP_TESTS_UNIT_STORE_FAULTVFS_H

#include <sqlite3.h>
#include <unistd.h>

#include "tests/unit/store/shelf.h"

enum { FAULT_UNDO_MAX = 65536, FAULT_SECTOR = 512 };

typedef enum fault_kind { FAULT_NONE, FAULT_CUT, FAULT_FULL, FAULT_FSYNC } fault_kind;

struct fault_undo {
    char path[TEMPDIR_FILE_MAX];
    sqlite3_int64 offset;
    sqlite3_int64 size_before; /* Of the file. */
    uint8_t *old;              /* The bytes before the write; zero beyond the old end. */
    int size;
    bool truncated; /* Whole or not at all. */
    bool live;
};

static struct {
    fault_kind kind;
    const char *only;        /* Part of the path of the file it is about; NULL: all. */
    const char *while_there; /* FAULT_FULL lasts as long as this file exists; NULL: forever. */
    uint64_t ops;            /* Writes, truncates and syncs so far. */
    uint64_t at;             /* The op that fails; 0: none. */
    bool dead;
    bool lies;  /* Sync does nothing: a bad disk. */
    int unread; /* Every read of the byte unread_at of chunks.db gives this code; 0: none does. */
    sqlite3_int64 unread_at;
    struct fault_undo undo[FAULT_UNDO_MAX];
    unsigned n_undo;
} fault;

typedef struct fault_file {
    sqlite3_file base;
    char path[TEMPDIR_FILE_MAX];
} fault_file;

static sqlite3_vfs *fault_below;

static inline sqlite3_file *real_of(sqlite3_file *file)
{
    return (sqlite3_file *)(void *)((char *)file + sizeof(fault_file));
}

typedef enum fault_what { FAULT_GROW, FAULT_OVERWRITE, FAULT_SYNC } fault_what;

/* Counts one op; SQLITE_OK if it may continue. A full disk refuses only ops that make a file
 * grow. */
static inline int fault_op(const fault_file *file, fault_what what)
{
    if (fault.dead) {
        return SQLITE_IOERR_WRITE;
    }
    if (fault.only != NULL && strstr(file->path, fault.only) == NULL) {
        return SQLITE_OK;
    }
    fault.ops++;
    if (fault.at == 0 || fault.ops < fault.at) {
        return SQLITE_OK;
    }
    if (fault.kind == FAULT_CUT && fault.ops == fault.at) {
        fault.dead = true;
        return SQLITE_IOERR_WRITE;
    }
    if (fault.kind == FAULT_FULL && what == FAULT_GROW) {
        const bool over = fault.while_there != NULL && access(fault.while_there, F_OK) != 0;
        return over ? SQLITE_OK : SQLITE_FULL;
    }
    return fault.kind == FAULT_FSYNC && what == FAULT_SYNC ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static inline void fault_remember(fault_file *file, sqlite3_int64 offset, int size, bool truncated)
{
    if (fault.kind != FAULT_CUT || size <= 0) {
        return;
    }
    assert_true(fault.n_undo < FAULT_UNDO_MAX);
    struct fault_undo *undo = &fault.undo[fault.n_undo++];
    *undo =
        (struct fault_undo){.offset = offset, .size = size, .truncated = truncated, .live = true};
    memcpy(undo->path, file->path, sizeof undo->path);
    undo->old = calloc(1, (size_t)size);
    assert_non_null(undo->old);
    sqlite3_file *real = real_of(&file->base);
    real->pMethods->xFileSize(real, &undo->size_before);
    real->pMethods->xRead(real, undo->old, size, offset); /* A short read leaves zeros. */
}

static inline void fault_forget(const char *path)
{
    for (unsigned i = 0; i < fault.n_undo; i++) {
        if (path == NULL || strcmp(fault.undo[i].path, path) == 0) {
            free(fault.undo[i].old);
            fault.undo[i].old = NULL;
            fault.undo[i].live = false;
        }
    }
    while (fault.n_undo > 0 && !fault.undo[fault.n_undo - 1].live) {
        fault.n_undo--;
    }
}

static int fault_close(sqlite3_file *file)
{
    sqlite3_file *real = real_of(file);
    return real->pMethods != NULL ? real->pMethods->xClose(real) : SQLITE_OK;
}

static int fault_read(sqlite3_file *file, void *out, int size, sqlite3_int64 offset)
{
    const fault_file *own = (const fault_file *)(const void *)file;
    const char *const end = strstr(own->path, "chunks.db");
    if (fault.unread != 0 && end != NULL && strcmp(end, "chunks.db") == 0 &&
        fault.unread_at >= offset && fault.unread_at < offset + size) {
        return fault.unread;
    }
    return real_of(file)->pMethods->xRead(real_of(file), out, size, offset);
}

static int fault_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
    fault_file *own = (fault_file *)(void *)file;
    sqlite3_int64 end = 0;
    real_of(file)->pMethods->xFileSize(real_of(file), &end);
    const int code = fault_op(own, offset + size > end ? FAULT_GROW : FAULT_OVERWRITE);
    if (code != SQLITE_OK) {
        return code;
    }
    fault_remember(own, offset, size, false);
    return real_of(file)->pMethods->xWrite(real_of(file), data, size, offset);
}

static int fault_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    fault_file *own = (fault_file *)(void *)file;
    sqlite3_int64 before = 0;
    const int code = fault_op(own, FAULT_OVERWRITE);
    if (code != SQLITE_OK) {
        return code;
    }
    real_of(file)->pMethods->xFileSize(real_of(file), &before);
    fault_remember(own, size, (int)(before - size), true);
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int fault_sync(sqlite3_file *file, int flags)
{
    fault_file *own = (fault_file *)(void *)file;
    (void)flags; /* The real sync is left out: the cut is ours. */
    const int code = fault_op(own, FAULT_SYNC);
    if (code == SQLITE_OK && !fault.lies) {
        fault_forget(own->path);
    }
    return code;
}

static int fault_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int fault_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int fault_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int fault_reserved(sqlite3_file *file, int *out)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}

static int fault_control(sqlite3_file *file, int op, void *argument)
{
    (void)file;
    (void)op;
    (void)argument;
    return SQLITE_NOTFOUND;
}

static int fault_sector(sqlite3_file *file)
{
    (void)file;
    return FAULT_SECTOR;
}

static int fault_characteristics(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

/* Version 1: no shared memory, so that a store that would need it fails here. */
static const sqlite3_io_methods fault_methods = {
    .iVersion = 1,
    .xClose = fault_close,
    .xRead = fault_read,
    .xWrite = fault_write,
    .xTruncate = fault_truncate,
    .xSync = fault_sync,
    .xFileSize = fault_size,
    .xLock = fault_lock,
    .xUnlock = fault_unlock,
    .xCheckReservedLock = fault_reserved,
    .xFileControl = fault_control,
    .xSectorSize = fault_sector,
    .xDeviceCharacteristics = fault_characteristics,
};

static int fault_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                      int *out_flags)
{
    (void)vfs;
    fault_file *own = (fault_file *)(void *)file;
    memset(own, 0, sizeof *own);
    memset(real_of(file), 0, (size_t)fault_below->szOsFile);
    snprintf(own->path, sizeof own->path, "%s", path != NULL ? path : "");
    const int code = fault_below->xOpen(fault_below, path, real_of(file), flags, out_flags);
    file->pMethods = real_of(file)->pMethods != NULL ? &fault_methods : NULL;
    return code;
}

static int fault_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    (void)vfs;
    if (fault.dead) {
        return SQLITE_IOERR_DELETE;
    }
    fault_forget(path);
    return fault_below->xDelete(fault_below, path, sync);
}

/* Register as "fault", once. */
static inline void fault_install(void)
{
    static sqlite3_vfs vfs;
    if (fault_below == NULL) {
        fault_below = sqlite3_vfs_find(NULL);
        vfs = *fault_below;
        vfs.zName = "fault";
        vfs.pNext = NULL;
        vfs.szOsFile = (int)sizeof(fault_file) + fault_below->szOsFile;
        vfs.xOpen = fault_open;
        vfs.xDelete = fault_delete;
        assert_int_equal(sqlite3_vfs_register(&vfs, 0), SQLITE_OK);
    }
}

static inline void fault_set(fault_kind kind, uint64_t at, const char *only)
{
    fault_forget(NULL);
    fault.kind = kind;
    fault.at = at;
    fault.only = only;
    fault.while_there = NULL;
    fault.ops = 0;
    fault.dead = false;
    fault.lies = false;
    fault.unread = 0;
}

static inline void fault_revert(const struct fault_undo *undo, dp_rng *rng)
{
    FILE *file = fopen(undo->path, "r+b");
    if (file == NULL) {
        return;
    }
    const bool all = undo->truncated;
    const bool none = all && dp_rng_below(rng, 2) == 0;
    for (int at = 0; at < undo->size && !none; at += FAULT_SECTOR) {
        if (all || dp_rng_below(rng, 2) == 0) {
            const int size = undo->size - at < FAULT_SECTOR ? undo->size - at : FAULT_SECTOR;
            fseek(file, (long)(undo->offset + at), SEEK_SET);
            fwrite(undo->old + at, 1, (size_t)size, file);
        }
    }
    fclose(file);
}

/* The power was cut: decides which unsynced writes are on the disk. Call after the store was
 * closed. */
static inline void fault_settle(uint64_t seed)
{
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (unsigned i = fault.n_undo; i > 0; i--) {
        if (fault.undo[i - 1].live) {
            fault_revert(&fault.undo[i - 1], &rng);
        }
    }
    fault_set(FAULT_NONE, 0, NULL);
}

#endif
