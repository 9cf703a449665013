/* A driver without node and transport: store, store thread and event log are real, and this file
 * mocks the functions of driver.c for the other files of the driver. A test mocks all other
 * functions that its file calls. Not for tests of driver.c or of the control socket: those use
 * house.h. */
#ifndef DP_TESTS_UNIT_DAEMON_DESK_H
#define DP_TESTS_UNIT_DAEMON_DESK_H

#include <pthread.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/peer/driver_inside.h"
#include "tests/unit/daemon/turn.h"
#include "tests/unit/store/shelf.h"

enum { DESK_EVENTS_MAX = 64 };

static struct desk {
    uv_loop_t loop;
    shelf shelf;
    dp_config config;
    dp_daemon daemon;
    FILE *log;
    char log_path[TEMPDIR_FILE_MAX];
    dp_driver *driver;
    dp_event events[DESK_EVENTS_MAX]; /* that the node would have got */
    uint32_t n_events;
    uint32_t n_lost;
    bool is_full;           /* the queue of the store thread */
    const char *names[256]; /* of peers, by their first byte; NULL: not known */
    bool ended;
    int exit_status;
} desk;

/* ---- driver.c and main.c, as the other files see them. */

void dp_driver_feed(dp_driver *driver, dp_event *event)
{
    (void)driver;
    CHECK(desk.n_events < DESK_EVENTS_MAX);
    desk.events[desk.n_events++] = *event;
}

bool dp_driver_post(dp_driver *driver, dp_store_thread_job *job, dp_store_thread_class class)
{
    if (desk.is_full || dp_store_thread_post(driver->daemon->store_thread, job, class) != DP_OK) {
        return false;
    }
    driver->n_jobs++;
    return true;
}

void dp_driver_job_done(dp_driver *driver)
{
    CHECK(driver->n_jobs > 0);
    driver->n_jobs--;
}

void dp_driver_lost(dp_driver *driver, const dp_hash *root, dp_status status)
{
    (void)driver;
    (void)root;
    (void)status;
    desk.n_lost++;
}

const char *dp_driver_peer_name(const dp_driver *driver, const dp_peer *peer)
{
    const char *const name = desk.names[peer->bytes[0]];
    (void)driver;
    return name != NULL ? name : "";
}

void dp_daemon_end(dp_daemon *daemon, int exit_status, const char *cause)
{
    (void)cause;
    daemon->ending = true;
    desk.ended = true;
    desk.exit_status = exit_status;
}

void dp_daemon_again(dp_daemon *daemon, const char *cause)
{
    daemon->again = true;
    dp_daemon_end(daemon, 0, cause);
}

/* ---- Opening and closing. */

static inline void desk_entry(void *context, const dp_event_log_entry *entry)
{
    (void)context;
    (void)entry;
}

static inline void desk_round(void *context, const dp_event_log_round *round)
{
    (void)context;
    (void)round;
}

static inline dp_driver *desk_open(void)
{
    const dp_event_log_hooks hooks = {.entry = desk_entry, .round = desk_round};
    dp_why why = {""};
    memset(&desk, 0, sizeof desk);
    turn_open(&desk.loop);
    shelf_open(&desk.shelf);
    tempdir_file(&desk.shelf.dir, "log", desk.log_path);
    desk.log = fopen(desk.log_path, "w+");
    assert_non_null(desk.log);
    dp_log_init(desk.log, DP_LOG_DEBUG, "test");
    CHECK_OK(dp_config_default(&desk.config, &why));
    snprintf(desk.config.dir, sizeof desk.config.dir, "%s", desk.shelf.path);
    desk.daemon = (dp_daemon){.loop = &desk.loop, .config = &desk.config};
    CHECK_OK(dp_store_thread_open(&desk.daemon.store_thread, &desk.loop, desk.shelf.store));
    CHECK_OK(
        dp_event_log_open(&desk.daemon.event_log, &desk.loop, desk.daemon.store_thread, &hooks));
    desk.driver = test_calloc(1, sizeof *desk.driver);
    desk.driver->daemon = &desk.daemon;
    desk.driver->facts.run = name_of(1000); /* as the shelf's pins */
    dp_list_init(&desk.driver->held);
    dp_list_init(&desk.driver->behind);
    dp_list_init(&desk.driver->lookups);
    return desk.driver;
}

