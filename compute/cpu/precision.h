/* The precisions of training: the formats to which inputs of matrix products are rounded. Sums,
 * parameters and all else stay fp32.
 *
 * bf16: nearest, ties to even; above the largest finite value infinity. fp16: the same, with a
 * spacing of 2^-24 below 2^-14. A NaN stays a NaN. */
#ifndef DP_COMPUTE_CPU_PRECISION_H
#define DP_COMPUTE_CPU_PRECISION_H

#include <stddef.h>

#include "base/run/manifest.h"
#include "compute/cpu/half.h"

typedef enum dp_precision { DP_FP32, DP_BF16, DP_FP16, DP_PRECISIONS } dp_precision;

static inline float dp_round_bf16(float x)
{
    const uint32_t bits = dp_float_bits(x);
    if ((bits & 0x7f800000U) == 0x7f800000U) {
        return x;
    }
    return dp_float_of_bits((bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U);
}

static inline float dp_round_fp16(float x)
{
    const uint32_t bits = dp_float_bits(x);
    const uint32_t sign = bits & 0x80000000U;
    const uint32_t size = bits & 0x7fffffffU;
    if (size >= 0x7f800000U) {
        return x;
    }
    if (size < 0x38800000U) {
        /* The spacing of floats from 0.5 to 1 is that of halves below 2^-14. */
        const float near = dp_float_of_bits(size) + 0.5F;
        return dp_float_of_bits(dp_float_bits(near - 0.5F) | sign);
    }
    const uint32_t rounded = (size + 0xfffU + ((size >> 13) & 1U)) & ~0x1fffU;
    return dp_float_of_bits((rounded > 0x477fe000U ? 0x7f800000U : rounded) | sign);
}

static inline float dp_round_to(dp_precision precision, float x)
{
    switch (precision) {
    case DP_BF16:
        return dp_round_bf16(x);
    case DP_FP16:
        return dp_round_fp16(x);
    case DP_FP32:
    case DP_PRECISIONS:
        break;
    }
    return x;
}

/* "fp32", "bf16", "fp16". */
const char *dp_precision_name(dp_precision precision);
/* The precision of a manifest's train.precision. */
dp_precision dp_precision_of_kind(dp_precision_kind kind);
/* False: no such name. */
bool dp_precision_of(const char *name, dp_precision *out);

#endif
