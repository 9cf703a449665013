/* The copy engine of sm_90 as functions: a tile of one head's rows from memory into shared memory,
 * swizzled as the warpgroup's products (wgmma.cuh) want it, and the barriers in shared memory by
 * which the engine and threads tell each other. Beside each instruction its twin for the emulator,
 * after NVIDIA's PTX ISA 8.0: "Parallel Synchronization: mbarrier" and "Data Movement:
 * cp.async.bulk.tensor".
 *
 * A tile is [D / 64][ROWS][64] halves at 1024 bytes: panels of 64 columns, rows of 128 bytes. The
 * engine XORs bits 4 to 6 of each address with bits 7 to 9 (the 128-byte swizzle), so the chunk c
 * of 16 bytes of row r lies at place c ^ (r % 8) of its row.
 *
 * A barrier counts arrivals and bytes that are to come; when both are in, its phase ends and the
 * next begins. Phases have parities 0, 1, 0 and so on; a thread that waits for parity p goes on
 * when a phase of that parity has ended and the one after it has not. So a wait for parity 1 passes
 * at once on a new barrier. */
#ifndef DP_COMPUTE_CUDA_BULK_CUH
#define DP_COMPUTE_CUDA_BULK_CUH

#include "compute/cuda/element.cuh"

#if defined(__CUDACC__)
#include <cuda.h>
#endif

enum {
    DP_PANEL = 64,        /* halves of a row of a tile's panel: 128 bytes, what the swizzle spans */
    DP_BULK_ALIGN = 1024, /* of a tile in shared memory: the swizzle's pattern */
    DP_BARRIER_TRIES = 1 << 22 /* of 20 ns or more, at most microseconds: a tile takes 30 of them */
};

typedef uint64_t dp_barrier; /* in shared memory, at 8 bytes */

/* A tensor [rows][length][heads][D] of halves in memory, as the copy engine wants to know it. */
#if defined(__CUDACC__)
typedef CUtensorMap dp_tile_map;
#else
typedef struct dp_tile_map {
    const unsigned char *base;
    uint64_t size[4];   /* D, heads, length, rows */
    uint64_t stride[4]; /* bytes */
    unsigned box;       /* rows of a tile */
} dp_tile_map;
#endif

/* ---- making a map, on the host */

#if defined(__CUDACC__)

typedef decltype(&cuTensorMapEncodeTiled) dp_tile_map_encode;

/* The driver's function, without linking the driver; NULL where it is older than CUDA 12. */
static inline dp_tile_map_encode dp_tile_map_encoder(void)
{
    static dp_tile_map_encode encode;
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    if (encode != nullptr) {
        return encode;
    }
#if CUDART_VERSION >= 12050
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                         &result) != cudaSuccess) {
        return nullptr;
    }
#else
    if (cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result) !=
        cudaSuccess) {
        return nullptr;
    }
#endif
    encode = result == cudaDriverEntryPointSuccess ? (dp_tile_map_encode)found : nullptr;
    return encode;
}

