/* The directory of a store: the allowed disks, and the users that may enter it. Its lock and files
 * are tested with the store. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/dir.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

static uid_t pretended; /* 0: as it is */

/* In front of libc's. */
uid_t geteuid(void)
{
    return pretended != 0 ? pretended : getuid();
}

static void make_file(const tempdir *dir, const char *name, mode_t mode)
{
    char path[TEMPDIR_FILE_MAX];
    const int fd = open(tempdir_file(dir, name, path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

static mode_t mode_of(const tempdir *dir, const char *name)
{
    char path[TEMPDIR_FILE_MAX];
    struct stat info;
    assert_int_equal(stat(tempdir_file(dir, name, path), &info), 0);
    return info.st_mode & 07777;
}

static void a_directory_of_a_store_that_others_may_enter_is_made_private(void **state)
{
    tempdir dir;
    dp_dir opened;
    (void)state;
    tempdir_open(&dir);
    make_file(&dir, "lock", 0600);
    make_file(&dir, "meta.db", 0644);
    make_file(&dir, "meta.db-wal", 0640);
    make_file(&dir, "ballast", 0600);
    make_file(&dir, "root.key", 0644);
    assert_int_equal(chmod(dir.path, 0755), 0);
    CHECK_OK(dp_dir_open(&opened, dir.path, NULL));
    assert_int_equal(opened.mode_was, 0755);
    assert_int_equal(opened.n_tightened, 2);
    dp_dir_close(&opened);
    assert_int_equal(mode_of(&dir, "."), 0700);
    assert_int_equal(mode_of(&dir, "meta.db"), 0600);
    assert_int_equal(mode_of(&dir, "meta.db-wal"), 0600);
    assert_int_equal(mode_of(&dir, "root.key"), 0644); /* To be refused when it is read. */
    CHECK_OK(dp_dir_open(&opened, dir.path, NULL));
    assert_int_equal(opened.mode_was + opened.n_tightened, 0); /* Nothing is left to report. */
    dp_dir_close(&opened);
    tempdir_close(&dir);
}

static void an_empty_directory_that_others_may_enter_is_made_private(void **state)
{
    tempdir dir;
    dp_dir opened;
    (void)state;
    tempdir_open(&dir);
    assert_int_equal(chmod(dir.path, 0775), 0);
    CHECK_OK(dp_dir_open(&opened, dir.path, NULL));
    assert_int_equal(opened.mode_was, 0775);
    dp_dir_close(&opened);
    assert_int_equal(mode_of(&dir, "."), 0700);
    tempdir_close(&dir);
}

static void a_directory_of_other_things_keeps_its_mode_and_is_refused(void **state)
{
    tempdir dir;
    dp_dir opened;
    dp_why why;
    (void)state;
    tempdir_open(&dir);
    make_file(&dir, "letter.txt", 0644);
    assert_int_equal(chmod(dir.path, 0755), 0);
    CHECK_STATUS(dp_dir_check_private(dir.path, &why), DP_DENIED); /* Asked before a start. */
    CHECK_OK(dp_dir_check_private("/nonexistent/folder", &why));   /* It will be made. */
    CHECK_STATUS(dp_dir_open(&opened, dir.path, &why), DP_DENIED);
    CHECK(strstr(why.text, dir.path) != NULL && strstr(why.text, "0755") != NULL &&
          strstr(why.text, "--dir") != NULL);
    assert_int_equal(mode_of(&dir, "."), 0755);
    assert_int_equal(mode_of(&dir, "letter.txt"), 0644);
    assert_int_equal(chmod(dir.path, 0700), 0); /* As the sentence says. */
    CHECK_OK(dp_dir_open(&opened, dir.path, &why));
    dp_dir_close(&opened);
    tempdir_close(&dir);
}

static void a_directory_or_key_of_another_user_is_refused(void **state)
{
    tempdir dir;
    dp_dir opened;
    dp_why why;
    dp_buf out;
    (void)state;
    dp_buf_init(&out, 64);
    tempdir_open(&dir);
    CHECK_OK(dp_dir_write_secret(dir.path, "root.key", dp_view_text("secret")));
    pretended = getuid() + 1;
    CHECK_STATUS(dp_dir_open(&opened, dir.path, &why), DP_DENIED);
    CHECK(strstr(why.text, dir.path) != NULL && strstr(why.text, "belongs to the user") != NULL);
    CHECK_STATUS(dp_dir_read_secret(dir.path, "root.key", &out, &why), DP_DENIED);
    CHECK(strstr(why.text, "root.key belongs to the user") != NULL);
    pretended = 0;
    CHECK_OK(dp_dir_read_secret(dir.path, "root.key", &out, &why));
    dp_buf_close(&out);
    tempdir_close(&dir);
}

static void a_key_that_others_may_read_or_that_is_no_file_is_refused(void **state)
{
    static const mode_t modes[] = {0604, 0640, 0644, 0620, 0601};
    char path[TEMPDIR_FILE_MAX];
    char link[TEMPDIR_FILE_MAX];
    tempdir dir;
    dp_why why;
    dp_buf out;
    (void)state;
    dp_buf_init(&out, 64);
    tempdir_open(&dir);
    CHECK_OK(dp_dir_write_secret(dir.path, "root.key", dp_view_text("secret")));
    tempdir_file(&dir, "root.key", path);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        char fix[TEMPDIR_FILE_MAX + 16];
        assert_int_equal(chmod(path, modes[i]), 0);
        CHECK_STATUS(dp_dir_read_secret(dir.path, "root.key", &out, &why), DP_DENIED);
        snprintf(fix, sizeof fix, "chmod 600 %s", path);
        CHECK(strstr(why.text, fix) != NULL);
        assert_int_equal(out.size, 0);
    }
    assert_int_equal(symlink(path, tempdir_file(&dir, "link.key", link)), 0);
    CHECK_STATUS(dp_dir_read_secret(dir.path, "link.key", &out, &why), DP_DENIED);
    assert_int_equal(mkfifo(tempdir_file(&dir, "pipe.key", link), 0600), 0);
    CHECK_STATUS(dp_dir_read_secret(dir.path, "pipe.key", &out, &why), DP_DENIED);
    CHECK(strstr(why.text, "is not a file") != NULL);
    dp_buf_close(&out);
    tempdir_close(&dir);
}

static void a_secret_is_deleted_and_renamed_but_replaces_no_other(void **state)
{
    tempdir dir;
    dp_buf out;
    (void)state;
    tempdir_open(&dir);
    dp_buf_init(&out, 100);
    CHECK_STATUS(dp_dir_rename_secret(dir.path, "root.key", "root.key.1"), DP_NOTFOUND);
    CHECK_OK(dp_dir_write_secret(dir.path, "root.key", dp_view_text("first")));
    CHECK_OK(dp_dir_rename_secret(dir.path, "root.key", "root.key.1"));
    CHECK_OK(dp_dir_write_secret(dir.path, "root.key", dp_view_text("second")));
    CHECK_STATUS(dp_dir_rename_secret(dir.path, "root.key", "root.key.1"), DP_EXISTS);
    CHECK_OK(dp_dir_read_secret(dir.path, "root.key.1", &out, NULL));
    CHECK(dp_view_equal(dp_buf_view(&out), dp_view_text("first")));
    CHECK_OK(dp_dir_delete_secret(dir.path, "root.key"));
    CHECK_OK(dp_dir_delete_secret(dir.path, "root.key"));
    CHECK_STATUS(dp_dir_read_secret(dir.path, "root.key", &out, NULL), DP_NOTFOUND);
    CHECK_STATUS(dp_dir_delete_secret("/nowhere", "root.key"), DP_NOTFOUND);
    char longest[DP_DIR_PATH_MAX + 1];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    CHECK_STATUS(dp_dir_rename_secret(dir.path, "root.key.1", longest), DP_TOOBIG);
    dp_buf_close(&out);
    tempdir_close(&dir);
}

static void network_file_systems_are_known(void **state)
{
    static const uint64_t networks[] = {0x6969, 0xff534d42, 0xfe534d42, 0x01021997};
    static const uint64_t local[] = {0xef53 /* ext4 */,        0x01021994 /* tmpfs */,
                                     0x58465342 /* XFS */,     0x9123683e /* Btrfs */,
                                     0x794c7630 /* overlay */, 0x65735546 /* FUSE */};
    (void)state;
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        CHECK(dp_dir_is_network(networks[i]));
    }
    CHECK(dp_dir_is_network(0xffffffffff534d42)); /* a 32-bit kind that was widened with its sign */
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        CHECK(!dp_dir_is_network(local[i]));
    }
}

static void a_local_disk_is_taken_also_before_the_folder_is_there(void **state)
{
    tempdir dir;
    char path[TEMPDIR_FILE_MAX + 32];
    (void)state;
    tempdir_open(&dir);
    snprintf(path, sizeof path, "%s/not/yet/there", dir.path);
    CHECK_OK(dp_dir_check_disk(dir.path, NULL));
    CHECK_OK(dp_dir_check_disk(path, NULL));
    CHECK_OK(dp_dir_check_disk("", NULL));
    CHECK_OK(dp_dir_check_disk("nowhere", NULL));
    tempdir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(network_file_systems_are_known),
        cmocka_unit_test(a_local_disk_is_taken_also_before_the_folder_is_there),
        cmocka_unit_test(a_directory_of_a_store_that_others_may_enter_is_made_private),
        cmocka_unit_test(an_empty_directory_that_others_may_enter_is_made_private),
        cmocka_unit_test(a_directory_of_other_things_keeps_its_mode_and_is_refused),
        cmocka_unit_test(a_directory_or_key_of_another_user_is_refused),
        cmocka_unit_test(a_secret_is_deleted_and_renamed_but_replaces_no_other),
        cmocka_unit_test(a_key_that_others_may_read_or_that_is_no_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
