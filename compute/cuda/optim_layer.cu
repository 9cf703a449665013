/* LAMB and LARS: steps whose length follows the norm of each tensor. Pieces begin and end at
 * multiples of four elements, as AdamW's. */
#include "compute/cuda/launch.h"
#include "compute/cuda/optim.cuh"
#include "compute/cuda/optim.h"

static __device__ __forceinline__ float direction(float x, float m, float v,
                                                  const dp_cuda_layer_terms &t, float decay)
{
    return m * t.m_scale / (sqrtf(v * t.v_scale) + t.eps) + decay * x;
}

/* ---- LAMB. One block for a piece, which sums it. */

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    lamb_look(const float *__restrict__ x, float *__restrict__ m, float *__restrict__ v,
              const float *__restrict__ grads, const dp_cuda_piece *__restrict__ pieces,
              const dp_cuda_layer_terms *__restrict__ terms, double *__restrict__ sums)
{
    const dp_cuda_layer_terms t = *terms;
    const dp_cuda_piece piece = pieces[blockIdx.x];
    const float decay = piece.decays != 0 ? t.decay : 0.0F;
    const float keep1 = 1.0F - t.beta1;
    const float keep2 = 1.0F - t.beta2;
    double x_square = 0;
    double u_square = 0;
    const auto element = [&](float a, float &b, float &c, float grad) {
        const float g = grad * t.grad_scale;
        b += keep1 * (g - b);
        c += keep2 * (g * g - c);
        const float u = direction(a, b, c, t, decay);
        x_square += static_cast<double>(a) * static_cast<double>(a);
        u_square += static_cast<double>(u) * static_cast<double>(u);
    };
    for (size_t i = piece.from + 4 * threadIdx.x; i < piece.to; i += 4 * DP_OPTIM_THREADS) {
        const float4 a = *reinterpret_cast<const float4 *>(x + i);
        float4 b = *reinterpret_cast<const float4 *>(m + i);
        float4 c = *reinterpret_cast<const float4 *>(v + i);
        const float4 g = *reinterpret_cast<const float4 *>(grads + i);
        element(a.x, b.x, c.x, g.x);
        element(a.y, b.y, c.y, g.y);
        element(a.z, b.z, c.z, g.z);
        element(a.w, b.w, c.w, g.w);
        *reinterpret_cast<float4 *>(m + i) = b;
        *reinterpret_cast<float4 *>(v + i) = c;
    }
    x_square = dp_optim_sum_of_block(x_square);
    u_square = dp_optim_sum_of_block(u_square);
    if (threadIdx.x == 0) {
        sums[2 * static_cast<size_t>(blockIdx.x)] = x_square;
        sums[2 * static_cast<size_t>(blockIdx.x) + 1] = u_square;
    }
}

extern "C" dp_status dp_cuda_lamb_look(const float *x, float *m, float *v, const float *grads,
                                       const dp_cuda_piece *pieces, size_t n_pieces,
                                       const dp_cuda_layer_terms *terms, double *sums,
                                       cudaStream_t stream)
{
    return DP_LAUNCH(lamb_look, dp_cuda_blocks(n_pieces, 1), DP_OPTIM_THREADS, 0, stream, x, m, v,
                     grads, pieces, terms, sums);
}

/* Norms of both sums of a tensor, piece by piece. */
static __device__ void norms_of(const double *sums, const dp_cuda_pieces_of &tensor,
                                double norms[2])
{
    norms[0] = 0;
    norms[1] = 0;
    for (size_t i = tensor.first; i < static_cast<size_t>(tensor.first) + tensor.count; i++) {
        norms[0] += sums[2 * i];
        norms[1] += sums[2 * i + 1];
    }
    norms[0] = sqrt(norms[0]);
    norms[1] = sqrt(norms[1]);
}

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    lamb_rates(const double *__restrict__ sums, const dp_cuda_pieces_of *__restrict__ tensors,
               size_t n_tensors, float *__restrict__ rates)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * DP_OPTIM_THREADS + threadIdx.x;
    if (i >= n_tensors) {
        return;
    }
    double norms[2];
    norms_of(sums, tensors[i], norms);
    const double phi = norms[0] < 10.0 ? norms[0] : 10.0; /* You et al. 2020 */
    const bool adapts = tensors[i].decays != 0 && norms[0] > 0 && norms[1] > 0;
    rates[i] = adapts ? static_cast<float>(phi / norms[1]) : 1.0F;
}

