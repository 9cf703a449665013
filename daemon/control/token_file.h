/* A file with an invite token, for containers: the node joins the run when the file exists. Loop
 * thread only. */
#ifndef DP_DAEMON_CONTROL_TOKEN_FILE_H
#define DP_DAEMON_CONTROL_TOKEN_FILE_H

#include "daemon/host/daemon.h"

enum {
    DP_TOKEN_FILE_LOOK_MS = 500, /* interval of checks for the file */
    DP_TOKEN_FILE_AGAIN_MS_MAX =
        60000 /* longest wait between tries of a token that failed; each try doubles the wait */
};

typedef struct dp_token_file dp_token_file;

/* Does nothing without the setting token-file, or for a node in a run. After the node has entered a
 * run, the file is not read again, so a node that leaves does not rejoin by it. */
DP_MUST dp_status dp_token_file_open(dp_token_file **file, dp_daemon *daemon);
/* Accepts NULL; memory is freed after one more turn of the loop. */
void dp_token_file_close(dp_token_file *file);

#endif
