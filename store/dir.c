#include "store/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"

enum {
    SET_ASIDE_MAX = 1000, /* more damaged files than this need a person */
    ENTRIES_MAX = 10000,  /* of a directory that are looked at: a store has a dozen */
    OTHERS = S_IRWXG | S_IRWXO
};

static dp_status disk_status(void)
{
    switch (errno) {
    case ENOSPC:
    case EDQUOT:
        return DP_NOSPACE;
    case EACCES:
    case EPERM:
    case EROFS:
        return DP_DENIED;
    case ENOENT:
        return DP_NOTFOUND;
    case ENOMEM:
        return DP_NOMEM;
    default:
        return DP_IO;
    }
}

static dp_status take_lock(int dir_fd, const char *path, int *lock_fd, dp_why *why)
{
    const int fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return dp_why_set(why, disk_status(), "cannot open the lock file in %s: %s", path,
                          strerror(errno));
    }
    char pid[24] = {0};
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const bool held = errno == EWOULDBLOCK;
        const ssize_t got = pread(fd, pid, sizeof pid - 1, 0);
        close(fd);
        if (!held) {
            return dp_why_set(why, DP_IO, "cannot lock %s", path);
        }
        return dp_why_set(why, DP_BUSY,
                          "%s is in use by process %ld; stop it or choose another directory", path,
                          got > 0 ? strtol(pid, NULL, 10) : 0);
    }
    const int size = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    /* The pid is for people; the lock itself holds without it, also on a full disk. */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)size, 0) != size) {
        errno = 0;
    }
    *lock_fd = fd;
    return DP_OK;
}

/* From the header linux/magic.h and the sources of the file systems that it leaves out. */
bool dp_dir_is_network(uint64_t kind)
{
    static const uint32_t kinds[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xfe534d42, /* SMB 2 and 3 */
        0xff534d42, /* CIFS */
        0x01021997, /* 9P, as between virtual machines */
        0x00c36400, /* Ceph */
        0x5346414f, /* AFS */
        0x6b414653, /* AFS of the kernel */
        0x73757245, /* Coda */
        0x564c,     /* NCP */
        0x0bd00bd0, /* Lustre */
        0x01161970, /* GFS2 */
        0x7461636f, /* OCFS2 */
        0x47504653, /* GPFS */
        0x19830326, /* BeeGFS */
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if ((kind & UINT32_MAX) == kinds[i]) {
            return true;
        }
    }
    return false;
}

dp_status dp_dir_check_disk(const char *path, dp_why *why)
{
    struct statfs is;
    char above[DP_DIR_PATH_MAX];
    snprintf(above, sizeof above, "%s", path);
    while (statfs(above, &is) != 0) {
        const int error = errno;
        char *const slash = strrchr(above, '/');
        if (error != ENOENT || slash == NULL || slash == above) {
            return DP_OK; /* dp_dir_open reports the error. */
        }
        *slash = '\0';
    }
    if (!dp_dir_is_network((uint64_t)is.f_type)) {
        return DP_OK;
    }
    return dp_why_set(
        why, DP_UNSUPPORTED,
        "%s lies on a network file system (kind %#llx), where locks and syncs may not "
        "hold; choose a local disk with --dir, or --network-dir to do it all the same",
        path, (unsigned long long)is.f_type & UINT32_MAX);
}

static dp_status foreign_owner(const char *path, uid_t owner, const char *or_else, dp_why *why)
{
    return dp_why_set(why, DP_DENIED,
                      "%s belongs to the user with uid %u, and dpnoded runs as uid %u; run it as "
                      "that user%s",
                      path, (unsigned)owner, (unsigned)geteuid(), or_else);
}

static bool is_key(const char *name)
{
    const size_t size = strlen(name);
    return size > 4 && strcmp(name + size - 4, ".key") == 0;
}

/* Names that may be in a directory before the first start: those that a new disk and `dpnode up`
 * leave there. */
