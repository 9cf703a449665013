/* The operations of codecs on one float, shared by all tables and by kernels, so that only order
 * and width differ. */
#ifndef DP_COMPUTE_CPU_CODEC_ELEMENT_H
#define DP_COMPUTE_CPU_CODEC_ELEMENT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compute/cpu/half.h"

#if defined(__CUDACC__)
#define DP_ELEMENT DP_ANYWHERE
#else
#define DP_ELEMENT static inline __attribute__((always_inline))
#endif

/* |value| as bits: they order like the magnitudes. */
DP_ELEMENT uint32_t dp_element_key(float value)
{
    return dp_float_bits(value) & 0x7fffffffU;
}

/* Adding 1.5 * 2^23 leaves no bit below the unit; |value| < 2^22. */
DP_ELEMENT int32_t dp_element_nearest(float value)
{
    const float shifted = value + 12582912.0F;
    return (int32_t)(shifted - 12582912.0F);
}

DP_ELEMENT int8_t dp_element_step(float value, float scale, float most)
{
    float steps = value / scale;
    steps = steps > most ? most : steps;
    steps = steps < -most ? -most : steps;
    return (int8_t)dp_element_nearest(steps);
}

/* value / scale near enough that its nearest integer, ties to even, is that of the rounded
 * quotient; no division. scale: a half above 0; inverse: 1 / scale within 2^-22 of it; |value /
 * scale| < 2^22.
 *
 * Why (after Markstein 1990): the first product is within 4 units of its last place, so the
 * remainder is exact (a scale has 11 bits), and the second step errs by 2^-20 of such a unit. A
 * value that is not scale (k + 1/2), which is a float for k below 2^12, lies at least one of its
 * own last bits beside it: more than half a unit of the quotient, and by 2^-11 of it more. So the
 * value that is rounded to an integer is k + 1/2 exactly where the quotient is, and on its side of
 * it elsewhere, here and in a quotient that is rounded once. */
DP_ELEMENT float dp_element_quotient(float value, float scale, float inverse)
{
    const float first = value * inverse;
    return fmaf(fmaf(-first, scale, value), inverse, first);
}

/* ---- Means without an order. A finite float's magnitude as an integer multiple of 2^(top - 174),
 * where top is the exponent field of the largest float of the sum (at least 1): exact down to 2^-24
 * of the largest, cut below. Sums of 4096 fit 64 bits. */

/* The significand in 48 bits, shifted down by the distance of the exponents. */
DP_ELEMENT uint64_t dp_element_magnitude(float value, uint32_t top)
{
    const uint32_t bits = dp_element_key(value);
    const uint32_t field = bits >> 23;
    const uint32_t hidden = field == 0 ? 0 : 0x800000U;
    const uint32_t exponent = field == 0 ? 1 : field;
    const uint64_t significand = (uint64_t)((bits & 0x7fffffU) | hidden) << 24;
    const uint32_t distance = top - exponent;
    return significand >> (distance > 63 ? 63 : distance);
}

/* The exponent field of the largest float of a sum, at least 1. */
DP_ELEMENT uint32_t dp_element_top(uint32_t largest)
{
    const uint32_t field = largest >> 23;
    return field == 0 ? 1 : field;
}

/* numerator / denominator of such magnitudes as the nearest half, at most the largest. */
DP_ELEMENT uint16_t dp_element_mean(uint64_t numerator, uint64_t denominator, uint32_t top)
{
    /* Two roundings, the same everywhere; 2^(top - 174) is a normal double. */
    const double quotient = (double)numerator / (double)denominator;
    const uint64_t exponent = (uint64_t)top + 1023 - 174;
    const uint64_t bits = exponent << 52;
    double unit;
    memcpy(&unit, &bits, sizeof unit);
    return dp_half_of(quotient * unit, false);
}

#endif
