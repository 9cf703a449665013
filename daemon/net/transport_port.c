/* Incoming connections: listening, and the places that connections hold until they have
 * authenticated (port.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "daemon/net/transport_conn.h"

static void addr_of(const struct sockaddr *from, dp_addr *addr)
{
    *addr = (dp_addr){0};
    if (from->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof in);
        addr->family = 4;
        memcpy(addr->ip, &in.sin_addr, 4);
        addr->port = ntohs(in.sin_port);
    } else if (from->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, from, sizeof in);
        /* A socket that listens on [::] sees IPv4 addresses in mapped form. */
        const bool mapped = IN6_IS_ADDR_V4MAPPED(&in.sin6_addr);
        addr->family = mapped ? 4 : 6;
        memcpy(addr->ip, in.sin6_addr.s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
        addr->port = ntohs(in.sin6_port);
    }
}

/* Closes an unproved connection without a goodbye, and with a reset: a thousand sockets that wait
 * for their last packets would cost the system as much as the connections did. */
static void cut(dp_conn *conn)
{
    const struct linger at_once = {.l_onoff = 1};
    uv_os_fd_t fd;
    if (uv_fileno((const uv_handle_t *)&conn->tcp, &fd) == 0) {
        DP_IGNORE(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) != 0);
    }
    dp_conn_close(conn);
}

/* False: there is none. */
static bool give_way(dp_transport *transport, dp_place *place)
{
    if (place != NULL) {
        transport->stats.accepts_refused++;
        cut(DP_LIST_ITEM(place, dp_conn, place));
    }
    return place != NULL;
}

static bool free_descriptor(void *context)
{
    dp_transport *transport = context;
    return give_way(transport, dp_port_first_to_go(&transport->port)) ||
           dp_stripe_give_way(transport);
}

bool dp_port_make_room(dp_transport *transport)
{
    return transport->n_conns < DP_TRANSPORT_CONNECTIONS_MAX || free_descriptor(transport);
}

void dp_port_heard(dp_conn *conn)
{
    if (conn->place.pool != NULL && conn->place.pool != &conn->transport->port.holders &&
        conn->channel.proves_secret) {
        DP_IGNORE(!give_way(conn->transport, dp_port_prove(&conn->transport->port, &conn->place)));
    }
}

void dp_transport_remember(dp_transport *transport, const dp_addr *addr)
{
    if (addr->family == DP_ADDRESS_IP4 || addr->family == DP_ADDRESS_IP6) {
        dp_port_remember(&transport->port, addr);
    }
}

void dp_port_proved(dp_conn *conn)
{
    dp_port_leave(&conn->place);
    if (!dp_conn_is_guest(conn)) {
        dp_port_remember(&conn->transport->port, &conn->addr);
    }
}

void dp_port_cut_silent(dp_transport *transport)
{
    for (dp_list *at = transport->conns.next; at != &transport->conns;) {
        dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        at = at->next;
        if (conn->place.pool != NULL && !conn->spoke &&
            ++conn->silent_ticks > DP_TRANSPORT_SILENT_TICKS) {
            transport->stats.handshakes_failed++;
            cut(conn);
        }
    }
}

static void on_accepted(void *context, int fd)
{
    dp_transport *transport = context;
    dp_conn *conn = dp_conn_new(transport, false, DP_LANE_CONTROL);
    if (conn == NULL) {
        transport->stats.accepts_refused++;
        close(fd);
        return;
    }
    struct sockaddr_storage from;
    int size = sizeof from;
    const int opened = uv_tcp_open(&conn->tcp, fd);
    if (opened != 0) {
        close(fd);
    }
    if (opened != 0 || uv_tcp_getpeername(&conn->tcp, (struct sockaddr *)&from, &size) != 0) {
        dp_conn_close(conn);
        return;
    }
    addr_of((const struct sockaddr *)&from, &conn->addr);
    DP_IGNORE(!give_way(transport, dp_port_enter(&transport->port, &conn->place, &conn->addr)));
    dp_conn_await(conn);
}

