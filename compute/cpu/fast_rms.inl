/* RMSNorm of rows and of heads: whole vectors first, then the rest one by one in the same order for
 * every group. */

DP_INLINE float group_squares(const float *x, size_t n)
{
    dp_vec sum = {0};
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        const dp_vec v = dp_vec_load(x + i);
        sum = dp_fma(v, v, sum);
    }
    float total = dp_vec_sum(sum);
    for (; i < n; i++) {
        total += x[i] * x[i];
    }
    return total;
}

DP_INLINE void rms_group(const float *x, const float *gain, float rstd, size_t n, float *y)
{
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        dp_vec_store(y + i, dp_vec_load(x + i) * dp_vec_set(rstd) * dp_vec_load(gain + i));
    }
    for (; i < n; i++) {
        y[i] = x[i] * rstd * gain[i];
    }
}

static void fast_rms_again(const dp_rms_rows *norm, float *y, size_t ld_y)
{
    const size_t n = norm->width;
    for (size_t row = 0; row < norm->rows; row++) {
        for (size_t group = 0; group < norm->groups; group++) {
            rms_group(norm->x + row * norm->ld + group * n, norm->gain,
                      norm->rstd[row * norm->groups + group], n, y + row * ld_y + group * n);
        }
    }
}

static void fast_rms_forward(const dp_rms_rows *norm, float *y, size_t ld_y)
{
    const size_t n = norm->width;
    for (size_t row = 0; row < norm->rows; row++) {
        for (size_t group = 0; group < norm->groups; group++) {
            const float squares = group_squares(norm->x + row * norm->ld + group * n, n);
            norm->rstd[row * norm->groups + group] = 1.0F / sqrtf(squares / (float)n + norm->eps);
        }
    }
    fast_rms_again(norm, y, ld_y);
}

/* residual may be NULL. */
DP_INLINE void rms_backward_group(const float *x, const float *gain, float rstd, size_t n,
                                  const float *dy, const float *residual, float *dx)
{
    dp_vec dots = {0};
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        const dp_vec unit = dp_vec_load(x + i) * dp_vec_set(rstd);
        dots = dp_fma(dp_vec_load(dy + i) * dp_vec_load(gain + i), unit, dots);
    }
    float dot = dp_vec_sum(dots);
    for (; i < n; i++) {
        dot += dy[i] * gain[i] * (x[i] * rstd);
    }
    dot /= (float)n;
    for (i = 0; i + DP_LANES <= n; i += DP_LANES) {
        const dp_vec unit = dp_vec_load(x + i) * dp_vec_set(rstd);
        const dp_vec d = dp_vec_load(dy + i) * dp_vec_load(gain + i) - unit * dp_vec_set(dot);
        const dp_vec before = residual == NULL ? (dp_vec){0} : dp_vec_load(residual + i);
        dp_vec_store(dx + i, dp_fma(d, dp_vec_set(rstd), before));
    }
    for (; i < n; i++) {
        const float d = dy[i] * gain[i] - x[i] * rstd * dot;
        dx[i] = (residual == NULL ? 0.0F : residual[i]) + d * rstd;
    }
}

static void fast_rms_backward(const dp_rms_rows *norm, const float *dy, const float *residual,
                              float *dx, size_t ld_d)
{
    const size_t n = norm->width;
    for (size_t row = 0; row < norm->rows; row++) {
        for (size_t group = 0; group < norm->groups; group++) {
            const size_t at = row * ld_d + group * n;
            rms_backward_group(norm->x + row * norm->ld + group * n, norm->gain,
                               norm->rstd[row * norm->groups + group], n, dy + at,
                               residual == NULL ? NULL : residual + at, dx + at);
        }
    }
}

static void fast_rms_grads(const dp_rms_rows *norm, const float *dy, size_t ld_dy, size_t first,
                           size_t last, float *d_gain)
{
    const size_t n = norm->rows * norm->groups;
    size_t column = first;
    for (; column + DP_LANES <= last; column += DP_LANES) {
        dp_vec gain = {0};
        for (size_t i = 0; i < n; i++) {
            const size_t row = i / norm->groups;
            const size_t at = i % norm->groups * norm->width + column;
            const dp_vec unit =
                dp_vec_load(norm->x + row * norm->ld + at) * dp_vec_set(norm->rstd[i]);
            gain = dp_fma(dp_vec_load(dy + row * ld_dy + at), unit, gain);
        }
        dp_vec_store(d_gain + column, dp_vec_load(d_gain + column) + gain);
    }
    for (; column < last; column++) {
        float gain = 0.0F;
        for (size_t i = 0; i < n; i++) {
            const size_t row = i / norm->groups;
            const size_t at = i % norm->groups * norm->width + column;
            gain += dy[row * ld_dy + at] * (norm->x[row * norm->ld + at] * norm->rstd[i]);
        }
        d_gain[column] += gain;
    }
}
