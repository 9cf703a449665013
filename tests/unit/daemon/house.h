/* An idle daemon in this process: loop, store, store thread, event log and control socket in a
 * folder of its own. */
#ifndef DP_TESTS_UNIT_DAEMON_HOUSE_H
#define DP_TESTS_UNIT_DAEMON_HOUSE_H

#include <stdio.h>

#include "base/log.h"
#include "daemon/control/control.h"
#include "tests/unit/daemon/party.h"
#include "tests/unit/store/shelf.h"

struct house {
    uv_loop_t loop;
    shelf shelf;
    dp_config config;
    dp_daemon daemon;
    FILE *log;
    char log_path[TEMPDIR_FILE_MAX];
};

/* Stands for the function of daemon/main.c. */
void dp_daemon_end(dp_daemon *daemon, int exit_status, const char *cause)
{
    (void)cause;
    daemon->ending = true;
    daemon->exit_status = exit_status;
}

void dp_daemon_again(dp_daemon *daemon, const char *cause)
{
    dp_daemon_end(daemon, 0, cause);
}

dp_status dp_daemon_keep_root(dp_daemon *daemon, const uint8_t seed[DP_ROOT_SEED_BYTES],
                              char moved[DP_ROOT_NAME_MAX], dp_why *why)
{
    (void)seed;
    (void)moved;
    daemon->has_root = false;
    return dp_why_set(why, DP_UNSUPPORTED, "this house keeps no root keys");
}

dp_status dp_daemon_drop_root(dp_daemon *daemon, const char *moved)
{
    (void)moved;
    daemon->has_root = false;
    return DP_OK;
}

static inline void house_entry(void *context, const dp_event_log_entry *entry)
{
    const dp_daemon *daemon = context;
    (void)entry;
    if (daemon->control != NULL) {
        dp_control_on_entry(daemon->control);
    }
}

static inline void house_round(void *context, const dp_event_log_round *round)
{
    const dp_daemon *daemon = context;
    (void)round;
    if (daemon->control != NULL) {
        dp_control_on_round(daemon->control);
    }
}

/* Opens the parts that use the shelf's store: the store thread and the event log. */
static inline void house_open_rows(struct house *house)
{
    const dp_event_log_hooks hooks = {&house->daemon, house_entry, house_round};
    CHECK_OK(dp_store_thread_open(&house->daemon.store_thread, &house->loop, house->shelf.store));
    CHECK_OK(dp_event_log_open(&house->daemon.event_log, &house->loop, house->daemon.store_thread,
                               &hooks));
}

static inline void house_close_rows(struct house *house)
{
    dp_event_log_flush(house->daemon.event_log);
    dp_store_thread_close(house->daemon.store_thread);
    house->daemon.store_thread = NULL;
    dp_event_log_close(house->daemon.event_log);
    house->daemon.event_log = NULL;
}

static inline void house_open(struct house *house)
{
    dp_why why = {""};
    memset(house, 0, sizeof *house);
    turn_open(&house->loop);
    shelf_open(&house->shelf);
    tempdir_file(&house->shelf.dir, "log", house->log_path);
    house->log = fopen(house->log_path, "w+");
    assert_non_null(house->log);
    dp_log_init(house->log, DP_LOG_INFO, "test");
    CHECK_OK(dp_config_default(&house->config, &why));
    snprintf(house->config.dir, sizeof house->config.dir, "%s", house->shelf.path);
    tempdir_file(&house->shelf.dir, "sock", house->config.socket);
    snprintf(house->config.name, sizeof house->config.name, "ann");
    house->daemon = (dp_daemon){.loop = &house->loop,
                                .config = &house->config,
                                .store = house->shelf.store,
                                .identity = party_of()->identities[0],
                                .incarnation = 1,
                                .started_ms = dp_boot_ms()};
    house_open_rows(house);
}

static inline void house_open_control(struct house *house)
{
    dp_why why = {""};
    const dp_status status =
        dp_control_open(&house->daemon.control, &house->daemon, house->config.socket, &why);
    if (status != DP_OK) {
        print_error("%s\n", why.text);
    }
    CHECK_OK(status);
}

/* As daemon/main.c does it. */
static inline void house_close(struct house *house)
{
    dp_control_close(house->daemon.control);
    house->daemon.control = NULL;
    house_close_rows(house);
    turn_close(&house->loop);
    shelf_close(&house->shelf);
    dp_log_init(stderr, DP_LOG_INFO, "test");
    fclose(house->log);
}

/* Does the log hold this text? */
static inline bool house_logged(struct house *house, const char *text)
{
    static char bytes[256 * 1024];
    fflush(house->log);
    rewind(house->log);
    const size_t size = fread(bytes, 1, sizeof bytes - 1, house->log);
    bytes[size] = '\0';
    fseek(house->log, 0, SEEK_END);
    return strstr(bytes, text) != NULL;
}

#endif
