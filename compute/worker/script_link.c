#include "compute/worker/script_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 8, ERROR_TEXT_MAX = 128 };

static void remove_socket(const char *path)
{
    struct stat about;
    if (lstat(path, &about) == 0 && S_ISSOCK(about.st_mode)) {
        DP_IGNORE(unlink(path) != 0); /* If it stays, bind fails. */
    }
}

static dp_status listen_at(int fd, const char *path, dp_why *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t size = strlen(path);
    if (size >= sizeof address.sun_path) {
        return dp_why_set(why, DP_TOOBIG,
                          "%.300s is longer than the %zu bytes of a socket's path: choose a "
                          "shorter --dir",
                          path, sizeof address.sun_path - 1);
    }
    memcpy(address.sun_path, path, size + 1);
    remove_socket(path);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        chmod(path, S_IRUSR | S_IWUSR) != 0 || listen(fd, BACKLOG) != 0) {
        const int error = errno;
        char text[ERROR_TEXT_MAX];
        return dp_why_set(why, DP_IO, "%.300s: %s", path, strerror_r(error, text, sizeof text));
    }
    return DP_OK;
}

dp_status dp_script_listen(const char *path, int *fd, dp_why *why)
{
    const int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0) {
        const int error = errno;
        char text[ERROR_TEXT_MAX];
        return dp_why_set(why, DP_IO, "no socket for scripts: %s",
                          strerror_r(error, text, sizeof text));
    }
    const dp_status status = listen_at(made, path, why);
    if (status != DP_OK) {
        close(made);
        return status;
    }
    *fd = made;
    return DP_OK;
}

dp_status dp_script_accept(int listener, dp_script_peer *peer)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? DP_NOMEM : DP_AGAIN;
    }
    struct ucred other;
    socklen_t size = sizeof other;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &size) != 0) {
        close(fd);
        return DP_AGAIN;
    }
    /* 0: a process of another container, whose number nobody knows here. */
    const uint32_t pid = other.pid > 0 ? (uint32_t)other.pid : 1;
    *peer = (dp_script_peer){.fd = fd, .pid = pid, .user = other.uid};
    return DP_OK;
}

static void take_files(struct msghdr *message, dp_script_files *files)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < here && files->n < DP_SCRIPT_FILES_MAX; i++) {
            memcpy(&files->fds[files->n++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
        }
    }
}

dp_status dp_script_receive(int fd, uint8_t *room, size_t capacity, size_t *size,
                            dp_script_files *files)
{
    union {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(DP_SCRIPT_FILES_MAX * sizeof(int))];
    } control;
    struct iovec into = {.iov_base = room, .iov_len = capacity};
    struct msghdr message = {.msg_iov = &into,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    files->n = 0;
    const ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (got < 0) {
        return errno == EAGAIN || errno == EINTR ? DP_AGAIN : DP_CLOSED;
    }
    take_files(&message, files); /* An empty packet may have some, too. */
    if (got == 0 && files->n == 0) {
        return DP_CLOSED;
    }
    if (files->n > 1 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        return DP_BADMSG;
    }
    *size = (size_t)got;
    return DP_OK;
}

dp_status dp_script_send(int fd, dp_view packet, int file)
{
    union {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec from = {.iov_base = (void *)(uintptr_t)packet.data, .iov_len = packet.size};
    struct msghdr message = {.msg_iov = &from, .msg_iovlen = 1};
    if (file >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *const c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof file);
        memcpy(CMSG_DATA(c), &file, sizeof file);
    }
    if (sendmsg(fd, &message, MSG_NOSIGNAL) >= 0) {
        return DP_OK;
    }
    return errno == EAGAIN || errno == EINTR ? DP_AGAIN : DP_CLOSED;
}

dp_status dp_script_read_file(int file, size_t max, dp_buf *out)
{
    struct stat about;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size < 0 ||
        (uint64_t)about.st_size > max) {
        return DP_BADMSG;
    }
    const size_t size = (size_t)about.st_size;
    uint8_t *room;
    DP_TRY(dp_buf_reserve(out, size, &room));
    for (size_t done = 0; done < size;) {
        const ssize_t got = pread(file, room + done, size - done, (off_t)done);
        if (got <= 0) {
            return DP_IO; /* Also a file that shrinks meanwhile. */
        }
        done += (size_t)got;
    }
    dp_buf_commit(out, size);
    return DP_OK;
}
