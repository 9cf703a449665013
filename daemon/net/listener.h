/* A listening socket that hands on the connections it accepts. It does not use libuv's accept
 * loop: if no file descriptor is left, and another thread has taken the one that libuv keeps for
 * this case, that loop does not end before a descriptor is free (1.44, uv__server_io), and the
 * daemon hangs. Loop thread only. */
#ifndef DP_DAEMON_NET_LISTENER_H
#define DP_DAEMON_NET_LISTENER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/status.h"

enum {
    DP_LISTENER_PER_TURN =
        16, /* accepted in a row, so that a flood leaves time for everything else */
    DP_LISTENER_PAUSE_MS = 100 /* until another attempt, if not even the spare descriptor is left */
};

typedef struct dp_listener dp_listener;

/* The callee owns fd: a connected socket that does not block and is closed on exec. It may close
 * the listener. */
typedef void dp_listener_accepted(void *context, int fd);

/* No descriptor is left for a waiting connection: close something for it. False: there is nothing
 * to close. It does not close the listener. */
typedef bool dp_listener_make_room(void *context);

/* Bind and listen. *error is the error as a number of libuv's (uv_strerror), 0 after DP_OK.
 * DP_BUSY: the address is taken. DP_IO, DP_NOMEM. */
DP_MUST dp_status dp_listener_open(dp_listener **listener, uv_loop_t *loop,
                                   const struct sockaddr *address, socklen_t size,
                                   dp_listener_accepted *accepted, void *context, int *error);
/* The port of a TCP socket, 0 of any other. */
uint16_t dp_listener_port(const dp_listener *listener);
/* Sets a function that is called, with the context of accepted, before a connection is refused. */
void dp_listener_set_make_room(dp_listener *listener, dp_listener_make_room *make_room);
/* Number of connections refused for lack of a descriptor: such a connection is accepted with the
 * spare one and closed at once, so that the other side does not wait. NULL: 0. */
uint64_t dp_listener_turned_away(const dp_listener *listener);
/* Accepts NULL. Memory is freed after one more turn of the loop. */
void dp_listener_close(dp_listener *listener);

#endif
