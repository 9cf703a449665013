/* AdamW over the arena of a model (Loshchilov, Hutter 2019, algorithm 2, with the decay term times the learning rate), and
 * clipping by the global norm. Knows no schedule (schedule.h). */
#ifndef DP_COMPUTE_OPTIM_H
#define DP_COMPUTE_OPTIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "compute/model.h"
#include "compute/pool.h"

typedef struct dp_adamw_options {
    float lr;
    float beta1;
    float beta2;
    float eps;
    float decay; /* only for tensors marked so */
    float clip;  /* largest global gradient norm; 0: no clipping */
} dp_adamw_options;

typedef struct dp_adamw {
    const dp_model *model; /* borrowed */
    float *m;              /* first moment, model->n_elements, owned */
    float *v;              /* second moment, the same */
    uint64_t steps;        /* done since the moments were zero: the bias correction's t */
    double *partial;       /* sums of squares per block, owned scratch */
} dp_adamw;

/* Moments at 0. DP_NOMEM. */
DP_MUST dp_status dp_adamw_init(dp_adamw *adamw, const dp_model *model);
void dp_adamw_close(dp_adamw *adamw);
/* Moments and step count back to 0. */
void dp_adamw_reset(dp_adamw *adamw);

/* g = grads * min(1, clip/|grads|); m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
 * params -= lr * (m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + decay * params). grads are not changed.
 * *norm (may be NULL): |grads| before clipping. DP_DIVERGED when a gradient is not finite or the norm passes 1e18:
 * nothing is changed but *norm, and the caller skips the step. pool may be NULL. */
DP_MUST dp_status dp_adamw_step(dp_adamw *adamw, float *params, const float *grads,
                                const dp_adamw_options *options, dp_pool *pool, double *norm);

/* |x| of n floats in double, summed in blocks of fixed size: the same bits for every number of threads. NaN if some
 * x is not a number. partial: dp_norm_blocks(n) doubles of scratch. */
double dp_norm(const float *x, size_t n, double *partial, dp_pool *pool);
size_t dp_norm_blocks(size_t n);

#endif
