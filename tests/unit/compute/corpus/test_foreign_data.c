#include "tests/lib/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "compute/corpus/foreign_data.h"
#include "compute/machine/files.h"
#include "tests/lib/tempdir.h"

/* Checks a file with these bytes; gives the sentence. */
static dp_status check_file(const char *bytes, size_t size, dp_why *why)
{
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    CHECK_OK(dp_file_write(dir.path, "data.bin", dp_view_of(bytes, size), NULL));
    const dp_status status =
        dp_foreign_data_check(tempdir_file(&dir, "data.bin", path), false, why);
    tempdir_close(&dir);
    return status;
}

static void each_format_names_the_command_that_reads_it(void **state)
{
    static const char *const cases[][2] = {
        {"PAR1\x15", "python3 -m dpnode.dataset "},
        {"ARROW1\x01", "python3 -m dpnode.dataset "},
        {"\xff\xff\xff\xff\x10", "python3 -m dpnode.dataset "},
        {"\x1f\x8b\x08", "zcat "},
        {"\x28\xb5\x2f\xfd\x24", "zstdcat "},
        {"\xfd\x37zXZ", "xzcat "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_why why = {{0}};
        assert_int_equal(check_file(cases[i][0], strlen(cases[i][0]), &why), DP_UNSUPPORTED);
        assert_non_null(strstr(why.text, cases[i][1]));
        assert_non_null(strstr(why.text, "/data.bin > data."));
    }
}

static void text_of_any_length_is_nobodys_format(void **state)
{
    static const char text[] = "PAR and ARROW are words";
    (void)state;
    for (size_t i = 0; i < sizeof text; i++) {
        CHECK_OK(check_file(text, i, NULL));
    }
    CHECK_OK(check_file("PAR1", 3, NULL)); /* not all of the mark */
}

static void a_folder_of_the_datasets_library_is_told_by_its_files(void **state)
{
    static const char *const names[] = {"dataset_dict.json", "dataset_info.json"};
    tempdir dir;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        dp_why why = {{0}};
        tempdir_open(&dir);
        CHECK_OK(dp_foreign_data_check(dir.path, false, NULL)); /* files of text may be in it */
        CHECK_OK(dp_file_write(dir.path, names[i], dp_view_text("{}"), NULL));
        assert_int_equal(dp_foreign_data_check(dir.path, false, &why), DP_UNSUPPORTED);
        assert_non_null(strstr(why.text, "python3 -m dpnode.dataset "));
        tempdir_close(&dir);
    }
}

static void what_is_absent_or_a_pipe_is_left_to_its_reader(void **state)
{
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    tempdir_open(&dir);
    CHECK_OK(dp_foreign_data_check(tempdir_file(&dir, "absent", path), false, NULL));
    assert_int_equal(mkfifo(tempdir_file(&dir, "pipe", path), 0600), 0);
    CHECK_OK(dp_foreign_data_check(path, false, NULL)); /* and does not wait for a writer */
    tempdir_close(&dir);
}

static void json_by_its_name_is_told_unless_it_is_said_to_be_text(void **state)
{
    static const char *const cases[][2] = {{"\n [{\"text\": \"a\"}]", "jq -c '.[]' "},
                                           {"{\"messages\": []}\n", "cp "}};
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    tempdir_open(&dir);
    tempdir_file(&dir, "data.json", path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_why why = {{0}};
        CHECK_OK(dp_file_write(dir.path, "data.json", dp_view_text(cases[i][0]), NULL));
        assert_int_equal(dp_foreign_data_check(path, false, &why), DP_UNSUPPORTED);
        assert_non_null(strstr(why.text, cases[i][1]));
        CHECK_OK(dp_foreign_data_check(path, true, NULL));
        CHECK_OK(check_file(cases[i][0], strlen(cases[i][0]), NULL)); /* by another name */
    }
    CHECK_OK(dp_file_write(dir.path, "data.json", dp_view_text("a text"), NULL));
    CHECK_OK(dp_foreign_data_check(path, false, NULL));
    tempdir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_format_names_the_command_that_reads_it),
        cmocka_unit_test(text_of_any_length_is_nobodys_format),
        cmocka_unit_test(a_folder_of_the_datasets_library_is_told_by_its_files),
        cmocka_unit_test(json_by_its_name_is_told_unless_it_is_said_to_be_text),
        cmocka_unit_test(what_is_absent_or_a_pipe_is_left_to_its_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
