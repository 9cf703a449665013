/* `ckpt export`: the newest checkpoint as a Hugging Face folder, written by dpnode-worker. */
#ifndef DP_DAEMON_EXPORT_H
#define DP_DAEMON_EXPORT_H

#include "daemon/control.h"

/* Replies to call in the end. path: absolute; made if absent. */
void dp_export_start(dp_daemon *daemon, const dp_call *call, const char *path);

#endif
