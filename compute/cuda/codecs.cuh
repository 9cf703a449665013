/* Reading a run of a blob by a block of threads. Private to codecs*.cu and outer.cu. The elements'
 * arithmetic is that of compute/cpu/codec_element.h. */
#ifndef DP_COMPUTE_CUDA_CODECS_CUH
#define DP_COMPUTE_CUDA_CODECS_CUH

#include "compute/cuda/codecs.h"
#include "compute/cuda/launch.h"

#include "compute/cpu/codec_element.h"

enum { DP_CODEC_THREADS = 256, DP_CODEC_HEADER = 24 };

/* Shared memory of dp_codec_each: where kept values are. */
struct dp_codec_room {
    uint16_t index[DP_CUDA_KEPT_MAX];
    uint16_t centroids[2];
    uint32_t count;
};

static __device__ __forceinline__ unsigned dp_codec_u16(const uint8_t *at)
{
    return static_cast<unsigned>(at[0]) | static_cast<unsigned>(at[1]) << 8;
}

/* Codes in a byte; 0: the codec has no blocks under one scale. */
static __host__ __device__ constexpr unsigned dp_codec_packed(dp_codec_kind kind)
{
    switch (kind) {
    case DP_CODEC_INT8:
        return 1;
    case DP_CODEC_INT4:
        return 2;
    case DP_CODEC_FP32:
    case DP_CODEC_BF16:
    case DP_CODEC_SPARSE:
    case DP_CODEC_KINDS:
        break;
    }
    return 0;
}

/* Of a block of `length` elements, by a codec that has blocks. */
static __host__ __device__ constexpr unsigned dp_codec_block_bytes(dp_codec_kind kind,
                                                                   unsigned length)
{
    return 2 + (length + dp_codec_packed(kind) - 1) / dp_codec_packed(kind);
}

/* Bytes of a whole run of a codec whose runs are alike. */
static __host__ __device__ __forceinline__ size_t dp_codec_run_bytes(const dp_cuda_blob &codec)
{
    switch (codec.kind) {
    case DP_CODEC_FP32:
        return 4 * DP_CUDA_RUN;
    case DP_CODEC_BF16:
        return 2 * DP_CUDA_RUN;
    case DP_CODEC_INT8:
        return DP_CUDA_RUN / codec.block * dp_codec_block_bytes(DP_CODEC_INT8, codec.block);
    case DP_CODEC_INT4:
        return DP_CUDA_RUN / codec.block * dp_codec_block_bytes(DP_CODEC_INT4, codec.block);
    case DP_CODEC_SPARSE:
    case DP_CODEC_KINDS:
        break;
    }
    return 0;
}

/* The block of element e. */
template <dp_codec_kind KIND>
static __device__ __forceinline__ const uint8_t *dp_codec_block(const dp_cuda_blob &blob,
                                                                const uint8_t *run, unsigned e)
{
    return run + e / blob.block * dp_codec_block_bytes(KIND, blob.block);
}

static __device__ __forceinline__ float dp_codec_scale(const uint8_t *block)
{
    return dp_half_value(static_cast<uint16_t>(dp_codec_u16(block)));
}

/* Element e of a run whose codec keeps all. */
static __device__ __forceinline__ float dp_codec_element(const dp_cuda_blob &blob,
                                                         const uint8_t *run, unsigned e)
{
    switch (blob.kind) {
    case DP_CODEC_FP32:
        return reinterpret_cast<const float *>(run)[e];
    case DP_CODEC_BF16:
        return dp_bfloat_value(reinterpret_cast<const uint16_t *>(run)[e]);
    case DP_CODEC_INT8: {
        const uint8_t *const block = dp_codec_block<DP_CODEC_INT8>(blob, run, e);
        const auto step = static_cast<int8_t>(block[2 + e % blob.block]);
        return static_cast<float>(step) * dp_codec_scale(block);
    }
    case DP_CODEC_INT4: {
        const uint8_t *const block = dp_codec_block<DP_CODEC_INT4>(blob, run, e);
        const unsigned i = e % blob.block;
        const int code = static_cast<int>(block[2 + i / 2]) >> (i % 2 * 4) & 15;
        return static_cast<float>(code < 8 ? code : code - 16) * dp_codec_scale(block);
    }
    case DP_CODEC_SPARSE:
    case DP_CODEC_KINDS:
        break;
    }
    return 0;
}

/* Positions of sparse, by one thread: gaps follow each other bit by bit. Indices stay below length
 * whatever the bits are. */
