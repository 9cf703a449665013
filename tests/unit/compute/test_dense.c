#include "compute/dense.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "tests/lib/check.h"

enum { SIZES = 9, MOST = 3000 };

static const size_t sizes[SIZES] = {1, 2, 31, 33, 1023, 1024, 1025, 2048, MOST};

static void fill(float *x, size_t n, uint64_t seed, float scale)
{
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        x[i] = ((float)dp_rng_below(&rng, 2000001) / 1e6F - 1.0F) * scale;
    }
}

static void fp32_comes_back_as_it_was(void **state)
{
    float x[MOST];
    float y[MOST];
    uint8_t bytes[4 * MOST];
    (void)state;
    for (unsigned i = 0; i < SIZES; i++) {
        fill(x, sizes[i], i, 8000);
        CHECK_OK(dp_dense_encode(DP_DENSE_FP32, x, sizes[i], bytes));
        CHECK_OK(dp_dense_decode(DP_DENSE_FP32, dp_view_of(bytes, 4 * sizes[i]), sizes[i], y));
        assert_memory_equal(x, y, 4 * sizes[i]);
    }
}

/* Half a step of the largest of each block, which is 127 steps. */
static void int8_is_within_half_a_step(void **state)
{
    static const float scales[] = {1e-6F, 1e-3F, 1, 30};
    float x[MOST];
    float y[MOST];
    uint8_t bytes[2 * MOST];
    (void)state;
    for (unsigned i = 0; i < SIZES * 4; i++) {
        const size_t n = sizes[i / 4];
        const size_t size = dp_dense_bytes(DP_DENSE_INT8, n);
        fill(x, n, i, scales[i % 4]);
        CHECK_OK(dp_dense_encode(DP_DENSE_INT8, x, n, bytes));
        CHECK_OK(dp_dense_decode(DP_DENSE_INT8, dp_view_of(bytes, size), n, y));
        for (size_t k = 0; k < n; k++) {
            const size_t block = k / DP_DENSE_BLOCK * DP_DENSE_BLOCK;
            float most = 0;
            for (size_t j = block; j < n && j < block + DP_DENSE_BLOCK && k % 97 == 0; j++) {
                most = fabsf(x[j]) > most ? fabsf(x[j]) : most;
            }
            CHECK(k % 97 != 0 || fabsf(x[k] - y[k]) <= most / 127 * 0.501F + 0x1p-34F);
        }
    }
}

static void zeros_stay_zeros(void **state)
{
    static const float x[100];
    float y[100];
    uint8_t bytes[104];
    (void)state;
    CHECK_OK(dp_dense_encode(DP_DENSE_INT8, x, 100, bytes));
    CHECK_OK(dp_dense_decode(DP_DENSE_INT8, dp_view_of(bytes, sizeof bytes), 100, y));
    assert_memory_equal(x, y, sizeof y);
}

static void what_is_no_number_or_too_large_is_refused(void **state)
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY, 1e30F, 9000};
    float x[40] = {0};
    float y[40];
    int64_t sum[40];
    uint8_t bytes[160];
    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        x[i * 5] = bad[i];
        CHECK_STATUS(dp_dense_encode(DP_DENSE_FP32, x, 40, bytes), DP_DIVERGED);
        CHECK_STATUS(dp_dense_encode(DP_DENSE_INT8, x, 40, bytes), DP_DIVERGED);
        const dp_terms terms = {.codec = DP_DENSE_FP32, .weight = 1, .n = 40, .x = x, .sum = sum};
        CHECK_STATUS(dp_dense_add(&terms), DP_DIVERGED);
        CHECK_STATUS(dp_dense_mean(&terms, 1, bytes), DP_DIVERGED);
        memcpy(bytes, x, sizeof x);
        CHECK_STATUS(dp_dense_check(DP_DENSE_FP32, dp_view_of(bytes, sizeof x), 40), DP_DIVERGED);
        CHECK_STATUS(dp_dense_decode(DP_DENSE_FP32, dp_view_of(bytes, sizeof x), 40, y),
                     DP_DIVERGED);
        x[i * 5] = 0;
    }
    x[3] = 8000;
    CHECK_OK(dp_dense_encode(DP_DENSE_FP32, x, 40, bytes));
    CHECK_STATUS(dp_dense_encode(DP_DENSE_INT8, x, 40, bytes), DP_DIVERGED);
}

