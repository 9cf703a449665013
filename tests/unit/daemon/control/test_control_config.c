/* The settings as the control socket shows them, and the configuration that is read again. */
#include "tests/unit/daemon/bandwidth_limiter_kit.h"
#include "tests/unit/daemon/suspension_kit.h"

static dp_config_live live;
static char path[TEMPDIR_FILE_MAX];
static char named[TEMPDIR_FILE_MAX + 16];
static char nice_word[] = "--nice=5";
static char *words[] = {nice_word, named, nice_word, NULL};

static void write_file(const char *text)
{
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* A daemon that was started with this file. */
static void open_daemon(const char *text)
{
    bool ignored = false;
    dp_why why = {""};
    call_open();
    allowance_open();
    suspension_open();
    tempdir_file(&desk.shelf.dir, "dpnoded.conf", path);
    snprintf(named, sizeof named, "--config=%s", path);
    write_file(text);
    CHECK_OK(dp_config_read(&desk.config, 3, words, &ignored, &ignored, &why));
    dp_config_live_init(&live, &desk.config);
    desk.daemon.live = &live;
    desk.daemon.config = &live.now;
    desk.daemon.argc = 3;
    desk.daemon.argv = words;
}

/* As it was answered last. */
static const dp_pack_value *setting(const char *name)
{
    const dp_pack_value *const settings = dp_pack_key(call_body(), "settings");
    const dp_pack_value *one = dp_pack_at(settings, 0);
    for (uint32_t i = 1; one != NULL && strcmp(text_at(one, "name"), name) != 0; i++) {
        one = dp_pack_at(settings, i);
    }
    CHECK(one != NULL);
    return one;
}

static bool is(const char *name, const char *value, const char *from)
{
    const dp_pack_value *const one = setting(name);
    const bool same = strcmp(text_at(one, "value"), value) == 0;
    return same && strcmp(text_at(one, "from"), from) == 0;
}

static void each_setting_is_told_with_its_source(void **state)
{
    dp_why why = {""};
    (void)state;
    open_daemon("\nupload-max = 20\nupload-month = 200GB\n");
    CHECK_OK(dp_config_live_order(&live, "upload-max", "7", "ann", 99, &why));
    CALL_ALONE(dp_method_config);
    assert_string_equal(text_at(call_body(), "file"), path);
    CHECK(is("upload-max", "7", "order") && number_at(setting("upload-max"), "set_ms") == 99);
    assert_string_equal(text_at(setting("upload-max"), "by"), "ann");
    CHECK(is("upload-month", "200GB", "file") && number_at(setting("upload-month"), "line") == 3);
    CHECK(is("nice", "5", "command line") && is("month-day", "1", "default"));
    CHECK(flag_at(setting("upload-max"), "live") && !flag_at(setting("listen"), "live"));
    CHECK(dp_pack_key(setting("nice"), "line") == NULL);
    call_close();
}

static void a_file_that_is_read_again_changes_what_is_live_and_names_the_rest(void **state)
{
    (void)state;
    open_daemon("upload-max = 20\n");
    write_file("upload-max = 30\nlisten = [::]:9\nnice = 7\n");
    dp_daemon_reload(&desk.daemon);
    CHECK(bandwidth_limiter_kit.n_acts == 1 && suspension_kit.n_acts == 1 &&
          call_kit.n_limits == 1);
    assert_int_equal(desk.daemon.config->upload_max, 30);
    assert_string_equal(desk.daemon.config->listen, "[::]:7717");
    assert_int_equal(desk.daemon.config->nice, 5); /* The command line wins. */
    CHECK(desk_logged("changed: upload-max; changed at the next start of the daemon: listen"));
    CALL_ALONE(dp_method_config);
    CHECK(flag_at(setting("listen"), "until_restart"));
    call_close();
}

static void a_file_with_a_mistake_changes_nothing(void **state)
{
    (void)state;
    open_daemon("upload-max = 20\n");
    write_file("upload-max = 30\nupload-max = 40\n");
    dp_daemon_reload(&desk.daemon);
    assert_int_equal(desk.daemon.config->upload_max, 20);
    CHECK(desk_logged("E0133 the configuration file is not valid, nothing has changed: ") &&
          desk_logged(":2:1: line 1 has this setting already"));
    assert_int_equal(remove(path), 0);
    dp_daemon_reload(&desk.daemon);
    assert_int_equal(desk.daemon.config->upload_max, 20);
    dp_alloc_fail_after(1);
    dp_daemon_reload(&desk.daemon);
    dp_alloc_fail_after(0);
    CHECK(desk_logged("nothing has changed: out of memory"));
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_setting_is_told_with_its_source),
        cmocka_unit_test(a_file_that_is_read_again_changes_what_is_live_and_names_the_rest),
        cmocka_unit_test(a_file_with_a_mistake_changes_nothing),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
