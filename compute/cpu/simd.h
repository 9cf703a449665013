/* Vectors of DP_LANES floats for the kernels of one instruction set; included by one fast_<isa>.c
 * after it has chosen DP_LANES and the target. Plain operators work on the types; the functions
 * here do the rest.
 *
 * NaN passes through all of them: dp_max and dp_min return b when either is NaN. */
#ifndef DP_COMPUTE_CPU_SIMD_H
#define DP_COMPUTE_CPU_SIMD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define DP_INLINE static inline __attribute__((always_inline))

/* Advances a pointer and hides the distance from the compiler, which in loops of many rows would
 * keep the address of each. */
#define DP_STEP(p, n)                                                                              \
    do {                                                                                           \
        (p) += (n);                                                                                \
        __asm__("" : "+r"(p));                                                                     \
    } while (0)

typedef float dp_vec __attribute__((vector_size(DP_LANES * 4)));
typedef int32_t dp_ivec __attribute__((vector_size(DP_LANES * 4)));

DP_INLINE dp_vec dp_vec_load(const float *p)
{
    dp_vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

DP_INLINE void dp_vec_store(float *p, dp_vec v)
{
    memcpy(p, &v, sizeof v);
}

/* A store past the caches, to p aligned to the vector, where the processor has one. Other threads
 * see it after dp_vec_fence_past. */
#if DP_LANES == 16
DP_INLINE void dp_vec_store_past(float *p, dp_vec v)
{
    _mm512_stream_ps(p, (__m512)v);
}

DP_INLINE void dp_vec_fence_past(void)
{
    _mm_sfence();
}
#elif DP_LANES == 8
DP_INLINE void dp_vec_store_past(float *p, dp_vec v)
{
    _mm256_stream_ps(p, (__m256)v);
}

DP_INLINE void dp_vec_fence_past(void)
{
    _mm_sfence();
}
#else
DP_INLINE void dp_vec_store_past(float *p, dp_vec v)
{
    dp_vec_store(p, v);
}

DP_INLINE void dp_vec_fence_past(void)
{
}
#endif

DP_INLINE dp_vec dp_vec_set(float x)
{
    return x - (dp_vec){0};
}

/* The first n < DP_LANES elements; the others are fill. */
#if DP_LANES == 16
DP_INLINE dp_vec dp_vec_load_some(const float *p, size_t n, float fill)
{
    return (dp_vec)_mm512_mask_loadu_ps((__m512)dp_vec_set(fill), (__mmask16)((1U << n) - 1U), p);
}

DP_INLINE void dp_vec_store_some(float *p, dp_vec v, size_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1U << n) - 1U), (__m512)v);
}
#else
DP_INLINE dp_vec dp_vec_load_some(const float *p, size_t n, float fill)
{
    float lanes[DP_LANES];
    for (size_t i = 0; i < DP_LANES; i++) {
        lanes[i] = i < n ? p[i] : fill;
    }
    return dp_vec_load(lanes);
}

DP_INLINE void dp_vec_store_some(float *p, dp_vec v, size_t n)
{
    float lanes[DP_LANES];
    dp_vec_store(lanes, v);
    for (size_t i = 0; i < n; i++) {
        p[i] = lanes[i];
    }
}
#endif

/* mask lanes are 0 or -1. */
DP_INLINE dp_vec dp_and(dp_ivec mask, dp_vec v)
{
    return (dp_vec)(mask & (dp_ivec)v);
}

#if DP_LANES == 16
#define dp_fma(a, b, c) ((dp_vec)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define dp_max(a, b) ((dp_vec)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define dp_min(a, b) ((dp_vec)_mm512_min_ps((__m512)(a), (__m512)(b)))
#define dp_sqrt(a) ((dp_vec)_mm512_sqrt_ps((__m512)(a)))
#elif DP_LANES == 8
#define dp_fma(a, b, c) ((dp_vec)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define dp_max(a, b) ((dp_vec)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define dp_min(a, b) ((dp_vec)_mm256_min_ps((__m256)(a), (__m256)(b)))
#define dp_sqrt(a) ((dp_vec)_mm256_sqrt_ps((__m256)(a)))
#else
DP_INLINE dp_vec dp_choose(dp_ivec mask, dp_vec yes, dp_vec no)
{
    return (dp_vec)((mask & (dp_ivec)yes) | (~mask & (dp_ivec)no));
}
DP_INLINE dp_vec dp_sqrt(dp_vec a)
{
    for (size_t i = 0; i < DP_LANES; i++) {
        a[i] = sqrtf(a[i]);
    }
    return a;
}
#define dp_fma(a, b, c) ((a) * (b) + (c))
#define dp_max(a, b) dp_choose((a) > (b), (a), (b))
#define dp_min(a, b) dp_choose((a) < (b), (a), (b))
#endif

/* Sums and maxima over the lanes in a fixed order: halves, then quarters. */
DP_INLINE float dp_vec_sum(dp_vec v)
{
    float lanes[DP_LANES];
    dp_vec_store(lanes, v);
    for (size_t half = DP_LANES / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++) {
            lanes[i] += lanes[i + half];
        }
    }
    return lanes[0];
}

