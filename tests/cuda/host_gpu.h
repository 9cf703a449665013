/* A GPU on the processor: what a .cu file needs so that g++ compiles its kernels unchanged and they
 * run here, thread by thread. Shows mistakes, not speed. Included before everything else of such a
 * file (-include); launch.h does the rest.
 *
 * Blocks run one after another. The threads of a block are fibers that change only where CUDA lets
 * threads wait for each other, in an order that host_gpu_order() chooses: results that depend on it
 * miss a barrier. Static shared memory is filled with 0xff bytes before each block. A program stops
 * with a message that names kernel, block, thread, file and line when
 * - some thread of a block does not come to a __syncthreads, or others wait at another one,
 * - some lane of a mask does not come to a warp's operation, comes to another one, or calls it
 * outside of its own mask,
 * - a shuffle reads a lane that takes no part,
 * - nobody can go on, because what a thread waits for (host_gpu_wait_until) does not come,
 * - a launch has sizes that no device takes.
 * With AddressSanitizer also on every access outside of static or dynamic shared memory, of a
 * thread's own arrays, or of what a test allocated. Float atomics do not exist here on purpose
 * (stream.h).
 *
 * Streams run at once and in order of the calls, unless host_gpu_capture says otherwise. One thread
 * at a time. */
#ifndef DP_TESTS_CUDA_HOST_GPU_H
#define DP_TESTS_CUDA_HOST_GPU_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "base/status.h"
#include "compute/cuda/stream.h"

/* ---- The language. */

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static __attribute__((section("dp_shared")))

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

#define HOST_GPU_VECTORS(type, name, align2, align4)                                               \
    struct alignas(align2) name##2                                                                 \
    {                                                                                              \
        type x, y;                                                                                 \
    };                                                                                             \
    struct name##3                                                                                 \
    {                                                                                              \
        type x, y, z;                                                                              \
    };                                                                                             \
    struct alignas(align4) name##4                                                                 \
    {                                                                                              \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    static inline name##2 make_##name##2(type x, type y)                                           \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    static inline name##3 make_##name##3(type x, type y, type z)                                   \
    {                                                                                              \
        return {x, y, z};                                                                          \
    }                                                                                              \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                           \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }
HOST_GPU_VECTORS(int8_t, char, 2, 4)
HOST_GPU_VECTORS(uint8_t, uchar, 2, 4)
HOST_GPU_VECTORS(int16_t, short, 4, 8)
HOST_GPU_VECTORS(uint16_t, ushort, 4, 8)
HOST_GPU_VECTORS(int, int, 8, 16)
HOST_GPU_VECTORS(unsigned, uint, 8, 16)
HOST_GPU_VECTORS(float, float, 8, 16)
HOST_GPU_VECTORS(long long, longlong, 16, 16)
HOST_GPU_VECTORS(unsigned long long, ulonglong, 16, 16)
HOST_GPU_VECTORS(double, double, 16, 16)
#undef HOST_GPU_VECTORS

/* ---- Where a thread is. */

struct host_gpu_place {
    uint3 thread;
    uint3 block;
    dim3 block_dim;
    dim3 grid_dim;
};
extern host_gpu_place host_gpu_here; /* of the running fiber */

#define threadIdx (host_gpu_here.thread)
#define blockIdx (host_gpu_here.block)
#define blockDim (host_gpu_here.block_dim)
#define gridDim (host_gpu_here.grid_dim)
static constexpr int warpSize = 32;

/* ---- Launching. */

/* The order of warps and lanes in every block from now on: 0 ascending, 1 descending, else shuffled
 * by it. */
void host_gpu_order(uint64_t seed);

/* Asked at every launch; true: it has taken the task, to run it later with host_gpu_task(). NULL:
 * none. */
typedef std::function<void()> host_gpu_task;
extern bool (*host_gpu_capture)(cudaStream_t stream, const host_gpu_task &task);

dp_status host_gpu_launch(const char *name, dim3 grid, dim3 block, size_t shared,
                          cudaStream_t stream, std::function<void()> body);
void *host_gpu_shared_bytes(void);

template <typename... Parameters, typename... Arguments>
static inline std::function<void()> host_gpu_bind(void (*kernel)(Parameters...),
                                                  Arguments... arguments)
{
    return [=] { kernel(static_cast<Parameters>(arguments)...); };
}

/* ---- Waiting for each other. Arguments from file on are of the call and never given. */

#define HOST_GPU_CALL const char *file = __builtin_FILE(), int line = __builtin_LINE()

enum { HOST_GPU_SLOT = 64, HOST_GPU_LANES = 32 };

[[noreturn]] void host_gpu_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
unsigned host_gpu_lane(void);
/* The block's barrier; returns how many threads said yes. */
unsigned host_gpu_barrier(const char *what, bool yes, const char *file, int line);
/* Every lane of mask gives size <= HOST_GPU_SLOT bytes; returns those of all 32 lanes,
 * HOST_GPU_SLOT apart, until this lane's next call. *present: the lanes of the mask that are
 * there. */
