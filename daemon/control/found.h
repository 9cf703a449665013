/* Founding a run: text becomes tokenizer and token shard, the manifest gets its keys and is signed,
 * and the node becomes the first member and voter. */
#ifndef DP_DAEMON_CONTROL_FOUND_H
#define DP_DAEMON_CONTROL_FOUND_H

#include "base/run/manifest.h"
#include "daemon/host/daemon.h"

typedef struct dp_found_request {
    const dp_manifest *manifest; /* values; keys, hashes and signature are filled in */
    const char *text_path;       /* UTF-8 text */
    const char *from_path; /* a folder of weights that the run starts from; NULL: from the seed */
    const char *node_name;
    void *context;
    void (*progress)(void *context, const char *phase, const char *text);
    /* DP_OK: daemon->driver runs. Else what, why and fix for a person. */
    void (*done)(void *context, dp_status status, const char *code, const char *what,
                 const char *why, const char *fix);
} dp_found_request;

/* Copies the request; done is called once, perhaps before this returns. */
void dp_found_start(dp_daemon *daemon, const dp_found_request *request);

#endif
