/* The control queries hello and status, which only read. Lists are in control_lists.c. */
#include <string.h>
#include <unistd.h>

#include "daemon/control/control.h"
#include "daemon/control/first_start.h"
#include "daemon/control/reply.h"
#include "daemon/owner/rest.h"
#include "daemon/peer/bandwidth_limiter.h"
#include "daemon/peer/driver.h"
#include "daemon/peer/suspension.h"
#include "gossip/record/wire.h"
#include "store/object.h"

const char *dp_call_state(const dp_daemon *daemon)
{
    if (daemon->driver == NULL) {
        return "idle";
    }
    dp_driver_view view;
    dp_driver_look(daemon->driver, &view);
    if (!view.running) {
        return dp_driver_manifest(daemon->driver) != NULL ? "starting" : "joining";
    }
    if (view.node.mode != DP_MODE_SYNC) {
        return dp_mode_name(view.node.mode);
    }
    return dp_manifest_external(dp_driver_manifest(daemon->driver)) && view.script_pid == 0
               ? "waiting"
               : "training";
}

dp_driver *dp_call_driver(dp_daemon *daemon, const dp_call *call)
{
    if (daemon->driver == NULL) {
        dp_call_fail(call, 69, "E0110",
                     "dpnode join TOKEN   # or create a run: dpnode run create --demo kjv",
                     "this node has no run", "the daemon is idle");
    }
    return daemon->driver;
}

static uint64_t resident_bytes(void)
{
    size_t bytes = 0;
    return uv_resident_set_memory(&bytes) == 0 ? bytes : 0;
}

void dp_method_hello(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    (void)parameters;
    dp_packer packer;
    if (!dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        return;
    }
    dp_group map = dp_map_begin(&packer);
    dp_pair_text(&map, "version", DP_VERSION_TEXT);
    dp_pair_u64(&map, "pid", (uint64_t)getpid());
    dp_pair_text(&map, "state", dp_call_state(daemon));
    if (daemon->driver != NULL) {
        dp_pair_text(&map, "run", dp_driver_run_identity(daemon->driver)->name);
    }
    dp_group_end(&map);
    dp_call_end(call, &packer);
}

/* The use of the trainer's time. */
static void pack_spent(dp_group *map, const dp_driver_view *view)
{
    dp_group spent = dp_map_begin(dp_pair(map, "trainer_ms"));
    dp_pair_u64(&spent, "trained", view->trained_us / 1000);
    dp_pair_u64(&spent, "computed", view->computed_us / 1000);
    dp_pair_u64(&spent, "data", view->spent.data_us / 1000);
    dp_pair_u64(&spent, "publish", view->spent.publish_us / 1000);
    dp_pair_u64(&spent, "apply", view->spent.apply_us / 1000);
    dp_pair_u64(&spent, "state", view->spent.state_us / 1000);
    dp_pair_u64(&spent, "tell", view->spent.tell_us / 1000);
    dp_group_end(&spent);
}

/* The owner's limits of the line, and the time that bulk data has waited for them. */
static void pack_limits(dp_group *map, const dp_daemon *daemon, const dp_transport_stats *stats)
{
    dp_bandwidth_limiter_view allowed;
    if (stats->limits.upload != 0) {
        dp_pair_u64(map, "upload_max", stats->limits.upload);
    }
    if (stats->limits.download != 0) {
        dp_pair_u64(map, "download_max", stats->limits.download);
    }
    dp_pair_u64(map, "upload_held_ms", stats->upload_held_us / 1000);
    dp_pair_u64(map, "download_held_ms", stats->download_held_us / 1000);
    if (dp_bandwidth_limiter_look(daemon->bandwidth_limiter, &allowed)) {
        if (daemon->config->upload_month != 0) {
            dp_pair_u64(map, "upload_month", daemon->config->upload_month);
        }
        if (daemon->config->download_month != 0) {
            dp_pair_u64(map, "download_month", daemon->config->download_month);
        }
        dp_pair_u64(map, "upload_month_used", allowed.used[DP_BANDWIDTH_QUOTA_UP]);
        dp_pair_u64(map, "download_month_used", allowed.used[DP_BANDWIDTH_QUOTA_DOWN]);
        dp_pair_bool(map, "month_used_up", allowed.used_up);
    }
}

