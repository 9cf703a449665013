/* Error feedback (Seide et al. 2014; Karimireddy et al. 2019): what compression, clipping or
 * lateness kept out of a round goes into a later one. The arithmetic only; the trainer owns the
 * vectors.
 *
 * Local state of one node, so its bits need not agree with anybody's. All vectors: n floats. */
#ifndef DP_COMPUTE_CODEC_FEEDBACK_H
#define DP_COMPUTE_CODEC_FEEDBACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* a = e + (from - to): what a node wants to publish, where from - to is its displacement since the
 * last settled point. DP_DIVERGED if some a is not finite; then a may not be used. a may be e. */
DP_MUST dp_status dp_feedback_publish(float *a, const float *e, const float *from, const float *to,
                                      size_t n);
/* a = from - to, with the same rule. */
DP_MUST dp_status dp_feedback_difference(float *a, const float *from, const float *to, size_t n);
/* The publication stands in a record: e = beta * (a - clip * d), d the decoded blob, clip in Q16
 * (65536 = not clipped). What was clipped away stays. (With clip = 1 the usual e = beta * (a - d).)
 * e may be a. */
void dp_feedback_included(float *e, const float *a, const float *d, uint32_t clip, float beta,
                          size_t n);
/* x *= lambda / 65536: work that aged while its node was away. */
void dp_feedback_scale(float *x, uint32_t lambda, size_t n);

#endif