extern "C" dp_status dp_cuda_lamb_rates(const double *sums, const dp_cuda_pieces_of *tensors,
                                        size_t n_tensors, float *rates, cudaStream_t stream)
{
    return DP_LAUNCH(lamb_rates, dp_cuda_blocks(n_tensors, DP_OPTIM_THREADS), DP_OPTIM_THREADS, 0,
                     stream, sums, tensors, n_tensors, rates);
}

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    lamb_move(float *__restrict__ x, const float *__restrict__ m, const float *__restrict__ v,
              const dp_cuda_piece *__restrict__ pieces,
              const dp_cuda_layer_terms *__restrict__ terms, const float *__restrict__ rates)
{
    const dp_cuda_layer_terms t = *terms;
    const dp_cuda_piece piece = pieces[blockIdx.y];
    const float decay = piece.decays != 0 ? t.decay : 0.0F;
    const float rate = t.lr * rates[piece.tensor];
    const size_t step = static_cast<size_t>(gridDim.x) * DP_OPTIM_THREADS * 4;
    size_t i = piece.from + (static_cast<size_t>(blockIdx.x) * DP_OPTIM_THREADS + threadIdx.x) * 4;
    for (; i < piece.to; i += step) {
        float4 a = *reinterpret_cast<const float4 *>(x + i);
        const float4 b = *reinterpret_cast<const float4 *>(m + i);
        const float4 c = *reinterpret_cast<const float4 *>(v + i);
        a.x -= rate * direction(a.x, b.x, c.x, t, decay);
        a.y -= rate * direction(a.y, b.y, c.y, t, decay);
        a.z -= rate * direction(a.z, b.z, c.z, t, decay);
        a.w -= rate * direction(a.w, b.w, c.w, t, decay);
        *reinterpret_cast<float4 *>(x + i) = a;
    }
}

extern "C" dp_status dp_cuda_lamb_move(float *x, const float *m, const float *v,
                                       const dp_cuda_piece *pieces, size_t n_pieces,
                                       const dp_cuda_layer_terms *terms, const float *rates,
                                       cudaStream_t stream)
{
    return dp_optim_by_chunks(n_pieces, [&](dim3 grid, size_t first) {
        return DP_LAUNCH(lamb_move, grid, DP_OPTIM_THREADS, 0, stream, x, m, v, pieces + first,
                         terms, rates);
    });
}

/* ---- LARS. */

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    lars_look(const float *__restrict__ x, const float *__restrict__ grads,
              const dp_cuda_piece *__restrict__ pieces, double *__restrict__ sums)
{
    const dp_cuda_piece piece = pieces[blockIdx.x];
    double x_square = 0;
    double g_square = 0;
    const auto element = [&](float a, float g) {
        x_square += static_cast<double>(a) * static_cast<double>(a);
        g_square += static_cast<double>(g) * static_cast<double>(g);
    };
    for (size_t i = piece.from + 4 * threadIdx.x; i < piece.to; i += 4 * DP_OPTIM_THREADS) {
        const float4 a = *reinterpret_cast<const float4 *>(x + i);
        const float4 g = *reinterpret_cast<const float4 *>(grads + i);
        element(a.x, g.x);
        element(a.y, g.y);
        element(a.z, g.z);
        element(a.w, g.w);
    }
    x_square = dp_optim_sum_of_block(x_square);
    g_square = dp_optim_sum_of_block(g_square);
    if (threadIdx.x == 0) {
        sums[2 * static_cast<size_t>(blockIdx.x)] = x_square;
        sums[2 * static_cast<size_t>(blockIdx.x) + 1] = g_square;
    }
}

