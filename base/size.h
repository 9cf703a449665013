/* Sizes as people write and read them. */
#ifndef DP_BASE_SIZE_H
#define DP_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* "200", "200K", "200KiB" and "200KB" with K, M, G or T: steps of 1024, and with B alone behind the
 * letter of 1000, as providers count. "1.5TB": with a unit up to three places behind the point,
 * rounded down. False: anything else, or more than 64 bits hold; *bytes stays. */
bool dp_size_read(const char *text, uint64_t *bytes);

enum { DP_SIZE_TEXT_MAX = 24 };
/* "34.1 GB", "120 MB": by steps of 1000, as providers count what is used of a month. */
void dp_size_text(uint64_t bytes, char text[DP_SIZE_TEXT_MAX]);

#endif
