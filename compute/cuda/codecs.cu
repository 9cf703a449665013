/* Encoding: which kernels, and floats. codecs_blocks.cu has blocks under one scale, codecs_kept.cu
 * what keeps some elements. */
#include "compute/cuda/codecs.h"

#include "compute/cuda/codecs.cuh"
#include "compute/cuda/codecs_blocks.cuh"
#include "compute/cuda/codecs_kept.cuh"
#include "compute/cuda/element.cuh"
#include "compute/cuda/launch.h"

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
        DP_TRY(dp_blocks_encode(a, n, *codec, *to, stream));
        break;
    case DP_CODEC_SPARSE:
    case DP_CODEC_RANDOM:
        return dp_kept_encode(a, n, *codec, *to, stream);
    default:
        return DP_BADARG;
    }
    return DP_LAUNCH(tell, 1, 1, 0, stream, to->bytes, payload_bytes(*codec, n));
}