static bool is_expected(const char *name)
{
    static const char *const names[] = {".", "..", "lost+found", "dpnoded.log"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void tighten_file(dp_dir *dir, const char *name)
{
    struct stat info;
    if (fstatat(dir->fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
        info.st_uid == geteuid() && (info.st_mode & OTHERS) != 0 && !is_key(name) &&
        fchmodat(dir->fd, name, info.st_mode & S_IRWXU, 0) == 0) {
        dir->n_tightened++;
    }
}

/* Goes through the entries. tighten: their modes; else *foreign: one is there that a store does not
 * have. */
static dp_status walk(dp_dir *dir, bool tighten, bool *foreign)
{
    const int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const list = fd >= 0 ? fdopendir(fd) : NULL;
    if (list == NULL) {
        const dp_status status = disk_status();
        if (fd >= 0) {
            close(fd);
        }
        return status;
    }
    const struct dirent *entry = readdir(list);
    for (int i = 0; entry != NULL && i < ENTRIES_MAX; i++, entry = readdir(list)) {
        *foreign = *foreign || !is_expected(entry->d_name);
        if (tighten) {
            tighten_file(dir, entry->d_name);
        }
    }
    closedir(list);
    return DP_OK;
}

/* Never make a home directory or /tmp private because somebody named it. */
static dp_status check_use(dp_dir *dir, unsigned mode, dp_why *why)
{
    bool foreign = false;
    const dp_status status = dp_dir_has(dir, "lock") ? DP_OK : walk(dir, false, &foreign);
    if (status != DP_OK) {
        return dp_why_set(why, status, "cannot list directory %s", dir->path);
    }
    if (foreign) {
        return dp_why_set(why, DP_DENIED,
                          "others may enter %s (mode %04o), which holds other files and no store; "
                          "give the node a directory of its own with --dir, or chmod 700 %s",
                          dir->path, mode, dir->path);
    }
    return DP_OK;
}

/* *mode: its bits. Changes nothing. */
static dp_status check_private(dp_dir *dir, unsigned *mode, dp_why *why)
{
    struct stat info;
    if (fstat(dir->fd, &info) != 0) {
        return dp_why_set(why, disk_status(), "cannot look at directory %s: %s", dir->path,
                          strerror(errno));
    }
    *mode = info.st_mode & 07777;
    if (info.st_uid != geteuid()) {
        return foreign_owner(dir->path, info.st_uid,
                             ", or give it a directory of its own with --dir", why);
    }
    return (*mode & OTHERS) != 0 ? check_use(dir, *mode, why) : DP_OK;
}

/* Only the owner may enter the directory of the keys. */
static dp_status make_private(dp_dir *dir, dp_why *why)
{
    struct stat info;
    unsigned mode = 0;
    bool any = false;
    DP_TRY(check_private(dir, &mode, why));
    if ((mode & OTHERS) != 0) {
        if (fchmod(dir->fd, mode & S_IRWXU) != 0 || fstat(dir->fd, &info) != 0 ||
            (info.st_mode & OTHERS) != 0) {
            return dp_why_set(why, DP_DENIED,
                              "others may enter %s (mode %04o), and its mode cannot be changed; "
                              "choose a directory on a disk of this machine with --dir",
                              dir->path, mode);
        }
        dir->mode_was = mode;
    }
    /* Files made under another umask; a process that has one open, or another name of it, keeps
     * it. */
    const dp_status status = walk(dir, true, &any);
    return status == DP_OK ? DP_OK : dp_why_set(why, status, "cannot list directory %s", dir->path);
}

dp_status dp_dir_check_private(const char *path, dp_why *why)
{
    unsigned mode = 0;
    dp_dir dir = {.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .lock_fd = -1};
    if (dir.fd < 0) {
        return DP_OK;
    }
    snprintf(dir.path, sizeof dir.path, "%s", path);
    const dp_status status = check_private(&dir, &mode, why);
    close(dir.fd);
    return status;
}

dp_status dp_dir_open(dp_dir *dir, const char *path, dp_why *why)
{
    dp_dir opened = {.fd = -1, .lock_fd = -1};
    if (strlen(path) + 64 >= sizeof opened.path) {
        return dp_why_set(why, DP_TOOBIG, "the path of the store directory is too long: %.80s...",
                          path);
    }
    snprintf(opened.path, sizeof opened.path, "%s", path);
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return dp_why_set(why, disk_status(), "cannot make directory %s: %s", path,
                          strerror(errno));
    }
    opened.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened.fd < 0) {
        return dp_why_set(why, disk_status(), "cannot open directory %s: %s", path,
                          strerror(errno));
    }
    dp_status status = make_private(&opened, why);
    if (status == DP_OK) {
        status = take_lock(opened.fd, path, &opened.lock_fd, why);
    }
    if (status != DP_OK) {
        close(opened.fd);
        return status;
    }
    *dir = opened;
    return DP_OK;
}

void dp_dir_close(dp_dir *dir)
{
    if (dir->path[0] == '\0') {
        return;
    }
    /* The file stays: removing it would let two processes hold two different locks. */
    close(dir->lock_fd);
    close(dir->fd);
    *dir = (dp_dir){.fd = -1, .lock_fd = -1};
}

void dp_dir_join(const dp_dir *dir, const char *name, char path[DP_DIR_PATH_MAX])
{
    const int size = snprintf(path, DP_DIR_PATH_MAX, "%s/%s", dir->path, name);
    dp_assert(size > 0 && size < DP_DIR_PATH_MAX);
}

bool dp_dir_has(const dp_dir *dir, const char *name)
{
    struct stat info;
    return fstatat(dir->fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

dp_status dp_dir_aside_name(const dp_dir *dir, const char *name, char moved[64])
{
    char target[64];
    for (int n = 1; n <= SET_ASIDE_MAX; n++) {
        snprintf(target, sizeof target, "%.40s.corrupt-%d", name, n);
        if (!dp_dir_has(dir, target)) {
            memcpy(moved, target, sizeof target);
            return DP_OK;
        }
    }
    return DP_TOOBIG;
}

dp_status dp_dir_set_aside(const dp_dir *dir, const char *name, char moved[64])
{
    char target[64];
    DP_TRY(dp_dir_aside_name(dir, name, target));
    if (renameat(dir->fd, name, dir->fd, target) != 0 || fsync(dir->fd) != 0) {
        return disk_status();
    }
    memcpy(moved, target, sizeof target);
    return DP_OK;
}

dp_status dp_dir_free_bytes(const dp_dir *dir, uint64_t *bytes)
{
    struct statvfs info;
    if (fstatvfs(dir->fd, &info) != 0) {
        return disk_status();
    }
    *bytes = (uint64_t)info.f_bavail * (uint64_t)info.f_frsize;
    return DP_OK;
}

dp_status dp_dir_reserve(const dp_dir *dir, const char *name, uint64_t size)
{
    const int fd = openat(dir->fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return disk_status();
    }
    errno = posix_fallocate(fd, 0, (off_t)size); /* Returns the error, does not set it. */
    if (errno == 0 && ftruncate(fd, (off_t)size) == 0 && fsync(fd) == 0) {
        close(fd);
        return DP_OK;
    }
    const dp_status status = disk_status();
    close(fd);
    unlinkat(dir->fd, name, 0);
    return status;
}

dp_status dp_dir_release(const dp_dir *dir, const char *name)
{
    if (unlinkat(dir->fd, name, 0) != 0) {
        return disk_status();
    }
    return DP_OK;
}

/* ---- Secret files. */

static dp_status sync_folder(const char *dir)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return disk_status();
    }
    const dp_status status = fsync(fd) == 0 ? DP_OK : disk_status();
    close(fd);
    return status;
}

dp_status dp_dir_write_secret(const char *dir, const char *name, dp_view bytes)
{
    char temporary[DP_DIR_PATH_MAX];
    char path[DP_DIR_PATH_MAX];
    if (snprintf(temporary, sizeof temporary, "%s/%s.new", dir, name) >= (int)sizeof temporary ||
        snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path) {
        return DP_TOOBIG;
    }
    unlink(temporary); /* Left by a crash, maybe with another mode. */
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return disk_status();
    }
    dp_status status = dp_fd_write(fd, bytes) == DP_OK && fsync(fd) == 0 ? DP_OK : disk_status();
    if (close(fd) != 0 && status == DP_OK) {
        status = disk_status();
    }
    if (status == DP_OK && rename(temporary, path) != 0) {
        status = disk_status();
    }
    if (status != DP_OK) {
        unlink(temporary);
        return status;
    }
    return sync_folder(dir);
}