static void pair_known(dp_group *map, const char *key, double value)
{
    if (value > 0) {
        dp_pair_f64(map, key, value);
    } else {
        dp_pair_nil(map, key);
    }
}

/* The state of training, and the last update. */
static void pack_training(dp_group *map, const dp_driver_view *view, const dp_manifest *manifest)
{
    dp_pair_bool(map, "trains", view->training);
    pair_known(map, "tokens_per_s", view->tokens_per_s);
    pair_known(map, "compute_utilisation", view->usage);
    if (view->trained_us > 0) {
        pack_spent(map, view);
    }
    if (manifest != NULL && manifest->outer_mu_milli > 0 && view->outer_reach > 0) {
        dp_pair_f64(map, "outer_reach", view->outer_reach);
    }
    pair_known(map, "loss", view->loss);
    if (view->keep != 0) {
        dp_pair_u64(map, "keep", view->keep);
    }
    if (view->update_norm > 0) {
        dp_pair_f64(map, "update_norm", view->update_norm);
        dp_pair_f64(map, "update_residual", view->update_error);
        dp_pair_f64(map, "update_error", view->update_error / view->update_norm);
    }
    if (view->part_error > 0) {
        dp_pair_f64(map, "part_error", view->part_error);
    }
}

/* The statistics of rounds of parts. */
static void pack_parts(dp_group *map, const dp_driver_view *view)
{
    if (view->node.near > 0) {
        dp_pair_u64(map, "near", view->node.near);
    }
    if (view->node.results_near > 0) {
        dp_pair_u64(map, "results_near", view->node.results_near);
    }
    if (view->node.sums_made > 0) {
        dp_pair_u64(map, "sums_made", view->node.sums_made);
    }
    if (view->node.sums_taken > 0) {
        dp_pair_u64(map, "sums_taken", view->node.sums_taken);
    }
}

/* Only if the clock is wrong. */
static void pack_clock(dp_group *map, const dp_daemon *daemon)
{
    char text[256];
    dp_wall_view clock;
    if (!dp_driver_clock(daemon->driver, &clock, text, sizeof text)) {
        return;
    }
    dp_group group = dp_map_begin(dp_pair(map, "clock"));
    dp_pack_i64(dp_pair(&group, "behind_ms"), clock.ahead_ms);
    dp_pack_i64(dp_pair(&group, "corrected_ms"), clock.correction_ms);
    dp_pair_text(&group, "text", text);
    dp_group_end(&group);
}

/* The voter whose two votes have halted this node. */
static void pack_liar(dp_group *map, const dp_daemon *daemon, const dp_driver_view *view)
{
    if (view->node.mode == DP_MODE_HALTED && !dp_peer_is_zero(&view->node.culprit)) {
        char id[DP_PEER_TEXT_MAX];
        dp_peer_text(&view->node.culprit, id);
        dp_pair_text(map, "voted_twice", id);
        dp_pair_text(map, "voted_twice_name",
                     dp_driver_peer_name(daemon->driver, &view->node.culprit));
    }
}

/* The traffic over the line, its limits, and the links. */
static void pack_line(dp_group *map, const dp_daemon *daemon, const dp_driver_view *view)
{
    dp_pair_u64(map, "bytes_sent", view->transport.bytes_sent);
    dp_pair_u64(map, "bytes_received", view->transport.bytes_received);
    pack_limits(map, daemon, &view->transport);
    dp_pair_u64(map, "chunks", view->node.chunks);
    dp_pair_u64(map, "chunks_hedged", view->node.chunks_hedged);
    dp_pair_u64(map, "links", view->transport.links);
    dp_pair_u64(map, "handshakes_failed", view->transport.handshakes_failed);
    dp_pair_u64(map, "accepts_refused", view->transport.accepts_refused);
    dp_pair_u64(map, "held", view->transport.held);
    dp_pair_u64(map, "held_guests", view->transport.held_guests);
    dp_pair_u64(map, "held_most", view->transport.held_most);
    dp_pair_u64(map, "held_max", view->transport.held_limit);
}

