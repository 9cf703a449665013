/* The calls of the daemon on its links: dial, close, send, query. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/net/aead.h"
#include "daemon/net/transport.h"
#include "daemon/net/transport_bulk.h"

void dp_transport_dial(dp_transport *transport, const dp_peer *peer, const dp_addr *addrs,
                       uint32_t n_addrs)
{
    static const dp_peer nobody = {{0}};
    const dp_transport_hooks *hooks = &transport->config.hooks;
    if (peer != NULL && (dp_link_find(transport, peer) != NULL ||
                         dp_link_dialing(transport, peer, DP_LANE_CONTROL, 0))) {
        return;
    }
    dp_dial plan = {.lane = DP_LANE_CONTROL,
                    .expects_peer = peer != NULL,
                    .expected = peer != NULL ? *peer : nobody,
                    .n_addrs = n_addrs < DP_ADDRS_MAX ? n_addrs : DP_ADDRS_MAX};
    if (plan.n_addrs > 0) {
        memcpy(plan.addrs, addrs, plan.n_addrs * sizeof addrs[0]);
    }
    if (!dp_conn_dial(transport, &plan)) {
        hooks->link_down(hooks->context, &plan.expected, DP_LINK_REFUSED);
    }
}

void dp_transport_hangup(dp_transport *transport, const dp_peer *peer)
{
    dp_link *link = dp_link_find(transport, peer);
    if (link != NULL) {
        dp_link_say_goodbye(link->lanes[DP_LANE_CONTROL]);
        dp_link_lost(link->lanes[DP_LANE_CONTROL], DP_LINK_CLOSED);
    }
}

static dp_status send_on(dp_conn *conn, dp_view bytes)
{
    const uint64_t queue = dp_conn_waiting(conn) + bytes.size;
    if (queue > DP_TRANSPORT_CONTROL_QUEUE ||
        (queue > DP_TRANSPORT_GUEST_QUEUE && dp_conn_is_guest(conn))) {
        return DP_AGAIN;
    }
    DP_TRY(dp_channel_write(&conn->channel, bytes, &conn->out));
    dp_link_answered(conn->link, bytes.size);
    dp_conn_flush(conn);
    return DP_OK;
}

dp_status dp_transport_give(dp_transport *transport, const dp_peer *peer, dp_buf *message)
{
    const dp_link *link = dp_link_find(transport, peer);
    const dp_conn *conn = link == NULL ? NULL : dp_link_stripe(link, message->size);
    return conn == NULL ? DP_NOTFOUND : dp_bulk_send(conn->bulk, message);
}

static dp_status send_bulk(dp_transport *transport, const dp_peer *peer, dp_view bytes)
{
    dp_buf copy;
    DP_TRY(dp_transport_buffer(transport, bytes.size, &copy));
    dp_status status = dp_buf_append(&copy, bytes);
    if (status == DP_OK) {
        status = dp_transport_give(transport, peer, &copy);
    }
    dp_buf_close(&copy);
    return status;
}

dp_status dp_transport_send(dp_transport *transport, const dp_peer *peer, dp_lane lane,
                            dp_view bytes)
{
    if (lane == DP_LANE_BULK) {
        return send_bulk(transport, peer, bytes);
    }
    const dp_link *link = dp_link_find(transport, peer);
    if (link == NULL) {
        return DP_NOTFOUND;
    }
    dp_conn *conn = link->lanes[DP_LANE_CONTROL];
    const dp_status status = send_on(conn, bytes);
    if (status ==
        /* The peer does not read its messages: treats it as frozen, at the next tick. */
        DP_AGAIN) {
        conn->doom = DP_LINK_TIMEOUT;
        return DP_NOTFOUND;
    }
    return status;
}

void dp_transport_send_all(dp_transport *transport, dp_view bytes)
{
    for (dp_list *at = transport->links.next; at != &transport->links; at = at->next) {
        dp_conn *conn = DP_LIST_ITEM(at, dp_link, item)->lanes[DP_LANE_CONTROL];
        if (send_on(conn, bytes) == DP_AGAIN) {
            conn->doom = DP_LINK_TIMEOUT;
        }
    }
}

