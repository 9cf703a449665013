#include "tests/unit/compute/ops_check.h"

/* cap 0: none. */
static void check_classifier(const dp_ops *ops, size_t rows, size_t vocab, float size, float cap)
{
    float *logits = fill(rows * vocab, 15, size);
    float *before = fill(rows * vocab, 15, size);
    float *spoiled = fill(rows * vocab, 15, size);
    float *losses = poison(rows);
    float *alone = poison(rows);
    uint32_t *targets = calloc(rows, sizeof *targets);
    double *z = calloc(2 * vocab, sizeof *z); /* capped logits, then their slopes */
    const float scale = 0.125F;
    for (size_t row = 0; row < rows; row++) {
        targets[row] = (uint32_t)(row * 7919 % vocab);
    }
    dp_classifier c = {logits, targets, rows, vocab, cap, scale, losses};
    ops->classifier(&c);
    c.logits = spoiled;
    c.losses = alone;
    c.scale = 0.0F;
    ops->classifier(&c);
    assert_memory_equal(losses, alone, rows * sizeof *losses);
    for (size_t row = 0; row < rows; row++) {
        double sum = 0.0;
        for (size_t i = 0; i < vocab; i++) {
            const double x = (double)before[row * vocab + i];
            const double t = cap == 0.0F ? 0.0 : tanh(x / (double)cap);
            z[i] = cap == 0.0F ? x : (double)cap * t;
            z[vocab + i] = 1.0 - t * t;
            sum += exp(z[i] - (double)size);
        }
        const double loss = log(sum) + (double)size - z[targets[row]];
        check(ops, "loss", (double)losses[row], loss, 1e-6 * (1.0 + (double)size));
        for (size_t i = 0; i < vocab; i++) {
            const double p = exp(z[i] - (double)size) / sum;
            const double right =
                (double)scale * (p - (i == targets[row] ? 1.0 : 0.0)) * z[vocab + i];
            /* A capped logit is off by up to 2e-7 of the cap. */
            check(ops, "d_logit", (double)logits[row * vocab + i], right,
                  1e-7 + (2e-6 + 4e-7 * (double)cap) * fabs(right));
        }
    }
    free(logits);
    free(before);
    free(spoiled);
    free(losses);
    free(alone);
    free(targets);
    free(z);
}

static void classifier_is_right_for_odd_vocabularies(void **state)
{
    (void)state;
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        for (size_t i = 1; i < N_SIZES; i++) {
            check_classifier(dp_ops_at(o), 3, sizes[i], 3.0F, 0.0F);
            check_classifier(dp_ops_at(o), 3, sizes[i], 3.0F, 2.5F);
        }
        check_classifier(dp_ops_at(o), 2, 1027, 60.0F, 0.0F);
        check_classifier(dp_ops_at(o), 2, 1027, 60.0F, 30.0F);
        check_classifier(dp_ops_at(o), 1, 262144, 4.0F, 0.0F);
    }
}

static void a_soft_cap_is_the_tanh_from_nothing_to_far_beyond(void **state)
{
    (void)state;
    enum { N = 4003 };
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        float *x = calloc(N, sizeof *x);
        assert_non_null(x);
        for (size_t i = 0; i < N; i++) {
            const float step = ((float)i - 2001.0F) / 2001.0F;
            x[i] = 300.0F * step * step * step;
        }
        x[7] = NAN;
        dp_ops_at(o)->softcap(x, N, 30.0F);
        assert_true(isnan(x[7]));
        for (size_t i = 0; i < N; i++) {
            const float step = ((float)i - 2001.0F) / 2001.0F;
            const double right = 30.0 * tanh((double)(300.0F * step * step * step) / 30.0);
            if (i != 7) {
                check(dp_ops_at(o), "softcap", (double)x[i], right, 1e-6 * fabs(right) + 1e-12);
            }
        }
        free(x);
    }
}

