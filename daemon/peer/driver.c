#include "daemon/peer/driver.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/host/advertise.h"
#include "daemon/net/crypto_pool.h"
#include "daemon/net/hello.h"
#include "daemon/peer/bandwidth_limiter.h"
#include "daemon/peer/driver_inside.h"
#include "gossip/identity/cert.h"
#include "gossip/record/wire.h"

enum {
    FELT_MS = 60 * 1000, /* heat and power that were read longer ago are not known */
    REMEMBER_EVERY = 60, /* ticks */
    REMEMBER_SOON = 2    /* ticks after a link came up: by then its member has sent its addresses */
};

static const dp_driver_hooks no_hooks;

/* ---- events in, actions out ---- */

static void on_wake(uv_timer_t *timer);

static void rearm(dp_driver *driver)
{
    const uint64_t now_us = uv_hrtime() / 1000;
    const dp_time wake = dp_node_wake(driver->node);
    const uint64_t wait_us = wake.us > now_us ? wake.us - now_us : 0;
    const uint64_t wait_ms =
        wait_us / 1000 + 1 < DP_DRIVER_TICK_MS ? wait_us / 1000 + 1 : DP_DRIVER_TICK_MS;
    uv_timer_start(driver->wake, on_wake, wait_ms, 0);
}

static void tell_following(dp_driver *driver)
{
    dp_node_view view;
    dp_node_look(driver->node, &view);
    if (!driver->told_following && view.mode != DP_MODE_JOINING) {
        driver->told_following = true;
        if (driver->hooks.following != NULL) {
            driver->hooks.following(driver->hooks.context);
        }
    }
}

/* Keeps the first root of this trainer's state in the row of its round, whatever a majority
 * certifies, so that rows of several nodes can be compared. */
static void keep_state_root(const dp_driver *driver)
{
    dp_node_view view;
    dp_node_look(driver->node, &view);
    dp_event_log_round *row = dp_event_log_round_find(driver->daemon->event_log, view.applied);
    if (row != NULL && dp_hash_is_zero(&row->state_root)) {
        row->state_root = view.state_root;
    }
}

static void step(dp_driver *driver, dp_event *event)
{
    event->now = (dp_time){.us = uv_hrtime() / 1000};
    event->wall_ms = dp_driver_wall_ms(driver);
    driver->actions->count = 0;
    dp_node_step(driver->node, event, driver->actions);
    for (uint32_t i = 0; i < driver->actions->count; i++) {
        dp_driver_act(driver, &driver->actions->items[i]);
    }
    if (event->type == DP_EV_APPLIED || event->type == DP_EV_TRAINER_AT) {
        keep_state_root(driver);
    }
}

void dp_driver_feed(dp_driver *driver, dp_event *event)
{
    if (driver->closing || driver->node == NULL) {
        return;
    }
    if (driver->stepping) {
        /* Executing an action had an immediate effect: a dead link, a dead trainer. */
        dp_assert(event->type == DP_EV_LINK_DOWN || event->type == DP_EV_TRAINER_DOWN ||
                  event->type == DP_EV_STORED);
        if (driver->n_queued < DP_DRIVER_QUEUE_MAX) {
            driver->queue[driver->n_queued++] = *event;
        }
        return;
    }
    driver->stepping = true;
    step(driver, event);
    /* n_queued may grow meanwhile, up to its limit. */
    for (uint32_t i = 0; i < driver->n_queued; i++) {
        dp_event next = driver->queue[i];
        step(driver, &next);
    }
    driver->n_queued = 0;
    driver->stepping = false;
    rearm(driver);
    tell_following(driver);
}

static void on_wake(uv_timer_t *timer)
{
    dp_driver_feed(timer->data, &(dp_event){.type = DP_EV_TICK});
}

void dp_driver_command(dp_driver *driver, dp_command command)
{
    dp_event event = {.type = DP_EV_COMMAND};
    event.u.command = command;
    dp_driver_feed(driver, &event);
}

void dp_driver_limit(dp_driver *driver)
{
    const dp_limits limits = dp_bandwidth_limiter_limits(driver->daemon->bandwidth_limiter);
    dp_transport_limit(driver->transport, &limits);
}

