/* Every table of loops gives the bits of the plain one. */
#include "tests/lib/check.h"

#include <math.h>

#include "base/rng.h"
#include "compute/codec/codec.h"
#include "compute/cpu/codec_element.h"
#include "compute/cpu/codec_ops.h"
#include "compute/cpu/half.h"

static const size_t sizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 255, 1000, 4095, 4096};
enum { N_SIZES = sizeof sizes / sizeof sizes[0], SHAPES = 7, GUARD = 0x5a };

static float bell(dp_rng *rng)
{
    int64_t sum = 0;
    for (int j = 0; j < 12; j++) {
        sum += (int64_t)dp_rng_below(rng, 1024);
    }
    return (float)(sum - 6138) / 1024.0F;
}

/* Finite values as updates have them, and as they do not: ties, mostly zeros, one large, all
 * exponents, subnormal, equal. */
static void fill(float *a, size_t n, unsigned shape, dp_rng *rng)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)dp_rng_next(rng);
        switch (shape) {
        case 0:
            a[i] = bell(rng) * 1e-3F;
            break;
        case 1:
            a[i] = (float)((int)(bits % 9) - 4) * 0.25F;
            break;
        case 2:
            a[i] = bits % 500 == 0 ? bell(rng) : -0.0F;
            break;
        case 3:
            a[i] = i == n / 2 ? -0x1p126F : bell(rng) * 1e-30F;
            break;
        case 4:
            a[i] =
                dp_float_of_bits((bits & 0x7f800000U) == 0x7f800000U ? bits ^ 0x40000000U : bits);
            break;
        case 5:
            a[i] = dp_float_of_bits(bits & 0x807fffffU);
            break;
        default:
            a[i] = bits % 2 == 0 ? 0.5F : -0.5F;
            break;
        }
    }
}

static uint32_t highest(const float *a, size_t n)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t key = dp_float_bits(a[i]) & 0x7fffffffU;
        largest = key > largest ? key : largest;
    }
    return largest;
}

static void check_choices(const dp_codec_ops *ops, const float *a, size_t n)
{
    const dp_codec_ops *const plain = dp_codec_ops_reference();
    const uint32_t largest = highest(a, n);
    CHECK(plain->largest(a, n) == largest && ops->largest(a, n) == largest);
    if (largest == 0) {
        return;
    }
    for (size_t keep = 16; keep <= 128; keep *= 2) {
        const size_t k = (n + keep - 1) / keep;
        uint16_t wanted[DP_CODEC_KEPT_MAX];
        uint16_t got[DP_CODEC_KEPT_MAX];
        plain->choose(a, n, k, largest, wanted);
        ops->choose(a, n, k, largest, got);
        CHECK(memcmp(wanted, got, k * sizeof *got) == 0);
        for (size_t i = 1; i < k; i++) {
            CHECK(wanted[i - 1] < wanted[i]);
        }
    }
}

/* Checks the loops with the arguments that codecs give them: a scale under which the largest
 * element has most steps, and an exponent at least as high as that of the largest. */
static void check_numbers(const dp_codec_ops *ops, const float *a, size_t n)
{
    const dp_codec_ops *const plain = dp_codec_ops_reference();
    const uint32_t largest = highest(a, n);
    const uint32_t top = largest >> 23 == 0 ? 1 : largest >> 23;
    CHECK(plain->sum(a, n, top) == ops->sum(a, n, top));
    uint8_t wanted[DP_CODEC_RUN + 1];
    uint8_t got[DP_CODEC_RUN + 1];
    memset(got, GUARD, sizeof got);
    plain->signs(a, n, wanted);
    ops->signs(a, n, got);
    CHECK(memcmp(wanted, got, (n + 7) / 8) == 0 && got[(n + 7) / 8] == GUARD);
    const uint16_t half = dp_half_of((double)dp_float_of_bits(largest) / 127.0, true);
    int8_t steps[2][DP_CODEC_RUN];
    if (half > 0) {
        plain->steps(a, n, dp_half_value(half), 127, steps[0]);
        ops->steps(a, n, dp_half_value(half), 127, steps[1]);
        CHECK(memcmp(steps[0], steps[1], n) == 0);
        float back[2][DP_CODEC_RUN];
        const uint32_t squares = plain->unsteps(steps[0], n, dp_half_value(half), back[0]);
        CHECK(ops->unsteps(steps[0], n, dp_half_value(half), back[1]) == squares);
        CHECK(memcmp(back[0], back[1], n * sizeof(float)) == 0);
    }
    if (n <= 256) {
        uint8_t codes[256];
        for (size_t i = 0; i < n; i++) {
            codes[i] = dp_float_bits(a[i]) & 15U;
        }
        float values[16];
        uint32_t weights[16];
        for (unsigned i = 0; i < 16; i++) {
            values[i] = (float)i - 8.5F;
            weights[i] = 1U << i;
        }
        float back[2][256];
        const uint32_t sum = plain->lookup(codes, n, values, weights, back[0]);
        CHECK(ops->lookup(codes, n, values, weights, back[1]) == sum);
        CHECK(memcmp(back[0], back[1], n * sizeof(float)) == 0);
    }
}