static void wrong_sizes_and_codecs_are_refused(void **state)
{
    uint8_t bytes[200] = {0};
    (void)state;
    CHECK_OK(dp_dense_check(DP_DENSE_INT8, dp_view_of(bytes, 14), 10));
    CHECK_STATUS(dp_dense_check(DP_DENSE_INT8, dp_view_of(bytes, 13), 10), DP_BADMSG);
    CHECK_STATUS(dp_dense_check(DP_DENSE_INT8, dp_view_of(bytes, 15), 10), DP_BADMSG);
    CHECK_STATUS(dp_dense_check(DP_DENSE_FP32, dp_view_of(bytes, 39), 10), DP_BADMSG);
    CHECK_STATUS(dp_dense_check(DP_DENSE_FP32, dp_view_of(bytes, 0), 0), DP_BADMSG);
    CHECK_STATUS(dp_dense_check(0, dp_view_of(bytes, 0), 10), DP_BADMSG);
    CHECK_STATUS(dp_dense_check(99, dp_view_of(bytes, 40), 10), DP_BADMSG);
}

enum { PARTS = 3, ORDERS = 6 };

/* The mean of x with weight 4 and three parts with weights 1 to 3 in one of the orders, of which the first so many come by the
 * sum. */
static void mean_in(unsigned order, unsigned summed, const dp_terms *all, uint8_t *out)
{
    static const unsigned orders[ORDERS][PARTS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static int64_t sum[MOST];
    dp_terms terms = *all;
    terms.sum = sum;
    terms.n_parts = 0;
    for (unsigned i = 0; i < PARTS; i++) {
        terms.parts[terms.n_parts] = all->parts[orders[order][i]];
        terms.weights[terms.n_parts++] = orders[order][i] + 1;
        if (i + 1 == summed) {
            CHECK_OK(dp_dense_add(&terms));
            terms.begun = true;
            terms.n_parts = 0;
        }
    }
    CHECK_OK(dp_dense_mean(&terms, 10, out));
}

/* Nor does it matter which of them are in a sum already: the same bits. */
static void the_order_of_parts_does_not_matter(void **state)
{
    static uint8_t bytes[PARTS][4 * MOST];
    static uint8_t first[4 * MOST];
    static uint8_t out[4 * MOST];
    float own[MOST];
    float x[MOST];
    (void)state;
    for (uint8_t codec = DP_DENSE_FP32; codec <= DP_DENSE_INT8; codec++) {
        dp_terms terms = {.codec = codec, .weight = 4, .n = MOST, .x = x};
        const size_t size = dp_dense_bytes(codec, MOST);
        fill(own, MOST, 99, 0.5F);
        double wanted = 4 * (double)own[1234] / 10; /* near the mean in doubles */
        for (unsigned i = 0; i < PARTS; i++) {
            fill(x, MOST, i + 10, 0.5F);
            CHECK_OK(dp_dense_encode(codec, x, MOST, bytes[i]));
            CHECK_OK(dp_dense_decode(codec, dp_view_of(bytes[i], size), MOST, x));
            wanted += (i + 1) * (double)x[1234] / 10;
            terms.parts[i] = bytes[i];
        }
        for (unsigned i = 0; i < ORDERS * (PARTS + 1); i++) {
            memcpy(x, own, sizeof x);
            mean_in(i % ORDERS, i / ORDERS, &terms, i == 0 ? first : out);
            CHECK(i == 0 || memcmp(first, out, size) == 0);
        }
        CHECK(fabs(wanted - (double)x[1234]) < (codec == DP_DENSE_FP32 ? 1e-7 : 0.5 / 127));
        CHECK_OK(dp_dense_decode(codec, dp_view_of(out, size), MOST, own));
        assert_memory_equal(own, x, sizeof x); /* x is what all others get. */
    }
}

/* One or two parts at once are what they are one after the other, by a sum. */
static void fewer_parts_at_once_are_the_same_too(void **state)
{
    static uint8_t bytes[2][4 * MOST];
    static uint8_t at_once[4 * MOST];
    static uint8_t out[4 * MOST];
    static int64_t sum[MOST];
    float own[MOST];
    float x[MOST];
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        const uint8_t codec = i % 2 == 0 ? DP_DENSE_FP32 : DP_DENSE_INT8;
        dp_terms terms = {
            .codec = codec, .weight = 1000, .n = MOST - 77, .x = x, .weights = {3, 5}, .sum = sum};
        for (unsigned k = 0; k < 2; k++) {
            fill(x, MOST, k + 20, 0.5F);
            CHECK_OK(dp_dense_encode(codec, x, terms.n, bytes[k]));
            terms.parts[k] = bytes[k];
        }
        fill(own, MOST, 7, 30);
        memcpy(x, own, sizeof x);
        terms.n_parts = 1 + i / 2;
        CHECK_OK(dp_dense_mean(&terms, 1008, at_once));
        memcpy(x, own, sizeof x);
        CHECK_OK(dp_dense_add(&terms));
        terms.begun = true;
        terms.n_parts = 0;
        CHECK_OK(dp_dense_mean(&terms, 1008, out));
        assert_memory_equal(at_once, out, dp_dense_bytes(codec, terms.n));
    }
}

