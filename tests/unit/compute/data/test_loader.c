/* THREADS_TEST */
#include "tests/lib/allocfail.h"
#include "tests/lib/check.h"

#include <string.h>

#include "base/rng.h"
#include "compute/data/loader.h"

enum { COUNT = 2000, LENGTH = 16, MOST = 8, SEED = 5, OWN_SEED = 6 };

typedef struct bench {
    dp_buf shard;
    dp_data data;
    dp_loader *loader;
} bench;

static dp_loader_setup setup_of(const bench *b)
{
    return (dp_loader_setup){
        .data = &b->data, .seed = SEED, .own_seed = OWN_SEED, .length = LENGTH, .rows_max = MOST};
}

static void open_data(bench *b, size_t count)
{
    uint32_t ids[COUNT];
    for (size_t i = 0; i < count; i++) {
        ids[i] = (uint32_t)i;
    }
    memset(b, 0, sizeof *b);
    dp_buf_init(&b->shard, 1 << 16);
    CHECK_OK(dp_shard_write(ids, count, COUNT, 4321, &b->shard));
    CHECK_OK(dp_data_open(&b->data, dp_buf_view(&b->shard), COUNT, 0, NULL));
}

static void open_bench(bench *b, size_t count)
{
    open_data(b, count);
    const dp_loader_setup setup = setup_of(b);
    CHECK_OK(dp_loader_open(&b->loader, &setup));
}

static void close_bench(bench *b)
{
    dp_loader_close(b->loader);
    dp_buf_close(&b->shard);
}

/* Takes a window, and compares it with that of data.h at this place. */
static void take(bench *b, dp_loader_place place)
{
    dp_loader_rows got;
    CHECK_OK(dp_loader_take(b->loader, &place, &got));
    for (uint32_t i = 0; i < place.rows; i++) {
        uint32_t x[LENGTH];
        uint32_t y[LENGTH];
        CHECK_OK(
            dp_data_sample(&b->data, place.own ? OWN_SEED : SEED, place.sample + i, LENGTH, x, y));
        CHECK(memcmp(x, got.x + (size_t)i * LENGTH, sizeof x) == 0);
        CHECK(memcmp(y, got.y + (size_t)i * LENGTH, sizeof y) == 0);
    }
}

static void batches_in_order_are_prepared_and_are_the_same(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, COUNT);
    uint64_t takes = 0;
    for (; takes < 150; takes++) { /* Through more than one pass. */
        take(&b, (dp_loader_place){.sample = 4 * takes, .rows = 4});
    }
    CHECK(dp_loader_ahead(b.loader) == takes - 1); /* the first could not be predicted */
    close_bench(&b);
}

static void a_micro_batch_may_shrink_or_double(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 4, 5, 6, 6, 3, 1, 2, 4, 2, 8, 4};
    bench b;
    open_bench(&b, COUNT);
    dp_loader_place place = {.sample = 70, .own = true};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        place.rows = sizes[i];
        take(&b, place);
        place.sample += place.rows;
    }
    CHECK(dp_loader_ahead(b.loader) == sizeof sizes / sizeof sizes[0] - 1);
    close_bench(&b);
}

/* Micro-batches of any size end in the middle of lots, and still find their rows in one piece. */
static void the_thread_is_woken_for_a_lot_and_not_for_each_take(void **state)
{
    (void)state;
    enum { TAKES = 2000 };
    bench b;
    open_bench(&b, COUNT);
    dp_rng rng;
    dp_rng_init(&rng, 9);
    dp_loader_place place = {.sample = 3};
    for (int i = 0; i < TAKES; i++) {
        place.rows = 1 + (uint32_t)dp_rng_below(&rng, MOST);
        take(&b, place);
        place.sample += place.rows;
    }
    CHECK(dp_loader_ahead(b.loader) == TAKES - 1);
    CHECK(dp_loader_lots(b.loader) >
          5); /* Lots are small enough for this to pass through several. */
    CHECK(dp_loader_lots(b.loader) < TAKES / 50);
    close_bench(&b);
}

