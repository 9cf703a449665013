/* Daemons that a command runs: their folder, and the signals that reach them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/children.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

/* A process that waits for a signal, which no handler of this one meets any more. */
static pid_t sleeper(void)
{
    int ends[2];
    char ready = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGTERM, SIG_DFL);
        signal(SIGUSR1, SIG_DFL);
        if (write(ends[1], "r", 1) != 1) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    assert_int_equal(read(ends[0], &ready, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return child;
}

/* The signal that ended it. */
static int ended_by(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void a_signal_goes_to_every_child_that_there_is(void **state)
{
    (void)state;
    const pid_t one = sleeper();
    const pid_t last = sleeper();
    *dp_children_pid(0) = one;
    *dp_children_pid(DP_CHILDREN_MAX - 1) = last;
    dp_children_signal(SIGUSR1);
    assert_int_equal(ended_by(one), SIGUSR1);
    assert_int_equal(ended_by(last), SIGUSR1);
    *dp_children_pid(0) = 0;
    *dp_children_pid(DP_CHILDREN_MAX - 1) = 0;
    dp_children_signal(SIGKILL); /* 0 means no process, and not this process group. */
}

static void a_signal_ends_the_children_and_is_remembered(void **state)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    (void)state;
    assert_false(dp_children_interrupted());
    dp_children_watch(SIGTERM);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const pid_t child = sleeper();
        *dp_children_pid(3) = child;
        assert_int_equal(raise(numbers[i]), 0);
        assert_int_equal(ended_by(child), SIGTERM);
        assert_true(dp_children_interrupted());
        signal(numbers[i], SIG_DFL);
    }
    *dp_children_pid(3) = 0;
}

static void a_folder_is_fresh_and_private_and_lies_where_temporary_files_do(void **state)
{
    tempdir dir;
    char one[DP_CLI_PATH_MAX];
    char other[DP_CLI_PATH_MAX];
    struct stat info;
    (void)state;
    tempdir_open(&dir);
    setenv("TMPDIR", dir.path, 1);
    assert_true(dp_children_folder("swarm", one));
    assert_true(dp_children_folder("swarm", other));
    assert_string_not_equal(one, other);
    assert_true(strncmp(one, dir.path, strlen(dir.path)) == 0);
    assert_non_null(strstr(one, "/dpnode-swarm-"));
    assert_true(stat(one, &info) == 0 && S_ISDIR(info.st_mode) && (info.st_mode & 077) == 0);
    setenv("TMPDIR", "relative", 1); /* It would be another one in each working directory. */
    assert_true(dp_children_folder("swarm", one));
    assert_true(strncmp(one, "/tmp/dpnode-swarm-", 18) == 0);
    CHECK_OK(dp_path_remove_tree(one));
    setenv("TMPDIR", "/nowhere", 1);
    assert_false(dp_children_folder("swarm", one));
    assert_true(strncmp(one, "/nowhere/dpnode-swarm-", 22) == 0); /* For the error. */
    unsetenv("TMPDIR");
    tempdir_close(&dir);
}

static void children_count_from_one_in_paths(void **state)
{
    char path[DP_CLI_PATH_MAX];
    (void)state;
    dp_children_path("/folder", 2, "node", path);
    assert_string_equal(path, "/folder/node3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_goes_to_every_child_that_there_is),
        cmocka_unit_test(a_signal_ends_the_children_and_is_remembered),
        cmocka_unit_test(a_folder_is_fresh_and_private_and_lies_where_temporary_files_do),
        cmocka_unit_test(children_count_from_one_in_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
