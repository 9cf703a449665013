#include "compute/cuda/vectors.h"

#include "compute/cuda/launch.h"

/* Four elements to a thread, as one access of 16 bytes: these kernels only move memory. */
enum { THREADS = 256, WIDTH = 4, ONE = 65536 };

static __device__ __forceinline__ bool is_finite(float x)
{
    return (__float_as_uint(x) & 0x7f800000U) != 0x7f800000U;
}

/* The operation on one element; y is 0 where there is no second vector. */
struct sum_of {
    __device__ float operator()(float x, float y) const
    {
        return __fadd_rn(x, y);
    }
};

struct difference_of {
    __device__ float operator()(float x, float y) const
    {
        return __fsub_rn(x, y);
    }
};

struct product_with {
    float factor; /* 0: the result is 0, even of values that are not finite */
    __device__ float operator()(float x, float) const
    {
        return factor == 0.0F ? 0.0F : __fmul_rn(x, factor);
    }
};

template <typename Operation>
static __global__ void __launch_bounds__(THREADS)
    change(float *__restrict__ to, const float *__restrict__ from, size_t n, Operation operation)
{
    const size_t at = (static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x) * WIDTH;
    if (at + WIDTH <= n) {
        float4 x = *reinterpret_cast<const float4 *>(to + at);
        const float4 y = from == nullptr ? make_float4(0, 0, 0, 0)
                                         : *reinterpret_cast<const float4 *>(from + at);
        x.x = operation(x.x, y.x);
        x.y = operation(x.y, y.y);
        x.z = operation(x.z, y.z);
        x.w = operation(x.w, y.w);
        *reinterpret_cast<float4 *>(to + at) = x;
        return;
    }
    for (size_t i = at; i < n; i++) {
        to[i] = operation(to[i], from == nullptr ? 0.0F : from[i]);
    }
}

template <typename Operation>
static dp_status launch_change(float *to, const float *from, size_t n, Operation operation,
                               cudaStream_t stream)
{
    return DP_LAUNCH((change<Operation>), dp_cuda_blocks(n, THREADS * WIDTH), THREADS, 0, stream,
                     to, from, n, operation);
}

extern "C" dp_status dp_cuda_add(float *to, const float *from, size_t n, cudaStream_t stream)
{
    return launch_change(to, from, n, sum_of{}, stream);
}

extern "C" dp_status dp_cuda_subtract(float *to, const float *from, size_t n, cudaStream_t stream)
{
    return launch_change(to, from, n, difference_of{}, stream);
}

extern "C" dp_status dp_cuda_scale(float *to, uint32_t lambda, size_t n, cudaStream_t stream)
{
    if (lambda == ONE) {
        return DP_OK;
    }
    const product_with factor = {static_cast<float>(lambda) * 0x1p-16F};
    return launch_change(to, nullptr, n, factor, stream);
}

/* to is not __restrict__: it may be e. */
static __global__ void __launch_bounds__(THREADS)
    snapshot(float *to, const float *e, const float *__restrict__ from, const float *__restrict__ x,
             size_t n, uint32_t *bad)
{
    const size_t at = (static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x) * WIDTH;
    bool finite = true;
    if (at + WIDTH <= n) {
        const float4 f = *reinterpret_cast<const float4 *>(from + at);
        const float4 w = *reinterpret_cast<const float4 *>(x + at);
        float4 a = make_float4(__fsub_rn(f.x, w.x), __fsub_rn(f.y, w.y), __fsub_rn(f.z, w.z),
                               __fsub_rn(f.w, w.w));
        if (e != nullptr) {
            const float4 r = *reinterpret_cast<const float4 *>(e + at);
            a = make_float4(__fadd_rn(r.x, a.x), __fadd_rn(r.y, a.y), __fadd_rn(r.z, a.z),
                            __fadd_rn(r.w, a.w));
        }
        *reinterpret_cast<float4 *>(to + at) = a;
        finite = is_finite(a.x) && is_finite(a.y) && is_finite(a.z) && is_finite(a.w);
    } else {
        for (size_t i = at; i < n; i++) {
            const float moved = __fsub_rn(from[i], x[i]);
            const float a = e == nullptr ? moved : __fadd_rn(e[i], moved);
            to[i] = a;
            finite = finite && is_finite(a);
        }
    }
    if (!finite) {
        *bad = 1;
    }
}

extern "C" dp_status dp_cuda_snapshot(float *to, const float *e, const float *from, const float *x,
                                      size_t n, uint32_t *bad, cudaStream_t stream)
{
    return DP_LAUNCH(snapshot, dp_cuda_blocks(n, THREADS * WIDTH), THREADS, 0, stream, to, e, from,
                     x, n, bad);
}

static __global__ void __launch_bounds__(THREADS)
    look(const float *__restrict__ x, size_t n, uint32_t *bad)
{
    const size_t at = (static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x) * WIDTH;
    bool finite = true;
    if (at + WIDTH <= n) {
        const float4 a = *reinterpret_cast<const float4 *>(x + at);
        finite = is_finite(a.x) && is_finite(a.y) && is_finite(a.z) && is_finite(a.w);
    } else {
        for (size_t i = at; i < n; i++) {
            finite = finite && is_finite(x[i]);
        }
    }
    if (!finite) {
        *bad = 1;
    }
}

extern "C" dp_status dp_cuda_finite(const float *x, size_t n, uint32_t *bad, cudaStream_t stream)
{
    return DP_LAUNCH(look, dp_cuda_blocks(n, THREADS * WIDTH), THREADS, 0, stream, x, n, bad);
}
