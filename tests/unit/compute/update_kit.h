/* Artificial updates, for tests of measurements on them. */
#ifndef DP_TESTS_UNIT_COMPUTE_UPDATE_KIT_H
#define DP_TESTS_UNIT_COMPUTE_UPDATE_KIT_H

#include "tests/lib/check.h"

#include <math.h>

#include "base/rng.h"
#include "compute/codec/codec.h"

enum { UPDATE_N = 6 * DP_CODEC_RUN + 500, UPDATE_BLOB_MAX = 1 << 20 };

/* One of each kind, of several densities. */
static const dp_codec update_codecs[] = {
    {.kind = DP_CODEC_FP32},
    {.kind = DP_CODEC_BF16},
    {.kind = DP_CODEC_INT8, .block = 256},
    {.kind = DP_CODEC_INT4, .block = 64},
    {.kind = DP_CODEC_SPARSE, .keep = 16, .bits = 2},
    {.kind = DP_CODEC_SPARSE, .keep = 64, .bits = 1},
};
enum { UPDATE_CODECS = sizeof update_codecs / sizeof update_codecs[0] };

/* Adds a bell-shaped vector times factor. */
static inline void update_add(float *a, size_t n, double factor, uint64_t seed)
{
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        int64_t sum = 0;
        for (int j = 0; j < 12; j++) {
            sum += (int64_t)dp_rng_below(&rng, 1024);
        }
        a[i] += (float)(factor * (double)(sum - 6138) * 1e-6);
    }
}

static inline void update_scale(float *a, size_t n, float factor)
{
    for (size_t i = 0; i < n; i++) {
        a[i] *= factor;
    }
}

static inline double update_norm(const float *a, size_t n)
{
    double square = 0;
    for (size_t i = 0; i < n; i++) {
        square += (double)a[i] * (double)a[i];
    }
    return sqrt(square);
}

/* The caller closes it. */
static inline dp_buf update_blob(const dp_codec *codec, const float *a, size_t n)
{
    dp_buf blob;
    dp_buf_init(&blob, UPDATE_BLOB_MAX);
    CHECK_OK(dp_codec_encode(codec, a, n, &blob));
    return blob;
}

#endif
