/* The methods that list: peers, rounds, events. */
#include <string.h>
#include <unistd.h>

#include "daemon/control/control.h"
#include "daemon/control/list_stream.h"
#include "daemon/control/reply.h"
#include "daemon/peer/bandwidth_limiter.h"
#include "daemon/peer/driver.h"
#include "gossip/record/wire.h"
#include "store/object.h"

enum { LAST_DEFAULT = 20 };

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
        dp_pair_nil(map, "name"); /* No link and no other member has reported it yet. */
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
    uint64_t sent = 0;
    uint64_t received = 0;
    if (!self && dp_driver_traffic(daemon->driver, &member->peer, &sent, &received)) {
        dp_pair_u64(&map, "bytes_sent", sent);
        dp_pair_u64(&map, "bytes_received", received);
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
    /* Peers in one reply: a reader of messages takes DP_PACK_NODES_MAX nodes of msgpack, and a peer
     * is a map of up to 15 pairs, with its addresses. */
    enum {
        PEER_NODES = 1 + 2 * 15 + DP_ADDRS_MAX,
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
    for (uint32_t i = 0; node != NULL && dp_node_member(node, i, &member); i++) {
        is_member = i == 0 ? member.in_roster : is_member;
        /* A guest that has gone is not listed: any holder of a token can make any number of
         * them. */
        if (is_member && !member.in_roster && !member.linked && member.state == DP_MEMBER_DEAD) {
            continue;
        }
        if (count++ < PEERS_MAX) {
            pack_member(dp_item(&peers), daemon, &member, i == 0);
        }
    }
    dp_group_end(&peers);
    dp_pair_u64(&map, "more", count > PEERS_MAX ? count - PEERS_MAX : 0);
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

static void pack_contributors(dp_group *map, const dp_daemon *daemon,
                              const dp_event_log_round *round)
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

static void pack_density(dp_group *map, const dp_event_log_round *round)
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

static void pack_phases(dp_group *map, const dp_phases *phases)
{
    dp_phase_times times;
    uint64_t ms = 0;
    if (phases->opened_ms == 0) {
        return;
    }
    dp_group group = dp_map_begin(dp_pair(map, "phases"));
    dp_pair_u64(&group, dp_phase_key(DP_PHASE_OPENED), phases->opened_ms);
    for (int i = DP_PHASE_OPENED + 1; i < DP_PHASES; i++) {
        if (dp_phases_ms(phases, (dp_phase)i, &ms)) {
            dp_pair_u64(&group, dp_phase_key((dp_phase)i), ms);
        }
    }
    dp_group_end(&group);
    if (dp_phases_times(phases, &times)) {
        dp_pair_u64(map, "compute_ms", times.compute_ms);
        dp_pair_u64(map, "transfer_ms", times.transfer_ms);
        dp_pair_u64(map, "wait_ms", times.wait_ms);
    }
}

void dp_pack_round(dp_packer *packer, const dp_daemon *daemon, const dp_event_log_round *round)
{
    dp_group map = dp_map_begin(packer);
    dp_pair_u64(&map, "round", round->round);
    dp_pair_u64(&map, "slot", round->slot);
    dp_pair_text(&map, "kind", round->kind == DP_EVENT_LOG_GOSSIP ? "gossip" : "sync");
    dp_pair_u64(&map, "time_ms", round->time_ms);
    if (round->seq != 0) {
        dp_pair_u64(&map, "seq", round->seq);
    }
    if (round->duration_ms != 0) {
        dp_pair_u64(&map, "duration_ms", round->duration_ms);
    }
    dp_pair_u64(&map, "listed", round->listed);
    dp_pair_u64(&map, "active", round->active);
    if (round->kind == DP_EVENT_LOG_GOSSIP) {
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
        pack_phases(&map, &round->phases);
        dp_pair_bool(&map, "counted", round->counted);
        if (!dp_hash_is_zero(&round->state_root)) {
            dp_pair_hex(&map, "state_root", dp_view_of(round->state_root.bytes, DP_HASH_BYTES));
        }
        pack_contributors(&map, daemon, round);
    }
    dp_group_end(&map);
}

void dp_pack_entry(dp_packer *packer, const dp_event_log_entry *entry)
{
    dp_group map = dp_map_begin(packer);
    dp_pair_u64(&map, "id", entry->id);
    dp_pair_u64(&map, "time_ms", entry->time_ms);
    dp_pair_text(&map, "name", entry->name);
    if (entry->round != 0) {
        dp_pair_u64(&map, "round", entry->round);
    }
    if (!dp_peer_is_zero(&entry->peer)) {
        char id[DP_PEER_TEXT_MAX];
        dp_peer_text(&entry->peer, id);
        dp_pair_text(&map, "peer", id);
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

/* The entries that the parameters name; false after an error reply. */
static bool read_wish(const dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters,
                      dp_stream_wish *wish)
{
    dp_history_filter *const filter = &wish->filter;
    const bool narrow = dp_pack_key(parameters, "since_ms") != NULL ||
                        dp_pack_key(parameters, "until_ms") != NULL ||
                        dp_pack_key(parameters, "peer") != NULL;
    wish->narrow = narrow;
    filter->since_ms = number(parameters, "since_ms", 0);
    filter->until_ms = number(parameters, "until_ms", UINT64_MAX);
    filter->has_peer = dp_pack_key(parameters, "peer") != NULL;
    wish->last = number(parameters, "last", narrow ? UINT64_MAX : LAST_DEFAULT);
    wish->after = number(parameters, "after", 0);
    wish->after_slot = number(parameters, "after_slot", 0);
    wish->follow = flag(parameters, "follow");
    return !filter->has_peer || dp_call_find_peer(daemon, call, parameters, &filter->peer);
}

void dp_method_rounds(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    dp_stream_wish wish = {.kind = DP_STREAM_OF_ROUNDS};
    if (dp_call_driver(daemon, call) != NULL && read_wish(daemon, call, parameters, &wish)) {
        dp_stream_open(daemon, call, &wish);
    }
}

void dp_method_events(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    dp_stream_wish wish = {.kind = DP_STREAM_OF_EVENTS};
    const bool needs_run = dp_pack_key(parameters, "peer") != NULL;
    if ((!needs_run || dp_call_driver(daemon, call) != NULL) &&
        read_wish(daemon, call, parameters, &wish)) {
        dp_stream_open(daemon, call, &wish);
    }
}
