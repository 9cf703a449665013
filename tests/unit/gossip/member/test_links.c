#include "tests/lib/check.h"

#include "gossip/member/links.h"

static void the_first_sample_sets_both_estimates(void **state)
{
    (void)state;
    dp_rtt rtt = {0};

    CHECK(dp_rtt_p95(&rtt) == 0);
    CHECK(dp_rtt_timeout(&rtt, 500, 100, 900) == 500);
    dp_rtt_add(&rtt, 1000);
    CHECK(rtt.srtt_us == 1000 && rtt.rttvar_us == 500);
    CHECK(dp_rtt_p95(&rtt) == 2000);
}

static void later_samples_follow_rfc_6298(void **state)
{
    (void)state;
    dp_rtt rtt = {0};

    dp_rtt_add(&rtt, 1000);
    dp_rtt_add(&rtt, 1800);
    CHECK(rtt.rttvar_us == (3 * 500 + 800) / 4);
    CHECK(rtt.srtt_us == (7 * 1000 + 1800) / 8);
    CHECK(dp_rtt_timeout(&rtt, 0, 1, 100000) == rtt.srtt_us + 4ULL * rtt.rttvar_us);
}

static void timeouts_stay_within_their_bounds_and_a_huge_sample_is_cut(void **state)
{
    (void)state;
    dp_rtt rtt = {0};

    dp_rtt_add(&rtt, 10);
    CHECK(dp_rtt_timeout(&rtt, 0, 150, 900) == 150);
    dp_rtt_add(&rtt, UINT64_MAX);
    CHECK(dp_rtt_timeout(&rtt, 0, 150, 900) == 900);
    CHECK(rtt.srtt_us <= DP_RTT_US_MAX);
}

static void the_least_forgets_what_is_long_ago(void **state)
{
    (void)state;
    dp_rtt rtt = {0};

    CHECK(dp_rtt_least(&rtt) == UINT64_MAX);
    dp_rtt_add(&rtt, 900);
    CHECK(dp_rtt_least(&rtt) == 900);
    dp_rtt_add(&rtt, 5000); /* A busy moment moves an average, not this. */
    CHECK(dp_rtt_least(&rtt) == 900);
    dp_rtt_add(&rtt, 400);
    CHECK(dp_rtt_least(&rtt) == 400);
    for (uint32_t i = rtt.samples; i < 2 * DP_RTT_WINDOW; i++) {
        dp_rtt_add(&rtt, 30000);
        CHECK(dp_rtt_least(&rtt) == 400);
    }
    dp_rtt_add(&rtt, 30000); /* Two windows without it. */
    CHECK(dp_rtt_least(&rtt) == 30000);
}

static void percentiles_are_by_nearest_rank_over_the_last_samples(void **state)
{
    (void)state;
    dp_span span = {0};

    CHECK(dp_span_percentile(&span, 95) == 0);
    for (uint32_t i = 1; i <= 20; i++) {
        dp_span_add(&span, i);
    }
    CHECK(dp_span_percentile(&span, 50) == 10);
    CHECK(dp_span_percentile(&span, 95) == 19);
    CHECK(dp_span_percentile(&span, 100) == 20);
    CHECK(dp_span_percentile(&span, 1) == 1);
    for (uint32_t i = 0; i < DP_SPAN_SAMPLES; i++) {
        dp_span_add(&span, 7); /* the old ones are forgotten */
    }
    CHECK(dp_span_percentile(&span, 100) == 7);
}

static void the_ring_keeps_its_place_when_its_count_saturates(void **state)
{
    (void)state;
    dp_span span = {.count = UINT32_MAX - 1};

    dp_span_add(&span, 5);
    CHECK(span.count >= DP_SPAN_SAMPLES && span.count < UINT32_MAX);
    CHECK(span.us[(UINT32_MAX - 1) % DP_SPAN_SAMPLES] == 5);
    CHECK(span.count % DP_SPAN_SAMPLES == UINT32_MAX % DP_SPAN_SAMPLES);
}

/* Compared with the samples sorted each time. */
static void percentiles_hold_while_samples_of_any_size_come_and_go(void **state)
{
    dp_span span = {0};
    uint32_t ring[DP_SPAN_SAMPLES] = {0};
    uint32_t seed = 7;

    (void)state;
    for (uint32_t i = 0; i < 10 * DP_SPAN_SAMPLES; i++) {
        uint32_t sorted[DP_SPAN_SAMPLES];
        seed = seed * 1664525 + 1013904223;
        ring[i % DP_SPAN_SAMPLES] = seed >> 20; /* Some are equal. */
        dp_span_add(&span, seed >> 20);
        const uint32_t n = i + 1 < DP_SPAN_SAMPLES ? i + 1 : DP_SPAN_SAMPLES;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t at = k;
            for (; at > 0 && sorted[at - 1] > ring[k]; at--) {
                sorted[at] = sorted[at - 1];
            }
            sorted[at] = ring[k];
        }
        for (uint32_t percent = 1; percent <= 100; percent += 9) {
            CHECK(dp_span_percentile(&span, percent) == sorted[(percent * n + 99) / 100 - 1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_sample_sets_both_estimates),
        cmocka_unit_test(later_samples_follow_rfc_6298),
        cmocka_unit_test(timeouts_stay_within_their_bounds_and_a_huge_sample_is_cut),
        cmocka_unit_test(the_least_forgets_what_is_long_ago),
        cmocka_unit_test(percentiles_are_by_nearest_rank_over_the_last_samples),
        cmocka_unit_test(the_ring_keeps_its_place_when_its_count_saturates),
        cmocka_unit_test(percentiles_hold_while_samples_of_any_size_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
