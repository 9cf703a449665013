/* Uniform quantization with one scale per block, for int8 and int4. Private to codec_int8.c and
 * codec_int4.c. */
#ifndef DP_COMPUTE_CODEC_CODEC_STEPS_H
#define DP_COMPUTE_CODEC_CODEC_STEPS_H

#include "compute/codec/codec_family.h"

/* Sets *half, the block's scale as fp16, and q[i] = nearest(a[i] / scale) in -most..most. The scale
 * is the largest magnitude / most, rounded up, so that no value needs more steps unless the scale
 * is at its limit. It is one unit of fp16 less if the largest step fits that too (subnormal
 * scales), so that decoded values are encoded alike. DP_DIVERGED: some a is not finite. */
dp_status dp_codec_steps_of(const dp_codec_ops *ops, const float *a, size_t length, float most,
                            uint16_t *half, int8_t *q);

#endif
