/* Encoding by codecs of one scale per block: int8 and int4.
 *
 * A thread block takes 8,192 elements, which are whole blocks. A thread has 32 of them in
 * registers, of one block or of two of 64, as fours that neighbours have side by side; a block's
 * elements are read once. Codes meet in shared memory, because blocks begin at any even byte, and
 * leave it as words. */
#include "compute/cuda/codecs_blocks.cuh"

#include "compute/cuda/launch.h"

namespace
{

/* Where a thread's fours are. */
template <dp_codec_kind KIND, unsigned BLOCK> struct shape {
    static constexpr unsigned LANES = BLOCK == 64 ? 4 : BLOCK / DP_BLOCKS_EACH; /* of a block */
    static constexpr unsigned FOURS = BLOCK / 4 / LANES; /* of a thread in a block */
    static constexpr unsigned PASSES = DP_BLOCKS_FOURS / FOURS;
    static constexpr unsigned BYTES = dp_codec_block_bytes(KIND, BLOCK);
    static constexpr unsigned TILE_BYTES = DP_BLOCKS_TILE / BLOCK * BYTES;

    /* Of the tile. */
    static __device__ __forceinline__ unsigned block(unsigned pass)
    {
        return pass * (DP_CODEC_THREADS / LANES) + threadIdx.x / LANES;
    }
    /* Of the block. */
    static __device__ __forceinline__ unsigned four(unsigned k)
    {
        return k % FOURS * LANES + threadIdx.x % LANES;
    }
    static __device__ __forceinline__ unsigned element(unsigned k)
    {
        return block(k / FOURS) * BLOCK + 4 * four(k);
    }
};

/* Loads elements of a tile; those behind the end of the vector are 0. */
template <typename S>
__device__ __forceinline__ void load(float v[DP_BLOCKS_FOURS][4], const float *__restrict__ a,
                                     size_t left)
{
#pragma unroll
    for (unsigned k = 0; k < DP_BLOCKS_FOURS; k++) {
        const unsigned at = S::element(k);
        if (left >= DP_BLOCKS_TILE || at + 4 <= left) {
            const dp_chunk four = *reinterpret_cast<const dp_chunk *>(a + at);
#pragma unroll
            for (unsigned c = 0; c < 4; c++) {
                v[k][c] = dp_of_bits(four.word[c]);
            }
        } else {
            for (unsigned c = 0; c < 4; c++) {
                v[k][c] = at + c < left ? a[at + c] : 0.0F;
            }
        }
    }
}

/* ---- Over the threads of a block. */

/* Every thread of a block calls and gets it. */
template <unsigned LANES> __device__ __forceinline__ uint32_t largest_of_lanes(uint32_t x)
{
    static_assert(LANES <= 32, "a block's threads are of one warp");
#pragma unroll
    for (unsigned step = LANES / 2; step > 0; step /= 2) {
        x = max(x, __shfl_xor_sync(DP_BLOCKS_ALL, x, static_cast<int>(step)));
    }
    return x;
}

template <typename S>
__device__ __forceinline__ void find_largest(const float v[DP_BLOCKS_FOURS][4],
                                             uint32_t largest[S::PASSES])
{
#pragma unroll
    for (unsigned pass = 0; pass < S::PASSES; pass++) {
        float most = 0;
#pragma unroll
        for (unsigned k = pass * S::FOURS; k < (pass + 1) * S::FOURS; k++) {
#pragma unroll
            for (unsigned c = 0; c < 4; c++) {
                most = dp_larger(most, v[k][c]);
            }
        }
        largest[pass] = largest_of_lanes<S::LANES>(dp_bits_of(most));
    }
}

/* y[pass] = of(x[pass]), each by its own lanes and for all passes at once. */
template <typename S, typename Of>
__device__ __forceinline__ void each_pass(const uint32_t x[S::PASSES], uint32_t y[S::PASSES], Of of)
{
    if (S::PASSES == 1) {
        y[0] = of(x[0]);
        return;
    }
    const unsigned lane = threadIdx.x % 32;
    const uint32_t mine = of(lane % 2 == 0 ? x[0] : x[S::PASSES - 1]);
#pragma unroll
    for (unsigned pass = 0; pass < S::PASSES; pass++) {
        y[pass] = __shfl_sync(DP_BLOCKS_ALL, mine, static_cast<int>((lane & ~1U) + pass));
    }
}

/* ---- Into shared memory. */

template <typename S>
__device__ __forceinline__ void put_scales(const uint32_t half[S::PASSES], uint16_t *stage)
{
    if (threadIdx.x % S::LANES == 0) {
#pragma unroll
        for (unsigned pass = 0; pass < S::PASSES; pass++) {
            stage[S::block(pass) * (S::BYTES / 2)] = static_cast<uint16_t>(half[pass]);
        }
    }
}

/* Four codes of 4 bits. */
template <typename S>
__device__ __forceinline__ void put_nibbles(unsigned k, uint32_t codes, uint16_t *stage)
{
    stage[S::block(k / S::FOURS) * (S::BYTES / 2) + 1 + S::four(k)] = static_cast<uint16_t>(codes);
}

/* ---- Uniform steps. */

/* Nearest steps of a four, as floats that hold them in their lowest bits. */
__device__ __forceinline__ void steps_of(const float v[4], float scale, float inverse,
                                         uint32_t step[4])
{
#pragma unroll
    for (unsigned c = 0; c < 4; c++) {
        step[c] = dp_bits_of(dp_element_quotient(v[c], scale, inverse) + DP_BLOCKS_MAGIC);
    }
}

/* Where a scale is at its limit, or one less than what its largest asks for: all that would round
 * past most. */
template <typename S>
__device__ __forceinline__ void keep_within(float v[DP_BLOCKS_FOURS][4],
                                            const float limit[S::PASSES])
{
#pragma unroll
    for (unsigned k = 0; k < DP_BLOCKS_FOURS; k++) {
#pragma unroll
        for (unsigned c = 0; c < 4; c++) {
            v[k][c] = fmaxf(fminf(v[k][c], limit[k / S::FOURS]), -limit[k / S::FOURS]);
        }
    }
}

/* Of the largest value of a block; 0: the codec has no steps. */
__host__ __device__ constexpr float most_steps(dp_codec_kind kind)
{
    switch (kind) {
    case DP_CODEC_INT8:
        return 127.0F;
    case DP_CODEC_INT4:
        return 7.0F;
    case DP_CODEC_FP32:
    case DP_CODEC_BF16:
    case DP_CODEC_SPARSE:
    case DP_CODEC_KINDS:
        break;
    }
    return 0.0F;
}

template <dp_codec_kind KIND, typename S>
__device__ __forceinline__ void put_steps(float v[DP_BLOCKS_FOURS][4],
                                          const uint32_t largest[S::PASSES], uint16_t *stage)
{
    constexpr float MOST = most_steps(KIND);
    uint32_t half[S::PASSES];
    each_pass<S>(largest, half, [=](uint32_t x) { return dp_scale_of_steps(dp_of_bits(x), MOST); });
    put_scales<S>(half, stage);
    float scale[S::PASSES];
    float inverse[S::PASSES];
    float limit[S::PASSES];
    bool past = false;
#pragma unroll
    for (unsigned pass = 0; pass < S::PASSES; pass++) {
        scale[pass] = dp_half_exact(half[pass]);
        inverse[pass] = half[pass] == 0 ? 0.0F : dp_near_inverse(scale[pass]);
        limit[pass] = MOST * scale[pass];
        past = past || dp_of_bits(largest[pass]) > limit[pass];
    }
    if (__ballot_sync(DP_BLOCKS_ALL, past ? 1 : 0) != 0) {
        keep_within<S>(v, limit);
    }
#pragma unroll
    for (unsigned k = 0; k < DP_BLOCKS_FOURS; k++) {
        uint32_t step[4];
        steps_of(v[k], scale[k / S::FOURS], inverse[k / S::FOURS], step);
        if constexpr (KIND == DP_CODEC_INT8) {
            uint16_t *const to =
                stage + S::block(k / S::FOURS) * (S::BYTES / 2) + 1 + 2 * S::four(k);
            to[0] = static_cast<uint16_t>(dp_bytes_of(step[0], step[1], 0x40U));
            to[1] = static_cast<uint16_t>(dp_bytes_of(step[2], step[3], 0x40U));
        } else {
            static_assert(KIND == DP_CODEC_INT4, "a codec of steps");
            /* Digits that are 8 too large carry nothing into each other. */
            const uint32_t sum = ((step[3] * 16 + step[2]) * 16 + step[1]) * 16 + step[0];
            put_nibbles<S>(k, (sum + 0x8888U) ^ 0x8888U, stage);
        }
    }
}

/* ---- */

/* Bytes of the first `left` elements of a tile that is not whole. */
template <dp_codec_kind KIND, unsigned BLOCK>
__device__ __forceinline__ unsigned bytes_of(size_t left)
{
    typedef shape<KIND, BLOCK> S;
    const auto n = static_cast<unsigned>(left);
    const unsigned rest = n % BLOCK;
    return n / BLOCK * S::BYTES + (rest > 0 ? dp_codec_block_bytes(KIND, rest) : 0);
}

template <dp_codec_kind KIND, unsigned BLOCK>
__global__ void __launch_bounds__(DP_CODEC_THREADS)
    write_blocks(const float *__restrict__ a, size_t n, uint8_t *__restrict__ out, uint32_t *bad)
{
    typedef shape<KIND, BLOCK> S;
    static_assert(S::TILE_BYTES % 4 == 0, "tiles begin at words");
    __shared__ uint32_t stage[S::TILE_BYTES / 4];
    const size_t first = static_cast<size_t>(blockIdx.x) * DP_BLOCKS_TILE;
    const size_t left = n - first;
    float v[DP_BLOCKS_FOURS][4];
    uint32_t largest[S::PASSES];
    load<S>(v, a + first, left);
    find_largest<S>(v, largest);
    bool finite = true;
#pragma unroll
    for (unsigned pass = 0; pass < S::PASSES; pass++) {
        finite = finite && largest[pass] < DP_BLOCKS_INFINITY;
    }
    if (__syncthreads_or(finite ? 0 : 1) != 0) {
        if (threadIdx.x == 0) {
            *bad = 1;
        }
        return;
    }
    put_steps<KIND, S>(v, largest, reinterpret_cast<uint16_t *>(stage));
    __syncthreads();
    uint8_t *const to = out + static_cast<size_t>(blockIdx.x) * S::TILE_BYTES;
    if (left >= DP_BLOCKS_TILE) {
#pragma unroll
        for (unsigned i = threadIdx.x; i < S::TILE_BYTES / 4; i += DP_CODEC_THREADS) {
            reinterpret_cast<uint32_t *>(to)[i] = stage[i];
        }
        return;
    }
    const unsigned bytes = bytes_of<KIND, BLOCK>(left);
    for (unsigned i = threadIdx.x; i < bytes / 4; i += DP_CODEC_THREADS) {
        reinterpret_cast<uint32_t *>(to)[i] = stage[i];
    }
    if (threadIdx.x < bytes % 4) {
        const unsigned at = bytes / 4 * 4 + threadIdx.x;
        to[at] = reinterpret_cast<const uint8_t *>(stage)[at];
    }
}

template <dp_codec_kind KIND, unsigned BLOCK>
dp_status launch(const float *a, size_t n, const dp_cuda_encoding &to, cudaStream_t stream)
{
    return DP_LAUNCH((write_blocks<KIND, BLOCK>), dp_cuda_blocks(n, DP_BLOCKS_TILE),
                     DP_CODEC_THREADS, 0, stream, a, n, to.out, to.bad);
}

typedef dp_status (*launcher)(const float *a, size_t n, const dp_cuda_encoding &to,
                              cudaStream_t stream);

struct row {
    dp_codec_kind kind;
    uint32_t block;
    launcher run;
};

#define ROW(kind, block)                                                                           \
    {                                                                                              \
        kind, block, launch<kind, block>                                                           \
    }
const row rows[] = {
    ROW(DP_CODEC_INT8, 256), ROW(DP_CODEC_INT8, 512), ROW(DP_CODEC_INT8, 1024),
    ROW(DP_CODEC_INT4, 64),  ROW(DP_CODEC_INT4, 128), ROW(DP_CODEC_INT4, 256),
};

} // namespace

dp_status dp_blocks_encode(const float *a, size_t n, const dp_cuda_blob &codec,
                           const dp_cuda_encoding &to, cudaStream_t stream)
{
    for (const row &r : rows) {
        if (r.kind == codec.kind && r.block == codec.block) {
            return r.run(a, n, to, stream);
        }
    }
    return DP_BADARG;
}
