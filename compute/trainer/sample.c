#include "compute/trainer/sample.h"

#include <math.h>
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

dp_status dp_sample_pick(const dp_sampler *sampler, dp_rng *rng, const float *logits, size_t vocab,
                         float *scratch, uint32_t *token)
{
    if (!(sampler->temperature >= 0.0F) || !isfinite(sampler->temperature) || vocab == 0 ||
        vocab > DP_MODEL_VOCAB_MAX) {
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
    float least = -INFINITY;
    if (sampler->top_k > 0 && sampler->top_k < vocab) {
        memcpy(scratch, logits, vocab * sizeof *scratch);
        least = kth_largest(scratch, vocab, sampler->top_k);
    }
    double sum = 0.0;
    for (size_t i = 0; i < vocab; i++) {
        const float weight =
            logits[i] < least ? 0.0F : expf((logits[i] - logits[best]) / sampler->temperature);
        scratch[i] = weight;
        sum += (double)weight;
    }
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
    float *logits = dp_alloc(2 * (size_t)config->vocab, sizeof *logits);
    if (logits == NULL) {
        return DP_NOMEM;
    }
    dp_rng rng;
    dp_rng_init(&rng, sampler->seed);
    dp_status status = DP_OK;
    for (size_t i = 0; i < n && status == DP_OK; i++) {
        const size_t end = n_prompt + i;
        const size_t length = end < config->context ? end : config->context;
        status = model->logits(model->context, tokens + end - length, length, logits);
        if (status == DP_OK) {
            status = dp_sample_pick(sampler, &rng, logits, config->vocab, logits + config->vocab,
                                    &tokens[end]);
        }
    }
    dp_free(logits);
    return status;
}
