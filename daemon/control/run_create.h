/* Creates a run: the text becomes a tokenizer and token shards, the manifest gets its keys and its
 * signature, and the node becomes the first member and voter. */
#ifndef DP_DAEMON_CONTROL_RUN_CREATE_H
#define DP_DAEMON_CONTROL_RUN_CREATE_H

#include "base/run/manifest.h"
#include "daemon/host/daemon.h"

typedef struct dp_run_create_request {
    const dp_manifest *manifest; /* values; keys, hashes and signature are filled in */
    const char *text_path;       /* text or other data (compute/format/prepare.h) */
    const char *from_path; /* a folder of weights that the run starts from; NULL: from the seed */
    bool skip_bad_lines;   /* of JSON lines: they are counted */
    const char *node_name;
    void *context;
    void (*progress)(void *context, const char *phase, const char *text);
    /* DP_OK: daemon->driver runs, and why is the name that the root key of an earlier run has now,
     * or empty. Otherwise what, why and fix describe the error, and the status gives the
     * exit status of code: BUSY 73, IO 74, AGAIN 75, NOMEM 70, UNSUPPORTED 69, others 65. */
    void (*done)(void *context, dp_status status, const char *code, const char *what,
                 const char *why, const char *fix);
} dp_run_create_request;

/* Copies the request; done is called once, perhaps before this returns. */
void dp_run_create_start(dp_daemon *daemon, const dp_run_create_request *request);

#endif
