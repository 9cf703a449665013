/* Element access of the near kernels: fp32, bf16 and fp16 in memory, floats in registers, eight at
 * a time. The same source is device code for nvcc and C++ for the emulator of the tests; only
 * operations for which a card has an instruction are written twice. */
#ifndef DP_COMPUTE_CUDA_ELEMENT_CUH
#define DP_COMPUTE_CUDA_ELEMENT_CUH

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "compute/cuda/launch.h"
#include "compute/cpu/precision.h"

enum {
    DP_LANES = 32,
    DP_VECTOR = 8 /* elements that a thread moves at once: 16 bytes of halves */
};

typedef struct dp_bf16 {
    uint16_t bits;
} dp_bf16;

typedef struct dp_fp16 {
    uint16_t bits;
} dp_fp16;

/* 16 bytes, moved by one instruction. */
struct alignas(16) dp_chunk {
    uint32_t word[4];
};

#define DP_LOG2E 1.44269504088896340736F
#define DP_LN2 0.69314718055994530942F

static __device__ inline uint32_t dp_bits_of(float x)
{
#ifdef __CUDA_ARCH__
    return __float_as_uint(x);
#else
    return dp_float_bits(x);
#endif
}

static __device__ inline float dp_of_bits(uint32_t bits)
{
#ifdef __CUDA_ARCH__
    return __uint_as_float(bits);
#else
    return dp_float_of_bits(bits);
#endif
}

static __device__ inline float dp_to_float(float x)
{
    return x;
}

static __device__ inline float dp_to_float(dp_bf16 x)
{
    return dp_of_bits((uint32_t)x.bits << 16);
}

static __device__ inline float dp_to_float(dp_fp16 x)
{
#ifdef __CUDA_ARCH__
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
    return value;
#else
    return (x.bits & 0x7fffU) > 0x7c00U ? NAN : dp_half_float(x.bits);
#endif
}

/* Nearest, ties to even; a NaN stays one. */
static __device__ inline uint16_t dp_bf16_bits(float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
#else
    const uint32_t bits = dp_bits_of(x);
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
        return (uint16_t)(bits >> 16 | 0x40U);
    }
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
#endif
}

static __device__ inline uint16_t dp_fp16_bits(float x)
{
#ifdef __CUDA_ARCH__
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
#else
    const uint32_t bits = dp_float_bits(dp_round_fp16(x));
    const uint32_t sign = bits >> 16 & 0x8000U;
    const uint32_t size = bits & 0x7fffffffU;
    if (size >= 0x7f800000U) {
        return (uint16_t)(sign | (size > 0x7f800000U ? 0x7e00U : 0x7c00U));
    }
    if (size < 0x38800000U) {
        return (uint16_t)(sign | (uint32_t)(dp_float_of_bits(size) * 0x1p24F));
    }
    return (uint16_t)(sign | ((size >> 13) - (112U << 10)));
#endif
}

static __device__ inline void dp_store_one(float *to, float x)
{
    *to = x;
}

static __device__ inline void dp_store_one(dp_bf16 *to, float x)
{
    to->bits = dp_bf16_bits(x);
}

static __device__ inline void dp_store_one(dp_fp16 *to, float x)
{
    to->bits = dp_fp16_bits(x);
}

/* Two floats as the halves of a word, the first one low, as mma takes them. */
static __device__ inline uint32_t dp_pack2(dp_bf16 *, float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#else
    return (uint32_t)dp_bf16_bits(low) | (uint32_t)dp_bf16_bits(high) << 16;
#endif
}

static __device__ inline uint32_t dp_pack2(dp_fp16 *, float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#else
    return (uint32_t)dp_fp16_bits(low) | (uint32_t)dp_fp16_bits(high) << 16;
#endif
}

/* ---- eight elements */

static __device__ inline void dp_load8(float out[DP_VECTOR], const float *from)
{
    const dp_chunk low = *(const dp_chunk *)from;
    const dp_chunk high = *(const dp_chunk *)(from + 4);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        out[i] = dp_of_bits(low.word[i]);
        out[4 + i] = dp_of_bits(high.word[i]);
    }
}

