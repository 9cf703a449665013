/* Sums over the threads of a warp and of a block in an order that the shape alone fixes. */
#ifndef DP_COMPUTE_CUDA_REDUCE_CUH
#define DP_COMPUTE_CUDA_REDUCE_CUH

#include "compute/cuda/element.cuh"

enum { DP_WARPS_MAX = 32 };

/* Over groups of lanes side by side, a power of two; every lane of the group gets it. All lanes of
 * the warp call. */
static __device__ inline float dp_lanes_sum(float x, int lanes)
{
    for (int step = lanes / 2; step > 0; step /= 2) {
        x += __shfl_xor_sync(0xffffffffU, x, step);
    }
    return x;
}

static __device__ inline float dp_lanes_max(float x, int lanes)
{
    for (int step = lanes / 2; step > 0; step /= 2) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, step));
    }
    return x;
}

/* Room of a block for two sums; calls take turns between the halves, so that one barrier each is
 * enough. */
typedef struct dp_block_room {
    float sums[2][2][DP_WARPS_MAX];
} dp_block_room;

/* *a and *b become their sums over the block (blockDim.x threads, whole warps). turn: 0, 1, 0,
 * ... */
static __device__ inline void dp_block_sums(dp_block_room *room, int turn, float *a, float *b)
{
    const int warp = (int)threadIdx.x / DP_LANES;
    const int warps = (int)blockDim.x / DP_LANES;
    const float of_a = dp_lanes_sum(*a, DP_LANES);
    const float of_b = dp_lanes_sum(*b, DP_LANES);
    if (threadIdx.x % DP_LANES == 0) {
        room->sums[turn][0][warp] = of_a;
        room->sums[turn][1][warp] = of_b;
    }
    __syncthreads();
    *a = 0.0F;
    *b = 0.0F;
    for (int i = 0; i < warps; i++) {
        *a += room->sums[turn][0][i];
        *b += room->sums[turn][1][i];
    }
}

#endif