const unsigned char *host_gpu_meet(const char *what, unsigned mask, const void *value, size_t size,
                                   unsigned *present, const char *file, int line);

/* Until ready(argument) says yes, which it is asked whenever it is this thread's turn: for twins of
 * instructions that wait for what others do. A block in which nobody can go on is stuck. */
void host_gpu_wait_until(const char *what, bool (*ready)(const void *argument),
                         const void *argument, HOST_GPU_CALL);

static inline void __syncthreads(HOST_GPU_CALL)
{
    host_gpu_barrier("__syncthreads", false, file, line);
}

static inline int __syncthreads_count(int yes, HOST_GPU_CALL)
{
    return static_cast<int>(host_gpu_barrier("__syncthreads_count", yes != 0, file, line));
}

static inline int __syncthreads_or(int yes, HOST_GPU_CALL)
{
    return host_gpu_barrier("__syncthreads_or", yes != 0, file, line) > 0 ? 1 : 0;
}

static inline int __syncthreads_and(int yes, HOST_GPU_CALL)
{
    return host_gpu_barrier("__syncthreads_and", yes == 0, file, line) == 0 ? 1 : 0;
}

static inline void __syncwarp(unsigned mask = 0xffffffffU, HOST_GPU_CALL)
{
    unsigned present;
    host_gpu_meet("__syncwarp", mask, nullptr, 0, &present, file, line);
}

static inline void __threadfence(void)
{
}
static inline void __threadfence_block(void)
{
}

/* Gathers the values of all lanes: for twins of instructions of whole warps. out: 32 values; those
 * of lanes that take no part stay as they are. */
template <typename T>
static inline void host_gpu_gather(unsigned mask, const T &value, T *out, HOST_GPU_CALL)
{
    static_assert(sizeof(T) <= HOST_GPU_SLOT, "a slot holds it");
    unsigned present;
    const unsigned char *const slots =
        host_gpu_meet("host_gpu_gather", mask, &value, sizeof value, &present, file, line);
    for (unsigned i = 0; i < HOST_GPU_LANES; i++) {
        if ((present >> i & 1U) != 0) {
            memcpy(&out[i], slots + i * HOST_GPU_SLOT, sizeof(T));
        }
    }
}

template <typename T>
static inline T host_gpu_read(const char *what, unsigned mask, T value, unsigned source,
                              const char *file, int line)
{
    static_assert(sizeof(T) <= HOST_GPU_SLOT, "a slot holds it");
    unsigned present;
    const unsigned char *const slots =
        host_gpu_meet(what, mask, &value, sizeof value, &present, file, line);
    if ((present >> source & 1U) == 0) {
        host_gpu_fail(file, line, "%s reads lane %u, which takes no part", what, source);
    }
    T result;
    memcpy(&result, slots + source * HOST_GPU_SLOT, sizeof result);
    return result;
}

template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = warpSize, HOST_GPU_CALL)
{
    const unsigned lane = host_gpu_lane();
    const unsigned wide = static_cast<unsigned>(width);
    const unsigned from = (lane & ~(wide - 1)) + (static_cast<unsigned>(source) & (wide - 1));
    return host_gpu_read("__shfl_sync", mask, value, from, file, line);
}

template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                               HOST_GPU_CALL)
{
    const unsigned lane = host_gpu_lane();
    const unsigned first = lane & ~(static_cast<unsigned>(width) - 1);
    const unsigned from = lane >= first + delta ? lane - delta : lane;
    return host_gpu_read("__shfl_up_sync", mask, value, from, file, line);
}

template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                                 HOST_GPU_CALL)
{
    const unsigned lane = host_gpu_lane();
    const unsigned end =
        (lane & ~(static_cast<unsigned>(width) - 1)) + static_cast<unsigned>(width);
    const unsigned from = lane + delta < end ? lane + delta : lane;
    return host_gpu_read("__shfl_down_sync", mask, value, from, file, line);
}

template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize,
                                HOST_GPU_CALL)
{
    const unsigned lane = host_gpu_lane();
    const unsigned end =
        (lane & ~(static_cast<unsigned>(width) - 1)) + static_cast<unsigned>(width);
    const unsigned other = lane ^ static_cast<unsigned>(lanes);
    return host_gpu_read("__shfl_xor_sync", mask, value, other < end ? other : lane, file, line);
}

static inline unsigned host_gpu_votes(const char *what, unsigned mask, bool yes, unsigned *present,
                                      const char *file, int line)
{
    const unsigned char vote = yes ? 1 : 0;
    const unsigned char *const slots = host_gpu_meet(what, mask, &vote, 1, present, file, line);
    unsigned votes = 0;
    for (unsigned i = 0; i < HOST_GPU_LANES; i++) {
        const bool set = (*present >> i & 1U) != 0 && slots[i * HOST_GPU_SLOT] != 0;
        votes |= (set ? 1U : 0U) << i;
    }
    return votes;
}

