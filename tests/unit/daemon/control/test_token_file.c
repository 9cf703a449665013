/* A token in a file: read when it is there, and not again once the run was entered. The join and
 * the driver are played; waits end at once. */
#include <unistd.h>

#include "daemon/control/control.h"
#include "daemon/control/token_file.h"
#include "tests/unit/daemon/desk.h"
#include "tests/unit/daemon/hurry.h"

enum { WAITS_MAX = 8 }; /* until they no longer double */

static struct {
    dp_token_file *file;
    char path[TEMPDIR_FILE_MAX];
    uint32_t n_joins;
    uint64_t waited_ms[WAITS_MAX];     /* before each */
    char token[DP_TOKEN_TEXT_MAX + 3]; /* with its zero */
    size_t token_size;
    bool enters;      /* the join begins: there is a driver from then on */
    uint32_t n_asked; /* for the manifest */
    bool has_manifest;
} net;

void dp_run_join_unasked(dp_daemon *daemon, dp_view token)
{
    if (net.n_joins < WAITS_MAX) {
        net.waited_ms[net.n_joins] = hurry_last_ms;
    }
    net.n_joins++;
    net.token_size = token.size;
    memcpy(net.token, token.data, token.size);
    net.token[token.size] = '\0';
    daemon->driver = net.enters ? desk.driver : NULL;
}

const dp_manifest *dp_driver_manifest(const dp_driver *driver)
{
    static const dp_manifest manifest;
    (void)driver;
    net.n_asked++;
    return net.has_manifest ? &manifest : NULL;
}

static void folder_open(void)
{
    memset(&net, 0, sizeof net);
    desk_open();
    tempdir_file(&desk.shelf.dir, "token", net.path);
    snprintf(desk.config.token_file, sizeof desk.config.token_file, "%s", net.path);
    hurry_from_ms = DP_TOKEN_FILE_LOOK_MS;
    CHECK_OK(dp_token_file_open(&net.file, &desk.daemon));
}

static void folder_close(void)
{
    dp_token_file_close(net.file);
    hurry_from_ms = UINT64_MAX;
    desk_close();
}

static void write_token(const char *text)
{
    FILE *file = fopen(net.path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static bool has_joined(void *context)
{
    return net.n_joins >= *(const uint32_t *)context;
}

static void wait_for_joins(uint32_t n)
{
    turn_until(&desk.loop, has_joined, &n);
}

static bool has_asked(void *context)
{
    return net.n_asked >= *(const uint32_t *)context;
}

static bool waits(void *context)
{
    (void)context;
    return desk_logged("join.waits");
}

static void a_token_is_taken_as_soon_as_it_is_there_without_blanks_behind(void **state)
{
    (void)state;
    folder_open();
    turn_until(&desk.loop, waits, NULL);
    assert_true(desk_logged("the file does not exist yet"));
    write_token(""); /* It is being written. */
    for (int i = 0; i < 5; i++) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    assert_int_equal(net.n_joins, 0);
    assert_int_equal(dp_event_log_entries(desk.daemon.event_log), 1); /* One line for one cause. */
    write_token("DPN1-ABC \t\r\n\n");
    wait_for_joins(1);
    assert_string_equal(net.token, "DPN1-ABC");
    assert_true(desk_logged("joining by the token in"));
    folder_close();
}

static void a_token_that_brings_nobody_in_is_tried_ever_less_often(void **state)
{
    (void)state;
    folder_open();
    write_token("DPN1-ABC");
    wait_for_joins(WAITS_MAX); /* The next wait is a minute, which is not hurried. */
    for (uint32_t n = 1; n < WAITS_MAX; n++) {
        assert_int_equal(net.waited_ms[n], (uint64_t)DP_TOKEN_FILE_LOOK_MS << (n - 1));
    }
    folder_close();
}

static void a_node_that_has_entered_looks_no_more(void **state)
{
    uint32_t three = 3;
    (void)state;
    folder_open();
    net.enters = true;
    write_token("DPN1-ABC");
    wait_for_joins(1);
    turn_until(&desk.loop, has_asked, &three); /* It is joining: it may still fail. */
    net.has_manifest = true;
    const uint32_t asked = net.n_asked;
    while (net.n_asked == asked) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    desk.daemon.driver = NULL; /* It has left. */
    for (int i = 0; i < 5; i++) {
        uv_run(&desk.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(net.n_joins, 1);
    folder_close();
}

static void a_file_that_is_longer_than_a_token_is_handed_on_as_none(void **state)
{
    static char text[2 * DP_TOKEN_TEXT_MAX];
    (void)state;
    folder_open();
    memset(text, 'A', sizeof text - 1);
    write_token(text);
    wait_for_joins(1);
    assert_int_equal(net.token_size, DP_TOKEN_TEXT_MAX + 2); /* Too long to be one. */
    folder_close();
}

static bool cannot_read(void *context)
{
    (void)context;
    return desk_logged("illegal operation on a directory");
}

static void an_unreadable_token_file_is_reported_with_its_cause(void **state)
{
    (void)state;
    folder_open();
    snprintf(desk.config.token_file, sizeof desk.config.token_file, "%s", desk.shelf.path);
    turn_until(&desk.loop, cannot_read, NULL);
    assert_int_equal(net.n_joins, 0);
    folder_close();
}

static void without_the_setting_or_memory_nothing_is_looked_at(void **state)
{
    dp_token_file *file = NULL;
    (void)state;
    folder_open();
    dp_token_file_close(net.file);
    desk.config.token_file[0] = '\0';
    CHECK_OK(dp_token_file_open(&net.file, &desk.daemon));
    for (int i = 0; i < 5; i++) {
        uv_run(&desk.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(dp_event_log_entries(desk.daemon.event_log), 0);
    dp_alloc_fail_after(1);
    CHECK_STATUS(dp_token_file_open(&file, &desk.daemon), DP_NOMEM);
    dp_alloc_fail_after(0);
    assert_null(file);
    dp_token_file_close(NULL);
    folder_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_taken_as_soon_as_it_is_there_without_blanks_behind),
        cmocka_unit_test(a_token_that_brings_nobody_in_is_tried_ever_less_often),
        cmocka_unit_test(a_node_that_has_entered_looks_no_more),
        cmocka_unit_test(a_file_that_is_longer_than_a_token_is_handed_on_as_none),
        cmocka_unit_test(an_unreadable_token_file_is_reported_with_its_cause),
        cmocka_unit_test(without_the_setting_or_memory_nothing_is_looked_at),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
