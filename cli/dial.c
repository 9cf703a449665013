#include "cli/dial.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HOST_MAX = 128, ADDRESSES_MAX = 8 /* of one name */ };

/* The result of the connection attempt. */
static bool connected(int fd, const struct addrinfo *at, int wait_ms)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    if (connect(fd, at->ai_addr, at->ai_addrlen) == 0) {
        return true;
    }
    return errno == EINPROGRESS && poll(&ready, 1, wait_ms) == 1 &&
           getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

bool dp_dial_answers(const char *address, int wait_ms)
{
    const char *const colon = strrchr(address, ':');
    char host[HOST_MAX];
    const bool bracketed = address[0] == '[';
    const size_t size = colon == NULL ? 0 : (size_t)(colon - address);
    if (size < (bracketed ? 3 : 1) || size >= sizeof host || (bracketed && colon[-1] != ']')) {
        return false;
    }
    snprintf(host, sizeof host, "%.*s", (int)(bracketed ? size - 2 : size), address + bracketed);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    bool answers = false;
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) {
        return false;
    }
    int n = 0;
    for (const struct addrinfo *at = found; at != NULL && n < ADDRESSES_MAX && !answers;
         at = at->ai_next, n++) {
        const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        answers = fd >= 0 && connected(fd, at, wait_ms);
        if (fd >= 0) {
            close(fd);
        }
    }
    freeaddrinfo(found);
    return answers;
}
