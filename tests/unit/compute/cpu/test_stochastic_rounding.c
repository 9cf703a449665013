#include "tests/lib/check.h"

#include <math.h>
#include <stdlib.h>

#include "compute/cpu/half.h"
#include "compute/cpu/stochastic_rounding.h"

static void philox_gives_the_published_answers(void **state)
{
    (void)state;
    /* The known answers that come with Random123 (Salmon et al. 2011): zeros, ones, digits of
     * pi. */
    static const struct {
        uint32_t counter[4];
        uint32_t key[2];
        uint32_t right[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t out[4];
        dp_philox(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].right, sizeof out);
    }
}

static bool is_bfloat(float x)
{
    return (dp_float_bits(x) & 0xffffU) == 0;
}

enum { N = 100003 };

static float *filled(float value)
{
    float *const x = malloc(N * sizeof *x);
    for (size_t i = 0; i < N; i++) {
        x[i] = value;
    }
    return x;
}

static void the_mean_stays_and_only_the_two_neighbours_come_out(void **state)
{
    (void)state;
    static const float values[] = {1.001F, -1.001F, 3.14159F, -2.7e-20F, 1e30F, 1.0000001F, 1e-39F};
    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
        const float lower = dp_float_of_bits(dp_float_bits(values[v]) & 0xffff0000U);
        const float upper = dp_float_of_bits((dp_float_bits(values[v]) & 0xffff0000U) + 0x10000U);
        const double share = ((double)values[v] - (double)lower) / ((double)upper - (double)lower);
        float *const x = filled(values[v]);
        dp_stochastic_bf16(x, N, 0, &(dp_stochastic_key){.seed = 7, .step = v});
        size_t ups = 0;
        for (size_t i = 0; i < N; i++) {
            CHECK(is_bfloat(x[i]) && (x[i] == lower || x[i] == upper));
            ups += x[i] == upper;
        }
        /* Five deviations of a binomial; the 16 bits know shares to 2^-16. */
        const double wanted = share * N;
        CHECK(fabs((double)ups - wanted) <= 5 * sqrt(wanted * (1 - share)) + N / 65536.0);
        free(x);
    }
}

static void bfloats_and_what_is_not_finite_stay(void **state)
{
    (void)state;
    const float largest = dp_float_of_bits(0x7f7fffffU); /* its upper neighbour would be infinite */
    float x[] = {0.0F, -0.0F, 1.0F, -2.5F, INFINITY, -INFINITY, NAN, largest, -largest};
    const float kept[] = {0.0F, -0.0F, 1.0F, -2.5F, INFINITY, -INFINITY};
    dp_stochastic_bf16(x, 9, 0, &(dp_stochastic_key){.seed = 1});
    assert_memory_equal(x, kept, sizeof kept);
    CHECK(isnan(x[6]));
    for (uint64_t step = 0; step < 100; step++) {
        x[7] = largest;
        x[8] = -largest;
        dp_stochastic_bf16(x + 7, 2, 0, &(dp_stochastic_key){.seed = 1, .step = step});
        CHECK(isfinite(x[7]) && isfinite(x[8]) && is_bfloat(x[7]) && x[8] == -x[7]);
    }
}

static void ranges_do_not_change_the_bits(void **state)
{
    (void)state;
    const uint64_t first = (UINT64_C(1) << 35) - 40; /* crosses where block numbers pass 32 bits */
    const dp_stochastic_key key = {.seed = 0x123456789abcdef0U, .step = UINT64_C(1) << 33};
    float *const whole = filled(1.001F);
    float *const parts = filled(1.001F);
    dp_stochastic_bf16(whole, 1000, first, &key);
    for (size_t at = 0, size = 1; at < 1000; at += size, size = size % 13 + 1) {
        const size_t n = size < 1000 - at ? size : 1000 - at;
        dp_stochastic_bf16(parts + at, n, first + at, &key);
    }
    assert_memory_equal(whole, parts, 1000 * sizeof *whole);
    free(whole);
    free(parts);
}

static void seeds_and_steps_give_unlike_bits(void **state)
{
    (void)state;
    static const dp_stochastic_key keys[] = {{1, 1}, {1, 2}, {2, 1}, {1, UINT64_C(1) << 32}};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    float *x[KEYS];
    for (size_t k = 0; k < KEYS; k++) {
        x[k] = filled(dp_float_of_bits(0x3f808000U)); /* half way */
        dp_stochastic_bf16(x[k], N, 0, &keys[k]);
    }
    for (size_t k = 1; k < KEYS; k++) {
        size_t same = 0;
        for (size_t i = 0; i < N; i++) {
            same += x[0][i] == x[k][i];
        }
        CHECK(same > N / 2 - 1000 && same < N / 2 + 1000);
    }
    for (size_t k = 0; k < KEYS; k++) {
        free(x[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_answers),
        cmocka_unit_test(the_mean_stays_and_only_the_two_neighbours_come_out),
        cmocka_unit_test(bfloats_and_what_is_not_finite_stay),
        cmocka_unit_test(ranges_do_not_change_the_bits),
        cmocka_unit_test(seeds_and_steps_give_unlike_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