/* A reader that gets a short range for each step has no use for samples behind its end. */
static void nothing_behind_the_end_of_a_range_is_prepared(void **state)
{
    (void)state;
    enum { RANGES = 50, RANGE = 3 * MOST };
    bench b;
    open_bench(&b, COUNT);
    for (uint64_t i = 0; i < RANGES; i++) {
        take(&b, (dp_loader_place){.sample = 100 * i, .rows = MOST, .left = MOST});
    }
    CHECK(dp_loader_lots(b.loader) == 0 && dp_loader_ahead(b.loader) == 0);
    for (uint64_t i = 0; i < RANGES; i++) {
        for (uint32_t at = 0; at < RANGE; at += MOST) {
            take(&b,
                 (dp_loader_place){.sample = 7 + 100 * i + at, .rows = MOST, .left = RANGE - at});
        }
    }
    /* All but the first of each, by one lot that holds no more. */
    CHECK(dp_loader_lots(b.loader) == RANGES && dp_loader_ahead(b.loader) == 2 * RANGES);
    take(&b, (dp_loader_place){.sample = 7 + 100 * (RANGES - 1) + RANGE, .rows = 1});
    CHECK(dp_loader_ahead(b.loader) == 2 * RANGES);
    close_bench(&b);
}

static void another_range_or_the_own_line_gives_its_own_rows(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, COUNT);
    dp_rng rng;
    dp_rng_init(&rng, 4);
    for (int i = 0; i < 500; i++) {
        take(&b, (dp_loader_place){.sample = dp_rng_below(&rng, 20),
                                   .rows = 1 + (uint32_t)dp_rng_below(&rng, MOST),
                                   .own = dp_rng_below(&rng, 2) == 0});
    }
    CHECK(dp_loader_ahead(b.loader) < 500);
    close_bench(&b);
}

static void the_lent_rows_stay_while_the_next_are_prepared(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, COUNT);
    const dp_loader_place first = {.rows = MOST};
    dp_loader_rows lent;
    CHECK_OK(dp_loader_take(b.loader, &first, &lent));
    uint32_t before[MOST * LENGTH];
    memcpy(before, lent.x, sizeof before);
    for (volatile int i = 0; i < 1000000;
         i++) { /* Time for the thread to write where it must not. */
    }
    CHECK(memcmp(before, lent.x, sizeof before) == 0);
    close_bench(&b);
}

static void data_that_is_too_short_is_refused_each_time(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, LENGTH);
    const dp_loader_place place = {.rows = 1};
    dp_loader_rows got;
    CHECK_STATUS(dp_loader_take(b.loader, &place, &got), DP_BADARG);
    CHECK_STATUS(dp_loader_take(b.loader, &place, &got), DP_BADARG);
    close_bench(&b);
}

static void a_loader_closes_at_once_whatever_it_does(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        bench b;
        open_bench(&b, COUNT);
        if (i % 2 == 1) {
            take(&b, (dp_loader_place){.rows = 1 + i % MOST});
        }
        close_bench(&b);
    }
    dp_loader_close(NULL);
}

static dp_status open_and_close(void *context)
{
    const bench *b = context;
    const dp_loader_setup setup = setup_of(b);
    dp_loader *loader = NULL;
    DP_TRY(dp_loader_open(&loader, &setup));
    dp_loader_close(loader);
    return DP_OK;
}

static void without_memory_there_is_no_loader(void **state)
{
    (void)state;
    bench b;
    open_data(&b, COUNT);
    CHECK(fail_each_allocation(open_and_close, &b) == 5);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_in_order_are_prepared_and_are_the_same),
        cmocka_unit_test(a_micro_batch_may_shrink_or_double),
        cmocka_unit_test(the_thread_is_woken_for_a_lot_and_not_for_each_take),
        cmocka_unit_test(nothing_behind_the_end_of_a_range_is_prepared),
        cmocka_unit_test(another_range_or_the_own_line_gives_its_own_rows),
        cmocka_unit_test(the_lent_rows_stay_while_the_next_are_prepared),
        cmocka_unit_test(data_that_is_too_short_is_refused_each_time),
        cmocka_unit_test(a_loader_closes_at_once_whatever_it_does),
        cmocka_unit_test(without_memory_there_is_no_loader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
