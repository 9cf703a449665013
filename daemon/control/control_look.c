/* Methods that only look: hello, status, peers, rounds, events. */
#include <string.h>
#include <unistd.h>

#include "daemon/control/control.h"
#include "daemon/control/reply.h"
#include "daemon/peer/allowance.h"
#include "daemon/peer/driver.h"
#include "gossip/record/wire.h"
#include "store/object.h"

enum { LAST_STANDARD = 20 };

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
    return view.node.mode == DP_MODE_SYNC ? "training" : dp_mode_name(view.node.mode);
}

dp_driver *dp_call_driver(dp_daemon *daemon, const dp_call *call)
{
    if (daemon->driver == NULL) {
        dp_call_fail(call, 69, "E0110", "dpnode run create --demo kjv   or   dpnode join <token>",
                     "this node belongs to no run", "the daemon is idle");
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
        dp_pair_text(&map, "run", dp_driver_facts(daemon->driver)->name);
    }
    dp_group_end(&map);
    dp_call_end(call, &packer);
}

/* Where the trainer's time went. */
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

/* Of the line: what the owner allows, and how long bulk has waited for that. */
static void pack_limits(dp_group *map, const dp_daemon *daemon, const dp_transport_stats *stats)
{
    dp_allowance_view allowed;
    if (stats->limits.upload != 0) {
        dp_pair_u64(map, "upload_max", stats->limits.upload);
    }
    if (stats->limits.download != 0) {
        dp_pair_u64(map, "download_max", stats->limits.download);
    }
    dp_pair_u64(map, "upload_held_ms", stats->upload_held_us / 1000);
    dp_pair_u64(map, "download_held_ms", stats->download_held_us / 1000);
    if (dp_allowance_look(daemon->allowance, &allowed)) {
        const dp_allow_value *const values = allowed.set.values;
        if (values[DP_ALLOW_UPLOAD_MONTH].value != 0) {
            dp_pair_u64(map, "upload_month", values[DP_ALLOW_UPLOAD_MONTH].value);
        }
        if (values[DP_ALLOW_DOWNLOAD_MONTH].value != 0) {
            dp_pair_u64(map, "download_month", values[DP_ALLOW_DOWNLOAD_MONTH].value);
        }
        dp_pair_u64(map, "upload_month_used", allowed.used[DP_MONTH_UP]);
        dp_pair_u64(map, "download_month_used", allowed.used[DP_MONTH_DOWN]);
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

/* How training goes, and what the last update was. */
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

/* Of rounds of parts. */
static void pack_parts(dp_group *map, const dp_driver_view *view)
{
    if (view->node.early_told > 0) {
        dp_pair_u64(map, "early_told", view->node.early_told);
        dp_pair_u64(map, "early_here", view->node.early_here);
    }
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

/* Only where something is wrong with it. */
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

/* Whose two votes have halted this node. */
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

/* What has gone over the line, and with whom. */
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

/* What the chain says, and who is heard: not known while the chain is read from the store, or the
 * manifest is awaited. */
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
}

static void pack_run(dp_packer *packer, const dp_daemon *daemon)
{
    const dp_facts *facts = dp_driver_facts(daemon->driver);
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
    pack_training(&map, &view, manifest);
    pack_parts(&map, &view);
    pack_clock(&map, daemon);
    if (view.has_checkpoint) {
        dp_pair_u64(&map, "checkpoint_round", view.checkpoint_round);
    }
    pack_liar(&map, daemon, &view);
    pack_line(&map, daemon, &view);
    pack_trainer(&map, &view);
    dp_group_end(&map);
}

/* The owner's order, which outlives the daemon. */
static void pack_pause(dp_group *map, const dp_daemon *daemon)
{
    dp_allowance_view allowed;
    if (dp_allowance_look(daemon->allowance, &allowed) && allowed.pause.holds) {
        char text[DP_PAUSE_USER_MAX + 64];
        dp_pause_text(&allowed.pause, text, sizeof text);
        dp_group pause = dp_map_begin(dp_pair(map, "paused"));
        if (allowed.pause.since_ms != 0) {
            dp_pair_u64(&pause, "since_ms", allowed.pause.since_ms);
        }
        if (allowed.pause.user[0] != '\0') {
            dp_pair_text(&pause, "by", allowed.pause.user);
        }
        dp_pair_text(&pause, "text", text);
        dp_group_end(&pause);
    }
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
    dp_pair_u64(&map, "uptime_s", (dp_unix_ms() - daemon->started_ms) / 1000);
    dp_pair_text(&map, "name",
                 daemon->driver != NULL ? dp_driver_facts(daemon->driver)->node_name
                                        : daemon->config->name);
    dp_pair_hex(&map, "id", dp_view_of(self.bytes, sizeof self.bytes));
    dp_pair_u64(&map, "rss_bytes", resident_bytes());
    dp_pair_u64(&map, "log_dropped", daemon->log != NULL ? dp_log_sink_dropped(daemon->log) : 0);
    if (daemon->driver != NULL) {
        dp_driver_view view;
        dp_driver_look(daemon->driver, &view);
        dp_pair_u64(&map, "port", view.port);
        pack_pause(&map, daemon);
        pack_run(dp_pair(&map, "run"), daemon);
    } else if (daemon->lost) {
        dp_pair_text(&map, "lost",
                     "its store was damaged, and nothing is left that says which run it belonged "
                     "to");
    }
    dp_group_end(&map);
    dp_call_end(call, &packer);
}

static void pack_peer(dp_group *map, const dp_daemon *daemon, const dp_peer *peer)
{
    char text[DP_PEER_TEXT_MAX];
    dp_peer_text(peer, text);
    dp_pair_hex(map, "id", dp_view_of(peer->bytes, sizeof peer->bytes));
    dp_pair_text(map, "short", text);
    const char *const name =
        daemon->driver != NULL ? dp_driver_peer_name(daemon->driver, peer) : "";
    if (name[0] != '\0') {
        dp_pair_text(map, "name", name);
    } else {
        dp_pair_nil(map, "name"); /* Neither a link nor another member has told it yet. */
    }
}

static void pack_member(dp_packer *packer, const dp_daemon *daemon, const dp_member_view *member,
                        bool self)
{
    dp_group map = dp_map_begin(packer);
    pack_peer(&map, daemon, &member->peer);
    dp_pair_text(&map, "state", dp_member_state_name(member->state));
    dp_pair_bool(&map, "self", self);
    dp_pair_bool(&map, "linked", member->linked);
    dp_pair_bool(&map, "roster", member->in_roster);
    dp_pair_bool(&map, "voter", member->voter);
    if (member->rtt_us != 0) {
        dp_pair_f64(&map, "rtt_ms", (double)member->rtt_us / 1000.0);
    }
    if (self || member->linked || member->round > 0) {
        dp_pair_u64(&map, "round", member->round);
    } else {
        dp_pair_nil(&map, "round");
    }
    dp_pair_u64(&map, "included", member->included);
    if (member->step_us != 0) {
        dp_pair_f64(&map, "step_ms", member->step_us / 1000.0);
    }
    dp_group addresses = dp_array_begin(dp_pair(&map, "addresses"));
    for (uint32_t i = 0; i < member->n_addrs; i++) {
        char text[DP_ADDR_TEXT_MAX];
        dp_addr_text(&member->addrs[i], text);
        dp_pack_text(dp_item(&addresses), text);
    }
    dp_group_end(&addresses);
    dp_group_end(&map);
}

void dp_method_peers(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    /* What a reader of messages takes: nodes of msgpack, of which a peer has a map of up to 13
     * pairs with its addresses. */
    enum {
        PEER_NODES = 1 + 2 * 13 + DP_ADDRS_MAX,
        PEERS_MAX = (DP_PACK_NODES_MAX - 16) / PEER_NODES
    };
    (void)parameters;
    const dp_driver *driver = dp_call_driver(daemon, call);
    dp_packer packer;
    if (driver == NULL || !dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        return;
    }
    const dp_node *node = dp_driver_node(driver);
    dp_member_view member;
    dp_group map = dp_map_begin(&packer);
    dp_group peers = dp_array_begin(dp_pair(&map, "peers"));
    bool is_member = false;
    uint32_t count = 0;
    for (uint32_t i = 0; count < PEERS_MAX && node != NULL && dp_node_member(node, i, &member);
         i++) {
        is_member = i == 0 ? member.in_roster : is_member;
        /* A guest that has gone is nobody; anyone with a token makes any number of them. */
        if (is_member && !member.in_roster && !member.linked && member.state == DP_MEMBER_DEAD) {
            continue;
        }
        pack_member(dp_item(&peers), daemon, &member, i == 0);
        count++;
    }
    dp_group_end(&peers);
    dp_group_end(&map);
    dp_call_end(call, &packer);
}

/* Bytes of one blob on the wire when served in chunks: message heads, records, tags. */
static uint64_t wire_bytes(uint64_t blob_bytes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < dp_object_chunks(blob_bytes); i++) {
        sum += dp_channel_wire_bytes(DP_CHUNK_HEAD_BYTES + dp_object_chunk_size(blob_bytes, i));
    }
    return sum;
}

static void pack_contributors(dp_group *map, const dp_daemon *daemon, const dp_diary_round *round)
{
    dp_group peers = dp_array_begin(dp_pair(map, "peers"));
    for (uint32_t i = 0; i < round->n_peers; i++) {
        dp_group peer = dp_map_begin(dp_item(&peers));
        pack_peer(&peer, daemon, &round->peers[i].peer);
        dp_pair_u64(&peer, "tokens", round->peers[i].tokens);
        dp_pair_u64(&peer, "steps", round->peers[i].steps);
        dp_pair_f64(&peer, "weight_share", (double)round->peers[i].q / 2147483648.0);
        dp_pair_u64(&peer, "age", round->peers[i].age);
        dp_group_end(&peer);
    }
    dp_group_end(&peers);
    dp_group left = dp_array_begin(dp_pair(map, "left_out"));
    for (uint32_t i = 0; i < round->n_left_out; i++) {
        dp_group peer = dp_map_begin(dp_item(&left));
        pack_peer(&peer, daemon, &round->left_out[i].peer);
        dp_pair_text(&peer, "cause", round->left_out[i].cause);
        dp_group_end(&peer);
    }
    dp_group_end(&left);
}

static void pack_density(dp_group *map, const dp_diary_round *round)
{
    static const char *const words[] = {
        [DP_LINES_FIT] = "fit", [DP_LINES_SLOW] = "slow", [DP_LINES_FREE] = "free"};

    if (round->keep != 0) {
        dp_pair_u64(map, "keep", round->keep);
        dp_pair_text(map, "lines", words[round->lines]);
    }
    if (round->update_norm > 0) {
        dp_pair_f64(map, "update_residual", round->update_error);
        dp_pair_f64(map, "update_error", round->update_error / round->update_norm);
    }
}

void dp_pack_round(dp_packer *packer, const dp_daemon *daemon, const dp_diary_round *round)
{
    dp_group map = dp_map_begin(packer);
    dp_pair_u64(&map, "round", round->round);
    dp_pair_u64(&map, "slot", round->slot);
    dp_pair_text(&map, "kind", round->kind == DP_DIARY_GOSSIP ? "gossip" : "sync");
    dp_pair_u64(&map, "time_ms", round->time_ms);
    if (round->duration_ms != 0) {
        dp_pair_u64(&map, "duration_ms", round->duration_ms);
    }
    dp_pair_u64(&map, "listed", round->listed);
    dp_pair_u64(&map, "active", round->active);
    if (round->kind == DP_DIARY_GOSSIP) {
        dp_group exchange = dp_map_begin(dp_pair(&map, "exchange"));
        dp_group peer = dp_map_begin(dp_pair(&exchange, "peer"));
        pack_peer(&peer, daemon, &round->partner);
        dp_group_end(&peer);
        dp_pair_u64(&exchange, "weight_own", round->weight_own);
        dp_pair_u64(&exchange, "weight_other", round->weight_other);
        dp_pair_f64(&exchange, "moved", round->moved);
        dp_pair_text(&exchange, "cause", round->cause);
        dp_group_end(&exchange);
    } else {
        dp_pair_u64(&map, "tokens", round->tokens);
        if (round->loss_micro != 0) {
            dp_pair_f64(&map, "loss", (double)round->loss_micro / 1e6);
        }
        dp_pair_u64(&map, "bytes", round->bytes);
        dp_pair_u64(&map, "wire_bytes_per_copy",
                    round->listed > 0 ? wire_bytes(round->bytes / round->listed) : 0);
        if (round->parts > 0) {
            dp_pair_u64(&map, "parts", round->parts);
            dp_pair_u64(&map, "parts_empty", round->parts_empty);
        }
        pack_density(&map, round);
        dp_pair_bool(&map, "counted", round->counted);
        if (!dp_hash_is_zero(&round->state_root)) {
            dp_pair_hex(&map, "state_root", dp_view_of(round->state_root.bytes, DP_HASH_BYTES));
        }
        pack_contributors(&map, daemon, round);
    }
    dp_group_end(&map);
}

void dp_pack_entry(dp_packer *packer, const dp_diary_entry *entry)
{
    dp_group map = dp_map_begin(packer);
    dp_pair_u64(&map, "id", entry->id);
    dp_pair_u64(&map, "time_ms", entry->time_ms);
    dp_pair_text(&map, "name", entry->name);
    if (entry->round != 0) {
        dp_pair_u64(&map, "round", entry->round);
    }
    dp_pair_text(&map, "text", entry->text);
    dp_group_end(&map);
}

static uint64_t number(const dp_pack_value *parameters, const char *key, uint64_t standard)
{
    uint64_t value = standard;
    return dp_pack_get_u64(dp_pack_key(parameters, key), &value) ? value : standard;
}

static bool flag(const dp_pack_value *parameters, const char *key)
{
    bool value = false;
    return dp_pack_get_bool(dp_pack_key(parameters, key), &value) && value;
}

static void end_list(const dp_call *call, uint32_t count)
{
    dp_packer packer;
    if (dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_u64(&map, "count", count);
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
}

void dp_method_rounds(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    if (dp_call_driver(daemon, call) == NULL) {
        return;
    }
    const uint32_t kept = dp_diary_rounds(daemon->diary);
    const uint64_t last = number(parameters, "last", LAST_STANDARD);
    const uint32_t from = last < kept ? kept - (uint32_t)last : 0;
    for (uint32_t i = from; i < kept; i++) {
        dp_packer packer;
        if (!dp_call_begin(call, DP_CONTROL_NOTICE, &packer)) {
            break;
        }
        dp_group map = dp_map_begin(&packer);
        dp_pack_round(dp_pair(&map, "round"), daemon, dp_diary_round_at(daemon->diary, i));
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
    if (flag(parameters, "follow")) {
        dp_call_follow_rounds(call);
    } else {
        end_list(call, kept - from);
    }
}

void dp_method_events(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    const uint32_t kept = dp_diary_entries(daemon->diary);
    const uint64_t last = number(parameters, "last", LAST_STANDARD);
    const uint32_t from = last < kept ? kept - (uint32_t)last : 0;
    for (uint32_t i = from; i < kept; i++) {
        dp_packer packer;
        if (!dp_call_begin(call, DP_CONTROL_NOTICE, &packer)) {
            break;
        }
        dp_group map = dp_map_begin(&packer);
        dp_pack_entry(dp_pair(&map, "event"), dp_diary_entry_at(daemon->diary, i));
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
    if (flag(parameters, "follow")) {
        dp_call_follow_events(call);
    } else {
        end_list(call, kept - from);
    }
}
