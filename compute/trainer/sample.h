/* Draws text tokens from the current weights. Changes no training state. */
#ifndef DP_COMPUTE_TRAINER_SAMPLE_H
#define DP_COMPUTE_TRAINER_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/status.h"
#include "compute/model/model.h"

typedef struct dp_sampler {
    float temperature; /* 0: the most likely token, the lowest id on a tie */
    uint32_t top_k;    /* 0 or >= vocab: all tokens */
    uint64_t seed;
} dp_sampler;

/* Draws one token from logits [vocab]; scratch: vocab floats. DP_BADARG (temperature), DP_DIVERGED
 * (a logit is not finite). */
DP_MUST dp_status dp_sample_pick(const dp_sampler *sampler, dp_rng *rng, const float *logits,
                                 size_t vocab, float *scratch, uint32_t *token);
/* The model that gives logits. */
typedef struct dp_sample_model {
    const dp_model_config *config;
    void *context;
    /* logits: [vocab] for the token after tokens[0..length-1]; length 1 .. config->context. */
    dp_status (*logits)(void *context, const uint32_t *tokens, size_t length, float *logits);
} dp_sample_model;

/* Appends n tokens after the n_prompt (>= 1) tokens in tokens, which has room for n_prompt + n. The
 * model sees the last `context` tokens. Recomputes the whole window for every token. DP_BADARG,
 * DP_NOMEM, DP_DIVERGED. */
DP_MUST dp_status dp_sample(const dp_sample_model *model, const dp_sampler *sampler,
                            uint32_t *tokens, size_t n_prompt, size_t n);

#endif
