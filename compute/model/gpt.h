/* The decoder-only transformer on the CPU, for every family in model.h: parameters, gradients,
 * forward and backward of whole micro-batches. The optimizer is in optim.h, the loop around both in
 * trainer.h.
 *
 * All memory is allocated at open. Results depend on the model, the weights, the micro-batches and
 * the precision, but not on the number of threads or on recomputation: the same bits on the same
 * machine and build. One thread at a time may call. */
#ifndef DP_COMPUTE_MODEL_GPT_H
#define DP_COMPUTE_MODEL_GPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "compute/cpu/precision.h"
#include "compute/machine/pool.h"
#include "compute/model/model.h"

enum { DP_GPT_ROWS_MAX = 4096 };

typedef struct dp_gpt dp_gpt;

/* Tokens of one micro-batch, borrowed for the call. With marks (base/run/token_marks.h) a row holds
 * documents that are kept apart: each begins where an input is marked, or with the row; its losses
 * and gradients are those of a row of its own. */
typedef struct dp_gpt_batch {
    const uint32_t *x; /* [rows][length] inputs, with DP_TOKEN_BEGINS where a document begins */
    const uint32_t *y; /* targets: usually x shifted by one token; or DP_TOKEN_NO_LOSS */
    size_t rows;       /* 1 .. rows_max */
    size_t length;     /* 1 .. context */
} dp_gpt_batch;

/* Activations that backward computes again, so that forward need not keep them for every layer:
 * less memory, more time. Each step includes those before it. Kept per token and layer: everything;
 * all but norms and activation; also without the output of attention; only the input of the block,
 * so that a third of the products is computed twice (Chen et al. 2016). */
typedef enum dp_recompute {
    DP_RECOMPUTE_NOTHING,
    DP_RECOMPUTE_NORMS,
    DP_RECOMPUTE_ATTENTION,
    DP_RECOMPUTE_LAYER,
    DP_RECOMPUTE_STEPS
} dp_recompute;

/* Packed weights, in the layout of matrix products, for forward and for backward. Kept: all of
 * them, packed again only when the parameters have changed, so that the micro-batches of a step, an
 * evaluation and a sample share them. Shared: room for one layer or the head, packed in every call:
 * less memory, more time. Same bits either way. */
typedef enum dp_gpt_packs { DP_GPT_PACKS_KEPT, DP_GPT_PACKS_SHARED, DP_GPT_PACKS } dp_gpt_packs;

struct dp_ops;

typedef struct dp_gpt_options {
    size_t rows_max; /* most rows of a batch */
    dp_pool *pool;   /* borrowed until close; NULL: one thread */
    dp_precision precision;
    dp_recompute recompute;
    dp_gpt_packs packs;
    const struct dp_ops *ops; /* NULL: the fastest table of the precision */
    /* no own gradients: dp_gpt_grads_at comes before calls that need them */
    bool grads_elsewhere;
    /* the weights below the adapters of the model, borrowed until close; NULL without adapters, and
     * where memory is only counted */
    const struct dp_base_weights *base;
} dp_gpt_options;

/* model is borrowed until close. Parameters and gradients start at 0: call dp_model_init or load
 * into dp_gpt_params_to_write. With adapters, parameters and gradients are theirs.
 * DP_BADARG, DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_gpt_open(dp_gpt **out, const dp_model *model, const dp_gpt_options *options);
void dp_gpt_close(dp_gpt *gpt); /* Accepts NULL. */
/* Bytes that dp_gpt_open allocates; 0 for arguments that it refuses. */
size_t dp_gpt_bytes(const dp_model *model, const dp_gpt_options *options);

/* The same in parts, for a pool of so many threads; all in bytes. */
typedef struct dp_gpt_memory {
    uint64_t params;
    uint64_t grads;
    uint64_t packed;      /* packed weights */
    uint64_t scratch;     /* of the threads */
    uint64_t activations; /* with their gradients: all that grows with rows */
} dp_gpt_memory;

