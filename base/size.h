/* Sizes as people write and read them. */
#ifndef DP_BASE_SIZE_H
#define DP_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Reads "200", "200K", "200KiB" and "200KB", with K, M, G or T. K and KiB are steps of 1024, KB of
 * 1000, as providers count. With a unit up to three decimals are allowed ("1.5TB"), rounded down.
 * False: any other text, or more than 64 bits; *bytes stays. */
bool dp_size_read(const char *text, uint64_t *bytes);

enum { DP_SIZE_TEXT_MAX = 24 };
/* Writes "34.1 GB" or "120 MB", in steps of 1000, as providers count. */
void dp_size_text(uint64_t bytes, char text[DP_SIZE_TEXT_MAX]);

#endif
