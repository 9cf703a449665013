#include "tests/unit/compute/ops_check.h"

static void check_norm(const dp_ops *ops, size_t rows, size_t n)
{
    float *x = fill(rows * n, 8, 2.0F);
    float *gain = fill(n, 9, 1.0F);
    float *bias = fill(n, 10, 1.0F);
    float *dy = fill(rows * n, 11, 1.0F);
    float *residual = fill(rows * n, 12, 1.0F);
    float *mean = poison(rows);
    float *rstd = poison(rows);
    float *y = poison(rows * n);
    float *again = poison(rows * n);
    float *dx = poison(rows * n);
    float *d_gain = calloc(n, sizeof *d_gain);
    float *d_bias = calloc(n, sizeof *d_bias);
    double *gains = calloc(2 * n, sizeof *gains);
    const dp_norm_rows norm = {rows, n, x, gain, mean, rstd};
    ops->norm_forward(&norm, bias, y);
    ops->norm_again(&norm, bias, again);
    assert_memory_equal(y, again, rows * n * sizeof *y);
    ops->norm_backward(&norm, dy, residual, dx);
    ops->norm_grads(&norm, dy, 0, n / 2, d_gain, d_bias);
    ops->norm_grads(&norm, dy, n / 2, n, d_gain, d_bias);
    for (size_t row = 0; row < rows; row++) {
        double middle = 0.0;
        double variance = 0.0;
        double sum = 0.0;
        double dot = 0.0;
        for (size_t i = 0; i < n; i++) {
            middle += (double)x[row * n + i] / (double)n;
        }
        for (size_t i = 0; i < n; i++) {
            variance += pow((double)x[row * n + i] - middle, 2.0) / (double)n;
        }
        const double scale = 1.0 / sqrt(variance + 1e-5);
        for (size_t i = 0; i < n; i++) {
            const double d = (double)dy[row * n + i] * (double)gain[i];
            sum += d / (double)n;
            dot += d * ((double)x[row * n + i] - middle) * scale / (double)n;
        }
        for (size_t i = 0; i < n; i++) {
            const double unit = ((double)x[row * n + i] - middle) * scale;
            const double d = (double)dy[row * n + i] * (double)gain[i];
            check(ops, "norm", (double)y[row * n + i], unit * (double)gain[i] + (double)bias[i],
                  1e-5);
            /* rstd is about 300 where all x are equal (n = 1), and what cancels is magnified by
             * it. */
            check(ops, "norm dx", (double)dx[row * n + i],
                  (double)residual[row * n + i] + scale * (d - sum - unit * dot),
                  1e-5 + 1e-6 * scale);
            gains[i] += (double)dy[row * n + i] * unit;
            gains[n + i] += (double)dy[row * n + i];
        }
    }
    for (size_t i = 0; i < n; i++) {
        check(ops, "norm gain", (double)d_gain[i], gains[i], 1e-5 * (double)rows);
        check(ops, "norm bias", (double)d_bias[i], gains[n + i], 1e-5 * (double)rows);
    }
    float *all[] = {x, gain, bias, dy, residual, mean, rstd, y, again, dx, d_gain, d_bias};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
    free(gains);
}

static void layer_norm_is_right_for_odd_widths(void **state)
{
    (void)state;
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        for (size_t i = 0; i < N_SIZES; i++) {
            check_norm(dp_ops_at(o), 3, sizes[i]);
        }
        check_norm(dp_ops_at(o), 70, 48);
    }
}

