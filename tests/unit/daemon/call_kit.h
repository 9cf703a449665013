/* Calls one method of the control socket with a mock of the driver: gives its parameters and
 * records its answer. desk.h provides store, store thread and event log; this file replaces all of
 * control.c, and the answers of driver.c for users. For files control_*.c; test_control.c tests
 * sockets and clients. */
#ifndef DP_TESTS_UNIT_DAEMON_CALL_KIT_H
#define DP_TESTS_UNIT_DAEMON_CALL_KIT_H

#include "daemon/control/control.h"
#include "daemon/control/first_start.h"
#include "daemon/control/reply.h"
#include "tests/unit/daemon/desk.h"

enum { CALL_FRAMES_MAX = 2048 };

static struct {
    dp_buf out;
    size_t start;
    uint32_t n_frames; /* replies and notices, in order */
    struct {
        uint8_t *bytes;
        dp_control_frame frame;
    } frames[CALL_FRAMES_MAX];
    uint32_t n_errors;
    dp_control_error error; /* the last */
    bool is_gone;           /* the client has closed its end */
    size_t waiting;         /* bytes that it has not read */
    size_t fails_at;        /* the allocation of the next method that fails; 0: none */
    /* the driver */
    dp_driver_view view;
    bool has_manifest;
    bool has_node;
    uint32_t n_members; /* this node included; their ids are their numbers */
    dp_member_view members[12];
    uint32_t n_roster;
    dp_roster_view roster[8];
    uint32_t n_orders;
    dp_admin_command order;               /* the last */
    uint8_t secret[DP_JOIN_SECRET_BYTES]; /* of it */
    dp_status ordered;
    char why[128];     /* that the order is answered with */
    uint32_t n_limits; /* times that the trainer's limits were looked at */
    uint32_t n_commands;
    dp_command command;       /* the last */
    dp_control_error problem; /* of the first start; code "": none */
    bool tries;               /* the first start has no problem so far, and no run */
    uint32_t n_lefts;         /* of it */
    uint32_t n_revoked;       /* invites of which it has heard */
    bool has_token;           /* it would use one */
} call_kit;

/* ---- first_start.c */

bool dp_first_start_tries(const dp_first_start *start)
{
    (void)start;
    return call_kit.tries;
}

const dp_control_error *dp_first_start_problem(const dp_first_start *start)
{
    (void)start;
    return call_kit.problem.code[0] != '\0' ? &call_kit.problem : NULL;
}

void dp_first_start_revoked(dp_first_start *start)
{
    (void)start;
    call_kit.n_revoked++;
}

bool dp_first_start_left(dp_first_start *start)
{
    (void)start;
    call_kit.n_lefts++;
    return call_kit.has_token;
}

/* ---- control.c */

bool dp_call_begin(const dp_call *call, dp_control_kind kind, dp_packer *packer)
{
    if (call_kit.is_gone) {
        return false;
    }
    dp_buf_clear(&call_kit.out);
    *packer = dp_control_begin(&call_kit.out, kind, call->id, "", &call_kit.start);
    return true;
}

void dp_call_end(const dp_call *call, dp_packer *packer)
{
    (void)call;
    CHECK(call_kit.n_frames < CALL_FRAMES_MAX);
    CHECK_OK(dp_control_end(&call_kit.out, call_kit.start, packer));
    uint8_t *bytes = malloc(call_kit.out.size);
    assert_non_null(bytes);
    memcpy(bytes, call_kit.out.data, call_kit.out.size);
    call_kit.frames[call_kit.n_frames].bytes = bytes;
    CHECK_OK(dp_control_frame_open(&call_kit.frames[call_kit.n_frames++].frame,
                                   dp_view_of(bytes, call_kit.out.size)));
}

void dp_call_fail(const dp_call *call, int exit, const char *code, const char *fix,
                  const char *what, const char *why)
{
    (void)call;
    call_kit.n_errors++;
    call_kit.error.exit = exit;
    snprintf(call_kit.error.code, sizeof call_kit.error.code, "%s", code);
    snprintf(call_kit.error.fix, sizeof call_kit.error.fix, "%s", fix);
    snprintf(call_kit.error.what, sizeof call_kit.error.what, "%s", what);
    snprintf(call_kit.error.why, sizeof call_kit.error.why, "%s", why);
}