/* A NaN in place of each element in turn must show in the result. */
static void nan_never_gets_lost(void **state)
{
    (void)state;
    enum { N = 37 };
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        const dp_ops *ops = dp_ops_at(o);
        for (size_t bad = 0; bad < N; bad++) {
            float x[N] = {0};
            float loss = 0.0F;
            const uint32_t target = (uint32_t)((bad + 1) % N);
            union {
                uint32_t bits;
                float value;
            } nan_with_payload = {.bits = 0x7fc00001U + (uint32_t)bad};
            x[bad] = nan_with_payload.value;
            assert_true(isnan(ops->sum_of_squares(x, N)));
            for (size_t capped = 0; capped < 2; capped++) {
                float logits[N];
                memcpy(logits, x, sizeof logits);
                ops->classifier(&(dp_classifier){.logits = logits,
                                                 .targets = &target,
                                                 .rows = 1,
                                                 .vocab = N,
                                                 .softcap = capped == 1 ? 5.0F : 0.0F,
                                                 .scale = 1.0F,
                                                 .losses = &loss});
                assert_true(isnan(loss));
            }
        }
    }
}

static void columns_and_rows_add_up(void **state)
{
    (void)state;
    enum { ROWS = 5, N = 53 };
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        const dp_ops *ops = dp_ops_at(o);
        float *x = fill((size_t)ROWS * N, 16, 1.0F);
        float sum[N] = {0};
        float y[N];
        ops->add_columns(x, N, ROWS, 3, N, sum);
        memcpy(y, x, sizeof y);
        ops->add(x + N, y, N);
        for (size_t i = 0; i < N; i++) {
            double right = 0.0;
            for (size_t row = 0; row < ROWS && i >= 3; row++) {
                right += (double)x[row * N + i];
            }
            check(ops, "column", (double)sum[i], right, 1e-6);
            assert_true(y[i] == x[i] + x[N + i]);
        }
        double squares = 0.0;
        for (size_t i = 0; i < (size_t)ROWS * N; i++) {
            squares += (double)x[i] * (double)x[i];
        }
        check(ops, "squares", ops->sum_of_squares(x, (size_t)ROWS * N), squares, 1e-5);
        free(x);
    }
}

static void a_list_of_tables_begins_with_the_reference(void **state)
{
    (void)state;
    size_t count = 0;
    while (dp_ops_at(count) != NULL) {
        count++;
    }
    assert_true(count >= 2);
    assert_ptr_equal(dp_ops_at(0), dp_ops_reference());
    assert_null(dp_ops_at(SIZE_MAX));
}

/* A choice that a busy machine can change would give a process other bits than the last one. */
static void a_precision_takes_the_last_table_but_intels_slow_instructions(void **state)
{
    (void)state;
    for (int p = 0; p < DP_PRECISIONS; p++) {
        const dp_precision precision = (dp_precision)p;
        size_t last = 1;
        while (dp_ops_at_in(precision, last + 1) != NULL) {
            last++;
        }
#if defined(__x86_64__)
        if (strcmp(dp_ops_at_in(precision, last)->name, "avx512bf16") == 0 &&
            __builtin_cpu_is("intel")) {
            last--;
        }
#endif
        assert_ptr_equal(dp_ops_best_in(precision), dp_ops_at_in(precision, last));
        assert_int_equal(dp_ops_best_in(precision)->precision, precision);
    }
    assert_ptr_equal(dp_ops_best(), dp_ops_best_in(DP_FP32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classifier_is_right_for_odd_vocabularies),
        cmocka_unit_test(a_soft_cap_is_the_tanh_from_nothing_to_far_beyond),
        cmocka_unit_test(nan_never_gets_lost),
        cmocka_unit_test(columns_and_rows_add_up),
        cmocka_unit_test(a_list_of_tables_begins_with_the_reference),
        cmocka_unit_test(a_precision_takes_the_last_table_but_intels_slow_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
