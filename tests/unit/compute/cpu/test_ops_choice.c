#include "compute/cpu/ops_choice.h"

#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void the_fastest_table_is_chosen(void **state)
{
    (void)state;
    assert_int_equal(dp_ops_choose((double[]){4.0, 2.0, 1.0}, 3), 2);
    assert_int_equal(dp_ops_choose((double[]){4.0, 1.0, 2.0}, 3), 1);
    assert_int_equal(dp_ops_choose((double[]){1.0, 4.0, 2.0}, 3), 0);
    assert_int_equal(dp_ops_choose((double[]){1.0}, 1), 0);
}

/* Otherwise a little noise would change the bits of a machine's gradients from one process to the
 * next. */
static void of_tables_that_are_about_as_fast_the_later_one_is_chosen(void **state)
{
    (void)state;
    assert_int_equal(dp_ops_choose((double[]){1.0, 1.0, 1.0}, 3), 2);
    assert_int_equal(dp_ops_choose((double[]){1.0, 1.15, 1.1}, 3), 2);
    assert_int_equal(dp_ops_choose((double[]){1.0, 1.1, 1.4}, 3), 1);
}

static void the_choice_runs_here_and_lasts_as_long_as_the_process(void **state)
{
    (void)state;
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        const dp_ops *const best = dp_ops_best_in((dp_precision)precision);
        bool found = false;
        for (size_t i = 1; dp_ops_at_in((dp_precision)precision, i) != NULL; i++) {
            found = found || best == dp_ops_at_in((dp_precision)precision, i);
        }
        assert_true(found);
        assert_int_equal(best->precision, precision);
        for (size_t i = 0; i < 100; i++) {
            assert_ptr_equal(dp_ops_best_in((dp_precision)precision), best);
        }
    }
    assert_ptr_equal(dp_ops_best(), dp_ops_best_in(DP_FP32));
}

/* Processes that train as one compute the same bits only with the same table. */
static void without_instructions_of_its_own_a_precision_takes_the_last_table(void **state)
{
    (void)state;
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        size_t last = 0;
        while (dp_ops_at_in((dp_precision)precision, last + 1) != NULL) {
            last++;
        }
        if (precision != DP_BF16) {
            assert_ptr_equal(dp_ops_best_in((dp_precision)precision),
                             dp_ops_at_in((dp_precision)precision, last));
        }
    }
}

enum { THREADS = 8 };

static void *choose_thread(void *chosen)
{
    *(const dp_ops **)chosen = dp_ops_best_in(DP_BF16);
    return NULL;
}

static void all_threads_get_the_same_table(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    const dp_ops *chosen[THREADS] = {NULL};
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, choose_thread, &chosen[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_non_null(chosen[i]);
        assert_ptr_equal(chosen[i], chosen[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_threads_get_the_same_table),
        cmocka_unit_test(the_fastest_table_is_chosen),
        cmocka_unit_test(of_tables_that_are_about_as_fast_the_later_one_is_chosen),
        cmocka_unit_test(without_instructions_of_its_own_a_precision_takes_the_last_table),
        cmocka_unit_test(the_choice_runs_here_and_lasts_as_long_as_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
