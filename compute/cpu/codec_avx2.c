/* The loops of the codecs for AVX2. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "compute/cpu/codec_tables.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define DP_LANES 8
#include "compute/cpu/codec_fast.inl"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const dp_codec_ops dp_codec_ops_avx2 = DP_CODEC_FAST_TABLE("avx2");
#else
typedef int dp_no_codec_avx2; /* A file must declare something. */
#endif
