/* `ckpt export`: the newest checkpoint as a Hugging Face folder, written by dpnode-worker. */
#ifndef DP_DAEMON_EXPORT_H
#define DP_DAEMON_EXPORT_H

#include "daemon/control.h"

enum { DP_EXPORT_TYPE_MAX = 8 };

/* Replies to call in the end. path: absolute; made if absent. */
/* gguf: the type of a GGUF file's matrices, instead of the folder; "": the folder. */
void dp_export_start(dp_daemon *daemon, const dp_call *call, const char *path, const char *gguf);

#endif
