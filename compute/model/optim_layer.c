/* LAMB and LARS: steps whose length follows the norm of each tensor. Sums run over pieces in their
 * order, so that they do not depend on threads. */
#include <math.h>

#include "compute/model/optim_inside.h"

enum { RUN = 256 }; /* elements treated together */

static const float lamb_norm_max = 10.0F; /* of phi */
static const float lars_trust = 0.001F;   /* You, Gitman, Ginsburg 2017, section 5 */

/* ---- LAMB. */

/* u of n elements at x, m, v. */
static void lamb_direction(const dp_optim_job *job, const float *x, const float *m, const float *v,
                           float decay, size_t n, float *u)
{
    const float m_scale = (float)(1.0 / job->correct1);
    const float v_scale = (float)(1.0 / job->correct2);
    const float eps = job->options->eps;
    for (size_t i = 0; i < n; i++) {
        u[i] = m[i] * m_scale / (sqrtf(v[i] * v_scale) + eps) + decay * x[i];
    }
}

static float decay_of(const dp_optim_job *job, const dp_optim_piece *piece)
{
    return dp_optim_tensor(job->optim, piece)->decay ? job->options->decay : 0.0F;
}

static void lamb_moments(const dp_optim_job *job, size_t at, float *m, float *v, size_t n)
{
    const float *const grads = job->grads + at;
    const float keep1 = 1.0F - job->options->beta1;
    const float keep2 = 1.0F - job->options->beta2;
    for (size_t i = 0; i < n; i++) {
        const float g = grads[i] * job->grad_scale;
        m[i] += keep1 * (g - m[i]);
        v[i] += keep2 * (g * g - v[i]);
    }
}

/* Moments, and the squares of x and u. */
static void lamb_look(void *ctx, size_t index, size_t worker)
{
    const dp_optim_job *job = ctx;
    (void)worker;
    const dp_optim_piece *piece = &job->optim->pieces[index];
    double *const sums = job->optim->sums + 2 * index;
    sums[0] = 0.0;
    sums[1] = 0.0;
    for (size_t at = piece->from; at < piece->to; at += RUN) {
        const size_t n = piece->to - at < RUN ? piece->to - at : RUN;
        const float *const x = job->x + (at - job->x_first);
        float *const m = job->optim->m + (at - job->optim->first);
        float *const v = job->optim->v + (at - job->optim->first);
        float u[RUN];
        lamb_moments(job, at, m, v, n);
        lamb_direction(job, x, m, v, decay_of(job, piece), n, u);
        sums[0] += job->ops->sum_of_squares(x, n);
        sums[1] += job->ops->sum_of_squares(u, n);
    }
}

static void lamb_move(void *ctx, size_t index, size_t worker)
{
    const dp_optim_job *job = ctx;
    (void)worker;
    const dp_optim_piece *piece = &job->optim->pieces[index];
    const float rate = job->options->lr * job->optim->rates[piece->tensor];
    for (size_t at = piece->from; at < piece->to; at += RUN) {
        const size_t n = piece->to - at < RUN ? piece->to - at : RUN;
        const size_t here = at - job->optim->first;
        float *const x = job->x + (at - job->x_first);
        float u[RUN];
        lamb_direction(job, x, job->optim->m + here, job->optim->v + here, decay_of(job, piece), n,
                       u);
        for (size_t i = 0; i < n; i++) {
            x[i] -= rate * u[i];
        }
    }
}

/* Norms of both sums over the tensor whose pieces begin at *index, which moves behind them. */
static void norms_of(const dp_optim *optim, size_t *index, double norms[2])
{
    const size_t tensor = optim->pieces[*index].tensor;
    norms[0] = 0.0;
    norms[1] = 0.0;
    for (; *index < optim->n_pieces && optim->pieces[*index].tensor == tensor; (*index)++) {
        norms[0] += optim->sums[2 * *index];
        norms[1] += optim->sums[2 * *index + 1];
    }
    norms[0] = sqrt(norms[0]);
    norms[1] = sqrt(norms[1]);
}

void dp_optim_lamb(dp_optim_job *job, dp_pool *pool)
{
    const dp_optim *const optim = job->optim;
    dp_pool_run(pool, optim->n_pieces, lamb_look, job);
    for (size_t index = 0; index < optim->n_pieces;) {
        const dp_tensor *const tensor = dp_optim_tensor(optim, &optim->pieces[index]);
        const size_t at = optim->pieces[index].tensor;
        double norms[2];
        norms_of(optim, &index, norms);
        const double phi = fmin(norms[0], (double)lamb_norm_max);
        const bool adapts = tensor->decay && norms[0] > 0.0 && norms[1] > 0.0;
        optim->rates[at] = adapts ? (float)(phi / norms[1]) : 1.0F;
    }
    dp_pool_run(pool, optim->n_pieces, lamb_move, job);
}

/* ---- LARS. */

static void lars_look(void *ctx, size_t index, size_t worker)
{
    const dp_optim_job *job = ctx;
    (void)worker;
    const dp_optim_piece *piece = &job->optim->pieces[index];
    const size_t n = piece->to - piece->from;
    double *const sums = job->optim->sums + 2 * index;
    sums[0] = job->ops->sum_of_squares(job->x + (piece->from - job->x_first), n);
    sums[1] = job->ops->sum_of_squares(job->grads + piece->from, n);
}

static void lars_move(void *ctx, size_t index, size_t worker)
{
    const dp_optim_job *job = ctx;
    (void)worker;
    const dp_optim_piece *piece = &job->optim->pieces[index];
    const float rate = job->options->lr * job->optim->rates[piece->tensor];
    const float momentum = job->options->momentum;
    const float decay = decay_of(job, piece);
    const float *const grads = job->grads + piece->from;
    float *const x = job->x + (piece->from - job->x_first);
    float *const m = job->optim->m + (piece->from - job->optim->first);
    for (size_t i = 0; i < piece->to - piece->from; i++) {
        m[i] = momentum * m[i] + rate * (grads[i] * job->grad_scale + decay * x[i]);
        x[i] -= m[i];
    }
}

void dp_optim_lars(dp_optim_job *job, dp_pool *pool)
{
    const dp_optim *const optim = job->optim;
    dp_pool_run(pool, optim->n_pieces, lars_look, job);
    for (size_t index = 0; index < optim->n_pieces;) {
        const dp_tensor *const tensor = dp_optim_tensor(optim, &optim->pieces[index]);
        const size_t at = optim->pieces[index].tensor;
        double norms[2];
        norms_of(optim, &index, norms);
        const double gradient = norms[1] * (double)job->grad_scale;
        const bool adapts = tensor->decay && norms[0] > 0.0 && gradient > 0.0;
        const double local = norms[0] / (gradient + (double)job->options->decay * norms[0]);
        optim->rates[at] = lars_trust * (adapts ? (float)local : 1.0F);
    }
    dp_pool_run(pool, optim->n_pieces, lars_move, job);
}
