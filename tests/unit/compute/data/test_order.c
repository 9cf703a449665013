#include "tests/lib/check.h"

#include "compute/data/order.h"

enum { MOST = 5000 };

static void a_pass_visits_each_place_once(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 4096, 4097, MOST};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t seen[MOST] = {0};
        for (uint64_t index = 0; index < sizes[i]; index++) {
            const uint64_t at = dp_order_at(42, i, sizes[i], index);
            CHECK(at < sizes[i] && seen[at] == 0);
            seen[at] = 1;
        }
    }
}

static uint64_t fixed_points(uint64_t seed_a, uint64_t pass_a, uint64_t seed_b, uint64_t pass_b)
{
    uint64_t same = 0;
    for (uint64_t index = 0; index < MOST; index++) {
        same +=
            dp_order_at(seed_a, pass_a, MOST, index) == dp_order_at(seed_b, pass_b, MOST, index);
    }
    return same;
}

/* Two random orders agree in one place on average, in more than ten once in 10^8 tries. */
static void passes_and_seeds_have_orders_of_their_own(void **state)
{
    (void)state;
    CHECK(fixed_points(1, 0, 1, 0) == MOST);
    CHECK(fixed_points(1, 0, 1, 1) <= 10);
    CHECK(fixed_points(1, 0, 2, 0) <= 10);
    uint64_t at_home = 0;
    uint64_t next_door = 0;
    for (uint64_t index = 0; index + 1 < MOST; index++) {
        const uint64_t at = dp_order_at(1, 0, MOST, index);
        at_home += at == index;
        next_door += dp_order_at(1, 0, MOST, index + 1) == at + 1;
    }
    CHECK(at_home <= 10 && next_door <= 10);
}

/* The sixteen cells of index quarter by place quarter; chi squared of 9 degrees above 40 has p <
 * 10^-5. */
static void the_order_is_spread_evenly(void **state)
{
    (void)state;
    enum { N = 4000 };
    double chi = 0;
    unsigned cells[4][4] = {{0}};
    for (uint64_t index = 0; index < N; index++) {
        cells[4 * index / N][4 * dp_order_at(7, 3, N, index) / N]++;
    }
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 4; j++) {
            const double off = cells[i][j] - N / 16.0;
            chi += off * off / (N / 16.0);
        }
    }
    CHECK(chi < 40);
}

static void huge_passes_work(void **state)
{
    (void)state;
    const uint64_t n = ((uint64_t)1 << 62) + 12345;
    for (uint64_t i = 0; i < 100; i++) {
        CHECK(dp_order_at(3, 9, n, n - 1 - i) < n);
    }
    CHECK(dp_order_at(3, 9, UINT64_MAX, 5) < UINT64_MAX);
}

/* Data order is part of a run: these numbers may never change. */
static void the_order_is_what_it_was(void **state)
{
    (void)state;
    static const uint64_t wanted[6] = {278, 262, 700, 282, 956, 743};
    for (uint64_t i = 0; i < 6; i++) {
        CHECK(dp_order_at(42, 1, 1000, i) == wanted[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_visits_each_place_once),
        cmocka_unit_test(passes_and_seeds_have_orders_of_their_own),
        cmocka_unit_test(the_order_is_spread_evenly),
        cmocka_unit_test(huge_passes_work),
        cmocka_unit_test(the_order_is_what_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
