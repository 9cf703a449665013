/* The optimizers of compute/model/optim.h on a card: state, tables and scratch, and the order of
 * kernels and products of a step. The kernels are those of optim.h of this folder. Exact where
 * those are; Muon's products are gemm's. */
#ifndef DP_COMPUTE_CUDA_ENGINE_OPTIM_H
#define DP_COMPUTE_CUDA_ENGINE_OPTIM_H

#include "compute/cuda/gemm.h"
#include "compute/cuda/memory.h"
#include "compute/cuda/optim.h"
#include "compute/model/optim.h"

typedef struct dp_cuda_optimizer {
    const dp_model *model; /* borrowed */
    dp_cuda_device *device;
    dp_cuda_gemm *gemm;
    dp_optim_kind kind;
    dp_weights_kind weights;
    uint64_t seed;
    uint64_t steps; /* since the moments were zero */
    /* the part is [first, first + n) of the arena, as dp_optim_cut has it; it may be empty */
    size_t first;
    size_t n;
    size_t n_pieces; /* of the part */
    size_t n_adamw;  /* pieces that AdamW moves: all, or those that Muon leaves */

    /* Of the card. */
    float *m;
    float *v;              /* NULL for LARS */
    float *master;         /* NULL unless DP_WEIGHTS_BF16 */
    size_t state_bytes;    /* of these three, from m on */
    dp_cuda_piece *pieces; /* those of AdamW first, in order; then Muon's */
    dp_cuda_pieces_of *tensors;
    double *partial; /* dp_norm_blocks(n) */
    double *norm;
    double *sums;
    float *rates;
    float *turned; /* Muon: a matrix, the next one, and two squares of its lesser side */
    float *next;
    float *gram;
    float *poly;

    dp_cuda_optim_terms *terms; /* of the step under way */

    double *host_partial;            /* owned, of the host */
    dp_cuda_optim_terms *host_terms; /* page-locked, lent by the engine */
} dp_cuda_optimizer;

/* Sizes; device and gemm come later. Owns host_partial. DP_BADARG, DP_NOMEM. */
DP_MUST dp_status dp_cuda_optimizer_open(dp_cuda_optimizer *o, const dp_optim_setup *setup);
/* The same without the host's half, for counting only. */
DP_MUST dp_status dp_cuda_optimizer_sizes(dp_cuda_optimizer *o, const dp_optim_setup *setup);
void dp_cuda_optimizer_close(dp_cuda_optimizer *o);
void dp_cuda_optimizer_carve(dp_cuda_optimizer *o, dp_cuda_arena *arena);
/* After carving from a real arena: the tables go to the card, the state is 0. DP_NOMEM, DP_IO. */
DP_MUST dp_status dp_cuda_optimizer_start(dp_cuda_optimizer *o);
/* State and steps back to 0. */
DP_MUST dp_status dp_cuda_optimizer_reset(dp_cuda_optimizer *o);
/* Sums of squares of the blocks of n floats of the card, in host_partial, which has room for those
 * of the whole arena. */
DP_MUST dp_status dp_cuda_optimizer_squares(dp_cuda_optimizer *o, const float *x, size_t n);
/* |x| of the whole arena, summed in blocks as dp_norm does. */
DP_MUST dp_status dp_cuda_optimizer_norm(dp_cuda_optimizer *o, const float *x, double *norm);
/* dp_optim_step_with in two: the terms of the step, in memory of the host, then all that goes to
 * the card, which reads them there and is the same for every step of one x and one grads, so that
 * it can be captured. DP_DIVERGED: as there; no step begins. */
DP_MUST dp_status dp_cuda_optimizer_begin(dp_cuda_optimizer *o, const dp_optim_options *options,
                                          double norm);
/* x, grads: the whole; the part of x moves. */
DP_MUST dp_status dp_cuda_optimizer_move(dp_cuda_optimizer *o, float *x, const float *grads);

#endif
