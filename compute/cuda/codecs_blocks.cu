/* Encoding by codecs of one scale per block: int8, int4, e3m0 and sign.
 *
 * A thread block takes 8,192 elements, which are whole blocks. A thread has 32 of them in
 * registers, of one block or of two of 64, as fours that neighbours have side by side; a block's
 * elements are read once. Codes meet in shared memory, because blocks begin at any even byte, and
 * leave it as words. */
#include "compute/cuda/codecs_blocks.cuh"

#include "compute/cuda/launch.h"

namespace
{

enum { WARPS = DP_CODEC_THREADS / 32 };

/* Where a thread's fours are. */
template <dp_codec_kind KIND, unsigned BLOCK> struct shape {
    static constexpr unsigned LANES = BLOCK == 64 ? 4 : BLOCK / DP_BLOCKS_EACH; /* of a block */
    static constexpr unsigned FOURS = BLOCK / 4 / LANES; /* of a thread in a block */
    static constexpr unsigned PASSES = DP_BLOCKS_FOURS / FOURS;
    static constexpr unsigned BYTES = 2 + (KIND == DP_CODEC_INT8   ? BLOCK
                                           : KIND == DP_CODEC_SIGN ? BLOCK / 8
                                                                   : BLOCK / 2);
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

/* ---- Over the threads of a block. Every thread calls and gets it. */

template <unsigned LANES, typename T, typename Join>
__device__ __forceinline__ T joined(T x, T *room, Join join)
{
#pragma unroll
    for (unsigned step = (LANES < 32 ? LANES : 32) / 2; step > 0; step /= 2) {
        x = join(x, __shfl_xor_sync(DP_BLOCKS_ALL, x, static_cast<int>(step)));
    }
    if (LANES > 32) {
        constexpr unsigned SHARED_BY = LANES > 32 ? LANES / 32 : 1; /* warps */
        const unsigned warp = threadIdx.x / 32;
        __syncthreads(); /* The threads that read room before are done. */
        if (threadIdx.x % 32 == 0) {
            room[warp] = x;
        }
        __syncthreads();
        const unsigned first = warp - warp % SHARED_BY;
        x = room[first];
        for (unsigned i = 1; i < SHARED_BY; i++) {
            x = join(x, room[first + i]);
        }
    }
    return x;
}

template <typename S>
__device__ __forceinline__ void find_largest(const float v[DP_BLOCKS_FOURS][4],
                                             uint32_t largest[S::PASSES], uint32_t *room)
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
        largest[pass] = joined<S::LANES>(dp_bits_of(most), room,
                                         [](uint32_t x, uint32_t y) { return max(x, y); });
    }
}

/* y[pass] = of(x[pass]), each by its own lanes and for all passes at once. */
template <typename S, typename X, typename Of>
__device__ __forceinline__ void each_pass(const X x[S::PASSES], uint32_t y[S::PASSES], Of of)
{
    if (S::PASSES == 1) {
        y[0] = of(x[0]);
        return;
    }
    const unsigned lane = threadIdx.x % 32;
    X own = x[0];
    if (lane % 2 != 0) {
        own = x[S::PASSES - 1];
    }
    const uint32_t mine = of(own);
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

template <dp_codec_kind KIND, typename S>
__device__ __forceinline__ void put_steps(float v[DP_BLOCKS_FOURS][4],
                                          const uint32_t largest[S::PASSES], uint16_t *stage)
{
    constexpr float MOST = KIND == DP_CODEC_INT8 ? 127.0F : 7.0F;
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
        if (KIND == DP_CODEC_INT8) {
            uint16_t *const to =
                stage + S::block(k / S::FOURS) * (S::BYTES / 2) + 1 + 2 * S::four(k);
            to[0] = static_cast<uint16_t>(dp_bytes_of(step[0], step[1], 0x40U));
            to[1] = static_cast<uint16_t>(dp_bytes_of(step[2], step[3], 0x40U));
        } else {
            /* Digits that are 8 too large carry nothing into each other. */
            const uint32_t sum = ((step[3] * 16 + step[2]) * 16 + step[1]) * 16 + step[0];
            put_nibbles<S>(k, (sum + 0x8888U) ^ 0x8888U, stage);
        }
    }
}

