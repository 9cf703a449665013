#include "tests/store/platter.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

typedef struct bytes {
    uint8_t *data;
    int64_t size;
    int64_t capacity;
} bytes;

/* One write or truncate since the last sync, in order. */
typedef struct change {
    struct change *next;
    int64_t offset; /* of a write; the new size of a truncate */
    int64_t size;   /* 0: a truncate */
    uint8_t data[];
} change;

typedef struct file {
    char name[DP_PLATTER_NAME_MAX]; /* "": this place is free */
    bool there;                     /* as the program sees it */
    bool on_disk;                   /* the entry of the folder is durable */
    bool syncs_folder; /* with its next sync, as SQLite's own VFS does for new journals */
    bytes now;         /* as the program sees it */
    bytes safe;        /* as it was at the last sync */
    change *first;
    change *last;
} file;

struct dp_platter {
    sqlite3_vfs vfs;
    char vfs_name[32];
    dp_platter_sync sync;
    dp_platter_fault fault;
    uint64_t at;
    uint64_t count;
    bool lasts;
    bool dead;
    file files[DP_PLATTER_FILES_MAX];
};

typedef struct handle {
    sqlite3_file base;
    dp_platter *platter;
    file *file;
} handle;

static bool taken[DP_PLATTERS_MAX];

/* ---- bytes ---- */

static void bytes_resize(bytes *b, int64_t size)
{
    dp_assert(size <= DP_PLATTER_FILE_BYTES_MAX);
    if (size > b->capacity) {
        const int64_t capacity = size + size / 2 + 4096;
        b->data = realloc(b->data, (size_t)capacity);
        dp_assert(b->data != NULL);
        b->capacity = capacity;
    }
    if (size > b->size) {
        memset(b->data + b->size, 0, (size_t)(size - b->size));
    }
    b->size = size;
}

static void bytes_write(bytes *b, int64_t offset, const uint8_t *data, int64_t size)
{
    if (offset + size > b->size) {
        bytes_resize(b, offset + size);
    }
    if (size > 0) {
        memcpy(b->data + offset, data, (size_t)size);
    }
}

static void bytes_close(bytes *b)
{
    free(b->data);
    *b = (bytes){0};
}

/* ---- files ---- */

static void drop_changes(file *f)
{
    while (f->first != NULL) {
        change *gone = f->first;
        f->first = gone->next;
        free(gone);
    }
    f->last = NULL;
}

static void add_change(file *f, int64_t offset, const void *data, int64_t size)
{
    change *c = malloc(sizeof *c + (size_t)size);

    dp_assert(c != NULL);
    c->next = NULL;
    c->offset = offset;
    c->size = size;
    if (size != 0) {
        memcpy(c->data, data, (size_t)size);
    }
    if (f->last != NULL) {
        f->last->next = c;
    } else {
        f->first = c;
    }
    f->last = c;
}

