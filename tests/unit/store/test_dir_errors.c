/* Every system call of store/dir.c, failing once. The calls below replace those of libc. */
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "store/inside.h"

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

int fchmod(int fd, mode_t mode)
{
    if (strikes("fchmod")) {
        return fails_with == 0 ? 0 : -1; /* 0: a disk without modes. */
    }
    return REAL(fchmod, int (*)(int, mode_t))(fd, mode);
}

int fstat(int fd, struct stat *out)
{
    return strikes("fstat") ? -1 : REAL(fstat, int (*)(int, struct stat *))(fd, out);
}

DIR *fdopendir(int fd)
{
    return strikes("fdopendir") ? NULL : REAL(fdopendir, DIR * (*)(int))(fd);
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
    if (strikes("read")) {
        return fails_with == 0 ? 0 : -1; /* 0: the file became shorter. */
    }
    return REAL(read, ssize_t(*)(int, void *, size_t))(fd, data, size);
}

/* Does not fail, but reports a network file system. */
int statfs(const char *path, struct statfs *out)
{
    const int result = REAL(statfs, int (*)(const char *, struct statfs *))(path, out);
    if (result == 0 && strikes("statfs")) {
        out->f_type = 0x6969;
    }
    return result;
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

/* One that others may enter. */
static dp_status try_open_wide(const char *path)
{
    CHECK((mkdir(path, 0700) == 0 || errno == EEXIST) && chmod(path, 0755) == 0);
    return try_open(path);
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
    const dp_status status = dp_dir_read_secret(path, "key", &out, NULL);
    CHECK(status != DP_OK || dp_view_equal(dp_buf_view(&out), dp_view_text("secret")));
    dp_buf_close(&out);
    return status;
}

/* A store whose meta.db and its log are noise. */
static dp_status try_damaged(const char *path)
{
    dp_store *store = NULL;
    dp_store_report report;
    const dp_store_options options = {0};
    char name[TEMPDIR_FILE_MAX + 32];
    static const char *const names[] = {"meta.db", "meta.db-wal"};
    CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
    for (size_t i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s/%s", path, names[i]);
        FILE *file = fopen(name, "wb");
        assert_non_null(file);
        for (int at = 0; at < 2000; at++) {
            fputs("noise", file);
        }
        assert_int_equal(fclose(file), 0);
    }
    const dp_status status = dp_store_open(&store, path, &options, &report, NULL);
    CHECK(status != DP_OK || report.meta_rebuilt);
    dp_store_close(store);
    return status;
}

/* A large write asks the disk for room; the disk reserve comes back. */
static dp_status try_room(const char *path)
{
    dp_store *store = NULL;
    const dp_store_options options = {.reserve_bytes = 10000};
    DP_TRY(dp_store_open(&store, path, &options, NULL, NULL));
    dp_status status = dp_store_admit(store, 2000000);
    if (status == DP_OK) {
        status = dp_store_refill_reserve(store);
    }
    dp_store_close(store);
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
    fail_each("fchmod", 1, EPERM, try_open_wide, DP_DENIED);
    fail_each("fchmod", 1, 0, try_open_wide, DP_DENIED);
    fail_each("fstat", 1, EIO, try_open, DP_IO);
    fail_each("fdopendir", 1, EIO, try_open, DP_IO);
    fail_each("fdopendir", 1, EIO, try_open_wide, DP_IO);
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
    fail_each("read", 1, 0, try_secret, DP_IO);
    fail_each("renameat", 1, EROFS, try_damaged, DP_DENIED);
    fail_each("renameat", 2, EROFS, try_damaged, DP_DENIED); /* The log beside it. */
    fail_each("fstatvfs", 1, EIO, try_room, DP_IO);
}

static void a_ballast_that_does_not_come_back_is_told(void **state)
{
    (void)state;
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    dp_store *store = NULL;
    const dp_store_options options = {.reserve_bytes = 10000};
    tempdir_open(&dir);
    tempdir_file(&dir, "store", path);
    failing = "posix_fallocate";
    fails_with = ENOSPC;
    fails_at = 1;
    calls = 0;
    CHECK_OK(dp_store_open(&store, path, &options, NULL, NULL)); /* It opens nevertheless. */
    CHECK(!dp_store_reserve_held(store));
    calls = 0;
    CHECK_STATUS(dp_store_refill_reserve(store), DP_NOSPACE);
    failing = "fstatvfs";
    fails_with = EIO;
    calls = 0;
    CHECK_STATUS(dp_store_refill_reserve(store), DP_IO);
    failing = NULL;
    CHECK(!dp_store_reserve_held(store));
    CHECK_OK(dp_store_refill_reserve(store));
    CHECK(dp_store_reserve_held(store));
    dp_store_close(store);
    tempdir_close(&dir);
}

static void a_network_file_system_is_told_with_its_path_and_the_way_out(void **state)
{
    (void)state;
    dp_why why;
    failing = "statfs";
    fails_at = 1;
    calls = 0;
    CHECK_STATUS(dp_dir_check_disk("/tmp", &why), DP_UNSUPPORTED);
    failing = NULL;
    CHECK(strstr(why.text, "/tmp") != NULL && strstr(why.text, "--network-dir") != NULL);
    CHECK_OK(dp_dir_check_disk("/tmp", &why));
}

static void a_wrong_folder_or_lock_file_is_reported(void **state)
{
    (void)state;
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    char lock[TEMPDIR_FILE_MAX + 8];
    dp_dir opened = {.fd = -1, .lock_fd = -1};
    dp_why why;
    tempdir_open(&dir);
    tempdir_file(&dir, "store", path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    CHECK_STATUS(dp_dir_open(&opened, path, &why), DP_IO);
    CHECK(strstr(why.text, "cannot open directory") != NULL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(lock, sizeof lock, "%s/lock", path);
    assert_int_equal(mkdir(lock, 0700), 0);
    CHECK_STATUS(dp_dir_open(&opened, path, &why), DP_IO);
    CHECK(strstr(why.text, "cannot open the lock file") != NULL);
    assert_int_equal(rmdir(lock), 0);
    CHECK_OK(dp_dir_open(&opened, path, &why));
    dp_dir_close(&opened);
    tempdir_close(&dir);
}

static void a_secret_longer_than_the_room_for_it_is_told(void **state)
{
    (void)state;
    tempdir dir;
    dp_buf out;
    tempdir_open(&dir);
    CHECK_OK(dp_dir_write_secret(dir.path, "key", dp_view_text("secret")));
    dp_buf_init(&out, 3);
    CHECK_STATUS(dp_dir_read_secret(dir.path, "key", &out, NULL), DP_TOOBIG);
    dp_buf_close(&out);
    tempdir_close(&dir);
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
    CHECK_STATUS(dp_dir_read_secret(path, "key", &out, NULL), DP_TOOBIG);
    dp_buf_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_of_the_system_that_fails_is_told_and_leaves_nothing_open),
        cmocka_unit_test(a_ballast_that_does_not_come_back_is_told),
        cmocka_unit_test(a_network_file_system_is_told_with_its_path_and_the_way_out),
        cmocka_unit_test(a_wrong_folder_or_lock_file_is_reported),
        cmocka_unit_test(a_secret_longer_than_the_room_for_it_is_told),
        cmocka_unit_test(a_path_that_is_too_long_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
