#include "compute/machine/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"

enum { PIECE_BYTES = 1 << 20 };

static dp_status failed(dp_why *why, const char *what, const char *path)
{
    const int error = errno;
    const dp_status status = error == ENOENT ? DP_NOTFOUND : error == ENOSPC ? DP_NOSPACE : DP_IO;
    char text[128];
    return dp_why_set(why, status, "cannot %s %s: %s", what, path,
                      strerror_r(error, text, sizeof text));
}

static dp_status read_all(int fd, const char *path, dp_buf *out, dp_why *why)
{
    for (;;) {
        uint8_t *room;
        const size_t left = out->max - out->size;
        if (left == 0) {
            uint8_t more;
            return read(fd, &more, 1) == 0
                       ? DP_OK
                       : dp_why_set(why, DP_TOOBIG, "%s is larger than %zu bytes", path, out->max);
        }
        const size_t size = left < PIECE_BYTES ? left : PIECE_BYTES;
        DP_TRY(dp_buf_reserve(out, size, &room));
        const ssize_t n = read(fd, room, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return failed(why, "read", path);
        }
        if (n == 0) {
            return DP_OK;
        }
        dp_buf_commit(out, (size_t)n);
    }
}

dp_status dp_file_open(const char *path, int *fd, dp_why *why)
{
    /* Without O_NONBLOCK opening a pipe without a writer would block; it has no effect on files. */
    const int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opened < 0) {
        return failed(why, "open", path);
    }
    struct stat info;
    if (fstat(opened, &info) == 0 && S_ISFIFO(info.st_mode)) {
        close(opened);
        return dp_why_set(why, DP_IO, "%s is a pipe, not a file; write what comes of it to one",
                          path);
    }
    *fd = opened;
    return DP_OK;
}

dp_status dp_file_open_once(const char *path, int *fd, dp_why *why)
{
    const int opened = open(path, O_RDONLY | O_CLOEXEC);
    if (opened < 0) {
        return failed(why, "open", path);
    }
    *fd = opened;
    return DP_OK;
}

bool dp_file_is_pipe(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISFIFO(info.st_mode);
}

dp_status dp_file_read_fd(int fd, const char *name, dp_buf *out, dp_why *why)
{
    return read_all(fd, name, out, why);
}

dp_status dp_file_read(const char *path, dp_buf *out, dp_why *why)
{
    int fd = -1;
    DP_TRY(dp_file_open(path, &fd, why));
    const dp_status status = read_all(fd, path, out, why);
    close(fd);
    return status;
}

static dp_status map_open(int fd, const char *path, dp_view *bytes, dp_why *why)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return failed(why, "look at", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return dp_why_set(why, DP_IO, "%s is no file", path);
    }
    *bytes = dp_view_of(NULL, 0);
    if (info.st_size == 0) {
        return DP_OK;
    }
    void *const at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) {
        return failed(why, "map", path);
    }
    *bytes = dp_view_of(at, (size_t)info.st_size);
    return DP_OK;
}

dp_status dp_file_map_path(const char *path, dp_view *bytes, dp_why *why)
{
    int fd = -1;
    DP_TRY(dp_file_open(path, &fd, why));
    const dp_status status = map_open(fd, path, bytes, why);
    close(fd);
    return status;
}

dp_status dp_file_map(const char *folder, const char *name, dp_view *bytes, dp_why *why)
{
    char path[PATH_MAX];
    const int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (size < 0 || (size_t)size >= sizeof path) {
        return dp_why_set(why, DP_BADARG, "the path %s is too long", folder);
    }
    return dp_file_map_path(path, bytes, why);
}

void dp_file_unmap(dp_view bytes)
{
    if (bytes.size > 0) {
        munmap((void *)(uintptr_t)bytes.data, bytes.size);
    }
}

/* A new file, in a folder where others may write: a link that waits under the name is removed, and
 * none is followed. durable: the bytes are on the disk when it returns. */
static dp_status write_new(const char *path, dp_view bytes, bool durable, dp_why *why)
{
    unlink(path); /* The rest of a process that was killed, which had this process's number. */
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0) {
        return failed(why, "create", path);
    }
    flock(fd, LOCK_EX); /* So that nobody sweeps it; without locks nothing is swept. */
    dp_status status = dp_fd_write(fd, bytes) == DP_OK ? DP_OK : failed(why, "write", path);
    if (status == DP_OK && durable && fsync(fd) != 0) {
        status = failed(why, "sync", path);
    }
    if (close(fd) != 0 && status == DP_OK) {
        status = failed(why, "close", path);
    }
    return status;
}

static dp_status path_in(const char *folder, const char *name, char out[PATH_MAX], dp_why *why)
{
    const int size = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return size >= 0 && size < PATH_MAX
               ? DP_OK
               : dp_why_set(why, DP_BADARG, "the path %s is too long", folder);
}

static bool is_half_of(const char *entry, const char *name)
{
    const size_t size = strlen(name);
    if (entry[0] != '.' || strncmp(entry + 1, name, size) != 0 || entry[size + 1] != '.') {
        return false;
    }
    const char *const number = entry + size + 2;
    return number[0] != '\0' && strspn(number, "0123456789") == strlen(number);
}