/* Unknown numbers are nil: no sensor, or no trainer has read one in the last minute. */
static void pack_machine(dp_group *map, const dp_driver_view *view)
{
    double load[3] = {0};
    dp_group group = dp_map_begin(dp_pair(map, "machine"));
    pair_known(&group, "celsius", view != NULL ? view->celsius : 0);
    pair_known(&group, "watts", view != NULL ? view->watts : 0);
    uv_loadavg(load);
    dp_pair_f64(&group, "load", load[0]);
    dp_pair_u64(&group, "processors", uv_available_parallelism());
    dp_group_end(&group);
}

static void pack_trainer(dp_group *map, const dp_driver_view *view)
{
    dp_pair_text(map, "trainer", view->trainer);
    if (view->device[0] != '\0') {
        dp_pair_text(map, "device", view->device);
    }
    dp_pair_u64(map, "trainer_pid", (uint64_t)view->trainer_pid);
    dp_pair_u64(map, "trainer_restarts", view->trainer_restarts);
    if (view->trainer_next_ms > 0) {
        dp_pair_u64(map, "trainer_deaths", view->trainer_deaths);
        dp_pair_u64(map, "trainer_next_ms", view->trainer_next_ms);
    }
}

/* The numbers of the chain, and the number of members that are heard. They are unknown while the
 * chain is read from the store, or while the node waits for the manifest. */
static void pack_chain(dp_group *map, const dp_driver_view *view)
{
    const dp_node_view *const node = &view->node;
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"round", node->round},         {"applied", node->applied},
        {"slot", node->slot},           {"tokens", node->tokens},
        {"members", node->members},     {"alive", node->alive},
        {"voters", node->voters},       {"listed", node->listed_last},
        {"exchanges", node->exchanges}, {"rejected", node->rejected},
        {"diverged", node->diverged},   {"counted", view->counted + view->counted_before}};
    char owner[DP_PEER_TEXT_MAX];
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (view->running) {
            dp_pair_u64(map, numbers[i].key, numbers[i].value);
        } else {
            dp_pair_nil(map, numbers[i].key);
        }
    }
    if (!view->running) {
        dp_pair_nil(map, "state_root");
        dp_pair_nil(map, "is_voter");
        dp_pair_nil(map, "ballot_owner");
        dp_pair_nil(map, "quorum");
        dp_pair_nil(map, "refused");
        return;
    }
    dp_peer_text(&node->ballot_owner, owner);
    if (dp_hash_is_zero(&node->state_root)) { /* No trainer holds a state. */
        dp_pair_nil(map, "state_root");
    } else {
        dp_pair_hex(map, "state_root", dp_view_of(node->state_root.bytes, DP_HASH_BYTES));
    }
    dp_pair_bool(map, "is_voter", node->is_voter);
    dp_pair_text(map, "ballot_owner", owner);
    dp_pair_bool(map, "quorum", node->quorum);
    dp_pair_bool(map, "refused", view->refused);
    if (view->no_room != NULL && view->no_room[0] != '\0') {
        dp_pair_text(map, "no_room", view->no_room);
    }
}

static void pack_measured(dp_group *map, const dp_measured *measured)
{
    if (measured->tokens == 0) {
        return;
    }
    dp_group group = dp_map_begin(dp_pair(map, "held_out"));
    dp_pair_f64(&group, "loss", measured->loss);
    dp_pair_f64(&group, "bits_per_byte", measured->bits_per_byte);
    dp_pair_u64(&group, "tokens", measured->tokens);
    dp_pair_u64(&group, "round", measured->round);
    dp_pair_u64(&group, "time_ms", measured->time_ms);
    dp_group_end(&group);
}

static void pack_rounds(dp_group *map, const dp_event_log *event_log)
{
    const dp_event_log_round *const round = dp_event_log_round_phased(event_log);
    const dp_event_log_turnout turnout = dp_event_log_turnout_of(event_log);
    dp_phase_times times;

    dp_pair_u64(map, "rounds_all", turnout.all);
    dp_pair_u64(map, "rounds_some", turnout.some);
    if (round == NULL || !dp_phases_times(&round->phases, &times)) {
        return;
    }
    dp_group group = dp_map_begin(dp_pair(map, "phases"));
    dp_pair_u64(&group, "round", round->round);
    dp_pair_u64(&group, "compute_ms", times.compute_ms);
    dp_pair_u64(&group, "transfer_ms", times.transfer_ms);
    dp_pair_u64(&group, "wait_ms", times.wait_ms);
    dp_group_end(&group);
}

