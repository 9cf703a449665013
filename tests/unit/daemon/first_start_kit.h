/* The daemon around daemon/control/first_start.c: the join, dpnode and the driver are played; waits
 * end at once. */
#ifndef DP_TESTS_UNIT_DAEMON_FIRST_START_KIT_H
#define DP_TESTS_UNIT_DAEMON_FIRST_START_KIT_H

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
    dp_invite_id revoked;
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

const dp_node *dp_driver_node(const dp_driver *driver)
{
    (void)driver;
    return (const dp_node *)(const void *)&net;
}

dp_invite_state dp_node_invite(const dp_node *node, const dp_invite_id *id)
{
    (void)node;
    return memcmp(id->bytes, net.revoked.bytes, sizeof id->bytes) == 0 ? DP_INVITE_REVOKING
                                                                       : DP_INVITE_STANDS;
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

static inline void open_start(void)
{
    CHECK_OK(dp_first_start_open(&net.start, &desk.daemon));
    desk.daemon.first_start = net.start;
}

/* The settings have changed. */
static inline void open_again(void)
{
    dp_first_start_close(net.start);
    open_start();
}

static inline void folder_open(void)
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

static inline void folder_close(void)
{
    dp_first_start_close(net.start);
    hurry_from_ms = UINT64_MAX;
    desk_close();
}

static inline void write_token(const char *text)
{
    FILE *file = fopen(net.path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static inline bool has_joined(void *context)
{
    return net.n_joins >= *(const uint32_t *)context;
}

static inline void wait_for_joins(uint32_t n)
{
    turn_until(&desk.loop, has_joined, &n);
}

static inline bool has_asked(void *context)
{
    return net.n_asked >= *(const uint32_t *)context;
}

/* The timer is closed. */
static inline bool waits_no_more(void *context)
{
    (void)context;
    return uv_run(&desk.loop, UV_RUN_NOWAIT) >= 0 && ++net.n_asked > 10;
}

static inline bool waits(void *context)
{
    (void)context;
    return desk_logged("join.waits");
}

/* The code of the problem; "": none. */
static inline const char *code(void)
{
    const dp_control_error *const problem = dp_first_start_problem(net.start);
    return problem != NULL ? problem->code : "";
}

static inline void turn(void)
{
    for (int i = 0; i < 5; i++) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
}

/* The problem has this text. */
static inline bool is_told(void *context)
{
    const dp_control_error *const problem = dp_first_start_problem(net.start);
    return problem != NULL && strstr(problem->why, context) != NULL;
}

static inline bool has_code(void *context)
{
    return strcmp(code(), context) == 0;
}

static inline void wait_for_problem(const char *wanted)
{
    char text[8];
    snprintf(text, sizeof text, "%s", wanted);
    turn_until(&desk.loop, has_code, text);
}

static inline bool has_called(void *context)
{
    return net.n_tools >= *(const uint32_t *)context;
}

static inline void wait_for_tools(uint32_t n)
{
    turn_until(&desk.loop, has_called, &n);
}

static inline uint32_t count_entries(const char *name)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < dp_event_log_entries(desk.daemon.event_log); i++) {
        count += strcmp(dp_event_log_entry_at(desk.daemon.event_log, i)->name, name) == 0;
    }
    return count;
}

/* A token of this run; by its own key, so that it needs no node. */
static inline void make_token(dp_run_id *run, uint64_t lasts_ms, char text[DP_TOKEN_TEXT_MAX + 1])
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

#endif