/* Removes what processes that were killed left of this file: nobody holds a lock on it. */
static void sweep_halves(const char *folder, const char *name)
{
    DIR *const entries = opendir(folder);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        if (!is_half_of(entry->d_name, name)) {
            continue;
        }
        const int at = dirfd(entries);
        const int fd = openat(at, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            unlinkat(at, entry->d_name, 0);
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    if (entries != NULL) {
        closedir(entries);
    }
}

/* Writes beside the file and renames: what stood under the name is replaced, never written to. */
static dp_status replace(const char *folder, const char *name, dp_view bytes, bool durable,
                         dp_why *why)
{
    char own[NAME_MAX + 1]; /* Others may replace the same file now. */
    char half[PATH_MAX];
    char path[PATH_MAX];
    snprintf(own, sizeof own, ".%s.%ld", name, (long)getpid());
    DP_TRY(path_in(folder, own, half, why));
    DP_TRY(path_in(folder, name, path, why));
    sweep_halves(folder, name);
    dp_status status = write_new(half, bytes, durable, why);
    if (status == DP_OK && rename(half, path) != 0) {
        status = failed(why, "rename", half);
    }
    if (status != DP_OK) {
        unlink(half);
    }
    return status;
}

dp_status dp_file_write(const char *folder, const char *name, dp_view bytes, dp_why *why)
{
    return replace(folder, name, bytes, false, why);
}

dp_status dp_file_replace(const char *folder, const char *name, dp_view bytes, dp_why *why)
{
    DP_TRY(replace(folder, name, bytes, true, why));
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const dp_status status = fd >= 0 && fsync(fd) == 0 ? DP_OK : failed(why, "sync", folder);
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

bool dp_folder_is(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

dp_status dp_folder_make(const char *path, dp_why *why)
{
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        return failed(why, "make the folder", path);
    }
    return DP_OK;
}

static bool is_trusted(const struct stat *info)
{
    return info->st_uid == geteuid() || info->st_uid == 0;
}

dp_status dp_folder_make_own(const char *path, dp_why *why)
{
    struct stat link;
    struct stat folder;
    DP_TRY(dp_folder_make(path, why));
    if (lstat(path, &link) != 0 || stat(path, &folder) != 0) {
        return failed(why, "use the folder", path);
    }
    if (!S_ISDIR(folder.st_mode)) {
        return dp_why_set(why, DP_BADARG, "%s is no folder: give another one", path);
    }
    if (!is_trusted(&link) || !is_trusted(&folder)) {
        return dp_why_set(why, DP_DENIED,
                          "the folder %.300s belongs to user %ld, who could change what is written "
                          "to it: give one that does not exist yet",
                          path, (long)(is_trusted(&link) ? folder.st_uid : link.st_uid));
    }
    return DP_OK;
}

/* ---- the files of a folder ---- */

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the path of a regular file; ignores others. */
static dp_status add_path(dp_file_list *list, const char *folder, const char *name, size_t most,
                          dp_why *why)
{
    char path[PATH_MAX];
    struct stat info;
    const int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (size < 0 || (size_t)size >= sizeof path) {
        return dp_why_set(why, DP_BADARG, "the path %s is too long", folder);
    }
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) {
        return DP_OK;
    }
    if (list->count == most) {
        return dp_why_set(why, DP_TOOBIG, "%s has more than %zu files", folder, most);
    }
    char *const copy = dp_alloc(1, (size_t)size + 1);
    if (copy == NULL) {
        return dp_why_set(why, DP_NOMEM, "no memory for a list of files");
    }
    memcpy(copy, path, (size_t)size + 1);
    list->paths[list->count] = copy;
    list->count++;
    list->bytes += (uint64_t)info.st_size;
    return DP_OK;
}

dp_status dp_file_list_open(dp_file_list *list, const char *folder, size_t most, dp_why *why)
{
    *list = (dp_file_list){.count = 0};
    DIR *const entries = opendir(folder);
    if (entries == NULL) {
        return failed(why, "open", folder);
    }
    list->paths = dp_alloc(most, sizeof *list->paths);
    if (list->paths == NULL) {
        closedir(entries);
        return dp_why_set(why, DP_NOMEM, "no memory for a list of files");
    }
    dp_status status = DP_OK;
    for (const struct dirent *entry = readdir(entries); entry != NULL && status == DP_OK;
         entry = readdir(entries)) {
        if (entry->d_name[0] != '.') {
            status = add_path(list, folder, entry->d_name, most, why);
        }
    }
    closedir(entries);
    if (status != DP_OK) {
        dp_file_list_close(list);
        return status;
    }
    qsort(list->paths, list->count, sizeof *list->paths, by_bytes);
    return DP_OK;
}

void dp_file_list_close(dp_file_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        dp_free(list->paths[i]);
    }
    dp_free(list->paths);
    *list = (dp_file_list){.count = 0};
}
