#include "daemon/control/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "daemon/control/control.h"
#include "daemon/peer/driver.h"

struct dp_token_file {
    dp_daemon *daemon;
    uv_timer_t timer;
    uint64_t again_ms;
    int told; /* errno of the last failed read that the log has */
};

/* One more than a token may have, so that a longer file is not taken for a token. */
typedef struct token_text {
    size_t size;
    char bytes[DP_TOKEN_TEXT_MAX + 2];
} token_text;

/* 0, or the error of reading it: ENOENT also while it is empty, since it may just be being
 * written. */
static int read_file(const char *path, token_text *out)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return errno;
    }
    const ssize_t size = read(fd, out->bytes, sizeof out->bytes);
    const int error = size < 0 ? errno : 0;
    close(fd);
    out->size = size > 0 ? (size_t)size : 0;
    while (out->size > 0 && strchr(" \t\r\n", out->bytes[out->size - 1]) != NULL) {
        out->size--;
    }
    return error != 0 ? error : out->size == 0 ? ENOENT : 0;
}

static void look_later(dp_token_file *file, uint64_t wait_ms);

static void on_look(uv_timer_t *timer)
{
    dp_token_file *file = timer->data;
    dp_daemon *daemon = file->daemon;
    const char *path = daemon->config->token_file;
    token_text text = {.size = 0};
    if (daemon->driver != NULL) { /* The node joins, or has joined. */
        if (dp_driver_manifest(daemon->driver) == NULL) {
            look_later(file, DP_TOKEN_FILE_LOOK_MS);
        }
        return;
    }
    const int error = read_file(path, &text);
    if (error == 0) {
        file->again_ms = file->again_ms == 0 ? DP_TOKEN_FILE_LOOK_MS : 2 * file->again_ms;
        dp_event_log_add(daemon->event_log, DP_LOG_INFO, "join.file", 0, NULL,
                         "joining by the token in %s", path);
        dp_run_join_unasked(daemon, dp_view_of(text.bytes, text.size));
    } else if (error != file->told) {
        dp_event_log_add(daemon->event_log, error == ENOENT ? DP_LOG_INFO : DP_LOG_ERROR,
                         "join.waits", 0, NULL, "waiting for a token in %s: %s", path,
                         error == ENOENT ? "the file does not exist yet" : uv_strerror(-error));
    }
    file->told = error;
    sodium_memzero(&text, sizeof text);
    look_later(file, file->again_ms < DP_TOKEN_FILE_LOOK_MS        ? DP_TOKEN_FILE_LOOK_MS
                     : file->again_ms < DP_TOKEN_FILE_AGAIN_MS_MAX ? file->again_ms
                                                                   : DP_TOKEN_FILE_AGAIN_MS_MAX);
}

static void look_later(dp_token_file *file, uint64_t wait_ms)
{
    uv_timer_start(&file->timer, on_look, wait_ms, 0);
}

dp_status dp_token_file_open(dp_token_file **out, dp_daemon *daemon)
{
    dp_token_file *file = dp_alloc(1, sizeof *file);
    if (file == NULL) {
        return DP_NOMEM;
    }
    file->daemon = daemon;
    DP_IGNORE(uv_timer_init(daemon->loop, &file->timer) != 0); /* It does not fail. */
    file->timer.data = file;
    if (daemon->config->token_file[0] != '\0') {
        look_later(file, 0);
    }
    *out = file;
    return DP_OK;
}

static void on_closed(uv_handle_t *handle)
{
    dp_free(handle->data);
}

void dp_token_file_close(dp_token_file *file)
{
    if (file != NULL) {
        uv_close((uv_handle_t *)&file->timer, on_closed);
    }
}
