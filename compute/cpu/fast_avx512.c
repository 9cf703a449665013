/* AVX-512: thirty-two registers, twenty-four of them sums. Measured on one core of a Xeon with AMX
 * (peak 239 GFLOP/s): products of 120 rows reach 190-215 GFLOP/s, where groups of 8 rows reach
 * 177-200. bench_gemm has them beside oneDNN. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compute/cpu/tables.h"

#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")
#endif

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

const dp_ops dp_ops_avx512 = DP_FAST_TABLE("avx512", DP_FP32, );
const dp_ops dp_ops_avx512_bf16 = DP_FAST_TABLE("avx512-bf16", DP_BF16, _bf16);
const dp_ops dp_ops_avx512_fp16 = DP_FAST_TABLE("avx512-fp16", DP_FP16, _fp16);
#else
typedef int dp_no_avx512; /* A file must declare something. */
#endif
