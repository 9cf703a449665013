/* Encoding by sparse. Private to codecs*.cu. */
#ifndef DP_COMPUTE_CUDA_CODECS_KEPT_CUH
#define DP_COMPUTE_CUDA_CODECS_KEPT_CUH

#include "compute/cuda/codecs.h"

/* log2(keep) - 1: bits of a gap that are not unary. */
static inline unsigned dp_kept_low_bits(uint32_t keep)
{
    return static_cast<unsigned>(__builtin_ctz(keep)) - 1;
}

/* A run takes no more, rounded up to 16. */
static inline size_t dp_kept_slot_bytes(const dp_cuda_blob &codec)
{
    const size_t k = DP_CUDA_RUN / codec.keep;
    const unsigned low = dp_kept_low_bits(codec.keep);
    const size_t gap_bits = k * (low + 1) + ((DP_CUDA_RUN - k) >> low);
    const size_t bytes = codec.bits * (2 + (k + 7) / 8) + (gap_bits + 7) / 8;
    return (bytes + 15) / 16 * 16;
}

dp_status dp_kept_encode(const float *a, size_t n, const dp_cuda_blob &codec,
                         const dp_cuda_encoding &to, cudaStream_t stream);

#endif