dp_status dp_dir_delete_secret(const char *dir, const char *name)
{
    char path[DP_DIR_PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path) {
        return DP_TOOBIG;
    }
    if (unlink(path) != 0 && errno != ENOENT) {
        return disk_status();
    }
    return sync_folder(dir); /* Also if an earlier call has deleted it and could not sync. */
}

dp_status dp_dir_rename_secret(const char *dir, const char *name, const char *to)
{
    char path[DP_DIR_PATH_MAX];
    char target[DP_DIR_PATH_MAX];
    struct stat info;
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path ||
        snprintf(target, sizeof target, "%s/%s", dir, to) >= (int)sizeof target) {
        return DP_TOOBIG;
    }
    if (lstat(target, &info) == 0) {
        return DP_EXISTS;
    }
    return rename(path, target) == 0 ? sync_folder(dir) : disk_status();
}

static dp_status check_secret(int fd, const char *path, struct stat *info, dp_why *why)
{
    if (fstat(fd, info) != 0) {
        return disk_status();
    }
    if (!S_ISREG(info->st_mode)) {
        return dp_why_set(why, DP_DENIED, "%s is not a file", path);
    }
    if (info->st_uid != geteuid()) {
        return foreign_owner(path, info->st_uid, "", why);
    }
    if ((info->st_mode & OTHERS) != 0) {
        return dp_why_set(why, DP_DENIED,
                          "others may read %s (mode %04o), so its secret may be known; if it is "
                          "not, chmod 600 %s",
                          path, (unsigned)info->st_mode & 07777, path);
    }
    return DP_OK;
}

