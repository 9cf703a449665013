#include <stdlib.h>
#include <string.h>

#include "daemon/host/config.h"
#include "tests/lib/check.h"

static dp_status read_arguments(dp_config *config, dp_why *why, int argc,
                                const char *const *arguments)
{
    char copies[8][128];
    char *argv[9] = {NULL};
    bool help = false;
    bool version = false;
    assert_true(argc < 8);
    for (int i = 0; i < argc; i++) {
        strcpy(copies[i], arguments[i]);
        argv[i] = copies[i];
    }
    why->text[0] = '\0';
    return dp_config_read(config, argc, argv, &help, &version, why);
}

static int clear_environment(void **state)
{
    size_t count = 0;
    const dp_setting *settings = dp_settings(&count);
    (void)state;
    for (size_t i = 0; i < count; i++) {
        char name[64] = "DPNODE_";
        for (size_t k = 0; settings[i].name[k] != '\0'; k++) {
            const char c = settings[i].name[k];
            name[7 + k] = c == '-' ? '_' : (char)(c - 'a' + 'A');
            name[8 + k] = '\0';
        }
        unsetenv(name);
    }
    return 0;
}

static void defaults_are_whole(void **state)
{
    dp_config config;
    dp_why why;
    (void)state;
    CHECK_OK(read_arguments(&config, &why, 1, (const char *[]){"dpnoded"}));
    assert_string_equal(config.listen, "[::]:7717");
    assert_string_equal(config.log_level, "info");
    CHECK(config.dir[0] == '/' && config.socket[0] == '/' && config.name[0] != '\0');
    CHECK(strstr(config.worker, "dpnode-worker") != NULL);
    CHECK(config.cli[0] == '/' && strcmp(strrchr(config.cli, '/'), "/dpnode") == 0);
    CHECK(config.token[0] == '\0');
    assert_int_equal(config.nice, 10);
    CHECK(config.write_per_day == 50ULL << 30 && config.ballast == 64ULL << 20);
    CHECK(!config.observer);
}

static void a_flag_wins_over_the_environment_and_that_over_the_default(void **state)
{
    dp_config config;
    dp_why why;
    (void)state;
    setenv("DPNODE_NICE", "5", 1);
    setenv("DPNODE_WRITE_PER_DAY", "1K", 1);
    CHECK_OK(read_arguments(&config, &why, 1, (const char *[]){"dpnoded"}));
    assert_int_equal(config.nice, 5);
    assert_int_equal(config.write_per_day, 1024);
    CHECK_OK(read_arguments(&config, &why, 3, (const char *[]){"dpnoded", "--nice", "7"}));
    assert_int_equal(config.nice, 7);
    CHECK_OK(
        read_arguments(&config, &why, 3, (const char *[]){"dpnoded", "--nice=8", "--observer"}));
    assert_int_equal(config.nice, 8);
    CHECK(config.observer);
    CHECK(dp_config_from(&config, "nice") == DP_SETTING_COMMAND);
    CHECK(dp_config_from(&config, "write-per-day") == DP_SETTING_ENVIRONMENT);
    CHECK(dp_config_from(&config, "threads") == DP_SETTING_STANDARD);
    setenv("DPNODE_NICE", "loud", 1);
    CHECK_STATUS(read_arguments(&config, &why, 1, (const char *[]){"dpnoded"}), DP_BADARG);
    assert_non_null(strstr(why.text, "nice"));
    clear_environment(NULL);
}

static void a_token_comes_from_the_environment_alone_and_stands_alone(void **state)
{
    static char text[DP_TOKEN_TEXT_MAX + 3];
    dp_config config;
    dp_why why;
    (void)state;
    setenv("DPNODE_TOKEN", "DPN1-ABC", 1);
    CHECK_OK(read_arguments(&config, &why, 1, (const char *[]){"dpnoded"}));
    assert_string_equal(config.token, "DPN1-ABC");
    CHECK_STATUS(
        read_arguments(&config, &why, 3, (const char *[]){"dpnoded", "--create-from", "m.yaml"}),
        DP_BADARG);
    assert_non_null(strstr(why.text, "besides create-from"));
    CHECK_STATUS(
        read_arguments(&config, &why, 3, (const char *[]){"dpnoded", "--token-file", "/t"}),
        DP_BADARG);
    assert_non_null(strstr(why.text, "besides token-file"));
    memset(text, 'A', sizeof text - 1);
    setenv("DPNODE_TOKEN", text, 1);
    CHECK_STATUS(read_arguments(&config, &why, 1, (const char *[]){"dpnoded"}), DP_BADARG);
    assert_non_null(strstr(why.text, "longer than any token"));
    unsetenv("DPNODE_TOKEN");
    CHECK_STATUS(read_arguments(&config, &why, 3, (const char *[]){"dpnoded", "--token", "DPN1"}),
                 DP_BADARG); /* Others would see it in the list of processes. */
}