static inline CUtensorMapDataType dp_tile_map_type(const dp_bf16 *)
{
    return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

static inline CUtensorMapDataType dp_tile_map_type(const dp_fp16 *)
{
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}

#endif

/* True if maps can be made on this machine. */
static inline bool dp_tile_map_known(void)
{
#if defined(__CUDACC__)
    return dp_tile_map_encoder() != nullptr;
#else
    return true;
#endif
}

/* Token t of row r of x is row r * length + t, ld elements from one to the next; head h begins at h
 * * width. x and ld * 2 at 16 bytes. box: rows of a tile, at most 256. DP_IO: the driver does not
 * take it, or has no such function. */
template <typename T>
DP_MUST static inline dp_status dp_tile_map_make(dp_tile_map *out, const T *x, size_t ld,
                                                 size_t rows, size_t length, size_t heads,
                                                 size_t width, unsigned box)
{
#if defined(__CUDACC__)
    const dp_tile_map_encode encode = dp_tile_map_encoder();
    const cuuint64_t size[4] = {width, heads, length, rows};
    const cuuint64_t stride[3] = {width * sizeof(T), ld * sizeof(T), length * ld * sizeof(T)};
    const cuuint32_t boxes[4] = {DP_PANEL, 1, box, 1};
    const cuuint32_t steps[4] = {1, 1, 1, 1};
    if (encode == nullptr) {
        return DP_IO;
    }
    return encode(out, dp_tile_map_type(x), 4, const_cast<T *>(x), size, stride, boxes, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS
               ? DP_OK
               : DP_IO;
#else
    *out = {(const unsigned char *)x,
            {width, heads, length, rows},
            {sizeof(T), width * sizeof(T), ld * sizeof(T), length * ld * sizeof(T)},
            box};
    return DP_OK;
#endif
}

#if defined(__CUDACC__)

/* ---- on a card */

/* An address of shared memory as instructions take it. */
static __device__ inline uint32_t dp_shared_at(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* By one thread; the block's threads meet before they use it. */
static __device__ inline void dp_barrier_init(dp_barrier *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :
                 : "r"(dp_shared_at(barrier)), "r"(arrivals)
                 : "memory");
}

/* By the thread that has made barriers, before the block meets: the copy engine sees them too. */
static __device__ inline void dp_barriers_made(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

static __device__ inline void dp_barrier_arrive(dp_barrier *barrier)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                 :
                 : "r"(dp_shared_at(barrier))
                 : "memory");
#endif
}

/* Arrives, and so many bytes are to come before the phase ends. */
static __device__ inline void dp_barrier_expect(dp_barrier *barrier, int bytes)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(dp_shared_at(barrier)), "r"(bytes)
                 : "memory");
#endif
}

/* Traps after DP_BARRIER_TRIES: a launch that failed can be told, one that hangs cannot. Counted,
 * because with a clock in the loop ptxas has no registers left for products under way. */
static __device__ inline void dp_barrier_wait(dp_barrier *barrier, int parity)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    const uint32_t at = dp_shared_at(barrier);
    for (int i = 0; i < DP_BARRIER_TRIES; i++) {
        uint32_t ended;
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(ended)
                     : "r"(at), "r"(parity)
                     : "memory");
        if (ended != 0) {
            return;
        }
    }
#endif
    __trap();
}

/* One panel of a tile: rows first .. of the map's box, columns 64 panel .. of a head; those at
 * length or behind are zeros. The bytes are counted by the barrier. By one thread. */
static __device__ inline void dp_panel_ask(void *to, const dp_tile_map *map, int panel, int head,
                                           int first, int row, dp_barrier *barrier)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :
                 : "r"(dp_shared_at(to)), "l"(map), "r"(panel * DP_PANEL), "r"(head), "r"(first),
                   "r"(row), "r"(dp_shared_at(barrier))
                 : "memory");
#endif
}

#else

/* ---- on the processor. Shared memory begins at an odd place of the window, as it may on a card. A
 * copy makes its target NaN at once and comes when somebody asks the barrier and all else is in, as
 * late as it may. */

enum { DP_SHARED_BEGIN = 0x410, DP_PANELS_MAX = 64 };

static inline uint32_t dp_shared_at(const void *at)
{
    return (uint32_t)((const unsigned char *)at - (const unsigned char *)host_gpu_shared_bytes()) +
           DP_SHARED_BEGIN;
}

static inline unsigned char *dp_shared_of(uint32_t at)
{
    return (unsigned char *)host_gpu_shared_bytes() + (at - DP_SHARED_BEGIN);
}

/* Where the byte at this place stands. */
static inline uint32_t dp_swizzled(uint32_t at)
{
    return at ^ (at >> 7 & 7U) << 4;
}

typedef struct dp_barrier_bits {
    uint8_t phase;
    uint8_t arrivals; /* of each phase */
    uint16_t left;    /* arrivals of this one */
    int32_t bytes;    /* expected and not there */
} dp_barrier_bits;
static_assert(sizeof(dp_barrier_bits) == sizeof(dp_barrier), "as large as the card's");

typedef struct dp_panel_copy {
    unsigned char *to;
    const dp_tile_map *map;
    int panel, head, first, row;
    dp_barrier *barrier;
} dp_panel_copy;

static dp_panel_copy dp_panels[DP_PANELS_MAX]; /* under way, of the running block */
static int dp_n_panels;

