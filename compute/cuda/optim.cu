/* AdamW, norms and weights in bf16; optim_layer.cu has the steps that follow the norms of tensors,
 * optim_muon.cu the rest. */
#include "compute/cuda/optim.h"

#include "compute/cuda/launch.h"
#include "compute/cuda/optim.cuh"

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    squares(const float *__restrict__ x, size_t n, double *__restrict__ partial)
{
    const size_t first = static_cast<size_t>(blockIdx.x) * DP_OPTIM_BLOCK;
    const size_t last = first + DP_OPTIM_BLOCK < n ? first + DP_OPTIM_BLOCK : n;
    double sum = 0;
    for (size_t i = first + threadIdx.x; i < last; i += DP_OPTIM_THREADS) {
        const double value = static_cast<double>(x[i]);
        sum += value * value;
    }
    sum = dp_optim_sum_of_block(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
    }
}

extern "C" dp_status dp_cuda_squares(const float *x, size_t n, double *partial, cudaStream_t stream)
{
    return DP_LAUNCH(squares, dp_cuda_blocks(n, DP_OPTIM_BLOCK), DP_OPTIM_THREADS, 0, stream, x, n,
                     partial);
}

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    norm_of(const double *__restrict__ partial, size_t count, double *norm)
{
    double sum = 0;
    for (size_t i = threadIdx.x; i < count; i += DP_OPTIM_THREADS) {
        sum += partial[i];
    }
    sum = dp_optim_sum_of_block(sum);
    if (threadIdx.x == 0) {
        *norm = sqrt(sum);
    }
}

extern "C" dp_status dp_cuda_norm_of(const double *partial, size_t count, double *norm,
                                     cudaStream_t stream)
{
    return DP_LAUNCH(norm_of, 1, DP_OPTIM_THREADS, 0, stream, partial, count, norm);
}

/* ---- AdamW: 16 bytes read of four vectors and written of three by each thread; nothing else
 * bounds it. */

static __device__ __forceinline__ void adamw_element(float &x, float &m, float &v, float grad,
                                                     const dp_cuda_adamw_terms &t, float lr_decay)
{
    const float g = grad * t.grad_scale;
    m += (1.0F - t.beta1) * (g - m);
    v += (1.0F - t.beta2) * (g * g - v);
    const float root = sqrtf(v * t.v_scale) + t.eps;
    x -= lr_decay * x + t.lr * m / root;
}

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    adamw(float *__restrict__ x, float *__restrict__ m, float *__restrict__ v,
          const float *__restrict__ grads, const dp_cuda_piece *__restrict__ pieces,
          const dp_cuda_adamw_terms *__restrict__ given)
{
    const dp_cuda_adamw_terms terms = *given;
    const dp_cuda_piece piece = pieces[blockIdx.y];
    const float lr_decay = piece.decays != 0 ? terms.lr_decay : 0.0F;
    const size_t step = static_cast<size_t>(gridDim.x) * DP_OPTIM_THREADS * 4;
    size_t i = piece.from + (static_cast<size_t>(blockIdx.x) * DP_OPTIM_THREADS + threadIdx.x) * 4;
    for (; i < piece.to; i += step) {
        float4 a = *reinterpret_cast<const float4 *>(x + i);
        float4 b = *reinterpret_cast<const float4 *>(m + i);
        float4 c = *reinterpret_cast<const float4 *>(v + i);
        const float4 g = *reinterpret_cast<const float4 *>(grads + i);
        adamw_element(a.x, b.x, c.x, g.x, terms, lr_decay);
        adamw_element(a.y, b.y, c.y, g.y, terms, lr_decay);
        adamw_element(a.z, b.z, c.z, g.z, terms, lr_decay);
        adamw_element(a.w, b.w, c.w, g.w, terms, lr_decay);
        *reinterpret_cast<float4 *>(x + i) = a;
        *reinterpret_cast<float4 *>(m + i) = b;
        *reinterpret_cast<float4 *>(v + i) = c;
    }
}

extern "C" dp_status dp_cuda_adamw(float *x, float *m, float *v, const float *grads,
                                   const dp_cuda_piece *pieces, size_t n_pieces,
                                   const dp_cuda_adamw_terms *terms, cudaStream_t stream)
{
    return dp_optim_by_chunks(n_pieces, [&](dim3 grid, size_t first) {
        return DP_LAUNCH(adamw, grid, DP_OPTIM_THREADS, 0, stream, x, m, v, grads, pieces + first,
                         terms);
    });
}

/* ---- Weights in bf16. */