/* ---- Powers of two. */

/* Sums over a thread's elements, each exact. With 2^E the power of two not above the largest, an
 * |a| p that counts is below 2^E+1, and a multiple of 2^(E - 38): an element with a power is at
 * least 2^(E - 8). high has multiples of 2^(E - 18), low the rest, both of 32 elements. */
struct power_sums {
    float high;
    float low;
    float squares; /* of p: multiples of 2^-12 */
};

/* The power of |a|: 2^(j - 7) with the sign of a, 0 for none. */
__device__ __forceinline__ uint32_t power_of(float a, float inverse)
{
    const float y = dp_of_bits(dp_element_key(a)) * inverse;
    /* 1.5 times a power on is the next; 2^-6 is the least. */
    const uint32_t rounded = max(dp_bits_of(y) + 0x400000U, 121U << 23);
    const uint32_t power = (rounded & 0x7f800000U) | (dp_bits_of(a) & 0x80000000U);
    return y >= 0x1p-7F ? power : 0U;
}

__device__ __forceinline__ void add_power(power_sums &sums, float a, uint32_t power, float magic)
{
    const float p = dp_of_bits(power); /* Has the sign of a, or is 0. */
    const float shifted = fmaf(a, p, magic);
    const float high = shifted - magic;
    sums.high += high;
    sums.low += fmaf(a, p, -high);
    sums.squares = fmaf(p, p, sums.squares);
}

/* j and the sign, 4 bits each. */
__device__ __forceinline__ uint32_t nibbles_of(const uint32_t power[4])
{
    uint32_t codes = 0;
#pragma unroll
    for (int c = 0; c < 4; c++) {
        codes |= power[c] >> (23 - 4 * c) & 7U << 4 * c; /* 120 + j: 120 ends in three zeros. */
        codes |= power[c] >> (28 - 4 * c) & 8U << 4 * c;
    }
    return codes;
}

/* The sums from which dp_element_mean makes a scale. */
struct powers_total {
    uint32_t high;
    uint32_t low;
    uint32_t squares;
    uint32_t largest;
};

__device__ __forceinline__ uint32_t scale_of_powers(const powers_total &total)
{
    if (total.largest < 101U << 23) { /* 2^-26: as codec_e3m0.c */
        return 0;
    }
    if (total.largest >= 147U << 23) { /* 2^20: at least half of it, more than any half. */
        return DP_HALF_MAX;
    }
    const int64_t sum = (static_cast<int64_t>(total.high) << 20) + static_cast<int32_t>(total.low);
    return dp_element_mean(static_cast<uint64_t>(sum), total.squares,
                           dp_element_top(total.largest) + 6 + 15);
}