static inline void desk_close(void)
{
    dp_event_log_flush(desk.daemon.event_log);
    dp_store_thread_close(desk.daemon.store_thread);
    assert_int_equal(desk.driver->n_jobs, 0);
    dp_event_log_close(desk.daemon.event_log);
    turn_close(&desk.loop);
    test_free(desk.driver);
    shelf_close(&desk.shelf);
    dp_log_init(stderr, DP_LOG_INFO, "test");
    fclose(desk.log);
}

/* ---- What a test waits for, and looks at. */

static inline bool desk_is_idle(void *context)
{
    (void)context;
    return desk.driver->n_jobs == 0;
}

/* Until every job of the driver is done. */
static inline void desk_settle(void)
{
    turn_until(&desk.loop, desk_is_idle, NULL);
}

/* ---- Jobs between the pieces of a long one. */

static struct desk_between {
    dp_store_thread_job gate; /* stops the store thread until opened is unlocked */
    pthread_mutex_t opened;
    dp_store_thread_job row; /* writes one, as a vote does */
    bool (*is_over)(void *context);
    bool is_written;
    bool was_between;
} desk_between = {.opened = PTHREAD_MUTEX_INITIALIZER};

static inline void desk_run_gate(dp_store_thread_job *job, dp_store *store)
{
    (void)job;
    (void)store;
    pthread_mutex_lock(&desk_between.opened);
    pthread_mutex_unlock(&desk_between.opened);
}

static inline void desk_done_gate(dp_store_thread_job *job)
{
    (void)job;
}

static inline void desk_run_row(dp_store_thread_job *job, dp_store *store)
{
    (void)job;
    CHECK_OK(dp_store_put(store, "between", dp_view_text("a vote")));
}

static inline void desk_done_row(dp_store_thread_job *job)
{
    (void)job;
    desk_between.is_written = true;
    desk_between.was_between = !desk_between.is_over(NULL);
}

static inline bool desk_between_ends(void *context)
{
    return desk_between.is_written && desk_between.is_over(context);
}

/* From now on jobs only wait. */
static inline void desk_hold(void)
{
    desk_between.gate = (dp_store_thread_job){.run = desk_run_gate, .done = desk_done_gate};
    pthread_mutex_lock(&desk_between.opened);
    CHECK_OK(
        dp_store_thread_post(desk.daemon.store_thread, &desk_between.gate, DP_STORE_THREAD_URGENT));
}

/* Lets them run, and after the first of them the write of a row, if they are of this class. Was it
 * told as written before is_over held? */
static inline bool desk_writes_between(dp_store_thread_class class, bool (*is_over)(void *context))
{
    desk_between.row = (dp_store_thread_job){.run = desk_run_row, .done = desk_done_row};
    desk_between.is_over = is_over;
    desk_between.is_written = false;
    CHECK_OK(dp_store_thread_post(desk.daemon.store_thread, &desk_between.row, class));
    pthread_mutex_unlock(&desk_between.opened);
    turn_until(&desk.loop, desk_between_ends, NULL);
    return desk_between.was_between;
}

/* Does the log hold this text? */
static inline bool desk_logged(const char *text)
{
    static char bytes[64 * 1024];
    fflush(desk.log);
    rewind(desk.log);
    const size_t size = fread(bytes, 1, sizeof bytes - 1, desk.log);
    bytes[size] = '\0';
    fseek(desk.log, 0, SEEK_END);
    return strstr(bytes, text) != NULL;
}

#endif
