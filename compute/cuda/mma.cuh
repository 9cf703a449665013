/* The tensor core's instructions as functions of a warp: tiles of 16 x 8 from 16 x 16 and 16 x 8
 * halves, and how they come out of shared memory. Beside each instruction its twin for the
 * emulator, after the layouts in NVIDIA's PTX ISA 8.0, section 9.7.13.
 *
 * In a warp lane = 4 g + t. A tile of the left factor (16 rows, 16 deep) is 4 words: rows g, g+8,
 * g, g+8 at depths 2t, 2t, 2t+8, 2t+8 and the one after. One of the right factor (16 deep, 8
 * columns) is 2 words: depths 2t and 2t+8 and the one after, column g. Sums (16 rows, 8 columns)
 * are 4 floats: rows g, g, g+8, g+8, columns 2t, 2t+1, 2t, 2t+1. So sums rounded to halves are left
 * factors at once. */
#ifndef DP_COMPUTE_CUDA_MMA_CUH
#define DP_COMPUTE_CUDA_MMA_CUH

#include "compute/cuda/element.cuh"

/* fp16 whose products are 8 deep, twice for 16: all that sm_75 has. */
struct dp_fp16_by8 : dp_fp16 {
};

/* ---- sums += left * right */

#ifdef __CUDACC__

static __device__ inline void dp_mma(dp_bf16 *, float sum[4], const uint32_t left[4],
                                     const uint32_t right[2])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
#else
    __trap(); /* sm_75 has no bf16: callers take the plain path there. */
#endif
}

static __device__ inline void dp_mma(dp_fp16 *, float sum[4], const uint32_t left[4],
                                     const uint32_t right[2])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]),
                   "r"(right[1]));
#else
    __trap(); /* As above: dp_fp16_by8 is sm_75's. */
#endif
}

/* 16 rows, 8 deep, 8 columns: the tiles of the first or the second half of the depth. */
static __device__ inline void dp_mma8(float sum[4], uint32_t low, uint32_t high, uint32_t right)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(low), "r"(high), "r"(right));
}

#else

typedef struct dp_mma_words {
    uint32_t left[4];
    uint32_t right[2];
} dp_mma_words;

template <typename T> static inline float dp_half_at(uint32_t word, unsigned i)
{
    T half;
    half.bits = (uint16_t)(word >> 16 * i);
    return dp_to_float(half);
}

/* words: of 8 in depth each, of the left factor two. */
template <typename T>
static inline void dp_mma_of(float sum[4], const dp_mma_words &mine, unsigned words)
{
    dp_mma_words all[DP_LANES];
    host_gpu_gather(0xffffffffU, mine, all);
    const unsigned lane = host_gpu_lane();
    const unsigned g = lane / 4;
    const unsigned t = lane % 4;
    for (unsigned i = 0; i < 4; i++) {
        const unsigned column = 2 * t + i % 2;
        for (unsigned depth = 0; depth < 8 * words; depth++) {
            const unsigned of = depth % 8 / 2;
            const unsigned word = depth / 8;
            sum[i] += dp_half_at<T>(all[4 * g + of].left[2 * word + i / 2], depth % 2) *
                      dp_half_at<T>(all[4 * column + of].right[word], depth % 2);
        }
    }
}

template <typename T>
static inline void dp_mma(T *, float sum[4], const uint32_t left[4], const uint32_t right[2])
{
    dp_mma_of<T>(sum, {{left[0], left[1], left[2], left[3]}, {right[0], right[1]}}, 2);
}

static inline void dp_mma8(float sum[4], uint32_t low, uint32_t high, uint32_t right)
{
    dp_mma_of<dp_fp16>(sum, {{low, high}, {right}}, 1);
}

#endif

static __device__ inline void dp_mma(dp_fp16_by8 *, float sum[4], const uint32_t left[4],
                                     const uint32_t right[2])
{
    dp_mma8(sum, left[0], left[1], right[0]);
    dp_mma8(sum, left[2], left[3], right[1]);
}