template <typename T> static __device__ inline void dp_load8(float out[DP_VECTOR], const T *from)
{
    static_assert(sizeof(T) == 2, "halves");
    const dp_chunk chunk = *(const dp_chunk *)from;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        T low;
        T high;
        low.bits = (uint16_t)(chunk.word[i] & 0xffffU);
        high.bits = (uint16_t)(chunk.word[i] >> 16);
        out[2 * i] = dp_to_float(low);
        out[2 * i + 1] = dp_to_float(high);
    }
}

/* In one instruction: of an assignment the compiler made four in kernels that also store one by
 * one. to: global memory, at 16. */
static __device__ inline void dp_store_chunk(void *to, const dp_chunk &chunk)
{
#ifdef __CUDA_ARCH__
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(chunk.word[0]),
                 "r"(chunk.word[1]), "r"(chunk.word[2]), "r"(chunk.word[3])
                 : "memory");
#else
    *(dp_chunk *)to = chunk;
#endif
}

static __device__ inline void dp_store8(float *to, const float in[DP_VECTOR])
{
    dp_chunk low;
    dp_chunk high;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        low.word[i] = dp_bits_of(in[i]);
        high.word[i] = dp_bits_of(in[4 + i]);
    }
    dp_store_chunk(to, low);
    dp_store_chunk(to + 4, high);
}

template <typename T> static __device__ inline void dp_store8(T *to, const float in[DP_VECTOR])
{
    static_assert(sizeof(T) == 2, "halves");
    dp_chunk chunk;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        chunk.word[i] = dp_pack2((T *)nullptr, in[2 * i], in[2 * i + 1]);
    }
    dp_store_chunk(to, chunk);
}

/* Elements column .. column + 7 of a row; columns at width or behind are 0 and not read. even: all
 * rows may be moved in chunks, so a vector is inside or outside as a whole. */
template <typename T>
static __device__ inline void dp_load_row(float out[DP_VECTOR], const T *row, size_t column,
                                          size_t width, bool even)
{
    if (even && column < width) {
        dp_load8(out, row + column);
        return;
    }
#pragma unroll
    for (int i = 0; i < DP_VECTOR; i++) {
        out[i] = column + (size_t)i < width ? dp_to_float(row[column + (size_t)i]) : 0.0F;
    }
}

template <typename T>
static __device__ inline void dp_store_row(T *row, const float in[DP_VECTOR], size_t column,
                                           size_t width, bool even)
{
    if (even && column < width) {
        dp_store8(row + column, in);
        return;
    }
#pragma unroll
    for (int i = 0; i < DP_VECTOR; i++) {
        if (column + (size_t)i < width) {
            dp_store_one(row + column + i, in[i]);
        }
    }
}

/* The value that memory will hold. */
static __device__ inline float dp_rounded(float *, float x)
{
    return x;
}

static __device__ inline float dp_rounded(dp_bf16 *, float x)
{
    return dp_of_bits((uint32_t)dp_bf16_bits(x) << 16);
}

static __device__ inline float dp_rounded(dp_fp16 *, float x)
{
    return dp_to_float(dp_fp16{dp_fp16_bits(x)});
}

/* ---- functions that a card has an approximate instruction for; relative error below 2^-20 for the
 * uses here */

static __device__ inline float dp_exp2(float x)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

static __device__ inline float dp_sigmoid(float x)
{
#ifdef __CUDA_ARCH__
    return __fdividef(1.0F, 1.0F + dp_exp2(-DP_LOG2E * x));
#else
    return 1.0F / (1.0F + dp_exp2(-DP_LOG2E * x));
#endif
}

/* True when rows at this address and distance (bytes) may be moved in chunks. */
static inline bool dp_even(const void *address, size_t bytes)
{
    return ((uintptr_t)address | bytes) % 16 == 0;
}

static inline size_t dp_blocks(size_t n, size_t per_block)
{
    return (n + per_block - 1) / per_block;
}

static inline size_t dp_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

#endif
