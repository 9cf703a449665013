/* Error feedback (Seide et al. 2014; Karimireddy et al. 2019): the part of an update that
 * compression, clipping or lateness keeps out of a round goes into a later one. Arithmetic only;
 * the trainer owns the vectors.
 *
 * This is local state of a node, so its bits may differ between nodes. All vectors: n floats. */
#ifndef DP_COMPUTE_CODEC_FEEDBACK_H
#define DP_COMPUTE_CODEC_FEEDBACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* a = e + (from - to): the vector to publish, where from - to is the displacement since the last
 * settled point. DP_DIVERGED: some a is not finite; a is then undefined. a may be e. */
DP_MUST dp_status dp_feedback_publish(float *a, const float *e, const float *from, const float *to,
                                      size_t n);
/* a = from - to; same rule. */
DP_MUST dp_status dp_feedback_difference(float *a, const float *from, const float *to, size_t n);
/* For a publication in a record: e = beta * (a - clip * d), d the decoded blob, clip in Q16 (65536:
 * not clipped), so that clipped work stays in e. e may be a. */
void dp_feedback_included(float *e, const float *a, const float *d, uint32_t clip, float beta,
                          size_t n);
/* x *= lambda / 65536: ages work whose node was away. */
void dp_feedback_scale(float *x, uint32_t lambda, size_t n);

#endif