static void own_values_count_as_a_part_of_floats_does(void **state)
{
    float x[MOST];
    int64_t begun[MOST];
    int64_t sum[MOST] = {0};
    (void)state;
    fill(x, MOST, 5, 100);
    const dp_terms own = {.codec = DP_DENSE_FP32, .weight = 1023, .n = MOST, .x = x, .sum = begun};
    const dp_terms part = {.codec = DP_DENSE_FP32,
                           .begun = true,
                           .n_parts = 1,
                           .n = MOST,
                           .sum = sum,
                           .parts = {(const uint8_t *)x},
                           .weights = {1023}};
    CHECK_OK(dp_dense_add(&own));
    CHECK_OK(dp_dense_add(&part));
    assert_memory_equal(begun, sum, sizeof sum);
}

/* 32 members of the largest weight and the largest values that any bytes can say. */
static void no_bytes_overflow_a_sum(void **state)
{
    uint8_t bytes[4 + 40];
    float x[40];
    int64_t sum[40] = {0};
    dp_terms terms = {.codec = DP_DENSE_INT8,
                      .begun = true,
                      .n_parts = 1,
                      .n = 40,
                      .sum = sum,
                      .parts = {bytes},
                      .weights = {1023}};
    (void)state;
    memset(bytes, 0x80, sizeof bytes);
    memset(bytes, 0xff, 4);
    for (unsigned i = 0; i < 32; i++) {
        CHECK_OK(dp_dense_add(&terms));
    }
    CHECK(sum[7] == 32 * 1023 * (int64_t)UINT32_MAX * -128);
    memset(sum, 0, sizeof sum);
    for (unsigned i = 0; i < 40; i++) {
        x[i] = -8191.9995F;
    }
    terms.codec = DP_DENSE_FP32;
    terms.parts[0] = (const uint8_t *)x;
    CHECK_OK(dp_dense_check(DP_DENSE_FP32, dp_view_of(x, sizeof x), 40));
    for (unsigned i = 0; i < 32; i++) {
        CHECK_OK(dp_dense_add(&terms));
    }
    CHECK(sum[3] < 0 && sum[3] > -(1LL << 62));
}

/* By hand: k = ceil(2^34 / 127) = 135,274,561, q = -127, 64 (63.5 to even), 0. The same on every machine. */
static void the_bytes_are_these(void **state)
{
    static const float x[3] = {-1.0F, 0.5F, 0.001F};
    static const uint8_t wanted[] = {0x41, 0x20, 0x10, 0x08, 0x81, 0x40, 0x00};
    uint8_t bytes[7];
    (void)state;
    CHECK_OK(dp_dense_encode(DP_DENSE_INT8, x, 3, bytes));
    assert_memory_equal(bytes, wanted, sizeof wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp32_comes_back_as_it_was),
        cmocka_unit_test(int8_is_within_half_a_step),
        cmocka_unit_test(zeros_stay_zeros),
        cmocka_unit_test(what_is_no_number_or_too_large_is_refused),
        cmocka_unit_test(wrong_sizes_and_codecs_are_refused),
        cmocka_unit_test(the_order_of_parts_does_not_matter),
        cmocka_unit_test(fewer_parts_at_once_are_the_same_too),
        cmocka_unit_test(own_values_count_as_a_part_of_floats_does),
        cmocka_unit_test(no_bytes_overflow_a_sum),
        cmocka_unit_test(the_bytes_are_these),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
