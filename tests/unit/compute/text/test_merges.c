#include "tests/lib/check.h"

#include "base/rng.h"
#include "compute/text/merges.h"
#include "tests/lib/allocfail.h"

enum { IDS = 40, LONGEST = 700 };

/* The definition: look at all neighbours, take the least rank, the leftmost of it, start again. */
static size_t by_definition(const dp_merges *merges, uint32_t *ids, size_t count)
{
    for (;;) {
        uint32_t best = DP_NO_MERGE;
        size_t at = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            const uint32_t rank = dp_merges_find(merges, ids[i], ids[i + 1]);
            if (rank < best) {
                best = rank;
                at = i;
            }
        }
        if (best == DP_NO_MERGE) {
            return count;
        }
        ids[at] = merges->items[best].result;
        memmove(ids + at + 1, ids + at + 2, (count - at - 2) * sizeof *ids);
        count--;
    }
}

/* Merges without any order among their ranks, so that a merge may make room for an earlier one. */
static void random_merges(dp_merges *merges, dp_rng *rng)
{
    for (uint32_t i = 0; i < 200; i++) {
        const dp_merge m = {.left = (uint32_t)dp_rng_below(rng, IDS),
                            .right = (uint32_t)dp_rng_below(rng, IDS),
                            .result = (uint32_t)dp_rng_below(rng, IDS)};
        const bool known = dp_merges_find(merges, m.left, m.right) != DP_NO_MERGE;
        CHECK_STATUS(dp_merges_add(merges, m), known ? DP_EXISTS : DP_OK);
    }
}

static void pieces_of_any_length_merge_as_the_definition_says(void **state)
{
    (void)state;
    dp_rng rng;
    dp_merge_room room = {0};
    dp_rng_init(&rng, 4);
    for (int i = 0; i < 300; i++) {
        dp_merges merges = {0};
        uint32_t wanted[LONGEST];
        uint32_t got[LONGEST];
        random_merges(&merges, &rng);
        size_t count = (size_t)dp_rng_below(&rng, i % 2 == 0 ? LONGEST : 2 * DP_MERGES_SHORT);
        for (size_t j = 0; j < count; j++) {
            wanted[j] = got[j] = (uint32_t)dp_rng_below(&rng, IDS);
        }
        const size_t left = by_definition(&merges, wanted, count);
        CHECK_OK(dp_merges_apply(&merges, &room, got, &count));
        CHECK(count == left && memcmp(got, wanted, left * sizeof *got) == 0);
        dp_merges_close(&merges);
    }
    dp_merge_room_close(&room);
}

static void a_long_run_takes_no_square_of_time(void **state)
{
    (void)state;
    enum { COUNT = 1 << 20 };
    dp_merges merges = {0};
    dp_merge_room room = {0};
    uint32_t *const ids = test_calloc(COUNT, sizeof *ids);
    for (uint32_t i = 0; i < 20; i++) {
        CHECK_OK(dp_merges_add(&merges, (dp_merge){.left = i, .right = i, .result = i + 1}));
    }
    size_t count = COUNT;
    CHECK_OK(dp_merges_apply(&merges, &room, ids, &count));
    CHECK(count == 1 && ids[0] == 20);
    test_free(ids);
    dp_merge_room_close(&room);
    dp_merges_close(&merges);
}

static void without_merges_nothing_changes(void **state)
{
    (void)state;
    const dp_merges none = {0};
    dp_merge_room room = {0};
    uint32_t ids[3] = {1, 2, 3};
    size_t count = 0;
    CHECK_OK(dp_merges_apply(&none, &room, ids, &count));
    CHECK(count == 0 && dp_merges_find(&none, 1, 2) == DP_NO_MERGE);
    count = 3;
    CHECK_OK(dp_merges_apply(&none, &room, ids, &count));
    CHECK(count == 3 && ids[2] == 3);
}

static dp_status add_and_apply(void *context)
{
    (void)context;
    dp_merges merges = {0};
    dp_merge_room room = {0};
    uint32_t ids[200] = {0};
    size_t count = 200;
    dp_status status = dp_merges_add(&merges, (dp_merge){.result = 1});
    if (status == DP_OK) {
        status = dp_merges_apply(&merges, &room, ids, &count);
    }
    dp_merge_room_close(&room);
    dp_merges_close(&merges);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    CHECK(fail_each_allocation(add_and_apply, NULL) == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_any_length_merge_as_the_definition_says),
        cmocka_unit_test(a_long_run_takes_no_square_of_time),
        cmocka_unit_test(without_merges_nothing_changes),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
