/* Tiles of q, k, v and their like for attention_mma.cu: rows of one head in shared memory, and how
 * warps take factors from them. */
#ifndef DP_COMPUTE_CUDA_ATTENTION_TILE_CUH
#define DP_COMPUTE_CUDA_ATTENTION_TILE_CUH

#include "compute/cuda/mma.cuh"

/* A tile is [ROWS][D] halves in chunks of 16 bytes, D a power of two; chunk c of row r lies at
 * place c ^ (r % 8) of its row, so that the eight rows of one ldmatrix, and of one copy, fall in
 * different banks. Offsets are in halves; a step of 16 halves along the row is ^ 16 step, whatever
 * the row. */
template <int D> static __device__ inline int dp_tile_at(int row, int chunk)
{
    static_assert((D & (D - 1)) == 0 && D >= 64, "eight chunks at least");
    return row * D + ((chunk ^ (row & 7)) << 3);
}

/* Rows first .. first + ROWS - 1 of a head of width halves, a multiple of 8 up to D, on their way
 * into the tile; rows at length or behind, and columns at width or behind, are zeros. A thread keeps
 * to one column of chunks. */
template <typename T, int D, int ROWS, int THREADS>
static __device__ inline void dp_tile_load(T *tile, const T *from, size_t ld, int first, int length,
                                           int width)
{
    const int CHUNKS = D / 8;
    const int STEP = THREADS / CHUNKS;
    static_assert(THREADS % CHUNKS == 0 && ROWS % STEP == 0, "whole rounds");
    const int row = (int)threadIdx.x / CHUNKS;
    const int chunk = (int)threadIdx.x % CHUNKS;
    const T *source = from + (size_t)(first + row) * ld + (size_t)(chunk * 8);
#pragma unroll
    for (int i = 0; i < ROWS / STEP; i++) {
        const bool there = first + row + i * STEP < length && chunk * 8 < width;
        dp_copy16(tile + dp_tile_at<D>(row + i * STEP, chunk), there ? source : from, there);
        source += (size_t)STEP * ld;
    }
}

/* A lane's place in the left factor of rows row .. row + 15 (^ 16 step), and, with row 0, in two
 * right factors when the tile's rows are the depth (^ 16 pair, + D depth): depths 0 .. 15, columns
 * 16 pair .. + 7 and + 8 .. + 15. */
template <int D> static __device__ inline int dp_tile_left(int row)
{
    const int lane = (int)threadIdx.x % DP_LANES;
    return dp_tile_at<D>(row + lane % 16, lane / 16);
}

/* In two right factors when the tile's rows are columns of the product (^ 16 step, + D column):
 * columns 0 .. 7 (words 0, 1) and 8 .. 15. */
template <int D> static __device__ inline int dp_tile_right(void)
{
    const int lane = (int)threadIdx.x % DP_LANES;
    return dp_tile_at<D>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
}

/* sums[m][n] = (MT * 16 rows of left from row on) * (COLUMNS rows of right)'. */
template <typename T, int D, int MT, int COLUMNS>
static __device__ inline void dp_tile_product(float (&sums)[MT][COLUMNS / 8][4], const T *left,
                                              int row, const T *right)
{
    const int left_at = dp_tile_left<D>(row);
    const int right_at = dp_tile_right<D>();
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n++) {
            sums[m][n][0] = sums[m][n][1] = sums[m][n][2] = sums[m][n][3] = 0.0F;
        }
    }
#pragma unroll
    for (int step = 0; step < D / 16; step++) {
        uint32_t a[MT][4];
#pragma unroll
        for (int m = 0; m < MT; m++) {
            dp_tiles(a[m], left + (left_at ^ 16 * step) + 16 * m * D);
        }
#pragma unroll
        for (int pair = 0; pair < COLUMNS / 16; pair++) {
            uint32_t b[4];
            dp_tiles(b, right + (right_at ^ 16 * step) + 16 * pair * D);
#pragma unroll
            for (int m = 0; m < MT; m++) {
                dp_mma((T *)nullptr, sums[m][2 * pair], a[m], b);
                dp_mma((T *)nullptr, sums[m][2 * pair + 1], a[m], b + 2);
            }
        }
    }
}

/* sums += factor * tile: factor [MT * 16][DEEP] in the registers of a product, rounded here; tile
 * [DEEP][D]. */
template <typename T, int D, int MT, int DEEP>
static __device__ inline void dp_tile_add_product(float (&sums)[MT][D / 8][4],
                                                  const float (&factor)[MT][DEEP / 8][4],
                                                  const T *tile)
{
    const int at = dp_tile_left<D>(0);
#pragma unroll
    for (int step = 0; step < DEEP / 16; step++) {
        uint32_t a[MT][4];
#pragma unroll
        for (int m = 0; m < MT; m++) {
            const float(&low)[4] = factor[m][2 * step];
            const float(&high)[4] = factor[m][2 * step + 1];
            a[m][0] = dp_pack2((T *)nullptr, low[0], low[1]);
            a[m][1] = dp_pack2((T *)nullptr, low[2], low[3]);
            a[m][2] = dp_pack2((T *)nullptr, high[0], high[1]);
            a[m][3] = dp_pack2((T *)nullptr, high[2], high[3]);
        }
#pragma unroll
        for (int pair = 0; pair < D / 16; pair++) {
            uint32_t b[4];
            dp_tiles_turned(b, tile + (at ^ 16 * pair) + 16 * step * D);
#pragma unroll
            for (int m = 0; m < MT; m++) {
                dp_mma((T *)nullptr, sums[m][2 * pair], a[m], b);
                dp_mma((T *)nullptr, sums[m][2 * pair + 1], a[m], b + 2);
            }
        }
    }
}

/* Rows first .. of a head from a warp's sums, those below length, and of each the first width
 * halves. scale[m][i]: of rows g and g + 8 of m. */
template <typename T, int D, int MT>
static __device__ inline void dp_tile_store(T *to, size_t ld, int first, int length, int width,
                                            const float (&sums)[MT][D / 8][4],
                                            const float (&scale)[MT][2])
{
    const int lane = (int)threadIdx.x % DP_LANES;
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int row = first + 16 * m + 8 * i + lane / 4;
            T *const at = to + (size_t)row * ld + (size_t)(2 * (lane % 4));
            if (row < length) {
#pragma unroll
                for (int n = 0; n < D / 8; n++) {
                    if (n * 8 < width) {
                        *(uint32_t *)(at + n * 8) =
                            dp_pack2((T *)nullptr, sums[m][n][2 * i] * scale[m][i],
                                     sums[m][n][2 * i + 1] * scale[m][i]);
                    }
                }
            }
        }
    }
}

#endif
