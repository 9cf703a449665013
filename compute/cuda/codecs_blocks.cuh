/* Arithmetic of blocks under one scale, and the elements of them that each thread holds. Private to
 * codecs*.cu.
 *
 * On a card integer operations issue at half and conversions at an eighth of the rate of float
 * additions and products, and memory at full speed leaves about 25 of the latter to an element: so
 * the work for each element is float arithmetic wherever that is exact. */
#ifndef DP_COMPUTE_CUDA_CODECS_BLOCKS_CUH
#define DP_COMPUTE_CUDA_CODECS_BLOCKS_CUH

#include "compute/cuda/codecs.cuh"
#include "compute/cuda/element.cuh"

#define DP_BLOCKS_ALL 0xffffffffU
#define DP_BLOCKS_INFINITY 0x7f800000U
/* Adding it leaves no bit below the unit, and the integer in two's complement in the lowest
 * bits. */
#define DP_BLOCKS_MAGIC 12582912.0F

enum {
    DP_BLOCKS_EACH = 32, /* elements of a thread */
    DP_BLOCKS_FOURS = DP_BLOCKS_EACH / 4,
    DP_BLOCKS_TILE = DP_CODEC_THREADS * DP_BLOCKS_EACH /* of a thread block */
};

/* Bytes of low (0 to 3) and high (4 to 7), one for each digit of choice from the lowest up. */
static __device__ __forceinline__ uint32_t dp_bytes_of(uint32_t low, uint32_t high, uint32_t choice)
{
#ifdef __CUDA_ARCH__
    uint32_t y;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(y) : "r"(low), "r"(high), "r"(choice));
    return y;
#else
    const uint64_t bytes = low | static_cast<uint64_t>(high) << 32;
    uint32_t y = 0;
    for (unsigned i = 0; i < 4; i++) {
        const uint32_t digit = choice >> (4 * i) & 7U;
        y |= (static_cast<uint32_t>(bytes >> (8 * digit)) & 0xffU) << (8 * i);
    }
    return y;
#endif
}

/* The larger of a magnitude and |x|, as float; not a number when one is none. */
static __device__ __forceinline__ float dp_larger(float magnitude, float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float y;
    asm("{ .reg .f32 t; abs.f32 t, %2; max.NaN.f32 %0, %1, t; }"
        : "=f"(y)
        : "f"(magnitude), "f"(x));
    return y;
#else
    return dp_of_bits(max(dp_bits_of(magnitude), dp_element_key(x)));
#endif
}

/* 1 / scale within one unit of the last place; scale > 0 is a half. */
static __device__ __forceinline__ float dp_near_inverse(float scale)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(scale));
    return y;
#else
    return dp_of_bits(dp_bits_of(1.0F / scale) + 1); /* As far off as a card may be. */
#endif
}

static __device__ __forceinline__ float dp_half_exact(uint32_t half)
{
    dp_fp16 x;
    x.bits = static_cast<uint16_t>(half);
    return dp_to_float(x);
}

/* dp_codec_steps_of: the scale, by floats alone. The quotient in double is at least 2^-31 of itself
 * away from any half that it is not, so the least half not below it is the least whose product with
 * most, which is exact, is not below largest. */
static __device__ __forceinline__ uint32_t dp_scale_of_steps(float largest, float most)
{
    const float quotient = largest * (1.0F / most); /* Within 2^-23. */
    uint32_t half = 0;
    if (quotient >= 65504.0F) {
        half = DP_HALF_MAX;
    } else if (quotient >= 0x1p-14F) {
        half = (dp_bits_of(quotient) - 0x38000000U) >> 13;
    } else {
        half = static_cast<uint32_t>(quotient * 0x1p24F);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) { /* The half below it, or one more below. */
        half += half < DP_HALF_MAX && most * dp_half_exact(half) < largest ? 1 : 0;
    }
    if (half == 0) {
        return 0;
    }
    const float scale = dp_half_exact(half);
    float top = dp_element_quotient(largest, scale, dp_near_inverse(scale));
    top = (fminf(top, most) + DP_BLOCKS_MAGIC) - DP_BLOCKS_MAGIC;
    return half - (top * scale <= most * dp_half_exact(half - 1) ? 1 : 0);
}

dp_status dp_blocks_encode(const float *a, size_t n, const dp_cuda_blob &codec,
                           const dp_cuda_encoding &to, cudaStream_t stream);

#endif
