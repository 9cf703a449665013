/* The likeness of updates: 256 signs of random projections (Charikar 2002, "Similarity estimation
 * techniques from rounding algorithms"), in which two differ in the share angle / pi of the bits.
 * Knows no rounds and no authors.
 *
 * Projections have the values +1 and -1. They are of 4096 sums, to each of which the elements with
 * one hash are added with a sign of their hash (Charikar, Chen, Farach-Colton 2002): that keeps
 * angles to about 1/64 and costs one addition per stored element, not 256.
 *
 *     s[h(i) mod 4096] += (h(i) >> 63 ? -d_i : d_i)     h(i) = mix64(i)
 *     bit j = sum over b of (g(b, j) ? -s_b : s_b) < 0    g(b, j): bit j mod 64 of mix64(2^63 + 4 b
 *       + j div 64)
 *
 * with i the number of the element, mix64 of base/rng.h; all sums in double, in order of i and of
 * b: the same bits for the same decoded values on every machine. Bit j is bit j mod 8, from the
 * lowest, of byte j div 8. All bits of a zero update are 0. */
#ifndef DP_COMPUTE_CODEC_SIMHASH_H
#define DP_COMPUTE_CODEC_SIMHASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/run/judged.h"

/* The likeness of a blob of n elements, decoded. Checks first: DP_BADMSG, DP_VERSION, DP_NOMEM; on
 * failure out is untouched. */
DP_MUST dp_status dp_simhash(dp_view blob, size_t n, uint8_t out[DP_LIKENESS_BYTES]);

#endif
