#include "daemon/host/log_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/log.h"

enum { PATH_MAX_BYTES = 512, POLL_MS = 50, MS_PER_S = 1000 };

_Static_assert((int)DP_LOG_RING_BYTES > 4 * (int)DP_LOG_LINE_MAX, "the ring holds some lines");

struct dp_log_sink {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ready;
    /* under the mutex */
    char ring[DP_LOG_RING_BYTES]; /* whole lines, as a ring */
    size_t first;
    size_t size;
    uint64_t dropped;
    uint64_t told; /* of dropped, those that the log has reported */
    bool reopen;
    bool closing;
    uint64_t until_ms; /* when closing: lines that are not written by this time are dropped */
    /* the writer's own */
    char path[PATH_MAX_BYTES];
    int fd;       /* -1: none can be opened now */
    int follower; /* leads to the same file, into which others write, too; -1: none */
    uint64_t file_bytes_max;
    uint64_t file_bytes;
    uint64_t look_ms;
};

static uint64_t now_ms(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * MS_PER_S + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- callers that log ---- */

static void put(dp_log_sink *self, const char *bytes, size_t size)
{
    const size_t at = (self->first + self->size) % sizeof self->ring;
    const size_t head = size < sizeof self->ring - at ? size : sizeof self->ring - at;
    memcpy(self->ring + at, bytes, head);
    memcpy(self->ring, bytes + head, size - head);
    self->size += size;
}

static void on_line(void *context, const char *line, size_t size)
{
    dp_log_sink *self = context;
    dp_assert(size > 0 && size <= DP_LOG_LINE_MAX && line[size - 1] == '\n');
    pthread_mutex_lock(&self->mutex);
    if (size > sizeof self->ring - self->size) {
        self->dropped++;
    } else {
        put(self, line, size);
        pthread_cond_signal(&self->ready);
    }
    pthread_mutex_unlock(&self->mutex);
}

/* ---- files ---- */

static bool has_file(const dp_log_sink *self)
{
    return self->path[0] != '\0';
}

static void open_file(dp_log_sink *self)
{
    struct stat is;
    if (self->fd >= 0) {
        close(self->fd);
    }
    self->fd = open(self->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (self->fd >= 0 && self->follower >= 0) {
        DP_IGNORE(dup2(self->fd, self->follower) < 0); /* Then it leads to the old file. */
    }
    self->file_bytes =
        self->fd >= 0 && fstat(self->fd, &is) == 0 && is.st_size > 0 ? (uint64_t)is.st_size : 0;
}

/* PATH.3 becomes PATH.4 etc.; the oldest is deleted. A file that cannot be renamed is overwritten
 * by the next one. */
static void rotate(dp_log_sink *self)
{
    char from[PATH_MAX_BYTES + 8];
    char to[PATH_MAX_BYTES + 8];
    for (int i = DP_LOG_FILES_MAX - 2; i >= 0; i--) {
        snprintf(from, sizeof from, i > 0 ? "%s.%d" : "%s", self->path, i);
        snprintf(to, sizeof to, "%s.%d", self->path, i + 1);
        DP_IGNORE(rename(from, to) != 0); /* It may be absent. */
    }
    open_file(self);
}

/* True if the name no longer leads to the open file. */
static bool moved_away(const dp_log_sink *self)
{
    struct stat named;
    struct stat opened;
    return stat(self->path, &named) != 0 || fstat(self->fd, &opened) != 0 ||
           named.st_ino != opened.st_ino || named.st_dev != opened.st_dev;
}

static void look_at_file(dp_log_sink *self, bool reopen)
{
    const uint64_t now = now_ms();
    if (!has_file(self)) {
        return;
    }
    if (reopen || (now >= self->look_ms && (self->fd < 0 || moved_away(self)))) {
        open_file(self);
    }
    struct stat is;
    if (self->follower >= 0 && now >= self->look_ms && self->fd >= 0 && fstat(self->fd, &is) == 0) {
        self->file_bytes = (uint64_t)is.st_size;
    }
    self->look_ms = now >= self->look_ms ? now + DP_LOG_LOOK_MS : self->look_ms;
    if (self->fd >= 0 && self->file_bytes >= self->file_bytes_max && fstat(self->fd, &is) == 0 &&
        S_ISREG(is.st_mode)) {
        rotate(self);
    }
}

/* ---- the writer ---- */

/* If the reader of a pipe sleeps, only this thread waits; the ring fills, and then lines are
 * dropped. */
static bool wait_for_room(dp_log_sink *self)
{
    struct pollfd is = {.fd = self->fd, .events = POLLOUT};
    for (;;) {
        const int got = poll(&is, 1, POLL_MS);
        if (got > 0) {
            return (is.revents & POLLOUT) != 0;
        }
        pthread_mutex_lock(&self->mutex);
        const bool late = self->closing && now_ms() >= self->until_ms;
        pthread_mutex_unlock(&self->mutex);
        if (late || (got < 0 && errno != EINTR)) {
            return false;
        }
    }
}

/* Writes one line, all or nothing as far as the file system allows. */
static bool write_line(dp_log_sink *self, const char *line, size_t size)
{
    size_t done = 0;
    while (done < size) {
        if (self->fd < 0 || !wait_for_room(self)) {
            break;
        }
        const ssize_t got = write(self->fd, line + done, size - done);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        done += (size_t)got;
    }
    if (done < size && done > 0 && has_file(self) && self->follower < 0) {
        /* Otherwise a part of the line stays, as it does where others write to the file, too. */
        DP_IGNORE(ftruncate(self->fd, (off_t)self->file_bytes) != 0);
    }
    self->file_bytes += done == size ? size : 0;
    return done == size;
}

/* Takes the first line from the ring, which is not empty. */
static size_t take_line(dp_log_sink *self, char line[DP_LOG_LINE_MAX])
{
    size_t size = 0;
    do {
        dp_assert(size < self->size && size < DP_LOG_LINE_MAX);
        line[size] = self->ring[(self->first + size) % sizeof self->ring];
    } while (line[size++] != '\n');
    self->first = (self->first + size) % sizeof self->ring;
    self->size -= size;
    return size;
}

/* When lines can be written again: reports the number of dropped ones. Called and left with the
 * mutex held. */
static void tell_dropped(dp_log_sink *self)
{
    char line[160];
    struct timespec now = {0};
    struct tm parts = {0};
    const uint64_t until = self->dropped;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    const size_t stamp = strftime(line, sizeof line, "ts=%Y-%m-%dT%H:%M:%S", &parts);
    const int rest = snprintf(line + stamp, sizeof line - stamp,
                              ".%06ldZ lvl=warn prog=dpnoded evt=log.dropped lines=%llu\n",
                              now.tv_nsec / 1000, (unsigned long long)(until - self->told));
    pthread_mutex_unlock(&self->mutex);
    const bool written = write_line(self, line, stamp + (size_t)rest);
    pthread_mutex_lock(&self->mutex);
    self->told = written ? until : self->told;
}

static void *run_writer(void *context)
{
    dp_log_sink *self = context;
    char line[DP_LOG_LINE_MAX];
    pthread_mutex_lock(&self->mutex);
    while (!self->closing || (self->size > 0 && now_ms() < self->until_ms)) {
        if (self->size == 0) {
            pthread_cond_wait(&self->ready, &self->mutex);
            continue;
        }
        const size_t size = take_line(self, line);
        const bool reopen = self->reopen;
        self->reopen = false;
        pthread_mutex_unlock(&self->mutex);
        look_at_file(self, reopen);
        const bool written = write_line(self, line, size);
        pthread_mutex_lock(&self->mutex);
        self->dropped += !written;
        if (written && self->told != self->dropped) {
            tell_dropped(self);
        }
    }
    pthread_mutex_unlock(&self->mutex);
    return NULL;
}

/* ---- opening ---- */

dp_status dp_log_sink_open(dp_log_sink **out, const dp_log_sink_config *config, dp_why *why)
{
    dp_log_sink *self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        return DP_NOMEM;
    }
    const char *path = config->path != NULL ? config->path : "";
    self->file_bytes_max = config->file_bytes > 0 ? config->file_bytes : DP_LOG_FILE_BYTES;
    self->fd = -1;
    self->follower = config->fd_follows ? config->fd : -1;
    dp_status status = strlen(path) < sizeof self->path ? DP_OK : DP_TOOBIG;
    if (status == DP_OK) {
        memcpy(self->path, path, strlen(path) + 1);
        if (has_file(self)) {
            open_file(self);
        } else {
            self->fd = config->fd;
        }
        status = self->fd >= 0 ? DP_OK : DP_IO;
    }
    if (status != DP_OK) {
        const char *cause = status == DP_IO ? strerror(errno) : dp_status_text(status);
        status = dp_why_set(why, status, "cannot open the log file %s: %s", path, cause);
        dp_free(self);
        return status;
    }
    pthread_mutex_init(&self->mutex, NULL);
    pthread_cond_init(&self->ready, NULL);
    if (pthread_create(&self->thread, NULL, run_writer, self) != 0) {
        if (has_file(self)) {
            close(self->fd);
        }
        dp_free(self);
        return dp_why_set(why, DP_NOMEM, "cannot start the thread of the log");
    }
    dp_log_set_writer(on_line, self);
    *out = self;
    return DP_OK;
}

bool dp_log_sink_may_follow(const char *path, int fd)
{
    struct stat named;
    struct stat opened;
    return strlen(path) < PATH_MAX_BYTES && stat(path, &named) == 0 && fstat(fd, &opened) == 0 &&
           S_ISREG(opened.st_mode) && named.st_ino == opened.st_ino &&
           named.st_dev == opened.st_dev && access(path, W_OK) == 0;
}

void dp_log_sink_reopen(dp_log_sink *self)
{
    pthread_mutex_lock(&self->mutex);
    self->reopen = true;
    pthread_mutex_unlock(&self->mutex);
}

uint64_t dp_log_sink_dropped(dp_log_sink *self)
{
    pthread_mutex_lock(&self->mutex);
    const uint64_t dropped = self->dropped;
    pthread_mutex_unlock(&self->mutex);
    return dropped;
}

void dp_log_sink_close(dp_log_sink *self)
{
    if (self == NULL) {
        return;
    }
    dp_log_set_writer(NULL, NULL);
    pthread_mutex_lock(&self->mutex);
    self->closing = true;
    self->until_ms = now_ms() + DP_LOG_CLOSE_MS;
    pthread_cond_signal(&self->ready);
    pthread_mutex_unlock(&self->mutex);
    pthread_join(self->thread, NULL);
    if (has_file(self) && self->fd >= 0) {
        close(self->fd);
    }
    pthread_mutex_destroy(&self->mutex);
    pthread_cond_destroy(&self->ready);
    dp_free(self);
}
