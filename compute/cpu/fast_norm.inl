/* LayerNorm, rows of any width: whole vectors first, then the rest one by one in the same order for
 * every row. */

#define DP_NORM_EPS 1e-5F

DP_INLINE float row_sum(const float *x, size_t n)
{
    dp_vec sum = {0};
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        sum += dp_vec_load(x + i);
    }
    float total = dp_vec_sum(sum);
    for (; i < n; i++) {
        total += x[i];
    }
    return total;
}

DP_INLINE float row_deviations(const float *x, float mean, size_t n)
{
    dp_vec sum = {0};
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        const dp_vec d = dp_vec_load(x + i) - dp_vec_set(mean);
        sum = dp_fma(d, d, sum);
    }
    float total = dp_vec_sum(sum);
    for (; i < n; i++) {
        total += (x[i] - mean) * (x[i] - mean);
    }
    return total;
}

static void fast_norm_again(const dp_norm_rows *norm, const float *bias, float *y)
{
    const size_t n = norm->width;
    for (size_t row = 0; row < norm->rows; row++) {
        const float *x = norm->x + row * n;
        const float mean = norm->mean[row];
        const float rstd = norm->rstd[row];
        float *out = y + row * n;
        size_t i = 0;
        for (; i + DP_LANES <= n; i += DP_LANES) {
            const dp_vec unit = (dp_vec_load(x + i) - dp_vec_set(mean)) * dp_vec_set(rstd);
            dp_vec_store(out + i, dp_fma(unit, dp_vec_load(norm->gain + i), dp_vec_load(bias + i)));
        }
        for (; i < n; i++) {
            out[i] = (x[i] - mean) * rstd * norm->gain[i] + bias[i];
        }
    }
}

static void fast_norm_forward(const dp_norm_rows *norm, const float *bias, float *y)
{
    const float width = (float)norm->width;
    for (size_t row = 0; row < norm->rows; row++) {
        const float *x = norm->x + row * norm->width;
        const float mean = row_sum(x, norm->width) / width;
        const float variance = row_deviations(x, mean, norm->width) / width;
        norm->mean[row] = mean;
        norm->rstd[row] = 1.0F / sqrtf(variance + DP_NORM_EPS);
    }
    fast_norm_again(norm, bias, y);
}

static void norm_backward_row(const dp_norm_rows *norm, size_t row, const float *dy,
                              const float *residual, float *dx)
{
    const size_t n = norm->width;
    const float *x = norm->x + row * n;
    const float *gain = norm->gain;
    const float mean = norm->mean[row];
    const float rstd = norm->rstd[row];
    dp_vec sums = {0};
    dp_vec dots = {0};
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        const dp_vec unit = (dp_vec_load(x + i) - dp_vec_set(mean)) * dp_vec_set(rstd);
        const dp_vec d = dp_vec_load(dy + i) * dp_vec_load(gain + i);
        sums += d;
        dots = dp_fma(d, unit, dots);
    }
    float sum = dp_vec_sum(sums);
    float dot = dp_vec_sum(dots);
    for (size_t j = i; j < n; j++) {
        const float d = dy[j] * gain[j];
        sum += d;
        dot += d * (x[j] - mean) * rstd;
    }
    sum /= (float)n;
    dot /= (float)n;
    for (i = 0; i + DP_LANES <= n; i += DP_LANES) {
        const dp_vec unit = (dp_vec_load(x + i) - dp_vec_set(mean)) * dp_vec_set(rstd);
        const dp_vec d =
            dp_vec_load(dy + i) * dp_vec_load(gain + i) - dp_vec_set(sum) - unit * dp_vec_set(dot);
        dp_vec_store(dx + i, dp_fma(d, dp_vec_set(rstd), dp_vec_load(residual + i)));
    }
    for (; i < n; i++) {
        const float d = dy[i] * gain[i] - sum - (x[i] - mean) * rstd * dot;
        dx[i] = residual[i] + d * rstd;
    }
}

static void fast_norm_backward(const dp_norm_rows *norm, const float *dy, const float *residual,
                               float *dx)
{
    const size_t n = norm->width;
    for (size_t row = 0; row < norm->rows; row++) {
        norm_backward_row(norm, row, dy + row * n, residual + row * n, dx + row * n);
    }
}

static void fast_norm_grads(const dp_norm_rows *norm, const float *dy, size_t first, size_t last,
                            float *d_gain, float *d_bias)
{
    size_t column = first;
    for (; column + DP_COLUMNS <= last; column += DP_COLUMNS) {
        dp_vec gain[DP_COLUMN_VECS] = {{0}};
        dp_vec bias[DP_COLUMN_VECS] = {{0}};
        for (size_t row = 0; row < norm->rows; row++) {
            const size_t at = row * norm->width + column;
            const dp_vec mean = dp_vec_set(norm->mean[row]);
            const dp_vec rstd = dp_vec_set(norm->rstd[row]);
#pragma GCC unroll 4
            for (size_t j = 0; j < DP_COLUMN_VECS; j++) {
                const dp_vec d = dp_vec_load(dy + at + j * DP_LANES);
                const dp_vec unit = (dp_vec_load(norm->x + at + j * DP_LANES) - mean) * rstd;
                gain[j] = dp_fma(d, unit, gain[j]);
                bias[j] += d;
            }
        }
        for (size_t j = 0; j < DP_COLUMN_VECS; j++) {
            const size_t at = column + j * DP_LANES;
            dp_vec_store(d_gain + at, dp_vec_load(d_gain + at) + gain[j]);
            dp_vec_store(d_bias + at, dp_vec_load(d_bias + at) + bias[j]);
        }
    }
    for (; column < last; column++) {
        float gain = 0.0F;
        float bias = 0.0F;
        for (size_t row = 0; row < norm->rows; row++) {
            const size_t at = row * norm->width + column;
            gain += dy[at] * (norm->x[at] - norm->mean[row]) * norm->rstd[row];
            bias += dy[at];
        }
        d_gain[column] += gain;
        d_bias[column] += bias;
    }
}
