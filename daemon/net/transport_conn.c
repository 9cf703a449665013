#include "daemon/net/transport_conn.h"

#include <netinet/in.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "daemon/net/transport_bulk.h"

static void on_closed(uv_handle_t *handle)
{
    dp_conn *conn = handle->data;
    if (conn->channel_open) {
        /* Not earlier: a hook may still use a message of it. */
        dp_channel_close(&conn->channel);
    }
    dp_buf_close(&conn->in_flight);
    dp_buf_close(&conn->out);
    dp_bulk_close(conn->bulk);
    dp_free(conn);
}

dp_conn *dp_conn_new(dp_transport *transport, bool outgoing, dp_lane lane)
{
    if (!dp_port_make_room(transport)) {
        return NULL;
    }
    dp_conn *conn = dp_alloc(1, sizeof *conn);
    if (conn == NULL) {
        return NULL;
    }
    if (uv_tcp_init(transport->config.loop, &conn->tcp) != 0) {
        dp_free(conn);
        return NULL;
    }
    conn->tcp.data = conn;
    conn->transport = transport;
    conn->outgoing = outgoing;
    conn->lane = lane;
    conn->write.data = conn;
    conn->connect.data = conn;
    const size_t queue = (size_t)DP_TRANSPORT_BULK_QUEUE + DP_MESSAGE_BULK_MAX + (64U << 10);
    dp_buf_init(&conn->in_flight, queue);
    dp_buf_init(&conn->out, queue);
    dp_list_push_back(&transport->conns, &conn->item);
    transport->n_conns++;
    return conn;
}

void dp_conn_close(dp_conn *conn)
{
    if (conn->closing) {
        return;
    }
    conn->closing = true;
    dp_conn_leave_lines(conn);
    dp_bulk_give_back(conn->bulk);
    dp_port_leave(&conn->place);
    dp_list_remove(&conn->item);
    conn->transport->n_conns--;
    uv_close((uv_handle_t *)&conn->tcp, on_closed);
}

uint64_t dp_conn_waiting(const dp_conn *conn)
{
    return conn->out.size + conn->in_flight.size + (conn->bulk != NULL ? conn->bulk->waiting : 0);
}

void dp_conn_trim(dp_conn *conn)
{
    if (conn->idle && !conn->writing && conn->channel_open && conn->out.size == 0) {
        dp_channel_trim(&conn->channel);
        dp_buf_close(&conn->in_flight);
        dp_buf_close(&conn->out);
        if (conn->bulk != NULL) {
            dp_bulk_trim(conn->bulk);
        }
    }
    conn->idle = true;
}

void dp_conn_lose(dp_conn *conn, dp_link_cause cause)
{
    if (conn->closing) {
        return;
    }
    dp_link_lost(conn, cause);
}

static void on_written(uv_write_t *request, int status)
{
    dp_conn *conn = request->data;
    conn->writing = false;
    dp_buf_clear(&conn->in_flight);
    if (conn->closing) {
        return;
    }
    if (status !=
        0) { /* Earlier bytes, maybe a goodbye, are read first; otherwise the tick ends it. */
        conn->doom = status == UV_ETIMEDOUT ? DP_LINK_TIMEOUT : DP_LINK_RESET;
        return;
    }
    dp_conn_flush(conn);
    if (conn->bulk != NULL) { /* It waited for the last message of the handshake. */
        dp_bulk_pump(conn->bulk);
    }
    if (!conn->closing && dp_conn_waiting(conn) < DP_TRANSPORT_BULK_LOW) {
        dp_link_drained(conn);
    }
}

void dp_conn_say_last(dp_conn *conn)
{
    if (uv_stream_get_write_queue_size((uv_stream_t *)&conn->tcp) != 0) {
        return; /* Bytes that the kernel did not take come before it. */
    }
    const uv_buf_t buf = uv_buf_init((char *)conn->out.data, (unsigned)conn->out.size);
    DP_IGNORE(uv_try_write((uv_stream_t *)&conn->tcp, &buf, 1) < 0); /* Best effort. */
}

