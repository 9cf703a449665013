/* Sorts a few numbers in place, for medians and quartiles. Quadratic: a million steps for the 1,024
 * contributions that a record may list. Allocates nothing. */
#ifndef DP_BASE_SORT_H
#define DP_BASE_SORT_H

#include <stdint.h>

/* Ascending order. n values; values may be NULL if n is 0. */
void dp_sort_u64(uint64_t *values, uint32_t n);
void dp_sort_u128(unsigned __int128 *values, uint32_t n);

#endif
