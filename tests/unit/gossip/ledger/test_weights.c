#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/rng.h"
#include "gossip/core/median.h"
#include "gossip/ledger/weights.h"

typedef unsigned __int128 u128;

static void equal_work_gives_equal_shares_that_sum_to_one(void **state)
{
    const dp_weight_in in[2] = {{.tokens = 1000, .steps = 10, .rounds = 1, .energy = 500},
                                {.tokens = 1000, .steps = 10, .rounds = 1, .energy = 500}};
    dp_weight_out out[2];

    (void)state;
    const dp_weight_sum sum = dp_weights(in, 2, 0, out);
    assert_int_equal(out[0].w, 100000);
    assert_int_equal(out[0].clip, 65536);
    assert_int_equal(out[0].q, 1U << 30);
    assert_int_equal(out[1].q, 1U << 30);
    assert_true(sum.w == 200000);
    assert_true(sum.median == 500 * 144);
}

static void late_members_keep_their_share(void **state)
{
    const dp_weight_in in[1] = {{.tokens = 1000, .steps = 10, .rounds = 1, .energy = 1}};
    dp_weight_out out[1];

    (void)state;
    const dp_weight_sum sum = dp_weights(in, 1, 300000, out);
    assert_true(sum.w == 400000);
    assert_int_equal(out[0].q, 1U << 29);
}

static void a_weight_is_at_most_four_times_the_lower_median(void **state)
{
    const dp_weight_in in[3] = {{.tokens = 100, .steps = 1, .rounds = 1, .energy = 1},
                                {.tokens = 100, .steps = 1, .rounds = 1, .energy = 1},
                                {.tokens = 100000, .steps = 1, .rounds = 1, .energy = 1}};
    dp_weight_out out[3];

    (void)state;
    (void)dp_weights(in, 3, 0, out);
    assert_int_equal(out[2].w, 40000);
}

static void the_lower_median_of_nothing_is_zero_and_of_the_most_is_in_the_middle(void **state)
{
    u128 values[32];

    (void)state;
    for (uint32_t i = 0; i < 32; i++) {
        values[i] = ((u128)1 << 100) + (i * 7) % 32;
    }
    assert_true(dp_lower_median(values, 0) == 0);
    assert_true(dp_lower_median(values, 1) == values[0]);
    assert_true(dp_lower_median(values, 31) == ((u128)1 << 100) + 15);
    assert_true(dp_lower_median(values, 32) == ((u128)1 << 100) + 15);
}

static void the_median_of_an_even_count_is_the_lower_one(void **state)
{
    const dp_weight_in in[2] = {{.tokens = 10, .steps = 1, .rounds = 1, .energy = 100},
                                {.tokens = 10, .steps = 1, .rounds = 1, .energy = 400}};
    dp_weight_out out[2];

    (void)state;
    const dp_weight_sum sum = dp_weights(in, 2, 0, out);
    assert_true(sum.median == 100 * 144);
    assert_int_equal(out[0].clip, 65536);
    assert_int_equal(out[1].clip, 32768); /* sqrt(100 / 400) */
}

static void a_blob_of_two_rounds_is_measured_per_round(void **state)
{
    const dp_weight_in in[2] = {{.tokens = 10, .steps = 1, .rounds = 1, .energy = 100},
                                {.tokens = 10, .steps = 1, .rounds = 2, .energy = 400}};
    dp_weight_out out[2];

    (void)state;
    (void)dp_weights(in, 2, 0, out);
    assert_int_equal(out[1].clip, 65536);
}

static void an_update_of_the_round_before_counts_by_half_of_its_clip(void **state)
{
    const dp_weight_in in[3] = {{.tokens = 10, .steps = 1, .rounds = 1, .energy = 100},
                                {.tokens = 10, .steps = 1, .rounds = 1, .energy = 100, .age = 1},
                                {.tokens = 10, .steps = 1, .rounds = 1, .energy = 400, .age = 1}};
    dp_weight_out out[3];

    (void)state;
    const dp_weight_sum sum = dp_weights(in, 3, 0, out);
    assert_int_equal(out[0].clip, 65536);
    assert_int_equal(out[1].clip, 32768);
    assert_int_equal(out[2].clip, 16384); /* Half of sqrt(100 / 400). */
    assert_true(sum.w == 300);            /* The share of the others does not grow. */
    assert_int_equal(out[1].q, out[0].q / 2);
}

/* The applied movement if every node works one unit per round and carries over left-out work, while
 * about drop_milli of the contributions are too late; in thousandths. */
