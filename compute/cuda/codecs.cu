/* Encoding: which kernels, and floats. codecs_blocks.cu has blocks under one scale, codecs_kept.cu
 * the codecs that keep some elements. */
#include "compute/cuda/codecs.h"

#include "compute/cuda/codecs.cuh"
#include "compute/cuda/codecs_blocks.cuh"
#include "compute/cuda/codecs_kept.cuh"
#include "compute/cuda/element.cuh"
#include "compute/cuda/launch.h"

#define VALUE_MAX_BITS 0x5d800000U /* of DP_CODEC_VALUE_MAX, 2^60 */

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
        return 2 * static_cast<uint64_t>(n);
    case DP_CODEC_INT8:
    case DP_CODEC_INT4: {
        const auto rest = static_cast<unsigned>(n % codec.block);
        const uint64_t whole = dp_codec_block_bytes(codec.kind, codec.block);
        return n / codec.block * whole + (rest > 0 ? dp_codec_block_bytes(codec.kind, rest) : 0);
    }
    case DP_CODEC_SPARSE:
    case DP_CODEC_KINDS:
        break;
    }
    return 0;
}

/* ---- Floats. */

/* Two neighbours. */
struct alignas(8) word_pair {
    uint32_t word[2];
};

static __device__ __forceinline__ bool is_float_good(float value)
{
    return dp_element_key(value) <= VALUE_MAX_BITS;
}

/* out at 8 bytes. bf16: else fp32. */
static __device__ __forceinline__ void write_four(const dp_chunk &four, bool bf16, uint8_t *out,
                                                  size_t first)
{
    auto *const pairs = reinterpret_cast<word_pair *>(out);
    if (!bf16) {
        pairs[first / 2] = {{four.word[0], four.word[1]}};
        pairs[first / 2 + 1] = {{four.word[2], four.word[3]}};
        return;
    }
    word_pair pair;
#pragma unroll
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t low = dp_bfloat_of(dp_of_bits(four.word[2 * i]));
        const uint32_t high = dp_bfloat_of(dp_of_bits(four.word[2 * i + 1]));
        pair.word[i] = low | high << 16;
    }
    pairs[first / 4] = pair;
}

static __device__ __forceinline__ void write_one(float value, bool bf16, uint8_t *out, size_t at)
{
    if (bf16) {
        reinterpret_cast<uint16_t *>(out)[at] = dp_bfloat_of(value);
    } else {
        reinterpret_cast<float *>(out)[at] = value;
    }
}

/* Four to a thread: with one each there are too few bytes on their way. */
static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    write_floats(const float *__restrict__ a, size_t n, bool bf16, uint8_t *__restrict__ out,
                 uint32_t *bad)
{
    const size_t first = 4 * (static_cast<size_t>(blockIdx.x) * DP_CODEC_THREADS + threadIdx.x);
    bool good = true;
    if (first + 4 <= n) {
        const dp_chunk four = reinterpret_cast<const dp_chunk *>(a)[first / 4];
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            good = is_float_good(dp_of_bits(four.word[i])) && good;
        }
        write_four(four, bf16, out, first);
    } else {
        for (size_t at = first; at < n; at++) {
            good = is_float_good(a[at]) && good;
            write_one(a[at], bf16, out, at);
        }
    }
    if (!good) {
        *bad = 1;
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
    dp_status status = DP_BADARG;
    switch (codec->kind) {
    case DP_CODEC_FP32:
    case DP_CODEC_BF16:
        status = DP_LAUNCH(write_floats, dp_cuda_blocks(n, 4 * DP_CODEC_THREADS), DP_CODEC_THREADS,
                           0, stream, a, n, codec->kind == DP_CODEC_BF16, to->out, to->bad);
        break;
    case DP_CODEC_INT8:
    case DP_CODEC_INT4:
        status = dp_blocks_encode(a, n, *codec, *to, stream);
        break;
    case DP_CODEC_SPARSE:
        return dp_kept_encode(a, n, *codec, *to, stream);
    case DP_CODEC_KINDS:
        break;
    }
    DP_TRY(status);
    return DP_LAUNCH(tell, 1, 1, 0, stream, to->bytes, payload_bytes(*codec, n));
}
