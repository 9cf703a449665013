/* IEEE 754 binary16 and bfloat16 as integers: conversions whose bits are the same on every machine. No arithmetic. */
#ifndef DP_COMPUTE_HALF_H
#define DP_COMPUTE_HALF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { DP_HALF_MAX = 0x7bff }; /* 65504, the largest finite value */

static inline uint32_t dp_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float dp_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A half without sign that is finite: what scales and centroids are. */
static inline bool dp_half_is_magnitude(uint16_t half)
{
    return half <= DP_HALF_MAX;
}

/* The magnitude as an integer multiple of 2^-24, below 2^40. */
static inline uint64_t dp_half_grid(uint16_t half)
{
    const uint32_t exponent = (uint32_t)half >> 10;
    const uint64_t fraction = half & 0x3ffU;
    return exponent == 0 ? fraction : (fraction | 0x400U) << (exponent - 1);
}

/* Exact: a magnitude has at most 11 significant bits. */
static inline float dp_half_value(uint16_t half)
{
    return (float)dp_half_grid(half) * 0x1p-24F;
}

/* The half nearest to a finite value >= 0 (ties to even), at most DP_HALF_MAX. With up: the least one not below. */
uint16_t dp_half_of(double value, bool up);

/* Any half, with its sign; infinity for all that are not finite. */
static inline float dp_half_float(uint16_t half)
{
    const uint16_t magnitude = half & 0x7fffU;
    const float value =
        magnitude > DP_HALF_MAX ? dp_float_of_bits(0x7f800000U) : dp_half_value(magnitude);
    return (half & 0x8000U) != 0 ? -value : value;
}

static inline float dp_bfloat_value(uint16_t bits)
{
    return dp_float_of_bits((uint32_t)bits << 16);
}

/* Nearest, ties to even. The value is finite and far from the largest float. */
static inline uint16_t dp_bfloat_of(float value)
{
    const uint32_t bits = dp_float_bits(value);
    return (uint16_t)((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

#endif
