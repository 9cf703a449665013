/* Errors and numeric arguments of the tools of dpnode-worker. */
#ifndef DP_COMPUTE_MACHINE_TOOL_H
#define DP_COMPUTE_MACHINE_TOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Prints the sentence of why, or of the status if why is empty, as a line on standard error.
 * Returns the exit status of sysexits(3): no input, I/O, no memory, else bad data. */
int dp_tool_complain(dp_status status, const dp_why *why);
/* Reads decimal digits, least to most. False: anything else; prints a line on standard error, and
 * *out is unchanged. */
bool dp_tool_number(const char *text, uint64_t least, uint64_t most, uint64_t *out);
/* The same for a decimal number like 0.8. */
bool dp_tool_real(const char *text, double least, double most, double *out);

#endif
