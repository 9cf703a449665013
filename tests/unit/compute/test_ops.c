#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "compute/ops.h"

/* Each table of this machine against plain loops in float64, which stand here once more and independently. Outputs start as
 * NaN, so an element that a kernel forgets fails. */

static float *fill(size_t n, uint64_t seed, float size)
{
    float *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        x[i] = size * ((float)dp_rng_below(&rng, 20001) / 10000.0F - 1.0F);
    }
    return x;
}

static float *poison(size_t n)
{
    float *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        x[i] = NAN;
    }
    return x;
}

/* Aligned room for kernels that ask for it. */
static float *room(size_t n)
{
    float *x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        x[i] = NAN;
    }
    return x;
}

static void check(const dp_ops *ops, const char *what, double got, double right, double tolerance)
{
    if (!(fabs(got - right) <= tolerance)) { /* also when either is NaN */
        fail_msg("%s %s: %.9g, right %.9g", ops->name, what, got, right);
    }
}

static const size_t sizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

/* transposed: b is [n][k]; deep: a is [k][m] (a_depth != 1). */
static void check_gemm(const dp_ops *ops, size_t m, size_t n, size_t k, bool transposed, bool deep)
{
    float *a = fill(m * k, 1, 1.0F);
    float *b = fill(n * k, 2, 1.0F);
    float *add = fill(m * n, 3, 1.0F);
    float *bias = fill(n, 4, 1.0F);
    float *c = poison(m * n);
    float *packed = room(dp_packed_floats(ops, k, n));
    ops->pack(b, transposed ? k : n, transposed, k, n, packed);
    ops->gemm(&(dp_gemm){.m = m,
                         .n = n,
                         .k = k,
                         .a = a,
                         .a_row = deep ? 1 : k,
                         .a_depth = deep ? m : 1,
                         .packed = packed,
                         .c = c,
                         .ldc = n,
                         .add = add,
                         .ld_add = n,
                         .bias = bias});
    for (size_t row = 0; row < m; row++) {
        for (size_t j = 0; j < n; j++) {
            double sum = (double)bias[j] + (double)add[row * n + j];
            for (size_t i = 0; i < k; i++) {
                sum += (double)a[deep ? i * m + row : row * k + i] *
                       (double)b[transposed ? j * k + i : i * n + j];
            }
            check(ops, "gemm", (double)c[row * n + j], sum, 1e-6 * sqrt((double)k) + 2e-6);
        }
    }
    free(a);
    free(b);
    free(add);
    free(bias);
    free(c);
    free(packed);
}

static void products_are_right_for_odd_shapes(void **state)
{
    (void)state;
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        for (size_t i = 0; i < N_SIZES; i++) {
            for (size_t j = 0; j < N_SIZES; j++) {
                check_gemm(dp_ops_at(o), sizes[i], sizes[j], sizes[(i + j) % N_SIZES], j % 2 == 0,
                           i % 2 == 0);
            }
        }
        check_gemm(dp_ops_at(o), 9, 33, DP_OPS_DEPTH + 1, false, false);
        check_gemm(dp_ops_at(o), 9, 33, 2 * DP_OPS_DEPTH, true, true);
    }
}

static void check_weight_tile(const dp_ops *ops, size_t m, size_t n, size_t k)
{
    float *a = fill(m * k, 5, 1.0F);
    float *b = fill(n * k, 6, 1.0F);
    float *c = fill(m * n, 7, 1.0F);
    float *before = fill(m * n, 7, 1.0F);
    float *scratch = room(DP_OPS_TILE_SCRATCH);
    ops->gemm_tn(&(dp_gemm_tn){m, n, k, a, m, b, n, c, n, scratch});
    for (size_t row = 0; row < m; row++) {
        for (size_t j = 0; j < n; j++) {
            double sum = (double)before[row * n + j];
            for (size_t i = 0; i < k; i++) {
                sum += (double)a[i * m + row] * (double)b[i * n + j];
            }
            check(ops, "gemm_tn", (double)c[row * n + j], sum, 1e-6 * sqrt((double)k) + 2e-6);
        }
    }
    free(a);
    free(b);
    free(c);
    free(before);
    free(scratch);
}

static void weight_gradient_tiles_add_up(void **state)
{
    (void)state;
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        check_weight_tile(dp_ops_at(o), 1, 1, 1);
        check_weight_tile(dp_ops_at(o), 17, 33, 300);
        check_weight_tile(dp_ops_at(o), DP_OPS_TILE, DP_OPS_TILE, 31);
        check_weight_tile(dp_ops_at(o), DP_OPS_TILE - 1, 5, 2 * DP_OPS_DEPTH);
    }
}

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
            /* rstd is about 300 where all x are equal (n = 1), and what cancels is magnified by it. */
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