template <typename S>
__device__ __forceinline__ void put_powers(const float v[DP_BLOCKS_FOURS][4],
                                           const uint32_t largest[S::PASSES], uint16_t *stage,
                                           uint32_t *room)
{
    const auto sum = [](uint32_t x, uint32_t y) { return x + y; };
    powers_total total[S::PASSES];
    uint32_t codes[DP_BLOCKS_FOURS];
#pragma unroll
    for (unsigned pass = 0; pass < S::PASSES; pass++) {
        const bool any = largest[pass] >= 101U << 23;
        /* Above 2^20 the sum is not used (scale_of_powers), so its value does not matter. */
        const uint32_t top = min(max(largest[pass] >> 23, 101U), 147U);
        const float inverse = any ? 1.0F / (0.875F * dp_of_bits(largest[pass])) : 0.0F;
        const float magic = dp_of_bits((top - 18 + 23) << 23 | 0x400000U);
        power_sums sums = {0, 0, 0};
#pragma unroll
        for (unsigned k = pass * S::FOURS; k < (pass + 1) * S::FOURS; k++) {
            uint32_t power[4];
#pragma unroll
            for (unsigned c = 0; c < 4; c++) {
                power[c] = power_of(v[k][c], inverse);
                add_power(sums, v[k][c], power[c], magic);
            }
            codes[k] = nibbles_of(power);
        }
        const bool counts = any && largest[pass] < 147U << 23;
        const float unit = dp_of_bits((254 - top + 18) << 23); /* 2^(18 - E) */
        const float high = counts ? sums.high * unit : 0.0F;
        const float low = counts ? sums.low * unit * 0x1p20F : 0.0F;
        total[pass].high = joined<S::LANES>(static_cast<uint32_t>(high), room, sum);
        total[pass].low =
            joined<S::LANES>(static_cast<uint32_t>(static_cast<int32_t>(low)), room, sum);
        total[pass].squares =
            joined<S::LANES>(static_cast<uint32_t>(sums.squares * 4096.0F), room, sum);
        total[pass].largest = largest[pass];
    }
    uint32_t half[S::PASSES];
    each_pass<S>(total, half, [](const powers_total &x) { return scale_of_powers(x); });
    put_scales<S>(half, stage);
#pragma unroll
    for (unsigned k = 0; k < DP_BLOCKS_FOURS; k++) {
        put_nibbles<S>(k, half[k / S::FOURS] == 0 ? 0 : codes[k], stage);
    }
}

/* ---- Signs. */

/* dp_element_magnitude, summed. Subnormal values count for nothing beside any largest whose mean is
 * a half. */
struct magnitudes {
    uint64_t sum;
    uint32_t cut; /* of those whose last bits fall off */

    __device__ __forceinline__ void add(float a, uint32_t top)
    {
        const uint32_t bits = dp_bits_of(a);
        const uint32_t significand = (bits & 0x7fffffU) | 0x800000U;
        const uint32_t field = bits << 1 >> 24;
        const uint32_t left = 23 - top + field; /* 23 - distance */
        sum += static_cast<uint64_t>(significand) * dp_shift_up(2, left);
        cut += dp_shift_down(significand, ~left); /* distance - 24 */
    }
};

struct signs_total {
    uint64_t sum;
    uint32_t largest;
    uint32_t length;
};

template <typename S>
__device__ __forceinline__ void put_signs(const float v[DP_BLOCKS_FOURS][4],
                                          const uint32_t largest[S::PASSES], size_t left,
                                          uint8_t *stage, unsigned long long *room)
{
    signs_total total[S::PASSES];
#pragma unroll
    for (unsigned pass = 0; pass < S::PASSES; pass++) {
        const uint32_t top = largest[pass] >> 23;
        magnitudes all = {0, 0};
#pragma unroll
        for (unsigned k = pass * S::FOURS; k < (pass + 1) * S::FOURS; k++) {
#pragma unroll
            for (unsigned c = 0; c < 4; c++) {
                all.add(v[k][c], top);
            }
        }
        constexpr unsigned BLOCK = S::LANES * S::FOURS * 4;
        const size_t first = static_cast<size_t>(S::block(pass)) * BLOCK;
        const size_t rest = left > first ? left - first : 1;
        total[pass].sum =
            joined<S::LANES>(static_cast<unsigned long long>(all.sum + all.cut), room,
                             [](unsigned long long x, unsigned long long y) { return x + y; });
        total[pass].largest = largest[pass];
        total[pass].length = rest < BLOCK ? static_cast<uint32_t>(rest) : BLOCK;
    }
    uint32_t half[S::PASSES];
    each_pass<S>(total, half, [](const signs_total &x) {
        /* No more than 2^-25, which rounds to 0. */
        return x.largest < 102U << 23
                   ? 0U
                   : static_cast<uint32_t>(dp_element_mean(x.sum, x.length, x.largest >> 23));
    });
    put_scales<S>(half, reinterpret_cast<uint16_t *>(stage));
    uint32_t bits = 0; /* Of four k from 4 k on. */
#pragma unroll
    for (int i = DP_BLOCKS_EACH - 1; i >= 0; i--) {
        const float value = v[i / 4][i % 4] + 0.0F; /* -0 becomes 0. */
        bits = bits << 1 | dp_bits_of(value) >> 31;
    }
#pragma unroll
    for (unsigned pass = 0; pass < S::PASSES; pass++) {
        constexpr uint32_t MINE = S::PASSES == 1 ? 0xffffffffU : 0xffffU;
        bits &= half[pass] == 0 ? ~(MINE << (16 * pass)) : 0xffffffffU;
    }
    /* A byte is of two lanes: one takes those of its even fours, the other of its odd ones. */
    const uint32_t other = __shfl_xor_sync(DP_BLOCKS_ALL, bits, 1);
    const unsigned odd = threadIdx.x % 2;
    const uint32_t bytes = odd == 0 ? (bits & 0x0f0f0f0fU) | (other << 4 & 0xf0f0f0f0U)
                                    : (other >> 4 & 0x0f0f0f0fU) | (bits & 0xf0f0f0f0U);
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        const unsigned k = 2 * i + odd;
        stage[S::block(2 * i / S::FOURS) * S::BYTES + 2 + S::four(k) / 2] =
            static_cast<uint8_t>(bytes >> (8 * i));
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
    const unsigned codes = KIND == DP_CODEC_INT8   ? rest
                           : KIND == DP_CODEC_SIGN ? (rest + 7) / 8
                                                   : (rest + 1) / 2;
    return n / BLOCK * S::BYTES + (rest > 0 ? 2 + codes : 0);
}

