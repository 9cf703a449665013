#include "tests/lib/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "compute/codec.h"
#include "compute/half.h"
#include "tests/lib/mutate.h"

enum { BLOB_MAX = 1 << 26 };

static const size_t sizes[] = {0, 1, 2, 63, 64, 65, 255, 257, 4095, 4096, 4097, 8192, 10000};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

/* Like an update: a bell of small values. Twelve uniforms make the bell (Irwin 1927). */
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

static dp_buf encoded(dp_codec_kind kind, const float *a, size_t n)
{
    dp_buf blob;
    dp_buf_init(&blob, BLOB_MAX);
    CHECK_OK(dp_codec_encode(kind, a, n, &blob));
    CHECK(blob.size <= dp_codec_bytes_max(kind, n));
    return blob;
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

static void encoding_what_was_decoded_changes_nothing(void **state)
{
    (void)state;
    for (unsigned kind = DP_CODEC_FP32; kind <= DP_CODEC_SPARSE; kind++) {
        for (size_t i = 0; i < N_SIZES; i++) {
            const size_t n = sizes[i];
            float *const a = update_of(n, 100 * kind + i, 0.01F);
            dp_buf first = encoded((dp_codec_kind)kind, a, n);
            float *const d = decoded(&first, n);
            dp_buf second = encoded((dp_codec_kind)kind, d, n);
            float *const again = decoded(&second, n);
            CHECK(same_bits(d, again, n));
            CHECK(dp_view_equal(dp_buf_view(&first), dp_buf_view(&second)));
            CHECK(kind != DP_CODEC_FP32 || same_bits(a, d, n));
            dp_buf_close(&first);
            dp_buf_close(&second);
            test_free(a);
            test_free(d);
            test_free(again);
        }
    }
}

static void dense_codecs_stay_within_half_a_step(void **state)
{
    (void)state;
    const size_t n = 10000;
    float *const a = update_of(n, 3, 0.01F);
    dp_buf brief = encoded(DP_CODEC_BF16, a, n);
    dp_buf bytes = encoded(DP_CODEC_INT8, a, n);
    float *const half = decoded(&brief, n);
    float *const coarse = decoded(&bytes, n);
    for (size_t block = 0; block < n; block += DP_CODEC_BLOCK) {
        float largest = 0;
        const size_t end = block + DP_CODEC_BLOCK < n ? block + DP_CODEC_BLOCK : n;
        for (size_t i = block; i < end; i++) {
            largest = fmaxf(largest, fabsf(a[i]));
        }
        for (size_t i = block; i < end; i++) {
            CHECK(fabsf(half[i] - a[i]) <= fabsf(a[i]) * 0x1p-8F);
            /* The scale is rounded up by at most 2^-10 of itself. */
            CHECK(fabsf(coarse[i] - a[i]) <= largest / 127 * 0.5F * 1.002F);
        }
    }
    dp_buf_close(&brief);
    dp_buf_close(&bytes);
    test_free(a);
    test_free(half);
    test_free(coarse);
}

static void sparse_keeps_the_largest_of_each_run(void **state)
{
    (void)state;
    for (size_t s = 1; s < N_SIZES; s++) {
        const size_t n = sizes[s];
        float *const a = update_of(n, 50 + s, 0.01F);
        dp_buf blob = encoded(DP_CODEC_SPARSE, a, n);
        float *const d = decoded(&blob, n);
        for (size_t at = 0; at < n; at += DP_CODEC_RUN) {
            const size_t length = n - at < DP_CODEC_RUN ? n - at : DP_CODEC_RUN;
            const size_t k = (length + 63) / 64;
            float sorted[DP_CODEC_RUN];
            memcpy(sorted, a + at, length * sizeof *sorted);
            qsort(sorted, length, sizeof *sorted, by_size_down);
            size_t kept = 0;
            for (size_t i = 0; i < length; i++) {
                const float value = d[at + i];
                if (value != 0) {
                    kept++;
                    CHECK(fabsf(a[at + i]) >= fabsf(sorted[k - 1]));
                    CHECK(signbit(value) == signbit(a[at + i]));
                    CHECK(fabsf(value) <= fabsf(sorted[0]) * 1.001F);
                }
            }
            CHECK(kept == k);
        }
        dp_buf_close(&blob);
        test_free(a);
        test_free(d);
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
    static const uint8_t expected[] = {'D',  'P',  'U',  '1',  1,    4,    0,    0,
                                       128,  0,    0,    0,    0,    0,    0,    0,
                                       0x00, 0x3c, 0x00, 0x40, 0x02, 0x02, 0xc6, 0x01};
    CHECK(dp_view_equal(dp_buf_view(&blob), dp_view_of(expected, sizeof expected)));
    unsigned __int128 energy;
    CHECK_OK(dp_codec_energy(dp_buf_view(&blob), 128, &energy));
    CHECK(energy == (unsigned __int128)5 << 48);
    dp_buf_close(&blob);
}

static void sparse_blobs_keep_their_promised_size(void **state)
{
    (void)state;
    const size_t n = (size_t)1 << 20;
    float *const a = update_of(n, 9, 0.001F);
    dp_buf blob = encoded(DP_CODEC_SPARSE, a, n);
    CHECK((double)(blob.size - DP_CODEC_HEADER_BYTES) <= 0.0200 * (double)n);
    CHECK((double)blob.size <= 0.0205 * (double)n);
    dp_buf_close(&blob);
    test_free(a);
}

static void energies_are_sums_of_squares(void **state)
{
    (void)state;
    const size_t n = 9000;
    float *const a = update_of(n, 4, 0.01F);
    for (unsigned kind = DP_CODEC_FP32; kind <= DP_CODEC_SPARSE; kind++) {
        dp_buf blob = encoded((dp_codec_kind)kind, a, n);
        float *const d = decoded(&blob, n);
        long double sum = 0;
        for (size_t i = 0; i < n; i++) {
            sum += (long double)d[i] * (long double)d[i];
        }
        unsigned __int128 energy;
        CHECK_OK(dp_codec_energy(dp_buf_view(&blob), n, &energy));
        const double got = (double)energy * 0x1p-48;
        CHECK(fabs(got - (double)sum) <= 1e-9 * (double)sum);
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
    enum { LENGTH = 2 * DP_CODEC_RUN };
    float *const a = test_calloc(LENGTH, sizeof *a);
    for (size_t i = 0; i < LENGTH; i++) {
        a[i] = 1;
    }
    a[0] = 0x1p27F; /* Beside 2^54 a single 1 is lost, but not the 4096 of the second run. */
    for (unsigned kind = DP_CODEC_FP32; kind <= DP_CODEC_BF16; kind++) {
        dp_buf blob = encoded((dp_codec_kind)kind, a, LENGTH);
        unsigned __int128 energy;
        CHECK_OK(dp_codec_energy(dp_buf_view(&blob), LENGTH, &energy));
        CHECK(energy == (unsigned __int128)((UINT64_C(1) << 54) + DP_CODEC_RUN) << 48);
        dp_buf_close(&blob);
    }
    test_free(a);
}

static void a_centroid_of_zero_is_plus_zero_whatever_its_sign(void **state)
{
    (void)state;
    enum { LENGTH = 2 * DP_CODEC_TOP };
    float a[LENGTH] = {1, -1e-12F}; /* Two are kept, and the smaller one is no half. */
    dp_buf blob = encoded(DP_CODEC_SPARSE, a, LENGTH);
    float *const d = decoded(&blob, LENGTH);
    CHECK(d[0] == 1 && d[1] == 0 && !signbit(d[1]));
    /* The sign is in the blob all the same: header, two centroids, then the signs. */
    CHECK(blob.data[DP_CODEC_HEADER_BYTES + 4] == 2);
    test_free(d);
    dp_buf_close(&blob);
}

static void values_that_are_not_finite_are_refused(void **state)
{
    (void)state;
    static const float bad[] = {(float)NAN, (float)INFINITY, -(float)INFINITY};
    float *const a = update_of(5000, 5, 1);
    for (unsigned kind = DP_CODEC_FP32; kind <= DP_CODEC_SPARSE; kind++) {
        for (size_t i = 0; i < 3; i++) {
            for (size_t at = 0; at < 5000; at += 4999) {
                const float held = a[at];
                a[at] = bad[i];
                dp_buf blob;
                dp_buf_init(&blob, BLOB_MAX);
                CHECK_OK(dp_buf_append(&blob, dp_view_text("before")));
                CHECK_STATUS(dp_codec_encode((dp_codec_kind)kind, a, 5000, &blob), DP_DIVERGED);
                CHECK(dp_view_equal(dp_buf_view(&blob), dp_view_text("before")));
                dp_buf_close(&blob);
                a[at] = held;
            }
        }
    }
    a[7] = 0x1.000002p60F;
    dp_buf blob;
    dp_buf_init(&blob, BLOB_MAX);
    CHECK_STATUS(dp_codec_encode(DP_CODEC_FP32, a, 5000, &blob), DP_DIVERGED);
    CHECK_STATUS(dp_codec_encode(DP_CODEC_BF16, a, 5000, &blob), DP_DIVERGED);
    a[7] = 1e30F; /* sparse and int8 saturate at the largest half */
    CHECK_OK(dp_codec_encode(DP_CODEC_SPARSE, a, 5000, &blob));
    CHECK_OK(dp_codec_check(dp_buf_view(&blob), 5000));
    dp_buf_clear(&blob);
    CHECK_OK(dp_codec_encode(DP_CODEC_INT8, a, 5000, &blob));
    CHECK_OK(dp_codec_check(dp_buf_view(&blob), 5000));
    dp_buf_close(&blob);
    test_free(a);
}

static void cut_blobs_are_refused(void **state)
{
    (void)state;
    const size_t n = 4200;
    float *const a = update_of(n, 6, 0.01F);
    for (unsigned kind = DP_CODEC_FP32; kind <= DP_CODEC_SPARSE; kind++) {
        dp_buf blob = encoded((dp_codec_kind)kind, a, n);
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
    for (unsigned kind = DP_CODEC_FP32; kind <= DP_CODEC_SPARSE; kind++) {
        dp_buf blob = encoded((dp_codec_kind)kind, a, n);
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

static float golden_value(uint64_t seed, uint64_t i)
{
    const uint64_t bits = dp_mix64(seed * 1000003 + i);
    return (bits & 7) == 0 ? 0 : (float)((int64_t)(bits >> 43) - (1 << 20)) * 0x1p-30F;
}

static void check_golden(char *line)
{
    char *rest = NULL;
    dp_codec_kind kind;
    CHECK(dp_codec_named(strtok_r(line, " ", &rest), &kind));
    const size_t n = strtoul(strtok_r(NULL, " ", &rest), NULL, 10);
    const uint64_t seed = strtoul(strtok_r(NULL, " ", &rest), NULL, 10);
    unsigned __int128 energy = 0;
    for (const char *digit = strtok_r(NULL, " ", &rest); *digit != '\0'; digit++) {
        energy = energy << 4 | (unsigned)(*digit <= '9' ? *digit - '0' : *digit - 'a' + 10);
    }
    const char *const hex = strtok_r(NULL, " \n", &rest);
    float *const a = test_calloc(n + 1, sizeof *a);
    for (size_t i = 0; i < n; i++) {
        a[i] = golden_value(seed, i);
    }
    dp_buf blob = encoded(kind, a, n);
    char *const text = test_malloc(2 * blob.size + 1);
    dp_hex(dp_buf_view(&blob), text);
    CHECK(strcmp(text, hex) == 0);
    unsigned __int128 got;
    CHECK_OK(dp_codec_energy(dp_buf_view(&blob), n, &got));
    CHECK(got == energy);
    test_free(text);
    dp_buf_close(&blob);
    test_free(a);
}

static void blobs_equal_those_of_a_second_implementation(void **state)
{
    (void)state;
    FILE *const file = fopen("tests/golden/codec.txt", "r");
    CHECK(file != NULL);
    static char line[1 << 16];
    unsigned count = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] != '#') {
            check_golden(line);
            count++;
        }
    }
    fclose(file);
    CHECK(count == 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_what_was_decoded_changes_nothing),
        cmocka_unit_test(dense_codecs_stay_within_half_a_step),
        cmocka_unit_test(sparse_keeps_the_largest_of_each_run),
        cmocka_unit_test(equal_magnitudes_are_taken_from_the_front),
        cmocka_unit_test(zero_runs_take_four_bytes),
        cmocka_unit_test(a_chunk_with_known_values_has_known_bytes),
        cmocka_unit_test(sparse_blobs_keep_their_promised_size),
        cmocka_unit_test(energies_are_sums_of_squares),
        cmocka_unit_test(energies_of_floats_are_summed_one_after_the_other),
        cmocka_unit_test(a_centroid_of_zero_is_plus_zero_whatever_its_sign),
        cmocka_unit_test(values_that_are_not_finite_are_refused),
        cmocka_unit_test(cut_blobs_are_refused),
        cmocka_unit_test(damaged_blobs_decode_to_finite_values_or_to_a_status),
        cmocka_unit_test(blobs_equal_those_of_a_second_implementation),
        cmocka_unit_test(halves_round_to_nearest_and_ties_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