dp_status dp_driver_order(dp_driver *driver, const dp_admin_command *order)
{
    dp_status status = DP_AGAIN;
    dp_event event = {.type = DP_EV_ADMIN_COMMAND};
    dp_assert(!driver->stepping);
    if (driver->node == NULL) {
        return dp_why_set(order->why, DP_AGAIN, "this node is still joining");
    }
    event.u.order = *order;
    event.u.order.status = &status;
    dp_driver_feed(driver, &event);
    return status;
}

/* ---- jobs ---- */

bool dp_driver_post(dp_driver *driver, dp_store_thread_job *job, dp_store_thread_class class)
{
    if (dp_store_thread_post(driver->daemon->store_thread, job, class) != DP_OK) {
        return false;
    }
    driver->n_jobs++;
    return true;
}

static void free_driver(dp_driver *driver)
{
    dp_node_close(driver->node);
    dp_memfd_unmap(driver->snapshot);
    dp_free(driver->actions);
    dp_free(driver);
}

void dp_driver_job_done(dp_driver *driver)
{
    driver->n_jobs--;
    if (driver->closing && driver->n_jobs == 0) {
        free_driver(driver);
    }
}

void dp_driver_fail(dp_driver *driver, dp_status status, const char *why)
{
    dp_event_log_add(driver->daemon->event_log, DP_LOG_ERROR, "run.failed", 0, NULL, "%s: %s", why,
                     dp_status_text(status));
    if (driver->hooks.failed != NULL) {
        driver->hooks.failed(driver->hooks.context, status, why);
    } else { /* A member that cannot start: a supervisor may try again. */
        dp_daemon_end(driver->daemon, 75, why);
    }
}

/* Are these the bytes that the token named, signed by its root? */
dp_status dp_driver_check_manifest(const dp_driver *driver, dp_view bytes, dp_manifest *manifest)
{
    const dp_hash run = dp_manifest_run_id(bytes);
    DP_TRY(dp_manifest_decode(manifest, bytes));
    if (!dp_hash_equal(&run, &driver->facts.run)) {
        return DP_BADHASH;
    }
    const dp_view signed_part = dp_view_of(bytes.data, bytes.size - DP_MANIFEST_SIGNATURE_BYTES);
    if (memcmp(manifest->root_key, driver->facts.root, sizeof manifest->root_key) != 0 ||
        !dp_verify(manifest->root_key, "dpnode/manifest/1", signed_part, manifest->signature)) {
        return DP_BADSIG;
    }
    return DP_OK;
}

/* ---- opening ---- */

void dp_driver_remember_soon(dp_driver *driver)
{
    driver->remember_in = driver->remember_in < REMEMBER_SOON ? driver->remember_in : REMEMBER_SOON;
}

static void on_tick(uv_timer_t *timer)
{
    dp_driver *driver = timer->data;
    dp_transport_stats stats;
    dp_transport_look(driver->transport, &stats);
    const uint64_t now = uv_now(driver->daemon->loop);
    if (stats.links == 0 && now >= driver->redial_ms) {
        driver->redial_ms = now + DP_DRIVER_REDIAL_MS;
        dp_driver_dial_token(driver);
    } else if (!driver->has_manifest && now >= driver->redial_ms) {
        driver->redial_ms = now + DP_DRIVER_REDIAL_MS;
        dp_transport_replay(driver->transport); /* Asks all peers for it again. */
    }
    dp_driver_clock_tick(driver);
    dp_driver_rotate_tick(driver, &stats);
    dp_driver_dial_tick(driver);
    dp_driver_guests_tick(driver);
    dp_driver_watch_trainer(driver);
    dp_driver_publication_retry(driver);
    dp_driver_commands_retry(driver);
    if (driver->remember_in > 0) {
        driver->remember_in--;
    } else if (driver->node != NULL) {
        driver->remember_in = REMEMBER_EVERY;
        dp_driver_remember_peers(driver);
    }
}

