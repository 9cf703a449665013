#include "daemon/peer/bandwidth_limiter.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/size.h"
#include "daemon/host/daemon.h"
#include "daemon/net/throttle.h"
#include "daemon/peer/driver.h"
#include "daemon/peer/suspension.h"

enum {
    TICK_MS = 1000,
    KEEP_MS = 60 * 1000,
    KEEP_UNCAPPED_MS = 10 * KEEP_MS,
    CHANGE_SHARE = 16, /* a limit that would change by less is not changed */
    ROW_BYTES_MAX = 512
};
_Static_assert((int)DP_BANDWIDTH_QUOTA_BYTES_MAX <= (int)ROW_BYTES_MAX, "the row fits");
#define MBIT UINT64_C(125000) /* bytes */

static const char traffic_key[] = "traffic";

struct dp_bandwidth_limiter {
    dp_daemon *daemon;
    dp_bandwidth_limiter_clock *wall_ms;
    uv_timer_t timer;
    dp_bandwidth_quota month;
    uint64_t began_ms;
    uint64_t kept_ms;                          /* time of the last write of the counts */
    uint64_t counted[DP_BANDWIDTH_QUOTA_WAYS]; /* of the transport's bytes */
    dp_limits limits;                          /* as set on the transport */
    bool used_up;
};

/* ---- rows ---- */

static void keep_counts(dp_bandwidth_limiter *bandwidth_limiter)
{
    uint8_t bytes[DP_BANDWIDTH_QUOTA_BYTES_MAX];
    bandwidth_limiter->kept_ms = bandwidth_limiter->month.now_ms;
    /* If this write fails, the next one contains the same counts. */
    DP_IGNORE(dp_store_thread_put(bandwidth_limiter->daemon->store_thread, traffic_key,
                                  dp_bandwidth_quota_write(&bandwidth_limiter->month, bytes), NULL,
                                  NULL));
}

static void read_counts(dp_bandwidth_limiter *bandwidth_limiter)
{
    dp_buf buf;
    dp_buf_init(&buf, ROW_BYTES_MAX);
    dp_status status = dp_store_get_either(bandwidth_limiter->daemon->store, traffic_key, &buf);
    status = status == DP_OK ? dp_bandwidth_quota_read(&bandwidth_limiter->month, dp_buf_view(&buf))
                             : status;
    if (status != DP_OK && status != DP_NOTFOUND) {
        dp_log(DP_LOG_WARN, "limits.lost",
               "msg=\"the stored count of this month's bytes cannot be read: %s; counting from 0\"",
               dp_status_text(status));
    }
    dp_buf_close(&buf);
}

/* ---- the valid limits ---- */

/* Bytes per month; 0: no cap. */
static uint64_t cap_of(const dp_bandwidth_limiter *bandwidth_limiter, int way)
{
    const dp_config *const config = bandwidth_limiter->daemon->config;
    return way == (int)DP_BANDWIDTH_QUOTA_UP ? config->upload_month : config->download_month;
}

/* Bytes per second of the line; 0: no limit. */
static uint64_t line_of(const dp_bandwidth_limiter *bandwidth_limiter, int way)
{
    const dp_config *const config = bandwidth_limiter->daemon->config;
    return MBIT * (way == (int)DP_BANDWIDTH_QUOTA_UP ? config->upload_max : config->download_max);
}

/* Bytes per second of one direction; 0: unlimited, 1: practically none. */
static uint64_t limit_of(const dp_bandwidth_limiter *bandwidth_limiter, dp_bandwidth_quota_way way)
{
    const uint64_t line = line_of(bandwidth_limiter, (int)way);
    const uint64_t month = dp_bandwidth_quota_rate(&bandwidth_limiter->month, way,
                                                   cap_of(bandwidth_limiter, (int)way));
    if (month >= DP_THROTTLE_RATE_MAX) {
        return line;
    }
    const uint64_t least = month > 0 ? month : 1;
    return line == 0 || least < line ? least : line;
}

/* Does the month make the effective limit, and not the line? */
static bool is_of_month(const dp_bandwidth_limiter *bandwidth_limiter, int way)
{
    const uint64_t line = line_of(bandwidth_limiter, way);
    const uint64_t holds = way == (int)DP_BANDWIDTH_QUOTA_UP ? bandwidth_limiter->limits.upload
                                                             : bandwidth_limiter->limits.download;
    return line == 0 || line > holds;
}

static bool is_news(uint64_t was, uint64_t is)
{
    const uint64_t moved = was > is ? was - is : is - was;
    return moved > 0 && (was == 0 || is <= 1 || moved > was / CHANGE_SHARE);
}