static void pack_run(dp_packer *packer, const dp_daemon *daemon)
{
    const dp_run_identity *facts = dp_driver_run_identity(daemon->driver);
    const dp_manifest *manifest = dp_driver_manifest(daemon->driver);
    dp_driver_view view;
    dp_driver_look(daemon->driver, &view);
    dp_group map = dp_map_begin(packer);
    dp_pair_text(&map, "name", facts->name);
    dp_pair_hex(&map, "id", dp_view_of(facts->run.bytes, sizeof facts->run.bytes));
    pack_chain(&map, &view);
    uint32_t here = 0;
    dp_pair_u64(&map, "data_objects", dp_data_objects(daemon->driver, &here));
    dp_pair_u64(&map, "data_here", here);
    dp_pair_u64(&map, "elements", view.elements);
    dp_pair_u64(&map, "round_ms", manifest != NULL ? manifest->round_ms : 0);
    if (manifest != NULL && dp_manifest_external(manifest)) {
        dp_pair_bool(&map, "external", true);
    }
    if (view.script_pid != 0) {
        dp_pair_u64(&map, "script_pid", view.script_pid);
    }
    dp_pair_u64(&map, "sample_tokens", manifest != NULL ? dp_manifest_sample_tokens(manifest) : 0);
    pack_training(&map, &view, manifest);
    pack_parts(&map, &view);
    pack_clock(&map, daemon);
    if (view.has_checkpoint) {
        dp_pair_u64(&map, "checkpoint_round", view.checkpoint_round);
    }
    pack_measured(&map, &daemon->measured);
    pack_rounds(&map, daemon->event_log);
    pack_liar(&map, daemon, &view);
    pack_line(&map, daemon, &view);
    pack_trainer(&map, &view);
    dp_group_end(&map);
}

static void pack_rest(dp_group *list, const char *word, const char *text)
{
    dp_group one = dp_map_begin(dp_item(list));
    dp_pair_text(&one, "reason", word);
    dp_pair_text(&one, "text", text);
    dp_group_end(&one);
}

/* The owner's pause, and the causes of suspension.h. */
static bool pack_orders(dp_group *list, const dp_daemon *daemon)
{
    char text[DP_SUSPENSION_TEXT_MAX];
    const char *word = "";
    const dp_pause pause = dp_suspension_owner(daemon->suspension);
    const bool paused = pause.holds && !pause.waits;
    unsigned n = 0;
    if (paused) {
        pack_rest(list, dp_rest_word(DP_REST_PAUSE), dp_rest_text(DP_REST_PAUSE));
    }
    while (dp_suspension_cause(daemon->suspension, n, &word, text)) {
        pack_rest(list, word, text);
        n++;
    }
    return paused || n > 0;
}

/* The state of the run for which it does not train; DP_REST_COUNT: none. */
static dp_rest rest_of_run(const dp_daemon *daemon, const dp_driver_view *view)
{
    const dp_manifest *const manifest = dp_driver_manifest(daemon->driver);
    uint32_t here = 0;
    if (!view->running) {
        return manifest != NULL ? DP_REST_STARTING : DP_REST_JOINING;
    }
    switch (view->node.mode) {
    case DP_MODE_JOINING:
        return here < dp_data_objects(daemon->driver, &here) ? DP_REST_DATA : DP_REST_JOINING;
    case DP_MODE_HALTED:
        return DP_REST_HALTED;
    case DP_MODE_LEFT:
        return DP_REST_LEFT;
    case DP_MODE_SYNC:
    case DP_MODE_GOSSIP:
    case DP_MODE_PAUSED:
        break;
    }
    return DP_REST_COUNT;
}

/* The same of its trainer, in a run in which it may train. */
static dp_rest rest_of_trainer(const dp_daemon *daemon, const dp_driver_view *view)
{
    const dp_manifest *const manifest = dp_driver_manifest(daemon->driver);
    const bool external = manifest != NULL && dp_manifest_external(manifest);
    if (daemon->config->observer) {
        return DP_REST_OBSERVER;
    }
    if (strcmp(view->trainer, "up") != 0) {
        return view->trainer_next_ms > 0 ? DP_REST_CRASHES : DP_REST_TRAINER;
    }
    if (external && view->script_pid == 0) {
        return DP_REST_SCRIPT;
    }
    if (view->node.mode == DP_MODE_GOSSIP && manifest != NULL &&
        manifest->exchange == DP_EXCHANGE_GRADIENTS) {
        return DP_REST_QUORUM;
    }
    return view->training ? DP_REST_COUNT : DP_REST_MODEL;
}

