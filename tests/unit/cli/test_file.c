/* Files and streams that are read whole, within a limit. */
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/file.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

static tempdir dir;

/* A file of so many bytes, which count upwards. */
static const char *file_of(size_t size)
{
    static char path[TEMPDIR_FILE_MAX];
    tempdir_file(&dir, "file", path);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    for (size_t i = 0; i < size; i++) {
        fputc((int)(i % 251), file);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

static void a_file_is_read_whole_behind_what_is_there(void **state)
{
    static const size_t sizes[] = {0, 1, 16 * 1024, 16 * 1024 + 1, 100000};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        dp_buf buf = {.max = 200000};
        CHECK_OK(dp_buf_append(&buf, dp_view_text("abc")));
        CHECK_OK(dp_cli_file_read(file_of(sizes[i]), &buf));
        assert_int_equal(buf.size, 3 + sizes[i]);
        assert_memory_equal(buf.data, "abc", 3);
        for (size_t k = 0; k < sizes[i]; k++) {
            assert_int_equal(buf.data[3 + k], k % 251);
        }
        dp_buf_close(&buf);
    }
}

static void a_file_larger_than_the_limit_or_memory_is_refused(void **state)
{
    dp_buf buf = {.max = 1000};
    (void)state;
    CHECK_OK(dp_cli_file_read(file_of(1000), &buf));
    dp_buf_close(&buf);
    buf = (dp_buf){.max = 1000};
    CHECK_STATUS(dp_cli_file_read(file_of(1001), &buf), DP_TOOBIG);
    dp_buf_close(&buf);
    buf = (dp_buf){.max = 1000};
    dp_alloc_fail_after(1);
    CHECK_STATUS(dp_cli_file_read(file_of(10), &buf), DP_NOMEM);
    dp_alloc_fail_after(0);
    dp_buf_close(&buf);
}

static void only_plain_files_are_read(void **state)
{
    char path[TEMPDIR_FILE_MAX];
    dp_buf buf = {.max = 1000};
    (void)state;
    CHECK_STATUS(dp_cli_file_read(tempdir_file(&dir, "gone", path), &buf), DP_NOTFOUND);
    snprintf(path, sizeof path, "%s/x", file_of(1));
    CHECK_STATUS(dp_cli_file_read(path, &buf), DP_NOTFOUND); /* Below a file. */
    CHECK_STATUS(dp_cli_file_read(dir.path, &buf), DP_BADARG);
    CHECK_STATUS(dp_cli_file_read("/dev/zero", &buf), DP_BADARG); /* It would never end. */
    assert_int_equal(buf.size, 0);
    dp_buf_close(&buf);
}

static void a_stream_that_fails_is_told(void **state)
{
    dp_buf buf = {.max = 1000};
    (void)state;
    FILE *folder = fopen(dir.path, "re"); /* It opens, and cannot be read. */
    assert_non_null(folder);
    CHECK_STATUS(dp_cli_file_read_stream(folder, &buf), DP_IO);
    fclose(folder);
    dp_buf_close(&buf);
}

static int open_folder(void **state)
{
    (void)state;
    tempdir_open(&dir);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    tempdir_close(&dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_whole_behind_what_is_there),
        cmocka_unit_test(a_file_larger_than_the_limit_or_memory_is_refused),
        cmocka_unit_test(only_plain_files_are_read),
        cmocka_unit_test(a_stream_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
