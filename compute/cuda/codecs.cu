/* Encoding by codecs that keep all elements: floats, and blocks under one scale. codecs_kept.cu has the others. */
#include "compute/cuda/codecs.h"

#include "compute/cuda/codecs.cuh"
#include "compute/cuda/codecs_kept.cuh"
#include "compute/cuda/element.cuh"
#include "compute/cuda/launch.h"

enum { WARPS = DP_CODEC_THREADS / 32 };
#define VALUE_MAX_BITS 0x5d800000U /* of DP_CODEC_VALUE_MAX, 2^60 */
#define INFINITY_BITS 0x7f800000U

/* ---- How many bytes it becomes. */

static __global__ void tell(uint64_t *bytes, uint64_t count)
{
    *bytes = count;
}

/* All blocks of n elements and the rest, which may be part of one. */
static uint64_t payload_bytes(const dp_cuda_blob &codec, size_t n)
{
    switch (codec.kind) {
    case DP_CODEC_FP32:
        return 4 * static_cast<uint64_t>(n);
    case DP_CODEC_BF16:
    case DP_CODEC_FP16:
        return 2 * static_cast<uint64_t>(n);
    default:
        break;
    }
    const size_t rest = n % codec.block;
    const size_t rest_bytes = codec.kind == DP_CODEC_INT8   ? rest
                              : codec.kind == DP_CODEC_SIGN ? (rest + 7) / 8
                                                            : (rest + 1) / 2;
    return n / codec.block * static_cast<uint64_t>(dp_codec_block_bytes(codec)) +
           (rest > 0 ? 2 + rest_bytes : 0);
}

/* ---- Floats. */

/* Two neighbours. */
struct alignas(8) word_pair {
    uint32_t word[2];
};

static __device__ __forceinline__ bool is_float_good(float value, uint32_t kind)
{
    const uint32_t key = dp_element_key(value);
    return kind == DP_CODEC_FP16 ? key < INFINITY_BITS : key <= VALUE_MAX_BITS;
}

static __device__ __forceinline__ uint16_t half_of_kind(float value, uint32_t kind)
{
    return kind == DP_CODEC_FP16 ? dp_element_half(value) : dp_bfloat_of(value);
}

/* out at 8 bytes. */
static __device__ __forceinline__ void write_four(const dp_chunk &four, uint32_t kind, uint8_t *out,
                                                  size_t first)
{
    auto *const pairs = reinterpret_cast<word_pair *>(out);
    if (kind == DP_CODEC_FP32) {
        pairs[first / 2] = {{four.word[0], four.word[1]}};
        pairs[first / 2 + 1] = {{four.word[2], four.word[3]}};
        return;
    }
    word_pair pair;
#pragma unroll
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t low = half_of_kind(dp_of_bits(four.word[2 * i]), kind);
        const uint32_t high = half_of_kind(dp_of_bits(four.word[2 * i + 1]), kind);
        pair.word[i] = low | high << 16;
    }
    pairs[first / 4] = pair;
}

static __device__ __forceinline__ void write_one(float value, uint32_t kind, uint8_t *out,
                                                 size_t at)
{
    if (kind == DP_CODEC_FP32) {
        reinterpret_cast<float *>(out)[at] = value;
    } else {
        reinterpret_cast<uint16_t *>(out)[at] = half_of_kind(value, kind);
    }
}

/* Four to a thread: with one each there are too few bytes on their way. */
static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    write_floats(const float *__restrict__ a, size_t n, uint32_t kind, uint8_t *__restrict__ out,
                 uint32_t *bad)
{
    const size_t first = 4 * (static_cast<size_t>(blockIdx.x) * DP_CODEC_THREADS + threadIdx.x);
    bool good = true;
    if (first + 4 <= n) {
        const dp_chunk four = reinterpret_cast<const dp_chunk *>(a)[first / 4];
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            good = is_float_good(dp_of_bits(four.word[i]), kind) && good;
        }
        write_four(four, kind, out, first);
    } else {
        for (size_t at = first; at < n; at++) {
            good = is_float_good(a[at], kind) && good;
            write_one(a[at], kind, out, at);
        }
    }
    if (!good) {
        *bad = 1;
    }
}

