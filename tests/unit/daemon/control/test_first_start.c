/* The first start: a token in a file is read when it is there, and not again once the run was
 * entered. */
#include "tests/unit/daemon/first_start_kit.h"

static void a_token_is_taken_as_soon_as_it_is_there_without_blanks_behind(void **state)
{
    (void)state;
    folder_open();
    turn_until(&desk.loop, waits, NULL);
    assert_true(desk_logged("the file does not exist yet"));
    write_token(""); /* It is being written. */
    turn();
    assert_int_equal(net.n_joins, 0);
    assert_int_equal(count_entries("join.waits"), 2); /* One line for one cause. */
    assert_true(desk_logged("the file is empty"));
    assert_string_equal(code(), "E0215");
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
        assert_int_equal(net.waited_ms[n], (uint64_t)DP_FIRST_START_LOOK_MS << (n - 1));
    }
    folder_close();
}

static void a_node_that_has_entered_looks_no_more(void **state)
{
    (void)state;
    folder_open();
    write_token("DPN1-ABC");
    assert_true(dp_first_start_tries(net.start)); /* From the begin. */
    wait_for_joins(2);
    assert_true(strcmp(code(), "E0202") == 0 && !dp_first_start_tries(net.start));
    net.enters = true;
    wait_for_problem("");
    const uint32_t n_joins = net.n_joins;
    desk.daemon.driver = NULL;                                              /* It is gone. */
    dp_first_start_failed(net.start, &(dp_control_error){.code = "E0206"}); /* Too late. */
    for (int i = 0; i < 5; i++) {
        uv_run(&desk.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(net.n_joins, n_joins);
    assert_true(strcmp(code(), "") == 0 && !dp_first_start_tries(net.start));
    folder_close();
}

static void a_token_that_was_left_is_not_used_again_after_a_restart_neither(void **state)
{
    uint32_t three = 3;
    (void)state;
    folder_open();
    desk.daemon.driver = desk.driver;
    write_token("DPN1-ABC");
    turn_until(&desk.loop, has_asked, &three); /* A command joins: it may still fail. */
    assert_true(dp_first_start_left(net.start));
    desk.daemon.driver = NULL;
    wait_for_problem("E0218");
    assert_false(dp_first_start_left(net.start)); /* Once is enough. */
    open_again();
    wait_for_problem("E0218");
    assert_int_equal(net.n_joins, 0);
    assert_true(desk_logged("its owner has told it to leave") && !desk_logged("DPN1"));
    write_token("DPN1-DEF");
    net.enters = true;
    wait_for_joins(1);
    assert_string_equal(net.token, "DPN1-DEF");
    wait_for_problem("");
    folder_close();
}

static void a_token_that_was_left_is_used_again_once_a_command_has_joined(void **state)
{
    (void)state;
    folder_open();
    write_token("DPN1-ABC");
    wait_for_joins(1);
    assert_true(dp_first_start_left(net.start));
    wait_for_problem("E0218");
    net.has_manifest = true;
    desk.daemon.driver = desk.driver;
    wait_for_problem("");
    desk.daemon.driver = NULL;
    open_again();
    wait_for_joins(net.n_joins + 1);
    folder_close();
}

static void an_order_to_leave_that_cannot_be_written_or_read_is_told_or_forgotten(void **state)
{
    (void)state;
    folder_open();
    CHECK_OK(dp_dir_write_secret(desk.config.dir, "token.left", dp_view_text("short")));
    write_token("DPN1-ABC");
    open_again();
    wait_for_joins(1);
    snprintf(desk.config.dir, sizeof desk.config.dir, "/nowhere");
    assert_true(dp_first_start_left(net.start));
    wait_for_problem("E0218");
    assert_true(desk_logged("token.left cannot be written in /nowhere"));
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
    dp_first_start *none = NULL;
    (void)state;
    folder_open();
    dp_first_start_close(net.start);
    desk.config.token_file[0] = '\0';
    open_start();
    for (int i = 0; i < 5; i++) {
        uv_run(&desk.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(dp_event_log_entries(desk.daemon.event_log), 0);
    dp_alloc_fail_after(1);
    CHECK_STATUS(dp_first_start_open(&none, &desk.daemon), DP_NOMEM);
    dp_alloc_fail_after(0);
    assert_null(none);
    dp_first_start_close(NULL);
    dp_first_start_joined(NULL);
    dp_first_start_failed(NULL, &(dp_control_error){.code = "E0202"});
    assert_false(dp_first_start_left(NULL));
    assert_true(dp_first_start_problem(NULL) == NULL && !dp_first_start_tries(NULL));
    folder_close();
}

static void a_token_of_the_environment_is_joined_by_and_not_shown(void **state)
{
    (void)state;
    folder_open();
    desk.config.token_file[0] = '\0';
    snprintf(desk.config.token, sizeof desk.config.token, "DPN1-ABC ");
    open_again();
    wait_for_joins(2);
    assert_string_equal(net.token, "DPN1-ABC");
    assert_true(desk_logged("joining by the token in DPNODE_TOKEN"));
    assert_false(desk_logged("DPN1"));
    desk.config.token[0] = '\0';
    folder_close();
}

static void a_token_that_others_can_read_is_reported_once_and_used(void **state)
{
    (void)state;
    folder_open();
    write_token("DPN1-ABC");
    assert_int_equal(chmod(net.path, 0604), 0);
    wait_for_joins(3);
    assert_true(desk_logged("chmod o-r"));
    assert_int_equal(count_entries("token.readable"), 1);
    assert_true(count_entries("join.file") >= 3);
    assert_int_equal(count_entries("join.failed"), 1); /* One line for one cause. */
    folder_close();
}

static void a_token_of_another_run_is_named_and_not_used(void **state)
{
    char token[DP_TOKEN_TEXT_MAX + 1];
    dp_run_id run = {.bytes = {5}};
    (void)state;
    folder_open();
    desk.daemon.driver = desk.driver;
    net.has_manifest = true;
    snprintf(net.facts.name, sizeof net.facts.name, "mine");
    make_token(&run, 1000, token);
    write_token(token);
    wait_for_problem("E0216");
    assert_non_null(strstr(dp_first_start_problem(net.start)->why, "of the run a run"));
    assert_non_null(strstr(dp_first_start_problem(net.start)->why, "another run, mine"));
    assert_int_equal(net.n_joins, 0);
    net.facts.run = run;
    open_again();
    const uint32_t asked = net.n_asked;
    while (net.n_asked == asked) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    assert_string_equal(code(), ""); /* Its own. */
    folder_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_taken_as_soon_as_it_is_there_without_blanks_behind),
        cmocka_unit_test(a_token_that_brings_nobody_in_is_tried_ever_less_often),
        cmocka_unit_test(a_node_that_has_entered_looks_no_more),
        cmocka_unit_test(a_token_that_was_left_is_not_used_again_after_a_restart_neither),
        cmocka_unit_test(a_token_that_was_left_is_used_again_once_a_command_has_joined),
        cmocka_unit_test(an_order_to_leave_that_cannot_be_written_or_read_is_told_or_forgotten),
        cmocka_unit_test(a_file_that_is_longer_than_a_token_is_handed_on_as_none),
        cmocka_unit_test(an_unreadable_token_file_is_reported_with_its_cause),
        cmocka_unit_test(without_the_setting_or_memory_nothing_is_looked_at),
        cmocka_unit_test(a_token_of_the_environment_is_joined_by_and_not_shown),
        cmocka_unit_test(a_token_that_others_can_read_is_reported_once_and_used),
        cmocka_unit_test(a_token_of_another_run_is_named_and_not_used),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
