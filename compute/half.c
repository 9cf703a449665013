#include "compute/half.h"

uint16_t dp_half_of(double value, bool up)
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
    /* Normal halves keep 10 of 52 fraction bits, subnormal ones one less per step of the exponent below -14. */
    const int drop = exponent >= -14 ? 42 : 42 + (-14 - exponent);
    const uint64_t kept = significand >> drop;
    const uint64_t rest = significand & ((UINT64_C(1) << drop) - 1);
    const uint64_t middle = UINT64_C(1) << (drop - 1);
    const bool more = up ? rest > 0 : rest > middle || (rest == middle && (kept & 1U));
    const uint64_t rounded = kept + (more ? 1U : 0U);
    /* The hidden bit of a normal significand adds one to the exponent field, a carry one more. */
    const uint64_t field = exponent >= -14 ? (uint64_t)(exponent + 14) << 10 : 0;
    const uint64_t half = field + rounded;
    return half > DP_HALF_MAX ? DP_HALF_MAX : (uint16_t)half;
}
