/* The first start of a founder: a manifest creates one run, whose invite is kept in the file. */
#include "tests/unit/daemon/first_start_kit.h"

static void founder_open(void)
{
    folder_open();
    snprintf(desk.config.create_from, sizeof desk.config.create_from, "/m.yaml");
}

static void a_manifest_creates_one_run_and_its_invite_is_kept_in_the_file(void **state)
{
    char token[DP_TOKEN_TEXT_MAX + 1];
    char kept[DP_TOKEN_TEXT_MAX + 2] = "";
    struct stat about;
    (void)state;
    founder_open();
    net.tool_exit = 65;
    snprintf(net.tool_output, sizeof net.tool_output,
             "error E0301: the manifest cannot be used\n  why: m.yaml:1:1: no\n  fix: do this");
    wait_for_problem("E0301");
    assert_string_equal(net.words, "dpnode run create /m.yaml --socket /s");
    assert_string_equal(dp_first_start_problem(net.start)->what, "the manifest cannot be used");
    assert_string_equal(dp_first_start_problem(net.start)->why, "m.yaml:1:1: no");
    assert_string_equal(dp_first_start_problem(net.start)->fix, "do this");
    snprintf(desk.config.create_from, sizeof desk.config.create_from, "demo:kjv");
    wait_for_tools(net.n_tools + 2); /* Again and again. */
    assert_string_equal(net.words, "dpnode run create --demo kjv --socket /s");
    make_token(&net.facts.run, DP_FIRST_START_INVITE_DAYS * 24ULL * 3600 * 1000, token);
    net.tool_exit = 0;
    snprintf(net.tool_output, sizeof net.tool_output, "%s", token);
    net.creates = true;
    net.is_running = false;
    wait_for_tools(net.n_tools + 1);
    turn();
    assert_non_null(strstr(net.words, "run create")); /* The port may not be known yet. */
    net.is_running = true;
    wait_for_tools(net.n_tools + 1);
    assert_string_equal(net.words, "dpnode invite --role vote --uses 0 --expires 7d --socket /s");
    wait_for_problem("");
    FILE *const file = fopen(net.path, "re");
    assert_non_null(file);
    assert_non_null(fgets(kept, sizeof kept, file));
    fclose(file);
    assert_string_equal(kept, token);
    assert_int_equal(stat(net.path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    const uint32_t n_tools = net.n_tools;
    open_again(); /* It is there, and lasts. */
    turn();
    assert_int_equal(net.n_tools, n_tools);
    net.facts.psk_epoch++; /* The join secret was rotated. */
    open_again();
    wait_for_tools(n_tools + 1);
    net.facts.psk_epoch--;
    make_token(&net.facts.run, DP_FIRST_START_INVITE_DAYS * 24ULL * 3600 * 1000 / 2 - 1000, token);
    write_token(token); /* More than half of its time is over. */
    open_again();
    wait_for_tools(n_tools + 2);
    assert_int_equal(net.n_joins, 0);
    folder_close();
}

/* A founder with an invite that names it alone. */
static void open_alone(void)
{
    char alone[DP_TOKEN_TEXT_MAX + 1];
    founder_open();
    desk.daemon.driver = desk.driver;
    desk.daemon.has_root = true;
    net.has_manifest = true;
    make_token(&net.facts.run, DP_FIRST_START_INVITE_DAYS * 24ULL * 3600 * 1000, alone);
    write_token(alone);
}

static void an_invite_that_names_its_node_alone_is_replaced_when_another_is_known(void **state)
{
    (void)state;
    open_alone();
    open_again();
    turn();
    assert_int_equal(net.n_tools, 0);
    net.knows_other = true;
    desk.daemon.root.public_key[0] ^= 1; /* It is of another run. */
    open_again();
    turn();
    assert_int_equal(net.n_tools, 0);
    desk.daemon.root.public_key[0] ^= 1;
    open_again();
    make_token(&net.facts.run, DP_FIRST_START_INVITE_DAYS * 24ULL * 3600 * 1000, net.tool_output);
    wait_for_tools(1);
    assert_string_equal(net.words, "dpnode invite --role vote --uses 0 --expires 7d --socket /s");
    open_again();
    turn();
    assert_int_equal(net.n_tools, 1); /* It names another now. */
    folder_close();
}

static void a_revoked_invite_is_replaced_at_once(void **state)
{
    static dp_invite invite;
    dp_credential credential;
    char kept[DP_TOKEN_TEXT_MAX + 2] = "";
    (void)state;
    open_alone();
    open_again();
    turn();
    assert_int_equal(net.n_tools, 0); /* It lasts; the next look is not hurried. */
    FILE *const file = fopen(net.path, "re");
    assert_non_null(file);
    assert_non_null(fgets(kept, sizeof kept, file));
    fclose(file);
    CHECK_OK(dp_invite_parse(dp_view_text(kept), &invite, NULL, NULL));
    CHECK_OK(dp_invite_check(&invite, dp_unix_ms(), &credential, NULL));
    dp_invite_close(&invite);
    net.revoked = credential.invite;
    net.tool_waits = true;
    dp_first_start_revoked(net.start);
    wait_for_tools(1);
    assert_string_equal(net.words, "dpnode invite --role vote --uses 0 --expires 7d --socket /s");
    dp_first_start_revoked(net.start); /* While dpnode makes the new one. */
    turn();
    assert_int_equal(net.n_tools, 1);
    dp_first_start_revoked(NULL);
    net.waiting(net.waiting_context, 70, "");
    folder_close();
}

static void an_invite_that_names_an_old_address_of_its_node_alone_is_replaced(void **state)
{
    (void)state;
    open_alone();
    net.port = 3; /* The node has moved. */
    net.knows_other = true;
    make_token(&net.facts.run, DP_FIRST_START_INVITE_DAYS * 24ULL * 3600 * 1000, net.tool_output);
    open_again();
    wait_for_tools(1);
    folder_close();
}

static void an_invite_that_cannot_be_made_or_written_is_named(void **state)
{
    (void)state;
    founder_open();
    net.creates = true;
    snprintf(net.tool_output, sizeof net.tool_output, "what is this?");
    wait_for_problem("E0315"); /* No error of dpnode, and no invite. */
    assert_string_equal(dp_first_start_problem(net.start)->why, "what is this?");
    assert_int_not_equal(access(net.path, F_OK), 0);
    make_token(&net.facts.run, 1000, net.tool_output);
    snprintf(desk.config.token_file, sizeof desk.config.token_file, "/nowhere/at/all");
    wait_for_problem("E0217");
    assert_non_null(strstr(dp_first_start_problem(net.start)->why, "/nowhere/at/all"));
    snprintf(desk.config.token_file, sizeof desk.config.token_file, "%s", net.path);
    write_token("my diary"); /* Not ours: it stays. */
    const uint32_t n_tools = net.n_tools;
    turn_until(&desk.loop, is_told, "holds no invite of this run");
    snprintf(desk.config.token_file, sizeof desk.config.token_file, "%s", desk.shelf.path);
    turn_until(&desk.loop, is_told, "illegal operation on a directory");
    assert_int_equal(net.n_tools, n_tools);
    assert_int_equal(unlink(net.path), 0);
    snprintf(desk.config.token_file, sizeof desk.config.token_file, "%s", net.path);
    net.tool_waits = true;
    while (net.waiting == NULL) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    assert_int_equal(mkdir(net.path, 0700), 0); /* A file cannot take its place. */
    net.waiting(net.waiting_context, 0, net.tool_output);
    turn_until(&desk.loop, is_told, net.path);
    assert_int_equal(net.n_tools, n_tools + 1);
    assert_int_equal(rmdir(net.path), 0);
    make_token(&net.facts.run, DP_FIRST_START_INVITE_DAYS * 24ULL * 3600 * 1000, net.tool_output);
    write_token(net.tool_output); /* Its owner has written one. */
    dp_first_start_joined(net.start);
    wait_for_problem("");
    folder_close();
}

static void a_directory_that_has_created_a_run_creates_no_second_one(void **state)
{
    (void)state;
    founder_open();
    desk.daemon.has_root = true;
    wait_for_problem("E0316");
    desk.daemon.has_root = false;
    desk.daemon.lost = true;
    open_again();
    wait_for_problem("E0316");
    assert_int_equal(net.n_tools, 0);
    write_token("DPN1-ABC"); /* It may join. */
    wait_for_joins(1);
    desk.daemon.lost = false;
    folder_close();
}

static void with_a_token_there_no_run_is_created(void **state)
{
    (void)state;
    founder_open();
    write_token(""); /* It is being written. */
    wait_for_problem("E0215");
    write_token("DPN1-ABC");
    wait_for_joins(2);
    assert_int_equal(net.n_tools, 0);
    folder_close();
}

static void dpnode_may_end_after_the_daemon_or_not_begin(void **state)
{
    (void)state;
    founder_open();
    net.tool_status = DP_NOMEM;
    wait_for_problem("E0315");
    net.tool_status = DP_OK;
    net.tool_waits = true;
    while (net.waiting == NULL) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    dp_first_start_close(net.start);
    turn_until(&desk.loop, waits_no_more, NULL);
    net.waiting(net.waiting_context, -1, ""); /* It is freed here. */
    net.start = NULL;
    desk.daemon.first_start = NULL;
    folder_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_creates_one_run_and_its_invite_is_kept_in_the_file),
        cmocka_unit_test(an_invite_that_names_its_node_alone_is_replaced_when_another_is_known),
        cmocka_unit_test(a_revoked_invite_is_replaced_at_once),
        cmocka_unit_test(an_invite_that_names_an_old_address_of_its_node_alone_is_replaced),
        cmocka_unit_test(an_invite_that_cannot_be_made_or_written_is_named),
        cmocka_unit_test(a_directory_that_has_created_a_run_creates_no_second_one),
        cmocka_unit_test(with_a_token_there_no_run_is_created),
        cmocka_unit_test(dpnode_may_end_after_the_daemon_or_not_begin),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
