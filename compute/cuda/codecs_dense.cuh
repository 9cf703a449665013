/* Reading blobs that keep all elements, by threads that hold a run in registers: four times four
 * neighbours of it each, 4 (tid + 256 k) to 4 (tid + 256 k) + 3. Private to outer*.cu.
 *
 * Codes become floats without a conversion: as the middle byte of the last 16 bits of 2^15 they are
 * 2^15 + code, and one fused product takes 2^15 and the code's own offset off again: both products
 * are exact, because offsets have 9 or 13 bits and a scale 11. */
#ifndef DP_COMPUTE_CUDA_CODECS_DENSE_CUH
#define DP_COMPUTE_CUDA_CODECS_DENSE_CUH

#include "compute/cuda/codecs_blocks.cuh"
#include "compute/cuda/outer.h"

enum { DP_DENSE_FOURS = DP_CUDA_RUN / DP_CODEC_THREADS / 4 };

typedef float dp_dense_run[DP_DENSE_FOURS][4];

static __device__ __forceinline__ unsigned dp_dense_place(unsigned k)
{
    return 4 * (threadIdx.x + DP_CODEC_THREADS * k);
}

/* ---- A four. */

static __device__ __forceinline__ uint32_t dp_dense_half_at(const uint8_t *at)
{
    return *reinterpret_cast<const uint16_t *>(at);
}

/* v[c] = (byte of c - offset) scale, exact. order: which byte, a digit each. */
static __device__ __forceinline__ void dp_dense_bytes(uint32_t bytes, uint32_t order, float offset,
                                                      float scale, float v[4])
{
    const float base = -(32768.0F + offset) * scale;
#pragma unroll
    for (unsigned c = 0; c < 4; c++) {
        const uint32_t digit = order >> (4 * c) & 15U;
        const float x = dp_of_bits(dp_bytes_of(bytes, 0x47000000U, 0x7404U | digit << 4));
        v[c] = fmaf(x, scale, base);
    }
}

/* BLOCK 0: as long as blob says, which costs an address for each four; otherwise places are known
 * but for the thread's first. */
template <dp_codec_kind KIND, unsigned BLOCK>
static __device__ __forceinline__ void
dp_dense_block_four(const dp_cuda_blob &blob, const uint8_t *run, unsigned k, float v[4])
{
    constexpr unsigned PACKED = dp_codec_packed(KIND);
    constexpr unsigned STEP = 4 * DP_CODEC_THREADS; /* to the next four */
    constexpr unsigned SIZE = BLOCK == 0 ? 1 : BLOCK;
    const unsigned own = 4 * threadIdx.x;
    unsigned codes = 0;
    unsigned scales = 0;
    if (BLOCK == 0) {
        const unsigned shift = 31 - static_cast<unsigned>(__clz(static_cast<int>(blob.block)));
        const unsigned block = (own + STEP * k) >> shift;
        codes = (own + STEP * k) / PACKED + 2 * block + 2;
        scales = (block << shift) / PACKED + 2 * block;
    } else {
        const unsigned before =
            STEP * k / SIZE; /* Blocks that end up to there, all in front of own. */
        codes = own / PACKED + own / SIZE * 2 + (STEP * k / PACKED + 2 * before + 2);
        scales = own / SIZE * (SIZE / PACKED + 2) + before * (SIZE / PACKED + 2);
    }
    const float scale = dp_half_exact(dp_dense_half_at(run + scales));
    if constexpr (KIND == DP_CODEC_INT8) {
        const uint32_t word = dp_dense_half_at(run + codes) | dp_dense_half_at(run + codes + 2)
                                                                  << 16;
        dp_dense_bytes(word ^ 0x80808080U, 0x3210U, 128.0F, scale, v);
    } else {
        static_assert(KIND == DP_CODEC_INT4, "a codec with blocks");
        const uint32_t word = dp_dense_half_at(run + codes);
        const uint32_t nibbles = (word & 0x0f0fU) | (word << 12 & 0x0f0f0000U);
        dp_dense_bytes(nibbles ^ 0x08080808U, 0x3120U, 8.0F, scale, v);
    }
}

template <dp_codec_kind KIND>
static __device__ __forceinline__ void dp_dense_float_four(const uint8_t *run, unsigned e,
                                                           float v[4])
{
    static_assert(KIND == DP_CODEC_FP32 || KIND == DP_CODEC_BF16, "floats");
    struct alignas(8) pair {
        uint32_t word[2];
    };
    if (KIND == DP_CODEC_FP32) {
        const auto *const from = reinterpret_cast<const pair *>(run) + e / 2;
        const pair pairs[2] = {from[0], from[1]};
#pragma unroll
        for (unsigned c = 0; c < 4; c++) {
            v[c] = dp_of_bits(pairs[c / 2].word[c % 2]);
        }
        return;
    }
    const pair four = reinterpret_cast<const pair *>(run)[e / 4];
#pragma unroll
    for (unsigned c = 0; c < 4; c++) {
        const auto bits = static_cast<uint16_t>(four.word[c / 2] >> (16 * (c % 2)));
        v[c] = dp_bfloat_value(bits);
    }
}

/* ---- A run. */

