/* AVX2 and FMA: sixteen registers, twelve of them sums. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compute/cpu/tables.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define DP_TUNE "tune=skylake"
#define DP_LANES 8
#define DP_PANEL 16
#define DP_GROUP 6
#include "compute/cpu/fast_table.inl"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const dp_ops dp_ops_avx2 = DP_FAST_TABLE("avx2", DP_FP32, );
const dp_ops dp_ops_avx2_bf16 = DP_FAST_TABLE("avx2-bf16", DP_BF16, _bf16);
const dp_ops dp_ops_avx2_fp16 = DP_FAST_TABLE("avx2-fp16", DP_FP16, _fp16);
#else
typedef int dp_no_avx2; /* A file must declare something. */
#endif
