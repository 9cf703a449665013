/* What each codec family gives to codec.c: one run to bytes and back. Private to codec*.c. */
#ifndef DP_COMPUTE_CODEC_FAMILY_H
#define DP_COMPUTE_CODEC_FAMILY_H

#include "compute/codec.h"

/* Write a[0..length-1] (1..DP_CODEC_RUN) to out. DP_DIVERGED as in dp_codec_encode. */
dp_status dp_codec_sparse_write(const float *a, size_t length, dp_writer *out);
dp_status dp_codec_int8_write(const float *a, size_t length, dp_writer *out);
dp_status dp_codec_bf16_write(const float *a, size_t length, dp_writer *out);
dp_status dp_codec_fp32_write(const float *a, size_t length, dp_writer *out);

/* Read one run of run->length elements: fill the rest of *run. Total. */
dp_status dp_codec_sparse_read(dp_reader *in, dp_codec_run *run);
dp_status dp_codec_int8_read(dp_reader *in, dp_codec_run *run);
dp_status dp_codec_bf16_read(dp_reader *in, dp_codec_run *run);
dp_status dp_codec_fp32_read(dp_reader *in, dp_codec_run *run);

#endif
