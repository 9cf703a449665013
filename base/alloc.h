/* Allocation with a budget and a hook that makes the n-th call fail in tests. */
#ifndef DP_BASE_ALLOC_H
#define DP_BASE_ALLOC_H

#include <stddef.h>

#include "base/status.h"

/* Zeroed memory for count items of size bytes, or NULL (budget, overflow, hook, malloc). */
void *dp_alloc(size_t count, size_t size);
/* The same for tables that are sized by a bound and seldom full: it counts against the budget at
 * once, and takes memory of the machine page by page, as it is first written. Under the address
 * sanitizer it is dp_alloc. */
void *dp_reserve(size_t count, size_t size);
/* Like realloc for memory from dp_alloc; new bytes are not zeroed. NULL leaves the old block
 * alone. */
void *dp_realloc(void *memory, size_t size);
void dp_free(void *memory); /* Of all three. Accepts NULL. */
size_t dp_alloc_live_bytes(void);
/* Bytes that may live at once in this process; 0 (the start) means no limit. */
void dp_alloc_set_budget(size_t bytes);
/* Tests: the countdown-th allocation from now on fails, and all after it. 0 turns the hook off. */
void dp_alloc_fail_after(size_t countdown);

#endif
