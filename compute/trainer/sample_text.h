/* Text after a prompt, drawn from any model that gives logits (sample.h). Opens no files. */
#ifndef DP_COMPUTE_TRAINER_SAMPLE_TEXT_H
#define DP_COMPUTE_TRAINER_SAMPLE_TEXT_H

#include "base/bytes.h"
#include "compute/model/gpt.h"
#include "compute/text/bpe.h"
#include "compute/trainer/sample.h"

/* Appends prompt (a line end if empty) and n tokens drawn after it, as UTF-8 without NUL; invalid
 * bytes become U+FFFD, and ids that the tokenizer does not name are left out. DP_TOOBIG (n above
 * DP_SAMPLE_TOKENS_MAX), DP_BADMSG (prompt is no UTF-8), else as dp_sample: text is unchanged or
 * incomplete. */
DP_MUST dp_status dp_sample_text(const dp_sample_model *model, const dp_sampler *sampler,
                                 const dp_bpe *bpe, const char *prompt, size_t n, dp_buf *text);

/* The same from weights on the CPU, in fp32, with keys and values kept (gpt.h): load is
 * called once, with room for model->n_elements floats. threads: 0: the default of the machine; the
 * text does not depend on it. DP_TOOBIG also: the machine has too little memory left, and the
 * sentence says how much is needed. */
typedef struct dp_sample_weights {
    const dp_model *model;
    const dp_bpe *bpe;
    size_t threads;
    dp_status (*load)(void *context, float *params, dp_why *why);
    void *context;
} dp_sample_weights;

DP_MUST dp_status dp_sample_from(const dp_sample_weights *weights, const dp_sampler *sampler,
                                 const char *prompt, size_t n, dp_buf *text, dp_why *why);

#endif
