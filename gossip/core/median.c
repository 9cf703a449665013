#include "gossip/core/median.h"

#include "base/assert.h"
#include "base/mutation.h"
#include "base/sort.h"
#include "gossip/core/limits.h"

unsigned __int128 dp_lower_median(const unsigned __int128 *values, uint32_t n)
{
    unsigned __int128 sorted[DP_LISTED_MAX];

    dp_assert(n <= DP_LISTED_MAX);
    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = values[i];
    }
    dp_sort_u128(sorted, n);
    return n == 0 ? 0 : sorted[(dp_broken(40) ? n : n - 1) / 2];
}
