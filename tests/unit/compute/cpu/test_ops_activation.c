#include "tests/unit/compute/ops_check.h"

static void gelu_is_right_from_far_left_to_far_right(void **state)
{
    (void)state;
    enum { N = 4003 };
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        const dp_ops *ops = dp_ops_at(o);
        float *x = calloc(N, sizeof *x);
        float *y = poison(N);
        float *again = poison(N);
        float *dy = calloc(N, sizeof *dy);
        for (size_t i = 0; i < N; i++) {
            x[i] = ((float)i - 2001.0F) / 100.0F;
            dy[i] = 2.0F;
        }
        ops->activations[DP_GELU].forward(x, 1, N, y);
        ops->activations[DP_GELU].backward(x, 1, N, again, dy);
        for (size_t i = 0; i < N; i++) {
            const double v = (double)x[i];
            const double t = tanh(sqrt(2.0 / M_PI) * (v + 0.044715 * v * v * v));
            const double slope = 0.5 * (1.0 + t) + 0.5 * v * (1.0 - t * t) * sqrt(2.0 / M_PI) *
                                                       (1.0 + 3.0 * 0.044715 * v * v);
            check(ops, "gelu", (double)y[i], 0.5 * v * (1.0 + t), 4e-7 * (1.0 + fabs(v)));
            check(ops, "gelu slope", (double)dy[i], 2.0 * slope, 4e-6);
            assert_true(again[i] == y[i]);
        }
        free(x);
        free(y);
        free(again);
        free(dy);
    }
}

static void gelu_by_erf_is_right_from_far_left_to_far_right(void **state)
{
    (void)state;
    enum { N = 4003 };
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        const dp_ops *ops = dp_ops_at(o);
        float *x = calloc(N, sizeof *x);
        float *y = poison(N);
        float *again = poison(N);
        float *dy = calloc(N, sizeof *dy);
        for (size_t i = 0; i < N; i++) {
            x[i] = ((float)i - 2001.0F) / 100.0F;
            dy[i] = 2.0F;
        }
        ops->activations[DP_GELU_ERF].forward(x, 1, N, y);
        ops->activations[DP_GELU_ERF].backward(x, 1, N, again, dy);
        for (size_t i = 0; i < N; i++) {
            const double v = (double)x[i];
            const double share = 0.5 * (1.0 + erf(v / sqrt(2.0)));
            const double slope = share + v * exp(-0.5 * v * v) / sqrt(2.0 * M_PI);
            check(ops, "gelu_erf", (double)y[i], v * share, 4e-7 * (1.0 + fabs(v)));
            check(ops, "gelu_erf slope", (double)dy[i], 2.0 * slope, 4e-6);
            assert_true(again[i] == y[i]);
        }
        free(x);
        free(y);
        free(again);
        free(dy);
    }
}

static void relu2_is_the_square_of_what_is_positive(void **state)
{
    (void)state;
    enum { ROWS = 3, N = 37 };
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        const dp_activation *relu2 = &dp_ops_at(o)->activations[DP_RELU2];
        float *x = fill((size_t)ROWS * N, 21, 3.0F);
        float *d = fill((size_t)ROWS * N, 22, 1.0F);
        float *dy = fill((size_t)ROWS * N, 22, 1.0F);
        float *y = poison((size_t)ROWS * N);
        float *again = poison((size_t)ROWS * N);
        relu2->forward(x, ROWS, N, y);
        relu2->backward(x, ROWS, N, again, d);
        for (size_t i = 0; i < (size_t)ROWS * N; i++) {
            const double v = fmax((double)x[i], 0.0);
            check(dp_ops_at(o), "relu2", (double)y[i], v * v, 1e-6);
            check(dp_ops_at(o), "relu2 slope", (double)d[i], 2.0 * v * (double)dy[i], 1e-6);
            assert_true(again[i] == y[i]);
        }
        free(x);
        free(d);
        free(dy);
        free(y);
        free(again);
    }
}