dp_status dp_driver_open(dp_driver **out, dp_daemon *daemon, const dp_run_identity *facts,
                         dp_why *why)
{
    dp_driver *driver = dp_alloc(1, sizeof *driver);
    dp_actions *actions = dp_alloc(1, sizeof *actions);
    uv_timer_t *wake = dp_alloc(1, sizeof *wake);
    uv_timer_t *tick = dp_alloc(1, sizeof *tick);
    if (driver == NULL || actions == NULL || wake == NULL || tick == NULL ||
        uv_timer_init(daemon->loop, wake) != 0 || uv_timer_init(daemon->loop, tick) != 0) {
        dp_free(driver);
        dp_free(actions);
        dp_free(wake); /* uv_timer_init does not fail; this is for the allocations. */
        dp_free(tick);
        return DP_NOMEM;
    }
    driver->daemon = daemon;
    driver->facts = *facts;
    dp_event_log_rounds_forget(daemon->event_log);
    if (driver->facts.secrets.n == 0) { /* From a token. */
        dp_run_identity_begin_secrets(&driver->facts);
    }
    driver->secrets = driver->facts.secrets;
    driver->self = dp_identity_peer(&daemon->identity);
    driver->actions = actions;
    driver->wake = wake;
    driver->tick = tick;
    dp_list_init(&driver->lookups);
    dp_list_init(&driver->held);
    dp_list_init(&driver->behind);
    wake->data = driver;
    tick->data = driver;
    const dp_status status = dp_driver_open_transport(driver, why);
    if (status != DP_OK) {
        dp_driver_close(driver);
        return status;
    }
    uv_timer_start(tick, on_tick, DP_DRIVER_TICK_MS, DP_DRIVER_TICK_MS);
    *out = driver;
    if (facts->manifest_bytes > 0) {
        dp_driver_start_node(driver);
    } else {
        dp_driver_dial_token(driver);
    }
    return DP_OK;
}

void dp_driver_start_node(dp_driver *driver)
{
    const dp_view bytes = dp_view_of(driver->facts.manifest, driver->facts.manifest_bytes);
    const dp_status status = dp_driver_check_manifest(driver, bytes, &driver->manifest);
    if (status != DP_OK) {
        dp_driver_fail(driver, status,
                       status == DP_VERSION ? dp_manifest_refusal(status)
                                            : "the stored manifest is of another run");
        return;
    }
    driver->has_manifest = true;
    dp_object_transfer_set_manifest(driver->object_transfer, bytes);
    dp_driver_restore(driver);
}

void dp_driver_set_hooks(dp_driver *driver, const dp_driver_hooks *hooks)
{
    driver->hooks = hooks != NULL ? *hooks : no_hooks;
}

void dp_driver_close(dp_driver *driver)
{
    if (driver == NULL || driver->closing) {
        return;
    }
    const dp_driver_hooks hooks = driver->hooks;
    driver->hooks = no_hooks;
    if (!driver->stepping) { /* So peers notice it at once. */
        dp_driver_command(driver, DP_COMMAND_STOP);
    }
    driver->closing = true;
    if (hooks.failed != NULL) { /* A client still waits for the join. */
        hooks.failed(hooks.context, DP_CLOSED, "the run was left before it was joined");
    }
    dp_driver_trainer_close(driver);
    dp_object_transfer_close(driver->object_transfer);
    dp_transport_close(driver->transport);
    uv_close((uv_handle_t *)driver->wake, (uv_close_cb)dp_free);
    uv_close((uv_handle_t *)driver->tick, (uv_close_cb)dp_free);
    driver->n_jobs++; /* So that job_done frees it exactly once, now or with the last job. */
    dp_driver_job_done(driver);
}

/* ---- looking at it ---- */

const dp_run_identity *dp_driver_run_identity(const dp_driver *driver)
{
    return &driver->facts;
}

const dp_manifest *dp_driver_manifest(const dp_driver *driver)
{
    return driver->has_manifest ? &driver->manifest : NULL;
}

const dp_node *dp_driver_node(const dp_driver *driver)
{
    return driver->node;
}

