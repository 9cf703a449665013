#include "daemon/net/transport.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/net/aead.h"
#include "daemon/net/transport_bulk.h"

enum { BULK_RETRY_MS = 500, STRIPE_RETRY_MS = 30000, STRIPE_YOUNG_MS = 2000 };

/* ---- links ---- */

dp_link *dp_link_find(const dp_transport *transport, const dp_peer *peer)
{
    for (dp_list *at = transport->links.next; at != &transport->links; at = at->next) {
        dp_link *link = DP_LIST_ITEM(at, dp_link, item);
        if (dp_peer_equal(&link->peer, peer)) {
            return link;
        }
    }
    return NULL;
}

/* Best effort: the authenticated close tells the other side that this end closes intentionally. */
void dp_link_say_goodbye(dp_conn *conn)
{
    if (conn->channel_open && dp_channel_finish(&conn->channel, &conn->out) == DP_OK) {
        dp_conn_say_last(conn); /* A peer that does not get it sees a reset. */
    }
}

void dp_link_drop_lane(dp_link *link, uint32_t slot)
{
    dp_conn *conn = link->lanes[slot];
    if (conn != NULL) {
        link->lanes[slot] = NULL;
        conn->link = NULL;
        dp_conn_close(conn);
    }
}

static void drop_link(dp_transport *transport, dp_link *link)
{
    for (uint32_t slot = DP_LANE_BULK + DP_CHANNEL_STRIPES_MAX; slot > 0; slot--) {
        dp_link_drop_lane(link, slot - 1);
    }
    dp_list_remove(&link->item);
    transport->stats.links--;
    dp_peer_traffic_end(&transport->traffic, link->traffic);
    dp_free(link);
}

bool dp_transport_traffic(const dp_transport *transport, const dp_peer *peer, uint64_t *sent,
                          uint64_t *received)
{
    return dp_peer_traffic_look(&transport->traffic, peer, sent, received);
}

bool dp_link_dialing(const dp_transport *transport, const dp_peer *peer, dp_lane lane,
                     uint8_t stripe)
{
    for (dp_list *at = transport->conns.next; at != &transport->conns; at = at->next) {
        const dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        if (conn->outgoing && conn->link == NULL && conn->dial.lane == lane &&
            conn->dial.stripe == stripe && conn->dial.expects_peer &&
            dp_peer_equal(&conn->dial.expected, peer)) {
            return true;
        }
    }
    return false;
}

void dp_link_dial_bulk(dp_transport *transport, dp_link *link, uint8_t stripe)
{
    dp_dial plan = {.lane = DP_LANE_BULK,
                    .stripe = stripe,
                    .expects_peer = true,
                    .expected = link->peer,
                    .n_addrs = 1};
    if (stripe == 0) {
        link->bulk_retry_ms = uv_now(transport->config.loop) + BULK_RETRY_MS;
    }
    if (dp_link_dialing(transport, &link->peer, DP_LANE_BULK,
                        /* On a long path the answer may take long: a second dial would only replace
                         * the first connection. */
                        stripe)) {
        return;
    }
    plan.addrs[0] = link->lanes[DP_LANE_CONTROL]->addr;
    plan.ahead_ms = link->lanes[DP_LANE_CONTROL]->dial.ahead_ms;
    plan.older = link->lanes[DP_LANE_CONTROL]->dial.older;
    DP_IGNORE(!dp_conn_dial(transport, &plan)); /* The next tick tries again. */
}

void dp_link_dial_again(dp_transport *transport, dp_link *link)
{
    const dp_conn *old = link->lanes[DP_LANE_CONTROL];
    dp_dial plan = {.lane = DP_LANE_CONTROL,
                    .expects_peer = true,
                    .expected = link->peer,
                    .n_addrs = 1,
                    .addrs = {old->addr},
                    .ahead_ms = old->dial.ahead_ms};
    if (!dp_link_dialing(transport, &link->peer, DP_LANE_CONTROL, 0)) {
        DP_IGNORE(!dp_conn_dial(transport, &plan)); /* It is tried again. */
    }
}

/* If two connections of one lane exist between the same lives of two nodes, both ends keep the one
 * that the smaller id has dialed; of two dialed by one node, the newer. This applies to dials that
 * crossed: a peer that dials although a connection has existed for long has lost it, and this end
 * has not noticed yet. */
