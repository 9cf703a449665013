/* A few numbers put in order in place, for medians and quartiles. Not for many: the cost grows with
 * the square, a million steps for the 1,024 contributions that a record may list, and it takes no
 * memory. */
#ifndef DP_BASE_SORT_H
#define DP_BASE_SORT_H

#include <stdint.h>

/* The smallest first. n values; of none nothing is touched. */
void dp_sort_u64(uint64_t *values, uint32_t n);
void dp_sort_u128(unsigned __int128 *values, uint32_t n);

#endif
