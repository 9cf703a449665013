#include "daemon/peer/suspension.h"

#include <stdio.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/host/daemon.h"
#include "daemon/peer/bandwidth_limiter.h"
#include "daemon/peer/driver.h"
#include "daemon/peer/supervisor.h"

enum {
    TICK_MS = 1000,
    CLOCK_SET_MS = 2000 /* more than a clock that is slewed moves in a tick, even a late one */
};

/* Reasons not to train. */
enum { OWNER = 1, QUOTA = 2, HEAT = 4 };

static const char pause_key[] = "pause";

struct dp_suspension {
    dp_daemon *daemon;
    dp_suspension_clocks clocks;
    uv_timer_t timer;
    dp_pause pause;
    uint64_t counted; /* rounds that had counted this node when the waiting pause was ordered */
    int64_t ahead_ms; /* of the wall clock before the steady one */
    unsigned causes;  /* as last told to the node */
};

static uint64_t system_steady_ms(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int64_t ahead_ms(const dp_suspension *suspension)
{
    return (int64_t)suspension->clocks.wall_ms() - (int64_t)suspension->clocks.steady_ms();
}

static dp_status keep(const dp_suspension *suspension, dp_store_thread_kept *done, void *context)
{
    uint8_t bytes[DP_PAUSE_BYTES_MAX];
    const dp_pause *const pause = &suspension->pause;
    return dp_store_thread_put(suspension->daemon->store_thread, pause_key,
                               pause->holds ? dp_pause_write(pause, bytes) : dp_view_of(bytes, 0),
                               done, context);
}

/* ---- the owner's pause ---- */

/* A pause of a length lasts as long as before, by the steady clock. */
static void look_at_clock(dp_suspension *suspension)
{
    const int64_t ahead = ahead_ms(suspension);
    const int64_t moved = ahead - suspension->ahead_ms;
    if (moved > -CLOCK_SET_MS && moved < CLOCK_SET_MS) {
        return;
    }
    suspension->ahead_ms = ahead;
    if (dp_pause_clock_moved(&suspension->pause, moved)) {
        dp_event_log_add(suspension->daemon->event_log, DP_LOG_INFO, "pause.clock", 0, NULL,
                         "the clock was set by %lld s; the pause lasts as long as before",
                         (long long)moved / 1000);
        /* Not written: the start of a next daemon bounds the rest of the pause. */
        DP_IGNORE(keep(suspension, NULL, NULL));
    }
}

static void begin_waiting(dp_suspension *suspension)
{
    const char *const drained =
        dp_supervisor_drained(suspension->daemon, suspension->counted, 0, UINT64_MAX);
    if (suspension->pause.holds && suspension->pause.waits && drained != NULL) {
        char text[DP_PAUSE_TEXT_MAX];
        dp_pause_begin(&suspension->pause, suspension->clocks.wall_ms());
        dp_pause_text(&suspension->pause, text, sizeof text);
        dp_event_log_add(suspension->daemon->event_log, DP_LOG_INFO, "pause.begun", 0, NULL,
                         "paused by its owner%s (%s); to train again: dpnode resume", text,
                         drained);
        /* Not written: a next daemon begins with the pause, too. */
        DP_IGNORE(keep(suspension, NULL, NULL));
    }
}

static void end_over(dp_suspension *suspension)
{
    if (dp_pause_is_over(&suspension->pause, suspension->clocks.wall_ms())) {
        suspension->pause = (dp_pause){.holds = false};
        dp_event_log_add(suspension->daemon->event_log, DP_LOG_INFO, "pause.over", 0, NULL,
                         "the time of the owner's pause is over");
        /* Not written: a next daemon finds it over, too. */
        DP_IGNORE(keep(suspension, NULL, NULL));
    }
}

/* ---- all causes ---- */

static bool is_too_hot(const dp_suspension *suspension)
{
    dp_driver_view view = {.rests = false};
    if (suspension->daemon->driver != NULL) {
        dp_driver_look(suspension->daemon->driver, &view);
    }
    return view.rests;
}

static unsigned causes_of(const dp_suspension *suspension)
{
    char text[128];
    const bool used_up =
        dp_bandwidth_limiter_why(suspension->daemon->bandwidth_limiter, text, sizeof text);
    return (suspension->pause.holds && !suspension->pause.waits ? OWNER : 0U) |
           (used_up ? QUOTA : 0U) | (is_too_hot(suspension) ? HEAT : 0U);
}

/* The owner's order reaches a node in any state; other causes let a newcomer fetch the run
 * first. */
static bool must_tell(const dp_suspension *suspension, unsigned was)
{
    dp_driver_view view;
    dp_driver_look(suspension->daemon->driver, &view);
    return ((suspension->causes & OWNER) != 0 && (was & OWNER) == 0) ||
           (view.running && (view.node.mode == DP_MODE_SYNC || view.node.mode == DP_MODE_GOSSIP));
}

void dp_suspension_act(dp_suspension *suspension)
{
    if (suspension == NULL) {
        return;
    }
    const unsigned was = suspension->causes;
    look_at_clock(suspension);
    begin_waiting(suspension);
    end_over(suspension);
    suspension->causes = causes_of(suspension);
    dp_driver *const driver = suspension->daemon->driver;
    if (driver == NULL) {
        return;
    }
    if (suspension->causes != 0 && must_tell(suspension, was)) {
        dp_driver_command(driver, DP_COMMAND_PAUSE);
    } else if (suspension->causes == 0 && was != 0) {
        dp_driver_command(driver, DP_COMMAND_RESUME);
    }
}

dp_status dp_suspension_pause(dp_suspension *suspension, const dp_pause *pause,
                              dp_store_thread_kept *done, void *context)
{
    if (suspension == NULL) {
        return DP_CLOSED;
    }
    suspension->pause = *pause;
    suspension->counted = dp_supervisor_counted(suspension->daemon);
    dp_suspension_act(suspension);
    return keep(suspension, done, context);
}

static void heat_text(const dp_suspension *suspension, char text[DP_SUSPENSION_TEXT_MAX])
{
    const unsigned long long most = suspension->daemon->config->celsius_max;
    dp_driver_view view = {.rests_celsius = 0};
    if (suspension->daemon->driver != NULL) {
        dp_driver_look(suspension->daemon->driver, &view);
    }
    if (view.rests_celsius != 0) {
        snprintf(text, DP_SUSPENSION_TEXT_MAX,
                 "it was at %u degrees Celsius, far above its limit of %llu, and must cool first",
                 view.rests_celsius, most);
    } else {
        snprintf(text, DP_SUSPENSION_TEXT_MAX, "it is far above its limit of %llu degrees Celsius",
                 most);
    }
}

bool dp_suspension_cause(const dp_suspension *suspension, unsigned index, const char **word,
                         char text[DP_SUSPENSION_TEXT_MAX])
{
    static const struct {
        unsigned cause;
        const char *word;
    } rows[] = {{QUOTA, "quota"}, {HEAT, "heat"}};
    for (size_t i = 0; suspension != NULL && i < sizeof rows / sizeof rows[0]; i++) {
        if ((suspension->causes & rows[i].cause) == 0 || index-- > 0) {
            continue;
        }
        *word = rows[i].word;
        text[0] = '\0';
        if (rows[i].cause == HEAT) {
            heat_text(suspension, text);
        } else {
            DP_IGNORE(!dp_bandwidth_limiter_why(suspension->daemon->bandwidth_limiter, text,
                                                DP_SUSPENSION_TEXT_MAX)); /* It may be over now. */
        }
        return true;
    }
    return false;
}

dp_pause dp_suspension_owner(const dp_suspension *suspension)
{
    return suspension != NULL ? suspension->pause : (dp_pause){.holds = false};
}

/* ---- opening ---- */

/* The node may train only if the store has no row. */
static void read_pause(dp_suspension *suspension)
{
    dp_buf buf;
    dp_buf_init(&buf, DP_STORE_THREAD_ROW_MAX);
    dp_status status = dp_store_get(suspension->daemon->store, pause_key, &buf);
    if (status != DP_NOTFOUND) {
        suspension->pause = (dp_pause){.holds = true};
        status = status == DP_OK ? dp_pause_read(&suspension->pause, dp_buf_view(&buf)) : status;
        if (status != DP_OK) {
            dp_log(DP_LOG_WARN, "pause.damaged",
                   "msg=\"the stored pause cannot be read: %s; this node stays paused; to train "
                   "again: dpnode resume\"",
                   dp_status_text(status));
        }
    }
    dp_buf_close(&buf);
    /* If it changes, each start changes it again, until an order is written. */
    DP_IGNORE(!dp_pause_restart(&suspension->pause, suspension->clocks.wall_ms()));
}

static void on_timer(uv_timer_t *timer)
{
    dp_suspension_act(timer->data);
}

dp_status dp_suspension_open(dp_suspension **out, dp_daemon *daemon,
                             const dp_suspension_clocks *clocks)
{
    static const dp_suspension_clocks of_system = {dp_unix_ms, system_steady_ms};
    dp_suspension *suspension = dp_alloc(1, sizeof *suspension);
    if (suspension == NULL) {
        return DP_NOMEM;
    }
    suspension->daemon = daemon;
    suspension->clocks = clocks != NULL ? *clocks : of_system;
    suspension->ahead_ms = ahead_ms(suspension);
    read_pause(suspension);
    suspension->causes = causes_of(suspension);
    DP_IGNORE(uv_timer_init(daemon->loop, &suspension->timer) != 0); /* It does not fail. */
    suspension->timer.data = suspension;
    uv_timer_start(&suspension->timer, on_timer, TICK_MS, TICK_MS);
    *out = suspension;
    return DP_OK;
}

static void on_closed(uv_handle_t *handle)
{
    dp_free(handle->data);
}

void dp_suspension_close(dp_suspension *suspension)
{
    if (suspension != NULL) {
        uv_close((uv_handle_t *)&suspension->timer, on_closed);
    }
}
