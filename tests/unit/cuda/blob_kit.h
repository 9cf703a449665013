/* Codecs, vectors and blobs on a card, for tests of codecs and rounds. */
#ifndef DP_TESTS_UNIT_CUDA_BLOB_KIT_H
#define DP_TESTS_UNIT_CUDA_BLOB_KIT_H

#include "tests/lib/check.h"

#include "base/rng.h"
#include "compute/cpu/half.h"
#include "compute/cuda/codecs_host.h"
#include "tests/cuda/card.h"

enum { KIT_MOST = 2 * DP_CODEC_RUN + 777, KIT_RUNS = 3, KIT_CODECS = 10, KIT_SHAPES = 6 };

/* Every codec, every size of block, the least, usual and most kept. */
static inline dp_codec kit_codec(size_t index)
{
    static const struct {
        dp_codec_kind kind;
        uint32_t block;
        uint32_t keep;
        uint32_t bits;
    } rows[KIT_CODECS] = {
        {DP_CODEC_FP32, 0, 0, 0},    {DP_CODEC_BF16, 0, 0, 0},    {DP_CODEC_INT8, 256, 0, 0},
        {DP_CODEC_INT8, 1024, 0, 0}, {DP_CODEC_INT4, 64, 0, 0},   {DP_CODEC_INT4, 256, 0, 0},
        {DP_CODEC_SPARSE, 0, 64, 2}, {DP_CODEC_SPARSE, 0, 16, 2}, {DP_CODEC_SPARSE, 0, 128, 1},
        {DP_CODEC_SPARSE, 0, 32, 1},
    };
    return (dp_codec){.kind = rows[index].kind,
                      .block = rows[index].block,
                      .keep = rows[index].keep,
                      .bits = rows[index].bits};
}

/* Finite updates of several kinds: 0 bell-shaped, 1 many ties, 2 all of one run zero, 3 tiny to
 * subnormal, 4 a few giants, 5 zeros with both signs. */
static inline void kit_fill(float *a, size_t n, size_t shape, uint64_t seed)
{
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        const uint64_t bits = dp_rng_next(&rng);
        double sum = -2;
        for (unsigned part = 0; part < 4; part++) {
            sum += (double)(bits >> (16 * part) & 0xffff) * 0x1p-16;
        }
        const float bell = (float)sum;
        switch (shape) {
        case 1:
            a[i] = (float)((int)(bits % 5) - 2) * 0.125F;
            break;
        case 2:
            a[i] = i / DP_CODEC_RUN == 1 ? 0 : bell * 1e-3F;
            break;
        case 3:
            a[i] = dp_float_of_bits((uint32_t)(bits >> 32) & 0x80000000U) +
                   bell * dp_float_of_bits((uint32_t)(bits % 64) << 22);
            break;
        case 4:
            a[i] = bits % 97 == 0 ? bell * 0x1p55F : bell;
            break;
        case 5:
            a[i] = (bits & 1) != 0 ? 0.0F : -0.0F;
            break;
        default:
            a[i] = bell * 0.01F;
            break;
        }
    }
}

/* A blob encoded by the CPU, and its parts on the card. */
typedef struct kit_blob {
    dp_buf bytes;
    void *card_bytes;
    void *card_runs;
    dp_cuda_blob there;
} kit_blob;

static inline void kit_open(kit_blob *b, const dp_codec *codec, const float *a, size_t n)
{
    uint64_t runs[KIT_RUNS + 1];
    dp_buf_init(&b->bytes, dp_codec_bytes_max(codec, n));
    CHECK_OK(dp_codec_encode(codec, a, n, &b->bytes));
    CHECK(dp_cuda_runs(n) <= KIT_RUNS);
    CHECK_OK(dp_cuda_find_runs(dp_buf_view(&b->bytes), (dp_part_place){.n = n}, runs));
    b->there = dp_cuda_blob_of(codec);
    b->card_bytes = card_put(b->bytes.data, b->bytes.size);
    b->card_runs =
        dp_cuda_runs_differ(codec) ? card_put(runs, (dp_cuda_runs(n) + 1) * sizeof runs[0]) : NULL;
    b->there.bytes = b->card_bytes;
    b->there.runs = b->card_runs;
}

static inline void kit_close(kit_blob *b)
{
    if (b->card_runs != NULL) {
        card_free(b->card_runs);
    }
    card_free(b->card_bytes);
    dp_buf_close(&b->bytes);
}

static inline void kit_same(const float *got, const float *wanted, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        if (dp_float_bits(got[i]) != dp_float_bits(wanted[i])) {
            print_error("%s: element %zu of %zu: %a, wanted %a\n", what, i, n, (double)got[i],
                        (double)wanted[i]);
            fail();
        }
    }
}

#endif
