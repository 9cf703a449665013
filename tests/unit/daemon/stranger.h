/* A stranger at the port of a guest that does not know the protocol: a plain socket. */
#ifndef DP_TESTS_UNIT_DAEMON_STRANGER_H
#define DP_TESTS_UNIT_DAEMON_STRANGER_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/daemon/scene.h"

/* It calls from 127.0.network.1. */
static inline int stranger_of(const struct guest *guest, uint32_t network)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(guest->port)};
    struct sockaddr_in from = {.sin_family = AF_INET};
    assert_true(fd >= 0);
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK | network << 8);
    assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof from), 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static inline int stranger(const struct guest *guest)
{
    return stranger_of(guest, 0);
}

static inline bool has_ended(void *context)
{
    uint8_t bytes[256];
    const ssize_t got = recv(*(int *)context, bytes, sizeof bytes, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
}

/* Within what a busy machine may take. */
static inline void check_met(const struct guest *guest, int64_t ahead_ms)
{
    const int64_t is_ms = (int64_t)(guest->met_ms - party_now_ms());
    CHECK(is_ms > ahead_ms - 20000 && is_ms < ahead_ms + 20000);
}

#endif
