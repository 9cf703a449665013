/* Kernels of a round: the operations of compute/outer/consensus.h and feedback.h, to the bit, and
 * the exchange of pairs (backend.h, mix). A run of 4096 elements is a block's.
 *
 * Vectors: n floats at 256 bytes. bad as in vectors.h. */
#ifndef DP_COMPUTE_CUDA_OUTER_H
#define DP_COMPUTE_CUDA_OUTER_H

#include "compute/cuda/codecs.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DP_CUDA_ITEMS_MAX = 32, /* DP_TRAINER_ITEMS_MAX: the sum of slices comes alone */
    DP_CUDA_OUTER_SUMS = 3
};

/* In the order of the sum; f = q 2^-31. */
typedef struct dp_cuda_items {
    dp_cuda_blob blobs[DP_CUDA_ITEMS_MAX];
    float f[DP_CUDA_ITEMS_MAX];
    uint32_t count;
    uint32_t padding;
} dp_cuda_items;

/* Lengths of a step with momentum, as of dp_outer_seen. */
typedef struct dp_cuda_nesterov {
    float mu;
    float eta;
    float in_m; /* s below */
    float once; /* r below */
} dp_cuda_nesterov;

/* theta = theta - step g. DP_BADARG: more than DP_CUDA_ITEMS_MAX, here as below. */
DP_MUST dp_status dp_cuda_outer_plain(float *theta, size_t n, const dp_cuda_items *items,
                                      float step, uint32_t *bad, cudaStream_t stream);
/* Of each run <mu m + g, g>, <g, g> and <m, m>, summed element by element:
 * sums[runs(n)][DP_CUDA_OUTER_SUMS]. The host adds them run by run. */
DP_MUST dp_status dp_cuda_outer_measure(const float *m, size_t n, const dp_cuda_items *items,
                                        float mu, double *sums, cudaStream_t stream);
/* u = s g; m = (mu m) + u; theta = theta - ((eta (u + (mu m))) + (r g)). */
DP_MUST dp_status dp_cuda_outer_nesterov(float *theta, float *m, size_t n,
                                         const dp_cuda_items *items, const dp_cuda_nesterov *step,
                                         uint32_t *bad, cudaStream_t stream);
/* e = beta (a - clip d), d the decoded blob, clip in Q16. e may be a. */
DP_MUST dp_status dp_cuda_settle(float *e, const float *a, size_t n, const dp_cuda_blob *blob,
                                 uint32_t clip, float beta, cudaStream_t stream);
/* c = float(share (double(other) - double(own))); frozen += c; x -= c. sums[runs(n)]: of c, in
 * double by a fixed tree. */
DP_MUST dp_status dp_cuda_mix(float *frozen, float *x, size_t n, const dp_cuda_blob *own,
                              const dp_cuda_blob *other, double share, double *sums,
                              cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