static bool keeps_new(const dp_transport *transport, const dp_conn *old, const dp_conn *new)
{
    const dp_peer self = dp_identity_peer(transport->config.identity);
    const dp_peer *peer = &new->channel.peer.node;
    if (new->channel.peer_boot_id != old->channel.peer_boot_id) {
        return new->channel.peer_boot_id > old->channel.peer_boot_id;
    }
    if (old->outgoing == new->outgoing ||
        new->proved_ms - old->proved_ms > DP_TRANSPORT_SETTLED_MS) {
        return true;
    }
    const dp_peer *dialer = new->outgoing ? &self : peer;
    return dp_peer_compare(dialer, new->outgoing ? peer : &self) < 0;
}

static void prove_bulk(dp_conn *conn)
{
    dp_link *link = dp_link_find(conn->transport, &conn->channel.peer.node);
    if (link == NULL || link->boot_id != conn->channel.peer_boot_id) {
        dp_conn_close(conn);
        return;
    }
    const uint32_t slot = DP_LANE_BULK + (uint32_t)conn->stripe;
    const dp_conn *old = link->lanes[slot];
    if ((old != NULL && !keeps_new(conn->transport, old, conn)) ||
        (old == NULL && conn->stripe > 0 && conn->transport->n_conns > DP_TRANSPORT_STRIPED_MAX)) {
        dp_conn_close(conn);
        return;
    }
    dp_link_drop_lane(link, slot);
    link->lanes[slot] = conn;
    conn->link = link;
    dp_link_drained(conn);
}

static bool takes_guest(const dp_transport *transport)
{
    uint32_t guests = 0;
    for (dp_list *at = transport->links.next;
         transport->stats.links >= DP_TRANSPORT_GUESTS_MAX && at != &transport->links;
         at = at->next) {
        guests += dp_transport_is_guest(transport, &DP_LIST_ITEM(at, dp_link, item)->peer) ? 1 : 0;
    }
    return guests < DP_TRANSPORT_GUESTS_MAX;
}

static void prove_control(dp_conn *conn, const dp_channel_event *event)
{
    dp_transport *transport = conn->transport;
    const dp_transport_hooks *hooks = &transport->config.hooks;
    const dp_peer peer = conn->channel.peer.node;
    dp_link *link = dp_link_find(transport, &peer);
    if (link != NULL) {
        dp_conn *old = link->lanes[DP_LANE_CONTROL];
        if (!keeps_new(transport, old, conn)) {
            dp_link_say_goodbye(
                conn); /* The peer may use it as the link until it learns of the other one. */
            dp_conn_close(conn);
            return;
        }
        /* The same life: replaces the connection without a hook. */
        if (link->boot_id == conn->channel.peer_boot_id) {
            old->link = NULL;
            link->lanes[DP_LANE_CONTROL] = conn;
            conn->link = link;
            if (conn->outgoing && old->outgoing) {
                /* Here the new connection exists first. The other end could read a goodbye on the
                 * old one before it has the new one. */
                old->replaced = true;
                old->deadline_ms = uv_now(transport->config.loop) + DP_TRANSPORT_HANDSHAKE_MS;
                return;
            }
            dp_link_say_goodbye(old);
            dp_conn_close(old);
            return;
        }
        drop_link(transport, link);
        hooks->link_down(hooks->context, &peer, DP_LINK_RESET);
        if (conn->closing ||
            dp_link_find(transport, &peer) != NULL) { /* The hook may have closed the transport. */
            return;
        }
    }
    link = dp_conn_is_guest(conn) && !takes_guest(transport) ? NULL : dp_alloc(1, sizeof *link);
    if (link == NULL) {
        dp_link_say_goodbye(conn); /* It may dial again later. */
        dp_conn_close(conn);
        return;
    }
    link->peer = peer;
    link->boot_id = conn->channel.peer_boot_id;
    link->traffic = dp_peer_traffic_begin(&transport->traffic, &peer);
    link->lanes[DP_LANE_CONTROL] = conn;
    link->credential_bytes = event->credential.size;
    dp_assert(event->credential.size <= sizeof link->credential);
    memcpy(link->credential, event->credential.data, event->credential.size);
    conn->link = link;
    dp_list_push_back(&transport->links, &link->item);
    transport->stats.links++;
    if (conn->outgoing) {
        dp_link_dial_bulk(transport, link, 0);
    }
    dp_link_enter(conn);
    hooks->link_up(hooks->context, &peer, &conn->addr, event->credential, event->hello,
                   conn->outgoing);
}

