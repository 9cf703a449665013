#include "daemon/peer/allowance.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/size.h"
#include "daemon/host/daemon.h"
#include "daemon/net/throttle.h"
#include "daemon/peer/driver.h"

enum {
    TICK_MS = 1000,
    KEEP_MS = 60 * 1000,
    KEEP_UNCAPPED_MS = 10 * KEEP_MS,
    CHANGE_SHARE = 16, /* a limit that moves by less is left as it is */
    ROW_BYTES_MAX = 512
};
_Static_assert((int)DP_MONTH_BYTES_MAX <= (int)ROW_BYTES_MAX &&
                   (int)DP_ALLOW_BYTES_MAX <= (int)ROW_BYTES_MAX &&
                   (int)DP_PAUSE_BYTES_MAX <= (int)ROW_BYTES_MAX,
               "rows fit");
#define MBIT UINT64_C(125000) /* bytes */

static const char limits_key[] = "limits";
static const char traffic_key[] = "traffic";
static const char pause_key[] = "pause";

struct dp_allowance {
    dp_daemon *daemon;
    dp_allowance_clock *wall_ms;
    uv_timer_t timer;
    dp_allow_set set;
    dp_month month;
    uint64_t began_ms;
    uint64_t kept_ms;                /* when the counts were written last */
    uint64_t counted[DP_MONTH_WAYS]; /* of the transport's bytes */
    dp_limits limits;                /* that the transport was given */
    bool used_up;
    dp_pause pause; /* by the owner */
};

/* ---- rows ---- */

typedef struct put_job {
    dp_store_thread_job job;
    const char *key;
    dp_allowance_kept *kept; /* NULL: nobody waits */
    void *context;
    dp_status status;
    size_t size;
    uint8_t bytes[ROW_BYTES_MAX];
} put_job;

static void run_put(dp_store_thread_job *job, dp_store *store)
{
    put_job *self = (put_job *)job;
    self->status = self->size > 0
                       ? dp_store_put(store, self->key, dp_view_of(self->bytes, self->size))
                       : dp_store_delete(store, self->key);
    self->status = self->status == DP_NOTFOUND ? DP_OK : self->status;
}

static void done_put(dp_store_thread_job *job)
{
    put_job *self = (put_job *)job;
    if (self->kept != NULL) {
        self->kept(self->context, self->status);
    }
    dp_free(self);
}

/* No bytes: the row goes. */
static dp_status put(const dp_allowance *allowance, const char *key, dp_view bytes,
                     dp_allowance_kept *kept, void *context)
{
    put_job *job = dp_alloc(1, sizeof *job);
    if (job == NULL) {
        return DP_NOMEM;
    }
    job->job.run = run_put;
    job->job.done = done_put;
    job->key = key;
    job->kept = kept;
    job->context = context;
    job->size = bytes.size;
    if (bytes.size > 0) {
        memcpy(job->bytes, bytes.data, bytes.size);
    }
    const dp_status status =
        dp_store_thread_post(allowance->daemon->store_thread, &job->job, DP_STORE_THREAD_BULK);
    if (status != DP_OK) {
        dp_free(job);
    }
    return status;
}

dp_status dp_allowance_keep(dp_allowance *allowance, dp_allowance_kept *done, void *context)
{
    uint8_t bytes[DP_ALLOW_BYTES_MAX];
    return put(allowance, limits_key, dp_allow_write(&allowance->set, bytes), done, context);
}

static void keep_counts(dp_allowance *allowance)
{
    uint8_t bytes[DP_MONTH_BYTES_MAX];
    allowance->kept_ms = allowance->month.now_ms;
    /* What is not written now is in what is written next time. */
    DP_IGNORE(put(allowance, traffic_key, dp_month_write(&allowance->month, bytes), NULL, NULL));
}