/* Writes the softmax of one query's scores and its output row. */
static void attention_row(const float *qkv, size_t row, size_t head, double *p, double *out)
{
    double sum = 0.0;
    for (size_t key = 0; key <= row; key++) {
        double score = 0.0;
        for (size_t i = 0; i < head; i++) {
            score += (double)qkv[row * 3 * head + i] * (double)qkv[key * 3 * head + head + i];
        }
        p[key] = exp(score / sqrt((double)head));
        sum += p[key];
    }
    for (size_t i = 0; i < head; i++) {
        out[i] = 0.0;
    }
    for (size_t key = 0; key <= row; key++) {
        p[key] /= sum;
        for (size_t i = 0; i < head; i++) {
            out[i] += p[key] * (double)qkv[key * 3 * head + 2 * head + i];
        }
    }
}

/* One row's share of d_qkv, which starts at 0. */
static void attention_row_back(const float *qkv, const float *d_out, size_t row, size_t head,
                               const double *p, const double *out, double *d_qkv)
{
    const double scale = 1.0 / sqrt((double)head);
    for (size_t key = 0; key <= row; key++) {
        double dp = 0.0;
        for (size_t i = 0; i < head; i++) {
            dp += (double)d_out[row * head + i] *
                  ((double)qkv[key * 3 * head + 2 * head + i] - out[i]);
        }
        const double ds = p[key] * dp * scale;
        for (size_t i = 0; i < head; i++) {
            d_qkv[row * 3 * head + i] += ds * (double)qkv[key * 3 * head + head + i];
            d_qkv[key * 3 * head + head + i] += ds * (double)qkv[row * 3 * head + i];
            d_qkv[key * 3 * head + 2 * head + i] += p[key] * (double)d_out[row * head + i];
        }
    }
}

static void check_attention(const dp_ops *ops, size_t length, size_t head)
{
    const size_t n = length * head;
    float *qkv = fill(3 * n, 13, 1.5F);
    float *d_out = fill(n, 14, 1.0F);
    float *out = poison(n);
    float *lse = poison(length);
    float *d_qkv = poison(3 * n);
    float *scratch = room(dp_attention_scratch(length, head));
    double *right = calloc(3 * n + length + head, sizeof *right);
    double *p = right + 3 * n;
    double *row_out = p + length;
    const dp_attention attention = {.length = length,
                                    .head = head,
                                    .q = qkv,
                                    .k = qkv + head,
                                    .v = qkv + 2 * head,
                                    .ld_qkv = 3 * head,
                                    .out = out,
                                    .ld_out = head,
                                    .lse = lse,
                                    .d_out = d_out,
                                    .dq = d_qkv,
                                    .dk = d_qkv + head,
                                    .dv = d_qkv + 2 * head,
                                    .scratch = scratch};
    ops->attention_forward(&attention);
    ops->attention_backward(&attention);
    for (size_t row = 0; row < length; row++) {
        attention_row(qkv, row, head, p, row_out);
        for (size_t i = 0; i < head; i++) {
            check(ops, "attention", (double)out[row * head + i], row_out[i], 5e-6);
        }
        attention_row_back(qkv, d_out, row, head, p, row_out, right);
    }
    for (size_t i = 0; i < 3 * n; i++) {
        check(ops, "attention gradient", (double)d_qkv[i], right[i], 2e-5);
    }
    float *all[] = {qkv, d_out, out, lse, d_qkv, scratch};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
    free(right);
}

static void attention_is_right_for_odd_lengths_and_heads(void **state)
{
    (void)state;
    const size_t lengths[] = {1, 2, 17, 31, 32, 33, 65, 100};
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            check_attention(dp_ops_at(o), lengths[i], 16);
            check_attention(dp_ops_at(o), lengths[i], 7);
        }
        check_attention(dp_ops_at(o), 300, 64);
    }
}

static void attention_does_not_overflow_on_huge_scores(void **state)
{
    (void)state;
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        float qkv[3 * 4 * 8];
        float out[4 * 8];
        float lse[4];
        for (size_t i = 0; i < sizeof qkv / sizeof qkv[0]; i++) {
            qkv[i] = i % 24 < 16 ? 100.0F : 1.0F + (float)(i / 24);
        }
        float *scratch = room(dp_attention_scratch(4, 8));
        const dp_attention attention = {.length = 4,
                                        .head = 8,
                                        .q = qkv,
                                        .k = qkv + 8,
                                        .v = qkv + 16,
                                        .ld_qkv = 24,
                                        .out = out,
                                        .ld_out = 8,
                                        .lse = lse,
                                        .scratch = scratch};
        dp_ops_at(o)->attention_forward(&attention);
        check(dp_ops_at(o), "mean of equals", (double)out[3 * 8], 2.5, 1e-5);
        free(scratch);
    }
}

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
        ops->gelu_forward(x, y, N);
        ops->gelu_backward(x, again, dy, N);
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

