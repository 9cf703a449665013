/* Sizes as people write them. */
#ifndef DP_BASE_SIZE_H
#define DP_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* "200", "200K", "200KiB" and "200KB" with K, M, G or T: steps of 1024, and with B alone behind the letter of 1000, as providers count.
 * False: anything else, or more than 64 bits hold; *bytes stays. */
bool dp_size_read(const char *text, uint64_t *bytes);

#endif
