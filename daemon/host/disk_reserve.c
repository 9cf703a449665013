#include "daemon/host/disk_reserve.h"

#include "base/alloc.h"
#include "base/disk.h"

/* Of one check, 16 MiB each: a daemon that ends waits for them. */
enum { TURNS_MAX = 16 };

/* One check. It outlives the reserve if that is closed meanwhile. */
typedef struct look_job {
    dp_store_thread_job job;
    dp_disk_reserve *reserve; /* NULL: the reserve is closed */
    uint64_t used;            /* bytes of the store; 0: not known */
    unsigned turns;
    bool held;     /* at the begin of the check ... */
    bool held_now; /* ... and at its end */
} look_job;

struct dp_disk_reserve {
    dp_daemon *daemon;
    uv_timer_t timer;
    look_job *under_way;
    bool told_gone;
};

static void run_look(dp_store_thread_job *job, dp_store *store)
{
    look_job *self = (look_job *)job;
    bool more = false;
    if (self->turns == 0) {
        self->held = dp_store_reserve_held(store);
    }
    self->turns++;
    /* If one of these fails, the next check tries again. */
    if (dp_store_bytes(store, &self->used) != DP_OK) {
        self->used = 0;
    }
    job->again = dp_store_give_back(store, &more) == DP_OK && more && self->turns < TURNS_MAX;
    DP_IGNORE(dp_store_refill_reserve(store));
    self->held_now = dp_store_reserve_held(store);
}

static void tell(dp_disk_reserve *reserve, const look_job *look)
{
    const dp_daemon *daemon = reserve->daemon;
    const unsigned long long mib = daemon->config->ballast >> 20;
    if (mib == 0) {
        return; /* Its owner wants none. */
    }
    if (!look->held && !reserve->told_gone) {
        reserve->told_gone = true;
        char full[DP_DISK_TEXT_MAX];
        dp_disk_full_text(daemon->config->dir, full);
        dp_event_log_add(
            daemon->event_log, DP_LOG_ERROR, "store.reserve_gone", 0, NULL,
            "%s, and the disk reserve of %llu MiB is used up; free disk space, or this "
            "node cannot vote soon",
            full, mib);
    }
    if (look->held_now && reserve->told_gone) {
        reserve->told_gone = false;
        dp_event_log_add(daemon->event_log, DP_LOG_INFO, "store.reserve_back", 0, NULL,
                         "disk space is available again, with a disk reserve of %llu MiB", mib);
    }
}

static void done_look(dp_store_thread_job *job)
{
    look_job *self = (look_job *)job;
    if (self->reserve != NULL) {
        self->reserve->under_way = NULL;
        self->reserve->daemon->store_bytes = self->used;
        tell(self->reserve, self);
    }
    dp_free(self);
}

static void on_timer(uv_timer_t *timer)
{
    dp_disk_reserve *reserve = timer->data;
    look_job *job = reserve->under_way == NULL ? dp_alloc(1, sizeof *job) : NULL;
    if (job == NULL) {
        return;
    }
    job->job.run = run_look;
    job->job.done = done_look;
    job->reserve = reserve;
    if (dp_store_thread_post(reserve->daemon->store_thread, &job->job, DP_STORE_THREAD_BULK) !=
        DP_OK) {
        dp_free(job);
        return;
    }
    reserve->under_way = job;
}

dp_status dp_disk_reserve_open(dp_disk_reserve **out, dp_daemon *daemon, uint64_t look_ms)
{
    dp_disk_reserve *reserve = dp_alloc(1, sizeof *reserve);
    if (reserve == NULL) {
        return DP_NOMEM;
    }
    reserve->daemon = daemon;
    DP_IGNORE(uv_timer_init(daemon->loop, &reserve->timer) != 0); /* It does not fail. */
    reserve->timer.data = reserve;
    uv_timer_start(&reserve->timer, on_timer, look_ms, look_ms);
    *out = reserve;
    return DP_OK;
}

static void on_closed(uv_handle_t *handle)
{
    dp_free(handle->data);
}

void dp_disk_reserve_close(dp_disk_reserve *reserve)
{
    if (reserve == NULL) {
        return;
    }
    if (reserve->under_way != NULL) {
        reserve->under_way->reserve = NULL;
    }
    uv_close((uv_handle_t *)&reserve->timer, on_closed);
}
