#include "base/sort.h"

/* Insertion: each is moved down past all that are larger. */
#define SORT(values, n, type)                                                                      \
    for (uint32_t i = 1; i < (n); i++) {                                                           \
        const type value = (values)[i];                                                            \
        uint32_t at = i;                                                                           \
        for (; at > 0 && (values)[at - 1] > value; at--) {                                         \
            (values)[at] = (values)[at - 1];                                                       \
        }                                                                                          \
        (values)[at] = value;                                                                      \
    }

void dp_sort_u64(uint64_t *values, uint32_t n)
{
    SORT(values, n, uint64_t)
}

void dp_sort_u128(unsigned __int128 *values, uint32_t n)
{
    SORT(values, n, unsigned __int128)
}