/* Nearest bf16 as fp32, as dp_bfloat_of has it. */
static __device__ __forceinline__ float nearest_of(float value)
{
    const uint32_t bits = __float_as_uint(value);
    return __uint_as_float((bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U);
}

static __device__ __forceinline__ bool differ(const float4 &a, const float4 &b)
{
    return __float_as_uint(a.x) != __float_as_uint(b.x) ||
           __float_as_uint(a.y) != __float_as_uint(b.y) ||
           __float_as_uint(a.z) != __float_as_uint(b.z) ||
           __float_as_uint(a.w) != __float_as_uint(b.w);
}

/* Four elements to a thread, here and below: with one there are too few bytes on their way. */
static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    masters(float *__restrict__ master, const float *__restrict__ x, size_t n)
{
    const size_t at = (static_cast<size_t>(blockIdx.x) * DP_OPTIM_THREADS + threadIdx.x) * 4;
    if (at + 4 <= n) {
        float4 kept = *reinterpret_cast<const float4 *>(master + at);
        const float4 now = *reinterpret_cast<const float4 *>(x + at);
        const float4 old = kept;
        kept.x = nearest_of(kept.x) != now.x ? now.x : kept.x;
        kept.y = nearest_of(kept.y) != now.y ? now.y : kept.y;
        kept.z = nearest_of(kept.z) != now.z ? now.z : kept.z;
        kept.w = nearest_of(kept.w) != now.w ? now.w : kept.w;
        if (differ(kept, old)) { /* Seldom: after a round. */
            *reinterpret_cast<float4 *>(master + at) = kept;
        }
        return;
    }
    for (size_t i = at; i < n; i++) {
        if (nearest_of(master[i]) != x[i]) {
            master[i] = x[i];
        }
    }
}

extern "C" dp_status dp_cuda_masters(float *master, const float *x, size_t n, cudaStream_t stream)
{
    return DP_LAUNCH(masters, dp_cuda_blocks(n, 4 * DP_OPTIM_THREADS), DP_OPTIM_THREADS, 0, stream,
                     master, x, n);
}

static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    nearest(float *__restrict__ x, const float *__restrict__ master, size_t n)
{
    const size_t at = (static_cast<size_t>(blockIdx.x) * DP_OPTIM_THREADS + threadIdx.x) * 4;
    if (at + 4 <= n) {
        const float4 kept = *reinterpret_cast<const float4 *>(master + at);
        *reinterpret_cast<float4 *>(x + at) = make_float4(nearest_of(kept.x), nearest_of(kept.y),
                                                          nearest_of(kept.z), nearest_of(kept.w));
        return;
    }
    for (size_t i = at; i < n; i++) {
        x[i] = nearest_of(master[i]);
    }
}

extern "C" dp_status dp_cuda_nearest(float *x, const float *master, size_t n, cudaStream_t stream)
{
    return DP_LAUNCH(nearest, dp_cuda_blocks(n, 4 * DP_OPTIM_THREADS), DP_OPTIM_THREADS, 0, stream,
                     x, master, n);
}

enum { LANES = 8, ROUNDS = 10 }; /* elements of one counter; as stochastic_rounding.c */

/* Philox4x32-10 (Salmon et al. 2011, table 2). */
static __device__ __forceinline__ uint4 philox(uint4 c, uint2 key)
{
    for (int round = 0; round < ROUNDS; round++) {
        const uint32_t a_high = __umulhi(0xD2511F53U, c.x);
        const uint32_t a_low = 0xD2511F53U * c.x;
        const uint32_t b_high = __umulhi(0xCD9E8D57U, c.z);
        const uint32_t b_low = 0xCD9E8D57U * c.z;
        c = make_uint4(b_high ^ c.y ^ key.x, b_low, a_high ^ c.w ^ key.y, a_low);
        key.x += 0x9E3779B9U;
        key.y += 0xBB67AE85U;
    }
    return c;
}

static __device__ __forceinline__ float round_one(float x, uint32_t random)
{
    const uint32_t infinite = 0x7f800000U;
    const uint32_t bits = __float_as_uint(x);
    if ((bits & infinite) == infinite) {
        return x;
    }
    const uint32_t up = (bits + (random & 0xffffU)) & 0xffff0000U;
    return __uint_as_float((up & infinite) == infinite ? bits & 0xffff0000U : up);
}

/* A counter and its eight elements to a thread. */
static __global__ void __launch_bounds__(DP_OPTIM_THREADS)
    chance(float *x, size_t n, uint64_t first, uint64_t seed, const uint64_t *__restrict__ number)
{
    const uint64_t step = *number;
    const size_t at = (static_cast<size_t>(blockIdx.x) * DP_OPTIM_THREADS + threadIdx.x) * LANES;
    if (at >= n) {
        return;
    }
    const uint64_t block = (first + at) / LANES;
    const uint4 random =
        philox(make_uint4(static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                          static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)),
               make_uint2(static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)));
    if (at + LANES <= n) {
        float4 *const fours = reinterpret_cast<float4 *>(x + at);
        float4 low = fours[0];
        float4 high = fours[1];
        low = make_float4(round_one(low.x, random.x), round_one(low.y, random.x >> 16),
                          round_one(low.z, random.y), round_one(low.w, random.y >> 16));
        high = make_float4(round_one(high.x, random.z), round_one(high.y, random.z >> 16),
                           round_one(high.z, random.w), round_one(high.w, random.w >> 16));
        fours[0] = low;
        fours[1] = high;
        return;
    }
    const uint32_t words[4] = {random.x, random.y, random.z, random.w};
#pragma unroll
    for (int lane = 0; lane < LANES; lane++) {
        if (at + static_cast<size_t>(lane) < n) {
            x[at + static_cast<size_t>(lane)] =
                round_one(x[at + static_cast<size_t>(lane)], words[lane / 2] >> (lane % 2 * 16));
        }
    }
}

extern "C" dp_status dp_cuda_chance(float *x, size_t n, uint64_t first, uint64_t seed,
                                    const uint64_t *step, cudaStream_t stream)
{
    if (first % LANES != 0) {
        return DP_BADARG;
    }
    return DP_LAUNCH(chance, dp_cuda_blocks(n, DP_OPTIM_THREADS * LANES), DP_OPTIM_THREADS, 0,
                     stream, x, n, first, seed, step);
}
