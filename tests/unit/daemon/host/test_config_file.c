/* The configuration file: its place among the sources, and each mistake with line and column. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/settings/setting_lines.h"
#include "daemon/host/config.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

static tempdir dir;
static char path[TEMPDIR_FILE_MAX];

static void write_file(const char *text, size_t size)
{
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static dp_status read_it(dp_config *config, dp_why *why)
{
    CHECK_OK(dp_config_default(config, why));
    return dp_config_file_read(config, path, why);
}

static dp_status start(dp_config *config, const char *argument, dp_why *why)
{
    char named[TEMPDIR_FILE_MAX + 16];
    char word[64];
    bool help = false;
    bool version = false;
    snprintf(named, sizeof named, "--config=%s", path);
    snprintf(word, sizeof word, "%s", argument);
    char *argv[] = {(char[]){"dpnoded"}, named, word, NULL};
    return dp_config_read(config, 3, argv, &help, &version, why);
}

static void it_wins_over_defaults_and_others_win_over_it(void **state)
{
    static const char text[] = "# limits\n\n  upload-max = 20  \r\nnice=3\nname = my node # 1\n"
                               "observer = yes\nadvertise =\nstore-max = 20G";
    dp_config config;
    dp_why why = {""};
    (void)state;
    write_file(text, sizeof text - 1);
    setenv("DPNODE_STORE_MAX", "1G", 1);
    CHECK_OK(start(&config, "--nice=4", &why));
    unsetenv("DPNODE_STORE_MAX");
    CHECK(config.upload_max == 20 && config.nice == 4 && config.observer);
    CHECK(config.store_max == UINT64_C(1) << 30);
    assert_string_equal(config.name, "my node # 1");
    assert_string_equal(config.config_file, path);
    CHECK(dp_config_from(&config, "upload-max") == DP_SETTING_FILE);
    CHECK(dp_config_from(&config, "nice") == DP_SETTING_COMMAND);
    CHECK(dp_config_from(&config, "store-max") == DP_SETTING_ENVIRONMENT);
    CHECK(dp_config_from(&config, "threads") == DP_SETTING_STANDARD);
    assert_int_equal(config.line[dp_setting_find("upload-max", 10)], 3);
    assert_int_equal(config.line[dp_setting_find("nice", 4)], 0);
}

static void each_mistake_has_its_line_and_column(void **state)
{
    static const struct {
        const char *text;
        const char *wanted;
    } bad[] = {
        {"\n  uplod-max = 1\n", ":2:3: unknown setting \"uplod-max\"; did you mean upload-max?"},
        {"nice = 1\nthreads = 2\n nice = 1\n", ":3:2: line 1 has this setting already"},
        {"nice = 99\n", ":1:8: nice: \"99\" must be a number from 0 to 19"},
        {"upload-month = 200GX\n", ":1:16: upload-month: \"200GX\" is not a size"},
        {"nice =\n", ":1:7: nice: \"\" is not a number"},
        {"nice 4\n", ":1:7: a line looks like: upload-max = 20"},
        {"[limits]\n", ":1:9: a line looks like"},
        {"= 3\n", ":1:1: unknown setting \"\""},
        {"config = /etc/other\n", ":1:1: a configuration file cannot name another one"},
        {"--nice = 1\n", ":1:1: unknown setting \"--nice\""},
        {"nice = \0331\n", ":1:8: a control character"},
        {"observer = perhaps\n", ":1:12: observer: \"perhaps\" must be 1 or 0"},
        {"token = DPN1-X\n", ":1:1: unknown setting \"token\""},
        {"xyzzy = 1\n", "unknown setting \"xyzzy\"; see dpnoded --help"}};
    dp_config config;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        dp_why why = {""};
        write_file(bad[i].text, strlen(bad[i].text));
        CHECK_STATUS(read_it(&config, &why), DP_BADMSG);
        CHECK(strncmp(why.text, path, strlen(path)) == 0);
        if (strstr(why.text, bad[i].wanted) == NULL) {
            print_error("%s\n", why.text);
        }
        CHECK(strstr(why.text, bad[i].wanted) != NULL);
        CHECK_STATUS(start(&config, "--nice=1", &why), DP_BADMSG);
    }
}

static void a_file_that_is_none_or_too_large_is_refused(void **state)
{
    static char large[DP_SETTING_FILE_MAX + 1];
    dp_config config;
    dp_why why = {""};
    (void)state;
    memset(large, '\n', sizeof large);
    write_file(large, sizeof large);
    CHECK_STATUS(read_it(&config, &why), DP_BADMSG);
    CHECK(strstr(why.text, "more than 64 KiB") != NULL);
    write_file(large, sizeof large - 1);
    CHECK_STATUS(read_it(&config, &why), DP_BADMSG);
    CHECK(strstr(why.text, ":65536:1: too many lines") != NULL);
    memset(large, 'x', 2000);
    memcpy(large, "name = ", 7);
    write_file(large, 2000);
    CHECK_STATUS(read_it(&config, &why), DP_BADMSG);
    CHECK(strstr(why.text, "longer than any") != NULL);
    write_file("nice = 1\n\0threads = 2", 21);
    CHECK_STATUS(read_it(&config, &why), DP_BADMSG);
    CHECK(strstr(why.text, ":2:1: a control character") != NULL);
    assert_int_equal(remove(path), 0);
    CHECK_STATUS(start(&config, "--nice=1", &why), DP_NOTFOUND); /* It was named. */
    assert_int_equal(mkdir(path, 0700), 0);
    CHECK_STATUS(read_it(&config, &why), DP_BADMSG);
    CHECK(strstr(why.text, "it is not a file") != NULL);
    assert_int_equal(remove(path), 0);
}

