#include "daemon/peer/supervisor.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/peer/driver.h"

enum {
    DRAIN_LOOK_MS = 100,
    END_S = 10 /* time for the end after the drain */
};

/* A job on the store thread. It outlives the supervisor if that is closed meanwhile. */
typedef struct beat_job {
    dp_store_thread_job job;
    dp_supervisor *supervisor; /* NULL: the supervisor is closed */
} beat_job;

struct dp_supervisor {
    dp_daemon *daemon;
    uv_timer_t beat;
    uv_timer_t look;
    unsigned n_handles;
    int socket; /* -1: no supervisor listens */
    struct sockaddr_un to;
    socklen_t to_size;
    beat_job *under_way;
    uint64_t drain_since_ms; /* uv_now; 0: not draining */
    uint64_t counted;        /* rounds that had counted this node at that time */
};

/* ---- systemd ---- */

/* A lost message has the same effect as an unsent one: the supervisor decides. */
static void tell(const dp_supervisor *supervisor, const char *text)
{
    if (supervisor->socket >= 0) {
        DP_IGNORE(sendto(supervisor->socket, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
                         (const struct sockaddr *)&supervisor->to, supervisor->to_size) < 0);
    }
}

static void run_beat(dp_store_thread_job *job, dp_store *store)
{
    (void)job;
    (void)store;
}

static void done_beat(dp_store_thread_job *job)
{
    beat_job *self = (beat_job *)job;
    if (self->supervisor != NULL) {
        self->supervisor->under_way = NULL;
        tell(self->supervisor, "WATCHDOG=1");
    }
    dp_free(self);
}

static void on_beat(uv_timer_t *timer)
{
    dp_supervisor *supervisor = timer->data;
    beat_job *job = supervisor->under_way == NULL ? dp_alloc(1, sizeof *job) : NULL;
    if (job == NULL) { /* The previous job has not returned: no sign of life until it does. */
        return;
    }
    job->job.run = run_beat;
    job->job.done = done_beat;
    job->supervisor = supervisor;
    if (dp_store_thread_post(supervisor->daemon->store_thread, &job->job, DP_STORE_THREAD_URGENT) !=
        DP_OK) {
        dp_free(job);
        return;
    }
    supervisor->under_way = job;
}

static void find_supervisor(dp_supervisor *supervisor)
{
    const char *name = getenv("NOTIFY_SOCKET"); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
    const size_t size = name != NULL ? strlen(name) : 0;
    supervisor->to.sun_family = AF_UNIX;
    if (size < 2 || size >= sizeof supervisor->to.sun_path || (name[0] != '/' && name[0] != '@')) {
        return;
    }
    memcpy(supervisor->to.sun_path, name, size);
    supervisor->to_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    if (name[0] == '@') {
        supervisor->to.sun_path[0] = '\0';
    } else {
        supervisor->to_size++;
    }
    supervisor->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* Milliseconds between signs of life; 0: none are requested. */
static uint64_t beat_ms(void)
{
    const char *text = getenv("WATCHDOG_USEC"); /* NOLINT(concurrency-mt-unsafe) */
    const char *pid = getenv("WATCHDOG_PID");   /* NOLINT(concurrency-mt-unsafe) */
    if (text == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid())) {
        return 0;
    }
    const uint64_t ms = strtoull(text, NULL, 10) / 1000 / 2;
    return ms > 0 ? ms : 1;
}

/* ---- a machine that goes away ---- */

uint64_t dp_supervisor_counted(const dp_daemon *daemon)
{
    dp_driver_view view = {0};
    if (daemon->driver != NULL) {
        dp_driver_look(daemon->driver, &view);
    }
    return view.counted;
}

const char *dp_supervisor_drained(const dp_daemon *daemon, uint64_t counted, uint64_t waited_ms,
                                  uint64_t limit_ms)
{
    dp_driver_view view = {0};
    bool works = true;
    if (daemon->driver != NULL) {
        const dp_manifest *const manifest = dp_driver_manifest(daemon->driver);
        dp_driver_look(daemon->driver, &view);
        /* In a run of any model it trains while it has a script, or the last steps of one. */
        works =
            manifest == NULL || !dp_manifest_external(manifest) || view.training || view.uncounted;
    }
    if (!view.running || view.node.mode != DP_MODE_SYNC || daemon->config->observer || !works ||
        strcmp(view.trainer, "up") != 0) {
        return "drained: no round is open";
    }
    if (view.counted > counted) {
        return "drained: this node's work is counted";
    }
    return waited_ms >= limit_ms
               ? "drained: the time is over; a later round counts the published update"
               : NULL;
}

static void go_on_draining(dp_supervisor *supervisor)
{
    dp_daemon *daemon = supervisor->daemon;
    const uint64_t waited_ms = uv_now(daemon->loop) - supervisor->drain_since_ms;
    const char *drained = dp_supervisor_drained(daemon, supervisor->counted, waited_ms,
                                                daemon->config->drain_time * 1000);
    if (drained != NULL) {
        dp_daemon_end(daemon, 0, drained);
    }
}