static uint64_t applied_milli(uint32_t rounds, uint64_t drop_milli, bool with_late)
{
    enum { NODES = 8, WINDOW = 4 };
    uint64_t included[NODES] = {0};
    dp_rng rng;
    u128 moved = 0;

    dp_rng_init(&rng, drop_milli + 1);
    for (uint64_t round = 1; round <= rounds; round++) {
        dp_weight_in in[NODES];
        dp_weight_out out[NODES];
        uint32_t n = 0;
        u128 late = 0;
        for (uint32_t i = 0; i < NODES; i++) {
            const uint64_t k = round - included[i];
            if (k < WINDOW && i > 0 && dp_rng_below(&rng, 1000) < drop_milli) {
                late += included[i] > 0 && with_late ? 100 * 100 / 10 : 0;
                continue;
            }
            in[n++] = (dp_weight_in){
                .tokens = 100, .steps = 10, .rounds = (uint32_t)k, .energy = 900 * k * k};
            included[i] = round;
        }
        (void)dp_weights(in, n, late, out);
        for (uint32_t i = 0; i < n; i++) {
            moved += (u128)out[i].q * in[i].rounds;
        }
    }
    return (uint64_t)(moved * 1000 >> 31);
}

static void late_work_moves_the_model_as_far_as_timely_work(void **state)
{
    enum { ROUNDS = 400 };

    (void)state;
    for (uint64_t drop = 0; drop <= 750; drop += 250) {
        assert_in_range(applied_milli(ROUNDS, drop, true), (ROUNDS - 4) * 1000,
                        (ROUNDS + 1) * 1000);
    }
    /* Were the shares of the present alone to sum to one, they would carry too far (SAFETY B3). */
    assert_true(applied_milli(ROUNDS, 500, false) > ROUNDS * 1500);
}

static void zero_energy_is_no_part_of_the_median(void **state)
{
    const dp_weight_in in[3] = {{.tokens = 10, .steps = 1, .rounds = 1, .energy = 0},
                                {.tokens = 10, .steps = 1, .rounds = 1, .energy = 0},
                                {.tokens = 10, .steps = 1, .rounds = 1, .energy = 900}};
    dp_weight_out out[3];

    (void)state;
    const dp_weight_sum sum = dp_weights(in, 3, 0, out);
    assert_true(sum.median == 900 * 144);
    assert_int_equal(out[0].clip, 65536);
    assert_int_equal(out[2].clip, 65536);
}

static void nothing_overflows_at_the_limits(void **state)
{
    const dp_weight_in in[2] = {
        {.tokens = UINT32_MAX, .steps = 1, .rounds = 1, .energy = (u128)1 << 112},
        {.tokens = UINT32_MAX, .steps = 1, .rounds = 1, .energy = 1}};
    dp_weight_out out[2];

    (void)state;
    (void)dp_weights(in, 2, (u128)UINT64_MAX * 200, out);
    assert_int_equal(out[0].w, (uint64_t)UINT32_MAX * UINT32_MAX);
    assert_int_equal(out[0].clip, 0);
    assert_int_equal(out[0].q, 0);
    assert_true(out[1].q > 0);
}

static void without_any_weight_nothing_moves(void **state)
{
    const dp_weight_in in[1] = {{.tokens = 0, .steps = 1, .rounds = 1, .energy = 5}};
    dp_weight_out out[1];

    (void)state;
    (void)dp_weights(in, 1, 0, out);
    assert_int_equal(out[0].q, 0);
}

static void an_exchange_leaves_a_fifth_of_its_own_work_to_the_smaller(void **state)
{
    static const uint64_t pairs[][2] = {{1, 1ULL << 60}, {1, 1ULL << 62}, {1000, 4004},
                                        {1000, 7001},    {0, 5},          {1ULL << 60, 1ULL << 62},
                                        {3, 1000000000}, {1000, 4000},    {1000, 1000}};
    const u128 energies[2] = {5, 5};

    (void)state;
    for (uint32_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const uint64_t other[2] = {pairs[i][1], pairs[i][0]};
        const u128 all = (u128)pairs[i][0] + pairs[i][1];
        const u128 damp = dp_weight_pair(pairs[i], energies, 0);
        assert_true(damp == dp_weight_pair(other, energies, 0));
        assert_true(5 * damp * pairs[i][1] <= 4 * 65536 * all);
        if (pairs[i][1] <= 4 * pairs[i][0]) { /* The usual case of honest nodes: the mean. */
            assert_true(damp == DP_CLIP_ONE);
        } else {
            assert_true(5 * (damp + 1) * pairs[i][1] >= 4 * 65536 * all);
        }
    }
    assert_true(dp_weight_pair((uint64_t[2]){0, 0}, energies, 7) == DP_CLIP_ONE);
}

