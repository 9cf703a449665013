/* Softmax with its cross-entropy. */

/* A NaN in x may get lost here; row_exp keeps it. */
DP_INLINE float row_largest(const float *x, size_t n)
{
    size_t i = 0;
    dp_vec largest = dp_set(-INFINITY);
    for (; i + DP_LANES <= n; i += DP_LANES) {
        largest = dp_max(largest, dp_load(x + i));
    }
    if (i < n) {
        largest = dp_max(largest, dp_load_some(x + i, n - i, -INFINITY));
    }
    return dp_largest(largest);
}

/* x = exp(x * scale - shift) and their sum. A NaN anywhere ends in the sum. */
DP_INLINE float row_exp(float *x, size_t n, float scale, float shift)
{
    dp_vec sum = {0};
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        const dp_vec e = dp_exp(dp_fma(dp_load(x + i), dp_set(scale), dp_set(-shift)));
        sum += e;
        dp_store(x + i, e);
    }
    if (i < n) {
        const dp_vec v = dp_load_some(x + i, n - i, -INFINITY);
        const dp_vec e = dp_exp(dp_fma(v, dp_set(scale), dp_set(-shift)));
        sum += e;
        dp_store_some(x + i, e, n - i);
    }
    return dp_sum(sum);
}

static void fast_classifier(float *logits, const uint32_t *targets, size_t rows, size_t vocab,
                            float scale, float *losses)
{
    for (size_t row = 0; row < rows; row++) {
        float *x = logits + row * vocab;
        const float largest = row_largest(x, vocab);
        const float of_target = x[targets[row]];
        const float sum = row_exp(x, vocab, 1.0F, largest);
        losses[row] = largest - of_target + logf(sum);
        if (scale == 0.0F) {
            continue;
        }
        const float factor = scale / sum;
        size_t i = 0;
        for (; i + DP_LANES <= vocab; i += DP_LANES) {
            dp_store(x + i, dp_load(x + i) * dp_set(factor));
        }
        for (; i < vocab; i++) {
            x[i] *= factor;
        }
        x[targets[row]] -= scale;
    }
}
