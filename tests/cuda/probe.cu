#include "tests/cuda/probe.h"

#include "compute/cuda/launch.h"
#include "compute/cuda/wgmma.cuh"

enum { ALL = 0xffffffff, THREADS_MOST = 256 };

static __device__ unsigned number(void)
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

static __global__ void index_of(uint32_t *out)
{
    out[number()] = number();
}

static __global__ void neighbour(uint32_t *out, bool waits)
{
    __shared__ uint32_t values[THREADS_MOST];
    values[threadIdx.x] = number() + 1;
    if (waits) {
        __syncthreads();
    }
    out[number()] = values[(threadIdx.x + 1) % blockDim.x];
}

static __global__ void dynamic_neighbour(uint32_t *out)
{
    DP_SHARED(uint32_t, values);
    values[threadIdx.x] = number() + 1;
    __syncthreads();
    out[number()] = values[(threadIdx.x + 1) % blockDim.x];
}

static __global__ void shuffles(uint32_t *out)
{
    const unsigned lane = threadIdx.x % 32;
    unsigned sum = lane;
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(ALL, sum, step);
    }
    const unsigned up = __shfl_up_sync(ALL, lane, 3, 8);
    const unsigned down = __shfl_down_sync(ALL, lane, 3, 8);
    const double first = __shfl_sync(ALL, lane + 0.5, 9, 8);
    const bool right = up == (lane % 8 < 3 ? lane : lane - 3) &&
                       down == (lane % 8 > 4 ? lane : lane + 3) && first == lane / 8 * 8 + 1 + 0.5;
    out[number()] = right ? sum : 0;
}

static __global__ void halves(uint32_t *out)
{
    const unsigned lane = threadIdx.x % 32;
    const unsigned mask = lane < 16 ? 0xffffU : 0xffff0000U;
    unsigned sum = lane;
    if (lane < 16) {
        for (int step = 8; step > 0; step /= 2) {
            sum += __shfl_xor_sync(mask, sum, step);
        }
    } else {
        for (int step = 1; step < 16; step *= 2) {
            sum += __shfl_xor_sync(mask, sum, step);
        }
        __syncwarp(mask);
    }
    __syncwarp();
    out[number()] = sum + __shfl_sync(ALL, sum, 0) * 1000;
}

static __global__ void votes(uint32_t *out)
{
    const int odd = static_cast<int>(threadIdx.x % 2);
    const unsigned ballot = __ballot_sync(ALL, odd);
    const bool right = __any_sync(ALL, odd) == 1 && __all_sync(ALL, odd) == 0 &&
                       __syncthreads_or(odd) == 1 && __syncthreads_and(odd) == 0;
    const int count = __syncthreads_count(odd);
    out[number()] = right && ballot == 0xaaaaaaaaU ? static_cast<uint32_t>(count) : 0;
}

static __global__ void atomics(uint32_t *out)
{
    if (number() == 0) {
        out[0] = 0;
        out[1] = 0;
    }
    __syncthreads();
    atomicAdd(&out[0], 1U);
    atomicMax(&out[1], number());
}

static __global__ void return_early(uint32_t *out)
{
    const unsigned lane = threadIdx.x % 32;
    out[number()] = 7;
    if (lane % 2 == 1) {
        return;
    }
    out[number()] = __shfl_sync(0x55555555U, lane, 30);
}

static __global__ void spoiled(uint32_t *out)
{
    __shared__ uint32_t value;
    out[number()] = value;
    __syncthreads();
    value = 1;
}

static __global__ void one_misses(uint32_t *out)
{
    out[number()] = 0;
    if (threadIdx.x == 33) {
        return;
    }
    __syncthreads();
}

static __global__ void two_barriers(uint32_t *out)
{
    out[number()] = 0;
    if (threadIdx.x % 2 == 1) {
        __syncthreads();
    } else {
        __syncthreads();
    }
}

static __global__ void lane_misses(uint32_t *out)
{
    out[number()] = 0;
    if (threadIdx.x == 5) {
        __syncthreads();
    }
    __syncwarp();
}

static __global__ void mixed_masks(uint32_t *out)
{
    out[number()] = __shfl_sync(threadIdx.x < 16 ? 0xffffU : 0xffffffffU, 1U, 0);
}

static __global__ void mixed_calls(uint32_t *out)
{
    if (threadIdx.x % 32 < 16) {
        out[number()] = __shfl_sync(0xffffffffU, 1U, 0);
    } else {
        out[number()] = __ballot_sync(0xffffffffU, 1);
    }
}

static __global__ void not_in_mask(uint32_t *out)
{
    out[number()] = __shfl_sync(0xffffU, 1U, 0);
}

static __global__ void reads_nobody(uint32_t *out)
{
    if (threadIdx.x % 32 < 16) {
        out[number()] = __shfl_sync(0xffffU, 1U, 20);
    }
}

static __global__ void past_shared(uint32_t *out, unsigned more)
{
    __shared__ uint32_t values[THREADS_MOST];
    values[threadIdx.x + more] = 1;
    __syncthreads();
    out[number()] = values[threadIdx.x];
}

static __global__ void past_dynamic(uint32_t *out, unsigned more)
{
    DP_SHARED(uint32_t, values);
    values[threadIdx.x + more] = 1;
    __syncthreads();
    out[number()] = values[threadIdx.x];
}

static __global__ void past_out(uint32_t *out)
{
    out[number() + 1] = 1;
}