static bool has_v6(void)
{
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool has = fd >= 0 || errno != EAFNOSUPPORT;
    if (fd >= 0) {
        close(fd);
    }
    return has;
}

static dp_status any_v4(uint16_t port, struct sockaddr_storage *address)
{
    const struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    *address = (struct sockaddr_storage){0};
    memcpy(address, &in, sizeof in);
    return DP_OK;
}

static dp_status parse_listen(const char *text, struct sockaddr_storage *address, dp_why *why)
{
    const char *colon = strrchr(text, ':');
    char host[DP_ADDRESS_NAME_MAX + 1];
    char *end = NULL;
    const size_t size = colon == NULL ? 0 : (size_t)(colon - text);
    const long port = colon == NULL ? -1 : strtol(colon + 1, &end, 10);
    if (colon == NULL || end == colon + 1 || *end != '\0' || port < 0 || port > 65535 ||
        size >= sizeof host) {
        return dp_why_set(why, DP_BADARG,
                          "\"%s\" is not ADDR:PORT, for example 0.0.0.0:7717 or [::]:7717", text);
    }
    const bool bracketed = size >= 2 && text[0] == '[' && text[size - 1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(bracketed ? size - 2 : size),
             bracketed ? text + 1 : text);
    if (uv_ip4_addr(host, (int)port, (struct sockaddr_in *)address) == 0) {
        return DP_OK;
    }
    if (uv_ip6_addr(host, (int)port, (struct sockaddr_in6 *)address) == 0) {
        const bool any = IN6_IS_ADDR_UNSPECIFIED(&((struct sockaddr_in6 *)address)->sin6_addr);
        /* Both families, if the system has both. */
        return any && !has_v6() ? any_v4((uint16_t)port, address) : DP_OK;
    }
    return dp_why_set(why, DP_BADARG, "\"%s\" is not an IP address to listen on", host);
}

dp_status dp_transport_check(const char *address, dp_why *why)
{
    struct sockaddr_storage parsed;
    return parse_listen(address, &parsed, why);
}

static dp_status cannot_listen(const char *address, int error, dp_why *why)
{
    if (error == UV_EADDRINUSE) {
        return dp_why_set(why, DP_BUSY,
                          "%s is in use by another program; choose another port with --listen",
                          address);
    }
    return dp_why_set(why, DP_BADARG, "cannot listen on %s: %s", address, uv_strerror(error));
}

dp_status dp_transport_try(const char *address, dp_why *why)
{
    struct sockaddr_storage bind_to;
    const int on = 1;
    DP_TRY(parse_listen(address, &bind_to, why));
    const int fd = socket(bind_to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const socklen_t size =
        bind_to.ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    const bool free_now =
        fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(fd, (const struct sockaddr *)&bind_to, size) == 0 && listen(fd, 1) == 0;
    const int error = uv_translate_sys_error(errno);
    if (fd >= 0) {
        close(fd);
    }
    return free_now ? DP_OK : cannot_listen(address, error, why);
}

dp_status dp_transport_listen(dp_transport *transport, const char *address, uint16_t *port,
                              dp_why *why)
{
    struct sockaddr_storage bind_to;
    DP_TRY(parse_listen(address, &bind_to, why));
    dp_assert(transport->listener == NULL);
    const socklen_t size =
        bind_to.ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    int error = 0;
    const dp_status status =
        dp_listener_open(&transport->listener, transport->config.loop,
                         (const struct sockaddr *)&bind_to, size, on_accepted, transport, &error);
    if (status != DP_OK) {
        return status == DP_NOMEM ? status : cannot_listen(address, error, why);
    }
    dp_listener_set_make_room(transport->listener, free_descriptor);
    *port = dp_listener_port(transport->listener);
    dp_conn_set_source(transport, &bind_to);
    return DP_OK;
}
