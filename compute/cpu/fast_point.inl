/* Operations element by element: sums of columns, AdamW, sums of squares. */

/* Columns that a pass over the rows takes: whole cache lines, several at once. */
#define DP_COLUMN_VECS 4
#define DP_COLUMNS (DP_COLUMN_VECS * DP_LANES)

static void fast_add_columns(const float *x, size_t ld, size_t rows, size_t first, size_t last,
                             float *sum)
{
    size_t column = first;
    for (; column + DP_COLUMNS <= last; column += DP_COLUMNS) {
        dp_vec total[DP_COLUMN_VECS] = {{0}};
        for (size_t row = 0; row < rows; row++) {
#pragma GCC unroll 4
            for (size_t j = 0; j < DP_COLUMN_VECS; j++) {
                total[j] += dp_vec_load(x + row * ld + column + j * DP_LANES);
            }
        }
        for (size_t j = 0; j < DP_COLUMN_VECS; j++) {
            float *to = sum + column + j * DP_LANES;
            dp_vec_store(to, dp_vec_load(to) + total[j]);
        }
    }
    for (; column < last; column++) {
        float total = 0.0F;
        for (size_t row = 0; row < rows; row++) {
            total += x[row * ld + column];
        }
        sum[column] += total;
    }
}

static void fast_add(const float *x, float *y, size_t n)
{
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        dp_vec_store(y + i, dp_vec_load(y + i) + dp_vec_load(x + i));
    }
    for (; i < n; i++) {
        y[i] += x[i];
    }
}

struct adamw_vectors {
    dp_vec p;
    dp_vec m;
    dp_vec v;
};

DP_INLINE struct adamw_vectors adamw_vector(const dp_adamw_terms *t, struct adamw_vectors s,
                                            dp_vec g)
{
    g *= dp_vec_set(t->grad_scale);
    s.m = dp_fma(dp_vec_set(1.0F - t->beta1), g - s.m, s.m);
    s.v = dp_fma(dp_vec_set(1.0F - t->beta2), g * g - s.v, s.v);
    const dp_vec root = dp_sqrt(s.v * dp_vec_set(t->v_scale)) + dp_vec_set(t->eps);
    s.p -= dp_fma(dp_vec_set(t->lr_decay), s.p, dp_vec_set(t->lr) * s.m / root);
    return s;
}

static void fast_adamw(const dp_adamw_terms *terms, float *params, float *m, float *v,
                       const float *grads, size_t n)
{
    const dp_adamw_terms t = *terms; /* Floats written below cannot alias a copy. */
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        const struct adamw_vectors s = adamw_vector(
            &t,
            (struct adamw_vectors){dp_vec_load(params + i), dp_vec_load(m + i), dp_vec_load(v + i)},
            dp_vec_load(grads + i));
        dp_vec_store(params + i, s.p);
        dp_vec_store(m + i, s.m);
        dp_vec_store(v + i, s.v);
    }
    if (i < n) {
        const size_t rest = n - i;
        const struct adamw_vectors s =
            adamw_vector(&t,
                         (struct adamw_vectors){dp_vec_load_some(params + i, rest, 0.0F),
                                                dp_vec_load_some(m + i, rest, 0.0F),
                                                dp_vec_load_some(v + i, rest, 0.0F)},
                         dp_vec_load_some(grads + i, rest, 0.0F));
        dp_vec_store_some(params + i, s.p, rest);
        dp_vec_store_some(m + i, s.m, rest);
        dp_vec_store_some(v + i, s.v, rest);
    }
}

/* In runs of 256 in fp32, the runs in double. */
static double fast_sum_of_squares(const float *x, size_t n)
{
    double total = 0.0;
    size_t i = 0;
    while (i + DP_LANES <= n) {
        const size_t end = i + 256 <= n ? i + 256 : n;
        dp_vec sum = {0};
        for (; i + DP_LANES <= end; i += DP_LANES) {
            const dp_vec v = dp_vec_load(x + i);
            sum = dp_fma(v, v, sum);
        }
        total += (double)dp_vec_sum(sum);
    }
    for (; i < n; i++) {
        total += (double)x[i] * (double)x[i];
    }
    return total;
}
