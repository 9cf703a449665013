/* The start of the unit of the machine or of a user, by a played systemctl. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cmd.h"
#include "cli/start/start_unit.h"
#include "tests/lib/tempdir.h"

static tempdir dir;
static char path_before[4096];

/* PATH has a systemctl of these lines before all others. */
static void play(const char *lines)
{
    char path[TEMPDIR_FILE_MAX];
    char list[sizeof path_before + TEMPDIR_FILE_MAX];
    FILE *file = fopen(tempdir_file(&dir, "systemctl", path), "we");
    assert_non_null(file);
    assert_true(fprintf(file, "#!/bin/sh\necho \"$*\" >%s/asked\n%s\n", dir.path, lines) > 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0755), 0);
    snprintf(list, sizeof list, "%s:%s", dir.path, path_before);
    setenv("PATH", list, 1);
}

static int setup(void **state)
{
    (void)state;
    snprintf(path_before, sizeof path_before, "%s", getenv("PATH"));
    tempdir_open(&dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    setenv("PATH", path_before, 1);
    tempdir_close(&dir);
    return 0;
}

/* The words of the last systemctl. */
static void assert_asked(const char *words)
{
    char path[TEMPDIR_FILE_MAX];
    char asked[64] = {0};
    FILE *file = fopen(tempdir_file(&dir, "asked", path), "re");
    assert_non_null(file);
    assert_non_null(fgets(asked, sizeof asked, file));
    fclose(file);
    assert_string_equal(asked, words);
}

static void a_unit_is_started_by_its_name(void **state)
{
    (void)state;
    dp_control_error error = {0};
    play("exit 0");
    assert_int_equal(dp_start_unit(DP_UNIT_OF_MACHINE, dir.path, &error), DP_UNIT_STARTED);
    assert_asked("--system start dpnoded.service\n");
}

static void a_unit_of_a_user_is_started_if_it_is_enabled(void **state)
{
    (void)state;
    dp_control_error error = {0};
    play("if [ $2 = is-enabled ]; then echo enabled; fi");
    assert_int_equal(dp_start_unit(DP_UNIT_OF_USER, dir.path, &error), DP_UNIT_STARTED);
    assert_asked("--user start dpnoded.service\n");
    play("if [ $2 = is-enabled ]; then echo enabled; else exit 1; fi");
    assert_int_equal(dp_start_unit(DP_UNIT_OF_USER, dir.path, &error), DP_UNIT_FAILED);
    assert_non_null(strstr(error.fix, "journalctl --user -u dpnoded"));
    play("echo disabled; exit 1");
    assert_int_equal(dp_start_unit(DP_UNIT_OF_USER, dir.path, &error), DP_UNIT_NONE);
    assert_asked("--user is-enabled dpnoded.service\n");
    play("echo 'Failed to connect to bus' >&2; exit 1"); /* as of su, which starts no manager */
    assert_int_equal(dp_start_unit(DP_UNIT_OF_USER, dir.path, &error), DP_UNIT_NONE);
}

/* As after cmake --install, which enables none. */
static void a_unit_that_does_not_start_with_the_machine_is_told_from_one_that_does(void **state)
{
    (void)state;
    play("echo disabled; exit 1");
    assert_true(dp_start_unit_disabled(DP_UNIT_OF_MACHINE));
    assert_asked("--system is-enabled dpnoded.service\n");
    play("echo enabled");
    assert_false(dp_start_unit_disabled(DP_UNIT_OF_MACHINE));
    play("exit 1");
    assert_false(dp_start_unit_disabled(DP_UNIT_OF_MACHINE));
}

static void without_systemd_or_its_unit_the_daemon_is_started_otherwise(void **state)
{
    (void)state;
    char none[TEMPDIR_FILE_MAX];
    dp_control_error error = {0};
    play("exit 0");
    assert_int_equal(dp_start_unit(DP_UNIT_OF_MACHINE, tempdir_file(&dir, "none", none), &error),
                     DP_UNIT_NONE);
    play("echo 'Failed to start dpnoded.service: Unit dpnoded.service not found.' >&2; exit 5");
    assert_int_equal(dp_start_unit(DP_UNIT_OF_MACHINE, dir.path, &error), DP_UNIT_NONE);
    assert_string_equal(error.code, "");
}

static void a_unit_that_does_not_start_is_named_with_its_log(void **state)
{
    (void)state;
    dp_control_error error = {0};
    play("echo 'Job for dpnoded.service failed.' >&2; exit 1");
    assert_int_equal(dp_start_unit(DP_UNIT_OF_MACHINE, dir.path, &error), DP_UNIT_FAILED);
    assert_string_equal(error.code, "E0106");
    assert_int_equal(error.exit, DP_EXIT_SOFTWARE);
    assert_non_null(strstr(error.why, "Job for dpnoded.service failed."));
    assert_non_null(strstr(error.fix, "journalctl -u dpnoded"));
}

/* As after cmake --install, which makes no user. */
static void a_user_that_does_not_exist_is_named_with_the_command_that_makes_it(void **state)
{
    (void)state;
    dp_control_error error = {0};
    play("if [ $1 = show ]; then echo no-such-user-7; else exit 1; fi");
    assert_int_equal(dp_start_unit(DP_UNIT_OF_MACHINE, dir.path, &error), DP_UNIT_FAILED);
    assert_string_equal(error.code, "E0114");
    assert_int_equal(error.exit, DP_EXIT_CONFIG);
    assert_non_null(strstr(error.why, "runs as user no-such-user-7"));
    assert_string_equal(error.fix, "sudo useradd --system --user-group --home-dir /var/lib/dpnode "
                                   "no-such-user-7");
    play("if [ $1 = show ]; then echo root; fi");
    assert_int_equal(dp_start_unit(DP_UNIT_OF_MACHINE, dir.path, &error), DP_UNIT_STARTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_unit_is_started_by_its_name, setup, teardown),
        cmocka_unit_test_setup_teardown(a_unit_of_a_user_is_started_if_it_is_enabled, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            a_unit_that_does_not_start_with_the_machine_is_told_from_one_that_does, setup,
            teardown),
        cmocka_unit_test_setup_teardown(without_systemd_or_its_unit_the_daemon_is_started_otherwise,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_unit_that_does_not_start_is_named_with_its_log, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            a_user_that_does_not_exist_is_named_with_the_command_that_makes_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
