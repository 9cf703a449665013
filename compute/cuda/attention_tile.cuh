/* Tiles of q, k, v and their like for attention_mma.cu: rows of one head in shared memory, and how warps take factors from them. */
#ifndef DP_COMPUTE_CUDA_ATTENTION_TILE_CUH
#define DP_COMPUTE_CUDA_ATTENTION_TILE_CUH

#include "compute/cuda/mma.cuh"

/* A tile is [ROWS][D] halves in chunks of 16 bytes; chunk c of row r lies at place c ^ (r % 8) of its row, so that the eight rows of
 * one ldmatrix, and of one copy, fall in different banks. */
template <int D> static __device__ inline size_t dp_tile_at(int row, int chunk)
{
    return ((size_t)row * (D / 8) + (size_t)(chunk ^ (row & 7))) * 8;
}

/* Rows first .. first + ROWS - 1 of a head on their way into the tile; those at length or behind are zeros. */
template <typename T, int D, int ROWS>
static __device__ inline void dp_tile_load(T *tile, const T *from, size_t ld, size_t first,
                                           size_t length)
{
    for (int at = (int)threadIdx.x; at < ROWS * D / 8; at += (int)blockDim.x) {
        const int row = at / (D / 8);
        const int chunk = at % (D / 8);
        const bool there = first + (size_t)row < length;
        const size_t source = there ? first + (size_t)row : 0;
        dp_copy16(tile + dp_tile_at<D>(row, chunk), from + source * ld + (size_t)chunk * 8, there);
    }
}

/* The left factor: rows row .. row + 15 at depths 16 step .. */
template <typename T, int D>
static __device__ inline void dp_tile_left(uint32_t out[4], const T *tile, int row, int step)
{
    const int lane = (int)threadIdx.x % DP_LANES;
    dp_tiles(out, tile + dp_tile_at<D>(row + lane % 16, 2 * step + lane / 16));
}

/* Two right factors, when the tile's rows are columns of the product: columns row .. row + 7 (out[0], out[1]) and row + 8 .. (out[2],
 * out[3]) at depths 16 step .. */
template <typename T, int D>
static __device__ inline void dp_tile_right(uint32_t out[4], const T *tile, int row, int step)
{
    const int lane = (int)threadIdx.x % DP_LANES;
    dp_tiles(out, tile + dp_tile_at<D>(row + lane % 8 + lane / 16 * 8, 2 * step + lane / 8 % 2));
}

/* Two right factors, when the tile's rows are the depth: depths row .. row + 15, columns 16 pair .. + 7 and + 8 .. + 15. */
template <typename T, int D>
static __device__ inline void dp_tile_deep(uint32_t out[4], const T *tile, int row, int pair)
{
    const int lane = (int)threadIdx.x % DP_LANES;
    dp_tiles_turned(out, tile + dp_tile_at<D>(row + lane % 16, 2 * pair + lane / 16));
}

/* sums[m][n] = (MT * 16 rows of left from row on) * (COLUMNS rows of right)'. */
template <typename T, int D, int MT, int COLUMNS>
static __device__ inline void dp_tile_product(float (&sums)[MT][COLUMNS / 8][4], const T *left,
                                              int row, const T *right)
{
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
            dp_tile_left<T, D>(a[m], left, row + 16 * m, step);
        }
#pragma unroll
        for (int pair = 0; pair < COLUMNS / 16; pair++) {
            uint32_t b[4];
            dp_tile_right<T, D>(b, right, 16 * pair, step);
#pragma unroll
            for (int m = 0; m < MT; m++) {
                dp_mma((T *)nullptr, sums[m][2 * pair], a[m], b);
                dp_mma((T *)nullptr, sums[m][2 * pair + 1], a[m], b + 2);
            }
        }
    }
}

/* sums += factor * tile: factor [MT * 16][DEEP] in the registers of a product, rounded here; tile [DEEP][D]. */
template <typename T, int D, int MT, int DEEP>
static __device__ inline void dp_tile_add_product(float (&sums)[MT][D / 8][4],
                                                  const float (&factor)[MT][DEEP / 8][4],
                                                  const T *tile)
{
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
            dp_tile_deep<T, D>(b, tile, 16 * step, pair);
#pragma unroll
            for (int m = 0; m < MT; m++) {
                dp_mma((T *)nullptr, sums[m][2 * pair], a[m], b);
                dp_mma((T *)nullptr, sums[m][2 * pair + 1], a[m], b + 2);
            }
        }
    }
}

/* Rows first .. of a head from a warp's sums, those below length. scale[m][i]: of rows g and g + 8 of m. */
template <typename T, int D, int MT>
static __device__ inline void dp_tile_store(T *to, size_t ld, size_t first, size_t length,
                                            const float (&sums)[MT][D / 8][4],
                                            const float (&scale)[MT][2])
{
    const size_t lane = threadIdx.x % DP_LANES;
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const size_t row = first + (size_t)(16 * m + 8 * i) + lane / 4;
            if (row >= length) {
                continue;
            }
#pragma unroll
            for (int n = 0; n < D / 8; n++) {
                *(uint32_t *)(to + row * ld + (size_t)n * 8 + 2 * (lane % 4)) =
                    dp_pack2((T *)nullptr, sums[m][n][2 * i] * scale[m][i],
                             sums[m][n][2 * i + 1] * scale[m][i]);
            }
        }
    }
}

#endif
