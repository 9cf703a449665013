#include "daemon/host/tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"

enum { ARGUMENT_MAX = 600 };

#define FOLDER_MASK "XXXXXX"
#define FOLDER_NAME "work-" FOLDER_MASK

typedef struct tool {
    uv_process_t process;
    uv_pipe_t pipe;
    dp_tool_done *done;
    void *context;
    uint32_t n_open; /* handles, plus the process while it runs */
    int exit;
    size_t size;
    char output[DP_TOOL_OUTPUT_MAX];
    char room[1024];
} tool;

static void on_closed(uv_handle_t *handle)
{
    tool *self = handle->data;
    if (--self->n_open == 0) {
        while (self->size > 0 && self->output[self->size - 1] == '\n') {
            self->output[--self->size] = '\0';
        }
        self->done(self->context, self->exit, self->output);
        dp_free(self);
    }
}

static void on_tool_exit(uv_process_t *process, int64_t status, int signal)
{
    tool *self = process->data;
    self->exit = signal == 0 ? (int)status : -1;
    uv_close((uv_handle_t *)process, on_closed);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    tool *self = handle->data;
    *buf = uv_buf_init(self->room, sizeof self->room);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    tool *self = stream->data;
    if (size < 0) {
        uv_close((uv_handle_t *)stream, on_closed);
        return;
    }
    const size_t left = sizeof self->output - 1 - self->size;
    const size_t take = (size_t)size < left ? (size_t)size : left;
    memcpy(self->output + self->size, buf->base, take);
    self->size += take;
    self->output[self->size] = '\0';
}

dp_status dp_tool_run(dp_daemon *daemon, const char *program, const char *const *arguments,
                      dp_tool_done *done, void *context)
{
    char path[DP_CONFIG_PATH_MAX];
    char copies[DP_TOOL_ARGUMENTS_MAX][ARGUMENT_MAX];
    char *argv[DP_TOOL_ARGUMENTS_MAX + 2] = {path};
    snprintf(path, sizeof path, "%s", program);
    for (int i = 0; arguments[i] != NULL; i++) {
        if (i == DP_TOOL_ARGUMENTS_MAX || strlen(arguments[i]) >= ARGUMENT_MAX) {
            return DP_TOOBIG;
        }
        memcpy(copies[i], arguments[i], strlen(arguments[i]) + 1);
        argv[i + 1] = copies[i];
    }
    tool *self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        return DP_NOMEM;
    }
    uv_file ends[2];
    if (uv_pipe(ends, UV_NONBLOCK_PIPE, 0) != 0) {
        dp_free(self);
        return DP_IO;
    }
    uv_pipe_init(daemon->loop, &self->pipe, 0);
    /* Fails only for descriptors of other kinds. */
    DP_IGNORE(uv_pipe_open(&self->pipe, ends[0]) != 0);
    self->pipe.data = self;
    self->process.data = self;
    self->done = done;
    self->context = context;
    self->n_open = 2;
    self->exit = -1;
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = ends[1]},
        {.flags = UV_INHERIT_FD, .data.fd = ends[1]},
    };
    const uv_process_options_t options = {
        .exit_cb = on_tool_exit, .file = path, .args = argv, .stdio = stdio, .stdio_count = 3};
    const int error = uv_spawn(daemon->loop, &self->process, &options);
    close(ends[1]);
    if (error != 0) {
        snprintf(self->output, sizeof self->output, "%s: %s", path, uv_strerror(error));
        uv_close((uv_handle_t *)&self->process, on_closed);
        uv_close((uv_handle_t *)&self->pipe, on_closed);
        return DP_OK; /* done reports it. */
    }
    if (uv_read_start((uv_stream_t *)&self->pipe, on_alloc, on_read) != 0) {
        uv_close((uv_handle_t *)&self->pipe, on_closed);
    }
    return DP_OK;
}

dp_status dp_tool_folder(const dp_daemon *daemon, char path[DP_CONFIG_PATH_MAX])
{
    const int size = snprintf(path, DP_CONFIG_PATH_MAX, "%s/" FOLDER_NAME, daemon->config->dir);
    return size < DP_CONFIG_PATH_MAX && mkdtemp(path) != NULL ? DP_OK : DP_IO;
}

