/* One exchange with the daemon over its control socket: a request, its notices, its reply.
 * Blocking. */
#ifndef DP_CLI_CLIENT_H
#define DP_CLI_CLIENT_H

#include <jansson.h>

#include "cli/cmd.h"

typedef struct dp_client {
    int fd; /* -1: closed */
    uint64_t id;
    size_t start; /* of the request being packed in out */
    bool late;    /* the last call has taken longer than its bound */
    dp_buf in;
    dp_buf out;
} dp_client;

/* Gets each notice, borrowed. 0 continues; any other value ends the call with that exit status. */
typedef int dp_on_notice(void *context, const json_t *notice);

/* DP_CLOSED if no daemon answers at path; then *error is E0101. */
DP_MUST dp_status dp_client_open(dp_client *client, const char *path, dp_control_error *error);
/* The same, where the connection, each read and each write take most_ms at most; what takes longer
 * fails with E0103. 0: no bound. */
DP_MUST dp_status dp_client_open_within(dp_client *client, const char *path, uint32_t most_ms,
                                        dp_control_error *error);
void dp_client_close(dp_client *client); /* accepts a closed one */

/* Begins a request; the caller packs one map of parameters, then calls dp_client_call. */
dp_packer dp_client_begin(dp_client *client, const char *method);
/* Sends it and waits for its reply. on_notice may be NULL. 0 and *result (a new reference), or an
 * exit status: that of *error, or the one that on_notice returned (then error->code is empty). */
DP_MUST int dp_client_call(dp_client *client, const dp_packer *packer, dp_on_notice *on_notice,
                           void *context, json_t **result, dp_control_error *error);

/* Opens, calls method without parameters, closes. The exit status is 0 or that of *error. */
DP_MUST int dp_client_ask(const dp_cmd *cmd, const char *method, json_t **result,
                          dp_control_error *error);

#endif
