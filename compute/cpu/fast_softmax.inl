/* Softmax of a row, in steps. */

/* A NaN in x may get lost here; row_exp keeps it. */
DP_INLINE float row_largest(const float *x, size_t n)
{
    size_t i = 0;
    dp_vec largest = dp_vec_set(-INFINITY);
    for (; i + DP_LANES <= n; i += DP_LANES) {
        largest = dp_max(largest, dp_vec_load(x + i));
    }
    if (i < n) {
        largest = dp_max(largest, dp_vec_load_some(x + i, n - i, -INFINITY));
    }
    return dp_largest(largest);
}

/* Vectors whose sums stay in fp32: more of them would lose digits. */
#define DP_SUM_RUN 4096

/* x = exp(x * scale - shift) and their sum. A NaN anywhere ends in the sum. */
DP_INLINE float row_exp(float *x, size_t n, float scale, float shift)
{
    double total = 0.0;
    size_t i = 0;
    do {
        const size_t end = n - i > DP_SUM_RUN * DP_LANES ? i + DP_SUM_RUN * DP_LANES : n;
        dp_vec sum = {0};
        for (; i + DP_LANES <= end; i += DP_LANES) {
            const dp_vec e =
                dp_exp(dp_fma(dp_vec_load(x + i), dp_vec_set(scale), dp_vec_set(-shift)));
            sum += e;
            dp_vec_store(x + i, e);
        }
        if (i < end) {
            const dp_vec v = dp_vec_load_some(x + i, end - i, -INFINITY);
            const dp_vec e = dp_exp(dp_fma(v, dp_vec_set(scale), dp_vec_set(-shift)));
            sum += e;
            dp_vec_store_some(x + i, e, end - i);
            i = end;
        }
        total += (double)dp_vec_sum(sum);
    } while (i < n);
    return (float)total;
}
