/* The GPT engine on the CPU: parameters, gradients, forward and backward of whole micro-batches in fp32. Not the optimizer
 * (optim.h) and not the loop around it (trainer.h).
 *
 * All memory is taken at open. Results depend on the model, the weights and the micro-batches, never on the number of
 * threads: same machine and build, same bits. One thread at a time may call. */
#ifndef DP_COMPUTE_GPT_H
#define DP_COMPUTE_GPT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "compute/model.h"
#include "compute/pool.h"

enum { DP_GPT_ROWS_MAX = 4096 };

typedef struct dp_gpt dp_gpt;

/* Tokens of one micro-batch, borrowed for the call. */
typedef struct dp_gpt_batch {
    const uint32_t *x; /* [rows][length] inputs */
    const uint32_t *y; /* [rows][length] targets: usually x one token on */
    size_t rows;       /* 1 .. rows_max */
    size_t length;     /* 1 .. context */
} dp_gpt_batch;

/* model and pool are borrowed until close; pool may be NULL (one thread). rows_max: most rows of a batch.
 * Parameters and gradients start at 0: call dp_model_init or load into dp_gpt_params. DP_BADARG, DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_gpt_open(dp_gpt **out, const dp_model *model, size_t rows_max, dp_pool *pool);
void dp_gpt_close(dp_gpt *gpt); /* Accepts NULL. */
/* Bytes that dp_gpt_open will take, to fit a machine before trying; 0 for arguments it would refuse. */
size_t dp_gpt_bytes(const dp_model *model, size_t rows_max, const dp_pool *pool);

const dp_model *dp_gpt_model(const dp_gpt *gpt);
/* Arenas of model->n_elements floats, 64-byte aligned, lent until close. The caller may write them between calls. */
float *dp_gpt_params(dp_gpt *gpt);
float *dp_gpt_grads(dp_gpt *gpt);
void dp_gpt_zero_grads(dp_gpt *gpt);

/* Forward and backward: grads += scale * d(sum of losses over the batch's tokens)/d(params). For the mean over an
 * optimizer step of n tokens in several micro-batches call it with scale = 1/n for each.
 * *loss_sum: sum of the tokens' losses in nats (not scaled). DP_BADARG (shape, token >= vocab: then grads are untouched);
 * DP_DIVERGED when the loss is not finite: then grads are spoiled and must be zeroed. */
DP_MUST dp_status dp_gpt_step(dp_gpt *gpt, const dp_gpt_batch *batch, float scale,
                              double *loss_sum);
/* Forward only; grads untouched. */
DP_MUST dp_status dp_gpt_loss(dp_gpt *gpt, const dp_gpt_batch *batch, double *loss_sum);
/* logits: [vocab] for the token after tokens[0..length-1]. length 1 .. context. Params and grads untouched.
 * DP_DIVERGED when a logit is not finite. */
DP_MUST dp_status dp_gpt_logits(dp_gpt *gpt, const uint32_t *tokens, size_t length, float *logits);

#endif