static void tell_limits(dp_bandwidth_limiter *bandwidth_limiter)
{
    const dp_limits limits = {.upload = limit_of(bandwidth_limiter, DP_BANDWIDTH_QUOTA_UP),
                              .download = limit_of(bandwidth_limiter, DP_BANDWIDTH_QUOTA_DOWN)};
    if (is_news(bandwidth_limiter->limits.upload, limits.upload) ||
        is_news(bandwidth_limiter->limits.download, limits.download)) {
        bandwidth_limiter->limits = limits;
        if (bandwidth_limiter->daemon->driver != NULL) {
            dp_driver_limit(bandwidth_limiter->daemon->driver);
        }
    }
}

/* The first that is used up; -1: none. */
static int used_up(const dp_bandwidth_limiter *bandwidth_limiter)
{
    for (int way = 0; way < DP_BANDWIDTH_QUOTA_WAYS; way++) {
        if (dp_bandwidth_quota_rate(&bandwidth_limiter->month, (dp_bandwidth_quota_way)way,
                                    cap_of(bandwidth_limiter, way)) == 0) {
            return way;
        }
    }
    return -1;
}

bool dp_bandwidth_limiter_why(const dp_bandwidth_limiter *bandwidth_limiter, char *text,
                              size_t size)
{
    const int way = bandwidth_limiter == NULL ? -1 : used_up(bandwidth_limiter);
    if (way < 0) {
        return false;
    }
    const time_t until = (time_t)((bandwidth_limiter->month.wall_ms +
                                   dp_bandwidth_quota_left_ms(&bandwidth_limiter->month)) /
                                  1000);
    char date[32] = "?";
    struct tm parts;
    if (gmtime_r(&until, &parts) != NULL) {
        DP_IGNORE(strftime(date, sizeof date, "%Y-%m-%d", &parts) == 0); /* It fits. */
    }
    char cap[DP_SIZE_TEXT_MAX];
    dp_size_text(cap_of(bandwidth_limiter, way), cap);
    snprintf(text, size, "this month's %s of %s is used up until %s",
             way == DP_BANDWIDTH_QUOTA_UP ? "upload" : "download", cap, date);
    return true;
}

/* A node that can send or fetch no object delays the nodes that wait for it. */
static void rest_or_go_on(dp_bandwidth_limiter *bandwidth_limiter)
{
    char why[128];
    dp_daemon *const daemon = bandwidth_limiter->daemon;
    const bool was = bandwidth_limiter->used_up;
    bandwidth_limiter->used_up = dp_bandwidth_limiter_why(bandwidth_limiter, why, sizeof why);
    if (bandwidth_limiter->used_up != was) { /* A daemon killed now must continue with it. */
        keep_counts(bandwidth_limiter);
    }
    if (bandwidth_limiter->used_up && !was) {
        dp_event_log_add(
            daemon->event_log, DP_LOG_WARN, "limits.used_up", 0, NULL,
            "%s; this node stays a member, votes, and resumes training then; to raise the "
            "quota: dpnode limits",
            why);
    } else if (was && !bandwidth_limiter->used_up) {
        dp_event_log_add(daemon->event_log, DP_LOG_INFO, "limits.again", 0, NULL,
                         "the bandwidth quota allows traffic again");
    }
    if (bandwidth_limiter->used_up != was) {
        dp_suspension_act(daemon->suspension);
    }
}

static void pass(dp_bandwidth_limiter *bandwidth_limiter)
{
    const uint64_t caps[DP_BANDWIDTH_QUOTA_WAYS] = {
        cap_of(bandwidth_limiter, DP_BANDWIDTH_QUOTA_UP),
        cap_of(bandwidth_limiter, DP_BANDWIDTH_QUOTA_DOWN)};
    dp_bandwidth_quota_pass(&bandwidth_limiter->month, caps,
                            (uint32_t)bandwidth_limiter->daemon->config->month_day,
                            bandwidth_limiter->wall_ms(), uv_now(bandwidth_limiter->daemon->loop));
}

static void count(dp_bandwidth_limiter *bandwidth_limiter, dp_bandwidth_quota_way way,
                  uint64_t total)
{
    uint64_t *const before = &bandwidth_limiter->counted[way];
    /* Another transport counts from 0. */
    dp_bandwidth_quota_use(&bandwidth_limiter->month, way,
                           total >= *before ? total - *before : total);
    *before = total;
}

static void act(dp_bandwidth_limiter *bandwidth_limiter)
{
    pass(bandwidth_limiter);
    tell_limits(bandwidth_limiter);
    rest_or_go_on(bandwidth_limiter);
}

