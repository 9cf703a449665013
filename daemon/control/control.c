#include "daemon/control/control.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/list.h"
#include "daemon/control/control_socket.h"
#include "daemon/control/first_start.h"
#include "daemon/control/list_stream.h"
#include "daemon/control/reply.h"
#include "daemon/net/listener.h"

enum { USER_ROW_BYTES = 4096, USER_MAX = 64 };

typedef struct client {
    dp_list item;
    uv_pipe_t pipe;
    dp_control *control;
    uint64_t number;
    uid_t uid;     /* of the process that connected */
    bool is_known; /* the system reported uid */
    bool may_order;
    bool closing;
    bool writing;
    dp_buf in;
    dp_buf out;
    dp_buf in_flight;
    size_t start; /* of the frame being packed in out */
    uv_write_t write;
    char room[16 * 1024];
} client;

struct dp_control {
    dp_daemon *daemon;
    dp_listener *listener;
    char path[DP_CONTROL_PATH_MAX + 1];
    dp_list clients;
    uint32_t n_clients;
    uint32_t n_lookers; /* of these, those that may only query */
    uint64_t next_number;
    uint64_t garbage; /* clients cut for invalid bytes */
};

/* LOOK: only reads, at almost no cost. ORDER: changes state, reveals a secret, or takes time of the
 * disk or the trainer. */
typedef enum method_kind { LOOK, ORDER } method_kind;

typedef struct method_row {
    const char *name;
    dp_method *run;
    method_kind kind;
} method_row;

static const method_row methods[] = {
    {"hello", dp_method_hello, LOOK},
    {"status", dp_method_status, LOOK},
    {"peers", dp_method_peers, LOOK},
    {"rounds", dp_method_rounds, LOOK},
    {"events", dp_method_events, LOOK},
    {"why", dp_method_why, LOOK},
    {"data", dp_method_data, LOOK},
    {"ckpt.list", dp_method_ckpt_list, LOOK},
    {"token.list", dp_method_token_list, LOOK},
    {"limits", dp_method_limits, LOOK}, /* It checks the right itself before it sets a limit. */
    {"config", dp_method_config, LOOK},
    {"run.create", dp_method_run_create, ORDER},
    {"run.join", dp_method_run_join, ORDER},
    {"run.leave", dp_method_run_leave, ORDER},
    {"invite", dp_method_invite, ORDER},
    {"revoke", dp_method_revoke, ORDER},
    {"token.revoke", dp_method_token_revoke, ORDER},
    {"token.rotate", dp_method_token_rotate, ORDER},
    {"run.fork", dp_method_run_fork, ORDER},
    {"run.merge", dp_method_run_merge, ORDER},
    {"pause", dp_method_pause, ORDER},
    {"resume", dp_method_resume, ORDER},
    {"drain", dp_method_drain, ORDER},
    {"ckpt.verify", dp_method_ckpt_verify, ORDER},
    {"audit", dp_method_audit, ORDER},
    {"ckpt.export", dp_method_ckpt_export, ORDER},
    {"sample", dp_method_sample, ORDER},
    {"eval", dp_method_eval, ORDER},
    {"down", dp_method_down, ORDER},
};

/* ---- clients ---- */

static void on_client_closed(uv_handle_t *handle)
{
    client *self = handle->data;
    dp_buf_close(&self->in);
    dp_buf_close(&self->out);
    dp_buf_close(&self->in_flight);
    dp_free(self);
}

static void drop(client *self)
{
    if (!self->closing) {
        self->closing = true;
        dp_list_remove(&self->item);
        self->control->n_clients--;
        self->control->n_lookers -= self->may_order ? 0 : 1;
        uv_close((uv_handle_t *)&self->pipe, on_client_closed);
        dp_streams_on_gone(self->control->daemon, self->number);
    }
}

static void flush(client *self);

static void on_written(uv_write_t *request, int status)
{
    client *self = request->data;
    self->writing = false;
    dp_buf_clear(&self->in_flight);
    if (status != 0) {
        drop(self);
    } else if (!self->closing) {
        flush(self);
        dp_streams_on_room(self->control->daemon, self->number);
    }
}

static void flush(client *self)
{
    if (self->writing || self->closing || self->out.size == 0) {
        return;
    }
    const dp_buf swap = self->in_flight;
    self->in_flight = self->out;
    self->out = swap;
    const uv_buf_t buf = uv_buf_init((char *)self->in_flight.data, (unsigned)self->in_flight.size);
    self->writing = true;
    if (uv_write(&self->write, (uv_stream_t *)&self->pipe, &buf, 1, on_written) != 0) {
        self->writing = false;
        drop(self);
    }
}

