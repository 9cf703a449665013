/* AVX-512 with products of bf16 by the tiles of AMX. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compute/cpu/tables.h"

#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx512bf16,amx-tile,amx-bf16,avx2,"  \
                          "fma"))),                                                                \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx512bf16,amx-tile,amx-bf16,avx2,fma")
#endif

#define DP_BF16_TILES
#define DP_TUNE "tune=sapphirerapids"
#define DP_LANES 16
#define DP_PANEL 32
#define DP_GROUP 16
#include "compute/cpu/fast_table.inl"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const dp_ops dp_ops_amx = DP_FAST_TABLE("amx", DP_BF16, );
#else
typedef int dp_no_amx; /* A file must declare something. */
#endif
