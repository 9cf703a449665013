/* Arithmetic of the dense exchange: parts of a vector to bytes, added up in integers, and the mean back. The same bits on every
 * machine and in every order (SAFETY F1).
 *
 *   fp32   n floats, little-endian
 *   int8   blocks of 1,024 (the last may be short): u32 k | n signed bytes q; x is q k 2^-34. k is the least for which |q| <= 127.
 *
 * Sums are int64 in units of 2^-34: a part of weight w adds w round(2^34 x) or w k q. With w <= 1,023, 32 members, k < 2^32 and fp32
 * values below 2^13 (larger ones are refused) every sum stays below 2^62. The mean is
 * sum times 2^-34 / weights: three roundings, always the same ones. */
#ifndef DP_COMPUTE_DENSE_H
#define DP_COMPUTE_DENSE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/terms.h"

enum { DP_DENSE_FP32 = 1, DP_DENSE_INT8 = 2, DP_DENSE_BLOCK = 1024 };

/* Bytes of n elements; 0 for an unknown codec. */
size_t dp_dense_bytes(uint8_t codec, size_t n);

/* x: n floats; out: dp_dense_bytes of them. DP_DIVERGED: not finite, or too large for the codec (fp32 2^13, int8 31); then out
 * holds nothing that may be used. */
DP_MUST dp_status dp_dense_encode(uint8_t codec, const float *x, size_t n, uint8_t *out);

/* Is this a part that can be added? Any bytes. DP_BADMSG: unknown codec or wrong size; DP_DIVERGED as above. */
DP_MUST dp_status dp_dense_check(uint8_t codec, dp_view bytes, size_t n);

/* sum[i] = weight round(2^34 x[i]) if nothing is begun, then + what each part says, which dp_dense_check has let through. DP_DIVERGED: x,
 * as above; then sum may not be used. */
DP_MUST dp_status dp_dense_add(const dp_terms *terms);

/* The same, by 2^-34 / weights, encoded to out; x becomes what out decodes to. sum is left alone, so that 1,024 elements at a time stay in
 * the first cache. DP_DIVERGED: x or the mean, as above; then neither x nor out may be used. weights > 0: of all that was added. */
DP_MUST dp_status dp_dense_mean(const dp_terms *terms, uint64_t weights, uint8_t *out);

/* DP_BADMSG or DP_DIVERGED as dp_dense_check; then x is untouched. */
DP_MUST dp_status dp_dense_decode(uint8_t codec, dp_view bytes, size_t n, float *x);

#endif
