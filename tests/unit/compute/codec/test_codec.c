#include "tests/lib/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "compute/codec/codec.h"
#include "compute/cpu/half.h"
#include "tests/lib/mutate.h"

enum { BLOB_MAX = 1 << 26 };

/* Every codec with every kind of option. */
static const dp_codec codecs[] = {
    {.kind = DP_CODEC_FP32},
    {.kind = DP_CODEC_BF16},
    {.kind = DP_CODEC_INT8, .block = 256},
    {.kind = DP_CODEC_INT8, .block = 1024},
    {.kind = DP_CODEC_INT4, .block = 64},
    {.kind = DP_CODEC_INT4, .block = 256},
    {.kind = DP_CODEC_SPARSE, .keep = 16, .bits = 2},
    {.kind = DP_CODEC_SPARSE, .keep = 32, .bits = 1},
    {.kind = DP_CODEC_SPARSE, .keep = 64, .bits = 2},
    {.kind = DP_CODEC_SPARSE, .keep = 128, .bits = 1},
    {.kind = DP_CODEC_SPARSE, .keep = 128, .bits = 2},
};
enum { N_CODECS = sizeof codecs / sizeof codecs[0] };

static const size_t sizes[] = {0, 1, 2, 63, 64, 65, 255, 257, 4095, 4096, 4097, 8192, 10000};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

/* Like an update: small, nearly normal values, sums of twelve uniform ones (Irwin 1927). */
static float *update_of(size_t n, uint64_t seed, float scale)
{
    float *const a = test_calloc(n + 1, sizeof *a);
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        int64_t sum = 0;
        for (int j = 0; j < 12; j++) {
            sum += (int64_t)dp_rng_below(&rng, 1024);
        }
        a[i] = (float)(sum - 6138) / 1024.0F * scale;
    }
    return a;
}

static dp_buf encoded_by(const dp_codec *codec, const float *a, size_t n)
{
    dp_buf blob;
    dp_buf_init(&blob, BLOB_MAX);
    CHECK_OK(dp_codec_encode(codec, a, n, &blob));
    CHECK(blob.size <= dp_codec_bytes_max(codec, n));
    CHECK(dp_codec_bytes_max(codec, n) <= dp_codec_bytes_max_any(n));
    return blob;
}

static dp_buf encoded(dp_codec_kind kind, const float *a, size_t n)
{
    const dp_codec codec = dp_codec_default(kind);
    return encoded_by(&codec, a, n);
}

static float *decoded(const dp_buf *blob, size_t n)
{
    float *const d = test_calloc(n + 1, sizeof *d);
    CHECK_OK(dp_codec_check(dp_buf_view(blob), n));
    CHECK_OK(dp_codec_decode(dp_buf_view(blob), d, n));
    return d;
}

static bool same_bits(const float *a, const float *b, size_t n)
{
    return n == 0 || memcmp(a, b, n * sizeof *a) == 0;
}

static int by_size_down(const void *a, const void *b)
{
    const float x = fabsf(*(const float *)a);
    const float y = fabsf(*(const float *)b);
    return (x < y) - (x > y);
}

/* decode(encode(d)) == d for d = decode(encode(a)). */
static void check_fixed_point(const dp_codec *codec, const float *a, size_t n)
{
    dp_buf first = encoded_by(codec, a, n);
    float *const d = decoded(&first, n);
    dp_buf second = encoded_by(codec, d, n);
    float *const again = decoded(&second, n);
    CHECK(same_bits(d, again, n));
    CHECK(codec->kind != DP_CODEC_FP32 || same_bits(a, d, n));
    dp_buf_close(&first);
    dp_buf_close(&second);
    test_free(d);
    test_free(again);
}