/* NaN if a lane is NaN. */
DP_INLINE float dp_largest(dp_vec v)
{
    float lanes[DP_LANES];
    dp_vec_store(lanes, v);
    float largest = lanes[0];
    for (size_t i = 1; i < DP_LANES; i++) {
        largest = lanes[i] <= largest ? largest : lanes[i];
        if (isnan(largest)) {
            break;
        }
    }
    return largest;
}

/* DP_LANES rows of DP_LANES floats at from (ld apart) become columns at to (to_ld apart). */
DP_INLINE void dp_transpose(const float *from, size_t ld, float *to, size_t to_ld)
{
#if DP_LANES == 16
    /* Each line is read once: rows a multiple of 4 KiB apart fall on each other in the first cache.
     * Pairs of rows, then fours, then the quarters of all sixteen. */
    __m512d pairs[DP_LANES];
    __m512 fours[DP_LANES];
#pragma GCC unroll 8
    for (size_t i = 0; i < DP_LANES; i += 2) {
        const __m512 even = (__m512)dp_vec_load(from + i * ld);
        const __m512 odd = (__m512)dp_vec_load(from + (i + 1) * ld);
        pairs[i] = (__m512d)_mm512_unpacklo_ps(even, odd);
        pairs[i + 1] = (__m512d)_mm512_unpackhi_ps(even, odd);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < DP_LANES; i += 4) {
        fours[i] = (__m512)_mm512_unpacklo_pd(pairs[i], pairs[i + 2]);
        fours[i + 1] = (__m512)_mm512_unpackhi_pd(pairs[i], pairs[i + 2]);
        fours[i + 2] = (__m512)_mm512_unpacklo_pd(pairs[i + 1], pairs[i + 3]);
        fours[i + 3] = (__m512)_mm512_unpackhi_pd(pairs[i + 1], pairs[i + 3]);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        const __m512 even_low = _mm512_shuffle_f32x4(fours[i], fours[i + 4], 0x88);
        const __m512 even_high = _mm512_shuffle_f32x4(fours[i + 8], fours[i + 12], 0x88);
        const __m512 odd_low = _mm512_shuffle_f32x4(fours[i], fours[i + 4], 0xdd);
        const __m512 odd_high = _mm512_shuffle_f32x4(fours[i + 8], fours[i + 12], 0xdd);
        dp_vec_store(to + i * to_ld, (dp_vec)_mm512_shuffle_f32x4(even_low, even_high, 0x88));
        dp_vec_store(to + (i + 4) * to_ld, (dp_vec)_mm512_shuffle_f32x4(odd_low, odd_high, 0x88));
        dp_vec_store(to + (i + 8) * to_ld, (dp_vec)_mm512_shuffle_f32x4(even_low, even_high, 0xdd));
        dp_vec_store(to + (i + 12) * to_ld, (dp_vec)_mm512_shuffle_f32x4(odd_low, odd_high, 0xdd));
    }
#else
    for (size_t i = 0; i < DP_LANES; i++) {
        float column[DP_LANES];
        for (size_t j = 0; j < DP_LANES; j++) {
            column[j] = from[j * ld + i];
        }
        memcpy(to + i * to_ld, column, sizeof column);
    }
#endif
}

/* e^x: x = n ln 2 + r with |r| <= ln(2)/2, a polynomial of degree 6 for e^r (Taylor terms; error
 * below 2e-7 relative), and 2^n as a factor. 0 below -87.3; x above 88 counts as 88, so the result
 * is always finite or NaN. */
DP_INLINE dp_vec dp_exp(dp_vec x)
{
    const dp_vec magic =
        dp_vec_set(0x1.8p23F); /* Adding it rounds to an integer, kept in the low bits. */
    const dp_ivec tiny = x < dp_vec_set(-87.3F);
    x = dp_min(dp_vec_set(88.0F), dp_max(dp_vec_set(-87.3F), x));
    const dp_vec shifted = dp_fma(x, dp_vec_set(0x1.715476p0F), magic);
    const dp_vec n = shifted - magic;
    dp_vec r = dp_fma(n, dp_vec_set(-0x1.62e4p-1F), x);
    r = dp_fma(n, dp_vec_set(-0x1.7f7d1cp-20F), r);
    dp_vec p = dp_fma(r, dp_vec_set(1.0F / 720.0F), dp_vec_set(1.0F / 120.0F));
    p = dp_fma(p, r, dp_vec_set(1.0F / 24.0F));
    p = dp_fma(p, r, dp_vec_set(1.0F / 6.0F));
    p = dp_fma(p, r, dp_vec_set(0.5F));
    p = dp_fma(p, r, dp_vec_set(1.0F));
    p = dp_fma(p, r, dp_vec_set(1.0F));
    /* The product keeps a NaN, where adding to the exponent bits of p could make a number of it. */
    const dp_ivec power = (dp_ivec)((dp_ivec)shifted << 23) + (dp_ivec)dp_vec_set(1.0F);
    return dp_and(~tiny, p * (dp_vec)power);
}

#endif
