/* Optimizers over the arena of a model behind one interface: AdamW, LAMB, LARS and Muon, with
 * clipping by the global norm, in fp32 or with weights kept in bf16. Knows no schedule (schedule.h)
 * and no overflow rule (scaler.h).
 *
 * In the formulas g is the gradient divided by the loss scale and clipped, x the weights, t the
 * number of this step from 1; "matrix" is a tensor that takes weight decay, "vector" one that does
 * not (biases, gains of norms). Same bits for any number of threads, and for any cut of the arena
 * into parts at dp_optim_cut (zero.h). */
#ifndef DP_COMPUTE_MODEL_OPTIM_H
#define DP_COMPUTE_MODEL_OPTIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/run/manifest.h"
#include "base/status.h"
#include "compute/machine/pool.h"
#include "compute/model/model.h"

enum {
    DP_OPTIM_VECTORS_MAX = 3,
    DP_NORM_BLOCK =
        65536 /* elements of one task of a sum or a step; a multiple of DP_ARENA_ALIGN */
};

typedef struct dp_optim_options {
    float lr;
    float beta1;
    float beta2;
    float eps;
    float decay;      /* matrices only */
    float clip;       /* largest global gradient norm; 0: no clipping */
    float momentum;   /* LARS and Muon */
    float loss_scale; /* the factor in the gradients (scaler.h); 0: 1 */
} dp_optim_options;

typedef struct dp_optim_setup {
    const dp_model *model;   /* borrowed until close */
    dp_optim_kind kind;      /* 0: AdamW */
    dp_weights_kind weights; /* 0: fp32 */
    uint64_t seed;           /* of stochastic rounding */
    size_t part;             /* the part of the arena whose state is here (dp_optim_cut) */
    size_t parts;            /* number of parts; 0: one */
    size_t threads; /* of the pools that steps will get; 0: one. Muon has scratch for each */
} dp_optim_setup;

typedef struct dp_optim_piece dp_optim_piece;
typedef struct dp_muon dp_muon;

typedef struct dp_optim {
    dp_optim_setup setup; /* with its zeros replaced */
    size_t first;         /* the part is [first, last) of the arena; it may be empty */
    size_t last;
    float *m;        /* first moment or momentum of the part, last - first floats, owned */
    float *v;        /* second moment, the same; NULL for LARS */
    float *master;   /* fp32 weights behind bf16 ones, the same; NULL unless DP_WEIGHTS_BF16 */
    uint64_t steps;  /* steps since the moments were zero: t of the bias correction */
    double *partial; /* scratch, owned: sums of squares */
    dp_optim_piece *pieces; /* of the part, cut at blocks and tensors, owned */
    size_t n_pieces;
    double *sums;  /* scratch of LAMB and LARS: [n_pieces][2], owned */
    float *rates;  /* the same: [n_tensors] */
    dp_muon *muon; /* scratch of Muon, owned */
} dp_optim;

/* Moments start at 0. DP_BADARG: no such kind, weights or part; DP_NOMEM. */
DP_MUST dp_status dp_optim_init(dp_optim *optim, const dp_optim_setup *setup);
void dp_optim_close(dp_optim *optim);
/* Bytes of scratch beside the vectors that an optimizer of a whole model takes for products, for
 * this processor. */
size_t dp_optim_scratch_bytes(dp_optim_kind kind, const dp_model *model, size_t threads);
/* Sets moments, master weights and step count to 0. */
void dp_optim_reset(dp_optim *optim);

/* One step. params, grads: whole arenas; only the part changes, grads never.
 *
 * AdamW (Loshchilov, Hutter 2019, algorithm 2, decay times the learning rate):
 *     m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
 *     x -= lr (m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + decay x)
 * LAMB (You et al. 2020, algorithm 2, phi(z) = min(z, 10)): m, v as AdamW
 *     u = m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + decay x
 *     x -= lr r u,  r = phi(|x|)/|u| over each matrix, 1 if one of the norms is 0
 *   Vectors: r = 1, no decay (as its authors' code).
 * LARS (You, Gitman, Ginsburg 2017, algorithm 1):
 *     m = momentum m + lr r (g + decay x);  x -= m
 *     r = 0.001 |x| / (|g| + decay |x|) over each matrix
 *   Deviation: vectors, which may start at 0 and would stay there, take r = 0.001 and no decay; a
 *   matrix one of whose norms is 0 takes r = 0.001 with decay.
 * Muon (Jordan et al. 2024), on matrices inside the blocks:
 *     m = momentum m + g
 *     o = orthogonal factor of g + momentum m by five Newton-Schulz steps from X_0 = that / its
 *         Frobenius norm (newton_schulz.h; in bf16 where the processor is faster in it)
 *     x -= lr (0.2 sqrt(max(rows, columns)) o + decay x)
 *   The factor of o is that of Liu et al. 2025 (Moonlight): it gives o the size of AdamW's steps,
 *   so that one learning rate serves both, and it is the same for a transposed matrix. q, k and v,
 *   and gates and ups, which lie side by side in one tensor, are matrices of their own. Embeddings,
 *   head and vectors take AdamW.
 *
 * Weights: DP_WEIGHTS_FP32: x. DP_WEIGHTS_BF16_SR: x is rounded to bf16 after the step by
 * stochastic rounding (stochastic_rounding.h) with the key (seed, t, element). DP_WEIGHTS_BF16: the
 * step moves the master weights, and x is their nearest bf16; if x differs from that, because it
 * was changed from outside or this is the first step, the master starts from x.
 *
 * *norm (may be NULL): |g| before clipping. DP_DIVERGED when a gradient is not finite or the norm
 * passes 1e18: nothing is changed but *norm, and the caller skips the step. pool may be NULL. */
DP_MUST dp_status dp_optim_step(dp_optim *optim, float *params, const float *grads,
                                const dp_optim_options *options, dp_pool *pool, double *norm);
/* The same with a known norm: |grads| with the loss scale in it (dp_norm). */
DP_MUST dp_status dp_optim_step_with(dp_optim *optim, float *params, const float *grads,
                                     const dp_optim_options *options, dp_pool *pool, double norm);

/* A vector that a checkpoint keeps beside steps: last - first floats, lent until close, to read and
 * to fill. */
typedef struct dp_optim_vector {
    const char *name; /* "m", "v", "master" */
    float *values;
} dp_optim_vector;

/* Returns how many were written to out. */
size_t dp_optim_vectors(const dp_optim *optim, dp_optim_vector out[DP_OPTIM_VECTORS_MAX]);

/* The first element of part index of parts; index = parts: the end of the arena. AdamW is cut at
 * blocks of the arena, the others, which use whole tensors, between tensors. Parts may be empty. */
size_t dp_optim_cut(dp_optim_kind kind, const dp_model *model, size_t parts, size_t index);

/* |x| of n floats in double, summed in blocks of fixed size: the same bits for every number of
 * threads. NaN if some x is not a number. partial: dp_norm_blocks(n) doubles of scratch. */
double dp_norm(const float *x, size_t n, double *partial, dp_pool *pool);
size_t dp_norm_blocks(size_t n);
/* Sums of squares of blocks [first, last) only, into partial[first .. last). */
void dp_norm_part(const float *x, size_t n, double *partial, size_t first, size_t last,
                  dp_pool *pool);
/* |x| from all partial sums. */
double dp_norm_of(const double *partial, size_t n);

#endif
