/* A root folder other than the machine's, new for each test that is listed with in_root. Include it
 * after cmocka.h. */
#ifndef DP_TESTS_LIB_FAKE_ROOT_H
#define DP_TESTS_LIB_FAKE_ROOT_H

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/tempdir.h"

static tempdir fake_root;

static inline int fake_root_make(void **state)
{
    (void)state;
    tempdir_open(&fake_root);
    return 0;
}

static inline int fake_root_remove(void **state)
{
    (void)state;
    tempdir_close(&fake_root);
    return 0;
}

/* Makes a folder below the root, with its parents. */
static inline void folder(const char *name)
{
    char path[TEMPDIR_FILE_MAX];
    tempdir_file(&fake_root, name, path);
    char *at = path + strlen(fake_root.path) + 1;
    while ((at = strchr(at, '/')) != NULL) {
        *at = '\0';
        (void)mkdir(path, 0700); /* It may exist. */
        *at = '/';
        at++;
    }
    assert_int_equal(mkdir(path, 0700), 0);
}

/* A file below the root, written or overwritten. */
static inline void put(const char *name, const char *text)
{
    char path[TEMPDIR_FILE_MAX];
    FILE *file = fopen(tempdir_file(&fake_root, name, path), "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

#define in_root(test) cmocka_unit_test_setup_teardown(test, fake_root_make, fake_root_remove)

#endif