/* Only a store without the row says that the node may train. */
static void read_pause(dp_allowance *allowance)
{
    dp_buf buf;
    dp_buf_init(&buf, ROW_BYTES_MAX);
    dp_status status = dp_store_get(allowance->daemon->store, pause_key, &buf);
    if (status != DP_NOTFOUND) {
        allowance->pause = (dp_pause){.holds = true};
        status = status == DP_OK ? dp_pause_read(&allowance->pause, dp_buf_view(&buf)) : status;
        if (status != DP_OK) {
            dp_log(DP_LOG_WARN, "pause.damaged",
                   "msg=\"the stored pause cannot be read: %s; this node stays paused; to train "
                   "again: dpnode resume\"",
                   dp_status_text(status));
        }
    }
    dp_buf_close(&buf);
}

static void read_rows(dp_allowance *allowance)
{
    dp_store *const store = allowance->daemon->store;
    dp_buf buf;
    dp_buf_init(&buf, ROW_BYTES_MAX);
    dp_status status = dp_store_get(store, limits_key, &buf);
    status = status == DP_OK ? dp_allow_read(&allowance->set, dp_buf_view(&buf)) : status;
    if (status != DP_OK && status != DP_NOTFOUND) {
        dp_log(DP_LOG_WARN, "limits.lost",
               "msg=\"the stored limits cannot be read: %s; set them again: dpnode limits\"",
               dp_status_text(status));
    }
    dp_buf_close(&buf);
    dp_buf_init(&buf, ROW_BYTES_MAX);
    status = dp_store_get(store, traffic_key, &buf);
    status = status == DP_OK ? dp_month_read(&allowance->month, dp_buf_view(&buf)) : status;
    if (status != DP_OK && status != DP_NOTFOUND) {
        dp_log(DP_LOG_WARN, "limits.lost",
               "msg=\"the stored count of this month's bytes cannot be read: %s; counting from 0\"",
               dp_status_text(status));
    }
    dp_buf_close(&buf);
}

/* ---- what holds ---- */

static uint64_t value_of(const dp_allowance *allowance, dp_allow which)
{
    return allowance->set.values[which].value;
}

static uint64_t cap_of(const dp_allowance *allowance, int way)
{
    return value_of(allowance,
                    way == (int)DP_MONTH_UP ? DP_ALLOW_UPLOAD_MONTH : DP_ALLOW_DOWNLOAD_MONTH);
}

/* Bytes per second of one direction; 0: any, 1: as good as none. */
static uint64_t limit_of(const dp_allowance *allowance, dp_allow which, dp_month_way way)
{
    const uint64_t line = value_of(allowance, which) * MBIT;
    const uint64_t month = dp_month_rate(&allowance->month, way, cap_of(allowance, (int)way));
    if (month >= DP_THROTTLE_RATE_MAX) {
        return line;
    }
    const uint64_t least = month > 0 ? month : 1;
    return line == 0 || least < line ? least : line;
}

/* Whose the limit is: of the line, or of the month, which is lower. */
static dp_allow maker_of(const dp_allowance *allowance, dp_allow line, dp_month_way way)
{
    const uint64_t of_line = value_of(allowance, line) * MBIT;
    const uint64_t holds =
        way == DP_MONTH_UP ? allowance->limits.upload : allowance->limits.download;
    if (of_line > 0 && of_line <= holds) {
        return line;
    }
    return way == DP_MONTH_UP ? DP_ALLOW_UPLOAD_MONTH : DP_ALLOW_DOWNLOAD_MONTH;
}

static bool is_news(uint64_t was, uint64_t is)
{
    const uint64_t moved = was > is ? was - is : is - was;
    return moved > 0 && (was == 0 || is <= 1 || moved > was / CHANGE_SHARE);
}

static void tell_limits(dp_allowance *allowance)
{
    const dp_limits limits = {.upload = limit_of(allowance, DP_ALLOW_UPLOAD, DP_MONTH_UP),
                              .download = limit_of(allowance, DP_ALLOW_DOWNLOAD, DP_MONTH_DOWN)};
    if (is_news(allowance->limits.upload, limits.upload) ||
        is_news(allowance->limits.download, limits.download)) {
        allowance->limits = limits;
        if (allowance->daemon->driver != NULL) {
            dp_driver_limit(allowance->daemon->driver);
        }
    }
}