static void encoding_what_was_decoded_changes_nothing(void **state)
{
    (void)state;
    /* From where scales are the least halves to where they are the largest. */
    static const float scales[] = {0.01F, 1e-7F, 3e-7F, 1e-6F, 1e-5F, 3e-5F, 1e-4F, 1e4F, 1e6F};
    for (size_t c = 0; c < N_CODECS; c++) {
        for (size_t i = 0; i < N_SIZES; i++) {
            float *const a = update_of(sizes[i], 100 * c + i, 0.01F);
            check_fixed_point(&codecs[c], a, sizes[i]);
            test_free(a);
        }
        for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
            float *const a = update_of(4200, 7000 + 10 * c + i, scales[i]);
            check_fixed_point(&codecs[c], a, 4200);
            test_free(a);
        }
    }
}

static void every_largest_magnitude_of_a_block_is_a_fixed_point(void **state)
{
    (void)state;
    /* Blocks of two: the largest in steps of a tenth of the least half, where rounding a scale up
     * matters most. */
    for (size_t c = 0; c < N_CODECS; c++) {
        for (int i = 1; i < 4000; i += 1 + i / 50) {
            const float a[2] = {(float)i * 0x1p-24F * 0.1F * (float)(1 + i % 130),
                                (float)i * -0x1p-24F * 0.03F};
            check_fixed_point(&codecs[c], a, 2);
        }
    }
}

static float largest_of(const float *a, size_t n)
{
    float largest = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmaxf(largest, fabsf(a[i]));
    }
    return largest;
}

/* How far d may be from a where the largest of its block is this. */
static float tolerance(const dp_codec *codec, float a, float largest)
{
    switch (codec->kind) {
    case DP_CODEC_BF16:
        return fabsf(a) * 0x1p-8F;
    case DP_CODEC_INT8: /* The scale is rounded up by at most 2^-10 of itself. */
        return largest / 127 * 0.5F * 1.002F;
    case DP_CODEC_INT4:
        return largest / 7 * 0.5F * 1.002F;
    case DP_CODEC_FP32:
    case DP_CODEC_SPARSE:
    case DP_CODEC_KINDS:
        return -1;
    }
    return -1;
}

static void dense_codecs_stay_within_half_a_step(void **state)
{
    (void)state;
    const size_t n = 10000;
    float *const a = update_of(n, 3, 0.01F);
    for (size_t c = 0; c < N_CODECS; c++) {
        dp_buf blob = encoded_by(&codecs[c], a, n);
        float *const d = decoded(&blob, n);
        const size_t step = codecs[c].block > 0 ? codecs[c].block : n;
        for (size_t at = 0; at < n; at += step) {
            const size_t end = at + step < n ? at + step : n;
            const float largest = largest_of(a + at, end - at);
            for (size_t i = at; i < end; i++) {
                const float most = tolerance(&codecs[c], a[i], largest);
                CHECK(most < 0 || fabsf(d[i] - a[i]) <= most);
            }
        }
        dp_buf_close(&blob);
        test_free(d);
    }
    test_free(a);
}

/* One run: the k largest are there, with their signs, and nothing else. */
static void check_largest_are_kept(const float *a, const float *d, size_t length, size_t k)
{
    float sorted[DP_CODEC_RUN];
    memcpy(sorted, a, length * sizeof *sorted);
    qsort(sorted, length, sizeof *sorted, by_size_down);
    size_t kept = 0;
    for (size_t i = 0; i < length; i++) {
        if (d[i] != 0) {
            kept++;
            CHECK(fabsf(a[i]) >= fabsf(sorted[k - 1]));
            CHECK(signbit(d[i]) == signbit(a[i]));
            CHECK(fabsf(d[i]) <= fabsf(sorted[0]) * 1.001F);
        }
    }
    CHECK(kept == k);
}

