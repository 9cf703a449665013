/* Reads a token from an argument, standard input or the environment. Does not decode it. */
#ifndef DP_CLI_TOKEN_H
#define DP_CLI_TOKEN_H

#include "cli/cmd.h"

enum { DP_TOKEN_INPUT_MAX = 8192 };

/* The token named by cmd's first argument: itself, "-" for standard input, absent for DPNODE_TOKEN.
 * Blanks around it are cut. 0 or the exit status of *error. token holds secrets. */
DP_MUST int dp_token_input(const dp_cmd *cmd, char token[DP_TOKEN_INPUT_MAX],
                           dp_control_error *error);

#endif
