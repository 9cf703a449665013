/* The socket of scripts: listening, the user at the other end, and packets. Knows no messages. */
#ifndef DP_COMPUTE_WORKER_SCRIPT_LINK_H
#define DP_COMPUTE_WORKER_SCRIPT_LINK_H

#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"

typedef struct dp_script_peer {
    int fd; /* non-blocking */
    uint32_t pid;
    uid_t user;
} dp_script_peer;

/* Listens at path, of mode 0600; a socket that is there already is replaced. The caller owns *fd
 * and removes the path. DP_TOOBIG: the path is longer than a socket's may be; DP_IO; with a
 * sentence. */
DP_MUST dp_status dp_script_listen(const char *path, int *fd, dp_why *why);
/* The caller owns peer->fd. DP_AGAIN: nobody waits; DP_NOMEM: no descriptors. */
DP_MUST dp_status dp_script_accept(int listener, dp_script_peer *peer);
enum { DP_SCRIPT_FILES_MAX = 4 }; /* room for descriptors that nobody asked for */

/* The descriptors of a packet, which the caller closes: that may take long, or wait for ever. */
typedef struct dp_script_files {
    int fds[DP_SCRIPT_FILES_MAX];
    uint32_t n;
} dp_script_files;

/* One packet into room, *size: its bytes, and its descriptors, after any status. DP_AGAIN;
 * DP_CLOSED; DP_BADMSG: larger than room, or with more than one descriptor. */
DP_MUST dp_status dp_script_receive(int fd, uint8_t *room, size_t capacity, size_t *size,
                                    dp_script_files *files);
/* file: -1: none; it stays the caller's. DP_AGAIN: the peer does not read; DP_CLOSED. */
DP_MUST dp_status dp_script_send(int fd, dp_view packet, int file);
/* The bytes of a regular file or memfd, at most max. DP_BADMSG: no regular file, or larger; DP_IO;
 * DP_NOMEM. Appended to out. */
DP_MUST dp_status dp_script_read_file(int file, size_t max, dp_buf *out);

#endif
