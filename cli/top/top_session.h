/* `dpnode top`: a picture of the node in a terminal until a key or a signal ends it, or one picture
 * as text. A client of the control socket: the node does not notice when it comes and goes. */
#ifndef DP_CLI_TOP_TOP_SESSION_H
#define DP_CLI_TOP_TOP_SESSION_H

#include "cli/cmd.h"

/* Runs until q, SIGINT, SIGTERM, SIGHUP or the end of the terminal, and asks every every_ms.
 * 0, or the exit status of *error. */
DP_MUST int dp_top_session(const char *socket, uint32_t every_ms, dp_control_error *error);
/* Prints one picture of this size on stdout. Without an answer of the daemon: the exit status of
 * *error. */
DP_MUST int dp_top_once(const char *socket, int columns, int rows, dp_control_error *error);

#endif