static dp_status read_secret(int fd, const char *path, dp_buf *out, dp_why *why)
{
    struct stat info;
    DP_TRY(check_secret(fd, path, &info, why));
    if (info.st_size > 1024L * 1024) {
        return DP_TOOBIG;
    }
    const size_t size = (size_t)info.st_size;
    uint8_t *room = NULL;
    DP_TRY(dp_buf_reserve(out, size, &room));
    size_t done = 0;
    while (done < size) {
        const ssize_t got = read(fd, room + done, size - done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got == 0 ? DP_IO : disk_status();
        }
        done += (size_t)got;
    }
    dp_buf_commit(out, size);
    return DP_OK;
}

dp_status dp_dir_read_secret(const char *dir, const char *name, dp_buf *out, dp_why *why)
{
    char path[DP_DIR_PATH_MAX];
    if (why != NULL) {
        why->text[0] = '\0';
    }
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path) {
        return DP_TOOBIG;
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        const dp_status status = errno == ELOOP ? DP_DENIED : disk_status();
        const char *const text = strerror(errno);
        struct stat info;
        return lstat(path, &info) == 0 && info.st_uid != geteuid()
                   ? foreign_owner(path, info.st_uid, "", why)
                   : dp_why_set(why, status, "%s: %s", path, text);
    }
    const dp_status status = read_secret(fd, path, out, why);
    close(fd);
    if (status != DP_OK && why != NULL && why->text[0] == '\0') {
        dp_why_set(why, status, "%s: %s", path, dp_status_text(status));
    }
    return status;
}