static inline void dp_barrier_init(dp_barrier *barrier, int arrivals)
{
    if (dp_n_panels > 0) {
        host_gpu_fail(__FILE__, __LINE__, "the block before has ended with copies under way");
    }
    const dp_barrier_bits bits = {0, (uint8_t)arrivals, (uint16_t)arrivals, 0};
    memcpy(barrier, &bits, sizeof bits);
}

static inline void dp_barriers_made(void)
{
}

static inline void dp_barrier_count(dp_barrier *barrier, int arrivals, int bytes)
{
    dp_barrier_bits bits;
    memcpy(&bits, barrier, sizeof bits);
    if (arrivals > bits.left) {
        host_gpu_fail(__FILE__, __LINE__, "more arrivals than the barrier's phase has");
    }
    bits.left = (uint16_t)(bits.left - arrivals);
    bits.bytes += bytes;
    if (bits.left == 0 && bits.bytes == 0) {
        bits.phase ^= 1;
        bits.left = bits.arrivals;
    }
    memcpy(barrier, &bits, sizeof bits);
}

static inline void dp_barrier_arrive(dp_barrier *barrier)
{
    dp_barrier_count(barrier, 1, 0);
}

static inline void dp_barrier_expect(dp_barrier *barrier, int bytes)
{
    dp_barrier_count(barrier, 1, bytes);
}

static inline void dp_panel_come(const dp_panel_copy *c)
{
    const dp_tile_map *const map = c->map;
    const uint32_t to = dp_shared_at(c->to);
    for (unsigned r = 0; r < map->box; r++) {
        const uint64_t token = (uint64_t)c->first + r;
        for (unsigned i = 0; i < DP_PANEL; i++) {
            const uint64_t column = (uint64_t)c->panel * DP_PANEL + i;
            uint16_t half = 0;
            if (token < map->size[2] && column < map->size[0]) {
                memcpy(&half,
                       map->base + column * map->stride[0] + (uint64_t)c->head * map->stride[1] +
                           token * map->stride[2] + (uint64_t)c->row * map->stride[3],
                       sizeof half);
            }
            memcpy(dp_shared_of(dp_swizzled(to + r * 128 + i * 2)), &half, sizeof half);
        }
    }
    dp_barrier_count(c->barrier, 0, -(int)(map->box * DP_PANEL * 2));
}

static inline bool dp_barrier_ended(dp_barrier *barrier, int parity)
{
    dp_barrier_bits bits;
    memcpy(&bits, barrier, sizeof bits);
    if (bits.left == 0) {
        int kept = 0;
        for (int i = 0; i < dp_n_panels; i++) {
            if (dp_panels[i].barrier == barrier) {
                dp_panel_come(&dp_panels[i]);
            } else {
                dp_panels[kept++] = dp_panels[i];
            }
        }
        dp_n_panels = kept;
        memcpy(&bits, barrier, sizeof bits);
    }
    return bits.phase != parity;
}

typedef struct dp_barrier_awaited {
    dp_barrier *barrier;
    int parity;
} dp_barrier_awaited;

static inline bool dp_barrier_ready(const void *argument)
{
    const auto *const a = (const dp_barrier_awaited *)argument;
    return dp_barrier_ended(a->barrier, a->parity);
}

static inline void dp_barrier_wait(dp_barrier *barrier, int parity, HOST_GPU_CALL)
{
    const dp_barrier_awaited awaited = {barrier, parity};
    host_gpu_wait_until("dp_barrier_wait", dp_barrier_ready, &awaited, file, line);
}

static inline void dp_panel_ask(void *to, const dp_tile_map *map, int panel, int head, int first,
                                int row, dp_barrier *barrier)
{
    if (dp_n_panels == DP_PANELS_MAX || dp_shared_at(to) % 128 != 0) {
        host_gpu_fail(__FILE__, __LINE__, "more than %d copies under way, or one to an odd place",
                      DP_PANELS_MAX);
    }
    memset(to, 0xff, (size_t)map->box * DP_PANEL * 2);
    dp_panels[dp_n_panels++] = {(unsigned char *)to, map, panel, head, first, row, barrier};
}

#endif

#endif