void dp_conn_flush(dp_conn *conn)
{
    if (conn->writing || conn->closing || conn->doom != 0 || !conn->connected ||
        conn->out.size == 0) {
        return;
    }
    const dp_buf swap = conn->in_flight;
    conn->in_flight = conn->out;
    conn->out = swap;
    const uv_buf_t buf = uv_buf_init((char *)conn->in_flight.data, (unsigned)conn->in_flight.size);
    conn->writing = true;
    dp_conn_sent(conn, conn->in_flight.size);
    if (uv_write(&conn->write, (uv_stream_t *)&conn->tcp, &buf, 1, on_written) != 0) {
        conn->writing = false;
        /* Closes it later, since the caller may be iterating over links. */
        conn->doom = DP_LINK_RESET;
    }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    dp_conn *conn = handle->data;
    *buf = conn->bulk != NULL ? dp_bulk_room(conn->bulk)
                              : uv_buf_init(conn->transport->read_buffer, dp_conn_read_room(conn));
}

bool dp_conn_met(dp_conn *conn, bool proved, bool refused)
{
    const dp_transport_hooks *hooks = &conn->transport->config.hooks;
    if (conn->met || conn->channel.peer_unix_ms == 0 || conn->channel.lane != DP_LANE_CONTROL ||
        hooks->met == NULL) {
        return true;
    }
    conn->met = true;
    return hooks->met(hooks->context, proved ? &conn->channel.peer.node : NULL, &conn->addr,
                      conn->channel.peer_unix_ms, refused);
}

/* The bulk lane is open before any hook is called, and writes after the last message of the
 * handshake. */
static void prove(dp_conn *conn, const dp_channel_event *event)
{
    if (!dp_conn_met(conn, true, false)) {
        dp_conn_lose(conn, DP_LINK_REFUSED);
        return;
    }
    conn->deadline_ms = 0;
    dp_port_proved(conn);
    conn->transport->stats.handshakes++;
    dp_conn_flush(conn);
    if (conn->channel.lane == DP_LANE_BULK && conn->doom == 0) {
        conn->lane = DP_LANE_BULK;
        dp_conn_set_options(conn); /* The dialed node learns the lane only here. */
        conn->bulk = dp_bulk_open(conn);
        if (conn->bulk == NULL) {
            dp_conn_lose(conn, DP_LINK_RESET);
            return;
        }
    }
    dp_link_proved(conn, event);
}

/* Handles one event of the channel. False: stop reading, the connection is closed. */
static bool carry(dp_conn *conn, const dp_channel_event *event)
{
    switch (event->type) {
    case DP_CHANNEL_NOTHING:
        return true;
    case DP_CHANNEL_HANDSHAKE_DONE:
        prove(conn, event);
        break;
    case DP_CHANNEL_MESSAGE:
        dp_link_message(conn, event->message);
        break;
    case DP_CHANNEL_CLOSED:
        dp_conn_lose(conn, DP_LINK_CLOSED);
        break;
    }
    return !conn->closing;
}