static void sizes_take_suffixes_and_nothing_else(void **state)
{
    static const struct {
        const char *text;
        uint64_t wanted;
    } good[] = {{"0", 0},
                {"1", 1},
                {"2K", 2048},
                {"3m", 3ULL << 20},
                {"4G", 4ULL << 30},
                {"5t", 5ULL << 40},
                {"6KB", 6000},
                {"1.5G", 3ULL << 29},
                {"16777215T", 16777215ULL << 40},
                {"18446744073709551615", UINT64_MAX}};
    static const char *const bad[] = {"",
                                      " 1",
                                      "-1",
                                      "+1",
                                      "1 K",
                                      "K",
                                      "1Kb",
                                      "1X",
                                      "0x10",
                                      "1.5",
                                      "16777216T",
                                      "18446744073709551616",
                                      "99999999999999999999K"};
    dp_config config;
    dp_why why;
    (void)state;
    CHECK_OK(dp_config_default(&config, &why));
    for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_OK(dp_config_set(&config, "store-max", good[i].text, &why));
        CHECK(config.store_max == good[i].wanted);
    }
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        why.text[0] = '\0';
        CHECK_STATUS(dp_config_set(&config, "store-max", bad[i], &why), DP_BADARG);
        assert_non_null(strstr(why.text, "store-max"));
        CHECK(config.store_max == UINT64_MAX); /* as before */
    }
}

static void numbers_have_bounds_and_texts_a_length(void **state)
{
    dp_config config;
    dp_why why;
    char text[DP_CONFIG_PATH_MAX + 1];
    (void)state;
    CHECK_OK(dp_config_default(&config, &why));
    CHECK_OK(dp_config_set(&config, "nice", "19", &why));
    CHECK_STATUS(dp_config_set(&config, "nice", "20", &why), DP_BADARG);
    CHECK_STATUS(dp_config_set(&config, "threads", "257", &why), DP_BADARG);
    CHECK_STATUS(dp_config_set(&config, "threads", "2K", &why), DP_BADARG);
    memset(text, 'a', sizeof text);
    text[DP_CONFIG_PATH_MAX] = '\0';
    CHECK_STATUS(dp_config_set(&config, "dir", text, &why), DP_BADARG);
    text[DP_CONFIG_PATH_MAX - 1] = '\0';
    CHECK_OK(dp_config_set(&config, "dir", text, &why));
    assert_string_equal(config.dir, text);
    assert_string_equal(config.listen, "[::]:7717"); /* nothing beyond the field */
}

static void flags_are_on_or_off_and_levels_have_names(void **state)
{
    static const char *const on[] = {"1", "true", "yes", "on"};
    static const char *const off[] = {"0", "false", "no", "off"};
    dp_config config;
    dp_why why;
    (void)state;
    CHECK_OK(dp_config_default(&config, &why));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(dp_config_set(&config, "observer", on[i], &why));
        CHECK(config.observer);
        CHECK_OK(dp_config_set(&config, "observer", off[i], &why));
        CHECK(!config.observer);
    }
    CHECK_STATUS(dp_config_set(&config, "observer", "", &why), DP_BADARG);
    CHECK_STATUS(dp_config_set(&config, "observer", "maybe", &why), DP_BADARG);
    CHECK_OK(dp_config_set(&config, "log-level", "debug", &why));
    CHECK_STATUS(dp_config_set(&config, "log-level", "loud", &why), DP_BADARG);
    assert_string_equal(config.log_level, "debug");
}