/* The first that is used up; -1: none. */
static int used_up(const dp_allowance *allowance)
{
    for (int way = 0; way < DP_MONTH_WAYS; way++) {
        if (dp_month_rate(&allowance->month, (dp_month_way)way, cap_of(allowance, way)) == 0) {
            return way;
        }
    }
    return -1;
}

bool dp_allowance_why(const dp_allowance *allowance, char *text, size_t size)
{
    const int way = allowance == NULL ? -1 : used_up(allowance);
    if (way < 0) {
        return false;
    }
    const time_t until =
        (time_t)((allowance->month.wall_ms + dp_month_left_ms(&allowance->month)) / 1000);
    char date[32] = "?";
    struct tm parts;
    if (gmtime_r(&until, &parts) != NULL) {
        DP_IGNORE(strftime(date, sizeof date, "%Y-%m-%d", &parts) == 0); /* It fits. */
    }
    char cap[DP_SIZE_TEXT_MAX];
    dp_size_text(cap_of(allowance, way), cap);
    snprintf(text, size, "this month's %s of %s is used up until %s",
             way == DP_MONTH_UP ? "upload" : "download", cap, date);
    return true;
}

/* A node of which nothing can be fetched, or that can fetch nothing, holds up who waits for it. */
static void rest_or_go_on(dp_allowance *allowance)
{
    char why[128];
    dp_daemon *const daemon = allowance->daemon;
    const bool was = allowance->used_up;
    allowance->used_up = dp_allowance_why(allowance, why, sizeof why);
    if (allowance->used_up != was) { /* Whoever is killed now must not begin anew. */
        keep_counts(allowance);
    }
    if (allowance->used_up && !was) {
        dp_event_log_add(
            daemon->event_log, DP_LOG_WARN, "limits.used_up", 0, NULL,
            "%s; this node stays a member, votes, and resumes training then; to raise the "
            "quota: dpnode limits",
            why);
    } else if (was && !allowance->used_up) {
        dp_event_log_add(daemon->event_log, DP_LOG_INFO, "limits.again", 0, NULL,
                         "the bandwidth quota allows traffic again");
    }
    if (daemon->driver == NULL) {
        return;
    }
    dp_driver_view view;
    dp_driver_look(daemon->driver, &view);
    if (allowance->used_up && view.running &&
        (view.node.mode == DP_MODE_SYNC || view.node.mode == DP_MODE_GOSSIP)) {
        dp_driver_command(daemon->driver, DP_COMMAND_PAUSE);
    } else if (was && !allowance->used_up && !allowance->pause.holds) {
        dp_driver_command(daemon->driver, DP_COMMAND_RESUME);
    }
}

static void pass(dp_allowance *allowance)
{
    const uint64_t caps[DP_MONTH_WAYS] = {cap_of(allowance, DP_MONTH_UP),
                                          cap_of(allowance, DP_MONTH_DOWN)};
    dp_month_pass(&allowance->month, caps, (uint32_t)value_of(allowance, DP_ALLOW_MONTH_DAY),
                  allowance->wall_ms(), uv_now(allowance->daemon->loop));
}

static void count(dp_allowance *allowance, dp_month_way way, uint64_t total)
{
    uint64_t *const before = &allowance->counted[way];
    /* Another transport counts from 0. */
    dp_month_use(&allowance->month, way, total >= *before ? total - *before : total);
    *before = total;
}

static void act(dp_allowance *allowance)
{
    pass(allowance);
    tell_limits(allowance);
    rest_or_go_on(allowance);
}

void dp_allowance_count(dp_allowance *allowance, uint64_t sent, uint64_t received)
{
    const bool capped =
        cap_of(allowance, DP_MONTH_UP) != 0 || cap_of(allowance, DP_MONTH_DOWN) != 0;
    count(allowance, DP_MONTH_UP, sent);
    count(allowance, DP_MONTH_DOWN, received);
    act(allowance);
    /* Twice as long each time: who dies soon after each start has counted half of it at least. */
    const uint64_t life_ms = allowance->kept_ms - allowance->began_ms;
    const uint64_t most_ms = capped ? KEEP_MS : KEEP_UNCAPPED_MS;
    if (allowance->month.now_ms - allowance->kept_ms >= (life_ms < most_ms ? life_ms : most_ms)) {
        keep_counts(allowance);
    }
}

