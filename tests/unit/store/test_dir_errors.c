/* Every call of the system that store/dir.c makes, failing once. The calls below stand in front of libc's. */
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "store/dir.h"

static const char *failing; /* name of the call, or NULL */
static int fails_with;
static unsigned fails_at;
static unsigned calls;

static bool strikes(const char *name)
{
    if (failing == NULL || strcmp(failing, name) != 0 || ++calls != fails_at) {
        return false;
    }
    errno = fails_with;
    return true;
}

/* The next definition of the same name. */
#define REAL(name, type) ((type)(uintptr_t)dlsym(RTLD_NEXT, #name))

int fsync(int fd)
{
    return strikes("fsync") ? -1 : REAL(fsync, int (*)(int))(fd);
}

int ftruncate(int fd, off_t size)
{
    return strikes("ftruncate") ? -1 : REAL(ftruncate, int (*)(int, off_t))(fd, size);
}

int renameat(int from, const char *old, int to, const char *new)
{
    return strikes("renameat")
               ? -1
               : REAL(renameat, int (*)(int, const char *, int, const char *))(from, old, to, new);
}

int rename(const char *old, const char *new)
{
    return strikes("rename") ? -1 : REAL(rename, int (*)(const char *, const char *))(old, new);
}

int unlinkat(int fd, const char *name, int flags)
{
    return strikes("unlinkat") ? -1
                               : REAL(unlinkat, int (*)(int, const char *, int))(fd, name, flags);
}

int mkdir(const char *path, mode_t mode)
{
    return strikes("mkdir") ? -1 : REAL(mkdir, int (*)(const char *, mode_t))(path, mode);
}

int flock(int fd, int what)
{
    return strikes("flock") ? -1 : REAL(flock, int (*)(int, int))(fd, what);
}

int fstatvfs(int fd, struct statvfs *out)
{
    return strikes("fstatvfs") ? -1 : REAL(fstatvfs, int (*)(int, struct statvfs *))(fd, out);
}

int posix_fallocate(int fd, off_t from, off_t size)
{
    return strikes("posix_fallocate")
               ? fails_with
               : REAL(posix_fallocate, int (*)(int, off_t, off_t))(fd, from, size);
}

ssize_t write(int fd, const void *data, size_t size)
{
    return strikes("write") ? -1
                            : REAL(write, ssize_t(*)(int, const void *, size_t))(fd, data, size);
}

ssize_t read(int fd, void *data, size_t size)
{
    return strikes("read") ? -1 : REAL(read, ssize_t(*)(int, void *, size_t))(fd, data, size);
}

/* ---- what is tried ---- */

static dp_status try_open(const char *path)
{
    dp_dir dir = {.fd = -1, .lock_fd = -1};
    dp_why why;
    const dp_status status = dp_dir_open(&dir, path, &why);
    dp_dir_close(&dir);
    return status;
}

static dp_status try_files(const char *path)
{
    dp_dir dir = {.fd = -1, .lock_fd = -1};
    char moved[64];
    uint64_t bytes = 0;
    dp_status status = dp_dir_open(&dir, path, NULL);
    if (status == DP_OK) {
        status = dp_dir_free_bytes(&dir, &bytes);
    }
    if (status == DP_OK) {
        status = dp_dir_reserve(&dir, "ballast", 10000);
    }
    if (status == DP_OK) {
        status = dp_dir_reserve(&dir, "old", 10);
    }
    if (status == DP_OK) {
        status = dp_dir_set_aside(&dir, "old", moved);
    }
    if (status == DP_OK) {
        status = dp_dir_release(&dir, "ballast");
    }
    dp_dir_close(&dir);
    return status;
}

static dp_status try_secret(const char *path)
{
    dp_buf out;
    DP_TRY(dp_dir_write_secret(path, "key", dp_view_text("secret")));
    dp_buf_init(&out, 100);
    const dp_status status = dp_dir_read_secret(path, "key", &out);
    CHECK(status != DP_OK || dp_view_equal(dp_buf_view(&out), dp_view_text("secret")));
    dp_buf_close(&out);
    return status;
}

static unsigned open_files(void)
{
    unsigned count = 0;
    struct stat info;
    for (int fd = 0; fd < 256; fd++) {
        count += fstat(fd, &info) == 0 ? 1 : 0;
    }
    return count;
}

static void fail_each(const char *name, unsigned at, int error, dp_status (*try)(const char *path),
                      dp_status wanted)
{
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    tempdir_file(&dir, "store", path);
    if (try == try_secret) {
        CHECK(mkdir(path, 0700) == 0);
    }
    const unsigned files = open_files();
    failing = name;
    fails_at = at;
    fails_with = error;
    calls = 0;
    const dp_status status = try(path);
    failing = NULL;
    if (status != wanted) {
        print_error("%s, errno %d: %s\n", name, error, dp_status_name(status));
    }
    CHECK_STATUS(status, wanted);
    assert_int_equal(open_files(), files); /* Nothing stays open, ... */
    CHECK_OK(try(path));                   /* ... and it can be tried again. */
    tempdir_close(&dir);
}

static void every_call_of_the_system_that_fails_is_told_and_leaves_nothing_open(void **state)
{
    (void)state;
    fail_each("mkdir", 1, EACCES, try_open, DP_DENIED);
    fail_each("mkdir", 1, ENOENT, try_open, DP_NOTFOUND);
    fail_each("flock", 1, EWOULDBLOCK, try_open, DP_BUSY);
    fail_each("flock", 1, EIO, try_open, DP_IO);
    fail_each("ftruncate", 1, ENOSPC, try_open, DP_OK); /* The pid is for people. */
    fail_each("fstatvfs", 1, EIO, try_files, DP_IO);
    fail_each("posix_fallocate", 1, ENOSPC, try_files, DP_NOSPACE);
    fail_each("posix_fallocate", 1, EDQUOT, try_files, DP_NOSPACE);
    fail_each("ftruncate", 2, EIO, try_files, DP_IO);
    fail_each("fsync", 1, EIO, try_files, DP_IO);
    fail_each("renameat", 1, EROFS, try_files, DP_DENIED);
    fail_each("fsync", 3, EIO, try_files, DP_IO);
    fail_each("unlinkat", 1, EPERM, try_files, DP_DENIED);
    fail_each("write", 1, ENOSPC, try_secret, DP_NOSPACE);
    fail_each("write", 1, EINTR, try_secret, DP_OK); /* Goes on. */
    fail_each("fsync", 1, EIO, try_secret, DP_IO);
    fail_each("rename", 1, EIO, try_secret, DP_IO);
    fail_each("fsync", 2, EIO, try_secret, DP_IO);
    fail_each("read", 1, EINTR, try_secret, DP_OK);
    fail_each("read", 1, ENOMEM, try_secret, DP_NOMEM);
}

static void a_path_that_is_too_long_is_told(void **state)
{
    char path[2 * DP_DIR_PATH_MAX];
    dp_buf out;
    (void)state;
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    CHECK_STATUS(try_open(path), DP_TOOBIG);
    CHECK_STATUS(dp_dir_write_secret(path, "key", dp_view_text("secret")), DP_TOOBIG);
    dp_buf_init(&out, 100);
    CHECK_STATUS(dp_dir_read_secret(path, "key", &out), DP_TOOBIG);
    dp_buf_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_of_the_system_that_fails_is_told_and_leaves_nothing_open),
        cmocka_unit_test(a_path_that_is_too_long_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
