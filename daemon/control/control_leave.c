/* The methods run.leave and down, which end this node's work. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "daemon/control/control.h"
#include "daemon/control/first_start.h"
#include "daemon/control/list_stream.h"
#include "daemon/control/reply.h"
#include "daemon/peer/driver.h"
#include "daemon/peer/suspension.h"

enum { NOW_MS = 6 * 1000, WRITES_MS = 60 * 1000, LEAVE_TICK_MS = 100, DOWN_MS = 50 };

typedef struct leaving {
    dp_store_thread_job job;
    dp_daemon *daemon;
    dp_call call;
    uv_timer_t timer;
    const dp_driver *driver; /* shows whether another run was entered meanwhile */
    dp_run_id run;
    char name[DP_TOKEN_NAME_MAX + 1];
    bool keep_data;
    bool delete_run; /* its name was given: leaves even if no voter remains */
    bool ended;      /* no voter remains */
    bool dropped;    /* its data are deleted; their space is given back now */
    uint32_t ticks;
    dp_status status; /* of the job */
} leaving;

static void on_leaving_closed(uv_handle_t *handle)
{
    dp_free(handle->data);
}

/* run: NULL if it had none yet. */
static void answer(const dp_call *call, const char *run, bool ended)
{
    dp_packer packer;
    if (dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        if (run != NULL) {
            dp_pair_text(&map, "run", run);
        } else {
            dp_pair_nil(&map, "run");
        }
        dp_pair_bool(&map, "ended", ended);
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
}

static void end_leaving(leaving *self)
{
    uv_close((uv_handle_t *)&self->timer, on_leaving_closed);
}

/* Tells that the order does not outlast this daemon. */
static void tell_lost(leaving *self, const char *why)
{
    dp_call_fail(&self->call, 74, "E0127",
                 "dpnode doctor   # checks the disk; then give the order again",
                 "the node has left, and enters the run again at its next start: that it has left "
                 "could not be stored",
                 why);
    end_leaving(self);
}

/* ---- the data of the run go when its last write is done */

static void run_drop(dp_store_thread_job *job, dp_store *store)
{
    leaving *self = (leaving *)job;
    bool more = false;
    if (!self->dropped) {
        self->status = dp_run_identity_drop(store);
        self->dropped = true;
        job->again = self->status == DP_OK;
    } else if (dp_store_shrink(store, &more) == DP_OK) {
        job->again = more; /* Without it the store uses the space itself. */
    }
}

static void done_drop(dp_store_thread_job *job)
{
    leaving *self = (leaving *)job;
    if (self->status != DP_OK) {
        dp_call_fail(
            &self->call, 74, "E0127", "dpnode down; dpnode up   # the next start tries again",
            "the node has left, but the model could not be deleted", dp_status_text(self->status));
    } else {
        answer(&self->call, self->name, self->ended);
    }
    end_leaving(self);
}

static void on_drop_tick(uv_timer_t *timer)
{
    leaving *self = timer->data;
    const dp_daemon *const daemon = self->daemon;
    self->ticks++;
    if (!daemon->ending && dp_store_thread_waiting(daemon->store_thread) > 0 &&
        self->ticks < WRITES_MS / LEAVE_TICK_MS) {
        return;
    }
    uv_timer_stop(timer);
    self->job.run = run_drop;
    self->job.done = done_drop;
    if (dp_store_thread_post(daemon->store_thread, &self->job, DP_STORE_THREAD_BULK) != DP_OK) {
        self->status = DP_AGAIN;
        done_drop(&self->job);
    }
}

/* ---- the run is forgotten */

static void run_forget(dp_store_thread_job *job, dp_store *store)
{
    leaving *self = (leaving *)job;
    /* The file goes first (run_identity.h). */
    self->status = dp_run_identity_copy_forget(self->daemon->config->dir);
    if (self->status == DP_OK) {
        self->status = self->keep_data ? dp_run_identity_forget(store)
                                       : dp_run_identity_leave(store, &self->run);
    }
}

static void done_forget(dp_store_thread_job *job)
{
    leaving *self = (leaving *)job;
    if (self->status != DP_OK) {
        tell_lost(self, dp_status_text(self->status));
        return;
    }
    self->daemon->lost = false;
    if (self->keep_data) {
        answer(&self->call, self->name, self->ended);
        end_leaving(self);
        return;
    }
    self->ticks = 0;
    uv_timer_start(&self->timer, on_drop_tick, LEAVE_TICK_MS, LEAVE_TICK_MS);
}

/* The driver is closed, so a queue that is full empties. */
static void on_forget_tick(uv_timer_t *timer)
{
    leaving *self = timer->data;
    const dp_daemon *const daemon = self->daemon;
    if (daemon->driver == NULL &&
        dp_store_thread_post(daemon->store_thread, &self->job, DP_STORE_THREAD_URGENT) == DP_OK) {
        uv_timer_stop(timer);
    } else if (daemon->ending || daemon->driver != NULL ||
               ++self->ticks > WRITES_MS / LEAVE_TICK_MS) {
        tell_lost(self, "too many writes are waiting");
    }
}

/* The node reports when its leaving does not stop the run (gossip/admin/leave.c). The wait is
 * shorter if the run may be deleted, and for a run that had not begun at the time of the
 * command. */
static bool must_wait(const leaving *self, const dp_driver_view *view)
{
    const bool soon = self->ticks < NOW_MS / LEAVE_TICK_MS;

    return view->running &&
           ((view->node.leaving == DP_LEAVING_WAITS && (!self->delete_run || soon)) ||
            (view->node.leaving == DP_LEAVING_NOT && soon));
}

static const char *last_export(const dp_daemon *daemon)
{
    for (uint32_t i = dp_event_log_entries(daemon->event_log); i-- > 0;) {
        const dp_event_log_entry *const entry = dp_event_log_entry_at(daemon->event_log, i);
        if (strcmp(entry->name, DP_EXPORT_DONE) == 0) {
            return entry->text;
        }
    }
    return "not exported since this daemon started";
}

/* No other node decides rounds: reports the files that are deleted with this node, and how to keep
 * them. */
static void refuse(const dp_daemon *daemon, const dp_call *call, const dp_driver_view *view)
{
    const bool asked = view->node.leaving != DP_LEAVING_NOT;
    char why[640]; /* An answer keeps 511 bytes of it, of which no name and path has all. */
    char size[DP_SIZE_TEXT_MAX];
    const char *const name = dp_driver_run_identity(daemon->driver)->name;
    dp_size_text(view->elements * sizeof(float), size);
    snprintf(why, sizeof why,
             "%s has %llu round%s, %u member%s, and a model of %s, %s; this node is its only "
             "voter, and no other node has taken over yet%s. --delete-run %s ends the run for all "
             "members and deletes the model",
             name, (unsigned long long)view->node.round, view->node.round == 1 ? "" : "s",
             (unsigned)view->node.members, view->node.members == 1 ? "" : "s", size,
             last_export(daemon), asked ? "; it leaves by itself when one has" : "", name);
    dp_call_fail(call, 75, "E0124",
                 "dpnode ckpt export DIR   # keeps the model; dpnode invite --role vote   # makes "
                 "another voter",
                 "leaving deletes the run", why);
}

/* Nobody votes after this node, or no other member is left. */
static bool ends_run(const dp_driver_view *view)
{
    const bool is_member = view->node.mode != DP_MODE_LEFT;
    return view->running &&
           (view->node.leaving == DP_LEAVING_NEEDED || view->node.members <= (is_member ? 1U : 0U));
}

static void on_leave_tick(uv_timer_t *timer)
{
    leaving *self = timer->data;
    dp_driver_view view = {0};
    if (self->daemon->driver != NULL &&
        self->daemon->driver != self->driver) { /* Another request has left this run. */
        answer(&self->call, self->name, false);
        uv_close((uv_handle_t *)timer, on_leaving_closed);
        return;
    }
    if (self->daemon->driver != NULL) {
        dp_driver_look(self->daemon->driver, &view);
    }
    self->ticks++;
    if (must_wait(self, &view)) {
        if (view.node.leaving == DP_LEAVING_NOT) {
            dp_driver_command(self->daemon->driver, DP_COMMAND_LEAVE);
        }
        return;
    }
    uv_timer_stop(timer);
    if (view.running && view.node.leaving == DP_LEAVING_NEEDED && !self->delete_run) {
        refuse(self->daemon, &self->call, &view);
        uv_close((uv_handle_t *)timer, on_leaving_closed);
        return;
    }
    self->ended = ends_run(&view);
    /* The order is kept, whether or not there is a token. */
    DP_IGNORE(dp_first_start_left(self->daemon->first_start) != true);
    dp_driver *driver = self->daemon->driver;
    self->daemon->driver = NULL;
    dp_driver_close(driver);
    dp_streams_on_entry(self->daemon, DP_STREAM_OF_ROUNDS); /* Lists of its rounds end. */
    DP_IGNORE(dp_suspension_pause(self->daemon->suspension, &(dp_pause){.holds = false}, NULL,
                                  NULL)); /* It was about this run. Not written: still paused. */
    self->ticks = 0;
    uv_timer_start(timer, on_forget_tick, LEAVE_TICK_MS, LEAVE_TICK_MS);
    on_forget_tick(timer);
}

/* Called before other nodes are told. False: refused, and answered. */
static bool may_leave(const dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters,
                      bool *delete_run)
{
    char given[DP_TOKEN_NAME_MAX + 1] = "";
    dp_driver_view view;
    dp_driver_look(daemon->driver, &view);
    const char *const name = dp_driver_run_identity(daemon->driver)->name;
    const dp_pack_value *const value = dp_pack_key(parameters, "delete_run");
    *delete_run = dp_pack_copy_text(value, given, sizeof given) && strcmp(given, name) == 0;
    if (value != NULL && !*delete_run) {
        char why[128];
        snprintf(why, sizeof why, "it is a member of %s", name);
        dp_call_fail(call, 64, "E0128", "dpnode status   # names the run",
                     "the run has another name", why);
        return false;
    }
    if (!view.running && dp_driver_manifest(daemon->driver) != NULL && !*delete_run) {
        dp_call_fail(call, 75, "E0402", "dpnode status   # again until it shows training",
                     "the node is starting",
                     "its chain is being read; it shows whether another member can take over");
        return false;
    }
    if (view.running && view.node.is_voter && view.node.voters == 1 && view.node.alive <= 1 &&
        view.node.mode != DP_MODE_LEFT && !*delete_run) {
        refuse(daemon, call, &view);
        return false;
    }
    return true;
}

void dp_method_run_leave(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    bool delete_run = false;
    if (daemon->driver == NULL && dp_first_start_left(daemon->first_start)) {
        answer(call, NULL, false); /* It only tried to join. */
        return;
    }
    dp_driver *driver = dp_call_driver(daemon, call);
    if (driver == NULL || !may_leave(daemon, call, parameters, &delete_run)) {
        return;
    }
    leaving *self = dp_alloc(1, sizeof *self);
    if (self == NULL || uv_timer_init(daemon->loop, &self->timer) != 0) {
        dp_free(self);
        dp_call_fail(call, 70, "E0199", "", "out of memory", "");
        return;
    }
    self->job.run = run_forget;
    self->job.done = done_forget;
    self->daemon = daemon;
    self->call = *call;
    self->timer.data = self;
    self->driver = driver;
    self->run = dp_driver_run_identity(driver)->run;
    snprintf(self->name, sizeof self->name, "%s", dp_driver_run_identity(driver)->name);
    DP_IGNORE(!dp_pack_get_bool(dp_pack_key(parameters, "keep_data"), &self->keep_data));
    self->delete_run = delete_run;
    dp_driver_command(driver, DP_COMMAND_LEAVE);
    uv_timer_start(&self->timer, on_leave_tick, LEAVE_TICK_MS, LEAVE_TICK_MS);
}

static void on_down(uv_timer_t *timer)
{
    dp_daemon *daemon = timer->data;
    uv_close((uv_handle_t *)timer, (uv_close_cb)dp_free);
    if (daemon->ending) { /* Two clients have asked. */
        return;
    }
    dp_daemon_end(daemon, 0, "requested through the control socket");
}

void dp_method_down(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    (void)parameters;
    dp_packer packer;
    uv_timer_t *timer = dp_alloc(1, sizeof *timer);
    if (timer == NULL || uv_timer_init(daemon->loop, timer) != 0) {
        dp_free(timer);
        dp_call_fail(call, 70, "E0199", "", "out of memory", "");
        return;
    }
    timer->data = daemon;
    uv_timer_start(timer, on_down, DOWN_MS, 0); /* The reply is sent first. */
    if (dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_u64(&map, "pid", (uint64_t)uv_os_getpid());
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
}
