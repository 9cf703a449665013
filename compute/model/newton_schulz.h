/* The orthogonal factor of a matrix by matrix products alone: five quintic Newton-Schulz steps
 * (Jordan et al. 2024). Knows no optimizer.
 *
 *     X <- p(XX') X,  p(A) = aI + bA + cA^2,  (a, b, c) = (3.4445, -4.7750, 2.0315)
 *
 * for a wide X, and X <- X p(X'X) for a tall one, which is the same and has the lesser square. All
 * squares are symmetric, and of a product of two only the half on the diagonal and right of it is
 * computed.
 *
 * A matrix whose longer side is at least twice the lesser takes its steps in the square (Zhang,
 * Amsel, Chen, Dao 2026, "Gram Newton-Schulz"): with A = XX' and Q = I, a step is
 *     P = p(A),  Q <- PQ,  A <- PAP
 * and X <- QX comes at the end: two products with X for several steps. Roundings give A eigenvalues
 * below 0, which grow twelvefold with each step; hence X is made after three of the five steps too,
 * and A comes from it again. Deviation: they do it after two, in fp16; in bf16 that is three times
 * as far from the definition (test_newton_schulz).
 *
 * Products take bf16 where the processor multiplies it faster than fp32, in matrices with a lesser
 * side of at least DP_NS_BF16_SIDE, and fp32 elsewhere. Sums are fp32; between products matrices
 * are kept as products take them, but for A. The same bits for every number of threads, but not on
 * every processor. A card takes all five steps with X, in fp32 whose factors tensor cores
 * round to TF32 where the CPU may take bf16 (compute/cuda/engine_optim.c, not yet run on a GPU). */
#ifndef DP_COMPUTE_MODEL_NEWTON_SCHULZ_H
#define DP_COMPUTE_MODEL_NEWTON_SCHULZ_H

#include "compute/cpu/ops.h"
#include "compute/machine/pool.h"

enum { DP_NS_BF16_SIDE = 128 };

/* Floats of scratch, the most of all matrices that dp_ns_widen was given. */
typedef struct dp_ns_room {
    bool together; /* several threads go through one matrix */
    size_t matrix;
    size_t square;
    size_t part;
    size_t packed;
    size_t packed_square;
} dp_ns_room;

/* Scratch for one matrix at a time. */
typedef struct dp_newton_schulz {
    float *x;         /* the matrix, [rows][columns] dense */
    float *a;         /* A, on the diagonal and right of it */
    float *part;      /* of a product, before it is packed */
    float *by_longer; /* X packed in panels of its longer side's elements */
    float *by_side;   /* the same of its lesser side's */
    float *packed_a;
    float *packed_p;
    float *packed_q;
    float *spare; /* a packed square */
} dp_newton_schulz;

/* Widens the room for a matrix of this shape. */
void dp_ns_widen(dp_ns_room *room, size_t rows, size_t columns);
/* Floats that dp_ns_carve takes, a multiple of 64 bytes. */
size_t dp_ns_floats(const dp_ns_room *room);
/* memory: dp_ns_floats, 64-byte aligned, borrowed. */
void dp_ns_carve(dp_newton_schulz *ns, const dp_ns_room *room, float *memory);

/* ns->x becomes its orthogonal factor, singular values between 0.7 and 1.2 for those that were not
 * near 0. Its Frobenius norm is at most 1. pool: NULL unless the room is for threads together. */
void dp_newton_schulz_run(dp_newton_schulz *ns, size_t rows, size_t columns, dp_pool *pool);

#endif
