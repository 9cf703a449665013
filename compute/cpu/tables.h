/* The tables of this build; ops.c chooses among them. */
#ifndef DP_COMPUTE_CPU_TABLES_H
#define DP_COMPUTE_CPU_TABLES_H

#include "compute/ops.h"

extern const dp_ops dp_ops_plain;
extern const dp_ops dp_ops_generic;
#if defined(__x86_64__)
extern const dp_ops dp_ops_avx2;
extern const dp_ops dp_ops_avx512;
#endif

#endif