static void every_value_is_written_as_it_is_read(void **state)
{
    static const struct {
        const char *name, *text, *wanted;
    } cases[] = {{"store-max", "200GB", "200GB"},
                 {"store-max", "1536K", "1536K"},
                 {"store-max", "3G", "3G"},
                 {"store-max", "1025", "1025"},
                 {"store-max", "0", "0"},
                 {"observer", "on", "1"},
                 {"nice", "19", "19"},
                 {"name", "a b", "a b"},
                 {"store-max", "20480M", "20G"},
                 {"store-max", "1000000", "1MB"},
                 {"store-max", "16777215T", "16777215T"}};
    char text[DP_CONFIG_VALUE_MAX];
    dp_config config;
    dp_config again;
    dp_why why = {""};
    size_t count = 0;
    const dp_setting *const settings = dp_settings(&count);
    (void)state;
    CHECK_OK(dp_config_default(&config, &why));
    again = config;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t at = (size_t)dp_setting_find(cases[i].name, strlen(cases[i].name));
        CHECK_OK(dp_config_set(&config, cases[i].name, cases[i].text, &why));
        dp_config_text(&config, &settings[at], text);
        assert_string_equal(text, cases[i].wanted);
        CHECK_OK(dp_config_set(&again, cases[i].name, text, &why));
        CHECK(dp_config_same(&config, &again, at));
    }
    for (int from = DP_SETTING_STANDARD; from <= DP_SETTING_ORDER_NOW; from++) {
        CHECK(strlen(dp_setting_from_text((dp_setting_from)from)) > 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_wins_over_defaults_and_others_win_over_it),
        cmocka_unit_test(each_mistake_has_its_line_and_column),
        cmocka_unit_test(a_file_that_is_none_or_too_large_is_refused),
        cmocka_unit_test(every_value_is_written_as_it_is_read),
    };
    tempdir_in_memory();
    tempdir_open(&dir);
    tempdir_file(&dir, "dpnoded.conf", path);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tempdir_close(&dir);
    return failed;
}