/* ---- four tiles of 8 x 8 halves out of shared memory: lane 8 i + r gives the address of row r of
 * tile i, at 16 bytes. Word i of a lane: of tile i row g, columns 2t and 2t+1; or turned: column g,
 * rows 2t and 2t+1. */

static __device__ inline void dp_tiles(uint32_t out[4], const void *row)
{
#ifdef __CUDACC__
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at));
#else
    const uint16_t *rows[DP_LANES];
    host_gpu_gather(0xffffffffU, (const uint16_t *)row, rows);
    const unsigned lane = host_gpu_lane();
    for (unsigned i = 0; i < 4; i++) {
        const uint16_t *const from = rows[8 * i + lane / 4] + 2 * (lane % 4);
        out[i] = (uint32_t)from[0] | (uint32_t)from[1] << 16;
    }
#endif
}

static __device__ inline void dp_tiles_turned(uint32_t out[4], const void *row)
{
#ifdef __CUDACC__
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at));
#else
    const uint16_t *rows[DP_LANES];
    host_gpu_gather(0xffffffffU, (const uint16_t *)row, rows);
    const unsigned lane = host_gpu_lane();
    for (unsigned i = 0; i < 4; i++) {
        const unsigned r = 8 * i + 2 * (lane % 4);
        out[i] = (uint32_t)rows[r][lane / 4] | (uint32_t)rows[r + 1][lane / 4] << 16;
    }
#endif
}

/* ---- 16 bytes from memory to shared memory without waiting; there after dp_copies_wait and a
 * barrier. A source that is not there gives zeros and is not read. Groups: the copies that were
 * asked for since the last dp_copies_close. The twin makes the target NaN at once and copies as
 * late as it may, so a thread that reads too early, or asks while others still read, sees it. */

#ifdef __CUDACC__

static __device__ inline void dp_copy16(void *to, const void *from, bool there)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(at), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
#else
    *(dp_chunk *)to = there ? *(const dp_chunk *)from : dp_chunk{{0, 0, 0, 0}};
#endif
}

static __device__ inline void dp_copies_close(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Until at most so many of this thread's groups are under way. */
template <int GROUPS> static __device__ inline void dp_copies_wait(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" : : "n"(GROUPS) : "memory");
#endif
}

#else

enum { DP_COPIES_MAX = 64, DP_COPIERS_MAX = 256 };

typedef struct dp_copies {
    int closed; /* groups */
    int n;
    struct {
        void *to;
        const void *from;
        bool there;
        int group;
    } at[DP_COPIES_MAX];
} dp_copies;

static dp_copies dp_copies_of[DP_COPIERS_MAX]; /* by thread of the block */

static inline void dp_copy16(void *to, const void *from, bool there)
{
    dp_copies *const mine = &dp_copies_of[threadIdx.x];
    if (mine->n == DP_COPIES_MAX) {
        host_gpu_fail(__FILE__, __LINE__, "more than %d copies under way", DP_COPIES_MAX);
    }
    mine->at[mine->n++] = {to, from, there, mine->closed};
    memset(to, 0xff, sizeof(dp_chunk));
}

static inline void dp_copies_close(void)
{
    dp_copies_of[threadIdx.x].closed++;
}

template <int GROUPS> static inline void dp_copies_wait(void)
{
    dp_copies *const mine = &dp_copies_of[threadIdx.x];
    int left = 0;
    for (int i = 0; i < mine->n; i++) {
        if (mine->at[i].group >= mine->closed - GROUPS) {
            mine->at[left++] = mine->at[i];
        } else {
            *(dp_chunk *)mine->at[i].to =
                mine->at[i].there ? *(const dp_chunk *)mine->at[i].from : dp_chunk{{0, 0, 0, 0}};
        }
    }
    mine->n = left;
}

#endif

#endif
