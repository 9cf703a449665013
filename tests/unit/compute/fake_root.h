/* A root of control groups that is not the machine's, for tests: "<root>/cgroup" stands for /proc/self/cgroup. Include it after
 * cmocka.h. */
#ifndef DP_TESTS_UNIT_COMPUTE_FAKE_ROOT_H
#define DP_TESTS_UNIT_COMPUTE_FAKE_ROOT_H

#include <stdio.h>
#include <sys/stat.h>

#include "compute/cgroup.h"
#include "tests/lib/tempdir.h"

static tempdir fake_root;

static int make_root(void **state)
{
    (void)state;
    tempdir_open(&fake_root);
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    tempdir_close(&fake_root);
    return 0;
}

static void put(const char *name, const char *text)
{
    char path[TEMPDIR_FILE_MAX];
    FILE *file = fopen(tempdir_file(&fake_root, name, path), "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void folder(const char *name)
{
    char path[TEMPDIR_FILE_MAX];
    assert_int_equal(mkdir(tempdir_file(&fake_root, name, path), 0700), 0);
}

/* Valid until the next call. */
static const dp_cgroup_place *fake_place(void)
{
    static char groups[TEMPDIR_FILE_MAX];
    static dp_cgroup_place place;
    place = (dp_cgroup_place){.groups = tempdir_file(&fake_root, "cgroup", groups),
                              .root = fake_root.path};
    return &place;
}

#define in_root(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

#endif
