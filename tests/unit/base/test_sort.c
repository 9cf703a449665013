#include "base/sort.h"

#include "base/rng.h"
#include "tests/lib/check.h"

enum { MOST = 40 };

/* So that many are equal, and some need all bits. */
static uint64_t number(dp_rng *rng)
{
    const uint64_t any = dp_rng_next(rng);
    return any % 3 == 0 ? any : any % 7;
}

static void numbers_of_any_count_come_into_order_and_none_is_lost(void **state)
{
    dp_rng rng;

    (void)state;
    dp_rng_init(&rng, 1);
    for (uint32_t n = 0; n <= MOST; n++) {
        uint64_t values[MOST + 1];
        unsigned __int128 wide[MOST + 1];
        uint64_t sum = 0;
        unsigned __int128 wide_sum = 0;
        for (uint32_t i = 0; i <= MOST; i++) {
            values[i] = number(&rng);
            wide[i] = (unsigned __int128)number(&rng) << (i % 2 == 0 ? 64 : 0);
            sum += i < n ? values[i] : 0;
            wide_sum += i < n ? wide[i] : 0;
        }
        const uint64_t behind = values[n];
        const unsigned __int128 wide_behind = wide[n];
        dp_sort_u64(values, n);
        dp_sort_u128(wide, n);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(i == 0 || values[i - 1] <= values[i]);
            assert_true(i == 0 || wide[i - 1] <= wide[i]);
            sum -= values[i];
            wide_sum -= wide[i];
        }
        assert_true(sum == 0 && wide_sum == 0);
        assert_true(values[n] == behind && wide[n] == wide_behind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_any_count_come_into_order_and_none_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
