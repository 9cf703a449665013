/* The queue and the writer of the daemon's log lines: a ring that never blocks the caller, and one
 * thread that writes it to a file with rotation, or to a descriptor such as standard error. Lines
 * that do not fit the ring or the disk are dropped, counted, and reported in the log later:
 * evt=log.dropped lines=N. */
#ifndef DP_DAEMON_HOST_LOG_SINK_H
#define DP_DAEMON_HOST_LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
    DP_LOG_RING_BYTES = 256 * 1024, /* of lines that wait */
    DP_LOG_FILE_BYTES = 10 << 20,   /* then it becomes PATH.1 */
    DP_LOG_FILES_MAX = 5,           /* PATH and PATH.1 to PATH.4 */
    DP_LOG_LOOK_MS = 1000,          /* interval of checks for a deleted or moved file */
    DP_LOG_CLOSE_MS = 1000          /* at the end, for a reader that does not read */
};

typedef struct dp_log_sink dp_log_sink;

typedef struct dp_log_sink_config {
    const char *path;    /* NULL or "": write to fd */
    int fd;              /* stays the caller's */
    bool fd_follows;     /* fd, too, leads to the file at path, and to each new one there */
    uint64_t file_bytes; /* 0: DP_LOG_FILE_BYTES */
} dp_log_sink_config;

/* dp_log writes to the ring from now on, until close. Only one at a time. DP_IO with a sentence:
 * the file cannot be opened. */
DP_MUST dp_status dp_log_sink_open(dp_log_sink **sink, const dp_log_sink_config *config,
                                   dp_why *why);
/* May a sink keep its file at path, which fd leads to? For standard error that another program has
 * opened: it has what the process and its children write by other ways. */
bool dp_log_sink_may_follow(const char *path, int fd);
/* Opens the file again by its name, since it may have been moved. Any thread; the writer does it
 * before its next line. */
void dp_log_sink_reopen(dp_log_sink *sink);
/* Lines lost so far. Any thread. */
uint64_t dp_log_sink_dropped(dp_log_sink *sink);
/* Writes the waiting lines, for DP_LOG_CLOSE_MS at most. Accepts NULL. */
void dp_log_sink_close(dp_log_sink *sink);

#endif