static void sparse_keeps_the_largest_of_each_run(void **state)
{
    (void)state;
    for (size_t c = 0; c < N_CODECS; c++) {
        for (size_t s = 1; codecs[c].kind == DP_CODEC_SPARSE && s < N_SIZES; s++) {
            const size_t n = sizes[s];
            float *const a = update_of(n, 50 + s, 0.01F);
            dp_buf blob = encoded_by(&codecs[c], a, n);
            float *const d = decoded(&blob, n);
            for (size_t at = 0; at < n; at += DP_CODEC_RUN) {
                const size_t length = n - at < DP_CODEC_RUN ? n - at : DP_CODEC_RUN;
                const size_t k = (length + codecs[c].keep - 1) / codecs[c].keep;
                check_largest_are_kept(a + at, d + at, length, k);
            }
            dp_buf_close(&blob);
            test_free(a);
            test_free(d);
        }
    }
}

static void equal_magnitudes_are_taken_from_the_front(void **state)
{
    (void)state;
    const size_t n = DP_CODEC_RUN;
    float *const a = test_calloc(n, sizeof *a);
    for (size_t i = 0; i < n; i++) {
        a[i] = i % 2 == 0 ? 0.5F : -0.5F;
    }
    dp_buf blob = encoded(DP_CODEC_SPARSE, a, n);
    float *const d = decoded(&blob, n);
    CHECK(same_bits(a, d, 64));
    for (size_t i = 64; i < n; i++) {
        CHECK(d[i] == 0 && !signbit(d[i]));
    }
    dp_buf_close(&blob);
    test_free(a);
    test_free(d);
}

static void zero_runs_take_four_bytes(void **state)
{
    (void)state;
    const size_t n = 3 * DP_CODEC_RUN + 7;
    float *const a = test_calloc(n, sizeof *a);
    a[0] = -0.0F;
    a[1] = 1e-30F; /* below the least half: as good as zero */
    dp_buf blob = encoded(DP_CODEC_SPARSE, a, n);
    CHECK(blob.size == DP_CODEC_HEADER_BYTES + 4 * 4);
    float *const d = decoded(&blob, n);
    for (size_t i = 0; i < n; i++) {
        CHECK(d[i] == 0 && !signbit(d[i]));
    }
    unsigned __int128 energy = 1;
    CHECK_OK(dp_codec_energy(dp_buf_view(&blob), n, &energy));
    CHECK(energy == 0);
    dp_buf_close(&blob);
    test_free(a);
    test_free(d);
}

static void a_chunk_with_known_values_has_known_bytes(void **state)
{
    (void)state;
    /* 128 elements, so two entries: 1.0 at 3 and -2.0 at 100. Gaps 3 and 96 = 3 * 32 + 0. */
    float a[128] = {0};
    a[3] = 1;
    a[100] = -2;
    dp_buf blob = encoded(DP_CODEC_SPARSE, a, 128);
    /* Bits from the least: gap 3: 0 11000; gap 96: 111 0 00000. */
    static const uint8_t expected[] = {'D', 'P', 'U',  '1',  2,    4,    6,    2,    128,  0,   0,
                                       0,   0,   0,    0,    0,    0,    0,    0,    0,    0,   0,
                                       0,   0,   0x00, 0x3c, 0x00, 0x40, 0x02, 0x02, 0xc6, 0x01};
    CHECK(dp_view_equal(dp_buf_view(&blob), dp_view_of(expected, sizeof expected)));
    unsigned __int128 energy;
    CHECK_OK(dp_codec_energy(dp_buf_view(&blob), 128, &energy));
    CHECK(energy == (unsigned __int128)5 << 48);
    dp_buf_close(&blob);
}