/* ---- Blocks: each a warp's. */

static __device__ __forceinline__ uint32_t largest_of(const float *a, unsigned length,
                                                      unsigned lane)
{
    uint32_t largest = 0;
    for (unsigned i = lane; i < length; i += 32) {
        largest = max(largest, dp_element_key(a[i]));
    }
    for (int step = 16; step > 0; step /= 2) {
        largest = max(largest, __shfl_xor_sync(0xffffffffU, largest, step));
    }
    return largest;
}

static __device__ __forceinline__ uint64_t sum_of_lanes(uint64_t sum)
{
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xffffffffU, sum, step);
    }
    return sum;
}

/* dp_codec_steps_of: the scale. */
static __device__ __forceinline__ uint16_t scale_of_steps(uint32_t largest_bits, float most)
{
    const float largest = dp_float_of_bits(largest_bits);
    const uint16_t scale =
        dp_half_of(static_cast<double>(largest) / static_cast<double>(most), true);
    if (scale == 0) {
        return 0;
    }
    const float top = static_cast<float>(dp_element_step(largest, dp_half_value(scale), most));
    const bool fits =
        top * dp_half_value(scale) <= most * dp_half_value(static_cast<uint16_t>(scale - 1));
    return static_cast<uint16_t>(scale - (fits ? 1 : 0));
}

static __device__ __forceinline__ void write_scale(uint8_t *out, uint16_t half, unsigned lane)
{
    if (lane < 2) {
        out[lane] = static_cast<uint8_t>(half >> (8 * lane));
    }
}

static __device__ void write_int8(const float *a, unsigned length, uint32_t largest, uint8_t *out,
                                  unsigned lane)
{
    const uint16_t half = scale_of_steps(largest, 127.0F);
    const float scale = dp_half_value(half);
    write_scale(out, half, lane);
    for (unsigned i = lane; i < length; i += 32) {
        const int8_t step =
            half == 0 ? static_cast<int8_t>(0) : dp_element_step(a[i], scale, 127.0F);
        out[2 + i] = static_cast<uint8_t>(step);
    }
}

/* Two codes of four bits to a byte; code(i) of element i. */
template <typename Code>
static __device__ void write_nibbles(unsigned length, uint8_t *out, unsigned lane, Code code)
{
    for (unsigned i = 2 * lane; i < length; i += 64) {
        const unsigned first = code(i) & 15U;
        const unsigned second = i + 1 < length ? code(i + 1) & 15U : 0;
        out[2 + i / 2] = static_cast<uint8_t>(first | second << 4);
    }
}

static __device__ void write_int4(const float *a, unsigned length, uint32_t largest, uint8_t *out,
                                  unsigned lane)
{
    const uint16_t half = scale_of_steps(largest, 7.0F);
    const float scale = dp_half_value(half);
    write_scale(out, half, lane);
    write_nibbles(length, out, lane, [=](unsigned i) {
        return half == 0 ? 0U : static_cast<unsigned>(dp_element_step(a[i], scale, 7.0F));
    });
}

static __device__ void write_e3m0(const float *a, unsigned length, uint32_t largest, uint8_t *out,
                                  unsigned lane)
{
    const float most = dp_float_of_bits(largest);
    uint16_t half = 0;
    float inverse = 0;
    if (most >= 0x1p-26F) { /* As codec_e3m0.c. */
        const uint32_t top = dp_element_top(largest);
        inverse = 1.0F / (0.875F * most);
        uint64_t numerator = 0;
        uint64_t denominator = 0;
        for (unsigned i = lane; i < length; i += 32) {
            const float magnitude = dp_float_of_bits(dp_element_key(a[i]));
            const uint32_t j = dp_element_power(magnitude * inverse);
            if (j > 0) {
                numerator += dp_element_magnitude(a[i], top) << (j - 1);
                denominator += static_cast<uint64_t>(1) << (2 * (j - 1));
            }
        }
        numerator = sum_of_lanes(numerator);
        denominator = sum_of_lanes(denominator);
        half = dp_element_mean(numerator, denominator, top + 6);
    }
    write_scale(out, half, lane);
    write_nibbles(length, out, lane, [=](unsigned i) {
        const float magnitude = dp_float_of_bits(dp_element_key(a[i]));
        const uint32_t j = half == 0 ? 0 : dp_element_power(magnitude * inverse);
        return j == 0 ? 0U : j | (a[i] < 0 ? 8U : 0U);
    });
}

