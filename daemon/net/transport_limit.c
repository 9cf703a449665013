/* The owner's bandwidth limits in the transport: bulk connections ask before they write or read,
 * control is counted and never waits, and a timer serves the waiting connections. */
#include "base/alloc.h"
#include "daemon/net/transport_bulk.h"

enum {
    /* The bytes that a peer may send before it notices that they are not read: a quarter of a
     * second of the limit, and at least as many as a path of 1 Mbit/s and half a second needs. */
    WINDOW_SHARE = 4,
    WINDOW_MIN = 64 * 1024,
    WINDOW_FREE = 1 << 30
};

static uint64_t now_us(void)
{
    return uv_hrtime() / 1000;
}

static void on_meter(uv_timer_t *timer);

/* Runs again when a connection can be called. */
static void arm(dp_transport *transport)
{
    const uint64_t now = now_us();
    const uint64_t up = dp_throttle_wait_us(&transport->up, now);
    const uint64_t down = dp_throttle_wait_us(&transport->down, now);
    const uint64_t wait_us = up < down ? up : down;
    if (wait_us != UINT64_MAX && !transport->closing) {
        uv_timer_start(transport->meter, on_meter, wait_us / 1000 + 1, 0);
    }
}

static void on_meter(uv_timer_t *timer)
{
    dp_transport *transport = timer->data;
    dp_throttle_place *place = NULL;
    /* Each call takes one connection from the queue, or uses a slice of a burst. */
    while ((place = dp_throttle_call(&transport->up, now_us())) != NULL) {
        dp_bulk_write_on(DP_LIST_ITEM(place, dp_conn, up)->bulk);
    }
    while ((place = dp_throttle_call(&transport->down, now_us())) != NULL) {
        dp_bulk_read_on(DP_LIST_ITEM(place, dp_conn, down)->bulk);
    }
    arm(transport);
}

static uint64_t ask(dp_transport *transport, dp_throttle *throttle, dp_throttle_place *place)
{
    const bool waited = place->waits;
    const uint64_t may =
        throttle->rate == 0 ? UINT64_MAX : dp_throttle_ask(throttle, place, now_us());
    if (may == 0 && !waited) {
        arm(transport);
    }
    return may;
}

uint64_t dp_conn_may_send(dp_conn *conn)
{
    return ask(conn->transport, &conn->transport->up, &conn->up);
}

bool dp_conn_may_read(dp_conn *conn)
{
    return ask(conn->transport, &conn->transport->down, &conn->down) != 0;
}

size_t dp_conn_read_most(const dp_conn *conn)
{
    const dp_throttle *down = &conn->transport->down;
    return down->rate == 0 ? SIZE_MAX : (size_t)dp_throttle_slice(down);
}

static void pay(dp_throttle *throttle, dp_throttle_place *place, bool bulk, uint64_t bytes)
{
    if (throttle->rate == 0) {
        return;
    }
    if (bulk) {
        dp_throttle_pay(throttle, place, bytes, now_us());
    } else {
        dp_throttle_pay_control(throttle, bytes, now_us());
    }
}

void dp_conn_sent(dp_conn *conn, uint64_t bytes)
{
    conn->idle = false;
    conn->moved += bytes;
    conn->transport->stats.bytes_sent += bytes;
    if (conn->link != NULL) {
        dp_peer_traffic_count(&conn->transport->traffic, conn->link->traffic, bytes, 0);
    }
    pay(&conn->transport->up, &conn->up, conn->bulk != NULL, bytes);
}

void dp_conn_received(dp_conn *conn, uint64_t bytes)
{
    conn->idle = false;
    conn->moved += bytes;
    conn->transport->stats.bytes_received += bytes;
    if (conn->link != NULL) {
        dp_peer_traffic_count(&conn->transport->traffic, conn->link->traffic, 0, bytes);
    }
    pay(&conn->transport->down, &conn->down, conn->bulk != NULL, bytes);
}

void dp_conn_leave_lines(dp_conn *conn)
{
    dp_throttle_leave(&conn->transport->up, &conn->up, now_us());
    dp_throttle_leave(&conn->transport->down, &conn->down, now_us());
}

void dp_conn_set_window(dp_conn *conn)
{
    const uint64_t wanted = conn->transport->down.rate / WINDOW_SHARE;
    uv_os_fd_t fd;
    if (uv_fileno((const uv_handle_t *)&conn->tcp, &fd) == 0) {
        dp_path_set_window(fd, conn->transport->down.rate == 0 ? WINDOW_FREE
                               : wanted < WINDOW_MIN           ? WINDOW_MIN
                               : wanted > WINDOW_FREE          ? WINDOW_FREE
                                                               : (int)wanted);
    }
}

void dp_transport_limit(dp_transport *transport, const dp_limits *limits)
{
    const uint64_t now = now_us();
    const bool windows = transport->down.rate != limits->download;
    dp_throttle_set(&transport->up, limits->upload, now);
    dp_throttle_set(&transport->down, limits->download, now);
    for (dp_list *at = transport->conns.next; windows && at != &transport->conns; at = at->next) {
        dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        if (conn->bulk != NULL) {
            dp_conn_set_window(conn);
        }
    }
    arm(transport); /* Waiting connections may be able to continue now. */
}

void dp_transport_limits(const dp_transport *transport, dp_transport_stats *stats)
{
    const uint64_t most = transport->up.rate;
    stats->limits = (dp_limits){.upload = most, .download = transport->down.rate};
    stats->upload_held_us = dp_throttle_held_us(&transport->up, now_us());
    stats->download_held_us = dp_throttle_held_us(&transport->down, now_us());
    if (most != 0 && (stats->uplink == 0 || stats->uplink > most)) {
        stats->uplink = most; /* The line may be faster, but this node does not use more. */
    }
}

dp_status dp_transport_limits_open(dp_transport *transport)
{
    uv_timer_t *meter = dp_alloc(1, sizeof *meter);
    if (meter == NULL || uv_timer_init(transport->config.loop, meter) != 0) {
        dp_free(meter);
        return DP_NOMEM;
    }
    meter->data = transport;
    transport->meter = meter;
    const uint64_t constrained = uv_get_constrained_memory(); /* 0, or any number: not. */
    const uint64_t machine = uv_get_total_memory();
    dp_peer_memory_init(&transport->peer_memory,
                        constrained > 0 && constrained < machine ? constrained : machine);
    dp_throttle_init(&transport->up);
    dp_throttle_init(&transport->down);
    dp_transport_limit(transport, &transport->config.limits);
    return DP_OK;
}

void dp_transport_limits_close(dp_transport *transport)
{
    uv_close((uv_handle_t *)transport->meter, (uv_close_cb)dp_free);
}