static void blobs_keep_their_promised_size(void **state)
{
    (void)state;
    const size_t n = (size_t)1 << 20;
    float *const a = update_of(n, 9, 0.001F);
    /* Bytes per parameter: entropy of the positions plus the overhead of Rice codes, values,
     * centroids. */
    static const struct {
        dp_codec codec;
        double most;
    } sizes_of[] = {
        {{.kind = DP_CODEC_SPARSE, .keep = 64, .bits = 2}, 0.0200},
        {{.kind = DP_CODEC_SPARSE, .keep = 64, .bits = 1}, 0.0176},
        {{.kind = DP_CODEC_SPARSE, .keep = 16, .bits = 2}, 0.0610},
        {{.kind = DP_CODEC_SPARSE, .keep = 32, .bits = 2}, 0.0350},
        {{.kind = DP_CODEC_SPARSE, .keep = 128, .bits = 2}, 0.0115},
        {{.kind = DP_CODEC_INT4, .block = 64}, 0.5313},
        {{.kind = DP_CODEC_INT8, .block = 256}, 1.0079},
    };
    for (size_t i = 0; i < sizeof sizes_of / sizeof sizes_of[0]; i++) {
        dp_buf blob = encoded_by(&sizes_of[i].codec, a, n);
        CHECK((double)(blob.size - DP_CODEC_HEADER_BYTES) <= sizes_of[i].most * (double)n);
        dp_buf_close(&blob);
    }
    test_free(a);
}

static void energies_are_sums_of_squares(void **state)
{
    (void)state;
    const size_t n = 9000;
    float *const a = update_of(n, 4, 0.01F);
    for (size_t c = 0; c < N_CODECS; c++) {
        dp_buf blob = encoded_by(&codecs[c], a, n);
        float *const d = decoded(&blob, n);
        long double sum = 0;
        for (size_t i = 0; i < n; i++) {
            sum += (long double)d[i] * (long double)d[i];
        }
        unsigned __int128 energy;
        CHECK_OK(dp_codec_energy(dp_buf_view(&blob), n, &energy));
        const double got = (double)energy * 0x1p-48;
        CHECK(fabs(got - (double)sum) <= 1e-9 * (double)sum);
        CHECK(sum > 0);
        dp_buf_close(&blob);
        test_free(d);
    }
    /* Where energies would pass the limit they stop at it. */
    for (size_t i = 0; i < n; i++) {
        a[i] = 0x1p60F;
    }
    dp_buf blob = encoded(DP_CODEC_FP32, a, n);
    unsigned __int128 energy;
    CHECK_OK(dp_codec_energy(dp_buf_view(&blob), n, &energy));
    CHECK(energy == DP_CODEC_ENERGY_MAX);
    dp_buf_close(&blob);
    test_free(a);
}

static void energies_of_floats_are_summed_one_after_the_other(void **state)
{
    (void)state;
    enum { SHORT = 100, LONGEST = 5 * DP_CODEC_RUN + SHORT };
    float *const a = test_calloc(LONGEST, sizeof *a);
    for (size_t i = 0; i < LONGEST; i++) {
        a[i] = 1;
    }
    /* Added to 2^54, a single 1 is lost, but not those of the other runs, which are added up
     * first. */
    for (size_t runs = 1; runs <= 5; runs++) {
        const size_t length = runs * DP_CODEC_RUN + SHORT;
        for (size_t large = 0; large < runs; large++) {
            a[large * DP_CODEC_RUN] = 0x1p27F;
            for (unsigned kind = DP_CODEC_FP32; kind <= DP_CODEC_BF16; kind++) {
                dp_buf blob = encoded((dp_codec_kind)kind, a, length);
                unsigned __int128 energy;
                CHECK_OK(dp_codec_energy(dp_buf_view(&blob), length, &energy));
                CHECK(energy == (unsigned __int128)((UINT64_C(1) << 54) + length - DP_CODEC_RUN)
                                    << 48);
                dp_buf_close(&blob);
            }
            a[large * DP_CODEC_RUN] = 1;
        }
    }
    test_free(a);
}

