/* The parts of CUDA's own header that the kernels of compute/cuda use, for clang where there is no
 * CUDA: enough to compile device code to PTX and to check the code that launches it, not to run
 * either. Given with -I before everything else; see tests/cuda/ptx.sh. */
#ifndef DP_TESTS_CUDA_PTX_CUDA_RUNTIME_H
#define DP_TESTS_CUDA_PTX_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#define __CUDACC__ 1
#define CUDART_VERSION 13000

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline __attribute__((always_inline))
/* clang 14 has no such thing: parameters are copied where their address is taken */
#define __grid_constant__

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    __host__ __device__ constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
    __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z)
    {
    }
};
#include <__clang_cuda_builtin_vars.h>

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

/* ---- The runtime's calls. */

typedef struct CUstream_st *cudaStream_t;
typedef enum cudaError_t { cudaSuccess } cudaError_t;
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaDriverEntryPointQueryResult {
    cudaDriverEntryPointSuccess,
    cudaDriverEntryPointSymbolNotFound
};
enum { cudaEnableDefault };

cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaGetLastError(void);
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel *kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult *result);
/* Clang compiles <<<>>> to a call of this function. */
extern "C" int cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0,
                                 cudaStream_t stream = nullptr);

/* ---- Functions of device code. */

#define DP_DEVICE static inline __device__ __attribute__((always_inline))

/* __syncthreads is clang's own. */
DP_DEVICE int __syncthreads_or(int yes)
{
    return __nvvm_bar0_or(yes);
}
DP_DEVICE void __syncwarp(unsigned mask = 0xffffffffU)
{
    __nvvm_bar_warp_sync(mask);
}
DP_DEVICE void __trap(void)
{
    asm volatile("trap;");
}
DP_DEVICE unsigned __ballot_sync(unsigned mask, int yes)
{
    return __nvvm_vote_ballot_sync(mask, yes);
}

/* Numbers of 4 or 8 bytes; the last operand of the instruction is the segment's mask and its
 * end. */
#define DP_SHUFFLE(name, way, end)                                                                 \
    template <typename T> DP_DEVICE T name(unsigned mask, T value, unsigned lane, int width = 32)  \
    {                                                                                              \
        const int segment = (32 - width) << 8 | (end);                                             \
        int words[sizeof(T) / sizeof(int)];                                                        \
        __builtin_memcpy(words, &value, sizeof value);                                             \
        for (size_t i = 0; i < sizeof(T) / sizeof(int); i++) {                                     \
            words[i] = __nvvm_shfl_sync_##way##_i32(mask, words[i], (int)lane, segment);           \
        }                                                                                          \
        __builtin_memcpy(&value, words, sizeof value);                                             \
        return value;                                                                              \
    }
DP_SHUFFLE(__shfl_sync, idx, 31)
DP_SHUFFLE(__shfl_up_sync, up, 0)
DP_SHUFFLE(__shfl_down_sync, down, 31)
DP_SHUFFLE(__shfl_xor_sync, bfly, 31)

template <typename T> DP_DEVICE size_t __cvta_generic_to_shared(T *at)
{
    return (size_t)(__attribute__((address_space(3))) const void *)at;
}

DP_DEVICE float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}
DP_DEVICE uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}
DP_DEVICE uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}
DP_DEVICE void *memcpy(void *to, const void *from, size_t size)
{
    return __builtin_memcpy(to, from, size);
}

/* Relaxed, as CUDA's. */
template <typename T> DP_DEVICE T atomicAdd(T *at, T value)
{
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
template <typename T> DP_DEVICE T atomicOr(T *at, T value)
{
    return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}
template <typename T> DP_DEVICE T atomicMax(T *at, T value)
{
    return __atomic_fetch_max(at, value, __ATOMIC_RELAXED);
}

#define DP_MIN_MAX(type)                                                                           \
    DP_DEVICE type min(type a, type b)                                                             \
    {                                                                                              \
        return a < b ? a : b;                                                                      \
    }                                                                                              \
    DP_DEVICE type max(type a, type b)                                                             \
    {                                                                                              \
        return a > b ? a : b;                                                                      \
    }
DP_MIN_MAX(int)
DP_MIN_MAX(unsigned)
DP_MIN_MAX(long)
DP_MIN_MAX(unsigned long)
DP_MIN_MAX(long long)
DP_MIN_MAX(unsigned long long)
#undef DP_MIN_MAX

DP_DEVICE int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
DP_DEVICE int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
DP_DEVICE int __ffs(int x)
{
    return __builtin_ffs(x);
}
DP_DEVICE int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}
DP_DEVICE unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
DP_DEVICE unsigned __float_as_uint(float x)
{
    unsigned bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
DP_DEVICE float __uint_as_float(unsigned bits)
{
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

#define DP_ROUNDED(name, type, builtin)                                                            \
    DP_DEVICE type name(type a, type b)                                                            \
    {                                                                                              \
        return builtin(a, b);                                                                      \
    }
DP_ROUNDED(__fadd_rn, float, __nvvm_add_rn_f)
DP_ROUNDED(__fmul_rn, float, __nvvm_mul_rn_f)
DP_ROUNDED(__dadd_rn, double, __nvvm_add_rn_d)
DP_ROUNDED(__dmul_rn, double, __nvvm_mul_rn_d)
DP_ROUNDED(__fdividef, float, __nvvm_div_approx_f)
DP_ROUNDED(fmaxf, float, __nvvm_fmax_f)
DP_ROUNDED(fminf, float, __nvvm_fmin_f)
#undef DP_ROUNDED
DP_DEVICE float __fsub_rn(float a, float b)
{
    return __nvvm_add_rn_f(a, -b);
}
DP_DEVICE double __dsub_rn(double a, double b)
{
    return __nvvm_add_rn_d(a, -b);
}
DP_DEVICE float sqrtf(float a)
{
    return __nvvm_sqrt_rn_f(a);
}
DP_DEVICE double sqrt(double a)
{
    return __nvvm_sqrt_rn_d(a);
}
DP_DEVICE float fabsf(float a)
{
    return __builtin_fabsf(a);
}
DP_DEVICE float fmaf(float a, float b, float c)
{
    return __nvvm_fma_rn_f(a, b, c);
}

/* Of CUDA's libdevice: they stay names in the PTX. */
extern "C" {
__device__ float __nv_logf(float);
__device__ float __nv_tanhf(float);
__device__ float __nv_expf(float);
__device__ float __nv_erfcf(float);
}
DP_DEVICE float logf(float a)
{
    return __nv_logf(a);
}
DP_DEVICE float tanhf(float a)
{
    return __nv_tanhf(a);
}
DP_DEVICE float erfcf(float a)
{
    return __nv_erfcf(a);
}
DP_DEVICE float expf(float a)
{
    return __nv_expf(a);
}

#endif
