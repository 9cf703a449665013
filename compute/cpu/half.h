/* IEEE 754 binary16 and bfloat16 as integers: conversions whose bits are the same on every machine.
 * No arithmetic. For C, C++ and kernels alike. */
#ifndef DP_COMPUTE_CPU_HALF_H
#define DP_COMPUTE_CPU_HALF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__)
#define DP_ANYWHERE static __host__ __device__ __forceinline__
#else
#define DP_ANYWHERE static inline
#endif

enum { DP_HALF_MAX = 0x7bff }; /* 65504, the largest finite value */

DP_ANYWHERE uint32_t dp_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

DP_ANYWHERE float dp_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* True for a finite half without sign, as scales and centroids are. */
DP_ANYWHERE bool dp_half_is_magnitude(uint16_t half)
{
    return half <= DP_HALF_MAX;
}

/* The magnitude as an integer multiple of 2^-24, below 2^40. */
DP_ANYWHERE uint64_t dp_half_grid(uint16_t half)
{
    const uint32_t exponent = (uint32_t)half >> 10;
    const uint64_t fraction = half & 0x3ffU;
    return exponent == 0 ? fraction : (fraction | 0x400U) << (exponent - 1);
}

/* Exact: a magnitude has at most 11 significant bits. */
DP_ANYWHERE float dp_half_value(uint16_t half)
{
    return (float)dp_half_grid(half) * 0x1p-24F;
}

/* The half nearest to a finite value >= 0 (ties to even), at most DP_HALF_MAX. With up: the
 * smallest half not below it. */
DP_ANYWHERE uint16_t dp_half_of(double value, bool up)
{
    if (value >= 65504.0) {
        return DP_HALF_MAX;
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int exponent = (int)((bits >> 52) & 0x7ffU) - 1023;
    if (exponent < -26) {
        /* Below a quarter of the least half. */
        return up && value > 0 ? 1 : 0;
    }
    const uint64_t significand = (bits & ((UINT64_C(1) << 52) - 1)) | (UINT64_C(1) << 52);
    /* Normal halves keep 10 of 52 fraction bits, subnormal ones one less per step of the exponent
     * below -14. */
    const int drop = exponent >= -14 ? 42 : 42 + (-14 - exponent);
    const uint64_t kept = significand >> drop;
    const uint64_t rest = significand & ((UINT64_C(1) << drop) - 1);
    const uint64_t middle = UINT64_C(1) << (drop - 1);
    const bool more = up ? rest > 0 : rest > middle || (rest == middle && (kept & 1U));
    const uint64_t rounded = kept + (more ? 1U : 0U);
    /* The hidden bit of a normal significand adds one to the exponent field, a carry one more. */
    const uint64_t field = exponent >= -14 ? (uint64_t)(exponent + 14) << 10 : 0;
    const uint64_t half = field + rounded;
    return half > DP_HALF_MAX ? (uint16_t)DP_HALF_MAX : (uint16_t)half;
}

/* Any half, with its sign; infinity for all that are not finite. */
DP_ANYWHERE float dp_half_float(uint16_t half)
{
    const uint16_t magnitude = half & 0x7fffU;
    const float value =
        magnitude > DP_HALF_MAX ? dp_float_of_bits(0x7f800000U) : dp_half_value(magnitude);
    return (half & 0x8000U) != 0 ? -value : value;
}

DP_ANYWHERE float dp_bfloat_value(uint16_t bits)
{
    return dp_float_of_bits((uint32_t)bits << 16);
}

/* Nearest, ties to even. The value is finite and far from the largest float. */
DP_ANYWHERE uint16_t dp_bfloat_of(float value)
{
    const uint32_t bits = dp_float_bits(value);
    return (uint16_t)((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

#endif
