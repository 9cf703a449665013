/* The first start: a token in a file is read when it is there, and not again once the run was
 * entered; a manifest creates one run. The join, dpnode and the driver are played; waits end at
 * once. */
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/control/control.h"
#include "daemon/control/first_start.h"
#include "daemon/host/tool.h"
#include "store/dir.h"
#include "tests/unit/daemon/desk.h"
#include "tests/unit/daemon/hurry.h"

enum { WAITS_MAX = 8 }; /* until they no longer double */

static struct {
    dp_first_start *start;
    char path[TEMPDIR_FILE_MAX];
    uint32_t n_joins;
    uint64_t waited_ms[WAITS_MAX];     /* before each */
    char token[DP_TOKEN_TEXT_MAX + 3]; /* with its zero */
    size_t token_size;
    bool enters;      /* the join succeeds */
    uint32_t n_asked; /* for the manifest */
    bool has_manifest;
    bool is_running;
    dp_run_identity facts; /* of the run that the node is in */
    char words[1024];      /* of the last call of dpnode */
    uint32_t n_tools;
    int tool_exit;
    char tool_output[DP_TOKEN_TEXT_MAX + 1];
    dp_status tool_status;
    dp_tool_done *waiting; /* dpnode runs until it is told to end */
    void *waiting_context;
    bool tool_waits;
    bool creates;     /* dpnode run create succeeds */
    bool knows_other; /* a voter that is linked */
    uint16_t port;    /* of this node; 0: 1 */
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
    if (net.enters) {
        daemon->driver = desk.driver;
        net.has_manifest = true;
        dp_first_start_joined(daemon->first_start);
    } else {
        dp_first_start_failed(daemon->first_start,
                              &(dp_control_error){.code = "E0202", .what = "no member answered"});
    }
}

dp_status dp_tool_run(dp_daemon *daemon, const char *program, const char *const *arguments,
                      dp_tool_done *done, void *context)
{
    snprintf(net.words, sizeof net.words, "%s", program);
    for (size_t i = 0; arguments[i] != NULL; i++) {
        strncat(net.words, " ", sizeof net.words - strlen(net.words) - 1);
        strncat(net.words, arguments[i], sizeof net.words - strlen(net.words) - 1);
    }
    net.n_tools++;
    if (net.tool_status != DP_OK) {
        return net.tool_status;
    }
    if (net.creates && strcmp(arguments[0], "run") == 0) {
        daemon->driver = desk.driver;
        daemon->has_root = true;
        net.has_manifest = true;
        done(context, 0, "created");
    } else if (net.tool_waits) {
        net.waiting = done;
        net.waiting_context = context;
    } else {
        done(context, net.tool_exit, net.tool_output);
    }
    return DP_OK;
}

const dp_run_identity *dp_driver_run_identity(const dp_driver *driver)
{
    (void)driver;
    return &net.facts;
}

void dp_driver_look(const dp_driver *driver, dp_driver_view *view)
{
    (void)driver;
    *view = (dp_driver_view){.running = net.is_running};
}

const dp_manifest *dp_driver_manifest(const dp_driver *driver)
{
    static const dp_manifest manifest;
    (void)driver;
    net.n_asked++;
    return net.has_manifest ? &manifest : NULL;
}

/* This node is at port 1; at port 2 another, once it is known. */
uint32_t dp_driver_addresses(const dp_driver *driver, dp_address *addresses)
{
    (void)driver;
    addresses[0] =
        (dp_address){.kind = DP_ADDRESS_IP4, .port = net.port != 0 ? net.port : (uint16_t)1};
    return 1;
}

uint8_t dp_invite_addresses(const dp_driver *driver, dp_address addresses[DP_TOKEN_ADDRESSES_MAX])
{
    const uint32_t n_own = dp_driver_addresses(driver, addresses);
    addresses[n_own] = (dp_address){.kind = DP_ADDRESS_IP4, .port = 2};
    return (uint8_t)(n_own + (net.knows_other ? 1 : 0));
}

static void open_start(void)
{
    CHECK_OK(dp_first_start_open(&net.start, &desk.daemon));
    desk.daemon.first_start = net.start;
}

/* The settings have changed. */
static void open_again(void)
{
    dp_first_start_close(net.start);
    open_start();
}

static void folder_open(void)
{
    memset(&net, 0, sizeof net);
    net.is_running = true;
    desk_open();
    tempdir_file(&desk.shelf.dir, "token", net.path);
    snprintf(desk.config.token_file, sizeof desk.config.token_file, "%s", net.path);
    snprintf(desk.config.socket, sizeof desk.config.socket, "/s");
    snprintf(desk.config.cli, sizeof desk.config.cli, "dpnode");
    hurry_from_ms = DP_FIRST_START_LOOK_MS;
    open_start();
}

