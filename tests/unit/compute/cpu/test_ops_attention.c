#include "tests/unit/compute/ops_check.h"

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

/* The error that rounding may add: inputs of attention and its probabilities may be rounded to bf16
 * (2^-9 relative) or fp16 (2^-12), the scores of 16 or 64 products of at most 2.25 each then move
 * by about as many steps, and gradients by twice that. */
static double attention_limit(const dp_ops *ops, double limit)
{
    const double steps[DP_PRECISIONS] = {[DP_BF16] = 0x1p-9, [DP_FP16] = 0x1p-12};
    return limit + 20.0 * steps[ops->precision];
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
            check(ops, "attention", (double)out[row * head + i], row_out[i],
                  attention_limit(ops, 5e-6));
        }
        attention_row_back(qkv, d_out, row, head, p, row_out, right);
    }
    for (size_t i = 0; i < 3 * n; i++) {
        check(ops, "attention gradient", (double)d_qkv[i], right[i], attention_limit(ops, 2e-5));
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
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        for (size_t o = 0; dp_ops_at_in(precision, o) != NULL; o++) {
            const dp_ops *ops = dp_ops_at_in(precision, o);
            for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
                check_attention(ops, lengths[i], 16);
                check_attention(ops, lengths[i], 7);
            }
            check_attention(ops, 300, 64);
        }
    }
}

/* Two query heads on one of k and v; q stands apart from them, at a distance of its own. */
static void check_tail(const dp_ops *ops, size_t length, size_t past)
{
    enum { HEAD = 16, GROUPS = 2, QKV = (GROUPS + 2) * HEAD, Q = GROUPS * HEAD, LD_Q = Q + 5 };
    const size_t queries = length - past;
    float *qkv = fill(length * QKV, 13, 1.5F);
    float *out = poison(length * Q);
    float *lse = poison(GROUPS * length);
    float *q = poison(queries * LD_Q);
    float *tail = poison(queries * Q);
    float *tail_lse = poison(GROUPS * queries);
    float *scratch = room(dp_attention_scratch(length, HEAD));
    dp_attention attention = {.length = length,
                              .head = HEAD,
                              .groups = GROUPS,
                              .q = qkv,
                              .k = qkv + Q,
                              .v = qkv + Q + HEAD,
                              .ld_qkv = QKV,
                              .out = out,
                              .ld_out = Q,
                              .lse = lse,
                              .scratch = scratch};
    ops->attention_forward(&attention);
    for (size_t row = 0; row < queries; row++) {
        memcpy(q + row * LD_Q, qkv + (past + row) * QKV, Q * sizeof *q);
    }
    attention.past = past;
    attention.q = q;
    attention.ld_q = LD_Q;
    attention.out = tail;
    attention.lse = tail_lse;
    ops->attention_forward(&attention);
    for (size_t i = 0; i < queries * Q; i++) {
        check(ops, "attention of a tail", (double)tail[i], (double)out[past * Q + i],
              attention_limit(ops, 5e-6));
    }
    for (size_t i = 0; i < GROUPS * queries; i++) {
        check(ops, "sums of a tail", (double)tail_lse[i],
              (double)lse[i / queries * length + past + i % queries], attention_limit(ops, 5e-6));
    }
    float *all[] = {qkv, out, lse, q, tail, tail_lse, scratch};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
}