static void a_centroid_of_zero_is_plus_zero_whatever_its_sign(void **state)
{
    (void)state;
    enum { LENGTH = 2 * DP_CODEC_KEEP_DEFAULT };
    float a[LENGTH] = {1, -1e-12F}; /* Two are kept, and the smaller one is no half. */
    dp_buf blob = encoded(DP_CODEC_SPARSE, a, LENGTH);
    float *const d = decoded(&blob, LENGTH);
    CHECK(d[0] == 1 && d[1] == 0 && !signbit(d[1]));
    /* The blob has the sign nevertheless: header, two centroids, then the signs. */
    CHECK(blob.data[DP_CODEC_HEADER_BYTES + 4] == 2);
    test_free(d);
    dp_buf_close(&blob);
}

static void check_refusal(const dp_codec *codec, float *a, size_t n, size_t at, float bad)
{
    const float held = a[at];
    a[at] = bad;
    dp_buf blob;
    dp_buf_init(&blob, BLOB_MAX);
    CHECK_OK(dp_buf_append(&blob, dp_view_text("before")));
    CHECK_STATUS(dp_codec_encode(codec, a, n, &blob), DP_DIVERGED);
    CHECK(dp_view_equal(dp_buf_view(&blob), dp_view_text("before")));
    dp_buf_close(&blob);
    a[at] = held;
}

static void values_that_are_not_finite_are_refused(void **state)
{
    (void)state;
    static const float bad[] = {(float)NAN, -(float)NAN, (float)INFINITY, -(float)INFINITY};
    float *const a = update_of(5000, 5, 1);
    for (size_t c = 0; c < N_CODECS; c++) {
        for (size_t i = 0; i < 4; i++) {
            check_refusal(&codecs[c], a, 5000, 0, bad[i]);
            check_refusal(&codecs[c], a, 5000, 4097, bad[i]);
            check_refusal(&codecs[c], a, 5000, 4999, bad[i]);
        }
        /* Large values are refused if sums of squares could overflow; otherwise they are cut to the
         * largest half. */
        const bool wide = codecs[c].kind == DP_CODEC_FP32 || codecs[c].kind == DP_CODEC_BF16;
        if (wide) {
            check_refusal(&codecs[c], a, 5000, 7, 0x1.000002p60F);
            continue;
        }
        const float held = a[7];
        a[7] = 1e38F;
        dp_buf blob = encoded_by(&codecs[c], a, 5000);
        CHECK_OK(dp_codec_check(dp_buf_view(&blob), 5000));
        dp_buf_close(&blob);
        a[7] = held;
    }
    test_free(a);
}

static void codecs_that_do_not_exist_are_refused(void **state)
{
    (void)state;
    static const dp_codec none[] = {
        {.kind = (dp_codec_kind)0},
        {.kind = DP_CODEC_KINDS},
        {.kind = (dp_codec_kind)5},
        {.kind = (dp_codec_kind)8, .block = 256},
        {.kind = DP_CODEC_FP32, .block = 64},
        {.kind = DP_CODEC_BF16, .bits = 2},
        {.kind = DP_CODEC_INT8}, /* blocks of 0 */
        {.kind = DP_CODEC_INT8, .block = 255},
        {.kind = DP_CODEC_INT8, .block = 128},
        {.kind = DP_CODEC_INT8, .block = 2048},
        {.kind = DP_CODEC_INT4, .block = 64, .keep = 16},
        {.kind = DP_CODEC_SPARSE, .keep = 8, .bits = 2},
        {.kind = DP_CODEC_SPARSE, .keep = 48, .bits = 2},
        {.kind = DP_CODEC_SPARSE, .keep = 256, .bits = 2},
        {.kind = DP_CODEC_SPARSE, .keep = 64, .bits = 0},
        {.kind = DP_CODEC_SPARSE, .keep = 64, .bits = 3},
    };
    const float a[2] = {1, 2};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        dp_buf blob;
        dp_buf_init(&blob, BLOB_MAX);
        CHECK_STATUS(dp_codec_encode(&none[i], a, 2, &blob), DP_BADARG);
        CHECK(blob.size == 0 && dp_codec_bytes_max(&none[i], 2) == 0);
        dp_buf_close(&blob);
    }
}

