/* Starts the daemon if none is running: the program beside this one, detached, with its output in
 * DIR/dpnoded.log. */
#ifndef DP_CLI_START_START_H
#define DP_CLI_START_START_H

#include <sys/types.h>

#include "cli/client.h"
#include "cli/paths.h"

enum { DP_START_ARGS_MAX = 24, DP_START_MS_MAX = 20 * 1000 };

typedef struct dp_start {
    const char *dir; /* absolute, exists after the call */
    const char *socket;
    const char *const *extra; /* further arguments of dpnoded, ended by NULL; may be NULL */
    volatile pid_t *pid;      /* gets the daemon's process id as soon as it runs; may be NULL */
    bool finds_dir;           /* dpnoded reads dir in its settings, as the caller has ... */
    bool finds_socket;        /* ... and socket; otherwise they are arguments */
    bool detach;              /* runs in its own session, so that it outlives the terminal */
    /* joins or creates a run by DPNODE_TOKEN and its like (dpnoded(8)); else they are taken away */
    bool by_environment;
} dp_start;

/* Starts a daemon without waiting: it may end at once. *pid: of the daemon. Returns as below. */
DP_MUST int dp_start_spawn(const dp_start *start, pid_t *pid, dp_control_error *error);
/* Starts a daemon and waits until it answers. *pid: of the daemon. 0 or the exit status of
 * *error. */
DP_MUST int dp_start_daemon(const dp_start *start, pid_t *pid, dp_control_error *error);

/* For join, run create and up, whose options dir and listen are used: opens *client to the daemon
 * at the socket, and starts one if none answers; then *started is set. 0 or the exit status of
 * *error. */
DP_MUST int dp_start_if_none(const dp_cmd *cmd, dp_client *client, bool *started,
                             dp_control_error *error);

/* True if dp_start_if_none would start a daemon; gives its directory. */
bool dp_start_would(const dp_cmd *cmd, char dir[DP_CLI_PATH_MAX]);
/* Ends the daemon that dp_start_if_none has started, after the command for which it was started has
 * failed. */
void dp_start_undo(const dp_cmd *cmd);

#define DP_START_OPTIONS                                                                           \
    {"dir", 0, "PATH", "directory of keys and store for a new daemon [DPNODE_DIR]"},               \
    {                                                                                              \
        "listen", 0, "ADDR:PORT", "address for peers of a new daemon [DPNODE_LISTEN]"              \
    }

#endif
