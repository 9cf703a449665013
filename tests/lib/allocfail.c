#include "tests/lib/allocfail.h"

#include "base/alloc.h"
#include "tests/lib/check.h"

enum { ALLOCATIONS_MAX = 100000 };

unsigned fail_each_allocation(dp_status (*attempt)(void *context), void *context)
{
    const size_t live_before = dp_alloc_live_bytes();

    for (unsigned n = 1; n <= ALLOCATIONS_MAX; n++) {
        dp_alloc_fail_after(n);
        const dp_status status = attempt(context);
        dp_alloc_fail_after(0);
        assert_int_equal(dp_alloc_live_bytes(), live_before);
        if (status == DP_OK) {
            return n - 1;
        }
        CHECK_STATUS(status, DP_NOMEM);
    }
    fail_msg("still failing after %d allocations", ALLOCATIONS_MAX);
    return 0;
}
