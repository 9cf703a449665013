/* The standard places, of root and of a user with and without the variables of XDG. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/settings/node_paths.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

static void check_places(const char *config, const char *dir, const char *socket)
{
    char path[DP_NODE_PATH_MAX];
    dp_node_path_config(path);
    assert_string_equal(path, config);
    dp_node_path_dir(path);
    assert_string_equal(path, dir);
    dp_node_path_socket(path);
    assert_string_equal(path, socket);
}

static void forget_environment(void)
{
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("XDG_STATE_HOME");
    unsetenv("XDG_RUNTIME_DIR");
}

static void root_has_the_folders_of_the_system(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    setenv("XDG_STATE_HOME", "/state", 1);
    check_places("/etc/dpnode/dpnoded.conf", "/var/lib/dpnode", "/run/dpnode/dpnode.sock");
    forget_environment();
}

/* Of another user, for as long as the test runs. */
static void a_user_has_folders_of_the_own_home(void **state)
{
    (void)state;
    forget_environment();
    setenv("HOME", "/home/ann", 1);
    if (geteuid() == 0 && seteuid(65534) != 0) {
        skip();
    }
    check_places("/etc/dpnode/dpnoded.conf", "/home/ann/.local/state/dpnode",
                 "/home/ann/.local/state/dpnode/dpnode.sock");
    setenv("XDG_STATE_HOME", "/state", 1);
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    check_places("/etc/dpnode/dpnoded.conf", "/state/dpnode", "/run/user/7/dpnode/dpnode.sock");
    assert_int_equal(seteuid(getuid()), 0);
    forget_environment();
}

static void the_users_own_configuration_file_wins_if_it_exists(void **state)
{
    tempdir dir;
    char file[TEMPDIR_FILE_MAX];
    char path[DP_NODE_PATH_MAX];
    (void)state;
    tempdir_open(&dir);
    assert_int_equal(mkdir(tempdir_file(&dir, "dpnode", file), 0755), 0);
    assert_int_equal(chmod(dir.path, 0755), 0);
    fclose(fopen(tempdir_file(&dir, "dpnode/dpnoded.conf", file), "we"));
    setenv("XDG_CONFIG_HOME", dir.path, 1);
    if (geteuid() == 0 && seteuid(65534) != 0) {
        skip();
    }
    dp_node_path_config(path);
    assert_int_equal(seteuid(getuid()), 0);
    assert_string_equal(path, file);
    forget_environment();
    tempdir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(root_has_the_folders_of_the_system),
        cmocka_unit_test(a_user_has_folders_of_the_own_home),
        cmocka_unit_test(the_users_own_configuration_file_wins_if_it_exists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