dp_gpt_memory dp_gpt_memory_of(const dp_model *model, const dp_gpt_options *options,
                               size_t threads);

const dp_model *dp_gpt_model(const dp_gpt *gpt);
/* Arenas of model->n_elements floats, 64-byte aligned, lent until close. */
const float *dp_gpt_params(const dp_gpt *gpt);
/* The parameters to write to before the next dp_gpt_step, _loss or _logits, which packs them again.
 * Call it before each later write too; otherwise products use old packs (DP_PARANOID asserts
 * it). */
float *dp_gpt_params_to_write(dp_gpt *gpt);
/* Makes dp_gpt_loss and _logits use these parameters (n_elements floats, borrowed, unchanged
 * meanwhile) until a step, dp_gpt_params_to_write, or another call of this; NULL: the own ones.
 * Costs nothing while they stay the same. */
void dp_gpt_look_at(dp_gpt *gpt, const float *params);
/* The gradients; write to them only between calls. */
float *dp_gpt_grads(dp_gpt *gpt);
void dp_gpt_zero_grads(dp_gpt *gpt);
/* Replaces the gradients, with their values: n_elements floats, 64-byte aligned, borrowed. */
void dp_gpt_grads_at(dp_gpt *gpt, float *grads);

/* Forward and backward: grads += scale * d(sum of losses over the batch's tokens)/d(params). For
 * the mean over an optimizer step of n tokens in several micro-batches call it with scale = 1/n for
 * each. *loss_sum: sum of the losses of all targets in nats (not scaled). DP_BADARG (shape, token
 * >= vocab: then grads are untouched); DP_DIVERGED when the loss is not finite: then grads are
 * spoiled and must be zeroed. */
DP_MUST dp_status dp_gpt_step(dp_gpt *gpt, const dp_gpt_batch *batch, float scale,
                              double *loss_sum);
/* Forward only; grads untouched. */
DP_MUST dp_status dp_gpt_loss(dp_gpt *gpt, const dp_gpt_batch *batch, double *loss_sum);
/* logits: [vocab] for the token after tokens[0..length-1]. length 1 .. context. Params and grads
 * untouched. DP_DIVERGED when a logit is not finite. */
DP_MUST dp_status dp_gpt_logits(dp_gpt *gpt, const uint32_t *tokens, size_t length, float *logits);

/* ---- Decoding (gpt_decode.c): logits after one more token, with the keys and values of earlier
 * tokens kept, so that a token costs products of one row and not of the whole window. The layers
 * are those of dp_gpt_logits, of which the batch is the new tokens at their positions: the logits
 * differ from those of the whole window by rounding alone, for every family, and do not depend on
 * the number of threads. */

typedef struct dp_gpt_cache dp_gpt_cache;

/* Room for the keys and values of one sequence of at most `context` tokens; empty. gpt is borrowed
 * until close. DP_NOMEM. */
DP_MUST dp_status dp_gpt_cache_open(dp_gpt_cache **out, const dp_gpt *gpt);
void dp_gpt_cache_close(dp_gpt_cache *cache); /* Accepts NULL. */
/* Bytes that dp_gpt_cache_open allocates. */
size_t dp_gpt_cache_bytes(const dp_model *model);

/* Tokens of the sequence so far. */
size_t dp_gpt_cache_length(const dp_gpt_cache *cache);
/* Forgets all tokens. Also needed when the parameters have changed. */
void dp_gpt_cache_clear(dp_gpt_cache *cache);

/* Adds n >= 1 tokens to the sequence. logits: [vocab] for the token after the last of them. gpt:
 * the one of the cache; params and grads are untouched. DP_BADARG (token >= vocab, or more than
 * `context` tokens in all): the sequence is unchanged; DP_DIVERGED when a logit is not finite. */
DP_MUST dp_status dp_gpt_decode(dp_gpt *gpt, dp_gpt_cache *cache, const uint32_t *tokens, size_t n,
                                float *logits);

#endif
