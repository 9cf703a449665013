#include "gossip/member/rowset.h"
#include "tests/lib/check.h"

static void rows_stand_in_rising_order_however_they_came(void **state)
{
    static const uint32_t came[] = {7, 3, 9, 0, 3, 5};
    static const uint32_t stand[] = {0, 3, 5, 7, 9};
    dp_rowset rows;

    (void)state;
    CHECK(dp_rowset_open(&rows, 10) == DP_OK);
    for (uint32_t i = 0; i < 6; i++) {
        dp_rowset_set(&rows, came[i], true);
    }
    CHECK(rows.count == 5);
    for (uint32_t i = 0; i < 5; i++) {
        CHECK(rows.at[i] == stand[i]);
    }
    dp_rowset_close(&rows);
}

static void a_removed_row_is_gone_and_the_others_stay(void **state)
{
    dp_rowset rows;

    (void)state;
    CHECK(dp_rowset_open(&rows, 64) == DP_OK);
    for (uint32_t i = 0; i < 64; i++) {
        dp_rowset_set(&rows, i, true);
    }
    for (uint32_t i = 0; i < 64; i += 2) {
        dp_rowset_set(&rows, i, false);
        dp_rowset_set(&rows, i, false); /* not there: no change */
    }
    CHECK(rows.count == 32);
    for (uint32_t i = 0; i < 64; i++) {
        CHECK(dp_rowset_has(&rows, i) == (i % 2 == 1));
    }
    dp_rowset_close(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_stand_in_rising_order_however_they_came),
        cmocka_unit_test(a_removed_row_is_gone_and_the_others_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
