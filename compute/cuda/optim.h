/* Kernels of the optimizers of compute/model/optim.h, whose formulas and letters these are, over
 * pieces of the arena as optim.c cuts them: elements of one tensor in one block of DP_NORM_BLOCK.
 * One rounded operation after another, in the order of the CPU's plain loops; only sums of squares
 * are added in another (fixed) order, so steps that take no norm from them have the CPU's bits.
 *
 * x, m, v, master and grads are whole vectors of the arena here. Pieces: in device memory; their
 * bounds are multiples of 4. So are the terms, which change from step to step: a captured graph
 * reads those of the step that comes. */
#ifndef DP_COMPUTE_CUDA_OPTIM_H
#define DP_COMPUTE_CUDA_OPTIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dp_cuda_piece {
    uint64_t from; /* elements of the arena */
    uint64_t to;
    uint32_t tensor;
    uint32_t decays; /* 1: a matrix */
} dp_cuda_piece;

/* A tensor whose pieces follow each other from first on. In device memory too. */
typedef struct dp_cuda_pieces_of {
    uint32_t first;
    uint32_t count;
    uint32_t decays;
    uint32_t padding;
} dp_cuda_pieces_of;

struct dp_model;
/* The pieces of a model's arena, and each tensor's; either may be NULL. Returns how many pieces.
 * Host memory. */
size_t dp_cuda_optim_table(const struct dp_model *model, dp_cuda_piece *pieces,
                           dp_cuda_pieces_of *tensors);

/* ---- Norms. Sums in double by a fixed tree: the same bits for the same n. */

/* partial[i]: sum of squares of elements [i DP_NORM_BLOCK, (i+1) DP_NORM_BLOCK) of x. partial:
 * dp_norm_blocks(n) doubles. */
DP_MUST dp_status dp_cuda_squares(const float *x, size_t n, double *partial, cudaStream_t stream);
/* *norm = root of the sum of count partials. */
DP_MUST dp_status dp_cuda_norm_of(const double *partial, size_t count, double *norm,
                                  cudaStream_t stream);

/* ---- AdamW. */

typedef struct dp_cuda_adamw_terms {
    float lr; /* lr / (1 - beta1^t) */
    float beta1;
    float beta2;
    float eps;
    float lr_decay; /* lr decay; of pieces that decay */
    float v_scale;  /* 1 / (1 - beta2^t) */
    float grad_scale;
} dp_cuda_adamw_terms;

DP_MUST dp_status dp_cuda_adamw(float *x, float *m, float *v, const float *grads,
                                const dp_cuda_piece *pieces, size_t n_pieces,
                                const dp_cuda_adamw_terms *terms, cudaStream_t stream);

/* ---- LAMB and LARS: look, then rates, then move. sums: 2 doubles a piece; rates: a float a
 * tensor. */

typedef struct dp_cuda_layer_terms {
    float lr;
    float beta1; /* LAMB; LARS: momentum */
    float beta2;
    float eps;
    float decay;
    float m_scale; /* 1 / (1 - beta1^t) */
    float v_scale;
    float grad_scale;
} dp_cuda_layer_terms;

/* Moments; sums of squares of x and u. */
DP_MUST dp_status dp_cuda_lamb_look(const float *x, float *m, float *v, const float *grads,
                                    const dp_cuda_piece *pieces, size_t n_pieces,
                                    const dp_cuda_layer_terms *terms, double *sums,
                                    cudaStream_t stream);
DP_MUST dp_status dp_cuda_lamb_rates(const double *sums, const dp_cuda_pieces_of *tensors,
                                     size_t n_tensors, float *rates, cudaStream_t stream);
DP_MUST dp_status dp_cuda_lamb_move(float *x, const float *m, const float *v,
                                    const dp_cuda_piece *pieces, size_t n_pieces,
                                    const dp_cuda_layer_terms *terms, const float *rates,
                                    cudaStream_t stream);
/* Sums of squares of x and the gradient as it comes. */
DP_MUST dp_status dp_cuda_lars_look(const float *x, const float *grads, const dp_cuda_piece *pieces,
                                    size_t n_pieces, double *sums, cudaStream_t stream);
DP_MUST dp_status dp_cuda_lars_rates(const double *sums, const dp_cuda_pieces_of *tensors,
                                     size_t n_tensors, const dp_cuda_layer_terms *terms,
                                     float *rates, cudaStream_t stream);
DP_MUST dp_status dp_cuda_lars_move(float *x, float *m, const float *grads,
                                    const dp_cuda_piece *pieces, size_t n_pieces,
                                    const dp_cuda_layer_terms *terms, const float *rates,
                                    cudaStream_t stream);

typedef struct dp_cuda_muon_terms {
    float lr;
    float decay;
    float momentum;
    float grad_scale;
} dp_cuda_muon_terms;

/* All that a step of any optimizer reads of its options. */
typedef struct dp_cuda_optim_terms {
    dp_cuda_adamw_terms adamw;
    dp_cuda_layer_terms layer;
    dp_cuda_muon_terms muon;
    uint32_t padding;
    uint64_t step; /* the number of this one: key of rounding by chance */
} dp_cuda_optim_terms;

/* ---- Muon, around the products of gemm.h. A matrix of rows x columns stands in a tensor at row
 * distance stride; o, gram and poly are dense. */

/* momentum = keep momentum + g; o = g + keep momentum, keep: the terms' momentum. grads and
 * momentum: in the tensor. */
DP_MUST dp_status dp_cuda_muon_momentum(float *momentum, const float *grads, size_t stride,
                                        size_t rows, size_t columns,
                                        const dp_cuda_muon_terms *terms, float *o,
                                        cudaStream_t stream);
/* o *= 1 / (*norm + 1e-7), norm in device memory. */
DP_MUST dp_status dp_cuda_muon_scale(float *o, size_t n, const double *norm, cudaStream_t stream);
/* poly = aI + b gram + c poly, where poly holds gram squared; [side][side]. */
DP_MUST dp_status dp_cuda_muon_poly(float *poly, const float *gram, size_t side,
                                    cudaStream_t stream);
/* x -= lr decay x + (0.2 lr root) o (Liu et al. 2025), the factor in double; decays 0: without
 * decay. x: in the tensor. */
DP_MUST dp_status dp_cuda_muon_move(float *x, size_t stride, const float *o, size_t rows,
                                    size_t columns, uint32_t decays, double root,
                                    const dp_cuda_muon_terms *terms, cudaStream_t stream);

/* ---- Weights kept in bf16, to the bit (optim.h, stochastic_rounding.h). */

/* Before the step: a master whose nearest bf16 is not x starts from x. */
DP_MUST dp_status dp_cuda_masters(float *master, const float *x, size_t n, cudaStream_t stream);
/* After it: x = nearest bf16 of the master. */
DP_MUST dp_status dp_cuda_nearest(float *x, const float *master, size_t n, cudaStream_t stream);
/* x rounded to bf16 by chance with key (seed, *step); x[0] is element first of the arena, a
 * multiple of 8. */
DP_MUST dp_status dp_cuda_chance(float *x, size_t n, uint64_t first, uint64_t seed,
                                 const uint64_t *step, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
