/* Kernels that read and write blobs (compute/codec/codec.h), byte for byte and bit for bit as the
 * CPU. The header of a blob and the order of its runs are the host's; a kernel gives each run to a
 * block.
 *
 * Blobs have been checked (dp_codec_check). A run is 4096 elements, the last may be shorter;
 * runs(n) of them. */
#ifndef DP_COMPUTE_CUDA_CODECS_H
#define DP_COMPUTE_CUDA_CODECS_H

#include <stddef.h>
#include <stdint.h>

#include "base/run/codec_kind.h"
#include "base/status.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DP_CUDA_RUN = 4096, DP_CUDA_KEPT_MAX = DP_CUDA_RUN / DP_CODEC_KEEP_MIN };

/* A blob on the card; dp_codec with the offsets of its runs. */
typedef struct dp_cuda_blob {
    const uint8_t *bytes; /* header included, at 8 */
    /* its runs + 1: where each begins in bytes, then the end; NULL where all are as long */
    const uint64_t *runs;
    dp_codec_kind kind;
    uint32_t block;
    uint32_t keep;
    uint32_t bits;
    uint32_t first; /* run of the vector that it begins with */
    uint32_t end;   /* and ends before; UINT32_MAX: with the vector */
} dp_cuda_blob;

static inline size_t dp_cuda_runs(size_t n)
{
    return (n + DP_CUDA_RUN - 1) / DP_CUDA_RUN;
}

/* d = decode(blob). d at 16 bytes. */
DP_MUST dp_status dp_cuda_decode(float *d, size_t n, const dp_cuda_blob *blob, cudaStream_t stream);

/* The result of an encoding and its scratch memory. Codecs whose runs differ in length need a slot
 * for each run, and the offset of each run. */
typedef struct dp_cuda_encoding {
    uint8_t *out;    /* the bytes after the header: dp_codec_bytes_max - header bytes, at 8 */
    uint64_t *bytes; /* one: how much of it was written */
    /* 1: some a is not finite (fp32, bf16: or too large), and out may hold anything */
    uint32_t *bad;
    uint8_t *slots;    /* dp_cuda_slot_bytes(n), at 256; NULL where that is 0 */
    uint64_t *offsets; /* runs(n) + 1 */
} dp_cuda_encoding;

/* Bytes of slots for an encoding of n elements; 0: none are needed. */
size_t dp_cuda_slot_bytes(const dp_cuda_blob *codec, size_t n);
/* a at 16 bytes. codec: without bytes and runs. bad must be 0 before. DP_BADARG: no such codec. */
DP_MUST dp_status dp_cuda_encode(const float *a, size_t n, const dp_cuda_blob *codec,
                                 const dp_cuda_encoding *to, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
