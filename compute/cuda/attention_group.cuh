/* Helpers of the warpgroups of attention_wgmma.cu and attention_wgmma_back.cu: products of whole
 * tiles, a ring of tiles that the copy engine fills, the causal mask. */
#ifndef DP_COMPUTE_CUDA_ATTENTION_GROUP_CUH
#define DP_COMPUTE_CUDA_ATTENTION_GROUP_CUH

#include "compute/cuda/attention_inside.cuh"
#include "compute/cuda/wgmma.cuh"

/* sums = (64 rows of left) * (COLUMNS rows of right)', asked for. left: a tile of 64 rows, right:
 * one of COLUMNS. */
template <typename T, int D, int COLUMNS>
static __device__ inline void dp_group_product(float (&sums)[COLUMNS / 8][4], uint64_t left,
                                               uint64_t right)
{
#pragma unroll
    for (int step = 0; step < D / 16; step++) {
        const int panel = step / 4;
        const int inside = step % 4 * 32;
        dp_group_mma((T *)nullptr, sums,
                     dp_factor_from(left, panel * DP_GROUP_ROWS * DP_PANEL * 2 + inside),
                     dp_factor_from(right, panel * COLUMNS * DP_PANEL * 2 + inside), step > 0);
    }
}

/* sums += held * tile, asked for. held: [64][DEEP] in registers; tile: [DEEP][D]. */
template <typename T, int D, int DEEP>
static __device__ inline void
dp_group_add_product(float (&sums)[D / 8][4], const uint32_t (&held)[DEEP / 16][4], uint64_t tile)
{
#pragma unroll
    for (int step = 0; step < DEEP / 16; step++) {
        dp_group_mma_held((T *)nullptr, sums, held[step],
                          dp_factor_from(tile, step * 16 * DP_PANEL * 2));
    }
}

/* Sums become a left factor. */
template <typename T, int COLUMNS>
static __device__ inline void dp_group_hold(uint32_t (&held)[COLUMNS / 16][4],
                                            const float (&sums)[COLUMNS / 8][4])
{
#pragma unroll
    for (int step = 0; step < COLUMNS / 16; step++) {
        held[step][0] = dp_pack2((T *)nullptr, sums[2 * step][0], sums[2 * step][1]);
        held[step][1] = dp_pack2((T *)nullptr, sums[2 * step][2], sums[2 * step][3]);
        held[step][2] = dp_pack2((T *)nullptr, sums[2 * step + 1][0], sums[2 * step + 1][1]);
        held[step][3] = dp_pack2((T *)nullptr, sums[2 * step + 1][2], sums[2 * step + 1][3]);
    }
}

template <int N> static __device__ inline void dp_group_clear(float (&sums)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; n++) {
        sums[n][0] = sums[n][1] = sums[n][2] = sums[n][3] = 0.0F;
    }
}

/* A tile of ROWS rows of a head, rows first and on. By one thread; it has told the barrier of ROWS
 * * D * 2 bytes. */
template <int D, int ROWS>
static __device__ inline void dp_tile_ask(unsigned char *to, const dp_tile_map *map, int head,
                                          int first, int row, dp_barrier *barrier)
{
#pragma unroll
    for (int panel = 0; panel < D / DP_PANEL; panel++) {
        dp_panel_ask(to + panel * ROWS * DP_PANEL * 2, map, panel, head, first, row, barrier);
    }
}

/* SLOTS of shared memory that are filled and emptied in turn: item i lies in slot i % SLOTS. */
template <int SLOTS> struct dp_ring {
    dp_barrier full[SLOTS];
    dp_barrier empty[SLOTS];
};

/* Until the slot of this item is empty (before it is filled), or full (before it is read). */
template <int SLOTS>
static __device__ inline void dp_ring_await_empty(dp_ring<SLOTS> *ring, int item)
{
    dp_barrier_wait(&ring->empty[item % SLOTS], (item / SLOTS & 1) ^ 1);
}

