/* The peak of one core of this machine with the instructions of a table of operations: independent
 * multiply-adds in registers, nothing loaded. Shares of the peak are measured against it, in the
 * same run. */
#ifndef DP_BENCH_PEAK_H
#define DP_BENCH_PEAK_H

#include <stdint.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "compute/cpu/ops.h"

enum { PEAK_SUMS = 16, PEAK_TURNS = 1 << 20, PEAK_TRIES = 7 };

static volatile float peak_sink; /* So that the compiler does not remove the loop. */

typedef float peak_vec4 __attribute__((vector_size(16)));

/* Each runs PEAK_TURNS * PEAK_SUMS instructions and returns the floating point operations. */
static double peak_generic(void)
{
    peak_vec4 sums[PEAK_SUMS] = {{0}};
    const peak_vec4 x = {peak_sink, 1.0F, 2.0F, 3.0F};
    for (size_t turn = 0; turn < PEAK_TURNS; turn++) {
#pragma GCC unroll 16
        for (size_t i = 0; i < PEAK_SUMS; i++) {
            sums[i] = sums[i] * x + x;
        }
    }
    for (size_t i = 0; i < PEAK_SUMS; i++) {
        peak_sink = sums[i][0];
    }
    return (double)PEAK_TURNS * PEAK_SUMS * 8;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static double peak_avx2(void)
{
    __m256 sums[PEAK_SUMS - 4];
    const __m256 x = _mm256_set1_ps(peak_sink);
    for (size_t i = 0; i < PEAK_SUMS - 4; i++) {
        sums[i] = x;
    }
    for (size_t turn = 0; turn < PEAK_TURNS; turn++) {
#pragma GCC unroll 16
        for (size_t i = 0; i < PEAK_SUMS - 4; i++) {
            sums[i] = _mm256_fmadd_ps(sums[i], x, x);
        }
    }
    for (size_t i = 0; i < PEAK_SUMS - 4; i++) {
        peak_sink = _mm256_cvtss_f32(sums[i]);
    }
    return (double)PEAK_TURNS * (PEAK_SUMS - 4) * 16;
}

__attribute__((target("avx512f"))) static double peak_avx512(void)
{
    __m512 sums[PEAK_SUMS];
    const __m512 x = _mm512_set1_ps(peak_sink);
    for (size_t i = 0; i < PEAK_SUMS; i++) {
        sums[i] = x;
    }
    for (size_t turn = 0; turn < PEAK_TURNS; turn++) {
#pragma GCC unroll 16
        for (size_t i = 0; i < PEAK_SUMS; i++) {
            sums[i] = _mm512_fmadd_ps(sums[i], x, x);
        }
    }
    for (size_t i = 0; i < PEAK_SUMS; i++) {
        peak_sink = _mm512_cvtss_f32(sums[i]);
    }
    return (double)PEAK_TURNS * PEAK_SUMS * 32;
}

__attribute__((target("avx512f,avx512bf16"))) static double peak_avx512bf16(void)
{
    __m512 sums[PEAK_SUMS];
    const __m512i x = _mm512_set1_epi32((int)peak_sink);
    for (size_t i = 0; i < PEAK_SUMS; i++) {
        sums[i] = _mm512_setzero_ps();
    }
    for (size_t turn = 0; turn < PEAK_TURNS; turn++) {
#pragma GCC unroll 16
        for (size_t i = 0; i < PEAK_SUMS; i++) {
            sums[i] = _mm512_dpbf16_ps(sums[i], (__m512bh)x, (__m512bh)x);
        }
    }
    for (size_t i = 0; i < PEAK_SUMS; i++) {
        peak_sink = _mm512_cvtss_f32(sums[i]);
    }
    return (double)PEAK_TURNS * PEAK_SUMS * 64;
}

/* Sums of four tiles of rows and columns in registers. */
__attribute__((target("amx-tile,amx-bf16"))) static double peak_amx(void)
{
    static const struct {
        uint8_t palette;
        uint8_t unused[15];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shapes = {.palette = 1,
                .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&shapes); /* All tiles are 0. */
    for (size_t turn = 0; turn < PEAK_TURNS / 4; turn++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_release();
    return (double)PEAK_TURNS * 16 * 16 * 32 * 2;
}
#endif

typedef double peak_loop_call(void);

static peak_loop_call *peak_loop(const dp_ops *ops)
{
    peak_loop_call *loop = peak_generic;
    (void)ops; /* Not read on other processors. */
#if defined(__x86_64__)
    if (strcmp(ops->name, "amx") == 0) {
        loop = peak_amx;
    } else if (strcmp(ops->name, "avx512bf16") == 0) {
        loop = peak_avx512bf16;
    } else if (strncmp(ops->name, "avx512", 6) == 0) {
        loop = peak_avx512;
    } else if (strncmp(ops->name, "avx2", 4) == 0) {
        loop = peak_avx2;
    }
#endif
    return loop;
}

/* Floating point operations per second of one core with the instructions of this table; the best of
 * a few tries. */
static double peak_of(const dp_ops *ops)
{
    peak_loop_call *const loop = peak_loop(ops);
    double best = 0.0;
    for (int i = 0; i < PEAK_TRIES; i++) {
        struct timespec start;
        struct timespec end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
        const double flops = loop();
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        const double seconds =
            (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
        best = flops / seconds > best ? flops / seconds : best;
    }
    return best;
}

#endif
