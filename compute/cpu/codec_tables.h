/* The tables of this build; codec_ops.c chooses among them. */
#ifndef DP_COMPUTE_CPU_CODEC_TABLES_H
#define DP_COMPUTE_CPU_CODEC_TABLES_H

#include "compute/cpu/codec_ops.h"

extern const dp_codec_ops dp_codec_ops_plain;
#if defined(__x86_64__)
extern const dp_codec_ops dp_codec_ops_avx2;
extern const dp_codec_ops dp_codec_ops_avx512;
#endif

#endif