/* Every reason for which this node does not train now; an empty list while it does. */
static void pack_rests(dp_group *map, const dp_daemon *daemon)
{
    dp_driver_view view;
    dp_rest reason = DP_REST_IDLE;
    bool rests = false;
    dp_group list = dp_array_begin(dp_pair(map, "rests"));
    if (daemon->driver != NULL) {
        dp_driver_look(daemon->driver, &view);
        reason = rest_of_run(daemon, &view);
        rests = pack_orders(&list, daemon);
        if (reason == DP_REST_COUNT && !rests) {
            reason = rest_of_trainer(daemon, &view);
        }
    }
    if (reason != DP_REST_COUNT) {
        pack_rest(&list, dp_rest_word(reason), dp_rest_text(reason));
    }
    dp_group_end(&list);
}

/* Causes other than the owner's pause for which the node does not train. */
static void pack_suspended(dp_group *map, const dp_daemon *daemon)
{
    char text[DP_SUSPENSION_TEXT_MAX];
    const char *word = "";
    if (!dp_suspension_cause(daemon->suspension, 0, &word, text)) {
        return;
    }
    dp_group list = dp_array_begin(dp_pair(map, "suspended"));
    for (unsigned i = 0; dp_suspension_cause(daemon->suspension, i, &word, text); i++) {
        dp_group one = dp_map_begin(dp_item(&list));
        dp_pair_text(&one, "cause", word);
        dp_pair_text(&one, "text", text);
        dp_group_end(&one);
    }
    dp_group_end(&list);
}

/* The reason why a node with a token, or a manifest to create a run from, is in no run by it. */
static void pack_problem(dp_group *map, const dp_daemon *daemon)
{
    const dp_control_error *const problem = dp_first_start_problem(daemon->first_start);
    if (dp_first_start_tries(daemon->first_start)) {
        dp_pair_bool(map, "trying", true);
    }
    if (problem == NULL) {
        return;
    }
    dp_group group = dp_map_begin(dp_pair(map, "problem"));
    dp_pair_text(&group, "code", problem->code);
    dp_pair_text(&group, "what", problem->what);
    dp_pair_text(&group, "why", problem->why);
    dp_pair_text(&group, "fix", problem->fix);
    dp_group_end(&group);
}

void dp_method_status(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    (void)parameters;
    dp_packer packer;
    if (!dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        return;
    }
    const dp_peer self = dp_identity_peer(&daemon->identity);
    dp_group map = dp_map_begin(&packer);
    dp_pair_text(&map, "state", dp_call_state(daemon));
    dp_pair_u64(&map, "pid", (uint64_t)getpid());
    dp_pair_text(&map, "version", DP_VERSION_TEXT);
    dp_pair_text(&map, "dir", daemon->config->dir);
    dp_pair_u64(&map, "uptime_s", (dp_boot_ms() - daemon->started_ms) / 1000);
    dp_pair_text(&map, "name",
                 daemon->driver != NULL ? dp_driver_run_identity(daemon->driver)->node_name
                                        : daemon->config->name);
    dp_pair_hex(&map, "id", dp_view_of(self.bytes, sizeof self.bytes));
    dp_pair_u64(&map, "rss_bytes", resident_bytes());
    dp_pair_u64(&map, "log_dropped", daemon->log != NULL ? dp_log_sink_dropped(daemon->log) : 0);
    pack_problem(&map, daemon);
    pack_rests(&map, daemon);
    if (daemon->driver != NULL) {
        dp_driver_view view;
        dp_driver_look(daemon->driver, &view);
        dp_pair_u64(&map, "port", view.port);
        pack_machine(&map, &view);
        dp_pack_pause(&map, daemon);
        pack_suspended(&map, daemon);
        pack_run(dp_pair(&map, "run"), daemon);
    } else {
        pack_machine(&map, NULL);
    }
    if (daemon->driver == NULL && daemon->lost) {
        dp_pair_text(&map, "lost", "its store was damaged and the name of its run is lost");
    }
    dp_group_end(&map);
    dp_call_end(call, &packer);
}
