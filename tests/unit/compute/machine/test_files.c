#include "tests/lib/allocfail.h"
#include "tests/lib/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compute/machine/files.h"
#include "tests/lib/tempdir.h"

static void fill(const tempdir *dir)
{
    static const char *const names[] = {"b", "a", "B", "10", "9", ".hidden"};
    char folder[TEMPDIR_FILE_MAX];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK_OK(dp_file_write(dir->path, names[i], dp_view_text("12"), NULL));
    }
    CHECK_OK(dp_folder_make(tempdir_file(dir, "folder", folder), NULL));
}

static void files_of_a_folder_are_listed_by_name(void **state)
{
    (void)state;
    static const char *const wanted[] = {"10", "9", "B", "a", "b"};
    tempdir dir;
    dp_file_list list;
    tempdir_open(&dir);
    fill(&dir);
    CHECK_OK(dp_file_list_open(&list, dir.path, 5, NULL));
    assert_int_equal(list.count, 5);
    assert_int_equal(list.bytes, 10);
    for (size_t i = 0; i < list.count; i++) {
        char path[TEMPDIR_FILE_MAX];
        assert_string_equal(list.paths[i], tempdir_file(&dir, wanted[i], path));
    }
    dp_file_list_close(&list);
    dp_file_list_close(&list);
    tempdir_close(&dir);
}

