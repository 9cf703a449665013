/* The median of a few numbers, as records state it. */
#ifndef DP_GOSSIP_CORE_MEDIAN_H
#define DP_GOSSIP_CORE_MEDIAN_H

#include <stdint.h>

/* The smaller of the two in the middle; n in 0..DP_LISTED_MAX, 0 of nothing. */
unsigned __int128 dp_lower_median(const unsigned __int128 *values, uint32_t n);

#endif