template <dp_codec_kind KIND, unsigned BLOCK, typename Use>
static __device__ __forceinline__ void dp_dense_whole(const dp_cuda_blob &blob, const uint8_t *run,
                                                      Use use)
{
#pragma unroll
    for (unsigned k = 0; k < DP_DENSE_FOURS; k++) {
        float v[4];
        if constexpr (dp_codec_packed(KIND) > 0) {
            dp_dense_block_four<KIND, BLOCK>(blob, run, k, v);
        } else {
            dp_dense_float_four<KIND>(run, dp_dense_place(k), v);
        }
        use(k, v);
    }
}

/* use(k, v) for the fours of a run of the blob; elements behind its length are 0. blob.keep is 0.
 * KIND and BLOCK: the blob's, or DP_CODEC_KINDS and 0 for whatever it says. */
template <dp_codec_kind KIND, unsigned BLOCK, typename Use>
static __device__ __forceinline__ void dp_dense_each(const dp_cuda_blob &blob, uint64_t at,
                                                     unsigned length, Use use)
{
    const uint8_t *const run =
        blob.bytes + DP_CODEC_HEADER + (at - blob.first) * dp_codec_run_bytes(blob);
    if (length < DP_CUDA_RUN) {
        for (unsigned k = 0; k < DP_DENSE_FOURS; k++) {
            float v[4];
            for (unsigned c = 0; c < 4; c++) {
                const unsigned e = dp_dense_place(k) + c;
                v[c] = e < length ? dp_codec_element(blob, run, e) : 0.0F;
            }
            use(k, v);
        }
        return;
    }
    if constexpr (KIND != DP_CODEC_KINDS) {
        dp_dense_whole<KIND, BLOCK>(blob, run, use);
    } else {
        switch (blob.kind) {
        case DP_CODEC_FP32:
            dp_dense_whole<DP_CODEC_FP32, 0>(blob, run, use);
            break;
        case DP_CODEC_BF16:
            dp_dense_whole<DP_CODEC_BF16, 0>(blob, run, use);
            break;
        case DP_CODEC_INT8:
            dp_dense_whole<DP_CODEC_INT8, 0>(blob, run, use);
            break;
        case DP_CODEC_INT4:
            dp_dense_whole<DP_CODEC_INT4, 0>(blob, run, use);
            break;
        case DP_CODEC_SPARSE: /* keep is 0. */
        case DP_CODEC_KINDS:
            break;
        }
    }
}

/* ---- The same places of a vector at 16 bytes, from the run's first element on. */

static __device__ __forceinline__ void dp_dense_load(dp_dense_run v, const float *from,
                                                     unsigned length)
{
#pragma unroll
    for (unsigned k = 0; k < DP_DENSE_FOURS; k++) {
        const unsigned e = dp_dense_place(k);
        if (length == DP_CUDA_RUN) {
            const dp_chunk four = *reinterpret_cast<const dp_chunk *>(from + e);
#pragma unroll
            for (unsigned c = 0; c < 4; c++) {
                v[k][c] = dp_of_bits(four.word[c]);
            }
        } else {
#pragma unroll
            for (unsigned c = 0; c < 4; c++) {
                v[k][c] = e + c < length ? from[e + c] : 0.0F;
            }
        }
    }
}

static __device__ __forceinline__ void dp_dense_store(float *to, const dp_dense_run v,
                                                      unsigned length)
{
#pragma unroll
    for (unsigned k = 0; k < DP_DENSE_FOURS; k++) {
        const unsigned e = dp_dense_place(k);
        if (length == DP_CUDA_RUN) {
            dp_chunk four;
#pragma unroll
            for (unsigned c = 0; c < 4; c++) {
                four.word[c] = dp_bits_of(v[k][c]);
            }
            *reinterpret_cast<dp_chunk *>(to + e) = four;
        } else {
#pragma unroll
            for (unsigned c = 0; c < 4; c++) {
                if (e + c < length) {
                    to[e + c] = v[k][c];
                }
            }
        }
    }
}

/* ---- outer_dense.cu: as outer.h, where no blob keeps only some elements. */

static inline bool dp_dense_all(const dp_cuda_items *items)
{
    for (uint32_t i = 0; i < items->count; i++) {
        if (items->blobs[i].keep != 0) {
            return false;
        }
    }
    return true;
}

dp_status dp_dense_plain(float *theta, size_t n, const dp_cuda_items &items, float step,
                         uint32_t *bad, cudaStream_t stream);
dp_status dp_dense_nesterov(float *theta, float *m, size_t n, const dp_cuda_items &items,
                            const dp_cuda_nesterov &step, uint32_t *bad, cudaStream_t stream);

/* How far theta moves; kept is the new m. */
static __device__ __forceinline__ float dp_outer_moved(const dp_cuda_nesterov &step, float g,
                                                       float u, float kept)
{
    const float ahead = __fmul_rn(step.mu, kept);
    return __fadd_rn(__fmul_rn(step.eta, __fadd_rn(u, ahead)), __fmul_rn(step.once, g));
}
dp_status dp_dense_settle(float *e, const float *a, size_t n, const dp_cuda_blob &blob, float clip,
                          float beta, cudaStream_t stream);
dp_status dp_dense_decode(float *d, size_t n, const dp_cuda_blob &blob, cudaStream_t stream);

#endif