/* Byte at of the header is changed to value. */
static dp_status check_with(const dp_buf *blob, size_t at, uint8_t value, size_t n)
{
    const uint8_t held = blob->data[at];
    blob->data[at] = value;
    const dp_status status = dp_codec_check(dp_buf_view(blob), n);
    blob->data[at] = held;
    return status;
}

static void headers_that_lie_are_refused(void **state)
{
    (void)state;
    const size_t n = 4200;
    float *const a = update_of(n, 16, 0.01F);
    for (size_t c = 0; c < N_CODECS; c++) {
        dp_buf blob = encoded_by(&codecs[c], a, n);
        CHECK_STATUS(check_with(&blob, 0, 'X', n), DP_BADMSG);
        CHECK_STATUS(check_with(&blob, 4, 1, n), DP_VERSION);
        CHECK_STATUS(check_with(&blob, 4, 3, n), DP_VERSION);
        CHECK_STATUS(check_with(&blob, 5, 0, n), DP_BADMSG);
        for (unsigned gone = 7; gone <= 9; gone++) {
            CHECK_STATUS(check_with(&blob, 5, (uint8_t)gone, n), DP_BADMSG);
        }
        CHECK_STATUS(check_with(&blob, 5, 5, n), DP_BADMSG);
        CHECK_STATUS(check_with(&blob, 6, 31, n), DP_BADMSG);
        CHECK_STATUS(check_with(&blob, 6, 200, n), DP_BADMSG);
        CHECK_STATUS(check_with(&blob, 7, 3, n), DP_BADMSG);
        CHECK_STATUS(check_with(&blob, 8, 0x67, n), DP_BADMSG); /* one element less */
        CHECK_STATUS(check_with(&blob, 15, 1, n), DP_BADMSG);
        CHECK_STATUS(check_with(&blob, 16, 1, n), DP_BADMSG);
        CHECK_STATUS(check_with(&blob, 23, 0x80, n), DP_BADMSG);
        dp_codec codec;
        uint64_t elements;
        CHECK_OK(dp_codec_peek(dp_buf_view(&blob), &codec, &elements));
        CHECK(codec.kind == codecs[c].kind && codec.block == codecs[c].block);
        CHECK(codec.keep == codecs[c].keep && codec.bits == codecs[c].bits && elements == n);
        dp_buf_close(&blob);
    }
    test_free(a);
}

static void a_run_allows_its_codec_and_a_dense_one(void **state)
{
    (void)state;
    dp_manifest m;
    dp_manifest_default(&m);
    m.codec_keep = 64;
    m.codec_keep_most = 0;
    const dp_codec sparse = dp_codec_of_run(&m);
    const dp_codec dense = dp_codec_dense_of_run(&m);
    CHECK(sparse.kind == DP_CODEC_SPARSE && sparse.keep == 64 && sparse.bits == 2);
    CHECK(dense.kind == DP_CODEC_INT8 && dense.block == 256);
    CHECK(dp_codec_allowed(&sparse, &m, 0) && dp_codec_allowed(&dense, &m, 0));
    const dp_codec half = dp_codec_default(DP_CODEC_BF16);
    CHECK(!dp_codec_allowed(&half, &m, 0));
    dp_codec other = sparse;
    other.keep = 16;
    CHECK(!dp_codec_allowed(&other, &m, 0));
    other.keep = 128;
    CHECK(!dp_codec_allowed(&other, &m, 0));
    other = dense;
    other.block = 512;
    CHECK(!dp_codec_allowed(&other, &m, 0));
    m.codec = DP_CODEC_INT4;
    const dp_codec int4 = dp_codec_of_run(&m);
    CHECK(int4.kind == DP_CODEC_INT4 && int4.block == 64 && int4.keep == 0);
    CHECK(dp_codec_allowed(&int4, &m, 0) && !dp_codec_allowed(&dense, &m, 0));
}

