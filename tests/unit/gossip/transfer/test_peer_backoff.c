/* Peers whose claims are ignored for a while. */
#include "gossip/transfer/peer_backoff.h"
#include "tests/lib/check.h"

static dp_peer peer_of(uint32_t i)
{
    return (dp_peer){{(uint8_t)(i + 1), (uint8_t)(i >> 8)}};
}

static void fail_times(dp_backoff *backoff, uint32_t who, uint32_t times, uint64_t now_us)
{
    const dp_peer peer = peer_of(who);

    for (uint32_t i = 0; i < times; i++) {
        dp_backoff_failed(backoff, &peer, (dp_time){now_us});
    }
}

static bool is_off(const dp_backoff *backoff, uint32_t who, uint64_t now_us)
{
    const dp_peer peer = peer_of(who);

    return dp_backed_off(backoff, &peer, (dp_time){now_us});
}

static void four_failures_in_a_row_bar_a_peer_for_thirty_seconds(void **state)
{
    dp_backoff backoff = {0};

    (void)state;
    fail_times(&backoff, 0, DP_BACKOFF_FAILURES - 1, DP_SECOND);
    CHECK(!is_off(&backoff, 0, DP_SECOND));
    fail_times(&backoff, 0, 1, 2 * DP_SECOND);
    CHECK(is_off(&backoff, 0, 2 * DP_SECOND) && !is_off(&backoff, 1, 2 * DP_SECOND));
    CHECK(is_off(&backoff, 0, 2 * DP_SECOND + DP_BACKOFF_US - 1));
    CHECK(!is_off(&backoff, 0, 2 * DP_SECOND + DP_BACKOFF_US));
    fail_times(&backoff, 0, 1, 60 * DP_SECOND); /* Then one more is enough. */
    CHECK(is_off(&backoff, 0, 60 * DP_SECOND));
    CHECK(backoff.rows[0].failures == DP_BACKOFF_FAILURES);
}

static void a_peer_that_gives_records_begins_anew(void **state)
{
    dp_backoff backoff = {0};
    const dp_peer one = peer_of(0);
    const dp_peer nobody = peer_of(7);

    (void)state;
    fail_times(&backoff, 0, DP_BACKOFF_FAILURES, DP_SECOND);
    fail_times(&backoff, 1, DP_BACKOFF_FAILURES, DP_SECOND);
    dp_backoff_gave(&backoff, &nobody);
    dp_backoff_gave(&backoff, &one);
    CHECK(!is_off(&backoff, 0, DP_SECOND) && is_off(&backoff, 1, DP_SECOND));
    fail_times(&backoff, 0, DP_BACKOFF_FAILURES - 1, DP_SECOND);
    CHECK(!is_off(&backoff, 0, DP_SECOND));
}

static void of_too_many_the_one_that_failed_longest_ago_is_forgotten(void **state)
{
    dp_backoff backoff = {0};

    (void)state;
    for (uint32_t i = 0; i < DP_BACKOFFS_MAX; i++) {
        fail_times(&backoff, i, DP_BACKOFF_FAILURES, DP_SECOND + (i == 5 ? 0 : 10 + i));
    }
    for (uint32_t i = 0; i < DP_BACKOFFS_MAX; i++) {
        CHECK(is_off(&backoff, i, 2 * DP_SECOND));
    }
    fail_times(&backoff, 50, DP_BACKOFF_FAILURES, 2 * DP_SECOND);
    for (uint32_t i = 0; i < DP_BACKOFFS_MAX; i++) {
        CHECK(is_off(&backoff, i, 2 * DP_SECOND) == (i != 5));
    }
    CHECK(is_off(&backoff, 50, 2 * DP_SECOND));
    fail_times(&backoff, 51, 1, 2 * DP_SECOND); /* The oldest of those left, the first row. */
    CHECK(!is_off(&backoff, 0, 2 * DP_SECOND) && is_off(&backoff, 1, 2 * DP_SECOND));
    const dp_peer second = peer_of(1);
    dp_backoff_gave(&backoff, &second); /* A free row is taken before any other. */
    fail_times(&backoff, 52, DP_BACKOFF_FAILURES, 2 * DP_SECOND);
    CHECK(is_off(&backoff, 52, 2 * DP_SECOND) && is_off(&backoff, 2, 2 * DP_SECOND));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_failures_in_a_row_bar_a_peer_for_thirty_seconds),
        cmocka_unit_test(a_peer_that_gives_records_begins_anew),
        cmocka_unit_test(of_too_many_the_one_that_failed_longest_ago_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