static void look(dp_allowance *allowance)
{
    dp_driver_view view = {.running = false};
    if (allowance->daemon->driver != NULL) {
        dp_driver_look(allowance->daemon->driver, &view);
    }
    dp_allowance_count(allowance, view.transport.bytes_sent, view.transport.bytes_received);
}

static void on_timer(uv_timer_t *timer)
{
    look(timer->data);
}

void dp_allowance_change(dp_allowance *allowance, dp_allow which, uint64_t value)
{
    dp_allow_change(&allowance->set, which, value);
    act(allowance);
}

dp_status dp_allowance_pause(dp_allowance *allowance, const dp_pause *pause,
                             dp_allowance_kept *done, void *context)
{
    uint8_t bytes[DP_PAUSE_BYTES_MAX];
    if (allowance == NULL) {
        return DP_CLOSED;
    }
    allowance->pause = *pause;
    return put(allowance, pause_key,
               pause->holds ? dp_pause_write(pause, bytes) : dp_view_of(bytes, 0), done, context);
}

dp_limits dp_allowance_limits(const dp_allowance *allowance)
{
    return allowance != NULL ? allowance->limits : (dp_limits){0};
}

bool dp_allowance_look(const dp_allowance *allowance, dp_allowance_view *view)
{
    if (allowance == NULL) {
        return false;
    }
    const dp_month *const month = &allowance->month;
    *view = (dp_allowance_view){
        .set = allowance->set, .used_up = allowance->used_up, .pause = allowance->pause};
    DP_IGNORE(dp_month_number(month->wall_ms, month->day, &view->begin_ms, &view->end_ms) == 0);
    for (int way = 0; way < DP_MONTH_WAYS; way++) {
        view->used[way] = month->counts[0].used[way];
        view->rate[way] = dp_month_rate(month, (dp_month_way)way, cap_of(allowance, way));
    }
    view->holds = allowance->limits;
    view->by[DP_MONTH_UP] = maker_of(allowance, DP_ALLOW_UPLOAD, DP_MONTH_UP);
    view->by[DP_MONTH_DOWN] = maker_of(allowance, DP_ALLOW_DOWNLOAD, DP_MONTH_DOWN);
    return true;
}

dp_status dp_allowance_open(dp_allowance **out, dp_daemon *daemon, dp_allowance_clock *wall_ms)
{
    dp_allowance *allowance = dp_alloc(1, sizeof *allowance);
    if (allowance == NULL) {
        return DP_NOMEM;
    }
    allowance->daemon = daemon;
    allowance->wall_ms = wall_ms;
    allowance->began_ms = uv_now(daemon->loop);
    allowance->kept_ms = allowance->began_ms;
    dp_allow_begin(&allowance->set, daemon->config);
    dp_month_init(&allowance->month, (uint32_t)value_of(allowance, DP_ALLOW_MONTH_DAY), wall_ms(),
                  uv_now(daemon->loop));
    read_rows(allowance);
    read_pause(allowance);
    pass(allowance);
    tell_limits(allowance);
    DP_IGNORE(uv_timer_init(daemon->loop, &allowance->timer) != 0); /* It does not fail. */
    allowance->timer.data = allowance;
    uv_timer_start(&allowance->timer, on_timer, TICK_MS, TICK_MS);
    *out = allowance;
    return DP_OK;
}

static void on_closed(uv_handle_t *handle)
{
    dp_free(handle->data);
}

void dp_allowance_close(dp_allowance *allowance)
{
    if (allowance == NULL) {
        return;
    }
    if (allowance->daemon->store_thread != NULL) {
        look(allowance);
        keep_counts(allowance);
    }
    uv_close((uv_handle_t *)&allowance->timer, on_closed);
}
