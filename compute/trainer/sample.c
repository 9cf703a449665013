#include "compute/trainer/sample.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"

static size_t likeliest(const float *logits, size_t vocab)
{
    size_t best = 0;
    for (size_t i = 1; i < vocab; i++) {
        if (logits[i] > logits[best]) {
            best = i;
        }
    }
    return best;
}

/* The k-th largest of values, which is reordered: quickselect with the middle as pivot. 1 <= k <=
 * n. */
static float kth_largest(float *values, size_t n, size_t k)
{
    size_t low = 0;
    size_t high = n - 1;
    while (low < high) {
        const float pivot = values[low + (high - low) / 2];
        size_t i = low;
        size_t j = high;
        for (;;) {
            while (values[i] > pivot) {
                i++;
            }
            while (values[j] < pivot) {
                j--;
            }
            if (i >= j) {
                break;
            }
            const float swap = values[i];
            values[i++] = values[j];
            values[j--] = swap;
        }
        /* All of [low, j] are >= pivot >= all of [j + 1, high]. */
        if (k - 1 <= j) {
            high = j;
        } else {
            low = j + 1;
        }
    }
    return values[k - 1];
}

/* The largest w among values whose values >= w sum to at least mass, by quickselect as above;
 * values is reordered. mass: above 0 and, but for rounding, at most the sum of all. */
static float nucleus_limit(float *values, size_t n, double mass)
{
    size_t low = 0;
    size_t end = n;
    while (end - low > 1) {
        const float pivot = values[low + (end - low) / 2];
        size_t above = low; /* [low, above) are larger, [above, at) equal, [less, end) smaller */
        size_t less = end;
        double sum_above = 0.0;
        double sum_equal = 0.0;
        for (size_t at = low; at < less;) {
            const float value = values[at];
            if (value > pivot) {
                values[at++] = values[above];
                values[above++] = value;
                sum_above += (double)value;
            } else if (value < pivot) {
                values[at] = values[--less];
                values[less] = value;
            } else {
                sum_equal += (double)value;
                at++;
            }
        }
        if (sum_above >= mass) {
            end = above;
        } else if (sum_above + sum_equal >= mass || less == end) {
            return pivot;
        } else {
            mass -= sum_above + sum_equal;
            low = less;
        }
    }
    return values[low];
}

static bool is_possible(const dp_sampler *sampler, size_t vocab)
{
    return sampler->temperature >= 0.0F && isfinite(sampler->temperature) &&
           sampler->top_p >= 0.0F && sampler->top_p <= 1.0F && vocab > 0 &&
           vocab <= DP_MODEL_VOCAB_MAX;
}

/* weights [vocab]: of each token that may be drawn, else 0; scratch: vocab floats. Gives their
 * sum. */
static double weigh(const dp_sampler *sampler, const float *logits, size_t vocab, float largest,
                    float *weights, float *scratch)
{
    float least = -INFINITY;
    double sum = 0.0;
    if (sampler->top_k > 0 && sampler->top_k < vocab) {
        memcpy(scratch, logits, vocab * sizeof *scratch);
        least = kth_largest(scratch, vocab, sampler->top_k);
    }
    for (size_t i = 0; i < vocab; i++) {
        weights[i] = logits[i] < least ? 0.0F : expf((logits[i] - largest) / sampler->temperature);
        sum += (double)weights[i];
    }
    if (sampler->top_p <= 0.0F || sampler->top_p >= 1.0F) {
        return sum;
    }
    memcpy(scratch, weights, vocab * sizeof *scratch);
    const float limit = nucleus_limit(scratch, vocab, (double)sampler->top_p * sum);
    sum = 0.0;
    for (size_t i = 0; i < vocab; i++) {
        weights[i] = weights[i] < limit ? 0.0F : weights[i];
        sum += (double)weights[i];
    }
    return sum;
}

dp_status dp_sample_pick(const dp_sampler *sampler, dp_rng *rng, const float *logits, size_t vocab,
                         float *scratch, uint32_t *token)
{
    if (!is_possible(sampler, vocab)) {
        return DP_BADARG;
    }
    for (size_t i = 0; i < vocab; i++) {
        if (!isfinite(logits[i])) {
            return DP_DIVERGED;
        }
    }
    const size_t best = likeliest(logits, vocab);
    if (sampler->temperature <= 0.0F || sampler->top_k == 1) {
        *token = (uint32_t)best;
        return DP_OK;
    }
    const double sum = weigh(sampler, logits, vocab, logits[best], scratch, scratch + vocab);
    double left = (double)(dp_rng_next(rng) >> 11) * 0x1p-53 * sum;
    size_t pick = best; /* Kept when rounding leaves a rest at the end. */
    for (size_t i = 0; i < vocab; i++) {
        left -= (double)scratch[i];
        if (left < 0.0) {
            pick = i;
            break;
        }
    }
    *token = (uint32_t)pick;
    return DP_OK;
}

dp_status dp_sample(const dp_sample_model *model, const dp_sampler *sampler, uint32_t *tokens,
                    size_t n_prompt, size_t n)
{
    const dp_model_config *const config = model->config;
    if (n_prompt == 0) {
        return DP_BADARG;
    }
    float *logits = dp_alloc(3 * (size_t)config->vocab, sizeof *logits);
    if (logits == NULL) {
        return DP_NOMEM;
    }
    dp_rng rng;
    dp_rng_init(&rng, sampler->seed);
    dp_status status = DP_OK;
    size_t first = n_prompt > config->context ? n_prompt - config->context : 0;
    size_t known = 0;
    for (size_t i = 0; i < n && status == DP_OK; i++) {
        size_t length = n_prompt + i - first;
        if (length > config->context) {
            const size_t kept = config->context - config->context / 2;
            first += length - kept;
            length = kept;
            known = 0;
        }
        status = model->logits(model->context, tokens + first, known, length, logits);
        known = length;
        if (status == DP_OK) {
            status = dp_sample_pick(sampler, &rng, logits, config->vocab, logits + config->vocab,
                                    &tokens[n_prompt + i]);
        }
    }
    dp_free(logits);
    return status;
}
