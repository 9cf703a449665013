/* THREADS_TEST */
#include "tests/lib/check.h"

#include <stdlib.h>

#include "compute/machine/process_barrier.h"

enum { THREADS = 3, OPENINGS = 300 };
static const uint64_t long_us = 60U * 1000 * 1000;

typedef struct walker {
    dp_process_barrier *gate;
    uint32_t place;
    uint32_t openings; /* after which it leaves, or just ends */
    bool leaves;
    dp_status status;
    uint32_t culprit;
    uint32_t passed;
    uint64_t *turns; /* of each process: none may be more than one ahead */
} walker;

static void *walk(void *context)
{
    walker *const w = context;
    CHECK_OK(dp_process_barrier_enter(w->gate, w->place));
    while (w->passed < w->openings && w->status == DP_OK) {
        w->turns[w->place] = w->passed + 1;
        w->status = dp_process_barrier_wait(w->gate, w->place, long_us, &w->culprit);
        if (w->status == DP_OK) {
            for (uint32_t i = 0; i < THREADS; i++) {
                CHECK(w->turns[i] >= w->passed + 1);
            }
            w->status = dp_process_barrier_wait(w->gate, w->place, long_us, &w->culprit);
            w->passed++;
        }
    }
    if (w->leaves) {
        dp_process_barrier_leave(w->gate, w->place);
    }
    return NULL;
}

/* Three threads as processes; the last one ends after last_openings, in that way. */
static void run(walker walkers[THREADS], uint32_t last_openings, bool last_leaves)
{
    dp_process_barrier *const gate = calloc(1, sizeof *gate);
    uint64_t turns[THREADS] = {0};
    pthread_t threads[THREADS];
    CHECK_OK(dp_process_barrier_make(gate, THREADS));
    for (uint32_t i = 0; i < THREADS; i++) {
        const bool last = i + 1 == THREADS;
        walkers[i] = (walker){.gate = gate,
                              .place = i,
                              .openings = last ? last_openings : OPENINGS,
                              .leaves = !last || last_leaves,
                              .turns = turns};
        assert_int_equal(pthread_create(&threads[i], NULL, walk, &walkers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    free(gate);
}

static void nobody_passes_before_all_have_come(void **state)
{
    (void)state;
    walker walkers[THREADS];
    run(walkers, OPENINGS, true);
    for (uint32_t i = 0; i + 1 < THREADS; i++) {
        /* A walker that leaves first after the last opening does not break the barrier for the
         * others. */
        CHECK(walkers[i].status == DP_OK && walkers[i].passed == OPENINGS);
    }
}

static void a_process_that_leaves_or_ends_breaks_it_for_all(void **state)
{
    (void)state;
    for (int leaves = 0; leaves < 2; leaves++) {
        walker walkers[THREADS];
        run(walkers, 5, leaves == 1);
        for (uint32_t i = 0; i + 1 < THREADS; i++) {
            CHECK_STATUS(walkers[i].status, DP_CLOSED);
            CHECK(walkers[i].passed == 5);
        }
        /* One of them may blame the other, which has gone for the same reason. */
        CHECK(walkers[0].culprit == 2 || walkers[1].culprit == 2);
    }
}

static void a_process_that_misses_the_deadline_is_named(void **state)
{
    (void)state;
    dp_process_barrier *const gate = calloc(1, sizeof *gate);
    uint32_t culprit = 77;
    CHECK_OK(dp_process_barrier_make(gate, 2));
    CHECK_OK(dp_process_barrier_enter(gate, 0));
    CHECK_STATUS(dp_process_barrier_wait(gate, 0, 0, &culprit), DP_TIMEOUT);
    CHECK(culprit == 1);
    CHECK_STATUS(dp_process_barrier_wait(gate, 0, long_us, &culprit), DP_CLOSED);
    dp_process_barrier_leave(gate, 0);
    free(gate);
}

static void one_alone_never_waits(void **state)
{
    (void)state;
    dp_process_barrier *const gate = calloc(1, sizeof *gate);
    uint32_t culprit;
    CHECK_OK(dp_process_barrier_make(gate, 1));
    CHECK_OK(dp_process_barrier_enter(gate, 0));
    for (int i = 0; i < 1000; i++) {
        CHECK_OK(dp_process_barrier_wait(gate, 0, 0, &culprit));
    }
    dp_process_barrier_leave(gate, 0);
    free(gate);
}

static void places_are_taken_once(void **state)
{
    (void)state;
    dp_process_barrier *const gate = calloc(1, sizeof *gate);
    CHECK_STATUS(dp_process_barrier_make(gate, 0), DP_BADARG);
    CHECK_STATUS(dp_process_barrier_make(gate, DP_PROCESS_BARRIER_PROCESSES_MAX + 1), DP_BADARG);
    CHECK_OK(dp_process_barrier_make(gate, DP_PROCESS_BARRIER_PROCESSES_MAX));
    CHECK_STATUS(dp_process_barrier_enter(gate, DP_PROCESS_BARRIER_PROCESSES_MAX), DP_BADARG);
    CHECK_OK(dp_process_barrier_enter(gate, 7));
    CHECK_STATUS(dp_process_barrier_enter(gate, 7), DP_BUSY);
    dp_process_barrier_leave(gate, 7);
    CHECK_STATUS(dp_process_barrier_enter(gate, 7), DP_CLOSED);
    free(gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_passes_before_all_have_come),
        cmocka_unit_test(a_process_that_leaves_or_ends_breaks_it_for_all),
        cmocka_unit_test(a_process_that_misses_the_deadline_is_named),
        cmocka_unit_test(one_alone_never_waits),
        cmocka_unit_test(places_are_taken_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
