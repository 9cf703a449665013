/* Descriptions of blobs that the host passes to kernels. C only: it knows compute/codec/codec.h. */
#ifndef DP_COMPUTE_CUDA_CODECS_HOST_H
#define DP_COMPUTE_CUDA_CODECS_HOST_H

#include <stdbool.h>

#include "base/run/part_cuts.h"
#include "compute/codec/codec.h"
#include "compute/cuda/codecs.h"

/* The codec's options, of a whole vector; bytes and runs are NULL. */
dp_cuda_blob dp_cuda_blob_of(const dp_codec *codec);
/* True if its runs differ in length, so that dp_cuda_blob needs runs. */
bool dp_cuda_runs_differ(const dp_codec *codec);
/* runs(n) + 1 offsets of a blob of these n elements. Total, as dp_codec_check_at: DP_BADMSG,
 * DP_VERSION. */
DP_MUST dp_status dp_cuda_find_runs(dp_view blob, dp_part_place place, uint64_t *runs);

#endif
