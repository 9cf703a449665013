/* The tables of this build; ops.c chooses among them. A suffix is a precision, else fp32. */
#ifndef DP_COMPUTE_CPU_TABLES_H
#define DP_COMPUTE_CPU_TABLES_H

#include "compute/cpu/ops.h"

extern const dp_ops dp_ops_plain;
extern const dp_ops dp_ops_plain_bf16;
extern const dp_ops dp_ops_plain_fp16;
extern const dp_ops dp_ops_generic;
extern const dp_ops dp_ops_generic_bf16;
extern const dp_ops dp_ops_generic_fp16;
#if defined(__x86_64__)
extern const dp_ops dp_ops_avx2;
extern const dp_ops dp_ops_avx2_bf16;
extern const dp_ops dp_ops_avx2_fp16;
extern const dp_ops dp_ops_avx512;
extern const dp_ops dp_ops_avx512_bf16;
extern const dp_ops dp_ops_avx512_fp16;
extern const dp_ops dp_ops_avx512bf16; /* with its own instruction */
extern const dp_ops dp_ops_amx;        /* with tiles */
#endif

#endif
