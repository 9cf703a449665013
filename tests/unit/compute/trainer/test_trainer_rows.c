/* How many rows a trainer beside peers takes at a time. The clock and the device's steps are
 * played. */
#include "tests/unit/compute/tiny_node.h"

#include <time.h>

#include "base/rng.h"
#include "compute/backend/backend_cpu.h"

enum { BATCH_ROWS = 1000, MICRO_US = 80000, SEARCH_US = 3000 * 1000 };

static struct {
    uint64_t now_us;
    uint64_t row_us;                /* of a step, for each row */
    bool searches;                  /* the first step of a number of rows takes SEARCH_US longer */
    uint32_t steps[BATCH_ROWS + 1]; /* by rows */
    uint32_t last;                  /* rows */
} device;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    time->tv_sec = (time_t)(device.now_us / 1000000);
    time->tv_nsec = (long)(device.now_us % 1000000) * 1000;
    return 0;
}

static dp_status step_played(dp_engine *e, const dp_gpt_batch *batch, float scale, double *loss_sum)
{
    (void)e;
    (void)scale;
    const bool first = device.steps[batch->rows]++ == 0;
    device.last = (uint32_t)batch->rows;
    device.now_us += batch->rows * device.row_us + (first && device.searches ? SEARCH_US : 0);
    *loss_sum = (double)(batch->rows * batch->length);
    return DP_OK;
}

static node open_played(dp_backend *table, uint32_t batch_rows)
{
    dp_manifest m = node_settings(DP_CODEC_SPARSE, 950);
    memset(&device, 0, sizeof device);
    m.batch_rows = batch_rows;
    *table = *dp_backend_cpu();
    table->step = step_played;
    return node_open_with(&m, (dp_trainer_setup){.backend = table});
}

static uint32_t counts(void)
{
    uint32_t n = 0;
    for (uint32_t rows = 0; rows <= BATCH_ROWS; rows++) {
        n += device.steps[rows] > 0;
    }
    return n;
}

static void a_clock_that_wavers_has_few_numbers_of_rows(void **state)
{
    (void)state;
    dp_backend table;
    dp_rng rng;
    node x = open_played(&table, BATCH_ROWS);
    dp_rng_init(&rng, 7);
    for (uint32_t i = 0; i < 20000; i++) {
        device.row_us = UINT64_C(20) << dp_rng_below(&rng, 12);
        if (i % 500 == 0) { /* Ranges of odd sizes: the rest of one is a micro-batch. */
            const dp_sample_range ranges[2] = {{.first = i, .count = 333}, {.count = 77}};
            CHECK_OK(dp_trainer_lease(x.trainer, &(dp_reach){0}, ranges, 2));
        }
        CHECK_OK(dp_trainer_work(x.trainer));
    }
    CHECK(counts() >= 8 && counts() <= 11); /* 1, 2, 4 ... 512, and 1000. */
    node_close(&x);
}

static void steps_grow_to_what_a_command_may_wait_for(void **state)
{
    (void)state;
    dp_backend table;
    node x = open_played(&table, BATCH_ROWS);
    device.row_us = 1000;
    node_train(&x, 1);
    device.steps[64] = 0;
    node_train(&x, 10);
    CHECK(device.steps[64] >= 10 * (BATCH_ROWS / 64)); /* 128 would take longer than MICRO_US. */
    CHECK(device.steps[128] == 0);
    device.row_us = 50 * 1000; /* Another program uses the device now. */
    node_train(&x, 1);
    memset(device.steps, 0, sizeof device.steps);
    node_train(&x, 1);
    CHECK(counts() == 1 && device.steps[1] == BATCH_ROWS);
    node_close(&x);
}

static void a_search_makes_no_steps_smaller(void **state)
{
    (void)state;
    dp_backend table;
    node x = open_played(&table, BATCH_ROWS);
    uint32_t largest = 0;
    device.searches = true;
    device.row_us = 1000;
    while (device.steps[64] == 0) {
        CHECK_OK(dp_trainer_work(x.trainer));
        CHECK(device.last >= largest);
        largest = device.last;
    }
    CHECK_OK(dp_trainer_work(x.trainer));
    CHECK(device.last == 64);
    node_close(&x);
}

static void a_batch_that_fits_goes_whole(void **state)
{
    (void)state;
    dp_backend table;
    node x = open_played(&table, 12);
    device.row_us = 100;
    node_train(&x, 10);
    memset(device.steps, 0, sizeof device.steps);
    node_train(&x, 10);
    CHECK(device.steps[12] == 10 && counts() == 1);
    node_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_that_wavers_has_few_numbers_of_rows),
        cmocka_unit_test(steps_grow_to_what_a_command_may_wait_for),
        cmocka_unit_test(a_search_makes_no_steps_smaller),
        cmocka_unit_test(a_batch_that_fits_goes_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
