/* A client of the control socket for tests: a socket, its received messages, and requests to
 * send. */
#ifndef DP_TESTS_UNIT_DAEMON_CALLER_H
#define DP_TESTS_UNIT_DAEMON_CALLER_H

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/control/reply.h"
#include "tests/unit/daemon/house.h"

struct caller {
    struct house *house;
    int fd;
    bool ended;
    dp_buf in;
    unsigned wanted; /* frames to wait for */
};

static inline void caller_open(struct caller *caller, struct house *house)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    *caller = (struct caller){.house = house, .in = {.max = 64 << 20}};
    caller->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(caller->fd >= 0);
    snprintf(to.sun_path, sizeof to.sun_path, "%.107s", house->config.socket);
    int error = connect(caller->fd, (const struct sockaddr *)&to, sizeof to);
    while (error != 0 && errno == EAGAIN) { /* the backlog is full: let the daemon accept */
        uv_run(&house->loop, UV_RUN_NOWAIT);
        error = connect(caller->fd, (const struct sockaddr *)&to, sizeof to);
    }
    assert_int_equal(error, 0);
}

static inline void caller_close(struct caller *caller)
{
    close(caller->fd);
    dp_buf_close(&caller->in);
}

static inline void hear(struct caller *caller)
{
    uint8_t bytes[65536];
    ssize_t got;
    while ((got = recv(caller->fd, bytes, sizeof bytes, 0)) > 0) {
        CHECK_OK(dp_buf_append(&caller->in, dp_view_of(bytes, (size_t)got)));
    }
    caller->ended = caller->ended || got == 0 || (errno != EAGAIN && errno != EINTR);
}

static inline unsigned frames_in(const struct caller *caller)
{
    unsigned count = 0;
    size_t at = 0;
    size_t size = 0;
    while (at < caller->in.size &&
           dp_control_frame_size(dp_view_of(caller->in.data + at, caller->in.size - at), &size) ==
               DP_OK &&
           size > 0) {
        at += size;
        count++;
    }
    return count;
}

static inline bool has_ended(void *context)
{
    struct caller *caller = context;
    hear(caller);
    return caller->ended;
}

static inline bool has_frames(void *context)
{
    struct caller *caller = context;
    hear(caller);
    return frames_in(caller) >= caller->wanted || caller->ended;
}

/* The next frame; its bytes stay in the caller until `used`. */
static inline size_t next_frame(struct caller *caller, dp_control_frame *frame)
{
    size_t size = 0;
    caller->wanted = 1;
    turn_until(&caller->house->loop, has_frames, caller);
    CHECK_OK(dp_control_frame_size(dp_buf_view(&caller->in), &size));
    CHECK(size > 0);
    CHECK_OK(dp_control_frame_open(frame, dp_view_of(caller->in.data, size)));
    return size;
}

static inline void used(struct caller *caller, dp_control_frame *frame, size_t size)
{
    dp_control_frame_close(frame);
    dp_buf_consume(&caller->in, size);
}

static inline void write_request(dp_buf *out, uint64_t id, const char *method, bool follow,
                                 uint64_t last)
{
    size_t start = 0;
    dp_packer packer = dp_control_begin(out, DP_CONTROL_REQUEST, id, method, &start);
    dp_group map = dp_map_begin(&packer);
    dp_pair_bool(&map, "follow", follow);
    dp_pair_u64(&map, "last", last);
    dp_group_end(&map);
    CHECK_OK(dp_control_end(out, start, &packer));
}

static inline void send_bytes(struct caller *caller, dp_view bytes)
{
    size_t done = 0;
    while (done < bytes.size) {
        const ssize_t sent = send(caller->fd, bytes.data + done, bytes.size - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            uv_run(&caller->house->loop, UV_RUN_NOWAIT);
            continue;
        }
        if (sent < 0) {
            return; /* cut meanwhile: the test looks for that */
        }
        done += (size_t)sent;
    }
}

static inline void ask(struct caller *caller, uint64_t id, const char *method)
{
    dp_buf out = {.max = 4096};
    write_request(&out, id, method, false, 20);
    send_bytes(caller, dp_buf_view(&out));
    dp_buf_close(&out);
}

static inline void check_text(const dp_pack_value *map, const char *key, const char *wanted)
{
    char text[128] = "";
    CHECK(dp_pack_copy_text(dp_pack_key(map, key), text, sizeof text));
    assert_string_equal(text, wanted);
}

static inline void check_hello(struct caller *caller, uint64_t id)
{
    dp_control_frame frame;
    uint64_t pid = 0;
    ask(caller, id, "hello");
    const size_t size = next_frame(caller, &frame);
    CHECK(frame.kind == DP_CONTROL_REPLY && frame.id == id && frame.error == NULL);
    check_text(frame.body, "state", "idle");
    check_text(frame.body, "version", DP_VERSION_TEXT);
    CHECK(dp_pack_get_u64(dp_pack_key(frame.body, "pid"), &pid) && pid == (uint64_t)getpid());
    used(caller, &frame, size);
}

#endif
