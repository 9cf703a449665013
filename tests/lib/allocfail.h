/* Runs a function once per allocation that it makes, with that allocation failing. */
#ifndef DP_TESTS_LIB_ALLOCFAIL_H
#define DP_TESTS_LIB_ALLOCFAIL_H

#include "base/status.h"

/* attempt builds something and tears it down again; it returns the first status that is not DP_OK.
 * Checks that each failing allocation gives DP_NOMEM, that nothing leaks, and that it succeeds
 * without failure. Returns the number of allocations of attempt. */
unsigned fail_each_allocation(dp_status (*attempt)(void *context), void *context);

#endif
