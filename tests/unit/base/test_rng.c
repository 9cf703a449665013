#include "base/rng.h"

#include "tests/lib/check.h"

static void mix_gives_the_published_splitmix_values(void **state)
{
    (void)state;
    /* The first outputs of splitmix64 seeded with 1234567, as widely used to check ports of it. */
    assert_int_equal(dp_mix64(1234567), 6457827717110365317ULL);
    assert_int_equal(dp_mix64(1234567 + 0x9e3779b97f4a7c15ULL), 3203168211198807973ULL);
}

static void the_stream_is_that_of_xoshiro256starstar(void **state)
{
    /* With s = {1, 2, 3, 4} the first results follow by hand: rotl(2 * 5, 7) * 9 = 11520; then s[1]
     * is 0; ... */
    dp_rng rng = {.s = {1, 2, 3, 4}};

    (void)state;
    assert_int_equal(dp_rng_next(&rng), 11520);
    assert_int_equal(dp_rng_next(&rng), 0);
    assert_int_equal(dp_rng_next(&rng), 1509978240);
    assert_int_equal(dp_rng_next(&rng), 1215971899390074240ULL);
}

static void the_same_seed_gives_the_same_stream_and_near_seeds_do_not(void **state)
{
    dp_rng a;
    dp_rng b;
    dp_rng c;
    unsigned same = 0;

    (void)state;
    dp_rng_init(&a, 7);
    dp_rng_init(&b, 7);
    dp_rng_init(&c, 8);
    for (unsigned i = 0; i < 100; i++) {
        const uint64_t value = dp_rng_next(&a);
        assert_int_equal(value, dp_rng_next(&b));
        same += value == dp_rng_next(&c);
    }
    assert_int_equal(same, 0);
}

static void below_stays_below_and_is_even(void **state)
{
    unsigned counts[3] = {0};
    dp_rng rng;

    (void)state;
    dp_rng_init(&rng, 1);
    for (unsigned i = 0; i < 30000; i++) {
        const uint64_t value = dp_rng_below(&rng, 3);
        assert_true(value < 3);
        counts[value]++;
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_in_range(counts[i], 9600, 10400); /* 10,000 with five standard deviations of 82 */
    }
    assert_int_equal(dp_rng_below(&rng, 1), 0);
}

static void below_has_no_bias_at_a_huge_limit(void **state)
{
    /* With limit = 3 * 2^62, a generator that only takes the remainder hits the lowest third twice
     * as often. */
    const uint64_t limit = 3ULL << 62;
    unsigned low = 0;
    dp_rng rng;

    (void)state;
    dp_rng_init(&rng, 2);
    for (unsigned i = 0; i < 30000; i++) {
        const uint64_t value = dp_rng_below(&rng, limit);
        assert_true(value < limit);
        low += value < limit / 3;
    }
    assert_in_range(low, 9600, 10400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mix_gives_the_published_splitmix_values),
        cmocka_unit_test(the_stream_is_that_of_xoshiro256starstar),
        cmocka_unit_test(the_same_seed_gives_the_same_stream_and_near_seeds_do_not),
        cmocka_unit_test(below_stays_below_and_is_even),
        cmocka_unit_test(below_has_no_bias_at_a_huge_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