void dp_link_proved(dp_conn *conn, const dp_channel_event *event)
{
    const dp_peer self = dp_identity_peer(conn->transport->config.identity);
    const dp_peer *peer = &conn->channel.peer.node;
    conn->lane = conn->channel.lane;
    conn->stripe = conn->channel.stripe;
    conn->proved_ms = uv_now(conn->transport->config.loop);
    if (dp_peer_equal(peer, &self) ||
        (conn->dial.expects_peer && !dp_peer_equal(peer, &conn->dial.expected))) {
        dp_link_lost(conn, DP_LINK_REFUSED);
    } else if (conn->lane == DP_LANE_BULK) {
        prove_bulk(conn);
    } else {
        prove_control(conn, event);
    }
}

void dp_link_drained(dp_conn *conn)
{
    if (conn->link != NULL && conn->lane == DP_LANE_BULK) {
        const dp_peer peer = conn->link->peer;
        conn->transport->config.hooks.drained(conn->transport->config.hooks.context, &peer);
    }
}

/* True if the other side cut it, long before a time limit could have expired. */
static bool was_cut(const dp_conn *conn)
{
    return conn->outgoing && conn->connected && conn->deadline_ms != 0 &&
           uv_now(conn->transport->config.loop) + DP_TRANSPORT_HANDSHAKE_MS / 2 < conn->deadline_ms;
}

/* If the other end has not answered, it may not have the newest pre-shared key yet: dials the same
 * address again with the older one. False: there is none, or it was tried. */
static bool dial_older(const dp_conn *conn)
{
    dp_transport *transport = conn->transport;
    dp_dial plan = conn->dial;
    if (!conn->outgoing || !conn->connected || conn->spoke || plan.older ||
        !transport->config.has_older || transport->closing) {
        return false;
    }
    plan.older = true;
    plan.next_addr--; /* conn used the address before it */
    return dp_conn_dial(transport, &plan);
}

void dp_link_lost(dp_conn *conn, dp_link_cause cause)
{
    dp_transport *transport = conn->transport;
    const dp_transport_hooks *hooks = &transport->config.hooks;
    dp_link *link = conn->link;
    if (conn->replaced) {
        dp_conn_close(conn);
        return;
    }
    if (link == NULL && dial_older(conn)) {
        dp_conn_close(conn);
        return;
    }
    if (link == NULL) { /* It has not proved its identity. */
        if (!conn->outgoing && conn->channel_open && !transport->closing) {
            DP_IGNORE(!dp_conn_met(conn, false, true)); /* It is lost anyway. */
        }
        dp_link *whole = conn->stripe > 0 ? dp_link_find(transport, &conn->dial.expected) : NULL;
        if (whole != NULL) { /* An earlier program has one bulk connection and refuses others. */
            whole->stripe_retry_ms = uv_now(transport->config.loop) + STRIPE_RETRY_MS;
        }
        const bool ours = conn->outgoing && conn->lane == DP_LANE_CONTROL;
        const dp_peer expected = conn->dial.expected;
        if (!conn->outgoing || conn->connected) {
            transport->stats.handshakes_failed++;
            transport->stats.dials_cut += was_cut(conn) ? 1 : 0;
        }
        /* The peer may have connected meanwhile: then this dial is no longer needed. */
        const bool linked =
            ours && conn->dial.expects_peer && dp_link_find(transport, &expected) != NULL;
        conn->dial.asked_again = false; /* The next address may have another clock, */
        conn->dial.older = false;       /* ... and another secret. */
        conn->dial.ahead_ms = 0;
        const bool more =
            ours && !linked && !transport->closing && dp_conn_dial(transport, &conn->dial);
        dp_conn_close(conn);
        if (ours && !linked && !more && !transport->closing) {
            hooks->link_down(hooks->context, &expected, DP_LINK_REFUSED);
        }
        return;
    }
    if (conn->lane == DP_LANE_BULK) {
        const uint64_t now = uv_now(transport->config.loop);
        if (conn->stripe > 0 && now - conn->proved_ms < STRIPE_YOUNG_MS) {
            link->stripe_retry_ms = now + STRIPE_RETRY_MS; /* The other end has too many. */
        }
        dp_link_drop_lane(link, DP_LANE_BULK + (uint32_t)conn->stripe);
        link->bulk_retry_ms = now + BULK_RETRY_MS;
        return;
    }
    const dp_peer peer = link->peer;
    drop_link(transport, link);
    if (!transport->closing) {
        hooks->link_down(hooks->context, &peer, cause);
    }
}

/* ---- opening and closing ---- */

