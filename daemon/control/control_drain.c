/* The method drain: waits until a round has counted this node's work, then stops the daemon, or
 * lets the caller do so. */
#include <string.h>

#include "base/alloc.h"
#include "daemon/control/control.h"
#include "daemon/control/reply.h"
#include "daemon/peer/driver.h"
#include "daemon/peer/supervisor.h"

enum { DRAIN_TICK_MS = 100, DRAIN_S_MAX = 86400, END_MS = 50 };

typedef struct draining {
    dp_daemon *daemon;
    dp_call call;
    uv_timer_t timer;
    const dp_driver *driver; /* to check whether it has left the run meanwhile */
    uint64_t since_ms;
    uint64_t limit_ms;
    uint64_t counted;
    bool end;         /* the daemon, when it is drained */
    const char *done; /* the reason; NULL: not yet */
} draining;

static void on_drain_closed(uv_handle_t *handle)
{
    dp_free(handle->data);
}

static void reply(const draining *self, uint64_t waited_ms)
{
    dp_packer packer;
    if (dp_call_begin(&self->call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_bool(&map, "counted", dp_supervisor_counted(self->daemon) > self->counted);
        dp_pair_text(&map, "text", self->done);
        dp_pair_u64(&map, "waited_ms", waited_ms);
        dp_group_end(&map);
        dp_call_end(&self->call, &packer);
    }
}

static void on_drain_tick(uv_timer_t *timer)
{
    draining *self = timer->data;
    dp_daemon *daemon = self->daemon;
    const uint64_t waited_ms = uv_now(daemon->loop) - self->since_ms;
    if (daemon->ending) { /* Another request was faster. */
        uv_close((uv_handle_t *)timer, on_drain_closed);
        return;
    }
    if (self->done != NULL) { /* The reply has been sent. */
        dp_daemon_end(daemon, 0, self->done);
        uv_close((uv_handle_t *)timer, on_drain_closed);
        return;
    }
    self->done = daemon->driver != self->driver
                     ? "drained: this node has left the run"
                     : dp_supervisor_drained(daemon, self->counted, waited_ms, self->limit_ms);
    if (self->done == NULL) {
        return;
    }
    reply(self, waited_ms);
    if (self->end) {
        uv_timer_start(timer, on_drain_tick, END_MS, 0);
    } else {
        uv_close((uv_handle_t *)timer, on_drain_closed);
    }
}

void dp_method_drain(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    uint64_t limit_s = daemon->config->drain_time;
    const dp_driver *driver = dp_call_driver(daemon, call);
    if (driver == NULL) {
        return;
    }
    draining *self = dp_alloc(1, sizeof *self);
    if (self == NULL || uv_timer_init(daemon->loop, &self->timer) != 0) {
        dp_free(self);
        dp_call_fail(call, 70, "E0199", "", "out of memory", "");
        return;
    }
    DP_IGNORE(!dp_pack_get_u64(dp_pack_key(parameters, "seconds"), &limit_s));
    *self = (draining){.daemon = daemon,
                       .call = *call,
                       .timer = self->timer,
                       .driver = driver,
                       .since_ms = uv_now(daemon->loop),
                       .limit_ms = (limit_s < DRAIN_S_MAX ? limit_s : DRAIN_S_MAX) * 1000,
                       .counted = dp_supervisor_counted(daemon),
                       .end = true};
    DP_IGNORE(!dp_pack_get_bool(dp_pack_key(parameters, "end"), &self->end));
    self->timer.data = self;
    dp_event_log_add(
        daemon->event_log, DP_LOG_WARN, "daemon.draining", 0, NULL,
        "drain requested: this node stops when a round counts its work, after %llu s at the latest",
        (unsigned long long)(self->limit_ms / 1000));
    uv_timer_start(&self->timer, on_drain_tick, DRAIN_TICK_MS, DRAIN_TICK_MS);
}