void dp_bandwidth_limiter_count(dp_bandwidth_limiter *bandwidth_limiter, uint64_t sent,
                                uint64_t received)
{
    const bool capped = cap_of(bandwidth_limiter, DP_BANDWIDTH_QUOTA_UP) != 0 ||
                        cap_of(bandwidth_limiter, DP_BANDWIDTH_QUOTA_DOWN) != 0;
    count(bandwidth_limiter, DP_BANDWIDTH_QUOTA_UP, sent);
    count(bandwidth_limiter, DP_BANDWIDTH_QUOTA_DOWN, received);
    act(bandwidth_limiter);
    /* The interval doubles each time: a daemon that dies soon after each start has then stored at
     * least half of its counts. */
    const uint64_t life_ms = bandwidth_limiter->kept_ms - bandwidth_limiter->began_ms;
    const uint64_t most_ms = capped ? KEEP_MS : KEEP_UNCAPPED_MS;
    if (bandwidth_limiter->month.now_ms - bandwidth_limiter->kept_ms >=
        (life_ms < most_ms ? life_ms : most_ms)) {
        keep_counts(bandwidth_limiter);
    }
}

static void look(dp_bandwidth_limiter *bandwidth_limiter)
{
    dp_driver_view view = {.running = false};
    if (bandwidth_limiter->daemon->driver != NULL) {
        dp_driver_look(bandwidth_limiter->daemon->driver, &view);
    }
    dp_bandwidth_limiter_count(bandwidth_limiter, view.transport.bytes_sent,
                               view.transport.bytes_received);
}

static void on_timer(uv_timer_t *timer)
{
    look(timer->data);
}

void dp_bandwidth_limiter_act(dp_bandwidth_limiter *bandwidth_limiter)
{
    if (bandwidth_limiter != NULL) {
        act(bandwidth_limiter);
    }
}

dp_limits dp_bandwidth_limiter_limits(const dp_bandwidth_limiter *bandwidth_limiter)
{
    return bandwidth_limiter != NULL ? bandwidth_limiter->limits : (dp_limits){0};
}

bool dp_bandwidth_limiter_look(const dp_bandwidth_limiter *bandwidth_limiter,
                               dp_bandwidth_limiter_view *view)
{
    if (bandwidth_limiter == NULL) {
        return false;
    }
    const dp_bandwidth_quota *const month = &bandwidth_limiter->month;
    *view = (dp_bandwidth_limiter_view){.used_up = bandwidth_limiter->used_up};
    DP_IGNORE(
        dp_bandwidth_quota_number(month->wall_ms, month->day, &view->begin_ms, &view->end_ms) == 0);
    for (int way = 0; way < DP_BANDWIDTH_QUOTA_WAYS; way++) {
        view->used[way] = month->counts[0].used[way];
        view->by_month[way] = is_of_month(bandwidth_limiter, way);
        view->rate[way] = dp_bandwidth_quota_rate(month, (dp_bandwidth_quota_way)way,
                                                  cap_of(bandwidth_limiter, way));
    }
    view->holds = bandwidth_limiter->limits;
    return true;
}

dp_status dp_bandwidth_limiter_open(dp_bandwidth_limiter **out, dp_daemon *daemon,
                                    dp_bandwidth_limiter_clock *wall_ms)
{
    dp_bandwidth_limiter *bandwidth_limiter = dp_alloc(1, sizeof *bandwidth_limiter);
    if (bandwidth_limiter == NULL) {
        return DP_NOMEM;
    }
    bandwidth_limiter->daemon = daemon;
    bandwidth_limiter->wall_ms = wall_ms;
    bandwidth_limiter->began_ms = uv_now(daemon->loop);
    bandwidth_limiter->kept_ms = bandwidth_limiter->began_ms;
    dp_bandwidth_quota_init(&bandwidth_limiter->month,
                            (uint32_t)bandwidth_limiter->daemon->config->month_day, wall_ms(),
                            uv_now(daemon->loop));
    read_counts(bandwidth_limiter);
    pass(bandwidth_limiter);
    tell_limits(bandwidth_limiter);
    DP_IGNORE(uv_timer_init(daemon->loop, &bandwidth_limiter->timer) != 0); /* It does not fail. */
    bandwidth_limiter->timer.data = bandwidth_limiter;
    uv_timer_start(&bandwidth_limiter->timer, on_timer, TICK_MS, TICK_MS);
    *out = bandwidth_limiter;
    return DP_OK;
}

static void on_closed(uv_handle_t *handle)
{
    dp_free(handle->data);
}

void dp_bandwidth_limiter_close(dp_bandwidth_limiter *bandwidth_limiter)
{
    if (bandwidth_limiter == NULL) {
        return;
    }
    if (bandwidth_limiter->daemon->store_thread != NULL) {
        look(bandwidth_limiter);
        keep_counts(bandwidth_limiter);
    }
    uv_close((uv_handle_t *)&bandwidth_limiter->timer, on_closed);
}