/* rows of groups in wider rows, as the heads of q stand beside those of k and v. */
static void check_rms(const dp_ops *ops, size_t rows, size_t groups, size_t n)
{
    const size_t ld = groups * n + 3;
    const size_t ld_y = groups * n + 1;
    float *x = fill(rows * ld, 8, 2.0F);
    float *gain = fill(n, 9, 1.0F);
    float *dy = fill(rows * ld_y, 11, 1.0F);
    float *residual = fill(rows * ld_y, 12, 1.0F);
    float *rstd = poison(rows * groups);
    float *y = poison(rows * ld_y);
    float *again = poison(rows * ld_y);
    float *dx = poison(rows * ld_y);
    float *in_place = fill(rows * ld_y, 11, 1.0F);
    float *d_gain = calloc(n, sizeof *d_gain);
    double *gains = calloc(n, sizeof *gains);
    const float eps = 1e-6F;
    const dp_rms_rows norm = {rows, groups, n, eps, x, ld, gain, rstd};
    ops->rms_forward(&norm, y, ld_y);
    ops->rms_again(&norm, again, ld_y);
    ops->rms_backward(&norm, dy, residual, dx, ld_y);
    ops->rms_backward(&norm, in_place, NULL, in_place, ld_y);
    ops->rms_grads(&norm, dy, ld_y, 0, n / 2, d_gain);
    ops->rms_grads(&norm, dy, ld_y, n / 2, n, d_gain);
    for (size_t i = 0; i < rows * groups; i++) {
        const float *in = x + i / groups * ld + i % groups * n;
        const size_t at = i / groups * ld_y + i % groups * n;
        double squares = 0.0;
        double dot = 0.0;
        for (size_t j = 0; j < n; j++) {
            squares += (double)in[j] * (double)in[j] / (double)n;
        }
        const double scale = 1.0 / sqrt(squares + (double)eps);
        for (size_t j = 0; j < n; j++) {
            dot += (double)dy[at + j] * (double)gain[j] * (double)in[j] * scale / (double)n;
        }
        for (size_t j = 0; j < n; j++) {
            const double unit = (double)in[j] * scale;
            const double d = scale * ((double)dy[at + j] * (double)gain[j] - unit * dot);
            check(ops, "rms", (double)y[at + j], unit * (double)gain[j], 2e-6);
            assert_true(again[at + j] == y[at + j]);
            /* Where n is 1 everything cancels but what eps leaves. */
            check(ops, "rms dx", (double)dx[at + j], (double)residual[at + j] + d,
                  2e-6 + 1e-6 * scale);
            check(ops, "rms dx in place", (double)in_place[at + j], d, 2e-6 + 1e-6 * scale);
            gains[j] += (double)dy[at + j] * unit;
        }
    }
    for (size_t j = 0; j < n; j++) {
        check(ops, "rms gain", (double)d_gain[j], gains[j], 1e-6 * (double)(rows * groups) + 2e-6);
    }
    for (size_t row = 0; row < rows; row++) {
        assert_true(isnan(y[row * ld_y + ld_y - 1]) && isnan(dx[row * ld_y + ld_y - 1]));
    }
    float *all[] = {x, gain, dy, residual, rstd, y, again, dx, in_place, d_gain};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
    free(gains);
}

static void rms_norm_is_right_for_odd_widths_and_for_heads(void **state)
{
    (void)state;
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        for (size_t i = 0; i < N_SIZES; i++) {
            check_rms(dp_ops_at(o), 3, 1, sizes[i]);
            check_rms(dp_ops_at(o), 2, 3, sizes[i]);
        }
        check_rms(dp_ops_at(o), 70, 2, 48);
    }
}

static void a_nan_in_a_norm_spoils_its_group_and_no_other(void **state)
{
    (void)state;
    enum { N = 19, GROUPS = 3 };
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        for (size_t bad = 0; bad < N; bad++) {
            float x[GROUPS * N];
            float y[GROUPS * N];
            float gain[N];
            float rstd[GROUPS];
            for (size_t i = 0; i < (size_t)GROUPS * N; i++) {
                x[i] = 1.0F + (float)i;
                gain[i % N] = 1.0F;
            }
            x[N + bad] = NAN;
            const dp_rms_rows norm = {1, GROUPS, N, 1e-6F, x, sizeof x / sizeof x[0], gain, rstd};
            dp_ops_at(o)->rms_forward(&norm, y, sizeof y / sizeof y[0]);
            for (size_t i = 0; i < (size_t)GROUPS * N; i++) {
                assert_true(isnan(y[i]) == (i / N == 1));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_norm_is_right_for_odd_widths),
        cmocka_unit_test(rms_norm_is_right_for_odd_widths_and_for_heads),
        cmocka_unit_test(a_nan_in_a_norm_spoils_its_group_and_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