static __global__ void arrives(uint32_t *out, int wanted)
{
    DP_SHARED(dp_barrier, barrier);
    if (threadIdx.x == 0) {
        dp_barrier_init(barrier, wanted);
        dp_barriers_made();
    }
    __syncthreads();
    if (threadIdx.x == 1) {
        dp_barrier_arrive(barrier);
    }
    dp_barrier_wait(barrier, 0);
    out[number()] = 1;
}

/* Zeros times zeros. */
static __global__ void group_product(uint32_t *out, bool touches)
{
    DP_SHARED(unsigned char, room);
    unsigned char *const tile = room + (DP_BULK_ALIGN - dp_shared_at(room) % DP_BULK_ALIGN);
    float sums[8][4] = {};
    uint32_t left[4] = {};
    for (unsigned i = threadIdx.x; i < 16 * 128; i += blockDim.x) {
        tile[i] = 0;
    }
    __syncthreads();
    dp_group_begin();
    dp_group_mma_held((dp_bf16 *)nullptr, sums, left, dp_factor<16>(tile));
    dp_group_close();
    const bool nothing = isnan(sums[0][0]) && isnan(sums[7][3]);
    left[3] += touches ? 1 : 0;
    dp_group_wait<0>();
    out[number()] = nothing && sums[0][0] == 0.0F && sums[7][3] == 0.0F ? 1 : 0;
}

/* 168 are given to each of 384 threads: 24 + 2 * 240 fit, 32 + 2 * 240 do not. */
static __global__ void registers(uint32_t *out, unsigned reported, bool enough)
{
    if (threadIdx.x < 2 * DP_GROUP) {
        dp_group_registers_more<240>();
    } else if (enough) {
        dp_group_registers_less<24>();
    } else {
        dp_group_registers_less<32>();
    }
    if (threadIdx.x < reported) {
        out[blockIdx.x * reported + threadIdx.x] = 1;
    }
}

extern "C" dp_status probe_run(probe which, uint32_t *out, unsigned blocks, unsigned threads,
                               cudaStream_t stream)
{
    const size_t bytes = threads * sizeof(uint32_t);
    switch (which) {
    case PROBE_INDEX:
        return DP_LAUNCH(index_of, blocks, threads, 0, stream, out);
    case PROBE_SHARED:
        return DP_LAUNCH(neighbour, blocks, threads, 0, stream, out, true);
    case PROBE_DYNAMIC:
        return DP_LAUNCH(dynamic_neighbour, blocks, threads, bytes, stream, out);
    case PROBE_SHUFFLES:
        return DP_LAUNCH(shuffles, blocks, threads, 0, stream, out);
    case PROBE_HALVES:
        return DP_LAUNCH(halves, blocks, threads, 0, stream, out);
    case PROBE_VOTES:
        return DP_LAUNCH(votes, blocks, threads, 0, stream, out);
    case PROBE_ATOMICS:
        return DP_LAUNCH(atomics, blocks, threads, 0, stream, out);
    case PROBE_RETURN_EARLY:
        return DP_LAUNCH(return_early, blocks, threads, 0, stream, out);
    case PROBE_ARRIVES:
    case PROBE_ARRIVES_NOT:
        return DP_LAUNCH(arrives, blocks, threads, sizeof(dp_barrier), stream, out,
                         which == PROBE_ARRIVES ? 1 : 2);
    case PROBE_PRODUCT:
    case PROBE_PRODUCT_LOST:
        return DP_LAUNCH(group_product, blocks, threads, 16 * 128 + DP_BULK_ALIGN, stream, out,
                         which == PROBE_PRODUCT_LOST);
    case PROBE_GIVES:
    case PROBE_GIVES_LESS:
        return DP_LAUNCH(registers, blocks, 3 * DP_GROUP, 0, stream, out, threads,
                         which == PROBE_GIVES);
    case PROBE_SPOILED:
        return DP_LAUNCH(spoiled, blocks, threads, 0, stream, out);
    case PROBE_NO_BARRIER:
        return DP_LAUNCH(neighbour, blocks, threads, 0, stream, out, false);
    case PROBE_ONE_MISSES:
        return DP_LAUNCH(one_misses, blocks, threads, 0, stream, out);
    case PROBE_TWO_BARRIERS:
        return DP_LAUNCH(two_barriers, blocks, threads, 0, stream, out);
    case PROBE_LANE_MISSES:
        return DP_LAUNCH(lane_misses, blocks, threads, 0, stream, out);
    case PROBE_MIXED_MASKS:
        return DP_LAUNCH(mixed_masks, blocks, threads, 0, stream, out);
    case PROBE_MIXED_CALLS:
        return DP_LAUNCH(mixed_calls, blocks, threads, 0, stream, out);
    case PROBE_NOT_IN_MASK:
        return DP_LAUNCH(not_in_mask, blocks, threads, 0, stream, out);
    case PROBE_READS_NOBODY:
        return DP_LAUNCH(reads_nobody, blocks, threads, 0, stream, out);
    case PROBE_PAST_SHARED:
        return DP_LAUNCH(past_shared, blocks, threads, 0, stream, out, THREADS_MOST - threads + 1);
    case PROBE_PAST_DYNAMIC:
        return DP_LAUNCH(past_dynamic, blocks, threads, bytes, stream, out, 1U);
    case PROBE_PAST_OUT:
        return DP_LAUNCH(past_out, blocks, threads, 0, stream, out);
    case PROBE_TOO_MANY:
        return DP_LAUNCH(index_of, blocks, 2048, 0, stream, out);
    }
    return DP_BADARG;
}