bool dp_driver_traffic(const dp_driver *driver, const dp_peer *peer, uint64_t *sent,
                       uint64_t *received)
{
    return dp_transport_traffic(driver->transport, peer, sent, received);
}

void dp_driver_look(const dp_driver *driver, dp_driver_view *view)
{
    const bool feels = uv_now(driver->daemon->loop) - driver->felt_ms < FELT_MS;
    *view = (dp_driver_view){
        .running = driver->node != NULL,
        .port = driver->port,
        .trainer = driver->trainer_open ? "up"
                   : driver->trainer != NULL && dp_trainer_process_fails(driver->trainer)
                       ? "failing"
                   : driver->trainer_wanted ? "starting"
                                            : "down",
        .trainer_pid = driver->trainer != NULL ? dp_trainer_process_pid(driver->trainer) : 0,
        .trainer_restarts =
            driver->trainer != NULL ? dp_trainer_process_restarts(driver->trainer) : 0,
        .trainer_deaths =
            driver->trainer != NULL ? dp_trainer_process_in_a_row(driver->trainer) : 0,
        .trainer_next_ms =
            driver->trainer != NULL ? dp_trainer_process_next_ms(driver->trainer) : 0,
        .script_pid = driver->script_pid,
        .rests = driver->rests,
        .rests_celsius = driver->rests_celsius,
        .celsius = feels ? driver->celsius : 0,
        .watts = feels ? driver->watts : 0,
        .elements = driver->elements,
        .device = driver->trainer_open ? driver->device : "",
        .training = driver->training,
        .tokens_per_s = driver->training ? driver->tokens_per_s : 0,
        .outer_reach = driver->outer_reach,
        .usage = driver->training ? driver->usage.share : 0,
        .computed_us = driver->usage.computed_us,
        .trained_us = driver->usage.trained_us,
        .spent = driver->spent,
        .loss = driver->loss,
        .update_norm = driver->update_norm,
        .update_error = driver->update_error,
        .part_error = driver->part_error,
        .counted = driver->counted,
        .counted_before = driver->counted_before,
        .checkpoint_round = driver->checkpoint_round,
        .has_checkpoint = driver->has_checkpoint,
        .is_new = driver->is_new,
        .no_room = driver->no_room,
    };
    dp_transport_look(driver->transport, &view->transport);
    view->refused = driver->cut.told && view->transport.links == 0; /* The tick drops it later. */
    if (view->running) {
        dp_node_look(driver->node, &view->node);
        view->keep = dp_node_keep(driver->node, view->node.round + 1);
        view->uncounted = driver->published_round > view->node.round;
    }
}

static bool is_any(const dp_address *address)
{
    static const uint8_t zero[16];
    return memcmp(address->ip, zero, address->kind == DP_ADDRESS_IP4 ? 4 : 16) == 0;
}

uint32_t dp_driver_addresses(const dp_driver *driver, dp_address *addresses)
{
    const dp_config *config = driver->daemon->config;
    uint32_t count = 0;
    /* It has been parsed before, so it is valid. */
    if (dp_advertise_parse(config->advertise, addresses, &count, NULL) == DP_OK && count > 0) {
        return count;
    }
    /* "ADDR:0" is no address to dial, so the bound port goes in before reading. */
    char text[DP_ADDRESS_TEXT_MAX + 16];
    const char *colon = strrchr(config->listen, ':');
    snprintf(text, sizeof text, "%.*s:%u", (int)(colon == NULL ? 0 : colon - config->listen),
             config->listen, driver->port);
    dp_address at = {.kind = DP_ADDRESS_NONE};
    if (dp_address_parse(text, &at, NULL) == DP_OK && !is_any(&at)) {
        addresses[0] = at;
        return 1;
    }
    uv_interface_address_t *list = NULL;
    int n_list = 0;
    if (uv_interface_addresses(&list, &n_list) != 0) {
        return 0;
    }
    count =
        dp_advertise_interfaces(list, n_list, driver->port, at.kind == DP_ADDRESS_IP6, addresses);
    uv_free_interface_addresses(list, n_list);
    return count;
}
