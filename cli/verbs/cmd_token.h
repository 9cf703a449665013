/* Checks of a token without a daemon, for the verbs token inspect and join. */
#ifndef DP_CLI_VERBS_CMD_TOKEN_H
#define DP_CLI_VERBS_CMD_TOKEN_H

#include "cli/cmd.h"

/* 0, or the exit status of *error: the token is not whole, was not made by its run, or has
 * expired. */
DP_MUST int dp_token_check(const char *token, dp_control_error *error);

#endif
