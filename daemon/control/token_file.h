/* A file with an invite token, for containers: the node joins the run when the file exists. Loop
 * thread only. */
#ifndef DP_DAEMON_CONTROL_TOKEN_FILE_H
#define DP_DAEMON_CONTROL_TOKEN_FILE_H

#include "daemon/host/daemon.h"

enum {
    DP_TOKEN_FILE_LOOK_MS = 500, /* how often it is looked for */
    DP_TOKEN_FILE_AGAIN_MS_MAX =
        60000 /* between tries of a token that did not bring it in, at most; each doubles it */
};

typedef struct dp_token_file dp_token_file;

/* Does nothing without the setting token-file, or in a node that is in a run; it is not looked at
 * again once one was entered, so a node that leaves does not join again by it. */
DP_MUST dp_status dp_token_file_open(dp_token_file **file, dp_daemon *daemon);
/* Accepts NULL; the memory goes when the loop has run once more. */
void dp_token_file_close(dp_token_file *file);

#endif
