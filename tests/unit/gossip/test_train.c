/* What work of rounds ago is worth. */
#include "gossip/node_internal.h"
#include "tests/unit/gossip/node_kit.h"

static void who_was_emptied_keeps_what_it_does_next(void **state)
{
    dp_train *train = calloc(1, sizeof *train);
    dp_ring_row row = {.round = 0};

    (void)state;
    assert_non_null(train);
    for (uint64_t round = 100; round < 140; round++) {
        row.round = round;
        row.gap = round - 99;
        const bool empties = row.gap == 17 || row.gap == 34;
        assert_int_equal(dp_train_fade(train, &row), empties ? 0 : 55109);
    }
    free(train);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_was_emptied_keeps_what_it_does_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
