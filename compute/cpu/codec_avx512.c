/* The loops of the codecs for AVX-512. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "compute/cpu/codec_tables.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2"))),   \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2")
#endif

#define DP_LANES 16
#include "compute/cpu/codec_fast.inl"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const dp_codec_ops dp_codec_ops_avx512 = DP_CODEC_FAST_TABLE("avx512");
#else
typedef int dp_no_codec_avx512; /* A file must declare something. */
#endif
