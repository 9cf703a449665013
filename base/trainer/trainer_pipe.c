/* Transport of trainer_msg.h: packets on the socket, bulk data as sealed memfds. */
#include "base/trainer/trainer_msg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"

static dp_status socket_status(int error)
{
    switch (error) {
    case EAGAIN:
        return DP_AGAIN;
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
        return DP_CLOSED;
    case EMSGSIZE:
        return DP_TOOBIG;
    case ENOMEM:
    case ENOBUFS:
    case EMFILE: /* The machine lacks something; nothing is broken. */
    case ENFILE:
        return DP_NOMEM;
    case ENOSPC:
        return DP_NOSPACE;
    default:
        return DP_IO;
    }
}

typedef union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(DP_TRAINER_FDS_MAX * sizeof(int))];
} control;

static dp_status send_packet(int socket, dp_view packet, const int *fds, uint32_t n_fds)
{
    control ancillary;
    memset(&ancillary, 0, sizeof ancillary);
    /* sendmsg only reads, but struct iovec has no const form. */
    struct iovec part = {.iov_base = (void *)(uintptr_t)packet.data, .iov_len = packet.size};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (n_fds > 0) {
        header.msg_control = ancillary.bytes;
        header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *const rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, n_fds * sizeof(int));
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? socket_status(errno) : DP_OK;
}

dp_status dp_trainer_send(int socket, const dp_trainer_msg *msg, const int *fds, uint32_t n_fds)
{
    dp_assert(n_fds <= DP_TRAINER_FDS_MAX);
    dp_buf packet;
    dp_buf_init(&packet, DP_TRAINER_PACKET_MAX);
    dp_status status = dp_trainer_encode(msg, &packet);
    if (status == DP_OK) {
        status = send_packet(socket, dp_buf_view(&packet), fds, n_fds);
    }
    dp_buf_close(&packet);
    return status;
}

static uint32_t take_fds(struct msghdr *header, int fds[DP_TRAINER_FDS_MAX])
{
    uint32_t count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL;
         part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const size_t n = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
            if (count < DP_TRAINER_FDS_MAX) {
                fds[count] = fd;
                count++;
            } else {
                close(fd);
            }
        }
    }
    return count;
}

dp_status dp_trainer_receive(int socket, dp_trainer_msg *msg, int fds[DP_TRAINER_FDS_MAX],
                             uint32_t *n_fds)
{
    uint8_t packet[DP_TRAINER_PACKET_MAX];
    control ancillary;
    struct iovec part = {.iov_base = packet, .iov_len = sizeof packet};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    header.msg_control = ancillary.bytes;
    header.msg_controllen = sizeof ancillary.bytes;
    *n_fds = 0;
    ssize_t got;
    do {
        got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return socket_status(errno);
    }
    const uint32_t count = take_fds(&header, fds);
    dp_status status = DP_OK;
    if (got == 0) {
        status = DP_CLOSED; /* No message of ours is empty. */
    } else if (header.msg_flags & MSG_TRUNC) {
        status = DP_TOOBIG;
    } else if (header.msg_flags & MSG_CTRUNC) {
        status = DP_NOMEM; /* no free descriptors here: a sender has at most DP_TRAINER_FDS_MAX */
    } else {
        status = dp_trainer_decode(msg, dp_view_of(packet, (size_t)got));
    }
    if (status == DP_OK) {
        *n_fds = count;
        return DP_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        close(fds[i]);
    }
    return status;
}

dp_status dp_memfd_start(const char *name, int *fd)
{
    const int made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0) {
        return socket_status(errno);
    }
    *fd = made;
    return DP_OK;
}

dp_status dp_memfd_add(int fd, dp_view bytes)
{
    return dp_fd_write(fd, bytes) == DP_OK ? DP_OK : socket_status(errno);
}

dp_status dp_memfd_seal(int fd)
{
    const int all = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL;
    return fcntl(fd, F_ADD_SEALS, all) == 0 ? DP_OK : DP_IO;
}

dp_status dp_memfd_make(const char *name, dp_view bytes, int *fd)
{
    int made = -1;
    DP_TRY(dp_memfd_start(name, &made));
    dp_status status = dp_memfd_add(made, bytes);
    if (status == DP_OK) {
        status = dp_memfd_seal(made);
    }
    if (status != DP_OK) {
        close(made);
        return status;
    }
    *fd = made;
    return DP_OK;
}

dp_status dp_memfd_map(int fd, uint64_t bytes_max, dp_view *bytes)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & (F_SEAL_WRITE | F_SEAL_SHRINK)) != (F_SEAL_WRITE | F_SEAL_SHRINK)) {
        return DP_BADMSG;
    }
    struct stat about;
    if (fstat(fd, &about) != 0) {
        return DP_IO;
    }
    if (about.st_size < 0 || (uint64_t)about.st_size > bytes_max ||
        (uint64_t)about.st_size > SIZE_MAX) {
        return DP_BADMSG;
    }
    if (about.st_size == 0) {
        *bytes = dp_view_of(NULL, 0);
        return DP_OK;
    }
    /* Private: kernels before 6.7 refuse a shared mapping of a file that is sealed against
     * writing. */
    void *const at = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) {
        return socket_status(errno);
    }
    *bytes = dp_view_of(at, (size_t)about.st_size);
    return DP_OK;
}

void dp_memfd_unmap(dp_view bytes)
{
    if (bytes.size > 0) {
        munmap((void *)(uintptr_t)bytes.data, bytes.size);
    }
}
