/* What fp32 and bf16 share. Private to codec_fp32.c and codec_bf16.c. */
#ifndef DP_COMPUTE_CODEC_CODEC_FLOATS_H
#define DP_COMPUTE_CODEC_CODEC_FLOATS_H

#include "compute/codec/codec_family.h"

/* All are finite and none passes DP_CODEC_VALUE_MAX. */
bool dp_codec_floats_in_range(const dp_codec_ops *ops, const float *a, size_t n);
/* The squares of dense runs, each summed serially in double. */
void dp_codec_floats_measure(dp_codec_run *runs, size_t n);

#endif
