/* The loops of the codecs and of the outer step: one table per instruction set, all with the same
 * bits. The first table, plain loops, is the reference.
 *
 * n <= DP_CODEC_RUN everywhere; vectors do not overlap and need no alignment. "Magnitude of a in
 * units of top" is the integer of codec_element.h: floor(|a| 2^(174 - top)). */
#ifndef DP_COMPUTE_CPU_CODEC_OPS_H
#define DP_COMPUTE_CPU_CODEC_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DP_CODEC_RUN = 4096 /* elements of a run (codec.h) */ };

typedef struct dp_codec_ops {
    const char *name; /* "plain", "avx2" */

    /* Bits of the largest |a[i]|; from 0x7f800000 on iff one is not finite. 0 for n = 0. */
    uint32_t (*largest)(const float *a, size_t n);
    /* The positions of the k largest |a[i]|, ascending; of equal ones the lowest. 1 <= k <= n;
     * largest as above, finite and above 0. By bits: a radix selection over |a|. */
    void (*choose)(const float *a, size_t n, size_t k, uint32_t largest, uint16_t *index);

    /* q[i] = a[i] / scale rounded to the nearest integer, ties to even, and kept within
     * -most..most. scale > 0, most <= 127. */
    void (*steps)(const float *a, size_t n, float scale, float most, int8_t *q);
    /* d[i] = q[i] scale, exact; returns the sum of q[i]^2. */
    uint32_t (*unsteps)(const int8_t *q, size_t n, float scale, float *d);

    /* Sum of the magnitudes in units of top. */
    uint64_t (*sum)(const float *a, size_t n, uint32_t top);
    /* Bit i of out (from the lowest of each byte): a[i] < 0. The last byte is filled with zeros. */
    void (*signs)(const float *a, size_t n, uint8_t *out);

    /* d[i] = value[code[i]]; returns the sum of weight[code[i]]. code[i] < 16. */
    uint32_t (*lookup)(const uint8_t *code, size_t n, const float value[16],
                       const uint32_t weight[16], float *d);

    /* acc[i] = acc[i] + f v[i], two roundings. */
    void (*add)(float *acc, const float *v, size_t n, float f);
    /* theta[i] = theta[i] - step acc[i], two roundings; returns whether all are finite. */
    bool (*move)(float *theta, const float *acc, size_t n, float step);

    /* Adds |a|^2 to sums[0] and |a - d|^2 to sums[1], in double: each is eight sums, of the
     * elements 8 apart, added up in their order. */
    void (*squares)(const float *a, const float *d, size_t n, double sums[2]);
} dp_codec_ops;

/* Plain loops. */
const dp_codec_ops *dp_codec_ops_reference(void);
/* The tables that this machine can run, slowest first; NULL after the last. */
const dp_codec_ops *dp_codec_ops_at(size_t index);
const dp_codec_ops *dp_codec_ops_best(void);

#endif
