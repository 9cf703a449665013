/* Draws text tokens from the current weights. Changes no training state. */
#ifndef DP_COMPUTE_TRAINER_SAMPLE_H
#define DP_COMPUTE_TRAINER_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/status.h"
#include "compute/model/model.h"

/* The usual choice of a token. */
#define DP_SAMPLE_TEMPERATURE 0.8F
enum { DP_SAMPLE_TOP_K = 40, DP_SAMPLE_TOKENS_MAX = 4096 };

typedef struct dp_sampler {
    float temperature; /* 0: the most likely token, the lowest id on a tie */
    uint32_t top_k;    /* only the k most likely tokens, and ties; 0 or >= vocab: all tokens */
    /* of these, the fewest most likely whose probabilities sum to at least so much, and ties with
     * the last of them (Holtzman et al. 2020); 0 or 1: all */
    float top_p;
    uint64_t seed;
} dp_sampler;

/* Draws one token from logits [vocab]; scratch: 2 vocab floats. DP_BADARG (temperature, top_p),
 * DP_DIVERGED (a logit is not finite). */
DP_MUST dp_status dp_sample_pick(const dp_sampler *sampler, dp_rng *rng, const float *logits,
                                 size_t vocab, float *scratch, uint32_t *token);

/* The model that gives logits. */
typedef struct dp_sample_model {
    const dp_model_config *config;
    void *context;
    /* logits: [vocab] for the token after tokens[0..length-1]; length 1 .. config->context. The
     * first known of them, less than length, are the tokens of the call before; 0: other ones, or
     * the first call. */
    dp_status (*logits)(void *context, const uint32_t *tokens, size_t known, size_t length,
                        float *logits);
} dp_sample_model;

/* Appends n tokens after the n_prompt (>= 1) tokens in tokens, which has room for n_prompt + n. The
 * model sees all tokens while they fit into its context; of more, the last ones, and each time that
 * the context is full the older half of them is left out, so that a model which keeps what it has
 * computed begins anew only every context / 2 tokens. DP_BADARG, DP_NOMEM, DP_DIVERGED. */
DP_MUST dp_status dp_sample(const dp_sample_model *model, const dp_sampler *sampler,
                            uint32_t *tokens, size_t n_prompt, size_t n);

#endif