static void check_outer_step(const dp_codec_ops *ops, const float *a, size_t n, dp_rng *rng)
{
    const dp_codec_ops *const plain = dp_codec_ops_reference();
    float acc[2][DP_CODEC_RUN];
    float theta[2][DP_CODEC_RUN];
    for (size_t i = 0; i < n; i++) {
        acc[0][i] = acc[1][i] = bell(rng);
        theta[0][i] = theta[1][i] = bell(rng);
    }
    plain->add(acc[0], a, n, 0.3F);
    ops->add(acc[1], a, n, 0.3F);
    CHECK(memcmp(acc[0], acc[1], n * sizeof(float)) == 0);
    const bool finite = plain->move(theta[0], acc[0], n, 1.7F);
    CHECK(ops->move(theta[1], acc[1], n, 1.7F) == finite);
    CHECK(memcmp(theta[0], theta[1], n * sizeof(float)) == 0);
    acc[0][n / 2] = (float)NAN;
    CHECK(!plain->move(theta[0], acc[0], n, 1) && !ops->move(theta[1], acc[0], n, 1));
    acc[0][n / 2] = -(float)INFINITY;
    CHECK(!plain->move(theta[0], acc[0], n, 1) && !ops->move(theta[1], acc[0], n, 1));
}

static void check_squares(const dp_codec_ops *ops, const float *a, size_t n, dp_rng *rng)
{
    float d[DP_CODEC_RUN];
    double sums[2][2] = {{1, 2}, {1, 2}};
    for (size_t i = 0; i < n; i++) {
        d[i] = bell(rng);
    }
    dp_codec_ops_reference()->squares(a, d, n, sums[0]);
    ops->squares(a, d, n, sums[1]);
    CHECK(memcmp(sums[0], sums[1], sizeof sums[0]) == 0);
    CHECK(sums[0][0] >= 1 && sums[0][1] > 2);
}

static void every_table_gives_the_bits_of_the_plain_loops(void **state)
{
    (void)state;
    dp_rng rng;
    dp_rng_init(&rng, 1);
    static float a[DP_CODEC_RUN + 1];
    for (size_t t = 0; dp_codec_ops_at(t) != NULL; t++) {
        const dp_codec_ops *const ops = dp_codec_ops_at(t);
        for (unsigned shape = 0; shape < SHAPES; shape++) {
            for (size_t s = 0; s < N_SIZES; s++) {
                float *const odd = a + 1; /* not aligned to a vector */
                fill(odd, sizes[s], shape, &rng);
                check_choices(ops, odd, sizes[s]);
                check_numbers(ops, odd, sizes[s]);
                check_outer_step(ops, odd, sizes[s], &rng);
                check_squares(ops, odd, sizes[s], &rng);
            }
        }
    }
}

static void the_largest_shows_what_is_not_finite(void **state)
{
    (void)state;
    float a[40] = {0};
    for (size_t t = 0; dp_codec_ops_at(t) != NULL; t++) {
        const dp_codec_ops *const ops = dp_codec_ops_at(t);
        CHECK(ops->largest(a, 0) == 0 && ops->largest(a, 40) == 0);
        for (size_t i = 0; i < 40; i++) {
            a[i] = -(float)NAN;
            CHECK(ops->largest(a, 40) > 0x7f800000U);
            a[i] = -(float)INFINITY;
            CHECK(ops->largest(a, 40) == 0x7f800000U);
            a[i] = -0x1.fffffep127F;
            CHECK(ops->largest(a, 40) == 0x7f7fffffU);
            a[i] = 0;
        }
    }
}

static void the_reference_comes_first_and_the_best_last(void **state)
{
    (void)state;
    CHECK(dp_codec_ops_at(0) == dp_codec_ops_reference());
    size_t count = 0;
    while (dp_codec_ops_at(count) != NULL) {
        count++;
    }
    CHECK(dp_codec_ops_at(count - 1) == dp_codec_ops_best());
    CHECK(dp_codec_ops_at(1000) == NULL);
}

/* Every significand of a half as scale; values between two steps and their neighbours; inverses as
 * far off as they may be. */
static void steps_by_an_inverse_are_those_of_a_division(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (uint32_t significand = 1024; significand < 2048; significand++) {
        const float scale = (float)significand * 0x1p-20F;
        for (uint32_t i = 0; i < 127 * 9; i++) {
            const float middle = ((float)(i / 9) + 0.5F) * scale;
            const float value = dp_float_of_bits(dp_float_bits(middle) + i % 3 - 1);
            const float inverse = dp_float_of_bits(dp_float_bits(1.0F / scale) + i / 3 % 3 * 2 - 2);
            const float quotient = dp_element_quotient(value, scale, inverse);
            wrong += dp_element_nearest(quotient) != dp_element_nearest(value / scale) ? 1 : 0;
        }
    }
    CHECK(wrong == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_gives_the_bits_of_the_plain_loops),
        cmocka_unit_test(the_largest_shows_what_is_not_finite),
        cmocka_unit_test(steps_by_an_inverse_are_those_of_a_division),
        cmocka_unit_test(the_reference_comes_first_and_the_best_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