static void after_a_loss_sparse_updates_may_be_twice_as_dense(void **state)
{
    (void)state;
    dp_manifest m;
    dp_manifest_default(&m);
    m.codec_keep = 64;
    m.codec_keep_most = 0;
    dp_codec after = dp_codec_after_loss(&m, 0);
    CHECK(after.kind == DP_CODEC_SPARSE && after.keep == 32 && after.bits == 2);
    CHECK(dp_codec_allowed(&after, &m, 0));
    m.codec_keep = DP_CODEC_KEEP_MIN;
    after = dp_codec_after_loss(&m, 0);
    CHECK(after.keep == DP_CODEC_KEEP_MIN);
    m.codec = DP_CODEC_INT8;
    after = dp_codec_after_loss(&m, 0);
    CHECK(after.kind == DP_CODEC_INT8 && after.keep == 0);
}

static void a_round_allows_its_density_and_no_other(void **state)
{
    (void)state;
    dp_manifest m;
    dp_manifest_default(&m);
    m.codec_keep = 64;
    m.codec_keep_most = 0;
    CHECK(dp_codec_keep_permitted(&m, 0) && dp_codec_keep_permitted(&m, 64));
    CHECK(!dp_codec_keep_permitted(&m, 128) && !dp_codec_keep_permitted(&m, 32));
    m.codec_keep = 32;
    m.codec_keep_most = 128;
    CHECK(dp_codec_keep_permitted(&m, 0) && dp_codec_keep_permitted(&m, 128));
    CHECK(!dp_codec_keep_permitted(&m, 16) && !dp_codec_keep_permitted(&m, 256) &&
          !dp_codec_keep_permitted(&m, 96));
    dp_codec codec = dp_codec_of_round(&m, 128);
    CHECK(codec.kind == DP_CODEC_SPARSE && codec.keep == 128 && codec.bits == 2);
    CHECK(dp_codec_allowed(&codec, &m, 128));
    CHECK(!dp_codec_allowed(&codec, &m, 64) && !dp_codec_allowed(&codec, &m, 0));
    CHECK(!dp_codec_allowed(&codec, &m, 256)); /* No such density. */
    codec = dp_codec_after_loss(&m, 128);
    CHECK(codec.keep == 64 && dp_codec_allowed(&codec, &m, 128) &&
          dp_codec_allowed(&codec, &m, 64));
    codec = dp_codec_of_round(&m, 0);
    CHECK(codec.keep == 32 && !dp_codec_allowed(&codec, &m, 128));
    codec = dp_codec_dense_of_run(&m);
    CHECK(codec.kind == DP_CODEC_INT8 && dp_codec_allowed(&codec, &m, 128));
}

static void cut_blobs_are_refused(void **state)
{
    (void)state;
    const size_t n = 4200;
    float *const a = update_of(n, 6, 0.01F);
    for (size_t c = 0; c < N_CODECS; c++) {
        dp_buf blob = encoded_by(&codecs[c], a, n);
        for (size_t size = 0; size < blob.size; size += 1 + blob.size / 500) {
            /* A copy of its own size, so that a sanitizer sees a read past the end. */
            uint8_t *const copy = test_malloc(size + 1);
            memcpy(copy + 1, blob.data, size);
            CHECK(dp_codec_check(dp_view_of(copy + 1, size), n) != DP_OK);
            test_free(copy);
        }
        CHECK_OK(dp_buf_append(&blob, dp_view_of("", 1)));
        CHECK_STATUS(dp_codec_check(dp_buf_view(&blob), n), DP_BADMSG);
        CHECK_STATUS(dp_codec_check(dp_buf_view(&blob), n + 1), DP_BADMSG);
        dp_buf_close(&blob);
    }
    test_free(a);
}

