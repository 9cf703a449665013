/* AVX-512 with products of bf16 pairs. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compute/cpu/tables.h"

#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx512bf16,avx2,fma"))),             \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx512bf16,avx2,fma")
#endif

#define DP_BF16_PAIRS
#define DP_TUNE "tune=skylake-avx512"
#define DP_LANES 16
#define DP_PANEL 32
#define DP_GROUP 12
#include "compute/cpu/fast_table.inl"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const dp_ops dp_ops_avx512bf16 = DP_FAST_TABLE("avx512bf16", DP_BF16, );
#else
typedef int dp_no_avx512bf16; /* A file must declare something. */
#endif