static void on_look(uv_timer_t *timer)
{
    dp_supervisor *supervisor = timer->data;
    const char *file = supervisor->daemon->config->drain_on_file;
    if (supervisor->daemon->ending) {
        return;
    }
    if (supervisor->drain_since_ms > 0) {
        go_on_draining(supervisor);
    } else if (access(file, F_OK) == 0) {
        char cause[DP_CONFIG_PATH_MAX + 16];
        snprintf(cause, sizeof cause, "the file %s exists", file);
        /* It already drains for another reason. */
        DP_IGNORE(!dp_supervisor_drain(supervisor, cause));
    }
}

/* For the rest of the drain and for the end after it. */
static void ask_for_time(const dp_supervisor *supervisor)
{
    const uint64_t limit_ms = supervisor->daemon->config->drain_time * 1000;
    const uint64_t waited_ms = uv_now(supervisor->daemon->loop) - supervisor->drain_since_ms;
    const uint64_t left_ms = waited_ms < limit_ms ? limit_ms - waited_ms : 0;
    char extend[64];
    snprintf(extend, sizeof extend, "EXTEND_TIMEOUT_USEC=%llu",
             (unsigned long long)(left_ms + (uint64_t)END_S * 1000) * 1000);
    tell(supervisor, extend);
}

bool dp_supervisor_drain(dp_supervisor *supervisor, const char *cause)
{
    dp_daemon *daemon = supervisor->daemon;
    const unsigned long long seconds = daemon->config->drain_time;
    if (supervisor->drain_since_ms > 0) {
        ask_for_time(supervisor); /* The supervisor may count its time from now on. */
        return false;
    }
    supervisor->drain_since_ms = uv_now(daemon->loop);
    supervisor->counted = dp_supervisor_counted(daemon);
    if (dp_supervisor_drained(daemon, supervisor->counted, 0, seconds * 1000) == NULL) {
        dp_event_log_add(
            daemon->event_log, DP_LOG_WARN, "daemon.draining", 0, NULL,
            "%s: this node stops when a round counts its work, after %llu s at the latest", cause,
            seconds);
        ask_for_time(supervisor);
    }
    uv_timer_start(&supervisor->look, on_look, 0, DRAIN_LOOK_MS);
    return true;
}

/* ---- opening ---- */

dp_status dp_supervisor_open(dp_supervisor **out, dp_daemon *daemon)
{
    dp_supervisor *supervisor = dp_alloc(1, sizeof *supervisor);
    if (supervisor == NULL) {
        return DP_NOMEM;
    }
    supervisor->daemon = daemon;
    supervisor->socket = -1;
    find_supervisor(supervisor);
    DP_IGNORE(uv_timer_init(daemon->loop, &supervisor->beat) != 0); /* It does not fail. */
    DP_IGNORE(uv_timer_init(daemon->loop, &supervisor->look) != 0);
    supervisor->n_handles = 2;
    supervisor->beat.data = supervisor;
    supervisor->look.data = supervisor;
    const uint64_t every_ms = supervisor->socket >= 0 ? beat_ms() : 0;
    if (every_ms > 0) {
        uv_timer_start(&supervisor->beat, on_beat, 0, every_ms);
    }
    if (daemon->config->drain_on_file[0] != '\0') {
        uv_timer_start(&supervisor->look, on_look, DP_SUPERVISOR_LOOK_MS, DP_SUPERVISOR_LOOK_MS);
    }
    tell(supervisor, "READY=1");
    *out = supervisor;
    return DP_OK;
}

static void on_closed(uv_handle_t *handle)
{
    dp_supervisor *supervisor = handle->data;
    dp_assert(supervisor->n_handles > 0);
    if (--supervisor->n_handles == 0) {
        dp_free(supervisor);
    }
}

/* After STOPPING=1 systemd waits for the end of this process, and kills it if that takes too long.
 * A new life in the same process is a reload, which its READY=1 ends. */
static void tell_end(const dp_supervisor *supervisor)
{
    char reload[64];
    snprintf(reload, sizeof reload, "RELOADING=1\nMONOTONIC_USEC=%llu\nWATCHDOG=1",
             (unsigned long long)(uv_hrtime() / 1000));
    tell(supervisor, supervisor->daemon->again ? reload : "STOPPING=1");
}

void dp_supervisor_close(dp_supervisor *supervisor)
{
    if (supervisor == NULL) {
        return;
    }
    tell_end(supervisor);
    if (supervisor->socket >= 0) {
        close(supervisor->socket);
    }
    supervisor->socket = -1;
    if (supervisor->under_way != NULL) {
        supervisor->under_way->supervisor = NULL;
    }
    uv_close((uv_handle_t *)&supervisor->beat, on_closed);
    uv_close((uv_handle_t *)&supervisor->look, on_closed);
}
