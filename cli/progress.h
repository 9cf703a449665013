/* Progress of long calls: one line per phase for people, one object per line with --json. */
#ifndef DP_CLI_PROGRESS_H
#define DP_CLI_PROGRESS_H

#include "cli/client.h"

/* A dp_on_notice; context: the dp_cmd. On stderr, or NDJSON on stdout. */
int dp_progress(void *context, const json_t *notice);

#endif
