/* Softmax cross-entropy, with or without a soft cap of the logits. */

/* The losses and probabilities of rows without a cap: x becomes exp(x - largest). */
static void classifier_row(const dp_classifier *c, float *x, uint32_t target, float *loss)
{
    const float largest = row_largest(x, c->vocab);
    const float of_target = x[target];
    const float sum = row_exp(x, c->vocab, 1.0F, largest);
    *loss = largest - of_target + logf(sum);
    if (c->scale == 0.0F) {
        return;
    }
    const float factor = c->scale / sum;
    size_t i = 0;
    for (; i + DP_LANES <= c->vocab; i += DP_LANES) {
        dp_vec_store(x + i, dp_vec_load(x + i) * dp_vec_set(factor));
    }
    for (; i < c->vocab; i++) {
        x[i] *= factor;
    }
    x[target] -= c->scale;
}

/* tanh(x): an odd polynomial near 0, where 1 - 2/(e^2x + 1) cancels, else that. Error below
 * 2e-7. */
DP_INLINE dp_vec tanh_of(dp_vec x)
{
    const dp_vec e = dp_exp(x + x);
    const dp_vec far = dp_vec_set(1.0F) - dp_vec_set(2.0F) / (e + dp_vec_set(1.0F));
    const dp_vec s = x * x;
    dp_vec p = dp_fma(s, dp_vec_set(62.0F / 2835.0F), dp_vec_set(-17.0F / 315.0F));
    p = dp_fma(p, s, dp_vec_set(2.0F / 15.0F));
    p = dp_fma(p, s, dp_vec_set(-1.0F / 3.0F));
    const dp_vec near = dp_fma(x * s, p, x);
    const dp_ivec small = s < dp_vec_set(0.04F);
    return (dp_vec)((small & (dp_ivec)near) | (~small & (dp_ivec)far));
}

/* The sum of exp(capped x - largest). */
static float capped_sum(const float *x, size_t n, float cap, float largest)
{
    const dp_vec inverse = dp_vec_set(1.0F / cap);
    double total = 0.0;
    for (size_t run = 0; run < n; run += DP_SUM_RUN * DP_LANES) {
        const size_t end = least_of(n, run + DP_SUM_RUN * DP_LANES);
        dp_vec sum = {0};
        for (size_t i = run; i < end; i += DP_LANES) {
            const bool whole = end - i >= DP_LANES;
            const dp_vec v = whole ? dp_vec_load(x + i) : dp_vec_load_some(x + i, end - i, 0.0F);
            const dp_vec e =
                dp_exp(dp_fma(tanh_of(v * inverse), dp_vec_set(cap), dp_vec_set(-largest)));
            float lanes[DP_LANES];
            dp_vec_store(lanes, e);
            sum += whole ? e : dp_vec_load_some(lanes, end - i, 0.0F);
        }
        total += (double)dp_vec_sum(sum);
    }
    return (float)total;
}

/* The same under a cap. tanh keeps the order, so the largest comes from the logits as they are; it
 * is computed again where it is needed, since its slope is wanted beside the probability. */
static void classifier_row_capped(const dp_classifier *c, float *x, uint32_t target, float *loss)
{
    const float cap = c->softcap;
    const dp_vec inverse = dp_vec_set(1.0F / cap);
    float ends[DP_LANES]; /* the largest, and the target */
    dp_vec_store(ends, dp_vec_set(row_largest(x, c->vocab)));
    ends[1] = x[target];
    dp_vec_store(ends, tanh_of(dp_vec_load(ends) * inverse));
    const float largest = cap * ends[0];
    const float sum = capped_sum(x, c->vocab, cap, largest);
    *loss = largest - cap * ends[1] + logf(sum);
    if (c->scale == 0.0F) {
        return;
    }
    const dp_vec factor = dp_vec_set(c->scale / sum);
    for (size_t i = 0; i < c->vocab; i += DP_LANES) {
        const size_t n = least_of(c->vocab - i, DP_LANES);
        const dp_vec v = n == DP_LANES ? dp_vec_load(x + i) : dp_vec_load_some(x + i, n, 0.0F);
        const dp_vec t = tanh_of(v * inverse);
        const dp_vec e = dp_exp(dp_fma(t, dp_vec_set(cap), dp_vec_set(-largest)));
        const dp_vec d = e * factor * (dp_vec_set(1.0F) - t * t);
        if (n == DP_LANES) {
            dp_vec_store(x + i, d);
        } else {
            dp_vec_store_some(x + i, d, n);
        }
    }
    x[target] -= c->scale * (1.0F - ends[1] * ends[1]);
}

static void fast_classifier(const dp_classifier *c)
{
    for (size_t row = 0; row < c->rows; row++) {
        float *x = c->logits + row * c->vocab;
        if (c->targets[row] == DP_TOKEN_NO_LOSS) {
            memset(x, 0, c->vocab * sizeof *x);
            c->losses[row] = 0.0F;
        } else if (c->softcap == 0.0F) {
            classifier_row(c, x, c->targets[row], &c->losses[row]);
        } else {
            classifier_row_capped(c, x, c->targets[row], &c->losses[row]);
        }
    }
}

static void fast_softcap(float *x, size_t n, float cap)
{
    const dp_vec inverse = dp_vec_set(1.0F / cap);
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        dp_vec_store(x + i, tanh_of(dp_vec_load(x + i) * inverse) * dp_vec_set(cap));
    }
    if (i < n) {
        const dp_vec v = dp_vec_load_some(x + i, n - i, 0.0F);
        dp_vec_store_some(x + i, tanh_of(v * inverse) * dp_vec_set(cap), n - i);
    }
}