template <int SLOTS>
static __device__ inline void dp_ring_await_full(dp_ring<SLOTS> *ring, int item)
{
    dp_barrier_wait(&ring->full[item % SLOTS], item / SLOTS & 1);
}

/* This warp has read it. */
template <int SLOTS> static __device__ inline void dp_ring_release(dp_ring<SLOTS> *ring, int item)
{
    if (threadIdx.x % DP_LANES == 0) {
        dp_barrier_arrive(&ring->empty[item % SLOTS]);
    }
}

/* The barriers of the tiles in shared memory: those of the ring, and those of tiles that stay for a
 * whole turn. */
template <int SLOTS> struct dp_tile_barriers {
    dp_ring<SLOTS> ring;
    dp_barrier held; /* they are there */
    dp_barrier done; /* nobody reads them any more */
};

/* By one thread, then the block meets. groups: warpgroups that read. */
template <int SLOTS>
static __device__ inline void dp_tile_barriers_init(dp_tile_barriers<SLOTS> *barriers, int fillers,
                                                    int groups)
{
    const int warps = groups * DP_GROUP / DP_LANES;
    for (int i = 0; i < SLOTS; i++) {
        dp_barrier_init(&barriers->ring.full[i], fillers);
        dp_barrier_init(&barriers->ring.empty[i], warps);
    }
    dp_barrier_init(&barriers->held, 1);
    dp_barrier_init(&barriers->done, warps);
    dp_barriers_made();
}

/* A block takes two tiles of rows, one from each end, so that all blocks have as much to do; the
 * middle one may be alone. */
static __device__ inline int dp_turns(int tiles)
{
    return tiles - 1 - (int)blockIdx.x == (int)blockIdx.x ? 1 : 2;
}

static __device__ inline int dp_turn_of_last(int turn, int tiles)
{
    return turn == 0 ? tiles - 1 - (int)blockIdx.x : (int)blockIdx.x;
}

static __device__ inline int dp_turn_of_first(int turn, int tiles)
{
    return turn == 0 ? (int)blockIdx.x : tiles - 1 - (int)blockIdx.x;
}

/* Blocks of COLUMNS keys that queries below end see. */
template <int COLUMNS> static __device__ inline int dp_blocks_below(int end, int length)
{
    return ((end < length ? end : length) + COLUMNS - 1) / COLUMNS;
}

/* This thread's warpgroup, the same for the whole warp. */
static __device__ inline int dp_group_index(void)
{
    return __shfl_sync(0xffffffffU, (int)threadIdx.x / DP_GROUP, 0);
}

/* Sums of row-like numbers over the four lanes that share a row. */
static __device__ inline float dp_quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 2));
}

static __device__ inline float dp_quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffU, x, 1);
    return x + __shfl_xor_sync(0xffffffffU, x, 2);
}

/* The first of dynamic shared memory where a tile may begin. */
static __device__ inline unsigned char *dp_tiles_begin(unsigned char *room)
{
    return room + (DP_BULK_ALIGN - dp_shared_at(room) % DP_BULK_ALIGN) % DP_BULK_ALIGN;
}

/* This thread's row among the 64 of its warpgroup, the first of its two; the other is 8 behind. */
static __device__ inline int dp_group_row(void)
{
    const int thread = (int)threadIdx.x;
    return thread % DP_GROUP / DP_LANES * 16 + thread % DP_LANES / 4;
}

/* Rows of a head from sums, those below length. first: the tensor's row of this thread's first. */
template <typename T, int D>
static __device__ inline void dp_group_store(T *to, size_t ld, int first, int length,
                                             const float (&sums)[D / 8][4], const float (&scale)[2])
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = first + 8 * i;
        T *const at = to + (size_t)row * ld + 2 * (threadIdx.x % 4);
        if (row < length) {
#pragma unroll
            for (int n = 0; n < D / 8; n++) {
                *(uint32_t *)(at + n * 8) = dp_pack2((T *)nullptr, sums[n][2 * i] * scale[i],
                                                     sums[n][2 * i + 1] * scale[i]);
            }
        }
    }
}

#endif