static uint64_t unix_ms(void)
{
    uv_timeval64_t now;
    return uv_gettimeofday(&now) == 0 ? (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000
                                      : 0;
}

static uint64_t wall_ms(const dp_transport *transport)
{
    const dp_transport_hooks *hooks = &transport->config.hooks;
    return hooks->wall_ms != NULL ? hooks->wall_ms(hooks->context) : unix_ms();
}

/* If the responder refused the time of the first message and reported its own, dials the same
 * address again with that time. False: not so, or already done. */
static bool dial_again(dp_conn *conn)
{
    const uint64_t told_ms = conn->channel.peer_unix_ms;
    dp_dial plan = conn->dial;
    if (!conn->outgoing || plan.asked_again || told_ms > INT64_MAX / 2) {
        return false;
    }
    plan.asked_again = true;
    plan.ahead_ms = (int64_t)(told_ms - wall_ms(conn->transport));
    plan.next_addr--; /* conn used the address before it */
    return dp_conn_dial(conn->transport, &plan);
}

static void end_broken(dp_conn *conn, dp_status status)
{
    if (status == DP_TIMEOUT && dial_again(conn)) {
        dp_conn_close(conn);
        return;
    }
    if (status == DP_TIMEOUT) { /* A responder has put its time there. */
        dp_conn_say_last(conn);
    }
    if (status == DP_AGAIN || status == DP_EXPIRED) { /* Everything else about the peer is valid. */
        DP_IGNORE(!dp_conn_met(conn, true, true));    /* It is lost anyway. */
    }
    dp_conn_lose(conn, DP_LINK_RESET);
}

static bool is_member(void *context, const dp_peer *peer, uint8_t x_public[32])
{
    const dp_conn *conn = context;
    const dp_transport_hooks *hooks = &conn->transport->config.hooks;
    return hooks->known(hooks->context, peer, x_public);
}

static bool is_renewed(void *context, const dp_peer *peer, dp_view hello, uint64_t now_ms)
{
    const dp_conn *conn = context;
    const dp_transport_hooks *hooks = &conn->transport->config.hooks;
    return hooks->renewed != NULL && hooks->renewed(hooks->context, peer, hello, now_ms);
}

static bool may_answer(void *context)
{
    const dp_conn *conn = context;
    return dp_port_may_answer(&conn->transport->port, &conn->addr,
                              uv_now(conn->transport->config.loop));
}

bool dp_conn_is_guest(const dp_conn *conn)
{
    return dp_transport_is_guest(conn->transport, &conn->channel.peer.node);
}

/* False: no memory. */
static bool open_channel(dp_conn *conn)
{
    dp_transport *transport = conn->transport;
    dp_conn_set_options(conn);
    dp_channel_config config = {
        .initiator = conn->outgoing,
        .lane = conn->lane,
        .stripe = conn->stripe,
        .run = transport->config.run,
        .psks = {conn->outgoing && conn->dial.older ? transport->config.older
                                                    : transport->config.psk,
                 transport->config.older},
        .n_psks = !conn->outgoing && transport->config.has_older ? 2 : 1,
        .identity = transport->config.identity,
        .credential = transport->config.credential,
        .hello = transport->config.hello,
        .now_ms = wall_ms(transport),
        .said_ms = wall_ms(transport) + (uint64_t)conn->dial.ahead_ms,
        .replays = &transport->replays,
        .boot_id = transport->config.incarnation,
        .member = is_member,
        .renewed = is_renewed,
        .may_answer = may_answer,
        .context = conn,
    };
    memcpy(config.suites, transport->config.suites, sizeof config.suites);
    memcpy(config.root, transport->config.root, sizeof config.root);
    randombytes_buf(config.ephemeral, sizeof config.ephemeral);
    const dp_status status = dp_channel_init(&conn->channel, &config, &conn->out);
    sodium_memzero(config.ephemeral, sizeof config.ephemeral);
    sodium_memzero(config.psks, sizeof config.psks);
    conn->channel_open = status == DP_OK;
    return conn->channel_open;
}

static void take(dp_conn *conn, dp_view bytes)
{
    dp_channel_event event;
    if (!conn->channel_open && !open_channel(conn)) {
        dp_conn_lose(conn, DP_LINK_RESET);
        return;
    }
    do {
        size_t consumed = 0;
        event = (dp_channel_event){0};
        const dp_status status =
            dp_channel_read(&conn->channel, bytes, &consumed, &conn->out, &event);
        if (status != DP_OK) {
            end_broken(conn, status);
            return;
        }
        bytes = dp_view_of(bytes.data + consumed, bytes.size - consumed);
        dp_port_heard(conn);
        if (!carry(conn, &event)) {
            return;
        }
        if (conn->bulk != NULL) {
            dp_bulk_feed(conn->bulk, bytes);
            return;
        }
    } while (bytes.size > 0 || event.type != DP_CHANNEL_NOTHING);
    dp_conn_flush(conn);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    dp_conn *conn = stream->data;
    if (conn->closing || size == 0) {
        return;
    }
    if (size < 0) {
        dp_conn_lose(conn, size == UV_ETIMEDOUT ? DP_LINK_TIMEOUT : DP_LINK_RESET);
        return;
    }
    conn->spoke = true;
    dp_conn_received(conn, (uint64_t)size);
    if (conn->bulk != NULL) {
        dp_bulk_read(conn->bulk, (size_t)size);
        return;
    }
    take(conn, dp_view_of(buf->base, (size_t)size));
}

int dp_conn_read(dp_conn *conn)
{
    return uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read);
}