size_t dp_call_waiting(const dp_call *call)
{
    (void)call;
    return call_kit.waiting;
}

bool dp_call_alive(const dp_call *call)
{
    (void)call;
    return !call_kit.is_gone;
}

void dp_call_user(const dp_call *call, char *name, size_t size)
{
    (void)call;
    snprintf(name, size, "carol");
}

/* ---- control_query.c; its own test defines CALL_KIT_LOOK before this header. */

#ifndef CALL_KIT_LOOK
dp_driver *dp_call_driver(dp_daemon *daemon, const dp_call *call)
{
    if (daemon->driver == NULL) {
        dp_call_fail(call, 75, "E0105", "", "this node is in no run", "");
    }
    return daemon->driver;
}
#endif

/* ---- driver.c and the node, as people see them */

void dp_driver_look(const dp_driver *driver, dp_driver_view *view)
{
    (void)driver;
    *view = call_kit.view;
    view->trainer = view->trainer != NULL ? view->trainer : "down";
    view->device = view->device != NULL ? view->device : "";
}

bool dp_driver_traffic(const dp_driver *driver, const dp_peer *peer, uint64_t *sent,
                       uint64_t *received)
{
    (void)driver;
    *sent = 1000 + peer->bytes[0];
    *received = 2000;
    return peer->bytes[0] == 1;
}

const dp_run_identity *dp_driver_run_identity(const dp_driver *driver)
{
    return &driver->facts;
}

const dp_manifest *dp_driver_manifest(const dp_driver *driver)
{
    return call_kit.has_manifest ? &driver->manifest : NULL;
}

const dp_node *dp_driver_node(const dp_driver *driver)
{
    (void)driver;
    return call_kit.has_node ? (const dp_node *)(const void *)&call_kit : NULL;
}

dp_status dp_driver_order(dp_driver *driver, const dp_admin_command *order)
{
    (void)driver;
    call_kit.n_orders++;
    call_kit.order = *order;
    if (order->secret != NULL) { /* Lent for the call. */
        memcpy(call_kit.secret, order->secret, sizeof call_kit.secret);
    }
    snprintf(order->why->text, sizeof order->why->text, "%s", call_kit.why);
    return call_kit.ordered;
}

void dp_driver_command(dp_driver *driver, dp_command command)
{
    (void)driver;
    call_kit.n_commands++;
    call_kit.command = command;
}

void dp_driver_limit_trainer(dp_driver *driver)
{
    (void)driver;
    call_kit.n_limits++;
}

bool dp_node_member(const dp_node *node, uint32_t index, dp_member_view *view)
{
    (void)node;
    if (index >= call_kit.n_members) {
        return false;
    }
    *view = call_kit.members[index];
    view->peer.bytes[0] = (uint8_t)index;
    return true;
}

bool dp_node_roster(const dp_node *node, uint32_t index, dp_roster_view *view)
{
    (void)node;
    if (index < call_kit.n_roster) {
        *view = call_kit.roster[index];
    }
    return index < call_kit.n_roster;
}

/* ---- Opening and calling. */

/* Only in tests of methods that open lists. */
extern void dp_streams_close(dp_daemon *daemon) __attribute__((weak));

static inline dp_driver *call_open(void)
{
    dp_driver *driver = desk_open();
    memset(&call_kit, 0, sizeof call_kit);
    dp_buf_init(&call_kit.out, DP_CONTROL_FRAME_MAX);
    desk.daemon.driver = driver;
    snprintf(driver->facts.name, sizeof driver->facts.name, "kjv");
    return driver;
}

/* Drops the recorded answer. */
static inline void call_clear(void)
{
    for (uint32_t i = 0; i < call_kit.n_frames; i++) {
        dp_control_frame_close(&call_kit.frames[i].frame);
        free(call_kit.frames[i].bytes);
    }
    call_kit.n_frames = 0;
    call_kit.n_errors = 0;
    call_kit.error = (dp_control_error){.exit = 0};
}

static inline void call_close(void)
{
    if (dp_streams_close != NULL) {
        dp_streams_close(&desk.daemon);
    }
    call_clear();
    dp_buf_close(&call_kit.out);
    desk_close();
}