void dp_transport_keys(dp_transport *transport, const dp_channel_psk *psk,
                       const dp_channel_psk *older)
{
    transport->config.psk = *psk;
    transport->config.has_older = older != NULL;
    if (older != NULL) {
        transport->config.older = *older;
    }
}

void dp_transport_say(dp_transport *transport, dp_view hello)
{
    dp_assert(hello.size <= sizeof transport->hello);
    memcpy(transport->hello, hello.data, hello.size);
    transport->config.hello.size = hello.size;
}

/* From the start each time: a hook may have ended links, or closed the transport. */
static dp_link *first_to_replay(const dp_transport *transport)
{
    for (dp_list *at = transport->links.next; at != &transport->links; at = at->next) {
        dp_link *link = DP_LIST_ITEM(at, dp_link, item);
        if (!link->replayed) {
            return link;
        }
    }
    return NULL;
}

void dp_transport_replay(dp_transport *transport)
{
    const dp_transport_hooks *hooks = &transport->config.hooks;
    for (dp_list *at = transport->links.next; at != &transport->links; at = at->next) {
        DP_LIST_ITEM(at, dp_link, item)->replayed = false;
    }
    for (dp_link *link = first_to_replay(transport); link != NULL;
         link = first_to_replay(transport)) {
        const dp_conn *control = link->lanes[DP_LANE_CONTROL];
        const dp_peer peer = link->peer;
        link->replayed = true;
        hooks->link_up(hooks->context, &peer, &control->addr,
                       dp_view_of(link->credential, link->credential_bytes), dp_view_of(NULL, 0),
                       control->outgoing);
    }
}

uint64_t dp_transport_bulk_waiting(const dp_transport *transport, const dp_peer *peer)
{
    const dp_link *link = dp_link_find(transport, peer);
    return link == NULL ? UINT64_MAX : dp_link_bulk_waiting(link);
}

bool dp_transport_is_guest(const dp_transport *transport, const dp_peer *peer)
{
    const dp_transport_hooks *hooks = &transport->config.hooks;
    return hooks->guest != NULL && hooks->guest(hooks->context, peer);
}

uint64_t dp_transport_waiting(const dp_transport *transport, bool guests)
{
    uint64_t bytes = 0;
    for (dp_list *at = transport->links.next; at != &transport->links; at = at->next) {
        const dp_link *link = DP_LIST_ITEM(at, dp_link, item);
        if (guests && !dp_transport_is_guest(transport, &link->peer)) {
            continue;
        }
        for (uint32_t stripe = 0; stripe < DP_CHANNEL_STRIPES_MAX; stripe++) {
            const dp_conn *conn = link->lanes[DP_LANE_BULK + stripe];
            bytes += conn != NULL ? dp_conn_waiting(conn) : 0;
        }
    }
    return bytes;
}

static uint64_t control_waiting(const dp_transport *transport, bool guests)
{
    uint64_t bytes = 0;
    for (dp_list *at = transport->links.next; at != &transport->links; at = at->next) {
        const dp_link *link = DP_LIST_ITEM(at, dp_link, item);
        const uint64_t waiting = dp_conn_waiting(link->lanes[DP_LANE_CONTROL]);
        if (waiting > 0 && (!guests || dp_transport_is_guest(transport, &link->peer))) {
            bytes += waiting;
        }
    }
    return bytes;
}

void dp_transport_look(const dp_transport *transport, dp_transport_stats *stats)
{
    *stats = transport->stats;
    stats->uplink = dp_path_uplink(&transport->line);
    dp_transport_limits(transport, stats);
    stats->connections = transport->n_conns;
    stats->held = transport->peer_memory.bytes + dp_transport_waiting(transport, false) +
                  control_waiting(transport, false);
    stats->held_guests = transport->peer_memory.guests + dp_transport_waiting(transport, true) +
                         control_waiting(transport, true);
    stats->held_most = transport->peer_memory.most;
    stats->held_limit = transport->peer_memory.limit;
    stats->accepts_refused += dp_listener_turned_away(transport->listener);
}

void dp_addr_text(const dp_addr *addr, char text[DP_ADDR_TEXT_MAX])
{
    const dp_address address = dp_addr_address(addr);
    dp_address_text(&address, text);
}