static void dispatch(client *self, const dp_control_frame *frame)
{
    const dp_call call = {.daemon = self->control->daemon, .client = self->number, .id = frame->id};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (strcmp(methods[i].name, frame->method) == 0) {
            if (methods[i].kind == ORDER && !dp_call_may_order(&call)) {
                return;
            }
            methods[i].run(self->control->daemon, &call, frame->body);
            return;
        }
    }
    dp_call_fail(&call, 76, "E0102", "install the same version of dpnode and dpnoded",
                 "the daemon does not know this request", frame->method);
}

/* Handles all whole frames in self->in. False: the client was cut. */
static bool take_frames(client *self)
{
    for (;;) {
        size_t size = 0;
        if (dp_control_frame_size(dp_buf_view(&self->in), &size) != DP_OK) {
            return false;
        }
        if (size == 0) {
            return true;
        }
        dp_control_frame frame;
        if (dp_control_frame_open(&frame, dp_view_of(self->in.data, size)) != DP_OK) {
            return false;
        }
        const bool request = frame.kind == DP_CONTROL_REQUEST;
        if (request) {
            dispatch(self, &frame);
        }
        dp_control_frame_close(&frame);
        if (!request || self->closing) {
            return request;
        }
        dp_buf_consume(&self->in, size);
    }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    client *self = handle->data;
    *buf = uv_buf_init(self->room, sizeof self->room);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    client *self = stream->data;
    if (size < 0) {
        drop(self);
        return;
    }
    if (dp_buf_append(&self->in, dp_view_of(buf->base, (size_t)size)) != DP_OK ||
        !take_frames(self)) {
        if (!self->closing) {
            self->control->garbage++;
            dp_event_log_add(
                self->control->daemon->event_log, DP_LOG_WARN, "control.garbage", 0, NULL,
                "a client of the control socket sent invalid data and was disconnected "
                "(%llu so far)",
                (unsigned long long)self->control->garbage);
        }
        drop(self);
    }
}

static void on_accepted(void *context, int fd)
{
    dp_control *control = context;
    struct ucred who;
    socklen_t who_bytes = sizeof who;
    const bool is_known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_bytes) == 0;
    const bool may_order = is_known && (who.uid == 0 || who.uid == geteuid());
    const bool has_room = control->n_clients < DP_CONTROL_CLIENTS_MAX &&
                          (may_order || control->n_lookers < DP_CONTROL_LOOKERS_MAX);
    client *self = has_room ? dp_alloc(1, sizeof *self) : NULL;
    if (self == NULL || uv_pipe_init(control->daemon->loop, &self->pipe, 0) != 0) {
        dp_free(self);
        close(fd);
        return;
    }
    self->pipe.data = self;
    self->write.data = self;
    self->control = control;
    self->is_known = is_known;
    self->uid = is_known ? who.uid : 0;
    self->may_order = may_order;
    self->number = ++control->next_number;
    dp_buf_init(&self->in, DP_CONTROL_FRAME_MAX + 64 * 1024);
    dp_buf_init(&self->out, DP_CONTROL_OUT_MAX);
    dp_buf_init(&self->in_flight, DP_CONTROL_OUT_MAX);
    dp_list_push_back(&control->clients, &self->item);
    control->n_clients++;
    control->n_lookers += may_order ? 0 : 1;
    const int opened = uv_pipe_open(&self->pipe, fd);
    if (opened != 0) {
        close(fd);
    }
    if (opened != 0 || uv_read_start((uv_stream_t *)&self->pipe, on_alloc, on_read) != 0) {
        drop(self);
    }
}

/* ---- calls ---- */

static client *client_of(const dp_call *call)
{
    dp_control *control = call->daemon->control;
    if (control == NULL) {
        return NULL;
    }
    for (dp_list *at = control->clients.next; at != &control->clients; at = at->next) {
        client *self = DP_LIST_ITEM(at, client, item);
        if (self->number == call->client) {
            return self;
        }
    }
    return NULL;
}

bool dp_call_alive(const dp_call *call)
{
    return client_of(call) != NULL;
}

static void name_user(uid_t uid, char *name, size_t size)
{
    char room[USER_ROW_BYTES];
    struct passwd entry;
    struct passwd *found = NULL;
    if (getpwuid_r(uid, &entry, room, sizeof room, &found) == 0 && found != NULL) {
        snprintf(name, size, "%s", entry.pw_name);
    } else {
        snprintf(name, size, "uid %u", (unsigned)uid);
    }
    for (char *at = name; *at != '\0'; at++) { /* Rows of the store and terminals take ASCII. */
        *at = (char)(*at < ' ' || *at > '~' ? '?' : *at);
    }
}

void dp_call_user(const dp_call *call, char *name, size_t size)
{
    const client *self = client_of(call);
    name[0] = '\0';
    if (self != NULL && self->is_known) {
        name_user(self->uid, name, size);
    }
}

