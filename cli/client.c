#include "cli/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/paths.h"

enum { READ_BYTES = 64 * 1024 };

static int fail_io(dp_control_error *error, const char *what)
{
    dp_error_set(error, DP_EXIT_UNAVAILABLE, "E0103",
                 "dpnode status   # tells whether it still runs", what,
                 errno == EAGAIN ? "it is busy, or it hangs" : "the daemon closed the connection");
    return error->exit;
}

/* Of an open client, after a read or a write. */
static int fail_call(dp_client *client, dp_control_error *error, const char *what)
{
    client->late = errno == EAGAIN;
    return fail_io(error, what);
}

static int fail_memory(dp_control_error *error)
{
    dp_error_set(error, DP_EXIT_SOFTWARE, "E0199", "", "out of memory", "");
    return error->exit;
}

static bool bound(int fd, uint32_t most_ms)
{
    const struct timeval most = {.tv_sec = most_ms / 1000,
                                 .tv_usec = (suseconds_t)(most_ms % 1000) * 1000};
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most) == 0;
}

#define JOIN_GROUP "sudo adduser $USER dpnode, then log in again; or sudo before the command"

static void fail_closed(dp_control_error *error, const char *path, const char *why)
{
    char more[DP_CONTROL_PATH_MAX + 160];
    if (dp_path_hides_system(path)) {
        snprintf(more, sizeof more, "%s; that of this machine is for root and the group dpnode",
                 why);
        dp_error_set(error, DP_EXIT_UNAVAILABLE, "E0101",
                     JOIN_GROUP "; a node of your own: dpnode up", "no daemon of yours is running",
                     more);
        return;
    }
    dp_error_set(error, DP_EXIT_UNAVAILABLE, "E0101",
                 "dpnode up   # or give its socket with --socket or DPNODE_SOCKET",
                 "no daemon is running", why);
}

static void fail_open(dp_control_error *error, const char *path, int cause)
{
    char why[DP_CONTROL_PATH_MAX + 80];
    snprintf(why, sizeof why, "%s: %s", path,
             strerror(cause)); /* NOLINT(concurrency-mt-unsafe): one thread */
    if (cause == EACCES || cause == EPERM) {
        const bool of_machine = strcmp(path, DP_PATH_SYSTEM_SOCKET) == 0;
        dp_error_set(error, 77, "E0104",
                     of_machine ? JOIN_GROUP : "run dpnode as the daemon's user",
                     "the daemon's socket belongs to another user", why);
    } else if (cause == EAGAIN) {
        errno = cause;
        fail_io(error, "the daemon took no connection");
    } else {
        fail_closed(error, path, why);
    }
}

dp_status dp_client_open_within(dp_client *client, const char *path, uint32_t most_ms,
                                dp_control_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *client = (dp_client){.fd = -1};
    dp_buf_init(&client->in, DP_CONTROL_FRAME_MAX + READ_BYTES);
    dp_buf_init(&client->out, DP_CONTROL_FRAME_MAX);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (most_ms == 0 || bound(fd, most_ms)) &&
        connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) {
        client->fd = fd;
        return DP_OK;
    }
    client->late = errno == EAGAIN;
    fail_open(error, path, errno);
    if (fd >= 0) {
        close(fd);
    }
    return DP_CLOSED;
}

dp_status dp_client_open(dp_client *client, const char *path, dp_control_error *error)
{
    return dp_client_open_within(client, path, 0, error);
}

void dp_client_close(dp_client *client)
{
    if (client->fd >= 0) {
        close(client->fd);
    }
    dp_buf_close(&client->in);
    dp_buf_close(&client->out);
    *client = (dp_client){.fd = -1};
}

dp_packer dp_client_begin(dp_client *client, const char *method)
{
    client->id++;
    dp_buf_clear(&client->out);
    return dp_control_begin(&client->out, DP_CONTROL_REQUEST, client->id, method, &client->start);
}

static bool send_all(const dp_client *client)
{
    size_t sent = 0;
    while (sent < client->out.size) {
        const ssize_t size =
            send(client->fd, client->out.data + sent, client->out.size - sent, MSG_NOSIGNAL);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size <= 0) {
            return false;
        }
        sent += (size_t)size;
    }
    return true;
}

/* Reads until client->in holds a whole frame. */
static bool receive_frame(dp_client *client, size_t *size)
{
    for (;;) {
        if (dp_control_frame_size(dp_buf_view(&client->in), size) != DP_OK) {
            return false;
        }
        if (*size > 0) {
            return true;
        }
        uint8_t *room = NULL;
        if (dp_buf_reserve(&client->in, READ_BYTES, &room) != DP_OK) {
            return false;
        }
        const ssize_t got = read(client->fd, room, READ_BYTES);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        dp_buf_commit(&client->in, (size_t)got);
    }
}

/* One frame of our call. *over: it was the last one. */
static int take_frame(const dp_control_frame *frame, dp_on_notice *on_notice, void *context,
                      json_t **result, dp_control_error *error, bool *over)
{
    if (frame->kind == DP_CONTROL_REPLY && frame->error != NULL) {
        dp_control_error_read(frame->error, error);
        *over = true;
        return error->exit != 0 ? error->exit : DP_EXIT_SOFTWARE;
    }
    json_t *value = dp_json_of(frame->body);
    if (value == NULL) {
        *over = true;
        return fail_memory(error);
    }
    if (frame->kind == DP_CONTROL_REPLY) {
        *result = value;
        *over = true;
        return 0;
    }
    const int status = on_notice != NULL ? on_notice(context, value) : 0;
    json_decref(value);
    *over = status != 0;
    return status;
}

int dp_client_call(dp_client *client, const dp_packer *packer, dp_on_notice *on_notice,
                   void *context, json_t **result, dp_control_error *error)
{
    *error = (dp_control_error){0};
    if (dp_control_end(&client->out, client->start, packer) != DP_OK) {
        return fail_memory(error);
    }
    errno = 0;
    if (!send_all(client)) {
        return fail_call(client, error, "the daemon did not read the request");
    }
    for (;;) {
        size_t size = 0;
        dp_control_frame frame;
        errno = 0;
        if (!receive_frame(client, &size)) {
            return fail_call(client, error, "the daemon gave no answer");
        }
        if (dp_control_frame_open(&frame, dp_view_of(client->in.data, size)) != DP_OK) {
            dp_error_set(error, DP_EXIT_UNAVAILABLE, "E0103",
                         "dpnode version   # of both; they should be the same",
                         "the daemon's answer cannot be read", "it is too large, or damaged");
            return error->exit;
        }
        bool over = false;
        int status = 0;
        if (frame.id == client->id && frame.kind != DP_CONTROL_REQUEST) {
            status = take_frame(&frame, on_notice, context, result, error, &over);
        }
        dp_control_frame_close(&frame);
        dp_buf_consume(&client->in, size);
        if (over) {
            return status;
        }
    }
}

int dp_client_ask(const dp_cmd *cmd, const char *method, json_t **result, dp_control_error *error)
{
    dp_client client;
    if (dp_client_open(&client, cmd->socket, error) != DP_OK) {
        dp_client_close(&client);
        return error->exit;
    }
    dp_packer packer = dp_client_begin(&client, method);
    dp_pack_map(&packer, 0);
    const int status = dp_client_call(&client, &packer, NULL, NULL, result, error);
    dp_client_close(&client);
    return status;
}
