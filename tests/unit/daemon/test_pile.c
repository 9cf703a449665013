/* What waits of own chunks, with sums that only count weights. */
#include "daemon/pile.h"

#include <string.h>

#include "base/alloc.h"
#include "tests/lib/check.h"

enum { N = 3, ELEMENTS = 4 };

static unsigned added;

static dp_status add(const dp_terms *terms)
{
    added++;
    for (size_t i = 0; i < terms->n; i++) {
        terms->sum[i] = terms->begun ? terms->sum[i] : (int64_t)(terms->weight * 100);
        for (uint32_t k = 0; k < terms->n_parts; k++) {
            terms->sum[i] += terms->parts[k][i] * terms->weights[k];
        }
    }
    return DP_OK;
}

static dp_status refuse(const dp_terms *terms)
{
    (void)terms;
    return DP_DIVERGED;
}

static dp_pile *pile_open(void)
{
    dp_pile *pile = NULL;
    CHECK_OK(dp_pile_open(&pile, N, ELEMENTS, ELEMENTS));
    dp_pile_restart(pile, 5);
    added = 0;
    return pile;
}

static void put(dp_pile *pile, uint32_t chunk, uint8_t value, uint32_t weight)
{
    uint8_t bytes[ELEMENTS];
    dp_terms terms = {.n = ELEMENTS};
    memset(bytes, value, sizeof bytes);
    CHECK_OK(dp_pile_add(pile, chunk, &terms, dp_view_of(bytes, sizeof bytes), weight, add));
}

static void few_parts_wait_and_no_sum_is_made(void **state)
{
    dp_pile *pile = pile_open();
    const uint8_t last[ELEMENTS] = {9};
    dp_terms terms = {.n = ELEMENTS};
    (void)state;
    put(pile, 1, 3, 2);
    put(pile, 1, 4, 7);
    assert_int_equal(added, 0);
    assert_int_equal(dp_pile_take(pile, 1, &terms, dp_view_of(last, sizeof last), 1), 15);
    assert_int_equal(terms.n_parts, 3);
    CHECK(!terms.begun && terms.weight == 5);
    assert_int_equal(terms.parts[0][3], 3);
    assert_int_equal(terms.weights[1], 7);
    CHECK(terms.parts[2] == last);
    dp_pile_close(pile);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static void many_parts_are_added_several_at_a_time(void **state)
{
    dp_pile *pile = pile_open();
    dp_terms terms = {.n = ELEMENTS};
    (void)state;
    for (uint8_t i = 1; i <= 7; i++) {
        put(pile, 2, i, 1);
    }
    assert_int_equal(added, 2);
    assert_int_equal(dp_pile_take(pile, 2, &terms, dp_view_of(NULL, 0), 0), 12);
    assert_int_equal(terms.n_parts, 1);
    CHECK(terms.begun && terms.sum[0] == 500 + 1 + 2 + 3 + 4 + 5 + 6);
    assert_int_equal(terms.parts[0][0], 7);
    dp_pile_forget(pile, 2);
    assert_int_equal(dp_pile_take(pile, 2, &terms, dp_view_of(NULL, 0), 0), 5);
    CHECK(terms.n_parts == 0 && !terms.begun);
    dp_pile_close(pile);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

/* Chunks that follow one another use the same memory; so does the next exchange. */
static void memory_is_used_again(void **state)
{
    dp_pile *pile = pile_open();
    size_t live = 0;
    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        for (uint32_t chunk = 0; chunk < N; chunk++) {
            for (uint8_t i = 1; i <= 4; i++) {
                put(pile, chunk, i, 1);
            }
            if (chunk < N - 1) { /* The last one is never closed: a round that failed. */
                dp_pile_forget(pile, chunk);
            }
        }
        CHECK(round == 0 || dp_alloc_live_bytes() == live);
        live = dp_alloc_live_bytes();
        dp_pile_restart(pile, 1);
    }
    dp_pile_close(pile);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static void what_cannot_be_added_says_so(void **state)
{
    dp_pile *pile = pile_open();
    const uint8_t part[ELEMENTS] = {1};
    dp_terms terms = {.n = ELEMENTS};
    (void)state;
    dp_alloc_fail_after(1);
    CHECK_STATUS(dp_pile_add(pile, 0, &terms, dp_view_of(part, sizeof part), 1, add), DP_NOMEM);
    dp_alloc_fail_after(0);
    put(pile, 0, 1, 1);
    put(pile, 0, 1, 1);
    dp_alloc_fail_after(1);
    CHECK_STATUS(dp_pile_add(pile, 0, &terms, dp_view_of(part, sizeof part), 1, add), DP_NOMEM);
    dp_alloc_fail_after(0);
    CHECK_STATUS(dp_pile_add(pile, 0, &terms, dp_view_of(part, sizeof part), 1, refuse),
                 DP_DIVERGED);
    dp_pile_close(pile);
    for (size_t i = 1; i <= 4; i++) {
        dp_alloc_fail_after(i);
        CHECK_STATUS(dp_pile_open(&pile, N, ELEMENTS, ELEMENTS), DP_NOMEM);
        dp_alloc_fail_after(0);
    }
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_parts_wait_and_no_sum_is_made),
        cmocka_unit_test(many_parts_are_added_several_at_a_time),
        cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(what_cannot_be_added_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
