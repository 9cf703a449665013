/* Whole vectors: every bit as the CPU's. */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "compute/codec/feedback.h"
#include "compute/cpu/half.h"
#include "compute/cuda/vectors.h"
#include "tests/cuda/card.h"
#include "tests/lib/check.h"

enum { MOST = 4101 };

/* Less than a thread's share, one, a block's and a rest. */
static const size_t sizes[] = {0, 1, 3, 4, 5, 31, 33, 1023, 1024, 1025, MOST};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Any finite floats: every exponent, subnormals, both zeros. */
static void fill(float *x, size_t n, uint64_t seed)
{
    static const uint32_t special[] = {0, 0x80000000, 1, 0x807fffff, 0x00800000, 0x7f7fffff};
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)dp_rng_next(&rng);
        const bool finite = (bits & 0x7f800000U) != 0x7f800000U;
        x[i] = dp_float_of_bits(i % 7 == 3 ? special[bits % 6]
                                : finite   ? bits
                                           : bits & 0x807fffffU);
    }
}

/* Of the size of weights, so that sums stay finite. */
static void fill_small(float *x, size_t n, uint64_t seed)
{
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)((double)(int64_t)dp_rng_next(&rng) * 0x1p-63);
    }
}

typedef struct pair {
    float x[MOST];
    float y[MOST];
    float result[MOST];
    float wanted[MOST];
} pair;

/* Bits, but any not-a-number is one. */
static void same(const pair *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (isnan(p->wanted[i]) ? !isnan(p->result[i])
                                : dp_float_bits(p->result[i]) != dp_float_bits(p->wanted[i])) {
            print_error("element %zu of %zu: %a, wanted %a\n", i, n, (double)p->result[i],
                        (double)p->wanted[i]);
            fail();
        }
    }
}

typedef dp_status (*operation)(float *to, const float *from, size_t n, cudaStream_t stream);

static void try_pairs(operation call, float (*wanted)(float x, float y))
{
    const cudaStream_t stream = card_open();
    static pair p;
    for (size_t s = 0; s < SIZES; s++) {
        const size_t n = sizes[s];
        fill(p.x, n, 2 * s + 1);
        fill(p.y, n, 2 * s + 2);
        float *const to = card_put(p.x, n * sizeof(float));
        float *const from = card_put(p.y, n * sizeof(float));
        CHECK_OK(call(to, from, n, stream));
        card_get(to, p.result, n * sizeof(float));
        for (size_t i = 0; i < n; i++) {
            p.wanted[i] = wanted(p.x[i], p.y[i]);
        }
        same(&p, n);
        card_free(from);
        card_free(to);
    }
}

static float sum(float x, float y)
{
    return x + y;
}

static float difference(float x, float y)
{
    return x - y;
}

static void sums_and_differences_are_those_of_the_cpu(void **state)
{
    (void)state;
    try_pairs(dp_cuda_add, sum);
    try_pairs(dp_cuda_subtract, difference);
}

static void scaling_is_that_of_the_cpu(void **state)
{
    (void)state;
    static const uint32_t lambdas[] = {0, 1, 32768, 43691, 65535, 65536, 65537, UINT32_MAX};
    const cudaStream_t stream = card_open();
    static pair p;
    for (size_t s = 0; s < SIZES; s++) {
        const size_t n = sizes[s];
        for (size_t l = 0; l < sizeof lambdas / sizeof lambdas[0]; l++) {
            fill(p.x, n, s + 100 * l);
            if (n > 40) {
                p.x[40] = INFINITY;
            }
            memcpy(p.wanted, p.x, sizeof p.x);
            dp_feedback_scale(p.wanted, lambdas[l], n);
            float *const to = card_put(p.x, n * sizeof(float));
            CHECK_OK(dp_cuda_scale(to, lambdas[l], n, stream));
            card_get(to, p.result, n * sizeof(float));
            same(&p, n);
            card_free(to);
        }
    }
}

/* One snapshot on card and CPU; x is spoiled at one place if it is below n. Returns the final value
 * of bad. */
static uint32_t snapshot(size_t n, bool feedback, size_t spoiled, float with)
{
    const cudaStream_t stream = card_open();
    static pair p;
    static float e[MOST];
    fill_small(e, n, n + 1);
    fill_small(p.x, n, n + 2);
    fill_small(p.y, n, n + 3);
    if (spoiled < n) {
        p.x[spoiled] = with;
    }
    const dp_status status = feedback ? dp_feedback_publish(p.wanted, e, p.y, p.x, n)
                                      : dp_feedback_difference(p.wanted, p.y, p.x, n);
    const uint32_t none = 0;
    uint32_t *const bad = card_put(&none, sizeof none);
    float *const x = card_put(p.x, n * sizeof(float));
    float *const from = card_put(p.y, n * sizeof(float));
    float *const own = card_put(e, n * sizeof(float));
    float *const other = card_put(NULL, n * sizeof(float));
    float *const to = feedback ? own : other; /* a may be e */
    CHECK_OK(dp_cuda_snapshot(to, feedback ? own : NULL, from, x, n, bad, stream));
    card_get(to, p.result, n * sizeof(float));
    uint32_t found;
    card_get(bad, &found, sizeof found);
    same(&p, n);
    CHECK(found == (status == DP_OK ? 0 : 1));
    card_free(other);
    card_free(own);
    card_free(from);
    card_free(x);
    card_free(bad);
    return found;
}

static void snapshots_are_those_of_the_cpu(void **state)
{
    (void)state;
    for (size_t s = 0; s < SIZES; s++) {
        CHECK(snapshot(sizes[s], true, SIZE_MAX, 0) == 0);
        CHECK(snapshot(sizes[s], false, SIZE_MAX, 0) == 0);
    }
}

static void a_value_that_is_not_finite_is_found_at_every_place(void **state)
{
    (void)state;
    for (size_t at = 0; at < 37; at++) {
        CHECK(snapshot(37, at % 2 == 0, at, at % 3 == 0 ? NAN : INFINITY) == 1);
    }
}

static void vectors_are_looked_through_to_their_end(void **state)
{
    (void)state;
    const cudaStream_t stream = card_open();
    static float x[MOST];
    for (size_t s = 1; s < SIZES; s++) {
        const size_t n = sizes[s];
        fill(x, n, s);
        for (int turn = 0; turn < 3; turn++) {
            const size_t at = turn == 1 ? 0 : n - 1;
            const float kept = x[at];
            x[at] = turn == 0 ? kept : turn == 1 ? -INFINITY : NAN;
            const uint32_t none = 0;
            uint32_t *const bad = card_put(&none, sizeof none);
            float *const card = card_put(x, n * sizeof(float));
            CHECK_OK(dp_cuda_finite(card, n, bad, stream));
            uint32_t found;
            card_get(bad, &found, sizeof found);
            CHECK(found == (turn == 0 ? 0 : 1));
            card_free(card);
            card_free(bad);
            x[at] = kept;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_differences_are_those_of_the_cpu),
        cmocka_unit_test(scaling_is_that_of_the_cpu),
        cmocka_unit_test(snapshots_are_those_of_the_cpu),
        cmocka_unit_test(a_value_that_is_not_finite_is_found_at_every_place),
        cmocka_unit_test(vectors_are_looked_through_to_their_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
