#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/version.h"
#include "daemon/control/check.h"
#include "tests/lib/fake_root.h"

/* All lines of a check; the last call's are lost. */
static char said[4096];

static void check(const dp_config *config)
{
    FILE *const out = tmpfile();
    assert_non_null(out);
    assert_true(dp_check_tell(config, out));
    rewind(out);
    said[fread(said, 1, sizeof said - 1, out)] = '\0';
    assert_int_equal(fclose(out), 0);
}

/* The value of a line, or NULL. Lives until the next call. */
static const char *value(const char *key)
{
    static char text[1024];
    const size_t size = strlen(key);
    for (const char *at = said; *at != '\0'; at = strchr(at, '\n') + 1) {
        if (strncmp(at, key, size) == 0 && at[size] == ' ') {
            snprintf(text, sizeof text, "%.*s", (int)strcspn(at + size + 1, "\n"), at + size + 1);
            return text;
        }
    }
    return NULL;
}

static dp_config config_of(const char *dir)
{
    dp_config config;
    dp_why why = {{0}};
    assert_int_equal(dp_config_default(&config, &why), DP_OK);
    snprintf(config.dir, sizeof config.dir, "%s", dir);
    snprintf(config.listen, sizeof config.listen, "127.0.0.1:0");
    return config;
}

static unsigned entries(const char *path)
{
    unsigned count = 0;
    DIR *const folder = opendir(path);
    assert_non_null(folder);
    for (const struct dirent *e = readdir(folder); e != NULL; e = readdir(folder)) {
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(folder);
    return count;
}

static void a_directory_is_tried_and_left_as_it_was(void **state)
{
    (void)state;
    const dp_config config = config_of(fake_root.path);
    check(&config);
    assert_string_equal(value("version"), DP_VERSION_TEXT);
    assert_string_equal(value("dir"), fake_root.path);
    assert_string_equal(value("dir_exists"), "1");
    assert_string_equal(value("backend"), "auto");
    assert_true(strtoull(value("free"), NULL, 10) > 0);
    assert_true(strtoull(value("write_bytes_s"), NULL, 10) > 0);
    assert_non_null(value("commit_us"));
    assert_null(value("dir_why"));
    assert_null(value("disk_why"));
    assert_null(value("listen_why"));
    assert_int_equal(entries(fake_root.path), 0);
}

static void a_directory_that_is_not_there_is_tried_above(void **state)
{
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    const dp_config config = config_of(tempdir_file(&fake_root, "a/b/c", path));
    check(&config);
    assert_string_equal(value("dir"), path);
    assert_string_equal(value("dir_exists"), "0");
    assert_non_null(value("write_bytes_s"));
    assert_int_equal(entries(fake_root.path), 0);
}

static void a_directory_or_a_key_that_is_not_its_owners_alone_is_told_and_stays(void **state)
{
    char path[TEMPDIR_FILE_MAX];
    struct stat info;
    (void)state;
    const dp_config config = config_of(fake_root.path);
    put("root.key", "secret");
    assert_int_equal(chmod(tempdir_file(&fake_root, "root.key", path), 0644), 0);
    check(&config);
    assert_null(value("private_why"));
    assert_non_null(strstr(value("key_why"), "chmod 600"));
    assert_int_equal(chmod(fake_root.path, 0755), 0);
    check(&config);
    assert_non_null(strstr(value("private_why"), "others may enter"));
    assert_int_equal(stat(fake_root.path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0755);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0644);
}

static void a_directory_that_cannot_be_written_says_why(void **state)
{
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    put("file", "");
    const dp_config config = config_of(tempdir_file(&fake_root, "file", path));
    check(&config);
    assert_non_null(strstr(value("dir_why"), "Not a directory"));
    assert_null(value("free"));
    assert_null(value("write_bytes_s"));
}

static void a_port_that_is_taken_says_so(void **state)
{
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 1) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    dp_config config = config_of("/proc"); /* where nothing can be written, which is quick */
    snprintf(config.listen, sizeof config.listen, "127.0.0.1:%u", ntohs(address.sin_port));
    check(&config);
    assert_non_null(strstr(value("listen_why"), "is in use by another program"));
    assert_int_equal(close(fd), 0);
    check(&config);
    assert_null(value("listen_why"));
    snprintf(config.listen, sizeof config.listen, "192.0.2.1:7717"); /* of nobody */
    check(&config);
    assert_non_null(strstr(value("listen_why"), "cannot listen on 192.0.2.1:7717"));
}

static void a_value_is_one_line_whatever_a_path_holds(void **state)
{
    (void)state;
    const dp_config config = config_of("/proc/a\nversion 9");
    check(&config);
    assert_string_equal(value("dir"), "/proc/a?version 9");
    assert_string_equal(value("version"), DP_VERSION_TEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_root(a_directory_is_tried_and_left_as_it_was),
        in_root(a_directory_that_is_not_there_is_tried_above),
        in_root(a_directory_or_a_key_that_is_not_its_owners_alone_is_told_and_stays),
        in_root(a_directory_that_cannot_be_written_says_why),
        cmocka_unit_test(a_port_that_is_taken_says_so),
        cmocka_unit_test(a_value_is_one_line_whatever_a_path_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