static void mistakes_are_told_in_a_sentence(void **state)
{
    static const struct {
        const char *argument;
        const char *wanted;
    } cases[] = {{"nonsense", "not an option"},
                 {"--nonsense", "unknown option"},
                 {"--lisen=1.2.3.4:5", "unknown option --lisen=1.2.3.4:5; did you mean --listen?"},
                 {"--dir", "needs a value"},
                 {"--", "unknown option"},
                 {"-x", "not an option"},
                 {"--nice=", "not a number"},
                 {"--dirx=1", "unknown option"},
                 {"", "not an option"},
                 {"--dir=", "--dir is empty"},
                 {"--socket=", "--socket is empty"},
                 {"--listen=", "[::]:7717"},
                 {"--worker=", "--worker is empty"},
                 {"--backend=", "auto, cpu"},
                 {"--schedule=22:00-22:00", "schedule: window 1, \"22:00-22:00\", is empty"},
                 {"--idle-only=maybe", "idle-only: \"maybe\" must be 1 or 0"},
                 {"--advertise=here", "has no port"}};
    dp_config config;
    dp_why why;
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_STATUS(
            read_arguments(&config, &why, 2, (const char *[]){"dpnoded", cases[i].argument}),
            DP_BADARG);
        assert_non_null(strstr(why.text, cases[i].wanted));
    }
    CHECK_STATUS(dp_config_set(&config, "nonsense", "1", &why), DP_NOTFOUND);
}

static void a_cloud_is_asked_where_nothing_is_set(void **state)
{
    dp_config config;
    dp_why why;
    (void)state;
    setenv("PUBLIC_IPADDR", "192.0.2.7", 1);
    setenv("VAST_TCP_PORT_8000", "40003", 1);
    CHECK_OK(read_arguments(&config, &why, 1, (const char *[]){"dpnoded"}));
    assert_string_equal(config.listen, "[::]:8000");
    assert_string_equal(config.advertise, "192.0.2.7:40003");
    CHECK_OK(
        read_arguments(&config, &why, 2, (const char *[]){"dpnoded", "--listen=127.0.0.1:8000"}));
    assert_string_equal(config.listen, "127.0.0.1:8000");
    assert_string_equal(config.advertise, "192.0.2.7:40003");
    CHECK_OK(
        read_arguments(&config, &why, 2, (const char *[]){"dpnoded", "--listen=127.0.0.1:7717"}));
    assert_string_equal(config.advertise, "");
    CHECK_OK(read_arguments(&config, &why, 2, (const char *[]){"dpnoded", "--advertise=a:1"}));
    assert_string_equal(config.listen, "[::]:7717");
    assert_string_equal(config.advertise, "a:1");
    unsetenv("PUBLIC_IPADDR");
    unsetenv("VAST_TCP_PORT_8000");
}

static void help_and_version_are_found_anywhere(void **state)
{
    char *argv[] = {(char[]){"dpnoded"}, (char[]){"--nice=1"}, (char[]){"--help"},
                    (char[]){"--version"}, NULL};
    dp_config config;
    dp_why why;
    bool help = false;
    bool version = false;
    (void)state;
    CHECK_OK(dp_config_read(&config, 4, argv, &help, &version, &why));
    CHECK(help && version);
}

static void every_setting_takes_its_own_default(void **state)
{
    dp_config config;
    dp_why why;
    size_t count = 0;
    (void)state;
    CHECK_OK(dp_config_default(&config, &why));
    CHECK(dp_settings(&count) != NULL && count > 10);
    for (size_t i = 0; i < count; i++) {
        const dp_setting *setting = &dp_settings(&count)[i];
        CHECK(setting->text[0] != '\0' && setting->least <= setting->most);
        CHECK_OK(dp_config_set(&config, setting->name, setting->standard, &why));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_whole),
        cmocka_unit_test(a_flag_wins_over_the_environment_and_that_over_the_default),
        cmocka_unit_test(a_token_comes_from_the_environment_alone_and_stands_alone),
        cmocka_unit_test(sizes_take_suffixes_and_nothing_else),
        cmocka_unit_test(numbers_have_bounds_and_texts_a_length),
        cmocka_unit_test(flags_are_on_or_off_and_levels_have_names),
        cmocka_unit_test(mistakes_are_told_in_a_sentence),
        cmocka_unit_test(a_cloud_is_asked_where_nothing_is_set),
        cmocka_unit_test(help_and_version_are_found_anywhere),
        cmocka_unit_test(every_setting_takes_its_own_default),
    };
    return cmocka_run_group_tests(tests, clear_environment, NULL);
}