bool dp_call_may_order(const dp_call *call)
{
    const client *self = client_of(call);
    char asker[USER_MAX] = "another user";
    char owner[USER_MAX];
    char fix[2 * USER_MAX];
    char why[3 * USER_MAX];
    if (self == NULL || self->may_order) {
        return true; /* The caller is the daemon itself, or has gone: the answer is dropped. */
    }
    dp_call_user(call, asker, sizeof asker);
    name_user(geteuid(), owner, sizeof owner);
    snprintf(fix, sizeof fix, "sudo -u '#%u' dpnode ...   # as %s", (unsigned)geteuid(), owner);
    snprintf(why, sizeof why,
             "%s may only read; the daemon's user %s and root may change this node", asker, owner);
    dp_call_fail(call, 77, "E0113", fix, "not permitted", why);
    return false;
}

bool dp_call_begin(const dp_call *call, dp_control_kind kind, dp_packer *packer)
{
    client *self = client_of(call);
    if (self == NULL || (kind == DP_CONTROL_NOTICE && self->out.size > DP_CONTROL_OUT_MAX / 2)) {
        return false;
    }
    if (self->out.size > DP_CONTROL_OUT_MAX - DP_CONTROL_FRAME_MAX) {
        drop(self); /* The client asks but does not read; without a reply it would wait forever. */
        return false;
    }
    *packer = dp_control_begin(&self->out, kind, call->id, "", &self->start);
    return true;
}

void dp_call_end(const dp_call *call, dp_packer *packer)
{
    client *self = client_of(call);
    if (self == NULL) {
        return;
    }
    if (dp_control_end(&self->out, self->start, packer) != DP_OK) {
        drop(self); /* It would wait forever. */
        return;
    }
    flush(self);
}

void dp_call_fail(const dp_call *call, int exit, const char *code, const char *fix,
                  const char *what, const char *why)
{
    client *self = client_of(call);
    dp_control_error error = {.exit = exit};
    snprintf(error.code, sizeof error.code, "%s", code);
    snprintf(error.what, sizeof error.what, "%s", what);
    snprintf(error.why, sizeof error.why, "%s", why);
    snprintf(error.fix, sizeof error.fix, "%s", fix);
    if (self == NULL) {
        if (call->client == DP_CALL_NOBODY) {
            dp_first_start_failed(call->daemon->first_start, &error);
        }
        return;
    }
    if (dp_control_write_error(&self->out, call->id, &error) != DP_OK) {
        drop(self);
        return;
    }
    flush(self);
}

size_t dp_call_waiting(const dp_call *call)
{
    const client *self = client_of(call);
    return self != NULL ? self->out.size + self->in_flight.size : 0;
}

void dp_control_on_round(const dp_control *control)
{
    dp_streams_on_entry(control->daemon, DP_STREAM_OF_ROUNDS);
}

void dp_control_on_entry(const dp_control *control)
{
    dp_streams_on_entry(control->daemon, DP_STREAM_OF_EVENTS);
}

/* ---- opening ---- */

dp_status dp_control_open(dp_control **out, dp_daemon *daemon, const char *path, dp_why *why)
{
    if (strlen(path) > DP_CONTROL_PATH_MAX) {
        return dp_why_set(why, DP_BADARG, "the socket path %s is longer than %d characters", path,
                          DP_CONTROL_PATH_MAX);
    }
    if (dp_control_somebody_answers(path)) {
        return dp_why_set(why, DP_BUSY,
                          "another daemon uses the socket %s; give another one with --socket",
                          path);
    }
    dp_control *control = dp_alloc(1, sizeof *control);
    if (control == NULL) {
        return DP_NOMEM;
    }
    control->daemon = daemon;
    dp_list_init(&control->clients);
    snprintf(control->path, sizeof control->path, "%s", path);
    dp_control_make_folder(path);
    dp_control_remove_stale(path);
    const struct sockaddr_un address = dp_control_address_of(path);
    int error = 0;
    const dp_status status =
        dp_listener_open(&control->listener, daemon->loop, (const struct sockaddr *)&address,
                         sizeof address, on_accepted, control, &error);
    if (status != DP_OK) {
        dp_free(control);
        return dp_why_set(why, DP_IO, "cannot make the control socket %s: %s", path,
                          uv_strerror(error));
    }
    DP_IGNORE(chmod(path, dp_control_mode_of_socket(path)) !=
              0); /* Then, by the umask, only its owner may use it. */
    *out = control;
    return DP_OK;
}

void dp_control_close(dp_control *control)
{
    if (control == NULL) {
        return;
    }
    dp_streams_close(control->daemon);
    while (!dp_list_empty(&control->clients)) {
        drop(DP_LIST_ITEM(control->clients.next, client, item));
    }
    DP_IGNORE(unlink(control->path) != 0);
    dp_listener_close(control->listener);
    dp_free(control);
}
