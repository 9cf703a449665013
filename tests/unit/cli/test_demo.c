/* The built-in demo: its manifest, and a text that is only taken if it is the one we know. The
 * program bible is a script of the test's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/demo.h"
#include "cli/file.h"
#include "cli/manifest_yaml.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

static tempdir dir;
static char folder[TEMPDIR_FILE_MAX]; /* of temporary files */

static int open_folder(void **state)
{
    char path[2 * TEMPDIR_FILE_MAX];
    (void)state;
    tempdir_open(&dir);
    tempdir_file(&dir, "tmp", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", dir.path);
    setenv("PATH", path, 1);
    setenv("TMPDIR", folder, 1);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    unsetenv("TMPDIR");
    tempdir_close(&dir);
    return 0;
}

/* A program of this name that does so. */
static void bible_does(const char *command)
{
    char path[TEMPDIR_FILE_MAX];
    tempdir_file(&dir, "bible", path);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", command);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

/* Nothing is left in the folder of temporary files. */
static void refused(int exit, const char *what)
{
    char path[DP_CLI_PATH_MAX];
    dp_control_error error = {.exit = 0};
    assert_int_equal(dp_demo_text(path, &error), exit);
    assert_string_equal(error.code, "E0305");
    assert_string_equal(error.what, what);
    assert_true(error.fix[0] != '\0' && error.exit == exit);
    assert_true(rmdir(folder) == 0 || exit == DP_EXIT_CANTCREATE);
}

static void the_manifest_is_a_right_one_and_the_same_in_the_examples(void **state)
{
    static dp_manifest_file file;
    dp_why what = {""};
    dp_why fix = {""};
    dp_buf example = {.max = 65536};
    (void)state;
    CHECK_OK(dp_manifest_yaml_read(dp_view_text(dp_demo_kjv), "kjv", NULL, &file, &what, &fix));
    assert_string_equal(file.manifest.name, "kjv");
    CHECK_OK(dp_cli_file_read("docs/examples/kjv.yaml", &example)); /* Tests run in the tree. */
    assert_int_equal(example.size, strlen(dp_demo_kjv));
    assert_memory_equal(example.data, dp_demo_kjv, example.size);
    dp_buf_close(&example);
}

static void a_program_that_gives_nothing_is_to_be_installed(void **state)
{
    (void)state;
    bible_does("exit 1");
    refused(DP_EXIT_NOINPUT, "the demo's text is missing");
}

static void another_text_is_not_taken(void **state)
{
    (void)state;
    bible_does("echo In the beginning");
    refused(DP_EXIT_DATA, "the demo's text has the wrong hash");
}

static void a_text_without_end_is_cut_off(void **state)
{
    (void)state;
    bible_does("exec cat /dev/zero");
    refused(DP_EXIT_IO, "the text could not be written");
}

static void without_a_place_for_temporary_files_nothing_is_run(void **state)
{
    (void)state;
    bible_does("exit 0");
    setenv("TMPDIR", "/nowhere", 1);
    refused(DP_EXIT_CANTCREATE, "no temporary file can be made");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_folder, close_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_manifest_is_a_right_one_and_the_same_in_the_examples),
        TEST(a_program_that_gives_nothing_is_to_be_installed),
        TEST(another_text_is_not_taken),
        TEST(a_text_without_end_is_cut_off),
        TEST(without_a_place_for_temporary_files_nothing_is_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