static void damaged_blobs_decode_to_finite_values_or_to_a_status(void **state)
{
    (void)state;
    const size_t n = 600;
    float *const a = update_of(n, 7, 0.01F);
    float *const d = test_calloc(n, sizeof *d);
    dp_rng rng;
    dp_rng_init(&rng, 8);
    for (size_t c = 0; c < N_CODECS; c++) {
        dp_buf blob = encoded_by(&codecs[c], a, n);
        unsigned refused = 0;
        for (int i = 0; i < 5000; i++) {
            uint8_t *const bytes = test_malloc(blob.size);
            memcpy(bytes, blob.data, blob.size);
            const size_t size = mutate(&rng, bytes, blob.size, blob.size);
            const dp_status status = dp_codec_decode(dp_view_of(bytes, size), d, n);
            unsigned __int128 energy = 0;
            CHECK(dp_codec_energy(dp_view_of(bytes, size), n, &energy) == status);
            refused += status != DP_OK;
            for (size_t j = 0; status == DP_OK && j < n; j++) {
                CHECK(isfinite(d[j]));
            }
            test_free(bytes);
        }
        CHECK(refused > 100);
        dp_buf_close(&blob);
    }
    test_free(a);
    test_free(d);
}

static void halves_round_to_nearest_and_ties_to_even(void **state)
{
    (void)state;
    for (uint16_t half = 0; half < DP_HALF_MAX; half++) {
        const double here = (double)dp_half_value(half);
        const double next = (double)dp_half_value((uint16_t)(half + 1));
        const double middle = (here + next) / 2;
        CHECK(next > here);
        CHECK(dp_half_of(here, false) == half && dp_half_of(here, true) == half);
        CHECK(dp_half_of(middle, false) == (half % 2 == 0 ? half : half + 1));
        CHECK(dp_half_of(nextafter(middle, 0), false) == half);
        CHECK(dp_half_of(nextafter(middle, 1e9), false) == half + 1);
        CHECK(dp_half_of(nextafter(here, 1e9), true) == half + 1);
        CHECK((double)dp_half_grid(half) * 0x1p-24 == here);
    }
    CHECK(dp_half_of(1e9, false) == DP_HALF_MAX && dp_half_of(65505, true) == DP_HALF_MAX);
    CHECK(dp_half_of(1e-300, false) == 0 && dp_half_of(1e-300, true) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_what_was_decoded_changes_nothing),
        cmocka_unit_test(every_largest_magnitude_of_a_block_is_a_fixed_point),
        cmocka_unit_test(dense_codecs_stay_within_half_a_step),
        cmocka_unit_test(sparse_keeps_the_largest_of_each_run),
        cmocka_unit_test(equal_magnitudes_are_taken_from_the_front),
        cmocka_unit_test(zero_runs_take_four_bytes),
        cmocka_unit_test(a_chunk_with_known_values_has_known_bytes),
        cmocka_unit_test(blobs_keep_their_promised_size),
        cmocka_unit_test(energies_are_sums_of_squares),
        cmocka_unit_test(energies_of_floats_are_summed_one_after_the_other),
        cmocka_unit_test(a_centroid_of_zero_is_plus_zero_whatever_its_sign),
        cmocka_unit_test(values_that_are_not_finite_are_refused),
        cmocka_unit_test(codecs_that_do_not_exist_are_refused),
        cmocka_unit_test(headers_that_lie_are_refused),
        cmocka_unit_test(a_run_allows_its_codec_and_a_dense_one),
        cmocka_unit_test(after_a_loss_sparse_updates_may_be_twice_as_dense),
        cmocka_unit_test(a_round_allows_its_density_and_no_other),
        cmocka_unit_test(cut_blobs_are_refused),
        cmocka_unit_test(damaged_blobs_decode_to_finite_values_or_to_a_status),
        cmocka_unit_test(halves_round_to_nearest_and_ties_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