static void check_classifier(const dp_ops *ops, size_t rows, size_t vocab, float size)
{
    float *logits = fill(rows * vocab, 15, size);
    float *before = fill(rows * vocab, 15, size);
    float *spoiled = fill(rows * vocab, 15, size);
    float *losses = poison(rows);
    float *alone = poison(rows);
    uint16_t *targets = calloc(rows, sizeof *targets);
    const float scale = 0.125F;
    for (size_t row = 0; row < rows; row++) {
        targets[row] = (uint16_t)(row * 7919 % vocab);
    }
    ops->classifier(logits, targets, rows, vocab, scale, losses);
    ops->classifier(spoiled, targets, rows, vocab, 0.0F, alone);
    assert_memory_equal(losses, alone, rows * sizeof *losses);
    for (size_t row = 0; row < rows; row++) {
        const float *x = before + row * vocab;
        double sum = 0.0;
        for (size_t i = 0; i < vocab; i++) {
            sum += exp((double)x[i] - (double)size);
        }
        const double loss = log(sum) + (double)size - (double)x[targets[row]];
        check(ops, "loss", (double)losses[row], loss, 1e-6 * (1.0 + (double)size));
        for (size_t i = 0; i < vocab; i++) {
            const double p = exp((double)x[i] - (double)size) / sum;
            const double right = (double)scale * (p - (i == targets[row] ? 1.0 : 0.0));
            check(ops, "d_logit", (double)logits[row * vocab + i], right,
                  1e-7 + 2e-6 * fabs(right));
        }
    }
    free(logits);
    free(before);
    free(spoiled);
    free(losses);
    free(alone);
    free(targets);
}

static void classifier_is_right_for_odd_vocabularies(void **state)
{
    (void)state;
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        for (size_t i = 1; i < N_SIZES; i++) {
            check_classifier(dp_ops_at(o), 3, sizes[i], 3.0F);
        }
        check_classifier(dp_ops_at(o), 2, 1027, 60.0F);
    }
}

/* A NaN in place of each element in turn must show in the result. */
static void nan_never_passes(void **state)
{
    (void)state;
    enum { N = 37 };
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        const dp_ops *ops = dp_ops_at(o);
        for (size_t bad = 0; bad < N; bad++) {
            float x[N] = {0};
            float y[N] = {0};
            float dy[N] = {0};
            float loss = 0.0F;
            const uint16_t target = (uint16_t)((bad + 1) % N);
            union {
                uint32_t bits;
                float value;
            } nan_with_payload = {.bits = 0x7fc00001U + (uint32_t)bad};
            x[bad] = nan_with_payload.value;
            assert_true(isnan(ops->sum_of_squares(x, N)));
            ops->gelu_forward(x, y, N);
            assert_true(isnan(y[bad]) && !isnan(y[target]));
            ops->gelu_backward(x, y, dy, N);
            assert_true(isnan(y[bad]) && isnan(dy[bad]));
            ops->classifier(x, &target, 1, N, 1.0F, &loss);
            assert_true(isnan(loss));
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

static void packing_a_longer_b_serves_a_shorter_product(void **state)
{
    (void)state;
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        const dp_ops *ops = dp_ops_at(o);
        enum { N = 70, DEPTH = 9, SHORT = 4 };
        float *b = fill((size_t)N * DEPTH, 17, 1.0F);
        float *a = fill(SHORT, 18, 1.0F);
        float *packed = room(dp_packed_floats(ops, DEPTH, N));
        float c[N];
        ops->pack(b, N, false, DEPTH, N, packed);
        ops->gemm(&(dp_gemm){.m = 1,
                             .n = N,
                             .k = SHORT,
                             .a = a,
                             .a_row = SHORT,
                             .a_depth = 1,
                             .packed = packed,
                             .packed_depth = DEPTH,
                             .c = c,
                             .ldc = N});
        for (size_t j = 0; j < N; j++) {
            double sum = 0.0;
            for (size_t i = 0; i < SHORT; i++) {
                sum += (double)a[i] * (double)b[i * N + j];
            }
            check(ops, "short product", (double)c[j], sum, 1e-6);
        }
        free(a);
        free(b);
        free(packed);
    }
}

static void the_best_table_is_the_last_that_runs_here(void **state)
{
    (void)state;
    size_t count = 0;
    while (dp_ops_at(count) != NULL) {
        count++;
    }
    assert_true(count >= 2);
    assert_ptr_equal(dp_ops_at(0), dp_ops_reference());
    assert_ptr_equal(dp_ops_at(count - 1), dp_ops_best());
    assert_null(dp_ops_at(SIZE_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right_for_odd_shapes),
        cmocka_unit_test(weight_gradient_tiles_add_up),
        cmocka_unit_test(layer_norm_is_right_for_odd_widths),
        cmocka_unit_test(attention_is_right_for_odd_lengths_and_heads),
        cmocka_unit_test(attention_does_not_overflow_on_huge_scores),
        cmocka_unit_test(gelu_is_right_from_far_left_to_far_right),
        cmocka_unit_test(classifier_is_right_for_odd_vocabularies),
        cmocka_unit_test(nan_never_passes),
        cmocka_unit_test(columns_and_rows_add_up),
        cmocka_unit_test(packing_a_longer_b_serves_a_shorter_product),
        cmocka_unit_test(the_best_table_is_the_last_that_runs_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
