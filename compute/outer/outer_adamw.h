/* AdamW as the outer step of a run that exchanges gradients: every replica moves theta by the mean
 * gradient of a round, and keeps the moments, to the last bit alike. Exact order, no threads inside
 * a sum, no contraction, no function of the C library but the square root, which IEEE 754 defines.
 * Knows no record and no schedule; the rate comes in.
 *
 *   |g| = sqrt of the sum of g^2: exact products in double, added element by element within runs of
 *     DP_CODEC_RUN, then run by run
 *   h = s g,  s = float(clip / |g|) where |g| > clip > 0, else 1
 *   m = m + (1 - b1)(h - m);  v = v + (1 - b2)(h h - v)
 *   theta = theta - ((lr decay) theta + (lr_1 m) / (sqrt(v c_2) + eps)),
 *   lr_1 = float(lr / (1 - b1^t)),  c_2 = float(1 / (1 - b2^t)),  decay 0 for vectors
 * every operation a rounded float one, powers by repeated squaring in double: Loshchilov, Hutter
 * 2019, algorithm 2, in the form of optim.h, so that a node alone takes the same steps with either,
 * to rounding. */
#ifndef DP_COMPUTE_OUTER_OUTER_ADAMW_H
#define DP_COMPUTE_OUTER_OUTER_ADAMW_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "compute/model/model.h"

typedef struct dp_outer_adamw {
    float lr;
    float beta1;
    float beta2;
    float eps;
    float decay;   /* matrices only */
    float clip;    /* of the global norm; 0: none */
    uint64_t step; /* t, from 1: the round that this step closes */
} dp_outer_adamw;

/* |g| of n floats. */
double dp_outer_adamw_norm(const float *g, size_t n);
/* One step. All vectors: model->n_elements floats. g: the mean gradient, replaced by the new theta.
 * DP_DIVERGED: a result is not finite; g, m and v are then undefined. */
DP_MUST dp_status dp_outer_adamw_step(const dp_model *model, const dp_outer_adamw *options,
                                      const float *theta, float *m, float *v, float *g);

#endif