static void queries_may_begin_behind_the_first_key(void **state)
{
    (void)state;
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        for (size_t o = 0; dp_ops_at_in(precision, o) != NULL; o++) {
            const dp_ops *ops = dp_ops_at_in(precision, o);
            check_tail(ops, 100, 99);
            check_tail(ops, 100, 1);
            check_tail(ops, 130, 31);
            check_tail(ops, 65, 47);
        }
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

/* Groups of query heads, q and k in rows of their own width, v among other columns. */
static void check_grouped_attention(const dp_ops *ops, size_t length, size_t head, size_t groups)
{
    const size_t ld_qk = (groups + 1) * head + 5;
    const size_t ld = (groups + 2) * head + 2;
    const size_t wide = groups * head;
    float *qk = fill(length * ld_qk, 13, 1.5F);
    float *qkv = fill(length * ld, 19, 1.5F);
    float *d_out = fill(length * wide, 14, 1.0F);
    float *out = poison(length * wide);
    float *lse = poison(length * groups);
    float *d_qkv = poison(length * ld);
    float *one = calloc(3 * length * head, sizeof *one);
    float *scratch = room(dp_attention_scratch(length, head));
    double *right = calloc(3 * length * head + length + head, sizeof *right);
    double *dkv = calloc(2 * length * head, sizeof *dkv);
    const dp_attention attention = {.length = length,
                                    .head = head,
                                    .groups = groups,
                                    .q = qk,
                                    .k = qk + groups * head,
                                    .v = qkv + (groups + 1) * head,
                                    .ld_qkv = ld,
                                    .ld_qk = ld_qk,
                                    .out = out,
                                    .ld_out = wide,
                                    .lse = lse,
                                    .d_out = d_out,
                                    .dq = d_qkv,
                                    .dk = d_qkv + groups * head,
                                    .dv = d_qkv + (groups + 1) * head,
                                    .scratch = scratch};
    ops->attention_forward(&attention);
    ops->attention_backward(&attention);
    for (size_t g = 0; g < groups; g++) {
        double *p = right + 3 * length * head;
        memset(right, 0, 3 * length * head * sizeof *right);
        float *d_one = calloc(length * head, sizeof *d_one);
        for (size_t i = 0; i < length * head; i++) { /* The problem of this query head alone. */
            const size_t row = i / head;
            float *to = one + row * 3 * head + i % head;
            to[0] = qk[row * ld_qk + g * head + i % head];
            to[head] = qk[row * ld_qk + groups * head + i % head];
            to[2 * head] = qkv[row * ld + (groups + 1) * head + i % head];
            d_one[i] = d_out[row * wide + g * head + i % head];
        }
        for (size_t row = 0; row < length; row++) {
            attention_row(one, row, head, p, p + length);
            for (size_t i = 0; i < head; i++) {
                check(ops, "grouped attention", (double)out[row * wide + g * head + i],
                      p[length + i], attention_limit(ops, 5e-6));
            }
            attention_row_back(one, d_one, row, head, p, p + length, right);
        }
        for (size_t i = 0; i < length * head; i++) {
            const size_t row = i / head;
            const double *from = right + row * 3 * head + i % head;
            check(ops, "grouped dq", (double)d_qkv[row * ld + g * head + i % head], from[0],
                  attention_limit(ops, 2e-5));
            dkv[i] += from[head];
            dkv[length * head + i] += from[2 * head];
        }
        free(d_one);
    }
    for (size_t i = 0; i < length * head; i++) {
        const float *from = d_qkv + i / head * ld + groups * head + i % head;
        check(ops, "grouped dk", (double)from[0], dkv[i],
              (double)groups * attention_limit(ops, 2e-5));
        check(ops, "grouped dv", (double)from[head], dkv[length * head + i],
              (double)groups * attention_limit(ops, 2e-5));
    }
    float *all[] = {qk, qkv, d_out, out, lse, d_qkv, one, scratch};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
    free(right);
    free(dkv);
}

static void query_heads_that_share_k_and_v_add_up_their_gradients(void **state)
{
    (void)state;
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        for (size_t o = 0; dp_ops_at_in(precision, o) != NULL; o++) {
            const dp_ops *ops = dp_ops_at_in(precision, o);
            check_grouped_attention(ops, 1, 8, 3);
            check_grouped_attention(ops, 17, 7, 2);
            check_grouped_attention(ops, 65, 16, 4);
            check_grouped_attention(ops, 50, 33, 1);
        }
    }
}

/* Position p of pair i turns by p * theta^(-2i/width); positions start again after each
 * sequence. */
static void check_rope(const dp_ops *ops, size_t groups, size_t width)
{
    enum { ROWS = 13, LENGTH = 5, FIRST = 3 };
    const size_t ld = groups * width + 2;
    float *angles = poison(LENGTH * width);
    float *x = fill(ROWS * ld, 20, 1.0F);
    float *before = fill(ROWS * ld, 20, 1.0F);
    dp_rope_angles(&(dp_rope_turns){.theta = 500.0, .width = width}, LENGTH, angles);
    const dp_rope_rows rope = {.rows = ROWS,
                               .groups = groups,
                               .width = width,
                               .x = x,
                               .ld = ld,
                               .angles = angles,
                               .first = FIRST,
                               .length = LENGTH};
    ops->rope(&rope, false);
    for (size_t row = 0; row < ROWS; row++) {
        for (size_t i = 0; i < groups * width; i++) {
            const size_t pair = i % width % (width / 2);
            const double turn =
                (double)((FIRST + row) % LENGTH) * pow(500.0, -2.0 * (double)pair / (double)width);
            const float *head = before + row * ld + i / width * width;
            const double a = (double)head[pair];
            const double b = (double)head[pair + width / 2];
            const double right =
                i % width == pair ? a * cos(turn) - b * sin(turn) : b * cos(turn) + a * sin(turn);
            check(ops, "rope", (double)x[row * ld + i], right, 5e-7);
        }
        assert_true(x[row * ld + ld - 1] == before[row * ld + ld - 1]);
    }
    ops->rope(&rope, true);
    for (size_t i = 0; i < ROWS * ld; i++) {
        check(ops, "rope and back", (double)x[i], (double)before[i], 1e-6);
    }
    free(angles);
    free(x);
    free(before);
}

static void rotary_positions_turn_pairs_and_back(void **state)
{
    (void)state;
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        check_rope(dp_ops_at(o), 1, 2);
        check_rope(dp_ops_at(o), 3, 6);
        check_rope(dp_ops_at(o), 2, 34);
        check_rope(dp_ops_at(o), 2, 64);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_is_right_for_odd_lengths_and_heads),
        cmocka_unit_test(queries_may_begin_behind_the_first_key),
        cmocka_unit_test(attention_does_not_overflow_on_huge_scores),
        cmocka_unit_test(query_heads_that_share_k_and_v_add_up_their_gradients),
        cmocka_unit_test(rotary_positions_turn_pairs_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