dp_status dp_tool_file(const char *folder, const char *name, dp_view bytes)
{
    char path[DP_CONFIG_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return DP_IO;
    }
    if (dp_fd_write(fd, bytes) != DP_OK) {
        close(fd);
        return DP_NOSPACE;
    }
    return close(fd) == 0 ? DP_OK : DP_IO;
}

void dp_tool_folder_remove(const char *path)
{
    char file[DP_CONFIG_PATH_MAX + 256];
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        DP_IGNORE(unlink(file) != 0); /* "." and ".." cannot be removed. */
    }
    closedir(folder);
    DP_IGNORE(rmdir(path) != 0); /* A leftover folder is harmless. */
}

/* As mkdtemp names them. Not a link: its folder may be another program's. */
static bool is_left_over(const char *path, const char *name)
{
    struct stat about;
    return strlen(name) == strlen(FOLDER_NAME) &&
           strncmp(name, FOLDER_NAME, strlen(FOLDER_NAME) - strlen(FOLDER_MASK)) == 0 &&
           lstat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

void dp_tool_folders_remove(const char *dir)
{
    char path[DP_CONFIG_PATH_MAX + 256];
    DIR *folder = opendir(dir);
    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        if (is_left_over(path, entry->d_name)) {
            dp_tool_folder_remove(path);
        }
    }
    closedir(folder);
}

/* 1519708 -> 1,519,708. */
static void with_commas(uint64_t number, char out[32])
{
    char plain[24];
    const int digits = snprintf(plain, sizeof plain, "%" PRIu64, number);
    size_t at = 0;
    for (int i = 0; i < digits; i++) {
        if (i > 0 && (digits - i) % 3 == 0) {
            out[at++] = ',';
        }
        out[at++] = plain[i];
    }
    out[at] = '\0';
}

/* The number after "key": in a line of JSON. */
static bool number_of(const char *line, const char *key, uint64_t *number)
{
    char quoted[32];
    char *end = NULL;
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *found = strstr(line, quoted);
    if (found == NULL || found[strlen(quoted)] < '0' || found[strlen(quoted)] > '9') {
        return false;
    }
    errno = 0;
    *number = strtoull(found + strlen(quoted), &end, 10);
    return errno == 0;
}

/* Appends what --prepare counts of documents that are kept apart, and of lines. */
static void tell_documents(const char *output, char *text, size_t size)
{
    static const struct {
        const char *key;
        const char *words;
    } rows[] = {{"losses", "tokens with a loss"},
                {"cut", "documents cut to model.context"},
                {"left_out", "documents without an answer in it left out"},
                {"bad_lines", "bad lines skipped"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t count = 0;
        char number[32];
        if (!number_of(output, rows[i].key, &count) || count == 0) {
            continue;
        }
        with_commas(count, number);
        const int told = snprintf(text, size, "; %s %s", number, rows[i].words);
        if (told <= 0 || (size_t)told >= size) {
            return;
        }
        text += told;
        size -= (size_t)told;
    }
}

void dp_tool_sentence(const char *output, char *text, size_t size)
{
    uint64_t tokens = 0;
    uint64_t bytes = 0;
    uint64_t tensors = 0;
    char tokens_text[32];
    char bytes_text[32];
    if (number_of(output, "tensors", &tensors) && number_of(output, "elements", &bytes)) {
        with_commas(tensors, tokens_text);
        with_commas(bytes, bytes_text);
        snprintf(text, size, "%s numbers in %s tensors", bytes_text, tokens_text);
        return;
    }
    if (!number_of(output, "tokens", &tokens) || !number_of(output, "text_bytes", &bytes)) {
        snprintf(text, size, "the text is ready");
        return;
    }
    with_commas(tokens, tokens_text);
    with_commas(bytes, bytes_text);
    const int told =
        snprintf(text, size, "%s tokens from %s bytes of text", tokens_text, bytes_text);
    if (told > 0 && (size_t)told < size) {
        tell_documents(output, text + told, size - (size_t)told);
    }
}