static void an_exchange_takes_no_more_than_the_shorter_or_four_rounds(void **state)
{
    static const uint64_t w[2] = {10, 10};
    const u128 round = 100;          /* energy of a round's work */
    const u128 median = 144 * round; /* M of a record of such */

    (void)state;
    assert_int_equal(dp_weight_pair(w, (u128[2]){400, 400}, median), DP_CLIP_ONE);
    assert_int_equal(dp_weight_pair(w, (u128[2]){1, 16 * round}, median), DP_CLIP_ONE);
    assert_int_equal(dp_weight_pair(w, (u128[2]){0, 64 * round}, median), DP_CLIP_ONE / 2);
    assert_int_equal(dp_weight_pair(w, (u128[2]){64 * round, 0}, median), DP_CLIP_ONE / 2);
    assert_int_equal(dp_weight_pair(w, (u128[2]){4000, 16000}, median), DP_CLIP_ONE / 2);
    assert_int_equal(dp_weight_pair(w, (u128[2]){4000, (u128)1 << 112}, median), 0);
    /* Of no record, or in a run that clips nothing. */
    assert_int_equal(dp_weight_pair(w, (u128[2]){1, (u128)1 << 112}, 0), DP_CLIP_ONE);
}

static void the_root_is_the_floor(void **state)
{
    (void)state;
    assert_true(dp_isqrt(0) == 0);
    assert_true(dp_isqrt(15) == 3);
    assert_true(dp_isqrt(16) == 4);
    assert_true(dp_isqrt(~(u128)0) == UINT64_MAX);
    for (u128 value = 1; value < (u128)1 << 120; value = value * 7 + 3) {
        const u128 root = dp_isqrt(value);
        assert_true(root * root <= value && (root + 1) * (root + 1) > value);
    }
}

/* Of parts the weights are known before the record; no energy is no part of the median. */
static void weights_known_before_are_shared_and_the_median_is_of_what_moves(void **state)
{
    const dp_weight_in in[4] = {{.tokens = 10, .steps = 1, .rounds = 1, .energy = 0},
                                {.tokens = 10, .steps = 1, .rounds = 1, .energy = 200},
                                {.tokens = 10, .steps = 1, .rounds = 2, .energy = 400},
                                {.tokens = 10, .steps = 1, .rounds = 1, .energy = 300}};
    dp_weight_out out[4] = {{.w = 100, .clip = 65536},
                            {.w = 300, .clip = 65536},
                            {.w = 200, .clip = 32768},
                            {.w = 200, .clip = 65536}};

    (void)state;
    const dp_weight_sum sum = dp_weights_before(in, 4, 1200, out);
    assert_true(sum.w == 2000);
    assert_true(sum.median == 200 * 144); /* Of 200, 100 in a round of two, and 300. */
    assert_int_equal(out[0].q, dp_weight_share(100, 65536, 2000));
    assert_int_equal(out[1].q, dp_weight_share(300, 65536, 2000));
    assert_int_equal(out[2].q, dp_weight_share(200, 32768, 2000));
    assert_true(out[2].q < out[3].q);
    const dp_weight_sum nothing = dp_weights_before(in, 1, 0, out);
    assert_true(nothing.median == 0 && nothing.w == 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_work_gives_equal_shares_that_sum_to_one),
        cmocka_unit_test(late_members_keep_their_share),
        cmocka_unit_test(a_weight_is_at_most_four_times_the_lower_median),
        cmocka_unit_test(the_lower_median_of_nothing_is_zero_and_of_the_most_is_in_the_middle),
        cmocka_unit_test(the_median_of_an_even_count_is_the_lower_one),
        cmocka_unit_test(a_blob_of_two_rounds_is_measured_per_round),
        cmocka_unit_test(an_update_of_the_round_before_counts_by_half_of_its_clip),
        cmocka_unit_test(late_work_moves_the_model_as_far_as_timely_work),
        cmocka_unit_test(zero_energy_is_no_part_of_the_median),
        cmocka_unit_test(nothing_overflows_at_the_limits),
        cmocka_unit_test(without_any_weight_nothing_moves),
        cmocka_unit_test(an_exchange_leaves_a_fifth_of_its_own_work_to_the_smaller),
        cmocka_unit_test(an_exchange_takes_no_more_than_the_shorter_or_four_rounds),
        cmocka_unit_test(the_root_is_the_floor),
        cmocka_unit_test(weights_known_before_are_shared_and_the_median_is_of_what_moves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
