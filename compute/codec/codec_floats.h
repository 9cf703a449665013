/* Checks and energy of the codecs that send every value as a float. Private to codec_fp32.c and
 * codec_bf16.c. */
#ifndef DP_COMPUTE_CODEC_CODEC_FLOATS_H
#define DP_COMPUTE_CODEC_CODEC_FLOATS_H

#include "compute/codec/codec_family.h"

/* True if all values are finite and at most DP_CODEC_VALUE_MAX. */
bool dp_codec_floats_in_range(const dp_codec_ops *ops, const float *a, size_t n);
/* Sets square of dense runs, each summed serially in double. */
void dp_codec_floats_measure(dp_codec_run *runs, size_t n);

#endif