static void folder_close(void)
{
    dp_first_start_close(net.start);
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

/* The timer is closed. */
static bool waits_no_more(void *context)
{
    (void)context;
    return uv_run(&desk.loop, UV_RUN_NOWAIT) >= 0 && ++net.n_asked > 10;
}

static bool waits(void *context)
{
    (void)context;
    return desk_logged("join.waits");
}

/* The code of the problem; "": none. */
static const char *code(void)
{
    const dp_control_error *const problem = dp_first_start_problem(net.start);
    return problem != NULL ? problem->code : "";
}

static void turn(void)
{
    for (int i = 0; i < 5; i++) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
}

/* The problem has this text. */
static bool is_told(void *context)
{
    const dp_control_error *const problem = dp_first_start_problem(net.start);
    return problem != NULL && strstr(problem->why, context) != NULL;
}

static bool has_code(void *context)
{
    return strcmp(code(), context) == 0;
}

static void wait_for_problem(const char *wanted)
{
    char text[8];
    snprintf(text, sizeof text, "%s", wanted);
    turn_until(&desk.loop, has_code, text);
}

static bool has_called(void *context)
{
    return net.n_tools >= *(const uint32_t *)context;
}

static void wait_for_tools(uint32_t n)
{
    turn_until(&desk.loop, has_called, &n);
}

static uint32_t count_entries(const char *name)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < dp_event_log_entries(desk.daemon.event_log); i++) {
        count += strcmp(dp_event_log_entry_at(desk.daemon.event_log, i)->name, name) == 0;
    }
    return count;
}

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

/* A token of this run; by its own key, so that it needs no node. */
static void make_token(dp_run_id *run, uint64_t lasts_ms, char text[DP_TOKEN_TEXT_MAX + 1])
{
    static dp_invite invite;
    dp_sign_key root;
    dp_address addresses[DP_TOKEN_ADDRESSES_MAX];
    const uint8_t seed[32] = {7};
    const dp_entropy entropy = {{9}};
    const uint8_t secret[DP_JOIN_SECRET_BYTES] = {1};
    dp_sign_key_of_seed(seed, &root);
    const uint64_t now = dp_unix_ms();
    const dp_invite_request request = {.run = run,
                                       .root = root.public_key,
                                       .join_secret = secret,
                                       .issuer = &root,
                                       .caps = DP_CAP_TRAIN,
                                       .not_before_ms = now,
                                       .not_after_ms = now + lasts_ms,
                                       .addresses = addresses,
                                       .n_addresses = dp_invite_addresses(desk.driver, addresses),
                                       .name = "a run"};
    CHECK_OK(dp_invite_make(&request, &entropy, &invite, NULL));
    CHECK_OK(dp_invite_write(&invite, text));
    dp_invite_close(&invite);
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
        cmocka_unit_test(a_token_is_taken_as_soon_as_it_is_there_without_blanks_behind),
        cmocka_unit_test(a_token_that_brings_nobody_in_is_tried_ever_less_often),
        cmocka_unit_test(a_node_that_has_entered_looks_no_more),
        cmocka_unit_test(a_file_that_is_longer_than_a_token_is_handed_on_as_none),
        cmocka_unit_test(an_unreadable_token_file_is_reported_with_its_cause),
        cmocka_unit_test(a_token_that_was_left_is_not_used_again_after_a_restart_neither),
        cmocka_unit_test(a_token_that_was_left_is_used_again_once_a_command_has_joined),
        cmocka_unit_test(an_order_to_leave_that_cannot_be_written_or_read_is_told_or_forgotten),
        cmocka_unit_test(a_token_of_the_environment_is_joined_by_and_not_shown),
        cmocka_unit_test(a_token_that_others_can_read_is_reported_once_and_used),
        cmocka_unit_test(a_token_of_another_run_is_named_and_not_used),
        cmocka_unit_test(a_manifest_creates_one_run_and_its_invite_is_kept_in_the_file),
        cmocka_unit_test(an_invite_that_names_its_node_alone_is_replaced_when_another_is_known),
        cmocka_unit_test(an_invite_that_names_an_old_address_of_its_node_alone_is_replaced),
        cmocka_unit_test(an_invite_that_cannot_be_made_or_written_is_named),
        cmocka_unit_test(a_directory_that_has_created_a_run_creates_no_second_one),
        cmocka_unit_test(with_a_token_there_no_run_is_created),
        cmocka_unit_test(dpnode_may_end_after_the_daemon_or_not_begin),
        cmocka_unit_test(without_the_setting_or_memory_nothing_is_looked_at),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