/* The value and the slope of a gate. */
static void gate_of(dp_activation_kind kind, double x, double *value, double *slope)
{
    const double s = 1.0 / (1.0 + exp(-x));
    const double u = sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x);
    const double t = tanh(u);
    const bool silu = kind == DP_SWIGLU;
    *value = silu ? x * s : 0.5 * x * (1.0 + t);
    *slope = silu ? s + x * s * (1.0 - s)
                  : 0.5 * (1.0 + t) +
                        0.5 * x * (1.0 - t * t) * sqrt(2.0 / M_PI) * (1.0 + 3.0 * 0.044715 * x * x);
}

static void check_gated(const dp_ops *ops, dp_activation_kind kind, size_t rows, size_t n,
                        float size)
{
    const dp_activation *gated = &ops->activations[kind];
    float *x = fill(2 * rows * n, 23, size);
    float *d = poison(2 * rows * n);
    float *dy = fill(rows * n, 24, 1.0F);
    float *y = poison(rows * n);
    float *again = poison(rows * n);
    for (size_t i = 0; i < rows * n; i++) {
        d[i / n * 2 * n + i % n] = dy[i]; /* The places of d_up are not read. */
    }
    assert_int_equal(gated->inputs, 2);
    gated->forward(x, rows, n, y);
    gated->backward(x, rows, n, again, d);
    for (size_t i = 0; i < rows * n; i++) {
        const size_t at = i / n * 2 * n + i % n;
        const double gate = (double)x[at];
        const double up = (double)x[at + n];
        double value = 0.0;
        double slope = 0.0;
        gate_of(kind, gate, &value, &slope);
        const double limit = 1e-6 * (1.0 + (double)size * (double)size);
        check(ops, "gated", (double)y[i], value * up, limit);
        check(ops, "gated d_gate", (double)d[at], (double)dy[i] * up * slope, limit);
        check(ops, "gated d_up", (double)d[at + n], (double)dy[i] * value, limit);
        assert_true(again[i] == y[i]);
    }
    free(x);
    free(d);
    free(dy);
    free(y);
    free(again);
}

static void gated_activations_are_right_for_odd_widths_and_far_gates(void **state)
{
    (void)state;
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        for (size_t i = 0; i < N_SIZES; i++) {
            check_gated(dp_ops_at(o), DP_SWIGLU, 3, sizes[i], 4.0F);
            check_gated(dp_ops_at(o), DP_GEGLU, 3, sizes[i], 4.0F);
        }
        check_gated(dp_ops_at(o), DP_SWIGLU, 2, 300, 200.0F);
        check_gated(dp_ops_at(o), DP_GEGLU, 2, 300, 200.0F);
    }
}

static void a_nan_passes_through_every_activation(void **state)
{
    (void)state;
    enum { N = 19 };
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        for (size_t kind = 0; kind < DP_ACTIVATION_KINDS; kind++) {
            const dp_activation *activation = &dp_ops_at(o)->activations[kind];
            for (size_t bad = 0; bad < activation->inputs * N; bad++) {
                float x[2 * N];
                float d[2 * N];
                float y[N];
                for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) {
                    x[i] = 1.0F;
                    d[i] = 1.0F;
                }
                x[bad] = NAN;
                activation->forward(x, 1, N, y);
                for (size_t i = 0; i < N; i++) {
                    assert_true(isnan(y[i]) == (i == bad % N));
                }
                activation->backward(x, 1, N, y, d);
                assert_true(isnan(y[bad % N]) && isnan(d[bad % N]));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gelu_is_right_from_far_left_to_far_right),
        cmocka_unit_test(gelu_by_erf_is_right_from_far_left_to_far_right),
        cmocka_unit_test(relu2_is_the_square_of_what_is_positive),
        cmocka_unit_test(gated_activations_are_right_for_odd_widths_and_far_gates),
        cmocka_unit_test(a_nan_passes_through_every_activation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