static void on_tick(uv_timer_t *timer)
{
    dp_transport *transport = timer->data;
    const uint64_t now = uv_now(transport->config.loop);
    dp_port_cut_silent(transport);
    for (dp_list *at = transport->conns.next; at != &transport->conns;) {
        dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        at = at->next;
        if (conn->doom != 0 || (conn->deadline_ms != 0 && now >= conn->deadline_ms)) {
            dp_link_lost(conn, conn->doom != 0 ? conn->doom : DP_LINK_REFUSED);
            /* The list may have changed; each loss removes one entry, so the loop ends. */
            at = transport->conns.next;
        }
    }
    dp_transport_resume(transport);
    dp_transport_measure(transport);
    for (dp_list *at = transport->links.next; at != &transport->links; at = at->next) {
        dp_link *link = DP_LIST_ITEM(at, dp_link, item);
        if (link->lanes[DP_LANE_BULK] == NULL && link->lanes[DP_LANE_CONTROL]->outgoing &&
            now >= link->bulk_retry_ms) {
            dp_link_dial_bulk(transport, link, 0);
        }
        dp_link_measure(transport, link);
        dp_link_renew(transport, link);
    }
    dp_transport_trim(transport);
    for (dp_list *at = transport->conns.next; at != &transport->conns; at = at->next) {
        dp_conn_trim(DP_LIST_ITEM(at, dp_conn, item));
    }
}

dp_status dp_transport_open(dp_transport **out, const dp_transport_config *config)
{
    if (config->credential.size > DP_CREDENTIAL_BYTES_MAX ||
        config->hello.size > DP_CHANNEL_HELLO_MAX) {
        return DP_TOOBIG;
    }
    dp_transport *transport = dp_alloc(1, sizeof *transport);
    uv_timer_t *tick = dp_alloc(1, sizeof *tick);
    if (transport == NULL || tick == NULL || uv_timer_init(config->loop, tick) != 0) {
        dp_free(transport);
        dp_free(tick);
        return DP_NOMEM;
    }
    if (dp_crypto_pool_open(&transport->crypto_pool, config->loop, config->n_threads) != DP_OK) {
        dp_free(transport);
        uv_close((uv_handle_t *)tick, (uv_close_cb)dp_free);
        return DP_NOMEM;
    }
    transport->config = *config;
    dp_list_init(&transport->conns);
    dp_list_init(&transport->links);
    dp_port_init(&transport->port);
    if (dp_transport_limits_open(transport) != DP_OK) {
        dp_crypto_pool_close(transport->crypto_pool);
        dp_free(transport);
        uv_close((uv_handle_t *)tick, (uv_close_cb)dp_free);
        return DP_NOMEM;
    }
    if (config->suites[0] == NULL && config->suites[1] == NULL) {
        dp_aead_suites(transport->config.suites);
    }
    memcpy(transport->credential, config->credential.data, config->credential.size);
    transport->config.credential.data = transport->credential;
    memcpy(transport->hello, config->hello.data, config->hello.size);
    transport->config.hello.data = transport->hello;
    transport->renew_ms = DP_TRANSPORT_RENEW_MS;
    transport->renew_bytes = DP_TRANSPORT_RENEW_BYTES;
    transport->tick = tick;
    tick->data = transport;
    uv_timer_start(tick, on_tick, DP_TRANSPORT_TICK_MS, DP_TRANSPORT_TICK_MS);
    *out = transport;
    return DP_OK;
}

static void on_transport_closed(uv_handle_t *handle)
{
    dp_transport *transport = handle->data;
    transport->spares_idle = true;
    dp_transport_trim(transport);
    dp_free(transport);
    dp_free(handle);
}

void dp_transport_close(dp_transport *transport)
{
    if (transport == NULL) {
        return;
    }
    transport->closing = true;
    for (dp_list *at = transport->links.next; at != &transport->links; at = at->next) {
        dp_link_say_goodbye(DP_LIST_ITEM(at, dp_link, item)->lanes[DP_LANE_CONTROL]);
    }
    while (!dp_list_empty(&transport->links)) {
        drop_link(transport, DP_LIST_ITEM(transport->links.next, dp_link, item));
    }
    while (!dp_list_empty(&transport->conns)) {
        dp_conn_close(DP_LIST_ITEM(transport->conns.next, dp_conn, item));
    }
    dp_crypto_pool_close(transport->crypto_pool);
    dp_transport_limits_close(transport);
    dp_listener_close(transport->listener);
    /* libuv calls close callbacks of one loop turn in any order, but connections no longer touch
     * the transport. */
    uv_close((uv_handle_t *)transport->tick, on_transport_closed);
}
