/* Runs a function once per allocation that it makes, with that allocation failing. */
#ifndef DP_TESTS_LIB_ALLOCFAIL_H
#define DP_TESTS_LIB_ALLOCFAIL_H

#include "base/status.h"

/* attempt builds something and tears it down again; it returns the first status that is not DP_OK.
 * Checked: each failing allocation gives DP_NOMEM, nothing leaks on the way, and without failure it
 * succeeds. Returns how many allocations attempt makes. */
unsigned fail_each_allocation(dp_status (*attempt)(void *context), void *context);

#endif
