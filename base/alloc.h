/* Allocation with a budget and a hook that makes the n-th call fail in tests. */
#ifndef DP_BASE_ALLOC_H
#define DP_BASE_ALLOC_H

#include <stddef.h>

#include "base/status.h"

/* Zeroed memory for count items of size bytes. NULL: budget spent, overflow, hook, or malloc
 * failed. Any thread, as every call here. */
void *dp_alloc(size_t count, size_t size);
/* The same for tables that are sized by a bound and seldom full. The whole size counts against the
 * budget at once; the machine gives pages as they are first written. With the address sanitizer it
 * is dp_alloc. */
void *dp_reserve(size_t count, size_t size);
/* Like realloc for memory from dp_alloc; new bytes are not zeroed. NULL leaves the old block
 * alone. */
void *dp_realloc(void *memory, size_t size);
void dp_free(void *memory); /* For memory of all three calls. Accepts NULL. */
size_t dp_alloc_live_bytes(void);
/* Limit on live bytes of this process; 0, the initial value: no limit. */
void dp_alloc_set_budget(size_t bytes);
/* For tests: the countdown-th allocation from now on fails, and all after it. 0 turns this off. */
void dp_alloc_fail_after(size_t countdown);

#endif