static __device__ inline void dp_codec_read_gaps(const uint8_t *gaps, unsigned n_bytes,
                                                 unsigned low, unsigned k, unsigned length,
                                                 uint16_t *index)
{
    uint64_t bits = 0;
    unsigned held = 0;
    unsigned read = 0;
    unsigned at = 0;
    for (unsigned i = 0; i < k; i++) {
        unsigned ones = 0;
        bool more = true;
        while (more) {
            while (held <= 56) {
                const uint64_t byte = read < n_bytes ? gaps[read] : 0;
                bits |= byte << held;
                held += 8;
                read++;
            }
            const int zeros =
                __ffsll(static_cast<long long>(~bits)) - 1; /* ones before the first 0 */
            const auto some = zeros < 0 ? 32U : min(static_cast<unsigned>(zeros), 32U);
            more = some == 32U;
            ones += some;
            bits >>= some;
            held -= some;
            more = more && ones < length;
        }
        while (held < low + 1) {
            const uint64_t byte = read < n_bytes ? gaps[read] : 0;
            bits |= byte << held;
            held += 8;
            read++;
        }
        at += (ones << low) + (static_cast<unsigned>(bits >> 1) & ((1U << low) - 1));
        bits >>= low + 1;
        held -= low + 1;
        at = min(at, length - 1);
        index[i] = static_cast<uint16_t>(at);
        at++;
    }
}

/* Kept values: use(element, value) by one thread each. */
template <typename Use>
static __device__ void dp_codec_each_kept(const dp_cuda_blob &blob, uint64_t at, unsigned length,
                                          dp_codec_room &room, Use use)
{
    const uint64_t *const ends = blob.runs + (at - blob.first);
    const uint8_t *const run = blob.bytes + ends[0];
    const auto n_bytes = static_cast<unsigned>(ends[1] - ends[0]);
    const unsigned k = (length + blob.keep - 1) / blob.keep;
    const unsigned k_bytes = (k + 7) / 8;
    const bool two = blob.bits == 2;
    const uint8_t *const signs = run + (two ? 4 : 2);
    const uint8_t *const highs = signs + k_bytes;
    const uint8_t *const gaps = two ? highs + k_bytes : highs;
    if (threadIdx.x == 0) {
        const auto lo = static_cast<uint16_t>(two ? dp_codec_u16(run) : 0);
        const auto hi = static_cast<uint16_t>(dp_codec_u16(run + (two ? 2 : 0)));
        room.centroids[0] = lo;
        room.centroids[1] = hi;
        room.count = hi == 0 ? 0 : k;
        if (hi != 0) {
            const auto low = static_cast<unsigned>(30 - __clz(static_cast<int>(blob.keep)));
            dp_codec_read_gaps(gaps, n_bytes - static_cast<unsigned>(gaps - run), low, k, length,
                               room.index);
        }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < room.count; i += DP_CODEC_THREADS) {
        const unsigned e = room.index[i];
        const bool high = !two || (static_cast<unsigned>(highs[i / 8]) >> (i % 8) & 1U) != 0;
        const bool negative = (static_cast<unsigned>(signs[i / 8]) >> (i % 8) & 1U) != 0;
        const uint16_t half = room.centroids[high ? 1 : 0];
        const float magnitude = dp_half_value(half);
        use(e, negative && half > 0 ? -magnitude : magnitude);
    }
}

/* Whether it stores run `at` of the vector. */
static __device__ __forceinline__ bool dp_codec_has(const dp_cuda_blob &blob, uint64_t at)
{
    return at >= blob.first && at < blob.end;
}

/* use(element, value) for every element that the blob stores of run `at` of the vector, which it
 * has, each by one thread. Everybody calls; the caller waits between this and code that reads the
 * others' work, and before room is used again. */
template <typename Use>
static __device__ void dp_codec_each(const dp_cuda_blob &blob, uint64_t at, unsigned length,
                                     dp_codec_room &room, Use use)
{
    if (blob.keep != 0) {
        dp_codec_each_kept(blob, at, length, room, use);
        return;
    }
    const uint8_t *const run =
        blob.bytes + DP_CODEC_HEADER + (at - blob.first) * dp_codec_run_bytes(blob);
    for (unsigned e = threadIdx.x; e < length; e += DP_CODEC_THREADS) {
        use(e, dp_codec_element(blob, run, e));
    }
}

static __device__ __forceinline__ unsigned dp_codec_length(size_t n, uint64_t at)
{
    const size_t left = n - at * DP_CUDA_RUN;
    return left < DP_CUDA_RUN ? static_cast<unsigned>(left) : static_cast<unsigned>(DP_CUDA_RUN);
}

#endif
