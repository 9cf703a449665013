#include "daemon/host/ballast.h"

#include "base/alloc.h"
#include "base/disk.h"

/* One look. It outlives the ballast when that closes in between. */
typedef struct look_job {
    dp_store_thread_job job;
    dp_ballast *ballast; /* NULL: it has closed */
    bool held;           /* when it looked ... */
    bool held_now;       /* ... and when it had done what it could */
} look_job;

struct dp_ballast {
    dp_daemon *daemon;
    uv_timer_t timer;
    look_job *under_way;
    bool told_gone;
};

static void run_look(dp_store_thread_job *job, dp_store *store)
{
    look_job *self = (look_job *)job;
    self->held = dp_store_ballast_held(store);
    if (!self->held) {
        DP_IGNORE(dp_store_refill_ballast(store)); /* Then the next look tries again. */
    }
    self->held_now = dp_store_ballast_held(store);
}

static void tell(dp_ballast *ballast, const look_job *look)
{
    const dp_daemon *daemon = ballast->daemon;
    const unsigned long long mib = daemon->config->ballast >> 20;
    if (!look->held && !ballast->told_gone) {
        ballast->told_gone = true;
        char full[DP_DISK_TEXT_MAX];
        dp_disk_full_text(daemon->config->dir, full);
        dp_event_log_add(
            daemon->event_log, DP_LOG_ERROR, "store.reserve_gone", 0, NULL,
            "%s, and the disk reserve of %llu MiB is used up; free disk space, or this "
            "node cannot vote soon",
            full, mib);
    }
    if (look->held_now && ballast->told_gone) {
        ballast->told_gone = false;
        dp_event_log_add(daemon->event_log, DP_LOG_INFO, "store.reserve_back", 0, NULL,
                         "disk space is available again, with a disk reserve of %llu MiB", mib);
    }
}

static void done_look(dp_store_thread_job *job)
{
    look_job *self = (look_job *)job;
    if (self->ballast != NULL) {
        self->ballast->under_way = NULL;
        tell(self->ballast, self);
    }
    dp_free(self);
}

static void on_timer(uv_timer_t *timer)
{
    dp_ballast *ballast = timer->data;
    look_job *job = ballast->under_way == NULL ? dp_alloc(1, sizeof *job) : NULL;
    if (job == NULL) {
        return;
    }
    job->job.run = run_look;
    job->job.done = done_look;
    job->ballast = ballast;
    if (dp_store_thread_post(ballast->daemon->store_thread, &job->job, DP_STORE_THREAD_BULK) !=
        DP_OK) {
        dp_free(job);
        return;
    }
    ballast->under_way = job;
}

dp_status dp_ballast_open(dp_ballast **out, dp_daemon *daemon, uint64_t look_ms)
{
    dp_ballast *ballast = dp_alloc(1, sizeof *ballast);
    if (ballast == NULL) {
        return DP_NOMEM;
    }
    ballast->daemon = daemon;
    DP_IGNORE(uv_timer_init(daemon->loop, &ballast->timer) != 0); /* It does not fail. */
    ballast->timer.data = ballast;
    if (daemon->config->ballast > 0) {
        uv_timer_start(&ballast->timer, on_timer, look_ms, look_ms);
    }
    *out = ballast;
    return DP_OK;
}

static void on_closed(uv_handle_t *handle)
{
    dp_free(handle->data);
}

void dp_ballast_close(dp_ballast *ballast)
{
    if (ballast == NULL) {
        return;
    }
    if (ballast->under_way != NULL) {
        ballast->under_way->ballast = NULL;
    }
    uv_close((uv_handle_t *)&ballast->timer, on_closed);
}