/* A parameter: text, else a number, else a flag. */
struct call_pair {
    const char *key;
    const char *text;
    uint64_t number;
    bool is_flag;
    bool flag;
};

#define TEXT(key_, text_)                                                                          \
    {                                                                                              \
        .key = (key_), .text = (text_)                                                             \
    }
#define NUMBER(key_, number_)                                                                      \
    {                                                                                              \
        .key = (key_), .number = (number_)                                                         \
    }
#define FLAG(key_, flag_)                                                                          \
    {                                                                                              \
        .key = (key_), .is_flag = true, .flag = (flag_)                                            \
    }

/* Calls the method with these parameters and drops the previous answer. */
static inline void call_with(dp_method *method, const struct call_pair *pairs, size_t n)
{
    const dp_call call = {.daemon = &desk.daemon, .client = 1, .id = 7};
    dp_buf bytes = {.max = 65536};
    size_t start = 0;
    dp_control_frame frame;
    dp_packer packer = dp_control_begin(&bytes, DP_CONTROL_REQUEST, 7, "method", &start);
    dp_group map = dp_map_begin(&packer);
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].text != NULL) {
            dp_pair_text(&map, pairs[i].key, pairs[i].text);
        } else if (pairs[i].is_flag) {
            dp_pair_bool(&map, pairs[i].key, pairs[i].flag);
        } else {
            dp_pair_u64(&map, pairs[i].key, pairs[i].number);
        }
    }
    dp_group_end(&map);
    CHECK_OK(dp_control_end(&bytes, start, &packer));
    CHECK_OK(dp_control_frame_open(&frame, dp_buf_view(&bytes)));
    call_clear();
    dp_alloc_fail_after(call_kit.fails_at);
    method(&desk.daemon, &call, frame.body);
    dp_alloc_fail_after(0);
    dp_control_frame_close(&frame);
    dp_buf_close(&bytes);
}

#define CALL(method, ...)                                                                          \
    call_with(method, (const struct call_pair[]){__VA_ARGS__},                                     \
              sizeof((const struct call_pair[]){__VA_ARGS__}) / sizeof(struct call_pair))
#define CALL_ALONE(method) call_with(method, NULL, 0)

/* ---- What was answered. */

static inline bool call_is_answered(void *context)
{
    (void)context;
    return call_kit.n_errors > 0 ||
           (call_kit.n_frames > 0 &&
            call_kit.frames[call_kit.n_frames - 1].frame.kind == DP_CONTROL_REPLY);
}

static inline void call_wait(void)
{
    turn_until(&desk.loop, call_is_answered, NULL);
}

/* The body of the last frame, or of an earlier one. */
static inline const dp_pack_value *call_body_at(uint32_t index)
{
    CHECK(index < call_kit.n_frames);
    return call_kit.frames[index].frame.body;
}

static inline const dp_pack_value *call_body(void)
{
    CHECK(call_kit.n_frames > 0 && call_kit.n_errors == 0);
    CHECK(call_kit.frames[call_kit.n_frames - 1].frame.kind == DP_CONTROL_REPLY);
    return call_body_at(call_kit.n_frames - 1);
}

static inline uint64_t number_at(const dp_pack_value *map, const char *key)
{
    uint64_t number = UINT64_MAX;
    CHECK(dp_pack_get_u64(dp_pack_key(map, key), &number));
    return number;
}

static inline bool flag_at(const dp_pack_value *map, const char *key)
{
    bool flag = false;
    CHECK(dp_pack_get_bool(dp_pack_key(map, key), &flag));
    return flag;
}

/* Lent until the next call. */
static inline const char *text_at(const dp_pack_value *map, const char *key)
{
    static char text[4096];
    CHECK(dp_pack_copy_text(dp_pack_key(map, key), text, sizeof text));
    return text;
}

static inline bool call_failed(const char *code, int exit)
{
    if (call_kit.n_errors != 1 || call_kit.n_frames != 0 || call_kit.error.exit != exit ||
        strcmp(call_kit.error.code, code) != 0) {
        print_error("%u errors, %s %d: %s; %s\n", call_kit.n_errors, call_kit.error.code,
                    call_kit.error.exit, call_kit.error.what, call_kit.error.why);
        return false;
    }
    return true;
}

#endif
