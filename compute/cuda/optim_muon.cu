/* Muon's passes over a matrix between its products. */
#include "compute/cuda/launch.h"
#include "compute/cuda/optim.cuh"
#include "compute/cuda/optim.h"

/* Jordan et al. 2024; as optim_muon.c. */
#define NS_A 3.4445F
#define NS_B (-4.7750F)
#define NS_C 2.0315F
#define MATCH_ADAMW 0.2 /* Liu et al. 2025 */

static __device__ __forceinline__ size_t index_of(void)
{
    return static_cast<size_t>(blockIdx.x) * DP_OPTIM_THREADS + threadIdx.x;
}

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    momentum_of(float *__restrict__ momentum, const float *__restrict__ grads, size_t stride,
                size_t rows, size_t columns, const dp_cuda_muon_terms *__restrict__ terms,
                float *__restrict__ o)
{
    const size_t i = index_of();
    if (i >= rows * columns) {
        return;
    }
    const size_t at = i / columns * stride + i % columns;
    const float keep = terms->momentum;
    const float g = grads[at] * terms->grad_scale;
    const float next = keep * momentum[at] + g;
    momentum[at] = next;
    o[i] = g + keep * next;
}

extern "C" dp_status dp_cuda_muon_momentum(float *momentum, const float *grads, size_t stride,
                                           size_t rows, size_t columns,
                                           const dp_cuda_muon_terms *terms, float *o,
                                           cudaStream_t stream)
{
    return DP_LAUNCH(momentum_of, dp_cuda_blocks(rows * columns, DP_OPTIM_THREADS),
                     DP_OPTIM_THREADS, 0, stream, momentum, grads, stride, rows, columns, terms, o);
}

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    scale_by_norm(float *o, size_t n, const double *__restrict__ norm)
{
    const size_t i = index_of();
    if (i < n) {
        o[i] *= static_cast<float>(1.0 / (*norm + 1e-7));
    }
}

extern "C" dp_status dp_cuda_muon_scale(float *o, size_t n, const double *norm, cudaStream_t stream)
{
    return DP_LAUNCH(scale_by_norm, dp_cuda_blocks(n, DP_OPTIM_THREADS), DP_OPTIM_THREADS, 0,
                     stream, o, n, norm);
}

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    poly_of(float *__restrict__ poly, const float *__restrict__ gram, size_t side)
{
    const size_t i = index_of();
    if (i < side * side) {
        const float value = NS_B * gram[i] + NS_C * poly[i];
        poly[i] = i / side == i % side ? value + NS_A : value;
    }
}

extern "C" dp_status dp_cuda_muon_poly(float *poly, const float *gram, size_t side,
                                       cudaStream_t stream)
{
    return DP_LAUNCH(poly_of, dp_cuda_blocks(side * side, DP_OPTIM_THREADS), DP_OPTIM_THREADS, 0,
                     stream, poly, gram, side);
}

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    move_matrix(float *__restrict__ x, size_t stride, const float *__restrict__ o, size_t rows,
                size_t columns, uint32_t decays, double root,
                const dp_cuda_muon_terms *__restrict__ terms)
{
    const float lr_decay = decays != 0 ? terms->lr * terms->decay : 0.0F;
    const float scale = static_cast<float>(static_cast<double>(terms->lr) * MATCH_ADAMW * root);
    const size_t i = index_of();
    if (i < rows * columns) {
        const size_t at = i / columns * stride + i % columns;
        x[at] -= lr_decay * x[at] + scale * o[i];
    }
}

extern "C" dp_status dp_cuda_muon_move(float *x, size_t stride, const float *o, size_t rows,
                                       size_t columns, uint32_t decays, double root,
                                       const dp_cuda_muon_terms *terms, cudaStream_t stream)
{
    return DP_LAUNCH(move_matrix, dp_cuda_blocks(rows * columns, DP_OPTIM_THREADS),
                     DP_OPTIM_THREADS, 0, stream, x, stride, o, rows, columns, decays, root, terms);
}
