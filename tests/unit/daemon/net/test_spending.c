#include "daemon/net/spending.h"

#include "tests/lib/check.h"

#define SECOND UINT64_C(1000000)
#define START (5 * SECOND)
#define MBIT UINT64_C(125000)

static void what_is_spent_at_once_has_a_bound_for_each_kind_of_peer(void **state)
{
    static const struct {
        bool guest;
        uint64_t work_us;
        uint64_t bytes;
    } most[] = {{true, SECOND / 20, 256 << 10}, {false, SECOND / 4, 1 << 20}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        dp_spending spending = {0};
        const bool guest = most[i].guest;
        dp_spending_pay(&spending, guest, 0, most[i].work_us, most[i].bytes, START);
        CHECK(!dp_spending_over(&spending, guest, 0, START));
        dp_spending_pay(&spending, guest, 0, 1, 0, START);
        CHECK(dp_spending_over(&spending, guest, 0, START));
        spending = (dp_spending){0};
        dp_spending_pay(&spending, guest, 0, 0, most[i].bytes + 1, START);
        CHECK(dp_spending_over(&spending, guest, 0, START));
    }
}

static void a_debt_ends_after_the_time_that_its_share_takes(void **state)
{
    dp_spending guests = {0};
    dp_spending member = {0};
    (void)state;
    dp_spending_pay(&guests, true, 0, SECOND / 20 + SECOND / 10, 0, START);
    CHECK(dp_spending_over(&guests, true, 0, START + 2 * SECOND - 10000));
    CHECK(!dp_spending_over(&guests, true, 0, START + 2 * SECOND));
    dp_spending_pay(&member, false, 0, SECOND / 4 + SECOND / 10, 0, START);
    CHECK(dp_spending_over(&member, false, 0, START + SECOND - 10000));
    CHECK(!dp_spending_over(&member, false, 0, START + SECOND));
}

static void answers_take_at_most_a_quarter_of_the_owners_limit(void **state)
{
    dp_spending spending = {0};
    (void)state;
    dp_spending_pay(&spending, true, MBIT, 0, (256 << 10) + MBIT, START);
    CHECK(dp_spending_over(&spending, true, MBIT, START + 4 * SECOND - 10000));
    CHECK(!dp_spending_over(&spending, true, MBIT, START + 4 * SECOND + 10000));
    /* Of a high limit not more than without one. */
    spending = (dp_spending){0};
    dp_spending_pay(&spending, true, 1000 * MBIT, 0, (256 + 64) << 10, START);
    CHECK(dp_spending_over(&spending, true, 1000 * MBIT, START + SECOND - 20000));
    CHECK(!dp_spending_over(&spending, true, 1000 * MBIT, START + SECOND + 20000));
}

/* Asked every few microseconds, as under a flood. */
static void frequent_questions_do_not_round_the_share_away(void **state)
{
    dp_spending spending = {0};
    (void)state;
    dp_spending_pay(&spending, true, 0, 0, (256 << 10) + (64 << 10), START);
    for (uint64_t now = START; now < START + SECOND; now += 7) {
        DP_IGNORE(!dp_spending_over(&spending, true, 0, now));
    }
    CHECK(!dp_spending_over(&spending, true, 0, START + SECOND + 20000));
}

static void time_that_is_long_or_goes_back_is_harmless(void **state)
{
    dp_spending spending = {0};
    (void)state;
    dp_spending_pay(&spending, false, 0, 1 << 30, 1 << 30, START);
    CHECK(dp_spending_over(&spending, false, 0, START - SECOND));
    CHECK(!dp_spending_over(&spending, false, 0, UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_spent_at_once_has_a_bound_for_each_kind_of_peer),
        cmocka_unit_test(a_debt_ends_after_the_time_that_its_share_takes),
        cmocka_unit_test(answers_take_at_most_a_quarter_of_the_owners_limit),
        cmocka_unit_test(frequent_questions_do_not_round_the_share_away),
        cmocka_unit_test(time_that_is_long_or_goes_back_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
