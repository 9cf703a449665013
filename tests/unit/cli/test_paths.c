/* The standard places of files, and folders as they are made and removed. Places that the
 * environment names are tested in test_print.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/paths.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

static void forget_environment(void)
{
    static const char *const names[] = {"DPNODE_DIR",      "DPNODE_SOCKET",  "DPNODE_CONFIG",
                                        "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unsetenv(names[i]);
    }
}

static void root_has_the_folders_of_the_system(void **state)
{
    char path[DP_CLI_PATH_MAX];
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    forget_environment();
    dp_path_dir(NULL, path);
    assert_string_equal(path, "/var/lib/dpnode");
    dp_path_socket(path);
    assert_string_equal(path, "/run/dpnode/dpnode.sock");
}

/* Of another user, for as long as the test runs. */
static void a_user_has_folders_of_the_own_home(void **state)
{
    char path[DP_CLI_PATH_MAX];
    (void)state;
    forget_environment();
    setenv("HOME", "/home/ann", 1);
    if (geteuid() == 0 && seteuid(65534) != 0) {
        skip();
    }
    dp_path_dir(NULL, path);
    assert_string_equal(path, "/home/ann/.local/state/dpnode");
    dp_path_socket(path);
    assert_string_equal(path, "/home/ann/.local/state/dpnode/dpnode.sock");
    setenv("XDG_STATE_HOME", "/state", 1);
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    dp_path_dir(NULL, path);
    assert_string_equal(path, "/state/dpnode");
    dp_path_socket(path);
    assert_string_equal(path, "/run/user/7/dpnode/dpnode.sock");
    setenv("XDG_STATE_HOME", "relative", 1); /* Such are to be ignored. */
    setenv("XDG_RUNTIME_DIR", "", 1);
    dp_path_dir(NULL, path);
    assert_string_equal(path, "/home/ann/.local/state/dpnode");
    dp_path_socket(path);
    assert_string_equal(path, "/home/ann/.local/state/dpnode/dpnode.sock");
    assert_int_equal(seteuid(getuid()), 0);
    forget_environment();
}

static void write_file(const char *path, const char *text)
{
    FILE *const file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

/* dpnoded reads the same file. */
static void the_configuration_file_names_directory_and_socket(void **state)
{
    tempdir dir;
    char file[TEMPDIR_FILE_MAX];
    char path[DP_CLI_PATH_MAX];
    (void)state;
    forget_environment();
    tempdir_open(&dir);
    setenv("DPNODE_CONFIG", tempdir_file(&dir, "dpnoded.conf", file), 1);
    write_file(file, "# dir = /no\n dir =  /my disk/dp \nsocket=/run/dp.s\nsocket = /2\n");
    assert_true(dp_path_dir(NULL, path));
    assert_string_equal(path, "/my disk/dp");
    assert_true(dp_path_socket(path));
    assert_string_equal(path, "/run/dp.s");
    assert_false(dp_path_dir("/given", path)); /* Others win over it, and dpnoded must be told. */
    assert_string_equal(path, "/given");
    setenv("DPNODE_DIR", "/variable", 1);
    setenv("DPNODE_SOCKET", "", 1);
    assert_false(dp_path_dir(NULL, path));
    assert_string_equal(path, "/variable");
    assert_false(dp_path_socket(path)); /* dpnoded would take the empty path. */
    assert_string_equal(path, "/run/dp.s");
    unsetenv("DPNODE_DIR");
    write_file(file, "nice\ndir = /after a mistake\n");
    dp_path_dir(NULL, path);
    assert_string_not_equal(path, "/after a mistake");
    forget_environment();
    tempdir_close(&dir);
}

static void a_program_is_found_beside_this_one_or_by_its_bare_name(void **state)
{
    char path[DP_CLI_PATH_MAX];
    char self[DP_CLI_PATH_MAX];
    (void)state;
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(size > 0);
    self[size] = '\0';
    dp_path_program(strrchr(self, '/') + 1, path);
    assert_string_equal(path, self);
    dp_path_program("dpnode-that-is-not-there", path);
    assert_string_equal(path, "dpnode-that-is-not-there");
}

static void a_path_that_is_too_long_is_refused_and_not_cut(void **state)
{
    char path[DP_CLI_PATH_MAX];
    char long_path[DP_CLI_PATH_MAX + 10];
    (void)state;
    memset(long_path, 'x', sizeof long_path);
    long_path[0] = '/';
    long_path[DP_CLI_PATH_MAX - 1] = '\0';
    CHECK_OK(dp_path_absolute(long_path, path));
    assert_string_equal(path, long_path);
    CHECK_STATUS(dp_path_absolute(long_path + 1, path), DP_TOOBIG); /* With the folder before. */
    long_path[DP_CLI_PATH_MAX - 1] = 'x';
    long_path[DP_CLI_PATH_MAX] = '\0';
    CHECK_STATUS(dp_path_absolute(long_path, path), DP_TOOBIG);
}

static void files_of_this_process_are_private_and_the_users_mask_is_kept(void **state)
{
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    struct stat info;
    (void)state;
    const mode_t before = umask(027);
    tempdir_open(&dir);
    dp_path_be_private();
    assert_int_equal(dp_path_user_umask(), 027);
    FILE *file = fopen(tempdir_file(&dir, "file", path), "we");
    assert_non_null(file);
    fclose(file);
    assert_true(stat(path, &info) == 0 && (info.st_mode & 077) == 0);
    umask(before);
    tempdir_close(&dir);
}

static void a_tree_is_removed_and_what_links_point_to_stays(void **state)
{
    tempdir dir;
    char top[TEMPDIR_FILE_MAX];
    char path[TEMPDIR_FILE_MAX + 16];
    char other[TEMPDIR_FILE_MAX];
    (void)state;
    tempdir_open(&dir);
    tempdir_file(&dir, "top/a/b", path);
    CHECK_OK(dp_path_make_folders(path));
    tempdir_file(&dir, "other", other);
    assert_int_equal(mkdir(other, 0700), 0);
    tempdir_file(&dir, "top/a/link", path);
    assert_int_equal(symlink(other, path), 0);
    CHECK_OK(dp_path_remove_tree(tempdir_file(&dir, "top", top)));
    assert_true(access(top, F_OK) != 0 && access(other, F_OK) == 0);
    CHECK_STATUS(dp_path_remove_tree(top), DP_IO); /* It is gone. */
    tempdir_close(&dir);
}

static void a_folder_below_a_file_cannot_be_made(void **state)
{
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    tempdir_open(&dir);
    FILE *file = fopen(tempdir_file(&dir, "file", path), "we");
    assert_non_null(file);
    fclose(file);
    tempdir_file(&dir, "file/a/b", path);
    CHECK_STATUS(dp_path_make_folders(path), DP_IO);
    assert_int_equal(errno, ENOTDIR);
    tempdir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(root_has_the_folders_of_the_system),
        cmocka_unit_test(a_user_has_folders_of_the_own_home),
        cmocka_unit_test(the_configuration_file_names_directory_and_socket),
        cmocka_unit_test(a_program_is_found_beside_this_one_or_by_its_bare_name),
        cmocka_unit_test(a_path_that_is_too_long_is_refused_and_not_cut),
        cmocka_unit_test(files_of_this_process_are_private_and_the_users_mask_is_kept),
        cmocka_unit_test(a_tree_is_removed_and_what_links_point_to_stays),
        cmocka_unit_test(a_folder_below_a_file_cannot_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