template <dp_codec_kind KIND, unsigned BLOCK>
__global__ void __launch_bounds__(DP_CODEC_THREADS)
    write_blocks(const float *__restrict__ a, size_t n, uint8_t *__restrict__ out, uint32_t *bad)
{
    typedef shape<KIND, BLOCK> S;
    static_assert(S::TILE_BYTES % 4 == 0, "tiles begin at words");
    __shared__ uint32_t stage[S::TILE_BYTES / 4];
    __shared__ unsigned long long room[WARPS];
    const size_t first = static_cast<size_t>(blockIdx.x) * DP_BLOCKS_TILE;
    const size_t left = n - first;
    float v[DP_BLOCKS_FOURS][4];
    uint32_t largest[S::PASSES];
    load<S>(v, a + first, left);
    find_largest<S>(v, largest, reinterpret_cast<uint32_t *>(room));
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
    auto *const halves = reinterpret_cast<uint16_t *>(stage);
    if (KIND == DP_CODEC_E3M0) {
        put_powers<S>(v, largest, halves, reinterpret_cast<uint32_t *>(room));
    } else if (KIND == DP_CODEC_SIGN) {
        put_signs<S>(v, largest, left, reinterpret_cast<uint8_t *>(stage), room);
    } else {
        put_steps<KIND, S>(v, largest, halves);
    }
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
    uint32_t kind;
    uint32_t block;
    launcher run;
};

#define ROW(kind, block)                                                                           \
    {                                                                                              \
        kind, block, launch<kind, block>                                                           \
    }
const row rows[] = {
    ROW(DP_CODEC_INT8, 256),  ROW(DP_CODEC_INT8, 512),  ROW(DP_CODEC_INT8, 1024),
    ROW(DP_CODEC_INT4, 64),   ROW(DP_CODEC_INT4, 128),  ROW(DP_CODEC_INT4, 256),
    ROW(DP_CODEC_E3M0, 64),   ROW(DP_CODEC_E3M0, 128),  ROW(DP_CODEC_E3M0, 256),
    ROW(DP_CODEC_SIGN, 64),   ROW(DP_CODEC_SIGN, 128),  ROW(DP_CODEC_SIGN, 256),
    ROW(DP_CODEC_SIGN, 512),  ROW(DP_CODEC_SIGN, 1024), ROW(DP_CODEC_SIGN, 2048),
    ROW(DP_CODEC_SIGN, 4096),
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