static inline unsigned __ballot_sync(unsigned mask, int yes, HOST_GPU_CALL)
{
    unsigned present;
    return host_gpu_votes("__ballot_sync", mask, yes != 0, &present, file, line);
}

static inline int __any_sync(unsigned mask, int yes, HOST_GPU_CALL)
{
    unsigned present;
    return host_gpu_votes("__any_sync", mask, yes != 0, &present, file, line) != 0 ? 1 : 0;
}

static inline int __all_sync(unsigned mask, int yes, HOST_GPU_CALL)
{
    unsigned present;
    const unsigned votes = host_gpu_votes("__all_sync", mask, yes != 0, &present, file, line);
    return votes == present ? 1 : 0;
}

/* ---- Atomics: no two fibers run at once. */

#define HOST_GPU_ATOMICS(type)                                                                     \
    static inline type host_gpu_swap(type *at, type value)                                         \
    {                                                                                              \
        const type old = *at;                                                                      \
        *at = value;                                                                               \
        return old;                                                                                \
    }                                                                                              \
    static inline type atomicAdd(type *at, type value)                                             \
    {                                                                                              \
        type sum;                                                                                  \
        (void)__builtin_add_overflow(*at, value, &sum); /* It wraps. */                            \
        return host_gpu_swap(at, sum);                                                             \
    }                                                                                              \
    static inline type atomicMax(type *at, type value)                                             \
    {                                                                                              \
        return host_gpu_swap(at, *at > value ? *at : value);                                       \
    }                                                                                              \
    static inline type atomicMin(type *at, type value)                                             \
    {                                                                                              \
        return host_gpu_swap(at, *at < value ? *at : value);                                       \
    }                                                                                              \
    static inline type atomicOr(type *at, type value)                                              \
    {                                                                                              \
        return host_gpu_swap(at, *at | value);                                                     \
    }                                                                                              \
    static inline type atomicAnd(type *at, type value)                                             \
    {                                                                                              \
        return host_gpu_swap(at, *at & value);                                                     \
    }                                                                                              \
    static inline type atomicXor(type *at, type value)                                             \
    {                                                                                              \
        return host_gpu_swap(at, *at ^ value);                                                     \
    }                                                                                              \
    static inline type atomicExch(type *at, type value)                                            \
    {                                                                                              \
        return host_gpu_swap(at, value);                                                           \
    }                                                                                              \
    static inline type atomicCAS(type *at, type compare, type value)                               \
    {                                                                                              \
        return host_gpu_swap(at, *at == compare ? value : *at);                                    \
    }
HOST_GPU_ATOMICS(int)
HOST_GPU_ATOMICS(unsigned)
HOST_GPU_ATOMICS(unsigned long long)
#undef HOST_GPU_ATOMICS

/* ---- Integers and bits. */

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
static inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
static inline int __clzll(long long x)
{
    return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
static inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float __uint_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline int __float_as_int(float x)
{
    return static_cast<int>(__float_as_uint(x));
}
static inline float __int_as_float(int bits)
{
    return __uint_as_float(static_cast<unsigned>(bits));
}
template <typename T> static inline T __ldg(const T *at)
{
    return *at;
}
template <typename T> static inline T __ldcs(const T *at)
{
    return *at;
}
template <typename T> static inline void __stcs(T *at, T value)
{
    *at = value;
}

#define HOST_GPU_MIN_MAX(type)                                                                     \
    static inline type min(type a, type b)                                                         \
    {                                                                                              \
        return a < b ? a : b;                                                                      \
    }                                                                                              \
    static inline type max(type a, type b)                                                         \
    {                                                                                              \
        return a > b ? a : b;                                                                      \
    }
HOST_GPU_MIN_MAX(int)
HOST_GPU_MIN_MAX(unsigned)
HOST_GPU_MIN_MAX(long)
HOST_GPU_MIN_MAX(unsigned long)
HOST_GPU_MIN_MAX(long long)
HOST_GPU_MIN_MAX(unsigned long long)
#undef HOST_GPU_MIN_MAX

/* ---- Floats: one rounding each. The file is compiled without contraction. */

static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline float __frcp_rn(float a)
{
    return 1.0F / a;
}
static inline double __dadd_rn(double a, double b)
{
    return a + b;
}
static inline double __dsub_rn(double a, double b)
{
    return a - b;
}
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}
static inline double __ddiv_rn(double a, double b)
{
    return a / b;
}
static inline int __float2int_rn(float a)
{
    return static_cast<int>(lrintf(a));
}
/* A device's fast ones are near these. glibc has declared two of the names. */
#define __expf host_gpu_expf
#define __logf host_gpu_logf
static inline float rsqrtf(float a)
{
    return 1.0F / sqrtf(a);
}
static inline float __expf(float a)
{
    return expf(a);
}
static inline float __logf(float a)
{
    return logf(a);
}
static inline float __fdividef(float a, float b)
{
    return a / b;
}

#include "tests/cuda/host_half.h"

#endif
