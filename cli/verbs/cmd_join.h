/* Joining a run, for the verbs join and swarm. */
#ifndef DP_CLI_VERBS_CMD_JOIN_H
#define DP_CLI_VERBS_CMD_JOIN_H

#include "cli/client.h"

/* run.join; name of the node may be NULL. As dp_client_call. */
DP_MUST int dp_join(dp_client *client, const char *token, const char *name, dp_on_notice *on_notice,
                    void *context, json_t **result, dp_control_error *error);

#endif
