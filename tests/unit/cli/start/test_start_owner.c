/* The user of a daemon that root starts in the directory of another user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/start/start_owner.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

enum { OTHER = 51001 }; /* without a name */

static tempdir dir;

static int setup(void **state)
{
    (void)state;
    tempdir_open(&dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tempdir_close(&dir);
    return 0;
}

static void make_it_anothers(dp_start_owner *owner)
{
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(chown(dir.path, OTHER, OTHER), 0);
    dp_start_owner_of(dir.path, owner);
}

static void the_own_directory_and_a_missing_one_change_nothing(void **state)
{
    (void)state;
    dp_start_owner owner;
    char none[TEMPDIR_FILE_MAX];
    dp_start_owner_of(dir.path, &owner);
    assert_false(owner.other);
    CHECK_OK(dp_start_owner_enter(&owner));
    dp_start_owner_leave(&owner);
    CHECK_OK(dp_start_owner_become(&owner));
    CHECK_OK(dp_start_owner_socket(&owner, tempdir_file(&dir, "run/s", none)));
    assert_int_not_equal(access(tempdir_file(&dir, "run", none), F_OK), 0);
    dp_start_owner_of(none, &owner);
    assert_false(owner.other);
}

static void files_are_made_and_links_followed_as_the_owner(void **state)
{
    (void)state;
    dp_start_owner owner;
    char path[TEMPDIR_FILE_MAX];
    struct stat info;
    make_it_anothers(&owner);
    assert_true(owner.other);
    assert_string_equal(owner.home, dir.path);
    CHECK_OK(dp_start_owner_enter(&owner));
    FILE *mine = fopen(tempdir_file(&dir, "log", path), "we");
    FILE *roots = fopen("/etc/shadow", "re");
    dp_start_owner_leave(&owner);
    assert_null(roots);
    assert_non_null(mine);
    fclose(mine);
    assert_true(stat(path, &info) == 0 && info.st_uid == OTHER && info.st_gid == OTHER);
    assert_true(geteuid() == 0 && getegid() == getgid());
}

static void the_folder_of_the_socket_is_the_owners_and_its_groups(void **state)
{
    (void)state;
    dp_start_owner owner;
    char path[TEMPDIR_FILE_MAX];
    struct stat info;
    make_it_anothers(&owner);
    const char *const socket = tempdir_file(&dir, "run/s", path);
    CHECK_OK(dp_start_owner_socket(&owner, socket));
    CHECK_OK(dp_start_owner_socket(&owner, socket)); /* It exists by then. */
    assert_int_equal(stat(tempdir_file(&dir, "run", path), &info), 0);
    assert_true(info.st_uid == OTHER && info.st_gid == OTHER && (info.st_mode & 0777) == 0750);
    CHECK_STATUS(dp_start_owner_socket(&owner, "/proc/none/s"), DP_IO);
}

static void the_owner_has_no_rights_of_root_left(void **state)
{
    (void)state;
    dp_start_owner owner;
    make_it_anothers(&owner);
    const pid_t child = fork();
    if (child == 0) {
        const bool became = dp_start_owner_become(&owner) == DP_OK && getuid() == OTHER &&
                            geteuid() == OTHER && getegid() == OTHER && getgroups(0, NULL) == 1 &&
                            setuid(0) != 0 && strcmp(getenv("HOME"), dir.path) == 0;
        _exit(became ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_own_directory_and_a_missing_one_change_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(files_are_made_and_links_followed_as_the_owner, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_folder_of_the_socket_is_the_owners_and_its_groups,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_owner_has_no_rights_of_root_left, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