static void a_file_is_replaced_whole_and_nothing_stays_beside_it(void **state)
{
    (void)state;
    tempdir dir;
    dp_file_list list;
    dp_buf bytes;
    dp_why why = {{0}};
    char path[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    dp_buf_init(&bytes, 100);
    CHECK_OK(dp_file_replace(dir.path, "a", dp_view_text("the first"), NULL));
    CHECK_OK(dp_file_replace(dir.path, "a", dp_view_text("second"), NULL));
    CHECK_OK(dp_file_read(tempdir_file(&dir, "a", path), &bytes, NULL));
    CHECK(bytes.size == 6 && memcmp(bytes.data, "second", 6) == 0);
    CHECK_OK(dp_folder_make(tempdir_file(&dir, "taken", path), NULL));
    CHECK(dp_file_replace(dir.path, "taken", dp_view_text("x"), &why) != DP_OK);
    CHECK(strstr(why.text, "rename") != NULL);
    CHECK_OK(dp_file_list_open(&list, dir.path, 5, NULL));
    assert_int_equal(list.count, 1);
    dp_file_list_close(&list);
    dp_buf_close(&bytes);
    tempdir_close(&dir);
}

/* Somebody who may write to the folder wants this process to overwrite a file of its user. */
static void a_link_under_the_name_is_replaced_and_its_target_stays(void **state)
{
    (void)state;
    tempdir dir;
    dp_buf bytes;
    char key[TEMPDIR_FILE_MAX];
    char path[TEMPDIR_FILE_MAX];
    char own[64];
    struct stat info;
    tempdir_open(&dir);
    dp_buf_init(&bytes, 100);
    CHECK_OK(dp_file_write(dir.path, "key", dp_view_text("secret"), NULL));
    tempdir_file(&dir, "key", key);
    CHECK(symlink(key, tempdir_file(&dir, "config.json", path)) == 0);
    snprintf(own, sizeof own, ".config.json.%ld", (long)getpid());
    CHECK(symlink(key, tempdir_file(&dir, own, path)) == 0);
    CHECK(symlink(key, tempdir_file(&dir, "state", path)) == 0);
    CHECK_OK(dp_file_write(dir.path, "config.json", dp_view_text("{}"), NULL));
    CHECK_OK(dp_file_replace(dir.path, "state", dp_view_text("x"), NULL));
    CHECK(lstat(tempdir_file(&dir, "config.json", path), &info) == 0 && S_ISREG(info.st_mode));
    CHECK(lstat(tempdir_file(&dir, own, path), &info) != 0);
    CHECK_OK(dp_file_read(key, &bytes, NULL));
    CHECK(bytes.size == 6 && memcmp(bytes.data, "secret", 6) == 0);
    dp_buf_close(&bytes);
    tempdir_close(&dir);
}

static void the_half_of_a_killed_process_is_removed_and_that_of_a_living_one_stays(void **state)
{
    (void)state;
    static const char *const names[] = {".data.4194305", ".data.4194306", ".data.x",
                                        ".other.4194305"};
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    for (size_t i = 0; i < 4; i++) {
        CHECK_OK(dp_file_write(dir.path, names[i], dp_view_text("half"), NULL));
    }
    const int fd = open(tempdir_file(&dir, names[1], path), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0); /* as its writer holds it */
    CHECK_OK(dp_file_write(dir.path, "data", dp_view_text("whole"), NULL));
    CHECK(access(tempdir_file(&dir, names[0], path), F_OK) != 0);
    for (size_t i = 1; i < 4; i++) {
        CHECK(access(tempdir_file(&dir, names[i], path), F_OK) == 0);
    }
    close(fd);
    tempdir_close(&dir);
}

static void a_folder_of_somebody_else_is_refused_where_it_would_be_trusted(void **state)
{
    (void)state;
    enum { STRANGER = 54321 };
    tempdir dir;
    dp_why why = {{0}};
    char path[TEMPDIR_FILE_MAX];
    char link[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    tempdir_file(&dir, "model", path);
    CHECK_OK(dp_folder_make_own(path, NULL));
    CHECK(symlink(path, tempdir_file(&dir, "link", link)) == 0);
    CHECK_OK(dp_folder_make_own(link, NULL));
    CHECK_OK(dp_file_write(dir.path, "file", dp_view_text("x"), NULL));
    CHECK_STATUS(dp_folder_make_own(tempdir_file(&dir, "file", path), &why), DP_BADARG);
    CHECK(strstr(why.text, "is no folder") != NULL);
    if (geteuid() == 0) { /* Only root gives folders away. */
        CHECK(lchown(link, STRANGER, STRANGER) == 0);
        CHECK_STATUS(dp_folder_make_own(link, &why), DP_DENIED);
        CHECK(unlink(link) == 0);
        tempdir_file(&dir, "model", path);
        CHECK(chown(path, STRANGER, STRANGER) == 0);
        CHECK_STATUS(dp_folder_make_own(path, &why), DP_DENIED);
        CHECK(strstr(why.text, "belongs to user 54321") != NULL);
        CHECK(strstr(why.text, "does not exist yet") != NULL);
    }
    tempdir_close(&dir);
}

static void too_many_files_are_refused(void **state)
{
    (void)state;
    tempdir dir;
    dp_file_list list;
    dp_why why = {{0}};
    char path[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    fill(&dir);
    CHECK_STATUS(dp_file_list_open(&list, dir.path, 4, &why), DP_TOOBIG);
    CHECK(strstr(why.text, "more than 4 files") != NULL && list.count == 0);
    CHECK_STATUS(dp_file_list_open(&list, tempdir_file(&dir, "none", path), 4, &why), DP_NOTFOUND);
    tempdir_close(&dir);
}

static dp_status list_and_close(void *context)
{
    const tempdir *dir = context;
    dp_file_list list;
    DP_TRY(dp_file_list_open(&list, dir->path, 5, NULL));
    dp_file_list_close(&list);
    return DP_OK;
}

static void without_memory_there_is_no_list(void **state)
{
    (void)state;
    tempdir dir;
    tempdir_open(&dir);
    fill(&dir);
    CHECK(fail_each_allocation(list_and_close, &dir) == 6);
    tempdir_close(&dir);
}

static void a_pipe_is_refused_and_not_waited_for(void **state)
{
    (void)state;
    tempdir dir;
    dp_view bytes;
    dp_buf out;
    dp_why why = {{0}};
    char path[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    CHECK(mkfifo(tempdir_file(&dir, "pipe", path), 0600) == 0);
    dp_buf_init(&out, 100);
    CHECK_STATUS(dp_file_read(path, &out, &why), DP_IO);
    CHECK(strstr(why.text, "is a pipe") != NULL);
    CHECK_STATUS(dp_file_map_path(path, &bytes, &why), DP_IO);
    dp_buf_close(&out);
    tempdir_close(&dir);
}

static void an_open_file_is_read_to_its_end_also_from_a_pipe(void **state)
{
    (void)state;
    int ends[2];
    dp_buf out;
    dp_why why = {{0}};
    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], "abc", 3) == 3 && close(ends[1]) == 0);
    dp_buf_init(&out, 100);
    CHECK_OK(dp_file_read_fd(ends[0], "a pipe", &out, &why));
    CHECK(out.size == 3 && memcmp(out.data, "abc", 3) == 0);
    CHECK_OK(dp_file_read_fd(ends[0], "a pipe", &out, &why)); /* Nothing more. */
    CHECK(out.size == 3 && close(ends[0]) == 0);
    CHECK_STATUS(dp_file_read_fd(ends[0], "a pipe", &out, &why), DP_IO);
    CHECK(strstr(why.text, "cannot read a pipe") != NULL);
    dp_buf_close(&out);
}

static void a_file_is_mapped_by_its_path(void **state)
{
    (void)state;
    tempdir dir;
    dp_view bytes;
    char path[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    fill(&dir);
    CHECK_OK(dp_file_map_path(tempdir_file(&dir, "a", path), &bytes, NULL));
    CHECK(dp_view_equal(bytes, dp_view_text("12")));
    dp_file_unmap(bytes);
    CHECK_STATUS(dp_file_map_path(tempdir_file(&dir, "folder", path), &bytes, NULL), DP_IO);
    tempdir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_a_folder_are_listed_by_name),
        cmocka_unit_test(a_file_is_replaced_whole_and_nothing_stays_beside_it),
        cmocka_unit_test(a_link_under_the_name_is_replaced_and_its_target_stays),
        cmocka_unit_test(the_half_of_a_killed_process_is_removed_and_that_of_a_living_one_stays),
        cmocka_unit_test(a_folder_of_somebody_else_is_refused_where_it_would_be_trusted),
        cmocka_unit_test(too_many_files_are_refused),
        cmocka_unit_test(without_memory_there_is_no_list),
        cmocka_unit_test(a_pipe_is_refused_and_not_waited_for),
        cmocka_unit_test(an_open_file_is_read_to_its_end_also_from_a_pipe),
        cmocka_unit_test(a_file_is_mapped_by_its_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
