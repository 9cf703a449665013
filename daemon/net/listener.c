#include "daemon/net/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"

/* Connections that arrive while others are being accepted wait in this queue: in a flood of
 * thousands a second, as many as come during one turn of the loop. */
enum { BACKLOG = 1024 };

struct dp_listener {
    uv_poll_t poll;
    uv_timer_t pause;
    unsigned n_handles;
    bool closing;
    int fd;
    int spare; /* released for a moment to refuse a connection; -1: none */
    uint64_t turned_away;
    dp_listener_accepted *accepted;
    dp_listener_make_room *make_room; /* may be NULL */
    void *context;
};

static void keep_spare(dp_listener *listener)
{
    if (listener->spare < 0) {
        listener->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
}

static int accept_one(const dp_listener *listener)
{
    const int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return fd >= 0 ? fd : -errno;
}

typedef enum turn { TURN_MORE, TURN_DONE, TURN_PAUSE } turn;

/* Another thread may take the descriptor first: then no connection is refused, and there may be no
 * spare one either. */
static turn turn_away(dp_listener *listener)
{
    int fd = -EMFILE;
    if (listener->spare >= 0) {
        close(listener->spare);
        listener->spare = -1;
        fd = accept_one(listener);
    }
    if (fd >= 0) {
        close(fd);
        listener->turned_away++;
    }
    keep_spare(listener);
    return listener->spare < 0 ? TURN_PAUSE : fd == -EAGAIN ? TURN_DONE : TURN_MORE;
}

static turn take_one(dp_listener *listener)
{
    const int fd = accept_one(listener);
    if (fd >= 0) {
        listener->accepted(listener->context, fd);
        return TURN_MORE;
    }
    if (fd == -EMFILE || fd == -ENFILE) {
        return listener->make_room != NULL && listener->make_room(listener->context)
                   ? TURN_MORE
                   : turn_away(listener);
    }
    return fd == -EAGAIN                         ? TURN_DONE
           : fd == -EINTR || fd == -ECONNABORTED ? TURN_MORE
                                                 : TURN_PAUSE; /* For example no memory. */
}

static void watch(dp_listener *listener);

static void on_pause_over(uv_timer_t *timer)
{
    dp_listener *listener = timer->data;
    keep_spare(listener);
    watch(listener);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    dp_listener *listener = poll->data;
    (void)status;
    (void)events;
    turn next = TURN_MORE;
    for (int i = 0; i < DP_LISTENER_PER_TURN && next == TURN_MORE && !listener->closing; i++) {
        next = take_one(listener);
    }
    if (next == TURN_PAUSE && !listener->closing) {
        uv_poll_stop(poll);
        uv_timer_start(&listener->pause, on_pause_over, DP_LISTENER_PAUSE_MS, 0);
    }
}

static void watch(dp_listener *listener)
{
    DP_IGNORE(uv_poll_start(&listener->poll, UV_READABLE, on_poll) !=
              0); /* Fails only for a closed handle. */
}

static int listening_socket(const struct sockaddr *address, socklen_t size)
{
    const int on = 1;
    const int off = 0;
    const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    bool good = true;
    if (address->sa_family != AF_UNIX) {
        good = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
    }
    if (address->sa_family == AF_INET6) { /* [::] accepts both families. */
        good = good && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;
    }
    if (!good || bind(fd, address, size) != 0 || listen(fd, BACKLOG) != 0) {
        const int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

dp_status dp_listener_open(dp_listener **out, uv_loop_t *loop, const struct sockaddr *address,
                           socklen_t size, dp_listener_accepted *accepted, void *context,
                           int *error)
{
    dp_listener *listener = dp_alloc(1, sizeof *listener);
    const int fd = listener != NULL ? listening_socket(address, size) : -ENOMEM;
    *error = fd < 0 ? fd : 0;
    if (fd >= 0 && uv_poll_init(loop, &listener->poll, fd) != 0) {
        close(fd);
        *error = UV_ENOMEM;
    }
    if (*error != 0) {
        dp_free(listener);
        return *error == UV_EADDRINUSE ? DP_BUSY : *error == UV_ENOMEM ? DP_NOMEM : DP_IO;
    }
    DP_IGNORE(uv_timer_init(loop, &listener->pause) != 0); /* It does not fail. */
    listener->n_handles = 2;
    listener->poll.data = listener;
    listener->pause.data = listener;
    listener->fd = fd;
    listener->spare = -1;
    listener->accepted = accepted;
    listener->context = context;
    keep_spare(listener);
    watch(listener);
    *out = listener;
    return DP_OK;
}

uint16_t dp_listener_port(const dp_listener *listener)
{
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    if (getsockname(listener->fd, (struct sockaddr *)&bound, &size) != 0) {
        return 0;
    }
    if (bound.ss_family == AF_INET) {
        return ntohs(((const struct sockaddr_in *)&bound)->sin_port);
    }
    return bound.ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)&bound)->sin6_port)
                                       : 0;
}

void dp_listener_set_make_room(dp_listener *listener, dp_listener_make_room *make_room)
{
    listener->make_room = make_room;
}

uint64_t dp_listener_turned_away(const dp_listener *listener)
{
    return listener != NULL ? listener->turned_away : 0;
}

static void on_closed(uv_handle_t *handle)
{
    dp_listener *listener = handle->data;
    dp_assert(listener->n_handles > 0);
    if (--listener->n_handles == 0) {
        dp_free(listener);
    }
}

void dp_listener_close(dp_listener *listener)
{
    if (listener == NULL) {
        return;
    }
    listener->closing = true;
    uv_close((uv_handle_t *)&listener->poll, on_closed);
    uv_close((uv_handle_t *)&listener->pause, on_closed);
    close(listener->fd);
    if (listener->spare >= 0) {
        close(listener->spare);
    }
}