static void file_close(file *f)
{
    drop_changes(f);
    bytes_close(&f->now);
    bytes_close(&f->safe);
    memset(f, 0, sizeof *f);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static file *find_file(dp_platter *p, const char *path)
{
    for (int i = 0; i < DP_PLATTER_FILES_MAX; i++) {
        if (p->files[i].name[0] != '\0' && strcmp(p->files[i].name, last_part(path)) == 0) {
            return &p->files[i];
        }
    }
    return NULL;
}

static file *make_file(dp_platter *p, const char *path)
{
    for (int i = 0; i < DP_PLATTER_FILES_MAX; i++) {
        file *f = &p->files[i];
        if (f->name[0] == '\0') {
            snprintf(f->name, sizeof f->name, "%s", last_part(path));
            return f;
        }
    }
    return NULL;
}

/* ---- faults ---- */

/* Counts a call of this kind; true if it must fail. */
static bool strikes(dp_platter *p, dp_platter_fault kind)
{
    if (p->fault != kind) {
        return false;
    }
    p->count++;
    return p->at != 0 && (p->lasts ? p->count >= p->at : p->count == p->at);
}

/* A change of the disk: true if the power goes now. */
static bool cuts(dp_platter *p)
{
    if (strikes(p, DP_PLATTER_CUT)) {
        p->dead = true;
    }
    return p->dead;
}

/* ---- sqlite3_io_methods ---- */

static int on_close(sqlite3_file *base)
{
    (void)base;
    return SQLITE_OK;
}

static int on_read(sqlite3_file *base, void *out, int size, sqlite3_int64 offset)
{
    const handle *h = (const handle *)(const void *)base;
    const bytes *now = &h->file->now;
    int64_t there = now->size > offset ? now->size - offset : 0;

    if (h->platter->dead || strikes(h->platter, DP_PLATTER_READ_EIO)) {
        return SQLITE_IOERR_READ;
    }
    if (there > size) {
        there = size;
    }
    if (strikes(h->platter, DP_PLATTER_READ_SHORT)) {
        there /= 2;
    }
    if (there > 0) {
        memcpy(out, now->data + offset, (size_t)there);
    }
    memset((uint8_t *)out + there, 0, (size_t)(size - there));
    return there == size ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int on_write(sqlite3_file *base, const void *data, int size, sqlite3_int64 offset)
{
    const handle *h = (const handle *)(const void *)base;
    file *f = h->file;

    if (h->platter->dead || strikes(h->platter, DP_PLATTER_WRITE_EIO)) {
        return SQLITE_IOERR_WRITE;
    }
    if (offset + size > f->now.size && strikes(h->platter, DP_PLATTER_FULL)) {
        return SQLITE_FULL;
    }
    add_change(f, offset, data, size); /* In the middle of a cut, part of it may arrive. */
    if (cuts(h->platter)) {
        return SQLITE_IOERR_WRITE;
    }
    bytes_write(&f->now, offset, data, size);
    return SQLITE_OK;
}

static int on_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    const handle *h = (const handle *)(const void *)base;

    if (h->platter->dead || strikes(h->platter, DP_PLATTER_WRITE_EIO)) {
        return SQLITE_IOERR_TRUNCATE;
    }
    add_change(h->file, size, NULL, 0);
    if (cuts(h->platter)) {
        return SQLITE_IOERR_TRUNCATE;
    }
    bytes_resize(&h->file->now, size);
    return SQLITE_OK;
}

static void apply(bytes *to, const change *c)
{
    if (c->size == 0) {
        bytes_resize(to, c->offset);
    } else {
        bytes_write(to, c->offset, c->data, c->size);
    }
}

/* Makes the files that were created durable, and the removals of files final. */
static void sync_folder(dp_platter *p)
{
    for (int i = 0; i < DP_PLATTER_FILES_MAX; i++) {
        file *f = &p->files[i];
        f->on_disk = f->there;
        if (f->name[0] != '\0' && !f->there) {
            file_close(f);
        }
    }
}

static int on_sync(sqlite3_file *base, int flags)
{
    const handle *h = (const handle *)(const void *)base;
    file *f = h->file;

    (void)flags;
    if (h->platter->dead || strikes(h->platter, DP_PLATTER_SYNC_EIO) || cuts(h->platter)) {
        return SQLITE_IOERR_FSYNC;
    }
    if (h->platter->sync == DP_PLATTER_LIES) {
        return SQLITE_OK;
    }
    for (const change *c = f->first; c != NULL; c = c->next) {
        apply(&f->safe, c);
    }
    drop_changes(f);
    if (f->syncs_folder) {
        f->syncs_folder = false;
        sync_folder(h->platter);
    }
    return SQLITE_OK;
}

static int on_size(sqlite3_file *base, sqlite3_int64 *size)
{
    const handle *h = (const handle *)(const void *)base;

    if (strikes(h->platter, DP_PLATTER_OPEN_EIO)) {
        return SQLITE_IOERR_FSTAT;
    }
    *size = h->file->now.size;
    return SQLITE_OK;
}

static int on_lock(sqlite3_file *base, int level)
{
    (void)base;
    (void)level;
    return SQLITE_OK;
}

static int on_reserved(sqlite3_file *base, int *out)
{
    (void)base;
    *out = 0;
    return SQLITE_OK;
}

/* SQLite shows each pragma to the VFS first: {result, name, value}. */
static int on_control(sqlite3_file *base, int op, void *argument)
{
    const handle *h = (const handle *)(const void *)base;

    if (op == SQLITE_FCNTL_PRAGMA && h->platter->sync >= DP_PLATTER_NORMAL) {
        char **words = argument;
        if (sqlite3_stricmp(words[1], "synchronous") == 0 && words[2] != NULL) {
            snprintf(words[2], strlen(words[2]) + 1, "%s",
                     h->platter->sync == DP_PLATTER_NORMAL ? "1" : "0");
        }
    }
    return SQLITE_NOTFOUND;
}

static int on_sector(sqlite3_file *base)
{
    (void)base;
    return DP_PLATTER_SECTOR;
}

static int on_characteristics(sqlite3_file *base)
{
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

/* Version 1: no shared memory, so that a store that would need it fails here. */
static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_size,
    .xLock = on_lock,
    .xUnlock = on_lock,
    .xCheckReservedLock = on_reserved,
    .xFileControl = on_control,
    .xSectorSize = on_sector,
    .xDeviceCharacteristics = on_characteristics,
};

/* ---- sqlite3_vfs ---- */

static dp_platter *platter_of(sqlite3_vfs *vfs)
{
    return (dp_platter *)vfs->pAppData;
}

static int on_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags,
                   int *out_flags)
{
    dp_platter *p = platter_of(vfs);
    handle *h = (handle *)(void *)base;
    file *f = NULL;

    base->pMethods = NULL;
    if (path == NULL || p->dead || strikes(p, DP_PLATTER_OPEN_EIO)) {
        return SQLITE_CANTOPEN;
    }
    f = find_file(p, path);
    if (f == NULL || !f->there) {
        if ((flags & SQLITE_OPEN_CREATE) == 0 || cuts(p)) {
            return SQLITE_CANTOPEN;
        }
        f = f != NULL ? f : make_file(p, path);
        if (f == NULL) {
            return SQLITE_CANTOPEN;
        }
        f->there = true;
        f->syncs_folder = (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0;
        if (f->safe.size > 0) {
            add_change(f, 0, NULL, 0); /* Removed before, and perhaps not yet on the disk. */
        }
    }
    h->platter = p;
    h->file = f;
    base->pMethods = &methods;
    if (out_flags != NULL) {
        *out_flags = flags;
    }
    return SQLITE_OK;
}

static int on_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    dp_platter *p = platter_of(vfs);
    file *f = find_file(p, path);

    if (p->dead || strikes(p, DP_PLATTER_OPEN_EIO)) {
        return SQLITE_IOERR_DELETE;
    }
    if (f == NULL || !f->there) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    if (cuts(p)) {
        return SQLITE_IOERR_DELETE;
    }
    bytes_resize(&f->now, 0);
    drop_changes(f);
    f->there = false;
    if (!f->on_disk) {
        file_close(f);
    } else if (sync != 0 && p->sync != DP_PLATTER_LIES) {
        sync_folder(p);
    }
    return SQLITE_OK;
}

