#include "tests/lib/tempdir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/check.h"

void tempdir_in_memory(void)
{
    if (access("/dev/shm", W_OK) == 0) {
        assert_int_equal(setenv("TMPDIR", "/dev/shm", 1), 0);
    }
}

void tempdir_open(tempdir *dir)
{
    const char *const parent = getenv("TMPDIR");
    const int size = snprintf(dir->path, sizeof dir->path, "%s/dpnode-test-XXXXXX",
                              parent != NULL && parent[0] != '\0' ? parent : "/tmp");

    if (size < 0 || (size_t)size >= sizeof dir->path || mkdtemp(dir->path) == NULL) {
        fail_msg("no temporary folder at %s", dir->path);
    }
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void tempdir_close(tempdir *dir)
{
    if (dir->path[0] != '\0') {
        assert_int_equal(nftw(dir->path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
        dir->path[0] = '\0';
    }
}

const char *tempdir_file(const tempdir *dir, const char *name, char *out)
{
    const int size = snprintf(out, TEMPDIR_FILE_MAX, "%s/%s", dir->path, name);

    if (size < 0 || size >= TEMPDIR_FILE_MAX) {
        fail_msg("path too long: %s", name);
    }
    return out;
}
