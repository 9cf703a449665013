/* __half and __nv_bfloat16 for host_gpu.h: storage and conversions, by integers. No arithmetic:
 * kernels convert to float. */
#ifndef DP_TESTS_CUDA_HOST_HALF_H
#define DP_TESTS_CUDA_HOST_HALF_H

#include <cstdint>
#include <cstring>

struct __half {
    uint16_t bits;
};
struct __nv_bfloat16 {
    uint16_t bits;
};
struct alignas(4) __half2 {
    __half x, y;
};
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

static inline uint32_t host_half_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float host_half_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Nearest, ties to even; what passes 65504 by half a step or more is infinite. */
static inline __half __float2half_rn(float value)
{
    const uint32_t bits = host_half_bits(value);
    const uint32_t size = bits & 0x7fffffffU;
    uint32_t half;
    if (size > 0x7f800000U) {
        return {0x7fff};
    }
    if (size < 0x38800000U) { /* Below 2^-14 the spacing is that of floats from 0.5 to 1. */
        half = host_half_bits(host_half_float(size) + 0.5F) - host_half_bits(0.5F);
    } else if (size >= 0x47800000U) {
        half = 0x7c00;
    } else {
        half = (size + 0xfffU + ((size >> 13) & 1U) - 0x38000000U) >> 13;
    }
    return {static_cast<uint16_t>(half | (bits >> 16 & 0x8000U))};
}

static inline float __half2float(__half half)
{
    const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000U) << 16;
    const uint32_t size = half.bits & 0x7fffU;
    if (size >= 0x7c00U) {
        return host_half_float(sign | 0x7f800000U | (size & 0x3ffU) << 13);
    }
    if (size < 0x400U) {
        return host_half_float(
            sign | host_half_bits(static_cast<float>(static_cast<int>(size)) * 0x1p-24F));
    }
    return host_half_float(sign | ((size << 13) + 0x38000000U));
}

static inline __nv_bfloat16 __float2bfloat16_rn(float value)
{
    const uint32_t bits = host_half_bits(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
        return {0x7fff};
    }
    return {static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

static inline float __bfloat162float(__nv_bfloat16 value)
{
    return host_half_float(static_cast<uint32_t>(value.bits) << 16);
}

static inline uint16_t __half_as_ushort(__half value)
{
    return value.bits;
}
static inline __half __ushort_as_half(uint16_t bits)
{
    return {bits};
}
static inline uint16_t __bfloat16_as_ushort(__nv_bfloat16 value)
{
    return value.bits;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(uint16_t bits)
{
    return {bits};
}

#endif