static void begin(dp_conn *conn)
{
    conn->connected = true;
    conn->deadline_ms = uv_now(conn->transport->config.loop) + DP_TRANSPORT_HANDSHAKE_MS;
}

void dp_conn_await(dp_conn *conn)
{
    begin(conn);
    if (dp_conn_read(conn) != 0) {
        dp_conn_lose(conn, DP_LINK_RESET);
    }
}

static void call_first(dp_conn *conn)
{
    begin(conn);
    if (!open_channel(conn) || dp_conn_read(conn) != 0) {
        dp_conn_lose(conn, DP_LINK_RESET);
        return;
    }
    dp_conn_flush(conn);
}

static void on_connected(uv_connect_t *request, int status)
{
    dp_conn *conn = request->data;
    if (conn->closing) {
        return;
    }
    if (status != 0) {
        dp_conn_lose(conn, DP_LINK_REFUSED);
        return;
    }
    call_first(conn);
}

static bool socket_address(const dp_addr *addr, struct sockaddr_storage *out)
{
    *out = (struct sockaddr_storage){0};
    if (addr->family == 4) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(addr->port)};
        memcpy(&in.sin_addr, addr->ip, 4);
        memcpy(out, &in, sizeof in);
        return true;
    }
    if (addr->family == 6) {
        struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = htons(addr->port)};
        memcpy(&in.sin6_addr, addr->ip, 16);
        memcpy(out, &in, sizeof in);
        return true;
    }
    return false;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    memcpy(&in, address, sizeof in);
    memcpy(&in6, address, sizeof in6);
    return address->ss_family == AF_INET ? ntohl(in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                                         : IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr) != 0;
}

static bool is_any(const struct sockaddr_storage *address)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    memcpy(&in, address, sizeof in);
    memcpy(&in6, address, sizeof in6);
    return address->ss_family == AF_INET ? in.sin_addr.s_addr == htonl(INADDR_ANY)
                                         : IN6_IS_ADDR_UNSPECIFIED(&in6.sin6_addr) != 0;
}

void dp_conn_set_source(dp_transport *transport, const struct sockaddr_storage *address)
{
    transport->source = *address;
    if (is_any(address)) {
        transport->source.ss_family = AF_UNSPEC;
    } else if (address->ss_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        in.sin_port = 0;
        memcpy(&transport->source, &in, sizeof in);
    } else {
        struct sockaddr_in6 in6;
        memcpy(&in6, address, sizeof in6);
        in6.sin6_port = 0;
        memcpy(&transport->source, &in6, sizeof in6);
    }
}

/* Dials from the address listened on, if that can reach the target. If this fails, the system
 * chooses. */
static void bind_source(const dp_transport *transport, uv_tcp_t *tcp,
                        const struct sockaddr_storage *target)
{
    const struct sockaddr_storage *source = &transport->source;
    if (source->ss_family == target->ss_family && is_loopback(source) == is_loopback(target)) {
        DP_IGNORE(uv_tcp_bind(tcp, (const struct sockaddr *)source, 0) != 0);
    }
}

bool dp_conn_dial(dp_transport *transport, dp_dial *plan)
{
    struct sockaddr_storage address;
    while (plan->next_addr < plan->n_addrs) {
        const dp_addr *addr = &plan->addrs[plan->next_addr++];
        if (!socket_address(addr, &address)) {
            continue;
        }
        dp_conn *conn = dp_conn_new(transport, true, plan->lane);
        if (conn == NULL) {
            return false;
        }
        conn->stripe = plan->stripe;
        conn->addr = *addr;
        conn->dial = *plan;
        conn->deadline_ms = uv_now(transport->config.loop) + DP_TRANSPORT_DIAL_MS;
        bind_source(transport, &conn->tcp, &address);
        if (uv_tcp_connect(&conn->connect, &conn->tcp, (const struct sockaddr *)&address,
                           on_connected) == 0) {
            return true;
        }
        dp_conn_close(
            conn); /* The next address may be of another family, which this socket cannot take. */
    }
    return false;
}
