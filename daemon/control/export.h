/* `ckpt export`: dpnode-worker writes the newest checkpoint as a Hugging Face folder. */
#ifndef DP_DAEMON_CONTROL_EXPORT_H
#define DP_DAEMON_CONTROL_EXPORT_H

#include "daemon/control/control.h"

enum { DP_EXPORT_TYPE_MAX = 8 };

/* The form of the exported files. */
typedef struct dp_export_form {
    /* "--gguf" or "--llmc": a file alone; "": a folder for transformers */
    char option[DP_EXPORT_TYPE_MAX];
    char type[DP_EXPORT_TYPE_MAX]; /* of that file's numbers */
    unsigned umask;                /* of the user of the client */
} dp_export_form;

/* Replies to call in the end. path: absolute; made if absent. */
void dp_export_start(dp_daemon *daemon, const dp_call *call, const char *path,
                     const dp_export_form *form);

/* The event log's entry of an export that is whole. */
#define DP_EXPORT_DONE "model.exported"

#endif
