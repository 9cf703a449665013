/* What the tools of dpnode-worker share: how they fail, and numbers among their arguments. Not what
 * they do. */
#ifndef DP_COMPUTE_MACHINE_TOOL_H
#define DP_COMPUTE_MACHINE_TOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* The sentence (the status' own, where why is empty) as a line on standard error; gives the exit
 * status of sysexits(3) that goes with it: no input, I/O, no memory, and for everything else data
 * that cannot be used. */
int dp_tool_complain(dp_status status, const dp_why *why);
/* Decimal digits alone, least to most. False, with a line on standard error and *out as it was, for
 * anything else. */
bool dp_tool_number(const char *text, uint64_t least, uint64_t most, uint64_t *out);

#endif
