/* Vectors of four floats, which every 64-bit processor has (SSE2, NEON). */
#include "compute/cpu/tables.h"

#define DP_LANES 4
#define DP_PANEL 8
#define DP_GROUP 4
#include "compute/cpu/fast_table.inl"

const dp_ops dp_ops_generic = DP_FAST_TABLE("generic", DP_FP32, );
const dp_ops dp_ops_generic_bf16 = DP_FAST_TABLE("generic-bf16", DP_BF16, _bf16);
const dp_ops dp_ops_generic_fp16 = DP_FAST_TABLE("generic-fp16", DP_FP16, _fp16);
