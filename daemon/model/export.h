/* `ckpt export`: dpnode-worker writes the newest checkpoint as a Hugging Face folder. */
#ifndef DP_DAEMON_MODEL_EXPORT_H
#define DP_DAEMON_MODEL_EXPORT_H

#include "daemon/control/control.h"

enum { DP_EXPORT_TYPE_MAX = 8 };

/* The form of the exported files. */
typedef struct dp_export_form {
    /* "--gguf" or "--llmc": one file; "": a folder for transformers */
    char option[DP_EXPORT_TYPE_MAX];
    char type[DP_EXPORT_TYPE_MAX]; /* of that file's numbers */
    bool merged;                   /* of a run with adapters: the whole model */
    unsigned umask;                /* of the user of the client */
} dp_export_form;

/* Replies to call at the end. path: absolute; created if absent. */
void dp_export_start(dp_daemon *daemon, const dp_call *call, const char *path,
                     const dp_export_form *form);

#endif