extern "C" dp_status dp_cuda_lars_look(const float *x, const float *grads,
                                       const dp_cuda_piece *pieces, size_t n_pieces, double *sums,
                                       cudaStream_t stream)
{
    return DP_LAUNCH(lars_look, dp_cuda_blocks(n_pieces, 1), DP_OPTIM_THREADS, 0, stream, x, grads,
                     pieces, sums);
}

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    lars_rates(const double *__restrict__ sums, const dp_cuda_pieces_of *__restrict__ tensors,
               size_t n_tensors, const dp_cuda_layer_terms *__restrict__ terms,
               float *__restrict__ rates)
{
    const dp_cuda_layer_terms t = *terms;
    const size_t i = static_cast<size_t>(blockIdx.x) * DP_OPTIM_THREADS + threadIdx.x;
    if (i >= n_tensors) {
        return;
    }
    double norms[2];
    norms_of(sums, tensors[i], norms);
    const double gradient = norms[1] * static_cast<double>(t.grad_scale);
    const bool adapts = tensors[i].decays != 0 && norms[0] > 0 && gradient > 0;
    const double local = norms[0] / (gradient + static_cast<double>(t.decay) * norms[0]);
    rates[i] = 0.001F * (adapts ? static_cast<float>(local) : 1.0F); /* optim.h */
}

extern "C" dp_status dp_cuda_lars_rates(const double *sums, const dp_cuda_pieces_of *tensors,
                                        size_t n_tensors, const dp_cuda_layer_terms *terms,
                                        float *rates, cudaStream_t stream)
{
    return DP_LAUNCH(lars_rates, dp_cuda_blocks(n_tensors, DP_OPTIM_THREADS), DP_OPTIM_THREADS, 0,
                     stream, sums, tensors, n_tensors, terms, rates);
}

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    lars_move(float *__restrict__ x, float *__restrict__ m, const float *__restrict__ grads,
              const dp_cuda_piece *__restrict__ pieces,
              const dp_cuda_layer_terms *__restrict__ terms, const float *__restrict__ rates)
{
    const dp_cuda_layer_terms t = *terms;
    const dp_cuda_piece piece = pieces[blockIdx.y];
    const float decay = piece.decays != 0 ? t.decay : 0.0F;
    const float rate = t.lr * rates[piece.tensor];
    const auto element = [=](float &a, float &b, float g) {
        b = t.beta1 * b + rate * (g * t.grad_scale + decay * a);
        a -= b;
    };
    const size_t step = static_cast<size_t>(gridDim.x) * DP_OPTIM_THREADS * 4;
    size_t i = piece.from + (static_cast<size_t>(blockIdx.x) * DP_OPTIM_THREADS + threadIdx.x) * 4;
    for (; i < piece.to; i += step) {
        float4 a = *reinterpret_cast<const float4 *>(x + i);
        float4 b = *reinterpret_cast<const float4 *>(m + i);
        const float4 g = *reinterpret_cast<const float4 *>(grads + i);
        element(a.x, b.x, g.x);
        element(a.y, b.y, g.y);
        element(a.z, b.z, g.z);
        element(a.w, b.w, g.w);
        *reinterpret_cast<float4 *>(x + i) = a;
        *reinterpret_cast<float4 *>(m + i) = b;
    }
}

extern "C" dp_status dp_cuda_lars_move(float *x, float *m, const float *grads,
                                       const dp_cuda_piece *pieces, size_t n_pieces,
                                       const dp_cuda_layer_terms *terms, const float *rates,
                                       cudaStream_t stream)
{
    return dp_optim_by_chunks(n_pieces, [&](dim3 grid, size_t first) {
        return DP_LAUNCH(lars_move, grid, DP_OPTIM_THREADS, 0, stream, x, m, grads, pieces + first,
                         terms, rates);
    });
}