static int on_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    const file *f = find_file(platter_of(vfs), path);

    (void)flags;
    /* SQLite takes an empty file for none when it asks whether a journal is there. */
    *out = f != NULL && f->there && f->now.size > 0;
    return SQLITE_OK;
}

static int on_full_path(sqlite3_vfs *vfs, const char *path, int size, char *out)
{
    (void)vfs;
    return snprintf(out, (size_t)size, "%s", path) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

/* SQLite asks its default VFS and not this one; what it draws decides nothing but salts. */
static int on_randomness(sqlite3_vfs *vfs, int size, char *out)
{
    (void)vfs;
    memset(out, 0, (size_t)size);
    return size;
}

static int on_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

static int on_time(sqlite3_vfs *vfs, double *day)
{
    (void)vfs;
    *day = 2460000.0;
    return SQLITE_OK;
}

static int on_error(sqlite3_vfs *vfs, int size, char *out)
{
    (void)vfs;
    (void)size;
    (void)out;
    return 0;
}

/* ---- outside ---- */

dp_platter *dp_platter_open(dp_platter_sync sync)
{
    dp_platter *p = NULL;
    uint32_t number = 0;

    while (number < DP_PLATTERS_MAX && taken[number]) {
        number++;
    }
    if (number == DP_PLATTERS_MAX || (p = calloc(1, sizeof *p)) == NULL) {
        return NULL;
    }
    snprintf(p->vfs_name, sizeof p->vfs_name, "platter-%u", number);
    p->sync = sync;
    p->vfs = (sqlite3_vfs){.iVersion = 1,
                           .szOsFile = (int)sizeof(handle),
                           .mxPathname = 1024,
                           .zName = p->vfs_name,
                           .pAppData = p,
                           .xOpen = on_open,
                           .xDelete = on_delete,
                           .xAccess = on_access,
                           .xFullPathname = on_full_path,
                           .xRandomness = on_randomness,
                           .xSleep = on_sleep,
                           .xCurrentTime = on_time,
                           .xGetLastError = on_error};
    if (sqlite3_vfs_register(&p->vfs, 0) != SQLITE_OK) {
        free(p);
        return NULL;
    }
    taken[number] = true;
    return p;
}

void dp_platter_close(dp_platter *p)
{
    if (p != NULL) {
        sqlite3_vfs_unregister(&p->vfs);
        taken[strtoul(p->vfs_name + strlen("platter-"), NULL, 10)] = false;
        dp_platter_wipe(p);
        free(p);
    }
}

const char *dp_platter_vfs(const dp_platter *p)
{
    return p->vfs_name;
}

void dp_platter_arm(dp_platter *p, dp_platter_fault fault, uint64_t at, bool lasts)
{
    p->fault = fault;
    p->at = at;
    p->lasts = lasts;
    p->count = 0;
}

uint64_t dp_platter_count(const dp_platter *p)
{
    return p->count;
}

bool dp_platter_dead(const dp_platter *p)
{
    return p->dead;
}

void dp_platter_kill(dp_platter *p)
{
    p->dead = true;
}

void dp_platter_wipe(dp_platter *p)
{
    for (int i = 0; i < DP_PLATTER_FILES_MAX; i++) {
        file_close(&p->files[i]);
    }
}

uint64_t dp_platter_bytes(const dp_platter *p)
{
    uint64_t sum = 0;

    for (int i = 0; i < DP_PLATTER_FILES_MAX; i++) {
        sum += (uint64_t)p->files[i].now.size;
    }
    return sum;
}

/* ---- what is left after a cut ---- */

/* How this cut went; one of them for all files. */
typedef struct wreck {
    uint32_t keeps;        /* of 256: chance of a sector to be there */
    uint32_t tears;        /* of 256: chance of a sector that is there to be torn, or noise */
    uint64_t whole_before; /* changes that are there as a whole; they count over all files */
    bool ordered;          /* and none after them */
    uint64_t seen;
} wreck;

static wreck draw_wreck(const dp_platter *p, dp_rng *rng)
{
    static const uint32_t keeps[] = {16, 128, 128, 240};
    const uint64_t kind = dp_rng_below(rng, 8);
    uint64_t changes = 0;
    wreck w = {.keeps = keeps[dp_rng_below(rng, 4)], .tears = dp_rng_below(rng, 2) == 0 ? 0 : 24};

    for (int i = 0; i < DP_PLATTER_FILES_MAX; i++) {
        for (const change *c = p->files[i].first; c != NULL; c = c->next) {
            changes++;
        }
    }
    if (kind == 0) {
        w.whole_before = UINT64_MAX; /* SIGKILL: the system still has it all. */
    } else if (kind == 1) {
        w.ordered = true;
    } else if (kind == 2) {
        w.ordered = true;
        w.whole_before = dp_rng_below(rng, changes + 1);
    }
    return w;
}

/* One sector of a write: data of size bytes for offset. */
static void settle_sector(bytes *to, int64_t offset, const uint8_t *data, int64_t size,
                          const wreck *w, dp_rng *rng)
{
    uint8_t noise[DP_PLATTER_SECTOR];

    if (dp_rng_below(rng, 256) >= w->keeps) {
        return;
    }
    if (dp_rng_below(rng, 256) >= w->tears) {
        bytes_write(to, offset, data, size);
    } else if (dp_rng_below(rng, 4) != 0) {
        bytes_write(to, offset, data, (int64_t)dp_rng_below(rng, (uint64_t)size));
    } else {
        for (int64_t i = 0; i < size; i++) {
            noise[i] = (uint8_t)dp_rng_next(rng);
        }
        bytes_write(to, offset, noise, size);
    }
}

static void settle_change(bytes *to, const change *c, wreck *w, dp_rng *rng)
{
    if (w->seen++ < w->whole_before) {
        apply(to, c);
        return;
    }
    if (w->ordered && w->seen != w->whole_before + 1) {
        return;
    }
    if (c->size == 0) {
        if (dp_rng_below(rng, 256) < w->keeps) {
            apply(to, c);
        }
        return;
    }
    if (c->offset + c->size > to->size && dp_rng_below(rng, 2) == 0) {
        bytes_resize(to, c->offset + c->size); /* The size came to the disk, the bytes not. */
    }
    for (int64_t done = 0; done < c->size;) {
        const int64_t offset = c->offset + done;
        const int64_t left = DP_PLATTER_SECTOR - offset % DP_PLATTER_SECTOR;
        const int64_t size = c->size - done < left ? c->size - done : left;
        settle_sector(to, offset, c->data + done, size, w, rng);
        done += size;
    }
}

static void settle_file(file *f, wreck *w, dp_rng *rng)
{
    const bool kill = w->whole_before == UINT64_MAX;
    const bool is_there = kill                     ? f->there
                          : f->there == f->on_disk ? f->there
                                                   : dp_rng_below(rng, 2) == 0;

    for (const change *c = f->first; c != NULL; c = c->next) {
        settle_change(&f->safe, c, w, rng);
    }
    if (!is_there) {
        file_close(f);
        return;
    }
    drop_changes(f);
    bytes_resize(&f->now, 0);
    bytes_write(&f->now, 0, f->safe.data, f->safe.size);
    f->there = true;
    f->on_disk = true;
}

void dp_platter_settle(dp_platter *p, dp_rng *rng)
{
    wreck w = draw_wreck(p, rng);

    for (int i = 0; i < DP_PLATTER_FILES_MAX; i++) {
        if (p->files[i].name[0] != '\0') {
            settle_file(&p->files[i], &w, rng);
        }
    }
    p->dead = false;
    dp_platter_arm(p, DP_PLATTER_SOUND, 0, false);
}
