#include "compute/outer/outer_adamw.h"

#include <math.h>
#include <stdbool.h>

#include "base/assert.h"
#include "compute/codec/codec.h"

/* Constants of a step, for each element. */
typedef struct terms {
    float scale; /* of the gradient */
    float keep1; /* 1 - beta1 */
    float keep2;
    float lr;
    float v_scale;
    float eps;
    float lr_decay;
} terms;

/* By squaring: the C library's pow may differ in its last bit from one machine to the next. */
static double power(double base, uint64_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if ((exponent & 1) != 0) {
            result *= base;
        }
        base *= base;
    }
    return result;
}

double dp_outer_adamw_norm(const float *g, size_t n)
{
    double total = 0;
    for (size_t at = 0; at < n; at += DP_CODEC_RUN) {
        const size_t end = n - at < DP_CODEC_RUN ? n : at + DP_CODEC_RUN;
        double run = 0;
        for (size_t i = at; i < end; i++) {
            run += (double)g[i] * (double)g[i];
        }
        total += run;
    }
    return sqrt(total);
}

static bool step_part(const terms *t, const float *theta, float *m, float *v, float *g, size_t n)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        const float h = g[i] * t->scale;
        m[i] += t->keep1 * (h - m[i]);
        v[i] += t->keep2 * (h * h - v[i]);
        const float root = sqrtf(v[i] * t->v_scale) + t->eps;
        g[i] = theta[i] - (t->lr_decay * theta[i] + t->lr * m[i] / root);
        finite = finite && isfinite(g[i]) && isfinite(m[i]) && isfinite(v[i]);
    }
    return finite;
}

dp_status dp_outer_adamw_step(const dp_model *model, const dp_outer_adamw *options,
                              const float *theta, float *m, float *v, float *g)
{
    dp_assert(options->step > 0);
    const double length = dp_outer_adamw_norm(g, model->n_elements);
    const double clip = (double)options->clip;
    const double correct1 = 1 - power((double)options->beta1, options->step);
    const double correct2 = 1 - power((double)options->beta2, options->step);
    terms t = {.scale = clip > 0 && length > clip ? (float)(clip / length) : 1.0F,
               .keep1 = 1.0F - options->beta1,
               .keep2 = 1.0F - options->beta2,
               .lr = (float)((double)options->lr / correct1),
               .v_scale = (float)(1 / correct2),
               .eps = options->eps};
    bool finite = true;
    for (size_t i = 0; i < model->n_tensors; i++) {
        /* Up to the next tensor: the padding between is zero and stays so. */
        const size_t at = model->tensors[i].offset;
        const size_t end =
            i + 1 < model->n_tensors ? model->tensors[i + 1].offset : model->n_elements;
        t.lr_decay = model->tensors[i].decay ? options->lr * options->decay : 0.0F;
        finite = step_part(&t, theta + at, m + at, v + at, g + at, end - at) && finite;
    }
    return finite ? DP_OK : DP_DIVERGED;
}