static __device__ void write_sign(const float *a, unsigned length, uint32_t largest, uint8_t *out,
                                  unsigned lane)
{
    const uint32_t top = dp_element_top(largest);
    uint64_t sum = 0;
    for (unsigned i = lane; i < length; i += 32) {
        sum += dp_element_magnitude(a[i], top);
    }
    const uint16_t half = dp_element_mean(sum_of_lanes(sum), length, top);
    write_scale(out, half, lane);
    for (unsigned base = 0; base < length; base += 32) {
        const unsigned i = base + lane;
        const bool negative = half != 0 && i < length && a[i] < 0;
        const unsigned bits = __ballot_sync(0xffffffffU, negative ? 1 : 0);
        if (lane < 4 && base / 8 + lane < (length + 7) / 8) {
            out[2 + base / 8 + lane] = static_cast<uint8_t>(bits >> (8 * lane));
        }
    }
}

static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    write_blocks(const float *__restrict__ a, size_t n, dp_cuda_blob codec,
                 uint8_t *__restrict__ out, uint32_t *bad)
{
    const size_t index = static_cast<size_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
    const size_t first = index * codec.block;
    const unsigned lane = threadIdx.x % 32;
    if (first >= n) { /* The whole warp. */
        return;
    }
    const auto length = static_cast<unsigned>(n - first < codec.block ? n - first : codec.block);
    const float *const values = a + first;
    const uint32_t largest = largest_of(values, length, lane);
    if (largest >= INFINITY_BITS) {
        if (lane == 0) {
            *bad = 1;
        }
        return;
    }
    uint8_t *const block = out + index * dp_codec_block_bytes(codec);
    switch (codec.kind) {
    case DP_CODEC_INT8:
        write_int8(values, length, largest, block, lane);
        break;
    case DP_CODEC_INT4:
        write_int4(values, length, largest, block, lane);
        break;
    case DP_CODEC_E3M0:
        write_e3m0(values, length, largest, block, lane);
        break;
    default:
        write_sign(values, length, largest, block, lane);
        break;
    }
}

/* ---- */

extern "C" size_t dp_cuda_slot_bytes(const dp_cuda_blob *codec, size_t n)
{
    return codec->keep == 0 ? 0 : dp_cuda_runs(n) * dp_kept_slot_bytes(*codec);
}

extern "C" dp_status dp_cuda_encode(const float *a, size_t n, const dp_cuda_blob *codec,
                                    const dp_cuda_encoding *to, cudaStream_t stream)
{
    switch (codec->kind) {
    case DP_CODEC_FP32:
    case DP_CODEC_BF16:
    case DP_CODEC_FP16:
        DP_TRY(DP_LAUNCH(write_floats, dp_cuda_blocks(n, 4 * DP_CODEC_THREADS), DP_CODEC_THREADS, 0,
                         stream, a, n, codec->kind, to->out, to->bad));
        break;
    case DP_CODEC_INT8:
    case DP_CODEC_INT4:
    case DP_CODEC_E3M0:
    case DP_CODEC_SIGN:
        DP_TRY(DP_LAUNCH(write_blocks, dp_cuda_blocks(n, WARPS * static_cast<size_t>(codec->block)),
                         DP_CODEC_THREADS, 0, stream, a, n, *codec, to->out, to->bad));
        break;
    case DP_CODEC_SPARSE:
    case DP_CODEC_RANDOM:
        return dp_kept_encode(a, n, *codec, *to, stream);
    default:
        return DP_BADARG;
    }
    return DP_LAUNCH(tell, 1, 1, 0, stream, to->bytes, payload_bytes(*codec, n));
}
